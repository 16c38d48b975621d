"""Extension of flanks on NVIDIA GPUs: narrow windows first, what outgrows them goes on in wider ones, the rest at any width.

Every GPU has several workers, threads with a stream and memory of their own, so that one prepares and copies a piece of the
flanks while the kernels of another run.  Workers take pieces as they become free.  A piece is index records; the bases it
needs are packed and uploaded unless they are there already.  One kernel for each size of window runs over the piece and
hands over to the next what outgrew its window.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from threading import Lock

import numpy as np
from numba import cuda

from bellapy.log import logger
from bellapy.parallel import even_ranges
from bellapy.params import Scoring
from bellapy.xdrop.batch_cpu import extend_flanks as extend_on_cpu
from bellapy.xdrop.cuda_host import cut_pieces, list_piece, put_back
from bellapy.xdrop.cuda_ops import SIMULATED, WARP, kernel_of
from bellapy.xdrop.cuda_reads import DeviceReads
from bellapy.xdrop.cuda_stack import COUNTS, ENDED, HEAD, OUTGROWN, fits, level_of_best, make_kernel, pack_scoring
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
WORKERS = 1 if SIMULATED else 2  # for each GPU; the simulator runs one kernel at a time
PIECES = 2  # for each worker: more balance better, but small ones leave a GPU half empty
LEAST_PIECE = 3 << 15  # flanks
BATCH = 1 << 20  # flanks, the largest piece
LEAST_BATCH = 1 << 10  # flanks; if so few do not fit, they go to the CPU
LONG = 2.0  # seconds: a kernel was compiled, not loaded
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
_compiling = Lock()  # for all devices: the second one finds on the disk what the first compiled


@dataclass
class Usage:
    """What a device has done: flanks extended, cells computed (of lanes with live cells), seconds in kernels.

    compile_s : seconds spent on compiling kernels or loading them from the disk.
    uploaded : bases of reads that were sent to it.
    """

    name: str
    extensions: int = 0
    cells: int = 0
    kernel_s: float = 0.0
    compile_s: float = 0.0
    uploaded: int = 0

    def to_dict(self) -> dict:
        gcups = self.cells / self.kernel_s / 1e9 if self.kernel_s else 0.0
        return {
            "name": self.name, "extensions": self.extensions, "cells": self.cells, "kernel_s": round(self.kernel_s, 4),
            "gcups": round(gcups, 1), "compile_s": round(self.compile_s, 3), "uploaded_bases": self.uploaded,
        }  # fmt: skip


class _Rooms:
    """Arrays by name, kept for later pieces and made anew where they are too small: taking and freeing is slow."""

    def __init__(self, make: Callable):
        self._make, self._rooms = make, {}

    def of(self, name: str, rows: int, *shape: int, dtype: type) -> object:
        """An array of so many rows of a shape."""
        room = self._rooms.get(name)
        if room is None or room.shape[0] < rows or room.shape[1:] != shape or room.dtype != dtype:
            self._rooms.pop(name, None)
            room = self._rooms[name] = self._make((rows + rows // 8, *shape), dtype)
        return room[:rows]

    def clear(self) -> None:
        self._rooms.clear()


@dataclass
class _Device:
    """A GPU, the reads it holds, and what it has done."""

    gpu: Gpu
    packed: bool  # has instructions for packed maxima
    processors: int
    usage: Usage
    reads: DeviceReads
    workers: list[_Worker] = field(default_factory=list)
    zero: object = None  # event from which `spans` count
    spans: list[tuple[float, float]] = field(default_factory=list)  # when kernels ran, ms
    told_of_compiling: bool = False
    lock: Lock = field(default_factory=Lock)

    def count(self, extensions: int, cells: int, span: tuple[float, float], uploaded: int) -> None:
        with self.lock:
            self.usage.extensions += extensions
            self.usage.cells += cells
            self.usage.uploaded += uploaded
            self.spans.append(span)

    def open_spans(self) -> None:
        with cuda.gpus[self.gpu.index]:
            self.zero = cuda.event()
            self.zero.record(self.workers[0].stream)

    def close_spans(self) -> None:
        """Add the time during which at least one worker's kernels ran."""
        end = 0.0
        for first, last in sorted(self.spans):
            self.usage.kernel_s += max(0.0, last - max(first, end)) / 1e3
            end = max(end, last)
        self.spans.clear()


@dataclass
class _Worker:
    """A stream of a device, with memory of its own."""

    device: _Device
    stream: object
    rooms: _Rooms = field(default_factory=lambda: _Rooms(cuda.device_array))
    pinned: _Rooms = field(default_factory=lambda: _Rooms(cuda.pinned_array))


@dataclass
class _Pool:
    """All usable GPUs."""

    devices: list[_Device]
    threads: ThreadPoolExecutor  # of the workers; kept, since a new one costs milliseconds at its first call to a device
    on_cpu: Usage = field(default_factory=lambda: Usage("CPU, for want of GPU memory"))
    lock: Lock = field(default_factory=Lock)


