"""The inspector on a GPU: ends of extensions without walls, one warp for each, all cells in registers.

A lane holds 2 R rows, query positions, in R registers for each of H of the last two anti-diagonals, E and F: row j in the
low half of register j, row R + j in the high half.  So a cell's neighbour with one query base less stands in the register
before, and one word comes from the lane before.  Rows stay in their lanes for some chunks.  When those that live reach the
window's end, or fit a window of fewer registers, all go through shared memory, and lie anew from the first living row on.

Scores are taken relative to the best one less the drop, and LIVING is added: the top bit of a cell's number tells whether it
lives.  As numbers with a sign all that live are below all that are dead.  So the smaller one of a cell and DEAD is the cell
if it lives: one instruction for two cells.  Gaps that leave a dead cell need not be cut, since they only lose.  When the
best score rises, all numbers are lowered.  It is watched only in chunks where it may rise: those that begin near it.

The score of a pair is one byte of a word that belongs to the row's query base, chosen by the target base: one instruction
for two cells.  Target bases move by one row with each anti-diagonal, as H and F do.

An extension that gets near an unknown base or the end of a sequence, that outgrows the window or is long is handed back.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import (
    BOTH,
    HIGH_HALVES,
    I32,
    SIMULATED,
    U32,
    WARP,
    add_max2,
    ballot,
    inlined,
    largest,
    max2,
    permute,
    shuffle,
    signed_min2,
    sync_warp,
)

CHUNK = WARP  # anti-diagonals; each lane brings one of their target bases
LIVING = 1 << 15
DEAD = LIVING - (1 << 12)
"""The least number of a living cell, and that of a dead one: no pair leads from the one to the other, and no fall to 0."""
HALF = U32(0xFFFF)
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
FEW_REGISTERS, MANY_REGISTERS = 102, 168
"""Of a thread, for windows of up to FEW registers of a lane and for wider ones."""
FEW = 8
WARPS = 1 if SIMULATED else 4  # of a block
PAD = 1 << 12
"""Bases before and behind the sequences, more than a window has rows: lanes beyond the ends read any."""


class Costs(NamedTuple):
    """All uint32 with the same number in both halves, but ydrop and rise, int32.

    dead : DEAD.  opened : what a gap's first base costs.  longer : what each further one adds, below 0.  rise : of scores in
    a chunk, the most there may be.
    """

    dead: np.uint32
    opened: np.uint32
    longer: np.uint32
    ydrop: np.int32
    rise: np.int32


class State(NamedTuple):
    """How far an extension is; all int32.

    r : the last anti-diagonal.  low, n : first row in shared memory, and rows there.  first, last : living rows, -1 for
    none.  top : number of the highest cell.  found : best score, and its anti-diagonal.  cells : computed so far.
    """

    r: int
    low: int
    first: int
    last: int
    n: int
    top: int
    found: tuple[int, int]
    cells: int


class Size(NamedTuple):
    """Registers of a window, and of the next narrower one, 0 for none.

    A record, since Numba compiles functions anew for each number in a plain tuple of constants.
    """

    registers: int
    less: int


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
    looks there.  codes : uint8, with PAD more at both ends; at : of base 1.
    """
    return U32(codes[U32(at + PAD + step * (number - 1))] & 3)


@inlined
def _choice(code):
    """How `permute` chooses the score of a pair with a target base into a low half, its sign in the upper byte."""
    return U32(code | (code | U32(8)) << U32(4))


@inlined
def _pair(moved, number, at, n, dead, apart):
    """A word of two rows, `at` and `apart` rows behind it, of the n rows that are there; others are dead.

    moved : (4, widest window) uint16, H of two anti-diagonals, E, F.  number : which of these.
    """
    low = U32(moved[number, U32(at)]) if at < n else dead & HALF
    high = U32(moved[number, U32(at + apart)]) if at + apart < n else dead & HALF
    return U32(low | high << U32(16))


