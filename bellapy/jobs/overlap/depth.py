"""Stage 3b: the depth along the reads -> which k-mers with many copies link reads, and what depth is usual for each read.

A k-mer occurs more often than the others for one of two reasons: it lies in a repeat, or in a molecule that was sequenced
deeper than the others (a plasmid, an organelle, an amplicon, the main organism of a mixture). The difference is local.
Where a repeat ends, the depth changes in a step, and all reads across this place show the step.  In a deep molecule the
depth does not change.

1. A read is mixed if the depth of a kilobase is more than STEP times that of the kilobase beside it.
2. The step is believed if the k-mers on its low side lie in mixed reads too: at the joint of a chimera, or where a read was
   read badly, this read is the only one.
3. High stretches of mixed reads are repeats.  So are stretches of other reads whose k-mers lie in such stretches, or return
   in the same read: reads inside a long repeat show no step themselves.
4. A k-mer above the upper bound links reads where most of its places are in deep reads and in no repeat.  Where very many
   places are deep, the bound itself is wrong, and being outside repeats is enough.  If there are more of these k-mers than
   overlaps need, some are left out, in the order of their hash.  In a repeat, k-mers that are far rarer than those around
   them link reads too: they set its copies apart.
5. The depth of a read is compared with what is usual, or with its own level where that is far from usual.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.records import DepthProfile, KmerMatrix
from bellapy.seeding.entries import place_of, reverse_of
from bellapy.seeding.kmer_matrix import next_column, read_at

WINDOW_BINS = 4  # bins of the depth profile: about a kilobase
STEP = 5.0  # a linear molecule's depth grows from 0 at its end, threefold from one kilobase to the next
LEAST_KMERS = 8  # in a window; fewer do not show its depth
UNIT = 1 << 16  # shares are added up as integers in these units, so that the order of adding does not matter
BELIEVED = UNIT // 5  # share of mixed reads on the low side of a step
VOTE_BINS = 32
VOTED = UNIT // 256  # share of places in repeats that makes a stretch one; a row of 150 copies has as many at its ends
DEEP_SHARE = 0.25  # of the k-mers expected to be correct: a stretch with so many above the upper bound is deep


class Bins(NamedTuple):
    """Where the bins of a DepthProfile lie; `starts` and `table` are those of a KmerMatrix."""

    starts: np.ndarray
    table: np.ndarray
    offsets: np.ndarray
    width: int


ORDINARY, DEEP, APART_KIND, REPEAT = range(4)  # kinds of k-mers: see column_kind
N_KINDS = 4


@njit
def find_steps(offsets, n_kmers, copies, window, step, least, low):
    """low[r] = the lowest depth beside a step of read r, or infinity where it has none.

    offsets, n_kmers, copies : of a DepthProfile.  window : bins on either side of a step.  step : of the depth, a factor.
    least : k-mers of a window.  low : (n_reads,) float64, filled.
    """
    for r in range(low.size):
        first, last = offsets[r], offsets[r + 1]
        low[r] = np.inf
        for b in range(first + window, last - window + 1):
            n_left = total_left = n_right = total_right = 0
            for x in range(window):
                n_left += np.int64(n_kmers[b - 1 - x])
                total_left += np.int64(copies[b - 1 - x])
                n_right += np.int64(n_kmers[b + x])
                total_right += np.int64(copies[b + x])
            if n_left < least or n_right < least:
                continue
            left, right = total_left / n_left, total_right / n_right
            if max(left, right) > step * min(left, right):
                low[r] = min(low[r], left, right)


@njit
def mark_high(offsets, n_kmers, copies, low, step, repeat):
    """repeat[b] = 1 for the bins of mixed reads that are more than `step` times as deep as their low stretches.

    offsets, n_kmers, copies : of a DepthProfile.  low : of `find_steps`.  repeat : (n_bins,) uint8, filled.
    """
    for r in range(low.size):
        for b in range(offsets[r], offsets[r + 1]):
            repeat[b] = low[r] < np.inf and copies[b] > step * low[r] * n_kmers[b]


@njit
def bin_of(place, bins):
    """The read of a place and its bin; bins : Bins."""
    r = read_at(place, bins.starts, bins.table)
    return r, bins.offsets[r] + (place - bins.starts[r]) // bins.width


@njit
def add_company(entries, begin, end, bins, low, repeat, unit, company):
    """For the low stretches of mixed reads: company[0, r] += share of mixed reads among the other places of its k-mers.

    company[1, r] counts these k-mers.  Columns that begin in [begin, end).
    entries : of a KmerMatrix.  bins : Bins.  low : of `find_steps`.  repeat : (n_bins,) uint8.  unit : a share of 1.
    company : (2, n_reads) int64.
    """
    first = next_column(entries, begin)
    while first < end:
        last = next_column(entries, first + 1)
        mixed = 0
        for i in range(first, last):
            mixed += low[bin_of(place_of(entries[i]), bins)[0]] < np.inf
        if mixed:
            share = unit * (mixed - 1) // (last - first - 1)
            for i in range(first, last):
                r, b = bin_of(place_of(entries[i]), bins)
                if low[r] < np.inf and not repeat[b]:
                    company[0, r] += share
                    company[1, r] += 1
        first = last


@njit
def add_votes(entries, begin, end, bins, upper, repeat, unit, votes):
    """votes[0, b] += share of places in repeats, for the k-mers above `upper` in bin b; votes[1, b] counts these k-mers.

    A place is in a repeat if its bin is, or if the read shows the k-mer once more, the same way round.
    entries, begin, end, bins, repeat, unit : as in `add_company`.  votes : (2, n_bins) int64.
    """
    first = next_column(entries, begin)
    while first < end:
        last = next_column(entries, first + 1)
        if last - first > upper:
            n, before, way = 0, -1, -1
            for i in range(first, last):
                r, b = bin_of(place_of(entries[i]), bins)
                its_way = np.int64(reverse_of(entries[i]))
                n += repeat[b] or (r == before and its_way == way)
                before, way = r, its_way
            share = unit * n // (last - first)
            for i in range(first, last):
                b = bin_of(place_of(entries[i]), bins)[1]
                votes[0, b] += share
                votes[1, b] += 1
        first = last


def _sum_over(kernel, parts: Iterable[KmerMatrix], shape: tuple[int, int], threads: int, *arguments) -> np.ndarray:
    """Sum of what `kernel` adds up over the columns of all parts, int64 of that shape."""
    total = np.zeros(shape, np.int64)
    for matrix in parts:

        def add(piece, entries=matrix.entries):
            numbers = np.zeros(shape, np.int64)
            kernel(entries, *piece, *arguments, numbers)
            return numbers

        total += sum(map_threads(add, even_ranges(len(matrix.entries), threads), threads), np.zeros(shape, np.int64))
    return total


def window_sums(values: np.ndarray, offsets: np.ndarray, window: int) -> np.ndarray:
    """Sum over the `window` bins around each bin, clipped to its read."""
    lengths, bins = np.diff(offsets), np.arange(len(values))
    total = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    begin = np.maximum(np.repeat(offsets[:-1], lengths), bins - window // 2)
    end = np.minimum(np.repeat(offsets[1:], lengths), bins + (window + 1) // 2)
    return total[end] - total[begin]


def judge_stretches(
    parts: Iterable[KmerMatrix], bins: Bins, profile: DepthProfile, upper: int, correct: float, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Which bins of the profile are repeats, and which are deep and no repeats: (n_bins,) bool each.

    Parameters
    ----------
    parts : all k-mers that occur more than once, in any number of matrices; gone through several times.
    bins : of the profile.
    upper : columns with more entries tell of repeats.
    correct : k-mers per base that are expected to be without errors, of those that were counted.
    """
    offsets, n_reads = profile.offsets, len(profile.offsets) - 1
    low, repeat = np.empty(n_reads), np.zeros(len(profile.n_kmers), np.uint8)
    find_steps(offsets, profile.n_kmers, profile.copies, WINDOW_BINS, STEP, LEAST_KMERS, low)
    if np.isfinite(low).any():
        mark_high(offsets, profile.n_kmers, profile.copies, low, STEP, repeat)
        company = _sum_over(add_company, parts, (2, n_reads), threads, bins, low, repeat, UNIT)
        low[company[0] < BELIEVED * company[1]] = np.inf
        mark_high(offsets, profile.n_kmers, profile.copies, low, STEP, repeat)
    votes = _sum_over(add_votes, parts, (2, len(repeat)), threads, bins, upper, repeat, UNIT)
    n_high = window_sums(votes[1], offsets, WINDOW_BINS)
    room = profile.width * window_sums(np.ones(len(repeat), np.int64), offsets, WINDOW_BINS)
    deep = n_high > DEEP_SHARE * correct * room
    voted = window_sums(votes[0], offsets, VOTE_BINS) > VOTED * window_sums(votes[1], offsets, VOTE_BINS)
    is_repeat = (repeat > 0) | (voted & deep)
    return is_repeat, deep & ~is_repeat