@cache
def _pool() -> _Pool:
    devices = []
    for gpu in find_gpus():
        with cuda.gpus[gpu.index]:
            packed, processors = True, 1
            if not SIMULATED:
                card = cuda.get_current_device()
                packed, processors = card.compute_capability >= (9, 0), card.MULTIPROCESSOR_COUNT
            device = _Device(gpu, packed, processors, Usage(gpu.name), DeviceReads(_Rooms(cuda.device_array)))
            device.workers = [_Worker(device, cuda.stream()) for _ in range(WORKERS)]
            devices.append(device)
    return _Pool(devices, ThreadPoolExecutor(WORKERS * len(devices)))


def usage() -> list[dict]:
    """What every device has done since the program started."""
    pool = _pool()
    return [used.to_dict() for used in (*(d.usage for d in pool.devices), pool.on_cpu) if used.extensions]


class _Pieces:
    """Pieces of the flanks: every device has its share, consecutive ones, and takes from others when that is done."""

    def __init__(self, pieces: list[tuple[int, int]], shares: int):
        self._lock = Lock()
        self._shares = [deque(pieces[begin:end]) for begin, end in even_ranges(len(pieces), shares)]

    def take(self, share: int) -> tuple[int, int] | None:
        with self._lock:
            own = self._shares[share] if share < len(self._shares) else ()
            if own:
                return own.popleft()
            fullest = max(self._shares, key=len, default=())
            return fullest.pop() if fullest else None


