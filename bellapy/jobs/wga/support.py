"""What the neighbours of an HSP say for it: the score of the best chain of HSPs that it is part of.

Copies of a repeat, of a satellite most of all, may align better over a short stretch than counterparts do.  But the chain of
counterparts goes on to both sides.  So its HSPs are extended first, and their alignments keep the others off.

HSPs of a chain follow each other on two sequences, within REACH.  A link costs what a gap of the difference costs, and the
bases that both HSPs have twice.  HSPs are gone through by their ends on the target.  Those before are kept in lists by their
ends on the query, so that far ones are not looked at.

A chain also limits extensions.  Where it goes on behind a gap that no extension bridges, the sequence beyond belongs to the
HSPs there.  In a satellite an extension would go through it all the same, along another copy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import map_threads
from bellapy.jobs.wga.ungapped import LENGTH, QUERY, SCORE, TARGET
from bellapy.params.wga import WgaParams

REACH = 10_000
"""Bases between two HSPs of a chain, on either sequence."""
TRIED = 256
"""HSPs of a list, the last ones on the target, that may precede one in a chain."""
LIST_BITS = 13  # of the bases on the query that share a list


class Chains(NamedTuple):
    """score : (n,) int64, of the best chain through each HSP.

    limits : (n, 4) int64, target places between which its extension stays, then query places.
    """

    score: np.ndarray
    limits: np.ndarray


def chains_of(hsps: np.ndarray, edges: np.ndarray, params: WgaParams, threads: int = 1) -> Chains:
    """The best chain through each HSP.

    hsps : (n, 4) int64 as in `Found` (ungapped.py).  edges : (n, 4) int64, begin and end of the target sequence, then of the
    query sequence.
    """
    t, q, length, score = (np.ascontiguousarray(hsps[:, column]) for column in (TARGET, QUERY, LENGTH, SCORE))
    scores = params.scores
    costs = scores.open, scores.extend, int(scores.matrix.max()), params.ydrop
    t_most, q_most = (int(edges[:, column].max(initial=0)) for column in (1, 3))

    def best_to(backwards: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        way = (t_most - t - length, q_most - q - length) if backwards else (t, q)
        begins = (t_most - edges[:, 1], q_most - edges[:, 3]) if backwards else (edges[:, 0], edges[:, 2])
        return _best_to(np.argsort(way[0] + length, kind="stable"), *way, length, score, *(some.copy() for some in begins), costs)

    (before, t_begin, q_begin), (behind, t_end, q_end) = map_threads(best_to, (False, True), threads)
    return Chains(before + behind - score, np.stack((t_begin, t_most - t_end, q_begin, q_most - q_end), axis=1))


@njit
def _best_to(order, t, q, length, score, t_begin, q_begin, costs):
    """The score of the best chain that ends with each HSP, and where extensions of it begin, (n,) int64 each.

    order : HSPs by their ends on the target.  t, q, length, score : (n,) int64.  t_begin, q_begin : (n,) int64, of the
    sequences; are changed to where the chain before a wide gap ends.  costs : gap open, gap extend, score of a pair of bases
    at most, what ends an extension.
    """
    opened, extended, pair, most_cost = costs
    best, earlier, q_last = score.copy(), np.empty(len(order), np.int64), np.int64(0)
    for i in range(len(order)):
        q_last = max(q_last, q[i] + length[i])
    heads = np.full((q_last >> LIST_BITS) + 1, -1, np.int64)
    for i in order:
        t_end, q_end, before = t[i] + length[i], q[i] + length[i], -1
        for some in range(max(0, q[i] - REACH) >> LIST_BITS, (q_end >> LIST_BITS) + 1):
            j, tried = heads[some], 0
            while j >= 0 and tried < TRIED and t[i] - t[j] - length[j] <= REACH:
                t_step, q_step, size = t[i] - t[j], q[i] - q[j], length[j]
                ends = t_step > 0 and q_step > 0 and t_end > t[j] + size and q_end > q[j] + size
                if ends and q_step - size <= REACH and t[j] >= t_begin[i] and q[j] >= q_begin[i]:
                    twice, difference = max(0, size - min(t_step, q_step)), abs(t_step - q_step)
                    total = best[j] + score[i] - pair * twice - (opened + extended * difference if difference else 0)
                    if total > best[i]:
                        best[i], before = total, j
                j, tried = earlier[j], tried + 1
        earlier[i] = heads[q_end >> LIST_BITS]
        heads[q_end >> LIST_BITS] = i
        if before >= 0:
            j = before
            difference = abs(t[i] - t[j] - q[i] + q[j])
            if opened + extended * difference > most_cost:
                t_begin[i], q_begin[i] = min(t[i], t[j] + length[j]), min(q[i], q[j] + length[j])
            else:
                t_begin[i], q_begin[i] = t_begin[j], q_begin[j]
    return best, t_begin, q_begin
