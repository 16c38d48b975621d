"""Charts of `wga` for its report: where the genomes align, how long and how well."""

from __future__ import annotations

import numpy as np

from bellapy.records.bases import UNKNOWN
from bellapy.records.genomes import Alignment, Genome
from bellapy.report.charts import Chart, Density, histogram_of, round_edges

GRID = 150
MOST_PAIRS = 2000  # of an alignment that are drawn


def make_charts(target: Genome, query: Genome, alignments: list[Alignment]) -> list[Chart]:
    """All of them."""
    lengths = np.array([found.t_end - found.t_start for found in alignments], float)
    top = float(np.quantile(lengths, 0.99)) if len(lengths) else 1.0
    turned = query.reverse()
    same = [_identity(target, query if found.strand > 0 else turned, found) for found in alignments]
    return [
        _map_of(target, query, alignments),
        histogram_of(
            lengths, round_edges(top), "Lengths of alignments", "Bases of the target. The longest hundredth is counted in "
            "the last bar.", "length (bases)", "alignments", log_y=True,
        ),
        histogram_of(
            np.clip(np.array(same), 0.3, 1), np.linspace(0.3, 1, 71), "Identity of alignments", "Equal bases among pairs of "
            "bases.", "identity", "alignments",
        ),
    ]  # fmt: skip


def _identity(target: Genome, query: Genome, found: Alignment) -> float:
    t, q = found.pairs()
    a, b = target.codes[target.starts[found.target] + t], query.codes[query.starts[found.query] + q]
    return float(((a == b) & (a < UNKNOWN)).mean())


def _map_of(target: Genome, query: Genome, alignments: list[Alignment]) -> Chart:
    """Where pairs of bases lie, sequences end to end."""
    t_at, q_at = (np.cumsum(genome.lengths) - genome.lengths for genome in (target, query))
    counts, edges = np.zeros((GRID, GRID)), []
    for genome in (target, query):
        edges.append(np.linspace(0, max(1, genome.n_bases), GRID + 1))
    for found in alignments:
        t, q = found.pairs()
        step = max(1, len(t) // MOST_PAIRS)
        t, q = t[::step], q[::step]
        if found.strand < 0:
            q = query.lengths[found.query] - 1 - q
        counts += step * np.histogram2d(t + t_at[found.target], q + q_at[found.query], edges)[0]
    return Density(
        "Where the genomes align", "Pairs of bases by their places on both genomes, sequences end to end. A rising line is "
        "the same strand, a falling one the other.", "target (bases)", "query (bases)",
        edges[0].tolist(), edges[1].tolist(), counts.astype(np.int64).tolist(),
    )  # fmt: skip
