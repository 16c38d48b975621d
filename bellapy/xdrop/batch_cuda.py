"""Extension of flanks on NVIDIA GPUs: narrow windows first, what outgrows them goes on in wider ones, the rest at any width.

The workers of cuda_pool.py share pieces of the flanks.  A piece is index records; the bases it needs are packed and uploaded
unless they are there already.  One kernel for each size of window runs over the piece and hands over to the next what
outgrew its window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import cuda

from bellapy.params import Scoring
from bellapy.xdrop.batch_cpu import extend_flanks as extend_on_cpu
from bellapy.xdrop.cuda_host import cut_pieces, list_piece, put_back
from bellapy.xdrop.cuda_ops import SIMULATED, WARP
from bellapy.xdrop.cuda_pool import FULL, WORKERS, Device, Worker, pool
from bellapy.xdrop.cuda_stack import COUNTS, ENDED, HEAD, OUTGROWN, fits, level_of_best, make_kernel, pack_scoring
from bellapy.xdrop.cuda_wide import GUARDS, extend_wide
from bellapy.xdrop.flanks import Flanks

CLASSES = ((4, 2, 3), (8, 4, 40))
if not SIMULATED:
    CLASSES = ((4, 4, 14), (4, 6, 25), (8, 4, 50), (8, 8, 110), (16, 8, 240), (32, 8, 500), (32, 16, 1010))
"""Sizes of windows: lanes of a group, registers of a lane (of two rows each), and up to which X over the gap penalty nearly
all true overlaps stay inside; by measurement (benchmarks/gpu.py)."""
WARPS = 1 if SIMULATED else 4  # of a block
RESIDENT_WARPS = 2 if SIMULATED else 64  # of a processor
WIDE_BLOCKS = 2 if SIMULATED else 4096
PIECES = 2  # for each worker: more balance better, but small ones leave a GPU half empty
LEAST_PIECE = 3 << 15  # flanks
BATCH = 1 << 20  # flanks, the largest piece
LEAST_BATCH = 1 << 10  # flanks; if so few do not fit, they go to the CPU


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
    gpus = pool()
    n_pieces = max(1, min(PIECES * WORKERS * len(gpus.devices), len(flanks) // LEAST_PIECE))
    busy = min(n_pieces, len(gpus.devices))
    job = _Job(codes, flanks, scoring, longest, threads, busy, np.zeros((len(flanks), 3), np.int64))
    pieces = cut_pieces(flanks, n_pieces, BATCH, len(codes))
    seconds = gpus.run(pieces, LEAST_BATCH, partial(_extend_on_gpu, job), partial(_extend_on_cpu, job))
    for device, spent in zip(gpus.devices, seconds, strict=True):
        device.usage.kernel_s += spent
    return job.results


def window_sizes(scoring: Scoring) -> list[tuple[int, int]]:
    """Sizes of windows to try: wide enough for true overlaps, then at least twice as wide each."""
    chosen = []
    if fits(scoring):
        for group, registers, reach in CLASSES:
            enough = scoring.xdrop // -scoring.gap <= reach
            if enough and (not chosen or group * registers >= 2 * chosen[-1][0] * chosen[-1][1]):
                chosen.append((group, registers))
    return chosen


def _extend_on_cpu(job: _Job, begin: int, end: int) -> None:
    pool().give_to_cpu(FULL, extensions=end - begin)
    some = Flanks(*(column[begin:end] for column in job.flanks.columns))
    job.results[begin:end] = extend_on_cpu(job.codes, some, job.scoring, job.longest, job.threads)


def _extend_on_gpu(job: _Job, worker: Worker, begin: int, end: int) -> None:
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
    device.count([span], uploaded=uploaded, extensions=n, cells=cells)


def _run_kernels(worker, reads, table, longest_query, scoring, longest, results) -> tuple[int, tuple[float, float]]:
    """Extend the flanks of a table; return how many cells were computed, and when the kernels ran."""
    device, stream, classes, left = worker.device, worker.stream, window_sizes(scoring), table.shape[0]
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
        return worker.launch(
            extend_wide, blocks, WARP,
            *of_all, counts, level, column, *handed, scoring, level_of_best(scoring), longest, scratch, results, work,
        )  # fmt: skip

    for level, (group, registers) in enumerate(classes):
        before, handed = handed, _handed_over(worker, level + 1, left, 2 * group * registers)
        waited += worker.launch(
            make_kernel(group, registers, scoring.match == 1, device.packed),
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


def _handed_over(worker: Worker, level: int, n: int, rows: int) -> tuple[object, object]:
    """Room for the states of n flanks that a level takes from the one before (cuda_stack.py)."""
    heads = worker.rooms.of(f"heads {level}", n, HEAD, dtype=np.int32)
    return heads, worker.rooms.of(f"cells {level}", n, 2, rows, dtype=np.uint16)


def _blocks(device: Device, warps: int) -> int:
    """Blocks for so many warps of work, but no more than a device can hold; the last ones to start find nothing to do."""
    return (min(device.processors * RESIDENT_WARPS, warps) + WARPS - 1) // WARPS


def _wide_scratch(worker: Worker, n: int, longest_query: int) -> tuple[int, object]:
    """Blocks of the kernel for any width, and their cells in device memory."""
    columns = 1 << (longest_query + GUARDS - 1).bit_length()  # few sizes, which can be used again
    blocks = min(n, WIDE_BLOCKS)
    if not SIMULATED:
        blocks = min(blocks, cuda.current_context().get_memory_info().free // 2 // (12 * columns))
    if not blocks:
        raise MemoryError("device memory")
    return blocks, worker.rooms.of("scratch", blocks, 3, columns, dtype=np.int32)
