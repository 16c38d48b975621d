"""Charts of `exact` for its report: the score between its bounds, and the path."""

from __future__ import annotations

import numpy as np

from bellapy.engines.exact.align import Alignment, Reached, Work
from bellapy.jobs.exact.output import Pair
from bellapy.jobs.exact.plot import path_points
from bellapy.report.charts import Chart, Curve, Curves, Levels

SHOWN = 2000  # ends of runs of a path


def make_charts(pair: Pair, best: Alignment | Reached | None, strand: int, work: Work) -> list[Chart]:
    """All of them; `strand` and `work` are those of the alignment, None if none scores above 0."""
    names, values = ["lower bound", "score", "upper bound"], [work.lower, best.score if best else 0, work.upper]
    charts: list[Chart] = [
        Levels("Score", "The score between the bounds that were known before.", "score", "", names, values)
    ]
    if isinstance(best, Alignment):
        columns, rows = path_points(best)
        some = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), SHOWN)).astype(int))
        path = Curve("path", columns[some].tolist(), rows[some].tolist())
        turned = "" if strand > 0 else " (reverse complement)"
        about = f"The alignment of {pair.query_name}{turned} with {pair.target_name}. Jumps are insertions and deletions."
        charts.append(Curves("Path", about, "target (bases)", "query (bases)", [path]))
    return charts