@inlined
def _take(rows, moved, place, texts, side, words, registers, dead):
    """Lay rows out from shared memory.

    rows : (H of two anti-diagonals, E, F, choices, words of scores), each (registers,) uint32, the last twice as long.
    moved : (4, widest window) uint16.  place : anti-diagonal, the lane's first row, where that stands in `moved`, and how
    many rows that holds.  texts : target and query codes.  side : (5,) int32.  words : (4,) uint32.
    """
    one, two, e, f, choices, scores = rows
    target, query = texts
    r, row, at, n = place
    for j in range(registers):
        one[j] = _pair(moved, 0, I32(at + j), n, dead, registers)
        two[j] = _pair(moved, 1, I32(at + j), n, dead, registers)
        e[j] = _pair(moved, 2, I32(at + j), n, dead, registers)
        f[j] = _pair(moved, 3, I32(at + j), n, dead, registers)
        low, high = row + j, row + registers + j
        scores[j] = words[_base(query, side[Q_AT], side[STEP], low)]
        scores[registers + j] = words[_base(query, side[Q_AT], side[STEP], high)]
        a = _choice(_base(target, side[T_AT], side[STEP], I32(r - low)))
        b = _choice(_base(target, side[T_AT], side[STEP], I32(r - high)))
        choices[j] = a | (b ^ U32(0x44)) << U32(8)


@inlined
def _put(rows, moved, lane, registers):
    """Write a lane's rows to shared memory, `moved`, for `_take`."""
    one, two, e, f, _, _ = rows
    at = U32(lane * 2 * registers)
    for j in range(registers):
        low, high = U32(at + U32(j)), U32(at + U32(registers + j))
        moved[0, low], moved[0, high] = np.uint16(one[j] & HALF), np.uint16(one[j] >> U32(16))
        moved[1, low], moved[1, high] = np.uint16(two[j] & HALF), np.uint16(two[j] >> U32(16))
        moved[2, low], moved[2, high] = np.uint16(e[j] & HALF), np.uint16(e[j] >> U32(16))
        moved[3, low], moved[3, high] = np.uint16(f[j] & HALF), np.uint16(f[j] >> U32(16))


@inlined
def _diagonal(h, rows, edges, top, costs, registers, watched):
    """The next anti-diagonal of a lane: `h` has H of the one before the last, and gets that of the next.

    rows : as in `_take`.  edges : of H, F and choices, for the first register.  top : the number of the best score, in both
    halves.  Returns the highest cells, or `top`, if they are watched.
    """
    _, _, e, f, choices, scores = rows
    for x in range(registers):
        j = registers - 1 - x
        before, gap, choice = (h[j - 1], f[j - 1], choices[j - 1]) if j > 0 else edges
        choices[j] = choice
        pair = permute(scores[j], scores[registers + j], choice)
        value = add_max2(before, pair, max2(e[j], gap))
        h[j] = signed_min2(value, costs.dead)
        new = U32(value - costs.opened)
        e[j] = add_max2(e[j], costs.longer, new)
        f[j] = add_max2(gap, costs.longer, new)
        if watched:
            top = max2(top, value)
    return top


@inlined
def _edges(h, rows, fresh, s, is_first, lane_before, registers):
    """What comes from the lane before: H, F, choice for the first register.

    fresh : of lane s, the choice of the window's new target base, in the upper byte.  The lane before the first one is the
    last one, whose cells are dead while their values would count.
    """
    _, _, _, f, choices, _ = rows
    last = registers - 1
    both_before = U32(shuffle(I32(permute(h[last], f[last], HIGH_HALVES)), lane_before))
    c_before, c_new = U32(shuffle(I32(choices[last]), lane_before)), U32(shuffle(I32(fresh), s))
    choice = permute(choices[last], c_new if is_first else c_before, BASES_BEFORE)
    h_edge, f_edge = permute(h[last], both_before, FIRST_BEFORE), permute(f[last], both_before, SECOND_BEFORE)
    return h_edge, f_edge, U32(choice ^ OTHER_HALF)


@inlined
def _highest(top):
    """The highest of all halves of a warp, as int32."""
    return I32(largest(max(top & HALF, top >> U32(16))))


