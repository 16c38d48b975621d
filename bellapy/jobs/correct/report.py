"""What `correct` tells of its stages, and what it learnt from the reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellapy.report.run_report import Dropped, RunReport, Stage

DEEP, FOREIGN, SHORT, UNSUPPORTED = (
    "too deep", "other haplotype or copy", "too short to be written", "without support",
)  # fmt: skip
REASONS = DEEP, FOREIGN, SHORT, UNSUPPORTED
"""Why a read is left out of the pile of another, and why a corrected read or piece is not written."""


@dataclass(slots=True)
class OverlapsStage(Stage):
    """Overlaps that were read, lines of a read with itself, and overlaps that were there already."""

    overlaps: int | None = None
    with_itself: int | None = None
    twice: int | None = None


@dataclass(slots=True)
class AloneStage(Stage):
    """Reads that too few others overlap, and overlaps of these with each other that were found besides."""

    reads: int | None = None
    overlaps: int | None = None


@dataclass(slots=True)
class PilesStage(Stage):
    """Overlaps that the piles are made of."""

    overlaps: int | None = None


@dataclass(slots=True)
class LearnStage(Stage):
    """Reads that were corrected once to learn from."""

    templates: int | None = None


@dataclass(slots=True)
class CorrectStage(Stage):
    """Reads that were corrected, and ranges of them whose paths were held together."""

    reads: int | None = None
    ranges: int | None = None


@dataclass(slots=True)
class Details:
    """overlaps : the details of `overlap`.

    errors : mismatches, inserted and missing bases of reads for each base of the consensus.
    share : of the reads that have to show a base; None: half, for want of reads to learn from.  rounds : of consensus.
    correction : what was done to all reads; records, written_bases : what was written.
    """

    overlaps: Any = None
    errors: dict[str, float] | None = None
    share: float | None = None
    rounds: int | None = None
    correction: Any = None
    records: int | None = None
    written_bases: int | None = None


def start_report(report: RunReport, others: Sequence[str] = ()) -> RunReport:
    """Make a report ready for the numbers of this job.

    others : reasons for which what comes before drops candidates.
    """
    report.dropped = Dropped(*others, *REASONS)
    return report
