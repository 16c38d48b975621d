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

from bellapy.compute.jit import njit_entry
from bellapy.compute.ranks import median, quantiles
from bellapy.compute.threads import even_ranges, map_threads, shared_by
from bellapy.jobs.overlap.candidates import MIN_SURE, SURE_SUPPORT
from bellapy.jobs.overlap.estimate import DEFAULT_ERROR_RATE
from bellapy.jobs.overlap.faults import (
    Crossings,
    Standing,
    bin_starts,
    fair_geometry,
    find_crossings,
    hull_steps_of,
    steps_of,
)
from bellapy.jobs.overlap.geometry import Aligned, Geometry, measure_geometry
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.params import ExtensionParams, FilterParams
from bellapy.records import Extensions, Seeds

SURE_SHARE = 0.5  # of the implied length that is aligned
SURE_SPAN = 1000  # bases
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
        copies = copies[:]
        copies.flags.writeable = False  # as records have it: code for both would be compiled twice
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
class Alignments:
    """Seeds that were extended, in the order of candidates, and what grew from each."""

    seeds: Seeds
    extensions: Extensions


@dataclass(frozen=True)
class Measured:
    """How alignments lie on their reads, which are sure, (n,) bool, and the scores per base of these, (n_sure,) float64."""

    geometry: Geometry
    sure: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True)
class UsualRate:
    """The median of the scores per base of what is surely an overlap; None: there are too few."""

    rate: float | None


@dataclass(frozen=True)
class Turns:
    """Where alignments of reads on both strands cross; telling : (n,) bool, the alignments that tell where reads go on."""

    crossings: Crossings
    telling: np.ndarray


@dataclass(frozen=True)
class Cover:
    """Where alignments go on along the reads of a tile, (n_bins,) int32 each, as of `steps_of` and `hull_steps_of`."""

    steps: np.ndarray
    hull_steps: np.ndarray


@dataclass(frozen=True)
class Fair:
    """The geometry without bad ends, and the scores per base that thresholds are learnt from."""

    geometry: Geometry
    rates: np.ndarray


class Judging:
    """One of the two times that alignments are judged: what its rounds leave, and what is learnt between them."""

    def __init__(self, name: str):
        self.alignments = Result(name, Alignments, TILES)
        self.measured = Result(f"{name}_rates", Measured, TILES)
        self.usual = Result(f"{name}_usual", UsualRate)
        self.turns = Result(f"{name}_turns", Turns, TILES)
        self.partners = Result(f"{name}_partners", np.ndarray)
        self.cover = Result(f"{name}_cover", Cover, TILES)
        self.standing = Result(f"{name}_standing", Standing)
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

    def cross(self, work: Work, tile: int) -> Turns:
        """Where alignments of reads on both strands cross, of those that tell where reads go on (if a rate is usual)."""
        some, usual = work.get(self.alignments, tile), work.get(self.usual).rate
        telling = np.zeros(len(some.seeds), bool)
        if usual is not None:
            geometry = work.get(self.measured, tile).geometry
            telling = tell_of_reads(some.extensions, geometry, usual, work.params.run.threads)
        return Turns(find_crossings(len(work.ids(tile)), Aligned.of(some.seeds, some.extensions), telling), telling)

    def add_partners(self, work: Work) -> np.ndarray:
        """Those of `Crossings`, over all tiles, (n_reads,) int64."""
        return work.summed(self.turns, "crossings.partners")[0]

    def go_on(self, work: Work, tile: int) -> Cover:
        """Where alignments go on along the reads."""
        n_bins, threads = int(bin_starts(work.lengths(tile))[-1]), work.params.run.threads
        if work.get(self.usual).rate is None:
            return Cover(np.zeros(n_bins, np.int32), np.zeros(n_bins, np.int32))
        found, turns, reads = work.get(self.alignments, tile), work.get(self.turns, tile), work.without_bases(tile)
        some, partners = Aligned.of(found.seeds, found.extensions), work.get(self.partners)[work.ids(tile)]
        steps = steps_of(reads, some, turns.telling, turns.crossings, partners, threads)
        return Cover(steps, hull_steps_of(reads, some, threads))

    def stand(self, work: Work) -> Standing:
        """What all alignments of all tiles say of the bins of the reads."""
        starts = bin_starts(work.reads.lengths)
        if work.is_whole:
            ((steps, hull_steps),) = work.arrays(self.cover, "steps", "hull_steps")
        else:
            steps, hull_steps = np.zeros((2, int(starts[-1])), np.int32)
            for tile, (its_steps, its_hulls) in enumerate(work.arrays(self.cover, "steps", "hull_steps")):
                bins = _bins(starts, work.ids(tile))
                steps[bins] += its_steps
                hull_steps[bins] += its_hulls
        return Standing.of(work.reads.lengths, steps, hull_steps, work.params.run.threads)

    def be_fair(self, work: Work, tile: int) -> Fair:
        """The geometry without bad ends, and the scores per base that thresholds are learnt from."""
        some, measured, threads = work.get(self.alignments, tile), work.get(self.measured, tile), work.params.run.threads
        found = measured.geometry
        if work.get(self.usual).rate is not None:
            standing = work.get(self.standing)
            if not work.is_whole:
                bins = _bins(bin_starts(work.reads.lengths), work.ids(tile))
                standing = Standing(*(column[bins] for column in standing))
            aligned = Aligned.of(some.seeds, some.extensions)
            found = fair_geometry(work.without_bases(tile), aligned, found, standing, threads)
        return Fair(found, rates_of(some.extensions, found, teach(measured.sure, found, threads), threads))

    def learn_thresholds(self, work: Work) -> Thresholds:
        """What an overlap has to reach, from all tiles."""
        (rates,) = work.joined(self.fair, "rates")
        given, threads = work.estimate.given, work.params.run.threads
        return learn_thresholds(rates, _floor(work), work.params.filter.delta, given=given, threads=threads)


