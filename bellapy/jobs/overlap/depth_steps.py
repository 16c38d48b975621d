"""Stage 3b, first part: the depth along the reads -> high stretches beside a step that other reads show, too: repeats.

1. A read is mixed if the depth of a kilobase is more than STEP times that of the kilobase beside it, and the lower of the
   two is no more than that of most stretches.  Steps on a deeper level are those of a deep molecule's own repeats.
2. A high stretch of a mixed read is believed if most of the other reads with the k-mers just beside it have a step there,
   which may be a little lower, to the same side.  At the joint of a chimera, or where a read was read badly, this read is
   the only one; so where steps are few, a fifth of the others is enough.  A chimera may have a real repeat elsewhere, so
   each stretch is judged by its own place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.threads import even_ranges, map_threads, shared_by
from bellapy.records import DepthProfile, KmerMatrix
from bellapy.records.kmers import TABLE_SHIFT, HeldMatrix
from bellapy.seeding.entries import is_first, place_of, reverse_of
from bellapy.seeding.kmer_matrix import next_column, read_at

WINDOW_BINS = 4  # bins of the depth profile: about a kilobase
STEP = 5.0  # a linear molecule's depth grows from 0 at its end, threefold from one kilobase to the next
LEAST_KMERS = 8  # in a window; fewer do not show its depth
COMPANY_PLACES = 1 << 12
LOOKED_AT = 1 << 18  # bins
UNIT = 1 << 16  # shares are added up as integers in these units, so that the order of adding does not matter
SHOWN = 3.5  # as many times the depth beside it: less than STEP, so that chance does not decide whether others show it
BESIDE = 2  # bins next to a high stretch
BELIEVED = UNIT * 2 // 3  # share of the other reads that show it, where steps are many
LEAST_BELIEVED, FOR_STEPS = UNIT // 5, 8
"""Where steps are few, less is enough: this, and so many times the share of bins beside a step.  At 8X with 12 % errors a
third to two thirds of the others show a real step, with 17 % a quarter to a half; a chimera's joint less than a tenth."""


class Bins(NamedTuple):
    """Where the bins of a DepthProfile lie; `starts` and `table` are those of a KmerMatrix."""

    starts: np.ndarray
    table: np.ndarray
    offsets: np.ndarray
    width: int


@njit_inner
def bin_of(place, bins):
    """The read of a place and its bin; bins : Bins."""
    r = read_at(place, bins.starts, bins.table)
    return r, bins.offsets[r] + (place - bins.starts[r]) // bins.width


@njit
def find_steps(offsets, n_kmers, copies, window, step, least, begin, end, low):
    """low[r] = the lowest depth beside a step of read r, or infinity where it has none, for reads [begin, end).

    offsets, n_kmers, copies : of a DepthProfile.  window : bins on either side of a step.  step : of the depth, a factor.
    least : k-mers of a window.  low : (n_reads,) float64, filled.
    """
    for r in range(begin, end):
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
def mark_high(offsets, n_kmers, copies, low, step, begin, end, high):
    """high[b] = 1 for the bins of mixed reads that are more than `step` times as deep as their low stretches.

    Of reads [begin, end).
    offsets, n_kmers, copies : of a DepthProfile.  low : of `find_steps`.  high : (n_bins,) uint8, filled.
    """
    for r in range(begin, end):
        for b in range(offsets[r], offsets[r + 1]):
            high[b] = low[r] < np.inf and copies[b] > step * low[r] * n_kmers[b]


