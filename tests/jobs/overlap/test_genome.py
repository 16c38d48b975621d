"""What a spectrum shows of the genome: its share in repeats, and two haplotypes where it has a second peak."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bellapy.jobs.overlap.estimate import find_heterozygosity, near_usual, share_in_repeats
from bellapy.records import Estimate

K, SIZE, PLACES = 21, 400, 60_000
COUNTS = np.arange(SIZE)
ERRORS = 3 * PLACES * 0.2**COUNTS


def spectrum_of(rng, mean, differing=0.0, spread=1.0):
    """That of PLACES places, each covered `mean` times; a share of them shows two k-mers, covered half as often.

    spread : variance of the counts in units of a Poisson distribution's.
    """

    def around(mean):
        if spread == 1:
            return stats.poisson.pmf(COUNTS, mean)
        return stats.nbinom.pmf(COUNTS, mean / (spread - 1), 1 / spread)

    return rng.poisson(PLACES * ((1 - differing) * around(mean) + 2 * differing * around(mean / 2)) + ERRORS)


@pytest.mark.parametrize(
    ("depth", "rate", "spread"),
    [(30, 0.01, 1), (30, 0.03, 1), *((60, rate, spread) for rate in (0.003, 0.01, 0.03) for spread in (1, 1.5))],
)
def test_haplotypes_are_told(rng, depth, rate, spread):
    error_rate = 0.003
    spectrum = spectrum_of(rng, depth * (1 - error_rate) ** K, 1 - (1 - rate) ** K, spread)
    measured = error_rate + rate / 4  # half of the overlaps are of both haplotypes
    found = find_heterozygosity(spectrum, depth, measured, K)
    assert found == pytest.approx(rate, rel=0.2)


@pytest.mark.parametrize("spread", [1, 1.5, 3])
@pytest.mark.parametrize("mean", [3, 8, 14, 27, 50, 90])
def test_one_haplotype_has_none(rng, mean, spread):
    assert find_heterozygosity(spectrum_of(rng, mean, spread=spread), mean, 0.0, K) is None


def test_a_slope_of_depth_is_no_second_peak(rng):
    """Growing bacteria have more copies of one half of their genome than of the other."""
    spectrum = sum(spectrum_of(rng, mean) for mean in np.linspace(25, 50, 20))
    assert find_heterozygosity(spectrum, 36, 0.0, K) is None


@pytest.mark.parametrize("spectrum", [np.zeros(SIZE, np.int64), ERRORS, np.ones(SIZE)])
@pytest.mark.parametrize("depth", [0.5, 30, 395, 10_000])
def test_what_shows_no_peak_is_no_error(spectrum, depth):
    assert find_heterozygosity(spectrum, depth, 0.01, K) is None


def test_reads_of_unusual_depth_do_not_count():
    assert near_usual(np.array([0, 14, 15, 20, 28, 29, 40], np.uint32), 20.0).tolist() == [0, 0, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("twice", [0, 0.3])
def test_share_in_repeats(twice):
    """Of a genome's k-mers, which are read 20 times; some occur twice in it, and errors make others."""
    counts, mean = np.arange(200), 20 * 0.99**21
    once, both = (stats.poisson.pmf(counts, n * mean) for n in (1, 2))
    spectrum = 1e6 * ((1 - twice) * once + twice / 2 * both)
    spectrum[1] += 4e6
    found = share_in_repeats(spectrum, Estimate(20.0, 0.01, False, "x"), 21)
    assert found == pytest.approx(twice, abs=0.08)
    assert share_in_repeats(spectrum, Estimate(None, 0.01, False, "x"), 21) is None
    assert share_in_repeats(spectrum, Estimate(5.0, 0.01, False, "x"), 21) is None, "too few copies to tell"
