"""The sweep over a matrix: wavefronts of tiles, of which only those are computed that an optimal alignment may cross.

A tile is left out where its row's interval of columns says so, or where even the best score on its borders and the most that
can still be gained together miss the score that is known to be possible.  Everything that is computed is exact: a score is
never above the true one, and not below it on any alignment that reaches the known score.

The sweep's whole state is a few arrays whose size goes with the number of rows, so it can be stopped after any step, kept
(`Sweep.state`) and continued.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from bellapy.engines.exact.rule import BEYOND_QUERY, BEYOND_TARGET, NONE, Scores
from bellapy.engines.exact.tiles import (
    BEST, CAP, DIAGONAL, FLOOR, GAP, H, HIGH, LANES, LEFT_CAP, LEFT_E, LEFT_H, LEFT_SHIFT, NEXT_DIAGONAL, QUERY, RIGHT,
    SHIFT, TARGET, WANTED, F, compute_tiles, highest_cells, pass_lanes, rebase_lanes, shift_lanes,
)  # fmt: skip
from bellapy.jit import njit, njit_inner
from bellapy.parallel import even_ranges, map_threads
from bellapy.xdrop.lanes import aligned

BASE, ALIVE, CORNER, BOTTOM, RIGHT_EDGE, NEW_BASE, NEW_ALIVE = range(7)
"""What is known of every lane: rows of `lanes`.  Scores are absolute; ALIVE: whether its last tile was computed."""

TURNS = 3  # of the tails: those of the last two steps are read while the next is written
STRETCH = 4096  # steps of one thread between two signs of progress
GROUPS_PER_THREAD = 3  # fewer are computed faster by one thread


class Cells(NamedTuple):
    """A type of cells.

    dead : the lowest score of a cell relative to its base.  limit : the highest score on a tile's borders.
    """

    name: str
    dead: int
    limit: int


def wide_cells(scores: Scores, size: int) -> Cells:
    """Cells relative to the best score on a tile's borders.

    Neighbouring cells differ by at most `scores.step()`, so no true score on or within the tile is `dead`: what was left
    out may be taken for it, and is never overrated.
    """
    for name, dead in (("int16", -12_000), ("int32", -(1 << 28))):
        if 3 * size * scores.step() < -dead:
            return Cells(name, dead, 0)
    raise ValueError(f"scores too large: {scores}")


def low_cells(scores: Scores, size: int) -> Cells | None:
    """Bytes for local scores near 0, which is their `dead`; None if there is no room for them."""
    dead = -128 + max(scores.first + scores.gap_extend, -scores.mismatch)
    limit = 127 - size * scores.match - dead
    return Cells("int8", dead, limit) if dead <= 0 and limit >= 48 else None


class Borders(NamedTuple):
    """Scores at the matrix's upper and left borders: H of row 0 and F for row 1, H of column 0 and E for column 1, int32."""

    top: np.ndarray
    top_gap: np.ndarray
    left: np.ndarray
    left_gap: np.ndarray


class Bounds(NamedTuple):
    """Where an alignment may run, and what it can still gain.

    query, target : (rows + 1,), (columns + 1,) int32: the most that is gained from a row, or a column, on; the smaller of
    the two holds for a cell.  first, last : (n_tile_rows,) int32 columns, both included, that each row of tiles may touch,
    borders included; first > last: none.
    """

    query: np.ndarray
    target: np.ndarray
    first: np.ndarray
    last: np.ndarray


class _Matrix(NamedTuple):
    """What does not change in a sweep."""

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


class _State(NamedTuple):
    """What changes."""

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


