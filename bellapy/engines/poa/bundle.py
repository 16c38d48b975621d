"""The consensus of a graph: the heaviest bundle of Lee 2003.

Every node takes the heaviest edge into it; of equal ones that from the node with the higher score, and the last of these.
Its score is the weight of its path.  The consensus is the path to the node with the highest score, the first of equals.
Where edges lead on from there, paths that begin beside it are left out, and the nodes behind it are scored again.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_inner
from bellapy.engines.poa.graph import NONE


@njit_inner
def _score_from(graph, n_nodes, first, scores, before):
    """Score the nodes from a place in the order on; returns the best of them.  Nodes with a score below 0 are left out."""
    best = NONE
    for r in range(first, n_nodes):
        node = graph.order[r]
        scores[node], before[node] = -1 if first else 0, NONE
        edge, heaviest = graph.in_first[node], np.int64(-1)
        while edge != NONE:
            tail, weight = graph.tail[edge], np.int64(graph.weight[edge])
            if scores[tail] >= 0 and (weight > heaviest or weight == heaviest and scores[tail] >= scores[before[node]]):
                heaviest, before[node] = weight, tail
            edge = graph.in_next[edge]
        if before[node] != NONE:
            scores[node] = heaviest + scores[before[node]]
        if best == NONE or scores[node] > scores[best]:
            best = node
    return best


@njit_inner
def _leave_out_beside(graph, n_nodes, node, scores):
    """Take their scores from the other nodes before those that edges from `node` lead to."""
    for r in range(graph.rank[node] + 1, n_nodes):
        first = graph.in_first[graph.order[r]]
        edge, leads = first, False
        while edge != NONE:
            leads |= graph.tail[edge] == node
            edge = graph.in_next[edge]
        edge = first
        while leads and edge != NONE:
            if graph.tail[edge] != node:
                scores[graph.tail[edge]] = -1
            edge = graph.in_next[edge]


@njit_inner
def heaviest_bundle(graph, n_nodes, scores, before, path):
    """Write the nodes of the consensus to `path`, backwards; returns their number.

    scores : (n,) int64, before : (n,) int32, path : (n,) int32; all overwritten.
    """
    node = _score_from(graph, n_nodes, np.int64(0), scores, before)
    while node != NONE and graph.has_next[node]:
        _leave_out_beside(graph, n_nodes, node, scores)
        node = _score_from(graph, n_nodes, graph.rank[node] + 1, scores, before)
    n = 0
    while node != NONE:
        path[n] = node
        node = before[node]
        n += 1
    return n
