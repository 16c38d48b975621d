"""One step of a wavefront: which tiles of a group are alive, what they need, and what they leave behind.

`tiles.py` computes them, `group_cells.py` prepares them; `cpu.py` says in which order, and owns all arrays.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_body, njit_entry, njit_inner
from bellapy.engines.exact.group_cells import (
    ALIVE,
    BASE,
    BOTTOM,
    CORNER,
    NEW_ALIVE,
    NEW_BASE,
    RIGHT_EDGE,
    TURNS,
    aim,
    arrivals,
    enter_left,
    group_cells,
    load_query,
    load_targets,
    narrow,
    next_corners,
    widen,
)  # fmt: skip
from bellapy.engines.exact.rule import NONE
from bellapy.engines.exact.tiles import (
    CAP,
    HIGH,
    LANES,
    LEFT_CAP,
    LEFT_E,
    LEFT_H,
    LEFT_SHIFT,
    RIGHT,
    SHIFT,
    TARGET,
    Costs,
    F,
    H,
    compute_tiles,
    highest_cells,
    pass_lanes,
    rebase_lanes,
    shift_lanes,
)  # fmt: skip


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
    bound = min(m.row_bound[row], m.column_bound[column])
    alive = value > NONE and value + slack + bound >= best
    if alive:
        alive = value + slack + m.most[row // m.block_rows, column // m.block_columns] >= best
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


@njit_body
def _advance(m, s, g, step, best, cells, scratch, dead, is_low):
    """One step of a group with live tiles.

    m, s, g, step, best : as in `_is_alive`.  cells : Group.  scratch : Scratch.  dead, is_low : as in `_aim`.
    """
    vectors, row, arrive, origin = scratch.vectors, scratch.row, scratch.arrive, scratch.origin
    cell, size = vectors.dtype.type, m.size
    aim(m, s, g, vectors, row, dead, best, is_low)
    arrivals(m, s, g, step, dead, arrive[0], arrive[1], arrive[2])
    next_corners(m, s, g, cells[H])
    lowest, lowest_gap = cell(dead), cell(dead - m.first)
    shift_lanes(cells[H], arrive[0], row, vectors[CAP], vectors[SHIFT], lowest, size)
    shift_lanes(cells[F], arrive[1], row, vectors[CAP], vectors[SHIFT], lowest_gap, size)
    pass_lanes(cells[TARGET], arrive[2], row, size)
    rebase_lanes(cells[LEFT_H], vectors[LEFT_CAP], vectors[LEFT_SHIFT], lowest, size)
    rebase_lanes(cells[LEFT_E], vectors[LEFT_CAP], vectors[LEFT_SHIFT], lowest_gap, size)
    n_tile_rows, n_tile_columns = len(m.first_tile), (len(m.target) + size - 1) // size
    row_lane = column_lane = np.int64(-1)
    for l in range(LANES):
        tile_row = g * LANES + l
        column = step - tile_row
        origin[l, 0], origin[l, 1], origin[l, 2] = tile_row * size, column * size, s.lanes[g, NEW_BASE, l]
        if s.lanes[g, NEW_ALIVE, l]:
            if column == 0:
                enter_left(m, s, g, l, tile_row, dead, cells)
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
            if m.mark_rows and (row + 1) % m.mark_rows == 0 and (row + 1) * size <= len(m.query):
                mark, group = (row + 1) // m.mark_rows - 1, column // m.mark_columns
                s.marks[mark, group] = max(s.marks[mark, group], lanes[g, BOTTOM, l])
    if lanes[g, ALIVE, LANES - 1]:
        turn, base = step % TURNS, lanes[g, BASE, LANES - 1]
        s.tail_step[turn, g] = step
        for j in range(size):
            s.tail[turn, g, 0, j] = base + cells[H][j * LANES + LANES - 1]
            s.tail[turn, g, 1, j] = base + cells[F][j * LANES + LANES - 1]


@njit_body
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
                narrow(m, s, g)
            else:
                widen(s, g)
        s.is_low[g] = low
        if low:
            load_query(m, group_cells(s.low, g, each), g)
            load_targets(m, group_cells(s.low, g, each), g, step)
        else:
            load_query(m, group_cells(s.wide, g, 1), g)
            load_targets(m, group_cells(s.wide, g, 1), g, step)
        s.is_ready[g] = True
    if low:
        _advance(m, s, g, step, best, group_cells(s.low, g, each), low_scratch, m.low_dead, True)
    else:
        _advance(m, s, g, step, best, group_cells(s.wide, g, 1), wide_scratch, m.dead, False)


@njit_entry
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


@njit_entry
def finish_step(m, s, begin, end, step, best, pool):
    """After all groups, begin to end, have made a step: take over what they found, and keep the special rows.

    m, s : Matrix, State.  best : as in `_gather`.  pool : Pool.
    """
    _gather(s, begin, end, best)
    if m.every:
        _keep_rows(m, s, begin, end, step, pool)


@njit_entry
def run_steps(m, s, step, last, ranges, best, pool, wide_scratch, low_scratch, few):
    """Steps by one thread, until `last`, a full pool, or a step with more than `few` groups; the step that comes next.

    ranges : (n_steps, 2) int32, the groups of each step.  best, pool : as in `finish_step`.
    m, s, wide_scratch, low_scratch : as in `_step_group`.
    """
    while step < last:
        begin, end = np.int64(ranges[step, 0]), np.int64(ranges[step, 1])
        if end - begin > few or m.every and pool.used[0] + (end - begin) * LANES > len(pool.places):
            break
        for g in range(end - 1, begin - 1, -1):
            _step_group(m, s, g, step, best[0], wide_scratch, low_scratch)
        finish_step(m, s, begin, end, step, best, pool)
        step += 1
    return step
