"""Kept rows of a sweep on GPUs, from which a path is traced: they stay there, and the parts that a path needs are fetched.

A path most likely crosses a row near its highest score.  So a window of each row is fetched: all from which a path may lead
to the highest score of the next row.  A window that turns out to be too narrow is fetched anew.  At last all windows are
checked on the GPUs: no path may lead to where the traced one goes on from outside them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, SIMULATED, WARP
from bellapy.compute.gpu.pool import Device
from bellapy.engines.exact.cuda_plan import Kept
from bellapy.engines.exact.rule import NONE, Scores

THREADS = WARP if SIMULATED else 256
BLOCKS = 1 if SIMULATED else 64
AROUND = 8 if SIMULATED else 256  # columns on both sides of the highest score
WIDEST = 1 << 16  # columns of a window that is fetched on a guess
FAR = (1 << 31) - 1


class RowsPart(NamedTuple):
    """Kept rows of one GPU, (any, 2) int32: H and F; below all scores where others computed them."""

    device: Device
    rows: Any


def find_highest(rows, places, highest):
    """The highest score of each row, and the first place that has it.

    rows : (any, 2) int32.  places : (n, 2) int64: where each kept row begins and ends.
    highest : (n,) int64, filled, -2^62 at first: the score times 2^32, less the place in the row.
    """
    row = cuda.blockIdx.x
    begin, end = places[row, 0], places[row, 1]
    most, k = np.int64(-(1 << 62)), begin + cuda.threadIdx.x
    while k < end:
        most = max(most, (np.int64(rows[k, 0]) << 32) - (k - begin))
        k += cuda.blockDim.x
    cuda.atomic.max(highest, row, most)


def cut_windows(rows, begins, edges, windows):
    """Copy a window of each row.

    rows : as above.  begins : (n,) int64, where each window begins in `rows`.  edges : (n + 1,) int64, and in `windows`.
    windows : (any, 2) int32, filled.
    """
    row = cuda.blockIdx.x
    k = edges[row] + cuda.threadIdx.x
    while k < edges[row + 1]:
        at = begins[row] + k - edges[row]
        windows[k, 0], windows[k, 1] = rows[at, 0], rows[at, 1]
        k += cuda.blockDim.x


def find_origins(rows, places, columns, goals, costs, spans):
    """Find the columns of rows from which a path may lead to a goal with its score.

    rows, places : as above.  columns : (n,) int64, column of the matrix of each row's first place.
    goals : (n, 3) int64: rows down to the goal, its column, its score; no rows: none is looked for.
    costs : (4,) int64: match, first and further base of a gap, opening.
    spans : (n, 2) int32, filled, FAR and -1 at first: the first and the last such column.
    """
    row = cuda.blockIdx.x
    begin, n = places[row, 0], places[row, 1] - places[row, 0]
    down, end, score = goals[row, 0], goals[row, 1], goals[row, 2]
    k = np.int64(cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x)
    while k < n and down > 0:
        across = end - (columns[row] + k)
        off = abs(down - across)
        spare = max(np.int64(rows[begin + k, 0]), np.int64(rows[begin + k, 1]) + costs[1]) - score
        spare += costs[0] * min(down, across) - (costs[3] + costs[2] * off if off else 0)
        if across >= 0 and spare >= 0:
            cuda.atomic.min(spans, (row, 0), I32(columns[row] + k))
            cuda.atomic.max(spans, (row, 1), I32(columns[row] + k))
        k += cuda.blockDim.x * cuda.gridDim.y


class Window(NamedTuple):
    """Part of a row: its first column in the matrix, and (columns, 2) int32, H and F."""

    first: int
    values: np.ndarray

    @property
    def last(self) -> int:
        return self.first + len(self.values) - 1


class GpuRows:
    """As `cpu.SpecialRows`."""

    def __init__(self, parts: list[RowsPart], kept: Kept, strip_rows: int, scores: Scores):
        self._parts, self._scores = parts, scores
        self.rows = (kept.strips.astype(np.int64) + 1) * strip_rows
        begin = kept.places[kept.strips] + kept.first
        self._places = np.stack([begin, begin + kept.last - kept.first], axis=1)
        self._columns = kept.first + 1  # of the matrix
        self._ends = kept.last + 1
        self._costs = np.array([scores.match, scores.first, scores.gap_extend, scores.gap_open], np.int64)
        self._goals = np.zeros((len(self.rows), 3), np.int64)  # that the path went to
        self._windows = self._guess_windows() if len(self.rows) else []

    def _on_each(self, kernel, blocks, results: np.ndarray, *arguments) -> list[np.ndarray]:
        """Run a kernel on all GPUs: what becomes of `results`, its last argument, on each."""
        found = []
        for device, rows in self._parts:
            with cuda.gpus[device.gpu.index]:
                there = cuda.to_device(results)
                device.workers[0].launch(kernel, blocks, THREADS, rows, *map(cuda.to_device, arguments), there)
                device.workers[0].stream.synchronize()
                found.append(there.copy_to_host())
        return found

    def _spans(self, goals: np.ndarray, rows: slice = slice(None), blocks: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """First and last columns of some rows from which a path may lead to goals, (n, 3), as in `find_origins`."""
        none = np.tile(np.array([FAR, -1], np.int32), (len(goals), 1))
        spans = self._on_each(
            find_origins, (len(goals), blocks), none, self._places[rows], self._columns[rows], goals, self._costs
        )  # fmt: skip
        return np.min([x[:, 0] for x in spans], axis=0), np.max([x[:, 1] for x in spans], axis=0)

    def _guess_windows(self) -> list[Window]:
        n = len(self.rows)
        none = np.full(n, -(1 << 62), np.int64)
        highest = np.max(self._on_each(find_highest, n, none, self._places), axis=0)
        columns = self._columns + (-highest & 0xFFFFFFFF)
        goals = np.zeros((n, 3), np.int64)
        goals[:-1] = np.stack([np.diff(self.rows), columns[1:], -(-highest[1:] >> 32)], axis=1)
        low, high = self._spans(goals)
        low, high = np.minimum(low, columns) - AROUND, np.maximum(high, columns) + AROUND
        low, high = np.maximum(low, columns - WIDEST // 2), np.minimum(high, columns + WIDEST // 2)
        low, high = np.maximum(low, self._columns), np.minimum(high, self._ends - 1)
        return self._fetch(np.arange(n), low, high)

    def _fetch(self, at: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[Window]:
        """Windows of some rows, by their numbers, first and last columns."""
        edges = np.concatenate(([0], np.cumsum(np.maximum(0, high - low + 1))))
        empty = np.full((max(1, int(edges[-1])), 2), NONE, np.int32)
        begins = self._places[at, 0] + low - self._columns[at]
        values = np.max(self._on_each(cut_windows, len(at), empty, begins, edges), axis=0)
        return [Window(int(first), values[b:e]) for first, b, e in zip(low, edges[:-1], edges[1:], strict=True)]

    def _widen(self, at: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Let windows of some rows reach from `low` to `high` at least."""
        old = [self._windows[k] for k in at]
        low = np.minimum(low, [window.first for window in old])
        high = np.maximum(high, [window.last for window in old])
        for k, window in zip(at, self._fetch(at, low, high), strict=True):
            self._windows[k] = window

    def get(self, row: int, n_columns: int, goal) -> tuple[int, np.ndarray, np.ndarray]:
        """First column, H there and to the right of it, F for the row below: all from which a path may lead to `goal`.

        goal : trace.Cell, below the row.
        """
        at = int(np.searchsorted(self.rows, row))
        self._goals[at] = goal.row - row, goal.column, goal.score
        low, high = self._span_in(self._windows[at], goal, goal.row - row)
        if low > high or not self._is_inside(at, low, high):
            lows, highs = self._spans(self._goals[at : at + 1], slice(at, at + 1), BLOCKS)
            if lows[0] <= highs[0]:
                self._widen(np.array([at]), lows, highs)
            low, high = int(lows[0]), int(highs[0])
        if self._from_border(row, goal):
            low, high = 1, max(1, high)
        first, values = self._windows[at]
        found = np.full((max(0, high - low + 1), 2), NONE, np.int32)
        begin, end = max(low, first), min(high + 1, first + len(values))
        found[begin - low : max(begin, end) - low] = values[begin - first : max(begin, end) - first]
        return low, found[:, 0].copy(), found[:, 1].copy()

    def _is_inside(self, at: int, low: int, high: int) -> bool:
        """Whether a row has no columns left out next to these columns of its window."""
        window = self._windows[at]
        return (low > window.first or low == self._columns[at]) and (high < window.last or high == self._ends[at] - 1)

    def _span_in(self, window: Window, goal, down: int) -> tuple[int, int]:
        """First and last column of a window from which a path may lead to a goal so many rows below."""
        s, (first, values) = self._scores, window
        across = goal.column - np.arange(first, first + len(values))
        best = np.maximum(values[:, 0], values[:, 1] + s.first)
        most = s.match * np.minimum(down, across) - s.gap(np.abs(down - across))
        good = np.flatnonzero((across >= 0) & (best + most >= goal.score))
        return (first + int(good[0]), first + int(good[-1])) if len(good) else (FAR, -1)

    def _from_border(self, row: int, goal) -> bool:
        """Whether a path may come from column 0, one gap from the corner."""
        s, down = self._scores, goal.row - row
        most = s.match * min(down, goal.column) - int(s.gap(abs(down - goal.column)))
        return -int(s.gap(row)) + most >= goal.score

    def widen(self) -> list[int]:
        """Rows whose windows lacked columns from which a path may lead to where the traced one went on; they get them."""
        if not len(self.rows):
            return []
        low, high = self._spans(self._goals)
        first, last = (np.array([getattr(window, name) for window in self._windows]) for name in ("first", "last"))
        lacking = np.flatnonzero((low <= high) & ((low < first) | (high > last)))
        if len(lacking):
            self._widen(lacking, low[lacking], high[lacking])
        return self.rows[lacking].tolist()
