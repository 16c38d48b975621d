"""Rows of bits: the operators against arrays of words."""

from __future__ import annotations

import operator

import numba
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bellapy.compute.rows import WORDS, put_row, row_at, word_of

BINARY = [operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor]
SHIFTS = [operator.lshift, operator.rshift]


@pytest.fixture
def words(rng):
    return rng.integers(0, 1 << 64, 4 * WORDS, np.uint64)


@pytest.mark.parametrize("apply", BINARY, ids=lambda operation: operation.__name__)
def test_two_rows(words, apply):
    @numba.njit
    def compiled(array):
        put_row(array, 20, apply(row_at(array, 3), row_at(array, 9)))

    expected = words.copy()
    expected[20 : 20 + WORDS] = apply(words[3 : 3 + WORDS].copy(), words[9 : 9 + WORDS])
    compiled(words)
    assert_array_equal(words, expected)


@pytest.mark.parametrize("apply", SHIFTS, ids=lambda operation: operation.__name__)
@pytest.mark.parametrize("by", [0, 1, 63])
def test_shifted_rows(words, apply, by):
    @numba.njit
    def compiled(array, count):
        put_row(array, np.uint64(0), ~apply(row_at(array, 5), count))

    expected = words.copy()
    expected[:WORDS] = ~apply(words[5 : 5 + WORDS], np.uint64(by))
    compiled(words, np.uint64(by))
    assert_array_equal(words, expected)


def test_words_of_a_row(words):
    @numba.njit
    def compiled(array, at, i):
        return word_of(row_at(array, at), i)

    assert [compiled(words, 7, i) for i in range(WORDS)] == list(words[7 : 7 + WORDS])
