"""What strips of a sweep on a GPU hand to each other, and what they keep: scores at a tile's borders, states between panels.

Every function works for one warp.
"""

from __future__ import annotations

from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, inlined
from bellapy.engines.exact.gpu.records import ALIVE, BASE, CORNER, LAG, NOT_KEPT, NOT_MARKED, TOP_GAP, TOP_HIGH, Flow, Walk
from bellapy.engines.exact.gpu.tile_kernels import (
    drift_of,
    enter,
    high_of,
    highest_cell,
    highest_of_warp,
    leave,
    low_of,
    score_in,
    score_of,
)
from bellapy.engines.exact.rule import NONE


@inlined
def _over(traffic, column, strip):
    """Whether the strip above has left scores over a column; `traffic`: Traffic."""
    there = 0 <= column and column < traffic.border.shape[0]
    return there and traffic.made[(column + LAG - 1) // LAG if there else 0] == strip - 1


@inlined
def load_tops(matrix, traffic, place, continued, begin, high, gap, kind):
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
def highest_border(matrix, rule, place, walk, cells, high, corner, kind):
    """The best score on a tile's borders.

    `matrix`, `rule`, `place`, `walk`, `cells`, `kind`: as their types; `high`, `corner`: as `load_tops` has them.
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
def bound_of(matrix, place, kind):
    """The most that can be gained from a tile on; `matrix`, `place`, `kind`: Matrix, Place, Kind.

    Each lane looks at LAG columns, both borders included, which lie in one block.
    """
    group, most = I32(place.column // LAG - 1 + place.lane), I32(NONE)
    if place.lane <= kind.steps // LAG and 0 <= group and group < matrix.column_bound.shape[0]:
        of_block = matrix.block_most[matrix.block_row[place.strip], U32(group) >> matrix.block_shift]
        most = min(matrix.column_bound[group], of_block)
    return min(highest_of_warp(I32(most)), matrix.row_bound[place.strip])


@inlined
def _high_below(word, k, base, rule, kind):
    """H of a strip's last row in the `k`th of the columns that a tile leaves, from its `word`; the others as in `flush`."""
    drift = drift_of(LAG * kind.registers - 1, I32(k - LAG + 1), rule)
    return I32(score_of(low_of(word), base, drift, rule) + rule.opening)


@inlined
def note_highest(matrix, results, place, base, words, at, rule, kind):
    """Note the highest scores of a strip's last row by groups of columns, if they are asked for; arguments as in `flush`."""
    row, m = matrix.mark_row[place.strip], matrix.target.shape[0]
    if row > NOT_MARKED:
        first = I32(place.column - LAG + 1)
        begin, end = max(first, I32(0)), min(I32(first + kind.steps), I32(m))
        while begin < end:
            group = U32(begin) >> matrix.mark_shift
            stop, most = min(end, I32((group + U32(1)) << matrix.mark_shift)), I32(NONE)
            for i in range(kind.steps // WARP):
                k = I32(i * WARP + place.lane)
                if begin <= first + k and first + k < stop:
                    most = max(most, _high_below(words[at + U32(k)], k, base, rule, kind))
            most = highest_of_warp(I32(most))
            if place.lane == 0:
                cuda.atomic.max(results.marks, (row, group), most)
            begin = stop


@inlined
def flush(matrix, traffic, results, place, base, words, at, rule, kind):
    """What a tile leaves below it, from `words`[`at`] on, to `border` and to the kept rows.

    `matrix`, `traffic`, `results`, `place`, `rule`, `kind`: as their types; `base`: of its scores.
    """
    m, kept = matrix.target.shape[0], matrix.kept[place.strip]
    first = I32(place.column - LAG + 1)
    for i in range(kind.steps // WARP):
        k = I32(i * WARP + place.lane)
        column, word = I32(first + k), words[at + U32(k)]
        if 0 <= column and column < m:
            drift = drift_of(LAG * kind.registers - 1, I32(k - LAG + 1), rule)
            high = _high_below(word, k, base, rule, kind)
            gap = score_of(high_of(word), base, I32(drift + rule.extend), rule)
            traffic.border[column, 0], traffic.border[column, 1] = high, gap
            if kept > NOT_KEPT:
                results.rows[kept + column, 0], results.rows[kept + column, 1] = high, gap
    group = I32((first + LAG - 1) // LAG + place.lane)
    if place.lane < kind.steps // LAG and 0 <= group and group < traffic.made.shape[0]:
        traffic.made[group] = place.strip


@inlined
def at_edges(matrix, results, place, step, base, cells, shown, rule, kind):
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
def enter_at(matrix, place, step, cells, shown, flow, base, rule, kind):
    """The Flow after the left border was taken to the place of this lane that begins, if one does.

    `matrix`, `place`, `cells`, `flow`, `rule`, `kind`: as their types; `shown`: scratch; `step`, `base`: of the tile, int32.
    """
    column = I32(place.column + step - 2 * place.lane)
    if column == 0 or column == 1:
        flow = enter(cells, shown, flow, column, place, step, (matrix.left, matrix.left_gap), base, rule, kind)
    return flow


@inlined
def has_edge(matrix, place, kind):
    """Whether borders are entered or kept in a tile; `matrix`, `place`, `kind`: Matrix, Place, Kind."""
    n, m = matrix.query.shape[0], matrix.target.shape[0]
    at_end = place.column + kind.steps + 1 >= m or (place.strip + 1) * LAG * kind.registers >= n
    return place.column < LAG or matrix.ends and at_end


@inlined
def take_state(traffic, strip, lane, cells, kind):
    """The Walk of a strip that another task has begun; `traffic`, `cells`, `kind`: as their types."""
    R, state = kind.registers, traffic.state
    for k in range(R):
        cells.high[k], cells.gap[k] = state[strip, k, lane], state[strip, R + k, lane]
    flow = Flow(state[strip, 2 * R, lane], state[strip, 2 * R + 1, lane], U32(0))
    return Walk(traffic.numbers[strip, BASE], traffic.numbers[strip, ALIVE] != 0, flow)


@inlined
def leave_state(traffic, place, walk, cells, kind):
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
