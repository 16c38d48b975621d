"""How alignments lie on their reads, and which of their overhangs count.

An alignment that stops inside both reads leaves an overhang on that side.  Two reads that share a repeat but no locus leave
one, since they differ beyond the repeat.  But real reads also have bad ends, and some are two reads joined by mistake.  The
other alignments of the two reads show the difference.  If some of them go on past this place on the query, and some on the
target, both reads are sound there, and they differ.  If none goes on in one of the two reads, this read is bad from there
on, and the overhang does not count.

Some reads turn: after one strand of a molecule they go back along the other one.  Two of them that turn at about the same
place align across it, and so each would make the turn of the other look sound.  But such a pair aligns on both strands, and
its two alignments cross where the reads turn.  There they do not show that a read goes on.

Other reads are joined from two places.  There no read has alignments on both sides of the join, as it has on both sides of a
turn or of a bad stretch.  Such a read counts as one of the larger part, much as miniasm keeps the longest covered part of a
read (Li 2016): alignments that stop at the join in the lesser part are no overlaps.

Two reads may overlap twice, on the same strands.
Reads of a circular molecule overlap at both ends: the first one's end is the second one's start, and the second one's end
the first one's start.  These are two overlaps on two diagonals, and the better one alone does not show the circle.  Another
alignment of the same reads is a second overlap under two conditions.  It shares hardly any bases with the first on both
reads, and it runs until one of the reads stops.  A tandem repeat has many diagonals too, but there the reads share the same
bases again.  A dispersed repeat that two reads share ends inside both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.threads import shared_by
from bellapy.jobs.overlap.crossings import BEYOND, NOWHERE, Aligned, Crossings, in_order
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

BIN = 100  # bases: how finely it is known where alignments go on
AT_END = 100  # bases: an alignment that comes so close to the end of a read reaches it
AROUND_TURN = 200  # bases: there two alignments that cross are less than BEYOND apart
STRAY = 0.02  # share of a read's alignments that may go on in what is bad
SLACK = 0.1
"""Share of its length by which an overlap may run into another one, or fall short of the ends of the reads."""


@dataclass(frozen=True)
class Geometry:
    """How alignments lie on their reads; arrays of bases, (n,) int32 but for `implied`.

    left, right : unaligned bases where both reads go on, to the left and right as the query runs.
    span : aligned bases, of the read with fewer.
    implied : (n,) float64, length of the overlap if it ran to the ends of the reads.
    lesser : (n,) bool, it stops at a join of two places, in the lesser part of the read; only `fair_geometry` knows.
    """

    left: np.ndarray
    right: np.ndarray
    span: np.ndarray
    implied: np.ndarray
    lesser: np.ndarray

    @property
    def overhang(self) -> np.ndarray:
        return np.maximum(self.left, self.right)

    @property
    def aligned(self) -> np.ndarray:
        """Mean of the aligned bases of query and target, (n,) float64."""
        return self.implied - self.left - self.right

    def take(self, rows: np.ndarray) -> Geometry:
        """The same of some alignments."""
        return Geometry(self.left[rows], self.right[rows], self.span[rows], self.implied[rows], self.lesser[rows])


def measure_geometry(
    reads: ReadSet, seeds: Seeds | Overlaps, extensions: Extensions | Overlaps, threads: int = 1
) -> Geometry:
    """Overhangs, span and implied length of every alignment; overlaps are both, pairs of reads and alignments."""
    n, columns = len(seeds), Aligned.of(seeds, extensions).columns
    (left, right, span), implied = np.empty((3, n), np.int32), np.empty(n)
    shared_by(threads)(lambda part: _measure(reads.lengths, columns, *part, left, right, span, implied), n)
    return Geometry(left, right, span, implied, np.zeros(n, bool))


@njit_entry
def _measure(lengths, aligned, begin, end, left, right, span, implied):
    """Fill in rows [begin, end) of the columns of Geometry but the last, (n,) int32, `implied` float64.

    lengths : (n_reads,) int32.  aligned : the columns of Aligned.
    """
    query_id, target_id, strand, query_start, query_end, target_start, target_end = aligned
    for i in range(begin, end):
        query_after = lengths[query_id[i]] - query_end[i]
        target_after, target_before = lengths[target_id[i]] - target_end[i], target_start[i]
        if strand[i] <= 0:
            target_after, target_before = target_before, target_after
        query_span, target_span = query_end[i] - query_start[i], target_end[i] - target_start[i]
        left[i], right[i] = min(query_start[i], target_before), min(query_after, target_after)
        span[i] = min(query_span, target_span)
        implied[i] = left[i] + right[i] + (query_span + target_span) / 2


class Standing(NamedTuple):
    """What all alignments together say of each bin of each read; (n_bins,) bool each.

    bad : hardly any alignment goes on past it.  joined : none does, on whatever strand.  covered : some go on past it.
    """

    bad: np.ndarray
    joined: np.ndarray
    covered: np.ndarray

    @classmethod
    def of(cls, lengths: np.ndarray, steps: np.ndarray, hull_steps: np.ndarray, threads: int = 1) -> Standing:
        """From the sums of what `steps_of` gives for sound alignments, and for `hulls`, over all of them."""
        starts, standing = bin_starts(lengths), cls(*np.empty((3, len(steps)), bool))
        shared_by(threads)(lambda part: _stand(starts, steps, hull_steps, *part, standing), len(lengths))
        return standing


def bin_starts(lengths: np.ndarray) -> np.ndarray:
    """Where the bins of each read start, and where those of the last one end, (n_reads + 1,) int64."""
    return np.concatenate(([0], np.cumsum(lengths // BIN + 2, dtype=np.int64)))


@njit_entry
def _stand(starts, steps, hull_steps, begin, end, standing):
    """Fill in the bins of reads [begin, end).

    starts : (n_reads + 1,) int64, first bin of each read.  steps, hull_steps : (n_bins,) int32, as of `steps_of`; in every
    read they sum up to 0.  standing : Standing.
    """
    for r in range(begin, end):
        most = most_hulls = going_on = hulls = 0
        for at in range(starts[r], starts[r + 1]):
            going_on += steps[at]
            hulls += hull_steps[at]
            most, most_hulls = max(most, going_on), max(most_hulls, hulls)
        going_on = hulls = 0
        for at in range(starts[r], starts[r + 1]):
            going_on += steps[at]
            hulls += hull_steps[at]
            standing.bad[at], standing.joined[at] = going_on <= STRAY * most, hulls <= STRAY * most_hulls
            standing.covered[at] = going_on > 0


def fair_geometry(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, geometry: Geometry, standing: Standing, threads: int = 1
) -> Geometry:
    """The geometry without the overhangs that do not count, and with what lies in the lesser part of a joined read.

    standing : of the bins of these reads.
    """
    bins = _Bins(bin_starts(reads.lengths), *standing)
    n, columns = len(seeds), Aligned.of(seeds, extensions).columns
    (left, right), implied, lesser = np.empty((2, n), np.int32), np.empty(n), np.empty(n, bool)
    before, after = (geometry.left, geometry.right, geometry.implied), (left, right, implied, lesser)
    shared_by(threads)(lambda part: _judge(bins, columns, before, *part, after), n)
    return Geometry(left, right, geometry.span, implied, lesser)


class _Bins(NamedTuple):
    """Bins for compiled code: where those of each read start, and what Standing says of them."""

    starts: np.ndarray
    bad: np.ndarray
    joined: np.ndarray
    covered: np.ndarray


@njit_entry
def _judge(bins, aligned, before, begin, end, after):
    """Fill in rows [begin, end) of the columns of the fair Geometry.

    bins : _Bins.  aligned : the columns of Aligned.  before : left, right and implied of the geometry.
    after : of the fair one left and right, (n,) int32, implied, (n,) float64, and lesser, (n,) bool.
    """
    left, right, implied, lesser = after
    query_id, target_id, strand, query_start, query_end, target_start, target_end = aligned
    for i in range(begin, end):
        q, t, same = query_id[i], target_id[i], strand[i] > 0
        first, last = (target_start[i], target_end[i]) if same else (target_end[i], target_start[i])
        bad_left = bins.bad[_bin(bins, q, query_start[i])] or bins.bad[_bin(bins, t, first)]
        bad_right = bins.bad[_bin(bins, q, query_end[i])] or bins.bad[_bin(bins, t, last)]
        its_left, its_right = before[0][i], before[1][i]
        left[i], right[i] = 0 if bad_left else its_left, 0 if bad_right else its_right
        implied[i] = before[2][i] - its_left - its_right + left[i] + right[i]
        lesser[i] = False
        if its_left > BEYOND:
            lesser[i] = _is_lesser(bins, q, query_start[i], True) or _is_lesser(bins, t, first, same)
        if its_right > BEYOND and not lesser[i]:
            lesser[i] = _is_lesser(bins, q, query_end[i], False) or _is_lesser(bins, t, last, not same)


@njit_inner
def _bin(bins, read, position):
    """The bin of a position on a read.  bins : _Bins."""
    return bins.starts[read] + position // BIN


@njit_inner
def _is_lesser(bins, read, position, runs_on):
    """Whether the read is joined there, and the side on which the alignment lies is the lesser: behind, if it runs on.

    bins : _Bins.
    """
    at = _bin(bins, read, position)
    if not bins.joined[at]:
        return False
    before = behind = 0
    for b in range(bins.starts[read], at):
        before += bins.covered[b]
    for b in range(at, bins.starts[read + 1]):
        behind += bins.covered[b]
    return behind < before if runs_on else before < behind


class _Place(NamedTuple):
    """Reads whose bins a thread fills: others are another thread's.

    starts : (n_reads + 1,) int64, first bin of each read.  lengths : (n_reads,) int32.  low, high : the reads [low, high).
    """

    starts: np.ndarray
    lengths: np.ndarray
    low: int
    high: int


def steps_of(
    reads: ReadSet, some: Aligned, telling: np.ndarray, crossings: Crossings, partners: np.ndarray, threads: int = 1
) -> np.ndarray:
    """By how much the number of alignments that go on changes from bin to bin of each read, (n_bins,) int32.

    telling : (n,) bool, the alignments that count.  crossings, partners : where they cross, as for `Crossings.turns`.
    """
    starts = bin_starts(reads.lengths)
    steps, turns = np.zeros(starts[-1], np.int32), crossings.turns(some, partners)
    crossing = some.take(crossings.rows).columns

    def add(its_reads: tuple[int, int]) -> None:
        place = _Place(starts, reads.lengths, *its_reads)
        _add_steps(place, some.columns, telling, steps)
        _take_turns(place, crossing, turns, steps)

    shared_by(threads)(add, len(reads))
    return steps


def hull_steps_of(reads: ReadSet, some: Aligned, threads: int = 1) -> np.ndarray:
    """The same for one alignment of each pair of reads, from their first start to their last end, whatever the strands."""
    starts, columns = bin_starts(reads.lengths), in_order(some)[0].columns
    steps = np.zeros(starts[-1], np.int32)
    shared_by(threads)(lambda part: _add_hull_steps(_Place(starts, reads.lengths, *part), columns, steps), len(reads))
    return steps


@njit_inner
def _bins_of(place, read, begin, end):
    """First and last bin of a read, among all bins, in which an alignment from begin to end goes on.  place : _Place."""
    length, at = place.lengths[read], place.starts[read]
    first = 0 if begin <= AT_END else (begin + BEYOND + BIN - 1) // BIN
    last = length // BIN if end >= length - AT_END else (end - BEYOND) // BIN
    return at + first, at + last


@njit_inner
def _add_step(place, read, begin, end, steps):
    """Add 1 where an alignment begins to go on, and take 1 where it does not any more.

    place : _Place.  steps : (n_bins,) int32, by bin.
    """
    if place.low <= read < place.high:
        first, last = _bins_of(place, read, begin, end)
        if first <= last:
            steps[first] += 1
            steps[last + 1] -= 1


@njit_entry
def _add_steps(place, aligned, telling, steps):
    """Of the alignments that tell.

    place : _Place.  aligned : the columns of Aligned.  telling : (n,) bool.  steps : (n_bins,) int32, by bin.
    """
    query_id, target_id, _, query_start, query_end, target_start, target_end = aligned
    for i in range(len(query_id)):
        if telling[i]:
            _add_step(place, query_id[i], query_start[i], query_end[i], steps)
            _add_step(place, target_id[i], target_start[i], target_end[i], steps)


@njit_entry
def _add_hull_steps(place, aligned, steps):
    """Of one alignment of each pair of reads, whose rows lie together.

    place : _Place.  aligned : the columns of Aligned.  steps : (n_bins,) int32, by bin.
    """
    query_id, target_id, _, query_start, query_end, target_start, target_end = aligned
    i = 0
    while i < len(query_id):
        q, t, first = query_id[i], target_id[i], i
        if q >= place.high:  # the target of a row comes after its query
            break
        i += 1
        while i < len(query_id) and query_id[i] == q and target_id[i] == t:
            i += 1
        if not (place.low <= q < place.high or place.low <= t < place.high):
            continue
        its_query, query_last = query_start[first], query_end[first]
        its_target, target_last = target_start[first], target_end[first]
        for x in range(first + 1, i):
            its_query, query_last = min(its_query, query_start[x]), max(query_last, query_end[x])
            its_target, target_last = min(its_target, target_start[x]), max(target_last, target_end[x])
        _add_step(place, q, its_query, query_last, steps)
        _add_step(place, t, its_target, target_last, steps)


@njit_entry
def _take_turns(place, aligned, turns, steps):
    """Let alignments not go on around the places where their reads turn.

    place : _Place.  aligned : the columns of Aligned, of those that cross.  turns : (2, n) int64, as of `Crossings.turns`.
    steps : (n_bins,) int32, by bin.
    """
    query_id, target_id, _, query_start, query_end, target_start, target_end = aligned
    for i in range(len(query_id)):
        for side in range(2):
            read, begin, end = query_id[i], query_start[i], query_end[i]
            if side:
                read, begin, end = target_id[i], target_start[i], target_end[i]
            if not place.low <= read < place.high or turns[side, i] == NOWHERE:
                continue
            (first, last), at = _bins_of(place, read, begin, end), place.starts[read]
            begins = max(first, at + (turns[side, i] - AROUND_TURN) // BIN)
            ends = min(last, at + (turns[side, i] + AROUND_TURN) // BIN)
            if begins <= ends:
                steps[begins] -= 1
                steps[ends + 1] += 1


class Ends(NamedTuple):
    """Where overlaps lie on their reads, (n,) int32 each, as in Extensions."""

    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray


def clear_of(ends: Ends | Extensions, others: Ends | Extensions) -> np.ndarray:
    """Mask of the rows in which two alignments share hardly any bases, neither on the query nor on the target."""
    clear = np.ones(len(ends.query_start), bool)
    allowed = SLACK * np.minimum(_query_span(ends), _query_span(others))
    for side in ("query", "target"):
        start = np.maximum(getattr(ends, f"{side}_start"), getattr(others, f"{side}_start"))
        end = np.minimum(getattr(ends, f"{side}_end"), getattr(others, f"{side}_end"))
        clear &= end - start <= allowed
    return clear


def implied_ends(reads: ReadSet, seeds: Seeds) -> Ends:
    """The overlaps that run along the seeds' diagonals to the ends of the reads."""
    query_after = reads.lengths[seeds.query_id] - seeds.query_pos
    target_after = reads.lengths[seeds.target_id] - seeds.target_pos
    same = seeds.strand > 0
    left = np.minimum(seeds.query_pos, np.where(same, seeds.target_pos, target_after - seeds.length))
    right = np.minimum(query_after, np.where(same, target_after, seeds.target_pos + seeds.length))
    return Ends(
        seeds.query_pos - left,
        seeds.query_pos + right,
        np.where(same, seeds.target_pos - left, seeds.target_pos + seeds.length - right).astype(np.int32),
        np.where(same, seeds.target_pos + right, seeds.target_pos + seeds.length + left).astype(np.int32),
    )


def _query_span(ends: Ends | Extensions) -> np.ndarray:
    return ends.query_end - ends.query_start
