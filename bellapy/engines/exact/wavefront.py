"""One step of a wavefront: which tiles of a group are alive, what they need, and what they leave behind.

`tiles.py` computes them; `cpu.py` says in which order, and owns all arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.exact.rule import BEYOND_QUERY, BEYOND_TARGET, NONE
from bellapy.engines.exact.tiles import (
    BEST,
    CAP,
    FLOOR,
    HIGH,
    LANES,
    LEFT_CAP,
    LEFT_E,
    LEFT_H,
    LEFT_SHIFT,
    NEXT_DIAGONAL,
    QUERY,
    RIGHT,
    SHIFT,
    TARGET,
    WANTED,
    Costs,
    F,
    Group,
    H,
    compute_tiles,
    highest_cells,
    pass_lanes,
    rebase_lanes,
    shift_lanes,
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
def _is_alive(m, s, g, l, row, column, step, best):
    """Whether lane l's next tile, (row, column) of m's tiles, may matter, and the best score on its borders.

    m, s, g, step : Matrix, State, group, step.  best : score that is to be reached.
    """
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
    """Find a group's live tiles; (their number, whether bytes hold their scores).

    m, s, g, step, best : as in `_is_alive`.
    """
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
    """Whether a group that was not computed in the last step may have live tiles: quickly told, and mostly no.

    m, s, g, step, best : as in `_is_alive`.
    """
    from_above = s.tail_step[(step - 1) % TURNS, g - 1] == step - 1 or s.tail_step[(step - 2) % TURNS, g - 1] == step - 2
    at_border = g == 0 or step < (g + 1) * LANES
    return at_border or from_above or m.floor and m.first - m.extend + m.group_bound[g] >= best


@njit_inner
def _put_to_sleep(s, g):
    """Group g of s, State, has no live tile."""
    if s.is_ready[g]:
        s.is_ready[g] = False
        for l in range(LANES):
            s.lanes[g, ALIVE, l] = 0
            s.lanes[g, CORNER, l] = NONE


@njit_inner
def _load_query(m, cells, g):
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
def _load_targets(m, cells, g, step):
    """The target's bases of all lanes, as they are one step before `step`, to cells.  m, cells, g : as in `_load_query`."""
    for l in range(LANES):
        begin = (step - 1 - g * LANES - l) * m.size
        for j in range(m.size):
            cells[TARGET][j * LANES + l] = _target_base(m, begin + j)


@njit_inner
def _widen(s, g):
    """From bytes to wide cells, whose scores are relative to the same base; the arrays lie in the same memory.

    s, g : State and group.
    """
    per_cell = s.low.shape[1] // 6
    for which in (LEFT_E, LEFT_H, F, H):
        wide, low = s.wide[g, which], s.low[g, which * per_cell]
        for k in range(len(wide) - 1, -1, -1):
            wide[k] = low[k]


@njit_inner
def _narrow(m, s, g):
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
def _aim(m, s, g, vectors, row, dead, best, is_low):
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
def _next_corners(m, s, g, tops):
    """The last cell of each lane's top is the corner of its next tile.

    m, s, g : Matrix, State, group.  tops : of its Group.
    """
    lanes, last = s.lanes, (m.size - 1) * LANES
    for l in range(LANES - 1, 0, -1):
        before = l - 1
        lanes[g, CORNER, l] = lanes[g, BASE, before] + tops[last + before] if lanes[g, ALIVE, before] else NONE
    lanes[g, CORNER, 0] = NONE  # its own come from the tails


@njit_inner
def _arrivals(m, s, g, step, dead, high, gap, base_codes):
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
def _enter_left(m, s, g, l, row, dead, cells):
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
def _advance(m, s, g, step, best, cells, scratch, dead, is_low):
    """One step of a group with live tiles.

    m, s, g, step, best : as in `_is_alive`.  cells : Group.  scratch : Scratch.  dead, is_low : as in `_aim`.
    """
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
    costs = Costs(cell(m.match), cell(m.mismatch), cell(m.first), cell(m.extend))
    compute_tiles(cells, vectors, size, costs, origin, edge, s.found[g], s.last_row, s.last_column)
    highest_cells(cells[H], vectors[HIGH], size)
    highest_cells(cells[LEFT_H], vectors[RIGHT], size)
    _settle(m, s, g, step, vectors, cells)


@njit_inner
def _settle(m, s, g, step, vectors, cells):
    """Note what the group's tiles leave to those of the next step.

    m, s, g, step : as in `_is_alive`.  vectors : of Scratch.  cells : Group.
    """
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
    """Group g of cells, State.wide or State.low, whose arrays lie `each` rows apart."""
    return Group(
        cells[g, 0], cells[g, each], cells[g, 2 * each], cells[g, 3 * each], cells[g, 4 * each], cells[g, 5 * each]
    )  # fmt: skip


@njit_inner
def _step_group(m, s, g, step, best, wide_scratch, low_scratch):
    """One step of one group.

    m, s, g, step, best : as in `_is_alive`.  wide_scratch, low_scratch : Scratch, for wide cells and for bytes.
    """
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
                _widen(s, g)
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
def step_groups(m, s, begin, end, step, best, wide_scratch, low_scratch):
    """One step of the groups begin..end, the last one first: it reads what the one above made a step before.

    m, s, step, best, wide_scratch, low_scratch : as in `_step_group`.
    """
    for g in range(end - 1, begin - 1, -1):
        _step_group(m, s, g, step, best, wide_scratch, low_scratch)


@njit_inner
def _gather(s, begin, end, best):
    """Take the best cell that groups begin to end of s, State, have found to best, (3,) int64: score, row, column."""
    for g in range(begin, end):
        score, row, column = s.found[g, 0], s.found[g, 1], s.found[g, 2]
        first = best[1] < 0 or row < best[1] or row == best[1] and column < best[2]
        if score > best[0] or score == best[0] and first:
            best[0], best[1], best[2] = score, row, column
        s.found[g, 0] = NONE


@njit_inner
def _keep_rows(m, s, begin, end, step, pool):
    """Copy the special rows' parts that this step made of groups begin to end to pool, Pool.  m, s : Matrix, State."""
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
def finish_step(m, s, begin, end, step, best, pool):
    """After all groups, begin to end, have made a step: take over what they found, and keep the special rows.

    m, s : Matrix, State.  best : as in `_gather`.  pool : Pool.
    """
    _gather(s, begin, end, best)
    if m.every:
        _keep_rows(m, s, begin, end, step, pool)


@njit
def run_steps(m, s, step, last, ranges, best, pool, wide_scratch, low_scratch, few):
    """Steps by one thread, until `last`, a full pool, or a step with more than `few` groups; the step that comes next.

    ranges : (n_steps, 2) int32, the groups of each step.  best, pool : as in `finish_step`.
    m, s, wide_scratch, low_scratch : as in `_step_group`.
    """
    while step < last:
        begin, end = ranges[step, 0], ranges[step, 1]
        if end - begin > few or m.every and pool.used[0] + (end - begin) * LANES > len(pool.places):
            break
        for g in range(end - 1, begin - 1, -1):
            _step_group(m, s, g, step, best[0], wide_scratch, low_scratch)
        finish_step(m, s, begin, end, step, best, pool)
        step += 1
    return step
