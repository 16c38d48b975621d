"""What the neighbours of an HSP say for it.

Copies of a repeat, of a satellite most of all, may align better over a short stretch than counterparts do.  But the chain of
counterparts goes on to both sides.  So its HSPs are extended first, and their alignments keep the others off.

HSPs of a chain follow each other on two sequences, within REACH.  A link costs what a gap of the difference costs, and the
bases that both HSPs have twice.  The best link of an HSP goes to the best chain on that side.  For this a chain's score
fades: what counts is the sequence near by.  A long chain would else win an HSP that it does not belong to.

Where the best link has a gap that no extension bridges, a section ends.  The sequence beyond belongs to the HSPs there, and
limits extensions.  In a satellite they would go through it all the same, along another copy.  What speaks for an HSP is the
score of its section.

HSPs are gone through by their ends on the target.  Those before are kept in lists by their ends on the query, so that far
ones are not looked at.
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
FORGET = 1 << 15
"""Bases after which a chain's score has faded; on the way it falls in proportion."""
LIST_BITS = 13  # of the bases on the query that share a list


class Chains(NamedTuple):
    """support : (n,) int64, the score of each HSP's section.

    limits : (n, 4) int64, target places between which its extension stays, then query places.
    """

    support: np.ndarray
    limits: np.ndarray


def chains_of(hsps: np.ndarray, edges: np.ndarray, params: WgaParams, threads: int = 1) -> Chains:
    """The section of each HSP.

    hsps : (n, 4) int64 as in `Found` (ungapped.py).  edges : (n, 4) int64, begin and end of the target sequence, then of the
    query sequence.
    """
    t, q, length, score = (np.ascontiguousarray(hsps[:, column]) for column in (TARGET, QUERY, LENGTH, SCORE))
    scores = params.scores
    costs = scores.open, scores.extend, int(scores.matrix.max()), params.ydrop
    t_most, q_most = (int(edges[:, column].max(initial=0)) for column in (1, 3))

    def sections(backwards: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        way = (t_most - t - length, q_most - q - length) if backwards else (t, q)
        begins = (t_most - edges[:, 1], q_most - edges[:, 3]) if backwards else (edges[:, 0].copy(), edges[:, 2].copy())
        return _sections_to(np.argsort(way[0] + length, kind="stable"), *way, length, score, *begins, costs)

    (before, t_begin, q_begin), (behind, t_end, q_end) = map_threads(sections, (False, True), threads)
    return Chains(before + behind - score, np.stack((t_begin, t_most - t_end, q_begin, q_most - q_end), axis=1))


@njit
def _sections_to(order, t, q, length, score, t_begin, q_begin, costs):
    """The score of each HSP's section up to it, and where an extension has to end on this side, (n,) int64 each.

    order : HSPs by their ends on the target.  t, q, length, score : (n,) int64.  t_begin, q_begin : (n,) int64, of the
    sequences; are changed to those of sections.  costs : gap open, gap extend, score of a pair of bases at most, what ends
    an extension.
    """
    opened, extended, pair, most_cost = costs
    best, section, earlier, q_last = score.copy(), score.copy(), np.empty(len(order), np.int64), np.int64(0)
    for i in range(len(order)):
        q_last = max(q_last, q[i] + length[i])
    heads = np.full((q_last >> LIST_BITS) + 1, -1, np.int64)
    for i in order:
        t_end, q_end, before, beside = t[i] + length[i], q[i] + length[i], -1, -1
        for some in range(max(0, q[i] - REACH) >> LIST_BITS, (q_end >> LIST_BITS) + 1):
            j, tried = heads[some], 0
            while j >= 0 and tried < TRIED and t[i] - t[j] - length[j] <= REACH:
                t_step, q_step, size = t[i] - t[j], q[i] - q[j], length[j]
                ends = t_step > 0 and q_step > 0 and t_end > t[j] + size and q_end > q[j] + size
                if ends and q_step - size <= REACH and t[j] >= t_begin[i] and q[j] >= q_begin[i]:
                    difference = abs(t_step - q_step)
                    gap = opened + extended * difference if difference else 0
                    gain = score[i] - pair * max(0, size - min(t_step, q_step)) - gap
                    faded = best[j] - best[j] * min(FORGET, t_end - t[j] - size) // FORGET
                    if faded + gain > best[i]:
                        best[i], before = faded + gain, j
                    if gap <= most_cost and section[j] + gain > section[i]:
                        section[i], beside = section[j] + gain, j
                j, tried = earlier[j], tried + 1
        earlier[i] = heads[q_end >> LIST_BITS]
        heads[q_end >> LIST_BITS] = i
        if before >= 0 and opened + extended * abs(t[i] - t[before] - q[i] + q[before]) > most_cost:
            section[i] = score[i]
            t_begin[i], q_begin[i] = min(t[i], t[before] + length[before]), min(q[i], q[before] + length[before])
        elif beside >= 0:
            t_begin[i], q_begin[i] = t_begin[beside], q_begin[beside]
    return section, t_begin, q_begin
