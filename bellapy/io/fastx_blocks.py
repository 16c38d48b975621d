"""The text of FASTA and FASTQ in blocks of whole records, for readers that work side by side."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_in_order
from bellapy.errors import InputError

BLOCK_SIZE = 1 << 19  # bytes; the C library returns the memory of larger ones to the system each time

COMPRESSED = "compressed by bzip2, xz or zstd. Unpack it, or compress it by gzip or bgzip."
OTHER_FILES = {
    b"MMI\2": "an index of minimap2. Give the FASTA file that it was made from.",
    b"bellapy-index": "an index of bellapy, not FASTA or FASTQ. Give the FASTA file that it was made from.",
    b"BZh": COMPRESSED,
    b"\xfd7zXZ": COMPRESSED,
    b"\x28\xb5\x2f\xfd": COMPRESSED,
}
"""What is often given by mistake, by its first bytes."""

QUALITY_SAMPLE = 1 << 15  # bases of a block whose qualities are all counted
MOST_SPACING = 8

BYTE_ORDER_MARKS = b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"  # of UTF-8 and UTF-16


class Block(NamedTuple):
    """Whole records.

    first_line : number of the first line, from 1.
    parts : the text, in some pieces, which whoever works on it joins; only the input's last line may lack its end.
    """

    first_line: int
    parts: tuple[bytes | memoryview, ...]

    @property
    def data(self) -> bytes:
        """The text, joined."""
        return b"".join(self.parts)


class Taken(NamedTuple):
    """The records of a block, checked.

    names : first words of the headers.  lengths : (n,) int64, bases.  codes : (sum of lengths and of PAD behind each,)
    uint8.  lines : (n,) int64, lines of the block before each header.  letters : (256,) int64, how often letters other than
    A, C, G, T, U, N occur, in upper case.  qualities : (256,) int64, how often quality values occur, from evenly
    spaced bases.
    """

    names: list[str]
    lengths: np.ndarray
    codes: np.ndarray
    lines: np.ndarray
    letters: np.ndarray
    qualities: np.ndarray


def spacing_of(n_bases: int) -> int:
    """Of the bases of a block, one of how many has its quality counted."""
    return min(MOST_SPACING, 1 + n_bases // QUALITY_SAMPLE)


def is_fastq(path: str, stream: io.BufferedReader) -> bool:
    """Tell FASTQ (True) from FASTA (False) by the first byte, without consuming it.

    Raises
    ------
    InputError : it is neither.
    """
    head = stream.peek(16)[:16]
    if head[:7] in (b"@HD\tVN:", b"@SQ\tSN:", b"@PG\tID:", b"@RG\tID:"):
        raise InputError(path, "SAM, not FASTA or FASTQ. Convert it with `samtools fastq`.")
    if head[:1] in (b">", b"@"):
        return head[:1] == b"@"
    for begins, problem in OTHER_FILES.items():
        if head.startswith(begins):
            raise InputError(path, problem)
    if not head.strip() and not any(line.strip() for line in stream):
        raise InputError(path, "the file is empty: it holds no reads. Check the step that made it.")
    if head.startswith((b"BAM\1", b"CRAM")):
        raise InputError(path, "BAM or CRAM, not FASTA or FASTQ. Convert it with `samtools fastq`.")
    if head.startswith(BYTE_ORDER_MARKS):
        raise InputError(path, "text with a byte-order mark, as some editors write it. Save it as plain ASCII text.", line=1)
    kind = "text before the first record" if head.isascii() and b"\0" not in head else "binary data"
    problem = f"{kind}: starts with {show(head)}, not with '>' (FASTA) or '@' (FASTQ). Is this the right file?"
    raise InputError(path, problem, line=1)


def show(text: bytes) -> str:
    """Bytes as they may stand in a message."""
    return repr(text[:40])[1:] if text else "nothing"


def blocks_of(stream: io.BufferedReader, fastq: bool, threads: int = 1) -> Iterator[Block]:
    """The text of a stream, cut between records.  A record of any length is one piece."""
    first_line, held = 1, list[bytes]()
    n_held = 0  # lines that end in what is held: in FASTQ fewer than a record has
    for chunk, n_lines in _chunks_of(stream, threads):
        cut = _cut_fastq(chunk, n_held + n_lines) if fastq else _cut_fasta(chunk, held)
        if cut is None:
            held.append(chunk)
            n_held += n_lines
            continue
        parts: tuple[bytes | memoryview, ...] = (*held, memoryview(chunk)[:cut])
        held = [chunk[cut:]]
        n_left = held[0].count(b"\n")
        yield Block(first_line, parts)
        first_line += n_held + n_lines - n_left
        n_held = n_left
    if any(held):
        yield Block(first_line, tuple(held))


def _chunks_of(stream: io.BufferedReader, threads: int) -> Iterator[tuple[bytes, int]]:
    """The text of a stream in pieces, and how many lines end in each; several threads read an ordinary file."""
    if threads > 1 and _is_plain(stream):
        file, begin = stream.fileno(), stream.tell()
        end = os.fstat(file).st_size
        chunks: Iterator[bytes] = map_in_order(
            lambda at: _read_at(file, at, min(BLOCK_SIZE, end - at)), range(begin, end, BLOCK_SIZE), threads
        )
    else:
        chunks = iter(lambda: stream.read(BLOCK_SIZE), b"")
    for chunk in chunks:
        yield chunk, chunk.count(b"\n")


def _is_plain(stream: io.BufferedReader) -> bool:
    """Whether a stream gives the bytes of an ordinary file, as they stand there."""
    return isinstance(stream.raw, io.FileIO) and stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def _read_at(file: int, at: int, size: int) -> bytes:
    """Bytes of an open file from a place on; fewer where it has become shorter."""
    parts = [os.pread(file, size, at)]
    while parts[-1] and (left := size - sum(map(len, parts))):
        parts.append(os.pread(file, left, at + size - left))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _cut_fastq(chunk: bytes, n_lines: int) -> int | None:
    """Where the last whole record ends in a chunk; n_lines end in it and in what is held before it.  None: nowhere."""
    if n_lines < 4:
        return None
    at = len(chunk)
    for _ in range(n_lines % 4 + 1):
        at = chunk.rfind(b"\n", 0, at)
    return at + 1


def _cut_fasta(chunk: bytes, held: list[bytes]) -> int | None:
    """Where the last record begins in a chunk that follows what is held; None: before it."""
    if at := chunk.rfind(b"\n>") + 1:
        return at
    return 0 if chunk.startswith(b">") and held and held[-1].endswith(b"\n") else None
