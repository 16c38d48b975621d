"""Rounds over tiles: alignments with another copy of a sequence, told by what each read scores elsewhere.

Copies of a sequence show by what an alignment of two reads scores per base, beside what these reads score elsewhere.
Two reads of one place differ by their errors alone.  Two reads of two copies of a long sequence, such as a segmental
duplication, differ by what sets the copies apart besides.  Where the reads lie within the copies, their depth and the ends
of the alignment show nothing of it.

1. The level of a read is the mean score per base of its better alignments: those that are no worse than the mean of all.
   Where half of them are with another copy, these are the ones of its own copy.
2. An alignment of two reads is expected to score as much as their levels say: each read adds its own errors.
3. By how much sure overlaps fall short of this depends on their length, and on how evenly the errors lie along the reads.
   In each class of lengths their quantiles give a limit, which next to none of them would reach.  Alignments beyond it are
   with another copy.  Copies add to the depth, so alignments where the depth is no higher than usual teach the limits, and
   those where it is are judged by them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellapy.compute.columns import choose_rows, make_rows
from bellapy.compute.jit import njit_entry
from bellapy.compute.ranks import quantiles
from bellapy.compute.threads import shared_by
from bellapy.jobs.overlap.align import ALL, ALL_JUDGED
from bellapy.jobs.overlap.faults import SURE_SPAN
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.records import Seeds

UNIT = 1 << 20  # scores per base are added up as integers in these units, so that the order of adding does not matter
LEAST_PARTNERS = 4  # alignments of a read whose level is known
USUAL_COPIES = np.float32(1.0)  # up to where alignments teach
MORE_COPIES = np.float32(1.1)  # from where on they are judged
N_CLASSES = 24  # of lengths, by powers of two
LEAST_SURE = 200  # alignments of a class: with fewer it has no limit
QUANTILES = 0.01, 0.02, 0.5, 0.98  # of the shortfalls
SPREAD = 2.5  # times their distance from the median to the 1st percentile, and more where more lie far beyond the median


@dataclass(frozen=True)
class Sums:
    """Scores per base of alignments added up by read, and how many there are, (n_reads,) int64 each; see `sum_rates`."""

    totals: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class PassingSums(Sums):
    """Those of the alignments that pass the thresholds; failed : (n,) uint8, the tests of these that each alignment fails.

    counted : (n,) bool, which alignments these are.
    """

    failed: np.ndarray
    counted: np.ndarray


@dataclass(frozen=True)
class Shortfalls:
    """By how much alignments score less than their reads do elsewhere, (n,) float64; of those that teach, also apart."""

    shortfall: np.ndarray
    taught: np.ndarray
    implied: np.ndarray


SUMS = Result("all_sums", PassingSums, TILES)
MEANS = Result("all_means", np.ndarray)
BETTER = Result("all_better", Sums, TILES)
LEVELS = Result("all_levels", np.ndarray)
"""Scores per base of each read, (n_reads,) float64; NaN where there are none."""
SHORTFALLS = Result("all_shortfalls", Shortfalls, TILES)
LIMITS = Result("all_limits", np.ndarray)


def _rates(work: Work, tile: int) -> tuple[Seeds, np.ndarray, np.ndarray]:
    """The seeds of all alignments of a tile, the bases that these score for, and their scores per base."""
    some, implied = work.get(ALL, tile), work.get(ALL_JUDGED.fair, tile).geometry.implied
    score, threads = some.extensions.score, work.params.run.threads
    rate = make_rows(lambda rows: score[rows] / np.maximum(implied[rows], 1.0), len(score), np.float64, threads)
    return some.seeds, implied, rate


def add_up(work: Work, tile: int) -> PassingSums:
    """The alignments that pass the thresholds so far, and the sums of their scores per base by read."""
    (seeds, _, rate), score = _rates(work, tile), work.get(ALL, tile).extensions.score
    fair, geometry = work.get(ALL_JUDGED.fair, tile).geometry, work.get(ALL_JUDGED.measured, tile).geometry
    threads = work.params.run.threads
    failed = work.get(ALL_JUDGED.thresholds).failures(score, seeds.copies, geometry, fair, threads)
    counted = make_rows(
        lambda rows: (failed[rows] == 0) & (geometry.span[rows] >= SURE_SPAN), len(failed), bool, threads
    )  # fmt: skip
    return PassingSums(*sum_rates(seeds, rate, counted, np.full(len(work.ids(tile)), -np.inf), threads), failed, counted)


def learn_means(work: Work) -> np.ndarray:
    """The mean of the alignments of each read, in all tiles."""
    totals, numbers = work.summed(SUMS, "totals", "numbers")
    return means(totals, numbers, LEAST_PARTNERS)


def add_up_better(work: Work, tile: int) -> Sums:
    """The sums of the alignments that are no worse than the mean of their read."""
    (seeds, _, rate), least = _rates(work, tile), work.get(MEANS)[work.ids(tile)]
    return Sums(*sum_rates(seeds, rate, work.get(SUMS, tile).counted, least, work.params.run.threads))


def learn_levels(work: Work) -> np.ndarray:
    """The mean of the better alignments of each read, in all tiles."""
    totals, numbers = work.summed(BETTER, "totals", "numbers")
    return means(totals, numbers)


def sum_rates(
    seeds: Seeds, rate: np.ndarray, counted: np.ndarray, least: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Scores per base in UNIT that are `least` or more, added up by read, and their number: (n_reads,) int64 each.

    rate : (n,) float64.  counted : (n,) bool, the rows that count.  least : (n_reads,) float64.
    """
    totals, numbers = np.zeros((2, len(least)), np.int64)
    rows = seeds.query_id, seeds.target_id, rate, counted
    shared_by(threads)(lambda part: add_rates(rows, least, UNIT, *part, totals, numbers), len(least))
    return totals, numbers


