"""Depth and error rate of the reads, from overlaps and the spectrum of k-mers, and the settings that follow from them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.sorting import sort_few
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.depth import ALL_READS, Finder, Measured, measure_depth
from bellapy.jobs.overlap.genome import find_heterozygosity, near_usual, share_in_repeats
from bellapy.params import RANGES, Params, SeedParams
from bellapy.params.overlap import SHORT_READS, SHORTEST_OVERLAP
from bellapy.records import Estimate, KmerMatrix, ReadSet
from bellapy.records.estimate import LEAST_UNEVEN
from bellapy.seeding.entries import place_of
from bellapy.seeding.kmer_matrix import next_column, read_at
from bellapy.seeding.kmers import SPECTRUM_SIZE

FIRST_COUNT = 4  # smaller counts hold errors that repeat by chance or by context
FIRST_OF_LEVEL, LAST_OF_LEVEL = 1 / 3, 8  # counts compared, in units of the usual level: errors lie below, repeats above
LEAST_LAST = 40
COUNT_STEPS = 8  # counts are taken together where there are more up to the first
DEEPEST = 20_000
USUAL_FACTOR = 3.0  # reads whose level is so far from the usual one say nothing of the usual depth
LEAST_KMERS = 8  # of a read in the sample; with fewer its level is not known
WORST_SHARE = 0.1  # of the bases
LEAST_RATIO = 0.02
MIN_DISTINCT = 100  # k-mers counted at least FIRST_COUNT times; with fewer the spectrum says nothing
SAMPLE_KMERS, READ_KMERS = 1 << 21, 32
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

WITHOUT_DEPTH = (
    "depth and error rate of the reads could not be measured; k-mers that occur up to %d times link reads, which fits the "
    "counts of most reads; give --depth and --error-rate if you know them"
)
ACCURATE = 0.05  # reads with fewer errors per base share long k-mers


class Survey(NamedTuple):
    """What a sample of the k-mers shows of each read.

    repeated : (2, n_reads) int64, its k-mers that occur more than once, for two halves of the sample.
    level : (n_reads,) uint32, the median of their counts: in repeats these are so many that they would rule any mean.
    """

    repeated: np.ndarray
    level: np.ndarray


def sampling_rate(n_bases: int, n_reads: int) -> int:
    """Count one k-mer in so many to learn the spectrum: SAMPLE_KMERS of all, and about READ_KMERS of a read, or more."""
    most = min(n_bases // SAMPLE_KMERS, n_bases // max(1, n_reads) // READ_KMERS)
    return 1 << max(0, most.bit_length() - 1)


@njit
def _count_repeated(entries, starts, table, repeated):
    """Fill `repeated` of Survey; entries, starts, table : of a KmerMatrix."""
    first = half = 0
    while first < entries.size:
        last = next_column(entries, first + 1)
        for i in range(first, last):
            repeated[half, read_at(place_of(entries[i]), starts, table)] += 1
        half = 1 - half
        first = last


@njit
def _find_levels(entries, starts, table, ends, counts, level):
    """Fill `level` of Survey; entries, starts, table : of a KmerMatrix.

    ends : (n_reads,) int64, where the counts of each read begin in `counts`, (entries,) uint32; both are overwritten.
    """
    first = 0
    while first < entries.size:
        last = next_column(entries, first + 1)
        for i in range(first, last):
            r = read_at(place_of(entries[i]), starts, table)
            counts[ends[r]] = last - first
            ends[r] += 1
        first = last
    begin = 0
    for r in range(ends.size):
        if ends[r] > begin:
            sort_few(counts[begin : ends[r]], ends[r] - begin)
            level[r] = counts[(begin + ends[r]) // 2]
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


def survey_reads(matrix: KmerMatrix) -> Survey:
    """What the k-mers of the matrix, all that occur more than once in a sample, show of each read."""
    places, n_reads = (matrix.entries, matrix.starts, matrix.read_table), matrix.n_reads
    survey = Survey(np.zeros((2, n_reads), np.int64), np.zeros(n_reads, np.uint32))
    _count_repeated(*places, survey.repeated)
    n = survey.repeated.sum(axis=0)
    _find_levels(*places, np.cumsum(n) - n, np.empty(len(matrix.entries), np.uint32), survey.level)
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
    do not count.

    Parameters
    ----------
    expected : k-mers of the sample for each base.
    chance : share of wrong k-mers that occur elsewhere by chance.
    """
    first, second = survey.repeated[:, usual]
    bases = np.maximum(lengths[usual].astype(np.int64), 1)
    if not len(bases) or second.sum() < MIN_DISTINCT:
        return None
    share = first / bases
    order = np.argsort(share, kind="stable")
    reached = np.cumsum(bases[order])
    worst = share <= share[order][np.searchsorted(reached, WORST_SHARE * reached[-1])]
    half = expected / 2
    mean = second.sum() / (half * bases.sum()) - chance
    its = second[worst].sum() / (half * bases[worst].sum()) - chance
    return float(np.clip(its / mean, LEAST_RATIO, 1)) if mean > 0 else None


