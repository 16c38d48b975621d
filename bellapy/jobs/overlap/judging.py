"""What an alignment is tested for, as compiled code: by the rows of many, so that threads share them.

Tests leave a bit for each reason to drop an alignment; the first of REASONS counts.

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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.jobs.overlap.candidate_filter import SURE_SUPPORT
from bellapy.records import Seeds

SURE_SHARE = 0.5  # of the implied length that is aligned
SURE_SPAN = 1000  # bases
SURE_OVERHANG = 50  # bases
SURE_COPIES = np.float32(1.3)
REPEAT_COPIES = (1.1, 1.5)  # from where on and up to where the thresholds rise
REASONS = (
    "too short", "score too low", "stops in a repeat", "in the lesser part of a joined read", "overhang", "identity",
    "with another copy",
)  # fmt: skip
SHORT, LOW, STOPS, LESSER, OVERHANG, IDENTITY, OTHER_COPY = (np.uint8(1 << i) for i in range(len(REASONS)))
UNIT = 1 << 20  # scores per base are added up as integers in these units, so that the order of adding does not matter
LEAST_PARTNERS = 4  # alignments of a read whose level is known
USUAL_COPIES, MORE_COPIES = (
    np.float32(1.0),
    np.float32(1.1),
)  # up to where alignments teach, and from where on they are judged
N_CLASSES = 24  # of lengths, by powers of two
LEAST_SURE = 200  # alignments of a class: with fewer it has no limit
QUANTILES = 0.01, 0.02, 0.5, 0.98  # of the shortfalls
SPREAD = 2.5  # times their distance from the median to the 1st percentile, and more where more lie far beyond the median


class Rises(NamedTuple):
    """What an alignment has to reach outside repeats and in them; between REPEAT_COPIES it rises evenly.

    floor : score per base of implied length.  rates : the same, bad ends left out.  aligned : share of the implied length.
    """

    floor: float
    rates: tuple[float, float]
    aligned: tuple[float, float]


class Shape(NamedTuple):
    """What an alignment has to be like: aligned bases, overhang and share of matching columns."""

    min_overlap: float
    max_overhang: float
    min_identity: float


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


@njit_entry
def mark_telling(measured, least, begin, end, telling):
    """telling[i], (n,) bool, for rows [begin, end): whether an alignment scores `least` per base, and is not short.

    measured : as in `mark_sure`.
    """
    score, span, implied = measured
    for i in range(begin, end):
        telling[i] = span[i] >= SURE_SPAN and score[i] / max(implied[i], 1.0) >= least


@njit_entry
def mark_teaching(sure, left, right, begin, end, teaching):
    """teaching[i], (n,) bool, for rows [begin, end): whether a sure alignment has hardly any overhang.

    sure : (n,) bool.  left, right : (n,) int32, overhangs.
    """
    for i in range(begin, end):
        teaching[i] = sure[i] and max(left[i], right[i]) <= SURE_OVERHANG


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


@njit_entry
def are_in_order(query_id, target_id, strand):
    """Whether the rows of each candidate lie together, in the order of pairs of reads; (n,) each, as in Seeds."""
    turned = False
    for i in range(1, len(query_id)):
        if query_id[i] == query_id[i - 1] and target_id[i] == target_id[i - 1]:
            if strand[i] != strand[i - 1]:
                if turned:
                    return False
                turned = True
            continue
        turned = False
        if query_id[i] < query_id[i - 1] or (query_id[i] == query_id[i - 1] and target_id[i] < target_id[i - 1]):
            return False
    return True


@njit_entry
def list_best(candidates, rank, score, best):
    """Write the row with the highest score of every candidate to `best`, of equal ones that of lower rank; return how many.

    candidates : query_id, target_id and strand of Seeds, the rows of a candidate together.  rank : (n,) int8.
    score : (n,) int32.  best : (n,) int64.
    """
    query_id, target_id, strand = candidates
    n = 0
    for i in range(len(score)):
        if i and query_id[i] == query_id[i - 1] and target_id[i] == target_id[i - 1] and strand[i] == strand[i - 1]:
            row = best[n - 1]
            if score[i] > score[row] or (score[i] == score[row] and rank[i] < rank[row]):
                best[n - 1] = i
        else:
            best[n] = i
            n += 1
    return n


@njit_entry
def fill_matches(ends, scores, begin, end, matches, columns):
    """Matching bases and columns of rows [begin, end), as `estimate_matches` says: (n,) int32 each.

    ends : scores, query starts and ends, target starts and ends, (n,) int32.  scores : of a match, and cost of an error.
    """
    (score, query_start, query_end, target_start, target_end), (match, cost) = ends, scores
    for i in range(begin, end):
        query, target = query_end[i] - query_start[i], target_end[i] - target_start[i]
        shorter = min(query, target)
        its = (query + target + 4 / 3 * score[i] / cost) / (2 + 4 / 3 * match / cost)
        matches[i] = min(max(np.rint(its), 0.0), shorter)
        errors = max(0.0, np.rint((match * matches[i] - score[i]) / cost))
        columns[i] = max(matches[i] + errors, shorter)


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


@njit_entry
def test_shapes(geometry, columns, shape, begin, end, failed):
    """failed[i], (n,) uint8, gets a bit for each of SHORT, OVERHANG and IDENTITY that drops row i of [begin, end).

    geometry : left, right and span, (n,) int32.  columns : matching bases, and all columns, (n,) int32.  shape : Shape.
    """
    (left, right, span), (matches, n_columns) = geometry, columns
    for i in range(begin, end):
        its = np.uint8(0)
        if not span[i] >= shape.min_overlap:
            its |= SHORT
        if not max(left[i], right[i]) <= shape.max_overhang:
            its |= OVERHANG
        if not matches[i] >= shape.min_identity * n_columns[i]:
            its |= IDENTITY
        failed[i] |= its


def count_failed(failed: np.ndarray, reasons: Sequence[str] = REASONS) -> dict[str, int]:
    """How many are dropped for what reason, the first that holds; failed : (n,) uint8, the bits of the tests."""
    counts = dict.fromkeys(reasons, 0)
    for bits, n in enumerate(np.bincount(failed[failed > 0], minlength=1).tolist()):
        if n:
            counts[REASONS[(bits & -bits).bit_length() - 1]] += n
    return counts


@njit_entry
def _add_rates(reads, rate, counted, least, totals, numbers):
    """Add the scores per base that are `least` or more to the totals of both reads, and count them.

    reads : query and target of each alignment, (n,) int32 each.  rate : (n,) float64.
    counted : (n,) bool, the rows that count.  least : (n_reads,) float64.  totals, numbers : (n_reads,) int64.
    """
    for i in range(len(rate)):
        if counted[i]:
            for x in range(2):
                r = reads[x][i]
                if rate[i] >= least[r]:
                    totals[r] += np.int64(rate[i] * UNIT)
                    numbers[r] += 1


def sum_rates(seeds: Seeds, rate: np.ndarray, counted: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Totals and numbers of `_add_rates`, (n_reads,) int64 each; least : (n_reads,) float64."""
    totals, numbers = np.zeros((2, len(least)), np.int64)
    _add_rates((seeds.query_id, seeds.target_id), rate, counted, least, totals, numbers)
    return totals, numbers


