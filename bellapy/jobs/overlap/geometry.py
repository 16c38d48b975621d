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

from bellapy.compute.jit import njit
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

BIN = 100  # bases: how finely it is known where alignments go on
BEYOND = 400  # bases: an alignment goes on past a place if it covers so many on both sides of it
AT_END = 100  # bases: an alignment that comes so close to the end of a read reaches it
AROUND_TURN = 200  # bases: there two alignments that cross are less than BEYOND apart
NOWHERE = -(1 << 40)
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


def measure_geometry(reads: ReadSet, seeds: Seeds | Overlaps, extensions: Extensions | Overlaps) -> Geometry:
    """Overhangs, span and implied length of every alignment; overlaps are both, pairs of reads and alignments."""
    query_after = reads.lengths[seeds.query_id] - extensions.query_end
    target_after = reads.lengths[seeds.target_id] - extensions.target_end
    same = seeds.strand > 0
    left = np.minimum(extensions.query_start, np.where(same, extensions.target_start, target_after))
    right = np.minimum(query_after, np.where(same, target_after, extensions.target_start))
    query_span = extensions.query_end - extensions.query_start
    target_span = extensions.target_end - extensions.target_start
    implied = left + right + (query_span + target_span) / 2
    return Geometry(left, right, np.minimum(query_span, target_span), implied, np.zeros(len(left), bool))


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


def fair_geometry(reads: ReadSet, seeds: Seeds, extensions: Extensions, geometry: Geometry, standing: Standing) -> Geometry:
    """The geometry without the overhangs that do not count, and with what lies in the lesser part of a joined read.

    standing : of the bins of these reads.
    """
    starts, bad, joined = bin_starts(reads.lengths), standing.bad, standing.joined
    covered = np.concatenate(([0], np.cumsum(standing.covered)))  # bins before each one

    def is_bad(read: np.ndarray, position: np.ndarray) -> np.ndarray:
        return bad[starts[read] + position // BIN]

    def is_lesser(read: np.ndarray, position: np.ndarray, runs_on: np.ndarray | bool) -> np.ndarray:
        """Whether the read is joined there, and the side on which the alignment lies, behind or before it, is the lesser."""
        at = starts[read] + position // BIN
        lesser = joined[at]
        rows = np.flatnonzero(lesser)  # few
        read, at, runs_on = read[rows], at[rows], np.broadcast_to(runs_on, len(lesser))[rows]
        before, behind = covered[at] - covered[starts[read]], covered[starts[read + 1]] - covered[at]
        lesser[rows] = np.where(runs_on, behind < before, before < behind)
        return lesser

    same = seeds.strand > 0
    first = np.where(same, extensions.target_start, extensions.target_end)
    last = np.where(same, extensions.target_end, extensions.target_start)
    left = is_bad(seeds.query_id, extensions.query_start) | is_bad(seeds.target_id, first)
    right = is_bad(seeds.query_id, extensions.query_end) | is_bad(seeds.target_id, last)
    left, right = np.where(left, 0, geometry.left), np.where(right, 0, geometry.right)
    at_left = is_lesser(seeds.query_id, extensions.query_start, True) | is_lesser(seeds.target_id, first, same)
    at_right = is_lesser(seeds.query_id, extensions.query_end, False) | is_lesser(seeds.target_id, last, ~same)
    lesser = (geometry.left > BEYOND) & at_left | (geometry.right > BEYOND) & at_right
    return Geometry(left, right, geometry.span, geometry.aligned + left + right, lesser)


def _hardly_any(starts: np.ndarray, going_on: np.ndarray) -> np.ndarray:
    """Mask of the bins that at most a share STRAY of what the read has anywhere goes on past."""
    most = np.maximum.reduceat(going_on, starts[:-1]) if len(starts) > 1 else going_on[:0]
    return going_on <= STRAY * np.repeat(most, np.diff(starts))


def _by_pair(seeds: Seeds) -> tuple[np.ndarray, np.ndarray]:
    """The rows by their two reads, and where the rows of each pair begin among them."""
    pair = seeds.query_id.astype(np.int64) << 32 | seeds.target_id
    order = np.argsort(pair, kind="stable")
    return order, np.flatnonzero(np.diff(pair[order], prepend=-1))


def hulls(seeds: Seeds, extensions: Extensions) -> tuple[Seeds, Extensions]:
    """One row for each pair of reads, from the first start to the last end of their alignments, whatever the strands."""
    order, begins = _by_pair(seeds)
    rows, ends = order[begins], {"start": np.minimum, "end": np.maximum}
    names = [(f"{read}_{end}", pick) for read in ("query", "target") for end, pick in ends.items()]
    columns = {name: pick.reduceat(getattr(extensions, name)[order], begins) for name, pick in names}
    return seeds.take(rows), replace(extensions.take(rows), **columns)


def steps_of(reads: ReadSet, seeds: Seeds, extensions: Extensions, turns: np.ndarray) -> np.ndarray:
    """By how much the number of alignments that go on changes from bin to bin of each read, (n_bins,) int32.

    turns : of the alignments, as from `Crossings.turns`.
    """
    starts = bin_starts(reads.lengths)
    steps = np.zeros(starts[-1], np.int32)
    _add_steps(starts, reads.lengths, seeds.query_id, extensions.query_start, extensions.query_end, turns[0], steps)
    _add_steps(starts, reads.lengths, seeds.target_id, extensions.target_start, extensions.target_end, turns[1], steps)
    return steps


def _on_both_strands(seeds: Seeds, extensions: Extensions) -> tuple[np.ndarray, np.ndarray]:
    """Rows of pairs of reads that align on both strands; for each the best row of its reads on the other strand."""
    order, begins = _by_pair(seeds)
    strand = seeds.strand[order]
    both = np.minimum.reduceat(strand, begins) < np.maximum.reduceat(strand, begins)
    pair = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(order)))
    rows, pair = order[both[pair]], pair[both[pair]]
    candidate = 2 * pair + (seeds.strand[rows] > 0)
    by_score = np.lexsort((extensions.score[rows], candidate))
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

    def turns(self, seeds: Seeds, partners: np.ndarray) -> np.ndarray:
        """Where reads turn that one other read alone runs across, and that on both strands; (2, n) int64.

        Of each alignment the place on the query and on the target, NOWHERE where they do not turn.  Several such reads are
        evidence of an inverted repeat in the molecule: reads turn at random places.

        partners : the sum of those of all alignments of these reads.
        """
        turns = np.full((2, len(seeds)), NOWHERE, np.int64)
        read = np.stack((seeds.query_id, seeds.target_id))[:, self.rows]
        turns[:, self.rows] = np.where(self.across & (partners == 1)[read], self.place, NOWHERE)
        return turns


