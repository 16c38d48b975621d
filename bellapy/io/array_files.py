"""Arrays by name in one file, as NumPy's .npz holds them: stored as they are, and read without trust in what is there."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import numpy as np

PIECE = 1 << 20  # bytes read at a time


def write_arrays(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as np.savez does, which leaves the archive open when the disk is full."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)


def read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array as `write_arrays` writes it: it cannot be larger than the file.

    Raises
    ------
    ValueError, KeyError, OSError, zipfile.BadZipFile : there is none of this name, or it is damaged.
    """
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{name} is compressed")
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError(f"{name}: no array")
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(member)
        size = math.prod(shape)
        if dtype.hasobject or by_columns or size * dtype.itemsize != info.file_size - member.tell():
            raise ValueError(f"{name}: no array")
        array = np.empty(size, dtype)
        room = array.view(np.uint8).data if size else memoryview(b"")
        for at in range(0, len(room), PIECE):
            piece = member.read(PIECE)
            room[at : at + len(piece)] = piece
        if member.read():  # nothing is left; checks the sum
            raise ValueError(f"{name}: no array")
        return array.reshape(shape)


def read_arrays(stream: BinaryIO, only: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """All arrays of a file, or some of them by name; raises what `read_array` does."""
    with zipfile.ZipFile(stream) as archive:
        names = only or [name.removesuffix(".npy") for name in archive.namelist()]
        return {name: read_array(archive, name) for name in names}
