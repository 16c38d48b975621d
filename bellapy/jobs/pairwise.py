"""`bellapy pairwise`: given pairs of sequences in, exact affine alignments out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import made_ahead, map_in_order
from bellapy.engines.affine.align import make_align
from bellapy.engines.affine.batch_cpu import Effort
from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import EXTEND, GLOBAL, NO_ZDROP, ordered
from bellapy.errors import InputError, ParameterError
from bellapy.io.cigar_text import cigar_texts
from bellapy.io.compressed import open_stream
from bellapy.io.table_text import NUMBER, TEXT, NameTable, format_rows
from bellapy.params import AffineScoring
from bellapy.records.bases import encode
from bellapy.report.log import cpu_time
from bellapy.report.run_report import RunReport, Stage

MODES = {"global": GLOBAL, "extend": EXTEND}
BATCH_PAIRS = 1 << 12
BATCH_BASES = 1 << 22
GPU_BATCH = 1 << 5  # times as much: a GPU is full with some thousand pairs
MOST_SCORE = 1 << 28  # what 32-bit cells hold for certain
NO_NAMES = NameTable.of([])


@dataclass(slots=True)
class PairwiseStage(Stage):
    """Pairs, and CPU seconds of all of the work."""

    pairs: int | None = None
    aligning_cpu_s: float | None = None


def align_pairs(
    path: str, mode: str, scoring: AffineScoring, report: RunReport, *, zdrop: int | None = None,
    band: int | None = None, cigar: bool = False, resources: Resources | None = None,
) -> Iterator[bytes]:  # fmt: skip
    """Lines of index, score, query end and target end, in input order; with `cigar`, the path in `cg:Z`.

    path : two columns a line, query and target.
    mode : global, or extend (from the beginning of both to the best cell).
    zdrop : ends an extension; None: nothing does.
    band : diagonals that the alignment has at its disposal, at least; None: all.
    resources : threads and device; None: one thread.

    Raises
    ------
    InputError : a line that is not a pair of sequences, or one too long for the scores.
    ParameterError : an unknown mode, scores of the wrong sign, or a zdrop for global alignments.
    """
    if mode not in MODES:
        raise ParameterError(f"--mode {mode}: choose from {', '.join(MODES)}")
    if zdrop is not None and mode != "extend":
        raise ParameterError("--zdrop: only extensions end early; leave it out, or choose --mode extend")
    resources, scoring = resources or Resources(), ordered(scoring)
    effort = Effort(zdrop=NO_ZDROP if zdrop is None else zdrop, diagonals=band or 0)
    alone = resources.device != "cpu"  # the engine takes threads by itself
    solve = make_align(scoring, cigar, resources)
    n_pairs = n_cells = 0

    def align(batch: tuple[int, list[tuple[np.ndarray, np.ndarray]]]) -> tuple[int, int, bytes]:
        first, pairs = batch
        pieces, queries, targets = _pieces(pairs, MODES[mode])
        solved = solve(queries, targets, pieces, effort)
        numbers = first + np.arange(len(pairs)), solved.score, solved.q_used, solved.t_used
        columns: list[tuple] = [(NUMBER, "", column) for column in numbers]
        if cigar:
            columns.append((TEXT, "cg:Z:", cigar_texts(solved)))
        return len(pairs), solved.cells, format_rows(columns, NO_NAMES)

    with report.stage(PairwiseStage("pairwise")) as stage:
        start = cpu_time()
        batches = _batches(path, scoring, GPU_BATCH if alone else 1)
        done = map(align, made_ahead(batches)) if alone else map_in_order(align, batches, resources.threads)
        for n, cells, lines in done:
            n_pairs, n_cells = n_pairs + n, n_cells + cells
            yield lines
        if not n_pairs:
            raise InputError(path, "is empty; two tab-separated columns a line are needed")
        stage.pairs, stage.aligning_cpu_s = n_pairs, round(cpu_time() - start, 3)


def _batches(path: str, scoring: AffineScoring, times: int) -> Iterator[tuple[int, list[tuple[np.ndarray, np.ndarray]]]]:
    """Pairs of code arrays, with the index of the first; a bounded number of bases at a time, `times` the usual one."""
    most = MOST_SCORE // max(scoring.match, -scoring.mismatch, scoring.extend1, scoring.extend2)
    with open_stream(path) as lines:
        first = 0
        numbered = enumerate(lines, 1)
        while True:
            pairs, bases = [], 0
            for number, line in islice(numbered, times * BATCH_PAIRS):
                pairs.append(_parse(path, number, line, most))
                bases += len(line)
                if bases > times * BATCH_BASES:
                    break
            if not pairs:
                return
            yield first, pairs
            first += len(pairs)


def _parse(path: str, number: int, line: bytes, most: int) -> tuple[np.ndarray, np.ndarray]:
    columns = line.rstrip(b"\r\n").split(b"\t")
    if len(columns) != 2:
        raise InputError(path, f"{len(columns)} columns instead of 2, separated by a tab", line=number)
    for what, sequence in zip(("query", "target"), columns, strict=True):
        if sequence and not sequence.isalpha():
            raise InputError(path, f"the {what} holds characters that are not letters", line=number)
    if len(columns[0]) + len(columns[1]) > most:
        raise InputError(path, f"the pair has more than {most} bases, too many for these scores", line=number)
    return encode(columns[0]), encode(columns[1])


def _pieces(pairs: list[tuple[np.ndarray, np.ndarray]], mode: int) -> tuple[Pieces, np.ndarray, np.ndarray]:
    """All pairs, and the codes of queries and of targets end to end."""
    sides = []
    for side in (0, 1):
        lengths = np.array([len(pair[side]) for pair in pairs], np.int64)
        sides.append((np.cumsum(lengths) - lengths, lengths, np.concatenate([pair[side] for pair in pairs])))
    (q_at, q_len, queries), (t_at, t_len, targets) = sides
    same = np.ones(len(pairs), np.int64)
    return Pieces(q_at, q_len, t_at, t_len, same, mode * same), queries, targets
