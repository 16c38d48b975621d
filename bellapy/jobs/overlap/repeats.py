"""Stage 3b: the depth along the reads -> which k-mers with many copies link reads, and what depth is usual for each read.

A k-mer occurs more often than the others for one of two reasons: it lies in a repeat, or in a molecule that was sequenced
deeper than the others (a plasmid, an organelle, an amplicon, the main organism of a mixture). The difference is local.
Where a repeat ends, the depth changes in a step, and all reads across this place show the step.  In a deep molecule the
depth does not change.

1. Some reads show where a repeat ends, by a step that others show, too (depth_steps.py).
2. The high stretches of these reads are repeats.  So are stretches of other reads whose k-mers lie in such stretches: reads
   inside a long repeat show no step themselves.  A read of which most is such is in a long repeat as a whole.  Less of it
   is what a molecule has in common with others, such as an insertion element of a plasmid.  How many of a k-mer's reads
   have to be in high stretches follows from the share of reads that have some: a row of many copies has few ends, but
   where steps are everywhere, some joints of chimeras lie beside one.  One or two reads of a deep molecule say nothing:
   they may be such chimeras.  Where k-mers come again in their reads it is more likely an array: in a genome that is full
   of steps fewer of them are enough, or none.
3. The depth of a read is compared with what is usual, or with its own level where that is far from usual, or a few times
   higher and that of a molecule.

Reads may be a few times as deep as most, without a step in their depth.
They come from a repeat of a few copies that is longer than they are, or from a molecule with more copies than most, such as
a small plasmid.  Of a repeat some reads cross the border.  These show a step from usual depth to a higher one, and share the
k-mers of the high side with the reads within.  Of a molecule no read does, but for chimeras, and for repeats that it has in
common with others.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import numpy as np

from bellapy.compute.columns import share_runs, sum_runs
from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.threads import even_ranges, map_threads, shared_by
from bellapy.jobs.overlap.depth_steps import (
    SHOWN,
    STEP,
    UNIT,
    WINDOW_BINS,
    Bins,
    bin_of,
    find_high,
    find_repeats,
    keep_shown,
)
from bellapy.records import DepthProfile, KmerMatrix
from bellapy.records.kmers import HeldMatrix
from bellapy.seeding.entries import place_of
from bellapy.seeding.kmer_matrix import next_column, next_large, read_ranges

VOTED = UNIT // 4096  # reads in repeats for each place, beyond those doubted, that make one: a long row has few ends
CHIMERAS = UNIT // 80
"""Times the share of reads with such stretches: so large a share may be chimeras.  On genomes full of repeats an array of
300 kb has a 20th to a 50th, by reads of 6 kb; an organelle has less than a 100th where 3 % of all reads are chimeras."""
DOUBTED, ONE_IN = 2, 32
"""Reads of a k-mer in repeats that do not count, and at most one for so many places: these may be chimeras whose step was
believed, since there is a real one beside it."""
AGAIN, LEAST_AGAIN, SURELY, NEVER = 0.4, 3, 2, UNIT + 1
"""Places of a k-mer behind another one in the same read, from which on reads come round it: as a share of the places that
are expected to be without errors, and that many.  They do so in an array, and seldom in a molecule that is a circle: a
fifth of its reads with several turns gives .3, two thirds .65.  SURELY times as many are an array."""
WHOLE = 0.5  # share of a read's deep bins that are repeats, from which on all are
DEEP_SHARE = 0.25  # of the k-mers expected to be correct: a stretch with so many above the upper bound is deep
RAISED = 2.0  # times the usual depth: such reads may be taken for repeats
LEAST_RAISED = 5  # reads
CROSSED = UNIT // 2  # share of the other reads that show such a step: fewer are at the joint of a chimera
CROSSING = 0.03  # share of places on the high side of a step that others show: fewer are chimeras
MOST_DEEP = 0.25  # share of the bins that are deep; if there are more, it is the upper bound that is wrong
CLEAN = 0.6  # share of a read's bins with fewer


class Voting(NamedTuple):
    """How the places of a k-mer tell that it lies in repeats.

    doubted : so many reads in repeats do not count, or one for ONE_IN places.
    again : share of all places, in units, behind another one in the same read; from this on reads come round it, and with
        SURELY times as many it lies in an array.
    raised : how many times the share in repeats counts where reads come round it; nothing is doubted then.
    """

    doubted: int
    again: int
    raised: int


@njit_inner
def repeat_share(n, n_again, size, voting):
    """How much a column tells of repeats, as a share of its places.

    n : reads whose first place lies in a repeat.  n_again : places behind another one in the same read.  size : all places.
    voting : Voting.
    """
    if n_again >= LEAST_AGAIN and UNIT * n_again >= voting.again * size:
        sure = UNIT * n_again >= SURELY * voting.again * size
        return UNIT if sure else min(UNIT, UNIT * n * voting.raised // size)
    return UNIT * max(n - min(voting.doubted, size // ONE_IN), 0) // size


@njit
def repeat_shares(entries, begin, end, bins, upper, repeat, voting, firsts, shares):
    """Write where columns with more than `upper` entries begin, and their `repeat_share`; return their number.

    entries, begin, end, bins : as in `depth_steps.add_company`.  repeat : of `find_repeats`.  voting : Voting.
    firsts, shares : int64 and uint32, as many as there may be.
    """
    n_columns, first = 0, next_large(entries, next_column(entries, begin), end, upper)
    while first < end:
        last = next_column(entries, first + 1)
        n, n_again, before = np.int64(0), np.int64(0), np.int64(-1)
        for i in range(first, last):
            r, b = bin_of(place_of(entries[i]), bins)
            if r == before:
                n_again += 1
            elif repeat[b]:
                n += 1
            before = r
        firsts[n_columns], shares[n_columns] = first, repeat_share(n, n_again, last - first, voting)
        n_columns += 1
        first = next_large(entries, last, end, upper)
    return n_columns


@njit
def add_votes(entries, firsts, shares, low, high, bins, votes):
    """votes[0, b] += shares of the large columns in bin b, votes[1, b] counts them, for places in [low, high).

    entries, bins : as in `repeat_shares`.  firsts, shares : int64 and uint32, of it over all columns.
    votes : (2, n_bins) uint32; a bin of 256 places has room for as many whole shares.
    """
    for column in range(shares.size):
        first = firsts[column]
        for i in range(first, next_column(entries, first + 1)):
            place = place_of(entries[i])
            if low <= place < high:
                b = bin_of(place, bins)[1]
                votes[0, b] += shares[column]
                votes[1, b] += np.uint32(1)


@njit
def judge_bins(offsets, votes, needed, voted, repeat, begin, end, is_repeat, deep):
    """is_repeat[b] and deep[b], (n_bins,) bool: deep by the votes around a bin, a repeat by its own, if there are any.

    Of reads [begin, end).
    offsets : of a DepthProfile.  votes : of `add_votes`.  needed : k-mers above the bound in a bin of a deep stretch.
    voted : share of votes that makes a deep stretch one.  repeat : (n_bins,) uint8, of `find_repeats`.
    """
    for r in range(begin, end):
        n_deep = n_voted = 0
        for b in range(offsets[r], offsets[r + 1]):
            first, last = max(offsets[r], b - WINDOW_BINS // 2), min(offsets[r + 1], b + (WINDOW_BINS + 1) // 2)
            share = n_high = np.int64(0)
            for x in range(first, last):
                share += votes[0, x]
                n_high += votes[1, x]
            is_deep = n_high > needed * (last - first)
            if votes[1, b] > 0:  # beside a repeat its own votes tell, not those around it
                share, n_high = np.int64(votes[0, b]), np.int64(votes[1, b])
            is_repeat[b] = repeat[b] > 0 or (is_deep and share > voted * n_high)
            deep[b] = is_deep
            n_deep += is_deep
            n_voted += is_deep and is_repeat[b]
        for b in range(offsets[r], offsets[r + 1]):
            is_repeat[b] |= deep[b] and n_voted > WHOLE * n_deep
            deep[b] &= not is_repeat[b]


def count_votes(
    parts: Iterable[KmerMatrix], bins: Bins, upper: int, repeat: np.ndarray, voting: Voting, threads: int
) -> np.ndarray:
    """Sum of `add_votes` over all parts, (2, n_bins) uint32: threads write to bins of their own."""
    votes = np.zeros((2, len(repeat)), np.uint32)
    for matrix in parts:
        if isinstance(matrix, HeldMatrix):
            return matrix.entries.votes(bins, upper, repeat, voting)  # what a device holds is all

        def share(piece, entries=matrix.entries):
            most = (piece[1] - piece[0]) // (upper + 1) + 1
            firsts, shares = np.empty(most, np.int64), np.empty(most, np.uint32)
            n = repeat_shares(entries, *piece, bins, upper, repeat, voting, firsts, shares)
            return firsts[:n], shares[:n]

        none, ranges = (np.zeros(0, np.int64), np.zeros(0, np.uint32)), even_ranges(len(matrix.entries), threads)
        large = tuple(map(np.concatenate, zip(none, *map_threads(share, ranges, threads), strict=True)))

        def add(places, entries=matrix.entries, large=large, votes=votes):
            add_votes(entries, *large, *places, bins, votes)

        map_threads(add, read_ranges(matrix.starts, threads), threads)
    return votes


def judge_stretches(
    parts: Iterable[KmerMatrix], bins: Bins, profile: DepthProfile, upper: int, correct: float, share_counted: float,
    threads: int = 1,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Which bins of the profile are repeats, and which are deep and no repeats: (n_bins,) bool each.

    Parameters
    ----------
    parts : all k-mers that occur more than once, in any number of matrices; gone through several times.
    bins : of the profile.
    upper : columns with more entries tell of repeats.
    correct : k-mers per base that are expected to be without errors, of those that were counted.
    share_counted : how much of all k-mers was counted.
    """
    offsets, (repeat, mixed, many) = profile.offsets, find_repeats(parts, bins, profile, threads)
    voted, needed = float(max(VOTED, CHIMERAS * mixed)), DEEP_SHARE * correct * profile.width
    again = int(AGAIN * UNIT * correct / share_counted)
    voting = Voting(DOUBTED, again if many or voted > VOTED else NEVER, ceil(voted / VOTED))
    votes = count_votes(parts, bins, upper, repeat, voting, threads)
    is_repeat, deep = np.empty((2, len(repeat)), bool)
    share = shared_by(threads)
    share(lambda part: judge_bins(offsets, votes, needed, voted, repeat, *part, is_repeat, deep), len(offsets) - 1)
    return is_repeat, deep


