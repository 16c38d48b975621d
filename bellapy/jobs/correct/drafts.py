"""Drafts of any assembler: contigs, and whether their headers say that they are circles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bellapy.errors import InputError
from bellapy.io.fastx_lines import Records
from bellapy.records.bases import encode

CIRCLE = re.compile(r"\b(circular=(true|yes|y|1)|topology=circular|XO:i:1)\b", re.IGNORECASE)
"""As bellapy, Unicycler, NCBI and raven say it."""
NAMED_CIRCLE = re.compile(r"\w*tg\d+c")  # as miniasm and hifiasm name it
LENGTH = re.compile(r"\blength=\d+")


class DraftContig(NamedTuple):
    """A contig as it was read.  header : without the >."""

    name: str
    header: str
    codes: np.ndarray
    circular: bool

    def header_for(self, n_bases: int) -> str:
        """The header of the same contig with another number of bases."""
        return LENGTH.sub(f"length={n_bases}", self.header)


def read_drafts(all_records: Iterable[Records], source: str) -> list[DraftContig]:
    """The contigs of records; source : where they are from.

    Raises
    ------
    InputError : a name occurs twice.
    """
    drafts: dict[str, DraftContig] = {}
    for records in all_records:
        for name, comment, sequence in zip(records.names, records.comments, records.sequences, strict=True):
            told = name.decode(errors="surrogateescape")
            header = f"{told} {comment.decode(errors='surrogateescape')}".rstrip()
            circular = bool(CIRCLE.search(header) or NAMED_CIRCLE.fullmatch(told))
            if told in drafts:
                raise InputError(source, f"the name {told!r} occurs twice. Names must be unique.", len(drafts) + 1)
            drafts[told] = DraftContig(told, header, encode(sequence), circular)
    return list(drafts.values())
