"""What the neighbours of an HSP say for it: the score of the best chain of HSPs that it is part of.

Copies of a repeat, of a satellite most of all, may align better over a short stretch than counterparts do.  But the chain of
counterparts goes on to both sides.  So its HSPs are extended first, and their alignments keep the others off.

HSPs of a chain follow each other on both sequences, within REACH.  A link costs what a gap of the difference costs, and the
bases that both HSPs have twice.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.jobs.wga.ungapped import LENGTH, QUERY, SCORE, TARGET
from bellapy.params.wga import GapScores

REACH = 10_000
"""Bases between two HSPs of a chain, on either sequence."""
TRIED = 256
"""HSPs before one, by their place on the target, that may precede it in a chain."""


def chain_scores(hsps: np.ndarray, scores: GapScores) -> np.ndarray:
    """The score of the best chain through each HSP, (n,) int64; hsps : (n, 4) int64 as in `Found` (ungapped.py)."""
    t, q, length, score = (np.ascontiguousarray(hsps[:, column]) for column in (TARGET, QUERY, LENGTH, SCORE))
    costs = scores.open, scores.extend, int(scores.matrix.max())
    before = _best_to(np.lexsort((q, t)), t, q, length, score, costs)
    behind = _best_to(np.lexsort((-q - length, -t - length)), -t - length, -q - length, length, score, costs)
    return before + behind - score


@njit
def _best_to(order, t, q, length, score, costs):
    """The score of the best chain that ends with each HSP, (n,) int64.

    order : HSPs by their first target place.  t, q, length, score : (n,) int64.  costs : gap open, gap extend, score of a
    pair of bases at most.
    """
    opened, extended, pair = costs
    best = score.copy()
    for x in range(len(order)):
        i = order[x]
        for y in range(x - 1, max(-1, x - 1 - TRIED), -1):
            j = order[y]
            t_step, q_step = t[i] - t[j], q[i] - q[j]
            ends = t_step > 0 and q_step > 0 and t_step + length[i] > length[j] and q_step + length[i] > length[j]
            gap, difference = min(t_step, q_step) - length[j], abs(t_step - q_step)
            if not ends or max(t_step, q_step) - length[j] > REACH:
                continue
            cost = pair * max(0, -gap) + (opened + extended * difference if difference else 0)
            best[i] = max(best[i], best[j] + score[i] - cost)
    return best
