"""Where reads lie on the reference: the truth that overlaps are judged by, read from a table, MAF, SAM or BAM."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import takewhile
from os import PathLike
from typing import TextIO

import numpy as np
import pysam

from bellapy.errors import InputError, ParameterError
from bellapy.io.compressed import as_text, check_line_end, open_stream

UNKNOWN = -1  # read length where the truth gives none; id of a read outside the truth
MIN_MAPPING_QUALITY = 10  # below it too many alignments lie in the wrong copy of a repeat
MAX_POSITION = 1 << 40  # on a reference; leaves room in 64 bits to lay millions of references end to end

_TRUTH_SUFFIXES = {".tsv": "table", ".maf": "maf", ".sam": "sam", ".bam": "sam"}
_MAF_SEQUENCE = re.compile(r"s\s+(\S+).*?\s(\d+)\s+(\d+)\s+([+-])\s+(\d+)\s+\S+\s*$")  # names may hold blanks
_CLIPS = (pysam.CSOFT_CLIP, pysam.CHARD_CLIP)
_NOT_PRIMARY = pysam.FUNMAP | pysam.FSECONDARY | pysam.FSUPPLEMENTARY


@dataclass(frozen=True)
class Truth:
    """Where each read lies on the reference.  Arrays have one entry a read, are int64 and read-only.

    names : unique.
    ref_ids : which reference sequence, from 0.
    starts, ends : on the forward strand of the reference.
    strands : +1 or -1.
    read_lengths, read_starts, read_ends : the part of the read that lies there; a length of UNKNOWN stands for the
        whole read, however long.
    """

    names: tuple[str, ...]
    ref_ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    strands: np.ndarray
    read_lengths: np.ndarray
    read_starts: np.ndarray
    read_ends: np.ndarray

    def __post_init__(self):
        for field in fields(self)[1:]:
            getattr(self, field.name).flags.writeable = False

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Read name to index."""
        return {name: i for i, name in enumerate(self.names)}


def read_truth(path: str | PathLike) -> Truth:
    """Read where the reads come from.

    Parameters
    ----------
    path : a table, a simulator's MAF, or alignments to the reference as SAM or BAM; plain or gzip.  The suffix (.tsv,
        .maf, .sam, .bam, perhaps with .gz or .bgz) tells the format, else the content does.

    Returns
    -------
    Truth, reads in the order of the file.

    Raises
    ------
    InputError : missing or damaged file, unknown format, no read at all, a read named twice, impossible coordinates.
    ParameterError : the path is that of standard input.

    Notes
    -----
    Table: read, ref, start, end, strand and, if known, read_len, read_start, read_end between tabs; "#" starts a
    comment; strand "+", "1" or "n" is forward, anything else reverse.
    MAF: the first sequence of a block is the reference, the others are reads.
    SAM, BAM: primary alignments of mapping quality MIN_MAPPING_QUALITY or more; reads without one stay outside the
    truth.  Of several with one name the last counts.
    """
    path = str(path)
    if path == "-":
        raise ParameterError("--truth -: the truth cannot come from standard input; write it to a file and name that")
    with open_stream(path) as stream:
        truth_format = _format_by_suffix(path) or _format_by_content(stream.peek(4096))
        if truth_format not in _TRUTH_READERS:
            raise InputError(path, "unknown format; expected a tab-separated truth table, MAF, SAM or BAM.")
        with as_text(stream) as lines:
            rows = list(_TRUTH_READERS[truth_format](path, lines))
    if not rows:
        raise InputError(path, "no read in this file has a known place; check that it is the right file.")
    return _build_truth(path, rows)


def _build_truth(path: str, rows: list[tuple]) -> Truth:
    """Truth from rows of line, name, ref, start, end, strand (True: forward), read length, read start, read end."""
    rank: dict[str, int] = {}
    ids: dict[str, int] = {}
    table = np.empty((7, len(rows)), np.int64)
    for i, (line, name, ref, start, end, forward, length, read_start, read_end) in enumerate(rows):
        if ids.setdefault(name, i) != i:
            raise InputError(path, f"read {name} occurs a second time; a read has only one place.", line=line)
        fits_read = length < 0 or 0 <= read_start <= read_end <= length < MAX_POSITION
        if not (0 <= start <= end < MAX_POSITION and fits_read):
            raise InputError(path, "start and end are not in order, or outside the sequence.", line=line)
        place = (rank.setdefault(ref, len(rank)), start, end, 1 if forward else -1)
        table[:, i] = *place, *((length, read_start, read_end) if length >= 0 else (UNKNOWN,) * 3)
    return Truth(tuple(ids), *table)


