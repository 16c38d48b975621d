"""The text of FASTA and FASTQ in blocks of whole records, for readers that work side by side."""

from __future__ import annotations

import io
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from itertools import chain, count, repeat
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_in_order
from bellapy.errors import InputError
from bellapy.io.fastx_ends import BEGINS, ENDS, FIRST_CUT, LEFT, N_SEEN, count_lines, look_at
from bellapy.io.fastx_form import BYTE_ORDER_MARKS, LINES, LOOKED_AT, OTHER_FILES
from bellapy.records.table import frozen

BLOCK_SIZE = 1 << 19  # bytes; the C library returns the memory of larger ones to the system each time

AT_ONCE = 8  # blocks that a thread reads at a time: so threads seldom ask for Python's lock
GROWTH = 64  # readings of a stream, after which one more block is read at a time
QUALITY_SAMPLE = 1 << 15  # bases of a block whose qualities are all counted
MOST_SPACING = 8


class Block(NamedTuple):
    """Whole records.

    first_line : number of the first line, from 1.
    parts : the text, in some pieces, which whoever works on it joins; only the input's last line may lack its end.
    """

    first_line: int
    parts: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        """The text, joined."""
        return b"".join(self.parts)

    def text(self) -> tuple[bytes | bytearray, int]:
        """The text and its length, with a line end behind its last line."""
        data = self.data
        if not data.endswith(b"\n"):
            data += b"\n"
        return data, len(data)


class FileBlock(NamedTuple):
    """The same where the text stands in an ordinary file, from `begin` to `end`: each thread reads its own."""

    first_line: int
    file: int
    begin: int
    end: int

    @property
    def data(self) -> bytes:
        """The text."""
        text, n = _read(self.file, self.begin, self.end)
        return bytes(memoryview(text)[:n])

    def text(self) -> tuple[bytes | bytearray, int]:
        """As of Block; it stays until this thread reads again."""
        text, n = _read(self.file, self.begin, self.end)
        if n and text[n - 1] != ord("\n"):
            text[n : n + 1] = b"\n"
            n += 1
        return text, n


_own = threading.local()


def _read(file: int, begin: int, end: int) -> tuple[bytearray, int]:
    """Bytes of an open file, in memory that this thread uses again, and their number: less where the file became shorter."""
    room = getattr(_own, "room", None)
    if room is None or len(room) <= end - begin:
        room = _own.room = bytearray(max(BLOCK_SIZE, end - begin) + 1)
    with memoryview(room) as view:
        n = 0
        while begin + n < end and (more := os.preadv(file, [view[n : end - begin]], begin + n)):
            n += more
    return room, n


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


def begin(path: str, stream: io.BufferedReader) -> tuple[bool, int]:
    """Whether the first record is one of FASTQ, not of FASTA, and the number of its line; what stands before is consumed.

    Raises
    ------
    InputError : it is neither.
    """
    line, blank = 1, b""
    while stream.peek(1)[:1].isspace() and not blank.strip():
        blank = stream.readline()
        line += not blank.strip()
    head = blank.strip(b"\n") if blank.strip() else stream.peek(LOOKED_AT)[:LOOKED_AT]
    if head[:1] in (b">", b"@"):
        return head[:1] == b"@", line
    for begins, problem in OTHER_FILES.items():
        if head.startswith(begins):
            raise InputError(path, problem)
    if not head:
        raise InputError(path, "the file is empty: it holds no reads. Check the step that made it.")
    if head.startswith(BYTE_ORDER_MARKS):
        raise InputError(path, "text with a byte-order mark, as some editors write it. Save it as plain ASCII text.", line=1)
    kind = "text before the first record" if head.isascii() and b"\0" not in head else "binary data"
    problem = f"{kind}: starts with {show(head)}, not with '>' (FASTA) or '@' (FASTQ). Is this the right file?"
    raise InputError(path, problem, line=line)


def show(text: bytes) -> str:
    """Bytes as they may stand in a message."""
    return repr(text[:40])[1:] if text else "nothing"


def blocks_of(
    stream: io.BufferedReader, fastq: bool, threads: int = 1, first_line: int = 1, growing: bool = False
) -> Iterator[Block | FileBlock]:  # fmt: skip
    """The text of a stream, cut between records if these have the usual form.  A record of any length is one piece.

    first_line : the number of the line that comes next.
    growing : larger blocks as more comes, up to AT_ONCE times.  For one thread that reads while many others work: with much
        to read it seldom waits for Python's lock, and little is dealt out evenly.
    """
    if threads > 1 and plain_size(stream):
        yield from _blocks_of_file(stream.fileno(), stream.tell(), fastq, threads, first_line)
        return
    held = list[bytes]()
    n_held = 0  # lines that end in what is held: in FASTQ fewer than a record has
    sizes = _growing() if growing else repeat(BLOCK_SIZE)
    while chunk := stream.read(next(sizes)):
        n_lines = count_lines(read_only(chunk, len(chunk)))  # ten times as fast as bytes.count
        cut = _cut_fastq(chunk, n_held + n_lines) if fastq else _cut_fasta(chunk, held)
        if cut is None:
            held.append(chunk)
            n_held += n_lines
            continue
        parts = (*held, chunk[:cut])
        held = [chunk[cut:]]
        n_left = held[0].count(b"\n")
        yield Block(first_line, parts)
        first_line += n_held + n_lines - n_left
        n_held = n_left
    if any(held):
        yield Block(first_line, tuple(held))


