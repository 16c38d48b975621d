"""Arrays that show a file: what of it is in memory can be dropped at any time."""

from __future__ import annotations

import mmap
import os

import numpy as np

PIECE, MOST_PIECES = 1 << 24, 256  # bytes of a file that are in memory at a time, unless it is very large


def map_bytes(path: str | os.PathLike) -> np.ndarray:
    """The bytes of a file, (n,) uint8, read when they are looked at; the file must not be empty."""
    with open(path, "rb") as stream:
        return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def file_behind(array: np.ndarray) -> mmap.mmap | None:
    """The map of a file that an array shows, if it shows one."""
    shown: object = array
    while isinstance(shown, np.ndarray):
        shown = shown.base
    if isinstance(shown, memoryview):
        shown = shown.obj
    return shown if isinstance(shown, mmap.mmap) else None


def pieces_of(array: np.ndarray) -> int:
    """In how many pieces to go through an array, so that little of the file behind it is in memory at a time."""
    return max(1, min(MOST_PIECES, array.nbytes // PIECE)) if file_behind(array) else 1


def let_go(array: np.ndarray) -> None:
    """Drop what is in memory of the file behind an array, if there is one: it is read again when it is needed."""
    file = file_behind(array)
    if file is not None and hasattr(file, "madvise"):
        file.madvise(mmap.MADV_DONTNEED)
