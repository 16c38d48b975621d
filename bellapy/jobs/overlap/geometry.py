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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

BIN = 100  # bases: how finely it is known where alignments go on
BEYOND = 400  # bases: an alignment goes on past a place if it covers so many on both sides of it
AT_END = 100  # bases: an alignment that comes so close to the end of a read reaches it
AROUND_TURN = 200  # bases: there two alignments that cross are less than BEYOND apart
NOWHERE = -(1 << 40)
MOST_SUMS = 4  # of the bins, for queries and for targets: more take longer to be added up
LEAST_ROWS = 1 << 16  # alignments: fewer are looked at before a thread has begun
STRAY = 0.02  # share of a read's alignments that may go on in what is bad


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


@dataclass(frozen=True)
class Aligned:
    """What geometry looks at of alignments and their seeds, (n,) each, as in Seeds and Extensions."""

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    score: np.ndarray

    @classmethod
    def of(cls, seeds: Seeds | Overlaps, extensions: Extensions | Overlaps) -> Aligned:
        """Those of seeds and the alignments that grew from them; overlaps are both."""
        return cls(
            seeds.query_id, seeds.target_id, seeds.strand, extensions.query_start, extensions.query_end,
            extensions.target_start, extensions.target_end, extensions.score,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.query_id)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """All but the score, for compiled code."""
        ends = self.query_start, self.query_end, self.target_start, self.target_end
        return self.query_id, self.target_id, self.strand, *ends

    def take(self, rows: np.ndarray) -> Aligned:
        """The same of some rows."""
        return Aligned(*(column[rows] for column in (*self.columns, self.score)))


def measure_geometry(
    reads: ReadSet, seeds: Seeds | Overlaps, extensions: Extensions | Overlaps, threads: int = 1
) -> Geometry:
    """Overhangs, span and implied length of every alignment; overlaps are both, pairs of reads and alignments."""
    n, columns = len(seeds), Aligned.of(seeds, extensions).columns
    (left, right, span), implied = np.empty((3, n), np.int32), np.empty(n)

    def measure(rows: slice) -> None:
        _measure(reads.lengths, _part(columns, rows), left[rows], right[rows], span[rows], implied[rows])

    map_threads(measure, _shares(n, threads), threads)
    return Geometry(left, right, span, implied, np.zeros(n, bool))