class Tests(NamedTuple):
    """What a column has to be to link reads.

    ORDINARY : it has up to `upper` entries.  DEEP : up to `most`, more than half in bins that are `sound`.  APART : up to
    `apart_places`, and `apart` times fewer than the mean `level` of the bins they lie in, most of them the only one in their
    read.  REPEAT : none of these.

    sound : (n_bins,) bool.  level : (n_bins,) float32, mean count of a bin's k-mers.
    """

    bins: Bins
    upper: int
    most: int
    sound: np.ndarray
    level: np.ndarray
    apart: int
    apart_places: int


@njit
def column_kind(entries, first, last, tests):
    """What a column, entries[first:last], may do by tests (Tests), and how many of its entries lie in sound bins."""
    bins, upper, most, sound, level, apart, apart_places = tests
    size = last - first
    if size <= upper:
        return ORDINARY, 0
    n_sound, n_back, levels, before = 0, 0, 0.0, -1
    for i in range(first, last):
        r, b = bin_of(place_of(entries[i]), bins)
        n_sound += sound[b]
        n_back += r == before
        levels += level[b]
        before = r
    if 2 * n_sound > size and size <= most:
        return DEEP, n_sound
    if size <= apart_places and apart * size * size <= levels and 2 * n_back < size:
        return APART_KIND, n_sound
    return REPEAT, n_sound


