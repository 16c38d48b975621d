"""Paths out of kept lines: what lies between two of them is computed once more, with a move for every cell, and walked.

All runs in the backward matrix, as in `trace.py`, whose rule for ties it follows.  Only cells from which the walk's place
can be reached are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE, length_of, operation_of
from bellapy.engines.exact.antidiagonals import (
    IN_QUERY_GAP,
    IN_TARGET_GAP,
    LANES,
    QUERY_GAP_GOES_ON,
    TARGET_GAP_GOES_ON,
    Codes,
    Differences,
    Raised,
    differences_line,
    limit_ends,
    moves_line,
)  # fmt: skip
from bellapy.engines.exact.lines import Frame
from bellapy.engines.exact.path import Runs, add_base

MOST_LINES = 1024  # that are traced at once; a longer part is divided

AT_CELL, IN_TARGET, IN_QUERY = range(3)
"""Where a walk stands: at H of its cell, or within a gap that ends here unless the cell's move says that it goes on."""


class Line(NamedTuple):
    """A kept line: its number, first row, number of cells, the first one's score; their u, y, v, x one after the other."""

    line: int
    first: int
    size: int
    score: int
    values: np.ndarray


class Walk(NamedTuple):
    """Where a walk stands; at : AT_CELL and so on.

    score : what the way from here to the corner gains; within a gap, without its opening.
    """

    row: int
    column: int
    at: int
    score: int


class Part(NamedTuple):
    """What lies between a kept line and a cell, in arrays of its own.

    d, codes : of the rows from `low` to `row` and the columns up to `column`, the last one first.  line : that is in d.
    last : its last row.  score : of its first one.  least, most : of the diagonals (row - column) to compute.
    """

    codes: Codes
    d: Differences
    line: int
    low: int
    last: int
    score: int
    row: int
    column: int
    least: int
    most: int


class Sides(NamedTuple):
    """What cells and borders are computed from: of a Frame, or of a part of a matrix on its own.

    raised : scores.  first : what a gap's first base costs.  top, top_gap, left, left_gap : as in cpu.Borders.
    """

    raised: Raised
    first: int
    top: np.ndarray
    top_gap: np.ndarray
    left: np.ndarray
    left_gap: np.ndarray


class Tracer:
    """Traces the path of one frame part by part; holds memory for moves, which is used again for every part."""

    def __init__(self, frame: Frame):
        self._frame, self._runs = frame, Runs()
        self._sides = Sides(frame.raised, int(frame.plain.first), frame.top, frame.top_gap, frame.left, frame.left_gap)
        self._moves = np.zeros(0, frame.codes.query.dtype)

    def trace(self, lines: list[Line], walk: Walk, watch: Callable[[float], None]) -> np.ndarray:
        """The path from a cell to the matrix's corner, as Runs has it.

        lines : kept lines from the corner on.  watch : is told the share that is done.
        """
        total = max(1, walk.row + walk.column)
        for line in reversed(lines):
            if line.line < walk.row + walk.column and walk.row and walk.column:
                walk = self._trace_from(line, walk)
                watch(1 - (walk.row + walk.column) / total)
        self._runs.add_run(QUERY_ALONE, walk.row)
        self._runs.add_run(TARGET_ALONE, walk.column)
        return self._runs.joined()

    def _trace_from(self, line: Line, walk: Walk) -> Walk:
        """Walk back to a kept line, or one line more, or the matrix's border; where the walk stands then."""
        part = _cut(self._frame, line, walk)
        end = walk.row + walk.column
        n_lines = end - line.line
        if n_lines > MOST_LINES:
            middle = line.line + n_lines // 2
            first, last, score = advance(self._sides, part, middle, self._moves[:0], 0)
            walk = self._trace_from(_line_of(part, middle, first, last, score), walk)
            return self._trace_from(line, walk) if walk.row and walk.column else walk
        width = walk.row - part.low + 1 + LANES
        if len(self._moves) < n_lines * width:
            self._moves = np.zeros(n_lines * width, self._moves.dtype)
        moves = self._moves[: n_lines * width]
        advance(self._sides, part, end, moves, width)
        return self._walk_through(part, moves.reshape(n_lines, width), walk)

    def _walk_through(self, part: Part, moves: np.ndarray, walk: Walk) -> Walk:
        """Walk along a part's moves."""
        out = np.empty(len(moves), np.uint32)
        n, row, column, at = walk_back(moves, part.line, part.low, walk.row, walk.column, walk.at, out)
        self._runs.add(out[:n])
        gain = _gain(self._frame, out[:n], row, column)
        if walk.at != AT_CELL and operation_of(out[0]) == (TARGET_ALONE if walk.at == IN_TARGET else QUERY_ALONE):
            gain += self._frame.open  # it goes on from the last part, where it was paid
        return Walk(row, column, at, walk.score - gain)


@njit_entry
def _gain(m, runs, i, j):
    """What runs gain that lead from a walk's start to (i, j) in the backward matrix.

    m : Frame.  runs : (any,) uint32, from the start.
    """
    gain, columns = 0, len(m.column_bound) - 1
    for k in range(len(runs) - 1, -1, -1):
        operation, size = operation_of(runs[k]), length_of(runs[k])
        if operation == PAIR:
            for x in range(size):
                same = m.codes.query[i + x + 1] == m.codes.target[columns - (j + x + 1)]
                gain += m.plain.match if same else m.plain.mismatch
        else:
            gain -= m.open + m.plain.extend * size
        if operation != TARGET_ALONE:
            i += size
        if operation != QUERY_ALONE:
            j += size
    return gain


