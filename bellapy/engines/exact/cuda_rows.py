"""Kept rows of a sweep on GPUs, from which a path is traced: they stay there, and the parts that a path needs are fetched.

A path most likely crosses a row near its highest score.  So windows around the highest scores of all rows are fetched
together.  Where a window can't be enough, the columns that a path may come from are looked for on the GPUs.  At last all
windows that were used are checked there: no path may lead to its goal from outside them.
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
WINDOW = 16 if SIMULATED else 1024  # columns
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


def cut_windows(rows, places, starts, windows):
    """Copy a window of each row.

    rows, places : as above.  starts : (n,) int64, the place in the row where its window begins.
    windows : (n, WINDOW, 2) int32, filled as far as the rows go.
    """
    row = cuda.blockIdx.x
    begin = places[row, 0] + starts[row]
    k = cuda.threadIdx.x
    while k < windows.shape[1] and begin + k < places[row, 1]:
        windows[row, k, 0], windows[row, k, 1] = rows[begin + k, 0], rows[begin + k, 1]
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


class GpuRows:
    """As `cpu.SpecialRows`."""

    def __init__(self, parts: list[RowsPart], kept: Kept, strip_rows: int, scores: Scores):
        self._parts, self._scores = parts, scores
        self.rows = (kept.strips.astype(np.int64) + 1) * strip_rows
        begin = kept.places[kept.strips] + kept.first
        self._places = np.stack([begin, begin + kept.last - kept.first], axis=1)
        self._columns = kept.first + 1  # of the matrix
        self._costs = np.array([scores.match, scores.first, scores.gap_extend, scores.gap_open], np.int64)
        self._goals = np.zeros((len(self.rows), 3), np.int64)  # of rows whose windows were enough
        if len(self.rows):
            self._starts, self._windows = self._cut_windows()

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

    def _cut_windows(self) -> tuple[np.ndarray, np.ndarray]:
        n, sizes = len(self.rows), self._places[:, 1] - self._places[:, 0]
        highest = np.max(self._on_each(find_highest, n, np.full(n, -(1 << 62), np.int64), self._places), axis=0)
        at = -highest & 0xFFFFFFFF
        starts = np.clip(at - WINDOW // 2, 0, np.maximum(0, sizes - WINDOW))
        empty = np.full((n, WINDOW, 2), NONE, np.int32)
        return starts, np.max(self._on_each(cut_windows, n, empty, self._places, starts), axis=0)

    def get(self, row: int, n_columns: int, goal) -> tuple[int, np.ndarray, np.ndarray]:
        """First column, H there and to the right of it, F for the row below: all from which a path may lead to `goal`.

        goal : trace.Cell, below the row.
        """
        at = int(np.searchsorted(self.rows, row))
        first, values = int(self._columns[at] + self._starts[at]), self._windows[at]
        low, high = self._span_in(values, first, goal, goal.row - row)
        size = int(self._places[at, 1] - self._places[at, 0])
        at_left, at_right = low <= first and self._starts[at] > 0, high >= first + WINDOW - 1 < self._columns[at] + size - 1
        if low > high or at_left or at_right:
            low, high, first, values = self._search(at, row, goal)
        else:
            self._goals[at] = goal.row - row, goal.column, goal.score
        if self._from_border(row, goal):
            low, high = 1, max(1, high)
        found = np.full((max(0, high - low + 1), 2), NONE, np.int32)
        begin, end = max(low, first), min(high + 1, first + len(values))
        found[begin - low : max(begin, end) - low] = values[begin - first : max(begin, end) - first]
        return low, found[:, 0].copy(), found[:, 1].copy()

    def _span_in(self, values: np.ndarray, first: int, goal, down: int) -> tuple[int, int]:
        """First and last column of a window from which a path may lead to a goal so many rows below."""
        s, across = self._scores, goal.column - np.arange(first, first + len(values))
        best = np.maximum(values[:, 0], values[:, 1] + s.first)
        most = s.match * np.minimum(down, across) - s.gap(np.abs(down - across))
        good = np.flatnonzero((across >= 0) & (best + most >= goal.score))
        return (first + int(good[0]), first + int(good[-1])) if len(good) else (FAR, -1)

    def _search(self, at: int, row: int, goal) -> tuple[int, int, int, np.ndarray]:
        """The same for a whole row, on the GPUs, and then the first column of what is fetched, and that."""
        goals = np.array([[goal.row - row, goal.column, goal.score]], np.int64)
        part = self._places[at : at + 1], self._columns[at : at + 1]
        spans = self._on_each(find_origins, (1, BLOCKS), _no_spans(1), *part, goals, self._costs)
        low, high = min(int(x[0, 0]) for x in spans), max(int(x[0, 1]) for x in spans)
        if low > high:
            return low, high, 0, np.zeros((0, 2), np.int32)
        begin = int(self._places[at, 0] - self._columns[at])
        values = []
        for device, rows in self._parts:
            with cuda.gpus[device.gpu.index]:
                values.append(rows[begin + low : begin + high + 1].copy_to_host())
        return low, high, low, np.max(values, axis=0)

    def _from_border(self, row: int, goal) -> bool:
        """Whether a path may come from column 0, one gap from the corner."""
        s, down = self._scores, goal.row - row
        most = s.match * min(down, goal.column) - int(s.gap(abs(down - goal.column)))
        return -int(s.gap(row)) + most >= goal.score

    def are_complete(self) -> bool:
        """Whether the windows that were used held all columns from which a path may lead to its goal.

        If not, they are not used any more.
        """
        n = len(self.rows)
        if not n:
            return True
        spans = self._on_each(find_origins, (n, 1), _no_spans(n), self._places, self._columns, self._goals, self._costs)
        first = self._columns + self._starts
        used = self._goals[:, 0] > 0
        low, high = np.min([x[:, 0] for x in spans], axis=0), np.max([x[:, 1] for x in spans], axis=0)
        enough = not np.any(used & ((low < first) | (high >= first + WINDOW)))
        if not enough:
            self._windows[:] = NONE
        return enough


def _no_spans(n: int) -> np.ndarray:
    return np.tile(np.array([FAR, -1], np.int32), (n, 1))
