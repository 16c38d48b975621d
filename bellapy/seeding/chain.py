"""Chains of anchors by dynamic programming, with minimap2's scores (Li 2018, section 2.1).

A chain's score grows by the new bases of each anchor and falls by 0.008 k for each base that the gaps on read and reference
differ, and by half their logarithm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.seeding.anchors import place_of, query_of, read_of, strand_of, track_of

GAP_SHARE = 0.008
AT_ONCE = 256  # predecessors of which vector code tells which are near; 8 in a word


class ChainRule(NamedTuple):
    """Which anchors may follow each other.

    max_gap : bases between them on read or reference.  band : how far these gaps may differ.
    max_skips : predecessors that are tried in vain before the search ends.  max_tried : predecessors looked at.
    min_anchors, min_score : of a chain.
    """

    max_gap: int
    band: int
    max_skips: int = 25
    max_tried: int = 5000
    min_anchors: int = 3
    min_score: int = 40


class Chains(NamedTuple):
    """Chains in the order of reads, then of falling score; all columns (n,) int64.

    read, strand, score, n_anchors; q_start, q_end : on the strand's own read; t_start, t_end : in the reference's codes.
    first : where the chain's anchors begin in `anchors`, the array that belongs to them.
    """

    read: np.ndarray
    strand: np.ndarray
    score: np.ndarray
    n_anchors: np.ndarray
    q_start: np.ndarray
    q_end: np.ndarray
    t_start: np.ndarray
    t_end: np.ndarray
    first: np.ndarray


def penalties(k: int, band: int) -> np.ndarray:
    """(band + 1,) int32, what a difference of gaps costs."""
    difference = np.arange(band + 1)
    return (GAP_SHARE * k * difference + 0.5 * np.log2(difference + 1)).astype(np.int32)


@njit_inner
def _tell_places(anchors, layout, tracks, queries):
    """The last 32 bits of anchors' tracks, and their query positions, to (n,) uint32 each."""
    for i in range(len(anchors)):
        tracks[i], queries[i] = track_of(anchors[i], layout), query_of(anchors[i], layout)


@njit_vector
def _mark_near(tracks, queries, begin, n, i, max_gap, band, near):
    """near[x] = 1 if anchor i may follow anchor begin + x, else 0, for n of them, whose tracks are at most max_gap before.

    tracks, queries : of `_tell_places`.  max_gap, band : uint32, of ChainRule.  near : uint8.
    """
    first, track, query, one = np.uint64(begin), tracks[i], queries[i], np.uint32(1)
    for x in range(np.uint64(n)):
        t_gap, q_gap = np.uint32(track - tracks[first + x]), np.uint32(query - queries[first + x])
        before = (np.uint32(t_gap - one) < max_gap) & (np.uint32(q_gap - one) < max_gap)
        near[x] = before & (np.uint32(t_gap - q_gap + band) <= np.uint32(band + band))


