"""What the kernel of the exact sweep works on: arrays by purpose, cells in registers, and where a warp stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import WARP

BASE, ALIVE, TOP_HIGH, TOP_GAP, CORNER = range(5)
"""Numbers of a strip's state beside its cells: the base of its scores, whether its last tile was computed, and what the
strip above has left over its next column, and over the one before."""
NUMBERS = 5
NOT_KEPT, NOT_MARKED = -(1 << 60), -1
LAG = 2 * WARP  # places of a warp


class Kind(NamedTuple):
    """What a kernel is made for; constant while it is compiled.

    registers : of a lane, an even number.  steps : of a tile, a multiple of LAG.  masked : the query holds unknown bases.
    """

    registers: int
    steps: int
    masked: bool

    @property
    def rows(self) -> int:
        """Rows of a strip."""
        return LAG * self.registers


class Packed(NamedTuple):
    """Scores as the kernels want them.

    open, drift, one : the opening of a gap, the drift of a row or column, 1; the first two in both halves.
    mismatch : what is added for one, in both halves.  profile : four bytes, mismatches of four bases.
    swap : what makes a byte of them a match.  All these are uint32.
    extend, opening : the costs of gaps, int32.
    zero : where the base of a tile stands.  dead : the lowest value of a half.
    alarm : what a cell can lose until its gap is seen below its place's last row.
    floor : no score is below 0.  seek : the best cell is sought.
    """

    open: np.uint32
    drift: np.uint32
    one: np.uint32
    mismatch: np.uint32
    profile: np.uint32
    swap: np.uint32
    extend: np.int32
    opening: np.int32
    zero: np.int32
    dead: np.int32
    alarm: np.int32
    floor: bool
    seek: bool


class Cells(NamedTuple):
    """A lane's part of a strip, (registers,) uint32 each.

    high, gap : H - open of the last column, E of the next one.  choice : selectors of `permute` that choose each row's score
    from the profiles of two target bases.  known : all bits of each half whose row has a known base; unused unless masked.
    """

    high: np.ndarray
    gap: np.ndarray
    choice: np.ndarray
    known: np.ndarray


class Flow(NamedTuple):
    """What a lane hands from column to column; uint32.

    above : H - open above the first row, of the last step.  below : F below the last row.
    profile : of the last target base.
    """

    above: np.uint32
    below: np.uint32
    profile: np.uint32


class Best(NamedTuple):
    """The best cell that a lane has found: score, row and column of the matrix, from 1; int32."""

    score: np.int32
    row: np.int32
    column: np.int32


class Matrix(NamedTuple):
    """What does not change.

    query, target : uint8 codes.  left, left_gap : (rows + 1,) int32, the left border.
    left_most, row_bound : (n_strips,) int32: the highest score of each strip's left border, and what its rows can gain.
    column_bound : (groups,) int32, what LAG columns can gain.
    tiles : (n_strips, 2) int32: first tile of each strip that may matter, and the one after the last; neither of them falls.
    block_most : (any, any) int32, what is gained from blocks of cells on, those of strip s in row block_row[s], (n_strips,)
    int32.  block_shift : how many times the number of LAG columns is halved for that of their block.
    kept : (n_strips,) int64: where in `Results.rows` each strip's last row goes, the place of column 0; NOT_KEPT: nowhere.
    mark_row : (n_strips,) int32: the row of `Results.marks` for each strip's last row; NOT_MARKED: none.  mark_shift : how
    many times the number of a column is halved for that of its group there.
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
    block_most: np.ndarray
    block_row: np.ndarray
    block_shift: np.uint32
    kept: np.ndarray
    mark_row: np.ndarray
    mark_shift: np.uint32
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
    last_row, last_column : (columns + 1,), (rows + 1,) int32; a cell each if they are not wanted.
    rows : (any, 2) int32, H and F of kept rows.  marks : (any, groups of columns) int32, the highest H of some rows.
    """

    found: np.ndarray
    reach: np.ndarray
    n_cells: np.ndarray
    last_row: np.ndarray
    last_column: np.ndarray
    rows: np.ndarray
    marks: np.ndarray


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
