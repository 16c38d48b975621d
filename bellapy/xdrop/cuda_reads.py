"""Reads on a GPU, as bit planes (cuda_host.py): in blocks of bases, each sent when a flank first needs it.

The reversed copy that `ReadSet.both_ways` has is not needed: kernels reverse the words.
"""

from __future__ import annotations

import weakref
from threading import Lock

import numpy as np
from numba import cuda

from bellapy.parallel import even_ranges, map_threads
from bellapy.xdrop.cuda_host import BASES, BLOCK, mark_blocks, pack_planes, stretches

STAGED = 1 << 11  # blocks that are packed and sent at a time
LEAST_PART = 1 << 8  # blocks: fewer are packed before a thread has started
WORDS = BLOCK // BASES


class DeviceReads:
    """The reads that a GPU holds.

    n_bases : of one direction.
    planes : (words, 3) uint32 on the device.
    """

    def __init__(self, rooms):
        self._rooms = rooms
        self._whole = lambda: None
        self._staging = np.empty((0, 3), np.uint32)  # pinned memory
        self._lock = Lock()

    def hold(self, both_ways: np.ndarray) -> None:
        """From now on these; `both_ways` is read-only, so its identity stands for its content."""
        if self._whole() is both_ways:
            return
        with self._lock:
            if self._whole() is not both_ways:
                self.n_bases = len(both_ways) // 2
                self.planes = self._rooms.of("planes", -(-self.n_bases // BASES), 3, dtype=np.uint32)
                self._there = np.zeros(-(-self.n_bases // BLOCK), np.bool_)
                self._whole = weakref.ref(both_ways)

    def forget(self) -> None:
        """All that was sent; the memory stays."""
        self._whole = lambda: None

    def bring(self, table: np.ndarray, codes: np.ndarray, threads: int, stream) -> int:
        """Upload the bases of some flanks as far as they are not there; return how many bases that were.

        table : rows of `Flanks.table`.  codes : `both_ways`.  threads : that pack them.
        """
        needed = np.zeros(len(self._there), np.bool_)
        mark_blocks(table, self.n_bases, needed)
        with self._lock:  # one worker after the other: the kernels of the first run while the second one's reads are packed
            missing = needed & ~self._there
            room = min(STAGED, len(missing)) * WORDS
            if room > len(self._staging):
                self._staging = cuda.pinned_array((room, 3), np.uint32)
            sent = sum(self._send(*blocks, codes, threads, stream) for blocks in stretches(missing, STAGED))
            self._there |= missing
        return sent

    def _send(self, first: int, end: int, codes: np.ndarray, threads: int, stream) -> int:
        """Blocks first .. end - 1.  Threads that help do not talk to the device, since each that does costs milliseconds."""
        part = codes[first * BLOCK : min(end * BLOCK, self.n_bases)]
        words = -(-len(part) // BASES)
        staged = self._staging[:words]

        def pack(blocks: tuple[int, int]) -> None:
            begin, after = blocks
            pack_planes(part[begin * BLOCK : after * BLOCK], staged[begin * WORDS : after * WORDS])

        parts = min(threads, (end - first) // LEAST_PART)
        map_threads(pack, even_ranges(end - first, max(1, parts)), threads)
        self.planes[first * WORDS : first * WORDS + words].copy_to_device(staged, stream=stream)
        stream.synchronize()
        return len(part)
