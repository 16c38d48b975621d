"""Paths out of special rows: strips between two of them are computed again, in narrow bands, and traced.

Everything here runs in the backward matrix: both sequences are read from where the alignment ends, so that row and column 0
are its end and a walk back through the matrix goes along the alignment from its start.  Of equally good alignments the walk
takes, at every cell, a gap before a pair of bases, a gap that leaves target bases out before one that leaves query bases
out, and ends a gap as soon as it can.  Gaps stand as far left as they go.

Several threads trace at the same time: each begins at the best cell of a kept row, since the path most likely runs there or
meets its walk soon.  How a walk goes on depends on the cell where it stands and on nothing else.  So from the first cell on
that both walks have come to, what was traced ahead is the path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import NamedTuple, Protocol

import numpy as np

from bellapy.compute.runs import QUERY_ALONE, TARGET_ALONE
from bellapy.compute.threads import map_in_order
from bellapy.engines.exact.band import cell_type, raised_scores
from bellapy.engines.exact.cpu import Sweep, end_borders
from bellapy.engines.exact.line_paths import Walked
from bellapy.engines.exact.path import Runs
from bellapy.engines.exact.rule import Scores
from bellapy.engines.exact.strips import (
    Cell,
    LostPath,
    Strip,
    Top,
    Windows,
    find_strip,
    n_moves,
    scores_between,
    walk_strip,
    walk_windows,
)

DIRECT_MOVES, DIRECT_ROWS = 1 << 26, 64  # a strip that needs more moves, and has more rows, is cut in two
WINDOW_RUNS = 1 << 15  # of a stretch between windows
STRETCH = 16  # strips that are traced ahead by one thread
THREADS = 8  # more of them would wait for Python most of the time


class Rooms:
    """Memory for moves, one piece for each thread, which is used again: to take it anew for every strip is slow."""

    def __init__(self, scores: Scores):
        self._free: deque[np.ndarray] = deque()
        self._cell = cell_type(scores)

    def take(self, n: int) -> np.ndarray:
        """(n or more,) of the cells' type."""
        try:
            moves = self._free.pop()
        except IndexError:
            moves = np.zeros(0, self._cell)
        return moves if len(moves) >= n else np.zeros(n, self._cell)

    def give_back(self, moves: np.ndarray) -> None:
        self._free.append(moves)


class Space(NamedTuple):
    """A backward matrix: codes from the alignment's end on.  rooms : for what is traced."""

    query: np.ndarray
    target: np.ndarray
    scores: Scores
    rooms: Rooms


class Rows(Protocol):
    """Rows of a backward matrix whose scores were kept.

    rows : their numbers.  windows : parts of them that are at hand, if any are.
    """

    rows: np.ndarray
    windows: Windows | None

    def get(self, row: int, n_columns: int, goal: Cell) -> tuple[int, np.ndarray, np.ndarray]: ...

    def highest(self, row: int) -> tuple[int, int]: ...


class Step(NamedTuple):
    """A walk through one strip: where it begins, the path, where it comes to."""

    begin: Cell
    runs: Runs
    end: Cell


class _Walker(NamedTuple):
    """What walks go by.

    rows : numbers of rows to walk to, row 0 first.  start : where the path begins.
    """

    space: Space
    special: Rows
    rows: list[int]
    start: Cell

    def step(self, k: int, begin: Cell) -> Step:
        """Walk up to rows[k]."""
        row, scores, runs = self.rows[k], self.space.scores, Runs()
        if k:
            top = _with_border(scores, row, Top(*self.special.get(row, self.start.column, begin)))
        else:
            above = end_borders(scores, 0, begin.column).top
            top = Top(0, above, above - np.int32(scores.first))
        return Step(begin, runs, _cross(self.space, row, top, begin, runs))

    def walk(self, stretch: range, begin: Cell, steps: list[Step]) -> None:
        """Add the steps from a cell to the rows of a stretch to `steps`."""
        while stretch:
            found = self._steps_by_windows(stretch, begin)
            steps += found
            if len(found) < len(stretch):
                steps.append(self.step(stretch[len(found)], found[-1].end if found else begin))
            stretch, begin = stretch[len(found) + 1 :], steps[-1].end

    def walk_ahead(self, stretch: range) -> list[Step]:
        """Steps to the rows of a stretch from the best cell of the row before, as far as they lead."""
        begin = self._begin(stretch[0] + 1)
        steps: list[Step] = []
        try:
            self.walk(stretch if begin.column <= self.start.column else stretch[:0], begin, steps)
        except LostPath:
            pass
        return steps

    def stretches(self, ahead: bool) -> list[range]:
        """Ranges of rows to walk to, one after the other; ahead : several threads walk.

        Then each begins at a row up to which the highest score has risen, since the best cell is most likely on the path
        there.  Where it falls, the path has a lower score, since it goes through a long gap, or did so before.
        """
        stretches, k = [], len(self.rows) - 1
        while k >= 0:
            last = max(0, k - STRETCH + 1)
            while ahead and last > 1 and not self._has_risen(last):
                last -= 1
            last = last if last > 1 else 0
            stretches.append(range(k, last - 1, -1))
            k = last - 1
        return stretches

    def _has_risen(self, k: int) -> bool:
        """Whether the highest score of rows[k] is higher than that of the row before, by half of what is possible."""
        row, before = self.rows[k], self.rows[k - 1]
        by = self.special.highest(row)[1] - self.special.highest(before)[1]
        return 2 * by >= self.space.scores.match * (row - before)

    def _begin(self, k: int) -> Cell:
        """The best cell of rows[k]; or the path's first one, if there are not so many rows."""
        if k == len(self.rows):
            return self.start
        column, score = self.special.highest(self.rows[k])
        return Cell(self.rows[k], column, False, score)

    def _steps_by_windows(self, stretch: range, begin: Cell) -> list[Step]:
        """Steps as far as the windows suffice."""
        windows, scores, n = self.special.windows, self.space.scores, len(stretch) - (stretch[-1] == 0)
        if windows is None or not n:
            return []
        walked = Walked(np.empty((n, 4), np.int64), np.empty(WINDOW_RUNS, np.uint32), np.empty(n, np.int64))
        moves = self.space.rooms.take(DIRECT_MOVES)
        raised, at = raised_scores(scores, moves.dtype), stretch[0] - 1
        n = walk_windows(self.space.query, self.space.target, windows, at, begin, scores, raised, moves, walked)
        self.space.rooms.give_back(moves)
        steps, parts = [], np.split(walked.runs, np.cumsum(walked.sizes[:n]))
        for (row, column, in_gap, score), runs in zip(walked.cells[:n].tolist(), parts[:n], strict=True):
            steps.append(Step(begin, Runs(runs), Cell(row, column, bool(in_gap), score)))
            begin = steps[-1].end
        return steps


