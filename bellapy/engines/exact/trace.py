"""Paths out of special rows: strips between two of them are computed again, in narrow bands, and traced.

Everything here runs in the backward matrix: both sequences are read from where the alignment ends, so that row and column 0
are its end and a walk back through the matrix goes along the alignment from its start.  Of equally good alignments the walk
takes, at every cell, a gap before a pair of bases, a gap that leaves target bases out before one that leaves query bases
out, and ends a gap as soon as it can.  Gaps stand as far left as they go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.exact.bounds import Gains
from bellapy.engines.exact.cpu import Borders, Bounds, Sweep, Task, end_borders
from bellapy.engines.exact.path import Runs, add_base
from bellapy.engines.exact.rule import NONE, Scores

IN_PAIR, IN_TARGET_GAP, IN_QUERY_GAP = 0, 1, 2  # where a cell's score comes from: two bits
TARGET_GAP_GOES_ON, QUERY_GAP_GOES_ON = 4, 8
DIRECT_CELLS = 1 << 26  # a byte each: strips up to this size are traced at once, larger ones cut by a sweep of their own
DIRECT_ROWS = 64
SUB_SIZE = 32  # of the tiles of such a sweep
SUB_EVERY = 512


class Space(NamedTuple):
    """A backward matrix: codes from the alignment's end on, and bounds along them (Gains of the backward sequences)."""

    query: np.ndarray
    target: np.ndarray
    rows: Gains
    columns: Gains
    scores: Scores


class Cell(NamedTuple):
    """Where a walk stands; in_gap: within a gap that leaves query bases out."""

    row: int
    column: int
    in_gap: bool
    score: int


Top = tuple[int, np.ndarray, np.ndarray]
"""A row's scores: the first column, H from there on, F for the row below."""


def trace_path(space: Space, sweep: Sweep, start: Cell, watch: Callable[[float], None]) -> np.ndarray:
    """The path from `start` to the corner of the backward matrix, as Runs has it.

    sweep : of the backward matrix, with its special rows.  watch : is told the share that is done.
    """
    special = sweep.special_rows()
    try:
        runs = _trace_rows(space, special, start, watch)
    except AssertionError:
        if special.are_complete():
            raise
    else:
        if special.are_complete():
            return runs
    return _trace_rows(space, special, start, watch)  # now from all that may matter


def _trace_rows(space: Space, special: Any, start: Cell, watch: Callable[[float], None]) -> np.ndarray:
    """The path from `start` to the corner through special rows (cpu.SpecialRows, or cuda_rows.GpuRows)."""
    runs = Runs()
    scores, columns = space.scores, start.column
    rows = special.rows[special.rows < start.row].tolist()
    cell = start
    for row in reversed(rows):
        cell = _cross(space, row, _with_border(scores, row, special.get(row, columns, cell)), cell, runs)
        watch(1 - row / start.row)
    if cell.row > 0:
        top = end_borders(scores, 0, cell.column).top
        cell = _cross(space, 0, (0, top, top - np.int32(scores.first)), cell, runs)
    runs.add_run(TARGET_ALONE, cell.column)
    return runs.joined()


def _with_border(scores: Scores, row: int, top: Top) -> Top:
    """With column 0, one gap from the corner on, which special rows leave out, if the column beside it is there."""
    first, high, gap = top
    if first != 1:
        return top
    border, below = -scores.gap(np.array([row, row + 1]))
    return 0, np.concatenate((np.array([border], np.int32), high)), np.concatenate((np.array([below], np.int32), gap))


def _cross(space: Space, row: int, top: Top, end: Cell, runs: Runs) -> Cell:
    """Trace from `end` up to `row`, whose scores are known."""
    top = _cut(top, end.column)
    low, high = _band(space.scores, row, top, end)
    n_rows = end.row - row
    width = min(high - low + 1, end.column - max(0, row + low) + 1)
    if n_rows * width <= DIRECT_CELLS or n_rows <= DIRECT_ROWS:
        return _trace_strip(space, row, top, end, low, high, runs)
    return _divide(space, row, top, end, low, high, runs)


def _cut(top: Top, last: int) -> Top:
    first, high, gap = top
    return first, high[: last + 1 - first], gap[: last + 1 - first]


