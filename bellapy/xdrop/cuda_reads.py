"""Reads on a GPU as bit planes, which the register kernel compares 16 bases at a time.

Word (b, i) of the planes holds one bit for each of the bases 32 b .. 32 b + 31, the first one in the lowest bit: for i = 0
and 1 the two bits of the code, for i = 2 whether the base is unknown.  The reversed copy that `ReadSet.both_ways` has is not
needed: kernels reverse the words.

The reads come in blocks of BLOCK bases, each when a flank first needs it, packed into pinned memory on the way.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from threading import Lock

import numpy as np
from numba import cuda

from bellapy.jit import njit, njit_entry
from bellapy.sequence import UNKNOWN

BASES = 32  # of a word
BLOCK = 1 << 16
STAGED = 1 << 6  # blocks that are packed and sent at a time
WORDS = BLOCK // BASES


@njit
def _pack(eights, planes):
    """Words of the planes from codes, eight of which are a number of `eights`."""
    ones, gather, top = np.uint64(0x0101010101010101), np.uint64(0x0102040810204080), np.uint64(56)
    for block in range(len(planes)):
        for i in range(3):
            word = np.uint64(0)
            for j in range(4):
                bits = eights[4 * block + j] >> np.uint64(i) & ones
                word |= (bits * gather >> top) << np.uint64(8 * j)
            planes[block, i] = word


def pack_planes(codes: np.ndarray, planes: np.ndarray) -> None:
    """Bit planes of uint8 codes into `planes`, (at least len(codes) / BASES, 3) uint32; unknown bases fill the last word."""
    whole = len(codes) // BASES
    with np.errstate(over="ignore"):
        _pack(codes[: BASES * whole].view(np.uint64), planes[:whole])
        if rest := len(codes) - BASES * whole:
            last = np.full(BASES, UNKNOWN, np.uint8)
            last[:rest] = codes[BASES * whole :]
            _pack(last.view(np.uint64), planes[whole : whole + 1])


@njit_entry
def mark_blocks(table, n_bases, needed):
    """Set `needed`, one flag for every block, where the flanks of a `Flanks.table` have bases."""
    for i in range(len(table)):
        for side in range(2):
            begin, length = table[i, 2 * side], table[i, 2 * side + 1]
            if begin >= n_bases:
                begin = 2 * n_bases - begin - length
            for block in range(begin // BLOCK, (begin + length - 1) // BLOCK + 1):
                needed[block] = True


class DeviceReads:
    """The reads of a read set that a GPU holds."""

    def __init__(self, both_ways: np.ndarray):
        self._whole = weakref.ref(both_ways)
        self.n_bases = len(both_ways) // 2
        self.planes = cuda.device_array((-(-self.n_bases // BASES), 3), np.uint32)
        self._there = np.zeros(-(-self.n_bases // BLOCK), np.bool_)
        self._coming: list[Future] = []
        self._lock = Lock()

    def are_of(self, both_ways: np.ndarray) -> bool:
        """`both_ways` is read-only, so its identity stands for its content."""
        return self._whole() is both_ways

    def bring(self, table: np.ndarray, codes: np.ndarray, staging: list[np.ndarray], stream) -> int:
        """Upload the bases of some flanks as far as they are not there; return how many bases that were.

        table : rows of `Flanks.table`.  codes : the reads.  staging : two pinned arrays, (STAGED * WORDS, 3) uint32.
        """
        needed = np.zeros(len(self._there), np.bool_)
        mark_blocks(table, self.n_bases, needed)
        mine: Future = Future()
        with self._lock:
            needed &= ~self._there
            self._there |= needed
            others = list(self._coming)
            self._coming.append(mine)
        try:
            sent = self._send(needed, codes, staging, stream)
            stream.synchronize()
        finally:
            with self._lock:
                self._coming.remove(mine)
            mine.set_result(None)
        for other in others:
            other.result()
        return sent

    def _send(self, blocks: np.ndarray, codes: np.ndarray, staging: list[np.ndarray], stream) -> int:
        sent, events = 0, [cuda.event(), cuda.event()]
        for turn, (first, last) in enumerate(stretches(blocks, STAGED)):
            planes, event = staging[turn % 2], events[turn % 2]
            event.synchronize()
            part = codes[first * BLOCK : min(last * BLOCK, self.n_bases)]
            words = -(-len(part) // BASES)
            pack_planes(part, planes)
            self.planes[first * WORDS : first * WORDS + words].copy_to_device(planes[:words], stream=stream)
            event.record(stream)
            sent += len(part)
        return sent


def stretches(flags: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Beginnings and ends of the runs of set flags, cut after `most` flags."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    for begin, end in edges.reshape(-1, 2).tolist():
        for at in range(begin, end, most):
            yield at, min(at + most, end)


def make_staging(pinned: Callable = cuda.pinned_array) -> list[np.ndarray]:
    """Room for `bring`."""
    return [pinned((STAGED * WORDS, 3), np.uint32) for _ in range(2)]
