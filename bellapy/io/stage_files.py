"""Files between stages, for workflows that cut the job: records of arrays in NumPy's .npz, with what they were made from.

The matrix of k-mers and the candidates are there as arrays of scipy.sparse, too, which `scipy.sparse.load_npz` reads.
"""

from __future__ import annotations

import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bellapy.compute.memory import UNLIMITED, Budget
from bellapy.errors import InputError, ParameterError
from bellapy.io.outputs import open_output
from bellapy.params import Scoring, validate
from bellapy.records import DepthProfile, Estimate, Extensions, KmerMatrix, ReadSet, Seeds
from bellapy.records.sparse import sparse_kmers, sparse_seeds

FORMAT = 4
MOST_TILT, MOST_FALL = 1 << 16, 1 << 30  # far above any chosen value, far below overflow
RECORDS = {"matrix": KmerMatrix, "profile": DepthProfile, "seeds": Seeds, "extensions": Extensions}
KINDS = {
    "k-mers": ("matrix", "profile"),
    "seeds": ("seeds",),
    "alignments": ("seeds", "extensions"),
}
AS_SPARSE: dict[str, Callable[[dict[str, Any], ReadSet], Any]] = {
    "k-mers": lambda records, reads: sparse_kmers(records["matrix"]),
    "seeds": lambda records, reads: sparse_seeds(records["seeds"], len(reads)),
}
"""Kinds of stage files that also have an array of scipy.sparse."""
ABOUT = {"extensions": ("seeds",)}  # records whose check needs others
DAMAGE = (  # shows up as
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, OSError, EOFError, SyntaxError,
    ParameterError, zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip
ESTIMATED = (
    ("depth", 0, 1e12), ("error_rate", 0, 1), ("worst_error_rate", 0, 1), ("uneven", 0, 1), ("spread", 0, 1e12),
    ("repeats", 0, 1), ("level", 0, 1e12), ("heterozygosity", 0, 1),
)  # fmt: skip
"""Numbers of an Estimate, and between what they lie."""
PIECE = 1 << 20  # bytes read at a time


def fingerprint(reads: ReadSet) -> dict[str, int]:
    """What tells one set of reads from another: number, bases, checksums."""
    return {
        "reads": len(reads),
        "bases": reads.n_bases,
        "names": zlib.crc32("\n".join(reads.names).encode()),
        "lengths": zlib.crc32(reads.lengths.data),
        "codes": zlib.crc32(reads.codes.data),
    }


def save_stage(path: str, kind: str, reads: ReadSet, meta: dict[str, Any], **records: Any) -> None:
    """Write the records of a stage and `meta`, anything that JSON holds."""
    arrays = {
        f"{name}.{f.name}": np.asarray(getattr(record, f.name)) for name, record in records.items() for f in fields(record)
    }
    if kind in AS_SPARSE:
        arrays |= _sparse_arrays(AS_SPARSE[kind](records, reads), reads)
    header = {"format": FORMAT, "kind": kind, "reads": fingerprint(reads), "meta": meta}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    # as np.savez does it, which leaves the archive open when the disk is full
    with open_output(path, compressible=False) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _sparse_arrays(matrix: sparse.csc_array | sparse.csr_array, reads: ReadSet) -> dict[str, np.ndarray]:
    """What `scipy.sparse.load_npz` looks for in a file, and the names of the rows, one in a line."""
    names = np.frombuffer("\n".join(reads.names).encode(), np.uint8)
    return {
        "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape),
        "format": np.array(matrix.format.encode()), "_is_array": np.array(True), "names": names,
    }  # fmt: skip


def load_stage(path: str, kind: str, reads: ReadSet, budget: Budget = UNLIMITED) -> tuple[Any, ...]:
    """`meta`, then the records of `kind` in order.

    Nothing in the file is trusted: kernels may take what comes back.

    Raises
    ------
    InputError : no stage file of this version, or one of another stage, or made from other reads.
    MemoryLimitError : `budget` has no room for what is in it.
    """
    if not Path(path).is_file():
        raise InputError(path, "there is no such file; run the stage before this one first")
    budget.require(f"loading {path}", Path(path).stat().st_size)
    if not zipfile.is_zipfile(path):
        raise not_a_stage(path, "no archive")
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(_read_array(archive, "header").tobytes())
            if header["format"] != FORMAT or header["kind"] != kind:
                raise InputError(path, f"holds {header['kind']} (format {header['format']}); {kind} are needed here")
            if header["reads"] != fingerprint(reads):
                raise InputError(path, "was made from other reads; give the same read files, in the same order")
            records = {name: _restore(archive, name) for name in KINDS[kind]}
            _check_rest(archive, {"header", *(f"{name}.{f.name}" for name in records for f in fields(RECORDS[name]))})
        _check_meta(kind, header["meta"])
        for name, record in records.items():
            record.check(reads, **{other: records[other] for other in ABOUT.get(name, ())})
    except DAMAGE as error:
        raise not_a_stage(path, error) from error
    return header["meta"], *records.values()


def not_a_stage(path: str, error: Exception | str) -> InputError:
    """The error that tells a user so."""
    return InputError(path, f"is not a stage file of this version of bellapy, or damaged ({error}); make it again")


def _restore(archive: zipfile.ZipFile, name: str):
    """A record, each field of the kind that it has to be."""
    record, values = RECORDS[name], {}
    for f in fields(record):
        value = values[f.name] = _read_array(archive, f"{name}.{f.name}")
        if f.type == "int":
            if value.ndim or value.dtype.kind != "i":
                raise ValueError(f"{f.name}: no whole number")
            values[f.name] = value.item()
    return record(**values)


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array as `save_stage` writes it: stored as it is, so that it cannot be larger than the file."""
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
        room = array.data.cast("B") if size else memoryview(b"")
        for at in range(0, len(room), PIECE):
            piece = member.read(PIECE)
            room[at : at + len(piece)] = piece
        if member.read():  # nothing is left; checks the sum
            raise ValueError(f"{name}: no array")
        return array.reshape(shape)


def _check_rest(archive: zipfile.ZipFile, read: set[str]) -> None:
    """Check the sums of what is there for others; read : arrays whose sums are checked already."""
    for info in archive.infolist():
        if info.filename.removesuffix(".npy") not in read:
            with archive.open(info) as member:
                while member.read(PIECE):
                    pass


def _check_meta(kind: str, meta: dict[str, Any]) -> None:
    """Raise ValueError or the like unless it is what the stages of this version write."""
    estimate = Estimate(**meta["estimate"])
    for name, low, high in ESTIMATED:
        value = getattr(estimate, name)
        if value is not None and not (type(value) in (int, float) and low <= value <= high):
            raise ValueError(f"{name}: out of range")
    if type(estimate.given) is not bool or type(estimate.source) is not str:
        raise ValueError("estimate: not of this version")
    if kind != "alignments":
        return
    steps = [Scoring(**step) for step in meta["steps"]]
    if not 1 <= len(steps) <= 2 or len({step[:3] for step in steps}) > 1:
        raise ValueError("steps: not of this version")
    for step in steps:
        if any(type(value) is not int for value in step) or not (
            0 <= step.tilt <= MOST_TILT and 0 <= step.fall <= MOST_FALL
        ):
            raise ValueError("scores: out of range")
        validate({name: getattr(step, name) for name in ("match", "mismatch", "gap", "xdrop")})
    validate({"extension": meta["extension"]})
