"""Stage 1: FASTA and FASTQ, plain or compressed by gzip or bgzip, into one `ReadSet`.

pyfastx parses fast but trusts its input.  It stops at a damaged record without an error, skips text before the first
record, and takes a cut file for a short one.  So every line is checked before pyfastx sees it:

1. `_open` decompresses.
2. `_batches` cuts the text into lists of lines that hold whole records.
3. `_check_fasta` or `_check_fastq` checks each line, whose number is still known there.
4. `_parse` hands the checked lines to pyfastx.
5. `_Collector` packs the records.

Each input is read once and in order.  So pipes work like files, and memory beyond the packed codes stays small.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import string
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any, BinaryIO, NamedTuple, cast

import numpy as np
import pyfastx

from bellapy.errors import BellapyError, InputError, MemoryLimitError, OutputError, ParameterError
from bellapy.records import ReadSet
from bellapy.records.bases import ENCODE, PAD, UNKNOWN
from bellapy.records.reads import memory_of, room_both_ways

_READ_SIZE = 1 << 18
_BATCH_SIZE = 1 << 19  # larger ones are slower: the C library returns their memory to the system each time
_DRAIN_SIZE = 1 << 30
_QUALITY_SAMPLE = 1 << 15
_PROGRESS_STEP = 1 << 20  # bases
_PIECE_SIZE = 1 << 25  # the C library returns arrays so large to the system at once, smaller ones perhaps not
_OPEN_FILES = "/proc/self/fd"
_GAP = "N" * PAD
_CODES = ENCODE.tobytes()
_UPPER = 0xDF  # a letter's bits but for its case
_AMINO = list(b"EFIJLOPQZ")  # letters of amino acids that no base and no set of bases has; X masks sequence
_PROTEIN = 0.1  # share of them: about 0.3 in protein, none in reads
_HEADER = re.compile(rb"[>@][!-~]+(?:[ \t][^\r\0]*)?")
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_FETCH_AGAIN = "The file may be cut short or damaged: check where it comes from and fetch it again."
_Fault = Callable[[str, int, int], InputError]


class Pieces:
    """Growing codes, in large arrays that are never moved; once there is no room for them, their number alone.

    size : their number.
    """

    def __init__(self):
        self.size = 0
        self._pieces: list[np.ndarray] = []
        self._room: np.ndarray | None = np.empty(0, np.uint8)  # what is left of the last piece's memory

    def add(self, codes: bytes) -> None:
        n = len(codes)
        if self._room is None:
            self.size += n
            return
        if n > len(self._room):
            self._room = np.empty(max(n, _PIECE_SIZE), np.uint8)
            self._pieces.append(self._room[:0])
        self._room[:n] = np.frombuffer(codes, np.uint8)
        self._pieces[-1] = memory_of(self._pieces[-1])[: len(self._pieces[-1]) + n]
        self._room = self._room[n:]
        self.size += n

    def let_go(self) -> None:
        """Only count from now on."""
        self._room, self._pieces = None, []

    def drain(self) -> Iterator[np.ndarray]:
        """All pieces in order, each freed when the next one is asked for."""
        self._room = None
        while self._pieces:
            yield self._pieces.pop(0)


class WrittenPieces(Pieces):
    """Codes that go to a file and not into memory."""

    def __init__(self, stream: BinaryIO):
        super().__init__()
        self._stream = stream

    def add(self, codes: bytes) -> None:
        self._stream.write(codes)
        self.size += len(codes)


class GatheredReads(NamedTuple):
    """What a `ReadSet` holds, with the codes in pieces."""

    names: tuple[str, ...]
    codes: Pieces
    starts: np.ndarray
    lengths: np.ndarray
    error_rate: float | None
    other_letters: dict[str, int]


def load_reads(paths: Sequence[str | os.PathLike], progress: Callable[[int, int], None] | None = None) -> ReadSet:
    """Read FASTA and FASTQ files, in the given order, into one set of packed reads.

    Parameters
    ----------
    paths : files, each FASTA or FASTQ, plain or compressed by gzip or bgzip, told by content; "-" is standard input.
    progress : called with reads and bases so far, at most every million bases; what it raises ends the reading.  Only after
        a MemoryLimitError all reads are counted, and it is raised at the end.

    Returns
    -------
    All reads, those of length 0 too, named by their header's first word.  `error_rate` is None unless all input is
    FASTQ and its quality values tell something: more than one value occurs, and one above Q1.

    Raises
    ------
    InputError : a file that is missing, damaged, empty or neither FASTA nor FASTQ, or a name that occurs twice.
    ParameterError : no file at all, or standard input twice.
    OutputError : no room for a temporary file of some megabytes.

    Notes
    -----
    FASTA may be wrapped, FASTQ may not.  U is read as T.  All letters but ACGTU, in either case, become UNKNOWN, and are
    counted unless they are N.  Letters that only amino acids have are a sign of protein, which is an InputError.  Quality is
    Phred+33.  `error_rate` comes from evenly spaced bases, and from all of them in inputs below 32,768 bases.
    """
    return join_reads(gather_reads(paths, progress))


def gather_reads(
    paths: Sequence[str | os.PathLike], progress: Callable[[int, int], None] | None = None, codes: Pieces | None = None
) -> GatheredReads:
    """All of `load_reads` except its last step, `join_reads`.

    codes : takes the codes; None: new `Pieces`.
    """
    names = [os.fspath(path) for path in paths]
    if not names or names.count("-") > 1:
        raise ParameterError("name at least one file of reads, and standard input (-) only once")
    collector = _Collector(progress, Pieces() if codes is None else codes)
    for path in names:
        _load_file(path, collector)
    return collector.finish()


class Records(NamedTuple):
    """Some records of a stream of reads, as they stand in the input.

    names; comments : what follows the name in the header, without the blank between; sequences; qualities : None in FASTA.
    """

    names: list[bytes]
    comments: list[bytes]
    sequences: list[bytes]
    qualities: list[bytes] | None


def stream_records(paths: Sequence[str | os.PathLike]) -> Iterator[Records]:
    """The records of FASTA and FASTQ files in order, some at a time, checked as `load_reads` does but for equal names.

    Nothing is kept, so that any amount of reads can pass through.

    Raises
    ------
    InputError, ParameterError : as `load_reads`.
    """
    names = [os.fspath(path) for path in paths]
    if not names or names.count("-") > 1:
        raise ParameterError("name at least one file of reads, and standard input (-) only once")
    for path in names:
        n_records = 0
        with _told_damage(path), _open(path) as stream:
            is_fastq = _is_fastq(path, stream)
            for first_line, lines in _batches(stream, is_fastq):
                records = _take_records(path, is_fastq, n_records, first_line, lines)
                n_records += len(records.names)
                yield records


def _take_records(path: str, is_fastq: bool, n_before: int, first_line: int, lines: list[bytes]) -> Records:
    """Check and split the records that stand in some lines."""

    def fault(problem: str, record: int, line: int) -> InputError:
        return InputError(path, problem, n_before + record + 1, first_line + line)

    headers = _check_fastq(lines, fault) if is_fastq else _check_fasta(lines, fault)
    if is_fastq:
        _check_qualities(lines[3::4], fault)
        sequences, qualities = lines[1::4], lines[3::4]
    else:
        ends = [*headers[1:], len(lines)] if headers else []
        sequences = [b"".join(lines[a + 1 : b]) for a, b in zip(headers, ends, strict=True)]
        qualities = None
    words = [(*lines[i][1:].split(None, 1), b"")[:2] for i in headers]
    return Records([word[0] for word in words], [word[1] for word in words], sequences, qualities)


def join_reads(gathered: GatheredReads) -> ReadSet:
    """The read set; the pieces are used up."""
    codes, at = room_both_ways(gathered.codes.size), 0
    for piece in gathered.codes.drain():
        codes[at : at + len(piece)] = piece
        at += len(piece)
    names, _, starts, lengths, error_rate, other_letters = gathered
    return ReadSet(names, codes, starts, lengths, error_rate, other_letters, in_room=True)


def _load_file(path: str, collector: _Collector) -> None:
    """Add all reads of one file to `collector`."""
    with _told_damage(path), _open(path) as stream:
        is_fastq = _is_fastq(path, stream)
        collector.begin_file(path, is_fastq)
        for first_line, lines in _batches(stream, is_fastq):
            collector.add(first_line, lines)
        collector.end_file()


@contextmanager
def _told_damage(path: str) -> Iterator[None]:
    """Errors of reading as errors about the input."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path, f"the compressed data are damaged ({error}). {_FETCH_AGAIN}") from None
    except OSError as error:
        raise InputError(path, f"{error.strerror or error}. Check name, folder and permissions.") from error


