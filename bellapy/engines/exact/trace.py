"""Paths out of special rows: strips between two of them are computed again, in narrow bands, and traced.

Everything here runs in the backward matrix: both sequences are read from where the alignment ends, so that row and column 0
are its end and a walk back through the matrix goes along the alignment from its start.  Of equally good alignments the walk
takes, at every cell, a gap before a pair of bases, a gap that leaves target bases out before one that leaves query bases
out, and ends a gap as soon as it can.  Gaps stand as far left as they go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.runs import QUERY_ALONE, TARGET_ALONE
from bellapy.engines.exact.antidiagonals import LANES, Differences
from bellapy.engines.exact.band import cell_type, padded_codes, raised_scores
from bellapy.engines.exact.bounds import Gains
from bellapy.engines.exact.cpu import Borders, Bounds, Sweep, Task, end_borders
from bellapy.engines.exact.line_paths import AT_CELL, IN_QUERY, Part, Sides, advance, walk_back
from bellapy.engines.exact.path import Runs
from bellapy.engines.exact.rule import NONE, Scores

DIRECT_MOVES = 1 << 26  # strips that need up to so many are traced at once, larger ones cut by a sweep of their own
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
    special, runs = sweep.special_rows(), Runs()
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
    n_lines = n_rows + end.column - max(0, row + low)
    if n_rows * n_lines <= DIRECT_MOVES or n_rows <= DIRECT_ROWS:
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


def _trace_strip(space: Space, row: int, top: Top, end: Cell, low: int, high: int, runs: Runs) -> Cell:
    """Compute the diagonals from `low` to `high` between `row` and `end`, and walk back to that row."""
    left = max(0, row + low)  # no column of the band lies before this one
    n, m = end.row - row, end.column - left
    scores, cell = space.scores, cell_type(space.scores)
    above, gaps = _joined(top, left, end.column, scores)
    down = -scores.gap(np.arange(row, end.row + 1)) if left == 0 else -scores.first * np.arange(n + 1)
    sides = Sides(
        raised_scores(scores, cell), scores.first, *(x.astype(np.int32) for x in (above, gaps, down, down - scores.first))
    )  # fmt: skip
    codes = padded_codes(space.query[row : end.row], space.target[left : end.column], cell)
    d = Differences(*(np.zeros(k + 1 + LANES, cell) for k in (n, n, m, m)))
    d.x[m] = gaps[0] - above[0] + scores.first  # a gap may cross the row in its first column, too
    part = Part(codes, d, 0, 0, 0, int(above[0]), n, m, left - row - high, left - row - low)
    width = n + 1 + LANES
    moves = np.empty((n + m) * width, cell)
    *_, score = advance(sides, part, n + m, moves, width)
    if score != end.score and not end.in_gap:
        raise AssertionError(f"row {end.row}, column {end.column}: score {score}, not {end.score}")
    out = np.empty(n + m + 1, np.uint32)
    moves = moves.reshape(n + m, width)
    n_runs, i, j, at = walk_back(moves, 0, 0, n, m, IN_QUERY if end.in_gap else AT_CELL, out)
    runs.add(out[:n_runs])
    if i and left:
        raise AssertionError(f"no path leads from row {row} to row {end.row}, column {end.column}")
    runs.add_run(QUERY_ALONE, i)  # along column 0
    return _cell_of(top, row, left + j, at == IN_QUERY or i > 0, scores)


def _joined(top: Top, left: int, last: int, scores: Scores) -> tuple[np.ndarray, np.ndarray]:
    """H and F of a row's columns from `left` to `last`, int64.

    What was not computed is raised to what must be reached from its neighbours, so that differences of neighbours fit.
    """
    first, high, gap = top
    above, gaps = np.full(last + 1 - left, NONE, np.int64), np.full(last + 1 - left, NONE, np.int64)
    skip = max(0, left - first)
    at = first + skip - left
    above[at : at + len(high) - skip], gaps[at : at + len(gap) - skip] = high[skip:], gap[skip:]
    steps = np.arange(len(above))
    by = scores.gap_extend * steps  # gaps go on to the right
    above = np.maximum(above, np.maximum.accumulate(above + by) - by - scores.gap_open)
    by = (scores.first + scores.match) * steps[::-1]  # a true score is never less than that below the next one
    above = np.maximum.accumulate((above + by)[::-1])[::-1] - by
    return above, np.maximum(gaps, above - scores.first)


def _cell_of(top: Top, row: int, column: int, in_gap: bool, scores: Scores) -> Cell:
    """A cell of a row with known scores; in_gap: a gap crosses the row, or begins there."""
    first, high, gap = top
    if not 0 <= column - first < len(high):
        raise AssertionError(f"the score of row {row}, column {column} is not known")
    score, below = int(high[column - first]), int(gap[column - first])
    if in_gap and below > score - scores.first:
        return Cell(row, column, True, below + scores.gap_extend)
    return Cell(row, column, False, score)


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
