"""Base codes while reads are read: in pieces, since nobody knows yet how many there will be."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock

import numpy as np

_ROOM_SIZE = 1 << 25  # the C library returns arrays so large to the system at once, smaller ones perhaps not


class Pieces:
    """Growing codes, in pieces that are never moved; once there is no room for them, their number alone.

    size : their number.
    """

    def __init__(self):
        self.size = 0
        self._pieces: deque[np.ndarray] = deque()
        self._counts_only = False
        self._left = np.empty(0, np.uint8)  # of the memory that was taken last
        self._lock = Lock()

    def room(self, n: int) -> np.ndarray:
        """Memory for n codes, (n,) uint8, part of a large array; any thread may ask."""
        with self._lock:
            if n > len(self._left):
                self._left = np.empty(max(n, _ROOM_SIZE), np.uint8)
            given, self._left = self._left[:n], self._left[n:]
        return given

    def add(self, codes: np.ndarray) -> None:
        """Add a piece, which is kept as it is."""
        self.size += len(codes)
        if not self._counts_only:
            self._pieces.append(codes)

    def let_go(self) -> None:
        """Only count from now on."""
        self._counts_only, self._left = True, np.empty(0, np.uint8)
        self._pieces.clear()

    def drain(self) -> Iterator[list[np.ndarray]]:
        """All pieces in order, many at a time, freed when the next ones are asked for."""
        self._left = np.empty(0, np.uint8)
        while self._pieces:
            some, size = [], 0
            while self._pieces and size < _ROOM_SIZE:
                some.append(self._pieces.popleft())
                size += len(some[-1])
            yield some
            some.clear()


class WrittenPieces(Pieces):
    """Codes that go to a file and not into memory."""

    def __init__(self, write: Callable[[memoryview], object]):
        super().__init__()
        self._write = write

    def room(self, n: int) -> np.ndarray:
        """Memory for n codes, freed when they have been written."""
        return np.empty(n, np.uint8)

    def add(self, codes: np.ndarray) -> None:
        self._write(codes.data)
        self.size += len(codes)
