"""The exact sweep on GPUs: the same task as `cpu.Sweep` takes, and the same results.

Several GPUs take the panels of columns in turn.  What a strip hands to its next panel goes through memory of the host.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import EMPTY_BYTE, I32, SIMULATED, WARP, fill_bytes
from bellapy.compute.gpu.pool import Device, pool
from bellapy.engines.exact.cpu import Task
from bellapy.engines.exact.cuda_plan import (
    Kept,
    Sizes,
    choose_kept,
    highest,
    list_tasks,
    living_tiles,
    pack_scores,
    rows_of,
)
from bellapy.engines.exact.cuda_sweep import NOT_KEPT, NUMBERS, Matrix, Results, Traffic, make_kernel, shared_bytes
from bellapy.engines.exact.cuda_tiles import LAG, Kind
from bellapy.engines.exact.rule import NONE
from bellapy.records.bases import UNKNOWN
from bellapy.report.run_report import Devices

WARPS = 1 if SIMULATED else 4  # of a block
BLOCKS = 1 if SIMULATED else 3  # of a processor
ROWS_SHARE = 3  # of a GPU's free memory: how many times less kept rows take
THREADS, SEARCH_BLOCKS = (WARP, 1) if SIMULATED else (256, 64)
FAR = (1 << 31) - 1


class _Part(NamedTuple):
    """What one GPU holds of a sweep."""

    device: Device
    matrix: Matrix
    traffic: Traffic
    results: Results


class GpuSweep:
    """A sweep on GPUs; `run` does it as a whole.

    devices : where GPUs note what they did.  sizes : how the matrix is cut.  gpus : to use; None: all of the machine.
    """

    def __init__(self, task: Task, devices: Devices | None = None, sizes: Sizes = Sizes(), gpus: list[Device] | None = None):
        self.task, self.sizes = task, sizes
        self.kind = Kind(sizes.registers, sizes.steps, bool((task.query >= UNKNOWN).any()))
        self._devices, self._gpus = devices or Devices(), gpus
        self._tiles = living_tiles(task, self.kind)
        self.done = False

    def run(self, threads: int = 1, seconds: float | None = None) -> None:
        """Do it; the arguments are those of a sweep on the CPU."""
        owner = pool()
        with owner.turn:
            gpus = self._gpus or owner.devices
            self._run(gpus)
        self.done = True

    def _run(self, gpus: list[Device]) -> None:
        blocks = min(gpu.processors for gpu in gpus) * BLOCKS
        panel = self.sizes.panel or blocks * WARPS
        gpus = gpus[: max(1, -(-int(self._tiles[:, 1].max(initial=0)) // panel))]
        self._kept = self._choose_kept(gpus)
        shared = _SharedState(len(self._tiles), self.kind, len(gpus) > 1)
        self._parts = []
        for share, gpu in enumerate(gpus):
            with cuda.gpus[gpu.gpu.index]:
                gpu.work_of = self._devices
                tasks = list_tasks(self._tiles, panel, share, len(gpus))
                self._parts.append(self._make_part(gpu, tasks, shared))
        for part in self._parts if len(gpus) > 1 else ():  # kernels are loaded before any of them waits for another
            self._launch(part, blocks, part.traffic._replace(tasks=part.traffic.tasks[:0]))
        began = time.perf_counter()
        lost = sum(self._launch(part, blocks, part.traffic) for part in self._parts)
        for part in self._parts:
            with cuda.gpus[part.device.gpu.index]:
                part.device.workers[0].stream.synchronize()
        self.seconds = time.perf_counter() - began - lost
        self._collect()
        for part in self._parts:
            part.device.note(cells=int(part.results.n_cells.copy_to_host().sum()), kernel_s=self.seconds)
        if not self.task.every:
            self._parts = []

    def _launch(self, part: _Part, blocks: int, traffic: Traffic) -> float:
        """Start the kernel on a part's GPU; the seconds it took to compile."""
        task, kind = self.task, self.kind
        rule = pack_scores(task.scores, kind, task.floor, task.seek)
        with cuda.gpus[part.device.gpu.index]:
            return part.device.workers[0].launch(
                make_kernel(*kind), blocks, WARPS * WARP, part.matrix, traffic, part.results, rule,
                shared=WARPS * shared_bytes(kind),
            )  # fmt: skip

    def _choose_kept(self, gpus: list[Device]) -> Kept:
        most = 1 << 20
        if not SIMULATED:
            for gpu in gpus:
                with cuda.gpus[gpu.gpu.index]:
                    most = max(most, cuda.current_context().get_memory_info().free // (8 * ROWS_SHARE))
        return choose_kept(self._tiles, len(self.task.target), self.kind, self.task.every, most, NOT_KEPT)

    def _make_part(self, device: Device, tasks: np.ndarray, shared: _SharedState) -> _Part:
        task, kind, stream = self.task, self.kind, device.workers[0].stream
        n, m, n_strips = len(task.query), len(task.target), len(self._tiles)
        left, top = task.borders.left, np.stack([task.borders.top[1:], task.borders.top_gap[1:]], axis=1)

        def sent(array: np.ndarray):
            return cuda.to_device(np.ascontiguousarray(array), stream=stream)

        def full(value: int, *shape: int, dtype=np.int32):
            return sent(np.full(shape, value, dtype))

        matrix = Matrix(
            sent(task.query), sent(task.target), sent(left), sent(task.borders.left_gap), sent(highest(left, rows_of(kind))),
            sent(highest(task.bounds.query, rows_of(kind))), sent(highest(task.bounds.target, LAG)), sent(self._tiles),
            sent(self._kept.places), not task.seek,
        )  # fmt: skip
        traffic = Traffic(
            sent(tasks), full(0, 1), full(0, n_strips), sent(top), full(-1, (m + 2 * LAG - 2) // LAG), shared.state,
            shared.numbers, shared.handed, full(task.known, 1),
        )  # fmt: skip
        rows = cuda.device_array((max(1, self._kept.n), 2), np.int32, stream=stream)
        fill_bytes(rows, EMPTY_BYTE, stream)
        found, reach = np.full((n_strips, WARP, 3), NONE, np.int32), np.tile(np.array([m, 0], np.int32), (n_strips, 1))
        results = Results(
            sent(found), sent(reach), full(0, n_strips, dtype=np.int64), full(NONE, m + 1), full(NONE, n + 1), rows
        )  # fmt: skip
        stream.synchronize()
        return _Part(device, matrix, traffic, results)

    def _collect(self) -> None:
        """Fetch the results."""
        task, fetched = self.task, []
        for part in self._parts:
            with cuda.gpus[part.device.gpu.index]:
                fetched.append([array.copy_to_host() for array in part.results[:-1]])
        found, reach, n_cells, rows, columns = zip(*fetched, strict=True)
        self.best = best_of(np.concatenate(found).reshape(-1, 3), task.known)
        self.n_cells = int(sum(x.sum() for x in n_cells))
        self.reach = self._by_task_rows(np.min([x[:, 0] for x in reach], axis=0), np.max([x[:, 1] for x in reach], axis=0))
        self.last_row, self.last_column = np.max(rows, axis=0), np.max(columns, axis=0)
        self.last_row[0], self.last_column[0] = task.borders.left[-1], task.borders.top[-1]

    def _by_task_rows(self, first: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Columns computed in each strip as tiles of the task: (n_tile_rows, 2) int32, as of `cpu.Sweep`."""
        size = self.task.size
        there = first < end
        reach = np.stack([np.where(there, first // size, -(-len(self.task.target) // size)), np.where(there, (end - 1) // size, -1)])
        rows = np.arange(-(-len(self.task.query) // size)) * size // rows_of(self.kind)
        return np.ascontiguousarray(reach.T[rows]).astype(np.int32)

    @property
    def share_done(self) -> float:
        return float(self.done)

    def special_rows(self) -> GpuRows:
        return GpuRows(self)

    def state(self) -> dict[str, np.ndarray]:
        """What a finished sweep that keeps no rows has found, for `restore`."""
        names = "best", "reach", "last_row", "last_column"
        return {name: getattr(self, name) for name in names} | {"step": np.array(1), "n_cells": np.array(self.n_cells)}

    def restore(self, state) -> None:
        """Take over a `state` of a sweep of the same task."""
        for name in ("best", "reach", "last_row", "last_column"):
            setattr(self, name, state[name])
        self.n_cells, self.done = int(state["n_cells"]), True


class _SharedState:
    """What strips hand to their next panel (cuda_sweep.Traffic), in memory that all GPUs of a sweep reach."""

    def __init__(self, n_strips: int, kind: Kind, of_host: bool):
        make = cuda.device_array if not of_host else _host_array
        self.state = make((n_strips, 2 * kind.registers + 2, WARP), np.uint32)
        self.numbers = make((n_strips, NUMBERS), np.int32)
        self.handed = make((n_strips,), np.int32)
        if of_host:
            self.handed[:] = 0
        else:
            fill_bytes(self.handed, 0, 0)


def _host_array(shape: tuple[int, ...], dtype):
    return cuda.mapped_array(shape, dtype, portable=True)


def best_of(found: np.ndarray, known: int) -> np.ndarray:
    """The first best cell, (3,) int64: score, row, column; row -1: none of (any, 3) `found` scores `known` or more."""
    score = max(known, int(found[:, 0].max(initial=NONE)))
    cells = found[found[:, 0] == score]
    if score == NONE or not len(cells):
        return np.array([known, -1, -1], np.int64)
    return cells[np.lexsort((cells[:, 2], cells[:, 1]))[0]].astype(np.int64)


def find_origins(rows, begin, first, n, goal, spans, at):
    """Find the columns of a kept row from which a path may lead to a cell with its score.

    rows : (any, 2) int32, H and F; those of this row from `begin` on.
    first, n : column of the matrix of the first of them, from 1; their number.
    goal : (7,) int64: rows down to the cell, its column, its score; match, first, open, extend of the scores.
    spans : (any, 2) int32; at `at` the first and the last such column are entered.
    """
    down, end, score = goal[0], goal[1], goal[2]
    match, gap_first, gap_open, extend = goal[3], goal[4], goal[5], goal[6]
    k = cuda.grid(1)
    while k < n:
        column = first + k
        across = end - column
        best = max(np.int64(rows[begin + k, 0]), np.int64(rows[begin + k, 1]) + gap_first)
        off = abs(down - across)
        most = match * min(down, across) - (gap_open + extend * off if off else 0)
        if across >= 0 and best + most >= score:
            cuda.atomic.min(spans, (at, 0), I32(column))
            cuda.atomic.max(spans, (at, 1), I32(column))
        k += cuda.gridsize(1)


class GpuRows:
    """Kept rows of a sweep, as `cpu.SpecialRows`; they stay on the GPUs, and what a path needs of them is fetched."""

    def __init__(self, sweep: GpuSweep):
        self._kept, self._parts, self._scores = sweep._kept, sweep._parts, sweep.task.scores
        self.rows = (self._kept.strips.astype(np.int64) + 1) * rows_of(sweep.kind)
        self._spans = []
        for part in self._parts:
            with cuda.gpus[part.device.gpu.index]:
                self._spans.append(cuda.to_device(np.tile(np.array([FAR, -1], np.int32), (len(self.rows), 1))))

    def get(self, row: int, n_columns: int, goal) -> tuple[int, np.ndarray, np.ndarray]:
        """First column, H there and to the right of it, F for the row below: all from which a path may lead to `goal`.

        goal : trace.Cell, below the row.
        """
        at = int(np.searchsorted(self.rows, row))
        begin, first, last = (int(x) for x in (self._kept.places[self._kept.strips[at]], self._kept.first[at], self._kept.last[at]))
        spans = np.array([self._span(part, spans, at, begin + first, first, last, row, goal) for part, spans in zip(self._parts, self._spans, strict=True)])
        low, high = int(spans[:, 0].min()), int(spans[:, 1].max())
        if self._from_border(row, goal):
            low, high = 1, max(1, high)
        if low > high:
            return n_columns + 1, np.zeros(0, np.int32), np.zeros(0, np.int32)
        found = np.full((high - low + 1, 2), NONE, np.int32)
        for part in self._parts:
            with cuda.gpus[part.device.gpu.index]:
                inside = slice(max(low - 1, first), min(high, last))
                if inside.start < inside.stop:
                    values = part.results.rows[begin + inside.start : begin + inside.stop].copy_to_host()
                    place = found[inside.start - low + 1 : inside.stop - low + 1]
                    np.maximum(place, values, out=place)
        return low, found[:, 0].copy(), found[:, 1].copy()

    def _span(self, part: _Part, spans, at: int, begin: int, first: int, last: int, row: int, goal) -> np.ndarray:
        s = self._scores
        with cuda.gpus[part.device.gpu.index]:
            numbers = np.array([goal.row - row, goal.column, goal.score, s.match, s.first, s.gap_open, s.gap_extend], np.int64)
            part.device.workers[0].launch(
                find_origins, SEARCH_BLOCKS, THREADS, part.results.rows, begin, first + 1, last - first, cuda.to_device(numbers), spans, at,
            )  # fmt: skip
            part.device.workers[0].stream.synchronize()
            return spans[at].copy_to_host()

    def _from_border(self, row: int, goal) -> bool:
        """Whether a path may come from column 0, one gap from the corner."""
        s, down = self._scores, goal.row - row
        most = s.match * min(down, goal.column) - int(s.gap(abs(down - goal.column)))
        return -int(s.gap(row)) + most >= goal.score
