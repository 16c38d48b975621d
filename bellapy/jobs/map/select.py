"""Which chains are aligned: the best ones of every part of a read, and those that come close to them."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.seeding.anchors import query_of
from bellapy.seeding.chain import overlap_of

NONE = -1
OPEN_GAP = 400  # bases between anchors: a chain inside may be an inversion


@njit_inner
def forward_interval(strand, start, end, length):
    """Start and end on the read as given, of an interval on its strand; length : of the read."""
    return (length - end, length - start) if strand else (start, end)


@njit_inner
def _first_after(anchors, first, stop, layout, q):
    """The first of a chain's anchors, anchors[first:stop], whose query position is greater than q.  layout : Layout."""
    while first < stop:
        middle = (first + stop) // 2
        if query_of(anchors[middle], layout) > q:
            stop = middle
        else:
            first = middle + 1
    return first


@njit_inner
def _bases_in_gaps(chains, anchors, layout, parent, begin, end):
    """Bases of an interval, given on the strand of a chain, that lie in large gaps between the anchors of that chain.

    chains, anchors, layout : as in `select_chains`.  parent : the chain.  begin, end : the interval.
    """
    inside = 0
    first, stop = chains.first[parent], chains.first[parent] + chains.n_anchors[parent]
    for x in range(max(first + 1, _first_after(anchors, first, stop, layout, begin)), stop):
        low, high = query_of(anchors[x - 1], layout), query_of(anchors[x], layout)
        if low >= end:
            break
        if high - low > OPEN_GAP:
            inside += overlap_of(low, high, begin, end)
    return inside


@njit
def select_chains(chains, anchors, layout, lengths, rule):
    """Chains to align, and the best score of a chain that covers the same part of the read.

    chains : Chains.  anchors : uint64, theirs; layout : their Layout.  lengths : (n_reads,) int64.  rule : SelectRule.

    Returns indices (n,) int64 ascending; of each of these its host, the chain in whose gaps it lies, else NONE, (n,) int64;
    and for all chains `rival` (n_chains,) int64, 0 where there is none.
    """
    n = len(chains.read)
    parent, rival = np.empty(n, np.int64), np.zeros(n, np.int64)
    host = np.full(n, NONE, np.int64)
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
            in_gaps = 0
            if end - begin > OPEN_GAP:
                low, high = forward_interval(chains.strand[top], begin, end, length)
                in_gaps = _bases_in_gaps(chains, anchors, layout, top, low, high)
            if in_gaps >= rule.mask * (end - begin):
                parent[i], host[i] = i, host[top] if host[top] != NONE else top
            else:
                host[i] = host[top]
                rival[top] = max(rival[top], chains.score[i])
                ratio = min(rule.ratio, 1 - rule.noise / np.sqrt(chains.n_anchors[top]))
                if chains.score[i] < ratio * chains.score[top] or n_secondary[top] >= rule.tried:
                    continue
                n_secondary[top] += 1
        kept[n_kept] = i
        n_kept += 1
    kept = kept[:n_kept].copy()
    return kept, host[kept], rival


@njit
def still_open(chains, kept, host, paths, read_at, lengths, share):
    """Whether each chain lies on bases of its read that the alignments of its host leave open, (n,) bool.

    Where a host's path leads over its own gap, the chain there is of another copy of a repeat: nothing to align.

    chains : Chains.  kept, host : (n,) int64, as of `select_chains`, all with a host.  paths : Paths in ascending order of
    `source`, the chain.  read_at, lengths : (n_reads,) int64, where each read begins in the codes of paths, and its bases.
    share : of the chain's bases, that a path may cover less of.
    """
    is_open = np.ones(len(kept), np.bool_)
    for x in range(len(kept)):
        read, strand = chains.read[host[x]], chains.strand[host[x]]
        begin, end = forward_interval(chains.strand[kept[x]], chains.q_start[kept[x]], chains.q_end[kept[x]], lengths[read])
        begin, end = forward_interval(strand, begin, end, lengths[read])
        base = read_at[read] + strand * lengths[read]
        for a in range(np.searchsorted(paths.source, host[x]), len(paths.source)):
            if paths.source[a] != host[x]:
                break
            if overlap_of(base + begin, base + end, paths.q_start[a], paths.q_end[a]) >= share * (end - begin):
                is_open[x] = False
    return is_open