def reference_depth(profile: DepthProfile, repeat: np.ndarray, threads: int = 1) -> tuple[float, np.ndarray, np.ndarray]:
    """The level of most bases, and that of each read, repeats left out.

    The level is the mean count of repeated k-mers; (n_reads,) float64.  A read of which most is repeat has none: 0.
    Besides: the bins of each read that are repeats, (n_reads,) int64.
    """
    sizes = np.diff(profile.offsets)
    n_kmers, copies, n_outside = (
        sum_runs(make, profile.offsets, threads)
        for make in (
            lambda bins: profile.n_kmers[bins] * ~repeat[bins],
            lambda bins: profile.copies[bins] * ~repeat[bins],
            lambda bins: ~repeat[bins],
        )
    )
    known = (n_kmers > 0) & (2 * n_outside > sizes)
    if not known.any():
        return 0.0, np.zeros(len(sizes)), sizes - n_outside
    level = np.where(known, copies / np.maximum(n_kmers, 1), 0)
    order = np.argsort(level[known], kind="stable")
    reached = np.cumsum(sizes[known][order])
    usual = float(level[known][order][np.searchsorted(reached, reached[-1] / 2)])
    return usual, level, sizes - n_outside


def in_molecules(
    parts: Iterable[KmerMatrix], bins: Bins, profile: DepthProfile, upper: int, level: np.ndarray, usual: float, threads: int
) -> np.ndarray:
    """Mask of the reads in molecules that are RAISED to STEP times as deep as usual, (n_reads,) bool.

    No other read shows the steps of a chimera.  The others that show a step may themselves be mostly on its high side.

    Parameters
    ----------
    parts, bins, profile, upper : as in `judge_stretches`.
    level, usual : the depth of each read, (n_reads,) float64, 0 where unknown, and that of most bases.
    """
    raised = (level > RAISED * usual) & (level <= STEP * usual)
    if usual == 0 or raised.sum() < LEAST_RAISED:
        return np.zeros(len(level), bool)
    high = find_high(profile, RAISED, RAISED * usual, threads, least=usual / RAISED)
    shown = find_high(profile, RAISED * SHOWN / STEP, RAISED * usual, threads)
    high[np.repeat(raised, np.diff(profile.offsets))] = 0
    keep_shown(parts, bins, high, shown, CROSSED, threads)
    shares, n_votes = count_votes(parts, bins, upper, high, Voting(0, NEVER, 1), threads)
    clean, voted = (
        sum_runs(make, profile.offsets, threads)
        for make in (
            lambda bins: (n_votes[bins] > 0) & (shares[bins] <= CROSSING * UNIT * n_votes[bins]),
            lambda bins: n_votes[bins] > 0,
        )
    )
    return raised & (clean > CLEAN * voted)


