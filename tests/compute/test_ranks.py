"""Quantiles are those of sorting all numbers, whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest

from bellapy.compute import ranks as its_module
from bellapy.compute.ranks import median, order_statistics, quantiles, weighted_median

SETS = {
    "normal": lambda rng: rng.normal(0.5, 0.1, 5001),
    "even number": lambda rng: rng.normal(-3, 9, 5000),
    "few values": lambda rng: rng.integers(0, 4, 3000) / 7,
    "equal": lambda rng: np.full(70, 0.3),
    "two": lambda rng: np.array([2.0, -1.0]),
    "one": lambda rng: np.array([0.1]),
    "far apart": lambda rng: np.concatenate((rng.random(999), [1e12, -1e12])),
}


@pytest.fixture(autouse=True, params=[1, 10, its_module.FEW])
def few(request, monkeypatch):
    monkeypatch.setattr(its_module, "FEW", request.param)  # numbers that are sorted as a whole


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_as_by_sorting(rng, name, threads):
    values = SETS[name](rng)
    ranks = sorted({0, len(values) - 1, *rng.integers(0, len(values), 5).tolist()})
    assert order_statistics(values, ranks, threads) == np.sort(values)[ranks].tolist()
    assert quantiles(values, (0.01, 0.5, 0.993), threads) == np.quantile(values, (0.01, 0.5, 0.993)).tolist()
    assert median(values, threads) == np.median(values)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("threads", [1, 3])
def test_weighted_median(rng, name, threads):
    values = SETS[name](rng)
    weights = rng.integers(1, 30, len(values)).astype(np.int32)
    copies = np.sort(np.repeat(values, weights))
    assert weighted_median(values, weights, threads) == copies[(len(copies) - 1) // 2]
