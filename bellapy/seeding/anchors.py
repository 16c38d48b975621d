"""Anchors: places where a read and the reference share a minimizer, one sorted array for many reads.

An anchor is one word, [ read | strand | place | query position ]; the query position is the k-mer's start on the read, or on
its reverse complement where strand is 1, so that along a good alignment place and query position both grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, prefetch, put
from bellapy.seeding.index import Lookup, find_run
from bellapy.seeding.minimizers import find_minimizers, make_room

U = np.uint64
AHEAD = 16  # minimizers between asking for a cache line and using it
RESCUE_SPAN = 500  # bases without any seed, from which on a repeated one is taken
RESCUE_COPIES = 4095
MOST_PER_BASE = 16  # anchors of a read: repeats with more are looked up less
ALL = U(0), U(0xFFFFFFFFFFFFFFFF)  # the range of all hashes
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
def count_words(words, begin, stop, shift, most):
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


class Found(NamedTuple):
    """The minimizers of some reads, and where their words stand.

    hashes, marks : (n,) uint64 and int64, as of `find_minimizers`.  ends : (n_reads + 1,) int64, of each read's ones.
    firsts, counts : (n,) int64, the first word of each and how many are to be used; RESCUE_COPIES + 1: more than that.
    """

    hashes: np.ndarray
    marks: np.ndarray
    ends: np.ndarray
    firsts: np.ndarray
    counts: np.ndarray


@njit
def find_in_reads(codes, at, lengths, k, window):
    """The minimizers of all reads, Found, which are not looked up yet.

    at, lengths : (n_reads,) int64, where each read begins in `codes`, and its bases.
    """
    room, longest = make_room(), 1
    for read in range(len(at)):
        longest = max(longest, lengths[read] + 1)
    hashes, marks = np.empty(longest, np.uint64), np.empty(longest, np.int64)
    all_hashes = np.empty(max(1024, 3 * lengths.sum() // (window + 1)), np.uint64)
    all_marks, ends, n = np.empty(len(all_hashes), np.int64), np.zeros(len(at) + 1, np.int64), 0
    for read in range(len(at)):
        m = find_minimizers(codes, at[read], at[read] + lengths[read], k, window, hashes, marks, room)
        if n + m > len(all_hashes):
            more, more_marks = np.empty(2 * (n + m), np.uint64), np.empty(2 * (n + m), np.int64)
            put(more, 0, all_hashes, 0, n)
            put(more_marks, 0, all_marks, 0, n)
            all_hashes, all_marks = more, more_marks
        put(all_hashes, n, hashes, 0, m)
        put(all_marks, n, marks, 0, m)
        n += m
        ends[read + 1] = n
    return Found(all_hashes[:n], all_marks[:n], ends, np.zeros(n, np.int64), np.zeros(n, np.int64))


@njit
def look_up(lookup, found, low, high):
    """Fill `firsts` and `counts` of those minimizers in `found` (Found) whose hashes are from `low` to `high`, uint64.

    lookup : Lookup.
    """
    shift, rest = U(lookup.place_bits), U(lookup.rest_bits)
    hashes, n = found.hashes, len(found.hashes)
    for x in range(min(2 * AHEAD, n)):
        prefetch(lookup.starts, hashes[x] >> rest)
    for x in range(-AHEAD, n):
        if x + 2 * AHEAD < n:
            prefetch(lookup.starts, hashes[x + 2 * AHEAD] >> rest)
        if x + AHEAD < n and low <= hashes[x + AHEAD] <= high:
            prefetch(lookup.words, np.int64(lookup.starts[hashes[x + AHEAD] >> rest]))
        if x < 0 or not low <= hashes[x] <= high:
            continue
        begin, stop = find_run(lookup, hashes[x])
        found.firsts[x] = begin
        found.counts[x] = count_words(lookup.words, begin, stop, shift, RESCUE_COPIES) if stop > begin else 0


@njit_inner
def cutoff_of(counts, n, length, cutoff):
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
def choose_of_read(counts, marks, n, length, k, cutoff):
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
def choose_seeds(found, lengths, k, cutoff):
    """Set the `counts` of minimizers that are not to be used to 0; return each read's repeated bases, (n_reads,) int64.

    found : Found, looked up.  lengths : (n_reads,) int64.  cutoff : of Lookup.
    """
    repeated = np.zeros(len(lengths), np.int64)
    for read in range(len(lengths)):
        begin, end = found.ends[read], found.ends[read + 1]
        counts, marks, n = found.counts[begin:end], found.marks[begin:end], end - begin
        repeated[read] = choose_of_read(counts, marks, n, lengths[read], k, cutoff_of(counts, n, lengths[read], cutoff))
    return repeated


@njit_inner
def anchor_of(word, mark, read, length, k, lookup, layout):
    """The anchor of a minimizer of a read and one of its words, uint64 both.

    mark : of the minimizer (`find_minimizers`).  length : of the read.  lookup : Lookup.  layout : Layout.
    """
    there, forward = np.int64(word & ((U(1) << U(lookup.place_bits)) - U(1))), mark >> 1
    strand = (there ^ mark) & 1
    q = length - k - forward if strand else forward
    track = U((read << 1 | strand) << layout.place_bits | (there >> 1))
    return track << U(layout.q_bits) | U(q)


@njit
def collect_anchors(lookup, found, lengths, k, layout, low, high):
    """Anchors of those minimizers in `found` whose hashes are from `low` to `high`, uint64, not sorted.

    lookup : Lookup.  found : Found, chosen.  lengths : (n_reads,) int64.  layout : Layout.
    """
    total = 0
    for x in range(len(found.hashes)):
        total += found.counts[x] if low <= found.hashes[x] <= high else 0
    anchors, n = np.empty(total, np.uint64), 0
    for read in range(len(lengths)):
        for x in range(found.ends[read], found.ends[read + 1]):
            if x + AHEAD < len(found.counts) and found.counts[x + AHEAD] > 0:
                prefetch(lookup.words, found.firsts[x + AHEAD])
            if found.counts[x] == 0 or not low <= found.hashes[x] <= high:
                continue
            for y in range(found.firsts[x], found.firsts[x] + found.counts[x]):
                anchors[n] = anchor_of(lookup.words[y], found.marks[x], read, lengths[read], k, lookup, layout)
                n += 1
    return anchors


def find_anchors(
    lookup: Lookup, k: int, window: int, codes: np.ndarray, at: np.ndarray, lengths: np.ndarray, layout: Layout
) -> tuple[np.ndarray, np.ndarray]:
    """Anchors of all reads, not sorted, and the repeated bases of each read, (n_reads,) int64.

    at, lengths : (n_reads,) int64, where each read begins in `codes`, and its bases.
    """
    found = find_in_reads(codes, at, lengths, k, window)
    look_up(lookup, found, ALL[0], ALL[1])
    repeated = choose_seeds(found, lengths, k, lookup.cutoff)
    return collect_anchors(lookup, found, lengths, k, layout, ALL[0], ALL[1]), repeated
