"""Copies of a sequence, told apart by what each read scores elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import change_seeds, make_seeds

from bellapy.jobs.overlap.other_copies import (
    LEAST_PARTNERS,
    LEAST_SURE,
    MORE_COPIES,
    N_CLASSES,
    UNIT,
    learn_limits,
    length_classes,
    means,
    sum_rates,
    with_other_copies,
)


def pairs(query, target):
    n = len(query)
    return make_seeds(query, target, [1] * n, [0] * n, [0] * n, 5)


@pytest.mark.parametrize("threads", [1, 3])
def test_sums_of_each_read(rng, threads):
    n_reads, n = 20, 400
    seeds, rate = pairs(rng.integers(0, 10, n), rng.integers(10, n_reads, n)), rng.random(n)
    counted, least = rng.random(n) < 0.7, np.where(rng.random(n_reads) < 0.5, 0.4, -np.inf)
    totals, numbers = sum_rates(seeds, rate, counted, least, threads)
    for r in range(n_reads):
        its = counted & ((seeds.query_id == r) | (seeds.target_id == r)) & (rate >= least[r])
        assert numbers[r] == its.sum() and totals[r] == sum(int(value * UNIT) for value in rate[its])
    halves = [sum_rates(seeds.take(rows), rate[rows], counted[rows], least) for rows in np.split(np.arange(n), 2)]
    assert np.array_equal(sum(half[0] for half in halves), totals), "in tiles, too"


def test_means():
    found = means(np.array([3 * UNIT, UNIT, 0]), np.array([LEAST_PARTNERS, 1, 0]), LEAST_PARTNERS)
    assert found[0] == 3 / LEAST_PARTNERS and np.isnan(found[1:]).all()
    assert means(np.array([UNIT]), np.array([2])).tolist() == [0.5]
    assert not sum_rates(pairs([0], [1]), np.ones(1), np.ones(1, bool), found[1:])[1].any(), "no level, no better ones"


def test_reads_of_two_copies(rng):
    """Reads of two copies 4 % apart, each read with its own share of errors: what aligns with the other copy is found."""
    n_reads = 200
    errors, copy = rng.uniform(0.01, 0.08, n_reads), np.arange(n_reads) % 2
    query, target = (ids.astype(np.int32) for ids in np.triu_indices(n_reads, 1))
    length = rng.integers(3000, 15_000, len(query)).astype(float)
    other = copy[query] != copy[target]
    differences = errors[query] + errors[target] + 0.04 * other
    rate = 1 - 2 * rng.binomial(length.astype(int), differences) / length
    seeds = change_seeds(pairs(query, target), copies=np.full(len(query), 2, np.float32))
    every = np.ones(len(query), bool)
    totals, numbers = sum_rates(seeds, rate, every, np.full(n_reads, -np.inf))
    level = means(*sum_rates(seeds, rate, every, means(totals, numbers, LEAST_PARTNERS)))
    shortfall = level[query] + level[target] - rate
    limits = learn_limits(shortfall[~other], length[~other])
    found = with_other_copies(seeds.copies, shortfall, length, limits)
    assert found[other].mean() > 0.95 and found[~other].mean() < 0.001
    assert not with_other_copies(np.full(len(query), MORE_COPIES), shortfall, length, limits).any()


def test_few_teach_nothing(rng):
    shortfall, length = rng.normal(0, 1, LEAST_SURE), np.full(LEAST_SURE, 5000.0)
    assert np.isfinite(learn_limits(shortfall, length)).sum() == 1
    assert np.isinf(learn_limits(shortfall[1:], length[1:])).all()
    assert np.isinf(learn_limits(np.full(LEAST_SURE, np.nan), length)).all()
    assert not with_other_copies(
        np.full(3, 9, np.float32), np.array([1.0, np.nan, 5.0]), np.full(3, 5000.0), np.full(N_CLASSES, np.inf)
    ).any()


@pytest.mark.parametrize(("length", "its"), [(0, 1), (1, 1), (1023, 10), (1024, 11), (2047.9, 11), (1e30, N_CLASSES - 1)])
def test_length_classes(length, its):
    assert length_classes(np.array([length])).tolist() == [its]


@pytest.mark.parametrize("threads", [1, 3])
def test_limits_of_each_class_of_lengths(rng, threads):
    """By NumPy's quantiles of the alignments of a class; what is unknown does not count."""
    shortfall, length = rng.normal(0, 1, 3000), 2.0 ** rng.uniform(9.5, 13.5, 3000)
    shortfall[rng.random(3000) < 0.1] = np.nan
    limits = learn_limits(shortfall, length, threads)
    for c in range(N_CLASSES):
        its = shortfall[np.isfinite(shortfall) & (length >= 2.0 ** (c - 1)) & (length < 2.0**c)]
        expected = np.inf
        if len(its) >= LEAST_SURE:
            least, low, middle, high = np.quantile(its, (0.01, 0.02, 0.5, 0.98))
            expected = middle + 2.5 * max(1.0, (high - middle) / (middle - low)) * (middle - least)
        assert limits[c] == expected
    assert np.isfinite(limits).sum() == 5
    judged = with_other_copies(np.full(3000, 2, np.float32), shortfall, length, limits, threads)
    assert judged.tolist() == [bool(x > limits[int(np.log2(n)) + 1]) for x, n in zip(shortfall, length, strict=True)]
