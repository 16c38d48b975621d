"""The exact sweep on GPUs: the same task as `cpu.Sweep` takes, and the same results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import SIMULATED, U32, WARP
from bellapy.compute.gpu.pool import Device, pool
from bellapy.engines.exact.cpu import Task
from bellapy.engines.exact.cuda_sweep import NOT_KEPT, NUMBERS, Matrix, Results, Traffic, make_kernel, shared_bytes
from bellapy.engines.exact.cuda_tiles import LAG, Kind, Packed
from bellapy.engines.exact.rule import NONE, Scores
from bellapy.records.bases import UNKNOWN

REGISTERS = 2 if SIMULATED else 16
STEPS = 2 * LAG if SIMULATED else 4 * LAG
WARPS = 1 if SIMULATED else 4  # of a block
BLOCKS = 1 if SIMULATED else 4  # of a processor


class Sizes(NamedTuple):
    """How a matrix is cut: registers of a lane, steps of a tile, tiles of a panel."""

    registers: int = REGISTERS
    steps: int = STEPS
    panel: int = 0  # 0: as many as the warps of a GPU


def reach(scores: Scores, kind: Kind) -> int:
    """How far below the best score on a tile's borders the true scores on and in it lie at most."""
    span = kind.rows + kind.steps + 2 * LAG
    return (scores.match + scores.gap_extend) * span + 2 * scores.first


def fits(scores: Scores, sizes: Sizes = Sizes()) -> bool:
    """Whether tiles of these scores keep to 16 bits, and scores of pairs to 8."""
    kind = Kind(sizes.registers, sizes.steps, False)
    small = max(scores.match, -scores.mismatch) < 128 and scores.first < 4096
    return small and 2 * reach(scores, kind) + scores.match * (kind.rows + kind.steps) < 32_000


def pack_scores(scores: Scores, kind: Kind, floor: bool, seek: bool) -> Packed:
    """The kernel's numbers."""
    wrong, right = scores.mismatch & 0xFF, scores.match & 0xFF
    return Packed(
        _both(-scores.first), _both(-scores.gap_extend), _both(scores.mismatch), U32(wrong * 0x01010101), U32(wrong ^ right),
        np.int32(-reach(scores, kind)), np.int32(scores.first + (kind.registers - 1) * scores.gap_extend + 1),
        np.int32(scores.gap_open), floor, seek,
    )  # fmt: skip


def _both(number: int) -> np.uint32:
    """A number in both halves of a word."""
    return U32((number & 0xFFFF) * 0x10001)


class Layout(NamedTuple):
    """Strips and tiles of a matrix.

    tiles : as in cuda_sweep.Matrix.
    """

    n: int
    m: int
    kind: Kind
    tiles: np.ndarray

    @property
    def n_strips(self) -> int:
        return len(self.tiles)