@njit_inner
def _is_alive(m, s, g, l, row, column, step, best):
    """Whether a lane's next tile may matter, and the best score on its borders."""
    size, lanes = m.size, s.lanes
    value = np.int64(0 if m.floor else NONE)
    corner = lanes[g, CORNER, l]
    if column == 0:
        corner = np.int64(m.left[row * size])
        for i in range(row * size + 1, min((row + 1) * size, len(m.query)) + 1):
            value = max(value, np.int64(m.left[i]))
    elif lanes[g, ALIVE, l]:
        value = max(value, lanes[g, RIGHT_EDGE, l])
    if row == 0:
        corner = np.int64(m.top[column * size])
        for j in range(column * size + 1, min((column + 1) * size, len(m.target)) + 1):
            value = max(value, np.int64(m.top[j]))
    elif l > 0:
        if lanes[g, ALIVE, l - 1]:
            value = max(value, lanes[g, BOTTOM, l - 1])
    else:
        turn = (step - 1) % TURNS
        if s.tail_step[turn, g - 1] == step - 1:
            for j in range(size):
                value = max(value, np.int64(s.tail[turn, g - 1, 0, j]))
        before = (step - 2) % TURNS
        if column > 0 and s.tail_step[before, g - 1] == step - 2:
            corner = np.int64(s.tail[before, g - 1, 0, size - 1])
    value = max(value, corner)
    lanes[g, CORNER, l] = corner
    slack = m.first - m.extend  # the open part of a gap that goes on was paid already
    alive = value > NONE and value + slack + min(m.row_bound[row], m.column_bound[column]) >= best
    return alive, value


@njit_inner
def _plan(m, s, g, step, best):
    """Find a group's live tiles; (their number, whether bytes hold their scores)."""
    n, low, lanes = 0, True, s.lanes
    for l in range(LANES):
        row = g * LANES + l
        column = step - row
        alive, value = False, np.int64(0)
        if row < len(m.first_tile) and m.first_tile[row] <= column <= m.last_tile[row]:
            alive, value = _is_alive(m, s, g, l, row, column, step, best)
        lanes[g, NEW_ALIVE, l], lanes[g, NEW_BASE, l] = alive, value if alive else 0
        if alive:
            n += 1
            low &= value <= m.low_limit
    return n, low and m.low_limit > 0


@njit_inner
def _may_wake(m, s, g, step, best):
    """Whether a group that was not computed in the last step may have live tiles: quickly told, and mostly no."""
    from_above = s.tail_step[(step - 1) % TURNS, g - 1] == step - 1 or s.tail_step[(step - 2) % TURNS, g - 1] == step - 2
    at_border = g == 0 or step < (g + 1) * LANES
    return at_border or from_above or m.floor and m.first - m.extend + m.group_bound[g] >= best


@njit_inner
def _put_to_sleep(s, g):
    if s.is_ready[g]:
        s.is_ready[g] = False
        for l in range(LANES):
            s.lanes[g, ALIVE, l] = 0
            s.lanes[g, CORNER, l] = NONE


@njit_inner
def _load_query(m, cells, g):
    """The query's bases of all lanes."""
    for l in range(LANES):
        begin = (g * LANES + l) * m.size
        for i in range(m.size):
            cells[QUERY][i * LANES + l] = m.query[begin + i] if begin + i < len(m.query) else BEYOND_QUERY


@njit_inner
def _target_base(m, at):
    return m.target[at] if 0 <= at < len(m.target) else np.uint8(BEYOND_TARGET)


@njit_inner
def _load_targets(m, cells, g, step):
    """The target's bases of all lanes, as they are one step before `step`."""
    for l in range(LANES):
        begin = (step - 1 - g * LANES - l) * m.size
        for j in range(m.size):
            cells[TARGET][j * LANES + l] = _target_base(m, begin + j)


@njit_inner
def _widen(m, s, g):
    """From bytes to wide cells, whose scores are relative to the same base; the arrays lie in the same memory."""
    per_cell = s.low.shape[1] // 6
    for which in (LEFT_E, LEFT_H, F, H):
        wide, low = s.wide[g, which], s.low[g, which * per_cell]
        for k in range(len(wide) - 1, -1, -1):
            wide[k] = low[k]


@njit_inner
def _narrow(m, s, g):
    """From wide cells to bytes, relative to what makes 0 their lowest score."""
    per_cell = s.low.shape[1] // 6
    for which in (H, F, LEFT_H, LEFT_E):
        wide, low = s.wide[g, which], s.low[g, which * per_cell]
        lowest = m.low_dead - (m.first if which in (F, LEFT_E) else 0)
        for k in range(len(wide)):
            low[k] = min(127, max(lowest, wide[k] + s.lanes[g, BASE, k % LANES] + m.low_dead))
    for l in range(LANES):
        s.lanes[g, BASE, l] = -m.low_dead


