"""Chains of a read that belong together are joined over long gaps, or where each is the better one on a part of the read.

What leads somewhere on its read is chained again.  All else is left out: in a satellite, where each base of a read has
anchors in all copies, those of other copies would hide the ones of the same place.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.jobs.map.select import NONE
from bellapy.seeding.anchors import Layout, query_of
from bellapy.seeding.chain import ChainRule, Chains, find_chains

WINDOW = 1000  # bases of a read, on which chains are compared
Found = tuple[Chains, np.ndarray]
"""Chains and their anchors."""


@njit_inner
def _window_of(anchors, y, layout, k, strand, length):
    """The window of the read that anchor y of a chain lies in; strand : of the chain; length : of the read."""
    q = query_of(anchors[y], layout)
    return (length - q - k if strand else q) // WINDOW


@njit_inner
def _compare(chains, anchors, x, layout, k, length, best, most):
    """Compare the bases that the anchors of chain x cover in each window of its read with those of the chains before it.

    best, most : (n_windows,) int64, the best chain of each window, and its bases; changed.  All else as in `find_leaders`.
    """
    window, covered, before = np.int64(-1), np.int64(0), np.int64(0)
    for y in range(chains.first[x], chains.first[x] + chains.n_anchors[x]):
        q, here = query_of(anchors[y], layout), _window_of(anchors, y, layout, k, chains.strand[x], length)
        covered = min(np.int64(k), q - before) + (covered if here == window else np.int64(0))
        window, before = here, q
        if covered > most[here]:
            best[here], most[here] = x, covered


@njit
def find_leaders(chains, anchors, layout, k, lengths):
    """Of each anchor the chain it belongs to, if that is the best one of this window of the read, or of the next window on
    either side; else NONE, as for all anchors of a read of which one chain is the best everywhere; (n_anchors,) int64.

    The best chain's anchors cover the most bases of the window; of several, it is the one with the highest score.

    chains : Chains.  anchors : uint64, theirs; layout : their Layout; k : their bases.  lengths : (n_reads,) int64.
    """
    leaders = np.full(len(anchors), NONE, np.int64)
    begin = 0
    while begin < len(chains.read):
        end, length = begin + 1, lengths[chains.read[begin]]
        while end < len(chains.read) and chains.read[end] == chains.read[begin]:
            end += 1
        n = length // WINDOW + 1 if end - begin > 1 else 0
        best, most = np.full(n + 2, NONE, np.int64), np.zeros(n, np.int64)
        for x in range(begin, end):
            if n:
                _compare(chains, anchors, x, layout, k, length, best[1:-1], most)
        several = best.max() > begin
        for x in range(begin, end if several else begin):
            for y in range(chains.first[x], chains.first[x] + chains.n_anchors[x]):
                window = _window_of(anchors, y, layout, k, chains.strand[x], length)
                if best[window] == x or best[window + 1] == x or best[window + 2] == x:
                    leaders[y] = x
        begin = end
    return leaders


def join_far(
    chains: Chains, anchors: np.ndarray, layout: Layout, k: int, lengths: np.ndarray, rule: ChainRule, costs: np.ndarray,
    starts: np.ndarray,
) -> Found:  # fmt: skip
    """Chains and their anchors, some of them joined.

    chains, anchors, layout, k, lengths : as in `find_leaders`.  rule : ChainRule, for joining.  costs, starts : as in
    `find_chains`.
    """
    leaders = find_leaders(chains, anchors, layout, k, lengths)
    some = np.flatnonzero(leaders != NONE)
    if not len(some):
        return chains, anchors
    some = some[np.argsort(anchors[some])]
    new, its_anchors = find_chains(anchors[some], layout, k, rule, costs, starts)
    sources = leaders[some[np.searchsorted(anchors[some], its_anchors)]]
    joined = np.minimum.reduceat(sources, new.first) < np.maximum.reduceat(sources, new.first)
    used = np.bincount(sources[np.repeat(joined, new.n_anchors)], minlength=len(chains.read))
    return merge_chains(
        chains, anchors, 2 * used <= chains.n_anchors, Chains(*(column[joined] for column in new)), its_anchors
    )


def merge_chains(chains: Chains, anchors: np.ndarray, stay: np.ndarray, new: Chains, its_anchors: np.ndarray) -> Found:
    """The chains that `stay`, (n_chains,) bool, and new ones, and the anchors of both."""
    both = [np.concatenate([a[stay], b]) for a, b in zip(chains, new, strict=True)]
    both[-1][stay.sum() :] += len(anchors)
    order = np.lexsort((-both[2], both[0]))
    return Chains(*(column[order] for column in both)), np.concatenate([anchors, its_anchors])
