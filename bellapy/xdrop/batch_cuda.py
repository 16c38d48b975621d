"""Extension of flanks on NVIDIA GPUs: narrow windows first, what outgrows them in wider ones, the rest at any width.

The reads go to a device once.  A batch of flanks is index records; one kernel for each size of window runs over it and
leaves to the next what outgrew its window.  Several GPUs take batches, longest flanks first, as they become free.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from threading import Lock

import numpy as np
from numba import cuda

from bellapy.log import logger
from bellapy.params import Scoring
from bellapy.xdrop.batch_cpu import extend_flanks as extend_on_cpu
from bellapy.xdrop.cuda_ops import SIMULATED, WARP, kernel_of
from bellapy.xdrop.cuda_reads import pack_planes, zeros_on_device
from bellapy.xdrop.cuda_stack import fits, make_kernel, pack_scoring
from bellapy.xdrop.cuda_wide import GUARDS, extend_wide
from bellapy.xdrop.devices import Gpu, find_gpus
from bellapy.xdrop.flanks import Flanks

CLASSES = ((4, 2, 3), (8, 4, 40))
if not SIMULATED:
    CLASSES = ((4, 4, 14), (4, 6, 25), (8, 4, 50), (8, 8, 110), (16, 8, 240), (32, 8, 500), (32, 16, 1010))
"""Sizes of windows: lanes of a group, registers of a lane (of two rows each), and up to which X over the gap penalty nearly
all true overlaps stay inside; by measurement (benchmarks/gpu.py)."""
WARPS = 1 if SIMULATED else 4  # of a block
RESIDENT_WARPS = 2 if SIMULATED else 64  # of a processor
WIDE_BLOCKS = 2 if SIMULATED else 4096
BATCH = 1 << 20  # flanks
LEAST_BATCH = 1 << 10  # flanks; if so few do not fit, they go to the CPU
PIECES = 2  # batches for each of several GPUs: more balance better, but small ones leave a GPU half empty
LONG = 2.0  # seconds: a kernel was compiled, not loaded
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY


@dataclass
class Usage:
    """What a device has done: flanks extended, cells computed (of lanes with live cells), seconds in kernels.

    compile_s : seconds it waited for kernels to be compiled or loaded from the disk.
    """

    name: str
    extensions: int = 0
    cells: int = 0
    kernel_s: float = 0.0
    compile_s: float = 0.0

    def to_dict(self) -> dict:
        gcups = self.cells / self.kernel_s / 1e9 if self.kernel_s else 0.0
        return {
            "name": self.name, "extensions": self.extensions, "cells": self.cells, "kernel_s": round(self.kernel_s, 4),
            "gcups": round(gcups, 1), "compile_s": round(self.compile_s, 3),
        }  # fmt: skip


@dataclass
class _Device:
    """A GPU, the reads it holds, and what it has done."""

    gpu: Gpu
    stream: object
    packed: bool  # has instructions for packed maxima
    processors: int
    usage: Usage
    held: object = lambda: None  # weak reference to the reads that are there
    codes: object = None
    planes: object = None
    told_of_compiling: bool = False

    def hold(self, both_ways: np.ndarray) -> None:
        """Upload reads unless they are there already; `both_ways` is read-only, so its identity stands for its content."""
        if self.held() is not both_ways:
            self.codes = self.planes = None
            self.codes = cuda.to_device(both_ways[: len(both_ways) // 2], stream=self.stream)
            self.planes = pack_planes(self.codes, self.gpu.index, self.stream)
            self.held = weakref.ref(both_ways)


@dataclass
class _Pool:
    """All usable GPUs."""

    devices: list[_Device]
    on_cpu: Usage = field(default_factory=lambda: Usage("CPU, for want of GPU memory"))


@cache
def _pool() -> _Pool:
    devices = []
    for gpu in find_gpus():
        with cuda.gpus[gpu.index]:
            packed, processors = True, 1
            if not SIMULATED:
                card = cuda.get_current_device()
                packed, processors = card.compute_capability >= (9, 0), card.MULTIPROCESSOR_COUNT
            devices.append(_Device(gpu, cuda.stream(), packed, processors, Usage(gpu.name)))
    return _Pool(devices)


def usage() -> list[dict]:
    """What every device has done since the program started."""
    pool = _pool()
    return [used.to_dict() for used in (*(d.usage for d in pool.devices), pool.on_cpu) if used.extensions]


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, longest: bool, threads: int) -> np.ndarray:
    """Score, query bases and target bases of every flank's extension, (n, 3) int64.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    longest : the SeqAn-compatible end instead of the best one (recurrence.py).
    threads : of the CPU, for what fits no GPU.
    """
    results = np.zeros((len(flanks), 3), np.int32)  # each row stays 0 until the one device that has it adds its own
    shorter = np.minimum(flanks.query_length, flanks.target_length)
    todo = _longest_first(shorter)
    pool = _pool()
    pieces, lock = iter(_pieces(todo, shorter[todo], len(pool.devices))), Lock()

    def next_piece() -> np.ndarray | None:
        with lock:
            return next(pieces, None)

    def work(device: _Device) -> None:
        with cuda.gpus[device.gpu.index]:
            job = _Job(pool, device, codes, flanks, scoring, longest, threads)
            while (rows := next_piece()) is not None:
                job.extend(rows)
            found = job.fetch()
            with lock:
                np.add(results, found, out=results)

    if len(pool.devices) == 1:
        work(pool.devices[0])
    else:
        with ThreadPoolExecutor(len(pool.devices)) as threads_of_devices:
            list(threads_of_devices.map(work, pool.devices))
    return results.astype(np.int64)


def _longest_first(lengths: np.ndarray) -> np.ndarray:
    """The flanks that are not empty, int32; by length in steps of 16 bases, which sorts fast."""
    todo = np.flatnonzero(lengths > 0).astype(np.int32)
    keys = np.uint16(0xFFFF) - np.minimum(lengths[todo] >> 4, 0xFFFF).astype(np.uint16)
    return todo[np.argsort(keys, kind="stable")]


def _pieces(todo: np.ndarray, lengths: np.ndarray, n_devices: int) -> Iterator[np.ndarray]:
    """Consecutive flanks of about equal work: all flanks have windows of like width, so cells grow with length."""
    n = PIECES * n_devices if n_devices > 1 else 1
    total = np.cumsum(lengths)
    cuts = np.searchsorted(total, np.linspace(0, total[-1] if len(total) else 0, n + 1)[1:-1])
    return (piece for part in np.split(todo, cuts) for piece in _at_most(part, BATCH) if len(piece))


def _at_most(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or getattr(error, "code", None) == OUT_OF_MEMORY


def _classes(scoring: Scoring, longest: bool) -> list[tuple[int, int]]:
    """Sizes of windows to try: wide enough for true overlaps, then at least twice as wide each."""
    chosen = []
    if not longest and fits(scoring):
        for group, registers, reach in CLASSES:
            enough = scoring.xdrop // -scoring.gap <= reach
            if enough and (not chosen or group * registers >= 2 * chosen[-1][0] * chosen[-1][1]):
                chosen.append((group, registers))
    return chosen


class _Job:
    """Extension of pieces of one set of flanks on one device; results stay there until they are fetched."""

    def __init__(self, pool, device, codes, flanks, scoring, longest, threads):
        self.pool, self.device, self.codes, self.flanks = pool, device, codes, flanks
        self.scoring, self.longest, self.threads = scoring, longest, threads
        self.columns = None  # the flanks on the device
        self.elsewhere = []  # rows and results of the CPU

    def extend(self, rows: np.ndarray) -> None:
        """Extend some flanks; in halves if memory does not suffice, on the CPU if that is no help."""
        try:
            self._start()
            _extend_rows(self.device, self.columns, self.flanks, rows, self.scoring, self.longest, self.results)
            return
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
        if len(rows) > LEAST_BATCH:
            for half in np.array_split(rows, 2):
                self.extend(half)
        else:
            self._extend_on_cpu(rows)

    def fetch(self) -> np.ndarray | int:
        """Results of the flanks that were extended here, (n, 3) int32; 0 for all others."""
        if self.columns is None and not self.elsewhere:
            return 0
        found = np.zeros((len(self.flanks), 3), np.int32)
        if self.columns is not None:
            found = _fetch(self.results, self.device.stream)
        for rows, of_rows in self.elsewhere:
            found[rows] = of_rows
        return found

    def _start(self) -> None:
        if self.columns is None:
            stream, flanks = self.device.stream, self.flanks
            self.device.hold(self.codes)
            host = (flanks.query_at, flanks.query_length, flanks.target_at, flanks.target_length, flanks.complement)
            columns = [cuda.to_device(column, stream=stream) for column in host]
            self.results = zeros_on_device(len(flanks), self.device.gpu.index, stream)
            self.columns = columns

    def _extend_on_cpu(self, rows: np.ndarray) -> None:
        if not self.pool.on_cpu.extensions:
            name = self.device.gpu.name
            logger.warning("%s: not enough memory is free; what does not fit is extended on the CPU", name)
        self.pool.on_cpu.extensions += len(rows)
        flanks = self.flanks
        columns = (flanks.query_at, flanks.query_length, flanks.target_at, flanks.target_length, flanks.complement)
        some = Flanks(*(column[rows] for column in columns))
        self.elsewhere.append((rows, extend_on_cpu(self.codes, some, self.scoring, self.longest, self.threads)))


def _extend_rows(device, columns, flanks, rows, scoring, longest, results) -> None:
    """Extend some flanks, in the order of `rows`, whose reads and columns are on the device."""
    stream, left = device.stream, len(rows)
    classes = _classes(scoring, longest)
    start = np.zeros((len(classes) + 1, 2), np.int32)
    start[0, 0] = left
    counts = cuda.to_device(start, stream=stream)
    work = cuda.to_device(np.zeros(len(classes) + 1, np.int64), stream=stream)
    queue = cuda.to_device(rows, stream=stream)
    begin, end, compiled = cuda.event(), cuda.event(), device.usage.compile_s
    begin.record(stream)
    for level, (group, registers) in enumerate(classes):
        function = make_kernel(group, registers, scoring.match == 1, device.packed)
        over = cuda.device_array(left, np.int32, stream=stream)
        _launch(
            device, function, _blocks(device, -(-left * group // WARP)), WARPS * WARP,
            device.planes, device.codes.shape[0], *columns, queue, over, counts, level, pack_scoring(scoring), results, work,
        )  # fmt: skip
        queue, left = over, int(_fetch(counts, stream)[level + 1, 0])
        if not left:
            break
    if left:
        blocks, scratch = _wide_scratch(left, int(flanks.query_length[rows].max()), stream)
        _launch(
            device, extend_wide, blocks, WARP,
            device.codes, *columns, queue, counts, len(classes), scoring, longest, scratch, results, work,
        )  # fmt: skip
    end.record(stream)
    device.usage.cells += int(_fetch(work, stream).sum())
    device.usage.extensions += len(rows)
    device.usage.kernel_s += begin.elapsed_time(end) / 1e3 - (device.usage.compile_s - compiled)


def _launch(device: _Device, function, blocks: int, threads: int, *arguments) -> None:
    """Start a kernel; the first time it is compiled, or loaded from the disk, while the device has nothing to do."""
    kernel = kernel_of(function, device.gpu.index)
    is_new, start = not SIMULATED and not kernel.overloads, time.perf_counter()
    kernel[blocks, threads, device.stream](*arguments)
    if is_new:
        device.usage.compile_s += time.perf_counter() - start
        if not device.told_of_compiling and device.usage.compile_s > LONG:
            device.told_of_compiling = True
            logger.info("compiling for %s; this happens once", device.gpu.name)


def _fetch(array, stream) -> np.ndarray:
    host = array.copy_to_host(stream=stream)
    stream.synchronize()
    return host


def _blocks(device: _Device, warps: int) -> int:
    """Blocks for so many warps of work, but no more than a device can hold; the last ones to start find nothing to do."""
    return (min(device.processors * RESIDENT_WARPS, warps) + WARPS - 1) // WARPS


def _wide_scratch(n: int, longest_query: int, stream) -> tuple[int, object]:
    """Blocks of the kernel for any width, and their cells in device memory."""
    columns = longest_query + GUARDS
    blocks = min(n, WIDE_BLOCKS)
    if not SIMULATED:
        blocks = min(blocks, cuda.current_context().get_memory_info().free // 2 // (12 * columns))
    if not blocks:
        raise MemoryError("device memory")
    return blocks, cuda.device_array((blocks, 3, columns), np.int32, stream=stream)
