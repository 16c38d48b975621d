"""Tighter gains of a grid: real scores within a window of columns around the best way through it (docs/exact.md).

From block to block the window's cells are computed line by line, from the scores that its first row can have at most.
Beyond the window these are the grid's gains.  So the bands of the window get gains that a real alignment has within it, with
every gap that it needs.  The window holds all bands that promise as much as the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.exact.antidiagonals import LANES, Codes, Differences, Raised, differences_line
from bellapy.engines.exact.band import cell_type, padded_codes, raised_scores
from bellapy.engines.exact.grid import Costs, Grid, Room, enter_block, exit_block, widest
from bellapy.engines.exact.rule import NONE, Scores

FAR_BELOW = -(1 << 40)
MARGIN = 2  # times what a block's matches gain: bands within it of the best one are in the window


class Frame(NamedTuple):
    """What does not change; the functions here call it m, as a matrix.

    gap_open, gap_extend, match : scores.  least : bands on either side of the best ones.
    most : cells that may be computed.
    """

    codes: Codes
    d: Differences
    raised: Raised
    gap_open: int
    gap_extend: int
    match: int
    least: int
    most: int


@njit_inner
def _promising(entry, ahead, n, margin):
    """The first and the last band that promise as much as the best one, or less by up to a margin; (0, -1): none is alive.

    entry, ahead : (n or more,).
    """
    best, first, last = np.int64(2 * NONE), 0, -1
    for b in range(n):
        if entry[b] > NONE:
            best = max(best, entry[b] + np.int64(ahead[b]))
    for b in range(n):
        if entry[b] > NONE and entry[b] + np.int64(ahead[b]) >= best - margin:
            first, last = first if last >= 0 else b, b
    return first, last


@njit_inner
def _from_left(grid, entry, block, column, extend):
    """The most that a path has in the block's first row that comes to a column from bands before it.

    grid : Grid.  entry : as `enter_block` has it.  extend : what each diagonal between costs.
    """
    top, end, low = grid.edges[block], grid.edges[block + 1], grid.low[block]
    best = np.int64(FAR_BELOW)
    for b in range(grid.begin[block + 1] - grid.begin[block]):
        begin = (low + b) * grid.width - grid.offset
        if begin > column - top:
            break
        if entry[b] > NONE:
            best = max(best, entry[b] - extend * max(0, column - end - begin - grid.width + 1))
    return best


@njit_inner
def _fill_top(m, grid, entry, block, old, new, high):
    """Scores of a window's first row: those of the window before, or the grid's gains; gaps go on from both.

    m, grid : Frame, Grid.  entry : as `enter_block` has it.  old, new : first and last column of both windows.
    high : (columns + 1,) int64, changed from new[0] to new[1].  Returns what comes from the left.
    """
    low, top, n = grid.low[block], grid.edges[block], grid.begin[block + 1] - grid.begin[block]
    begin, end = new
    for j in range(begin, end + 1):
        if j < old[0] or j > old[1]:
            band = (j - top + grid.offset) // grid.width - low
            there = 0 <= band < n and entry[max(0, min(n - 1, band))] > NONE
            high[j] = entry[band] + m.gap_open if there else FAR_BELOW
    from_left = _from_left(grid, entry, block, begin, m.gap_extend) + m.gap_open
    high[begin] = max(high[begin], from_left)
    gap = np.int64(FAR_BELOW)
    for j in range(begin + 1, end + 1):
        gap = max(gap, high[j - 1] - m.gap_open) - m.gap_extend
        high[j] = max(high[j], gap)
    gap = np.int64(FAR_BELOW)
    for j in range(end - 1, begin - 1, -1):
        gap = max(gap, high[j + 1] - m.gap_open) - m.gap_extend - m.match
        high[j] = max(high[j], gap)
    return from_left


@njit_inner
def _compute(m, begin, end, top, rows, from_left, high):
    """Take the scores of a window's first row to its last one.

    m : Frame.  begin, end : first and last column.  top, rows : first row, number of rows.  from_left : the most that comes
    from columns before, in the first row.  high : (columns + 1,) int64, changed.
    """
    first, width, shift = m.gap_open + m.gap_extend, end - begin, len(m.codes.target) - 1 - LANES - end
    d = Differences(m.d.u, m.d.y, m.d.v[shift:], m.d.x[shift:])
    for j in range(begin + 1, end + 1):
        d.v[end - j], d.x[end - j] = high[j] - high[j - 1] + first, m.gap_open
    corner = before = high[begin]
    for i in range(1, rows + 1):
        score = max(from_left + m.match * i, corner - m.gap_open - m.gap_extend * i)
        d.u[i], d.y[i] = score - before + first, m.gap_open
        before = score
    codes = Codes(m.codes.query[top:], m.codes.target[shift:])
    for line in range(2, rows + width + 1):
        low, last = max(1, line - width), min(rows, line - 1)
        differences_line(codes, d, m.raised, low, width - line + low, last - low + 1)
    high[begin] = before
    for j in range(begin + 1, end + 1):
        high[j] = high[j - 1] + np.int64(d.v[end - j]) - first


@njit_inner
def _take_over(m, grid, block, begin, end, high, exits):
    """Lower the gains of bands that a window holds as a whole; all parameters as above.

    A gap that goes on in the grid counts on its opening there once more.
    """
    for b in range(grid.begin[block + 1] - grid.begin[block]):
        first = grid.edges[block + 1] + (grid.low[block] + b) * grid.width - grid.offset
        if begin <= first and first + grid.width - 1 <= end:
            best = high[first]
            for j in range(first + 1, first + grid.width):
                best = max(best, high[j])
            at = grid.begin[block] + b
            exits[at] = max(NONE, min(np.int64(exits[at]), best + m.gap_open))


@njit
def _tighten(m, grid, costs, known, ahead, exits):
    """Fill `exits`, (any,) int32; m, grid, costs : Frame, Grid, Costs; known, ahead : (any,) int32, as in `tighten`."""
    n_bands, columns = widest(grid), len(m.codes.target) - 1 - LANES
    scratch = np.empty((5, n_bands), np.int64)
    entry, room = scratch[0], Room(scratch[1], scratch[2], scratch[3], scratch[4])
    high = np.full(columns + 1, FAR_BELOW)
    old, cells = (0, -1), 0
    for block in range(len(grid.low)):
        at, n = grid.begin[block], grid.begin[block + 1] - grid.begin[block]
        top, end = grid.edges[block], grid.edges[block + 1]
        all_match = costs.match * (end - top)
        enter_block(grid, block, costs, exits, entry)
        first, last = _promising(entry, ahead[at : at + n], n, MARGIN * all_match)
        begin, stop = 0, -1
        if last >= 0 and cells < m.most:
            low = grid.low[block] + max(0, first - m.least)
            past = grid.low[block] + min(n, last + m.least + 1)
            begin = max(0, min(columns, top + low * grid.width - grid.offset))
            stop = max(0, min(columns, end + past * grid.width - grid.offset - 1))
        is_there = begin < stop
        if is_there:
            cells += (stop - begin) * (end - top)
            from_left = _fill_top(m, grid, entry, block, old, (begin, stop), high)
            is_there = high[begin] > FAR_BELOW // 2
        exit_block(grid, block, costs, entry, room, exits)
        for x in range(at, at + n):
            exits[x] = min(exits[x], known[x])
        old = (0, -1)
        if is_there:
            _compute(m, begin, stop, top, end - top, from_left, high)
            if costs.local:
                for j in range(begin, stop + 1):
                    high[j] = max(high[j], all_match)
            _take_over(m, grid, block, begin, stop, high, exits)
            old = (begin, stop)


def tighten(
    query: np.ndarray, target: np.ndarray, scores: Scores, grid: Grid, costs: Costs, gains: tuple[np.ndarray, np.ndarray],
    half_width: int, most: int,
) -> np.ndarray:  # fmt: skip
    """What a path has gained at most when it leaves a block, as `gains_behind` has it, but tighter.

    gains : what is known of that, and the most that is gained from a block's first row on.
    half_width : diagonals of a window on either side of the best bands.  most : cells to compute.
    """
    cell = cell_type(scores)
    rows, columns = len(query) + 1 + LANES, len(target) + 1 + LANES
    d = Differences(*(np.zeros(k, cell) for k in (rows, rows, columns, columns)))
    frame = Frame(
        padded_codes(query, target, cell), d, raised_scores(scores, cell), scores.gap_open, scores.gap_extend, scores.match,
        max(1, half_width // grid.width), most,
    )  # fmt: skip
    exits = np.full(len(grid.alive), NONE, np.int32)
    _tighten(frame, grid, costs, *gains, exits)
    return exits
