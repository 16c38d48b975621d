"""The sparse matrix A and the depth profile, against naive ones."""

from __future__ import annotations

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import column_bounds, locate, make_reads, random_bases, read_sets, simulate_reads

from bellapy.compute.jit import njit
from bellapy.jobs.overlap.products import multiply, symbolic_product
from bellapy.records.kmers import TABLE_SHIFT
from bellapy.seeding.kmer_matrix import (
    PROFILE_WIDTH,
    build_kmer_matrix,
    next_column,
    next_large,
    place_of,
    profile_depth,
    read_at,
)
from bellapy.seeding.kmers import count_kmers


@njit
def place_and_read(entry, starts, table):
    """Where an entry stands, and in which read."""
    return place_of(entry), read_at(place_of(entry), starts, table)


def build(sequences, k, lower, upper, **options):
    reads = make_reads(sequences)
    return reads, build_kmer_matrix(count_kmers(reads.codes, k, lower, upper), reads, k, upper, **options)


def columns_of(matrix) -> list[tuple[tuple[int, int, int], ...]]:
    """(read, position, strand) of the entries of every column, in order."""
    entries = list(zip(*(column.tolist() for column in locate(matrix)), strict=True))
    return [tuple(entries[a:b]) for a, b in zip(column_bounds(matrix)[:-1], column_bounds(matrix)[1:], strict=True)]


def check(sequences, k, lower, upper):
    """The matrix by columns; they come in any order, their entries in order of read and position."""
    reads, matrix = build(sequences, k, lower, upper)
    expected = naive.matrix_entries(sequences, k, lower, upper)
    columns = columns_of(matrix)
    assert sorted(columns) == sorted(tuple(places) for places in expected.values())
    assert (matrix.n_reads, matrix.k, matrix.upper, matrix.n_kmers) == (len(sequences), k, upper, len(expected))
    return reads, matrix


@pytest.mark.parametrize(("k", "lower", "upper"), [(5, 2, 1000), (6, 3, 9), (15, 2, 8), (22, 2, 100), (31, 2, 1000)])
def test_matrix(k, lower, upper):
    check(simulate_reads(np.random.default_rng(k)), k, lower, upper)


@settings(max_examples=80)
@given(sequences=read_sets(), k=st.integers(1, 31), lower=st.integers(2, 3), upper=st.sampled_from((3, 10, 1000)))
def test_small_matrix(sequences, k, lower, upper):
    check(sequences, k, lower, upper)


@njit
def list_large(entries, begin, end, upper, found):
    """Write where columns with more than `upper` entries begin in [begin, end) to `found`; return their number."""
    n, first = 0, next_large(entries, next_column(entries, begin), end, upper)
    while first < end:
        found[n] = first
        n, first = n + 1, next_large(entries, next_column(entries, first + 1), end, upper)
    return n


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(0, 10), st.data())
def test_large_columns(sizes, upper, data):
    its = np.array(sizes, np.int64)
    begins = np.cumsum(its) - its
    entries = np.zeros(sum(sizes), np.uint32)
    entries[begins] = 2
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(entries))] * 2)))
    found = np.empty(len(sizes), np.int64)
    found = found[: list_large(entries, begin, end, upper, found)]
    columns = zip(begins.tolist(), sizes, strict=True)
    assert found.tolist() == [first for first, size in columns if size > upper and begin <= first < end]


def test_many_short_reads():
    """Many reads begin within one stretch of the table that finds them, and long ones cross several."""
    rng = np.random.default_rng(9)
    pool = random_bases(rng, 200)
    sequences = []
    for i in range(60):
        sequences += [""] * (i % 7) + [pool[i : i + 17], pool[i : i + 3]]
    sequences.insert(30, pool * 40)
    _, matrix = check(sequences, 9, 2, 10_000)
    read_id, position, _ = locate(matrix)
    for entry, read, its_position in zip(matrix.entries, read_id, position, strict=True):
        place, found = place_and_read(entry, matrix.starts, matrix.read_table)
        assert found == read
        assert place - matrix.starts[read] == its_position
    begun = [int((matrix.starts[:-1] <= i << TABLE_SHIFT).sum()) for i in range(len(matrix.read_table))]
    assert matrix.read_table.tolist() == [max(0, n - 1) for n in begun] and len(begun) == 1 + (
        matrix.starts[-1] >> TABLE_SHIFT
    )


def test_entries_of_many_bases_are_wide():
    """As for more than 2^30 places, which no test can hold: the same columns, in wider numbers."""
    sequences = simulate_reads(np.random.default_rng(15))
    reads, narrow = build(sequences, 15, 2, 8)
    starts = np.append(narrow.starts[:-1], (1 << 30) + 1)
    assert narrow.entries.dtype == np.uint32
    with pytest.raises(TypeError, match="entries"):
        replace(narrow, starts=starts)
    wide = replace(narrow, entries=narrow.entries.astype(np.uint64), starts=starts)
    assert columns_of(wide) == columns_of(narrow)
    work = symbolic_product(narrow)
    assert_array_equal(symbolic_product(wide), work)
    for group, other in zip(multiply(wide, work), multiply(narrow, work), strict=True):
        assert_array_equal(np.sort(group.payload), np.sort(other.payload))


def test_a_kmer_twice_in_one_read_keeps_both_places():
    _, matrix = check(["GATTACAGATTACA", "TGTAATC"], 7, 2, 8)
    assert ((0, 0, 1), (0, 7, 1), (1, 0, -1)) in columns_of(matrix)


def test_nothing_shared():
    for sequences in ([], ["", ""], ["ACGTTGCATT"], ["NNNNNNNNNNNNNN"] * 3):
        _, matrix = check(sequences, 9, 2, 8)
        assert matrix.n_kmers == 0 and len(matrix.read_table) == 1 + (matrix.starts[-1] >> TABLE_SHIFT)


def test_seed_length():
    assert build(["ACGTTGCATT"] * 2, 5, 2, 8)[1].seed_length == 5
    assert build(["ACGTTGCATT"] * 2, 5, 2, 8, seed_length=1)[1].seed_length == 1


@pytest.mark.parametrize("k, threads", [(4, 1), (15, 1), (4, 2), (4, 3), (15, 16)])
def test_depth_profile(k, threads):
    sequences = simulate_reads(np.random.default_rng(2))
    sequences += ["", random_bases(np.random.default_rng(3), PROFILE_WIDTH), sequences[0]]
    reads, matrix = build(sequences, k, 2, 10_000)
    profile = profile_depth(matrix, reads, threads)
    n_kmers = [[0] * (len(sequence) // PROFILE_WIDTH + 1) for sequence in sequences]
    copies = [[0] * (len(sequence) // PROFILE_WIDTH + 1) for sequence in sequences]
    for places in naive.matrix_entries(sequences, k, 2, 10_000).values():
        for read, position, _ in places:
            n_kmers[read][position // PROFILE_WIDTH] += 1
            copies[read][position // PROFILE_WIDTH] += len(places)
    assert profile.width == PROFILE_WIDTH
    assert_array_equal(profile.offsets, np.cumsum([0] + [len(bins) for bins in n_kmers]))
    assert_array_equal(profile.n_kmers, sum(n_kmers, []))
    assert_array_equal(profile.copies, sum(copies, []))
