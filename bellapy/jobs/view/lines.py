"""The lines of a PAF file that are about one read, seen from that read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.errors import InputError
from bellapy.io.compressed import check_line_end, open_stream
from bellapy.io.fastx_blocks import show
from bellapy.io.paf_paths import MOST, TAG, parse_path

UNKNOWN = b"*"  # a path


class Mate(NamedTuple):
    """A read that overlaps the one looked at; positions are 0-based, half-open, on the forward strand of each.

    start, end : on the read looked at.  other_start, other_end, length : on the other read.
    strand : +1, or -1 where the other's reverse complement aligns.
    identity : matching bases for each column.  cigar : None where the line has none.
    is_query : whether the read looked at is the query: a CIGAR's insertions are its bases then.
    """

    name: str
    length: int
    other_start: int
    other_end: int
    start: int
    end: int
    strand: int
    identity: float
    cigar: str | None
    is_query: bool


def read_mates(path: str, name: str) -> tuple[int | None, list[Mate]]:
    """The length of a read, None where no line has it, and its overlaps by their start on it.

    Raises
    ------
    InputError : a line of the read that is no PAF.
    """
    wanted, length, found = name.encode("utf-8", "surrogateescape"), None, []
    with open_stream(path) as lines:
        for number, line in enumerate(lines, 1):
            check_line_end(path, line, number)
            if wanted not in line:
                continue
            columns = line.rstrip(b"\r\n").split(b"\t")
            if len(columns) < 12:
                raise InputError(path, "a line of PAF has 12 columns or more; is this the right file?", line=number)
            if columns[0] == columns[5]:
                continue
            for is_query, column in ((True, 0), (False, 5)):
                if columns[column] == wanted:
                    length, mate = _mate(path, number, columns, is_query)
                    found.append(mate)
    return length, sorted(found, key=lambda mate: (mate.start, mate.end, mate.name))


def _mate(path: str, number: int, columns: list[bytes], is_query: bool) -> tuple[int, Mate]:
    try:
        query, target = ([int(columns[i]) for i in places] for places in ((1, 2, 3), (6, 7, 8)))
        matches, size = int(columns[9]), int(columns[10])
    except ValueError:
        raise InputError(path, "a column that has to be a whole number is none", line=number) from None
    own, other = (query, target) if is_query else (target, query)
    for name, (length, start, end) in ((columns[0], query), (columns[5], target)):
        if not 0 <= start <= end <= length:
            shown = name.decode(errors="backslashreplace")
            raise InputError(path, f"the places on {shown} are not in order, or outside the read", line=number)
    if columns[4] not in (b"+", b"-"):
        raise InputError(path, f"the strand is {show(columns[4])}, not + or -", line=number)
    other_name = columns[5 if is_query else 0].decode("utf-8", "surrogateescape")
    text = _path(path, number, columns, (query[2] - query[1], target[2] - target[1]))
    strand = -1 if columns[4] == b"-" else 1
    identity = matches / max(size, 1)
    return own[0], Mate(other_name, other[0], other[1], other[2], own[1], own[2], strand, identity, text, is_query)


def _path(path: str, number: int, columns: list[bytes], spans: tuple[int, int]) -> str | None:
    """The CIGAR of a line, None if there is none; spans : bases of the query and of the target."""
    text = next((column[len(TAG) :] for column in columns[12:] if column.startswith(TAG)), UNKNOWN)
    if text == UNKNOWN:
        return None
    parse_path(path, number, text, spans, np.empty(len(text) + sum(spans) // MOST + 1, np.uint8))
    return text.decode()