@njit_inner
def _aim(m, s, g, vectors, row, dead, best, is_low):
    """Bases of all lanes, and what takes the last step's cells to them."""
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
def _next_corners(m, s, g, tops):
    """The last cell of each lane's top is the corner of its next tile."""
    lanes, last = s.lanes, (m.size - 1) * LANES
    for l in range(LANES - 1, 0, -1):
        before = l - 1
        lanes[g, CORNER, l] = lanes[g, BASE, before] + tops[last + before] if lanes[g, ALIVE, before] else NONE
    lanes[g, CORNER, 0] = NONE  # its own come from the tails


@njit_inner
def _arrivals(m, s, g, step, dead, high, gap, base_codes):
    """Tops and bases of lane 0: from the matrix's border or the group above; relative to its base."""
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
def _enter_left(m, s, g, l, row, dead, cells):
    """The left border of the matrix for the lane that begins."""
    base = s.lanes[g, NEW_BASE, l]
    for i in range(m.size):
        at = row * m.size + i + 1
        h = e = np.int64(NONE)
        if at <= len(m.query):
            h, e = np.int64(m.left[at]), np.int64(m.left_gap[at])
        cells[LEFT_H][i * LANES + l] = max(np.int64(dead), h - base)
        cells[LEFT_E][i * LANES + l] = max(np.int64(dead) - m.first, e - base)


@njit_inner
def _advance(m, s, g, step, best, cells, scratch, dead, is_low):
    """One step of a group with live tiles."""
    vectors, row, arrive, origin = scratch.vectors, scratch.row, scratch.arrive, scratch.origin
    cell, size = vectors.dtype.type, m.size
    _aim(m, s, g, vectors, row, dead, best, is_low)
    _arrivals(m, s, g, step, dead, arrive[0], arrive[1], arrive[2])
    _next_corners(m, s, g, cells[H])
    lowest, lowest_gap = cell(dead), cell(dead - m.first)
    shift_lanes(cells[H], arrive[0], row, vectors[CAP], vectors[SHIFT], lowest, size)
    shift_lanes(cells[F], arrive[1], row, vectors[CAP], vectors[SHIFT], lowest_gap, size)
    pass_lanes(cells[TARGET], arrive[2], row, size)
    rebase_lanes(cells[LEFT_H], vectors[LEFT_CAP], vectors[LEFT_SHIFT], lowest, size)
    rebase_lanes(cells[LEFT_E], vectors[LEFT_CAP], vectors[LEFT_SHIFT], lowest_gap, size)
    n_tile_rows, n_tile_columns = len(m.first_tile), (len(m.target) + size - 1) // size
    row_lane = column_lane = -1
    for l in range(LANES):
        tile_row = g * LANES + l
        column = step - tile_row
        origin[l, 0], origin[l, 1], origin[l, 2] = tile_row * size, column * size, s.lanes[g, NEW_BASE, l]
        if s.lanes[g, NEW_ALIVE, l]:
            if column == 0:
                _enter_left(m, s, g, l, tile_row, dead, cells)
            row_lane = l if tile_row == n_tile_rows - 1 else row_lane
            column_lane = l if column == n_tile_columns - 1 else column_lane
    edge = (len(m.query) - 1) % size, row_lane, (len(m.target) - 1) % size, column_lane
    costs = cell(m.match), cell(m.mismatch), cell(m.first), cell(m.extend)
    compute_tiles(cells, vectors, size, costs, origin, edge, s.found[g], s.last_row, s.last_column)
    highest_cells(cells[H], vectors[HIGH], size)
    highest_cells(cells[LEFT_H], vectors[RIGHT], size)
    _settle(m, s, g, step, vectors, cells)


