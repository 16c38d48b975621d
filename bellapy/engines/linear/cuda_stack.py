"""X-drop extension on a GPU in registers: the rule of rule.py, one group of lanes per flank.

Cells live in two stacks of rows, `even` and `odd` anti-diagonals; a row is one diagonal of the alignment matrix, so a cell
never moves (lanes.py has the same picture).  With even row d at column i + d of anti-diagonal 2 i, the next two are

    odd[d]  = max(even[d], even[d + 1], odd[d] + match or mismatch)        at column i + d + 1
    even[d] = max(odd[d - 1], odd[d], even[d] + match or mismatch)         at column i + d + 1

where scores are counted with a drift of one gap for each anti-diagonal, so that gaps cost nothing.  A mismatch counts at
least as much as two gaps: where that raises it, the two gaps give the same.

A lane holds 2 R rows in R registers for each stack: row j of its 2 R in the low half of register j, row R + j in the high
half.  So the neighbours of a register are the next register, and one word comes from the next lane.  The lanes of a group
are a ring: a window that follows the alignment takes a lane from one end to the other, and no cell moves.  The bases do:
before every chunk of CHUNK anti-diagonals a lane reads the bases its rows will meet, as bit planes (compute/gpu/reads.py),
and turns them into words of one bit for each row and pair of anti-diagonals.

Halves are 0 (dead) or SCALE times a score above a base that is chosen anew for each chunk, below 2^15.  The four low bits
are free: when the highest cell is sought they hold the register's number, so that of equal scores the first row wins.
A cell is alive if adding `floor` (2^15 less the score it has to reach) sets its top bit.

A group whose live cells reached the end of its window hands its flank over, with its state before the chunk, to a kernel
with more rows.  For the *longest* result (rule.py) it hands over the state of one chunk earlier, also when all cells
have died: the kernel for any width (cuda_wide.py) goes through the last anti-diagonals again and finds the end.  What is
handed over stands in two arrays, `heads` (see the constants) and `cells` (even and odd ones by row):  what outgrew the
window from their front, what has ended from their back.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import (
    I32,
    U32,
    U64,
    WARP,
    add_max2,
    ballot,
    fresh,
    max2,
    max2_any,
    permute,
    reverse_bits,
    shuffle,
)
from bellapy.engines.linear.cuda_host import NOT_YET, STATE_COLUMN
from bellapy.engines.linear.rule import STRIDE
from bellapy.params import TILT_UNIT, Scoring

CHUNK = 32
MOST_REGISTERS = 128  # of a thread, so that four blocks fit a processor
PAIRS = CHUNK // 2
EVERY_PAIRS = 4 * PAIRS  # how often a flank looks at how many are left
SCALE = 16
TOP = 0x8000
BOTH = 0x10001  # times a number: the number in both halves
SIGNS = U32(0xBB99)  # selector of `permute`: each half's top bit in all its bits
NEXT, NEXT_AT_END = U32(0x5432), U32(0xDD32)  # own high half, next lane's low half (0 at the end of the window)
BEFORE, BEFORE_AT_END = U32(0x1076), U32(0x10FF)  # previous lane's high half (0 at the end), own low half
LOW_HALVES, HIGH_HALVES = U32(0x5410), U32(0x7632)  # of two words
HALF, EVERY_BIT = U32(0xFFFF), U32(0xFFFFFFFF)
ONE = U32(1)
FLANK, PAIRS_DONE, SCORE, COLUMN, ROW, FIRST_ROW, BORDER = range(7)
HEAD = 7  # numbers of a head: the names above; COLUMN and ROW are those of the best cell
OUTGROWN, TAKEN, ENDED = range(3)  # columns of `counts`: what the level before handed over, how many of it are taken,
CELLS = 4  # what ended in this level, how many of it are taken; from here on the cells that each lane has computed:
COUNTS = CELLS + WARP  # atomic operations on one number would wait for each other


class Packed(NamedTuple):
    """A Scoring as the kernel wants it; halves of words, times SCALE."""

    step: np.uint32  # what a match scores above a mismatch; one half
    mismatch: np.uint32  # a mismatch, drift included
    drift: np.uint32  # by how much the least live score rises each anti-diagonal
    rise: np.uint32  # and by how much more where the best score rises by one match
    best: np.uint32  # `floor` plus the best score, and tags
    floor: np.uint32  # at the start of a chunk
    origin: np.uint32  # the first cell at the start of the first chunk; one half
    border: np.uint32  # value of `floor` at which border cells reach it; 0: never
    tilt: np.int32  # these two as in Scoring
    fall: np.int32


def _units(scoring: Scoring) -> tuple[int, int, int]:
    """Drift of an anti-diagonal, score of a match and of a mismatch with the drift of two."""
    drift = -scoring.gap
    return drift, scoring.match + 2 * drift, max(scoring.mismatch, 2 * scoring.gap) + 2 * drift


def level_of_best(scoring: Scoring) -> int:
    """Where the highest score stands at the start of a chunk, before SCALE.

    The lowest live one, of the first anti-diagonal to come, is dead still if a match takes it there; live cells of the
    chunk before are above 0.
    """
    drift, match, _ = _units(scoring)
    return match + 1 + scoring.xdrop - drift


def pack_scoring(scoring: Scoring) -> Packed:
    """The kernel's numbers.  `fits` says whether they stay within 16 bits."""
    drift, match, mismatch = _units(scoring)
    lowest, origin = match + 1, SCALE * level_of_best(scoring)
    floor = TOP - SCALE * lowest
    return Packed(
        U32(SCALE * (match - mismatch)), U32(SCALE * mismatch * BOTH), U32(SCALE * drift * BOTH),
        U32(SCALE * scoring.match * BOTH), U32((TOP + SCALE * scoring.xdrop + SCALE - 1) * BOTH), U32(floor * BOTH),
        U32(origin), U32(0 if drift >= scoring.xdrop else (TOP - origin) * BOTH),
        I32(scoring.tilt), I32(scoring.fall),
    )  # fmt: skip


