"""What a graph on a GPU gives: the consensus by the heaviest bundle (bundle.py), and the columns of all bases."""

from __future__ import annotations

from numba import cuda

from bellapy.compute.gpu.ops import I32, WARP, ballot, shuffle, sync_warp
from bellapy.engines.poa.gpu.graph_kernels import (
    BEFORE,
    COLUMN,
    FIRST_IN,
    HAS_NEXT,
    NEW,
    NEXT_IN,
    NONE,
    ORDER,
    RANK,
    SCORE,
    TAIL,
    WEIGHT,
    lanes_below,
)
from bellapy.engines.registers.window import inlined


@inlined
def _score_from(graph, n_nodes, first, seat):
    """Score the nodes from a rank on; returns the best of them.  Nodes with a score below 0 are left out."""
    at, lane = seat.at, seat.lane
    best, highest = I32(NONE), I32(-1)
    if lane == 0:
        for rank in range(first, n_nodes):
            node = I32(graph[ORDER, at + rank])
            score, before = I32(-1 if first > 0 else 0), I32(NONE)
            edge, heaviest, its = I32(graph[FIRST_IN, at + node]), I32(-1), I32(0)
            while edge != NONE:
                tail, weight = I32(graph[TAIL, at + edge]), I32(graph[WEIGHT, at + edge])
                there = I32(graph[SCORE, at + tail])
                if there >= 0 and (weight > heaviest or (weight == heaviest and there >= its)):
                    heaviest, before, its = weight, tail, there
                edge = I32(graph[NEXT_IN, at + edge])
            if before != NONE:
                score = I32(heaviest + its)
            graph[SCORE, at + node], graph[BEFORE, at + node] = score, before
            if best == NONE or score > highest:
                best, highest = node, score
    best = I32(shuffle(best, I32(0)))
    sync_warp()
    return best


@inlined
def _leave_out_beside(graph, n_nodes, node, seat):
    """Take their scores from the other nodes before those that edges from `node` lead to."""
    at, lane = seat.at, seat.lane
    for rank in range(graph[RANK, at + node] + 1 + lane, n_nodes, WARP):
        first = I32(graph[FIRST_IN, at + graph[ORDER, at + rank]])
        edge, leads = first, False
        while edge != NONE:
            leads |= graph[TAIL, at + edge] == node
            edge = I32(graph[NEXT_IN, at + edge])
        edge = first
        while leads and edge != NONE:
            if graph[TAIL, at + edge] != node:
                graph[SCORE, at + graph[TAIL, at + edge]] = -1
            edge = I32(graph[NEXT_IN, at + edge])
    sync_warp()


@inlined
def find_bundle(graph, n_nodes, seat):
    """Write the nodes of the consensus to NEW, backwards; returns their number."""
    at, lane = seat.at, seat.lane
    n = I32(0)
    if n_nodes == 0:
        return n
    node = _score_from(graph, n_nodes, I32(0), seat)
    while graph[HAS_NEXT, at + node]:
        _leave_out_beside(graph, n_nodes, node, seat)
        node = _score_from(graph, n_nodes, I32(graph[RANK, at + node] + 1), seat)
    if lane == 0:
        while node != NONE:
            graph[NEW, at + n] = node
            node = I32(graph[BEFORE, at + node])
            n += I32(1)
    n = I32(shuffle(n, I32(0)))
    sync_warp()
    return n


@inlined
def number_columns(graph, n_nodes, seat):
    """Set SCORE of each node to the number of its column; returns how many there are."""
    at, lane = seat.at, seat.lane
    n_columns = I32(0)
    for start in range(0, n_nodes, WARP):
        rank, node, begins = I32(start + lane), I32(0), False
        if rank < n_nodes:
            node = I32(graph[ORDER, at + rank])
            begins = rank == 0 or graph[COLUMN, at + graph[ORDER, at + rank - 1]] != graph[COLUMN, at + node]
        bits = ballot(begins)
        if rank < n_nodes:
            graph[SCORE, at + node] = n_columns + lanes_below(bits, lane) + (0 if begins else -1)
        n_columns += I32(cuda.popc(I32(bits)))
    sync_warp()
    return n_columns