@njit_inner
def _settle(m, s, g, step, vectors, cells):
    """Note what the group's tiles leave to those of the next step."""
    lanes, size = s.lanes, m.size
    for l in range(LANES):
        base, alive = lanes[g, NEW_BASE, l], lanes[g, NEW_ALIVE, l]
        lanes[g, BASE, l], lanes[g, ALIVE, l] = base, alive
        lanes[g, BOTTOM, l], lanes[g, RIGHT_EDGE, l] = base + vectors[HIGH, l], base + vectors[RIGHT, l]
        if alive:
            row = g * LANES + l
            column = step - row
            s.n_cells[g] += min(size, len(m.query) - row * size) * min(size, len(m.target) - column * size)
            if s.reach[row, 0] > column:
                s.reach[row, 0] = column
            s.reach[row, 1] = column
    if lanes[g, ALIVE, LANES - 1]:
        turn, base = step % TURNS, lanes[g, BASE, LANES - 1]
        s.tail_step[turn, g] = step
        for j in range(size):
            s.tail[turn, g, 0, j] = base + cells[H][j * LANES + LANES - 1]
            s.tail[turn, g, 1, j] = base + cells[F][j * LANES + LANES - 1]


@njit_inner
def _group_cells(cells, g, each):
    return (cells[g, 0], cells[g, each], cells[g, 2 * each], cells[g, 3 * each], cells[g, 4 * each], cells[g, 5 * each])


@njit_inner
def _step_group(m, s, g, step, best, wide_scratch, low_scratch):
    """One step of one group."""
    if not s.is_ready[g] and not _may_wake(m, s, g, step, best):
        return
    n, low = _plan(m, s, g, step, best)
    if n == 0:
        _put_to_sleep(s, g)
        return
    each = s.low.shape[1] // 6
    if not s.is_ready[g] or low != s.is_low[g]:
        if s.is_ready[g]:
            if low:
                _narrow(m, s, g)
            else:
                _widen(m, s, g)
        s.is_low[g] = low
        if low:
            _load_query(m, _group_cells(s.low, g, each), g)
            _load_targets(m, _group_cells(s.low, g, each), g, step)
        else:
            _load_query(m, _group_cells(s.wide, g, 1), g)
            _load_targets(m, _group_cells(s.wide, g, 1), g, step)
        s.is_ready[g] = True
    if low:
        _advance(m, s, g, step, best, _group_cells(s.low, g, each), low_scratch, m.low_dead, True)
    else:
        _advance(m, s, g, step, best, _group_cells(s.wide, g, 1), wide_scratch, m.dead, False)


@njit
def _step_groups(m, s, begin, end, step, best, wide_scratch, low_scratch):
    """One step of the groups begin..end, the last one first: it reads what the one above made a step before."""
    for g in range(end - 1, begin - 1, -1):
        _step_group(m, s, g, step, best, wide_scratch, low_scratch)


@njit_inner
def _gather(m, s, begin, end, best):
    """Take the best cell that the groups have found over."""
    for g in range(begin, end):
        score, row, column = s.found[g, 0], s.found[g, 1], s.found[g, 2]
        first = best[1] < 0 or row < best[1] or row == best[1] and column < best[2]
        if score > best[0] or score == best[0] and first:
            best[0], best[1], best[2] = score, row, column
        s.found[g, 0] = NONE


@njit_inner
def _keep_rows(m, s, begin, end, step, pool):
    """Copy the special rows' parts that this step made to the pool."""
    for g in range(begin, end):
        if not s.is_ready[g]:
            continue
        for l in range(LANES):
            row = g * LANES + l
            if (row + 1) % m.every or not s.lanes[g, ALIVE, l] or row + 1 >= len(m.first_tile):
                continue
            at, base = pool.used[0], s.lanes[g, BASE, l]
            pool.used[0] += 1
            pool.places[at, 0], pool.places[at, 1] = row + 1, step - row
            each = s.low.shape[1] // 6
            for j in range(m.size):
                k = j * LANES + l
                if s.is_low[g]:
                    h, f = np.int64(s.low[g, H, k]), np.int64(s.low[g, each, k])
                else:
                    h, f = np.int64(s.wide[g, H, k]), np.int64(s.wide[g, F, k])
                pool.values[at, 0, j], pool.values[at, 1, j] = base + h, base + f


