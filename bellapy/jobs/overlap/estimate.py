"""What the reads say about themselves: depth and error rate, from overlaps and the spectrum of k-mers; repeats, haplotypes.

k-mers that both haplotypes have make a peak of the spectrum, those of one alone a smaller peak at half its count (Vurture et
al. 2017, doi:10.1093/bioinformatics/btx153).  Uneven depth makes shoulders, no second peak, and errors a slope.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.sorting import sort_few
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.depth import ALL_READS, Finder, Measured, measure_depth
from bellapy.records import Estimate, KmerMatrix, ReadSet
from bellapy.seeding.entries import place_of
from bellapy.seeding.kmer_matrix import next_column, read_at, read_ranges
from bellapy.seeding.kmers import SPECTRUM_SIZE
from bellapy.seeding.sampling import choose_sampling

FIRST_COUNT = 4  # smaller counts hold errors that repeat by chance or by context
FIRST_OF_LEVEL, LAST_OF_LEVEL = 1 / 3, 8  # counts compared, in units of the usual level: errors lie below, repeats above
LEAST_LAST = 40
COUNT_STEPS = 8  # counts are taken together where there are more up to the first
DEEPEST = 20_000
USUAL_FACTOR = 3.0  # reads whose level is so far from the usual one say nothing of the usual depth
LEAST_KMERS = 8  # of a read in the sample; with fewer its level is not known
WORST_SHARE = 0.1  # of the bases
LEAST_RATIO = 0.02
FEW_KMERS = 20  # that half of the sample has of a read whose k-mers are as usual
MIN_DISTINCT = 100  # k-mers counted at least FIRST_COUNT times; with fewer the spectrum says nothing
ERROR_RATES = np.concatenate((np.arange(0, 0.03, 0.001), np.arange(0.03, 0.32, 0.005)))
REPEAT_MIXES = ((1.0, 0.0), (0.7, 0.3))  # of the repeats: shares with two and with four copies
REPEATS = ((0.0, 1.0, 0.0), *((share, *mix) for share in (0.02, 0.05, 0.1, 0.2) for mix in REPEAT_MIXES))
LOG_2 = math.log(2)
DEFAULT_ERROR_RATE = 0.15  # BELLA's
LEAST_TELLING, REPEATED = 6.0, 1.75  # copies of a k-mer that occurs once; times as many are of a repeat
LEVEL_FACTOR = 1.4  # reads whose level is so far from the usual one lie in repeats, or are of another molecule or species
LEAST_PEAK = 12  # a count; with less a peak at half of it is part of the slope that errors make
WINDOW = 10  # one in so many of the counts up to the peak are taken together
LEAST_SURE = 4  # standard deviations by which a peak has to rise from what lies on either side of it
HIGHEST = 1.45  # a peak, in units of what depth and error rate let expect: the rate holds what haplotypes differ in
ABOVE = 1.05  # of the depth: no k-mer that occurs once is more frequent
SLOPE, HALF, VALLEY, END = (0.2, 0.42), (0.42, 0.575), (0.575, 0.87), 1.6  # parts of the spectrum, in units of the peak


class Survey(NamedTuple):
    """What a sample of the k-mers shows of each read.

    repeated : (2, n_reads) int64, its k-mers that occur more than once, for two halves of the sample.
    level : (n_reads,) uint32, the median of their counts: in repeats these are so many that they would rule any mean.
    """

    repeated: np.ndarray
    level: np.ndarray


@njit
def _entries_within(entries, low, high):
    """Place, int64, and count << 1 | half, uint32, of k-mers with places in [low, high); entries : of a KmerMatrix."""
    n = np.int64(0)
    for i in range(entries.size):
        n += low <= place_of(entries[i]) < high
    places, counts = np.empty(n + 1, np.int64), np.empty(n + 1, np.uint32)
    n = first = half = np.int64(0)
    while first < entries.size:
        last = next_column(entries, first + 1)
        for i in range(first, last):
            place = place_of(entries[i])
            places[n], counts[n] = place, (last - first) << 1 | half  # without a branch, as in seeding/kmers.py
            n += low <= place < high
        first, half = last, 1 - half
    return places[:n], counts[:n]


@njit
def _survey(places, counts, starts, table, first_read, halves, level):
    """Fill the columns of Survey of some reads, of which first_read is the first one.

    places, counts : of `_entries_within`; of these reads; places are overwritten.  starts, table : of a KmerMatrix.
    halves : the rows of `repeated`, zeros.
    """
    ends, grouped = np.zeros(level.size + 1, np.int64), np.empty(counts.size, np.uint32)
    for i in range(counts.size):
        r = places[i] = read_at(places[i], starts, table) - first_read
        halves[counts[i] & 1][r] += 1
        ends[r + 1] += 1
    for r in range(level.size):
        ends[r + 1] += ends[r]
    for i in range(counts.size):
        r = places[i]
        grouped[ends[r]] = counts[i] >> 1
        ends[r] += 1
    begin = np.int64(0)
    for r in range(level.size):
        if ends[r] > begin:
            sort_few(grouped[begin : ends[r]], ends[r] - begin)
            level[r] = grouped[(begin + ends[r]) // 2]
        begin = ends[r]


@njit
def _places_by_count(entries, begin, end, starts, table, usual, places):
    """Add to places[c], int64, those of k-mers that occur c times, in the reads that are usual, (n_reads,) bool.

    entries, starts, table : of a KmerMatrix; its columns that begin in [begin, end).
    """
    first, end = next_column(entries, begin), next_column(entries, end)
    while first < end:
        last = next_column(entries, first + 1)
        for i in range(first, last):
            places[min(last - first, places.size - 1)] += usual[read_at(place_of(entries[i]), starts, table)]
        first = last


def survey_reads(matrix: KmerMatrix, threads: int = 1) -> Survey:
    """What the k-mers of the matrix, all that occur more than once in a sample, show of each read.

    Every thread goes through all entries, for reads of its own.
    """
    n_reads, where = matrix.n_reads, (matrix.starts, matrix.read_table)
    survey = Survey(np.zeros((2, n_reads), np.int64), np.zeros(n_reads, np.uint32))

    def look(places: tuple[int, int]) -> None:
        first, end = np.searchsorted(matrix.starts[:-1], places).tolist()
        halves, found = tuple(half[first:end] for half in survey.repeated), _entries_within(matrix.entries, *places)
        _survey(*found, *where, first, halves, survey.level[first:end])

    map_threads(look, read_ranges(matrix.starts, threads), threads)
    return survey


def usual_reads(survey: Survey, lengths: np.ndarray) -> tuple[np.ndarray, float]:
    """Mask of the reads of usual depth, and the level that is usual: that of most bases."""
    known, level = survey.repeated.sum(axis=0) >= LEAST_KMERS, survey.level
    if not known.any():
        return np.ones(len(known), bool), 0.0
    order = np.argsort(level[known], kind="stable")
    reached = np.cumsum(lengths[known][order], dtype=np.int64)
    usual = float(level[known][order][np.searchsorted(reached, reached[-1] / 2)])
    far = known & ((level > USUAL_FACTOR * usual) | (USUAL_FACTOR * level < usual))
    return ~far, usual


def spectrum_of_reads(matrix: KmerMatrix, usual: np.ndarray, size: int, threads: int = 1) -> np.ndarray:
    """Distinct k-mers by count, (size,) float64, of which each counts for the share of its places in the reads `usual`."""

    def count(part: tuple[int, int]) -> np.ndarray:
        places = np.zeros(size, np.int64)
        _places_by_count(matrix.entries, *part, matrix.starts, matrix.read_table, usual, places)
        return places

    places = sum(map_threads(count, even_ranges(len(matrix.entries), threads), threads), np.zeros(size, np.int64))
    return places / np.maximum(1, np.arange(size))


def worst_ratio(survey: Survey, lengths: np.ndarray, usual: np.ndarray, expected: float, chance: float) -> float | None:
    """Correct k-mers of the worst tenth of the usual reads, in units of the mean; None where the sample is too small.

    The reads are ranked by one half of the sample and judged by the other, so that those which are the worst by bad luck
    do not count.  Reads that should have FEW_KMERS, and have next to none, are of no genome: shorter k-mers would not help.

    Parameters
    ----------
    expected : k-mers of the sample for each base.
    chance : share of wrong k-mers that occur elsewhere by chance.
    """
    first, second = survey.repeated[:, usual]
    bases = np.maximum(lengths[usual].astype(np.int64), 1)
    if not len(bases) or second.sum() < MIN_DISTINCT:
        return None
    half = expected / 2
    usual_share = first.sum() / (half * bases.sum()) - chance
    junk = (first < (LEAST_RATIO * usual_share + chance) * half * bases) & (usual_share * half * bases >= FEW_KMERS)
    first, second, bases = first[~junk], second[~junk], bases[~junk]
    share = first / bases
    order = np.argsort(share, kind="stable")
    reached = np.cumsum(bases[order])
    worst = share <= share[order][np.searchsorted(reached, WORST_SHARE * reached[-1])]
    mean = second.sum() / (half * bases.sum()) - chance
    its = second[worst].sum() / (half * bases[worst].sum()) - chance
    return float(np.clip(its / mean, LEAST_RATIO, 1)) if mean > 0 else None


def fit_spectrum(
    spectrum: np.ndarray, k: int, n_bases: float, error_rate: float | None, depth: float | None, *,
    level: float = 0.0, chance: float = 0.0,
) -> Estimate:  # fmt: skip
    """Depth d and error rate e for which reads of n_bases bases give the spectrum.

    Each of the n_bases / d positions of the genome shows Poisson(d (1 - e)^k) correct copies of its k-mer, more by chance;
    a share of them lies in repeats of two or four copies.  Wrong k-mers are there by chance alone.  Counts from FIRST_COUNT
    on are compared by their square roots, whose spread is the same for all.

    Parameters
    ----------
    spectrum : (n,) distinct k-mers by count, of all k-mers (scaled up if sampled).
    error_rate, depth : fixed if given.
    level : usual mean count of the repeated k-mers; counts far from it are left out.
    chance : mean number of chance copies of a k-mer.
    """
    first = max(FIRST_COUNT, int(FIRST_OF_LEVEL * level))
    last = min(len(spectrum) - 1, max(LEAST_LAST, int(LAST_OF_LEVEL * level)))
    step = max(1, first // COUNT_STEPS)
    starts = np.arange(first, last - step + 1, step)
    seen = np.add.reduceat(spectrum[: starts[-1] + step].astype(float), starts) if len(starts) else np.zeros(0)
    if seen.sum() < MIN_DISTINCT:
        return Estimate(depth, error_rate, error_rate is not None, "options; too few repeated k-mers")
    depths = np.geomspace(2, DEEPEST, 250) if depth is None else np.array([depth], float)
    errors = ERROR_RATES if error_rate is None else np.array([error_rate], float)
    counts = starts + (step - 1) / 2
    wrong = np.exp((counts - 1) * math.log(chance) - chance - _log_factorials(counts - 1)) / counts if chance else 0 * counts
    best_depth, best_error = _closest(np.sqrt(seen), counts, step * n_bases, depths, errors, float(k), chance, wrong)
    return Estimate(best_depth, best_error, error_rate is not None, "k-mer spectrum")


def estimate(
    reads: ReadSet, matrix: KmerMatrix, one_in: int, chance: float, error_rate: float | None, depth: float | None,
    threads: int = 1, find: Finder | None = None, sampled: slice = ALL_READS,
) -> Estimate:  # fmt: skip
    """Depth and error rate: as depth.py measures them, else both from a sample of the k-mers.

    Parameters
    ----------
    matrix : all k-mers of the sample that occur more than once.
    one_in : one k-mer in so many is in the sample.
    chance : as in `fit_spectrum`.
    error_rate, depth : fixed if given.
    find, sampled : of `measure_depth`.
    """
    survey, lengths, k = survey_reads(matrix, threads), reads.lengths, matrix.k
    usual, level = usual_reads(survey, lengths)
    n_bases, n_usual = reads.n_bases, int(lengths[usual].sum(dtype=np.int64))
    spectrum = spectrum_of_reads(matrix, usual, SPECTRUM_SIZE, threads) * one_in
    found = fit_spectrum(spectrum, k, n_usual, error_rate, depth, level=level, chance=chance)
    measured = None if depth and error_rate is not None else measure(reads, k, found.error_rate, threads, find, sampled)
    if measured is not None:
        rate = 1 - measured.correct ** (1 / k) if error_rate is None else error_rate
        spread = None if depth else measured.spread
        found = replace(
            found, depth=depth or measured.depth, error_rate=rate, source="overlaps of a sample", spread=spread
        )  # fmt: skip
    found = replace(
        found, uneven=(n_bases - n_usual) / max(1, n_bases), level=level, repeats=share_in_repeats(spectrum, found, k)
    )
    if found.depth and found.error_rate is not None:
        alike = spectrum_of_reads(matrix, near_usual(survey.level, level), SPECTRUM_SIZE, threads)
        found = replace(found, heterozygosity=find_heterozygosity(alike, found.depth, found.error_rate, k))
    if error_rate is not None or found.error_rate is None:
        return found
    ratio = worst_ratio(survey, lengths, usual, 1 / one_in, 1 - math.exp(-chance))
    return found if ratio is None else replace(found, worst_error_rate=1 - (1 - found.error_rate) * ratio ** (1 / k))


def measure(
    reads: ReadSet, k: int, error_rate: float | None, threads: int, find: Finder | None, sampled: slice = ALL_READS
) -> Measured | None:
    """What depth.py measures, by as many k-mers as reads with the error rate need; by more where it turns out higher."""
    one_in = choose_sampling(error_rate, k)
    measured = measure_depth(reads, k, one_in, threads, find, sampled)
    needed = 1 if measured is None else choose_sampling(1 - measured.correct ** (1 / k), k)
    return measured if needed >= one_in else measure_depth(reads, k, needed, threads, find, sampled)


def _log_factorials(counts: np.ndarray) -> np.ndarray:
    return np.array([math.lgamma(count + 1) for count in counts])


@njit
def _closest(root_seen, counts, n_bases, depths, errors, k, chance, wrong):
    """The depth and the error rate with the smallest distance between the square roots.

    Most are given up after a few counts, where every mix of repeats is already farther off than the best.
    """
    n, n_mixes = len(root_seen), len(REPEATS)
    log_factorial = np.empty(n)
    for i in range(n):
        log_factorial[i] = math.lgamma(counts[i] + 1)
    distance = np.empty(n_mixes)
    smallest, found = math.inf, (0.0, 0.0)
    for depth in depths:
        for error in errors:
            correct = (1 - error) ** k
            mean = depth * correct
            log_mean = math.log(mean + chance)
            distance[:] = 0.0
            for i in range(n):
                once = math.exp(counts[i] * log_mean - (mean + chance) - log_factorial[i])
                two = math.exp(counts[i] * (log_mean + LOG_2) - 2 * (mean + chance) - log_factorial[i])
                four = math.exp(counts[i] * (log_mean + 2 * LOG_2) - 4 * (mean + chance) - log_factorial[i])
                chance_only = n_bases * (1 - correct) * wrong[i]
                nearest = math.inf
                for m in range(n_mixes):
                    share, of_two, of_four = REPEATS[m]
                    expected = n_bases / depth / (1 + share) * ((1 - share) * once + share * (of_two * two + of_four * four))
                    distance[m] += (math.sqrt(expected + chance_only) - root_seen[i]) ** 2
                    nearest = min(nearest, distance[m])
                if nearest >= smallest:
                    break
            else:
                smallest, found = nearest, (depth, error)
    return found


# ---------------------------------------------------------------- repeats and haplotypes


def share_in_repeats(spectrum: np.ndarray, found: Estimate, k: int) -> float | None:
    """The share of the genome whose k-mers occur elsewhere in it; None where depth is too low to tell two copies from one.

    spectrum : (n,) distinct k-mers by count, which are repeats from REPEATED times the usual count on.
    """
    if found.depth is None or found.error_rate is None:
        return None
    usual = found.depth * (1 - found.error_rate) ** k
    if usual < LEAST_TELLING:
        return None
    counts = np.arange(len(spectrum))
    places = spectrum * counts
    real = counts > usual / 4  # errors lie below
    in_repeats = counts > REPEATED * usual
    return float(places[in_repeats].sum() / max(1.0, places[real].sum()))


class _Sums(NamedTuple):
    """A spectrum, and for each count the sum of it over the counts near to it; (n,) float64."""

    spectrum: np.ndarray
    near: np.ndarray

    def extreme(self, choose, low: float, high: float) -> int:
        """The count between two, both included, with the highest or the lowest sum; choose : np.argmax or np.argmin."""
        begin, end = min(round(low), len(self.near) - 1), round(high) + 1
        return begin + int(choose(self.near[begin:end]))

    def rises(self, top: int, beside: int) -> bool:
        """Whether there are surely more k-mers near the one count than near the other."""
        above, below = self.near[top], self.near[beside]
        return bool(above - below > LEAST_SURE * math.sqrt(above + below))


def near_usual(level: np.ndarray, usual: float) -> np.ndarray:
    """Mask of the reads whose level is about the usual one; level : of `Survey`."""
    return (level * LEVEL_FACTOR > usual) & (level < LEVEL_FACTOR * usual)


def find_heterozygosity(spectrum: np.ndarray, depth: float, error_rate: float, k: int) -> float | None:
    """Differences per base between two haplotypes; None where the spectrum shows no second peak.

    Of the k-mers under the main peak each is one place of the genome, of those under the other one two are: a place shows
    two k-mers where one of its k bases differs.

    Parameters
    ----------
    spectrum : (n,) distinct k-mers of a sample by count, of the reads `near_usual`; not scaled up.
    depth, error_rate : of `Estimate`.
    """
    mean = depth * (1 - error_rate) ** k
    width = max(1, round(mean / WINDOW / 2))
    sums = _Sums(spectrum, np.convolve(spectrum, np.ones(2 * width + 1), "same"))
    peak = sums.extreme(np.argmax, mean, max(mean, min(HIGHEST * mean, ABOVE * depth)))
    if peak < LEAST_PEAK:
        return None
    slope, half, valley = (
        sums.extreme(choose, *(share * peak for share in part))
        for choose, part in ((np.argmin, SLOPE), (np.argmax, HALF), (np.argmin, VALLEY))
    )
    if not (sums.rises(half, slope) and sums.rises(half, valley)):
        return None
    of_one, of_both = spectrum[slope:valley].sum() / 2, spectrum[valley : round(END * peak)].sum()
    return float(1 - (of_both / (of_one + of_both)) ** (1 / k))
