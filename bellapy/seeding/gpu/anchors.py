"""Anchors of many reads on a GPU, sorted: those that anchors.py finds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.desk import Desk
from bellapy.compute.gpu.scan import BLOCK, blocks_for, scan, total_of
from bellapy.compute.gpu.sort import sort_words
from bellapy.seeding.anchors import Layout
from bellapy.seeding.gpu.anchors_kernels import choose_seeds, find_ends, look_up, write_anchors
from bellapy.seeding.gpu.index import OnDevice
from bellapy.seeding.gpu.minimizers import find_on_gpu

MOST_ANCHORS = (1 << 31) - 1  # which 32 bits count


class Sorted(NamedTuple):
    """Anchors of some reads on a device.

    anchors : (n,) uint64, sorted.  n_reads : how many reads these are of.
    repeated : (n_reads,) int64, of the host: bases that repeated minimizers lie on.
    """

    anchors: Any
    n_reads: int
    repeated: np.ndarray


def anchors_on_gpu(
    desk: Desk, index: OnDevice, k: int, window: int, planes: Any, at: np.ndarray, lengths: np.ndarray, layout: Layout
) -> Sorted:  # fmt: skip
    """The anchors of reads, sorted.

    k, window : of the index.  planes : of the reads' codes (`send_planes`).
    at, lengths : (n_reads,) int64, where each read begins in the codes, and its bases.  layout : holds all these reads.

    Raises
    ------
    MemoryError, DriverError : the device has no room.
    """
    n_reads, n_bits = len(at), layout.q_bits + layout.place_bits + 1 + len(at).bit_length()
    found = find_on_gpu(desk, planes, k, window, at, lengths)
    n = found.hashes.size
    begins, sizes = desk.send(at), desk.send(lengths)
    ends, repeated = desk.empty(n_reads + 1, np.int64), desk.empty(n_reads, np.int64)
    desk.launch(find_ends, blocks_for(n_reads), BLOCK, found.marks, begins, sizes, ends)
    reads, firsts, counts = desk.empty(n, np.int32), desk.empty(n, np.int64), desk.empty(n, np.int32)
    desk.launch(look_up, blocks_for(n), BLOCK, index.lookup, found.hashes, begins, found.marks, reads, firsts, counts)
    desk.launch(choose_seeds, blocks_for(n_reads), BLOCK, counts, found.marks, ends, sizes, k, index.lookup.cutoff, repeated)
    before, sums = scan(desk, counts)
    total = total_of(desk, sums)
    if total > MOST_ANCHORS:
        raise MemoryError("too many anchors at a time")
    anchors = desk.empty(total, np.uint64)
    desk.launch(
        write_anchors, blocks_for(n), BLOCK, index.lookup, found.marks, reads, firsts, counts, before, sizes, k, layout,
        anchors,
    )  # fmt: skip
    del found, reads, firsts, counts, before
    anchors, _ = sort_words(desk, anchors, desk.empty(total, np.uint64), total, 0, n_bits)
    return Sorted(anchors, n_reads, desk.fetch(repeated))
