"""Hashes of k-mers in vector code: those of the k-mers cut out one by one."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bellapy.seeding.kmer_hashes import NONE, STRETCH, hash_stretch, make_stretch
from bellapy.seeding.kmers import make_layout


@numba.njit
def hashed(codes, begin, layout, stretch):
    hash_stretch(codes, begin, layout, stretch)


def one_by_one(codes, begin, layout):
    """Hashes and marks of a stretch, by whole numbers of Python."""
    k, hashes, marks = layout.k, [], []
    for place in range(begin, begin + STRETCH):
        kmer = codes[place : place + k].tolist()
        forward = sum(code << 2 * (k - 1 - i) for i, code in enumerate(kmer))
        backward = sum((3 - code) << 2 * i for i, code in enumerate(kmer))
        is_none = len(kmer) < k or max(kmer) > 3 or forward == backward
        canonical = min(forward, backward)
        hashes.append(int(NONE) if is_none else canonical * int(layout.multiplier) % 4**k)
        marks.append(2 * place + (backward < forward))
    return np.array(hashes, np.uint64), np.array(marks, np.uint64)


@pytest.mark.parametrize("k", [1, 2, 3, 8, 15, 16, 17, 24, 30, 31])
def test_hashes_are_those_of_single_kmers(rng, k):
    for n in (k, STRETCH - 1, STRETCH + 7, STRETCH + 40, 2 * STRETCH + 1000):
        codes = rng.integers(0, 4, n).astype(np.uint8)
        codes[rng.integers(0, n, n // 100)] = 4
        codes[n // 2 : n // 2 + 60] %= 2  # few letters: palindromes
        layout, stretch = make_layout(k, n), make_stretch()
        for begin in (0, 5, n // 3):
            hashed(codes, begin, layout, stretch)
            hashes, marks = one_by_one(codes, begin, layout)
            assert_array_equal(stretch.hashes, hashes)
            assert_array_equal(stretch.marks[hashes != NONE], marks[hashes != NONE])
