"""Minimizers: those of every window, whatever strand is read and wherever the reference is cut into chunks."""

from __future__ import annotations

from collections import Counter

import naive
import naive_map
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_reads, random_bases

from bellapy.compute.jit import njit
from bellapy.records.bases import encode
from bellapy.seeding.index import CHUNK, LEAST_CUTOFF, REPEATED_SHARE, U, build_index
from bellapy.seeding.minimizers import find_minimizers, make_room


@njit
def _find(codes, k, window, hashes, marks):
    return find_minimizers(codes, 0, len(codes), k, window, hashes, marks, make_room())


def minimizers_of(sequence: str, k: int, window: int) -> list[tuple[int, int, bool]]:
    hashes, marks = np.empty(len(sequence), np.uint64), np.empty(len(sequence), np.int64)
    n = _find(encode(sequence), k, window, hashes, marks)
    return [(int(h), int(m) >> 1, bool(m & 1)) for h, m in zip(hashes[:n], marks[:n], strict=True)]


@settings(max_examples=150)
@given(
    sequence=st.text("ACGT", max_size=120) | st.text("ACGTN", max_size=120) | st.text("AC", max_size=60),
    k=st.integers(1, 15), window=st.integers(1, 12),
)  # fmt: skip
def test_are_the_smallest_of_every_window(sequence, k, window):
    assert minimizers_of(sequence, k, window) == naive_map.minimizers(sequence, k, window)


@pytest.mark.parametrize("k, window", [(15, 10), (19, 19)])
def test_both_strands_have_the_same(rng, k, window):
    """Else a read from the other strand would share fewer with the reference."""
    sequence = random_bases(rng, 20_000)
    here, there = (minimizers_of(s, k, window) for s in (sequence, naive.reverse_complement(sequence)))
    assert {(h, len(sequence) - k - start, not strand) for h, start, strand in there} == set(here)
    assert len(here) == pytest.approx(2 * len(sequence) / (window + 1), rel=0.05)


def test_an_index_holds_those_of_all_sequences(rng):
    """Windows may reach over the unknown base between two sequences."""
    index = build_index(make_reads([random_bases(rng, n) for n in (3000, 10, 700)]), 15, 10)
    text = "".join("ACGTN"[code] for code in index.codes)
    places = index.lookup.words & np.uint64((1 << index.lookup.place_bits) - 1)
    assert sorted(places.tolist()) == [start << 1 | strand for _, start, strand in naive_map.minimizers(text, 15, 10)]


@pytest.mark.parametrize(
    "k, window, size", [(15, 10, 4000), (15, 10, CHUNK + 100), (19, 19, 4000), (28, 5, 3000), (4, 1, 2000), (5, 3, 30)]
)
def test_an_index_is_sorted_small_and_knows_what_is_repeated(rng, k, window, size):
    """Also where a hash and a place fill more than a word together, and across the borders of chunks."""
    unit = random_bases(rng, size // 3)
    reads = make_reads([unit + random_bases(rng, size // 3), unit])
    index = build_index(reads, k, window)
    lookup = index.lookup
    sizes = np.diff(lookup.starts.astype(np.int64))
    hashes = np.repeat(np.arange(len(sizes)), sizes) << lookup.rest_bits | (lookup.words >> U(lookup.place_bits)).astype(int)
    marks = lookup.words & U((1 << lookup.place_bits) - 1)
    text = "".join("ACGTN"[code] for code in index.codes)
    expected = sorted((h, start << 1 | strand) for h, start, strand in naive_map.minimizers(text, k, window))
    assert list(zip(hashes.tolist(), marks.tolist(), strict=True)) == expected
    copies = sorted(Counter(h for h, _ in expected).values())
    assert lookup.cutoff == max(LEAST_CUTOFF, copies[len(copies) - 1 - int(len(copies) * REPEATED_SHARE)])
    assert lookup.words.nbytes + lookup.starts.nbytes <= 10 * len(expected) + 20
    others = build_index(reads, k, window, threads=3).lookup
    assert np.array_equal(others.words, lookup.words) and np.array_equal(others.starts, lookup.starts)
    assert others[2:] == lookup[2:]


def test_a_minimizer_with_many_copies_is_repeated(rng):
    index = build_index(make_reads([random_bases(rng, 40) * 300]), 15, 10)
    assert index.lookup.cutoff >= 298
