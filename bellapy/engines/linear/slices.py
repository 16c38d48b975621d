"""X-drop extension of 512 flanks side by side, one bit of each in every vector: the same integers as rule.py.

It knows the scores 1, -1, -1 and X 15: those of the first step of most extensions.  A cell is PLANES rows of bits
(slice_bases.py), so that one instruction computes a bit of the cells of all lanes.  A cell holds how far it lies below the
best cell of all anti-diagonals before its own: BEST is a new best cell, LIVE the worst one that lives, DEAD a dead one.
Rows, anti-diagonals and windows are those of lanes.py, with HEIGHT rows and chunks of twice HALF anti-diagonals.

Numbers of five bits need not be compared, as neighbours differ little.  Both neighbours of a new cell are at most 1 worse
than the one on its diagonal, which a gap leads to them from.  They are at most 2 better: the path to a neighbour can be bent
to the diagonal, one base before its end.  So two bits tell by how much.  The new cell is

    diagonal + 1 + rises, less 1 where a neighbour is 1 better, less 2 where one is 2 better or bases are equal

where `rises` is 1 where one of the two anti-diagonals before had a new best cell: the best score rises by no more than 1 in
two of them.  This holds for dead cells too, as long as they have no match, and all that are worse than DEAD count as DEAD.
It holds at the borders, if cells outside the matrix are filled in accordingly and have no match either.

Scores are not added up cell by cell: after a chunk the rises of a lane are counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector
from bellapy.compute.rows import put_row, row_at
from bellapy.engines.lanes.shape import U, aligned
from bellapy.engines.linear.slice_bases import ALL, APART, BASE_PLANES, LANES, U0, U_WORDS, WORDS, turn

PLANES = 5
XDROP = 15
BEST, LIVE, DEAD = 7, 23, 24
"""Chosen for short code.  Dead cells, up to two worse than DEAD, have both of the bits 8 and 16.  BEST has neither, and no
other cell that lives lacks both."""
HEIGHT, HALF = 32, 32
MIDDLE = HEIGHT // 2
ZONE, STEP = 10, 4  # a window moves by STEP rows where cells live in the ZONE rows at one end and in none at the other
ROW_BITS = 5
LOW_LIVES, HIGH_LIVES, OUTSIDE, ALIVE = (ROW_BITS + x for x in range(4))
"""What is told of each lane after a chunk, beside the row: whether cells live in the ZONE at either end, whether a cell past
an end of the window may have lived, whether any lives now."""
CELL = U(PLANES * WORDS)
A, B, C, D = (U(i * WORDS) for i in range(1, 5))  # where the planes of a cell begin, after the first one


class Slices(NamedTuple):
    """Cells, bases, and what is known of all lanes; uint64 each.

    even, odd : cells by row; a dead row after those of `even`, and before those of `odd`.
    query, target : (BASE_PLANES * APART,) the bases of the chunk.
    rise, rises : (WORDS,) lanes whose best score rose in the last anti-diagonal; in one of the last two.
    none : (HEIGHT, WORDS), flat: lanes without a new best cell, by row.
    risen : (BITS, WORDS), flat: lanes whose best score rose, by anti-diagonal of the chunk.
    told : (BITS, WORDS), flat: the row of the last rise by bits, then LOW_LIVES and the others.
    fresh, down, up : (WORDS,) lanes that begin a flank, whose windows are to move.
    hidden : (2 * WORDS,) changes of the query at the borders, for one anti-diagonal.
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
    down: np.ndarray
    up: np.ndarray
    hidden: np.ndarray


def make_slices() -> Slices:
    """All lanes idle, all cells dead."""
    stack = cells_of(np.full(HEIGHT + 1, DEAD))
    sizes = [len(stack)] * 2 + [BASE_PLANES * APART] * 2 + [WORDS] * 2 + [HEIGHT * WORDS, LANES, LANES]
    some = Slices(*(aligned(size, np.uint64) for size in sizes + [WORDS] * 3 + [2 * WORDS]))
    some.even[:] = some.odd[:] = stack
    return some


def cells_of(values: np.ndarray) -> np.ndarray:
    """Rows of cells that are the same in all lanes, (len(values) * PLANES * WORDS,) uint64; `values`: of each row."""
    bits = values[:, None] >> np.arange(PLANES) & 1
    return np.repeat(np.where(bits, ALL, U0), WORDS)


