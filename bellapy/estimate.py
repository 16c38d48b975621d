"""What the reads say about themselves: depth and error rate from the k-mer spectrum, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bellapy.jit import njit
from bellapy.params import RANGES, SeedParams
from bellapy.records import ReadSet

FIRST_COUNT = 4  # smaller counts hold errors that repeat by chance or by context
LAST_COUNT = 500
MIN_DISTINCT = 100  # k-mers counted at least FIRST_COUNT times; with fewer the spectrum says nothing
SAMPLE_KMERS = 1 << 21
ERROR_RATES = np.concatenate((np.arange(0, 0.03, 0.001), np.arange(0.03, 0.32, 0.005)))
REPEAT_MIXES = ((1.0, 0.0), (0.7, 0.3))  # of the repeats: shares with two and with four copies
REPEATS = ((0.0, 1.0, 0.0), *((share, *mix) for share in (0.02, 0.05, 0.1, 0.2) for mix in REPEAT_MIXES))
LOG_2 = math.log(2)
DEFAULT_ERROR_RATE = 0.15  # BELLA's
DEFAULT_UPPER = 8  # BELLA's
UPPER_TAIL = 1e-3
CHANCE_ROOM = 8
SHARED_SPACING = 50  # bases
MAX_SAMPLING = 16
ACCURATE = 0.05  # reads with fewer errors per base share long k-mers


@dataclass(frozen=True)
class Estimate:
    """depth, error_rate : of the reads; None where the data say nothing.

    given : whether the user gave the error rate.  source : in words, for the log.
    """

    depth: float | None
    error_rate: float | None
    given: bool
    source: str


def sampling_rate(n_bases: int) -> int:
    """Count one k-mer in so many to learn the spectrum."""
    return 1 << max(0, (n_bases // SAMPLE_KMERS).bit_length() - 1)


def fit_spectrum(spectrum: np.ndarray, k: int, n_bases: float, error_rate: float | None, depth: float | None) -> Estimate:
    """Depth d and error rate e for which reads of n_bases bases give the spectrum.

    Each of the n_bases / d positions of the genome shows Poisson(d (1 - e)^k) correct copies of its k-mer; a share of them
    lies in repeats of two or four copies.  Counts from FIRST_COUNT on are compared by their square roots, whose spread is
    the same for all.

    Parameters
    ----------
    spectrum : (n,) distinct k-mers by count, of all k-mers (scaled up if sampled).
    error_rate, depth : fixed if given.
    """
    last = min(len(spectrum) - 2, LAST_COUNT)
    seen = spectrum[FIRST_COUNT : last + 1].astype(float)
    if seen.sum() < MIN_DISTINCT:
        return Estimate(depth, error_rate, error_rate is not None, "options; too few repeated k-mers")
    depths = np.geomspace(2, LAST_COUNT / 1.5, 150) if depth is None else np.array([depth], float)
    errors = ERROR_RATES if error_rate is None else np.array([error_rate], float)
    best_depth, best_error = _closest(np.sqrt(seen), float(n_bases), depths, errors, float(k))
    return Estimate(best_depth, best_error, error_rate is not None, "k-mer spectrum")


@njit
def _closest(root_seen, n_bases, depths, errors, k):
    """The depth and the error rate with the smallest distance between the square roots.

    Most are given up after a few counts, where every mix of repeats is already farther off than the best.
    """
    n, n_mixes = len(root_seen), len(REPEATS)
    counts = np.arange(FIRST_COUNT, FIRST_COUNT + n).astype(np.float64)
    log_factorial = np.empty(n)
    for i in range(n):
        log_factorial[i] = math.lgamma(counts[i] + 1)
    distance = np.empty(n_mixes)
    smallest, found = math.inf, (0.0, 0.0)
    for depth in depths:
        for error in errors:
            mean = depth * (1 - error) ** k
            log_mean = math.log(mean)
            distance[:] = 0.0
            for i in range(n):
                once = math.exp(counts[i] * log_mean - mean - log_factorial[i])
                two = math.exp(counts[i] * (log_mean + LOG_2) - 2 * mean - log_factorial[i])
                four = math.exp(counts[i] * (log_mean + 2 * LOG_2) - 4 * mean - log_factorial[i])
                nearest = math.inf
                for m in range(n_mixes):
                    share, of_two, of_four = REPEATS[m]
                    expected = n_bases / depth / (1 + share) * ((1 - share) * once + share * (of_two * two + of_four * four))
                    distance[m] += (math.sqrt(expected) - root_seen[i]) ** 2
                    nearest = min(nearest, distance[m])
                if nearest >= smallest:
                    break
            else:
                smallest, found = nearest, (depth, error)
    return found


def choose_k(lengths: np.ndarray, error_rate: float | None) -> int:
    """k-mer length: long enough that chance matches are few, no longer, since every base may be wrong.

    4^k is at least 16 times the number of bases, and CHANCE_ROOM times the places where two long reads could agree by
    chance within one band of diagonals.  Accurate reads afford 21, which passes over most repeats.
    """
    if error_rate is not None and error_rate < ACCURATE:
        return 21
    long_read = n50(lengths)
    band = SeedParams().band + SeedParams().band_slope * long_read
    needed = max(16 * float(lengths.sum(dtype=np.int64)), CHANCE_ROOM * long_read * band, 1.0)
    return min(19, max(13, math.ceil(math.log(needed, 4))))


def n50(lengths: np.ndarray) -> int:
    """Reads of this length and longer hold half of all bases."""
    longest_first = np.sort(lengths)[::-1]
    reached = np.cumsum(longest_first, dtype=np.int64)
    return int(longest_first[np.searchsorted(reached, reached[-1] / 2)]) if len(lengths) else 0


def choose_sampling(error_rate: float | None, k: int) -> int:
    """Keep one k-mer in so many, a power of two: sound overlaps still share one in SHARED_SPACING bases.

    Two reads share a k-mer where neither has an error in it.
    """
    if error_rate is None:
        return 1
    affordable = SHARED_SPACING * (1 - error_rate) ** (2 * k)
    return min(MAX_SAMPLING, 1 << max(0, int(affordable).bit_length() - 1))


def choose_upper(depth: float | None, error_rate: float | None, k: int, lower: int) -> int:
    """Largest count of a k-mer that occurs once in the genome, all but for a chance of UPPER_TAIL.

    BELLA takes counts as Binomial(depth, (1 - e)^k).  The depth itself varies from place to place, so that they are
    rather Poisson with the same mean.
    """
    if depth is None or error_rate is None:
        return max(lower, DEFAULT_UPPER)
    mean = depth * (1 - error_rate) ** k
    counts = np.arange(max(RANGES["upper"].high, lower + 2) + 1)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    above = 1 - np.cumsum(np.exp(counts * math.log(mean) - mean - log_factorial))
    rare = above[lower + 2 :] < UPPER_TAIL
    return lower + 2 + int(rare.argmax()) if rare.any() else int(counts[-1])


def expected_score_rate(error_rate: float, match: int, mismatch: int, gap: int) -> float:
    """Expected score per base of the true overlap of two reads (BELLA): matches where both are right."""
    both_right = (1 - error_rate) ** 2
    return match * both_right + (mismatch + gap) / 2 * (1 - both_right)


def describe(reads: ReadSet, estimate: Estimate) -> str:
    """One line for the log."""
    depth = "unknown" if estimate.depth is None else f"about {estimate.depth:.0f}x"
    error = "unknown" if estimate.error_rate is None else f"about {100 * estimate.error_rate:.1f} %"
    size = "" if estimate.depth is None else f", genome about {reads.n_bases / estimate.depth / 1e6:.2f} Mb"
    return f"depth {depth}, error rate {error}{size} (from: {estimate.source})"
