"""What an alignment has to score to be an overlap: an adaptive threshold.

A sound overlap scores about as much per base of its implied length as all others of the same reads do.  Chance and
repeat-induced alignments score less, since part of their implied length does not match.  So the threshold is learnt from
sure alignments: those with many shared k-mers, no overhang and no repeat.  It is their median score per base, less the
larger of two distances: SPREAD times the distance to their 1st percentile, and the share delta of the median.  Overhangs of
bad ends do not count (faults.py), but an overlap scores at least LEAST_SHARE of the median with them.
Of a read joined from two places, what stops at the join in the lesser part is no overlap.

Without sure alignments the threshold is BELLA's bound (1 - delta) * phi, where phi is the score per base expected from the
error rate.  It is at most MAX_FLOOR, since real reads hold stretches far worse than their average.

Where the shared k-mers are those of a repeat (Seeds.copies), a false overlap is as likely as a true one.  There the
threshold rises to the 1st percentile of the sure ones, and nearly all of the implied length has to be aligned.  Copies that
are longer than reads are told apart by what each read scores elsewhere (other_copies.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.ranks import quantiles
from bellapy.compute.threads import shared_by
from bellapy.jobs.overlap.candidates import MIN_SURE
from bellapy.jobs.overlap.estimate import DEFAULT_ERROR_RATE, expected_score_rate
from bellapy.jobs.overlap.geometry import Geometry
from bellapy.params import ExtensionParams, FilterParams

SPREAD = 2.0
REPEAT_SPREAD = 1.0
MAX_FLOOR = 0.2  # per match score
LEAST_SHARE = 0.25  # of the median score per base of the implied length, overhangs of bad ends counted
REPEAT_ALIGNED = 0.95  # share of the implied length
REPEAT_COPIES = (1.1, 1.5)  # from where on and up to where the thresholds rise
REASONS = (
    "too short", "score too low", "stops in a repeat", "in the lesser part of a joined read", "overhang", "identity",
    "with another copy",
)  # fmt: skip
SHORT, LOW, STOPS, LESSER, OVERHANG, IDENTITY, OTHER_COPY = (np.uint8(1 << i) for i in range(len(REASONS)))


@dataclass(frozen=True)
class Thresholds:
    """What an overlap has to reach.

    floor : score per base of implied length.
    score_rate : score per base of implied length without overhangs that do not count.
    repeat_rate : the same in repeats.
    median_rate, n_sure : what they were learnt from; median_rate is None where there was too little.
    """

    floor: float
    score_rate: float
    repeat_rate: float
    median_rate: float | None
    n_sure: int

    def failures(
        self, score: np.ndarray, copies: np.ndarray, geometry: Geometry, fair: Geometry, threads: int = 1
    ) -> np.ndarray:
        """The bits of the tests that alignments with these scores and copies fail, (n,) uint8."""
        rises = Rises(self.floor, (self.score_rate, self.repeat_rate), (0.0, REPEAT_ALIGNED if self.median_rate else 0.0))
        failed, bases = np.zeros(len(score), np.uint8), (fair.left, fair.right, fair.implied, fair.lesser)
        shared_by(threads)(
            lambda part: test_scores((score, copies), geometry.implied, bases, rises, *part, failed), len(score)
        )
        return failed


class Rises(NamedTuple):
    """What an alignment has to reach outside repeats and in them; between REPEAT_COPIES it rises evenly.

    floor : score per base of implied length.  rates : the same, bad ends left out.  aligned : share of the implied length.
    """

    floor: float
    rates: tuple[float, float]
    aligned: tuple[float, float]


@njit_entry
def test_scores(judged, geometry, fair, rises, begin, end, failed):
    """failed[i], (n,) uint8, gets a bit for each of LOW, STOPS and LESSER that drops row i of [begin, end).

    judged : score and copies, (n,).  geometry : implied length, (n,) float64.  rises : Rises.
    fair : left, right, implied and lesser of the Geometry without bad ends.
    """
    (score, copies), (left, right, implied, lesser) = judged, fair
    low, high = REPEAT_COPIES
    for i in range(begin, end):
        rate, aligned = rises.rates[0], rises.aligned[0]
        if copies[i] >= high:
            rate, aligned = rises.rates[1], rises.aligned[1]
        elif copies[i] > low:
            rate += (rises.rates[1] - rises.rates[0]) / (high - low) * (copies[i] - low)
            aligned += (rises.aligned[1] - rises.aligned[0]) / (high - low) * (copies[i] - low)
        its = np.uint8(0)
        if not (score[i] >= rises.floor * geometry[i] and score[i] >= rate * implied[i]):
            its |= LOW
        if not implied[i] - left[i] - right[i] >= aligned * implied[i]:
            its |= STOPS
        failed[i] |= its | (LESSER if lesser[i] else np.uint8(0))


def score_floor(scoring: ExtensionParams, params: FilterParams, error_rate: float | None, given: bool) -> float:
    """BELLA's threshold per base; where the error rate was not given by the user, at most MAX_FLOOR."""
    rate = DEFAULT_ERROR_RATE if error_rate is None else error_rate
    bound = (1 - params.delta) * expected_score_rate(rate, scoring.match, scoring.mismatch, scoring.gap)
    return max(0.0, bound if given else min(bound, MAX_FLOOR * scoring.match))


def learn_thresholds(rates: np.ndarray, floor: float, delta: float, *, given: bool, threads: int = 1) -> Thresholds:
    """What the scores of sure overlaps suggest.

    Parameters
    ----------
    rates : score per base of implied length, bad ends left out, of the alignments that `teach`.
    floor : smallest score per base of implied length; it stays where it is `given` by the user.
    delta : share of the median by which the threshold lies below it, at least.
    """
    if len(rates) < MIN_SURE:
        return Thresholds(floor, floor, floor, None, len(rates))
    low, median = quantiles(rates, (0.01, 0.5), threads)
    least = floor if given else min(floor, LEAST_SHARE * median)
    ordinary = max(least, median - max(SPREAD * (median - low), delta * median))
    repeat = max(ordinary, median - REPEAT_SPREAD * (median - low))
    return Thresholds(float(least), float(ordinary), float(repeat), float(median), len(rates))
