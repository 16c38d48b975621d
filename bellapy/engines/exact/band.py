"""The sweep over a narrow part of a matrix, line by line (anti-diagonals); the same scores as `cpu.Sweep`.

Where few tiles lie on a wavefront, most lanes of `cpu.Sweep` idle.  Here a line's cells fill the lanes, and rows are given
up as soon as their scores allow.  Some lines are kept; the path is traced between them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from bellapy.engines.exact.antidiagonals import LANES, Codes, Plain, Raised
from bellapy.engines.exact.cpu import Ends, Task
from bellapy.engines.exact.line_parts import SEAM, add_reach, cuts_of, leap, rows_at
from bellapy.engines.exact.line_paths import AT_CELL, Tracer, Walk
from bellapy.engines.exact.line_state import (
    CELLS,
    CHECKS,
    FIRST,
    IS_WHOLE,
    LAST,
    LINE,
    ROWS,
    Frame,
    Line,
    make_room,
    new_kept,
    new_state,
    room_for_line,
)  # fmt: skip
from bellapy.engines.exact.lines import begin_at, begin_lines, put_in_order, run_lines
from bellapy.engines.exact.rule import BEYOND_QUERY, BEYOND_TARGET, NONE, Scores

EVERY = 512  # lines between kept ones, as long as memory allows
STRETCH = 1 << 14  # lines between two signs of progress


def cell_type(scores: Scores) -> np.dtype:
    """The narrowest type that holds differences of neighbouring cells."""
    largest = scores.match + 2 * scores.first + scores.gap_open
    return np.dtype(np.uint8 if largest <= 0xFF else np.uint16)


def padded_codes(query: np.ndarray, target: np.ndarray, cell: np.dtype) -> Codes:
    """Codes of two sequences as lines want them."""
    n, m = len(query), len(target)
    rows, columns = np.full(n + 1 + LANES, BEYOND_QUERY, cell), np.full(m + 1 + LANES, BEYOND_TARGET, cell)
    rows[1 : n + 1], columns[:m] = query, target[::-1]
    return Codes(rows, columns)


def raised_scores(scores: Scores, cell: np.dtype) -> Raised:
    """Scores in the cells' type."""
    raise_by, worst = 2 * scores.first, max(scores.mismatch, -2 * scores.first)
    most = scores.match + raise_by
    return Raised(*(cell.type(x) for x in (most, worst + raise_by, scores.gap_open, most)))


def is_connected(first: np.ndarray, last: np.ndarray) -> bool:
    """Whether intervals of columns leave one region, so that a band can follow it; it has to begin in the first rows."""
    there = np.flatnonzero(first <= last)
    if not len(there) or there[0] or there[-1] + 1 != len(there):
        return False
    n = len(there)
    return bool((last[: n - 1] >= first[1:n]).all())


