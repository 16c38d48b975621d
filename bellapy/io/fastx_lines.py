"""FASTA and FASTQ line by line, in any form: the rules, with a message for whatever breaks them.

`fastx_scan` reads nearly all text faster.  It leaves to this module what is damaged, or sound but rare: wrapped FASTQ, blank
lines, names beyond ASCII, records of both formats in one file.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bellapy.errors import InputError
from bellapy.io.compressed import FETCH_AGAIN
from bellapy.io.fastx_blocks import Block, FileBlock, Taken, read_only, show, spacing_of
from bellapy.io.fastx_ends import are_letters
from bellapy.io.fastx_form import LINES, UPPER
from bellapy.records.bases import ENCODE, PAD

_GAP = b"N" * PAD
_CODES = ENCODE.tobytes()
CHUNK = 1 << 19  # bases
_HEADER = re.compile(rb"[>@][!-~]+(?:[ \t][^\r\0]*)?")
_QUALITIES = bytes(range(ord("!"), ord("~") + 1))
Fault = Callable[[str, int, int], InputError]
"""Makes an error from what is wrong, how many records were read since some were last given, and the number of the line."""


class Records(NamedTuple):
    """Some records of a stream of reads, as they stand in the input.

    names; comments : what follows the name in the header, without the blank between; sequences; qualities : None in FASTA.
    """

    names: list[bytes]
    comments: list[bytes]
    sequences: list[bytes]
    qualities: list[bytes] | None


def chunks_of(blocks: Iterable[Block | FileBlock], fault: Fault) -> Iterator[tuple[Records, list[int]]]:
    """The records of a text, some of one format at a time, and the number of the line on which each begins.

    blocks : follow each other; they need not end where records do.
    """
    held: list[_Record] = []
    size = 0

    def fail(problem: str, line: int) -> InputError:
        return fault(problem, len(held), line)

    for record in _cut(_Lines(blocks), fail):
        if held and (size >= CHUNK or (held[0].qualities is None) != (record.qualities is None)):
            yield _joined(held)
            held, size = [], 0
        held.append(record)
        size += len(record.sequence)
    if held:
        yield _joined(held)


class _Record(NamedTuple):
    line: int
    name: bytes
    comment: bytes
    sequence: bytes
    qualities: bytes | None


def _joined(records: list[_Record]) -> tuple[Records, list[int]]:
    lines, names, comments, sequences, qualities = map(list, zip(*records, strict=True))
    return Records(names, comments, sequences, None if qualities[0] is None else qualities), lines


class _Lines:
    """The lines of a text without their ends, one after the other.  line : the present one, None behind the last one."""

    def __init__(self, blocks: Iterable[Block | FileBlock]):
        self._lines = self._of(blocks)
        self.number = 0
        self.line: bytes | None = None
        self.advance()

    def advance(self) -> None:
        """Go on to the next line."""
        self.number, self.line = next(self._lines, (self.number + 1, None))

    @staticmethod
    def _of(blocks: Iterable[Block | FileBlock]) -> Iterator[tuple[int, bytes | None]]:
        number, begun = 0, b""
        for block in blocks:
            number = number or block.first_line
            *lines, begun = (begun + block.data).split(b"\n")
            for line in lines:
                yield number, line.removesuffix(b"\r")
                number += 1
        if begun:
            yield number, begun.removesuffix(b"\r")


Fail = Callable[[str, int], InputError]


def _cut(lines: _Lines, fail: Fail) -> Iterator[_Record]:
    """The records that stand in some lines."""
    while True:
        while lines.line is not None and not lines.line.strip():
            lines.advance()
        if lines.line is None:
            return
        at, header = lines.number, lines.line
        name, comment = _split_header(header, fail, at)
        lines.advance()
        is_fastq = header.startswith(b"@")
        bases = _take_bases(lines, is_fastq, fail)
        sequence = b"".join(bases)
        yield _Record(
            at, name, comment, sequence, _take_qualities(lines, len(bases), len(sequence), fail) if is_fastq else None
        )


def _split_header(header: bytes, fail: Fail, line: int) -> tuple[bytes, bytes]:
    """Name and comment."""
    if header[:1] not in (b">", b"@"):
        raise fail(f"expected '>' or '@' and a name, found {show(header)}. {FETCH_AGAIN}", line)
    name, comment = (*header[1:].split(None, 1), b"", b"")[:2]
    if not name:
        raise fail(f"the name is empty: {show(header)}. Name the read.", line)
    if b"\r" in header or b"\0" in header or not _is_printable(name):
        raise fail(f"the name is not printable, or a line end not LF or CRLF: {show(header)}. Rename the read.", line)
    return name, comment


def _is_printable(name: bytes) -> bool:
    try:
        return name.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _take_bases(lines: _Lines, is_fastq: bool, fail: Fail) -> list[bytes]:
    """The lines of bases of a record, without blank ones."""
    bases: list[bytes] = []
    while lines.line is not None:
        mark = lines.line[:1]
        if mark == b"+" and is_fastq:
            return bases
        if (mark and not mark.isalpha() and bases) if is_fastq else mark in (b">", b"@"):
            break
        if lines.line and not lines.line.isalpha():
            raise fail(_letter_problem(lines.line), lines.number)
        bases += [lines.line] * bool(lines.line)
        lines.advance()
    if is_fastq:
        raise fail(f"expected '+' after the bases, found {show(lines.line or b'')}. {FETCH_AGAIN}", lines.number)
    return bases


def _take_qualities(lines: _Lines, n_lines: int, n_bases: int, fail: Fail) -> bytes:
    """The quality values of a record, behind its line with "+".

    They stand on as many lines as the bases.  So no value can be taken for the mark of the next record.
    """
    lines.advance()
    values: list[bytes] = []
    line = 0
    while lines.line is not None and len(values) < n_lines:
        if lines.line:
            line = lines.number
            values.append(lines.line)
        lines.advance()
    joined = b"".join(values)
    if len(joined) != n_bases:
        raise fail(f"{n_bases} bases but {len(joined)} quality values. {FETCH_AGAIN}", line or lines.number)
    if joined.translate(None, _QUALITIES):
        raise fail(f"a quality value is not one of '!' to '~'. {FETCH_AGAIN}", line)
    return joined


def take(records: Records, lines: list[int]) -> Taken:
    """Records as compiled code takes them; lines : the number of each one's first line."""
    text = _GAP.join([*records.sequences, b""])
    others = np.frombuffer(text.translate(None, b"ACGTUNacgtun"), np.uint8)
    values = np.frombuffer(b"".join(records.qualities or []), np.uint8)
    spacing = spacing_of(len(values))
    return Taken(
        [name.decode() for name in records.names], np.array(list(map(len, records.sequences)), np.int64),
        np.frombuffer(text.translate(_CODES), np.uint8), np.array(lines, np.int64),
        np.bincount(others & UPPER, minlength=256), spacing * np.bincount(values[::spacing], minlength=256),
    )  # fmt: skip


