"""`bellapy extend`: LOGAN's job alone.  Sequence pairs with one seed each, in; alignments by X-drop extension, out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.extend import extend_anchors, load
from bellapy.engines.trace import map_paths
from bellapy.errors import InputError, ParameterError
from bellapy.io.compressed import open_stream
from bellapy.io.paf import path_columns
from bellapy.io.table_text import NO_NAMES, NUMBER, format_rows
from bellapy.params import Params, Scoring
from bellapy.records import Anchors, Extensions, Overlaps, Paths, ReadSet
from bellapy.report.log import cpu_time
from bellapy.report.run_report import Devices, RunReport, Stage

BATCH_PAIRS = 1 << 14
STRANDS = {"n": 1, "c": -1}
N_COLUMNS = 5
MAX_SEED = 31

Result = TypeVar("Result")


class Pair(NamedTuple):
    """Two sequences and where their seed starts, on the strand given; strand -1: the target's reverse complement aligns."""

    query: str | bytes
    query_pos: int
    target: str | bytes
    target_pos: int
    strand: int = 1


@dataclass(frozen=True)
class Extending:
    """How pairs are extended.

    k : bases of a seed.  steps : scores.  end : which end is reported.
    """

    k: int
    steps: tuple[Scoring, ...]
    end: End
    resources: Resources

    @classmethod
    def of(cls, k: int, params: Params, devices: Devices) -> Extending:
        """As the parameters say; `devices` is that of the run's report.

        Raises
        ------
        ParameterError : k out of range, or ends that only a whole set of reads tells.
        DeviceError : a GPU is asked for and none can be used.
        """
        if not 1 <= k <= MAX_SEED:
            raise ParameterError(f"-k {k}: must be from 1 to {MAX_SEED}")
        given = params.extension
        if given.extension == "homology":
            raise ParameterError("--extension homology: needs a whole set of reads to learn from; choose best or longest")
        if given.xdrop is None:
            raise ParameterError("--xdrop: has no default for given pairs; name one, such as 15")
        steps = (Scoring(given.match, given.mismatch, given.gap, given.xdrop),)
        return cls(k, steps, End.of(given.extension), Resources.of(params.run, devices))

    def extend(self, reads: ReadSet, seeds: Anchors) -> Extensions:
        """The alignments of seeds."""
        return extend_anchors(reads, seeds, self.steps, self.end, self.resources)

    def trace(
        self, use: Callable[[Overlaps, Paths], Result], reads: ReadSet, seeds: Anchors, extensions: Extensions
    ) -> Iterator[Result]:
        """What `use` makes of the alignments and their paths, some at a time, in order."""
        return map_paths(use, reads, _as_overlaps(seeds, extensions), self.steps, self.end, self.resources)


@dataclass(slots=True)
class ExtendStage(Stage):
    """Pairs, and CPU seconds of each part of the work."""

    pairs: int | None = None
    packing_cpu_s: float | None = None
    extending_cpu_s: float | None = None
    tracing_cpu_s: float | None = None


def extend_pairs(
    path: str, k: int, params: Params, report: RunReport, *, cigar: bool = False, cs: bool = False
) -> Iterator[bytes]:
    """Lines of index, score, query start, query end, target start, target end; in input order.

    Coordinates are on the forward strand of each sequence as given, also on lines with strand c, where the target's reverse
    complement is aligned.  With `cigar` or `cs` the tags of PAF with base-level paths follow, which run along the target as
    given; their counts look at the seed's bases, the score does not.
    """
    work = Extending.of(k, params, report.devices)
    n_pairs, packing, extending, tracing = 0, 0.0, 0.0, 0.0
    with report.stage(Stage("load")):  # compiled code, so that the times below are those of the work
        load(work.steps[0], work.resources.device)
    with open_stream(path) as lines, report.stage(ExtendStage("extend")) as stage:
        start = cpu_time()
        while batch := list(islice(lines, BATCH_PAIRS)):
            reads, seeds = pack_pairs([_parse(path, n_pairs + i + 1, line, k) for i, line in enumerate(batch)], k)
            reads.both_ways  # noqa: B018  (made here, where it is timed as packing)
            packed = cpu_time()
            extensions = work.extend(reads, seeds)
            done = cpu_time()
            packing, extending = packing + packed - start, extending + done - packed
            if cigar or cs:

                def show(some: Overlaps, paths: Paths, first: int = n_pairs, reads: ReadSet = reads) -> bytes:
                    index = first + some.query_id // 2  # of pair i, reads 2 i and 2 i + 1
                    return format_rows(_columns(index, some) + path_columns(reads, some, paths, cigar, cs), NO_NAMES)

                yield from work.trace(show, reads, seeds, extensions)
                tracing += cpu_time() - done
            else:
                yield format_rows(_columns(n_pairs + np.arange(len(seeds)), extensions), NO_NAMES)
            n_pairs += len(seeds)
            start = cpu_time()
        stage.pairs, stage.packing_cpu_s, stage.extending_cpu_s = n_pairs, round(packing, 3), round(extending, 3)
        stage.tracing_cpu_s = round(tracing, 3) if cigar or cs else None
    if not n_pairs:
        raise InputError(path, "is empty; five tab-separated columns a line are needed")


