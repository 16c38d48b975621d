"""Strips of a backward matrix between a row whose scores are known and a cell below it: their band, its moves, a walk back.

Only the diagonals are computed on which a path may lie that reaches the cell with its score.  All scores next to the band
are taken to be as high as a true score may be, so that its differences fit the cells (antidiagonals.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.exact.antidiagonals import LANES, Codes, Differences
from bellapy.engines.exact.line_paths import AT_CELL, IN_QUERY, Part, Sides, advance, walk_back
from bellapy.engines.exact.rule import BEYOND_QUERY, BEYOND_TARGET, NONE, Scores


class LostPath(AssertionError):
    """A walk that leads nowhere: it began at a cell whose score is not the true one."""


class Cell(NamedTuple):
    """Where a walk stands; in_gap: within a gap that leaves query bases out."""

    row: int
    column: int
    in_gap: bool
    score: int


class Top(NamedTuple):
    """A row's scores: the first column, H from there on, F for the row below; (columns,) int32."""

    first: int
    high: np.ndarray
    gap: np.ndarray

    def cut(self, last: int) -> Top:
        """Without the columns after one."""
        return Top(self.first, self.high[: last + 1 - self.first], self.gap[: last + 1 - self.first])

    def cell(self, row: int, column: int, in_gap: bool, scores: Scores) -> Cell:
        """A cell of the row, whose number is `row`; in_gap: a gap crosses the row, or begins there."""
        if not 0 <= column - self.first < len(self.high):
            raise LostPath(f"the score of row {row}, column {column} is not known")
        score, below = int(self.high[column - self.first]), int(self.gap[column - self.first])
        if in_gap and below > score - scores.first:
            return Cell(row, column, True, below + scores.gap_extend)
        return Cell(row, column, False, score)


class Strip(NamedTuple):
    """What is computed between a row and a cell.

    row, left : the row, and the first column.  end_row, end_column : of the cell.
    low, high : diagonals (column - row) between which all paths lie.
    """

    row: int
    left: int
    end_row: int
    end_column: int
    low: int
    high: int


class Windows(NamedTuple):
    """Parts of kept rows around their highest scores, with the same number of columns each.

    rows : (n,) int64 numbers of rows.  first : (n,) int64, first column of each part.  begin, end : (n,) int64, the columns
    that the row has, the last one excluded.  highest : (n,) int64 scores.
    high, gap : (n, width) int32, H, and F for the row below.
    """

    rows: np.ndarray
    first: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    highest: np.ndarray
    high: np.ndarray
    gap: np.ndarray


@njit
def n_moves(strip):
    """Room that the moves of a Strip take."""
    n, m = strip.end_row - strip.row, strip.end_column - strip.left
    return (n + m) * (n + 1 + LANES)


