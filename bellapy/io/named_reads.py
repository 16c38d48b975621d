"""Single reads of a file by their names."""

from __future__ import annotations

import os
from typing import Any

import pyfastx

from bellapy.errors import InputError
from bellapy.io.aligned import open_reads
from bellapy.io.fastx import stream_records
from bellapy.io.fastx_blocks import begin

INDEX_SUFFIX = ".fxi"
"""What pyfastx adds to the name of a file for its index."""


def sequences_of(path: str, wanted: set[str]) -> dict[str, str]:
    """The sequences of the reads of these names: through pyfastx's index if it lies beside the file, else by a search.

    Raises
    ------
    InputError : a name is missing, the file is not sound, or the index cannot be used.
    """
    found = _look_up(path, wanted) if _has_index(path) else _search(path, wanted)
    if missing := sorted(wanted - found.keys()):
        raise InputError(path, f"no read is named {missing[0]}; names are the first word of a header")
    return found


def _has_index(path: str) -> bool:
    """Whether there is an index that is not older than the file."""
    index = path + INDEX_SUFFIX
    return os.path.isfile(path) and os.path.isfile(index) and os.path.getmtime(index) >= os.path.getmtime(path)


def _look_up(path: str, wanted: set[str]) -> dict[str, str]:
    with open_reads(path) as stream:
        fastq, _ = begin(path, stream)
    try:
        reads: Any = pyfastx.Fastq(path) if fastq else pyfastx.Fasta(path)
        return {name: reads[name].seq for name in wanted if name in reads}
    except Exception:  # pyfastx raises errors of several kinds where an index is damaged
        told = "the index of pyfastx cannot be used. Remove it, or make it again with `pyfastx index`."
        raise InputError(path + INDEX_SUFFIX, told) from None


def _search(path: str, wanted: set[str]) -> dict[str, str]:
    found = {}
    for records in stream_records([path]):
        for name, sequence in zip(records.names, records.sequences, strict=True):
            if (text := name.decode("utf-8", "surrogateescape")) in wanted:
                found[text] = sequence.decode()
    return found
