"""Charts of `correct` for its report: what was changed, and how many other reads there were."""

from __future__ import annotations

import numpy as np

from bellapy.jobs.correct.template import Changes, Corrected
from bellapy.report.charts import Chart, Levels, histogram_of, round_edges

CHANGES = np.linspace(0, 300, 101)  # changed bases for each 1,000 of a read


class CorrectCharts:
    """Adds up reads as they are corrected."""

    def __init__(self) -> None:
        self._support: list[float] = []
        self._changes: list[float] = []
        self._raw: list[float] = []

    def add(self, found: Corrected, changes: Changes) -> None:
        """Add a read, what it became and what was changed."""
        changed = changes.mismatches + changes.inserted + changes.deleted
        self._support.append(found.support)
        self._changes.append(1000 * changed / max(1, len(found.begins) - 1))
        self._raw.append(changes.raw / len(found.codes) if len(found.codes) else 1.0)

    def charts(self, per_kb: dict[str, float]) -> list[Chart]:
        """All of them; per_kb : changes by kind for each 1,000 bases."""
        support = np.array(self._support)
        return [
            Levels("Changes", "Bases that were changed, for each 1,000 bases.", "for each 1,000 bases", "",
                   [name.capitalize() for name in per_kb], list(per_kb.values())),
            histogram_of(
                np.array(self._changes), CHANGES, "Changes of a read", "How many bases of each read were changed. More than "
                "300 are counted there.", "changes for each 1,000 bases", "reads",
            ),
            histogram_of(
                support, round_edges(float(support.max(initial=1))), "Support of a read", "Mean number of other reads that "
                "lie on the bases of a read.", "other reads", "reads",
            ),
            histogram_of(
                np.array(self._raw), np.linspace(0, 1, 51), "What stayed as it was", "Share of each read's bases that have "
                "too few other reads beside them.", "share", "reads", log_y=True,
            ),
        ]  # fmt: skip
