"""Words are sorted as NumPy sorts them, and equal ones stay in order."""

from __future__ import annotations

import numpy as np
import pytest

from bellapy.compute.jit import njit
from bellapy.compute.sorting import DIGIT_BITS, DIGITS, sort_by_digits

U = np.uint64


@njit
def sorted_by_digits(words, low):
    """The words sorted by their bits from `low` on, in a new array."""
    out = words.copy()
    sort_by_digits(out, low, np.empty(len(words), np.uint64), np.empty(DIGITS + U(1), np.int64))
    return out


@pytest.mark.parametrize("low", [0, 1, 7, 60, 63])
@pytest.mark.parametrize("high", [0, 1, DIGIT_BITS, DIGIT_BITS + 1, 37, 63, 64])
def test_in_order_and_stable(rng, low, high):
    words = rng.integers(0, 1 << high, 3000, dtype=np.uint64, endpoint=False) if high < 64 else rng.bytes(24_000)
    words = np.frombuffer(words, np.uint64)
    wanted = words[np.argsort(words >> U(low), kind="stable")]
    np.testing.assert_array_equal(sorted_by_digits(words, low), wanted)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few(n):
    words = np.arange(n, 0, -1).astype(np.uint64)
    np.testing.assert_array_equal(sorted_by_digits(words, 0), np.sort(words))
