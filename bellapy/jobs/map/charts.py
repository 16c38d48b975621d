"""Charts of `map` for its report: reads, primary alignments, and depth along the reference."""

from __future__ import annotations

from threading import Lock

import numpy as np

from bellapy.jobs.map.choose import PRIMARY, SECONDARY
from bellapy.jobs.map.pipeline import Mapped
from bellapy.report.charts import Chart, Curve, Curves, Histogram, Mark
from bellapy.seeding.index import Index

IDENTITIES = np.linspace(0.5, 1, 101)
QUALITIES = np.arange(62) - 0.5
LENGTHS = 10 ** np.linspace(1, 7, 121)  # bases; logarithmic, since no length is known before
PARTS = 400  # of the reference


class MapCharts:
    """Adds up batches as they are mapped, by several threads too; the charts do not depend on the batches."""

    def __init__(self, index: Index):
        self._at = np.concatenate(([0], np.cumsum(index.lengths)))
        self._part = max(1, -(-int(self._at[-1]) // PARTS))
        self._names = index.names
        self._identity = np.zeros(len(IDENTITIES) - 1, np.int64)
        self._quality = np.zeros(len(QUALITIES) - 1, np.int64)
        self._lengths = np.zeros((2, len(LENGTHS) - 1), np.int64)  # of all reads, of those that are mapped
        self._bases = np.zeros(PARTS, np.float64)
        self._lock = Lock()

    def add(self, mapped: Mapped) -> None:
        """Add a batch."""
        lengths = np.array([len(sequence) for sequence in mapped.records.sequences], np.int64)
        hits, primary = mapped.hits, mapped.hits.take(mapped.hits.kind == PRIMARY)
        identity = primary.n_matches / np.maximum(primary.n_columns, 1)
        found = hits.take(hits.kind != SECONDARY)
        start = self._at[found.sequence] + found.t_start
        bases = self._spread(start, start + found.t_end - found.t_start)
        with self._lock:
            self._identity += np.histogram(np.clip(identity, IDENTITIES[0], 1), IDENTITIES)[0]
            self._quality += np.histogram(primary.quality, QUALITIES)[0]
            for row, some in enumerate((lengths, lengths[np.unique(primary.read)])):
                self._lengths[row] += np.histogram(np.clip(some, LENGTHS[0], LENGTHS[-1]), LENGTHS)[0]
            self._bases += bases

    def _spread(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Bases of intervals that lie in each part, (PARTS,) float64."""
        edges = np.arange(PARTS + 1) * self._part
        begun = [np.clip(edges, a, b).astype(np.float64) for a, b in zip(start.tolist(), end.tolist(), strict=True)]
        return np.diff(np.sum(begun, axis=0)) if begun else np.zeros(PARTS)

    def charts(self) -> list[Chart]:
        """All of them."""
        middle = (np.sqrt(LENGTHS[:-1] * LENGTHS[1:])).tolist()
        seen = np.flatnonzero(self._lengths[0])
        some = slice(seen[0], seen[-1] + 1) if len(seen) else slice(0, 0)
        sizes = np.clip(self._at[-1] - np.arange(PARTS) * self._part, 0, self._part)
        there = sizes > 0
        depth = (self._bases[there] / sizes[there]).tolist()
        place = ((np.arange(PARTS) + 0.5) * self._part)[there].tolist()
        ends = [Mark(name, float(at)) for name, at in zip(self._names[1:], self._at[1:], strict=False)]
        return [
            Histogram(
                "Identity of reads", "Matching bases for each column of primary alignments. What lies below 0.5 is counted "
                "there.", "identity", "reads", IDENTITIES.tolist(), self._identity.tolist(),
            ),
            Histogram(
                "Mapping quality", "60 is sure; 0 means that another place fits as well.", "mapping quality", "reads",
                QUALITIES.tolist(), self._quality.tolist(), log_y=True,
            ),
            Curves(
                "Read lengths", "All reads, and those that are mapped, on steps of a twentieth of a power of ten.",
                "length (bases)", "reads",
                [Curve(name, middle[some], self._lengths[i][some].tolist()) for i, name in enumerate(("all", "mapped"))],
            ),
            Curves(
                "Depth along the reference", "Mean number of reads on parts of the reference, its sequences end to end.",
                "place (bases)", "reads", [Curve("depth", place, depth)], ends if len(ends) <= 3 else [],
            ),
        ]  # fmt: skip
