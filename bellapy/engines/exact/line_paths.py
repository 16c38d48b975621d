"""Paths out of kept lines: what lies between two of them is computed once more, with a move for every cell, and walked.

All runs in the backward matrix, as in `trace.py`, whose rule for ties it follows.  Only cells from which the walk's place
can be reached are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE, length_of, operation_of
from bellapy.compute.threads import map_in_order
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
from bellapy.engines.exact.line_state import Frame, Kept, Line, line_at
from bellapy.engines.exact.path import Runs, add_base

MOST_LINES = 1024  # that are traced at once where there is no room for more; a longer part is divided
STRETCH = 128  # kept lines to which a thread walks ahead
MOVES, RUNS = 1 << 22, 1 << 17  # room for a step, and for the steps of a stretch; what needs more is traced alone

AT_CELL, IN_TARGET, IN_QUERY = range(3)
"""Where a walk stands: at H of its cell, or within a gap that ends here unless the cell's move says that it goes on."""


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


class Walked(NamedTuple):
    """Room for a walk from one kept line, or row, to the other.

    cells : (any, 4) int64, where it stands at each, as Walk or strips.Cell has it.  runs, sizes : (any,) uint32, (any,)
    int64: its runs in order, and their number in each step.
    """

    cells: np.ndarray
    runs: np.ndarray
    sizes: np.ndarray


class Tracer:
    """Traces the path of one frame out of kept lines, step by step: from one line to the next.

    Several threads walk at the same time, as in `trace.py`: each begins at the best cell of a line.
    """

    def __init__(self, frame: Frame, kept: Kept, start: Walk):
        self._frame, self._kept, self._start = frame, kept, start
        self._sides = Sides(frame.raised, int(frame.plain.first), frame.top, frame.top_gap, frame.left, frame.left_gap)

    def trace(self, watch: Callable[[float], None], threads: int) -> np.ndarray:
        """The path to the matrix's corner, as Runs has it.  watch : is told the share that is done."""
        walk, runs = self._start, Runs()
        total = max(1, walk.row + walk.column)
        n = int(np.searchsorted(self._kept.about[: self._kept.used[0], 0], total))
        stretches = [range(k, max(-1, k - STRETCH), -1) for k in range(n - 1, -1, -STRETCH)]
        ahead = map_in_order(self._walk_ahead, stretches, threads) if threads > 1 else repeat(None)
        for stretch, known in zip(stretches, ahead, strict=False):
            if known:
                walk, stretch = self._join(known, stretch, walk, runs)
            while stretch:
                walk, stretch = self._go_on(stretch, walk, runs)
            watch(1 - (walk.row + walk.column) / total)
        corner = Line(0, 0, 1, int(self._frame.top[0]), np.zeros(4, self._kept.values.dtype))
        walk = self._trace_from(corner, walk, runs)
        runs.add_run(QUERY_ALONE, walk.row)
        runs.add_run(TARGET_ALONE, walk.column)
        return runs.joined()

    def _walk_ahead(self, stretch: range) -> tuple[Walk, Walked]:
        """A walk through a stretch of lines, as far as it comes, from the best cell of the line before; where it begins."""
        begin, above = self._start, stretch[0] + 1
        if above < self._kept.used[0] and self._kept.about[above, 0] < begin.row + begin.column:
            line = self._line(above)
            k, score = _highest(line.values, line.size, line.score)
            begin = Walk(line.first + k, line.line - line.first - k, AT_CELL, score)
        return begin, self._steps(stretch, begin)

    def _steps(self, stretch: range, walk: Walk) -> Walked:
        """Steps to the lines of a stretch, as far as the room for them suffices."""
        n, kept = len(stretch), self._kept
        walked = Walked(np.empty((n, 4), np.int64), np.empty(RUNS, np.uint32), np.empty(n, np.int64))
        moves = np.empty(MOVES, kept.values.dtype)
        n = walk_lines(self._frame, self._sides, kept.about, kept.values, stretch[0], walk, moves, walked)
        return Walked(walked.cells[:n], walked.runs[: walked.sizes[:n].sum()].copy(), walked.sizes[:n])

    def _join(self, known: tuple[Walk, Walked], stretch: range, walk: Walk, runs: Runs) -> tuple[Walk, range]:
        """Walk until what was walked ahead is met, and take that; where the walk stands, and the lines that are left."""
        begin, (cells, ahead, sizes) = known
        for k in range(len(cells)):
            if walk == (Walk(*cells[k - 1].tolist()) if k else begin):
                runs.add(ahead[sizes[:k].sum() :])
                return Walk(*cells[-1].tolist()), stretch[len(cells) :]
            walk, _ = self._go_on(stretch[k : k + 1], walk, runs)
        return walk, stretch[len(cells) :]

    def _go_on(self, stretch: range, walk: Walk, runs: Runs) -> tuple[Walk, range]:
        """Walk to some lines of a stretch, or to the first one at least; where the walk stands, and the lines left."""
        walked = self._steps(stretch, walk)
        runs.add(walked.runs)
        if len(walked.cells):
            return Walk(*walked.cells[-1].tolist()), stretch[len(walked.cells) :]
        return self._trace_from(self._line(stretch[0]), walk, runs), stretch[1:]

    def _line(self, k: int) -> Line:
        return line_at(self._kept.about, self._kept.values, k)

    def _trace_from(self, line: Line, walk: Walk, runs: Runs) -> Walk:
        """Walk back to a line, or one line more, or the matrix's border; where the walk stands then."""
        end = walk.row + walk.column
        n_lines = end - line.line
        if n_lines <= 0 or not walk.row or not walk.column:
            return walk
        limits = _limits(self._frame, line.values, *line[:4], walk)
        if limits[0] < 0:
            raise AssertionError(f"no path leads from line {line.line} to row {walk.row}, column {walk.column}")
        part = _cut(self._frame, line.line, line.size, line.first, line.values, walk, limits)
        if n_lines > MOST_LINES:
            middle = line.line + n_lines // 2
            first, last, score = advance(self._sides, part, middle, line.values[:0], 0)
            walk = self._trace_from(_line_of(part, middle, first, last, score), walk, runs)
            return self._trace_from(line, walk, runs)
        moves = np.empty(n_lines * (walk.row - part.low + 1 + LANES), line.values.dtype)
        out = np.empty(n_lines, np.uint32)
        n, walk = _walk_through(self._frame, self._sides, part, walk, moves, out)
        runs.add(out[:n])
        return Walk(*walk)