def _band(scores: Scores, row: int, top: Top, end: Cell) -> tuple[int, int]:
    """Diagonals (column - row) between which all paths lie that reach the end with its score."""
    first, high, gap = top
    columns = np.arange(first, first + len(high))
    begin = np.maximum(high, gap + scores.first).astype(np.int64)
    down, across = end.row - row, end.column - columns
    most = scores.match * np.minimum(down, across) - scores.gap(np.abs(down - across))
    spare = begin + most - end.score
    good = np.flatnonzero(spare >= 0)
    if not len(good):
        raise AssertionError(f"no path leads from row {row} to row {end.row}, column {end.column}")
    off = spare[good] // (scores.match + 2 * scores.gap_extend) + 1
    diagonals, last = columns[good] - row, end.column - end.row
    return int((np.minimum(diagonals, last) - off).min()), int((np.maximum(diagonals, last) + off).max())


class Strip(NamedTuple):
    """Rows row + 1 to last_row of a band to fill and trace; row i has columns from max(left, i + low) on, at most `width`.

    query, target : (any,) uint8 codes of the whole backward matrix.  last_column : no column lies beyond.
    """

    query: np.ndarray
    target: np.ndarray
    row: int
    last_row: int
    last_column: int
    left: int
    low: int
    width: int


def _trace_strip(space: Space, row: int, top: Top, end: Cell, low: int, high: int, runs: Runs) -> Cell:
    n_rows = end.row - row
    left = max(0, row + low)  # no column of the band lies before this one
    width = min(high - low + 1, end.column - left + 1)
    steep = width == high - low + 1  # the band moves on with the rows; else it takes in all columns
    moves = np.empty((n_rows, width), np.uint8)
    before, gaps = np.full(end.column - left + 2, NONE, np.int64), np.full(end.column - left + 2, NONE, np.int64)
    first, scores_above, gaps_above = top
    skip = max(0, left - first)
    at = first + skip - left
    before[at : at + len(scores_above) - skip] = scores_above[skip:]
    gaps[at : at + len(gaps_above) - skip] = gaps_above[skip:]
    out = np.empty(n_rows + end.column - left + 2, np.uint32)
    above, next_gaps = before.copy(), gaps.copy()
    low = low if steep else -(1 << 60)
    strip = Strip(space.query, space.target, row, end.row, end.column, left, low, width)
    goal = _fill_strip(strip, before, gaps, moves, space.scores)
    if goal[1 if end.in_gap else 0] != end.score:
        raise AssertionError(f"row {end.row}, column {end.column}: score {goal}, not {end.score}")
    n, column, in_gap = _walk(strip, moves, end.in_gap, out)
    runs.add(out[:n])
    if not in_gap:
        return Cell(row, column, False, int(above[column - left]))
    if next_gaps[column - left] == above[column - left] - space.scores.first:
        return Cell(row, column, False, int(above[column - left]))
    return Cell(row, column, True, int(next_gaps[column - left]) + space.scores.gap_extend)


@njit
def _fill_strip(strip, scores, gaps, moves, costs):
    """Fill a band, row by row; (H, F) of the last row's last column.

    strip : Strip.  costs : Scores.
    scores, gaps : (last_column - left + 2,) int64: H of the row above and F for the next row, from column `left` on.
    moves : (rows, width) uint8, filled: where each cell's score came from.
    """
    query, target, row, last_row, last_column, left, low, width = strip
    match, mismatch, first, extend = costs.match, costs.mismatch, costs.gap_open + costs.gap_extend, costs.gap_extend
    none = -(1 << 40)
    corner = none
    h = f = none
    for i in range(row + 1, last_row + 1):
        begin = max(left, i + low)
        end = min(last_column, begin + width - 1)
        base = query[i - 1]
        diagonal = scores[begin - 1 - left] if begin > left else none
        e = none
        for j in range(begin, end + 1):
            f = gaps[j - left]
            above = scores[j - left]
            h = none
            if j > 0:
                h = diagonal + (match if base == target[j - 1] else mismatch)
            move = IN_PAIR
            if f >= h:
                h, move = f, IN_QUERY_GAP
            if e >= h:
                h, move = e, IN_TARGET_GAP
            opened = h - first
            e_on, f_on = e - extend, f - extend
            if e_on > opened:
                move |= TARGET_GAP_GOES_ON
                e = e_on
            else:
                e = opened
            if f_on > opened:
                move |= QUERY_GAP_GOES_ON
                gaps[j - left] = f_on
            else:
                gaps[j - left] = opened
            diagonal = above
            scores[j - left] = h
            moves[i - row - 1, j - begin] = move
        scores[end + 1 - left] = gaps[end + 1 - left] = none  # the next row's last column has nothing above
        corner = h
    return corner, f