class Depths(NamedTuple):
    """What the depth along the reads says.

    repeat, sound : (n_bins,) bool, bins in repeats; deep bins outside of them where k-mers above the upper bound link reads.
    level : (n_bins,) float32, mean count of a bin's k-mers.
    usual : the level of most bases.
    reference : (n_reads,) float32, as in DepthProfile.
    n_repeat : (n_reads,) int64, bins of each read in repeats.
    """

    repeat: np.ndarray
    sound: np.ndarray
    level: np.ndarray
    usual: float
    reference: np.ndarray
    n_repeat: np.ndarray


def judge_depth(
    parts: Iterable[KmerMatrix], bins: Bins, profile: DepthProfile, upper: int, correct: float, share_counted: float,
    threads: int,
) -> Depths:  # fmt: skip
    """All of this module; parameters : as in `judge_stretches`."""
    repeat, deep = judge_stretches(parts, bins, profile, upper, correct, share_counted, threads)
    usual, level, n_repeat = reference_depth(profile, repeat, threads)
    unlike = (level > STEP * usual) | (STEP * level < usual)
    own = np.where(unlike | in_molecules(parts, bins, profile, upper, level, usual, threads), level, 0)
    bound_is_wrong = np.count_nonzero(deep) > MOST_DEEP * len(deep)
    may_link, sizes = (own > usual) | bound_is_wrong, np.diff(profile.offsets)
    sound, bin_level = np.empty(len(deep), bool), np.empty(len(deep), np.float32)

    def fill(reads: slice, bins: slice) -> None:
        np.logical_and(deep[bins], np.repeat(may_link[reads], sizes[reads]), out=sound[bins])
        bin_level[bins] = profile.copies[bins] / np.maximum(profile.n_kmers[bins], 1)

    share_runs(fill, profile.offsets, threads)
    reference = np.where(own > 0, own, np.where(level > 0, usual, 0)).astype(np.float32)
    return Depths(repeat, sound, bin_level, usual, reference, n_repeat)
