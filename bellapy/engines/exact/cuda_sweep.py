"""The kernel of the exact sweep on a GPU: warps take strips of rows, and follow each other from the left to the right.

A task is a strip within a panel of columns.  Warps take tasks in order, panel by panel, from the first strip to the last, so
what a task waits for is done or being done.  Strip s is LAG columns behind strip s - 1: tile t of it needs what tile t of
the strip above has left in `border`, one row of scores for all strips, and the state that its own tile t - 1 has left,
which goes through memory at a panel's end.  A tile is left out where even the best score on its borders, with the most that
is still to be gained, misses the score that is known to be possible (docs/exact.md).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import cuda, uint32

from bellapy.compute.gpu.ops import I32, U32, WARP, fresh_number, max2, rest, shuffle, sync_warp
from bellapy.engines.exact.cuda_records import (
    ALIVE,
    BASE,
    CORNER,
    NOT_KEPT,
    TOP_GAP,
    TOP_HIGH,
    Place,
    Tile,
    Walk,
)
from bellapy.engines.exact.cuda_tiles import (
    BOTH,
    HIGHEST,
    LAG,
    Best,
    Cells,
    Flow,
    Kind,
    clear,
    drift_of,
    enter,
    half_of,
    high_of,
    highest_cell,
    highest_of_warp,
    inlined,
    last_row_of,
    leave,
    load_rows,
    look,
    low_of,
    pack,
    profile_of,
    rebase,
    score_in,
    score_of,
    step_column,
    sum_of,
)
from bellapy.engines.exact.rule import NONE

MOST_REGISTERS = 128  # of a thread
INSIDE, EDGED, FLOORED = range(3)  # ways to step through a tile


def shared_bytes(kind: Kind) -> int:
    """Shared memory of a warp."""
    return 4 * (3 * kind.steps + LAG)


@inlined
def _wait(numbers, i, least):
    """Wait until numbers[i], int32, is `least` or more."""
    while fresh_number(numbers, i) < least:
        rest()


@inlined
def _tell(numbers, i, value, lane):
    """Let numbers[i], int32, be `value` for all who wait for it; by the first lane when all have written what they leave."""
    sync_warp()
    if lane == 0:
        numbers[i] = value


@inlined
def _wait_above(traffic, strip, tile, begin, end):
    """Wait until the strip above has left what this strip's `tile` needs.

    `traffic`, `strip`: Traffic, this strip; `begin`, `end`: tiles of the strip above in this panel.
    """
    if begin < end and begin <= tile:
        _wait(traffic.done, strip - 1, min(tile + 1, end))
        cuda.threadfence()


@inlined
def _next_task(traffic, lane):
    """The number of a task for this warp; `traffic`: Traffic."""
    ticket = I32(0)
    if lane == 0:
        ticket = I32(cuda.atomic.add(traffic.taken, 0, 1))
    return I32(shuffle(ticket, 0))


@inlined
def _over(traffic, column, strip):
    """Whether the strip above has left scores over a column; `traffic`: Traffic."""
    there = 0 <= column and column < traffic.border.shape[0]
    return there and traffic.made[(column + LAG - 1) // LAG if there else 0] == strip - 1


@inlined
def _load_tops(matrix, traffic, place, continued, begin, high, gap, kind):
    """H and F over the tile's columns, one in WARP for each lane, to `high` and `gap`, int32; H before them.

    `matrix`, `traffic`, `place`, `kind`: as their types; `continued`: the first of them stand in the strip's state; else
    they are there if the tile before belongs to the strip above in this panel, whose first tile is `begin`.
    """
    strip = place.strip
    known = strip == 0 or begin < place.tile
    for i in range(kind.steps // WARP):
        column = I32(place.column + i * WARP + place.lane)
        there = _over(traffic, column, strip)
        high[i] = traffic.border[column, 0] if there else I32(NONE)
        gap[i] = traffic.border[column, 1] if there else I32(NONE)
        if column == -1:
            high[i] = matrix.left[strip * LAG * kind.registers]
    corner = I32(NONE)
    if place.column == 0:
        corner = matrix.left[strip * LAG * kind.registers]
    elif continued:
        corner = traffic.numbers[strip, CORNER]
    elif known and _over(traffic, I32(place.column - 1), strip):
        corner = traffic.border[place.column - 1, 0]
    if place.lane == 0 and (continued or not known):
        high[0] = traffic.numbers[strip, TOP_HIGH] if continued else I32(NONE)
        gap[0] = traffic.numbers[strip, TOP_GAP] if continued else I32(NONE)
    return corner


@inlined
def _highest_border(matrix, rule, place, walk, cells, high, corner, kind):
    """The best score on a tile's borders.

    `matrix`, `rule`, `place`, `walk`, `cells`, `kind`: as their types; `high`, `corner`: as `_load_tops` has them.
    """
    most = I32(0 if rule.floor else NONE)
    for i in range(kind.steps // WARP):
        most = max(most, high[i])
    if walk.alive:
        inside = I32(2 * kind.registers * place.lane)
        most = max(most, highest_cell(cells, walk.flow, inside, I32(kind.steps), walk.base, rule, kind))
    else:
        most = max(most, corner)
    if -kind.steps < place.column and place.column < LAG:
        most = max(most, matrix.left_most[place.strip])
    return highest_of_warp(I32(most))


@inlined
def _bound(matrix, place, kind):
    """The most that can be gained from a tile on; `matrix`, `place`, `kind`: Matrix, Place, Kind."""
    group, most = I32(place.column // LAG - 1 + place.lane), I32(NONE)
    if place.lane <= kind.steps // LAG and 0 <= group and group < matrix.column_bound.shape[0]:
        most = matrix.column_bound[group]
    return min(highest_of_warp(I32(most)), matrix.row_bound[place.strip])


@inlined
def _begin_tile(walk, most, cells, corner, floor, floored, place, rule, kind):
    """The Flow of a tile that is computed, relative to the best score on its borders, `most`.

    `walk`, `cells`, `place`, `rule`, `kind`: as their types; `corner`: as `_load_tops` has it; `floor`: as of Tile;
    `floored`: whether it matters: then it is what lies before the first column.
    """
    if walk.alive:
        return rebase(cells, walk.flow, I32(most - walk.base + rule.extend * kind.steps), rule, kind)
    half = half_of(I32(corner - rule.opening), most, drift_of(-1, -1, rule), rule)
    half = half if place.lane == 0 else rule.dead
    if floored:
        before = U32(floor - U32(U32(rule.opening + rule.extend) * U32(BOTH)))
        return clear(cells, half, before, rule.drift, rule, kind)
    return clear(cells, half, U32(U32(rule.dead) * U32(BOTH)), U32(0), rule, kind)


@inlined
def _fill_words(words, tops, profiles, target, high, gap, place, base, rule, kind):
    """What comes from above over each column, and the profiles of its bases.

    words : shared memory, filled from `tops` and from `profiles` on.  target : uint8 codes.
    high, gap : as `_load_tops` fills them.  place, rule, kind : as their types.  base : of the scores.
    """
    for i in range(kind.steps // WARP):
        k = I32(i * WARP + place.lane)
        h = half_of(I32(high[i] - rule.opening), base, drift_of(-1, k, rule), rule)
        words[tops + U32(k)] = pack(h, half_of(gap[i], base, drift_of(0, k, rule), rule))
    for i in range(kind.steps // WARP + 2):
        k = I32(i * WARP + place.lane)
        words[profiles + U32(k)] = profile_of(target, I32(place.column - LAG + k), rule)


@inlined
def _flush(matrix, traffic, results, place, base, words, at, rule, kind):
    """What a tile leaves below it, from `words`[`at`] on, to `border` and to the kept rows.

    `matrix`, `traffic`, `results`, `place`, `rule`, `kind`: as their types; `base`: of its scores.
    """
    rows = LAG * kind.registers
    m, kept = matrix.target.shape[0], matrix.kept[place.strip]
    first = I32(place.column - LAG + 1)
    for i in range(kind.steps // WARP):
        k = I32(i * WARP + place.lane)
        column, word = I32(first + k), words[at + U32(k)]
        if 0 <= column and column < m:
            drift = drift_of(rows - 1, I32(k - LAG + 1), rule)
            high = I32(score_of(low_of(word), base, drift, rule) + rule.opening)
            gap = score_of(high_of(word), base, I32(drift + rule.extend), rule)
            traffic.border[column, 0], traffic.border[column, 1] = high, gap
            if kept > NOT_KEPT:
                results.rows[kept + column, 0], results.rows[kept + column, 1] = high, gap
    group = I32((first + LAG - 1) // LAG + place.lane)
    if place.lane < kind.steps // LAG and 0 <= group and group < traffic.made.shape[0]:
        traffic.made[group] = place.strip


@inlined
def _count(matrix, results, place, kind):
    """Note a tile that was computed; `matrix`, `results`, `place`, `kind`: as their types."""
    if place.lane == 0:
        strip = place.strip
        first = max(I32(place.column - LAG + 1), I32(0))
        last = min(I32(place.column + kind.steps), I32(matrix.target.shape[0]))
        results.reach[strip, 0] = min(results.reach[strip, 0], first)
        results.reach[strip, 1] = max(results.reach[strip, 1], last)
        rows = min(LAG * kind.registers, matrix.query.shape[0] - strip * LAG * kind.registers)
        results.n_cells[strip] += rows * max(0, last - max(place.column, 0))


@inlined
def _at_edges(matrix, results, place, step, base, cells, shown, rule, kind):
    """Keep cells of the matrix's last column and row.

    `matrix`, `results`, `place`, `cells`, `rule`, `kind`: as their types; `shown`: scratch; `step`: of the tile; `base`: of
    its scores.
    """
    n, m = matrix.query.shape[0], matrix.target.shape[0]
    column = I32(place.column + step - 2 * place.lane)  # of the lane's first place
    if column == m - 1 or column == m:
        leave(cells, shown, I32(column - m + 1), place, step, base, results.last_column, rule, kind)
    row = I32(n - 1 - place.row)
    if 0 <= row and row < 2 * kind.registers:
        at = I32(column - (1 if row >= kind.registers else 0))
        if 0 <= at and at < m:
            results.last_row[at + 1] = score_in(cells, shown, row, place, step, base, rule, kind)


@inlined
def _enter_at(matrix, place, step, cells, shown, flow, base, rule, kind):
    """The Flow after the left border was taken to the place of this lane that begins, if one does.

    `matrix`, `place`, `cells`, `flow`, `rule`, `kind`: as their types; `shown`: scratch; `step`, `base`: of the tile, int32.
    """
    column = I32(place.column + step - 2 * place.lane)
    if column == 0 or column == 1:
        flow = enter(cells, shown, flow, column, place, step, (matrix.left, matrix.left_gap), base, rule, kind)
    return flow


@inlined
def _has_edge(matrix, place, kind):
    """Whether borders are entered or kept in a tile; `matrix`, `place`, `kind`: Matrix, Place, Kind."""
    n, m = matrix.query.shape[0], matrix.target.shape[0]
    at_end = place.column + kind.steps + 1 >= m or (place.strip + 1) * LAG * kind.registers >= n
    return place.column < LAG or matrix.ends and at_end


@inlined
def _take_state(traffic, strip, lane, cells, kind):
    """The Walk of a strip that another task has begun; `traffic`, `cells`, `kind`: as their types."""
    R, state = kind.registers, traffic.state
    for k in range(R):
        cells.high[k], cells.gap[k] = state[strip, k, lane], state[strip, R + k, lane]
    flow = Flow(state[strip, 2 * R, lane], state[strip, 2 * R + 1, lane], U32(0))
    return Walk(traffic.numbers[strip, BASE], traffic.numbers[strip, ALIVE] != 0, flow)


@inlined
def _leave_state(traffic, place, walk, cells, kind):
    """Keep a strip's state for the task that goes on; `place` is that of the next tile; the others as their types."""
    R, state, numbers, strip, lane = kind.registers, traffic.state, traffic.numbers, place.strip, place.lane
    for k in range(R):
        state[strip, k, lane], state[strip, R + k, lane] = cells.high[k], cells.gap[k]
    state[strip, 2 * R, lane], state[strip, 2 * R + 1, lane] = walk.flow.above, walk.flow.below
    if lane == 0:
        numbers[strip, BASE], numbers[strip, ALIVE] = walk.base, 1 if walk.alive else 0
        there, before = _over(traffic, place.column, strip), _over(traffic, I32(place.column - 1), strip)
        numbers[strip, TOP_HIGH] = traffic.border[place.column, 0] if there else NONE
        numbers[strip, TOP_GAP] = traffic.border[place.column, 1] if there else NONE
        numbers[strip, CORNER] = traffic.border[place.column - 1, 0] if before else NONE


