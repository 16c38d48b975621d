"""What an alignment is tested for, as compiled code: by the rows of many, so that threads share them.

Tests leave a bit for each reason to drop an alignment; the first of REASONS counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.jobs.overlap.candidate_filter import SURE_SUPPORT

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
