"""Circular references: anchors, chains and alignments that run over the origin.

A circle is unrolled behind the sequences of the index: its bases again and again, as far as a long read goes.  An anchor of
a circle is moved to where the read that it belongs to would begin in the first turn.  So a read over the origin has one
chain and one alignment, and a read that goes round a plasmid ten times as well.  An alignment is cut at the origin only when
it is chosen, scored and judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, length_of, operation_of, pack_run
from bellapy.errors import ParameterError
from bellapy.jobs.map.join import advance, append_run, describe_path
from bellapy.seeding.anchors import place_of, query_of, read_of, track_of
from bellapy.seeding.index import Index

ALL = "all"
NONE = -1
UNROLLED = 1 << 19  # bases beyond a circle's first turn
SLACK, LEAST_SLACK = 8, 64  # an alignment may be longer than its read by this part of it, and by so many bases


class Target(NamedTuple):
    """What reads are aligned to: the sequences of an index, and behind them its circles, unrolled.

    codes : uint8.  starts, lengths : (n_tracks,) int64, of all these in `codes`.  sequence : (n_tracks,) int64, whose it is.
    track : (n_sequences,) int64, where a circle is unrolled; NONE for what is linear.
    """

    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    sequence: np.ndarray
    track: np.ndarray

    @property
    def has_circles(self) -> bool:
        return len(self.starts) > len(self.track)


class Crossed(NamedTuple):
    """Reads of a batch on circles: over an origin, of these round more than once, and too long to be sure of the first."""

    over_origin: int = 0
    around: int = 0
    too_long: int = 0


def circles_of(text: str | Sequence[str], align: bool) -> tuple[str, ...]:
    """Names of circles, from text such as `chr,plasmid` or a list; none of them is empty.

    Raises
    ------
    ParameterError : nothing is aligned, so that nothing could be cut at an origin.
    """
    names = text.split(",") if isinstance(text, str) else text
    found = tuple(name for name in names if name)
    if found and not align:
        raise ParameterError("--circular: chains alone cannot be cut at an origin; leave out --no-align")
    return found


def linear(index: Index) -> Target:
    """The sequences of an index, none of them a circle."""
    n = len(index.starts)
    return Target(index.codes, index.starts, index.lengths, np.arange(n), np.full(n, NONE, np.int64))


def unroll(index: Index, circular: Sequence[str]) -> Target:
    """The sequences of an index, of which some are circles.

    circular : their names, or `all`.

    Raises
    ------
    ParameterError : no sequence has such a name.
    """
    plain = linear(index)
    if not circular:
        return plain
    if unknown := [name for name in circular if name != ALL and name not in index.names]:
        few = ", ".join(index.names[:5]) + (", ..." if len(index.names) > 5 else "")
        raise ParameterError(f"--circular {unknown[0]}: the reference has no sequence of this name; it has {few}")
    wanted = [ALL in circular or name in circular for name in index.names]
    circles = np.flatnonzero(np.array(wanted, bool) & (index.lengths > 0))
    sizes = index.lengths[circles] + UNROLLED
    starts = len(index.codes) + np.cumsum(sizes) - sizes
    codes = np.empty(len(index.codes) + int(sizes.sum()), np.uint8)
    codes[: len(index.codes)] = index.codes
    for sequence, start, size in zip(circles.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        begin, length = index.starts[sequence], index.lengths[sequence]
        codes[start : start + size] = np.resize(index.codes[begin : begin + length], size)
    plain.track[circles] = len(index.starts) + np.arange(len(circles))
    both = ((index.starts, starts), (index.lengths, sizes), (plain.sequence, circles))
    return Target._make([codes, *map(np.concatenate, both), plain.track])


def longest_sure(gap: int) -> int:
    """Bases of the longest read that has room on every circle, wherever it begins.  gap : the longest in a chain."""
    return (UNROLLED - 2 * LEAST_SLACK - gap) * SLACK // (SLACK + 3)


@njit
def to_circles(anchors, layout, lengths, target, gap):
    """Anchors of which those on circles are moved to the unrolled ones.

    The read's beginning lies in the first turn then.  Where it lies near the begin of that turn, anchors before it would be
    in the next one: so those are there twice, and chains that are the same one are told apart later.

    anchors : (n,) uint64; layout : their Layout.  lengths : (n_reads,) int64.  target : Target.
    gap : bases that the diagonals of a chain may differ by, beside what errors make of it.

    Returns anchors, (any,) uint64, in no order.
    """
    moved, n = np.empty(2 * len(anchors), np.uint64), 0
    n_linear = len(target.track)
    for anchor in anchors:
        place, q = place_of(anchor, layout), query_of(anchor, layout)
        sequence = np.searchsorted(target.starts[:n_linear], place, side="right") - 1
        track = target.track[sequence]
        if track == NONE:
            moved[n] = anchor
            n += 1
            continue
        turn, length = target.lengths[sequence], lengths[read_of(anchor, layout)]
        slack = length // SLACK + LEAST_SLACK
        begin = (place - target.starts[sequence] - q - slack) % turn
        last = target.lengths[track] - (length - q) - (length - q) // SLACK - LEAST_SLACK
        for _ in range(2 if begin < gap + slack else 1):
            at = slack + begin + q
            if at > last:
                at -= (at - last + turn - 1) // turn * turn
            if at >= 0:
                moved[n] = anchor + np.uint64((target.starts[track] + at - place) << layout.q_bits)
                n += 1
            begin += turn
    return moved[:n].copy()


@njit_inner
def _has_anchor(anchors, first, stop, layout, q, track):
    """Whether a chain, anchors[first:stop] (uint64), has the anchor at q on the query and `track`.  layout : Layout."""
    while first < stop:
        middle = (first + stop) // 2
        if query_of(anchors[middle], layout) < q:
            first = middle + 1
        else:
            stop = middle
    return first < len(anchors) and query_of(anchors[first], layout) == q and track_of(anchors[first], layout) == track


@njit
def without_images(chains, anchors, layout, target):
    """Which chains, (n,) bool, are no image of a better one: the same anchors, a turn of a circle away.

    chains : Chains; anchors : uint64, theirs; layout : their Layout.  target : Target.
    """
    n = len(chains.read)
    kept, head = np.ones(n, np.bool_), 0
    for i in range(n):
        if chains.read[i] != chains.read[head]:
            head = i
        track = np.searchsorted(target.starts, chains.t_start[i], side="right") - 1
        if track < len(target.track):
            continue
        turn = target.lengths[target.sequence[track]]
        first, stop = chains.first[i], chains.first[i] + chains.n_anchors[i]
        shared = 0
        for x in range(first, stop):
            q, place = query_of(anchors[x], layout), track_of(anchors[x], layout)
            for j in range(head, i):
                if not kept[j] or chains.strand[j] != chains.strand[i] or not chains.q_start[j] <= q < chains.q_end[j]:
                    continue
                begin, end = chains.first[j], chains.first[j] + chains.n_anchors[j]
                if _has_anchor(anchors, begin, end, layout, q, place - turn) or _has_anchor(
                    anchors, begin, end, layout, q, place + turn
                ):
                    shared += 1
                    break
        kept[i] = 2 * shared < stop - first
    return kept


def fold(places: np.ndarray, target: Target) -> np.ndarray:
    """Places in the codes of a target, those of unrolled circles in the first turn, where the index has them."""
    track = np.searchsorted(target.starts, places, side="right") - 1
    sequence, at = target.sequence[track], places - target.starts[track]
    return target.starts[sequence] + np.where(track < len(target.track), at, at % np.maximum(1, target.lengths[sequence]))


@njit_inner
def _close(query, codes, begin, runs, first, n, scoring, row):
    """End a part of a path at its last pair, and describe it in a row, (13,) int64, of `cut_at_origins`.

    query, codes : (any,) uint8.  begin : its source, and where its first pair lies in both.  runs[first:n] : uint32.
    scoring : AffineScoring.

    Returns where its runs end; `first`: there is no pair.
    """
    while n > first and operation_of(runs[n - 1]) != PAIR:
        n -= 1
    if n > first:
        describe_path(query, codes, begin, runs, first, n - first, scoring, row)
    return n


@njit
def cut_at_origins(query, target, paths, rows, sequences, scoring):
    """The paths, cut where they run over an origin; gaps there are left out.

    query : (any,) uint8, codes of reads.  target : Target.  paths : Paths.  rows : (n,) int64, which paths.
    sequences : (2, n) int64, the sequence that each lies on and where it begins on that.  scoring : AffineScoring.

    Returns columns (13, n_parts), as of `join_strokes`, in the codes of the index, with the place in `rows` as source; and
    the runs.
    """
    most = len(rows)
    for x in range(len(rows)):
        size = paths.t_end[rows[x]] - paths.t_start[rows[x]]
        most += size // max(np.int64(1), target.lengths[sequences[0, x]]) + 1
    parts, n_parts = np.empty((most + 1, 13), np.int64), 0
    runs, n_runs = np.empty(paths.n_runs[rows].sum() + 2 * most, np.uint32), 0
    for x in range(len(rows)):
        a, sequence = rows[x], sequences[0, x]
        origin = target.starts[sequence]
        end = origin + target.lengths[sequence]
        q, t = paths.q_start[a], origin + sequences[1, x]
        first, begin = n_runs, (np.int64(x), q, t)
        for y in range(paths.first[a], paths.first[a] + paths.n_runs[a]):
            operation, size = operation_of(paths.runs[y]), length_of(paths.runs[y])
            while size > 0:
                part = size if operation == QUERY_ALONE else min(size, end - t)
                q_size, t_size = advance(operation, part)
                q, t, size = q + q_size, t + t_size, size - part
                if operation == PAIR or n_runs > first:
                    n_runs = append_run(runs, first, n_runs, pack_run(operation, part))
                else:
                    begin = (np.int64(x), q, t)
                if t == end:
                    n_runs = _close(query, target.codes, begin, runs, first, n_runs, scoring, parts[n_parts])
                    n_parts += n_runs > first
                    t, first, begin = origin, n_runs, (np.int64(x), q, origin)
        n_runs = _close(query, target.codes, begin, runs, first, n_runs, scoring, parts[n_parts])
        n_parts += n_runs > first
    return parts[:n_parts].T.copy(), runs[:n_runs]
