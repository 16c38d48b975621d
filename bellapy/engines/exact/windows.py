"""Tighter gains of a grid: real scores within a window of diagonals around the best way through it (docs/exact.md).

From block to block the window's cells are computed line by line, from the scores that its first row can have at most.
Beyond the window these are the grid's gains.  So the bands of the window get gains that a real alignment has within it, with
every gap that it needs.  The window holds all bands that promise as much as the best one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.exact.antidiagonals import LANES, Codes, Differences, Raised, differences_line
from bellapy.engines.exact.grid import Room, enter_block, exit_block, widest
from bellapy.engines.exact.rule import NONE

FAR_BELOW = -(1 << 40)
MARGIN = 2  # times what a block's matches gain: bands within it of the best one are in the window;
MARGIN_ROWS = 1 << 11  # but no more than the matches of so many rows
HALF_WIDTH = 512  # diagonals of a window on either side of those
STEP = 1024  # rows of a window that are computed as one rectangle
NEAR = 4  # rows of a block for each diagonal that what comes from beside a window, with a match a row, may come to count


class Frame(NamedTuple):
    """What does not change; the functions here call it m, as a matrix.

    row, column : of the whole matrix, at which the codes begin.  columns : number of columns of the whole matrix.
    gap_open, gap_extend, match : scores.  half_width, step : as above, in diagonals and rows.  far : diagonals beside a
    window beyond which a part does not count what comes to it.  least : bands on either side of the best ones.
    most : cells that may be computed, beside those of `unmatched`, which is as in narrow.Matrix.
    """

    codes: Codes
    d: Differences
    raised: Raised
    row: int
    column: int
    columns: int
    gap_open: int
    gap_extend: int
    match: int
    half_width: int
    far: int
    least: int
    step: int
    most: int
    unmatched: np.ndarray


class Part(NamedTuple):
    """Blocks that are computed in one go: from `begin` on, if any counts; from `first` to `end`, the latter excluded."""

    begin: int
    first: int
    end: int


@njit_inner
def _widen(values, ahead, margin, first, last):
    """`first` and `last` band, widened by those that promise as much as the best one, or less by up to a margin.

    values, ahead : (n,), what is gained before and from there on.
    """
    best = np.int64(2 * NONE)
    for b in range(len(values)):
        if values[b] > NONE:
            best = max(best, values[b] + np.int64(ahead[b]))
    for b in range(len(values)):
        if values[b] > NONE and values[b] + np.int64(ahead[b]) >= best - margin:
            first, last = min(first, b), max(last, b)
    return first, last


@njit_inner
def _promising(grid, block, entry, exits, ahead, margin):
    """The first and the last band of a block that promise most in its first row, or in its last; last < 0: none is alive.

    grid : Grid.  entry : as `enter_block` has it.  exits, ahead : as in `tighten_part`.  margin : as in `_widen`.
    """
    at, end = grid.begin[block], grid.begin[block + 1]
    first, last = _widen(entry[: end - at], ahead[at:end], margin, end - at, np.int64(-1))
    if block + 1 < len(grid.low):
        shift = grid.low[block + 1] - grid.low[block]
        begin, stop = max(0, shift), min(end - at, shift + grid.begin[block + 2] - end)
        if begin < stop:
            here, there = exits[at + begin : at + stop], ahead[end + begin - shift : end + stop - shift]
            low, high = _widen(here, there, margin, stop - begin, np.int64(-1))
            if high >= 0:
                first, last = min(first, begin + low), max(last, begin + high)
    return first, last


@njit_inner
def _with_unmatched(m, grid, block, first, last):
    """The bands from `first` to `last`, and those that a stretch without matches may take; m, grid : Frame, Grid."""
    top, end, n = grid.edges[block], grid.edges[block + 1], grid.begin[block + 1] - grid.begin[block]
    for s in range(len(m.unmatched)):
        if m.unmatched[s, 0] < end and top < m.unmatched[s, 1]:
            low, high = m.unmatched[s, 2] + grid.offset, m.unmatched[s, 3] + grid.offset
            first = min(first, max(0, low // grid.width - grid.low[block]))
            last = max(last, min(n - 1, high // grid.width - grid.low[block]))
    return first, last


@njit_inner
def _inflow(m, grid, block, entry, first, last):
    """The most that a path has gained in a block, beside its matches, that comes to some diagonals, first to last.

    m, grid : Frame, Grid.  entry : as `enter_block` has it.
    """
    best = np.int64(FAR_BELOW)
    for b in range(grid.begin[block + 1] - grid.begin[block]):
        begin = (grid.low[block] + b) * grid.width - grid.offset
        if entry[b] > NONE // 2:
            away = max(0, max(begin - last, first - begin - grid.width + 1))
            best = max(best, entry[b] - m.gap_extend * away)
    return best + m.gap_open


@njit_inner
def _fill_top(m, grid, block, entry, old, new, high):
    """Scores of a block's first row within a window's columns: those of the window before, or the grid's gains.

    m, grid : Frame, Grid.  entry : as `enter_block` has it.  old, new : first and last column of both windows.
    high : (columns + 1,) int64 from m.column on, changed.
    """
    low, top, n = grid.low[block], grid.edges[block], grid.begin[block + 1] - grid.begin[block]
    for j in range(new[0], new[1] + 1):
        if j < old[0] or j > old[1]:
            band = (j - top + grid.offset) // grid.width - low
            there = 0 <= band < n and entry[max(0, min(n - 1, band))] > NONE // 2
            high[j - m.column] = entry[band] + m.gap_open if there else FAR_BELOW


@njit_inner
def _let_gaps_go_on(m, begin, end, from_left, high):
    """Raise scores of a row from column `begin` to `end` so that neighbours differ by no more than a gap allows.

    m, high : as in `_fill_top`.  from_left : the most that comes from columns before.
    """
    begin, end = begin - m.column, end - m.column
    high[begin] = max(high[begin], from_left)
    gap = np.int64(FAR_BELOW)
    for j in range(begin + 1, end + 1):
        gap = max(gap, high[j - 1] - m.gap_open) - m.gap_extend
        high[j] = max(high[j], gap)
    gap = np.int64(FAR_BELOW)
    for j in range(end - 1, begin - 1, -1):
        gap = max(gap, high[j + 1] - m.gap_open) - m.gap_extend - m.match
        high[j] = max(high[j], gap)


@njit_inner
def _compute(m, begin, end, top, rows, from_left, high):
    """Take the scores of a rectangle's first row to its last one.

    m : Frame.  begin, end : first and last column.  top, rows : first row, number of rows.  from_left : the most that comes
    from columns before, in the first row.  high : as in `_fill_top`, changed.
    """
    begin, end, top = begin - m.column, end - m.column, top - m.row
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
def _cross(m, grid, block, entry, window, old, high):
    """Take scores through a block within a window, in steps that follow its diagonals; the columns that `high` then has.

    m, grid : Frame, Grid.  entry : as `enter_block` has it.  window : first and last diagonal.  old : columns that `high`
    has.  high : as in `_fill_top`, changed.
    """
    top, end = grid.edges[block], grid.edges[block + 1]
    left = _inflow(m, grid, block, entry, window[0] - m.step, window[0] - 1)
    right = _inflow(m, grid, block, entry, window[1] + 1, window[1] + m.step)
    for row in range(top, end, m.step):
        stop, grown = min(end, row + m.step), m.match * (row - top)
        new = max(0, min(m.columns, row + window[0])), max(0, min(m.columns, stop + window[1]))
        if new[0] >= new[1] or left < FAR_BELOW // 2:
            return np.int64(0), np.int64(-1)
        if row == top:
            _fill_top(m, grid, block, entry, old, new, high)
        else:
            for j in range(old[1] + 1, new[1] + 1):
                high[j - m.column] = right + grown
        _let_gaps_go_on(m, new[0], new[1], left + grown, high)
        _compute(m, new[0], new[1], row, stop - row, left + grown, high)
        old = new
    return old


@njit_inner
def _take_over(m, grid, block, begin, end, high, exits):
    """Lower the gains of bands that a window holds as a whole; all parameters as above.

    A gap that goes on in the grid counts on its opening there once more.
    """
    for b in range(grid.begin[block + 1] - grid.begin[block]):
        first = grid.edges[block + 1] + (grid.low[block] + b) * grid.width - grid.offset
        if begin <= first and first + grid.width - 1 <= end:
            best = high[first - m.column]
            for j in range(first + 1 - m.column, first + grid.width - m.column):
                best = max(best, high[j])
            at = grid.begin[block] + b
            exits[at] = max(NONE, min(np.int64(exits[at]), best + m.gap_open))


@njit_inner
def _set_apart(m, grid, block, entry, window, old, high):
    """Leave what comes far from a window to `parts.pass_by`; raise what comes beside it, or near its edges.

    By so little that nothing changes in the window's middle: the part before should be above it nowhere else.
    m, grid : Frame, Grid.  block : what comes to its first row counts.  entry : as `enter_block` has it, changed.
    window : first and last diagonal.  old : columns that `high` has.  high : as in `_fill_top`, changed.
    """
    if window[0] > window[1]:
        return
    top, near = grid.edges[block], max(m.half_width // 2, (grid.edges[1] - grid.edges[0]) // NEAR)
    for b in range(grid.begin[block + 1] - grid.begin[block]):
        begin = (grid.low[block] + b) * grid.width - grid.offset
        beside = max(window[0] - begin, begin + grid.width - 1 - window[1])
        if beside > m.far:
            entry[b] = NONE
        elif entry[b] > NONE // 2:
            entry[b] += m.gap_extend * max(0, beside + near)
    for j in range(old[0], old[1] + 1):
        beside = max(window[0] - (j - top), j - top - window[1])
        high[j - m.column] += m.gap_extend * max(0, beside + near)


@njit_inner
def _copy(source, n, target):
    """Copy the first n values of a one-dimensional array to another one."""
    for x in range(n):
        target[x] = source[x]


@njit
def tighten_part(m, grid, costs, known, ahead, part, exits, at_start, at_end):
    """Fill `exits` of a part's blocks.

    m, grid, costs : Frame, Grid, Costs, of these blocks, the one before and the one after if there are.  known, ahead : as
    `exits`, what is known of them, and of what is gained from a block on.  part : Part, by blocks of this grid.
    exits : (any,) int32, there before block `begin`.  at_start, at_end : (bands of the blocks `first` and `end`,) int64,
    filled, as `enter_block` has it.  Returns the cells of the windows before these two, int64, and the columns at which they
    begin.
    """
    begin, first, end = part
    scratch = np.empty((6, widest(grid)), np.int64)
    entry, leaving, room = scratch[0], scratch[5], Room(scratch[1], scratch[2], scratch[3], scratch[4])
    high, cells = np.full(len(m.codes.target) - LANES, FAR_BELOW), 0
    window, old = (np.int64(0), np.int64(-1)), (np.int64(0), np.int64(-1))
    start, start_cells = np.int64(0), high[:0].copy()
    for block in range(begin, end):
        at, n = grid.begin[block], grid.begin[block + 1] - grid.begin[block]
        rows, low = grid.edges[block + 1] - grid.edges[block], grid.low[block]
        all_match = costs.match * rows
        enter_block(grid, block, costs, exits, entry)
        if block == first and first > begin:
            _set_apart(m, grid, block, entry, window, old, high)
            _copy(entry, n, at_start)
            start, start_cells = old[0], high[old[0] - m.column : old[1] + 1 - m.column].copy()
        _copy(entry, n, leaving)
        exit_block(grid, block, costs, leaving, room, exits)
        for x in range(at if first == begin else at + n, at + n):
            exits[x] = min(exits[x], known[x])
        one, other = _promising(grid, block, entry, exits, ahead, MARGIN * costs.match * min(rows, MARGIN_ROWS))
        window = (np.int64(0), np.int64(-1))
        if other >= 0 and cells < m.most:
            first_band, last_band = max(0, one - m.least), min(n - 1, other + m.least)
            cells += ((last_band + 1 - first_band) * grid.width + m.step) * rows
            first_band, last_band = _with_unmatched(m, grid, block, first_band, last_band)
            window = (low + first_band) * grid.width - grid.offset, (low + last_band + 1) * grid.width - grid.offset - 1
            old = _cross(m, grid, block, entry, window, old, high)
        else:
            old = (np.int64(0), np.int64(-1))
        if costs.local:
            for j in range(old[0], old[1] + 1):
                high[j - m.column] = max(high[j - m.column], all_match)
        _take_over(m, grid, block, old[0], old[1], high, exits)
    if end < len(grid.low):
        enter_block(grid, end, costs, exits, entry)
        _copy(entry, len(at_end), at_end)
    return start, start_cells, old[0], high[old[0] - m.column : old[1] + 1 - m.column].copy()