@njit_entry
def add_rates(rows, least, unit, low, high, totals, numbers):
    """Add to totals and numbers, (n_reads,) int64, as `sum_rates` says, those of the reads [low, high).

    rows : query_id and target_id of Seeds, rate and counted.  least : (n_reads,) float64.  unit : of the sums.
    """
    query_id, target_id, rate, counted = rows
    for i in range(len(rate)):
        if not counted[i]:
            continue
        query, target = query_id[i], target_id[i]
        if low <= query < high and rate[i] >= least[query]:
            totals[query] += np.int64(rate[i] * unit)
            numbers[query] += 1
        if low <= target < high and rate[i] >= least[target]:
            totals[target] += np.int64(rate[i] * unit)
            numbers[target] += 1


def means(totals: np.ndarray, numbers: np.ndarray, least: int = 1) -> np.ndarray:
    """Mean score per base of each read, (n_reads,) float64; NaN where it has fewer than `least` alignments."""
    found = np.full(len(totals), np.nan)
    known = numbers >= least
    found[known] = totals[known] / numbers[known] / UNIT
    return found


def compare(work: Work, tile: int) -> Shortfalls:
    """By how much alignments score less than their reads do elsewhere."""
    level, (seeds, implied, rate) = work.get(LEVELS)[work.ids(tile)], _rates(work, tile)
    sure, n, threads = work.get(ALL_JUDGED.fair, tile).teaching, len(rate), work.params.run.threads
    shortfall = make_rows(
        lambda rows: level[seeds.query_id[rows]] + level[seeds.target_id[rows]] - rate[rows], n, np.float64, threads
    )
    teaching = make_rows(lambda rows: sure[rows] & (seeds.copies[rows] <= USUAL_COPIES), n, bool, threads)
    return Shortfalls(shortfall, *(choose_rows(column, teaching, threads) for column in (shortfall, implied)))


def limit_shortfalls(work: Work) -> np.ndarray:
    """From the alignments of all tiles that teach."""
    shortfall, implied = work.joined(SHORTFALLS, "taught", "implied")
    return learn_limits(shortfall, implied, work.params.run.threads)


def length_classes(implied: np.ndarray) -> np.ndarray:
    """The class of each length in bases, (n,) int64."""
    return np.clip(np.frexp(np.maximum(implied, 1.0))[1], 0, N_CLASSES - 1)


def learn_limits(shortfall: np.ndarray, implied: np.ndarray, threads: int = 1) -> np.ndarray:
    """The most that alignments of each class of lengths may lack, (N_CLASSES,) float64; infinite where too few tell.

    shortfall, implied : (n,) float64, of the alignments that teach.
    """
    limits, n = np.full(N_CLASSES, np.inf), len(shortfall)
    classes = make_rows(
        lambda rows: np.where(np.isfinite(shortfall[rows]), length_classes(implied[rows]), N_CLASSES), n, np.uint8, threads
    )
    for c in np.flatnonzero(np.bincount(classes, minlength=N_CLASSES)[:N_CLASSES] >= LEAST_SURE).tolist():
        its = choose_rows(shortfall, classes == c, threads)
        least, low, middle, high = quantiles(its, QUANTILES, threads)
        tail = max(1.0, (high - middle) / max(middle - low, 1 / UNIT))
        limits[c] = middle + SPREAD * tail * (middle - least)
    return limits


def with_other_copies(
    copies: np.ndarray, shortfall: np.ndarray, implied: np.ndarray, limits: np.ndarray, threads: int = 1
) -> np.ndarray:  # fmt: skip
    """Mask of the alignments that lack more than their class allows where the depth may be that of several copies.

    copies : (n,) float32, as in Seeds.
    """

    def are_others(rows: slice) -> np.ndarray:
        return (shortfall[rows] > limits[length_classes(implied[rows])]) & (copies[rows] > MORE_COPIES)

    return make_rows(are_others, len(copies), bool, threads)