def _shares(n: int, threads: int) -> list[slice]:
    """Rows 0 .. n - 1 for threads, none of which has few; at least one share."""
    return [slice(*part) for part in even_ranges(n, min(threads, 1 + n // LEAST_ROWS))] or [slice(0, 0)]


def _part(columns: tuple[np.ndarray, ...], rows: slice) -> tuple[np.ndarray, ...]:
    return tuple(column[rows] for column in columns)


@njit_entry
def _measure(lengths, aligned, left, right, span, implied):
    """Fill in the columns of Geometry but the last, (n,) int32, `implied` float64.

    lengths : (n_reads,) int32.  aligned : the columns of Aligned.
    """
    query_id, target_id, strand, query_start, query_end, target_start, target_end = aligned
    for i in range(len(query_id)):
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
    def of(cls, lengths: np.ndarray, steps: np.ndarray, hull_steps: np.ndarray) -> Standing:
        """From the sums of what `steps_of` gives for sound alignments, and for `hulls`, over all of them."""
        starts = bin_starts(lengths)
        going_on, of_hulls = np.cumsum(steps, dtype=np.int32), np.cumsum(hull_steps, dtype=np.int32)
        return cls(_hardly_any(starts, going_on), _hardly_any(starts, of_hulls), going_on > 0)


def bin_starts(lengths: np.ndarray) -> np.ndarray:
    """Where the bins of each read start, and where those of the last one end, (n_reads + 1,) int64."""
    return np.concatenate(([0], np.cumsum(lengths // BIN + 2, dtype=np.int64)))


def fair_geometry(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, geometry: Geometry, standing: Standing, threads: int = 1
) -> Geometry:
    """The geometry without the overhangs that do not count, and with what lies in the lesser part of a joined read.

    standing : of the bins of these reads.
    """
    covered = np.concatenate(([0], np.cumsum(standing.covered)))  # bins before each one
    bins = _Bins(bin_starts(reads.lengths), standing.bad, standing.joined, covered)
    n, columns = len(seeds), Aligned.of(seeds, extensions).columns
    (left, right), implied, lesser = np.empty((2, n), np.int32), np.empty(n), np.empty(n, bool)
    overhangs = geometry.left, geometry.right

    def judge(rows: slice) -> None:
        told = _part(columns, rows), _part(overhangs, rows), geometry.implied[rows]
        _judge(bins, *told, left[rows], right[rows], implied[rows], lesser[rows])

    map_threads(judge, _shares(n, threads), threads)
    return Geometry(left, right, geometry.span, implied, lesser)


class _Bins(NamedTuple):
    """Bins for compiled code: where those of each read start, what stands of them, and covered bins before each one."""

    starts: np.ndarray
    bad: np.ndarray
    joined: np.ndarray
    covered: np.ndarray


@njit_entry
def _judge(bins, aligned, overhangs, spanned, left, right, implied, lesser):
    """Fill in the columns of the fair Geometry.

    bins : _Bins.  aligned : the columns of Aligned.  overhangs, spanned : left and right, and implied, of the
    geometry, (n,).  left, right : (n,) int32.  implied : (n,) float64.  lesser : (n,) bool.
    """
    query_id, target_id, strand, query_start, query_end, target_start, target_end = aligned
    for i in range(len(query_id)):
        q, t, same = query_id[i], target_id[i], strand[i] > 0
        first, last = (target_start[i], target_end[i]) if same else (target_end[i], target_start[i])
        bad_left = bins.bad[_bin(bins, q, query_start[i])] or bins.bad[_bin(bins, t, first)]
        bad_right = bins.bad[_bin(bins, q, query_end[i])] or bins.bad[_bin(bins, t, last)]
        its_left, its_right = overhangs[0][i], overhangs[1][i]
        left[i], right[i] = 0 if bad_left else its_left, 0 if bad_right else its_right
        implied[i] = spanned[i] - its_left - its_right + left[i] + right[i]
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
    before = bins.covered[at] - bins.covered[bins.starts[read]]
    behind = bins.covered[bins.starts[read + 1]] - bins.covered[at]
    return behind < before if runs_on else before < behind


def _hardly_any(starts: np.ndarray, going_on: np.ndarray) -> np.ndarray:
    """Mask of the bins that at most a share STRAY of what the read has anywhere goes on past."""
    most = np.maximum.reduceat(going_on, starts[:-1]) if len(starts) > 1 else going_on[:0]
    return going_on <= STRAY * np.repeat(most, np.diff(starts))


def _by_pair(some: Aligned) -> tuple[np.ndarray, np.ndarray]:
    """The rows by their two reads, and where the rows of each pair begin among them."""
    pair = some.query_id.astype(np.int64) << 32 | some.target_id
    in_order = bool(np.all(pair[1:] >= pair[:-1]))  # usually
    order = np.arange(len(pair)) if in_order else np.argsort(pair, kind="stable")
    return order, np.flatnonzero(np.diff(pair[order], prepend=-1))


def hulls(some: Aligned) -> Aligned:
    """One row for each pair of reads, from the first start to the last end of their alignments, whatever the strands."""
    order, begins = _by_pair(some)
    ends = {"start": np.minimum, "end": np.maximum}
    names = [(f"{read}_{end}", pick) for read in ("query", "target") for end, pick in ends.items()]
    columns = {name: pick.reduceat(getattr(some, name)[order], begins) for name, pick in names}
    return replace(some.take(order[begins]), **columns)


def steps_of(reads: ReadSet, some: Aligned, turns: np.ndarray | None = None, threads: int = 1) -> np.ndarray:
    """By how much the number of alignments that go on changes from bin to bin of each read, (n_bins,) int32.

    turns : of the alignments, as from `Crossings.turns`; None: no read turns.
    """
    starts = bin_starts(reads.lengths)
    nowhere = np.zeros((2, 0), np.int64) if turns is None else turns
    sides = (
        (some.query_id, some.query_start, some.query_end, nowhere[0]),
        (some.target_id, some.target_start, some.target_end, nowhere[1]),
    )

    def add(part: tuple[tuple[np.ndarray, ...], slice]) -> np.ndarray:
        (*columns, turn), rows = part
        steps = np.zeros(starts[-1], np.int32)
        _add_steps(starts, reads.lengths, *_part(tuple(columns), rows), turn[rows] if turn.size else turn, steps)
        return steps

    shares = _shares(len(some), min(threads, MOST_SUMS))
    total, *others = map_threads(add, [(side, rows) for side in sides for rows in shares], threads)

    def add_up(bins: tuple[int, int]) -> None:
        for steps in others:
            total[slice(*bins)] += steps[slice(*bins)]

    map_threads(add_up, even_ranges(len(total), threads), threads)
    return total


def _on_both_strands(some: Aligned) -> tuple[np.ndarray, np.ndarray]:
    """Rows of pairs of reads that align on both strands; for each the best row of its reads on the other strand."""
    order, begins = _by_pair(some)
    strand = some.strand[order]
    both = np.minimum.reduceat(strand, begins) < np.maximum.reduceat(strand, begins)
    pair = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(order)))
    of_both = both[pair]
    rows, pair = order[of_both], pair[of_both]
    candidate = 2 * pair + (some.strand[rows] > 0)
    by_score = np.lexsort((some.score[rows], candidate))
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

        Of each alignment the place on the query and on the target, NOWHERE where they do not turn.  Several such reads are
        evidence of an inverted repeat in the molecule: reads turn at random places.

        partners : the sum of those of all alignments of these reads.
        """
        turns = np.full((2, len(some)), NOWHERE, np.int64)
        read = np.stack((some.query_id[self.rows], some.target_id[self.rows]))
        turns[:, self.rows] = np.where(self.across & (partners == 1)[read], self.place, NOWHERE)
        return turns


def find_crossings(n_reads: int, some: Aligned) -> Crossings:
    """Where the two alignments of reads that align on both strands cross; all those of a pair have to be given."""
    rows, others = _on_both_strands(some)
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


@njit
def _add_steps(starts, lengths, read_id, begin, end, turn, steps):
    """Add 1 where an alignment begins to go on and take 1 where it does not any more; not around its turn.

    starts : (n_reads + 1,) int64, first bin of each read.  lengths : (n_reads,) int32.  read_id, begin, end : (n,) int32, of
    the alignments.  turn : (n,) int64, where they cross others, or empty.  steps : (n_bins,) int32, by bin.
    """
    for i in range(len(read_id)):
        length, at = lengths[read_id[i]], starts[read_id[i]]
        first = 0 if begin[i] <= AT_END else (begin[i] + BEYOND + BIN - 1) // BIN
        last = length // BIN if end[i] >= length - AT_END else (end[i] - BEYOND) // BIN
        if first <= last:
            steps[at + first] += 1
            steps[at + last + 1] -= 1
            if not turn.size:
                continue
            begins, ends = max(first, (turn[i] - AROUND_TURN) // BIN), min(last, (turn[i] + AROUND_TURN) // BIN)
            if begins <= ends:
                steps[at + begins] -= 1
                steps[at + ends + 1] += 1