def lay_out(task: Task, kind: Kind) -> Layout:
    """Which tiles of each strip may matter."""
    n, m = len(task.query), len(task.target)
    n_strips = -(-n // kind.rows)
    edges = np.arange(n_strips) * (kind.rows // task.size)
    first, last = task.bounds.first.astype(np.int64), task.bounds.last.astype(np.int64)
    first, last = np.minimum.reduceat(first, edges), np.maximum.reduceat(last, edges)
    at = LAG * np.arange(n_strips)
    begin = np.maximum(0, at + np.maximum(0, first - 1) - 1) // kind.steps  # what comes from above is there one tile before
    end = (at + LAG - 1 + np.minimum(last, m) - 1) // kind.steps + 1
    begin = np.minimum.accumulate(begin[::-1])[::-1]
    end = np.maximum(begin, np.maximum.accumulate(np.where(first <= last, end, 0)))
    return Layout(n, m, kind, np.stack([begin, end], axis=1).astype(np.int32))


def list_tasks(layout: Layout, panel: int) -> np.ndarray:
    """(n_tasks, 5) int32, as in cuda_sweep.Traffic, in order; `panel`: tiles of a panel."""
    tiles, parts = layout.tiles.astype(np.int64), []
    for begin in range(0, int(tiles[:, 1].max(initial=0)), panel):
        inside = np.clip(tiles, begin, begin + panel)
        strips = np.flatnonzero(inside[:, 0] < inside[:, 1])
        above = np.where((strips > 0)[:, None], inside[strips - 1], 0)
        parts.append(np.concatenate([strips[:, None], inside[strips], above], axis=1))
    return np.concatenate(parts).astype(np.int32) if parts else np.zeros((0, 5), np.int32)


class GpuSweep:
    """A sweep on a GPU; `run` does it as a whole."""

    def __init__(self, task: Task, budget: int = 1 << 28, sizes: Sizes = Sizes()):
        self.task, self.sizes = task, sizes
        masked = bool((task.query >= UNKNOWN).any())
        self.kind = Kind(sizes.registers, sizes.steps, masked)
        self.layout = lay_out(task, self.kind)
        self.done = False
        self.seconds = 0.0

    def run(self, threads: int = 1, seconds: float | None = None) -> None:
        device = pool().devices[0]
        with cuda.gpus[device.gpu.index]:
            self._run_on(device)
        self.done = True

    def _run_on(self, device: Device) -> None:
        import time
        task, kind, layout = self.task, self.kind, self.layout
        worker = device.workers[0]
        stream = worker.stream
        n_strips, n, m = layout.n_strips, layout.n, layout.m
        up = lambda array: cuda.to_device(np.ascontiguousarray(array), stream=stream)
        blocks = device.processors * BLOCKS
        panel = self.sizes.panel or blocks * WARPS
        tasks = list_tasks(layout, panel)
        borders = task.borders
        rows = np.arange(n_strips) * kind.rows
        matrix = Matrix(
            up(task.query), up(task.target), up(borders.left), up(borders.left_gap),
            up(_highest(borders.left, kind.rows)), up(_highest(task.bounds.query, kind.rows)),
            up(_highest(task.bounds.target, LAG)), up(layout.tiles), up(np.full(n_strips, NOT_KEPT, np.int64)),
            not task.floor and not task.seek,
        )
        top = np.stack([borders.top[1:], borders.top_gap[1:]], axis=1)
        zeros = lambda *shape, value=0, dtype=np.int32: up(np.full(shape, value, dtype))
        best = up(np.array([task.known], np.int32))
        traffic = Traffic(
            up(tasks), zeros(1), zeros(n_strips), up(top), zeros((m + 2 * LAG - 2) // LAG, value=-1),
            cuda.device_array((n_strips, 2 * kind.registers + 2, WARP), np.uint32, stream=stream),
            cuda.device_array((n_strips, NUMBERS), np.int32, stream=stream), zeros(n_strips), best,
        )
        results = Results(
            zeros(n_strips, WARP, 3, value=NONE), up(np.tile(np.array([m, 0], np.int32), (n_strips, 1))),
            zeros(n_strips, dtype=np.int64), zeros(m + 1, value=NONE), zeros(n + 1, value=NONE), zeros(1, 2),
        )
        rule = pack_scores(task.scores, kind, task.floor, task.seek)
        stream.synchronize()
        started = time.perf_counter()
        lost = worker.launch(make_kernel(kind.registers, kind.steps, kind.masked), blocks, WARPS * WARP, matrix, traffic, results, rule, shared=WARPS * shared_bytes(kind))
        stream.synchronize()
        self.seconds = time.perf_counter() - started - lost
        self._collect(results)

    def _collect(self, results: Results) -> None:
        found = results.found.copy_to_host().reshape(-1, 3)
        task = self.task
        self.best = np.array([task.known, -1, -1], np.int64)
        top = found[:, 0].max()
        if task.seek and top >= task.known and top > NONE:
            cells = found[found[:, 0] == top]
            self.best = cells[np.lexsort((cells[:, 2], cells[:, 1]))[0]].astype(np.int64)
        self.n_cells = int(results.n_cells.copy_to_host().sum())
        reach = results.reach.copy_to_host()
        self.reach = np.where(reach[:, :1] < reach[:, 1:], np.stack([reach[:, 0] // self.kind.rows, (reach[:, 1] - 1) // self.kind.rows], axis=1), [[self.layout.m, -1]])
        self.last_row, self.last_column = results.last_row.copy_to_host(), results.last_column.copy_to_host()
        self.last_row[0], self.last_column[0] = task.borders.left[-1], task.borders.top[-1]


def _highest(values: np.ndarray, size: int) -> np.ndarray:
    """The highest value of each `size` rows or columns, both borders included."""
    edges = np.arange(0, max(1, len(values) - 1), size)
    inside = np.maximum.reduceat(values, edges)
    return np.maximum(inside, values[np.minimum(edges + size, len(values) - 1)]).astype(np.int32)