def whole_records(text: bytes, is_fastq: bool) -> Records | None:
    """The records of a text that holds whole ones; None if anything is unusual, for `chunks_of` to look at.

    Long sequences are checked at once, not line by line.
    """
    return _whole_fastq(text) if is_fastq else _whole_fasta(text)


def _whole_fastq(text: bytes) -> Records | None:
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    if len(lines) % LINES:
        return None
    headers, sequences, marks, qualities = (lines[i::LINES] for i in range(LINES))
    values = np.frombuffer(b"".join(qualities), np.uint8)
    if not (
        all(header.startswith(b"@") and _HEADER.fullmatch(header) for header in headers)
        and all(sequence.isalpha() for sequence in sequences)
        and all(mark.startswith(b"+") for mark in marks)
        and list(map(len, sequences)) == list(map(len, qualities))
        and (not values.size or (values.min() >= _QUALITIES[0] and values.max() <= _QUALITIES[-1]))
    ):
        return None
    words = [(*header[1:].split(None, 1), b"")[:2] for header in headers]
    return Records([word[0] for word in words], [word[1] for word in words], sequences, qualities)


def _whole_fasta(text: bytes) -> Records | None:
    names, comments, sequences = list[bytes](), list[bytes](), list[bytes]()
    begins, ends = list[int](), list[int]()
    at = 0
    while at < len(text):
        end = text.find(b"\n", at)
        header = text[at : end if end >= 0 else len(text)]
        line_end = text.find(b"\n", end + 1) if end >= 0 else -1
        if line_end >= 0 and text[line_end + 1 : line_end + 2] in (b">", b""):  # all on one line
            sequence, begins_next = text[end + 1 : line_end], line_end + 1
        else:
            begins_next = text.find(b"\n>", at) + 1
            begins_next = begins_next if begins_next > 0 else len(text)
            sequence = text[at + len(header) : begins_next].translate(None, b"\n")
        if not _HEADER.fullmatch(header) or header[:1] != b">":
            return None
        name, comment = (*header[1:].split(None, 1), b"")[:2]
        names.append(name)
        comments.append(comment)
        sequences.append(sequence)
        begins.append(at + len(header))
        ends.append(begins_next)
        at = begins_next
    if not all(sequences) or not are_letters(read_only(text, len(text)), np.array(begins), np.array(ends)):
        return None
    return Records(names, comments, sequences, None)


def _letter_problem(line: bytes) -> str:
    rest = line.lstrip(string.ascii_letters.encode())
    return f"{show(rest[:1])} at column {len(line) - len(rest) + 1} is not a letter. Remove it, or mask it with N."