@contextmanager
def _open(path: str) -> Iterator[io.BufferedReader]:
    """The decompressed bytes of a file, or of standard input, which is left open."""
    with ExitStack() as stack:
        if path == "-":
            if sys.stdin is None:
                raise InputError(path, "is closed; name a file of reads.")
            source: Any = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer), _READ_SIZE)
            stack.callback(source.detach)
        else:
            source = stack.enter_context(open(path, "rb", buffering=_READ_SIZE))
        if source.peek(1)[:1] != b"\x1f":
            yield source
            return
        watched = _Watched(source)
        stream: Any = io.BufferedReader(gzip.GzipFile(fileobj=cast(BinaryIO, watched), mode="rb"), _READ_SIZE)
        try:
            yield stream
        except InputError:
            # Read on, up to a limit: zlib notices damaged data only at their end.
            any(not stream.read(_BATCH_SIZE) for _ in range(_DRAIN_SIZE // _BATCH_SIZE))
            raise
        if watched.is_cut_bgzip():
            raise InputError(path, f"the end-of-file block of bgzip is missing. {_FETCH_AGAIN}")


class _Watched:
    """Passes on a gzip file's bytes and looks out for bgzip's last block: nothing else tells a cut between blocks."""

    def __init__(self, source: io.BufferedReader):
        self._source, self._head, self._tail = source, b"", b""

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._head += data[: 16 - len(self._head)]
        self._tail = (self._tail + data)[-len(_BGZF_END) :]
        return data

    def is_cut_bgzip(self) -> bool:
        return self._head[12:] == b"BC\2\0" and self._tail != _BGZF_END


def _is_fastq(path: str, stream: io.BufferedReader) -> bool:
    """Tell FASTQ (True) from FASTA (False) by the first byte, without consuming it."""
    head = stream.peek(16)[:16]
    if head[:1] in (b">", b"@"):
        return head[:1] == b"@"
    if not head.strip() and not any(line.strip() for line in stream):
        raise InputError(path, "the file is empty: it holds no reads. Check the step that made it.")
    if head.startswith((b"BAM\1", b"CRAM")):
        raise InputError(path, "BAM or CRAM, not FASTA or FASTQ. Convert it with `samtools fastq`.")
    kind = "text before the first record" if head.isascii() and b"\0" not in head else "binary data"
    raise InputError(path, f"{kind}: starts with {_show(head)}, not with '>' (FASTA) or '@' (FASTQ).", line=1)


def _batches(stream: io.BufferedReader, is_fastq: bool) -> Iterator[tuple[int, list[bytes]]]:
    """Lines without their ends, cut between records, each list with the 1-based number of its first line."""
    first_line = 1
    lines: list[bytes] = []
    while chunk := stream.readlines(_BATCH_SIZE):
        n_old = len(lines)
        lines += [line.rstrip(b"\r\n") for line in chunk]
        if n := _count_whole(lines, n_old, is_fastq):
            yield first_line, lines[:n]
            first_line, lines = first_line + n, lines[n:]
    while lines and not lines[-1]:
        lines.pop()
    if lines:
        # The last line of a FASTQ file may be the empty quality of an empty read; other missing lines fail the checks.
        yield first_line, lines + [b""] * (-len(lines) % 4 if is_fastq else 0)


def _count_whole(lines: list[bytes], n_old: int, is_fastq: bool) -> int:
    """Count the lines up to the last record border; in FASTA the first `n_old` are known to hold no border."""
    if not is_fastq:
        return next((i for i in range(len(lines) - 1, max(n_old, 1) - 1, -1) if lines[i].startswith(b">")), 0)
    n = len(lines) - len(lines) % 4
    while n and not any(lines[n - 4 : n]):  # blank lines, an error unless nothing follows
        n -= 4
    return n


def _check_fasta(lines: list[bytes], fault: _Fault) -> list[int]:
    """Check every line; return the index of each header.  `fault` makes the error for an index of record and line."""
    headers: list[int] = []
    for i, line in enumerate(lines):
        if line and not line.isalpha():
            if not line.startswith(b">"):
                raise fault(_letter_problem(line), len(headers) - 1, i)
            _check_header(line, fault, len(headers), i)
            headers.append(i)
    return headers


def _check_fastq(lines: list[bytes], fault: _Fault) -> range:
    """Check every line, quality values apart; return the index of each header."""
    headers = range(0, len(lines), 4)
    for record, i in enumerate(headers):
        header, sequence, plus, quality = lines[i : i + 4]
        if not header.startswith(b"@"):
            raise fault(f"expected '@' and a name, found {_show(header)}. {_FETCH_AGAIN}", record, i)
        _check_header(header, fault, record, i)
        if not plus.startswith(b"+") or plus[1:].split()[:1] not in ([], header[1:].split()[:1]):
            problem = f"expected '+', alone or with the read's name, after one line of bases, found {_show(plus)}"
            raise fault(f"{problem}. {_FETCH_AGAIN}", record, i + 2)
        if len(sequence) != len(quality):
            raise fault(f"{len(sequence)} bases but {len(quality)} quality values. {_FETCH_AGAIN}", record, i + 3)
        if sequence and not sequence.isalpha():
            raise fault(_letter_problem(sequence), record, i + 1)
    return headers


def _check_qualities(qualities: list[bytes], fault: _Fault) -> np.ndarray:
    """Check the range of all quality values; return them end to end, uint8."""
    values = np.frombuffer(b"".join(qualities), np.uint8)
    if values.size and not 33 <= values.min() <= values.max() <= 126:
        record = next(i for i, line in enumerate(qualities) if re.search(rb"[^!-~]", line))
        raise fault(f"a quality value is not one of '!' to '~'. {_FETCH_AGAIN}", record, 4 * record + 3)
    return values


def _check_header(header: bytes, fault: _Fault, record: int, line: int) -> None:
    if not _HEADER.fullmatch(header):
        named = header[1:2].strip()
        problem = "the name is not printable ASCII, or a line end not LF or CRLF" if named else "the name is empty"
        raise fault(f"{problem}: {_show(header)}. Rename the read.", record, line)


def _letter_problem(line: bytes) -> str:
    rest = line.lstrip(string.ascii_letters.encode())
    return f"{_show(rest[:1])} at column {len(line) - len(rest) + 1} is not a letter. Remove it, or mask it with N."


def _show(text: bytes) -> str:
    """Bytes as they may stand in a message."""
    return repr(text[:40])[1:] if text else "nothing"


def _parse(lines: list[bytes], is_fastq: bool) -> list[tuple[str, str]]:
    """Names and sequences of checked lines, through pyfastx.

    pyfastx reads named files only.  It holds the interpreter lock meanwhile, so a pipe would block for ever.
    """
    try:
        with _spool() as (spool, name):
            spool.write(b"\n".join(lines) + b"\n")
            spool.flush()
            parser = pyfastx.Fastx(name, "fastq" if is_fastq else "fasta")
            return [(name, sequence) for name, sequence, *_ in parser]
    except OSError as error:
        raise OutputError(f"temporary file: {error}. Set TMPDIR to a folder with some megabytes free.") from error


@contextmanager
def _spool() -> Iterator[tuple[IO[bytes], str]]:
    """A file to write to, and its name; on Linux it lies in memory, so that nothing stays behind even after SIGKILL."""
    if os.path.isdir(_OPEN_FILES) and hasattr(os, "memfd_create"):
        with open(os.memfd_create("bellapy"), "wb") as spool:
            yield spool, f"{_OPEN_FILES}/{spool.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(prefix="bellapy-") as spool:
            yield spool.file, spool.name


class _Collector:
    """The growing read set."""

    def __init__(self, progress: Callable[[int, int], None] | None, codes: Pieces):
        self._progress, self._n_reported = progress, 0
        self._refused: MemoryLimitError | None = None
        self._files: list[tuple[str, int, bool]] = []
        self._names: dict[str, int] = {}
        self._lengths: list[int] = []
        self._codes = codes
        self._histogram = np.zeros(256, np.int64)
        self._letters = np.zeros(256, np.int64)  # other than A, C, G, T, U, N: of all files, and
        self._of_file, self._bases_before = self._letters.copy(), 0  # of the present one; bases of those before it
        self._pack([""])

    def begin_file(self, path: str, is_fastq: bool) -> None:
        self._files.append((path, len(self._names), is_fastq))
        self._of_file[:], self._bases_before = 0, self._n_bases

    def end_file(self) -> None:
        """Check which letters the present file holds."""
        n_bases, n_amino = self._n_bases - self._bases_before, int(self._of_file[_AMINO].sum())
        if n_amino > _PROTEIN * n_bases:
            seen = ", ".join(chr(letter) for letter in _AMINO if self._of_file[letter])
            problem = f"looks like protein: {n_amino} of {n_bases} letters ({seen}) stand for amino acids only"
            raise InputError(self._files[-1][0], f"{problem}. Give DNA or RNA.")
        self._letters += self._of_file

    @property
    def _n_bases(self) -> int:
        return self._codes.size - PAD * (1 + len(self._lengths))

    def add(self, first_line: int, lines: list[bytes]) -> None:
        """Check, parse and pack the reads that stand in some lines of the present file."""
        path, first, is_fastq = self._files[-1]
        first_record = len(self._names) - first + 1

        def fault(problem: str, record: int, line: int) -> InputError:
            return InputError(path, problem, first_record + record, first_line + line)

        headers = _check_fastq(lines, fault) if is_fastq else _check_fasta(lines, fault)
        if is_fastq:
            self._count_qualities(lines[3::4], fault)
        records = _parse(lines, is_fastq)
        if len(records) != len(headers):
            raise BellapyError(f"{path}: pyfastx gave {len(records)} of {len(headers)} reads. Please report this.")
        for record, (name, _) in enumerate(records):
            if problem := self._add_name(name):
                raise fault(problem, record, headers[record])
        sequences = [sequence for _, sequence in records]
        self._lengths += map(len, sequences)
        self._pack(sequences)
        if self._progress and self._n_bases - self._n_reported >= _PROGRESS_STEP:
            self._n_reported = self._n_bases
            try:
                self._progress(len(self._names), self._n_bases)
            except MemoryLimitError as error:
                self._refused = error
                self._codes.let_go()

    def _pack(self, sequences: list[str]) -> None:
        text = _GAP.join([*sequences, ""]).encode()
        codes = text.translate(_CODES)
        self._codes.add(codes)
        if codes.count(UNKNOWN) > PAD * len(sequences):
            others = np.frombuffer(text.translate(None, b"ACGTUNacgtun"), np.uint8)
            self._of_file += np.bincount(others & _UPPER, minlength=256)

    def _add_name(self, name: str) -> str | None:
        """Add the next read's name; return what is wrong with it."""
        n_known = len(self._names)
        if (known := self._names.setdefault(name, n_known)) == n_known:
            return None
        path, first, _ = next(file for file in reversed(self._files) if file[1] <= known)
        other = f"record {known - first + 1}" + (f" of {path}" if first != self._files[-1][1] else "")
        return f"has the same name {name!r} as {other}. Names must be unique: rename one of them."

    def _count_qualities(self, qualities: list[bytes], fault: _Fault) -> None:
        """Check the range of all quality values, and count a sample of them, weighed by its spacing."""
        values = _check_qualities(qualities, fault)
        step = 1 + values.size // _QUALITY_SAMPLE
        self._histogram += step * np.bincount(values[::step], minlength=256)

    def _error_rate(self) -> float | None:
        used = np.flatnonzero(self._histogram)
        if not all(is_fastq for *_, is_fastq in self._files) or len(used) < 2 or used[-1] <= ord('"'):
            return None
        return float(np.average(10.0 ** ((33 - used) / 10), weights=self._histogram[used]))

    def finish(self) -> GatheredReads:
        """All reads; the collector must not be used any more."""
        if self._refused:
            raise self._refused
        lengths = np.array(self._lengths, np.int32)
        ends = np.cumsum(lengths.astype(np.int64) + PAD)
        others = {chr(letter): int(self._letters[letter]) for letter in np.flatnonzero(self._letters)}
        return GatheredReads(tuple(self._names), self._codes, ends - lengths, lengths, self._error_rate(), others)
