"""A group's cells between two steps: bases, what arrives at their borders, and what their scores are relative to.

`tiles.py` computes them; `wavefront.py` says which tiles of a group are alive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner
from bellapy.engines.exact.rule import BEYOND_QUERY, BEYOND_TARGET, NONE
from bellapy.engines.exact.tiles import (
    BEST,
    CAP,
    FLOOR,
    LANES,
    LEFT_CAP,
    LEFT_E,
    LEFT_H,
    LEFT_SHIFT,
    NEXT_DIAGONAL,
    QUERY,
    SHIFT,
    TARGET,
    WANTED,
    F,
    Group,
    H,
)  # fmt: skip

BASE, ALIVE, CORNER, BOTTOM, RIGHT_EDGE, NEW_BASE, NEW_ALIVE = range(7)
"""What is known of every lane: rows of `lanes`.  Scores are absolute; ALIVE: whether its last tile was computed."""

TURNS = 3  # of the tails: those of the last two steps are read while the next is written


class Matrix(NamedTuple):
    """What does not change in a sweep; the functions here call it m."""

    query: np.ndarray
    target: np.ndarray
    top: np.ndarray
    top_gap: np.ndarray
    left: np.ndarray
    left_gap: np.ndarray
    row_bound: np.ndarray  # by tile
    column_bound: np.ndarray
    group_bound: np.ndarray  # by group of rows of tiles
    first_tile: np.ndarray  # (n_tile_rows,) columns of tiles
    last_tile: np.ndarray
    size: int
    match: int
    mismatch: int
    first: int
    extend: int
    floor: bool  # local mode
    seek: bool  # look for the best cell anywhere
    dead: int
    low_dead: int
    low_limit: int
    every: int  # rows of tiles between special rows; 0: none
    block_rows: int  # of tiles, of the blocks of `most`
    block_columns: int
    most: np.ndarray  # (blocks of rows, blocks of columns) int32: what is gained from there on
    mark_rows: int  # of tiles, of the blocks of `marks`; 0: none
    mark_columns: int


class State(NamedTuple):
    """What changes; the functions here call it s."""

    wide: np.ndarray  # (n_groups, 6, size * 64) cells, relative to their lane's base
    low: np.ndarray  # the same memory as bytes
    is_low: np.ndarray  # (n_groups,) bool
    is_ready: np.ndarray  # (n_groups,) bool: it was computed one step before
    lanes: np.ndarray  # (n_groups, 7, 64) int64
    tail: np.ndarray  # (TURNS, n_groups, 2, size) int32: the bottom of each group's last lane
    tail_step: np.ndarray  # (TURNS, n_groups) int64: when it was made, -1: it was not
    found: np.ndarray  # (n_groups, 3) int64
    n_cells: np.ndarray  # (n_groups,) int64
    reach: np.ndarray  # (n_tile_rows, 2) int32: first and last computed tile
    last_row: np.ndarray  # (columns + 1,) int32
    last_column: np.ndarray  # (rows + 1,) int32
    marks: np.ndarray  # (rows of tiles // mark_rows, groups of columns) int32: the highest scores at the blocks' lower ends


class Pool(NamedTuple):
    """Parts of special rows: places (n, 2) int32, the row and the column of tiles; values (n, 2, size) int32, H and F."""

    places: np.ndarray
    values: np.ndarray
    used: np.ndarray


class Scratch(NamedTuple):
    """What a worker needs for itself, in the cells' type.

    vectors : (12, 64), rows GAP and so on.  row : (65,).  arrive : (3, size), what comes to lane 0: H, F and bases.
    origin : (64, 3) int64, as in tiles.compute_tiles.
    """

    vectors: np.ndarray
    row: np.ndarray
    arrive: np.ndarray
    origin: np.ndarray


@njit_inner
def load_query(m, cells, g):
    """The query's bases of all lanes of group g to cells, Group.  m : Matrix."""
    for l in range(LANES):
        begin = (g * LANES + l) * m.size
        for i in range(m.size):
            cells[QUERY][i * LANES + l] = m.query[begin + i] if begin + i < len(m.query) else BEYOND_QUERY


@njit_inner
def _target_base(m, at):
    """The target's base `at` of m, Matrix, or a code that equals none."""
    return m.target[at] if 0 <= at < len(m.target) else np.uint8(BEYOND_TARGET)


@njit_inner
def load_targets(m, cells, g, step):
    """The target's bases of all lanes, as they are one step before `step`, to cells.  m, cells, g : as in `_load_query`."""
    for l in range(LANES):
        begin = (step - 1 - g * LANES - l) * m.size
        for j in range(m.size):
            cells[TARGET][j * LANES + l] = _target_base(m, begin + j)


@njit_inner
def widen(s, g):
    """From bytes to wide cells, whose scores are relative to the same base; the arrays lie in the same memory.

    s, g : State and group.
    """
    per_cell = s.low.shape[1] // 6
    for which in (LEFT_E, LEFT_H, F, H):
        wide, low = s.wide[g, which], s.low[g, which * per_cell]
        for k in range(len(wide) - 1, -1, -1):
            wide[k] = low[k]


