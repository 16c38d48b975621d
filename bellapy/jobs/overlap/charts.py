"""Charts of `overlap` for its report: of k-mers, reads, and what was written."""

from __future__ import annotations

import math
from threading import Lock

import numpy as np

from bellapy.jobs.overlap.report import Details, Estimates
from bellapy.records import Overlaps, ReadSet, join_overlaps
from bellapy.report.charts import Chart, Curve, Curves, Density, Histogram, Mark, histogram_of, round_edges
from bellapy.report.run_report import RunReport

PLACES = 50  # along a read, whatever its length
LOOKED_AT = 20_000  # reads whose coverage is looked at, evenly spaced
GRID = 60
AT_ONCE = 1 << 18  # overlaps
IDENTITIES = np.linspace(0.5, 1, 101)


class OverlapCharts:
    """Adds up overlaps as they are written, by several threads too."""

    def __init__(self, reads: ReadSet):
        self._lengths = reads.lengths
        self._longest = int(reads.lengths.max(initial=1))
        self._spans = round_edges(self._longest)
        self._grid = np.linspace(0, self._spans[-1], GRID + 1)
        self._number = np.zeros(len(reads), np.int64)
        self._span_counts = np.zeros(len(self._spans) - 1, np.int64)
        self._identity_counts = np.zeros(len(IDENTITIES) - 1, np.int64)
        self._score_counts = np.zeros((GRID, GRID), np.int64)
        self._scores: np.ndarray | None = None
        looked_at = np.unique(np.linspace(0, len(reads) - 1, min(len(reads), LOOKED_AT)).astype(np.int64))
        self._row = np.full(len(reads), -1, np.int64)
        self._row[looked_at] = np.arange(len(looked_at))
        self._changes = np.zeros((len(looked_at), PLACES + 1), np.int32)  # of the coverage, from place to place
        self._lock, self._adding = Lock(), Lock()
        self._waiting: list[Overlaps] = []
        self._n_waiting = 0

    def add(self, overlaps: Overlaps) -> None:
        """Add overlaps, some of the output: they wait until there are many, so that threads need not wait for each other."""
        with self._lock:
            self._waiting.append(overlaps)
            self._n_waiting += len(overlaps)
            if self._n_waiting < AT_ONCE:
                return
            some = self._take_waiting()
        self._add(some)

    def _take_waiting(self) -> Overlaps:
        some, self._waiting, self._n_waiting = join_overlaps(self._waiting), [], 0
        return some

    def _add(self, overlaps: Overlaps) -> None:
        if not len(overlaps):
            return
        spans = (overlaps.query_end - overlaps.query_start + (overlaps.target_end - overlaps.target_start)) / 2
        identity = overlaps.n_matches / np.maximum(overlaps.n_columns, 1)
        with self._adding:
            for read, start, end in (
                (overlaps.query_id, overlaps.query_start, overlaps.query_end),
                (overlaps.target_id, overlaps.target_start, overlaps.target_end),
            ):
                self._number += np.bincount(read, minlength=len(self._number))
                self._cover(read, start, end)
            self._span_counts += np.histogram(np.minimum(spans, self._longest), self._spans)[0]
            self._identity_counts += np.histogram(np.clip(identity, IDENTITIES[0], 1), IDENTITIES)[0]
            if self._scores is None:
                self._scores = np.linspace(0, 1.25 * max(1, int(np.max(overlaps.score))), GRID + 1)
            score = np.clip(overlaps.score, 0, self._scores[-1])
            self._score_counts += np.histogram2d(spans, score, (self._grid, self._scores))[0].astype(np.int64)

    def _cover(self, read: np.ndarray, start: np.ndarray, end: np.ndarray) -> None:
        seen = np.flatnonzero(self._row[read] >= 0)
        row, length = self._row[read[seen]], np.maximum(self._lengths[read[seen]], 1)
        first, last = (np.rint(x[seen].astype(np.int64) * PLACES / length).astype(np.int64) for x in (start, end))
        np.add.at(self._changes, (row, first), 1)
        np.add.at(self._changes, (row, last), -1)

    def finish(self, report: RunReport) -> None:
        """Put the charts into the report."""
        if self._waiting:
            self._add(self._take_waiting())
        report.charts = [
            *_spectrum(report.estimates, report.details), *self._reads(), *self._overlaps(report.details), *self._coverage()
        ]  # fmt: skip

    def _reads(self) -> list[Chart]:
        edges = round_edges(max(1, int(np.quantile(self._number, 0.999)) if len(self._number) else 1))
        alone = int((self._number == 0).sum())
        in_order = np.sort(self._lengths)[::-1].astype(np.int64)
        total = np.cumsum(in_order)
        half = int(in_order[np.searchsorted(total, total[-1] / 2)]) if len(total) else 0
        return [
            histogram_of(
                self._lengths, self._spans, "Read lengths", "How long the reads are. Half of all bases stand in reads at "
                "least as long as the N50.", "length (bases)", "reads", marks=[Mark(f"N50 {half:,}", half)],
            ),
            histogram_of(
                self._number, edges, "Overlaps of a read", f"How many overlaps each read is part of; {alone:,} reads are "
                "part of none.", "overlaps", "reads",
            ),
        ]  # fmt: skip

    def _overlaps(self, details: Details) -> list[Chart]:
        rate = details.thresholds.score_rate if details.thresholds else None
        scores = np.linspace(0, 1, GRID + 1) if self._scores is None else self._scores
        line = [Curve("threshold", [0.0, float(self._grid[-1])], [0.0, rate * float(self._grid[-1])])] if rate else []
        return [
            Histogram(
                "Lengths of overlaps", "Mean of the bases of both reads that are aligned.", "length (bases)", "overlaps",
                self._spans.tolist(), self._span_counts.tolist(),
            ),
            Histogram(
                "Identity of overlaps", "Matching bases for each column of the alignment; an estimate from the score where "
                "no paths were made. What lies below 0.5 is counted there.", "identity", "overlaps",
                IDENTITIES.tolist(), self._identity_counts.tolist(),
            ),
            Density(
                "Score and length", "Each overlap by its length and its score. The threshold holds for the length that the "
                "reads imply, so it lies at or above the line.", "length (bases)", "score",
                self._grid.tolist(), scores.tolist(), self._score_counts.tolist(), line,
            ),
        ]  # fmt: skip

    def _coverage(self) -> list[Chart]:
        if not len(self._changes):
            return []
        depth = np.cumsum(self._changes[:, :PLACES], axis=1)
        low, middle, high = np.percentile(depth, (10, 50, 90), axis=0)
        x = ((np.arange(PLACES) + 0.5) / PLACES).tolist()
        curves = [Curve("90 % of the reads have less", x, high.tolist()), Curve("half", x, middle.tolist())]
        curves.append(Curve("10 % have less", x, low.tolist()))
        about = "How many other reads lie on each part of a read. Bad ends show as a fall at either side."
        return [Curves("Coverage along reads", about, "place in the read (0: its begin, 1: its end)", "other reads", curves)]