class BandSweep(Ends):
    """A sweep that can be stopped, kept and continued; `run` until it is done.

    task : its bounds go by ROWS rows, and `is_connected`.  budget : bytes that kept lines may take; where they would take
    more, every other one is dropped.
    """

    def __init__(self, task: Task, budget: int = 1 << 28, keep_ends: bool = False):
        self.task, self._budget = task, budget
        n, m = len(task.query), len(task.target)
        cell = cell_type(task.scores)
        self._frame = self._make_frame(cell, keep_ends)
        self._state = new_state(n, m, cell, task.known, task.floor or task.seek or keep_ends, keep_ends)
        if keep_ends:
            self._state.last_row[0], self._state.last_column[0] = task.borders.left[-1], task.borders.top[-1]
        self._kept = new_kept(1024 if task.every else 1, 0, cell)
        begin_lines(self._frame, self._state)
        there = np.flatnonzero(task.bounds.first <= task.bounds.last)[-1:]
        self._last_line = int((ROWS * (there + 1) + task.bounds.last[there]).sum())  # that the corridor leaves

    def _make_frame(self, cell: np.dtype, keep_ends: bool) -> Frame:
        task, scores = self.task, self.task.scores
        first, lowest = np.int32(scores.first), np.int32(0 if task.floor else NONE)
        plain = Plain(np.int32(scores.match), np.int32(scores.mismatch), first, np.int32(scores.gap_extend), lowest)
        row_bound, column_bound = task.bounds.query.copy(), task.bounds.target.copy()
        for bound in (row_bound, column_bound):
            put_in_order(bound)
        every = -(-task.every // CHECKS[1]) * CHECKS[1]
        return Frame(
            padded_codes(task.query, task.target, cell), raised_scores(scores, cell), plain, *task.borders,
            task.bounds.first, task.bounds.last, row_bound, column_bound, task.bounds.blocks, task.floor, task.seek,
            keep_ends, scores.gap_open, every,
        )  # fmt: skip

    def _make_room(self) -> None:
        """Room for another kept line: more memory, or as many again by dropping every other line."""
        needed, (lines, values) = room_for_line(self._state), self._kept.used.tolist()
        if self._is_beyond(max(5 * len(self._kept.values) // 4, values + needed)) and lines > 1:
            self._keep_fewer()
        else:
            make_room(self._kept, 1, needed)

    def _is_beyond(self, values: int) -> bool:
        """Whether so many values take more than they may."""
        return values * self._kept.values.itemsize > self._budget

    def _keep_fewer(self) -> None:
        """Drop every other line that was kept, and keep half as many from now on."""
        kept, lines = self._kept, int(self._kept.used[0])
        self._frame = self._frame._replace(every=2 * self._frame.every)
        self._kept = new_kept(len(kept.about), len(kept.values), kept.values.dtype)
        for about in kept.about[:lines][kept.about[:lines, 0] % self._frame.every == 0]:
            self._keep(np.append(about[:4], 0)[None], kept.values[about[4] : about[4] + 4 * about[2]])

    def _keep(self, about: np.ndarray, values: np.ndarray) -> None:
        """Keep more lines, for which there is room; about, values : as in Kept."""
        at, begin = self._kept.used.tolist()
        self._kept.about[at : at + len(about)] = about + np.array([0, 0, 0, 0, begin])
        self._kept.values[begin : begin + len(values)] = values
        self._kept.used[:] = at + len(about), begin + len(values)

    @property
    def _n_lines(self) -> int:
        return len(self.task.query) + len(self.task.target)

    @property
    def done(self) -> bool:
        now = self._state.now
        return bool(now[LINE] == self._n_lines or now[FIRST] > now[LAST])

    @property
    def n_cells(self) -> int:
        """Cells computed so far."""
        return int(self._state.now[CELLS])

    @property
    def share_done(self) -> float:
        """The share of the lines that are done."""
        return 1.0 if self.done else float(self._state.now[LINE] / self._n_lines)

    def run(self, threads: int = 1, seconds: float | None = None) -> None:
        """Go on until the sweep is done, or for about so many seconds, but for some lines at least."""
        stop = None if seconds is None else time.monotonic() + seconds
        now = self._state.now
        while not self.done:
            before = int(now[LINE])
            if threads == 1 or not self._leap(threads):
                end = before + STRETCH if stop or threads > 1 else self._n_lines
                run_lines(self._frame, self._state, self._kept, end)
            if now[LINE] == before and not self.done:
                self._make_room()
            if stop is not None and time.monotonic() >= stop:
                break
        if self.done:
            self._finish()

    def _leap(self, threads: int) -> bool:
        """Compute many lines by threads; False if that would save no time."""
        s, now, stop = self._state, self._state.now, self._end_of_differences()
        frame = self._frame if self._frame.every else self._frame._replace(every=SEAM)
        if not (start := self._line()) or not (cuts := cuts_of(frame, start, stop, threads)):
            return False
        widths = [last - first + 1 for first, last in (rows_at(frame.first, frame.last, line) for line in cuts)]
        lines, used = (cuts[-1] - cuts[0]) // frame.every, self._kept.used.tolist()
        if self._frame.every and used[0] > 1 and self._is_beyond(used[1] + 4 * sum(widths) * lines // len(widths)):
            self._keep_fewer()
            return self._leap(threads)
        parts = leap(frame, start, cuts, threads)
        for part in parts:
            now[CELLS] += part.cells
            add_reach(s.reach[part.row :], part.reach)
            if self._frame.every:
                make_room(self._kept, len(part.about), len(part.values))
                self._keep(part.about, part.values)
        if parts:
            begin_at(self._frame, s, *parts[-1].line(-1))
        return bool(parts)

    def _line(self) -> Line | None:
        """The last line, unless it is in whole scores."""
        s, now = self._state, self._state.now
        if now[IS_WHOLE]:
            return None
        line, first, last = (int(now[x]) for x in (LINE, FIRST, LAST))
        rows, columns = (slice(at, at + last - first + 1) for at in (first, len(self.task.target) - line + first))
        values = np.concatenate((s.d.u[rows], s.d.y[rows], s.d.v[columns], s.d.x[columns]))
        return Line(line, first, last - first + 1, int(s.w.high[line % 3, first + 1]), values)

    def _end_of_differences(self) -> int:
        """A line up to which differences suffice, whatever scores are found on the way."""
        s, (line, first, last) = self._state, (int(self._state.now[x]) for x in (LINE, FIRST, LAST))
        end = min(self._n_lines - 1, self._last_line)
        if self._frame.keep_ends:
            end = min(end, line + min(len(self.task.query) - last, len(self.task.target) - line + first) - CHECKS[1])
        if self._frame.seek:
            best = max(s.w.high[line % 3, first + 1 : last + 2].max(), s.w.high[(line - 1) % 3, first : last + 2].max())
            end = min(end, line + 2 * (int(s.best[0] - best) // self.task.scores.match - 2))
        return end

    def _finish(self) -> None:
        now, reach = self._state.now, self._state.reach
        if now[FIRST] <= now[LAST]:
            rows = np.arange(now[FIRST], now[LAST] + 1)
            reach[rows, 1] = now[LINE] - rows
            self._state.last_row[-1] = self._state.w.high[now[LINE] % 3, len(self.task.query) + 1]

    @property
    def best(self) -> np.ndarray:
        """(3,) int64: score, row and column of the best cell; row -1: none reaches the known score."""
        return self._state.best

    @property
    def reach(self) -> np.ndarray:
        """(n_blocks, 2) int32: first and last computed square of ROWS rows and columns in each row of squares; -1: none."""
        computed = self._state.reach[1:]
        edges = np.arange(0, len(computed), ROWS)
        first, last = np.minimum.reduceat(computed[:, 0], edges), np.maximum.reduceat(computed[:, 1], edges)
        n_squares = -(-len(self.task.target) // ROWS)
        first = np.where(last >= 0, np.maximum(0, first - 1) // ROWS, n_squares)
        return np.stack([first, np.where(last >= 0, np.maximum(0, last - 1) // ROWS, -1)], axis=1).astype(np.int32)

    def trace(self, row: int, column: int, score: int, watch: Callable[[float], None], threads: int = 1) -> np.ndarray:
        """The path from a cell back to the matrix's corner, as Runs has it.

        score : of the cell.  watch : is told the share that is done.
        """
        return Tracer(self._frame, self._kept, Walk(row, column, AT_CELL, score)).trace(watch, threads)

    def state(self) -> dict[str, np.ndarray]:
        """All that changes, to go on from here another time with `restore`."""
        s, (lines, values) = self._state, (int(x) for x in self._kept.used)
        arrays = s.d._asdict() | s.w._asdict() | s._asdict()
        return {name: value for name, value in arrays.items() if name not in ("d", "w")} | {
            "step": s.now[LINE], "every": np.array(self._frame.every),
            "kept_about": self._kept.about[:lines], "kept_values": self._kept.values[:values],
        }  # fmt: skip

    def restore(self, state) -> None:
        """Go on from a `state` of a sweep of the same task."""
        for key, value in self.state().items():
            if key not in ("step", "every", "kept_about", "kept_values"):
                value[...] = state[key]
        self._frame = self._frame._replace(every=int(state["every"]))
        lines, values = len(state["kept_about"]), len(state["kept_values"])
        self._kept = new_kept(max(1, lines), values, self._kept.values.dtype)
        self._kept.about[:lines], self._kept.values[:] = state["kept_about"], state["kept_values"]
        self._kept.used[:] = lines, values