def usual_level(profile: DepthProfile) -> float:
    """The mean count of a stretch's k-mers that is usual: the median over some bins; 0 where no k-mer occurs twice."""
    some = slice(None, None, 1 + len(profile.n_kmers) // LOOKED_AT)
    n_kmers, copies = profile.n_kmers[some], profile.copies[some]
    shown = n_kmers > 0
    return float(np.median(copies[shown] / n_kmers[shown])) if shown.any() else 0.0


@njit
def count_runs(offsets, high, begin, end, n_runs):
    """n_runs[r] = runs of high bins of read r, for reads [begin, end).  high : of `mark_high`.  n_runs : int64, filled."""
    for r in range(begin, end):
        n_runs[r] = 0
        for b in range(offsets[r], offsets[r + 1]):
            n_runs[r] += high[b] and (b == offsets[r] or not high[b - 1])


@njit
def number_runs(offsets, high, firsts, reach, begin, end, runs):
    """runs[b] = -run if bin b lies in a run of high bins, run << 1 | side if it is beside one, else 0.

    Of reads [begin, end); runs are counted from 1.  side : 1 if the run lies behind the bin.  A bin is beside the run before
    it, if that is near enough, or else beside the one behind it.
    high : of `mark_high`.  firsts : (n_reads + 1,) int64, runs before each read.  reach : so many bins are beside a run.
    runs : (n_bins,) int32, filled.
    """
    for r in range(begin, end):
        first, last, run = offsets[r], offsets[r + 1], firsts[r]
        runs[first:last] = 0
        for b in range(first, last):
            if not high[b]:
                continue
            if b == first or not high[b - 1]:
                run += 1
                x = b - 1
                while x >= max(first, b - reach) and runs[x] == 0:
                    runs[x] = run << 1 | 1
                    x -= 1
            runs[b] = -run
            if b + 1 < last and not high[b + 1]:
                runs[b + 1 : min(last, b + 1 + reach)] = run << 1


@njit
def keep_believed(runs, believed, begin, end, repeat):
    """Clear repeat[b] where bin b lies in no run that is believed, for bins [begin, end).

    runs : of `number_runs`.  believed : (n_runs,) bool.
    """
    for b in range(begin, end):
        if runs[b] >= 0 or not believed[-runs[b] - 1]:
            repeat[b] = 0


def near_steps(bins: Bins, has_runs: np.ndarray) -> np.ndarray:
    """Whether a read with runs has places in each step of the table of `bins`, (n,) bool; has_runs : (n_reads,) bool."""
    n, mixed = len(bins.table), np.flatnonzero(has_runs)
    first, last = bins.starts[mixed] >> TABLE_SHIFT, bins.starts[mixed + 1] >> TABLE_SHIFT
    return np.cumsum(np.bincount(first, minlength=n + 1) - np.bincount(last + 1, minlength=n + 1))[:n] > 0


@njit_inner
def _step_at(entry, bins, runs):
    """What `runs` says of the place of an entry, which side the run is on for the k-mer, and whether the read would show it.

    A read shows a step if it has a window on either side.
    """
    r, b = bin_of(place_of(entry), bins)
    shows = min(b - bins.offsets[r], bins.offsets[r + 1] - 1 - b) >= WINDOW_BINS
    return runs[b], (runs[b] ^ np.int64(reverse_of(entry))) & 1, np.int64(shows)


@njit_inner
def count_steps(entries, first, last, bins, runs):
    """Places of a column beside runs; and of those that would show one: all, in runs, with the run on side 0, and on side 1.

    The column : entries[first:last].  bins, runs : as in `add_company`.
    """
    n_beside = n = n_in = n_before = n_behind = 0
    for i in range(first, last):
        run, side, shows = _step_at(entries[i], bins, runs)
        n_beside += run > 0
        n += shows
        n_in += shows * (run < 0)
        n_before += shows * (run > 0) * (1 - side)
        n_behind += shows * (run > 0) * side
    return n_beside, n, n_in, n_before, n_behind


@njit_inner
def company_of(entry, counts, bins, runs, unit):
    """The run that an entry is beside, and the share of its column's other places that show it; -1 and 0 where none can.

    counts : of `count_steps`.  bins, runs, unit : as in `add_company`.
    """
    _, n, n_in, n_before, n_behind = counts
    run, side, shows = _step_at(entry, bins, runs)
    if run <= 0 or n <= shows:
        return np.int64(-1), np.int64(0)
    return np.int64((run >> 1) - 1), unit * (n_in + (n_behind if side else n_before) - shows) // (n - shows)


@njit
def add_company(entries, begin, end, bins, runs, unit, near, company):
    """For the k-mers beside a run: company[0, run] += share of the other reads with the k-mer that show the run, too.

    company[1, run] counts these k-mers.  Columns that begin in [begin, end) and have at most COMPANY_PLACES entries: where
    depth is low there are no others.
    entries : of a KmerMatrix.  bins : Bins.  runs : of `number_runs`.  unit : a share of 1.  near : of `near_steps`.
    company : (2, n_runs) uint32; beside a run are so few bins of 256 places that whole shares of all have room.
    """
    i, end = next_column(entries, begin), next_column(entries, end)
    while i < end:
        if not near[place_of(entries[i]) >> TABLE_SHIFT]:  # few are, and most columns need no more than this
            i += 1
            continue
        first, last = i, next_column(entries, i + 1)
        while not is_first(entries[first]):
            first -= 1
        i = last
        if last - first > COMPANY_PLACES:
            continue
        counts = count_steps(entries, first, last, bins, runs)
        if counts[0] > 0:
            for x in range(first, last):
                run, share = company_of(entries[x], counts, bins, runs, unit)
                if run >= 0:
                    company[0, run] += np.uint32(share)
                    company[1, run] += np.uint32(1)


def add_up_company(
    parts: Iterable[KmerMatrix], threads: int, bins: Bins, runs: np.ndarray, n_runs: np.ndarray
) -> np.ndarray:  # fmt: skip
    """Sum of `add_company` over the columns of all parts, (2, number of runs) uint32; n_runs : (n_reads,) of each read."""
    shape, near = (2, int(n_runs.sum())), near_steps(bins, n_runs > 0)
    total = np.zeros(shape, np.uint32)
    for matrix in parts:
        if isinstance(matrix, HeldMatrix):
            total += matrix.entries.company(bins, runs, shape[1])
            continue

        def add(piece, entries=matrix.entries):
            numbers = np.zeros(shape, np.uint32)
            add_company(entries, *piece, bins, runs, UNIT, near, numbers)
            return numbers

        for numbers in map_threads(add, even_ranges(len(matrix.entries), threads), threads):
            total += numbers
    return total


def find_high(profile: DepthProfile, step: float, most: float, threads: int, least: float = 0) -> np.ndarray:
    """The high bins of reads with a step, (n_bins,) uint8.

    step : of the depth, a factor.  least, most : depth of its low side.
    """
    columns, n_reads = (profile.offsets, profile.n_kmers, profile.copies), len(profile.offsets) - 1
    by_reads, low, high = shared_by(threads), np.empty(n_reads), np.zeros(len(profile.n_kmers), np.uint8)
    by_reads(lambda part: find_steps(*columns, WINDOW_BINS, step, LEAST_KMERS, *part, low), n_reads)
    low[(low < least) | (low > most)] = np.inf
    by_reads(lambda part: mark_high(*columns, low, step, *part, high), n_reads)
    return high


def find_repeats(
    parts: Iterable[KmerMatrix], bins: Bins, profile: DepthProfile, threads: int
) -> tuple[np.ndarray, float, bool]:  # fmt: skip
    """The high bins that are believed, (n_bins,) uint8, the share of reads that have some, and whether steps are many."""
    offsets, n_reads, by_reads = bins.offsets, len(bins.offsets) - 1, shared_by(threads)
    most, n_runs = STEP * usual_level(profile), np.empty(n_reads, np.int64)
    repeat = find_high(profile, STEP, most, threads)
    if not repeat.any():
        return repeat, 0.0, False
    shown = find_high(profile, SHOWN, most, threads)
    beside = BESIDE * np.count_nonzero(shown[1:] != shown[:-1]) / len(shown)
    least = min(BELIEVED, LEAST_BELIEVED + FOR_STEPS * UNIT * beside)
    keep_shown(parts, bins, repeat, shown, least, threads)
    by_reads(lambda part: count_runs(offsets, repeat, *part, n_runs), n_reads)
    return repeat, float((n_runs > 0).mean()), bool(least == BELIEVED)


def keep_shown(
    parts: Iterable[KmerMatrix], bins: Bins, high: np.ndarray, shown: np.ndarray, least: float, threads: int
) -> None:  # fmt: skip
    """Clear the high bins that are not believed.

    high, shown : (n_bins,) uint8, high bins, and those beside lower steps, which show them.
    least : share of the other reads that has to show them, of UNIT.
    """
    offsets, n_reads, by_reads = bins.offsets, len(bins.offsets) - 1, shared_by(threads)
    n_runs, runs = np.empty(n_reads, np.int64), np.empty(len(high), np.int32)
    by_reads(lambda part: count_runs(offsets, shown, *part, n_runs), n_reads)
    firsts = np.concatenate(([0], np.cumsum(n_runs)))
    by_reads(lambda part: number_runs(offsets, shown, firsts, BESIDE, *part, runs), n_reads)
    shares, n_kmers = add_up_company(parts, threads, bins, runs, n_runs).astype(np.int64)
    believed = shares >= least * n_kmers
    by_reads(lambda part: keep_believed(runs, believed, *part, high), len(high))
