"""The inspector on a GPU: ends of extensions without walls, one warp for each, all cells in registers.

A window is a ring of lanes.  A lane holds 2 R rows, query positions, in R registers for each of H of the last two
anti-diagonals, E and F: row j in the low half of register j, row R + j in the high half.  So a cell's neighbour with one
query base less stands in the register before, and one word comes from the lane before.  Rows stay in their lanes.  Lanes
whose rows have all died are taken to the other end of the window after each chunk.

Scores are taken relative to the best one less the drop, and LIVING is added: the top bit of a cell's number tells whether it
lives.  When the best score rises, all numbers are lowered.  Gaps that leave a dead cell need not be cut, since they only
lose.  No number is near 0.  So what a gap costs is taken off both halves of a word at once, in units that else are idle.

The score of a pair is one byte of a word that belongs to the row's query base, chosen by the target base: one instruction
for two cells.  Target bases move by one row with each anti-diagonal, as H and F do.

An extension that gets near an unknown base or the end of a sequence, that outgrows the window or is long is handed back.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, add_max2, ballot, max2, permute, shuffle

CHUNK = WARP  # anti-diagonals; each lane brings one of their target bases
BOTH = 0x10001
LIVING = 1 << 15
DEPTH = 20_000
DEAD = LIVING - DEPTH
"""The least number of a living cell, and that of a dead one."""
HALF = U32(0xFFFF)
TOPS = U32(0xBB99)  # selector of `permute`: each half's top bit in all its bits
HIGHS = U32(0x7632)  # selector: the high halves of two words
FIRST_BEFORE, SECOND_BEFORE = U32(0x1054), U32(0x1076)
"""Selectors: the low or the high half of what comes from the lane before, then the own low half."""
BASES_BEFORE = U32(0x0005)  # likewise for bytes of target bases
OTHER_HALF = U32(0x4444)  # what turns the choice of a low half into that of a high half, and back
ENDED, UNKNOWN_NEAR, OUTGROWN, LONG = range(4)
MOST_R = 1 << 14
"""Anti-diagonals: all others would wait for a warp that goes on for long."""
SCORE, R_BEST, R_LAST, STATUS = range(4)
T_AT, Q_AT, STEP, T_FREE, Q_FREE = range(5)
MOST_SCORE = 127
MOST_REGISTERS = 168

inlined = cuda.jit(device=True, inline="always")


class Costs(NamedTuple):
    """All uint32 with the same number in both halves, but ydrop, int32.

    dead : DEAD.  opened, extended : what a gap's first base and each further one cost.
    """

    dead: np.uint32
    opened: np.uint32
    extended: np.uint32
    ydrop: np.int32


def both(value: int) -> np.uint32:
    """A number in both halves of a word."""
    return U32((value & 0xFFFF) * BOTH)


@inlined
def _twice(value):
    """An int32 in both halves of a word."""
    return U32(U32(value) & HALF) * U32(BOTH)


@inlined
def _base(codes, at, step, number):
    """The code of base `number`, from 1 on, of a side; any code where there is none, or an unknown one: no living cell
    looks there.  codes : uint8; at : of base 1.
    """
    place = I32(at + step * (number - 1))
    return U32(codes[max(I32(0), min(place, I32(len(codes) - 1)))] & 3)


@inlined
def _choice(code):
    """How `permute` chooses the score of a pair with a target base into a low half, its sign in the upper byte."""
    return U32(code | (code | U32(8)) << U32(4))


@inlined
def _fill(rows, r, lane_rows, texts, side, words, registers, dead):
    """Make a lane's rows new: dead cells, words of its query bases, choices of its target bases at anti-diagonal r.

    rows : (H of two anti-diagonals, E, F, choices, words of scores), each (registers,) uint32, the last twice as long.
    lane_rows : its first row.  texts : target and query codes.  side : (5,) int32.  words : (4,) uint32.
    """
    one, two, e, f, choices, scores = rows
    target, query = texts
    for j in range(registers):
        one[j] = two[j] = e[j] = f[j] = dead
        low, high = lane_rows + j, lane_rows + registers + j
        scores[j] = words[_base(query, side[Q_AT], side[STEP], low)]
        scores[registers + j] = words[_base(query, side[Q_AT], side[STEP], high)]
        a = _choice(_base(target, side[T_AT], side[STEP], I32(r - low)))
        b = _choice(_base(target, side[T_AT], side[STEP], I32(r - high)))
        choices[j] = a | (b ^ U32(0x44)) << U32(8)


@inlined
def _diagonal(h, rows, edges, top, costs, registers):
    """The next anti-diagonal of a lane: `h` has H of the one before the last, and gets that of the next.

    rows : as in `_fill`.  edges : of H, F and choices, for the first register.  top : the number of the best score, in both
    halves.  Returns the highest cells, or `top`.
    """
    _, _, e, f, choices, scores = rows
    for x in range(registers):
        j = registers - 1 - x
        before, gap, choice = (h[j - 1], f[j - 1], choices[j - 1]) if j > 0 else edges
        choices[j] = choice
        pair = permute(scores[j], scores[registers + j], choice)
        value = add_max2(before, pair, max2(e[j], gap))
        lives = permute(value, U32(0), TOPS)
        new = U32(value - costs.opened)
        h[j] = U32(value & lives | costs.dead & ~lives)
        e[j] = max2(U32(e[j] - costs.extended), new)
        f[j] = max2(U32(gap - costs.extended), new)
        top = max2(top, value)
    return top


@inlined
def _edges(h, rows, fresh, s, is_first, lane_before, dead, registers):
    """What comes from the lane before: H, F, choice for the first register.

    fresh : of lane s, the choice of the window's new target base, in the upper byte.
    """
    _, _, _, f, choices, _ = rows
    last = registers - 1
    both_before = U32(shuffle(I32(permute(h[last], f[last], HIGHS)), lane_before))
    c_before, c_new = U32(shuffle(I32(choices[last]), lane_before)), U32(shuffle(I32(fresh), s))
    both_before = dead if is_first else both_before
    c_before = c_new if is_first else c_before
    choice = permute(choices[last], c_before, BASES_BEFORE)
    h_edge, f_edge = permute(h[last], both_before, FIRST_BEFORE), permute(f[last], both_before, SECOND_BEFORE)
    return h_edge, f_edge, U32(choice & HALF ^ OTHER_HALF)


@inlined
def _highest(top, lane):
    """The highest of all halves of a warp, as int32."""
    most = max(I32(top & HALF), I32(top >> U32(16)))
    by = WARP // 2
    while by > 0:
        most = max(most, I32(shuffle(I32(most), lane ^ by)))
        by //= 2
    return I32(most)


@inlined
def _lower(rows, shift, costs, registers):
    """Add `shift`, below 0 in both halves, to all scores."""
    one, two, e, f, _, _ = rows
    for j in range(registers):
        one[j], two[j] = add_max2(one[j], shift, costs.dead), add_max2(two[j], shift, costs.dead)
        e[j], f[j] = add_max2(e[j], shift, costs.dead), add_max2(f[j], shift, costs.dead)


@inlined
def _is_living(rows, costs, registers):
    """Whether a cell of this lane lives; gaps get no lower than dead."""
    one, two, e, f, _, _ = rows
    top = costs.dead
    for j in range(registers):
        e[j], f[j] = max2(e[j], costs.dead), max2(f[j], costs.dead)
        top = max2(top, max2(one[j], two[j]))
    return top != costs.dead


@cache
def make_kernel(registers: int):
    """The kernel for windows of WARP lanes of 2 * `registers` rows."""
    R = registers
    ROWS = 2 * R
    WINDOW = WARP * ROWS

    def inspect(target, query, sides, words, costs, counts, results):
        """Ends of extensions.

        target, query : uint8 codes.  sides : (n, 5) int32: places of base 1 on target and query, step, bases before the
            first unknown one of each.  words : (4,) uint32, scores of a query base with all target bases.  costs : Costs.
        counts : (2,) int64, of extensions taken and of cells.  results : (n, 4) int32: score, anti-diagonal of the end and
            the last one computed, and what became of it.
        """
        rows = (
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(ROWS, np.uint32),
        )  # fmt: skip
        odd, even, e, f = rows[0], rows[1], rows[2], rows[3]
        texts, lane = (target, query), I32(cuda.threadIdx.x & (WARP - 1))
        lane_before, cells = I32(lane + WARP - 1 & WARP - 1), np.int64(0)
        best = _twice(LIVING + costs.ydrop)
        while True:
            ticket = I32(0)
            if lane == 0:
                ticket = I32(cuda.atomic.add(counts, 0, 1))
            ticket = I32(shuffle(ticket, 0))
            if ticket >= sides.shape[0]:
                break
            side = sides[ticket]
            first, row, r, base, best_r, status = I32(0), I32(lane * ROWS), I32(0), I32(0), I32(0), I32(-1)
            n_living = I32(1)
            _fill(rows, r, row, texts, side, words, R, costs.dead)
            if lane == 0:
                even[0] = U32(costs.dead & ~HALF | best & HALF)
                e[0] = f[0] = U32(costs.dead & ~HALF | best - costs.opened & HALF)
            while status < 0:
                low_row = I32(shuffle(row, first))
                last_row = I32(low_row + n_living * ROWS - 1 + CHUNK)
                if last_row >= I32(low_row + WINDOW):
                    status = I32(OUTGROWN)
                elif last_row > side[Q_FREE] or r + CHUNK - low_row > side[T_FREE]:
                    status = I32(UNKNOWN_NEAR)
                elif r >= MOST_R:
                    status = I32(LONG)
                else:
                    code = _base(target, side[T_AT], side[STEP], I32(r + 1 + lane - low_row))
                    fresh = U32((_choice(code) ^ U32(0x44)) << U32(8))
                    is_first = lane == first
                    for s in range(0, CHUNK, 2):
                        edges = _edges(odd, rows, fresh, s, is_first, lane_before, costs.dead, R)
                        top = _diagonal(odd, rows, edges, best, costs, R)
                        if ballot(top != best):
                            rise, best_r = I32(_highest(top, lane) - LIVING - costs.ydrop), I32(r + s + 1)
                            base = I32(base + rise)
                            _lower(rows, _twice(-rise), costs, R)
                        edges = _edges(even, rows, fresh, s + 1, is_first, lane_before, costs.dead, R)
                        top = _diagonal(even, rows, edges, best, costs, R)
                        if ballot(top != best):
                            rise, best_r = I32(_highest(top, lane) - LIVING - costs.ydrop), I32(r + s + 2)
                            base = I32(base + rise)
                            _lower(rows, _twice(-rise), costs, R)
                    r = I32(r + CHUNK)
                    votes = U32(ballot(_is_living(rows, costs, R)))
                    cells += n_living * (ROWS * CHUNK)
                    if votes == 0:
                        status = I32(ENDED)
                    else:
                        by, n_living = _living(votes, first)
                        if I32(lane - first + WARP & WARP - 1) < by:
                            row = I32(row + WINDOW)
                            _fill(rows, r, row, texts, side, words, R, costs.dead)
                        first = I32(first + by & WARP - 1)
            if lane == 0:
                results[ticket, SCORE], results[ticket, R_BEST] = base, best_r
                results[ticket, R_LAST], results[ticket, STATUS] = r, status
        if lane == 0:
            cuda.atomic.add(counts, 1, cells)

    inspect.most_registers = MOST_REGISTERS  # type: ignore[attr-defined]  # for `kernel_of`
    return inspect


@inlined
def _living(votes, first):
    """Dead lanes before the first living one of the window, and lanes from that one to the last living one."""
    turned = U32((votes >> U32(first) | votes << U32(WARP - first)) & U32((1 << WARP) - 1)) if first > 0 else votes
    by = I32(cuda.ffs(I32(turned))) - 1
    last = 31 - I32(cuda.clz(I32(turned)))
    return I32(by), I32(last - by + 1)
