"""The matrices of the method as scipy.sparse arrays: A, reads x k-mers, and what its product with its transpose keeps.

Kernels work on records, which are half as large (records/kmers.py).  These are for looking at, and for other programs.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from bellapy.records.kmers import FIRST, REVERSE, KmerMatrix, places_of
from bellapy.records.seeds import Seeds


def sparse_kmers(matrix: KmerMatrix) -> sparse.csc_array:
    """A as an array of shape (n_reads, n_kmers), int32, by columns.

    A value is the start of the k-mer in the read, from 1, negative where the read shows the reverse complement of the
    k-mer.  A k-mer that occurs several times in one read has as many values there, which SciPy would add up where it needs
    one.
    """
    place, entries = places_of(matrix.entries), matrix.entries
    read = np.searchsorted(matrix.starts, place, side="right") - 1
    position = place - matrix.starts[read] + 1
    value = np.where(entries & np.uint8(REVERSE), -position, position).astype(np.int32)
    ends = np.append(np.flatnonzero(entries & np.uint8(FIRST)), len(entries))
    return sparse.csc_array((value, read.astype(np.int32), ends), shape=(matrix.n_reads, matrix.n_kmers))


def sparse_seeds(seeds: Seeds, n_reads: int) -> sparse.csr_array:
    """The candidates as an array of shape (n_reads, n_reads), int32: the k-mers that query (row) and target (column) share.

    Those that have a seed; where a pair has one on either strand, the k-mers of both are added up.
    """
    best = seeds.rank == 0
    pair = seeds.query_id[best], seeds.target_id[best]
    return sparse.coo_array((seeds.n_shared[best], pair), shape=(n_reads, n_reads)).tocsr()
