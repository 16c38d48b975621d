"""What `overlap` tells of its stages, and what it learnt from the reads."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from bellapy.params.reads import POOR, SHORT
from bellapy.report.run_report import Dropped, RunReport, Stage

if TYPE_CHECKING:  # a report is begun before the program is loaded
    from bellapy.jobs.overlap.candidates import Typical
    from bellapy.jobs.overlap.judging import Thresholds
    from bellapy.jobs.overlap.linking import Links
    from bellapy.records import Estimate

TOO_SPARSE, REPEAT, NO_SUPPORT = "too few k-mers for its length", "repeat", "too little support"
REASONS = (
    SHORT, POOR, NO_SUPPORT, TOO_SPARSE, REPEAT, "too short", "score too low",
    "stops in a repeat", "in the lesser part of a joined read", "overhang", "identity", "with another copy",
    "of a contained read", "beyond the best of a read",
)  # fmt: skip
"""Why a read is left out, and why a candidate gives no overlap: before it is aligned, and after."""


@dataclass(slots=True)
class EstimateStage(Stage):
    """Reads and bases that the estimates are about."""

    reads: int | None = None
    bases: int | None = None


@dataclass(slots=True)
class CountStage(Stage):
    """K-mers that link reads, and their places in the reads."""

    kmers: int | None = None
    places: int | None = None


@dataclass(slots=True)
class CandidatesStage(Stage):
    """Products of the sparse matrices, pairs that share k-mers, and seeds of those that are kept."""

    products: int | None = None
    candidates: int | None = None
    seeds: int | None = None


@dataclass(slots=True)
class AlignStage(Stage):
    """Seeds that were extended, and those of them that were not the first of their candidate."""

    extensions: int | None = None
    second_seeds: int | None = None


@dataclass(slots=True)
class FilterStage(Stage):
    """Alignments that are kept, and those of them that are the second one of their pair."""

    overlaps: int | None = None
    second_pieces: int | None = None


@dataclass(slots=True)
class PathsStage(Stage):
    """Overlaps that are left when their paths are known."""

    overlaps: int | None = None


@dataclass(slots=True)
class Estimates:
    """The fields of `records.Estimate`, and what was chosen by them, as in the groups of parameters."""

    depth: float | None = None
    error_rate: float | None = None
    given: bool = False
    source: str = ""
    worst_error_rate: float | None = None
    uneven: float = 0.0
    spread: float | None = None
    repeats: float | None = None
    level: float = 0.0
    heterozygosity: float | None = None
    gc: float = 0.5
    k: int | None = None
    lower: int | None = None
    upper: int | None = None
    sampling: str | None = None
    sampling_window: int | None = None
    min_overlap: int | None = None
    xdrop: list[int] | None = None
    tilt: float | None = None

    @classmethod
    def of(cls, found: Estimate) -> Estimates:
        """Those of the reads, with nothing chosen yet."""
        return cls(**{f.name: getattr(found, f.name) for f in fields(found)})


@dataclass(slots=True)
class Details:
    """links : which k-mers link reads.  spectrum : of k-mers, by count.

    typical : what sound candidates show.  thresholds : what an overlap had to reach.
    """

    links: Links | None = None
    spectrum: list[int] | None = None
    typical: Typical | None = None
    thresholds: Thresholds | None = None


def start_report(report: RunReport) -> RunReport:
    """Make a report ready for the numbers of this job."""
    report.estimates, report.details, report.dropped = Estimates(), Details(), Dropped(*REASONS)
    return report
