"""Stage 3: places of reliable k-mers -> the sparse matrix A, reads x k-mers, and the depth profile of the reads."""

from __future__ import annotations

import numpy as np

from bellapy.jit import njit
from bellapy.kmers import KmerCounts
from bellapy.parallel import even_ranges, map_threads
from bellapy.records import DepthProfile, KmerMatrix, ReadSet

TABLE_SHIFT = 10  # one entry of the read table for so many bits of place
PROFILE_WIDTH = 256  # bases


@njit
def locate(places, begin, end, starts, table, read_id, position, strand):
    """Turn places in the concatenated reads into (read, position, strand).

    table[p >> TABLE_SHIFT] is a read that begins at place p or before.
    """
    for i in range(begin, end):
        place = np.int64(places[i] >> np.uint64(1))
        r = table[place >> TABLE_SHIFT]
        while r + 1 < starts.size and starts[r + 1] <= place:
            r += 1
        read_id[i] = r
        position[i] = place - starts[r]
        strand[i] = 1 - 2 * np.int8(places[i] & np.uint64(1))


def build_kmer_matrix(
    counts: KmerCounts, reads: ReadSet, k: int, upper: int, *, seed_length: int | None = None, threads: int = 1
) -> KmerMatrix:
    """The matrix A of the k-mers in `counts`; columns with more than `upper` entries will link no reads."""
    n = len(counts.places)
    read_id, position, strand = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int8)
    marks = np.arange((len(reads.codes) >> TABLE_SHIFT) + 1, dtype=np.int64) << TABLE_SHIFT
    table = np.maximum(np.searchsorted(reads.starts, marks, side="right") - 1, 0).astype(np.int32)
    map_threads(
        lambda piece: locate(counts.places, *piece, reads.starts, table, read_id, position, strand),
        even_ranges(n, threads),
        threads,
    )
    indptr = np.zeros(len(counts.runs) + 1, np.int64)
    np.cumsum(counts.runs, out=indptr[1:])
    return KmerMatrix(len(reads), k, indptr, read_id, position, strand, upper, k if seed_length is None else seed_length)


@njit
def add_to_profile(indptr, begin, end, read_id, position, offsets, width, n_kmers, copies):
    for column in range(begin, end):
        count = indptr[column + 1] - indptr[column]
        for i in range(indptr[column], indptr[column + 1]):
            b = offsets[read_id[i]] + position[i] // width
            n_kmers[b] += np.uint32(1)
            copies[b] += np.uint32(count)


def profile_depth(matrix: KmerMatrix, reads: ReadSet) -> DepthProfile:
    """Count the k-mers of A, and add up in how many places they occur, along every read."""
    offsets = np.zeros(len(reads) + 1, np.int64)
    np.cumsum(reads.lengths // PROFILE_WIDTH + 1, out=offsets[1:])
    n_kmers, copies = np.zeros((2, int(offsets[-1])), np.uint32)
    add_to_profile(
        matrix.indptr, 0, matrix.n_kmers, matrix.read_id, matrix.position, offsets, PROFILE_WIDTH, n_kmers, copies
    )
    return DepthProfile(PROFILE_WIDTH, offsets, n_kmers, copies)
