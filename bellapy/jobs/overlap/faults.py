"""Faults of reads, where an alignment may stop though the overlap is sound: bad ends, turns, joins of two places.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.columns import list_rows, make_rows
from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.threads import shared_by
from bellapy.jobs.overlap.geometry import Alignments, Measured, UsualRate
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.records import Extensions, ReadSet, Seeds

SURE_SPAN = 1000  # bases
BEYOND = 400  # bases: an alignment goes on past a place if it covers so many on both sides of it
NOWHERE = -(1 << 40)
BIN = 100  # bases: how finely it is known where alignments go on
AT_END = 100  # bases: an alignment that comes so close to the end of a read reaches it
AROUND_TURN = 200  # bases: there two alignments that cross are less than BEYOND apart
STRAY = 0.02  # share of a read's alignments that may go on in what is bad


class Aligned(NamedTuple):
    """What shows faults of reads: columns of Seeds and Extensions, (n,) each; rows are in the order of their two reads."""

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    score: np.ndarray

    @classmethod
    def of(cls, seeds: Seeds, extensions: Extensions) -> Aligned:
        """Those of seeds and the alignments that grew from them."""
        return cls(*seeds.pairs, *extensions.intervals, extensions.score)

    def take(self, rows: np.ndarray) -> Aligned:
        """The same of some rows."""
        return Aligned(*(column[rows] for column in self))


@njit_entry
def _list_both(query_id, target_id, strand, telling, begin, end, found):
    """Write the rows in [begin, end) of pairs of reads that align on both strands to `found`, int64; return their number.

    query_id, target_id, strand : of Aligned, by pairs.  telling : (n,) bool, the rows that count.
    """
    n, i = 0, begin
    while i < end:
        last, forth, back = i, False, False
        while last < end and query_id[last] == query_id[i] and target_id[last] == target_id[i]:
            forth |= telling[last] and strand[last] > 0
            back |= telling[last] and strand[last] < 0
            last += 1
        if forth and back:
            for x in range(i, last):
                if telling[x]:
                    found[n] = x
                    n += 1
        i = last
    return n


def _on_both_strands(some: Aligned, telling: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of pairs of reads that align on both strands; for each the best row of its reads on the other strand."""
    reads, strand = (some.query_id, some.target_id), some.strand
    rows = list_rows(lambda *part: _list_both(*reads, strand, telling, *part), len(telling), threads, *reads)
    mine = some.take(rows)
    pair = np.cumsum(np.diff(mine.query_id, prepend=-1).astype(bool) | np.diff(mine.target_id, prepend=-1).astype(bool))
    candidate = 2 * pair + (mine.strand > 0)
    by_score = np.lexsort((mine.score, candidate))
    best = by_score[np.diff(candidate[by_score], append=-1) != 0]
    return rows, rows[best[np.searchsorted(candidate[best], candidate ^ 1)]]


class Crossings(NamedTuple):
    """Alignments of reads that align on both strands, and where the two cross.

    rows : (n,) int64, the alignments.
    place : (2, n) int64, on the query and on the target.
    across : (2, n) bool, whether both run across this place on the query, on the target.
    partners : (n_reads,) int64, reads with which each read has such a place.
    """

    rows: np.ndarray
    place: np.ndarray
    across: np.ndarray
    partners: np.ndarray

    def turns(self, some: Aligned, partners: np.ndarray) -> np.ndarray:
        """Where reads turn that one other read alone runs across, and that on both strands; (2, n) int64.

        Of each of the rows the place on the query and on the target, NOWHERE where they do not turn.  Several such reads
        are evidence of an inverted repeat in the molecule: reads turn at random places.

        some : all alignments.  partners : the sum of those of all alignments of these reads.
        """
        read = np.stack((some.query_id[self.rows], some.target_id[self.rows]))
        return np.where(self.across & (partners == 1)[read], self.place, NOWHERE)


