"""Stage 3: places of reliable k-mers -> the sparse matrix A, reads x k-mers, and the depth profile of the reads."""

from __future__ import annotations

from itertools import product

import numpy as np

from bellapy.compute.jit import njit, njit_inner, prefetch
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.records import DepthProfile, KmerMatrix, ReadSet
from bellapy.records.kmers import TABLE_SHIFT, Held, HeldMatrix
from bellapy.seeding.entries import is_first, place_of
from bellapy.seeding.kmers import KmerCounts

U = np.uint64
U1 = U(1)
PROFILE_WIDTH = 256  # bases
LOOKED_UP = 256  # places, before their bins are written to
MOST_SUMS = 4  # for each bin: no more memory than what judges the profile takes
MOST_COPIES = 1 << 15
"""Counted of a k-mer in the profile.  Where reads of nothing but A are many, a short run of A in other sequence has no more
weight than this, and the k-mers around it do not look rare beside it.  The sum of a bin has 32 bits."""


@njit_inner
def next_column(entries, at):
    """The first entry from `at` on that begins a column, or the number of entries."""
    while at < entries.size and not is_first(entries[at]):
        at += 1
    return at


@njit_inner
def next_large(entries, at, end, upper):
    """The first column with more than `upper` entries that begins in [at, end), or `end`; a column begins at `at`."""
    n_before = np.int64(-1)  # entries of the same column
    for i in range(at, min(end + upper, entries.size)):  # one branch, seldom taken: there is no telling where columns end
        n_before = 0 if is_first(entries[i]) else n_before + 1
        if n_before == upper:
            return i - upper
    return end


@njit_inner
def read_at(place, starts, table):
    """The read that holds a place, int64.  `starts` and `table` are those of a KmerMatrix."""
    return np.int64(unsigned_read_at(place, starts, table))


@njit_inner
def unsigned_read_at(place, starts, table):
    """The same as uint64, which is a faster index: Numba skips the check for negative ones."""
    r = U(table[U(place) >> U(TABLE_SHIFT)])
    r += U(starts[r + U1] <= place)  # without a branch: there is no telling, and most reads are longer than a table's step
    while starts[r + U1] <= place:
        r += U1
    return r


def build_kmer_matrix(
    counts: KmerCounts, reads: ReadSet, k: int, upper: int, *, seed_length: int | None = None
) -> KmerMatrix:
    """The matrix A of the k-mers in `counts`, whose arrays stay as they are; longer columns than `upper` link no reads."""
    starts, entries = np.append(reads.starts, len(reads.codes)), counts.entries
    shape = starts, upper, k if seed_length is None else seed_length
    if isinstance(entries, Held):
        return HeldMatrix(k, counts.n_kmers, entries, *shape)
    return KmerMatrix(k, counts.n_kmers, entries[:], *shape)  # a view, which becomes read-only


@njit_inner
def _add_up(places, more, n, starts, table, offsets, sums):
    """Add more[i], uint64, to the sum of the bin of places[i], int64, for the first n; `places` is overwritten.

    starts, table, offsets, sums : as in add_to_profile.
    """
    for i in range(U(n)):
        r = unsigned_read_at(places[i], starts, table)
        places[i] = offsets[r] + np.int64(U(places[i] - starts[r]) // U(PROFILE_WIDTH))
        prefetch(sums, places[i])
    for i in range(U(n)):
        sums[U(places[i])] += more[i]


@njit
def add_to_profile(entries, begin, end, low, high, starts, table, offsets, sums):
    """Count the entries whose places lie in [low, high), of columns that begin in [begin, end).

    entries, starts, table : of a KmerMatrix.  offsets : of a DepthProfile.
    sums : (n_bins,) uint64, grows: n_kmers of a DepthProfile in the lower half of a word, copies in the upper one.  Of large
        sets no bin is in the cache, so two arrays would be waited for twice.
    """
    places, more = np.empty(LOOKED_UP, np.int64), np.empty(LOOKED_UP, np.uint64)
    n, first, end = np.int64(0), next_column(entries, begin), next_column(entries, end)
    while first < end:
        last = next_column(entries, first + 1)
        its_more = U(min(last - first, MOST_COPIES)) << U(32) | U(1)
        for i in range(first, last):
            place = place_of(entries[i])
            places[n], more[n] = place, its_more  # without a branch, as in seeding/kmers.py
            n += low <= place < high
            if n == LOOKED_UP:  # many at once: a sum that is written to holds up what is read after it
                _add_up(places, more, n, starts, table, offsets, sums)
                n = 0
        first = last
    _add_up(places, more, n, starts, table, offsets, sums)


def read_ranges(starts: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Cut the places of all reads into at most `parts` ranges of whole reads, of about as many places.

    starts : of a KmerMatrix.
    """
    wanted = np.linspace(0, int(starts[-1]), parts + 1).astype(np.int64)[1:-1]
    edges = np.unique(np.concatenate(([0], starts[np.searchsorted(starts, wanted)], starts[-1:])))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def profile_depth(matrix: KmerMatrix, reads: ReadSet, threads: int = 1) -> DepthProfile:
    """Count the k-mers of A, and add up in how many places they occur, along every read.

    Some groups of threads share the columns, each with sums of its own; those of a group share the reads.
    """
    offsets = np.zeros(len(reads) + 1, np.int64)
    np.cumsum(reads.lengths // PROFILE_WIDTH + 1, out=offsets[1:])
    bins = matrix.starts, matrix.read_table, offsets
    if isinstance(matrix, HeldMatrix):
        n_kmers, copies = matrix.entries.profile(*bins, PROFILE_WIDTH)
    else:
        n_groups = min(threads, MOST_SUMS)
        sums = np.zeros((n_groups, int(offsets[-1])), np.uint64)
        columns, places = even_ranges(len(matrix.entries), n_groups), read_ranges(matrix.starts, -(-threads // n_groups))

        def count(task):
            (group, its_columns), its_places = task
            add_to_profile(matrix.entries, *its_columns, *its_places, *bins, sums[group])

        map_threads(count, product(enumerate(columns), places), threads)
        total = sums.sum(axis=0)
        n_kmers, copies = total.astype(np.uint32), (total >> U(32)).astype(np.uint32)
    unknown = np.zeros(len(reads))
    return DepthProfile(PROFILE_WIDTH, offsets, n_kmers, copies, unknown.astype(np.float32), unknown.astype(np.uint8))
