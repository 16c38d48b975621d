"""Reads on a GPU, as bit planes (planes.py): in blocks of bases, each sent when a flank first needs it.

The reversed copy that `ReadSet.both_ways` has is not needed: kernels reverse the words.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from bellapy.compute.gpu.ops import driver, upload
from bellapy.compute.gpu.planes import BASES, BLOCK, mark_blocks, pack_planes, stretches
from bellapy.compute.threads import even_ranges
from bellapy.records.table import frozen

FEW = 1 << 22  # bases
STAGED = 1 << 11  # blocks that are packed and sent at a time
LEAST_PART = 1 << 7  # blocks: fewer are packed before a helper has begun
WORDS = BLOCK // BASES


@dataclass
class _Set:
    """Reads on a device.

    whole : gives their `ReadSet.both_ways`, None when that is gone.  n_bases : of one direction.
    planes : (words, 3) uint32 on the device.  there : (n_blocks,) bool, which blocks have been sent.
    """

    whole: Callable[[], np.ndarray | None]
    n_bases: int
    planes: Any
    there: np.ndarray


class DeviceReads:
    """The reads that a GPU holds: many, and beside them a set of few bases, so that a trial does not evict these."""

    def __init__(self, rooms, helpers: ThreadPoolExecutor):
        self._rooms, self._helpers = rooms, helpers
        self._stream, self._sent = driver.stream(), driver.event()
        self._sets: dict[str, _Set] = {}
        self._staging = np.empty((0, 3), np.uint32)  # pinned memory
        self._lock = Lock()

    @property
    def n_bases(self) -> int:
        """Bases of the set in use, in one direction."""
        return self._used.n_bases

    @property
    def planes(self) -> Any:
        """(words, 3) uint32 on the device, those of the set in use."""
        return self._used.planes

    def hold(self, both_ways: np.ndarray) -> None:
        """From now on use these; `both_ways` is read-only, so its identity stands for its content."""
        n_bases = len(both_ways) // 2
        name = "planes" if n_bases > FEW else "few planes"
        with self._lock:
            if name not in self._sets or self._sets[name].whole() is not both_ways:
                planes = self._rooms.of(name, -(-n_bases // BASES), 3, dtype=np.uint32)
                there = np.zeros(-(-n_bases // BLOCK), np.bool_)
                self._sets[name] = _Set(weakref.ref(both_ways), n_bases, planes, there)
            self._used = self._sets[name]

    def bring_all(self, codes: np.ndarray, threads: int, stream) -> int:
        """Upload all bases, as `bring` does those of some flanks."""
        with self._lock:
            sent = sum(self._send(*blocks, codes, threads) for blocks in stretches(~self._used.there, STAGED))
            self._used.there[:] = True
        self._sent.wait(stream)
        return sent

    def bring(self, table: np.ndarray, codes: np.ndarray, threads: int, stream) -> int:
        """Upload the bases of some flanks as far as they are not there; return how many bases that were.

        table : rows of `Flanks.table`.  codes : `both_ways`.  threads : that pack them.  stream : whose kernels, from now
            on, wait for them.
        """
        sent = 0 if self._used.there.all() else self._send_missing(table, codes, threads)
        self._sent.wait(stream)
        return sent

    def _send_missing(self, table: np.ndarray, codes: np.ndarray, threads: int) -> int:
        needed = np.zeros(len(self._used.there), np.bool_)
        mark_blocks(table, self.n_bases, needed)
        with self._lock:  # one worker after the other: the kernels of the first run while the second one's reads are packed
            missing = needed & ~self._used.there
            sent = sum(self._send(*blocks, codes, threads) for blocks in stretches(missing, STAGED))
            self._used.there |= missing
        return sent

    def _send(self, first: int, end: int, codes: np.ndarray, threads: int) -> int:
        """Blocks first .. end - 1.  Threads that help do not talk to the device, since each that does costs milliseconds."""
        part = frozen(codes[first * BLOCK : min(end * BLOCK, self.n_bases)])
        words = -(-len(part) // BASES)
        self._sent.synchronize()  # what was staged before
        if words > len(self._staging):
            self._staging = driver.pinned_array((min(STAGED, len(self._used.there)) * WORDS, 3), np.uint32)
        staged = self._staging[:words]

        def pack(blocks: tuple[int, int]) -> None:
            begin, after = blocks
            pack_planes(part[begin * BLOCK : after * BLOCK], staged[begin * WORDS : after * WORDS])

        mine, *others = even_ranges(end - first, max(1, min(threads, (end - first) // LEAST_PART)))
        helping = [self._helpers.submit(pack, blocks) for blocks in others]
        pack(mine)
        for helper in helping:
            helper.result()
        upload(staged, self.planes[first * WORDS : first * WORDS + words], self._stream)
        self._sent.record(self._stream)
        return len(part)