def find_crossings(n_reads: int, some: Aligned, telling: np.ndarray, threads: int = 1) -> Crossings:
    """Where the two alignments of reads that align on both strands cross; all those of a pair have to be given.

    telling : (n,) bool, the alignments that count.
    """
    rows, others = _on_both_strands(some, telling, threads)
    mine, its = some.take(rows), some.take(others)
    read = np.stack((mine.query_id, mine.target_id))
    start, end, start_of_other, end_of_other = (
        np.stack((getattr(one, f"query_{edge}"), getattr(one, f"target_{edge}"))).astype(np.int64)
        for one in (mine, its) for edge in ("start", "end")
    )  # fmt: skip
    same, twice, twice_of_other = mine.strand > 0, start + end, start_of_other + end_of_other
    ahead, back = np.where(same, twice, twice_of_other), np.where(same, twice_of_other, twice)
    difference, total = ahead[1] - ahead[0], back[0] + back[1]
    place = np.stack((total - difference, total + difference)) // 4  # where the two diagonals cross
    within = np.maximum(start, start_of_other) + BEYOND <= place
    within &= place <= np.minimum(end, end_of_other) - BEYOND
    pairs = np.unique(read[within].astype(np.int64) << 32 | read[::-1][within])
    return Crossings(rows, place, within, np.bincount(pairs >> 32, minlength=n_reads))


class Standing(NamedTuple):
    """What all alignments together say of each bin of each read; (n_bins,) bool each.

    starts : (n_reads + 1,) int64, first bin of each read, and the end of the last one's.
    bad : hardly any alignment goes on past it.  joined : none does, on whatever strand.  covered : some go on past it.
    """

    starts: np.ndarray
    bad: np.ndarray
    joined: np.ndarray
    covered: np.ndarray

    def of_reads(self, ids: np.ndarray) -> Standing:
        """The same of some reads."""
        bins, sizes = bins_of(self.starts, ids), np.diff(self.starts)[ids]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        return Standing(starts, self.bad[bins], self.joined[bins], self.covered[bins])

    @classmethod
    def of(cls, lengths: np.ndarray, steps: np.ndarray, hull_steps: np.ndarray, threads: int = 1) -> Standing:
        """From the sums of what `steps_of` gives for sound alignments, and for `hulls`, over all of them."""
        standing = cls(bin_starts(lengths), *np.empty((3, len(steps)), bool))
        shared_by(threads)(lambda part: _stand(steps, hull_steps, *part, standing), len(lengths))
        return standing