def first_cells() -> np.ndarray:
    """Cells of both stacks where an extension begins, row after row, `even` first.

    The first cell stands in the MIDDLE of `even`, and `odd` is the anti-diagonal before.  Outside the matrix a cell loses 1
    with each base of the one sequence that lies ahead, and 2 with each of the other one that lies behind: no path from there
    is better than the one along the border.
    """
    away = np.abs(2 * np.arange(HEIGHT) - HEIGHT + np.array([[0], [1]]))
    return cells_of((BEST + 1 + np.minimum((3 * away + 1) // 2, XDROP + 1)).ravel())


@njit_inner
def _choose(a, b, smaller):
    """The bit of the smaller one of two numbers: of `b` where `smaller`, else of `a`."""
    return a ^ ((a ^ b) & smaller)


@njit_vector
def _step(new, old, query, target, from_row, rise, rises, none):
    """One anti-diagonal of all lanes.

    Parameters
    ----------
    new : cells of the anti-diagonal but one before, by row; replaced by those of this one.
    old : cells of the one before, from the neighbour in row 0 on; the other neighbour is one row further.
    query, target : bases of row 0 on; `target` is read from row `from_row` down.
    from_row : see above.
    rise, rises, none : of Slices; `none` is overwritten.
    """
    r2 = row_at(rises, U0)
    r0 = row_at(rise, U0) ^ r2
    left0, left1 = row_at(old, U0), row_at(old, A)
    for w in range(U(HEIGHT)):
        c, q, t = w * CELL, w * U_WORDS, (U(from_row) - w) * U_WORDS
        b0, b1, b2 = row_at(new, c), row_at(new, c + A), row_at(new, c + B)
        b3, b4 = row_at(new, c + C), row_at(new, c + D)
        above0, above1 = row_at(old, c + CELL), row_at(old, c + CELL + A)
        # one worse than the diagonal: either neighbour is better than that by 0 to 3
        low, high = ~(b0 ^ r0), b1 ^ (b0 | r0)
        x0, x1 = low ^ left0, high ^ (left0 & ~low) ^ left1
        y0, y1 = low ^ above0, high ^ (above0 & ~low) ^ above1
        left0, left1 = above0, above1
        unequal = row_at(query, q) ^ row_at(target, t)
        unequal |= row_at(query, q + U(APART)) ^ row_at(target, t + U(APART))
        unequal |= row_at(query, q + U(2 * APART)) ^ row_at(target, t + U(2 * APART))
        unequal |= b3 & b4
        worse = unequal & ~(x1 | y1)  # by 1 than the diagonal
        better = ~(unequal & ~(x1 & x0)) | (y1 & y0)  # by 1
        odd = r2 ^ worse ^ better
        turn0 = b0 ^ better
        turn1 = _choose(turn0 & odd, turn0 | ~odd, worse)
        turn2 = turn1 & (b1 ^ better)
        turn3 = turn2 & (b2 ^ better)
        turn4 = turn3 & (b3 ^ better)
        b3 ^= turn3
        b4 ^= turn4
        dead = b3 & b4
        put_row(new, c, (b0 ^ odd) & ~dead)
        put_row(new, c + A, (b1 ^ turn1) & ~dead)
        put_row(new, c + B, b2 ^ turn2)
        put_row(new, c + C, b3)
        put_row(new, c + D, b4)
        put_row(none, q, b3 | b4)


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
    so_far = row_at(none, U0)
    so_far |= ~so_far
    f0 = f1 = f2 = f3 = f4 = ~so_far
    for quad in range(HEIGHT // 4):
        x = U(4 * quad) * U_WORDS
        n0 = so_far & row_at(none, x)
        n1 = n0 & row_at(none, x + A)
        n2 = n1 & row_at(none, x + B)
        so_far = n2 & row_at(none, x + C)
        f0 ^= n0 ^ n1 ^ n2 ^ so_far
        f1 ^= n1 ^ so_far
        f2 ^= so_far
        if quad % 2 == 1:
            f3 ^= so_far
        if quad % 4 == 3:
            f4 ^= so_far
    put_row(told, U0, _choose(f0, row_at(told, U0), so_far))
    put_row(told, A, _choose(f1, row_at(told, A), so_far))
    put_row(told, B, _choose(f2, row_at(told, B), so_far))
    put_row(told, C, _choose(f3, row_at(told, C), so_far))
    put_row(told, D, _choose(f4, row_at(told, D), so_far))
    put_row(rises, U0, row_at(rise, U0) | ~so_far)
    put_row(rise, U0, ~so_far)
    put_row(risen, U0, ~so_far)


@njit_inner
def _hide(cells, w, query, target, from_row, fresh, hidden):
    """Take the match from a border cell of row `w` that is as bad as a live cell may be, in lanes that begin a flank.

    Such a cell is dead, but its neighbours tell how bad it would be.  On one anti-diagonal a base is used in one cell only.

    Parameters
    ----------
    cells : of the anti-diagonal but one before.
    w : the row.
    query, target, from_row : of `_step`; `query` is changed.
    fresh : of Slices.
    hidden : (WORDS,) uint64, overwritten by the bits of `query` that are changed.
    """
    if 0 <= w < HEIGHT:
        c, q = U(w) * CELL, U(w) * U_WORDS
        equal = ~(row_at(query, q) ^ row_at(target, U(from_row - w) * U_WORDS))
        worst = row_at(cells, c + D) & ~row_at(cells, c + C) & row_at(cells, c + B) & row_at(cells, c + A) & row_at(cells, c)
        which = worst & equal & row_at(fresh, U0)
        put_row(query, q, row_at(query, q) ^ which)
        put_row(hidden, U0, which)


@njit_inner
def _show(query, w, hidden):
    """Undo `_hide`."""
    if 0 <= w < HEIGHT:
        put_row(query, U(w) * U_WORDS, row_at(query, U(w) * U_WORDS) ^ row_at(hidden, U0))


@njit_part
def _go_on(some, p, parity, any_fresh):
    """One anti-diagonal, with its borders.

    Parameters
    ----------
    some : Slices; changed.
    p, parity : number and parity of the anti-diagonal, 0 or 1, in the chunk.
    any_fresh : as in `compute_chunk`.
    """
    new, old = (some.even, some.odd) if parity else (some.odd[CELL:], some.even)
    query, from_row, borders = some.query[p * WORDS :], HEIGHT - 1 + p + parity, (MIDDLE - p, MIDDLE - 1 + p + parity)
    if any_fresh:
        for i, w in enumerate(borders):
            _hide(new, w, query, some.target, from_row, some.fresh, some.hidden[i * WORDS :])
    _step(new, old, query, some.target, from_row, some.rise, some.rises, some.none)
    if any_fresh:
        for i, w in enumerate(borders):
            _show(query, w, some.hidden[i * WORDS :])
    _rise(some.none, some.told, some.rise, some.rises, some.risen[(2 * p + parity) * WORDS :])


@njit_inner
def _lives(cells, w):
    """Lanes whose cell in row `w` lives."""
    return ~(row_at(cells, U(w) * CELL + C) & row_at(cells, U(w) * CELL + D))


@njit_vector
def _live_rows(even, odd, begin, end):
    """The lanes with a live cell in rows begin .. end - 1 of `even` or `odd`."""
    lives = _lives(even, begin)
    for w in range(begin, end):
        lives |= _lives(even, w) | _lives(odd, w)
    return lives


@njit_part
def compute_chunk(some, any_fresh):
    """The next anti-diagonals of all lanes, twice HALF.

    Parameters
    ----------
    some : Slices, with new bases as `fetch` leaves them; changed.
    any_fresh : whether any lane begins a flank.
    """
    even, odd = some.even, some.odd[CELL:]
    for i in range(BASE_PLANES):
        turn(some.query[i * APART : i * APART + LANES])
        turn(some.target[i * APART : i * APART + LANES])
    some.told[:] = U0
    outside = row_at(some.told, U0)
    for p in range(HALF):
        _go_on(some, p, 0, any_fresh)
        _go_on(some, p, 1, any_fresh)
        outside |= _lives(odd, HEIGHT - 1) | _lives(even, 0)
    low, high = _live_rows(even, odd, 0, ZONE), _live_rows(even, odd, HEIGHT - ZONE, HEIGHT)
    put_row(some.told, U(LOW_LIVES * WORDS), low)
    put_row(some.told, U(HIGH_LIVES * WORDS), high)
    put_row(some.told, U(OUTSIDE * WORDS), outside)
    put_row(some.told, U(ALIVE * WORDS), _live_rows(even, odd, 0, HEIGHT))
    put_row(some.down, U0, low & ~high)
    put_row(some.up, U0, high & ~low)
    turn(some.risen)
    turn(some.told)


@njit_inner
def _take(stack, x, others, y, mask):
    """Let row `x` of bits of `stack` be as row `y` of `others` in the lanes `mask`."""
    at = U(x) * U_WORDS
    put_row(stack, at, _choose(row_at(stack, at), row_at(others, U(y) * U_WORDS), mask))


@njit_inner
def move_windows(stack, down, up, dead):
    """Move the windows of some lanes by STEP rows, that hold no live cell at the other end.

    `stack`: cells from row 0 on; changed.  `down`, `up`: of Slices.  `dead`: STEP rows of dead cells.
    """
    down, up = row_at(down, U0), row_at(up, U0)
    end, step = HEIGHT * PLANES, STEP * PLANES
    for x in range(end - 1, step - 1, -1):
        _take(stack, x, stack, x - step, down)
    for x in range(step):
        _take(stack, x, dead, x, down)
    for x in range(end - step):
        _take(stack, x, stack, x + step, up)
    for x in range(step):
        _take(stack, end - step + x, dead, x, up)


@njit_inner
def start_cells(some, first):
    """Put lanes that begin a flank on their first cells.

    some : Slices; changed.  first : as `first_cells` makes them.
    """
    fresh = row_at(some.fresh, U0)
    for x in range(HEIGHT * PLANES):
        _take(some.even, x, first, x, fresh)
        _take(some.odd, x + PLANES, first, x + HEIGHT * PLANES, fresh)
    put_row(some.rise, U0, row_at(some.rise, U0) & ~fresh)
    put_row(some.rises, U0, row_at(some.rises, U0) & ~fresh)