@njit_inner
def narrow(m, s, g):
    """From wide cells to bytes, relative to what makes 0 their lowest score.  m, s, g : Matrix, State, group."""
    per_cell = s.low.shape[1] // 6
    for which in (H, F, LEFT_H, LEFT_E):
        wide, low = s.wide[g, which], s.low[g, which * per_cell]
        lowest = m.low_dead - (m.first if which in (F, LEFT_E) else 0)
        for k in range(len(wide)):
            low[k] = min(127, max(lowest, wide[k] + s.lanes[g, BASE, k % LANES] + m.low_dead))
    for l in range(LANES):
        s.lanes[g, BASE, l] = -m.low_dead


@njit_inner
def aim(m, s, g, vectors, row, dead, best, is_low):
    """Bases of all lanes, and what takes the last step's cells to them.

    m, s, g, best : as in `_is_alive`.  vectors, row : of Scratch, filled.  dead : as in cpu.Cells.  is_low : bytes.
    """
    lanes, top = s.lanes, np.iinfo(vectors.dtype).max
    for l in range(LANES):
        alive = lanes[g, NEW_ALIVE, l]
        base = -np.int64(m.low_dead) if is_low else lanes[g, NEW_BASE, l]
        lanes[g, NEW_BASE, l] = base
        vectors[CAP, l] = vectors[LEFT_CAP, l] = dead - m.first
        vectors[SHIFT, l] = vectors[LEFT_SHIFT, l] = 0
        if l == 0:
            vectors[CAP, l] = top
        elif alive and lanes[g, ALIVE, l - 1] and lanes[g, BASE, l - 1] - base > dead:
            vectors[CAP, l], vectors[SHIFT, l] = top, lanes[g, BASE, l - 1] - base
        if alive and lanes[g, ALIVE, l] and lanes[g, BASE, l] - base > dead:
            vectors[LEFT_CAP, l], vectors[LEFT_SHIFT, l] = top, lanes[g, BASE, l] - base
        corner = max(np.int64(dead), lanes[g, CORNER, l] - base) if alive else np.int64(dead)
        vectors[NEXT_DIAGONAL, l] = corner
        vectors[BEST, l] = dead - m.first
        vectors[FLOOR, l] = max(np.int64(dead), -base) if m.floor else dead
        vectors[WANTED, l] = min(np.int64(top), max(np.int64(dead) + 1, best - base)) if m.seek and alive else top
    row[:] = 0


@njit_inner
def next_corners(m, s, g, tops):
    """The last cell of each lane's top is the corner of its next tile.

    m, s, g : Matrix, State, group.  tops : of its Group.
    """
    lanes, last = s.lanes, (m.size - 1) * LANES
    for l in range(LANES - 1, 0, -1):
        before = l - 1
        lanes[g, CORNER, l] = lanes[g, BASE, before] + tops[last + before] if lanes[g, ALIVE, before] else NONE
    lanes[g, CORNER, 0] = NONE  # its own come from the tails


@njit_inner
def arrivals(m, s, g, step, dead, high, gap, base_codes):
    """Tops and bases of lane 0: from the matrix's border or the group above; relative to its base.

    m, s, g, step : as in `_is_alive`.  dead : as in cpu.Cells.  high, gap, base_codes : (size,), filled: Scratch.arrive.
    """
    size = m.size
    column = (step - g * LANES) * size
    base, alive = s.lanes[g, NEW_BASE, 0], s.lanes[g, NEW_ALIVE, 0]
    turn = (step - 1) % TURNS
    there = g == 0 or s.tail_step[turn, g - 1] == step - 1
    for j in range(size):
        base_codes[j] = _target_base(m, column + j)
        h = f = np.int64(NONE)
        if alive and there:
            if g > 0:
                h, f = np.int64(s.tail[turn, g - 1, 0, j]), np.int64(s.tail[turn, g - 1, 1, j])
            elif column + j < len(m.target):
                h, f = np.int64(m.top[column + j + 1]), np.int64(m.top_gap[column + j + 1])
        high[j] = max(np.int64(dead), h - base)
        gap[j] = max(np.int64(dead) - m.first, f - base)


@njit_inner
def enter_left(m, s, g, l, row, dead, cells):
    """The left border of the matrix for lane l, whose first tile is in `row`, to cells, Group.

    m, s, g : Matrix, State, group.  dead : as in cpu.Cells.
    """
    base = s.lanes[g, NEW_BASE, l]
    for i in range(m.size):
        at = row * m.size + i + 1
        h = e = np.int64(NONE)
        if at <= len(m.query):
            h, e = np.int64(m.left[at]), np.int64(m.left_gap[at])
        cells[LEFT_H][i * LANES + l] = max(np.int64(dead), h - base)
        cells[LEFT_E][i * LANES + l] = max(np.int64(dead) - m.first, e - base)


@njit_inner
def group_cells(cells, g, each):
    """Group g of cells, State.wide or State.low, whose arrays lie `each` rows apart."""
    return Group(
        cells[g, 0], cells[g, each], cells[g, 2 * each], cells[g, 3 * each], cells[g, 4 * each], cells[g, 5 * each]
    )  # fmt: skip
