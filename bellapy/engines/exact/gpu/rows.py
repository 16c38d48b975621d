"""Kept rows of a sweep on GPUs, from which a path is traced: they stay there, and the parts that a path needs are fetched.

A path most likely crosses a row near its highest score.  So windows around the highest scores of all rows are fetched
together.  The highest score also tells how far from there a path may come: where a window does not hold all of that, it is
fetched on its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import SIMULATED, WARP, driver
from bellapy.compute.gpu.pool import Device
from bellapy.compute.jit import njit
from bellapy.engines.exact.gpu.plan import Kept
from bellapy.engines.exact.rule import NONE, Scores
from bellapy.engines.exact.strips import Windows, columns_of, from_border

THREADS = WARP if SIMULATED else 256
WINDOW = 16 if SIMULATED else 2048  # columns


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
    windows : (2, n, WINDOW) int32, H and F, filled as far as the rows go.
    """
    row = cuda.blockIdx.x
    begin = places[row, 0] + starts[row]
    k = cuda.threadIdx.x
    while k < windows.shape[2] and begin + k < places[row, 1]:
        windows[0, row, k], windows[1, row, k] = rows[begin + k, 0], rows[begin + k, 1]
        k += cuda.blockDim.x


@njit
def _span_in(high, gap, first, down, column, score, costs):
    """First and last column of part of a row from which a path may lead to a goal; 1 and 0: there is none.

    high, gap : (columns,) int32, H and F, from column `first` on.  down, column, score : rows down to the goal, its column
    and score.  costs : Scores.
    """
    begin, last = 1, 0
    for k in range(len(high)):
        across = column - (first + k)
        if across < 0:
            break
        off = abs(down - across)
        most = costs.match * min(down, across) - (costs.gap_open + costs.gap_extend * off if off else 0)
        best = max(np.int64(high[k]), np.int64(gap[k]) + costs.gap_open + costs.gap_extend)
        if best + most >= score:
            begin, last = begin if last else first + k, first + k
    return begin, last


class GpuRows:
    """As `cpu.SpecialRows`."""

    def __init__(self, parts: list[RowsPart], kept: Kept, strip_rows: int, scores: Scores):
        self._parts, self._scores = parts, scores
        self.rows = (kept.strips.astype(np.int64) + 1) * strip_rows
        begin = kept.places[kept.strips] + kept.first
        self._places = np.stack([begin, begin + kept.last - kept.first], axis=1)
        self._columns = kept.first + 1  # of the matrix
        self._cut_windows()

    def _cut_windows(self) -> None:
        n, sizes = len(self.rows), self._places[:, 1] - self._places[:, 0]
        none = np.full(n, -(1 << 62), np.int64)
        highest = np.max(self._on_each(find_highest, n, none, self._places), axis=0)
        most, at = -(-highest >> 32), -highest & 0xFFFFFFFF
        starts = np.clip(at - WINDOW // 2, 0, np.maximum(0, sizes - WINDOW))
        empty = np.full((2, n, WINDOW), NONE, np.int32)
        windows = np.max(self._on_each(cut_windows, n, empty, self._places, starts), axis=0)
        begin = self._columns
        self.windows, self._peaks = Windows(self.rows, begin + starts, begin, begin + sizes, most, *windows), begin + at

    def _on_each(self, kernel, blocks, results: np.ndarray, *arguments) -> list[np.ndarray]:
        """Run a kernel on all GPUs: what becomes of `results`, its last argument, on each."""
        found = []
        for device, rows in self._parts:
            with driver.gpus[device.gpu.index]:
                there = driver.to_device(results)
                if blocks:
                    device.workers[0].launch(kernel, blocks, THREADS, rows, *map(driver.to_device, arguments), there)
                device.workers[0].stream.synchronize()
                found.append(there.copy_to_host())
        return found

    def get(self, row: int, n_columns: int, goal) -> tuple[int, np.ndarray, np.ndarray]:
        """First column, H there and to the right of it, F for the row below: all from which a path may lead to `goal`.

        goal : trace.Cell, below the row.
        """
        at, costs = int(np.searchsorted(self.rows, row)), self._scores
        first, values = self._part_of(at, *columns_of(self.windows, at, goal.row, goal.column, goal.score, costs))
        down = goal.row - row
        begin, last = _span_in(values[0], values[1], first, down, goal.column, goal.score, costs)
        if from_border(down, goal.column, row, goal.score, costs):
            begin, last = 1, max(1, last)
        found = np.full((2, max(0, last - begin + 1)), NONE, np.int32)
        left, right = max(begin, first), min(last + 1, first + values.shape[1])
        found[:, left - begin : max(left, right) - begin] = values[:, left - first : max(left, right) - first]
        return begin, found[0], found[1]

    def highest(self, row: int) -> tuple[int, int]:
        """The first column that has the highest score, and that score."""
        at = int(np.searchsorted(self.rows, row))
        return int(self._peaks[at]), int(self.windows.highest[at])

    def _part_of(self, at: int, first: int, end: int) -> tuple[int, np.ndarray]:
        """Columns of a row, from `first` at the latest to `end` at least: the first one, and (2, columns) int32, H and F."""
        windows = self.windows
        of_window = int(windows.first[at])
        if of_window <= first and end <= of_window + WINDOW:
            return of_window, np.stack([windows.high[at], windows.gap[at]])
        if first >= end:
            return first, np.zeros((2, 0), np.int32)
        begin, values = int(self._places[at, 0] - self._columns[at]), []
        for device, rows in self._parts:
            with driver.gpus[device.gpu.index]:
                values.append(rows[begin + first : begin + end].copy_to_host())
        whole = values[0] if len(values) == 1 else np.max(values, axis=0)
        return first, np.ascontiguousarray(whole.T)
