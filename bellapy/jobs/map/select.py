"""Which chains are aligned: the best ones of every part of a read, and those that come close to them."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.seeding.anchors import query_of
from bellapy.seeding.chain import overlap_of

OPEN_GAP = 400  # bases between anchors: a chain inside may be an inversion


@njit_inner
def forward_interval(strand, start, end, length):
    """Start and end on the read as given, of an interval on its strand; length : of the read."""
    return (length - end, length - start) if strand else (start, end)


@njit_inner
def _share_in_gaps(chains, anchors, layout, parent, begin, end, length):
    """Bases of a read's interval, given on its forward strand, that lie in large gaps between the anchors of a chain.

    chains, anchors, layout : as in `select_chains`.  parent : the chain.  begin, end : the interval.  length : of the read.
    """
    inside = 0
    first = chains.first[parent]
    for x in range(first + 1, first + chains.n_anchors[parent]):
        low, high = query_of(anchors[x - 1], layout), query_of(anchors[x], layout)
        if high - low > OPEN_GAP:
            low, high = forward_interval(chains.strand[parent], low, high, length)
            inside += overlap_of(low, high, begin, end)
    return inside


@njit
def select_chains(chains, anchors, layout, lengths, rule):
    """Chains to align, and the best score of a chain that covers the same part of the read.

    chains : Chains.  anchors : uint64, theirs; layout : their Layout.  lengths : (n_reads,) int64.  rule : SelectRule.

    Returns indices (n,) int64 ascending, and for all chains `rival` (n_chains,) int64, 0 where there is none.
    """
    n = len(chains.read)
    parent, rival = np.empty(n, np.int64), np.zeros(n, np.int64)
    kept, n_kept = np.empty(n, np.int64), 0
    n_secondary = np.zeros(n, np.int64)
    head = 0
    for i in range(n):
        if chains.read[i] != chains.read[head]:
            head = i
        length = lengths[chains.read[i]]
        begin, end = forward_interval(chains.strand[i], chains.q_start[i], chains.q_end[i], length)
        parent[i] = i
        for j in range(head, i):
            if parent[j] != j:
                continue
            low, high = forward_interval(chains.strand[j], chains.q_start[j], chains.q_end[j], length)
            if overlap_of(begin, end, low, high) >= rule.mask * min(end - begin, high - low):
                parent[i] = j
                break
        top = parent[i]
        if top != i:
            in_gaps = _share_in_gaps(chains, anchors, layout, top, begin, end, length) if end - begin > OPEN_GAP else 0
            if in_gaps >= rule.mask * (end - begin):
                parent[i] = i
            else:
                rival[top] = max(rival[top], chains.score[i])
                ratio = min(rule.ratio, 1 - rule.noise / np.sqrt(chains.n_anchors[top]))
                if chains.score[i] < ratio * chains.score[top] or n_secondary[top] >= rule.tried:
                    continue
                n_secondary[top] += 1
        kept[n_kept] = i
        n_kept += 1
    return kept[:n_kept].copy(), rival
