"""Index files of `bellapy index`: written whole, read through memory maps."""

from __future__ import annotations

import json
import os

import numpy as np

from bellapy.errors import InputError
from bellapy.io.outputs import whole_files
from bellapy.seeding.index import Index, Lookup

MAGIC = b"bellapy-index-2\n"


ALIGNMENT = 64


def is_index(path: str | os.PathLike) -> bool:
    """Whether a file is an index by its first bytes."""
    try:
        with open(path, "rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def save_index(index: Index, path: str) -> None:
    """Write the index; the file appears under its name when it is complete."""
    arrays = {
        "codes": index.codes, "starts": index.starts, "lengths": index.lengths, "words": index.lookup.words,
        "buckets": index.lookup.starts,
    }  # fmt: skip
    meta = {
        "names": index.names, "k": index.k, "window": index.window, "cutoff": index.lookup.cutoff,
        "place_bits": index.lookup.place_bits, "rest_bits": index.lookup.rest_bits,
        "arrays": {name: [array.dtype.str, len(array)] for name, array in arrays.items()},
    }  # fmt: skip
    header = json.dumps(meta).encode()
    with whole_files(path) as (written,), open(written, "wb") as stream:
        stream.write(MAGIC + len(header).to_bytes(8, "little") + header)
        for array in arrays.values():
            stream.write(bytes(-stream.tell() % ALIGNMENT))
            array.tofile(stream)


def load_index(path: str) -> Index:
    """An index file, mapped into memory.

    Raises
    ------
    InputError : a file that cannot be read, is no index or is cut short.
    """
    try:
        with open(path, "rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                raise InputError(path, "is no index of this version; make one with `bellapy index`")
            meta = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
            at, size, arrays = stream.tell(), os.path.getsize(path), {}
            for name, (kind, length) in meta["arrays"].items():
                at += -at % ALIGNMENT
                n_bytes = np.dtype(kind).itemsize * length
                if at + n_bytes > size:
                    raise InputError(path, "the index is cut short; make it again with `bellapy index`")
                arrays[name] = np.memmap(path, kind, "r", at, (length,)) if length else np.zeros(0, kind)
                at += n_bytes
    except OSError as error:
        raise InputError(path, f"{error.strerror or error}. Check name, folder and permissions.") from error
    except (ValueError, KeyError) as error:
        raise InputError(path, "the index is damaged; make it again with `bellapy index`") from error
    plain = {name: array.view(np.ndarray) for name, array in arrays.items()}
    lookup = Lookup(plain["words"], plain["buckets"], meta["place_bits"], meta["rest_bits"], meta["cutoff"])
    return Index(tuple(meta["names"]), plain["codes"], plain["starts"], plain["lengths"], meta["k"], meta["window"], lookup)
