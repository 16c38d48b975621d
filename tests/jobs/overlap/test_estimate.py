"""Depth and error rate from k-mer spectra, and what is chosen from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import noisy_copy
from scipy import stats
from strategies import column_bounds, locate, make_reads, random_bases

from bellapy.jobs.overlap.counting import (
    DEFAULT_UPPER,
    READ_KMERS,
    SAMPLE_KMERS,
    SAMPLED_BASES,
    UPPER_TAIL,
    chance_copies,
    choose_k,
    choose_upper,
    gc_share,
    sampling_rate,
)
from bellapy.jobs.overlap.estimate import Survey, estimate, fit_spectrum, survey_reads, worst_ratio
from bellapy.jobs.overlap.judging import expected_score_rate
from bellapy.jobs.overlap.pipeline import describe_estimate
from bellapy.jobs.overlap.work import choose_min_overlap, n50, with_min_overlap
from bellapy.params import RANGES, make_params
from bellapy.records import Estimate
from bellapy.seeding.kmer_matrix import build_kmer_matrix
from bellapy.seeding.kmers import count_kmers
from bellapy.seeding.sampling import MAX_SAMPLING, choose_sampling


def poisson_spectrum(rng, depth: float, error: float, k: int, genome: float, repeats: float = 0.0) -> np.ndarray:
    """Distinct k-mers by count: Poisson of the correct copies, some in two copies of the genome, singletons of errors."""
    spectrum = np.zeros(10_001)
    counts = np.arange(2000)
    mean = depth * (1 - error) ** k
    spectrum[:2000] += genome * (1 - repeats) * stats.poisson.pmf(counts, mean) / (1 + repeats)
    spectrum[:2000] += genome * repeats * stats.poisson.pmf(counts, 2 * mean) / (1 + repeats)
    spectrum[1] += genome * depth * (1 - (1 - error) ** k)
    spectrum[2] += 0.002 * genome
    return rng.poisson(spectrum).astype(float)


@pytest.mark.parametrize("repeats", [0, 0.05])
@pytest.mark.parametrize("genome", [50_000, 5_000_000])
@pytest.mark.parametrize(
    ("depth", "error", "k"),
    [(30, 0.15, 15), (60, 0.12, 17), (20, 0.05, 17), (15, 0.01, 17), (30, 0.005, 21), (100, 0.1, 17), (12, 0.08, 13)],
)
def test_fit_finds_depth_and_error_rate(rng, depth, error, k, genome, repeats):
    spectrum = poisson_spectrum(rng, depth, error, k, genome, repeats)
    found = fit_spectrum(spectrum, k, genome * depth, None, None)
    wrong_model = repeats > 0  # shares of repeats between those that are tried
    assert found.error_rate == pytest.approx(error, abs=0.04 if wrong_model else 0.015)
    assert found.depth == pytest.approx(depth, rel=0.4 if wrong_model else 0.2)
    assert found.depth * (1 - found.error_rate) ** k == pytest.approx(
        depth * (1 - error) ** k, rel=0.15 if wrong_model else 0.1
    )
    assert (found.given, found.source) == (False, "k-mer spectrum")


def test_fit_keeps_what_is_given(rng):
    spectrum = poisson_spectrum(rng, 40, 0.1, 17, 200_000)
    found = fit_spectrum(spectrum, 17, 40 * 200_000, 0.1, None)
    assert (found.error_rate, found.given) == (0.1, True)
    assert found.depth == pytest.approx(40, rel=0.1)
    found = fit_spectrum(spectrum, 17, 40 * 200_000, None, 40)
    assert (found.depth, found.given) == (40, False)
    assert found.error_rate == pytest.approx(0.1, abs=0.01)
    found = fit_spectrum(spectrum, 17, 40 * 200_000, 0.2, 7)
    assert (found.depth, found.error_rate, found.given) == (7, 0.2, True)


@pytest.mark.parametrize(("error", "depth"), [(None, None), (0.1, None), (None, 5.0), (0.0, 5.0)])
def test_fit_of_too_little_says_so(error, depth):
    spectrum = np.zeros(100)
    spectrum[:4], spectrum[4] = 1e6, 99
    found = fit_spectrum(spectrum, 15, 1e6, error, depth)
    assert (found.depth, found.error_rate, found.given) == (depth, error, error is not None)
    assert "too few" in found.source


@pytest.mark.parametrize("bases", [0, 1, 100, SAMPLE_KMERS, 10**7, 3 * 10**8, 10**11])
def test_sampling_rate(bases):
    rate = sampling_rate(bases, 1)
    assert rate & (rate - 1) == 0
    assert sampling_rate(bases, bases // 2_000) <= 2_000 // READ_KMERS, "there are some of every read"
    assert rate == 1 or SAMPLE_KMERS <= bases / rate < 2 * SAMPLE_KMERS
    assert rate > 1 or bases < 2 * SAMPLE_KMERS


@pytest.mark.parametrize("n_reads", [0, 1, 100, 100_000])
@pytest.mark.parametrize("length", [0, 1, 1000, 8000, 100_000, 1_000_000])
@pytest.mark.parametrize("error", [None, 0.05, 0.15, 0.049, 0.0])
def test_choose_k(n_reads, length, error):
    k = choose_k(np.full(n_reads, length, np.int32), error)
    bases = n_reads * length
    chance = 8 * length * (100 + 0.03 * length) if n_reads else 0
    needed = max(16 * bases, chance)
    assert RANGES["k"].low <= k <= RANGES["k"].high
    if error is not None and error < 0.05:
        assert k == 21
    else:
        assert 13 <= k <= 21
        assert k == 21 or 4**k >= needed
        assert k == 13 or 4 ** (k - 1) < needed


@pytest.mark.parametrize("gc", [0.1, 0.2, 0.8, 0.35, 0.5])
def test_k_is_longer_where_bases_are_not_as_frequent(gc):
    lengths = np.full(8_000, 10_000, np.int32)
    sample, chosen, usual = choose_k(lengths, None, gc), choose_k(lengths, 0.12, gc), choose_k(lengths, 0.12)
    assert usual <= chosen <= sample <= 21
    assert chosen == 21 or chance_copies(80_000_000, chosen, gc) <= 1
    assert sample == 21 or chance_copies(80_000_000, sample, gc) <= 1 / 8
    assert chosen == usual or chance_copies(80_000_000, chosen - 1, gc) > 1


@pytest.mark.parametrize(("sequence", "expected"), [("", 0.5), ("NNN", 0.5), ("ACGT", 0.5), ("AATTC", 0.2), ("GCGNNG", 1.0)])
def test_share_of_g_and_c(sequence, expected):
    assert gc_share(make_reads([sequence]).codes) == expected


def test_share_of_g_and_c_of_many_bases():
    codes = np.random.default_rng(1).choice(4, 3 * SAMPLED_BASES, p=(0.4, 0.1, 0.1, 0.4)).astype(np.uint8)
    assert gc_share(codes) == pytest.approx(0.2, abs=0.003)


def test_n50():
    assert n50(np.array([], np.int32)) == 0
    assert n50(np.array([5], np.int32)) == 5
    assert n50(np.array([1, 2, 3, 4, 10], np.int32)) == 10
    assert n50(np.array([4, 4, 4, 4], np.int32)) == 4


@pytest.mark.parametrize(
    ("lengths", "least"), [([], 1), ([900], 300), ([100, 100, 1500], 500), ([3000], 1000), ([70_000], 1000)]
)
def test_choose_min_overlap(lengths, least):
    lengths = np.array(lengths, np.int32)
    assert choose_min_overlap(lengths) == least
    for given in (None, 700):
        settled = with_min_overlap(make_params(min_overlap=given), lengths)
        assert settled.seeds.min_overlap == settled.filter.min_overlap == (given or least)


@pytest.mark.parametrize("error", [0, 0.01, 0.05, 0.1, 0.15, 0.3])
@pytest.mark.parametrize("k", [13, 17, 21, 31])
def test_choose_sampling(error, k):
    rate = choose_sampling(error, k)
    spacing = 1 / (1 - error) ** (2 * k)  # bases from one shared k-mer to the next
    assert rate & (rate - 1) == 0 and 1 <= rate <= MAX_SAMPLING
    assert rate == 1 or rate * spacing <= 50
    assert rate == MAX_SAMPLING or 2 * rate * spacing > 50
    assert choose_sampling(None, k) == 1


@pytest.mark.parametrize("depth", [1, 10, 30, 100, 400])
@pytest.mark.parametrize(("error", "k"), [(0.15, 17), (0.1, 15), (0.01, 21), (0, 31)])
@pytest.mark.parametrize("lower", [2, 3, 8])
def test_choose_upper(depth, error, k, lower):
    mean = depth * (1 - error) ** k
    expected = next(count for count in range(lower + 2, 10_000) if stats.poisson.sf(count, mean) < UPPER_TAIL)
    assert choose_upper(depth, error, k, lower) == expected


def test_choose_upper_without_or_beyond_knowledge():
    assert choose_upper(None, 0.1, 17, 2) == choose_upper(30, None, 17, 2) == DEFAULT_UPPER
    assert choose_upper(None, None, 17, 20) == 20
    assert choose_upper(None, 0.1, 17, 2, 40) == choose_upper(40, 0, 17, 2), "the level of most reads stands for it"
    assert choose_upper(30, 0.1, 17, 2, 40) == choose_upper(30, 0.1, 17, 2)
    assert choose_upper(10**6, 0, 17, 2) == RANGES["upper"].high
    assert choose_upper(10, 0.1, 17, 9_999) > 9_999


@pytest.mark.parametrize("scores", [(1, -1, -1), (2, -3, -5)])
@pytest.mark.parametrize("error", [0, 0.1, 0.4])
def test_expected_score_rate(error, scores):
    match, mismatch, gap = scores
    right = (1 - error) * (1 - error)
    assert expected_score_rate(error, *scores) == pytest.approx(right * match + (1 - right) * (mismatch + gap) / 2)
    assert math.isclose(expected_score_rate(0, *scores), match)


def test_describe():
    reads = make_reads(["A" * 30_000])
    text = describe_estimate(reads, Estimate(10.0, 0.123, False, "k-mer spectrum"))
    assert text == "depth about 10x, error rate about 12.3 %, genome about 0.00 Mb (from: k-mer spectrum)"
    assert describe_estimate(reads, Estimate(None, None, False, "x")) == "depth unknown, error rate unknown (from: x)"
    text = describe_estimate(reads, Estimate(10.0, 0.123, False, "x", spread=0.26, repeats=0.434))
    assert text == "depth about 10x (± 0.3), error rate about 12.3 %, genome about 0.00 Mb with 43 % in repeats (from: x)"


# ---------------------------------------------------------------- from reads


def estimate_of_reads(sequences, k=13, one_in=1):
    reads = make_reads(sequences)
    counts = count_kmers(reads.codes, k, 2, 1 << 30, keep_one_in=one_in)
    matrix, chance = build_kmer_matrix(counts, reads, k, 1 << 30), chance_copies(reads.n_bases, k)
    return estimate(reads, matrix, one_in, chance, None, None)


def reads_of(rng, text, fold, error, mean=3000):
    starts = rng.integers(0, len(text) - mean + 1, int(fold * len(text) / mean))
    return [noisy_copy(rng, text[start : start + mean], error)[0] for start in starts]


def test_reads_alike_are_not_mixed(rng):
    found = estimate_of_reads(reads_of(rng, random_bases(rng, 40_000), 20, 0.1))
    assert not found.mixed and found.choice_rate == found.error_rate == pytest.approx(0.1, abs=0.03)
    assert found.depth == pytest.approx(20, rel=0.3) and found.uneven < 0.05


def test_two_haplotypes_and_another_species(rng):
    text, other = random_bases(rng, 100_000), random_bases(rng, 60_000)
    apart = noisy_copy(rng, text, 0.01)[0]
    both = reads_of(rng, text, 20, 0.002) + reads_of(rng, apart, 20, 0.002)
    found = estimate_of_reads(both, k=17)
    assert found.depth == pytest.approx(40, rel=0.2) and found.heterozygosity == pytest.approx(0.01, rel=0.3)
    assert " and two haplotypes about " in describe_estimate(make_reads(["A" * 100]), found)
    beside = reads_of(rng, text, 40, 0.002) + reads_of(rng, other, 20, 0.002)
    assert estimate_of_reads(beside, k=17).heterozygosity is None


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_the_worst_reads_decide(rng, share):
    text = random_bases(rng, 60_000)
    found = estimate_of_reads(reads_of(rng, text, 24 * (1 - share), 0.01) + reads_of(rng, text, 24 * share, 0.18))
    assert found.mixed and found.choice_rate == found.worst_error_rate == pytest.approx(0.18, abs=0.05)
    assert "mixed reads: about" in describe_estimate(make_reads(["A" * 100]), found)


@pytest.mark.parametrize("fold", [150, 600])
def test_depth_of_an_amplicon(rng, fold):
    """Errors that repeat make a hump of their own, far below the depth."""
    text = random_bases(rng, 2500)
    found = estimate_of_reads([noisy_copy(rng, text, 0.1)[0] for _ in range(fold)])
    assert found.depth == pytest.approx(fold, rel=0.35)
    assert found.depth * (1 - found.error_rate) ** 13 == pytest.approx(fold * 0.9**13, rel=0.35)


def test_reads_without_bases_are_not_uneven():
    assert estimate_of_reads(["", ""]).uneven == 0


def test_reads_of_unusual_depth_are_left_out(rng):
    text, deep = random_bases(rng, 60_000), random_bases(rng, 2000)
    found = estimate_of_reads(reads_of(rng, text, 15, 0.05) + reads_of(rng, deep, 200, 0.05, mean=2000))
    assert found.depth == pytest.approx(15, rel=0.3) and found.uneven == pytest.approx(400 / 1300, abs=0.1)
    assert "uneven: 3" in describe_estimate(make_reads(["A" * 100]), found)


@pytest.mark.parametrize("threads", [1, 3, 50])
def test_survey_of_each_read(rng, threads):
    """The k-mers that occur more than once, of every other one half; and the middle one of their counts."""
    text = random_bases(rng, 3000)
    sequences = [
        *(noisy_copy(rng, text[at : at + 900], 0.02)[0] for at in rng.integers(0, 2000, 14).tolist()),
        "",
        text[:100] * 3,
    ]
    reads = make_reads(sequences)
    matrix = build_kmer_matrix(count_kmers(reads.codes, 13, 2, 1 << 30), reads, 13, 1 << 30)
    survey, read_id = survey_reads(matrix, threads), locate(matrix)[0]
    repeated, counts = np.zeros((2, len(reads)), np.int64), [[] for _ in sequences]
    bounds = column_bounds(matrix).tolist()
    for number, (begin, end) in enumerate(zip(bounds[:-1], bounds[1:], strict=True)):
        for r in read_id[begin:end].tolist():
            repeated[number % 2, r] += 1
            counts[r].append(end - begin)
    assert survey.repeated.tolist() == repeated.tolist()
    assert survey.level.tolist() == [sorted(its)[len(its) // 2] if its else 0 for its in counts]


def test_reads_of_no_genome_are_not_the_worst(rng):
    """A tenth of the reads has none of the k-mers; without k-mers enough they may be reads with many errors."""
    repeated = rng.binomial(200, 0.5, (2, 2000))
    repeated[:, :200] = rng.binomial(200, 0.0005, (2, 200))
    survey, usual = Survey(repeated, repeated.sum(axis=0) * 9), np.ones(2000, bool)
    assert worst_ratio(survey, np.full(2000, 400, np.int32), usual, 1.0, 0.0) == pytest.approx(1, abs=0.05)
    few = Survey(rng.binomial(20, np.where(np.arange(2000) < 200, 0.0005, 0.5), (2, 2000)), survey.level)
    assert worst_ratio(few, np.full(2000, 40, np.int32), usual, 1.0, 0.0) < 0.1


def test_worst_by_bad_luck_does_not_count(rng):
    """Of reads alike, those with the fewest repeated k-mers in one half of the sample are like all in the other."""
    repeated = rng.binomial(40, 0.5, (2, 5000))
    survey = Survey(repeated, repeated.sum(axis=0) * 9)
    lengths = np.full(5000, 80, np.int32)
    assert worst_ratio(survey, lengths, np.ones(5000, bool), 1.0, 0.0) == pytest.approx(1, abs=0.05)
    repeated[:, :500] = rng.binomial(40, 0.1, (2, 500))
    assert worst_ratio(survey, lengths, np.ones(5000, bool), 1.0, 0.0) == pytest.approx(0.1 / 0.46, abs=0.05)
    assert worst_ratio(Survey(repeated[:, :0], np.zeros(0)), lengths[:0], np.ones(0, bool), 1.0, 0.0) is None