def _spectrum(found: Estimates, details: Details) -> list[Chart]:
    """K-mers by count with the bounds, and what the estimates make of it."""
    if not details.spectrum or found.upper is None or found.lower is None:
        return []
    counts = np.array(details.spectrum, float)[2:]
    x = np.arange(2, 2 + len(counts))
    marks = [Mark(f"lower {found.lower}", found.lower - 0.5), Mark(f"upper {found.upper}", found.upper + 0.5)]
    about = "How many k-mers occur how often. Those between the bounds may link reads."
    curves = _expected(found, counts, x)
    return [
        Histogram(
            "K-mer spectrum", about, "occurrences in the reads", f"{found.k}-mers", (np.append(x, x[-1] + 1) - 0.5).tolist(),
            counts.tolist(), curves, marks, log_y=True,
        )
    ]  # fmt: skip


def _expected(found: Estimates, counts: np.ndarray, x: np.ndarray) -> list[Curve]:
    """The Poisson curve of k-mers without errors at the estimated depth, with as many as there are beyond its mean."""
    if found.depth is None or found.error_rate is None or found.k is None:
        return []
    mean = max(found.depth * (1 - found.error_rate) ** found.k, np.finfo(float).tiny)
    shape = np.exp(x * math.log(mean) - mean - [math.lgamma(n + 1) for n in x.tolist()])
    beyond = x >= mean
    if not shape[beyond].sum():
        return []
    scale = counts[beyond].sum() / shape[beyond].sum()
    y = scale * shape
    seen = y >= 0.5
    return [Curve("expected without errors", x[seen].tolist(), y[seen].tolist())]