@inlined
def _lower(rows, shift, costs, registers):
    """Add `shift`, 0 or below in both halves, to all scores; none gets lower than dead."""
    one, two, e, f, _, _ = rows
    for j in range(registers):
        one[j], two[j] = add_max2(one[j], shift, costs.dead), add_max2(two[j], shift, costs.dead)
        e[j], f[j] = add_max2(e[j], shift, costs.dead), add_max2(f[j], shift, costs.dead)


@inlined
def _watch(h, rows, edges, best, found, r, costs, registers):
    """`_diagonal` r where the best score may rise; found : its number less the first one's, and its anti-diagonal."""
    top = _diagonal(h, rows, edges, best, costs, registers, True)
    base, best_r = found
    if ballot(top != best):
        rise = I32(_highest(top) - I32(best & HALF))
        _lower(rows, _twice(-rise), costs, registers)
        base, best_r = I32(base + rise), I32(r)
    return base, best_r


@inlined
def _living(rows, registers):
    """A bit for each row of this lane with a living cell, and the highest cell of the warp."""
    one, two, _, _, _, _ = rows
    bits, top = U32(0), U32(0)
    for j in range(registers):
        top = max2(top, max2(one[j], two[j]))
        lives = U32(one[j] | two[j])
        bits |= (lives >> U32(15) & U32(1)) << U32(j) | (lives >> U32(31)) << U32(registers + j)
    return bits, _highest(top)


@inlined
def _bounds(bits, low, registers):
    """The first and the last living row of a window that begins at row `low`; -1 for both if there is none."""
    votes = I32(ballot(bits != 0))
    first, last = I32(cuda.ffs(votes) - 1), I32(31 - cuda.clz(votes))
    lowest, highest = I32(shuffle(I32(bits), first & (WARP - 1))), I32(shuffle(I32(bits), last & (WARP - 1)))
    if votes == 0:
        return I32(-1), I32(-1)
    before = 2 * registers
    return I32(low + first * before + cuda.ffs(lowest) - 1), I32(low + last * before + 31 - cuda.clz(highest))


@inlined
def _stay(rows, moved, state, texts, side, words, costs, size):
    """Go on with an extension as long as its window is wide enough, and no narrower one is.

    rows, texts, side, words : as in `_take`.  moved : has the rows before, and gets them.  size : Size.  Returns the State
    then.
    """
    odd, even, target = rows[0], rows[1], texts[0]
    registers, less = size
    r, low, first, last, n, top, found, cells = state
    lane, window = I32(cuda.threadIdx.x & (WARP - 1)), I32(2 * WARP * registers)
    lane_before, is_first = I32(lane + WARP - 1 & WARP - 1), lane == 0
    best, near = _twice(LIVING + costs.ydrop), I32(LIVING + costs.ydrop - costs.rise)
    own = I32(2 * registers * lane)
    _take(rows, moved, (r, I32(first + own), I32(first - low + own), n), texts, side, words, registers, costs.dead)
    low = first
    while True:
        code = _base(target, side[T_AT], side[STEP], I32(r + 1 + lane - low))
        fresh = U32((_choice(code) ^ U32(0x44)) << U32(8))
        _lower(rows, U32(0), costs, registers)
        if top > near:
            s = I32(0)
            while s < CHUNK:
                edges = _edges(odd, rows, fresh, s, is_first, lane_before, registers)
                found = _watch(odd, rows, edges, best, found, r + s + 1, costs, registers)
                edges = _edges(even, rows, fresh, s + 1, is_first, lane_before, registers)
                found = _watch(even, rows, edges, best, found, r + s + 2, costs, registers)
                s = I32(s + 2)
        else:
            s = I32(0)
            while s < CHUNK:
                edges = _edges(odd, rows, fresh, s, is_first, lane_before, registers)
                _diagonal(odd, rows, edges, best, costs, registers, False)
                edges = _edges(even, rows, fresh, s + 1, is_first, lane_before, registers)
                _diagonal(even, rows, edges, best, costs, registers, False)
                s = I32(s + 2)
        r, cells = I32(r + CHUNK), I32(cells + window * CHUNK)
        bits, top = _living(rows, registers)
        first, last = _bounds(bits, low, registers)
        width = I32(last - first + 1 + CHUNK)
        is_narrow, is_full = width <= 2 * WARP * less, last + CHUNK >= low + window
        if is_narrow or is_full or _status(r, first, last, side, window) >= 0:
            break
    sync_warp()
    _put(rows, moved, lane, registers)
    sync_warp()
    return State(r, low, first, last, window, top, found, cells)


