"""Stage 1: reads of any format, compressed or not, into one `ReadSet`.

1. `compressed` unpacks, and `aligned` makes FASTQ of SAM, BAM and CRAM.
2. `fastx_blocks` tells the format, and cuts the text into blocks of whole records.
3. `fastx_scan` checks and packs the records of several blocks side by side.
4. `fastx_lines` does it line by line from the first block on that is unusual, and says what is wrong.
5. `_Collector` puts the records together.

Each input is read once and in order.  So pipes work like files, and memory beyond the packed codes stays small.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.threads import even_ranges, map_in_order, map_threads
from bellapy.errors import InputError, MemoryLimitError, ParameterError
from bellapy.io.aligned import open_reads
from bellapy.io.fastx_blocks import Block, FileBlock, Taken, begin, blocks_of, plain_size, taken_together
from bellapy.io.fastx_form import UPPER
from bellapy.io.fastx_lines import Records, chunks_of, take, whole_records
from bellapy.io.fastx_scan import scan_all
from bellapy.io.pieces import Pieces
from bellapy.io.read_filter import ReadFilter
from bellapy.params.reads import ReadParams
from bellapy.records import ReadSet
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.records.reads import room_both_ways
from bellapy.report.run_report import describe_dropped

_PROGRESS_STEP = 1 << 20  # bases
READERS = 12  # threads: more wait for Python's lock, and hold up what is loaded meanwhile
BYTES_EACH = 1 << 28  # of a file, for each thread, beyond which more of them pay
_AMINO = list(b"EFIJLOPQZ")  # letters of amino acids that no base and no set of bases has; X masks sequence
_LOOKED_AT = 1 << 16  # letters of a stream that tell whether it is protein
_PROTEIN = 0.1  # share of them: about 0.3 in protein, none in reads


class GatheredReads(NamedTuple):
    """What a `ReadSet` holds, with the codes in pieces.

    seen : what `gather_reads` was asked to look at, in order.  file_ends : number of reads up to the end of each file.
    dropped : reads that were left out, by reason.
    """

    names: tuple[str, ...]
    codes: Pieces
    starts: np.ndarray
    lengths: np.ndarray
    error_rate: float | None
    other_letters: dict[str, int]
    seen: Sequence[Any] = ()
    file_ends: Sequence[int] = ()
    dropped: Mapping[str, int] = {}


def load_reads(
    paths: Sequence[str | os.PathLike], progress: Callable[[int, int], None] | None = None, threads: int = 1
) -> ReadSet:
    """Read FASTA and FASTQ files, in the given order, into one set of packed reads.

    Parameters
    ----------
    paths : files, each FASTA, FASTQ, SAM, BAM or CRAM, compressed or not, told by content; "-" is standard input.
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

    Notes
    -----
    Both may be wrapped, and stand in one file.  U is read as T.  All letters but ACGTU, in either case, become UNKNOWN, and
    are counted unless they are N.  Letters that only amino acids have are a sign of protein, which is an InputError.
    Quality is Phred+33.  `error_rate` comes from evenly spaced bases, and from all of them in inputs below 32,768 bases.
    """
    return join_reads(gather_reads(paths, progress, threads=threads), threads)


def gather_reads(
    paths: Sequence[str | os.PathLike], progress: Callable[[int, int], None] | None = None, codes: Pieces | None = None,
    threads: int = 1, look: Callable[[Taken], Any] | None = None, wanted: ReadParams | None = None,
) -> GatheredReads:  # fmt: skip
    """All of `load_reads` except its last step, `join_reads`.

    codes : takes the codes; None: new `Pieces`.  look : called with some reads by the thread that has just read them.
    wanted : which reads are taken; None: all.

    Raises
    ------
    ParameterError : also, no read is as it is wanted.
    """
    collector = _Collector(progress, Pieces() if codes is None else codes, look, ReadFilter(wanted or ReadParams()))
    for path in _names_of(paths):
        _load_file(path, collector, threads)
    return collector.finish()


def _names_of(paths: Sequence[str | os.PathLike]) -> list[str]:
    """The names of files, "-" for standard input, which can be read once only."""
    names = [os.fspath(path) for path in paths]
    if not names or names.count("-") > 1:
        raise ParameterError("name at least one file of reads, and standard input (-) only once")
    return names


def stream_records(
    paths: Sequence[str | os.PathLike], see_groups: Callable[[str, dict[str, str]], None] | None = None
) -> Iterator[Records]:  # fmt: skip
    """The records of FASTA and FASTQ files in order, some at a time, checked as `load_reads` does but for equal names.

    Whether a file holds protein is told by its first records.  see_groups : as of `open_reads`.

    Nothing is kept, so that any amount of reads can pass through.

    Raises
    ------
    InputError, ParameterError : as `load_reads`.
    """
    for path in _names_of(paths):
        n_records = 0
        with open_reads(path, see_groups=see_groups) as stream:
            for records in _some_records(stream, path):
                if not n_records:
                    text = np.frombuffer(b"".join(bases[:_LOOKED_AT] for bases in records.sequences), np.uint8)[:_LOOKED_AT]
                    _check_letters(path, np.bincount(text & UPPER, minlength=256), len(text))
                n_records += len(records.names)
                yield records


def _some_records(stream, path: str) -> Iterator[Records]:
    """The records of a stream, a block at a time; from the first unusual one on, line by line."""
    is_fastq, first_line = begin(path, stream)
    blocks, n_records = blocks_of(stream, is_fastq, first_line=first_line, growing=True), 0

    def fault(problem: str, record: int, line: int) -> InputError:
        return _fault(path, n_records, problem, record, line)

    for block in blocks:
        records = whole_records(block.data, is_fastq)
        if records is None:
            for records, _ in chunks_of(chain([block], blocks), fault):
                n_records += len(records.names)
                yield records
            return
        n_records += len(records.names)
        yield records


def _fault(path: str, n_before: int, problem: str, record: int, line: int) -> InputError:
    """An error about a record, by its number behind n_before others of the file, and the number of a line."""
    return InputError(path, problem, n_before + record + 1, line)


def join_reads(gathered: GatheredReads, threads: int = 1) -> ReadSet:
    """The read set; the pieces are used up."""
    codes, at = room_both_ways(gathered.codes.size), 0

    for some in gathered.codes.drain():
        edges = at + np.cumsum([0, *map(len, some)])

        def put(part: tuple[int, int], some=some, edges=edges) -> None:
            np.concatenate(some[slice(*part)], out=codes[edges[part[0]] : edges[part[1]]])

        map_threads(put, even_ranges(len(some), threads), threads)
        at = int(edges[-1])
    names, _, starts, lengths, error_rate, other_letters, *_ = gathered
    return ReadSet(names, codes, starts, lengths, error_rate, other_letters, in_room=True)


def _load_file(path: str, collector: _Collector, threads: int) -> None:
    """Add all reads of one file to `collector`."""
    with open_reads(path, threads) as stream:
        fastq, first_line = begin(path, stream)
        collector.begin_file(path)
        unusual: list[Block | FileBlock] = []

        def scanned_if_usual(some: list[Block | FileBlock]) -> list[tuple[Block | FileBlock, Taken | None, Any]]:
            if unusual:
                return [(block, None, None) for block in some]
            return [(block, taken, collector.look(taken)) for block, taken in scan_all(some, fastq, collector.room)]

        if collector.kept.params.leave_out:
            collector.add_kept(blocks_of(stream, fastq, first_line=first_line))
            return
        at_once = min(threads, max(READERS, plain_size(stream) // BYTES_EACH))
        blocks = taken_together(blocks_of(stream, fastq, at_once, first_line))
        scanned = chain.from_iterable(map_in_order(scanned_if_usual, blocks, at_once))
        for block, taken, seen in scanned:
            if taken is None:
                unusual.append(block)
                break
            collector.add(block.first_line, taken, seen, fastq)
        for records, lines in chunks_of(chain(unusual, (block for block, *_ in scanned)), collector.fault):
            taken = take(records, lines)
            collector.add(0, taken, collector.look(taken), records.qualities is not None)
        collector.end_file()


def _check_letters(path: str, letters: np.ndarray, n_bases: int) -> None:
    """Raise InputError where letters, (256,) int64, of n_bases are those of protein."""
    n_amino = int(letters[_AMINO].sum())
    if n_amino > _PROTEIN * n_bases:
        seen = ", ".join(chr(letter) for letter in _AMINO if letters[letter])
        problem = f"looks like protein: {n_amino} of {n_bases} letters ({seen}) stand for amino acids only"
        raise InputError(path, f"{problem}. Give DNA or RNA.")


def error_rate_of(histogram: np.ndarray) -> float | None:
    """Mean error probability by how often each letter of qualities occurs, (256,) int64; None where they tell nothing."""
    used = np.flatnonzero(histogram)
    if len(used) < 2 or used[-1] <= ord('"'):
        return None
    return float(np.average(10.0 ** ((33 - used) / 10), weights=histogram[used]))


class _Collector:
    """The growing read set."""

    def __init__(
        self, progress: Callable[[int, int], None] | None, codes: Pieces, look: Callable[[Taken], Any] | None,
        kept: ReadFilter,
    ):  # fmt: skip
        self.kept = kept
        self._progress, self._n_reported, self._look = progress, 0, look
        self._seen: list[Any] = []
        self._refused: MemoryLimitError | None = None
        self._files: list[tuple[str, int]] = []
        self._file_ends: list[int] = []
        self._have_qualities = True
        self._names: dict[str, int] = {}
        self._lengths: list[int] = []
        self._codes = codes
        self._histogram = np.zeros(256, np.int64)
        self._letters = np.zeros(256, np.int64)  # other than A, C, G, T, U, N: of all files, and
        self._of_file, self._bases_before = self._letters.copy(), 0  # of the present one; bases of those before it
        self._codes.add(np.full(PAD, UNKNOWN, np.uint8))
        self.room = codes.room

    def begin_file(self, path: str) -> None:
        self._files.append((path, len(self._names)))
        self._of_file[:], self._bases_before = 0, self._n_bases

    def end_file(self) -> None:
        """The present file is at its end: check which letters it holds."""
        self._file_ends.append(len(self._names))
        _check_letters(self._files[-1][0], self._of_file, self._n_bases - self._bases_before)
        self._letters += self._of_file

    @property
    def _n_bases(self) -> int:
        return self._codes.size - PAD * (1 + len(self._lengths))

    def fault(self, problem: str, record: int, line: int) -> InputError:
        """An error about one of the next records of the present file."""
        path, first = self._files[-1]
        if self.kept.params.leave_out:  # records are not counted then
            return InputError(path, problem, line=line)
        return _fault(path, len(self._names) - first, problem, record, line)

    def add_kept(self, blocks: Iterable[Block | FileBlock]) -> None:
        """Add those reads of the present file, up to its end, that are as they are wanted."""
        for records, lines in chunks_of(blocks, self.fault):
            records, lines = self.kept.keep(records, lines)
            if records.names:
                taken = take(records, lines)
                self.add(0, taken, self.look(taken), records.qualities is not None)
        self.end_file()

    def look(self, taken: Taken | None) -> Any:
        """What is to be seen of some reads; any thread may ask."""
        return None if taken is None or self._look is None or self._refused else self._look(taken)

    def add(self, first_line: int, taken: Taken, seen: Any, fastq: bool) -> None:
        """Add the next records of the present file, which begin with a line of this number; seen : of `look`."""
        self._have_qualities &= fastq
        if not self._add_new_names(taken.names):
            for name, line in zip(taken.names, taken.lines.tolist(), strict=True):
                if problem := self._add_name(name):
                    raise self.fault(problem, 0, first_line + line)
        self._lengths += taken.lengths.tolist()
        self._codes.add(taken.codes)
        self._seen.append(seen)
        self._of_file += taken.letters
        self._histogram += taken.qualities
        if self._progress and self._n_bases - self._n_reported >= _PROGRESS_STEP:
            self._n_reported = self._n_bases
            try:
                self._progress(len(self._names), self._n_bases)
            except MemoryLimitError as error:
                self._refused = error
                self._codes.let_go()

    def _add_new_names(self, names: list[str]) -> bool:
        """Add the names of the next reads; False, and none is added, where one of them is not new."""
        n_known = len(self._names)
        if len(set(names)) < len(names) or not self._names.keys().isdisjoint(names):
            return False
        self._names.update(zip(names, range(n_known, n_known + len(names)), strict=True))
        return True

    def _add_name(self, name: str) -> str | None:
        """Add the next read's name; return what is wrong with it."""
        n_known = len(self._names)
        if (known := self._names.setdefault(name, n_known)) == n_known:
            return None
        path, first = next(file for file in reversed(self._files) if file[1] <= known)
        number = "another record" if self.kept.params.leave_out else f"record {known - first + 1}"
        other = number + (f" of {path}" if first != self._files[-1][1] else "")
        return f"has the same name {name!r} as {other}. Names must be unique: rename one of them."

    def _error_rate(self) -> float | None:
        return error_rate_of(self._histogram) if self._have_qualities else None

    def finish(self) -> GatheredReads:
        """All reads; the collector must not be used any more."""
        if self._refused:
            raise self._refused
        if not self._lengths and any(self.kept.dropped.values()):
            what = describe_dropped(self.kept.dropped)
            raise ParameterError(f"--min-length, --min-quality: no read is left of {what}; give smaller values")
        lengths = np.array(self._lengths, np.int32)
        ends = np.cumsum(lengths.astype(np.int64) + PAD)
        others = {chr(letter): int(self._letters[letter]) for letter in np.flatnonzero(self._letters)}
        return GatheredReads(
            tuple(self._names), self._codes, ends - lengths, lengths, self._error_rate(), others, self._seen,
            self._file_ends, self.kept.dropped,
        )  # fmt: skip
