"""Alignments joined to chains: those in the same order on both genomes, as far as the way between them costs less than they
win.

The best chain of two sequences and a strand is taken first, then the best one of what is left.  The cost of a way between
two alignments is that of axtChain for genomes at some distance ("medium").

Source: W. J. Kent et al.: Evolution's cauldron, PNAS 100, 2003.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from bellapy.records.genomes import QUERY_ALONE, TARGET_ALONE, Alignment

DISTANCES = np.array([1, 2, 3, 11, 111, 2111, 12111, 32111, 72111, 152111, 252111], np.float64)
ONE_SIDE = np.array([350, 425, 450, 600, 900, 2900, 22900, 57900, 117900, 217900, 317900], np.float64)
BOTH_SIDES = np.array([750, 825, 850, 1000, 1300, 3300, 23300, 58300, 118300, 218300, 318300], np.float64)


def way_cost(t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What it costs to go on after t target and q query bases, (n,) int64 each."""
    both = (t > 0) & (q > 0)
    size = np.where(both, t + q, np.maximum(t, q)).astype(np.float64)
    cost = np.where(both, _table(size, BOTH_SIDES), _table(size, ONE_SIDE))
    return np.where(size > 0, cost, 0).astype(np.int64)


def _table(size: np.ndarray, costs: np.ndarray) -> np.ndarray:
    slope = (costs[-1] - costs[-2]) / (DISTANCES[-1] - DISTANCES[-2])
    return np.interp(size, DISTANCES, costs) + np.maximum(0, size - DISTANCES[-1]) * slope


def join_chains(alignments: list[Alignment]) -> list[Alignment]:
    """Chains as alignments with long gaps; the score of one is that of its alignments less what the ways cost."""
    chains = []
    by_pair = sorted(alignments, key=lambda found: (found.target, found.query, -found.strand, found.t_start, found.q_start))
    for _, some in groupby(by_pair, key=lambda found: (found.target, found.query, found.strand)):
        chains += _chains_of(list(some))
    return sorted(chains, key=lambda found: (-found.score, *found.order()))


def _chains_of(some: list[Alignment]) -> list[Alignment]:
    """Chains of alignments of two sequences and one strand, which are sorted by target."""
    t_start, t_end = (np.array([getattr(found, name) for found in some]) for name in ("t_start", "t_end"))
    q_start, q_end = (np.array([getattr(found, name) for found in some]) for name in ("q_start", "q_end"))
    own = np.array([found.score for found in some])
    best, before = own.copy(), np.full(len(some), -1)
    for i in range(1, len(some)):
        earlier = np.flatnonzero((t_end[:i] <= t_start[i]) & (q_end[:i] <= q_start[i]))
        if len(earlier):
            total = best[earlier] + own[i] - way_cost(t_start[i] - t_end[earlier], q_start[i] - q_end[earlier])
            at = int(total.argmax())
            if total[at] > best[i]:
                best[i], before[i] = total[at], earlier[at]
    free, chains = np.ones(len(some), np.bool_), []
    for end in np.argsort(-best, kind="stable").tolist():
        members, i = [], end
        while i >= 0 and free[i]:
            members.append(i)
            free[i] = False
            i = before[i]
        if members:
            score = int(best[end] - (best[i] if i >= 0 else 0))
            chains.append(_joined([some[i] for i in members[::-1]], score))
    return chains


def _joined(members: list[Alignment], score: int) -> Alignment:
    runs = [members[0].runs]
    for last, found in zip(members, members[1:], strict=False):
        ways = (QUERY_ALONE, found.q_start - last.q_end), (TARGET_ALONE, found.t_start - last.t_end)
        runs += [np.array([way for way in ways if way[1]], np.int64).reshape(-1, 2), found.runs]
    return members[0]._replace(score=score, runs=np.concatenate(runs))