@njit
def _highest(values, n, score):
    """The first cell of a kept line that has the highest score, and that score; values, n, score : as in Line."""
    at, best = 0, score
    for k in range(1, n):
        score += np.int64(values[k]) - np.int64(values[2 * n + k - 1])
        if score > best:
            at, best = k, score
    return at, best


@njit
def walk_lines(m, sides, about, values, at, walk, moves, walked):
    """Walk from a cell to kept lines, one after the other, as far as the room suffices; the number of steps.

    m, sides : Frame, Sides.  about, values : as in Kept.  at : number of the first line to walk to; the others lie before.
    walk : Walk.  moves : (any,) in the cells' type, scratch.  walked : Walked, filled.
    """
    used = 0
    for n in range(len(walked.cells)):
        line, first, size, score, place = about[at - n]
        n_runs, n_lines = 0, walk.row + walk.column - line
        if n_lines > 0 and walk.row > 0 and walk.column > 0:
            if used + n_lines > len(walked.runs):
                return n
            its_values = values[place : place + 4 * size]
            limits = _limits(m, its_values, line, first, size, score, walk)
            if limits[0] < 0 or n_lines * (walk.row - limits[0] + 1 + LANES) > len(moves):
                return n
            part = _cut(m, line, size, first, its_values, walk, limits)
            n_runs, walk = _walk_through(m, sides, part, walk, moves, walked.runs[used:])
        used += n_runs
        stands, walked.sizes[n] = walked.cells[n], n_runs
        stands[0], stands[1], stands[2], stands[3] = walk.row, walk.column, walk.at, walk.score
    return len(walked.cells)


@njit
def _walk_through(m, sides, part, walk, moves, out):
    """Compute a part, and walk back through it; number of runs, and where the walk stands.

    m, sides, part, walk : Frame, Sides, Part, Walk.  moves : (any,) in the cells' type, scratch.  out : (any,) uint32,
    filled.
    """
    end, width = walk.row + walk.column, walk.row - part.low + 1 + LANES
    moves = moves[: (end - part.line) * width]
    advance(sides, part, end, moves, width)
    of_lines = moves.reshape((end - part.line, width))
    n, row, column, at = walk_back(of_lines, part.line, part.low, walk.row, walk.column, walk.at, out)
    gain = _gain(m, out[:n], row, column)
    if walk.at != AT_CELL and operation_of(out[0]) == (TARGET_ALONE if walk.at == IN_TARGET else QUERY_ALONE):
        gain += m.open  # it goes on from the last part, where it was paid
    return n, Walk(row, column, at, walk.score - gain)


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


@njit
def _cut(m, line, size, first, values, walk, limits):
    """The Part from a kept line to where a walk stands, still to be computed.

    m : Frame.  line, size, first, values : of a Line.  walk : Walk.  limits : as `_limits` has them.
    """
    row, column, (low, last, score, least, most) = walk.row, walk.column, limits
    n, skip, first_column = last - low + 1, low - first, line - last
    down, across = row - low + 1 + LANES, column - first_column + 1 + LANES
    cell = values.dtype
    d = Differences(np.zeros(down, cell), np.zeros(down, cell), np.zeros(across, cell), np.zeros(across, cell))
    begin = column - (line - low)
    for k in range(n):
        d.u[k], d.y[k] = values[skip + k], values[size + skip + k]
        d.v[begin + k], d.x[begin + k] = values[2 * size + skip + k], values[3 * size + skip + k]
    begin = len(m.column_bound) - 1 - column
    codes = Codes(m.codes.query[low : row + 1 + LANES], m.codes.target[begin : begin + across])
    return Part(codes, d, line, low, last, score, row, column, least, most)


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

    moves : (lines, width), of the lines after `line` and the rows from `low` on, which a walk from a true score does not
    leave.  out : (any,) uint32, runs, filled.
    """
    n = np.int64(0)
    while i + j > line and i > 0 and j > 0 and i >= low:
        move = moves[i + j - line - 1, i - low]
        if at == IN_TARGET and not move & TARGET_GAP_GOES_ON or at == IN_QUERY and not move & QUERY_GAP_GOES_ON:
            at = AT_CELL
        if at == AT_CELL:
            at = IN_TARGET if move & IN_TARGET_GAP else IN_QUERY if move & IN_QUERY_GAP else AT_CELL
        n = add_base(out, n, np.int64(PAIR if at == AT_CELL else TARGET_ALONE if at == IN_TARGET else QUERY_ALONE))
        i -= at != IN_TARGET
        j -= at != IN_QUERY
    return n, i, j, at
