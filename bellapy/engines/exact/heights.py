"""The most that paths gain up to some rows, or from there on, by groups of columns; and what blocks of cells get of that.

Bounds along one sequence do not tell cells of a row from each other.  These do: far from where good paths run, a path has to
pay for the way there and back.  Grids tell them before a sweep, and a sweep tells those of the sweep back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.threads import shared_by
from bellapy.engines.exact.rule import NONE, Scores

LEAST_ROWS = 1024  # of a block
FLAT = 8  # times as many rows as columns
MOST_BLOCKS = 1 << 24  # of a matrix
FAR_BELOW = -(1 << 40)


class Heights(NamedTuple):
    """A path in a cell of one of these rows gains at most the highest value of the one or two groups of its column.

    rows : (k,) int64, rising.  columns : of a group; group g holds those from g * columns to (g + 1) * columns, both ends
    included.  values : (k, groups) int32; NONE where no path of interest comes.
    """

    rows: np.ndarray
    columns: int
    values: np.ndarray


class Blocks(NamedTuple):
    """The most that is still gained from a cell on, by blocks of `rows` rows and `columns` columns, borders included.

    most : (blocks of rows, blocks of columns) int32.
    """

    rows: int
    columns: int
    most: np.ndarray


NO_BLOCKS = Blocks(1 << 40, 1 << 40, np.full((1, 1), np.iinfo(np.int32).max, np.int32))


def block_shape(n: int, m: int) -> tuple[int, int]:
    """Rows and columns of a block, powers of two, so that a matrix of n rows and m columns has few enough."""
    rows = LEAST_ROWS
    while (n // rows + 1) * (FLAT * m // rows + 1) > MOST_BLOCKS:
        rows *= 2
    return rows, rows // FLAT


def no_heights(rows: np.ndarray, columns: int, m: int) -> Heights:
    """None so far, at some rows of a matrix of m columns."""
    return Heights(rows, columns, np.full((len(rows), m // columns + 1), NONE, np.int32))


def blank_marks(marks: tuple[int, int], n: int, m: int) -> Heights:
    """What a sweep of n rows and m columns is to note, none of it noted; marks : as of cpu.Task."""
    rows, columns = marks
    return no_heights(np.arange(rows, n + 1, rows) if rows else np.zeros(0, np.int64), columns or m, m)


def reversed_heights(heights: Heights, n: int, m: int, threads: int = 1) -> Heights:
    """The same for a matrix that is read from row n and column m back; what lies beyond is left out."""
    there = np.flatnonzero(heights.rows < n)[::-1]
    turned = no_heights(n - heights.rows[there], heights.columns, m)

    def turn(part: tuple[int, int]) -> None:
        rows = slice(*part)
        _turn(heights.values, there[rows], heights.columns, m, turned.values[rows])

    shared_by(threads)(turn, len(there))
    return turned


@njit
def _turn(values, there, columns, m, turned):
    """Fill `turned`, values of Heights as in `reversed_heights`.

    values, columns : of Heights.  there : (rows of `turned`,) int64, the rows of `values` to take.
    """
    for row in range(len(there)):
        for g in range(min(values.shape[1], -(-m // columns))):
            begin, end = max(0, m - (g + 1) * columns) // columns, max(0, m - g * columns - 1) // columns
            for other in (begin, end):
                turned[row, other] = max(turned[row, other], values[there[row], g])


@njit_inner
def _fill_row(values, free, beyond, gain, most):
    """A row of blocks, most : (groups,) int32, filled.

    values : (groups,) int32, of the row that paths come to.  free : groups to the right that cost nothing.
    beyond : what each one further away costs.  gain : of the way to that row.
    """
    n, far = len(values), np.int64(FAR_BELOW)
    for g in range(n - 1, -1, -1):
        h = g + free + 1
        far = max(far, np.int64(values[h]) if h < n else far) - beyond
        best = max(far, np.int64(0))  # it may end before
        for h in range(max(0, g - 1), min(n, g + free + 1)):
            best = max(best, np.int64(values[h]))
        most[g] = min(best + gain, np.int64(np.iinfo(np.int32).max))


@njit
def _fill_rows(values, at, down, columns, scores, most):
    """Some rows of blocks, most : (rows, groups) int32, filled.

    values, columns : of Heights.  at, down : (rows,) int64: the row of `values` that paths come to, and how far it is from a
    block's first row.  There may be none; then it is the matrix's end.  scores : Scores.
    """
    nothing = np.zeros(most.shape[1], np.int32)
    for block in range(len(most)):
        row = values[at[block]] if at[block] < len(values) else nothing
        free = 1 - (-down[block]) // columns
        _fill_row(row, free, scores.gap_extend * columns, scores.match * down[block], most[block])


def bound_blocks(ahead: Heights, n: int, m: int, scores: Scores, rows: int, threads: int = 1) -> Blocks:
    """What is still gained from the cells of blocks of `rows` rows on.

    ahead : the most that is gained from its rows on, in groups as wide as blocks.  n, m : rows and columns of the matrix.
    """
    begins = np.arange(0, n + 1, rows)
    at = np.searchsorted(ahead.rows, np.minimum(begins + rows, n))
    down = np.append(ahead.rows, n)[at] - begins
    most = np.empty((len(begins), m // ahead.columns + 1), np.int32)

    def fill(part: tuple[int, int]) -> None:
        blocks = slice(*part)
        _fill_rows(ahead.values, at[blocks], down[blocks], ahead.columns, scores, most[blocks])

    shared_by(threads)(fill, len(most))
    return Blocks(rows, ahead.columns, most)