def _floor(work: Work) -> float:
    estimate = work.estimate
    return score_floor(work.params.extension, work.params.filter, estimate.error_rate, estimate.given)


def _bins(starts: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The bins of some reads, (n,) int64."""
    sizes = starts[ids + 1] - starts[ids]
    ends = np.cumsum(sizes)
    return np.repeat(starts[ids] - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


# ---------------------------------------------------------------- alignments by rows


def surely_overlaps(seeds: Seeds, extensions: Extensions, geometry: Geometry, floor: float, threads: int = 1) -> np.ndarray:
    """Mask of the alignments that are surely overlaps, though perhaps of reads with bad ends."""
    sure, columns = np.empty(len(seeds), bool), (seeds.rank, seeds.n_support, seeds.copies)
    measured = extensions.score, geometry.span, geometry.implied
    shared_by(threads)(lambda part: mark_sure(columns, measured, floor, *part, sure), len(seeds))
    return sure


@njit_entry
def mark_sure(seeds, measured, floor, begin, end, sure):
    """sure[i], (n,) bool, for rows [begin, end): whether an alignment is surely an overlap, its overhangs aside.

    seeds : rank, n_support and copies of Seeds.  measured : scores, then span and implied length of Geometry.
    floor : score per base of implied length.
    """
    (rank, n_support, copies), (score, span, implied) = seeds, measured
    for i in range(begin, end):
        is_sure = rank[i] == 0 and n_support[i] >= SURE_SUPPORT and copies[i] <= SURE_COPIES
        is_sure = is_sure and span[i] >= SURE_SPAN and span[i] >= SURE_SHARE * implied[i]
        sure[i] = is_sure and score[i] >= floor * implied[i]


def rates_of(extensions: Extensions, geometry: Geometry, rows: np.ndarray, threads: int = 1) -> np.ndarray:
    """Score per base of implied length of some alignments, (n,) float64; rows : mask of them."""
    parts = even_ranges(len(rows), threads)
    begins = np.concatenate(([0], np.cumsum([np.count_nonzero(rows[slice(*part)]) for part in parts], dtype=np.int64)))
    rates = np.empty(begins[-1])

    def list_part(i: int) -> None:
        list_rates(extensions.score, geometry.implied, rows, *parts[i], rates[begins[i] : begins[i + 1]])

    map_threads(list_part, range(len(parts)), threads)
    return rates


@njit_entry
def list_rates(score, implied, rows, begin, end, rates):
    """Write the score per base of implied length of the rows in [begin, end) that a mask holds.

    score : (n,) int32.  implied : (n,) float64, bases.  rows : (n,) bool.  rates : float64, as many as there are.
    """
    n = 0
    for i in range(begin, end):
        if rows[i]:
            rates[n] = score[i] / max(implied[i], 1.0)
            n += 1


def tell_of_reads(extensions: Extensions, geometry: Geometry, usual: float, threads: int = 1) -> np.ndarray:
    """Mask of the alignments that tell where reads go on.

    usual : the median score per base of implied length of those that are surely overlaps.
    """
    telling, measured = np.empty(len(extensions), bool), (extensions.score, geometry.span, geometry.implied)
    shared_by(threads)(lambda part: mark_telling(measured, usual / 2, *part, telling), len(extensions))
    return telling


@njit_entry
def mark_telling(measured, least, begin, end, telling):
    """telling[i], (n,) bool, for rows [begin, end): whether an alignment scores `least` per base, and is not short.

    measured : as in `mark_sure`.
    """
    score, span, implied = measured
    for i in range(begin, end):
        telling[i] = span[i] >= SURE_SPAN and score[i] / max(implied[i], 1.0) >= least


def teach(sure: np.ndarray, fair: Geometry, threads: int = 1) -> np.ndarray:
    """Mask of the alignments that thresholds are learnt from: sure ones without overhangs, bad ends left out."""
    teaching = np.empty(len(sure), bool)
    shared_by(threads)(lambda part: mark_teaching(sure, fair.left, fair.right, *part, teaching), len(sure))
    return teaching


@njit_entry
def mark_teaching(sure, left, right, begin, end, teaching):
    """teaching[i], (n,) bool, for rows [begin, end): whether a sure alignment has hardly any overhang.

    sure : (n,) bool.  left, right : (n,) int32, overhangs.
    """
    for i in range(begin, end):
        teaching[i] = sure[i] and max(left[i], right[i]) <= SURE_OVERHANG


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
