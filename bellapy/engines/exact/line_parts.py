"""Many lines of a narrow band at the same time: parts that threads compute, each from a line of its own making.

What lies far behind hardly matters for differences of scores: all best paths to a line's cells soon have one cell in common.
So a part begins with a line whose scores are all equal.  Then the lines after the true one are computed, until one of them
has the same differences as a line that the part has kept.  From there on the part is true (docs/exact.md).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import map_threads
from bellapy.engines.exact.antidiagonals import LANES, Codes
from bellapy.engines.exact.heights import NO_BLOCKS
from bellapy.engines.exact.line_state import (
    CELLS,
    FIRST,
    LAST,
    LINE,
    ROWS,
    Frame,
    Line,
    line_at,
    make_room,
    new_kept,
    new_state,
    room_for_line,
)  # fmt: skip
from bellapy.engines.exact.lines import begin_at, run_lines

PART_LINES = 1 << 18  # of a part, at least
PARTS_AT_ONCE = 4  # for each thread, at most
SEAM = 1 << 12  # lines between those that are compared, if none are kept for a path
LINE_COST = 256  # cells that take as long as a line does beside its cells
WIDEST = 1 << 13  # rows of a line; wider ones leave much to be given up by their scores
GAIN = 1.5  # times less work for each thread, at least
ANY = -(1 << 60)  # a score that is always reached


class Part(NamedTuple):
    """Lines of a part, as they are kept; the last one ends it.

    about, values : as in Kept.  row : the first one that `reach` is about; reach : as in State.  cells : that were computed.
    """

    about: np.ndarray
    values: np.ndarray
    row: int
    reach: np.ndarray
    cells: int

    def line(self, k: int) -> Line:
        """Number k of the kept lines."""
        return line_at(self.about, self.values, k)

    def raised(self, by: int) -> Part:
        """The same with scores higher by a number."""
        return self._replace(about=self.about + np.array([0, 0, 0, by, 0]))


class _Run:
    """Lines from one on to another one, in a matrix of their own that holds what they may touch."""

    def __init__(self, frame: Frame, start: Line, stop: int):
        self._row = row = (start.first - 1) // ROWS * ROWS
        left = start.line - start.first - start.size  # of all columns; the border is not among them
        self._column = column = left - (row + left) % frame.every
        n, m = len(frame.row_bound) - 1, len(frame.column_bound) - 1
        end_row, end_column = min(n, start.first + start.size + stop - start.line), min(m, stop - start.first)
        rows, columns, codes = end_row - row, end_column - column, frame.codes
        self._frame = frame._replace(
            codes=Codes(codes.query[row : end_row + 1 + LANES], codes.target[m - end_column : m - column + 1 + LANES]),
            first=frame.first[row // ROWS :] - np.int32(column), last=frame.last[row // ROWS :] - np.int32(column),
            row_bound=frame.row_bound[row : end_row + 1], column_bound=frame.column_bound[column : end_column + 1],
        )  # fmt: skip
        cell = codes.query.dtype
        self._state, self._kept = new_state(rows, columns, cell, ANY, False, False), new_kept(16, 1 << 14, cell)
        begin_at(self._frame, self._state, start.line - row - column, start.first - row, *start[2:])

    def go_to(self, line: int) -> bool:
        """Compute lines up to one; whether the band is still there."""
        now, line = self._state.now, line - self._row - self._column
        while now[LINE] < line and now[FIRST] <= now[LAST]:
            run_lines(self._frame, self._state, self._kept, line)
            if now[LINE] < line:
                make_room(self._kept, 1, room_for_line(self._state))
        return bool(now[FIRST] <= now[LAST])

    def last(self) -> Line:
        """The last line that was kept."""
        its = line_at(self._kept.about, self._kept.values, self._kept.used[0] - 1)
        return its._replace(line=its.line + self._row + self._column, first=its.first + self._row)

    def done(self) -> Part:
        """What was computed, in numbers of the whole matrix."""
        lines, values = self._kept.used.tolist()
        about = self._kept.about[:lines] + np.array([self._row + self._column, self._row, 0, 0, 0])
        first, last = self._state.reach.T
        columns = len(self._frame.column_bound) - 1
        first = np.where(first <= columns, first + self._column, np.iinfo(np.int32).max)
        reach = np.stack([first, np.where(last >= 0, last + self._column, -1)], axis=1).astype(np.int32)
        return Part(about, self._kept.values[:values], self._row, reach, int(self._state.now[CELLS]))


@njit
def rows_at(first, last, line):
    """The first and the last row that a corridor leaves to a line, as long as no scores are known; first, last : of a Frame.

    Both do not fall, but for rows at the end of which the corridor leaves nothing.
    """
    begin, end = 0, len(first)  # of the rows that enter it before the line, in blocks
    while begin < end:
        middle = (begin + end) // 2
        if first[middle] <= last[middle] and middle * ROWS + 1 + first[middle] <= line:
            begin = middle + 1
        else:
            end = middle
    high = max(begin - 1, 0)
    begin, end = 0, high  # of those that have left it
    while begin < end:
        middle = (begin + end) // 2
        if (middle + 1) * ROWS + last[middle] < line:
            begin = middle + 1
        else:
            end = middle
    return max(begin * ROWS + 1, line - last[begin]), min((high + 1) * ROWS, line - first[high])


def cuts_of(frame: Frame, start: Line, stop: int, threads: int) -> list[int]:
    """Lines at which parts begin and end, as `leap` has them; none if threads save no time.

    start : the first line.  stop : that is not gone beyond.

    Parts do not give up rows by their scores.  Where this leaves much less than the corridor, one thread is as fast.
    """
    every = frame.every
    stop = min(stop, start.line + PARTS_AT_ONCE * threads * max(PART_LINES, every)) // every * every
    n = (stop - start.line) // max(PART_LINES, every)
    if n < 2 or start.first < 1 or start.line - start.first - start.size < every:
        return []
    cuts = [start.line, *(start.line + (stop - start.line) * (k + 1) // n // every * every for k in range(n))]
    widths = [last - first + 1 for first, last in (rows_at(frame.first, frame.last, line) for line in cuts)]
    if max(widths) > WIDEST or (start.size + LINE_COST) * min(n, threads) < GAIN * (widths[0] + LINE_COST):
        return []
    return cuts


def _starts(frame: Frame, start: Line, cuts: list[int]) -> list[Line]:
    """The line that each part begins with: `start`, and lines of equal scores."""
    starts, cell, n_rows = [start], start.values.dtype, len(frame.row_bound) - 1
    for line in cuts[1:-1]:
        first, last = rows_at(frame.first, frame.last, line)
        first = max(first, start.first)
        last = min(last, line - (start.line - start.first - start.size + 1), n_rows)  # the last block may not be full
        n = max(0, last - first + 1)
        equal, no_gap = np.full(n, frame.plain.first, cell), np.zeros(n, cell)
        starts.append(Line(line, first, n, 0, np.concatenate((equal, no_gap, equal, no_gap))))
    return starts


def leap(frame: Frame, start: Line, cuts: list[int], threads: int) -> list[Part]:
    """The lines from one on, in parts; none if the band comes to its end.

    cuts : lines between which parts are, the first one that of `start`, the others multiples of `frame.every`.
    """
    frame = frame._replace(floor=False, seek=False, keep_ends=False, blocks=NO_BLOCKS)
    starts = _starts(frame, start, cuts)
    if min(line.size for line in starts) < 1:
        return []

    def compute(task: tuple[Line, int]) -> Part | None:
        run = _Run(frame, *task)
        return run.done() if run.go_to(task[1]) else None

    def mend(two: tuple[Part, Part]) -> Part | None:
        return _mended(frame, two[0].line(-1), two[1])

    assumed = [part for part in map_threads(compute, zip(starts, cuts[1:], strict=True), threads) if part]
    if len(assumed) < len(starts):
        return []
    parts, mended = assumed[:1], map_threads(mend, pairwise(assumed), threads)
    for (before, after), part in zip(pairwise(assumed), mended, strict=True):
        thought, true = before.line(-1), parts[-1].line(-1)
        part = part and part.raised(true.score - thought.score) if _is_same(thought, true) else mend((parts[-1], after))
        if not part:
            return []
        parts.append(part)
    return parts


def _is_same(one: Line, other: Line) -> bool:
    """Whether two lines lead to the same differences."""
    return one[:3] == other[:3] and np.array_equal(one.values, other.values)


def _mended(frame: Frame, start: Line, part: Part) -> Part | None:
    """A part as it is if it begins with a line; None if the band comes to its end."""
    run = _Run(frame, start, int(part.about[-1, 0]))
    for k, line in enumerate(part.about[:, 0].tolist()):
        if not run.go_to(line):
            return None
        if _is_same(run.last(), part.line(k)):
            break
    return _followed(run.done(), part, k + 1)


def _followed(one: Part, other: Part, k: int) -> Part:
    """A part that goes on as another one does after its line k - 1, which both have."""
    begin = other.about[k, 4] if k < len(other.about) else len(other.values)
    about = other.about[k:] + np.array([0, 0, 0, one.about[-1, 3] - other.about[k - 1, 3], len(one.values) - begin])
    rows = max(one.row + len(one.reach), other.row + len(other.reach))
    row = min(one.row, other.row)
    reach = no_reach(rows - row)
    for part in (one, other):
        add_reach(reach[part.row - row :], part.reach)
    return Part(
        np.concatenate((one.about, about)), np.concatenate((one.values, other.values[begin:])), row, reach,
        one.cells + other.cells,
    )  # fmt: skip


def no_reach(rows: int) -> np.ndarray:
    """Of rows of which nothing was computed."""
    return np.tile(np.array([np.iinfo(np.int32).max, -1], np.int32), (rows, 1))


def add_reach(reach: np.ndarray, other: np.ndarray) -> None:
    """Add what was computed to what else was, of the first rows; both as in State."""
    rows = reach[: len(other)]
    np.minimum(rows[:, 0], other[:, 0], out=rows[:, 0])
    np.maximum(rows[:, 1], other[:, 1], out=rows[:, 1])