@dataclass(frozen=True)
class _Job:
    """Extension of one set of flanks."""

    codes: np.ndarray
    flanks: Flanks
    scoring: Scoring
    longest: bool
    threads: int
    devices: int
    results: np.ndarray


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, longest: bool, threads: int) -> np.ndarray:
    """Score, query bases and target bases of every flank's extension, (n, 3) int64.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    longest : the SeqAn-compatible end instead of the best one (recurrence.py).
    threads : of the CPU, to pack reads and for what fits no GPU.
    """
    pool = _pool()
    workers = [worker for turn in zip(*(device.workers for device in pool.devices), strict=True) for worker in turn]
    n_pieces = max(1, min(PIECES * len(workers), len(flanks) // LEAST_PIECE))
    workers = workers[:n_pieces]
    job = _Job(
        codes, flanks, scoring, longest, threads, min(len(workers), len(pool.devices)), np.zeros((len(flanks), 3), np.int64)
    )
    pieces = _Pieces(cut_pieces(flanks, n_pieces, BATCH, len(codes)), len(pool.devices))

    def work(worker: _Worker) -> None:
        share = next(i for i, device in enumerate(pool.devices) if device is worker.device)
        with cuda.gpus[worker.device.gpu.index]:
            while (piece := pieces.take(share)) is not None:
                _extend_piece(pool, worker, job, *piece)

    for device in pool.devices:
        device.open_spans()
    if len(workers) == 1:
        work(workers[0])
    else:
        list(pool.threads.map(work, workers))
    for device in pool.devices:
        device.close_spans()
    return job.results


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or getattr(error, "code", None) == OUT_OF_MEMORY


def _classes(scoring: Scoring) -> list[tuple[int, int]]:
    """Sizes of windows to try: wide enough for true overlaps, then at least twice as wide each."""
    chosen = []
    if fits(scoring):
        for group, registers, reach in CLASSES:
            enough = scoring.xdrop // -scoring.gap <= reach
            if enough and (not chosen or group * registers >= 2 * chosen[-1][0] * chosen[-1][1]):
                chosen.append((group, registers))
    return chosen


def _extend_piece(pool: _Pool, worker: _Worker, job: _Job, begin: int, end: int) -> None:
    """Extend flanks begin .. end - 1; in halves if memory does not suffice, on the CPU if that is no help."""
    try:
        _extend_on_gpu(worker, job, begin, end)
        return
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
    worker.rooms.clear()
    if end - begin > LEAST_BATCH:
        middle = (begin + end) // 2
        _extend_piece(pool, worker, job, begin, middle)
        _extend_piece(pool, worker, job, middle, end)
    else:
        _extend_on_cpu(pool, worker.device.gpu.name, job, begin, end)


def _extend_on_cpu(pool: _Pool, name: str, job: _Job, begin: int, end: int) -> None:
    with pool.lock:
        if not pool.on_cpu.extensions:
            logger.warning("%s: not enough memory is free; what does not fit is extended on the CPU", name)
        pool.on_cpu.extensions += end - begin
    some = Flanks(*(column[begin:end] for column in job.flanks.columns))
    job.results[begin:end] = extend_on_cpu(job.codes, some, job.scoring, job.longest, job.threads)


def _extend_on_gpu(worker: _Worker, job: _Job, begin: int, end: int) -> None:
    """Extend flanks begin .. end - 1 on the worker's device."""
    device, stream, packers = worker.device, worker.stream, max(1, job.threads // job.devices)
    reads = device.reads
    reads.hold(job.codes)
    rows = worker.pinned.of("rows", end - begin, dtype=np.int32)
    table = worker.pinned.of("table", end - begin, 5, dtype=np.int64)
    n = int(list_piece(*job.flanks.columns, begin, end, rows, table))
    if not n:
        return
    rows, table = rows[:n], table[:n]
    results = worker.rooms.of("results", n, 3, dtype=np.int32)
    there = worker.rooms.of("table", n, 5, dtype=np.int64)
    there.copy_to_device(table, stream=stream)
    uploaded = reads.bring(table, job.codes, packers, stream)
    cells, span = _run_kernels(worker, reads, there, int(table[:, 1].max()), job.scoring, job.longest, results)
    found = worker.pinned.of("found", n, 3, dtype=np.int32)
    results.copy_to_host(found, stream=stream)
    stream.synchronize()
    put_back(rows, found, job.results)
    device.count(n, cells, span, uploaded)


def _run_kernels(worker, reads, table, longest_query, scoring, longest, results) -> tuple[int, tuple[float, float]]:
    """Extend the flanks of a table; return how many cells were computed, and when the kernels ran."""
    device, stream, classes, left = worker.device, worker.stream, _classes(scoring), table.shape[0]
    of_all = (reads.planes, reads.n_bases, table)
    counts = worker.rooms.of("counts", len(classes) + 1, COUNTS, dtype=np.int32)
    work = worker.rooms.of("work", len(classes) + 1, dtype=np.int64)
    counted = np.zeros(counts.shape, np.int32)
    counted[0, OUTGROWN] = left
    counts.copy_to_device(counted, stream=stream)
    work.copy_to_device(np.zeros(work.shape, np.int64), stream=stream)
    handed = _handed_over(worker, 0, 1, 1)  # nothing: all flanks begin in the first kernel
    begin, end, waited = cuda.event(), cuda.event(), 0.0
    begin.record(stream)

    def extend_at_any_width(level: int, column: int) -> float:
        blocks, scratch = _wide_scratch(worker, int(counted[level, column]), longest_query)
        return _launch(
            worker, extend_wide, blocks, WARP,
            *of_all, counts, level, column, *handed, scoring, level_of_best(scoring), longest, scratch, results, work,
        )  # fmt: skip

    for level, (group, registers) in enumerate(classes):
        before, handed = handed, _handed_over(worker, level + 1, left, 2 * group * registers)
        waited += _launch(
            worker, make_kernel(group, registers, scoring.match == 1, device.packed),
            _blocks(device, -(-left * group // WARP)), WARPS * WARP,
            *of_all, counts, level, *before, *handed, pack_scoring(scoring), longest, results, work,
        )  # fmt: skip
        counts.copy_to_host(counted, stream=stream)
        stream.synchronize()
        if counted[level, ENDED]:
            waited += extend_at_any_width(level, ENDED)
        left = int(counted[level + 1, OUTGROWN])
        if not left:
            break
    if left:
        waited += extend_at_any_width(len(classes), OUTGROWN)
    end.record(stream)
    cells = int(work.copy_to_host(stream=stream).sum())
    stream.synchronize()
    return cells, (device.zero.elapsed_time(begin), device.zero.elapsed_time(end) - 1e3 * waited)


def _handed_over(worker: _Worker, level: int, n: int, rows: int) -> tuple[object, object]:
    """Room for the states of n flanks that a level takes from the one before (cuda_stack.py)."""
    heads = worker.rooms.of(f"heads {level}", n, HEAD, dtype=np.int32)
    return heads, worker.rooms.of(f"cells {level}", n, 2, rows, dtype=np.uint16)


def _launch(worker: _Worker, function, blocks: int, threads: int, *arguments) -> float:
    """Start a kernel; the first time it is compiled, or loaded from the disk.  Return the seconds that took."""
    device = worker.device
    kernel = kernel_of(function, device.gpu.index)
    launch = kernel[blocks, threads, worker.stream]
    if SIMULATED or kernel.overloads:
        launch(*arguments)
        return 0.0
    start = time.perf_counter()
    with _compiling:
        began = time.perf_counter()
        launch(*arguments)
        device.usage.compile_s += time.perf_counter() - began
        if not device.told_of_compiling and device.usage.compile_s > LONG:
            device.told_of_compiling = True
            logger.info("compiling for %s; this happens once", device.gpu.name)
    return time.perf_counter() - start


def _blocks(device: _Device, warps: int) -> int:
    """Blocks for so many warps of work, but no more than a device can hold; the last ones to start find nothing to do."""
    return (min(device.processors * RESIDENT_WARPS, warps) + WARPS - 1) // WARPS


def _wide_scratch(worker: _Worker, n: int, longest_query: int) -> tuple[int, object]:
    """Blocks of the kernel for any width, and their cells in device memory."""
    columns = 1 << (longest_query + GUARDS - 1).bit_length()  # few sizes, which can be used again
    blocks = min(n, WIDE_BLOCKS)
    if not SIMULATED:
        blocks = min(blocks, cuda.current_context().get_memory_info().free // 2 // (12 * columns))
    if not blocks:
        raise MemoryError("device memory")
    return blocks, worker.rooms.of("scratch", blocks, 3, columns, dtype=np.int32)
