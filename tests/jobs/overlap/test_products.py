"""A·Aᵀ: the same products as naive ones and as many as scipy counts, in whatever blocks they are formed."""

from __future__ import annotations

from collections import Counter

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csc_array
from strategies import column_bounds, locate, make_reads, random_bases, read_sets, simulate_reads

from bellapy.errors import InputError
from bellapy.jobs.overlap import products
from bellapy.jobs.overlap.products import BLOCK_QUERIES, Between, Products, make_key_layout, multiply, symbolic_product
from bellapy.records import KmerMatrix
from bellapy.seeding.kmer_matrix import build_kmer_matrix
from bellapy.seeding.kmers import count_kmers

BLOCKS = [1, 2, 7, 100, 1 << 16]


def build(sequences, k, lower=2, upper=8, repeats=0) -> KmerMatrix:
    """A with the columns of `lower` to `upper` entries, and up to `repeats` more that must link no reads."""
    reads = make_reads(sequences)
    return build_kmer_matrix(count_kmers(reads.codes, k, lower, upper + repeats), reads, k, upper)


def decode(products: Products, n_reads: int) -> list[tuple[tuple[int, int, int], tuple[int, int]]]:
    """((query, target, strand), (query position, target position)) of every product, in order of the keys."""
    number_bits, target_bits = products.layout.number_bits, products.layout.target_bits
    assert products.bounds[0] == 0 and products.bounds[-1] == len(products.keys) == len(products.payload)
    assert len(products.bounds) == len(products.first_query) + 1
    found = []
    for b in range(len(products.first_query)):
        begin, end = int(products.bounds[b]), int(products.bounds[b + 1])
        keys = products.keys[begin:end].tolist()
        assert keys == sorted(keys)
        numbers = [key & ((1 << number_bits) - 1) for key in keys]
        assert sorted(numbers) == list(range(end - begin))
        for key, number in zip(keys, numbers, strict=True):
            pair = key >> (number_bits + products.layout.diagonal_bits)
            query = int(products.first_query[b]) + (pair >> target_bits + 1)
            target = (pair >> 1) & ((1 << target_bits) - 1)
            assert query < target < n_reads
            payload = int(products.payload[begin + number])
            found.append(((query, target, -1 if pair & 1 else 1), (payload >> 32, payload & 0xFFFFFFFF)))
    queries = [candidate[0] for candidate, _ in found]
    assert queries == sorted(queries)
    return found


def all_products(matrix, **options) -> dict[tuple[int, int, int], list[tuple[int, int]]]:
    shared = {}
    candidates_seen = []
    work = symbolic_product(matrix, options.get("threads", 1), options.get("between"))
    for group in multiply(matrix, work, **options):
        for candidate, positions in decode(group, matrix.n_reads):
            if not candidates_seen or candidates_seen[-1] != candidate:
                candidates_seen.append(candidate)
            shared.setdefault(candidate, []).append(positions)
    assert len(candidates_seen) == len(shared), "a candidate is in two places"
    return {candidate: sorted(positions) for candidate, positions in shared.items()}


def assert_work_is_exact(matrix, expected):
    work = Counter()
    for (query, _, _), shared in expected.items():
        work[query] += len(shared)
    for threads in (1, 2, 3):
        got = symbolic_product(matrix, threads)
        assert got.shape[0] <= threads and got.sum(axis=0).tolist() == [work[query] for query in range(matrix.n_reads)]


@pytest.fixture(scope="module")
def sequences() -> list[str]:
    return simulate_reads(np.random.default_rng(11))


@pytest.mark.parametrize(("k", "upper"), [(5, 12), (9, 8), (15, 8), (16, 30), (25, 4), (31, 1000)])
@pytest.mark.parametrize("repeats", [0, 50])
def test_products(sequences, k, upper, repeats):
    matrix = build(sequences, k, 2, upper, repeats)
    expected = naive.products(naive.matrix_entries(sequences, k, 2, upper))
    assert {strand for _, _, strand in expected} == {1, -1}
    assert all_products(matrix) == expected
    assert_work_is_exact(matrix, expected)


