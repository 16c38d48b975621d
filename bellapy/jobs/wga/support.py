"""Which HSPs are those of counterparts, and what of the genomes is theirs.

Copies of a repeat, of a satellite most of all, may be as long and nearly as alike as counterparts are.  What copies do not
share are words that few places have.  Counterparts have nearly all of these in common, and a seed is such a word.  So an HSP
counts by its seeds: each scores as much as the pairs of bases that it stands for.

HSPs of a chain follow each other on two sequences, within REACH.  A link costs what a gap of the difference costs, and the
bases that both HSPs have twice.  What speaks for an HSP is the score of the best chain through it.  This score fades: what
counts is the sequence near by.  First, gaps within a chain are no longer than an extension bridges.  Then an HSP may have a
longer gap beside it, if the chain through it scores more than that costs.

By falling support HSPs claim what they cover, if at least half of it is free on both genomes.  An extension ends at ground
that it cannot get to by a gap that it bridges.  In a satellite it would go on all the same, along another copy.

HSPs are gone through by their ends on the target.  Those before are kept in lists by their ends on the query, so that far
ones are not looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.compute.threads import map_threads
from bellapy.jobs.wga.ungapped import LENGTH, N_SEEDS, QUERY, TARGET
from bellapy.params.wga import SAMPLED, WgaParams

REACH = 10_000
"""Bases between two HSPs of a chain, on either sequence."""
TRIED = 256
"""HSPs of a list, the last ones on the target, that may precede one in a chain."""
FORGET = 1 << 15
"""Bases after which a chain's score has faded; on the way it falls in proportion."""
LIST_BITS = 13  # of the bases on the query that share a list


class Support(NamedTuple):
    """score : (n,) int64, what speaks for each HSP; 0 where the ground is that of others.

    limits : (n, 4) int64, target places between which its extension stays, then query places.
    """

    score: np.ndarray
    limits: np.ndarray