@njit
def _walk(strip, moves, in_gap, out):
    """Walk from the last cell of a strip up to its row; (runs in `out`, column, whether a query gap crosses the row).

    strip, moves : as in `_fill_strip`.  in_gap : whether the walk begins in a query gap.  out : (any,) uint32, filled.
    """
    row, i, j, left, low = strip.row, strip.last_row, strip.last_column, strip.left, strip.low
    n = 0
    in_target_gap = False
    while i > row:
        begin = max(left, i + low)
        move = moves[i - row - 1, j - begin]
        if not in_gap and not in_target_gap:
            source = move & 3
            if source == IN_PAIR:
                n = add_base(out, n, PAIR)
                i -= 1
                j -= 1
                continue
            in_target_gap = source == IN_TARGET_GAP
            in_gap = not in_target_gap
        if in_target_gap:  # to the left: whether it goes on there is written there
            n = add_base(out, n, TARGET_ALONE)
            j -= 1
            in_target_gap = moves[i - row - 1, j - begin] & TARGET_GAP_GOES_ON != 0
        else:
            n = add_base(out, n, QUERY_ALONE)
            i -= 1
            if i > row:
                in_gap = moves[i - row - 1, j - max(left, i + low)] & QUERY_GAP_GOES_ON != 0
    return n, j, in_gap


def _divide(space: Space, row: int, top: Top, end: Cell, low: int, high: int, runs: Runs) -> Cell:
    """Cut a strip by special rows of its own, and cross their strips."""
    left = max(0, min(top[0], row + low) - 1)
    task = _strip_task(space, row, top, end, low, high, left)
    sweep = Sweep(task)
    sweep.run()
    special = sweep.special_rows()
    for between in reversed(special.rows[special.rows < end.row - row].tolist()):
        first, scores, gaps = special.get(between, end.column - left, end)
        its_top = _with_border(space.scores, row + between, (first + left, scores, gaps))
        end = _cross(space, row + between, its_top, end, runs)
    return _cross(space, row, top, end, runs)


def _strip_task(space: Space, row: int, top: Top, end: Cell, low: int, high: int, left: int) -> Task:
    """The matrix of rows row..end.row and columns left..end.column."""
    n, m = end.row - row, end.column - left
    scores, (first, high_above, gap_above) = space.scores, top
    top_scores, top_gaps = np.full(m + 1, NONE, np.int32), np.full(m + 1, NONE, np.int32)
    skip = max(0, left - first)
    at = first + skip - left
    top_scores[at : at + len(high_above) - skip] = high_above[skip:]
    top_gaps[at : at + len(gap_above) - skip] = gap_above[skip:]
    left_scores = np.full(n + 1, NONE, np.int32)
    if left == 0:
        left_scores = -scores.gap(np.arange(row, end.row + 1)).astype(np.int32)
    left_scores[0] = top_scores[0]
    borders = Borders(top_scores, top_gaps, left_scores, np.maximum(NONE, left_scores - scores.first).astype(np.int32))
    rows = space.rows.end[end.row] - space.rows.start[row : end.row + 1]
    columns = space.columns.end[end.column] - space.columns.start[left : end.column + 1]
    begin = row + np.arange(0, n, SUB_SIZE)
    every = min(SUB_EVERY, n // 2 // SUB_SIZE * SUB_SIZE)
    bounds = Bounds(
        rows.astype(np.int32), columns.astype(np.int32),
        np.clip(begin + low - left, 0, m).astype(np.int32),
        np.clip(begin + SUB_SIZE + high - left, 0, m).astype(np.int32),
    )  # fmt: skip
    return Task(
        space.query[row : end.row], space.target[left : end.column], scores, borders, bounds,
        end.score - (scores.gap_open if end.in_gap else 0), False, False, SUB_SIZE, every,
    )  # fmt: skip
