"""Rounds over tiles: how alignments lie on their reads, which are sure, and what all of them say together.

Alignments are judged twice: those of best seeds, to see which candidates need a second one, and then all of them.
What judges an alignment is learnt from all: the usual score, where reads turn, where they go on, and the thresholds.

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

from bellapy.compute.columns import join_made, make_rows
from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.ranks import median, quantiles
from bellapy.compute.threads import shared_by
from bellapy.jobs.overlap.candidates import MIN_SURE, SURE_SUPPORT
from bellapy.jobs.overlap.estimate import DEFAULT_ERROR_RATE
from bellapy.jobs.overlap.faults import BEYOND, BIN, SURE_SPAN, Faults, Standing
from bellapy.jobs.overlap.geometry import Geometry, Measured, UsualRate, measure_geometry
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.params import ExtensionParams, FilterParams
from bellapy.records import Extensions, Seeds

SURE_SHARE = 0.5  # of the implied length that is aligned
SURE_OVERHANG = 50  # bases
SURE_COPIES = np.float32(1.3)
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


@dataclass(frozen=True)
class Fair:
    """The geometry without bad ends; which alignments thresholds are learnt from, (n,) bool, and their scores per base."""

    geometry: Geometry
    teaching: np.ndarray
    rates: np.ndarray


class Judging:
    """One of the two times that alignments are judged: what its rounds leave, and what is learnt between them."""

    def __init__(self, name: str):
        self.faults = Faults(name)
        self.alignments, self.measured, self.usual = self.faults.alignments, self.faults.measured, self.faults.usual
        self.fair = Result(f"{name}_fair", Fair, TILES)
        self.thresholds = Result(f"{name}_thresholds", Thresholds)

    def measure(self, work: Work, tile: int) -> Measured:
        """How the alignments lie on their reads; the scores per base of those that are surely overlaps."""
        some, threads = work.get(self.alignments, tile), work.params.run.threads
        geometry = measure_geometry(work.without_bases(tile), some.seeds, some.extensions, threads)
        sure = surely_overlaps(some.seeds, some.extensions, geometry, _floor(work), threads)
        return Measured(geometry, sure, rates_of(some.extensions, geometry, sure, threads))

    def learn_usual(self, work: Work) -> UsualRate:
        """From the sure alignments of all tiles."""
        (rates,) = work.joined(self.measured, "rates")
        return UsualRate(float(median(rates, work.params.run.threads)) if len(rates) >= MIN_SURE else None)

    def be_fair(self, work: Work, tile: int) -> Fair:
        """The geometry without bad ends, and the scores per base that thresholds are learnt from."""
        some, measured, threads = work.get(self.alignments, tile), work.get(self.measured, tile), work.params.run.threads
        found = measured.geometry
        if work.get(self.usual).rate is not None:
            standing = work.get(self.faults.standing)
            standing = standing if work.is_whole else standing.of_reads(work.ids(tile))
            found = fair_geometry(some.seeds, some.extensions, found, standing, threads)
        teaching = teach(measured.sure, found, threads)
        return Fair(found, teaching, rates_of(some.extensions, found, teaching, threads))

    def learn_thresholds(self, work: Work) -> Thresholds:
        """What an overlap has to reach, from all tiles."""
        (rates,) = work.joined(self.fair, "rates")
        given, threads = work.estimate.given, work.params.run.threads
        return learn_thresholds(rates, _floor(work), work.params.filter.delta, given=given, threads=threads)


def _floor(work: Work) -> float:
    estimate = work.estimate
    return score_floor(work.params.extension, work.params.filter, estimate.error_rate, estimate.given)


# ---------------------------------------------------------------- alignments by rows


def surely_overlaps(
    seeds: Seeds, extensions: Extensions, geometry: Geometry, floor: float, threads: int = 1
) -> np.ndarray:  # fmt: skip
    """Mask of the alignments that are surely overlaps, though perhaps of reads with bad ends.

    floor : score per base of implied length.
    """

    def are_sure(rows: slice) -> np.ndarray:
        span, implied = geometry.span[rows], geometry.implied[rows]
        sound = (seeds.rank[rows] == 0) & (seeds.n_support[rows] >= SURE_SUPPORT) & (seeds.copies[rows] <= SURE_COPIES)
        long_enough = (span >= SURE_SPAN) & (span >= SURE_SHARE * implied)
        return sound & long_enough & (extensions.score[rows] >= floor * implied)

    return make_rows(are_sure, len(seeds), bool, threads)


def rates_of(extensions: Extensions, geometry: Geometry, chosen: np.ndarray, threads: int = 1) -> np.ndarray:
    """Score per base of implied length of some alignments, (n,) float64; chosen : mask of them."""
    score, implied = extensions.score, geometry.implied
    return join_made(
        lambda rows: score[rows][chosen[rows]] / np.maximum(implied[rows][chosen[rows]], 1.0), len(score), threads
    )


def teach(sure: np.ndarray, fair: Geometry, threads: int = 1) -> np.ndarray:
    """Mask of the alignments that thresholds are learnt from: sure ones without overhangs, bad ends left out."""
    return make_rows(
        lambda rows: sure[rows] & (np.maximum(fair.left[rows], fair.right[rows]) <= SURE_OVERHANG), len(sure), bool, threads
    )


def fair_geometry(
    seeds: Seeds, extensions: Extensions, geometry: Geometry, standing: Standing, threads: int = 1
) -> Geometry:
    """The geometry without the overhangs that do not count, and with what lies in the lesser part of a joined read.

    standing : of the bins of these reads.
    """
    n, columns = len(seeds), (*seeds.pairs, *extensions.intervals)
    (left, right), implied, lesser = np.empty((2, n), np.int32), np.empty(n), np.empty(n, bool)
    before, after = (geometry.left, geometry.right, geometry.implied), (left, right, implied, lesser)
    shared_by(threads)(lambda part: _judge(standing, columns, before, *part, after), n)
    return Geometry(left, right, geometry.span, implied, lesser)


@njit_entry
def _judge(bins, aligned, before, begin, end, after):
    """Fill in rows [begin, end) of the columns of the fair Geometry.

    bins : Standing.  aligned : `pairs` of Seeds, `intervals` of Extensions.
    before : left, right and implied of the geometry.
    after : of the fair one left and right, (n,) int32, implied, (n,) float64, and lesser, (n,) bool.
    """
    left, right, implied, lesser = after
    query_id, target_id, strand, query_start, query_end, target_start, target_end = aligned
    for i in range(begin, end):
        q, t, same = query_id[i], target_id[i], strand[i] > 0
        first, last = (target_start[i], target_end[i]) if same else (target_end[i], target_start[i])
        bad_left = bins.bad[_bin(bins, q, query_start[i])] or bins.bad[_bin(bins, t, first)]
        bad_right = bins.bad[_bin(bins, q, query_end[i])] or bins.bad[_bin(bins, t, last)]
        its_left, its_right = before[0][i], before[1][i]
        left[i], right[i] = 0 if bad_left else its_left, 0 if bad_right else its_right
        implied[i] = before[2][i] - its_left - its_right + left[i] + right[i]
        lesser[i] = False
        if its_left > BEYOND:
            lesser[i] = _is_lesser(bins, q, query_start[i], np.bool_(True)) or _is_lesser(bins, t, first, same)
        if its_right > BEYOND and not lesser[i]:
            lesser[i] = _is_lesser(bins, q, query_end[i], np.bool_(False)) or _is_lesser(bins, t, last, not same)


@njit_inner
def _bin(bins, read, position):
    """The bin of a position on a read.  bins : Standing."""
    return bins.starts[read] + position // BIN


@njit_inner
def _is_lesser(bins, read, position, runs_on):
    """Whether the read is joined there, and the side on which the alignment lies is the lesser: behind, if it runs on.

    bins : Standing.
    """
    at = _bin(bins, read, position)
    if not bins.joined[at]:
        return False
    before = behind = 0
    for b in range(bins.starts[read], at):
        before += bins.covered[b]
    for b in range(at, bins.starts[read + 1]):
        behind += bins.covered[b]
    return behind < before if runs_on else before < behind


# ---------------------------------------------------------------- thresholds


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
    low, middle = quantiles(rates, (0.01, 0.5), threads)
    least = floor if given else min(floor, LEAST_SHARE * middle)
    ordinary = max(least, middle - max(SPREAD * (middle - low), delta * middle))
    repeat = max(ordinary, middle - REPEAT_SPREAD * (middle - low))
    return Thresholds(float(least), float(ordinary), float(repeat), float(middle), len(rates))


def expected_score_rate(error_rate: float, match: int, mismatch: int, gap: int) -> float:
    """Expected score per base of the true overlap of two reads (BELLA): matches where both are right."""
    both_right = (1 - error_rate) ** 2
    return match * both_right + (mismatch + gap) / 2 * (1 - both_right)


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