@njit
def columns_of(windows, at, row, column, score, costs):
    """The columns of a kept row from which a path may lead to a cell, whatever their scores, the last one excluded.

    windows, at : Windows, number of the row there.  row, column, score : of the cell.  costs : Scores.

    A path of the row's highest score, with a gap that may go on, can lose so much on the way; each base of a gap costs.
    """
    down = row - windows.rows[at]
    spare = windows.highest[at] + costs.gap_open + costs.match * down - score
    straight, off = column - down, max(0, spare // costs.gap_extend) + 1
    begin, end = windows.begin[at], windows.end[at]
    return min(max(straight - off, begin), end), min(max(straight + off + 1, begin), end)


@njit
def from_border(down, column, row, score, costs):
    """Whether a path may lead from column 0 of a row to a cell.

    down, column, score : rows down to the cell, its column and score.  row : that of column 0.  costs : Scores.
    """
    off = abs(down - column)
    gaps = (costs.gap_open + costs.gap_extend * off if off else 0) + (costs.gap_open + costs.gap_extend * row if row else 0)
    return costs.match * min(down, column) - gaps >= score


def find_strip(scores: Scores, row: int, top: Top, end: Cell) -> Strip:
    """The strip between a row and a cell; top : of the row, no further than the cell's column."""
    low, high = _diagonals(
        top.high, top.gap, top.first - row, end.row - row, end.column - row, end.score, scores
    )  # fmt: skip
    if low > high:
        raise LostPath(f"no path leads from row {row} to row {end.row}, column {end.column}")
    return Strip(row, max(0, row + low), end.row, end.column, low, high)


@njit
def _diagonals(high, gap, diagonal, down, column, score, costs):
    """First and last diagonal on which a path from row 0 to a cell may lie; 1 and 0: there are none.

    high, gap : (columns,) int32, H and F of the row, from `diagonal` on.  down, column, score : of the end.  costs : Scores.
    """
    least, most, end = 1, 0, column - down
    for k in range(len(high)):
        begin = diagonal + k
        across = column - begin
        off = abs(down - across)
        gain = costs.match * min(down, across) - (costs.gap_open + costs.gap_extend * off if off else 0)
        spare = max(np.int64(high[k]), np.int64(gap[k]) + costs.gap_open + costs.gap_extend) + gain - score
        if spare >= 0:
            aside = spare // (costs.match + 2 * costs.gap_extend) + 1
            low, last = min(begin, end) - aside, max(begin, end) + aside
            least, most = (low, last) if least > most else (min(least, low), max(most, last))
    return least, most


@njit
def _joined(top, left, above, gaps, costs):
    """H and F of a row's columns from `left` on, also of those that are not known: so high that differences fit.

    top : Top.  above, gaps : (columns,) int32, filled.  costs : Scores.
    """
    first, extend = costs.gap_open + costs.gap_extend, costs.gap_extend
    reached = np.int64(NONE)
    for k in range(len(above)):
        at = left + k - top.first
        there = 0 <= at < len(top.high)
        high, gap = (np.int64(top.high[at]), np.int64(top.gap[at])) if there else (np.int64(NONE), np.int64(NONE))
        reached = max(reached - extend, high)  # gaps go on to the right
        above[k], gaps[k] = max(high, reached - costs.gap_open), gap
    for k in range(len(above) - 2, -1, -1):  # a true score is never less than that below the next one
        above[k] = max(above[k], above[k + 1] - first - costs.match)
    for k in range(len(above)):
        gaps[k] = max(gaps[k], above[k] - first)


@njit
def _whole_part(query, target, strip, top, costs, raised, cell):
    """All of a strip as Sides and a Part; parameters as of `walk_strip`.  cell : the cells' dtype."""
    n, m = strip.end_row - strip.row, strip.end_column - strip.left
    first = costs.gap_open + costs.gap_extend
    above, gaps = np.empty(m + 1, np.int32), np.empty(m + 1, np.int32)
    _joined(top, strip.left, above, gaps, costs)
    down, down_gap = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    for k in range(n + 1):
        border = costs.gap_open + costs.gap_extend * (strip.row + k) if strip.row + k else 0
        down[k] = -border if strip.left == 0 else -first * k
        down_gap[k] = down[k] - first
    rows, columns = np.full(n + 1 + LANES, BEYOND_QUERY, cell), np.full(m + 1 + LANES, BEYOND_TARGET, cell)
    for k in range(n):
        rows[k + 1] = query[strip.row + k]
    for k in range(m):
        columns[m - 1 - k] = target[strip.left + k]
    by_row, by_column = n + 1 + LANES, m + 1 + LANES
    d = Differences(np.zeros(by_row, cell), np.zeros(by_row, cell), np.zeros(by_column, cell), np.zeros(by_column, cell))
    d.x[m] = gaps[0] - above[0] + first  # a gap may cross the row in its first column, too
    begin, zero = strip.left - strip.row, np.int64(0)
    part = Part(
        Codes(rows, columns), d, zero, zero, zero, np.int64(above[0]), n, m, begin - strip.high, begin - strip.low
    )  # fmt: skip
    return Sides(raised, first, above, gaps, down, down_gap), part


@njit
def scores_between(query, target, strip, top, costs, raised, cells, row):
    """Scores of a row between a strip's own and its end, where they are computed: (2, columns) int32, H and F for the row
    below; and the first column, which is not that of the left border.

    cells : (any,) in the cells' type.  row : its number.  The others as of `walk_strip`.
    """
    sides, part = _whole_part(query, target, strip, top, costs, raised, cells.dtype)
    scores, high, row = np.full((2, part.column + 1), NONE, np.int32), np.int64(NONE), row - strip.row
    begin, end = part.column + 1, 0
    for line in range(1, part.row + part.column + 1):
        first, last, score = advance(sides, part, line, cells[:0], np.int64(0))
        d, skip, place = part.d, first - part.low, part.column - line  # of row 0
        column = line - row
        if first <= row <= last and 0 < column <= part.column:
            if row < last and column == end:  # the one before is known, and as high as the difference says
                high += np.int64(d.v[place + row]) - sides.first
            else:
                high = np.int64(score)
                for i in range(first, row):
                    high += np.int64(d.u[i + 1 - part.low]) - np.int64(d.v[place + i])
            scores[0, column], scores[1, column] = high, high - sides.first + np.int64(d.x[place + row])
            begin, end = min(begin, column), column + 1
        elif begin < end:
            break
        its_d = Differences(d.u[skip:], d.y[skip:], d.v, d.x)
        codes = Codes(part.codes.query[skip:], part.codes.target)
        part = Part(codes, its_d, line, first, last, score, part.row, part.column, part.least, part.most)
    return scores[:, begin:end].copy(), strip.left + begin


@njit
def walk_strip(query, target, strip, top, in_gap, costs, raised, moves):
    """Compute a strip, and walk back from its end to its row, or along column 0.

    Parameters
    ----------
    query, target : (any,) uint8 codes of the backward matrix.
    strip, top : Strip, Top.
    in_gap : of the end.
    costs, raised : Scores, Raised.
    moves : (strip.n_moves,) in the cells' type, scratch.

    Returns
    -------
    Score of the end; rows left where the walk ends, and its column from `left` on; whether it ends in a gap that leaves
    query bases out; (n,) uint32 runs.
    """
    n, m = strip.end_row - strip.row, strip.end_column - strip.left
    sides, part = _whole_part(query, target, strip, top, costs, raised, moves.dtype)
    width = n + 1 + LANES
    score = advance(sides, part, n + m, moves, width)[2]
    out = np.empty(n + m + 1, np.uint32)
    of_lines = moves[: (n + m) * width].reshape((n + m, width))
    n_runs, i, j, at = walk_back(of_lines, 0, 0, n, m, IN_QUERY if in_gap else AT_CELL, out)
    return score, i, j, at == IN_QUERY, out[:n_runs].copy()


@njit
def walk_windows(query, target, windows, at, walk, costs, raised, moves, walked):
    """Walk from a cell to kept rows, one after the other, as far as windows and room suffice.

    Parameters
    ----------
    query, target, costs, raised : as in `walk_strip`.
    windows, at : Windows, number of the first row to walk to; the others lie before it.
    walk : Cell.
    moves : (any,) in the cells' type, scratch.
    walked : Walked, filled.

    Returns
    -------
    Rows that were reached.
    """
    end_row, column, in_gap, score = walk
    used = 0
    for n in range(len(walked.cells)):
        k = at - n
        row, first = windows.rows[k], windows.first[k]
        begin, end = columns_of(windows, k, end_row, column, score, costs)
        if begin < max(first, 2) or end > first + windows.high.shape[1]:  # columns 0 and 1 know of the border
            return n
        down, end = end_row - row, min(end, column + 1)
        if end <= begin or from_border(down, column, row, score, costs):
            return n
        top = Top(begin, windows.high[k, begin - first : end - first], windows.gap[k, begin - first : end - first])
        low, high = _diagonals(top.high, top.gap, begin - row, down, column - row, score, costs)
        strip = Strip(row, max(0, row + low), end_row, column, low, high)
        if low > high or n_moves(strip) > len(moves):
            return n
        found, i, j, over, runs = walk_strip(query, target, strip, top, in_gap, costs, raised, moves)
        j += strip.left
        if i or found != score and not in_gap or not begin <= j < end or used + len(runs) > len(walked.runs):
            return n
        for x in range(len(runs)):  # compute/jit.py says why this is no slice
            walked.runs[used + x] = runs[x]
        used += len(runs)
        score, below = np.int64(top.high[j - begin]), np.int64(top.gap[j - begin])
        in_gap = over and below > score - costs.gap_open - costs.gap_extend
        if in_gap:
            score = below + costs.gap_extend
        end_row, column = row, j
        stands, walked.sizes[n] = walked.cells[n], len(runs)
        stands[0], stands[1], stands[2], stands[3] = row, column, in_gap, score
    return len(walked.cells)