def _parse(path: str, number: int, line: bytes, k: int) -> Pair:
    columns = line.rstrip(b"\r\n").split(b"\t")
    if len(columns) != N_COLUMNS:
        raise InputError(path, f"{len(columns)} columns instead of {N_COLUMNS}, separated by tabs", line=number)
    query, query_pos, target, target_pos, strand = columns
    try:
        places = int(query_pos), int(target_pos)
    except ValueError:
        raise InputError(path, "columns 2 and 4 must be whole numbers, where the seed starts", line=number) from None
    if strand.decode("latin-1") not in STRANDS:
        raise InputError(path, "column 5 must be n (same strand) or c (opposite strands)", line=number)
    pair = Pair(query, places[0], target, places[1], STRANDS[strand.decode()])
    if problem := _problem(pair, k):
        raise InputError(path, problem, line=number)
    return pair


def _problem(pair: Pair, k: int) -> str | None:
    """What is wrong with a pair, if anything."""
    for what, sequence, place in (("query", pair.query, pair.query_pos), ("target", pair.target, pair.target_pos)):
        if not 0 <= place <= len(sequence) - k:
            return f"the seed of {k} bases at {place} is not inside the {what} of {len(sequence)}"
        if not sequence.isalpha():
            return f"the {what} holds characters that are not letters"
    return None


def read_pairs(path: str, k: int) -> list[Pair]:
    """All pairs of a file.

    Raises
    ------
    InputError : a file that cannot be read, or a line that is no pair of sequences with a seed inside.
    """
    with open_stream(path) as lines:
        return [_parse(path, number, line, k) for number, line in enumerate(lines, 1)]


def check_pairs(pairs: Iterable[Sequence], k: int) -> list[Pair]:
    """Pairs that did not come from a file.

    Raises
    ------
    InputError : one that is not two sequences of letters with a seed of k bases inside; it names its number.
    """
    checked = []
    for number, values in enumerate(pairs, 1):
        try:
            pair = Pair(*values)
            problem = _problem(pair, k) if pair.strand in (1, -1) else f"the strand must be 1 or -1, not {pair.strand}"
        except (TypeError, AttributeError):
            problem = "query, seed's start, target, seed's start and strand (1 or -1) are needed"
        if problem:
            raise InputError("the pairs given", problem, record=number)
        checked.append(pair)
    return checked


def pack_pairs(rows: Sequence[Pair], k: int) -> tuple[ReadSet, Anchors]:
    """The sequences of all pairs as reads: pair i has query 2 i and target 2 i + 1."""
    reads = ReadSet.from_sequences([sequence for row in rows for sequence in (row.query, row.target)])
    return reads, make_seeds(
        [(2 * i, 2 * i + 1, row.strand, row.query_pos, row.target_pos) for i, row in enumerate(rows)], k
    )


def make_seeds(rows: Sequence[tuple[int, int, int, int, int]], k: int) -> Anchors:
    """Seeds of k bases, from query, target, strand, and places on query and target."""
    columns = np.array(rows, np.int32).reshape(-1, 5).T
    query_id, target_id, strand, query_pos, target_pos = (np.ascontiguousarray(column) for column in columns)
    length = np.full(len(query_id), k, np.int32)
    return Anchors(query_id, target_id, strand.astype(np.int8), query_pos, target_pos, length)


def _columns(index: np.ndarray, extensions: Extensions | Overlaps) -> list:
    columns = (
        index, extensions.score, extensions.query_start, extensions.query_end,
        extensions.target_start, extensions.target_end,
    )  # fmt: skip
    return [(NUMBER, "", column) for column in columns]


def _as_overlaps(seeds: Anchors, extensions: Extensions) -> Overlaps:
    """The extensions as overlaps without counts of columns, each supported by its seed."""
    zeros, ones = np.zeros(len(seeds), np.int32), np.ones(len(seeds), np.int32)
    return Overlaps(
        seeds.query_id, seeds.target_id, seeds.strand, extensions.query_start, extensions.query_end,
        extensions.target_start, extensions.target_end, extensions.score, ones, zeros, zeros.copy(),
        seeds.query_pos, seeds.target_pos, seeds.length, extensions.left_query,
        extensions.left_target, extensions.right_query, extensions.right_target,
    )  # fmt: skip


def format_extensions(
    reads: ReadSet, extensions: Extensions | Overlaps, paths: Paths | None = None, *, cs: bool = False
) -> bytes:
    """The lines of `extend_pairs` for all pairs at once; with paths, their CIGARs, and `cs` if asked for."""
    columns = _columns(np.arange(len(extensions)), extensions)
    if paths is not None:
        assert isinstance(extensions, Overlaps)
        columns += path_columns(reads, extensions, paths, True, cs)
    return format_rows(columns, NO_NAMES)