@njit_inner
def _last_near(near, words, end):
    """The last place before `end` that is marked in `near`, or -1; words : the same, eight at a time."""
    x = end - 1
    while x >= 0:
        if x % 8 == 7 and words[x // 8] == 0:
            x -= 8
        elif near[x]:
            return x
        else:
            x -= 1
    return x


@njit_inner
def _best_before(i, oldest, places, scores, before, tried_by, k, rule, costs, room):
    """The best score of a chain that ends at anchor i, and the anchor before it or -1; from i back to `oldest`.

    places : both of `_tell_places`.  scores, before, k, rule, costs : as in `score_anchors`.
    tried_by : (n,) int32, the last anchor that tried one behind each.  room : (AT_ONCE,) uint8, and the same as words.
    """
    (tracks, queries), (near, words) = places, room
    best, its_before, skips, end = np.int64(k), np.int64(-1), 0, i
    while end > oldest:
        begin = max(oldest, end - AT_ONCE)
        n = end - begin
        _mark_near(tracks, queries, begin, n, i, np.uint32(rule.max_gap), np.uint32(rule.band), near)
        x = _last_near(near, words, n)
        while x >= 0:
            j = begin + x
            t_gap, q_gap = np.int64(np.uint32(tracks[i] - tracks[j])), np.int64(np.uint32(queries[i] - queries[j]))
            score = scores[j] + min(k, min(t_gap, q_gap)) - costs[abs(t_gap - q_gap)]
            if score > best:
                best, its_before = score, j
                skips = max(0, skips - 1)
            elif tried_by[j] == i:
                skips += 1
                if skips > rule.max_skips:
                    return best, its_before
            if before[j] >= 0:
                tried_by[before[j]] = i
            x = _last_near(near, words, x)
        end = begin
    return best, its_before


@njit
def score_anchors(anchors, layout, k, rule, costs, starts):
    """The score of the best chain that ends at each anchor, (n,) int32, and the anchor before it or -1, (n,) int32.

    anchors : (n,) uint64, sorted; layout : their Layout; k : bases of an anchor.  rule : ChainRule.  costs : of `penalties`.
    starts : (n_sequences,) int64, ascending, where sequences begin: no chain runs over a border.
    """
    n = len(anchors)
    near = np.empty(AT_ONCE, np.uint8)
    places, room = (np.empty(n, np.uint32), np.empty(n, np.uint32)), (near, near.view(np.uint64))
    _tell_places(anchors, layout, *places)
    scores, before, tried_by = np.empty(n, np.int32), np.empty(n, np.int32), np.full(n, -1, np.int32)
    oldest, border, next_border = 0, np.int64(-1), np.int64(-1)
    for i in range(n):
        track = track_of(anchors[i], layout)
        if track >= next_border or i == 0 or track - track_of(anchors[i - 1], layout) > rule.max_gap:
            place = place_of(anchors[i], layout)
            sequence = np.searchsorted(starts, place, side="right") - 1
            border = track - place + starts[sequence]
            next_border = track - place + starts[sequence + 1] if sequence + 1 < len(starts) else np.int64(1) << 62
        least = max(border, track - rule.max_gap)
        while oldest < i and track_of(anchors[oldest], layout) < least:
            oldest += 1
        oldest = max(oldest, i - rule.max_tried)
        scores[i], before[i] = _best_before(i, oldest, places, scores, before, tried_by, k, rule, costs, room)
    return scores, before


@njit_inner
def walk_one(last, scores, before, used, members, n, band):
    """Write the anchors of the chain that ends at `last`, from there on, to `members` from n on.

    They go back to where the chain's score is highest, or to an anchor in use; they are in `used`, bool, from now on.
    scores, before : of `score_anchors`.  band : of ChainRule.

    Returns the chain's score and the end of its members.
    """
    first, at, stop, score = n, last, n, np.int64(0)
    while at >= 0 and not used[at]:
        members[n] = at
        n, at = n + 1, before[at]
        gained = np.int64(scores[last]) - (scores[at] if at >= 0 else 0)
        if gained > score:
            score, stop = gained, n
        elif score - gained > band:
            break
    for x in range(first, stop):
        used[members[x]] = True
    return score, stop


@njit
def walk_back(order, scores, before, rule):
    """Chains from the best end on, each back to where its score is highest; an anchor belongs to the first that reaches it.

    order : anchors by falling score.  scores, before : of `score_anchors`.  rule : ChainRule.

    Returns score, number, last anchor of each chain, and all their anchors, each chain's from its last on.
    """
    used = np.zeros(len(scores), np.bool_)
    members, n = np.empty(len(scores), np.int32), 0
    rows, n_rows = np.empty((len(order), 3), np.int64), 0
    for last in order:
        if used[last]:
            continue
        first = n
        score, n = walk_one(last, scores, before, used, members, n, rule.band)
        if score < rule.min_score or n - first < rule.min_anchors:
            n = first
            continue
        rows[n_rows, 0], rows[n_rows, 1], rows[n_rows, 2] = score, n - first, first
        n_rows += 1
    return rows[:n_rows].copy(), members[:n].copy()


@njit
def _describe(anchors, layout, k, rows, members, order):
    """The columns of Chains, and the anchors of all chains in that order, each chain's ascending.

    anchors, layout, k : as in `score_anchors`.  rows, members : of `walk_back`.  order : (n_chains,) int64, of the rows.
    """
    out, chained, at = np.empty((9, len(rows)), np.int64), np.empty(len(members), np.uint64), 0
    for x in range(len(order)):
        score, n, first = rows[order[x]]
        begin = at
        for y in range(first + n - 1, first - 1, -1):
            chained[at] = anchors[members[y]]
            at += 1
        head, tail = chained[begin], chained[at - 1]
        out[0, x], out[1, x], out[2, x], out[3, x] = read_of(head, layout), strand_of(head, layout), score, n
        out[4, x], out[5, x] = query_of(head, layout), query_of(tail, layout) + k
        out[6, x], out[7, x], out[8, x] = place_of(head, layout), place_of(tail, layout) + k, begin
    return out, chained


def find_chains(
    anchors: np.ndarray, layout, k: int, rule: ChainRule, costs: np.ndarray, starts: np.ndarray
) -> tuple[Chains, np.ndarray]:
    """All chains, and their anchors.

    anchors : (n,) uint64, sorted.  costs : of `penalties`.  starts : of the reference's sequences.
    """
    scores, before = score_anchors(anchors, layout, k, rule, costs, starts)
    ends = np.flatnonzero(scores >= rule.min_score)
    keys = np.sort((np.int64(1 << 31) - scores[ends]) << 32 | ends)  # falling score, then position
    rows, members = walk_back(keys & 0xFFFFFFFF, scores, before, rule)
    reads = (anchors[members[rows[:, 2]]] >> np.uint64(layout.q_bits + layout.place_bits + 1)).astype(np.int64)
    order = np.argsort(reads, kind="stable")
    columns, chained = _describe(anchors, layout, k, rows, members, order)
    return Chains(*columns), chained


@njit_inner
def overlap_of(a_start, a_end, b_start, b_end):
    """Bases that two intervals share: a_start to a_end and b_start to b_end."""
    return max(0, min(a_end, b_end) - max(a_start, b_start))
