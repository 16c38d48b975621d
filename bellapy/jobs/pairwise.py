"""`bellapy pairwise`: given pairs of sequences in, exact affine alignments out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import made_ahead, map_in_order
from bellapy.engines.affine.align import make_align
from bellapy.engines.affine.batch_cpu import Effort
from bellapy.engines.affine.local import local_pieces
from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import EXTEND, GLOBAL, NO_ZDROP, ordered
from bellapy.errors import InputError, ParameterError
from bellapy.io.cigar_text import cigar_texts
from bellapy.io.compressed import open_stream
from bellapy.io.fastx import stream_records
from bellapy.io.table_text import NO_NAMES, NUMBER, TEXT, NameTable, format_rows
from bellapy.params import AffineScoring
from bellapy.params.map import PairParams
from bellapy.records.bases import encode
from bellapy.report.log import cpu_time
from bellapy.report.run_report import RunReport, Stage

MODES = {"global": GLOBAL, "extend": EXTEND, "local": EXTEND}
BATCH_PAIRS = 1 << 12
BATCH_BASES = 1 << 22
GPU_BATCH = 1 << 5  # times as much: a GPU is full with some thousand pairs
MOST_SCORE = 1 << 28  # what 32-bit cells hold for certain
GIVEN = "the pairs given"


class Pair(NamedTuple):
    """The codes of a query and of a target, and their names; None: they have none."""

    query: np.ndarray
    target: np.ndarray
    names: tuple[bytes, bytes] | None


@dataclass(slots=True)
class PairwiseStage(Stage):
    """Pairs, and CPU seconds of all of the work."""

    pairs: int | None = None
    aligning_cpu_s: float | None = None


class Aligned(NamedTuple):
    """Alignments of some pairs, one after another.

    first : index of the first pair.  names : queries' and targets'; None: they have none.
    score, query_start, query_end, target_start, target_end : (n,) int64.  cigars : paths; None: none were asked for.
    """

    first: int
    names: list[NameTable] | None
    score: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    cigars: NameTable | None


def align_files(
    paths: tuple[str, str | None], params: PairParams, report: RunReport, resources: Resources
) -> Iterator[bytes]:  # fmt: skip
    """Lines of index, score, query end and target end, in input order; with `cigar`, the path in `cg:Z`.

    Pairs of files have names in the place of the index.  Local alignments have starts before the ends.

    paths : two columns a line, query and target, and None; or two files of reads, queries and targets.

    Raises
    ------
    InputError : a line that is not a pair of sequences, one too long for the scores, files of different numbers of reads.
    ParameterError : standard input for both files.
    """
    if paths[0] == paths[1] == "-":
        raise ParameterError("-: standard input holds the queries or the targets; name a file for the other")
    none = True
    for some in align_pairs(file_pairs(paths, params.scoring), params, report, resources):
        none = False
        yield format_aligned(some, params.mode)
    if none:
        raise InputError(paths[0], "is empty; two tab-separated columns a line are needed")


def align_pairs(
    pairs: Iterator[Pair], params: PairParams, report: RunReport, resources: Resources
) -> Iterator[Aligned]:  # fmt: skip
    """Alignments of pairs, in order, some at a time."""
    scoring, is_local = ordered(params.scoring), params.mode == "local"
    effort = Effort(zdrop=NO_ZDROP if params.zdrop is None else params.zdrop, diagonals=params.band or 0)
    alone = resources.device != "cpu"  # the engine takes threads by itself
    solve = make_align(scoring, params.cigar, resources)
    n_pairs = 0

    def align(batch: tuple[int, list[Pair]]) -> Aligned:
        first, some = batch
        pieces, queries, targets = _pieces(some, MODES[params.mode])
        if is_local:
            pieces = local_pieces(queries, targets, pieces, scoring)
        solved = solve(queries, targets, pieces, effort)
        none = np.zeros(len(some), np.int64)
        ends = none, solved.q_used, none, solved.t_used
        if is_local:
            ends = pieces.q_len - solved.q_used, pieces.q_len, pieces.t_len - solved.t_used, pieces.t_len
        cigars = cigar_texts(solved, backward=is_local) if params.cigar else None
        return Aligned(first, _names(some), solved.score, *ends, cigars)

    with report.stage(PairwiseStage("pairwise")) as stage:
        start = cpu_time()
        batches = _batches(pairs, GPU_BATCH if alone else 1)
        for done in map(align, made_ahead(batches)) if alone else map_in_order(align, batches, resources.threads):
            n_pairs += len(done.score)
            yield done
        stage.pairs, stage.aligning_cpu_s = n_pairs, round(cpu_time() - start, 3)


def _names(pairs: list[Pair]) -> list[NameTable] | None:
    names = [pair.names for pair in pairs if pair.names]
    return [NameTable.of([name.decode() for name in side]) for side in zip(*names, strict=True)] or None


def format_aligned(some: Aligned, mode: str) -> bytes:
    """Lines as those of `align_files`."""
    labels: list[tuple] = [(NUMBER, "", some.first + np.arange(len(some.score)))]
    if some.names:
        labels = [(TEXT, "", side) for side in some.names]
    numbers = [some.score, some.query_end, some.target_end]
    if mode == "local":
        numbers = [some.score, some.query_start, some.query_end, some.target_start, some.target_end]
    paths = [(TEXT, "cg:Z:", some.cigars)] if some.cigars else []
    return format_rows([*labels, *((NUMBER, "", column) for column in numbers), *paths], NO_NAMES)


def given_pairs(given: Iterable[Sequence[str | bytes]], scoring: AffineScoring) -> Iterator[Pair]:
    """Pairs of sequences, checked.

    Raises
    ------
    InputError : not two sequences, letters that are none, or a pair too long for the scores.
    """
    most = _most_bases(scoring)
    for number, pair in enumerate(given, 1):
        if isinstance(pair, (str, bytes)) or len(pair) != 2 or not all(isinstance(one, (str, bytes)) for one in pair):
            raise InputError(GIVEN, "a query and a target are needed for each, as text", record=number)
        query, target = (one.encode(errors="replace") if isinstance(one, str) else one for one in pair)
        yield _checked(GIVEN, query, target, most, record=number)


def _batches(pairs: Iterator[Pair], times: int) -> Iterator[tuple[int, list[Pair]]]:
    """Pairs, with the index of the first; a bounded number of bases at a time, `times` the usual one."""
    first, bases, some = 0, 0, list[Pair]()
    for pair in pairs:
        some.append(pair)
        bases += len(pair.query) + len(pair.target)
        if len(some) == times * BATCH_PAIRS or bases > times * BATCH_BASES:
            yield first, some
            first, bases, some = first + len(some), 0, []
    if some:
        yield first, some


def file_pairs(paths: tuple[str, str | None], scoring: AffineScoring) -> Iterator[Pair]:
    """All pairs of files, checked; paths : as of `align_files`."""
    most = _most_bases(scoring)
    queries, targets = paths
    if targets is not None:
        yield from _of_files(queries, targets, most)
        return
    with open_stream(queries) as lines:
        for number, line in enumerate(lines, 1):
            yield _parse(queries, number, line, most)


def _of_files(queries: str, targets: str, most: int) -> Iterator[Pair]:
    """The first query with the first target, and so on."""
    sides = (_records(path) for path in (queries, targets))
    for number, (query, target) in enumerate(zip_longest(*sides), 1):
        if query is None or target is None:
            shorter, longer = (queries, targets) if query is None else (targets, queries)
            problem = f"has {number - 1} sequences, but {longer} has more; both need as many"
            raise InputError(shorter, problem)
        if len(query[1]) + len(target[1]) > most:
            raise InputError(queries, f"the pair has more than {most} bases, too many for these scores", record=number)
        yield Pair(encode(query[1]), encode(target[1]), (query[0], target[0]))


def _records(path: str) -> Iterator[tuple[bytes, bytes]]:
    """Names and sequences of a file."""
    return chain.from_iterable(zip(some.names, some.sequences, strict=True) for some in stream_records([path]))


def _parse(path: str, number: int, line: bytes, most: int) -> Pair:
    columns = line.rstrip(b"\r\n").split(b"\t")
    if len(columns) != 2:
        hint = " For FASTA or FASTQ give two files." if line[:1] in (b">", b"@") else ""
        raise InputError(path, f"{len(columns)} columns instead of 2, separated by a tab.{hint}", line=number)
    query, target = columns
    return _checked(path, query, target, most, line=number)


def _checked(source: str, query: bytes, target: bytes, most: int, **where: int) -> Pair:
    """A pair of sequences without names; where : their line or record."""
    for what, sequence in (("query", query), ("target", target)):
        if sequence and not sequence.isalpha():
            raise InputError(source, f"the {what} holds characters that are not letters", **where)
    if len(query) + len(target) > most:
        raise InputError(source, f"the pair has more than {most} bases, too many for these scores", **where)
    return Pair(encode(query), encode(target), None)


def _most_bases(scoring: AffineScoring) -> int:
    return MOST_SCORE // max(scoring.match, -scoring.mismatch, scoring.extend1, scoring.extend2)


def _pieces(pairs: list[Pair], mode: int) -> tuple[Pieces, np.ndarray, np.ndarray]:
    """All pairs, and the codes of queries and of targets end to end."""
    sides = []
    for sequences in ([pair.query for pair in pairs], [pair.target for pair in pairs]):
        lengths = np.array(list(map(len, sequences)), np.int64)
        sides.append((np.cumsum(lengths) - lengths, lengths, np.concatenate(sequences)))
    (q_at, q_len, queries), (t_at, t_len, targets) = sides
    same = np.ones(len(pairs), np.int64)
    return Pieces(q_at, q_len, t_at, t_len, same, mode * same), queries, targets