def means(totals: np.ndarray, numbers: np.ndarray, least: int = 1) -> np.ndarray:
    """Mean score per base of each read, (n_reads,) float64; NaN where it has fewer than `least` alignments."""
    found = np.full(len(totals), np.nan)
    known = numbers >= least
    found[known] = totals[known] / numbers[known] / UNIT
    return found


def length_classes(implied: np.ndarray) -> np.ndarray:
    """The class of each length in bases, (n,) int64."""
    return np.clip(np.frexp(np.maximum(implied, 1.0))[1], 0, N_CLASSES - 1)


def learn_limits(shortfall: np.ndarray, implied: np.ndarray) -> np.ndarray:
    """The most that alignments of each class of lengths may lack, (N_CLASSES,) float64; infinite where too few tell.

    shortfall, implied : (n,) float64, of the alignments that teach.
    """
    limits = np.full(N_CLASSES, np.inf)
    known = np.isfinite(shortfall)
    shortfall, its_class = shortfall[known], length_classes(implied[known])
    for c in range(N_CLASSES):
        its = shortfall[its_class == c]
        if len(its) >= LEAST_SURE:
            least, low, middle, high = np.quantile(its, QUANTILES)
            tail = max(1.0, (high - middle) / max(middle - low, 1 / UNIT))
            limits[c] = middle + SPREAD * tail * (middle - least)
    return limits


def with_other_copies(copies: np.ndarray, shortfall: np.ndarray, implied: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Mask of the alignments that lack more than their class allows where the depth may be that of several copies.

    copies : (n,) float32, as in Seeds.
    """
    return (shortfall > limits[length_classes(implied)]) & (copies > MORE_COPIES)
