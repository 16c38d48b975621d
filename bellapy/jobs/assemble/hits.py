"""Overlaps as the graph needs them: cut to the supported part of both reads, and sorted into kinds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.records import Overlaps

AT_END = 20  # bases from a read's end where an overlap still reaches the end
ROBUST = 1.4826  # times the median absolute deviation is a standard deviation
FEW = 3  # errors of an overlap that tell nothing: by chance, or at the ends of reads, where few others correct them
DEVIATIONS = 5  # above the median, up to which errors of an overlap are usual
LEAST, USUAL, MOST = 0.000125, 0.002, 0.02  # errors that are never too many; that overlaps of one place may have; too many
LONGEST = 2  # overlaps of a read for each haplotype: one in seven reads has none of its own haplotype among so many
SPREAD = 3  # times the median that may be more than `MOST`
PLACE_BITS = 32  # of a place on a read
STRETCH = 500  # bases of a supported stretch that counts


class Hits(NamedTuple):
    """Overlaps; all columns (n,) int64 but `turned`, bool.

    query, target : reads.  turned : whether the target's reverse complement overlaps.
    query_start, query_end, target_start, target_end : on the forward strand of each read.
    n_matches, n_columns : of the path.  few : errors of an overlap that tell nothing.
    """

    query: np.ndarray
    target: np.ndarray
    turned: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    n_matches: np.ndarray
    n_columns: np.ndarray
    few: np.ndarray

    @classmethod
    def of(cls, overlaps: Overlaps, rows: np.ndarray | slice = slice(None)) -> Hits:
        """All overlaps, or some of them: indices or a mask."""
        numbers = (
            overlaps.query_id, overlaps.target_id, overlaps.strand, overlaps.query_start, overlaps.query_end,
            overlaps.target_start, overlaps.target_end, overlaps.n_matches, overlaps.n_columns, np.full(len(overlaps), FEW),
        )  # fmt: skip
        found = cls(*(column[rows].astype(np.int64) for column in numbers))
        return found._replace(turned=found.turned < 0)

    @property
    def errors(self) -> np.ndarray:
        """Share of columns without two equal bases, but for those that tell nothing, (n,) float64."""
        return np.maximum(self.n_columns - self.n_matches - self.few, 0) / np.maximum(1, self.n_columns)

    def take(self, rows: np.ndarray) -> Hits:
        """Some of them: indices or a mask."""
        return Hits(*(column[rows] for column in self))


class Spans(NamedTuple):
    """The part of every read that is used, (n_reads,) int64 each; empty where a read has no support.

    n_stretches : supported stretches of a read, of which this is the longest.
    """

    start: np.ndarray
    end: np.ndarray
    n_stretches: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Bases that are left of every read."""
        return self.end - self.start


class Kinds(NamedTuple):
    """What overlaps are, (n,) bool each: within both reads, of a query or a target that the other contains, of two ends.

    forward : of two ends: whether the query comes first, in its forward direction.
    query_left, query_right, target_left, target_right : (n,) int64, bases outside, seen along the query.
    """

    query_inside: np.ndarray
    target_inside: np.ndarray
    ends: np.ndarray
    forward: np.ndarray
    query_left: np.ndarray
    query_right: np.ndarray
    target_left: np.ndarray
    target_right: np.ndarray


def error_limit(hits: Hits, haplotypes: int = 1, looked_at: np.ndarray | None = None) -> float:
    """Errors from which on an overlap is poor: of two copies of a repeat, or of two haplotypes.

    It is learnt from the best overlap of every read, which most reads have with one of the same place (Bogart's rule).  Of
    several haplotypes the longest one may be with another: it is the one with fewest errors of the longest ones.

    looked_at : (n_reads,) bool, the reads whose best one counts; None: all.
    """
    read, matches, errors = np.concatenate([hits.query, hits.target]), np.tile(hits.n_matches, 2), np.tile(hits.errors, 2)
    order = np.lexsort((-matches, read))
    if haplotypes > 1:
        rank = np.arange(len(order)) - np.searchsorted(read[order], read[order])
        order = order[rank < LONGEST * haplotypes]
        order = order[np.lexsort((errors[order], read[order]))]
    first = order[np.diff(read[order], prepend=-1) != 0]
    if looked_at is not None:
        first = first[looked_at[read[first]]]
    if not len(first):
        return LEAST
    errors = errors[first]
    middle = float(np.median(errors))
    limit = middle + DEVIATIONS * ROBUST * float(np.median(np.abs(errors - middle)))
    return min(max(limit, LEAST), max(MOST, SPREAD * middle))


