"""Files between stages, for workflows that cut the job: records of arrays in NumPy's .npz, with what they were made from."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from bellapy.errors import InputError
from bellapy.memory import UNLIMITED, Budget
from bellapy.output import open_output
from bellapy.records import DepthProfile, Extensions, KmerMatrix, ReadSet, Seeds

FORMAT = 4
RECORDS = {"matrix": KmerMatrix, "profile": DepthProfile, "seeds": Seeds, "extensions": Extensions}
KINDS = {
    "k-mers": ("matrix", "profile"),
    "seeds": ("seeds",),
    "alignments": ("seeds", "extensions"),
}
DAMAGE = (ValueError, TypeError, KeyError, RuntimeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)  # shows up as


def fingerprint(reads: ReadSet) -> dict[str, int]:
    """What tells one set of reads from another: number, bases, checksums."""
    return {
        "reads": len(reads),
        "bases": reads.n_bases,
        "names": zlib.crc32("\n".join(reads.names).encode()),
        "lengths": zlib.crc32(reads.lengths),
        "codes": zlib.crc32(reads.codes),
    }


def save_stage(path: str, kind: str, reads: ReadSet, meta: dict[str, Any], **records: Any) -> None:
    """Write the records of a stage and `meta`, anything that JSON holds."""
    arrays = {
        f"{name}.{f.name}": np.asarray(getattr(record, f.name)) for name, record in records.items() for f in fields(record)
    }
    header = {"format": FORMAT, "kind": kind, "reads": fingerprint(reads), "meta": meta}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    # as np.savez does it, which leaves the archive open when the disk is full
    with open_output(path, compressible=False) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def load_stage(path: str, kind: str, reads: ReadSet, budget: Budget = UNLIMITED) -> tuple[dict[str, Any], ...]:
    """`meta`, then the records of `kind` in order."""
    if not Path(path).is_file():
        raise InputError(path, "there is no such file; run the stage before this one first")
    budget.require(f"loading {path}", Path(path).stat().st_size)
    if not zipfile.is_zipfile(path):
        raise _damaged(path, "no archive")
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            arrays = {name: stored[name] for name in stored.files if name != "header"}
    except DAMAGE as error:
        raise _damaged(path, error) from error
    if header.get("format") != FORMAT or header.get("kind") != kind:
        raise InputError(path, f"holds {header.get('kind')} (format {header.get('format')}); {kind} are needed here")
    if header["reads"] != fingerprint(reads):
        raise InputError(path, "was made from other reads; give the same read files, in the same order")
    try:
        return header["meta"], *(_restore(name, arrays) for name in KINDS[kind])
    except DAMAGE as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception | str) -> InputError:
    return InputError(path, f"is not a stage file of bellapy, or damaged ({error}); make it again")


def _restore(name: str, arrays: dict[str, np.ndarray]):
    record = RECORDS[name]
    values = (arrays[f"{name}.{f.name}"] for f in fields(record))
    return record(*(value.item() if value.ndim == 0 else value for value in values))