@inlined
def _status(r, first, last, side, widest):
    """What becomes of an extension whose rows from first to last live after anti-diagonal r; -1: it goes on."""
    if first < 0:
        return I32(ENDED)
    if last + CHUNK > side[Q_FREE] or r + CHUNK - first > side[T_FREE]:
        return I32(UNKNOWN_NEAR)
    if last - first + 1 + CHUNK > widest:
        return I32(OUTGROWN)
    return I32(LONG) if r >= MOST_R else I32(-1)


@cache
def make_kernel(narrow: int, middle: int, wide: int):
    """The kernel for windows of WARP lanes of 2 * `narrow`, 2 * `middle` or 2 * `wide` rows."""
    R, ROWS = wide, 2 * wide
    NARROW, MIDDLE, WIDE = (2 * WARP * registers for registers in (narrow, middle, wide))
    SMALLEST, MEDIUM, LARGEST = Size(narrow, 0), Size(middle, narrow), Size(wide, middle)

    def inspect(target, query, sides, words, costs, counts, results):
        """Ends of extensions.

        target, query : uint8 codes, with PAD more at both ends.  sides : (n, 5) int32: places of base 1 on target and query,
            step, bases before the first unknown one of each.  words : (4,) uint32, scores of a query base with all target
            bases.  costs : Costs.
        counts : (2,) int64, of extensions taken and of cells.  results : (n, 4) int32: score, anti-diagonal of the end and
            the last one computed, and what became of it.
        """
        rows = (
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(ROWS, np.uint32),
        )  # fmt: skip
        texts, lane = (target, query), I32(cuda.threadIdx.x & (WARP - 1))
        moved = cuda.shared.array((WARPS, 4, WIDE), np.uint16)[cuda.threadIdx.x // WARP]
        n_cells, begin = np.int64(0), I32(LIVING + costs.ydrop)
        while True:
            ticket = I32(0)
            if lane == 0:
                ticket = I32(cuda.atomic.add(counts, 0, 1))
            ticket = I32(shuffle(ticket, 0))
            if ticket >= sides.shape[0]:
                break
            side = sides[ticket]
            if lane == 0:
                moved[0, 0], moved[1, 0] = np.uint16(DEAD), np.uint16(begin)
                moved[2, 0] = moved[3, 0] = np.uint16(begin - I32(costs.opened & HALF))
            sync_warp()
            state = State(I32(0), I32(0), I32(0), I32(0), I32(1), begin, (I32(0), I32(0)), I32(0))
            status = _status(state.r, state.first, state.last, side, WIDE)
            while status < 0:
                width = state.last - state.first + 1 + CHUNK
                if width <= NARROW:
                    state = _stay(rows, moved, state, texts, side, words, costs, SMALLEST)
                elif width <= MIDDLE:
                    state = _stay(rows, moved, state, texts, side, words, costs, MEDIUM)
                else:
                    state = _stay(rows, moved, state, texts, side, words, costs, LARGEST)
                status = _status(state.r, state.first, state.last, side, WIDE)
            n_cells += state.cells
            if lane == 0:
                results[ticket, SCORE], results[ticket, R_BEST] = state.found
                results[ticket, R_LAST], results[ticket, STATUS] = state.r, status
        if lane == 0:
            cuda.atomic.add(counts, 1, n_cells)

    inspect.most_registers = FEW_REGISTERS if wide <= FEW else MANY_REGISTERS  # type: ignore[attr-defined]  # for `kernel_of`
    return inspect
