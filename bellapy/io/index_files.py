"""Index files of `bellapy index`: written whole, compared with their checksums, read through memory maps."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from bellapy.compute.memory import let_go_of_pages
from bellapy.compute.threads import map_threads
from bellapy.errors import InputError
from bellapy.io.compressed import is_read_once, told_damage
from bellapy.io.outputs import whole_files
from bellapy.seeding.index import Index, Lookup

NAME = b"bellapy-index-"  # of any version
MAGIC = NAME + b"3\n"
NUMBER_BYTES = 8  # of the header's size and checksum, which stand before it
ALIGNMENT = 64
PIECE = 1 << 22  # bytes of an array that have a checksum of their own, so that threads share the work
AGAIN = "make it again with `bellapy index`"


def is_index(path: str | os.PathLike) -> bool:
    """Whether a file is an index, of any version, by its first bytes; nothing is taken from a pipe."""
    if is_read_once(os.fspath(path)):
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(len(NAME)) == NAME
    except OSError:
        return False


def save_index(index: Index, path: str, threads: int = 1) -> None:
    """Write the index; the file appears under its name when it is complete."""
    arrays = {
        "codes": index.codes, "starts": index.starts, "lengths": index.lengths, "words": index.lookup.words,
        "buckets": index.lookup.starts,
    }  # fmt: skip
    kinds = {}
    for name, array in arrays.items():
        kinds[name] = [array.dtype.str, len(array), _checksums(partial(_piece, array), array.nbytes, threads)]
        let_go_of_pages(array)
    meta = {
        "names": index.names, "k": index.k, "window": index.window, "cutoff": index.lookup.cutoff,
        "place_bits": index.lookup.place_bits, "rest_bits": index.lookup.rest_bits,
        "arrays": kinds,
    }  # fmt: skip
    header = json.dumps(meta).encode()
    with whole_files(path) as (written,), open(written, "wb") as stream:
        stream.write(MAGIC)
        for number in (len(header), zlib.crc32(header)):
            stream.write(number.to_bytes(NUMBER_BYTES, "little"))
        stream.write(header)
        for array in arrays.values():
            stream.write(bytes(-stream.tell() % ALIGNMENT))
            array.tofile(stream)
            let_go_of_pages(array)


def load_index(path: str, threads: int = 1) -> Index:
    """An index file, mapped into memory.

    All of it is read once, to compare checksums: compiled code follows what stands in it without a further look.

    Raises
    ------
    InputError : a file that cannot be read, is no index of this version, is damaged or cut short.
    """
    with told_damage(path), open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        meta = _read_header(stream, path, size)
        at, arrays = stream.tell(), {}
        for name, (kind, length, checksums) in meta["arrays"].items():
            at += -at % ALIGNMENT
            n_bytes = np.dtype(kind).itemsize * length
            if at + n_bytes > size:
                raise InputError(path, f"the index is cut short; {AGAIN}")
            if _checksums(partial(_read_piece, stream.fileno(), at, n_bytes), n_bytes, threads) != checksums:
                raise _damaged(path)
            mapped = np.memmap(stream, kind, "r", at, (length,)) if length else np.zeros(0, kind)
            arrays[name] = mapped.view(np.ndarray)
            at += n_bytes
    lookup = Lookup(arrays["words"], arrays["buckets"], meta["place_bits"], meta["rest_bits"], meta["cutoff"])
    return Index(
        tuple(meta["names"]), arrays["codes"], arrays["starts"], arrays["lengths"], meta["k"], meta["window"], lookup
    )


def _read_header(stream: BinaryIO, path: str, size: int) -> dict[str, Any]:
    """What the file says of itself; size : of the whole file, bytes."""
    if stream.read(len(MAGIC)) != MAGIC:
        raise InputError(path, f"is an index of another version; {AGAIN}")
    length, checksum = (int.from_bytes(stream.read(NUMBER_BYTES), "little") for _ in range(2))
    header = stream.read(length) if length < size else b""
    if not header or zlib.crc32(header) != checksum:
        raise _damaged(path)
    return json.loads(header)


def _checksums(piece_at: Callable[[int], Any], n_bytes: int, threads: int) -> list[int]:
    """CRC-32 of each piece of an array of n_bytes; piece_at : gives the one that begins at a byte of it."""
    return map_threads(lambda at: zlib.crc32(piece_at(at)), range(0, n_bytes, PIECE), threads)


def _piece(array: np.ndarray, at: int) -> np.ndarray:
    return array.view(np.uint8)[at : at + PIECE]


def _read_piece(file: int, begin: int, n_bytes: int, at: int) -> bytes:
    """A piece of an array that begins somewhere in a file: read, so that the map takes no memory before it is used."""
    return os.pread(file, min(PIECE, n_bytes - at), begin + at)


def _damaged(path: str) -> InputError:
    return InputError(path, f"the index is damaged; {AGAIN}")
