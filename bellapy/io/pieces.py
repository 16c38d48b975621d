"""Base codes while reads are read: in pieces, since nobody knows yet how many there will be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from bellapy.records.reads import memory_of

_PIECE_SIZE = 1 << 25  # the C library returns arrays so large to the system at once, smaller ones perhaps not


class Pieces:
    """Growing codes, in large arrays that are never moved; once there is no room for them, their number alone.

    size : their number.
    """

    def __init__(self):
        self.size = 0
        self._pieces: list[np.ndarray] = []
        self._room: np.ndarray | None = np.empty(0, np.uint8)  # what is left of the last piece's memory

    def add(self, codes: np.ndarray) -> None:
        n = len(codes)
        if self._room is None:
            self.size += n
            return
        if n > len(self._room):
            self._room = np.empty(max(n, _PIECE_SIZE), np.uint8)
            self._pieces.append(self._room[:0])
        self._room[:n] = codes
        self._pieces[-1] = memory_of(self._pieces[-1])[: len(self._pieces[-1]) + n]
        self._room = self._room[n:]
        self.size += n

    def let_go(self) -> None:
        """Only count from now on."""
        self._room, self._pieces = None, []

    def drain(self) -> Iterator[np.ndarray]:
        """All pieces in order, each freed when the next one is asked for."""
        self._room = None
        while self._pieces:
            yield self._pieces.pop(0)


class WrittenPieces(Pieces):
    """Codes that go to a file and not into memory."""

    def __init__(self, stream: BinaryIO):
        super().__init__()
        self._stream = stream

    def add(self, codes: np.ndarray) -> None:
        self._stream.write(codes.data)
        self.size += len(codes)
