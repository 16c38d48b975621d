"""Reads on a GPU, as bit planes (cuda_host.py): in blocks of bases, each sent when a flank first needs it.

The reversed copy that `ReadSet.both_ways` has is not needed: kernels reverse the words.
"""

from __future__ import annotations

import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
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
        self._coming: list[tuple[Future, np.ndarray]] = []
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

    def bring(self, table: np.ndarray, codes: np.ndarray, staging: list[np.ndarray], stream) -> int:
        """Upload the bases of some flanks as far as they are not there; return how many bases that were.

        table : rows of `Flanks.table`.  codes : `both_ways`.  staging : from `make_staging`.
        """
        needed = np.zeros(len(self._there), np.bool_)
        mark_blocks(table, self.n_bases, needed)
        done: Future = Future()
        with self._lock:
            missing = needed & ~self._there
            self._there |= missing
            others = [future for future, theirs in self._coming if (theirs & needed).any()]
            self._coming.append(mine := (done, missing))

        try:
            return self._send(missing, codes[: self.n_bases], staging, stream)
        except BaseException:
            with self._lock:
                self._there &= ~missing
            raise
        finally:
            with self._lock:
                self._coming = [one for one in self._coming if one is not mine]
            done.set_result(None)
            for other in others:
                other.result()

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


def make_staging(n: int) -> list[np.ndarray]:
    """Pinned room for `bring` with n threads."""
    return [cuda.pinned_array((STAGED * WORDS, 3), np.uint32) for _ in range(n)]