@njit_entry
def _limits(m, values, line, first, n, score, walk):
    """Rows of a kept line from which the walk's place can be reached, the first one's score, and the diagonals between.

    m : Frame.  values, line, first, n, score : of a Line.  walk : Walk.
    """
    wanted = walk.score - (m.open if walk.at != AT_CELL else 0)
    slack = m.plain.match + 2 * m.plain.first  # a pair of bases may step over the line, and a gap cross it
    low, high, lowest, least, most = -1, -1, score, 0, 0
    end = walk.row - walk.column
    per_step = m.plain.match + 2 * m.plain.extend
    for k in range(n):
        if k > 0:  # down by u, back by v
            score += np.int64(values[k]) - np.int64(values[2 * n + k - 1])
        i = first + k
        down, across = walk.row - i, walk.column - (line - i)
        if down < 0 or across < 0:
            continue
        gap = abs(down - across)
        possible = score + slack + m.plain.match * min(down, across) - (m.open + m.plain.extend * gap if gap else 0)
        if possible < wanted:
            continue
        off, diagonal = (possible - wanted) // per_step + 1, 2 * i - line
        if low < 0:
            low, lowest, least, most = i, score, end, end
        high = i
        least, most = min(least, min(diagonal, end) - off), max(most, max(diagonal, end) + off)
    return low, high, lowest, least, most


def _cut(frame: Frame, line: Line, walk: Walk) -> Part:
    """The part from a kept line to where a walk stands, still to be computed."""
    row, column = walk.row, walk.column
    low, last, score, least, most = _limits(frame, line.values, *line[:4], walk)
    if low < 0:
        raise AssertionError(f"no path leads from line {line.line} to row {row}, column {column}")
    n, skip = last - low + 1, low - line.first
    first_column, cell = line.line - last, line.values.dtype
    sizes = row - low, row - low, column - first_column, column - first_column
    d = Differences(*(np.zeros(k + 1 + LANES, cell) for k in sizes))
    u, y, v, x = line.values.reshape(4, line.size)[:, skip : skip + n]
    begin = column - (line.line - low)
    d.u[:n], d.y[:n], d.v[begin : begin + n], d.x[begin : begin + n] = u, y, v, x
    begin = len(frame.column_bound) - 1 - column
    codes = Codes(
        frame.codes.query[low : row + 1 + LANES], frame.codes.target[begin : begin + column - first_column + 1 + LANES]
    )
    return Part(codes, d, line.line, low, last, score, row, column, least, most)


def _line_of(part: Part, line: int, first: int, last: int, score: int) -> Line:
    """A line of a part as one that was kept."""
    rows = slice(first - part.low, last - part.low + 1)
    begin = part.column - (line - first)
    columns = slice(begin, begin + last - first + 1)
    d = part.d
    values = np.concatenate((d.u[rows], d.y[rows], d.v[columns], d.x[columns]))
    return Line(line, first, last - first + 1, score, values)


@njit_entry
def advance(m, p, stop, moves, width):
    """Compute a part up to a line; first and last row of it, score of the first one.

    m, p : Sides, Part.  moves : (lines * width,) in the cells' type, filled: each cell's move; none if empty.
    """
    first, last, score, costs = p.low, p.last, p.score, m.first
    for line in range(p.line + 1, stop + 1):
        before = first
        first = max(max(first, line - p.column), (line + p.least + 1) >> 1)
        last = min(min(p.row, last + 1), max(last, (line + p.most) >> 1))
        row, place, n = first - p.low, p.column - (line - first), last - first + 1
        if len(moves):
            moves_line(p.codes, p.d, m.raised, row, place, n, moves, (line - p.line - 1) * width + row)
        else:
            differences_line(p.codes, p.d, m.raised, row, place, n)
        limit_ends(p.d, m.raised.most, row, place, n)
        if first == 0:
            p.d.v[place] = m.top[line] - m.top[line - 1] + costs
            p.d.x[place] = m.top_gap[line] - m.top[line] + costs
        if last == line:
            p.d.u[last - p.low] = m.left[line] - m.left[line - 1] + costs
            p.d.y[last - p.low] = m.left_gap[line] - m.left[line] + costs
        score += np.int64(p.d.v[place] if first == before else p.d.u[row]) - costs
    return first, last, score


@njit
def walk_back(moves, line, low, i, j, at, out):
    """Walk from (i, j) until a line, or one before, or the matrix's border; number of runs, row, column, AT_CELL and so on.

    moves : (lines, width), of the lines after `line` and the rows from `low` on.  out : (any,) uint32, runs, filled.
    """
    n = np.int64(0)
    while i + j > line and i > 0 and j > 0:
        move = moves[i + j - line - 1, i - low]
        if at == IN_TARGET and not move & TARGET_GAP_GOES_ON or at == IN_QUERY and not move & QUERY_GAP_GOES_ON:
            at = AT_CELL
        if at == AT_CELL:
            at = IN_TARGET if move & IN_TARGET_GAP else IN_QUERY if move & IN_QUERY_GAP else AT_CELL
        n = add_base(out, n, np.int64(PAIR if at == AT_CELL else TARGET_ALONE if at == IN_TARGET else QUERY_ALONE))
        i -= at != IN_TARGET
        j -= at != IN_QUERY
    return n, i, j, at
