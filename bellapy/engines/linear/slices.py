"""X-drop extension of 512 flanks side by side, one bit of each in every vector: the same integers as rule.py.

It knows the scores 1, -1, -1 and X 15: those of the first step of most extensions.  A cell is PLANES rows of bits
(slice_bases.py), so that one instruction computes a bit of the cells of all lanes.  A cell holds how far it lies below the
best cell of all anti-diagonals before its own: BEST is a new best cell, LIVE the worst one that lives, and more is dead.  A
new cell is

    min(min(left, above) + 1 + rise, diagonal - 1 + rises, or diagonal + 1 + rises where bases differ)

where `rise` is 1 where the anti-diagonal before had a new best cell, and `rises` where one of the two before had one: the
best score rises by no more than 1 in two anti-diagonals.  Rows, anti-diagonals and windows are those of lanes.py, with
HEIGHT rows and chunks of twice HALF anti-diagonals.

Scores are not added up cell by cell: after a chunk the rises of a lane are counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector
from bellapy.engines.lanes.shape import U, aligned
from bellapy.engines.linear.slice_bases import ALL, BASE_PLANES, LANES, U0, U1, U_WORDS, WORDS, turn

PLANES = 5
XDROP = 15
BEST, LIVE, DEAD = 11, 27, 29
"""Chosen for short code: no other cell that lives has neither of the bits 4 and 16 that BEST lacks.  Dead cells, and no
others, have the bits 16, 8 and 4; one match or two gaps later they still do."""
HEIGHT, HALF = 32, 32
ZONE, STEP = 10, 4  # a window moves by STEP rows where cells live in the ZONE rows at one end and in none at the other
ROW_BITS = 5
LOW_LIVES, HIGH_LIVES, OUTSIDE, ALIVE = (ROW_BITS + x for x in range(4))
"""What is told of each lane after a chunk, beside the row: whether cells live in the ZONE at either end, whether a cell past
an end of the window may have lived, whether any lives now."""
CELL, U_LANES = U(PLANES * WORDS), U(LANES)
A, B, C, D = (U(i * WORDS) for i in range(1, 5))  # where the planes of a cell begin, after the first one


class Slices(NamedTuple):
    """Cells, bases, and what is known of all lanes; uint64 each.

    even, odd : cells by row; a dead row after those of `even`, and before those of `odd`.
    query, target : (BASE_PLANES, BITS, WORDS), flat: the bases of the chunk.
    rise, rises : (WORDS,) lanes whose best score rose in the last anti-diagonal; in one of the last two.
    none : (HEIGHT, WORDS), flat: lanes without a new best cell, by row.
    risen : (BITS, WORDS), flat: lanes whose best score rose, by anti-diagonal of the chunk.
    told : (BITS, WORDS), flat: the row of the last rise by bits, then LOW_LIVES and the others.
    fresh, gone, down, up : (WORDS,) lanes that begin a flank, that ended one, whose windows are to move.
    mask : (PLANES * WORDS,) scratch: some lanes, by plane.
    """

    even: np.ndarray
    odd: np.ndarray
    query: np.ndarray
    target: np.ndarray
    rise: np.ndarray
    rises: np.ndarray
    none: np.ndarray
    risen: np.ndarray
    told: np.ndarray
    fresh: np.ndarray
    gone: np.ndarray
    down: np.ndarray
    up: np.ndarray
    mask: np.ndarray


def make_slices() -> Slices:
    """All lanes idle, all cells dead."""
    row = PLANES * WORDS
    sizes = [(HEIGHT + 1) * row] * 2 + [BASE_PLANES * LANES] * 2 + [WORDS] * 2
    sizes += [HEIGHT * WORDS, LANES, LANES] + [WORDS] * 4 + [row]
    some = Slices(*(aligned(size, np.uint64) for size in sizes))
    for stack in (some.even, some.odd):
        for plane in range(PLANES):
            stack.reshape(-1, PLANES, WORDS)[:, plane] = -(DEAD >> plane & 1) % (1 << 64)
    return some


@njit_inner
def _choose(a, b, smaller):
    """The bit of the smaller one of two numbers: of `b` where `smaller`, else of `a`."""
    return a ^ ((a ^ b) & smaller)


@njit_inner
def _less(a, b, before):
    """Whether b < a so far, from the bits `a` and `b` and what the lower bits say."""
    return before ^ ((before ^ a) & (a ^ b))


@njit_inner
def _carry(a, b, c):
    """The carry of three bits."""
    return a ^ ((a ^ b) & (a ^ c))


@njit_vector
def _step(new, old, beside, query, target, from_row, rise, rises, none):
    """One anti-diagonal of all lanes.

    Parameters
    ----------
    new : cells of the anti-diagonal but one before, by row; replaced by those of this one.
    old, beside : cells of the one before, from the neighbour in the same column on, and from the other one on.
    query, target : bases of row 0 on; `target` is read from row `from_row` down.
    from_row : see above.
    rise, rises, none : of Slices; `none` is overwritten.
    """
    for w in range(U(HEIGHT)):
        c, q, t = w * CELL, w * U_WORDS, (U(from_row) - w) * U_WORDS
        for e in range(U_WORDS):
            r1, r2 = rise[e], rises[e]
            a0, b0 = old[c + e], beside[c + e]
            a1, b1 = old[c + A + e], beside[c + A + e]
            a2, b2 = old[c + B + e], beside[c + B + e]
            a3, b3 = old[c + C + e], beside[c + C + e]
            a4, b4 = old[c + D + e], beside[c + D + e]
            less = _less(a4, b4, _less(a3, b3, _less(a2, b2, _less(a1, b1, ~b0 & a0))))
            a0, a1, a2 = _choose(a0, b0, less), _choose(a1, b1, less), _choose(a2, b2, less)
            a3, a4 = _choose(a3, b3, less), _choose(a4, b4, less)
            carry = a0 | r1
            a0 ^= ~r1
            a1, carry = a1 ^ carry, a1 & carry
            a2, carry = a2 ^ carry, a2 & carry
            a3, carry = a3 ^ carry, a3 & carry
            a4 ^= carry
            unequal = (query[q + e] ^ target[t + e]) | (query[q + U_LANES + e] ^ target[t + U_LANES + e])
            unequal |= query[q + U_LANES + U_LANES + e] ^ target[t + U_LANES + U_LANES + e]
            b0, b1, b2 = new[c + e], new[c + A + e], new[c + B + e]
            b3, b4 = new[c + C + e], new[c + D + e]
            carry = b0 & ~r2
            b0 ^= ~r2
            add = ~(unequal ^ r2)
            b1, carry = b1 ^ add ^ carry, _carry(b1, add, carry)
            add = ~(unequal | r2)
            b2, carry = b2 ^ add ^ carry, _carry(b2, add, carry)
            b3, carry = b3 ^ add ^ carry, _carry(b3, add, carry)
            b4 = b4 ^ add ^ carry
            less = _less(a4, b4, _less(a3, b3, _less(a2, b2, _less(a1, b1, ~b0 & a0))))
            a2, a3, a4 = _choose(a2, b2, less), _choose(a3, b3, less), _choose(a4, b4, less)
            a0, a1 = _choose(a0, b0, less), _choose(a1, b1, less)
            dead = a4 & a3 & a2
            a0 |= dead
            a1 &= ~dead
            new[c + e], new[c + A + e], new[c + B + e] = a0, a1, a2
            new[c + C + e], new[c + D + e] = a3, a4
            none[w * U_WORDS + e] = a4 | a2


@njit_vector
def _rise(none, told, rise, rises, risen):
    """Note where best scores rose in an anti-diagonal.

    The number of rows before the first new best cell is put together bit by bit: a bit of it is odd or even as is the number
    of every second, fourth, .. of these rows.

    Parameters
    ----------
    none, told, rise, rises : of Slices; all but `none` are renewed.
    risen : (WORDS,) uint64, overwritten.
    """
    for e in range(U_WORDS):
        so_far = ALL
        f0 = f1 = f2 = f3 = f4 = U0
        for quad in range(HEIGHT // 4):
            x = U(4 * quad) * U_WORDS + e
            n0 = so_far & none[x]
            n1 = n0 & none[x + A]
            n2 = n1 & none[x + B]
            so_far = n2 & none[x + C]
            f0 ^= n0 ^ n1 ^ n2 ^ so_far
            f1 ^= n1 ^ so_far
            f2 ^= so_far
            if quad % 2 == 1:
                f3 ^= so_far
            if quad % 4 == 3:
                f4 ^= so_far
        told[e] = _choose(f0, told[e], so_far)
        told[A + e] = _choose(f1, told[A + e], so_far)
        told[B + e] = _choose(f2, told[B + e], so_far)
        told[C + e] = _choose(f3, told[C + e], so_far)
        told[D + e] = _choose(f4, told[D + e], so_far)
        rises[e] = rise[e] | ~so_far
        rise[e] = risen[e] = ~so_far


@njit_inner
def _put_border(rows, w, fresh):
    """Let a border cell of row `w` die that is as bad as a live cell may be, in lanes that begin a flank: `fresh`."""
    if 0 <= w < HEIGHT:
        at = U(w) * CELL
        for e in range(U_WORDS):
            v2 = rows[at + B + e]
            dies = rows[at + D + e] & rows[at + C + e] & ~v2 & rows[at + A + e] & rows[at + e] & fresh[e]
            rows[at + B + e] = v2 | dies
            rows[at + A + e] &= ~dies


@njit_vector
def _live_rows(even, odd, begin, end, lives):
    """Set `lives`, (WORDS,) uint64, for lanes with a live cell in rows begin .. end - 1 of `even` or `odd`."""
    for e in range(U_WORDS):
        lives[e] = U0
    for w in range(U(begin), U(end)):
        for e in range(U_WORDS):
            x = w * CELL + e
            dead = even[x + D] & even[x + C] & even[x + B]
            dead &= odd[x + D] & odd[x + C] & odd[x + B]
            lives[e] |= ~dead


@njit_vector
def _watch(row, outside):
    """Add to `outside`, (WORDS,) uint64, the lanes whose cell in the first row of `row` lives."""
    for e in range(U_WORDS):
        outside[e] |= ~(row[D + e] & row[C + e] & row[B + e])


@njit_part
def compute_chunk(some, any_fresh):
    """The next anti-diagonals of all lanes, twice HALF.

    Parameters
    ----------
    some : Slices, with new bases as `fetch` leaves them; changed.
    any_fresh : whether any lane begins a flank.
    """
    even, odd, before_odd = some.even, some.odd[CELL:], some.odd
    for i in range(BASE_PLANES):
        turn(some.query[i * LANES : (i + 1) * LANES])
        turn(some.target[i * LANES : (i + 1) * LANES])
    outside = some.told[OUTSIDE * WORDS :]
    some.told[:] = U0
    for p in range(HALF):
        query = some.query[p * WORDS :]
        _step(odd, even, even[CELL:], query, some.target, HEIGHT - 1 + p, some.rise, some.rises, some.none)
        _rise(some.none, some.told, some.rise, some.rises, some.risen[2 * p * WORDS :])
        if any_fresh and p > 0:
            _put_border(odd, HEIGHT // 2 - p - 1, some.fresh)
            _put_border(odd, HEIGHT // 2 + p, some.fresh)
        _watch(odd[U(HEIGHT - 1) * CELL :], outside)
        _step(even, before_odd, odd, query, some.target, HEIGHT + p, some.rise, some.rises, some.none)
        _rise(some.none, some.told, some.rise, some.rises, some.risen[(2 * p + 1) * WORDS :])
        if any_fresh:
            _put_border(even, HEIGHT // 2 - p - 1, some.fresh)
            _put_border(even, HEIGHT // 2 + p + 1, some.fresh)
        _watch(even, outside)
    low, high = some.told[LOW_LIVES * WORDS :], some.told[HIGH_LIVES * WORDS :]
    _live_rows(even, odd, 0, ZONE, low)
    _live_rows(even, odd, HEIGHT - ZONE, HEIGHT, high)
    _live_rows(even, odd, 0, HEIGHT, some.told[ALIVE * WORDS :])
    _find_moves(low, high, some.down, some.up)
    turn(some.risen)
    turn(some.told)


@njit_vector
def _find_moves(low, high, down, up):
    """Lanes whose windows go down or up: `down`, `up`, (WORDS,) uint64, overwritten; `low`, `high`: those of `told`."""
    for e in range(U_WORDS):
        down[e], up[e] = low[e] & ~high[e], high[e] & ~low[e]


@njit_vector
def _of_planes(which, mask):
    """Write lanes, `which`, (WORDS,) uint64, to each plane of a row, `mask`."""
    for x in range(mask.size):
        mask[x] = which[U(x) & (U_WORDS - U1)]


@njit_vector
def _take(rows, others, mask):
    """Cells of one row as in another, in some lanes: `rows` is changed; `others`; `mask`: the lanes, by plane."""
    for x in range(mask.size):  # one loop of unknown length: LLVM would unroll two short ones, without vectors
        rows[x] = _choose(rows[x], others[x], mask[x])


@njit_inner
def move_windows(stack, down, up, dead, mask):
    """Move the windows of some lanes by STEP rows, that hold no live cell at the other end.

    `stack`: cells from row 0 on; changed.  `down`, `up`: of Slices.  `dead`: a dead row.  `mask`: of Slices, overwritten.
    """
    _of_planes(down, mask)
    for w in range(HEIGHT - 1, -1, -1):
        others = stack[U(w - STEP) * CELL :] if w >= STEP else dead
        _take(stack[U(w) * CELL :], others, mask)
    _of_planes(up, mask)
    for w in range(HEIGHT):
        others = stack[U(w + STEP) * CELL :] if w + STEP < HEIGHT else dead
        _take(stack[U(w) * CELL :], others, mask)


@njit_inner
def clear(stack, gone, dead, mask):
    """Let all cells of some lanes die.  `stack`, `dead`, `mask`: as in `move_windows`.  `gone`: of Slices."""
    _of_planes(gone, mask)
    for w in range(HEIGHT):
        _take(stack[U(w) * CELL :], dead, mask)


@njit_inner
def start_cells(some, w, first):
    """Put lanes that begin a flank on their first cell, in row `w` of `even`.

    some : Slices; changed.  first : such a row, (PLANES * WORDS,) uint64.
    """
    _of_planes(some.fresh, some.mask)
    _take(some.even[U(w) * CELL :], first, some.mask)
    for e in range(U_WORDS):
        some.rise[e] &= ~some.fresh[e]
        some.rises[e] &= ~some.fresh[e]