def fits(scoring: Scoring) -> bool:
    """Whether a chunk of matches keeps all scores below 2^15."""
    drift, match, _ = _units(scoring)
    return SCALE * (match + scoring.xdrop + (CHUNK + 2) * drift + (PAIRS + 2) * scoring.match) < TOP


inlined = cuda.jit(device=True, inline="always")


@inlined
def larger(a, b, packed):
    return max2(a, b) if packed else max2_any(a, b)


@inlined
def larger_sum(a, b, c, packed):
    return add_max2(a, b, c) if packed else max2_any(U32(a + b), c)


@inlined
def _advance(new, j, one, two, bits, mask, step, rule, floor, tops, packed):
    """Register j of the next anti-diagonal from two neighbours; its highest cells go into `tops`."""
    paired = U32(U32(bits & mask) * step + new[j])
    value = larger_sum(paired, rule.mismatch, larger(one, two, packed), packed)
    above = U32(value + floor)
    tops[j // SCALE] = larger_sum(above, U32((SCALE - 1 - j % SCALE) * BOTH), tops[j // SCALE], packed)
    new[j] = value & permute(above, U32(0), SIGNS)


@inlined
def trim(cells, registers, row, least, most):
    """Kill the cells of rows below `least` and above `most`."""
    for j in range(registers):
        low, high = I32(row + j), I32(row + registers + j)
        keep = U32(HALF if least <= low and low <= most else 0)
        cells[j] &= U32(keep | (U32(0xFFFF0000) if least <= high and high <= most else U32(0)))


@inlined
def _load_plane(planes, plane, begin, reverse, words, window):
    """One plane of words * 32 bases from base `begin` on, which may lie outside; turned around if asked for."""
    most, shift = I32(planes.shape[0] - 1), U64(begin & 31)
    for i in range(words):
        block = I32((begin >> 5) + (words - 1 - i if reverse else i))
        low, high = planes[max(I32(0), min(block, most)), plane], planes[max(I32(0), min(I32(block + 1), most)), plane]
        word = U32((U64(high) << U64(32) | U64(low)) >> shift)
        window[i] = reverse_bits(word) if reverse else word
    window[words] = U32(0)


@inlined
def _load_window(planes, n_bases, at, length, flip, unlike, beyond, words, low, high, unknown):
    """The planes of bases from `at` on.  `flip` complements known ones, `unlike` is the low bit of unknown ones, `beyond`
    that of those past `length` bases, whose other bits are set.
    """
    reverse = at >= n_bases
    begin = 2 * n_bases - at - 32 * words if reverse else at
    _load_plane(planes, 0, begin, reverse, words, low)
    _load_plane(planes, 1, begin, reverse, words, high)
    _load_plane(planes, 2, begin, reverse, words, unknown)
    for i in range(words):
        left = I32(length - 32 * i)
        inside = EVERY_BIT if left >= 32 else U32(0) if left <= 0 else U32((ONE << U32(left)) - ONE)
        known, outside = U32(unknown[i] ^ EVERY_BIT), U32(inside ^ EVERY_BIT)
        low[i] = U32((((low[i] ^ flip) & known | unlike & unknown[i]) & inside) | beyond & outside)
        high[i] = U32(((high[i] ^ flip) & known & inside) | outside)
        unknown[i] |= outside


@inlined
def _sixteen(window, at):
    """Bits at .. at + 15; more may stand above them."""
    return U32((U64(window[at // 32 + 1]) << U64(32) | U64(window[at // 32])) >> U64(at % 32))


@inlined
def _two_rows(window, low, high):
    return permute(_sixteen(window, low), _sixteen(window, high), LOW_HALVES)


@inlined
def _compare(q_low, q_high, q_unknown, t_low, t_high, t_unknown, at, registers, bits):
    """For every row, where its query bases are its target bases; the target's of the first row begin at bit `at`.

    Three loops, since longer ones are not unrolled, and what is not unrolled is not in registers.
    """
    for j in range(registers):
        bits[j] = _two_rows(q_unknown, j, registers + j) ^ _two_rows(t_unknown, at - j, at - registers - j)
    for j in range(registers):
        bits[j] |= _two_rows(q_low, j, registers + j) ^ _two_rows(t_low, at - j, at - registers - j)
    for j in range(registers):
        bits[j] = U32(
            U32(bits[j] | (_two_rows(q_high, j, registers + j) ^ _two_rows(t_high, at - j, at - registers - j))) ^ EVERY_BIT
        )


@inlined
def compare_bases(
    planes, n_bases, query_at, n_query, target_at, n_target, flip, unlike, pairs, row, registers, words,
    query_0, query_1, query_2, target_0, target_1, target_2, odd_bits, even_bits,
):  # fmt: skip
    """For a lane's rows, from `row` on, and the next PAIRS pairs of anti-diagonals: where bases are equal.

    query_0 .. target_2 : (words + 1,) uint32, overwritten by bit planes.
    odd_bits, even_bits : (registers,) uint32; bit i of each half for the i-th pair.
    """
    begin = I32(pairs + row)  # of the query's bases for the first row
    left = I32(n_query - begin)
    _load_window(planes, n_bases, query_at + begin, left, U32(0), U32(0), U32(0), words, query_0, query_1, query_2)
    rows = 2 * registers
    begin = I32(pairs - row - rows)  # of the target's for the last row
    left = I32(n_target - begin)
    _load_window(planes, n_bases, target_at + begin, left, flip, unlike, EVERY_BIT, words, target_0, target_1, target_2)
    _compare(query_0, query_1, query_2, target_0, target_1, target_2, rows - 1, registers, odd_bits)
    _compare(query_0, query_1, query_2, target_0, target_1, target_2, rows, registers, even_bits)


@inlined
def watch_best(tops, banks, rule, group, unit, members, lane):
    """Whether the best score rose in this lane, in which lanes of the group to where it is now, and by how much."""
    improved = False
    for b in range(banks):
        improved = improved or tops[b] != rule.best
    votes = ballot(improved)
    if unit:
        mine = U32(votes & members)
        rise = rule.rise if mine else U32(0)
    else:
        rise, mine = U32(0), U32(0)
        if votes:
            own = U32(0)
            for b in range(banks):
                own = max(own, max(U32(tops[b] & HALF), U32(tops[b] >> U32(16))))
            own >>= U32(4)  # without the tag
            most = own
            for i in range(5):
                if 1 << i < group:
                    most = max(most, U32(shuffle(I32(most), lane ^ (1 << i))))
            mine = U32(ballot(improved and own == most) & members)
            rise = U32(U32(most - U32(U32(rule.best & HALF) >> U32(4))) * U32(SCALE * BOTH))
    return improved, mine, rise


@inlined
def _settle(tops, banks, rule, group, unit, members, lane, floor, t, found, time, winners):
    """Let the floor follow; where the best score rose, remember the anti-diagonal, the lanes and their registers."""
    improved, mine, rise = watch_best(tops, banks, rule, group, unit, members, lane)
    if mine:
        time, winners = t, mine
    if improved:
        for b in range(banks):
            found[b] = tops[b]
    return U32(floor - rule.drift - rise), time, winners


@inlined
def _row_of(found, banks, registers):
    """The first of a lane's rows whose cell has the highest score."""
    row, most = 0, U32(0)
    for half in range(2):
        for b in range(banks):
            top = U32(U32(found[b] >> U32(16 * half)) & HALF)
            if (top >> U32(4)) > most:
                most = U32(top >> U32(4))
                row = half * registers + b * SCALE + SCALE - 1 - I32(top & U32(SCALE - 1))
    return row


@inlined
def in_order(votes, leader, first, group):
    """Votes of a group's lanes as bits, from the first lane of its window on."""
    bits = U32(U32(votes >> U32(leader)) & U32((1 << group) - 1))
    return U32((U64(bits) << U64(group) | U64(bits)) >> U64(first)) & U32((1 << group) - 1)


@inlined
def follow_border(border, shift, rule):
    """The floor at which border cells reach it, seen from the next chunk."""
    border = U32(border + shift) if border else U32(0)
    return U32(0) if U32(border & HALF) > U32(rule.floor & HALF) else border


@inlined
def renew(even, odd, registers, shift, row, least, most, packed):
    """Take scores relative to the best again and kill rows that have left the matrix; not 0 if a cell lives."""
    alive = U32(0)
    for j in range(registers):
        even[j] = U32(larger(even[j], shift, packed) - shift)
        odd[j] = U32(larger(odd[j], shift, packed) - shift)
    if row < least or row + 2 * registers - 1 > most:
        trim(even, registers, row, least, most)
        trim(odd, registers, row, least, most)
    for j in range(registers):
        alive |= even[j] | odd[j]
    return alive


@inlined
def look(score, column, row, k, rule, results, flank):
    """Let a flank's best cell be its result if its tilted score is the highest (rule.py); whether it stops after k.

    One thread of a group does it; what it has written before is the result so far.
    """
    unit, tilt = np.int64(TILT_UNIT), np.int64(rule.tilt)
    highest = unit * results[flank, 0] - tilt * (np.int64(results[flank, 1]) + np.int64(results[flank, 2]))
    tilted = unit * score - tilt * (np.int64(column) + np.int64(row))
    if tilted > highest:
        highest = tilted
        results[flank, 0], results[flank, 1], results[flank, 2] = score, column, row
    return rule.fall > 0 and unit * score - tilt * k < highest - rule.fall


@inlined
def follow(living, row, first, place, group, span):
    """Lanes from one end of the window to the other, so that the living ones, bits from the first on, are in the middle;
    the row of this lane, and the lane that is first then.
    """
    free_below = I32(cuda.ffs(I32(living))) - 1
    free_above = I32(cuda.clz(I32(living))) - (32 - group)
    by = (free_below - free_above) // 2 if free_below > free_above else -((free_above - free_below) // 2)
    seat = place - first & group - 1
    if seat < by:
        row = I32(row + span)
    if seat - group >= by:
        row = I32(row - span)
    return row, I32(first + by & group - 1)


@inlined
def _saved_rows(words, at):
    """The cells of two rows that were handed over; dead outside the window they come from."""
    inside = U32(at) < U32(words.shape[0])
    word = words[U32(at) if inside else U32(0)]
    return word if inside else U32(0)


@inlined
def _load_cells(words, at, registers, cells):
    """A lane's cells from saved ones, the first two of which stand in word `at`."""
    for i in range(registers // 2):
        low, high = _saved_rows(words, I32(at + i)), _saved_rows(words, I32(at + registers // 2 + i))
        cells[2 * i], cells[2 * i + 1] = permute(low, high, LOW_HALVES), permute(low, high, HIGH_HALVES)


@inlined
def _save_cells(kept, state, registers, words, at):
    """The other way, from a lane's state."""
    for i in range(registers // 2):
        one, two = kept[state + 2 * i], kept[state + 2 * i + 1]
        words[at + i], words[at + registers // 2 + i] = permute(one, two, LOW_HALVES), permute(one, two, HIGH_HALVES)


@cache
def make_kernel(group: int, registers: int, unit: bool, packed: bool):
    """The function of a kernel for groups of `group` lanes (at least 4) with 2 * `registers` rows each.

    Parameters
    ----------
    registers : even, since two of them share the words of a state.
    unit : a match scores 1, so the best score rises by one unit at a time.
    packed : the device has instructions for packed maxima (compute capability 9.0 and more).
    """
    R, ROWS, SPAN = registers, 2 * registers, 2 * registers * group
    WORDS = (ROWS + PAIRS + 31) // 32
    BANKS = (R + SCALE - 1) // SCALE  # of registers that the four low bits can number
    LAST = group - 1
    WINDOW = WORDS + 1

    STATE = 2 * R + 4  # words of a lane's state: its cells, row, first lane, score, border
    STATES = 2 * STATE

    def extend_stacks(
        planes, n_bases, table, counts, level, n, asked, heads, cells, new_heads, new_cells, few, rule, longest, results
    ):  # fmt: skip
        """Extend the flanks of a queue.

        Parameters
        ----------
        planes, n_bases : compute/gpu/reads.py.
        table : (n_flanks, 5) int64, rows of `Flanks.table`.
        counts : (levels, COUNTS) int64; this kernel takes what is in the queue of its level.  That of level 0 is the first n
            flanks in their order, as far as kernels before have not taken them; later ones are what a level handed over.
            CELLS: of lanes with live cells.
        n, asked : for level 0; `asked` counts the groups of lanes of the kernels before, each of which has raised TAKEN
            once without finding a flank.
        heads, cells : (n, HEAD) int32 and (n, 2, rows / 2) uint32, two rows in a word, what the level before handed over.
        new_heads, new_cells : the same for what is handed over here, with the rows of this window.
        few : when fewer flanks than this are left and as many have outgrown their windows, those left are handed over too,
            so that the next kernel need not wait for a few long ones; 0: never.
        rule : Packed.
        longest : which result is wanted.
        results : (n_flanks, 4) int32: score, query bases, target bases as far as is known; NOT_YET where a flank is handed
            over, else 0.
        """
        even, odd = cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32)
        even_bits, odd_bits = cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32)
        tops, found = cuda.local.array(BANKS, np.uint32), cuda.local.array(BANKS, np.uint32)
        query_0, query_1, query_2 = (
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32)
        )  # fmt: skip
        target_0, target_1, target_2 = (
            cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32), cuda.local.array(WINDOW, np.uint32)
        )  # fmt: skip
        kept = cuda.local.array(STATES, np.uint32)  # states at the start of this chunk and of the one before
        lane = I32(cuda.threadIdx.x & (WARP - 1))
        place = I32(lane & LAST)
        leader = I32(lane - place)
        members = U32(U32((1 << group) - 1) << U32(leader))
        after, before = I32(leader + (place + 1 & LAST)), I32(leader + (place - 1 & LAST))
        n_queue, asked = (I32(n), I32(asked)) if level == 0 else (I32(counts[level, OUTGROWN]), I32(0))
        flank = first = row = pairs = n_query = n_target = score = best_column = best_row = age = I32(0)
        query_at = target_at = table[0, 0]
        unlike = U32(0) if longest else EVERY_BIT
        tilted = (rule.tilt > 0 or rule.fall > 0) and not longest
        flip, border = U32(0), U32(0)
        busy = I32(0)  # chunks with live cells in this lane
        active, waiting = False, True
        for b in range(BANKS):
            found[b] = U32(0)
        for j in range(R):
            even[j] = odd[j] = U32(0)
        while True:
            if ballot(waiting and not active):
                ticket = I32(0)
                if place == 0 and waiting and not active:
                    ticket = I32(cuda.atomic.add(counts, (level, TAKEN), 1))
                ticket = I32(shuffle(ticket, leader) - asked)
                if waiting and not active:
                    waiting = active = ticket < n_queue
                    if active:
                        flank = ticket if level == 0 else heads[ticket, FLANK]
                        query_at, target_at = table[flank, 0], table[flank, 2]
                        n_query, n_target = I32(table[flank, 1]), I32(table[flank, 3])
                        flip = EVERY_BIT if table[flank, 4] else U32(0)
                        first = age = I32(0)
                        if level == 0:
                            border = rule.border
                            row = I32((place - group // 2) * ROWS)
                            pairs = score = best_column = best_row = I32(0)
                            for j in range(R):
                                even[j] = odd[j] = U32(0)
                            if row == 0:
                                even[0] = rule.origin
                            if place == 0:
                                for j in range(4):
                                    results[flank, j] = 0
                        else:
                            border, pairs, score = (
                                U32(heads[ticket, BORDER]),
                                heads[ticket, PAIRS_DONE],
                                heads[ticket, SCORE],
                            )
                            best_column, best_row = heads[ticket, COLUMN], heads[ticket, ROW]
                            at = I32(place * ROWS - (SPAN // 2 - cells.shape[2]))  # in the window it comes from
                            row = I32(heads[ticket, FIRST_ROW] + at)
                            _load_cells(cells[ticket, 0], I32(at >> 1), R, even)
                            _load_cells(cells[ticket, 1], I32(at >> 1), R, odd)
            if not ballot(active):
                break

            state = I32((age & 1) * STATE)
            for j in range(R):
                kept[state + j], kept[state + R + j] = even[j], odd[j]
            kept[state + 2 * R], kept[state + 2 * R + 1] = U32(row), U32(first)
            kept[state + 2 * R + 2], kept[state + 2 * R + 3] = U32(score), border

            compare_bases(
                planes, n_bases, query_at, n_query, target_at, n_target, flip, unlike, pairs, row, R, WORDS,
                query_0, query_1, query_2, target_0, target_1, target_2, odd_bits, even_bits,
            )  # fmt: skip

            at_first, at_last = place == first, place == (first + LAST & LAST)
            to_next, to_before = (NEXT_AT_END if at_last else NEXT), (BEFORE_AT_END if at_first else BEFORE)
            low_end, high_end = even[0], U32(0)
            floor, time, winners, t = rule.floor, I32(-1), U32(0), I32(0)
            for _ in range(PAIRS // 4):
                mask, step = U32(BOTH), rule.step
                for _ in range(4):
                    p = I32(pairs + (t >> 1))
                    for b in range(BANKS):
                        tops[b] = rule.best
                    edge = permute(even[0], U32(shuffle(I32(even[0]), after)), to_next)
                    for j in range(R):
                        beside = even[j + 1] if j + 1 < R else edge
                        _advance(odd, j, even[j], beside, odd_bits[j], mask, step, rule, floor, tops, packed)
                    if floor == border:
                        trim(odd, R, row, I32(-p), I32(p - 1))
                    high_end |= odd[R - 1]
                    floor, time, winners = _settle(
                        tops, BANKS, rule, group, unit, members, lane, floor, t, found, time, winners
                    )

                    for b in range(BANKS):
                        tops[b] = rule.best
                    edge = permute(odd[R - 1], U32(shuffle(I32(odd[R - 1]), before)), to_before)
                    for j in range(R):
                        beside = odd[j - 1] if j > 0 else edge
                        _advance(even, j, odd[j], beside, even_bits[j], mask, step, rule, floor, tops, packed)
                    if floor == border:
                        trim(even, R, row, I32(-p), p)
                    low_end |= even[0]
                    floor, time, winners = _settle(
                        tops, BANKS, rule, group, unit, members, lane, floor, I32(t + 1), found, time, winners
                    )
                    t = I32(t + 2)
                    mask, step = U32(mask << ONE), U32(step >> ONE)
                for j in range(R):
                    odd_bits[j] >>= U32(4)
                    even_bits[j] >>= U32(4)

            left_window = (at_first and low_end & HALF) or (at_last and high_end >> U32(16))
            if few > 0 and pairs % EVERY_PAIRS == 0:
                gone = fresh(counts, level + 1, OUTGROWN)
                left = n_queue - fresh(counts, level, ENDED) - gone
                left_window = left_window or (left < few and left <= gone)
            outgrown = U32(ballot(left_window) & members) != 0
            lead = in_order(winners, leader, first, group)
            winner = I32(leader + (first + I32(cuda.ffs(I32(lead))) - 1 & LAST))
            diagonal = shuffle(I32(row + _row_of(found, BANKS, R)), winner)
            if time >= 0 and not outgrown:
                best_column, best_row = I32(pairs + (time >> 1) + diagonal + 1), I32(pairs + time - (time >> 1) - diagonal)
            shift = U32(rule.floor - floor)
            score = I32(score + (I32(U32(shift - U32(CHUNK) * rule.drift) & HALF) >> 4))
            border = follow_border(border, shift, rule)
            pairs = I32(pairs + PAIRS)
            alive = renew(even, odd, R, shift, row, I32(pairs - 1 - n_target), I32(n_query - pairs), packed)

            busy = I32(busy + (1 if active and alive else 0))
            living = in_order(ballot(alive != 0), leader, first, group)
            fallen = False
            if tilted and pairs % (STRIDE // 2) == 0 and active and not outgrown and place == 0:
                fallen = look(score, best_column, best_row, 2 * pairs, rule, results, flank)
            fallen = U32(ballot(fallen) & members) != 0
            ends = active and (outgrown or not living or fallen)
            hands_over = ends and (outgrown or longest)
            if ballot(ends):
                ticket = I32(0)
                if ends and place == 0:
                    line, column = (I32(level + 1), OUTGROWN) if outgrown else (I32(level), ENDED)
                    ticket = I32(cuda.atomic.add(counts, (line, column), 1))
                ticket = shuffle(ticket, leader)
                if hands_over:
                    ticket = ticket if outgrown else I32(new_heads.shape[0] - 1 - ticket)
                    earlier = I32(1 if longest and age > 0 else 0)
                    state = I32((age - earlier & 1) * STATE)
                    seat = I32(place - I32(kept[state + 2 * R + 1]) & LAST)
                    _save_cells(kept, state, R, new_cells[ticket, 0], seat * R)
                    _save_cells(kept, state + R, R, new_cells[ticket, 1], seat * R)
                    if seat == 0:
                        results[flank, STATE_COLUMN] = NOT_YET
                        new_heads[ticket, FLANK], new_heads[ticket, PAIRS_DONE] = flank, I32(pairs - PAIRS - earlier * PAIRS)
                        new_heads[ticket, SCORE] = I32(kept[state + 2 * R + 2])
                        new_heads[ticket, COLUMN], new_heads[ticket, ROW] = best_column, best_row
                        new_heads[ticket, FIRST_ROW] = I32(kept[state + 2 * R])
                        new_heads[ticket, BORDER] = I32(kept[state + 2 * R + 3])
            age = I32(age + 1)
            if ends:
                active = False
                if place == 0 and not hands_over:
                    look(score, best_column, best_row, 2 * pairs, rule, results, flank)
                    results[flank, STATE_COLUMN] = 0
                for j in range(R):
                    even[j] = odd[j] = U32(0)
            elif active:
                row, first = follow(living, row, first, place, group, SPAN)
        cuda.atomic.add(counts, (level, CELLS + lane), np.int64(busy) * (CHUNK * ROWS))

    extend_stacks.most_registers = MOST_REGISTERS
    return extend_stacks
