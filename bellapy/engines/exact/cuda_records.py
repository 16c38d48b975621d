"""What the kernel of the exact sweep works on: arrays by purpose, and where a warp stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.engines.exact.cuda_tiles import Flow

BASE, ALIVE, TOP_HIGH, TOP_GAP, CORNER = range(5)
"""Numbers of a strip's state beside its cells: the base of its scores, whether its last tile was computed, and what the
strip above has left over its next column, and over the one before."""
NUMBERS = 5
NOT_KEPT = -(1 << 60)


class Matrix(NamedTuple):
    """What does not change.

    query, target : uint8 codes.  left, left_gap : (rows + 1,) int32, the left border.
    left_most, row_bound : (n_strips,) int32: the highest score of each strip's left border, and what its rows can gain.
    column_bound : (groups,) int32, what LAG columns can gain.
    tiles : (n_strips, 2) int32: first tile of each strip that may matter, and the one after the last; neither of them falls.
    kept : (n_strips,) int64: where in `Results.rows` each strip's last row goes, the place of column 0; NOT_KEPT: nowhere.
    ends : whether the last row and column are wanted.
    """

    query: np.ndarray
    target: np.ndarray
    left: np.ndarray
    left_gap: np.ndarray
    left_most: np.ndarray
    row_bound: np.ndarray
    column_bound: np.ndarray
    tiles: np.ndarray
    kept: np.ndarray
    ends: bool


class Traffic(NamedTuple):
    """What warps tell each other.

    tasks : (n_tasks, 5) int32: strip, first tile, the one after the last; the same tiles of the strip above in this panel.
    taken : (1,) int32, how many of them are.
    done : (n_strips,) int32, the tile that is next; tiles before it have left what they leave.
    border : (columns, 2) int32: H and F of the last row over each column.  made : (groups,) int32: the strip that left them,
    for columns LAG g - LAG + 1 .. LAG g; -1: the matrix's upper border.
    state : (n_strips, 2 registers + 2, WARP) uint32, cells between panels; numbers : (n_strips, NUMBERS) int32, see above.
    handed : (n_strips,) int32: as `done`, for states.
    best : (1,) int32, a score that is known to be reached.
    """

    tasks: np.ndarray
    taken: np.ndarray
    done: np.ndarray
    border: np.ndarray
    made: np.ndarray
    state: np.ndarray
    numbers: np.ndarray
    handed: np.ndarray
    best: np.ndarray


class Results(NamedTuple):
    """What is found.

    found : (n_strips, WARP, 3) int32: score, row and column of the best cell of each lane.
    reach : (n_strips, 2) int32: first column and the one after the last, of those computed.  n_cells : (n_strips,) int64.
    last_row, last_column : (columns + 1,), (rows + 1,) int32.
    rows : (any, 2) int32, H and F of kept rows.
    """

    found: np.ndarray
    reach: np.ndarray
    n_cells: np.ndarray
    last_row: np.ndarray
    last_column: np.ndarray
    rows: np.ndarray


class Place(NamedTuple):
    """Where a warp works: lane, strip, tile, the lane's first row, the column of place 0 at the tile's first step; int32."""

    lane: np.int32
    strip: np.int32
    tile: np.int32
    row: np.int32
    column: np.int32


class Walk(NamedTuple):
    """How a warp stands between two tiles: the base of its scores, whether the last tile was computed, its Flow."""

    base: np.int32
    alive: bool
    flow: Flow


class Tile(NamedTuple):
    """A tile that is computed.

    place : of the warp.  at : where its words in shared memory begin, uint32: what comes from above over each column, room
    for what goes below, and profiles of target bases from LAG columns before on.
    base : of the scores.  wanted : score of a cell that is to be noted; int32.  alarm, floor : as `_thresholds` has them.
    """

    place: Place
    at: np.uint32
    base: np.int32
    wanted: np.int32
    alarm: np.uint32
    floor: np.uint32
