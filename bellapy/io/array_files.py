"""Arrays by name in one file: a line that says what is in it, then the arrays as they are in memory.

NumPy's .npz would do, but takes a hundred times as long for small arrays, of which a job in a folder reads very many.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import numpy as np

MAGIC = b"bellapy-arrays-2\n"
LENGTH_BYTES, SUM_BYTES = 8, 4
MOST_HEADER = 1 << 24  # bytes; a damaged length would ask for all memory
PLAIN = "biuf"  # kinds of types that may stand in a file


def write_arrays(stream: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of numbers, each with a checksum, and one of what is said of them."""
    plain = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}
    about = {name: [a.dtype.str, a.shape, zlib.crc32(_bytes(a))] for name, a in plain.items()}
    header = json.dumps(about).encode()
    stream.write(MAGIC + len(header).to_bytes(LENGTH_BYTES, "little") + _sum(header) + header)
    for array in plain.values():
        stream.write(_bytes(array))


def read_arrays(stream: BinaryIO, only: Sequence[str] = (), sound: set[str] | None = None) -> dict[str, np.ndarray]:
    """All arrays of a file, or some of them by name.

    sound : names of arrays whose checksums were compared before, which is not done again; grows.

    Raises
    ------
    ValueError, LookupError, TypeError : the file is damaged, is none of these, or has no array of such a name.
    """
    if stream.read(len(MAGIC)) != MAGIC:
        raise ValueError("not a file of arrays of this version")
    size, checksum = int.from_bytes(stream.read(LENGTH_BYTES), "little"), stream.read(SUM_BYTES)
    header = stream.read(min(size, MOST_HEADER))
    if _sum(header) != checksum:
        raise ValueError("wrong checksum")
    about = json.loads(header)
    at, found = stream.tell(), {}
    wanted = set(only) or about.keys()
    if missing := wanted - about.keys():
        raise LookupError(f"no {sorted(missing)[0]}")
    size_of_file = stream.seek(0, 2)
    for name, (kind, shape, checksum) in about.items():
        dtype = np.dtype(kind)
        size = math.prod(shape) * dtype.itemsize
        if dtype.kind not in PLAIN or at + size > size_of_file:
            raise ValueError("cut short")
        if name in wanted:
            array = np.empty(shape, dtype)
            stream.seek(at)
            if stream.readinto(_bytes(array)) != size:  # type: ignore[attr-defined]
                raise ValueError("cut short")
            if sound is None or name not in sound:
                if zlib.crc32(_bytes(array)) != checksum:
                    raise ValueError(f"{name}: wrong checksum")
                if sound is not None:
                    sound.add(name)
            found[name] = array
        at += size
    return found


def _sum(header: bytes) -> bytes:
    return zlib.crc32(header).to_bytes(SUM_BYTES, "little")


def _bytes(array: np.ndarray) -> memoryview:
    """The memory of an array; an empty one has none that could be shown."""
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(bytearray())