@njit
def survey_columns(entries, tests, columns, products):
    """Add columns and products of each kind to columns and products; return the entries of deep columns in sound bins.

    entries : of a KmerMatrix.  tests : Tests.  columns, products : (N_KINDS,) int64.
    """
    n_sound = first = 0
    while first < entries.size:
        last = next_column(entries, first + 1)
        kind, its_sound = column_kind(entries, first, last, tests)
        columns[kind] += 1
        products[kind] += (last - first) * (last - first - 1) // 2
        n_sound += its_sound if kind == DEEP else 0
        first = last
    return n_sound


@njit
def keep_linking(entries, tests, one_in, kept, n_apart):
    """Move the columns that link reads to the front of `entries`; return how many entries they have.

    entries : of a KmerMatrix.  tests : Tests.
    Of each kind one column in one_in[kind] is kept.  kept : (2, N_KINDS) int64, columns of each kind that are kept, all;
    both grow, and those in matrices before this one are counted in the second.
    n_apart : (n_reads,) int64, entries of apart columns, kept or not.
    """
    n = first = 0
    while first < entries.size:
        last = next_column(entries, first + 1)
        kind = column_kind(entries, first, last, tests)[0]
        keep = kind != REPEAT and kept[1, kind] % one_in[kind] == 0
        kept[0, kind] += keep
        kept[1, kind] += 1
        if kind == APART_KIND:
            for i in range(first, last):
                n_apart[bin_of(place_of(entries[i]), tests.bins)[0]] += 1
        if keep:
            for i in range(first, last):
                entries[n] = entries[i]
                n += 1
        first = last
    return n


def reference_depth(profile: DepthProfile, repeat: np.ndarray) -> tuple[float, np.ndarray]:
    """The level of most bases, and that of the reads whose own, repeats left out, is more than STEP times higher or lower.

    The level is the mean count of repeated k-mers; (n_reads,) float64, 0 for the other reads.  A read of which most is
    repeat has none of its own.
    """
    sizes = np.diff(profile.offsets)
    read = np.repeat(np.arange(len(sizes)), sizes)
    outside = ~repeat
    n_kmers = np.bincount(read, profile.n_kmers * outside, len(sizes))
    copies = np.bincount(read, profile.copies * outside, len(sizes))
    known = (n_kmers > 0) & (2 * np.bincount(read, outside, len(sizes)) > sizes)
    if not known.any():
        return 0.0, np.zeros(len(sizes))
    level = np.where(known, copies / np.maximum(n_kmers, 1), 0)
    order = np.argsort(level[known], kind="stable")
    reached = np.cumsum(sizes[known][order])
    usual = float(level[known][order][np.searchsorted(reached, reached[-1] / 2)])
    own = known & ((level > STEP * usual) | (STEP * level < usual))
    return usual, np.where(own, level, 0)
