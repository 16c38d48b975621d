"""The matrices of the method in the API: of the reads as they are given, and what SciPy's own product says of them."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from scipy import sparse
from strategies import simulate_reads

import bellapy

K, OPTIONS = 11, {"k": 11, "lower": 2, "upper": 12, "sampling": "none", "threads": 2, "min_overlap": 50, "device": "cpu"}


@pytest.fixture(scope="module")
def reads() -> dict[str, str]:
    return {f"r{i}": sequence for i, sequence in enumerate(simulate_reads(np.random.default_rng(5)))}


def test_values_are_places_of_the_k_mers(reads):
    found, sequences = bellapy.count(reads, **OPTIONS), list(reads.values())
    assert found.shape[0] == len(reads) and found.nnz and (np.diff(found.indptr) > 1).all()
    for column in range(found.shape[1]):
        part = slice(found.indptr[column], found.indptr[column + 1])
        words = set()
        for read, value in zip(found.indices[part].tolist(), found.data[part].tolist(), strict=True):
            word = sequences[read][abs(value) - 1 :][:K]
            words.add(word if value > 0 else naive.reverse_complement(word))
        assert len(words) == 1


def test_every_reliable_k_mer_is_a_column(reads):
    wanted = naive.matrix_entries(list(reads.values()), K, 2, 12)
    assert bellapy.count(reads, **OPTIONS).shape[1] == len(wanted)


def test_candidates_share_what_scipys_product_says(reads):
    found, kmers = bellapy.candidates(reads, **OPTIONS), bellapy.count(reads, **OPTIONS)
    ones = sparse.csc_array((np.ones(kmers.nnz, np.int32), kmers.indices, kmers.indptr), kmers.shape)
    shared = sparse.triu(ones @ ones.T, 1).tocsr()
    assert found.nnz and (shared - found).min() >= 0
    pairs = found.tocoo()
    assert (pairs.coords[0] < pairs.coords[1]).all()
    assert np.mean(shared[pairs.coords] == pairs.data) > 0.5, "most pairs have k-mers on one strand only"


def test_order_and_strand_of_the_reads_change_only_the_rows(reads):
    turned = {name: naive.reverse_complement(sequence) for name, sequence in reversed(reads.items())}
    one, other = bellapy.candidates(reads, **OPTIONS), bellapy.candidates(turned, **OPTIONS)
    there = (one + one.T).toarray()
    again = (other + other.T).toarray()[::-1, ::-1]
    assert np.array_equal(there, again)
