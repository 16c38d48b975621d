"""What lines are computed from, what changes from line to line, and what is kept of some (`lines.py` computes them)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.engines.exact.antidiagonals import LANES, Codes, Differences, Plain, Raised, Whole
from bellapy.engines.exact.heights import Blocks
from bellapy.engines.exact.rule import NONE

CHECKS = 64, 256
"""Lines between two looks at the scores, for narrow and for wide bands."""
ROWS = 32
"""Rows that share an interval of columns."""

LINE, FIRST, LAST, PLACE, SCORE, IS_WHOLE, CELLS = range(7)
"""What is known of the last line: its number, first and last row, a row of it and that cell's score, whether the cells are
whole scores; the cells computed so far."""


class Frame(NamedTuple):
    """What does not change; the functions here call it m, as a matrix.

    top, top_gap, left, left_gap : as in cpu.Borders.  first, last : as in cpu.Bounds, by ROWS rows.
    row_bound, column_bound : (rows + 1,), (columns + 1,) int32, what can still be gained; neither rises.  blocks : the same
    by cells, with no order.
    floor : local mode.  seek : look for the best cell.  keep_ends : keep the last row and column.
    open : of a gap, which may have been paid before.  every : lines between two that are kept; 0: none.
    """

    codes: Codes
    raised: Raised
    plain: Plain
    top: np.ndarray
    top_gap: np.ndarray
    left: np.ndarray
    left_gap: np.ndarray
    first: np.ndarray
    last: np.ndarray
    row_bound: np.ndarray
    column_bound: np.ndarray
    blocks: Blocks
    floor: bool
    seek: bool
    keep_ends: bool
    open: int
    every: int


class State(NamedTuple):
    """What changes; the functions here call it s.

    now : (7,) int64, LINE and so on.  best : (3,) int64: score, row, column.  reach : (rows + 1, 2) int32, first and last
    column that was computed.  last_row, last_column : as in cpu.Sweep.  spans : (CHECKS[1] + 1, 2) int64, first and last row
    of the lines since the last check.
    """

    d: Differences
    w: Whole
    now: np.ndarray
    best: np.ndarray
    reach: np.ndarray
    last_row: np.ndarray
    last_column: np.ndarray
    spans: np.ndarray


class Kept(NamedTuple):
    """Kept lines.

    about : (any, 5) int64: line, first row, number of rows, score of the first one, where the line's values begin.
    values : u, y, v and x of all its cells, one after the other.  used : (2,) int64, of both.
    """

    about: np.ndarray
    values: np.ndarray
    used: np.ndarray


class Line(NamedTuple):
    """A kept line: its number, first row, number of cells, the first one's score; their u, y, v, x one after the other."""

    line: int
    first: int
    size: int
    score: int
    values: np.ndarray


def new_state(rows: int, columns: int, cell: np.dtype, known: int, wholes: bool, ends: bool) -> State:
    """The state before the first line of a matrix.

    known : as in cpu.Task.  wholes : whether whole scores may be needed.  ends : whether last row and column are kept; else
    only their last cell is.
    """
    by_row, by_column = rows + 1 + LANES, columns + 1 + LANES
    last_row, last_column = (np.full(k + 1 if ends else 1, NONE, np.int32) for k in (columns, rows))
    return State(
        Differences(*(np.zeros(k, cell) for k in (by_row, by_row, by_column, by_column))),
        Whole(
            np.zeros((3, by_row + 1), np.int32),
            *(np.full(k if wholes else 0, NONE, np.int32) for k in (by_row, by_column)),
        ),
        np.zeros(7, np.int64), np.array([known, -1, -1], np.int64),
        np.tile(np.array([columns + 1, -1], np.int32), (rows + 1, 1)),
        last_row, last_column, np.zeros((CHECKS[1] + 1, 2), np.int64),
    )  # fmt: skip


def new_kept(lines: int, values: int, cell: np.dtype) -> Kept:
    """Room for so many kept lines, and values of their cells."""
    return Kept(np.zeros((lines, 5), np.int64), np.zeros(values, cell), np.zeros(2, np.int64))


def line_at(about: np.ndarray, values: np.ndarray, k: int) -> Line:
    """Number k of kept lines; about, values : as in Kept."""
    line, first, size, score, at = about[k].tolist()
    return Line(line, first, size, score, values[at : at + 4 * size])


def make_room(kept: Kept, lines: int, values: int) -> None:
    """Room for so many more, and for others to come; in place where the system can."""
    used = kept.used.tolist()
    if used[0] + lines > len(kept.about):
        kept.about.resize((5 * used[0] // 4 + lines, 5), refcheck=False)
    if used[1] + values > len(kept.values):
        kept.values.resize(5 * used[1] // 4 + values, refcheck=False)


def room_for_line(s: State) -> int:
    """Values that the next kept line may have."""
    return 4 * int(s.now[LAST] - s.now[FIRST] + 1 + CHECKS[1])