@njit
def _finish_step(m, s, begin, end, step, best, pool):
    _gather(m, s, begin, end, best)
    if m.every:
        _keep_rows(m, s, begin, end, step, pool)


@njit
def _run_steps(m, s, step, last, ranges, best, pool, wide_scratch, low_scratch, few):
    """Steps by one thread, until `last`, a full pool, or a step with more than `few` groups; the step that comes next."""
    while step < last:
        begin, end = ranges[step, 0], ranges[step, 1]
        if end - begin > few or m.every and pool.used[0] + (end - begin) * LANES > len(pool.places):
            break
        for g in range(end - 1, begin - 1, -1):
            _step_group(m, s, g, step, best[0], wide_scratch, low_scratch)
        _gather(m, s, begin, end, best)
        if m.every:
            _keep_rows(m, s, begin, end, step, pool)
        step += 1
    return step


class _Pool(NamedTuple):
    """Parts of special rows: places (n, 2) int32, the row and the column of tiles; values (n, 2, size) int32, H and F."""

    places: np.ndarray
    values: np.ndarray
    used: np.ndarray


class _Scratch(NamedTuple):
    """What a worker needs for itself, in the cells' type."""

    vectors: np.ndarray
    row: np.ndarray
    arrive: np.ndarray
    origin: np.ndarray


def _scratch(cell: str, size: int) -> _Scratch:
    vectors = aligned(12 * LANES, np.dtype(cell)).reshape(12, LANES)
    return _Scratch(vectors, np.zeros(LANES + 1, cell), np.zeros((3, size), cell), np.zeros((LANES, 3), np.int64))


class Task(NamedTuple):
    """One matrix to sweep over.

    query, target : (rows,), (columns,) uint8 codes; unknown bases of the two differ (`rule.as_target`).
    known : a score that an alignment is known to reach.
    floor : scores below 0 are 0, as local mode has it.  seek : look for the best cell, wherever it is.
    every : bases between special rows, which are kept for tracing paths; 0: none.
    """

    query: np.ndarray
    target: np.ndarray
    scores: Scores
    borders: Borders
    bounds: Bounds
    known: int
    floor: bool
    seek: bool
    size: int
    every: int = 0