def _growing() -> Iterator[int]:
    """How many bytes of a stream to read at a time."""
    return (BLOCK_SIZE * min(AT_ONCE, 1 + n // GROWTH) for n in count())


def taken_together(blocks: Iterable[Block | FileBlock]) -> Iterator[list[Block | FileBlock]]:
    """Blocks as a thread takes them: some of an ordinary file, else one."""
    some: list[Block | FileBlock] = []
    for block in blocks:
        some.append(block)
        if len(some) == AT_ONCE or isinstance(block, Block):
            yield some
            some = []
    if some:
        yield some


def plain_size(stream: io.BufferedReader) -> int:
    """The size of an ordinary file whose bytes a stream gives as they stand there; 0 for any other stream."""
    if not isinstance(stream.raw, io.FileIO) or not hasattr(os, "preadv"):
        return 0
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


class _Seen(NamedTuple):
    """What a thread has seen of a piece of a file.

    n, n_lines : its bytes, and lines that end in it.
    cuts : where it may be cut.  FASTQ: behind its last line ends, the last one first, as many as a record has lines; FASTA:
    before its last header, unless that begins the piece.
    left : lines behind that cut of FASTA.  begins, ends : of FASTA, whether it begins like a header, and ends a line.
    """

    n: int
    n_lines: int
    cuts: list[int]
    left: int = 0
    begins: bool = False
    ends: bool = False


def _look_at(file: int, at: int, end: int, fastq: bool) -> list[_Seen]:
    """What is seen of the pieces that a thread reads at a time, from `at` on."""
    text, n = _read(file, at, min(at + AT_ONCE * BLOCK_SIZE, end))
    seen = np.empty((-(-n // BLOCK_SIZE), N_SEEN), np.int64)
    look_at(read_only(text, n), BLOCK_SIZE, fastq, seen)
    return [
        _Seen(row[0], row[1], [cut for cut in row[FIRST_CUT:LEFT] if cut >= 0], row[LEFT], row[BEGINS] > 0, row[ENDS] > 0)
        for row in seen.tolist()
    ]


def read_only(text: bytes | bytearray, n: int) -> np.ndarray:
    """The first n bytes of a text for compiled code, which has one type for all: uint8."""
    return frozen(np.frombuffer(text, np.uint8, n))


def _blocks_of_file(file: int, begin: int, fastq: bool, threads: int, first_line: int) -> Iterator[FileBlock]:
    """`blocks_of` an open file: the same cuts, though no thread holds more than one piece."""
    n_held, ended, size = 0, False, os.fstat(file).st_size
    at = begin
    starts = range(begin, size, AT_ONCE * BLOCK_SIZE)
    for seen in chain.from_iterable(map_in_order(lambda at: _look_at(file, at, size, fastq), starts, threads)):
        total, cut, left = n_held + seen.n_lines, None, seen.left
        if fastq and total >= LINES:
            cut, left = seen.cuts[total % LINES], total % LINES
        elif not fastq and seen.cuts:
            cut = seen.cuts[0]
        elif not fastq and seen.begins and ended and begin < at:
            cut, left = 0, seen.n_lines
        if cut is None:
            n_held = total
        else:
            yield FileBlock(first_line, file, begin, at + cut)
            begin, first_line, n_held = at + cut, first_line + total - left, left
        at, ended = at + seen.n, seen.ends
    if begin < at:
        yield FileBlock(first_line, file, begin, at)


def _cut_fastq(chunk: bytes, n_lines: int) -> int | None:
    """Where the last whole record ends in a chunk; n_lines end in it and in what is held before it.  None: nowhere."""
    if n_lines < LINES:
        return None
    at = len(chunk)
    for _ in range(n_lines % LINES + 1):
        at = chunk.rfind(b"\n", 0, at)
    return at + 1


def _cut_fasta(chunk: bytes, held: list[bytes]) -> int | None:
    """Where the last record begins in a chunk that follows what is held; None: before it."""
    if at := chunk.rfind(b"\n>") + 1:
        return at
    return 0 if chunk.startswith(b">") and held and held[-1].endswith(b"\n") else None
