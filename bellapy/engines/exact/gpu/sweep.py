"""The exact sweep on GPUs: the same task as `cpu.Sweep` takes, and the same results.

Several GPUs take the panels of columns in turn.  What a strip hands to its next panel goes through memory of the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import EMPTY_BYTE, SIMULATED, WARP, driver, fill_bytes, free_memory
from bellapy.compute.gpu.pool import Device, Worker, pool
from bellapy.engines.exact.cpu import Task
from bellapy.engines.exact.gpu.plan import (  # noqa: F401  # fits: for callers
    DEFAULT,
    Kept,
    Sizes,
    blocks_by_strip,
    choose_kept,
    fits,
    highest,
    keep_busy,
    list_tasks,
    living_tiles,
    marks_by_strip,
    pack_scores,
    panel_edges,
    rows_of,
)
from bellapy.engines.exact.gpu.records import LAG, NOT_KEPT, NUMBERS, Kind, Matrix, Results, Traffic
from bellapy.engines.exact.gpu.rows import GpuRows, RowsPart
from bellapy.engines.exact.gpu.sweep_kernels import make_kernel, shared_bytes
from bellapy.engines.exact.heights import Heights, blank_marks
from bellapy.engines.exact.rule import NONE
from bellapy.records.bases import UNKNOWN
from bellapy.report.run_report import Devices

WARPS = 1 if SIMULATED else 4  # of a block
BLOCKS = 1 if SIMULATED else 2  # of a processor, at most
ROWS_SHARE = 3  # of a GPU's free memory: how many times less kept rows take


class _Part(NamedTuple):
    """What one GPU holds of a sweep; worker : of the GPU."""

    device: Device
    worker: Worker
    matrix: Matrix
    traffic: Traffic
    results: Results


def is_packed() -> bool:
    """Whether all GPUs have instructions for two scores in a word."""
    return all(device.packed for device in pool().devices)


class GpuSweep:
    """A sweep on GPUs; `run` does it as a whole.

    devices : where GPUs note what they did.  sizes : how the matrix is cut.  gpus : to use; None: all of the machine.
    worker : which one of each GPU; sweeps at the same time need different ones.
    """

    def __init__(
        self, task: Task, devices: Devices | None = None, sizes: Sizes = DEFAULT, gpus: list[Device] | None = None,
        worker: int = 0,
    ):  # fmt: skip
        self.task, self._panel, self._worker = task, sizes.panel, worker
        self._devices, self.gpus = devices or Devices(), gpus or pool().devices
        self._noted = blank_marks(task.marks, len(task.query), len(task.target))
        self.kind = Kind(sizes.registers, sizes.steps, bool((task.query >= UNKNOWN).any()))
        self._tiles = living_tiles(task, self.kind)
        self.done = False

    @property
    def leaves_room(self) -> bool:
        """Whether its warps leave GPUs time for another sweep."""
        return not keep_busy(self._tiles, BLOCKS * self._processors * WARPS)

    @property
    def _processors(self) -> int:
        return min(gpu.processors for gpu in self.gpus)

    def run(
        self, threads: int = 1, seconds: float | None = None, beside: Callable[[], GpuSweep | None] | None = None
    ) -> GpuSweep | None:
        """Do it, and another one beside it, which is made meanwhile; the other arguments are those of a sweep on the CPU."""
        with pool().turn:
            self._start()
            other = beside() if beside else None
            if other:
                other._start()
            for sweep in (self, other) if other else (self,):
                sweep._collect()
        return other

    def _start(self) -> None:
        """Share the work, send what it needs, and begin."""
        self._blocks = self._processors * (1 if self.leaves_room else BLOCKS)
        edges = panel_edges(self._tiles, self._blocks * WARPS, len(self.gpus), self._panel)
        gpus = self.gpus[: len(edges) - 1]
        self._kept = self._choose_kept(gpus)
        with driver.gpus[gpus[0].gpu.index]:
            stream = None if len(gpus) > 1 else gpus[0].workers[self._worker].stream
            shared = _SharedState(len(self._tiles), self.kind, stream)
        self._parts = []
        for share, gpu in enumerate(gpus):
            with driver.gpus[gpu.gpu.index]:
                gpu.work_of = self._devices
                tasks = list_tasks(self._tiles, edges, share, len(gpus))
                self._parts.append(self._make_part(gpu, tasks, shared))
        for part in self._parts if len(self._parts) > 1 else ():  # kernels are loaded before any of them waits for another
            self._load(part)
        self._began = time.perf_counter()
        self._began += sum(self._launch(part, self._blocks, part.traffic) for part in self._parts)

    def _launch(self, part: _Part, blocks: int, traffic: Traffic) -> float:
        """Start the kernel on a part's GPU; the seconds it took to compile."""
        task, kind = self.task, self.kind
        rule = pack_scores(task.scores, kind, task.floor, task.seek)
        with driver.gpus[part.device.gpu.index]:
            return part.worker.launch(
                make_kernel(*kind), blocks, WARPS * WARP, part.matrix, traffic, part.results, rule,
                shared=WARPS * shared_bytes(kind),
            )  # fmt: skip

    def _load(self, part: _Part) -> None:
        """Load the kernel on a part's GPU, by telling it that all tasks are taken."""
        with driver.gpus[part.device.gpu.index]:
            taken = driver.to_device(np.full(1, part.traffic.tasks.shape[0], np.int32))
        self._launch(part, 1, part.traffic._replace(taken=taken))

    def _choose_kept(self, gpus: list[Device]) -> Kept:
        most = 1 << 20
        if not SIMULATED:
            for gpu in gpus:
                with driver.gpus[gpu.gpu.index]:
                    most = max(most, free_memory() // (8 * ROWS_SHARE))
        return choose_kept(self._tiles, len(self.task.target), self.kind, self.task.every, most, NOT_KEPT)

    def _make_part(self, device: Device, tasks: np.ndarray, shared: _SharedState) -> _Part:
        task, kind, worker = self.task, self.kind, device.workers[self._worker]
        stream = worker.stream
        n, m, n_strips = len(task.query), len(task.target), len(self._tiles)
        left, top = task.borders.left, np.stack([task.borders.top[1:], task.borders.top_gap[1:]], axis=1)

        def sent(array: np.ndarray):
            return driver.to_device(np.ascontiguousarray(array), stream=stream)

        def full(value: int, *shape: int, dtype=np.int32):
            return sent(np.full(shape, value, dtype))

        most, block_row, block_shift = blocks_by_strip(task.bounds.blocks, n_strips, kind)
        mark_row, mark_shift = marks_by_strip(self._noted, n_strips, kind)
        matrix = Matrix(
            sent(task.query), sent(task.target), sent(left), sent(task.borders.left_gap), sent(highest(left, rows_of(kind))),
            sent(highest(task.bounds.query, rows_of(kind))), sent(highest(task.bounds.target, LAG)), sent(self._tiles),
            sent(most), sent(block_row), block_shift, sent(self._kept.places), sent(mark_row), mark_shift, not task.seek,
        )  # fmt: skip
        traffic = Traffic(
            sent(tasks), full(0, 1), full(0, n_strips), sent(top), full(-1, (m + 2 * LAG - 2) // LAG), shared.state,
            shared.numbers, shared.handed, full(task.known, 1),
        )  # fmt: skip
        rows = driver.device_array((max(1, self._kept.n), 2), np.int32, stream=stream)
        n_marks, groups = self._noted.values.shape
        marks = driver.device_array((max(1, n_marks), groups), np.int32, stream=stream)
        for array in (rows, marks):
            fill_bytes(array, EMPTY_BYTE, stream)
        found, reach = np.full((n_strips, WARP, 3), NONE, np.int32), np.tile(np.array([m, 0], np.int32), (n_strips, 1))
        last_row, last_column = (full(NONE, k + 1 if matrix.ends else 1) for k in (m, n))
        results = Results(
            sent(found), sent(reach), full(0, n_strips, dtype=np.int64), last_row, last_column, rows, marks
        )  # fmt: skip
        stream.synchronize()
        return _Part(device, worker, matrix, traffic, results)

    def _collect(self) -> None:
        """Wait for the results and fetch them; note what each GPU did."""
        for part in self._parts:
            with driver.gpus[part.device.gpu.index]:
                part.worker.stream.synchronize()
        self.seconds = time.perf_counter() - self._began
        task, fetched = self.task, []
        for part in self._parts:
            arrays: tuple[Any, ...] = part.results[:-2]
            marks: Any = part.results.marks
            with driver.gpus[part.device.gpu.index]:
                fetched.append([array.copy_to_host() for array in arrays])
                if self.marks:
                    np.maximum(self._noted.values, marks.copy_to_host(), out=self._noted.values)
            part.device.note(cells=int(fetched[-1][2].sum()), kernel_s=self.seconds)
        found, reach, n_cells, rows, columns = zip(*fetched, strict=True)
        self.best = best_of(np.concatenate(found).reshape(-1, 3), task.known)
        self.n_cells = int(sum(x.sum() for x in n_cells))
        computed = np.min([x[:, 0] for x in reach], axis=0), np.max([x[:, 1] for x in reach], axis=0)
        self.reach, self._kept = self._by_task_rows(*computed), self._kept.within(*computed)
        self.last_row, self.last_column = np.max(rows, axis=0), np.max(columns, axis=0)
        self.last_row[0], self.last_column[0] = task.borders.left[-1], task.borders.top[-1]
        if not task.every:
            self._parts = []
        self.done = True

    def _by_task_rows(self, first: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Columns computed in each strip as tiles of the task: (n_tile_rows, 2) int32, as of `cpu.Sweep`."""
        size = self.task.size
        there = first < end
        reach = np.stack(
            [np.where(there, first // size, -(-len(self.task.target) // size)), np.where(there, (end - 1) // size, -1)]
        )
        rows = np.arange(-(-len(self.task.query) // size)) * size // rows_of(self.kind)
        return np.ascontiguousarray(reach.T[rows]).astype(np.int32)

    @property
    def marks(self) -> Heights | None:
        """As cpu.Ends has it."""
        return self._noted if self.task.marks[0] else None

    @property
    def share_done(self) -> float:
        return float(self.done)

    def special_rows(self) -> GpuRows:
        parts = [RowsPart(part.device, part.results.rows) for part in self._parts]
        return GpuRows(parts, self._kept, rows_of(self.kind), self.task.scores)

    def state(self) -> dict[str, np.ndarray]:
        """What a finished sweep that keeps no rows has found, for `restore`."""
        names = "best", "reach", "last_row", "last_column"
        numbers = {"step": np.array(1), "n_cells": np.array(self.n_cells)}
        return {name: getattr(self, name) for name in names} | numbers | {"marks": self._noted.values}

    def restore(self, state) -> None:
        """Take over a `state` of a sweep of the same task."""
        for name in ("best", "reach", "last_row", "last_column"):
            setattr(self, name, state[name])
        self._noted = self._noted._replace(values=state["marks"])
        self.n_cells, self.done = int(state["n_cells"]), True


class _SharedState:
    """What strips hand to their next panel (sweep_kernels.Traffic), in memory that all GPUs of a sweep reach.

    stream : of the only one; None: there are several.
    """

    def __init__(self, n_strips: int, kind: Kind, stream: Any | None):
        make = partial(driver.device_array, stream=stream) if stream else _host_array
        self.state = make((n_strips, 2 * kind.registers + 2, WARP), np.uint32)
        self.numbers = make((n_strips, NUMBERS), np.int32)
        self.handed = make((n_strips,), np.int32)
        if stream:
            fill_bytes(self.handed, 0, stream)
        else:
            self.handed[:] = 0


def _host_array(shape: tuple[int, ...], dtype):
    return driver.mapped_array(shape, dtype, portable=True)


def best_of(found: np.ndarray, known: int) -> np.ndarray:
    """The first best cell, (3,) int64: score, row, column; row -1: none of (any, 3) `found` scores `known` or more."""
    score = max(known, int(found[:, 0].max(initial=NONE)))
    cells = found[found[:, 0] == score]
    if score == NONE or not len(cells):
        return np.array([known, -1, -1], np.int64)
    return cells[np.lexsort((cells[:, 2], cells[:, 1]))[0]].astype(np.int64)
