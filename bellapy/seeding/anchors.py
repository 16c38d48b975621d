"""Anchors: places where a read and the reference share a minimizer, one sorted array for many reads.

An anchor is one word, [ read | strand | place | query position ]; the query position is the k-mer's start on the read, or on
its reverse complement where strand is 1, so that along a good alignment place and query position both grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, prefetch, put
from bellapy.seeding.index import find_run
from bellapy.seeding.minimizers import find_minimizers, make_room

U = np.uint64
AHEAD = 16  # minimizers between asking for a cache line and using it
RESCUE_SPAN = 500  # bases without any seed, from which on a repeated one is taken
RESCUE_COPIES = 4095
MOST_PER_BASE = 16  # anchors of a read: repeats with more are looked up less
REACH = 1 << 17
"""Longer than any gap that chains may span: keeps the places of different strands and reads apart."""


class Layout(NamedTuple):
    """Bits of an anchor: of the query position, of the place."""

    q_bits: int
    place_bits: int

    @property
    def most_reads(self) -> int:
        return 1 << max(0, 63 - self.q_bits - self.place_bits)


def layout_for(longest_read: int, n_codes: int) -> Layout:
    return Layout(max(1, int(longest_read).bit_length()), int(n_codes + REACH).bit_length())


@njit_inner
def query_of(anchor, layout):
    """The query position of an anchor, uint64; layout : Layout."""
    return np.int64(anchor & ((U(1) << U(layout.q_bits)) - U(1)))


@njit_inner
def track_of(anchor, layout):
    """Read, strand and place in one number: anchors of one read and strand differ by the difference of their places.

    anchor : uint64.  layout : Layout.
    """
    return np.int64(anchor >> U(layout.q_bits))


@njit_inner
def place_of(anchor, layout):
    """The place of an anchor, uint64, in the reference's codes; layout : Layout."""
    return np.int64((anchor >> U(layout.q_bits)) & ((U(1) << U(layout.place_bits)) - U(1)))


@njit_inner
def strand_of(anchor, layout):
    """0 or 1, the strand of an anchor, uint64; layout : Layout."""
    return np.int64((anchor >> U(layout.q_bits + layout.place_bits)) & U(1))


@njit_inner
def read_of(anchor, layout):
    """The read of an anchor, uint64; layout : Layout."""
    return np.int64(anchor >> U(layout.q_bits + layout.place_bits + 1))


@njit_inner
def _count(words, begin, stop, shift, most):
    """Words from `begin` on that are of its minimizer; most + 1 if there are more than `most`.

    words : uint64, of a Lookup, up to the end of the bucket, `stop`.  shift : uint64, bits below the hash.
    """
    value = words[begin] >> shift
    if begin + most < stop and words[begin + most] >> shift == value:
        return most + 1
    low, high = begin + 1, min(stop, begin + most)
    while low < high:
        middle = (low + high) // 2
        if words[middle] >> shift == value:
            low = middle + 1
        else:
            high = middle
    return low - begin


@njit_inner
def _look_up(lookup, hashes, n, firsts, counts):
    """The first word and the number of words of every minimizer; RESCUE_COPIES + 1: more than that.

    lookup : Lookup.  hashes : (n or more,) uint64.  firsts, counts : (n or more,) int64, filled.
    """
    shift, rest = U(lookup.place_bits), U(lookup.rest_bits)
    for x in range(min(2 * AHEAD, n)):
        prefetch(lookup.starts, hashes[x] >> rest)
    for x in range(-AHEAD, n):
        if x + 2 * AHEAD < n:
            prefetch(lookup.starts, hashes[x + 2 * AHEAD] >> rest)
        if x + AHEAD < n:
            prefetch(lookup.words, np.int64(lookup.starts[hashes[x + AHEAD] >> rest]))
        if x < 0:
            continue
        begin, stop = find_run(lookup, hashes[x])
        firsts[x] = begin
        counts[x] = _count(lookup.words, begin, stop, shift, RESCUE_COPIES) if stop > begin else 0


@njit_inner
def _cutoff_of(counts, n, length, cutoff):
    """The largest bound on copies, of `cutoff` and its halves, with which a read has no more than MOST_PER_BASE anchors.

    counts : (n or more,) int64, of the read's n minimizers.  length : of the read.
    """
    while cutoff > 0:
        total = 0
        for x in range(n):
            total += counts[x] if counts[x] <= cutoff else 0
        if total <= MOST_PER_BASE * length:
            break
        cutoff //= 2
    return cutoff


@njit_inner
def _choose(counts, marks, n, length, k, cutoff):
    """Set the counts of repeated minimizers to 0, but for the rarest of every long stretch without others.

    Returns the bases that minimizers left out lie on.
    """
    repeated, covered = 0, np.int64(0)
    since, rarest = np.int64(0), -1
    for x in range(n + 1):
        position = marks[x] >> 1 if x < n else np.int64(length)
        is_used = x < n and 0 < counts[x] <= cutoff
        if rarest >= 0 and (is_used or x == n or position - since >= RESCUE_SPAN):
            if position - since >= RESCUE_SPAN and counts[rarest] <= RESCUE_COPIES:
                counts[rarest] = -counts[rarest]  # taken
                since = marks[rarest] >> 1
            rarest = -1
        if is_used:
            since = position
        elif x < n and counts[x] > 0:
            repeated += max(np.int64(0), position + k - max(covered, position))
            covered = position + k
            if rarest < 0 or counts[x] < counts[rarest]:
                rarest = x
    for x in range(n):
        counts[x] = -counts[x] if counts[x] < 0 else counts[x] if counts[x] <= cutoff else 0
    return repeated


@njit
def find_anchors(lookup, k, window, codes, at, lengths, layout):
    """Anchors of all reads, not sorted, and the repeated bases of each read, (n_reads,) int64.

    at, lengths : (n_reads,) int64, where each read begins in `codes`, and its bases.
    """
    longest = lengths.max() + 1
    hashes, marks = np.empty(longest, np.uint64), np.empty(longest, np.int64)
    firsts, counts = np.empty(longest, np.int64), np.empty(longest, np.int64)
    room = make_room()
    found, n = np.empty(max(1024, lengths.sum() // 4), np.uint64), 0
    repeated = np.zeros(len(at), np.int64)
    for read in range(len(at)):
        length = lengths[read]
        m = find_minimizers(codes, at[read], at[read] + length, k, window, hashes, marks, room)
        _look_up(lookup, hashes, m, firsts, counts)
        repeated[read] = _choose(counts, marks, m, length, k, _cutoff_of(counts, m, length, lookup.cutoff))
        total = counts[:m].sum()
        if n + total > len(found):
            more = np.empty(2 * len(found) + total, np.uint64)
            put(more, 0, found, 0, n)
            found = more
        for x in range(m):
            forward = marks[x] >> 1
            for y in range(firsts[x], firsts[x] + counts[x]):
                mark = np.int64(lookup.words[y] & ((U(1) << U(lookup.place_bits)) - U(1)))
                strand = (mark ^ marks[x]) & 1
                q = length - k - forward if strand else forward
                track = U((read << 1 | strand) << layout.place_bits | (mark >> 1))
                found[n] = track << U(layout.q_bits) | U(q)
                n += 1
    return found[:n], repeated