@pytest.mark.parametrize(("k", "upper"), [(4, 150), (15, 8), (15, 60)])
def test_scipy_counts_as_many(sequences, k, upper):
    """scipy's A·Aᵀ; with strands as values it gives same-strand less opposite-strand products."""
    matrix = build(sequences, k, 2, upper)
    read_id, _, strand = locate(matrix)
    shape = matrix.n_reads, matrix.n_kmers
    a, signed = (csc_array((values, read_id, column_bounds(matrix)), shape=shape) for values in (np.abs(strand), strand))
    both = (a @ a.T).toarray()
    difference = (signed @ signed.T).toarray()
    same, opposite = np.triu((both + difference) // 2, 1), np.triu((both - difference) // 2, 1)
    got = np.zeros((2, matrix.n_reads, matrix.n_reads), np.int64)
    for (query, target, its_strand), shared in all_products(matrix).items():
        got[int(its_strand < 0), query, target] = len(shared)
    assert_array_equal(got[0], same)
    assert_array_equal(got[1], opposite)
    assert_array_equal(symbolic_product(matrix, 3).sum(axis=0), np.triu(both, 1).sum(axis=1))


@settings(max_examples=80)
@given(
    sequences=read_sets(), k=st.integers(1, 20), upper=st.sampled_from((2, 5, 1000)), repeats=st.sampled_from((0, 10)),
    block_products=st.sampled_from(BLOCKS), group_products=st.sampled_from(BLOCKS), threads=st.integers(1, 3),
)  # fmt: skip
def test_small_sets(sequences, k, upper, repeats, block_products, group_products, threads):
    matrix = build(sequences, k, 2, upper, repeats)
    expected = naive.products(naive.matrix_entries(sequences, k, 2, upper))
    options = {"block_products": block_products, "group_products": group_products, "threads": threads}
    assert all_products(matrix, **options) == expected
    assert_work_is_exact(matrix, expected)


@pytest.mark.parametrize("block_products", BLOCKS)
@pytest.mark.parametrize("block_queries", [1, 3, 1024])
def test_blocks_change_nothing(sequences, monkeypatch, block_products, block_queries):
    monkeypatch.setattr(products, "BLOCK_QUERIES", block_queries)
    matrix = build(sequences, 13, 2, 12)
    work = symbolic_product(matrix)
    expected = all_products(matrix)
    for group_products in (1, 500, 1 << 24):
        for threads in (1, 2, 3):
            options = {"block_products": block_products, "group_products": group_products, "threads": threads}
            assert all_products(matrix, **options) == expected
        n_queries = 0
        for group in multiply(matrix, work, block_products=block_products, group_products=group_products):
            n_blocks, sizes = len(group.first_query), np.diff(group.bounds)
            assert group.bounds[-1] <= group_products or n_blocks == 1
            last_query = [*group.first_query[1:].tolist(), None]
            for first, last, size in zip(group.first_query.tolist(), last_query, sizes.tolist(), strict=True):
                busy = np.count_nonzero(work[0, first:last]) if last is not None else None
                assert size <= block_products or busy in (1, None)
                assert last is None or last - first <= block_queries
            n_queries += n_blocks
        assert n_queries <= len(sequences)


def test_threads_do_not_change_the_order(sequences):
    matrix, sizes = build(sequences, 11, 2, 20), {"block_products": 300, "group_products": 2000}
    for ranges, threads in ((2, 2), (3, 1), (1, 3), (8, 8)):
        expected, n_groups = multiply(matrix, symbolic_product(matrix), **sizes), 0
        got = multiply(matrix, symbolic_product(matrix, ranges), threads=threads, **sizes)
        for group, its_expected in zip(got, expected, strict=True):  # before the next group takes their places
            n_groups += 1
            for name in ("keys", "payload", "bounds", "first_query"):
                assert_array_equal(getattr(group, name), getattr(its_expected, name), err_msg=name)
            assert group.layout == its_expected.layout
        assert n_groups > 2


def test_both_strands():
    rng = np.random.default_rng(4)
    piece = random_bases(rng, 60)
    sequences = [piece, piece, naive.reverse_complement(piece), piece + naive.reverse_complement(piece)]
    matrix = build(sequences, 15, 2, 8)
    products = all_products(matrix)
    assert products == naive.products(naive.matrix_entries(sequences, 15, 2, 8))
    n = 60 - 15 + 1
    assert {candidate: len(shared) for candidate, shared in products.items()} == {
        (0, 1, 1): n, (0, 2, -1): n, (1, 2, -1): n, (0, 3, 1): n, (0, 3, -1): n, (1, 3, 1): n, (1, 3, -1): n,
        (2, 3, 1): n, (2, 3, -1): n,
    }  # fmt: skip
    assert products[0, 1, 1] == [(i, i) for i in range(n)]
    assert products[0, 2, -1] == [(i, n - 1 - i) for i in range(n)]


def test_a_read_makes_no_product_with_itself():
    unit = random_bases(np.random.default_rng(8), 30)
    matrix = build([unit * 3, "A" * 40, naive.reverse_complement(unit) + unit], 12, 2, 1000)
    assert {(query, target) for query, target, _ in all_products(matrix)} == {(0, 2)}
    only = build([unit * 3], 12, 2, 1000)
    assert only.n_kmers and symbolic_product(only).sum() == 0 and list(multiply(only, symbolic_product(only))) == []


def test_multiplicities_multiply():
    """A k-mer twice in one read and three times in the other makes six products."""
    unit = random_bases(np.random.default_rng(8), 20)
    products = all_products(build([unit + "N" + unit, "N".join([unit] * 3)], 20, 2, 8))
    assert products == {(0, 1, 1): [(i, j) for i in (0, 21) for j in (0, 21, 42)]}


@pytest.mark.parametrize("sequences", [[], [""], ["ACGT"], ["ACGTTGCA", "CCCCCCCC"]], ids=str)
def test_nothing_to_multiply(sequences):
    matrix = build(sequences, 7)
    work = symbolic_product(matrix)
    assert work.dtype == np.int64 and work.sum(axis=0).tolist() == [0] * len(sequences)
    assert list(multiply(matrix, work)) == []


@pytest.mark.parametrize("n_reads", [1, 1 << 10, 1 << 22, 1 << 30])
def test_keys_have_64_bits_or_are_refused(n_reads):
    for bits in range(1, 63 - 11 - n_reads.bit_length() + 1):
        layout = make_key_layout(1 << bits, n_reads, 100_000)
        assert sum((layout.number_bits, layout.diagonal_bits, 1, layout.target_bits, BLOCK_QUERIES.bit_length())) <= 64
    with pytest.raises(InputError, match="too many to number"):
        make_key_layout((1 << bits) + 1, n_reads, 100_000)


def test_parts_of_the_product(sequences):
    """Queries before a read, targets from one on: the products of the whole that are so."""
    matrix, n = build(sequences, 13, 2, 12), len(sequences)
    expected = all_products(matrix)
    for n_queries, first_target in ((n // 3, n // 3), (n // 3, n // 2), (n, 0), (n // 2, 0), (n, n - 1), (1, n - 1), (0, 0)):
        between = Between(n_queries, first_target)
        got = all_products(matrix, between=between, block_products=300, group_products=900, threads=2)
        assert got == {pair: where for pair, where in expected.items() if pair[0] < n_queries and pair[1] >= first_target}
        assert symbolic_product(matrix, 2, between).sum() == sum(map(len, got.values()))
    assert expected and any(pair[0] < n // 3 <= pair[1] for pair in expected)


def test_groups_are_few_at_any_size(sequences, monkeypatch):
    """Every group goes through all entries once more."""
    matrix = build(sequences, 13, 2, 12)
    work = symbolic_product(matrix)
    monkeypatch.setattr(products, "GROUP_PRODUCTS", 1)
    assert sum(1 for _ in multiply(matrix, work, block_products=1)) > 4
    monkeypatch.setattr(products, "MOST_GROUPS", 4)
    assert sum(1 for _ in multiply(matrix, work, block_products=1)) <= 5  # groups hold whole blocks
