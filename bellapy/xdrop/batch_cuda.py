"""Extension of flanks on NVIDIA GPUs: narrow windows first, what outgrows them in wider ones, the rest at any width.

The reads go to a device once.  A batch of flanks is index records; one kernel for each size of window runs over it, and each
leaves to the next what outgrew its window, without a word to the host in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import cuda

from bellapy.log import logger
from bellapy.params import Scoring
from bellapy.xdrop.cuda_ops import SIMULATED, WARP
from bellapy.xdrop.cuda_reads import pack_planes
from bellapy.xdrop.cuda_stack import fits, make_kernel, pack_scoring
from bellapy.xdrop.cuda_wide import GUARDS, extend_wide
from bellapy.xdrop.flanks import Flanks

CLASSES = ((4, 2), (8, 4)) if SIMULATED else ((4, 8), (8, 8), (16, 8), (32, 8), (32, 16))
"""Lanes of a group and registers of a lane for every size of window, smallest first; two rows for each register."""
SLACK = 24  # rows beyond what X-drop admits at a time
WARPS = 1 if SIMULATED else 4  # of a block
RESIDENT_WARPS = 2 if SIMULATED else 64  # of a processor
WIDE_BLOCKS = 2 if SIMULATED else 4096
BATCH = 1 << 20  # flanks


@lru_cache(maxsize=None)
def _stack_kernel(group: int, registers: int, unit: bool, packed: bool):
    return make_kernel(group, registers, unit, packed)


@dataclass
class _Device:
    """A GPU and the reads it holds."""

    index: int
    stream: object
    packed: bool
    processors: int
    host_codes: np.ndarray | None = None
    codes: object = None
    planes: object = None

    def hold(self, both_ways: np.ndarray) -> None:
        """Upload reads, unless they are there already; `both_ways` is frozen, so its identity stands for its content."""
        if self.host_codes is not both_ways:
            self.host_codes = self.codes = self.planes = None
            self.codes = cuda.to_device(both_ways[: len(both_ways) // 2], stream=self.stream)
            self.planes = pack_planes(self.codes, self.stream)
            self.host_codes = both_ways


@lru_cache(maxsize=None)
def _device(index: int) -> _Device:
    gpu = cuda.get_current_device()
    if SIMULATED:
        return _Device(index, cuda.stream(), True, 1)
    return _Device(index, cuda.stream(), gpu.compute_capability >= (9, 0), gpu.MULTIPROCESSOR_COUNT)


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, longest: bool, threads: int) -> np.ndarray:
    """Score, query bases and target bases of every flank's extension, (n, 3) int64.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    longest : the SeqAn-compatible end instead of the best one (wavefront.py).
    threads : not used; the work is on the GPU.
    """
    results = np.zeros((len(flanks), 3), np.int64)
    shorter = np.minimum(flanks.query_length, flanks.target_length)
    todo = np.flatnonzero(shorter > 0)
    todo = todo[np.argsort(-shorter[todo], kind="stable")]
    if not len(todo):
        return results
    device = _device(0)
    device.hold(codes)
    for at in range(0, len(todo), BATCH):
        rows = todo[at : at + BATCH]
        results[rows] = _extend_batch(device, _take(flanks, rows), scoring, longest)
    return results


def _take(flanks: Flanks, rows: np.ndarray) -> Flanks:
    columns = (flanks.query_at, flanks.query_length, flanks.target_at, flanks.target_length, flanks.complement)
    return Flanks(*(column[rows] for column in columns))


def _classes(scoring: Scoring, longest: bool) -> list[tuple[int, int]]:
    """Sizes of windows to try, the first one wide enough for true overlaps."""
    if longest or not fits(scoring):
        return []
    rows = scoring.xdrop // -scoring.gap + SLACK
    return [(group, registers) for group, registers in CLASSES if 2 * group * registers >= rows]


def _extend_batch(device: _Device, flanks: Flanks, scoring: Scoring, longest: bool) -> np.ndarray:
    n, stream = len(flanks), device.stream
    classes = _classes(scoring, longest)
    columns = [
        cuda.to_device(column, stream=stream)
        for column in (flanks.query_at, flanks.query_length, flanks.target_at, flanks.target_length, flanks.complement)
    ]
    start = np.zeros((len(classes) + 1, 2), np.int32)
    start[0, 0] = n
    counts = cuda.to_device(start, stream=stream)
    queue = cuda.to_device(np.arange(n, dtype=np.int32), stream=stream)
    results = cuda.device_array((n, 3), np.int32, stream=stream)
    rule = pack_scoring(scoring) if classes else None
    n_bases = len(device.host_codes) // 2
    for level, (group, registers) in enumerate(classes):
        kernel = _stack_kernel(group, registers, scoring.match == 1, device.packed)
        over = cuda.device_array(n, np.int32, stream=stream)
        arguments = (device.planes, n_bases, *columns, queue, over, counts, level, rule, results)
        kernel[_blocks(device, -(-n * group // WARP)), WARPS * WARP, stream](*arguments)
        queue = over
    longest_query = int(flanks.query_length.max())
    blocks = min(n, WIDE_BLOCKS)
    scratch = cuda.device_array((blocks, 3, longest_query + GUARDS), np.int32, stream=stream)
    extend_wide[blocks, WARP, stream](
        device.codes, *columns, queue, counts, len(classes), scoring, longest, scratch, results
    )  # fmt: skip
    got, left = results.copy_to_host(stream=stream), counts.copy_to_host(stream=stream)
    stream.synchronize()
    logger.debug("flanks by size of window: %s", left[:, 0].tolist())
    return got


def _blocks(device: _Device, warps: int) -> int:
    """Blocks for so many warps of work, but no more than a device can hold; the last ones to start find nothing to do."""
    return min(device.processors * RESIDENT_WARPS, warps + WARPS - 1) // WARPS