def find_crossings(n_reads: int, seeds: Seeds, extensions: Extensions) -> Crossings:
    """Where the two alignments of reads that align on both strands cross; all those of a pair have to be given."""
    rows, others = _on_both_strands(seeds, extensions)
    read = np.stack((seeds.query_id, seeds.target_id))[:, rows]
    start = np.stack((extensions.query_start, extensions.target_start)).astype(np.int64)
    end = np.stack((extensions.query_end, extensions.target_end)).astype(np.int64)
    same, twice = seeds.strand[rows] > 0, start + end
    ahead, back = (twice[1] - twice[0])[np.where(same, rows, others)], twice.sum(axis=0)[np.where(same, others, rows)]
    place = np.stack((back - ahead, back + ahead)) // 4  # where the two diagonals cross
    within = np.maximum(start[:, rows], start[:, others]) + BEYOND <= place
    within &= place <= np.minimum(end[:, rows], end[:, others]) - BEYOND
    pairs = np.unique(read[within].astype(np.int64) << 32 | read[::-1][within])
    return Crossings(rows, place, within, np.bincount(pairs >> 32, minlength=n_reads))


@njit
def _add_steps(starts, lengths, read_id, begin, end, turn, steps):
    """Add 1 where an alignment begins to go on and take 1 where it does not any more; not around its turn.

    starts : (n_reads + 1,) int64, first bin of each read.  lengths : (n_reads,) int32.  read_id, begin, end : (n,) int32, of
    the alignments.  turn : (n,) int64, where they cross others.  steps : (n_bins,) int32, by bin.
    """
    for i in range(len(read_id)):
        length, at = lengths[read_id[i]], starts[read_id[i]]
        first = 0 if begin[i] <= AT_END else (begin[i] + BEYOND + BIN - 1) // BIN
        last = length // BIN if end[i] >= length - AT_END else (end[i] - BEYOND) // BIN
        if first <= last:
            steps[at + first] += 1
            steps[at + last + 1] -= 1
            begins, ends = max(first, (turn[i] - AROUND_TURN) // BIN), min(last, (turn[i] + AROUND_TURN) // BIN)
            if begins <= ends:
                steps[at + begins] -= 1
                steps[at + ends + 1] += 1
