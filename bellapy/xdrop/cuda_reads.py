"""Reads on a GPU, as bit planes (cuda_host.py): in blocks of bases, each sent when a flank first needs it.

The reversed copy that `ReadSet.both_ways` has is not needed: kernels reverse the words.
"""

from __future__ import annotations

import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
from numba import cuda

from bellapy.xdrop.cuda_host import BASES, BLOCK, mark_blocks, pack_planes, stretches

STAGED = 1 << 7  # blocks that are packed and sent at a time
WORDS = BLOCK // BASES


class DeviceReads:
    """The reads that a GPU holds.

    n_bases : of one direction.
    planes : (words, 3) uint32 on the device.
    """

    def __init__(self, rooms):
        self._rooms = rooms
        self._whole = lambda: None
        self._staging: list[np.ndarray] = []  # pinned memory, one array for each thread that packs
        self._lock = Lock()

    def hold(self, both_ways: np.ndarray) -> None:
        """From now on these; `both_ways` is read-only, so its identity stands for its content."""
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
            for _ in range(threads - len(self._staging)):
                self._staging.append(cuda.pinned_array((STAGED * WORDS, 3), np.uint32))
            sent = self._send(missing, codes[: self.n_bases], self._staging[:threads], stream)
            self._there |= missing
        return sent

    def _send(self, blocks: np.ndarray, codes: np.ndarray, staging: list[np.ndarray], stream) -> int:
        """Packed by a thread for each part of `staging`; only this thread talks to the device, since each that does costs
        milliseconds.
        """
        sent, packing = 0, deque()

        def finish() -> int:
            first, n, planes, done = packing.popleft()
            done.result()
            words = -(-n // BASES)
            self.planes[first * WORDS : first * WORDS + words].copy_to_device(planes[:words], stream=stream)
            stream.synchronize()
            return n

        with ThreadPoolExecutor(len(staging)) as threads:
            for turn, (first, end) in enumerate(stretches(blocks, STAGED)):
                if len(packing) == len(staging):
                    sent += finish()
                part, planes = codes[first * BLOCK : end * BLOCK], staging[turn % len(staging)]
                packing.append((first, len(part), planes, threads.submit(pack_planes, part, planes)))
            while packing:
                sent += finish()
        return sent