@inlined
def _thresholds(wanted, base, place, rule, kind):
    """At a tile's first step, in both halves: the highest F below a place's last row if none of its cells reaches `wanted`;
    and the floor of its first row.

    `base`: of the scores; `place`, `rule`, `kind`: as their types.
    """
    inside, column = I32(2 * kind.registers * place.lane), I32(-2 * place.lane)
    low, high = drift_of(inside, column, rule), drift_of(I32(inside + kind.registers), I32(column - 1), rule)
    most = I32(HIGHEST - rule.extend * kind.steps)
    least = I32(min(max(I32(wanted - base), -rule.zero), HIGHEST)) if rule.seek else I32(HIGHEST)
    least = I32(least + rule.zero - rule.alarm)
    alarm = pack(max(0, min(most, I32(least + low))), max(0, min(most, I32(least + high))))
    return alarm, pack(half_of(I32(0), base, low, rule), half_of(I32(0), base, high, rule))


@inlined
def _step_through(matrix, results, tile, cells, flow, scratch, best, way, rule, kind):
    """All steps of a tile; what is left below it goes to shared memory.

    Parameters
    ----------
    matrix, results, tile, cells, flow, best, rule, kind : as their types.
    scratch : words of shared memory, as `_fill_words` fills them; scratch of cuda_tiles.show.
    way : FLOORED, where the floor matters: then no border is entered, which is the floor, and none is kept; EDGED, where
    borders are entered or kept; INSIDE.  The compiler knows it, so that each way has a loop of its own.

    Returns
    -------
    Flow and Best then.
    """
    place, lane, W, (words, shown), floored = tile.place, tile.place.lane, kind.steps, scratch, way == FLOORED
    alarm, floor, bottoms = tile.alarm, tile.floor, U32(tile.at + U32(W))
    ahead = U32(bottoms + U32(I32(W + LAG - 2 * lane)))
    flow = Flow(flow.above, flow.below, words[ahead - U32(1)])
    passed = last_row_of(cells, flow, kind)
    ends = matrix.query.shape[0], matrix.target.shape[0]
    for step in range(W):
        if way == EDGED:
            flow = _enter_at(matrix, place, I32(step), cells, shown, flow, tile.base, rule, kind)
        top = U32(shuffle(I32(passed), lane - 1 & WARP - 1))
        top = words[tile.at + U32(step)] if lane == 0 else top
        flow = step_column(cells, flow, top, words[ahead + U32(step)], floor, floored, rule, kind)
        passed = last_row_of(cells, flow, kind)
        if lane == WARP - 1:
            words[bottoms + U32(step)] = passed
        if max2(flow.below, alarm) != alarm:
            best = look(cells, shown, place, I32(step), ends, tile, best, rule, kind)
        if way == EDGED and matrix.ends:
            _at_edges(matrix, results, place, I32(step), tile.base, cells, shown, rule, kind)
        alarm = sum_of(alarm, rule.drift, rule)
        if floored:
            floor = sum_of(floor, rule.drift, rule)
    return flow, best


