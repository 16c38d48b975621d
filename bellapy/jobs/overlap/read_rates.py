"""What an alignment of two reads scores per base, beside what these reads score elsewhere: copies of a sequence show.

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

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.records import Seeds

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
