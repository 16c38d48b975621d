"""`bellapy pairwise`: given pairs of sequences in, exact affine alignments out."""

from __future__ import annotations

from collections.abc import Iterator
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
from bellapy.records.bases import encode
from bellapy.report.log import cpu_time
from bellapy.report.run_report import RunReport, Stage

MODES = {"global": GLOBAL, "extend": EXTEND, "local": EXTEND}
BATCH_PAIRS = 1 << 12
BATCH_BASES = 1 << 22
GPU_BATCH = 1 << 5  # times as much: a GPU is full with some thousand pairs
MOST_SCORE = 1 << 28  # what 32-bit cells hold for certain


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


def align_pairs(
    paths: tuple[str, str | None], mode: str, scoring: AffineScoring, report: RunReport, *, zdrop: int | None = None,
    band: int | None = None, cigar: bool = False, resources: Resources | None = None,
) -> Iterator[bytes]:  # fmt: skip
    """Lines of index, score, query end and target end, in input order; with `cigar`, the path in `cg:Z`.

    Pairs of files have names in the place of the index.  Local alignments have starts before the ends.

    paths : two columns a line, query and target, and None; or two files of reads, queries and targets.
    mode : global, extend (from the beginning of both to the best cell), or local.
    zdrop : ends an extension; None: nothing does.
    band : diagonals that the alignment has at its disposal, at least; None: all.
    resources : threads and device; None: one thread.

    Raises
    ------
    InputError : a line that is not a pair of sequences, one too long for the scores, files of different numbers of reads.
    ParameterError : an unknown mode, scores of the wrong sign, a zdrop or a band for a mode that has none.
    """
    if mode not in MODES:
        raise ParameterError(f"--mode {mode}: choose from {', '.join(MODES)}")
    if zdrop is not None and mode != "extend":
        raise ParameterError("--zdrop: only extensions end early; leave it out, or choose --mode extend")
    if band is not None and mode == "local":
        raise ParameterError("--band: local alignments may lie on any diagonal; leave it out, or choose another --mode")
    if paths[0] == paths[1] == "-":
        raise ParameterError("-: standard input holds the queries or the targets; name a file for the other")
    resources, scoring = resources or Resources(), ordered(scoring)
    effort = Effort(zdrop=NO_ZDROP if zdrop is None else zdrop, diagonals=band or 0)
    alone = resources.device != "cpu"  # the engine takes threads by itself
    solve = make_align(scoring, cigar, resources)
    n_pairs = n_cells = 0

    def align(batch: tuple[int, list[Pair]]) -> tuple[int, int, bytes]:
        first, pairs = batch
        pieces, queries, targets = _pieces(pairs, MODES[mode])
        if mode == "local":
            pieces = local_pieces(queries, targets, pieces, scoring)
        solved = solve(queries, targets, pieces, effort)
        numbers = [solved.score, solved.q_used, solved.t_used]
        if mode == "local":
            q_end, t_end = pieces.q_len, pieces.t_len
            numbers = [solved.score, q_end - solved.q_used, q_end, t_end - solved.t_used, t_end]
        columns: list[tuple] = [*_labels(first, pairs), *((NUMBER, "", column) for column in numbers)]
        if cigar:
            columns.append((TEXT, "cg:Z:", cigar_texts(solved, backward=mode == "local")))
        return len(pairs), solved.cells, format_rows(columns, NO_NAMES)

    with report.stage(PairwiseStage("pairwise")) as stage:
        start = cpu_time()
        batches = _batches(_pairs(paths, scoring), GPU_BATCH if alone else 1)
        done = map(align, made_ahead(batches)) if alone else map_in_order(align, batches, resources.threads)
        for n, cells, lines in done:
            n_pairs, n_cells = n_pairs + n, n_cells + cells
            yield lines
        if not n_pairs:
            raise InputError(paths[0], "is empty; two tab-separated columns a line are needed")
        stage.pairs, stage.aligning_cpu_s = n_pairs, round(cpu_time() - start, 3)


def _labels(first: int, pairs: list[Pair]) -> list[tuple]:
    """The columns that say which pair a line is about: its index, or both names."""
    names = [pair.names for pair in pairs if pair.names]
    if not names:
        return [(NUMBER, "", first + np.arange(len(pairs)))]
    return [(TEXT, "", NameTable.of([name.decode() for name in side])) for side in zip(*names, strict=True)]


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


def _pairs(paths: tuple[str, str | None], scoring: AffineScoring) -> Iterator[Pair]:
    """All pairs, checked."""
    most = MOST_SCORE // max(scoring.match, -scoring.mismatch, scoring.extend1, scoring.extend2)
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
    for what, sequence in zip(("query", "target"), columns, strict=True):
        if sequence and not sequence.isalpha():
            raise InputError(path, f"the {what} holds characters that are not letters", line=number)
    if len(columns[0]) + len(columns[1]) > most:
        raise InputError(path, f"the pair has more than {most} bases, too many for these scores", line=number)
    return Pair(encode(columns[0]), encode(columns[1]), None)


def _pieces(pairs: list[Pair], mode: int) -> tuple[Pieces, np.ndarray, np.ndarray]:
    """All pairs, and the codes of queries and of targets end to end."""
    sides = []
    for sequences in ([pair.query for pair in pairs], [pair.target for pair in pairs]):
        lengths = np.array(list(map(len, sequences)), np.int64)
        sides.append((np.cumsum(lengths) - lengths, lengths, np.concatenate(sequences)))
    (q_at, q_len, queries), (t_at, t_len, targets) = sides
    same = np.ones(len(pairs), np.int64)
    return Pieces(q_at, q_len, t_at, t_len, same, mode * same), queries, targets
