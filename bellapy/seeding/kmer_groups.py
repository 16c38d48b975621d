"""Equal k-mers of a partition are brought together, and those that occur often enough become entries of the matrix.

The words are laid out as kmers.py says.  Inside a partition a bit filter drops nearly all singletons, and a counting sort
brings equal k-mers together in order of place.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.sorting import sort_few
from bellapy.seeding.entries import pack_entry

U = np.uint64
U0, U1, U2, U3, U6, U63 = (U(x) for x in (0, 1, 2, 3, 6, 63))  # uint64 with a bare int is int64 or float64 in Numba
BUCKET_SORT_LIMIT = 64  # beyond, insertion sort would be slow


@njit_inner
def insertion_sort(words, start, end):
    """Sort words[start:end], uint64."""
    first = U(start)
    for i in range(first + U1, U(end)):
        word, j = words[i], i
        while j > first and words[j - U1] > word:
            words[j] = words[j - U1]
            j -= U1
        words[j] = word


@njit_inner
def _drop_singletons(words, start, end, shift, seen):
    """Move the words whose hash prefix occurs more than once to the front of [start, end); return where they end.

    words : uint64.  shift : bits below the prefix.  seen : uint64 scratch, in turn a word of bits for prefixes that occur,
        and one for those that do so twice.
    """
    seen[:] = U0
    for i in range(U(start), U(end)):
        g = words[i] >> shift
        bit, at = U1 << (g & U63), (g >> U6) << U1
        seen[at + U1] |= seen[at] & bit
        seen[at] |= bit
    n = U(start)
    for i in range(U(start), U(end)):
        g = words[i] >> shift
        words[n] = words[i]
        n += (seen[((g >> U6) << U1) + U1] >> (g & U63)) & U1
    return np.int64(n)


@njit
def _bucket_sort(words, start, end, shift, counts, out):
    """Sort words[start:end] into out[: end - start]: counting sort on the bits above `shift`, then inside each bucket.

    words, out : uint64.  counts : (n_buckets + 1,) int64 scratch.
    """
    counts[:] = 0
    for i in range(U(start), U(end)):
        counts[(words[i] >> shift) + U1] += 1
    for b in range(counts.size - 1):
        counts[b + 1] += counts[b]
    for i in range(U(start), U(end)):
        b = words[i] >> shift
        out[counts[b]] = words[i]
        counts[b] += 1
    at = np.int64(0)
    for b in range(counts.size - 1):  # counts[b] is now the end of bucket b
        if counts[b] - at > BUCKET_SORT_LIMIT:
            sort_few(out[at : counts[b]], counts[b] - at)
        else:
            insertion_sort(out, at, counts[b])
        at = counts[b]


@njit_inner
def _canonical(codes, start, k):
    """The canonical k-mer at `start` of codes, uint8, as `kmers.scatter` computes it."""
    forward, backward = U0, U0
    for i in range(k):
        c = U(codes[start + i])
        forward = (forward << U2) | c
        backward |= (U3 - c) << U(2 * i)
    return min(forward, backward)


@njit_inner
def _split_run(words, start, end, codes, layout):
    """Bring equal k-mers together in words[start:end], of equal hash bits, where a word could not hold the whole hash.

    codes, layout : as in `kmers.count_partitions`.

    Return the end of the first group; the run is almost always one group.
    """
    place = (U1 << U(layout.place_bits)) - U1
    first = _canonical(codes, np.int64((words[start] >> U1) & place), layout.k)
    same = start + 1
    for i in range(start + 1, end):
        word = words[i]
        if _canonical(codes, np.int64((word >> U1) & place), layout.k) == first:
            for j in range(i, same, -1):  # stable, so that places stay in order
                words[j] = words[j - 1]
            words[same] = word
            same += 1
    return same


@njit_inner
def _collect_runs(words, n, codes, layout, lower, upper, spectrum, entries, n_entries):
    """Append the entries of the runs of equal k-mers that are `lower` to `upper` long; return entries and k-mers.

    words : (n or more,) uint64, sorted.  codes, layout : as in `kmers.count_partitions`.
    spectrum : int64, k-mers by count, grows.
    entries : of a KmerMatrix, n_entries of them filled.
    """
    to_hash = U(layout.place_bits + 1)
    low = (U1 << to_hash) - U1
    i, end, at, n_kmers = U0, U(n), U(n_entries), 0
    while i < end:
        j = i + U1
        while j < end and words[j] >> to_hash == words[i] >> to_hash:
            j += U1
        if layout.dropped_bits and j - i > U1:
            j = U(_split_run(words, np.int64(i), np.int64(j), codes, layout))
        count = np.int64(j - i)
        spectrum[min(count, spectrum.size - 1)] += 1
        if lower <= count <= upper:
            for x in range(i, j):
                place = words[x] & low
                entries[at] = pack_entry(place >> U1, U(x == i), place & U1)
                at += U1
            n_kmers += 1
        i = j
    return np.int64(at), n_kmers


@njit
def group_partitions(words, bounds, codes, layout, lower, upper, spectrum):
    """Group equal k-mers in each partition words[bounds[p]:bounds[p + 1]]; keep those with lower <= count <= upper.

    `spectrum[c]` counts distinct k-mers with c occurrences (its last entry: that many or more); its entry for 1 is short,
    since singletons are mostly dropped before they are seen.  The entries kept replace the words from bounds[0] on.  Return
    how many entries and k-mers there are.  codes, layout : as in `kmers.count_partitions`.
    """
    largest = 0
    for p in range(bounds.size - 1):
        largest = max(largest, bounds[p + 1] - bounds[p])
    bits = 0
    while (1 << bits) < largest:
        bits += 1
    filter_bits = max(6, min(layout.hash_bits, bits + 3))
    bucket_bits = max(1, min(layout.hash_bits, bits - 3))
    to_filter = U(layout.place_bits + 1 + max(0, layout.hash_bits - filter_bits))
    to_bucket = U(layout.place_bits + 1 + max(0, layout.hash_bits - bucket_bits))
    seen = np.empty(2 << (filter_bits - 6), np.uint64)
    counts, sorted_words = np.empty((1 << bucket_bits) + 1, np.int64), np.empty(largest, np.uint64)
    entries = words[bounds[0] :]  # never overtakes the words still to be read
    n_entries = n_kmers = np.int64(0)
    for p in range(bounds.size - 1):
        end = _drop_singletons(words, bounds[p], bounds[p + 1], to_filter, seen)
        _bucket_sort(words, bounds[p], end, to_bucket, counts, sorted_words)
        n_entries, more = _collect_runs(
            sorted_words, end - bounds[p], codes, layout, lower, upper, spectrum, entries, n_entries
        )
        n_kmers += more
    return n_entries, n_kmers