def support_of(hsps: np.ndarray, edges: np.ndarray, sizes: tuple[int, int], params: WgaParams, threads: int = 1) -> Support:
    """The support of each HSP.

    hsps : (n, N_COLUMNS) int64 as in `Found` (ungapped.py).  edges : (n, 4) int64, begin and end of the target sequence,
    then of the query sequence.  sizes : places on the target, and on both strands of the query.
    """
    t, q, length, n_seeds = (np.ascontiguousarray(hsps[:, column]) for column in (TARGET, QUERY, LENGTH, N_SEEDS))
    pair, bridged = int(params.scores.matrix.max()), params.ydrop
    costs, own = (params.scores.open, params.scores.extend, pair), n_seeds * SAMPLED * pair

    def chains_through(most: np.ndarray) -> np.ndarray:
        def chains(backwards: bool) -> np.ndarray:
            way = (sizes[0] - t - length, sizes[1] - q - length) if backwards else (t, q)
            begins = (sizes[0] - edges[:, 1], sizes[1] - edges[:, 3]) if backwards else (edges[:, 0], edges[:, 2])
            order = np.argsort(way[0] + length, kind="stable")
            return chains_to(order, *way, length, own, *map(np.ascontiguousarray, begins), costs, most)

        to, back = map_threads(chains, (False, True), threads)
        return to + back - own

    near = chains_through(np.full(len(t), bridged))
    score = chains_through(np.maximum(near, bridged))
    order = np.lexsort((t << 32 | q, -score))  # HSPs of a strand come by place, so the first of both sorts is fast
    owners = np.zeros(sizes[0], np.int32), np.zeros(sizes[1] // 2, np.int32)
    has_ground = claim(order[score[order] > bridged], t, q, length, *owners)
    limits = np.ascontiguousarray(edges.T)

    def limit(side: int) -> None:
        here, there = (t, q) if side < 2 else (q, t)
        step = 1 if side % 2 else -1
        some = np.argsort(here, kind="stable")[::-step]
        limit_side(some[has_ground[some]], here, there, length, owners[side // 2], step, costs, bridged, limits[side])

    map_threads(limit, range(4), threads)
    return Support(np.where(has_ground, score, 0), limits.T.copy())


@njit
def chains_to(order, t, q, length, own, t_begin, q_begin, costs, most):
    """The score of the best chain up to each HSP, (n,) int64.

    order : HSPs by their ends on the target.  t, q, length : (n,) int64.  own : (n,) int64, what each one adds.  t_begin,
    q_begin : (n,) int64, of the sequences.  costs : gap open, gap extend, score of a pair of bases at most.  most : (n,)
    int64, what a gap before each HSP may cost.
    """
    opened, extended, pair = costs
    best, earlier, q_last = own.copy(), np.empty(len(order), np.int64), np.int64(0)
    for i in range(len(order)):
        q_last = max(q_last, q[i] + length[i])
    heads = np.full((q_last >> LIST_BITS) + 1, -1, np.int64)
    for i in order:
        t_end, q_end = t[i] + length[i], q[i] + length[i]
        for some in range(max(0, q[i] - REACH) >> LIST_BITS, (q_end >> LIST_BITS) + 1):
            j, tried = heads[some], 0
            while j >= 0 and tried < TRIED and t[i] - t[j] - length[j] <= REACH:
                t_step, q_step, size = t[i] - t[j], q[i] - q[j], length[j]
                ends = t_step > 0 and q_step > 0 and t_end > t[j] + size and q_end > q[j] + size
                if ends and q_step - size <= REACH and t[j] >= t_begin[i] and q[j] >= q_begin[i]:
                    gap = _gap(t_step - q_step, opened, extended)
                    faded = best[j] - best[j] * min(FORGET, t_end - t[j] - size) // FORGET
                    if gap <= most[i]:
                        best[i] = max(best[i], faded + own[i] - pair * max(0, size - min(t_step, q_step)) - gap)
                j, tried = earlier[j], tried + 1
        earlier[i] = heads[q_end >> LIST_BITS]
        heads[q_end >> LIST_BITS] = i
    return best


@njit_inner
def _gap(difference, opened, extended):
    """What it costs to get from one diagonal to another one."""
    return opened + extended * abs(difference) if difference else 0


@njit_inner
def _at(place, size):
    """A place of one of two strands end to end on the forward one; size : of a strand."""
    return place if place < size else 2 * size - 1 - place


@njit
def claim(order, t, q, length, on_target, on_query):
    """Which HSPs get their ground, (n,) bool, the first ones of `order` first.

    on_target, on_query : (m,) int32, for each place of the target, and of the query's forward strand, 1 more than the number
    of the HSP that has it, 0 for none; are filled.
    """
    gets, half = np.zeros(len(t), np.bool_), len(on_query)
    for i in order:
        n = length[i]
        q_begin = q[i] if q[i] < half else 2 * half - q[i] - n
        on_t, on_q = on_target[t[i] : t[i] + n], on_query[q_begin : q_begin + n]
        gets[i] = 2 * min(_n_free(on_t), _n_free(on_q)) >= n
        if gets[i]:
            _take_free(on_t, i + 1)
            _take_free(on_q, i + 1)
    return gets


@njit_vector
def _n_free(owners):
    free = np.int32(0)
    for x in range(len(owners)):
        free += np.int32(owners[x] == 0)
    return free


@njit_vector
def _take_free(owners, owner):
    number = np.int32(owner)
    for x in range(len(owners)):
        owners[x] = number if owners[x] == 0 else owners[x]


@njit
def limit_side(order, here, there, length, owners, step, costs, bridged, limit):
    """Where extensions have to end on one side of one genome: at the nearest ground that none can get to, or where those of
    its HSP have to.

    order : HSPs that have ground, those that are furthest on that side first.  here, there : (n,) int64, places on this
    genome and on the other one.  owners : as of `claim`.  step : 1 to the right, -1 to the left.  bridged : what a gap may
    cost.  limit : (n,) int64, has the edges of sequences, and is changed.
    """
    opened, extended, _ = costs
    for i in order:
        first = here[i] + length[i] if step > 0 else here[i] - 1
        behind = limit[i] if step > 0 else limit[i] - 1
        for place in range(first, behind, step):
            j = owners[_at(place, len(owners))] - 1
            if j >= 0 and j != i:
                ahead, beside = here[j] - here[i], there[j] - there[i]
                near = step * beside > 0 and _gap(ahead - beside, opened, extended) <= bridged
                limit[i] = limit[j] if near else place + (step < 0)
                break
