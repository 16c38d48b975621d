"""FASTA and FASTQ line by line: the rules, with a message for whatever breaks them.

`fastx_scan` reads nearly all text faster.  It leaves to this module what is damaged, or sound but rare.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bellapy.errors import InputError
from bellapy.io.compressed import FETCH_AGAIN
from bellapy.io.fastx_blocks import Block, FileBlock, Taken, show, spacing_of
from bellapy.records.bases import ENCODE, PAD

_GAP = b"N" * PAD
_CODES = ENCODE.tobytes()
UPPER = 0xDF  # a letter's bits but for its case
_HEADER = re.compile(rb"[>@][!-~]+(?:[ \t][^\r\0]*)?")
Fault = Callable[[str, int, int], InputError]
"""Makes an error from what is wrong, an index of the record and one of the line."""


class Records(NamedTuple):
    """Some records of a stream of reads, as they stand in the input.

    names; comments : what follows the name in the header, without the blank between; sequences; qualities : None in FASTA.
    """

    names: list[bytes]
    comments: list[bytes]
    sequences: list[bytes]
    qualities: list[bytes] | None


def lines_of(blocks: Iterable[Block | FileBlock], fastq: bool) -> Iterator[tuple[int, list[bytes]]]:
    """Lines without their ends, cut between records, each list with the number of its first line, from 1."""
    first_line = 0
    lines: list[bytes] = []
    for block in blocks:
        first_line = first_line or block.first_line
        text = block.data.split(b"\n")
        lines += [line.rstrip(b"\r") for line in (text[:-1] if not text[-1] else text)]
        n = _count_whole(lines) if fastq else len(lines)
        if n:
            yield first_line, lines[:n]
            first_line, lines = first_line + n, lines[n:]
    while lines and not lines[-1]:
        lines.pop()
    if lines:
        # The last line of a FASTQ file may be the empty quality of an empty read; other missing lines fail the checks.
        yield first_line, lines + [b""] * (-len(lines) % 4)


def _count_whole(lines: list[bytes]) -> int:
    """Count the lines of FASTQ up to the last record border behind which something follows."""
    n = len(lines) - len(lines) % 4
    while n and not any(lines[n - 4 : n]):  # blank lines, an error unless nothing follows
        n -= 4
    return n


def take_records(lines: list[bytes], fastq: bool, fault: Fault) -> tuple[Records, list[int]]:
    """Check and split the records that stand in some lines; the index of each one's header."""
    headers = _check_fastq(lines, fault) if fastq else _check_fasta(lines, fault)
    if fastq:
        _check_qualities(lines[3::4], fault)
        sequences, qualities = lines[1::4], lines[3::4]
    else:
        ends = [*headers[1:], len(lines)] if headers else []
        sequences = [b"".join(lines[a + 1 : b]) for a, b in zip(headers, ends, strict=True)]
        qualities = None
    words = [(*lines[i][1:].split(None, 1), b"")[:2] for i in headers]
    return Records([word[0] for word in words], [word[1] for word in words], sequences, qualities), list(headers)


def take(lines: list[bytes], fastq: bool, fault: Fault) -> Taken:
    """The records that stand in some lines."""
    records, headers = take_records(lines, fastq, fault)
    text = _GAP.join([*records.sequences, b""])
    others = np.frombuffer(text.translate(None, b"ACGTUNacgtun"), np.uint8)
    values = np.frombuffer(b"".join(records.qualities or []), np.uint8)
    spacing = spacing_of(len(values))
    return Taken(
        [name.decode("ascii") for name in records.names], np.array(list(map(len, records.sequences)), np.int64),
        np.frombuffer(text.translate(_CODES), np.uint8), np.array(headers, np.int64),
        np.bincount(others & UPPER, minlength=256), spacing * np.bincount(values[::spacing], minlength=256),
    )  # fmt: skip


def whole_records(text: bytes) -> Records | None:
    """The records of FASTA text that begins with one; None if anything is unusual, for `take_records` to look at.

    Long sequences are checked at once, not line by line.
    """
    names, comments, sequences = list[bytes](), list[bytes](), list[bytes]()
    at = 0
    while at < len(text):
        end = text.find(b"\n", at)
        begins_next = text.find(b"\n>", at) + 1
        begins_next = begins_next if begins_next > 0 else len(text)
        header = text[at : end if end >= 0 else len(text)]
        sequence = text[at + len(header) : begins_next].translate(None, b"\n")
        if not _HEADER.fullmatch(header) or header[:1] != b">" or not sequence.isalpha():
            return None
        name, comment = (*header[1:].split(None, 1), b"")[:2]
        names.append(name)
        comments.append(comment)
        sequences.append(sequence)
        at = begins_next
    return Records(names, comments, sequences, None)


def _check_fasta(lines: list[bytes], fault: Fault) -> list[int]:
    """Check every line; return the index of each header.  `fault` makes the error for an index of record and line."""
    headers: list[int] = []
    for i, line in enumerate(lines):
        if line and not line.isalpha():
            if not line.startswith(b">"):
                raise fault(_letter_problem(line), len(headers) - 1, i)
            _check_header(line, fault, len(headers), i)
            headers.append(i)
    return headers


def _check_fastq(lines: list[bytes], fault: Fault) -> range:
    """Check every line, quality values apart; return the index of each header."""
    headers = range(0, len(lines), 4)
    for record, i in enumerate(headers):
        header, sequence, plus, quality = lines[i : i + 4]
        if not header.startswith(b"@"):
            raise fault(f"expected '@' and a name, found {show(header)}. {FETCH_AGAIN}", record, i)
        _check_header(header, fault, record, i)
        if not plus.startswith(b"+") or plus[1:].split()[:1] not in ([], header[1:].split()[:1]):
            problem = f"expected '+', alone or with the read's name, after one line of bases, found {show(plus)}"
            raise fault(f"{problem}. {FETCH_AGAIN}", record, i + 2)
        if len(sequence) != len(quality):
            raise fault(f"{len(sequence)} bases but {len(quality)} quality values. {FETCH_AGAIN}", record, i + 3)
        if sequence and not sequence.isalpha():
            raise fault(_letter_problem(sequence), record, i + 1)
    return headers


def _check_qualities(qualities: list[bytes], fault: Fault) -> None:
    """Check the range of all quality values."""
    values = np.frombuffer(b"".join(qualities), np.uint8)
    if values.size and not 33 <= values.min() <= values.max() <= 126:
        record = next(i for i, line in enumerate(qualities) if re.search(rb"[^!-~]", line))
        raise fault(f"a quality value is not one of '!' to '~'. {FETCH_AGAIN}", record, 4 * record + 3)


def _check_header(header: bytes, fault: Fault, record: int, line: int) -> None:
    if not _HEADER.fullmatch(header):
        named = header[1:2].strip()
        problem = "the name is not printable ASCII, or a line end not LF or CRLF" if named else "the name is empty"
        raise fault(f"{problem}: {show(header)}. Rename the read.", record, line)


def _letter_problem(line: bytes) -> str:
    rest = line.lstrip(string.ascii_letters.encode())
    return f"{show(rest[:1])} at column {len(line) - len(rest) + 1} is not a letter. Remove it, or mask it with N."
