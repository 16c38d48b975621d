"""Kernels that chain anchors on GPUs: the chains of chain.py, with the same integers.

Sorted anchors fall into segments.  No chain leads from one to another, since they lie too far apart, or on other reads,
strands or sequences.  A warp scores the anchors of a segment one after the other.  Its lanes look at as many predecessors at
a time, and find out by votes what the CPU would have done with these one by one.  A thread goes back through the chains of a
read.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, U64, WARP, ballot, inlined, shuffle, sync_warp
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, sum_before
from bellapy.seeding.anchors import place_of, query_of, read_of, strand_of, track_of
from bellapy.seeding.chain import walk_one
from bellapy.seeding.gpu.minimizers_kernels import last_before

LOW = I32(-(1 << 30))
"""Below all scores."""


@inlined
def _begins_segment(anchors, x, layout, max_gap, starts):
    """Whether no chain leads from the anchor before to the x-th one.

    anchors : (n,) uint64, sorted; layout : their Layout.  max_gap : of ChainRule.  starts : (n,) int64, of sequences.
    """
    if x == 0:
        return True
    if track_of(anchors[x], layout) - track_of(anchors[x - 1], layout) > max_gap:
        return True
    sequence = last_before(starts, np.int64(0), np.int64(starts.size), place_of(anchors[x], layout))
    return place_of(anchors[x - 1], layout) < starts[sequence]


def count_segments(anchors, layout, max_gap, starts, sums):
    """sums[t] = segments that begin among the t-th TILE anchors, one block for each.

    anchors, layout, max_gap, starts : as in `_begins_segment`.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        x = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if x < anchors.size and _begins_segment(anchors, x, layout, max_gap, starts):
            own += 1
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def list_segments(anchors, layout, max_gap, starts, before, begins):
    """begins[s] = where segment s begins, one block for TILE anchors; the last one is the end of all.

    anchors, layout, max_gap, starts : as in `_begins_segment`.  before : of `count_segments`, scanned.
    begins : (n_segments + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, n = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    end = min(first + OWN, np.int64(anchors.size))
    for x in range(first, end):
        if _begins_segment(anchors, x, layout, max_gap, starts):
            n += 1
    mine, _ = sum_before(n, scratch)
    at = before[cuda.blockIdx.x] + mine
    for x in range(first, end):
        if _begins_segment(anchors, x, layout, max_gap, starts):
            begins[at] = x
            at += 1
    if end == anchors.size and first < end:
        begins[begins.size - 1] = end


@inlined
def _larger_before(score, lane):
    """The largest score of the lanes below this one, LOW if there is none; all lanes have to come here.  score : int32."""
    most, step = shuffle(score, max(lane - 1, 0)) if WARP > 1 else score, 1
    if lane == 0:
        most = LOW
    while step < WARP:
        other = shuffle(most, max(lane - step, 0))
        if lane >= step:
            most = max(most, other)
        step *= 2
    return most


@inlined
def _tried(improved, in_vain, skips, max_skips):
    """What comes of predecessors that are tried in the order of their bits, as in `score_anchors`.

    improved, in_vain : uint32, those that gave a higher score, and those that others have tried.
    skips, max_skips : tried in vain before, and at most.

    Returns the last one that is taken, or -1; skips from now on; whether the search ends.
    """
    taken, left = -1, improved | in_vain
    while left != U32(0):
        x = cuda.ffs(left) - 1
        if (improved >> U32(x)) & U32(1) != U32(0):
            taken, skips = x, max(0, skips - 1)
        else:
            skips += 1
            if skips > max_skips:
                return taken, skips, True
        left &= left - U32(1)
    return taken, skips, False


def score_segments(anchors, begins, layout, k, rule, costs, scores, before, tried_by):
    """The scores of the best chains that end at each anchor, and the anchor before it or -1; a warp for each segment.

    anchors : (n,) uint64, sorted; layout : their Layout.  begins : of `list_segments`.  k : bases of an anchor.
    rule : ChainRule.  costs : (any,) int32, of `penalties`.  scores, before : (n,) int32.
    tried_by : (n,) int32, all -1: the anchor that a chain's anchor was last reached from.
    """
    lane, segment = cuda.threadIdx.x, cuda.blockIdx.x
    begin, end = begins[segment], begins[segment + 1]
    oldest = begin
    for i in range(begin, end):
        track, q = track_of(anchors[i], layout), query_of(anchors[i], layout)
        while track_of(anchors[oldest], layout) < track - rule.max_gap:
            oldest += 1
        oldest = max(oldest, i - rule.max_tried)
        best, its_before, skips, ended, top = I32(k), np.int64(-1), 0, False, i - 1
        while top >= oldest and not ended:
            j = top - lane
            is_possible, score, next_one = False, LOW, I32(-1)
            if j >= oldest:
                t_gap, q_gap = track - track_of(anchors[j], layout), q - query_of(anchors[j], layout)
                difference = abs(t_gap - q_gap)
                if 0 < q_gap and q_gap <= rule.max_gap and t_gap > 0 and difference <= rule.band:
                    is_possible, next_one = True, before[j]
                    score = I32(scores[j] + min(k, t_gap, q_gap) - costs[difference])
            if next_one >= 0:
                tried_by[next_one] = i
            sync_warp()
            is_better = score > max(best, _larger_before(score, lane))
            is_in_vain = is_possible and not is_better and tried_by[max(j, begin)] == i
            improved, in_vain = ballot(is_better), ballot(is_in_vain)
            taken, skips, ended = _tried(improved, in_vain, skips, rule.max_skips)
            if taken >= 0:
                best, its_before = shuffle(score, taken), top - taken
            top -= WARP
        if lane == 0:
            scores[i], before[i] = best, its_before
        sync_warp()


def count_ends(scores, min_score, sums):
    """sums[t] = anchors with a score of min_score or more among the t-th TILE ones, one block for each.

    scores : (n,) int32.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        x = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if x < scores.size and scores[x] >= min_score:
            own += 1
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def list_ends(anchors, scores, min_score, layout, number_bits, before, ends):
    """ends[e] = [ read | most - score | anchor ], where chains may end, in the order of anchors; one block for TILE anchors.

    `most` has as many bits as a position on a query, and is at least as large as all scores.
    anchors : (n,) uint64; layout : their Layout.  scores, min_score : as in `count_ends`; before : its sums, scanned.
    number_bits : of an anchor's number.  ends : uint64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, n = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    stop = min(first + OWN, np.int64(anchors.size))
    for x in range(first, stop):
        if scores[x] >= min_score:
            n += 1
    mine, _ = sum_before(n, scratch)
    at, most = before[cuda.blockIdx.x] + mine, (np.int64(1) << layout.q_bits) - 1
    for x in range(first, stop):
        if scores[x] >= min_score:
            word = read_of(anchors[x], layout) << layout.q_bits | (most - scores[x])
            ends[at] = U64(word) << U64(number_bits) | U64(x)
            at += 1


def find_reads(words, shift, begins):
    """begins[r] = the first word of read r, or of one behind it; a thread for each read, and one more for the end.

    words : (n,) uint64, sorted, with the read from bit `shift` on.  begins : (n_reads + 1,) int64.
    """
    read = cuda.grid(1)
    if read >= begins.size:
        return
    low, high = np.int64(0), np.int64(words.size)
    while low < high:
        middle = (low + high) // 2
        if np.int64(words[middle] >> U64(shift)) < read:
            low = middle + 1
        else:
            high = middle
    begins[read] = low


def walk_back(ends, begins, anchor_begins, number_bits, scores, before, used, rule, members, rows):
    """The chains of each read by falling score of their ends, a thread for each read: as that of chain.py.

    ends : of `list_ends`, sorted; begins : of `find_reads`, for them; number_bits : as there.
    anchor_begins : (n_reads + 1,) int64, of `find_reads` for anchors.  scores, before : of `score_segments`.
    used : (n_anchors,) bool, all False.  rule : ChainRule.  members : (n_anchors,) int32, filled with the anchors of chains,
    those of a read from its first one on.
    rows : (3, n_ends) int32, filled: anchors of the chain that ends there, 0 for none, where its members begin, its score.
    """
    read = cuda.grid(1)
    if read >= begins.size - 1:
        return
    n, mask = anchor_begins[read], (U64(1) << U64(number_bits)) - U64(1)
    for e in range(begins[read], begins[read + 1]):
        rows[0, e] = 0
        last = np.int64(ends[e] & mask)
        if used[last]:
            continue
        first = n
        score, n = walk_one(last, scores, before, used, members, n, rule.band)
        if score < rule.min_score or n - first < rule.min_anchors:
            n = first
            continue
        rows[0, e], rows[1, e], rows[2, e] = n - first, first, score


def mark_chains(rows, is_chain):
    """is_chain[e] = 1 where a chain ends, else 0.  rows : of `walk_back`.  is_chain : (n_ends,) uint32."""
    e = cuda.grid(1)
    if e < is_chain.size:
        is_chain[e] = U32(1) if rows[0, e] > 0 else U32(0)


def describe_chains(anchors, layout, k, rows, members, numbers, firsts, columns, chained):
    """The columns of Chains, and the anchors of all of them, each chain's ascending; a warp for each end.

    anchors, layout, k : as in `score_segments`.  rows, members : of `walk_back`.
    numbers, firsts : (n_ends,) int64, the chains before each, and their anchors.  columns : (9, n_chains) int64.
    chained : uint64.
    """
    lane, e = cuda.threadIdx.x, np.int64(cuda.blockIdx.x)
    n, member, score = np.int64(rows[0, e]), np.int64(rows[1, e]), rows[2, e]
    if n == 0:
        return
    first, x = firsts[e], numbers[e]
    for y in range(lane, n, WARP):
        chained[first + y] = anchors[members[member + n - 1 - y]]
    if lane == 0:
        head, tail = anchors[members[member + n - 1]], anchors[members[member]]
        columns[0, x], columns[1, x], columns[2, x], columns[3, x] = read_of(head, layout), strand_of(head, layout), score, n
        columns[4, x], columns[5, x] = query_of(head, layout), query_of(tail, layout) + k
        columns[6, x], columns[7, x], columns[8, x] = place_of(head, layout), place_of(tail, layout) + k, first


def count_lonely(chain_reads, anchor_begins, sizes):
    """sizes[r] = the anchors of a read that has no chain, else 0; a thread for each read.

    chain_reads : (n_chains,) int64, ascending.  anchor_begins : as in `walk_back`.  sizes : (n_reads,) uint32.
    """
    read = cuda.grid(1)
    if read >= sizes.size:
        return
    n = np.int64(chain_reads.size)
    chain = last_before(chain_reads, np.int64(0), n, np.int64(read))
    has_chain = chain >= 0 and chain_reads[chain] == read
    sizes[read] = U32(0) if has_chain else U32(anchor_begins[read + 1] - anchor_begins[read])


def copy_lonely(anchors, anchor_begins, sizes, begins, lonely):
    """The anchors of reads that have no chain, a warp for each read.

    anchors : (n,) uint64.  anchor_begins, sizes : of `count_lonely`; begins : (n_reads,) int64, sums of sizes before each.
    lonely : uint64.
    """
    lane, read = cuda.threadIdx.x, np.int64(cuda.blockIdx.x)
    for x in range(lane, np.int64(sizes[read]), WARP):
        lonely[begins[read] + x] = anchors[anchor_begins[read] + x]
