"""The optimal alignment of two sequences, as a function."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from bellapy.api.inputs import Reads, as_reads, named, no_more, run_params, source_of
from bellapy.engines.exact.align import Alignment
from bellapy.errors import InputError
from bellapy.jobs.exact.output import Pair, cigar, count_path
from bellapy.jobs.exact.pipeline import Means, align_strands, begin_choice
from bellapy.params.exact import ExactParams, make_exact_params
from bellapy.params.fields import fields_of
from bellapy.report.run_report import RunReport
from bellapy.version import __version__


class ExactAlignment(NamedTuple):
    """An optimal alignment; positions are 0-based, half-open, on the forward strand of both sequences.

    strand : +1, or -1 where the query's reverse complement aligns.  n_matches, n_columns : of the path.
    cigar : along the target's forward strand.  report : what was done; see docs/report.md.
    """

    query: str
    query_length: int
    query_start: int
    query_end: int
    strand: int
    target: str
    target_length: int
    target_start: int
    target_end: int
    n_matches: int
    n_columns: int
    score: int
    cigar: str
    report: RunReport


def exact(
    query: Reads | bytes, target: Reads | bytes, *, threads: int | None = None, device: str = "auto", **options: Any
) -> ExactAlignment | None:  # fmt: skip
    """Find the optimal alignment of two sequences with affine gaps: what `bellapy exact` does.

    Parameters
    ----------
    query, target : a sequence, or a file or a dictionary that holds one.
    threads : None: all cores.  device : auto, cpu or cuda.
    options : mode, strand, match, mismatch, gap_open, gap_extend, as options of `bellapy exact`.

    Returns
    -------
    The alignment; None where none scores above 0.

    Raises
    ------
    ParameterError : an option out of range.  InputError : not one sequence, or one without bases.
    DeviceError : no GPU can be used.  TypeError : an option of no such name.
    """
    no_more(options, fields_of(ExactParams))
    params = make_exact_params(options)
    run = run_params(threads, device)
    report = RunReport("bellapy.exact", __version__, {**asdict(params), "threads": run.threads})
    choice = begin_choice(run)
    pair = Pair(*_only(query, "query"), *_only(target, "target"))
    found = align_strands(pair, params, Means(run, report), choice)
    report.finish()
    if not isinstance(found.alignment, Alignment):
        return None
    best, counts = found.alignment, count_path(pair.oriented(found.strand), pair.target, found.alignment)
    n = len(pair.query)
    span = (best.query_start, best.query_end) if found.strand > 0 else (n - best.query_end, n - best.query_start)
    return ExactAlignment(
        pair.query_name, n, *span, found.strand, pair.target_name, len(pair.target), best.target_start, best.target_end,
        counts.matches, counts.columns, best.score, cigar(best), report,
    )  # fmt: skip


def _only(given: Reads | bytes, name: str) -> tuple[str, np.ndarray]:
    """Name and codes of the one sequence that is given."""
    sequences = named(given, name)
    reads = as_reads(sequences)
    if len(reads) != 1 or not reads.lengths[0]:
        held = f"{len(reads):,} sequences" if len(reads) != 1 else "a sequence without bases"
        raise InputError(source_of(sequences), f"holds {held}; the {name} has to be one sequence with bases")
    start = int(reads.starts[0])
    return reads.names[0], reads.codes[start : start + int(reads.lengths[0])].copy()