class SpecialRows:
    """Scores of some rows of a matrix, where they were computed."""

    def __init__(self, pool: _Pool, size: int):
        n = pool.used[0]
        order = np.lexsort((pool.places[:n, 1], pool.places[:n, 0]))
        self._places, self._values, self._size = pool.places[order], pool.values[order], size
        self.rows = np.unique(self._places[:, 0]).astype(np.int64) * size

    def get(self, row: int, n_columns: int) -> tuple[int, np.ndarray, np.ndarray]:
        """First column, scores H there and to the right of it, F for the row below; NONE where none was computed."""
        begin, end = np.searchsorted(self._places[:, 0], [row // self._size, row // self._size + 1])
        tiles, size = self._places[begin:end, 1].astype(np.int64), self._size
        first = tiles[0] * size + 1
        high = np.full((tiles[-1] + 1) * size + 1 - first, NONE, np.int32)
        gap = high.copy()
        places = ((tiles * size + 1 - first)[:, None] + np.arange(size)).ravel()
        high[places], gap[places] = self._values[begin:end, 0].ravel(), self._values[begin:end, 1].ravel()
        keep = n_columns + 1 - first
        return int(first), high[:keep], gap[:keep]


class Sweep:
    """A sweep that can be stopped, kept and continued; `run` until it is done.

    budget : bytes that special rows may take; where they would take more, every other one is dropped.
    """

    def __init__(self, task: Task, budget: int = 1 << 28):
        self.task, self._budget = task, budget
        self.step = 0
        self.best = np.array([task.known, -1, -1], np.int64)
        self._size = size = task.size
        self._matrix = self._make_matrix()
        n_tile_rows = len(self._matrix.first_tile)
        n_groups = -(-n_tile_rows // LANES)
        n_columns = len(self._matrix.column_bound)
        self._ranges = self._active_groups(n_groups, n_tile_rows + n_columns - 1)
        wide_name = wide_cells(task.scores, size).name
        wide = aligned(n_groups * 6 * size * LANES, np.dtype(wide_name)).reshape(n_groups, 6, size * LANES)
        self._names = wide_name, "int8"
        self._state = _State(
            wide, wide.view(np.int8).reshape(n_groups, -1, size * LANES), np.zeros(n_groups, bool),
            np.zeros(n_groups, bool), np.zeros((n_groups, 7, LANES), np.int64),
            np.zeros((TURNS, n_groups, 2, size), np.int32), np.full((TURNS, n_groups), -1, np.int64),
            np.full((n_groups, 3), NONE, np.int64), np.zeros(n_groups, np.int64),
            np.tile(np.array([n_columns, -1], np.int32), (n_tile_rows, 1)),
            np.full(len(task.target) + 1, NONE, np.int32), np.full(len(task.query) + 1, NONE, np.int32),
        )  # fmt: skip
        self._state.lanes[:, CORNER] = NONE
        self._state.last_row[0], self._state.last_column[0] = task.borders.left[-1], task.borders.top[-1]
        self._pool = self._new_pool(1024 if task.every else 0)

    def _make_matrix(self) -> _Matrix:
        task, size, scores = self.task, self._size, self.task.scores
        wide, low = wide_cells(scores, size), low_cells(scores, size) if self.task.floor else None
        bounds = task.bounds
        row_bound = _by_tile(bounds.query, size)
        group_bound = np.maximum.reduceat(row_bound, np.arange(0, len(row_bound), LANES))
        first = np.maximum(0, (bounds.first.astype(np.int64) - 1) // size)
        last = np.minimum((len(task.target) - 1) // size, bounds.last.astype(np.int64) // size)
        return _Matrix(
            task.query, task.target, *task.borders, row_bound, _by_tile(bounds.target, size), group_bound,
            first.astype(np.int32), last.astype(np.int32), size, scores.match, scores.mismatch, scores.first,
            scores.gap_extend, task.floor, task.seek, wide.dead, low.dead if low else 0, low.limit if low else 0,
            -(-task.every // size),
        )  # fmt: skip

    def _active_groups(self, n_groups: int, n_steps: int) -> np.ndarray:
        """(n_steps, 2) int32: the groups that each step may have to compute."""
        rows = np.arange(len(self._matrix.first_tile))
        first, last = self._matrix.first_tile, self._matrix.last_tile
        there = first <= last
        starts = np.where(there, rows + first, n_steps + 1)
        ends = np.where(there, rows + last, -1)
        edges = np.arange(n_groups) * LANES
        starts, ends = np.minimum.reduceat(starts, edges), np.maximum.reduceat(ends, edges)
        starts = np.minimum.accumulate(starts[::-1])[::-1]
        steps = np.arange(n_steps)
        begin = np.searchsorted(np.maximum.accumulate(ends), steps)
        end = np.searchsorted(starts, steps, side="right")
        return np.stack([begin, np.maximum(begin, end)], axis=1).astype(np.int32)

    def _new_pool(self, room: int) -> _Pool:
        return _Pool(np.zeros((room, 2), np.int32), np.zeros((room, 2, self._size), np.int32), np.zeros(1, np.int64))

    def _make_room(self, needed: int) -> None:
        """Room for more parts of special rows: more memory, or as many again by dropping every other row."""
        pool, per_part = self._pool, 8 * self._size + 8
        while pool.used[0] + needed > len(pool.places):
            room = max(2 * len(pool.places), int(pool.used[0]) + needed)
            used = int(pool.used[0])
            kept = np.arange(used)
            if room * per_part > self._budget and used:
                every = 2 * self._matrix.every
                self._matrix = self._matrix._replace(every=every)
                kept = np.flatnonzero(pool.places[:used, 0] % every == 0)
                room = len(pool.places) if len(kept) + needed <= len(pool.places) else len(kept) + needed
            larger = self._new_pool(room)
            larger.places[: len(kept)], larger.values[: len(kept)] = pool.places[kept], pool.values[kept]
            larger.used[0] = len(kept)
            self._pool = pool = larger

    @property
    def done(self) -> bool:
        return self.step >= len(self._ranges)

    @property
    def n_cells(self) -> int:
        """Cells computed so far."""
        return int(self._state.n_cells.sum())

    @property
    def share_done(self) -> float:
        """The share of the steps that are done, each counted by the groups it may have to compute."""
        if not hasattr(self, "_work"):
            self._work = np.concatenate(([0], np.cumsum(self._ranges[:, 1] - self._ranges[:, 0], dtype=np.int64)))
        return float(self._work[self.step] / max(1, self._work[-1]))

    def run(self, threads: int = 1, seconds: float | None = None) -> None:
        """Go on until the sweep is done, or for about so many seconds, but for some steps at least."""
        stop = None if seconds is None else time.monotonic() + seconds
        scratches = [tuple(_scratch(name, self._size) for name in self._names) for _ in range(threads)]
        few = GROUPS_PER_THREAD * threads if threads > 1 else 1 << 30
        while not self.done:
            begin, end = (int(x) for x in self._ranges[self.step])
            if self.task.every:
                self._make_room((end - begin + 1) * LANES)
            if end - begin > few:
                self._step_by_threads(begin, end, scratches)
            else:
                last = min(len(self._ranges), self.step + (len(self._ranges) if stop is None else STRETCH))
                self.step = _run_steps(
                    self._matrix, self._state, self.step, last, self._ranges, self.best, self._pool, *scratches[0], few
                )
            if stop is not None and time.monotonic() >= stop:
                return

    def _step_by_threads(self, begin: int, end: int, scratches: list) -> None:
        best = self.best[0]

        def work(piece):
            (first, last), scratch = piece
            _step_groups(self._matrix, self._state, begin + first, begin + last, self.step, best, *scratch)

        pieces = even_ranges(end - begin, len(scratches))
        map_threads(work, zip(pieces, scratches, strict=False), len(scratches))
        _finish_step(self._matrix, self._state, begin, end, self.step, self.best, self._pool)
        self.step += 1

    @property
    def last_row(self) -> np.ndarray:
        """(columns + 1,) int32: scores of the matrix's last row; NONE where it was not computed."""
        return self._state.last_row

    @property
    def last_column(self) -> np.ndarray:
        """(rows + 1,) int32."""
        return self._state.last_column

    @property
    def reach(self) -> np.ndarray:
        """(n_tile_rows, 2) int32: first and last tile that was computed in each row of tiles; -1 as the last: none."""
        return self._state.reach

    def special_rows(self) -> SpecialRows:
        return SpecialRows(self._pool, self._size)

    def state(self) -> dict[str, np.ndarray]:
        """All that changes, to go on from here another time with `restore`."""
        arrays = {name: value for name, value in self._state._asdict().items() if name != "low"}
        used = self._pool.used[0]
        return arrays | {
            "step": np.array(self.step), "best": self.best, "every": np.array(self._matrix.every),
            "places": self._pool.places[:used], "values": self._pool.values[:used],
        }  # fmt: skip

    def restore(self, state) -> None:
        """Go on from a `state` of a sweep of the same task."""
        for name, value in self._state._asdict().items():
            if name != "low":
                value[...] = state[name]
        self.step, self.best = int(state["step"]), state["best"].copy()
        self._matrix = self._matrix._replace(every=int(state["every"]))
        used = len(state["places"])
        self._pool = self._new_pool(used)
        self._pool.places[:], self._pool.values[:], self._pool.used[0] = state["places"], state["values"], used


def _by_tile(bound: np.ndarray, size: int) -> np.ndarray:
    """The largest bound of each tile's rows or columns, both borders included."""
    edges = np.arange(0, len(bound) - 1, size)
    inside = np.maximum.reduceat(bound, edges)
    ends = np.minimum(edges + size, len(bound) - 1)
    return np.maximum(inside, bound[ends])