def _format_by_suffix(path: str) -> str | None:
    stem = re.sub(r"\.b?gz$", "", path.lower())
    return next((name for suffix, name in _TRUTH_SUFFIXES.items() if stem.endswith(suffix)), None)


def _format_by_content(head: bytes) -> str | None:
    """Format of a truth file from its first bytes, decompressed."""
    if re.match(rb"BAM\x01|@(HD|SQ|RG|PG|CO)\t", head):
        return "sam"
    first = next((line for line in head.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    if head.startswith(b"##maf") or re.match(rb"a( +\w+=\S+)* *$|s +\S", first):
        return "maf"
    return "table" if re.match(rb"[^\t]+\t[^\t]+\t\d+\t\d+\t[^\t]", first) else None


def _read_table(path: str, lines: TextIO) -> Iterator[tuple]:
    for number, line in enumerate(lines, 1):
        if line.startswith("#") or not line.strip():
            continue
        check_line_end(path, line, number)
        columns = line.rstrip("\n").split("\t")
        on_read = columns[5:8] if len(columns) >= 8 else (UNKNOWN,) * 3
        try:
            name, ref, start, end, strand = columns[:5]
            row = (number, name, ref, int(start), int(end), strand in ("+", "1", "n"), *map(int, on_read))
        except ValueError as error:
            problem = f"expected read, ref, start, end, strand [read_len, read_start, read_end] between tabs ({error})."
            raise InputError(path, problem, line=number) from error
        yield row


def _read_maf(path: str, lines: TextIO) -> Iterator[tuple]:
    place, its_strand = None, "+"
    for number, line in enumerate(lines, 1):
        if line.startswith("a"):
            place = None
        if not line.startswith("s"):
            continue
        if (sequence := _MAF_SEQUENCE.match(line)) is None:
            raise InputError(path, "expected s, name, start, size, strand, length and text; it may be cut off.", line=number)
        name, strand = sequence.group(1, 4)
        start, size, length = map(int, sequence.group(2, 3, 5))
        begin = start if strand == "+" else length - start - size  # MAF counts along the strand
        if place is None:
            place, its_strand = (name, begin, begin + size), strand
        else:
            yield (number, name, *place, strand == its_strand, length, begin, begin + size)


def _read_alignments(path: str, _lines: TextIO) -> Iterator[tuple]:
    verbosity, hook = pysam.set_verbosity(0), sys.unraisablehook  # the user sees each failure once, as InputError:
    sys.unraisablehook = lambda _: None  # pysam reports a damaged file once more when it closes it
    problem = None
    try:
        rows = _primary_alignments(path)
    except (OSError, ValueError) as error:
        problem = str(error)
    finally:
        pysam.set_verbosity(verbosity)
        sys.unraisablehook = hook
    if problem is not None:
        raise InputError(path, f"not readable as SAM or BAM with a header ({problem}).")
    yield from rows.values()


def _primary_alignments(path: str) -> dict[str, tuple]:
    """Rows of the truth by read."""
    with pysam.AlignmentFile(path, check_sq=False) as alignments:
        return {
            alignment.query_name: _place_alignment(alignment)
            for alignment in alignments.fetch(until_eof=True)
            if not alignment.flag & _NOT_PRIMARY
            and alignment.mapping_quality >= MIN_MAPPING_QUALITY
            and alignment.cigartuples
        }


def _place_alignment(alignment: pysam.AlignedSegment) -> tuple:
    """Row of the truth; positions on the read are those of the read as sequenced."""
    n_match, n_ins, n_del, n_skip, n_soft, n_hard, _, n_equal, n_differ = alignment.get_cigar_stats()[0][:9]
    n_both = n_match + n_equal + n_differ
    length = n_both + n_ins + n_soft + n_hard
    clips = takewhile(lambda operation: operation[0] in _CLIPS, alignment.cigartuples or ())
    start = sum(n for _, n in clips)
    if alignment.is_reverse:
        start = length - start - n_both - n_ins
    place = (alignment.reference_start, alignment.reference_start + n_both + n_del + n_skip, alignment.is_forward)
    return (None, alignment.query_name, alignment.reference_name, *place, length, start, start + n_both + n_ins)


_TRUTH_READERS = {"table": _read_table, "maf": _read_maf, "sam": _read_alignments}
