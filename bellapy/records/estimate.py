"""What reads say about themselves."""

from __future__ import annotations

from dataclasses import dataclass

MIXED, LEAST_MIXED, LEAST_UNEVEN = 1.5, 0.02, 0.1  # from where on the log tells it


@dataclass(frozen=True)
class Estimate:
    """depth, error_rate : of the reads; None where the data say nothing.

    given : whether the user gave the error rate.  source : in words, for the log.
    worst_error_rate : of the reads that hold the worst tenth of the bases; None where unknown or given.
    uneven : share of the bases in reads whose depth is far from the usual one.
    spread : standard error of a depth that was measured.  repeats : share of the genome in repeats; None where unknown.
    level : usual count of a read's repeated k-mers, 0 where there are none.
    heterozygosity : differences per base between two haplotypes; None where the reads do not show any.
    gc : share of G and C among the bases.
    """

    depth: float | None
    error_rate: float | None
    given: bool
    source: str
    worst_error_rate: float | None = None
    uneven: float = 0.0
    spread: float | None = None
    repeats: float | None = None
    level: float = 0.0
    heterozygosity: float | None = None
    gc: float = 0.5

    @property
    def mixed(self) -> bool:
        """Whether the worst reads are far worse than most."""
        worst, rate = self.worst_error_rate, self.error_rate
        return worst is not None and rate is not None and worst > MIXED * max(rate, LEAST_MIXED)

    @property
    def choice_rate(self) -> float | None:
        """The error rate that k and sampling are chosen for: where reads are mixed, that of the worst."""
        return self.worst_error_rate if self.mixed else self.error_rate