def find_spans(hits: Hits, lengths: np.ndarray, min_depth: int, margin: int) -> Spans:
    """The longest stretch of every read that `min_depth` others cover: bad ends go, and the lesser part of chimeras.

    margin : bases at the end of an overlap that do not count, where it does not reach the end of the read.
    """
    read = np.concatenate([hits.query, hits.target])
    start = np.concatenate([hits.query_start, hits.target_start])
    end = np.concatenate([hits.query_end, hits.target_end])
    whole = lengths[read].astype(np.int64)
    start = np.where(start > AT_END, start + margin, start)
    end = np.where(whole - end > AT_END, end - margin, end)
    some = end > start
    place = np.concatenate([start[some], end[some]])
    is_end = np.repeat(np.array([0, 1]), some.sum())
    sorted_ = np.sort((np.tile(read[some], 2) << PLACE_BITS | place) << 1 | is_end)  # where both are, reads begin first
    read, place, step = sorted_ >> PLACE_BITS + 1, sorted_ >> 1 & (1 << PLACE_BITS) - 1, 1 - 2 * (sorted_ & 1)
    depth = np.cumsum(step)
    begins = np.flatnonzero((depth == min_depth) & (step == 1))
    ends = np.flatnonzero((depth == min_depth - 1) & (step == -1))
    owner, first, last = read[begins], place[begins], place[ends]
    order = np.lexsort((first, first - last, owner))
    longest = order[np.diff(owner[order], prepend=-1) != 0]
    n = len(lengths)
    spans = Spans(np.zeros(n, np.int64), np.zeros(n, np.int64), np.bincount(owner[last - first > STRETCH], minlength=n))
    at = owner[longest]
    near = margin + AT_END
    spans.start[at] = np.where(first[longest] <= near, 0, first[longest])
    spans.end[at] = np.where(lengths[at] - last[longest] <= near, lengths[at], last[longest])
    return spans


def widen(spans: Spans, hits: Hits, lengths: np.ndarray, margin: int, tail: int) -> Spans:
    """The spans with what one other read covers beside them, and `tail` more bases where that is the end of a read.

    So it is at the end of a chromosome, and where reads are few.  A side stays as it is where others go on differently: they
    lie over a bad end, or a chimera is not like them from there on.
    """
    query_left, query_right, target_left, target_right = _outside(hits, lengths)
    left, right = (np.minimum(*both) > AT_END for both in ((query_left, target_left), (query_right, target_right)))
    starts = np.concatenate([left, np.where(hits.turned, right, left)])
    ends = np.concatenate([right, np.where(hits.turned, left, right)])
    read = np.concatenate([hits.query, hits.target])
    owner = np.concatenate([read[starts], read[ends]])
    place = np.concatenate([
        np.concatenate([hits.query_start, hits.target_start])[starts],
        np.concatenate([hits.query_end, hits.target_end])[ends],
    ])  # fmt: skip
    start, end, _ = find_spans(hits, lengths, 1, margin)
    around = (spans.lengths > 0) & (start <= spans.start) & (end >= spans.end)
    start, end = np.where(start <= tail, 0, start), np.where(lengths - end <= tail, lengths, end)
    start, end = np.where(around, start, spans.start), np.where(around, end, spans.end)
    before, behind = owner[place <= spans.start[owner]], owner[place >= spans.end[owner]]
    start[before], end[behind] = spans.start[before], spans.end[behind]
    return spans._replace(start=start, end=end)


def clip(hits: Hits, spans: Spans, min_overlap: int) -> Hits:
    """The hits cut to what is used of both reads, in positions of that; those that become too short are left out.

    A cut on one read is a cut of as many bases on the other: gaps are few.
    """
    query_start, query_end = spans.start[hits.query], spans.end[hits.query]
    target_start, target_end = spans.start[hits.target], spans.end[hits.target]
    head, tail = np.maximum(target_start - hits.target_start, 0), np.maximum(hits.target_end - target_end, 0)
    left = np.maximum(np.maximum(query_start - hits.query_start, 0), np.where(hits.turned, tail, head))
    right = np.maximum(np.maximum(hits.query_end - query_end, 0), np.where(hits.turned, head, tail))
    cut = hits._replace(
        query_start=hits.query_start + left - query_start,
        query_end=hits.query_end - right - query_start,
        target_start=hits.target_start + np.where(hits.turned, right, left) - target_start,
        target_end=hits.target_end - np.where(hits.turned, left, right) - target_start,
    )
    long = np.minimum(cut.query_end - cut.query_start, cut.target_end - cut.target_start) >= min_overlap
    return cut.take(long & (query_end > query_start) & (target_end > target_start))


def sort_kinds(hits: Hits, lengths: np.ndarray, overhang: int, share: float) -> Kinds:
    """What each overlap is; where both reads go on at one end, or the overlap is a small part of this, it is none of them.

    lengths : of the reads, as they are cut.  overhang : bases that both may go on.
    share : of the overlap in what it would be without overhangs.
    Of two reads that contain each other the one with the larger number is inside.
    """
    query_left, query_right, target_left, target_right = _outside(hits, lengths)
    left, right = np.minimum(query_left, target_left), np.minimum(query_right, target_right)
    span = hits.query_end - hits.query_start
    proper = (np.maximum(left, right) <= overhang) & (span >= share * (span + left + right))
    query_inside = proper & (query_left <= target_left) & (query_right <= target_right)
    target_inside = proper & (query_left >= target_left) & (query_right >= target_right)
    both = query_inside & target_inside
    query_inside &= ~both | (hits.query > hits.target)
    target_inside &= ~both | (hits.target > hits.query)
    ends = proper & ~query_inside & ~target_inside
    return Kinds(
        query_inside, target_inside, ends, ends & (query_left > target_left), query_left, query_right, target_left,
        target_right,
    )  # fmt: skip


def _outside(hits: Hits, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bases outside the overlaps: left and right of the query's, left and right of the target's, seen along the query."""
    head, tail = hits.target_start, lengths[hits.target] - hits.target_end
    target_left, target_right = np.where(hits.turned, tail, head), np.where(hits.turned, head, tail)
    return hits.query_start, lengths[hits.query] - hits.query_end, target_left, target_right