def trace_path(space: Space, sweep: Sweep, start: Cell, watch: Callable[[float], None], threads: int = 1) -> np.ndarray:
    """The path from `start` to the corner of the backward matrix, as Runs has it.

    sweep : of the backward matrix, with its special rows.  watch : is told the share that is done.
    """
    special: Rows = sweep.special_rows()
    rows = [0, *special.rows[special.rows < start.row].tolist()] if start.row else []
    walker, runs, cell = _Walker(space, special, rows, start), Runs(), start
    stretches = walker.stretches(threads > 1)
    for stretch, ahead in zip(stretches, _walks_ahead(walker, stretches, threads), strict=True):
        steps: list[Step] = []
        for k, known in zip(stretch, ahead, strict=False):
            steps.append(known if known.begin == cell else walker.step(k, cell))
            cell = steps[-1].end
        walker.walk(stretch[len(ahead) :], cell, steps)
        for step in steps:
            runs.extend(step.runs)
        cell = steps[-1].end
        watch(1 - cell.row / start.row)
    runs.add_run(TARGET_ALONE, cell.column)
    return runs.joined()


def _walks_ahead(walker: _Walker, stretches: list[range], threads: int) -> Iterator[list[Step]]:
    """What is walked ahead of each stretch, all of them as soon as threads are free; nothing by one thread."""
    if threads <= 1:
        return repeat([], len(stretches))
    return map_in_order(walker.walk_ahead, stretches, min(threads, THREADS), begun_ahead=len(stretches))


def _with_border(scores: Scores, row: int, top: Top) -> Top:
    """With column 0, one gap from the corner on, which special rows leave out, if the column beside it is there."""
    if top.first != 1:
        return top
    border, below = -scores.gap(np.array([row, row + 1]))
    high, gap = (np.concatenate((np.array([x], np.int32), xs)) for x, xs in ((border, top.high), (below, top.gap)))
    return Top(0, high, gap)


def _cross(space: Space, row: int, top: Top, end: Cell, runs: Runs) -> Cell:
    """Trace from `end` up to `row`, whose scores are known."""
    top = top.cut(end.column)
    strip = find_strip(space.scores, row, top, end)
    if n_moves(strip) <= DIRECT_MOVES or end.row - row <= DIRECT_ROWS:
        return _trace_strip(space, strip, top, end, runs)
    return _divide(space, strip, top, end, runs)


def _trace_strip(space: Space, strip: Strip, top: Top, end: Cell, runs: Runs) -> Cell:
    """Compute a strip, and walk back from `end` to its row."""
    scores, moves = space.scores, space.rooms.take(n_moves(strip))
    raised = raised_scores(scores, moves.dtype)
    score, i, j, in_gap, walked = walk_strip(space.query, space.target, strip, top, end.in_gap, scores, raised, moves)
    space.rooms.give_back(moves)
    if score != end.score and not end.in_gap:
        raise LostPath(f"row {end.row}, column {end.column}: score {score}, not {end.score}")
    if i and strip.left:
        raise LostPath(f"no path leads from row {strip.row} to row {end.row}, column {end.column}")
    runs.add(walked)
    runs.add_run(QUERY_ALONE, i)  # along column 0
    return top.cell(strip.row, strip.left + j, in_gap or i > 0, scores)


def _divide(space: Space, strip: Strip, top: Top, end: Cell, runs: Runs) -> Cell:
    """Cut a strip by a row in the middle, and cross both parts."""
    row, scores, cells = (strip.row + end.row) // 2, space.scores, np.zeros(0, cell_type(space.scores))
    raised = raised_scores(scores, cells.dtype)
    (high, gap), first = scores_between(space.query, space.target, strip, top, scores, raised, cells, row)
    end = _cross(space, row, _with_border(scores, row, Top(int(first), high, gap)), end, runs)
    return _cross(space, strip.row, top, end, runs)