@cache
def make_kernel(registers: int, steps: int, masked: bool):
    """The function of a kernel; parameters as in Kind."""
    KIND, R, W, EACH = Kind(registers, steps, masked), registers, steps, steps // WARP
    ROWS, PLACES = LAG * registers, 2 * registers

    def sweep_strips(matrix, traffic, results, rule):
        """Do all tasks.

        matrix, traffic, results, rule : Matrix, Traffic, Results, Packed.
        """
        cells = Cells(
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R if masked else 1, np.uint32),
        )  # fmt: skip
        high, gap = cuda.local.array(EACH, np.int32), cuda.local.array(EACH, np.int32)
        shown = cuda.local.array(PLACES, np.int32)
        words = cuda.shared.array(0, uint32)  # see Tile.at
        lane, warp = I32(cuda.threadIdx.x & (WARP - 1)), I32(cuda.threadIdx.x // WARP)
        at = U32(warp * (3 * W + LAG))  # unsigned: Numba makes no code for negative places then
        while True:
            ticket = _next_task(traffic, lane)
            if ticket >= traffic.tasks.shape[0]:
                break
            strip, begin, end = traffic.tasks[ticket, 0], traffic.tasks[ticket, 1], traffic.tasks[ticket, 2]
            above_begin, above_end = traffic.tasks[ticket, 3], traffic.tasks[ticket, 4]
            row = I32(strip * ROWS + lane * (2 * R))
            load_rows(matrix.query, row, cells, KIND)
            continued = begin > matrix.tiles[strip, 0]
            walk = Walk(I32(0), False, Flow(U32(0), U32(0), U32(0)))
            if continued:
                _wait(traffic.handed, strip, begin)
                cuda.threadfence_system()
                walk = _take_state(traffic, strip, lane, cells, KIND)
            best = Best(results.found[strip, lane, 0], results.found[strip, lane, 1], results.found[strip, lane, 2])
            for tile in range(begin, end):
                place = Place(lane, strip, I32(tile), row, I32(tile * W - LAG * strip))
                _wait_above(traffic, strip, tile, above_begin, above_end)
                corner = _load_tops(matrix, traffic, place, continued and tile == begin, above_begin, high, gap, KIND)
                most = _highest_border(matrix, rule, place, walk, cells, high, corner, KIND)
                reached = fresh_number(traffic.best, 0)
                bound = _bound(matrix, place, KIND)
                if most > NONE and most + rule.opening + bound >= reached:
                    wanted, floored = max(reached, best.score), rule.floor and most < rule.zero
                    alarm, floor = _thresholds(wanted, most, place, rule, KIND)
                    flow = _begin_tile(walk, most, cells, corner, floor, floored, place, rule, KIND)
                    _fill_words(words, at, U32(at + U32(2 * W)), matrix.target, high, gap, place, most, rule, KIND)
                    sync_warp()
                    job = Tile(place, at, most, wanted, alarm, floor)
                    scratch = words, shown
                    if floored:
                        flow, best = _step_through(matrix, results, job, cells, flow, scratch, best, FLOORED, rule, KIND)
                    elif _has_edge(matrix, place, KIND):
                        flow, best = _step_through(matrix, results, job, cells, flow, scratch, best, EDGED, rule, KIND)
                    else:
                        flow, best = _step_through(matrix, results, job, cells, flow, scratch, best, INSIDE, rule, KIND)
                    sync_warp()
                    walk = Walk(most, True, flow)
                    _flush(matrix, traffic, results, place, most, words, U32(at + U32(W)), rule, KIND)
                    _count(matrix, results, place, KIND)
                    if best.score > reached:
                        cuda.atomic.max(traffic.best, 0, best.score)
                else:
                    walk = Walk(I32(0), False, walk.flow)
                cuda.threadfence()
                _tell(traffic.done, strip, I32(tile + 1), lane)
            results.found[strip, lane, 0], results.found[strip, lane, 1], results.found[strip, lane, 2] = best
            if end < matrix.tiles[strip, 1]:
                place = Place(lane, strip, I32(end), row, I32(end * W - LAG * strip))
                _leave_state(traffic, place, walk, cells, KIND)
                cuda.threadfence_system()
                _tell(traffic.handed, strip, end, lane)

    sweep_strips.most_registers = MOST_REGISTERS  # type: ignore[attr-defined]  # for `kernel_of`
    return sweep_strips