def chance_copies(n_bases: int, k: int) -> float:
    """How often a k-mer occurs elsewhere by chance, on either strand, if all k-mers are as likely."""
    return 2 * n_bases / 4.0**k


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
    reads: ReadSet, matrix: KmerMatrix, one_in: int, error_rate: float | None, depth: float | None, threads: int = 1,
    find: Finder | None = None, sampled: slice = ALL_READS,
) -> Estimate:  # fmt: skip
    """Depth and error rate: as coverage.py measures them, else both from a sample of the k-mers.

    Parameters
    ----------
    matrix : all k-mers of the sample that occur more than once.
    one_in : one k-mer in so many is in the sample.
    error_rate, depth : fixed if given.
    find, sampled : of `measure_depth`.
    """
    survey, lengths, k = survey_reads(matrix), reads.lengths, matrix.k
    usual, level = usual_reads(survey, lengths)
    n_bases, n_usual = reads.n_bases, int(lengths[usual].sum(dtype=np.int64))
    chance = chance_copies(n_bases, k)
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
    """What coverage.py measures, by as many k-mers as reads with the error rate need; by more where it turns out higher."""
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
    return min(21, max(13, math.ceil(math.log(needed, 4))))


def n50(lengths: np.ndarray) -> int:
    """Reads of this length and longer hold half of all bases."""
    longest_first = np.sort(lengths)[::-1]
    reached = np.cumsum(longest_first, dtype=np.int64)
    return int(longest_first[np.searchsorted(reached, reached[-1] / 2)]) if len(lengths) else 0


def choose_min_overlap(lengths: np.ndarray) -> int:
    """The shortest overlap, in bases: SHORTEST_OVERLAP, or a share of the N50 where that is less.

    Reads of a kilobase share more than SHORTEST_OVERLAP bases with few others.
    """
    return max(1, min(SHORTEST_OVERLAP, n50(lengths) // SHORT_READS))


def with_min_overlap(params: Params, lengths: np.ndarray) -> Params:
    """The parameters with the shortest overlap, given or chosen; lengths : (n_reads,) int32, of all reads."""
    least = params.filter.min_overlap or choose_min_overlap(lengths)
    return replace(params, seeds=params.seeds._replace(min_overlap=least), filter=replace(params.filter, min_overlap=least))


def choose_sampling(error_rate: float | None, k: int) -> int:
    """Keep one k-mer in so many, a power of two: sound overlaps still share one in SHARED_SPACING bases.

    Two reads share a k-mer where neither has an error in it.
    """
    if error_rate is None:
        return 1
    affordable = SHARED_SPACING * (1 - error_rate) ** (2 * k)
    return min(MAX_SAMPLING, 1 << max(0, int(affordable).bit_length() - 1))


def choose_upper(depth: float | None, error_rate: float | None, k: int, lower: int, level: float = 0.0) -> int:
    """Largest count of a k-mer that occurs once in the genome, all but for a chance of UPPER_TAIL.

    BELLA takes counts as Binomial(depth, (1 - e)^k).  The depth itself varies from place to place, so that they are
    rather Poisson with the same mean.  Where that is unknown, the level of most reads stands for it: of the k-mers that
    were counted more than once, half of those in such reads occur less often.

    level : of Estimate.
    """
    if (depth is None or error_rate is None) and not level:
        return max(lower, DEFAULT_UPPER)
    mean = level if depth is None or error_rate is None else depth * (1 - error_rate) ** k
    counts = np.arange(max(RANGES["upper"].high, lower + 2) + 1)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    above = 1 - np.cumsum(np.exp(counts * math.log(mean) - mean - log_factorial))
    rare = above[lower + 2 :] < UPPER_TAIL
    return lower + 2 + int(rare.argmax()) if rare.any() else int(counts[-1])


def expected_score_rate(error_rate: float, match: int, mismatch: int, gap: int) -> float:
    """Expected score per base of the true overlap of two reads (BELLA): matches where both are right."""
    both_right = (1 - error_rate) ** 2
    return match * both_right + (mismatch + gap) / 2 * (1 - both_right)


def describe(reads: ReadSet, estimate: Estimate, n_queries: int | None = None) -> str:
    """One line for the log; n_queries : as in Work."""
    depth = "unknown" if estimate.depth is None else f"about {estimate.depth:.0f}x"
    depth += "" if estimate.spread is None else f" (± {estimate.spread:.1f})"
    error = "unknown" if estimate.error_rate is None else f"about {100 * estimate.error_rate:.1f} %"
    if estimate.mixed and estimate.worst_error_rate is not None:
        error += f" (mixed reads: about {100 * estimate.worst_error_rate:.0f} % in the worst tenth)"
    if estimate.uneven > LEAST_UNEVEN:
        depth += f" (uneven: {100 * estimate.uneven:.0f} % of the bases are in reads far from that)"
    size = ""
    if n_queries is not None:
        depth += " of reads and targets together"
    elif estimate.depth is not None:
        size = f", genome about {reads.n_bases / estimate.depth / 1e6:.2f} Mb"
        size += "" if estimate.repeats is None else f" with {100 * estimate.repeats:.0f} % in repeats"
        apart = estimate.heterozygosity
        size += "" if apart is None else f" and two haplotypes about {100 * apart:.1f} % apart"
    return f"depth {depth}, error rate {error}{size} (from: {estimate.source})"