def bin_starts(lengths: np.ndarray) -> np.ndarray:
    """Where the bins of each read start, and where those of the last one end, (n_reads + 1,) int64."""
    return np.concatenate(([0], np.cumsum(lengths // BIN + 2, dtype=np.int64)))


def bins_of(starts: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The bins of some reads, (n,) int64."""
    sizes = starts[ids + 1] - starts[ids]
    ends = np.cumsum(sizes)
    return np.repeat(starts[ids] - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


@njit_entry
def _stand(steps, hull_steps, begin, end, standing):
    """Fill in the bins of reads [begin, end).

    steps, hull_steps : (n_bins,) int32, as of `steps_of`; in every read they sum up to 0.  standing : Standing.
    """
    starts = standing.starts
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
    crossing = some.take(crossings.rows)

    def add(its_reads: tuple[int, int]) -> None:
        place = _Place(starts, reads.lengths, *its_reads)
        _add_steps(place, some, telling, steps)
        _take_turns(place, crossing, turns, steps)

    shared_by(threads)(add, len(reads))
    return steps


def hull_steps_of(reads: ReadSet, some: Aligned, threads: int = 1) -> np.ndarray:
    """The same for one alignment of each pair of reads, from their first start to their last end, whatever the strands."""
    starts = bin_starts(reads.lengths)
    steps = np.zeros(starts[-1], np.int32)
    shared_by(threads)(lambda part: _add_hull_steps(_Place(starts, reads.lengths, *part), some, steps), len(reads))
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

    place : _Place.  aligned : Aligned.  telling : (n,) bool.  steps : (n_bins,) int32, by bin.
    """
    query_id, target_id, _, query_start, query_end, target_start, target_end, _ = aligned
    for i in range(len(query_id)):
        if telling[i]:
            _add_step(place, query_id[i], query_start[i], query_end[i], steps)
            _add_step(place, target_id[i], target_start[i], target_end[i], steps)


@njit_entry
def _add_hull_steps(place, aligned, steps):
    """Of one alignment of each pair of reads, whose rows lie together.

    place : _Place.  aligned : Aligned.  steps : (n_bins,) int32, by bin.
    """
    query_id, target_id, _, query_start, query_end, target_start, target_end, _ = aligned
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

    place : _Place.  aligned : Aligned, of those that cross.  turns : (2, n) int64, as of `Crossings.turns`.
    steps : (n_bins,) int32, by bin.
    """
    query_id, target_id, _, query_start, query_end, target_start, target_end, _ = aligned
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


# ---------------------------------------------------------------- rounds


@dataclass(frozen=True)
class Turns:
    """Where alignments of reads on both strands cross; telling : (n,) bool, the alignments that tell where reads go on."""

    crossings: Crossings
    telling: np.ndarray


@dataclass(frozen=True)
class Cover:
    """Where alignments go on along the reads of a tile, (n_bins,) int32 each, as of `steps_of` and `hull_steps_of`."""

    steps: np.ndarray
    hull_steps: np.ndarray


class Faults:
    """What alignments say of the faults of their reads; name : of the round that left the alignments."""

    def __init__(self, name: str):
        self.alignments = Result(name, Alignments, TILES)
        self.measured = Result(f"{name}_rates", Measured, TILES)
        self.usual = Result(f"{name}_usual", UsualRate)
        self.turns = Result(f"{name}_turns", Turns, TILES)
        self.partners = Result(f"{name}_partners", np.ndarray)
        self.cover = Result(f"{name}_cover", Cover, TILES)
        self.standing = Result(f"{name}_standing", Standing)

    def cross(self, work: Work, tile: int) -> Turns:
        """Where alignments of reads on both strands cross, of those that tell where reads go on (if a rate is usual)."""
        found, threads = work.get(self.alignments, tile), work.params.run.threads
        some, geometry = Aligned.of(found.seeds, found.extensions), work.get(self.measured, tile).geometry
        least = np.inf if (usual := work.get(self.usual).rate) is None else usual / 2

        def tell(rows: slice) -> np.ndarray:
            rate = some.score[rows] / np.maximum(geometry.implied[rows], 1.0)
            return (geometry.span[rows] >= SURE_SPAN) & (rate >= least)

        telling = make_rows(tell, len(found.seeds), bool, threads)
        return Turns(find_crossings(len(work.ids(tile)), some, telling, threads), telling)

    def add_partners(self, work: Work) -> np.ndarray:
        """Those of `Crossings`, over all tiles, (n_reads,) int64."""
        return work.summed(self.turns, "crossings.partners")[0]

    def go_on(self, work: Work, tile: int) -> Cover:
        """Where alignments go on along the reads."""
        n_bins, threads = int(bin_starts(work.lengths(tile))[-1]), work.params.run.threads
        if work.get(self.usual).rate is None:
            return Cover(np.zeros(n_bins, np.int32), np.zeros(n_bins, np.int32))
        found, turns, reads = work.get(self.alignments, tile), work.get(self.turns, tile), work.without_bases(tile)
        some, partners = Aligned.of(found.seeds, found.extensions), work.get(self.partners)[work.ids(tile)]
        steps = steps_of(reads, some, turns.telling, turns.crossings, partners, threads)
        return Cover(steps, hull_steps_of(reads, some, threads))

    def stand(self, work: Work) -> Standing:
        """What all alignments of all tiles say of the bins of the reads."""
        starts = bin_starts(work.reads.lengths)
        if work.is_whole:
            ((steps, hull_steps),) = work.arrays(self.cover, "steps", "hull_steps")
        else:
            steps, hull_steps = np.zeros((2, int(starts[-1])), np.int32)
            for tile, (its_steps, its_hulls) in enumerate(work.arrays(self.cover, "steps", "hull_steps")):
                bins = bins_of(starts, work.ids(tile))
                steps[bins] += its_steps
                hull_steps[bins] += its_hulls
        return Standing.of(work.reads.lengths, steps, hull_steps, work.params.run.threads)
