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

from bellapy.compute.gpu.ops import BOTH, I32, U32, WARP, fresh_number, inlined, max2, rest, shuffle, sync_warp
from bellapy.engines.exact.gpu.border_kernels import (
    at_edges,
    bound_of,
    enter_at,
    flush,
    has_edge,
    highest_border,
    leave_state,
    load_tops,
    note_highest,
    take_state,
)
from bellapy.engines.exact.gpu.records import LAG, Best, Cells, Flow, Kind, Place, Tile, Walk
from bellapy.engines.exact.gpu.tile_kernels import (
    HIGHEST,
    clear,
    drift_of,
    half_of,
    last_row_of,
    load_rows,
    look,
    pack,
    profile_of,
    rebase,
    step_column,
    sum_of,
)
from bellapy.engines.exact.rule import NONE

INSIDE, EDGED, FLOORED = map(I32, range(3))  # ways to step through a tile; not int: compute/jit.py says why
SPARE = 1  # words behind what comes from above, and behind the profiles: all lanes read one ahead


def shared_bytes(kind: Kind) -> int:
    """Shared memory of a warp."""
    return 4 * _words(kind)


def _words(kind: Kind) -> int:
    """The same in words."""
    return 3 * kind.steps + LAG + 2 * SPARE


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
def _begin_tile(walk, most, cells, corner, floor, floored, place, rule, kind):
    """The Flow of a tile that is computed, relative to the best score on its borders, `most`.

    `walk`, `cells`, `place`, `rule`, `kind`: as their types; `corner`: as `load_tops` has it; `floor`: as of Tile;
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
    high, gap : as `load_tops` fills them.  place, rule, kind : as their types.  base : of the scores.
    """
    for i in range(kind.steps // WARP):
        k = I32(i * WARP + place.lane)
        h = half_of(I32(high[i] - rule.opening), base, drift_of(-1, k, rule), rule)
        words[tops + U32(k)] = pack(h, half_of(gap[i], base, drift_of(0, k, rule), rule))
    for i in range(kind.steps // WARP + 2):
        k = I32(i * WARP + place.lane)
        words[profiles + U32(k)] = profile_of(target, I32(place.column - LAG + k), rule)


@inlined
def _count(matrix, results, place, kind):
    """Note a tile that was computed; `matrix`, `results`, `place`, `kind`: as their types."""
    if place.lane == 0:
        strip = place.strip
        first = max(I32(place.column - LAG + 1), I32(0))
        last = min(I32(place.column + kind.steps), I32(matrix.target.shape[0]))
        cuda.atomic.min(results.reach, (strip, 0), first)  # nothing waits for what an atomic operation gives back
        cuda.atomic.max(results.reach, (strip, 1), last)
        rows = min(LAG * kind.registers, matrix.query.shape[0] - strip * LAG * kind.registers)
        cuda.atomic.add(results.n_cells, strip, np.int64(rows * max(0, last - max(place.column, 0))))


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
    scratch : words of shared memory, as `_fill_words` fills them; scratch of tile_kernels.show.
    way : FLOORED, where the floor matters: then no border is entered, which is the floor, and none is kept; EDGED, where
    borders are entered or kept; INSIDE.  The compiler knows it, so that each way has a loop of its own.

    Returns
    -------
    Flow and Best then.
    """
    place, lane, W, (words, shown), floored = tile.place, tile.place.lane, kind.steps, scratch, way == FLOORED
    alarm, floor, bottoms = tile.alarm, tile.floor, U32(tile.at + U32(W + SPARE))
    ahead = U32(bottoms + U32(I32(W + LAG - 2 * lane)))
    flow = Flow(flow.above, flow.below, words[ahead - U32(1)])
    passed = words[tile.at] if lane == WARP - 1 else last_row_of(cells, flow, kind)
    ends = matrix.query.shape[0], matrix.target.shape[0]
    profile = words[ahead]
    for step in range(I32(W)):
        top = U32(shuffle(I32(passed), lane - 1 & WARP - 1))
        following, coming = words[U32(tile.at + U32(1)) + U32(step)], words[U32(ahead + U32(1)) + U32(step)]
        if way == EDGED:
            flow = enter_at(matrix, place, I32(step), cells, shown, flow, tile.base, rule, kind)
        flow = step_column(cells, flow, top, profile, floor, floored, rule, kind)
        passed, profile, later = last_row_of(cells, flow, kind), coming, sum_of(alarm, rule.drift, rule)
        if lane == WARP - 1:
            words[bottoms + U32(step)] = passed
            passed = following
        if max2(flow.below, alarm) != alarm:
            best = look(cells, shown, place, I32(step), ends, tile, best, rule, kind)
        if way == EDGED and matrix.ends:
            at_edges(matrix, results, place, I32(step), tile.base, cells, shown, rule, kind)
        alarm = later
        if floored:
            floor = sum_of(floor, rule.drift, rule)
    return flow, best


@cache
def make_kernel(registers: int, steps: int, masked: bool):
    """The function of a kernel; parameters as in Kind."""
    KIND, R, W, EACH = Kind(registers, steps, masked), registers, steps, steps // WARP
    ROWS, PLACES, WORDS = LAG * registers, 2 * registers, _words(KIND)

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
        at = U32(warp * WORDS)  # unsigned: Numba makes no code for negative places then
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
                walk = take_state(traffic, strip, lane, cells, KIND)
            best = Best(results.found[strip, lane, 0], results.found[strip, lane, 1], results.found[strip, lane, 2])
            for tile in range(begin, end):
                place = Place(lane, strip, I32(tile), row, I32(tile * W - LAG * strip))
                bound = bound_of(matrix, place, KIND)
                _wait_above(traffic, strip, tile, above_begin, above_end)
                corner = load_tops(matrix, traffic, place, continued and tile == begin, above_begin, high, gap, KIND)
                most = highest_border(matrix, rule, place, walk, cells, high, corner, KIND)
                reached = fresh_number(traffic.best, 0)
                if most > NONE and most + rule.opening + bound >= reached:
                    wanted, floored = max(reached, best.score), rule.floor and most < rule.zero
                    alarm, floor = _thresholds(wanted, most, place, rule, KIND)
                    flow = _begin_tile(walk, most, cells, corner, floor, floored, place, rule, KIND)
                    _fill_words(words, at, U32(at + U32(2 * W + SPARE)), matrix.target, high, gap, place, most, rule, KIND)
                    sync_warp()
                    job = Tile(place, at, most, wanted, alarm, floor)
                    scratch = words, shown
                    if floored:
                        flow, best = _step_through(matrix, results, job, cells, flow, scratch, best, FLOORED, rule, KIND)
                    elif has_edge(matrix, place, KIND):
                        flow, best = _step_through(matrix, results, job, cells, flow, scratch, best, EDGED, rule, KIND)
                    else:
                        flow, best = _step_through(matrix, results, job, cells, flow, scratch, best, INSIDE, rule, KIND)
                    sync_warp()
                    walk = Walk(most, True, flow)
                    flush(matrix, traffic, results, place, most, words, U32(at + U32(W + SPARE)), rule, KIND)
                    if best.score > reached:
                        cuda.atomic.max(traffic.best, 0, best.score)
                    cuda.threadfence()
                else:
                    walk = Walk(I32(0), False, walk.flow)
                _tell(traffic.done, strip, I32(tile + 1), lane)
                if walk.alive:  # now that the strip below need not wait for it
                    note_highest(matrix, results, place, walk.base, words, U32(at + U32(W + SPARE)), rule, KIND)
                    _count(matrix, results, place, KIND)
            results.found[strip, lane, 0], results.found[strip, lane, 1], results.found[strip, lane, 2] = best
            if end < matrix.tiles[strip, 1]:
                place = Place(lane, strip, I32(end), row, I32(end * W - LAG * strip))
                leave_state(traffic, place, walk, cells, KIND)
                cuda.threadfence_system()
                _tell(traffic.handed, strip, end, lane)

    return sweep_strips
