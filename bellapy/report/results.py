"""What came out of a run, in a few numbers: what a report shows first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellapy.report.charts import Chart, Histogram
from bellapy.report.run_report import RunReport

IDENTITY = "identity"  # the axis of a histogram of identities


def results_of(report: RunReport) -> dict[str, int | float]:
    """Numbers by name, those that this job has; docs/report.md says what each is."""
    told: dict[str, int | float] = {}
    for stage in report.stages:
        told |= {name: value for name, value in stage.numbers().items() if isinstance(value, (int, float))}
    names = ("reads", "bases", "overlaps", "mapped", "unmapped", "alignments", "score", "pairs", "windows")
    found = {name: told[name] for name in names if name in told}
    reads = found.get("reads")
    if reads and "overlaps" in found:
        found["overlaps_of_a_read"] = round(2 * found["overlaps"] / reads, 1)
    if reads and "mapped" in found:
        found["share_mapped"] = round(found["mapped"] / reads, 4)
    for name in ("records", "written_bases"):
        if (value := getattr(report.details, name, None)) is not None:
            found[name] = value
    if (identity := _median_identity(report.charts)) is not None:
        found["median_identity"] = identity
    return found


def _median_identity(charts: Sequence[Chart]) -> float | None:
    """The middle of the bar that holds the median; None: no identities are known."""
    for chart in charts:
        if isinstance(chart, Histogram) and chart.x_label == IDENTITY and any(chart.counts):
            counts = np.cumsum(chart.counts)
            bar = int(np.searchsorted(counts, counts[-1] / 2))
            return round((chart.edges[bar] + chart.edges[bar + 1]) / 2, 4)
    return None
