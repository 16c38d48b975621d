"""The graph on a GPU: a warp holds it, and each lane does its share of the bases, nodes or edges.

Nodes are kept in their order, so that columns need no list: the nodes of one are neighbours.  A path meets the columns in
this order, too.  So the places of its new nodes ascend, and all nodes move to their new ranks side by side.  A path enters
no node twice, so that its edges can be added side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, ballot, shuffle, sync_warp
from bellapy.engines.registers.window import inlined

NONE = -1
(
    BASE, COLUMN, FIRST_IN, LAST_IN, N_IN, HAS_NEXT, RANK, TAIL, WEIGHT, NEXT_IN, ORDER, RECORD, BEFORE, NEW, PATH, SCORE
) = range(16)  # fmt: skip
FIELDS = 16
"""Rows of the table of a graph, int32; that of a warp has a stretch of each, which begins at `at`.

BASE, COLUMN, FIRST_IN, LAST_IN, N_IN, HAS_NEXT, RANK : of each node; a column is named by its first node; edges into it.
TAIL, WEIGHT, NEXT_IN : of each edge.  ORDER : nodes by rank.
RECORD : of each rank, 8 times its first place in BEFORE, plus its base; one more than there are nodes.
BEFORE : rows of the nodes before each rank, 1 more than their ranks; 0: that of no node.
NEW : the ranks before which new nodes come.  PATH : the row of the mate of each base of a sequence, or 0; then its node.
SCORE : for the consensus, and BEFORE then holds the nodes before.
"""
RECORD_BITS = 3
BASE_MASK = (1 << RECORD_BITS) - 1


class Seat(NamedTuple):
    """Where a thread sits.

    at : where the stretches of its warp begin in all rows of the graphs' table.  origin : where the warp's cells begin.
    lane : of the warp.
    """

    at: np.int64
    origin: np.int64
    lane: np.int32


class Sequence(NamedTuple):
    """n bases of `codes`, uint8, from `begin` on."""

    codes: np.ndarray
    begin: np.int64
    n: np.int32


@inlined
def lanes_below(bits, lane):
    """How many of these lanes are below this one."""
    return I32(cuda.popc(I32(U32(bits) & U32((U32(1) << U32(lane)) - U32(1)))))


@inlined
def last_lane(bits):
    """The last of these lanes; -1 if there is none."""
    return I32(31 - cuda.clz(I32(bits)))


@inlined
def first_lane(bits):
    """The first of these lanes; -1 if there is none."""
    return last_lane(U32(bits & ~U32(bits - U32(bits != 0))))


@inlined
def find_in_column(graph, at, n_nodes, rank, base):
    """Where a base stands in the column of the node with a rank: its node or NONE, its place, the end of the column."""
    column = graph[COLUMN, at + graph[ORDER, at + rank]]
    end, node = rank, I32(NONE)
    while end > 0 and graph[COLUMN, at + graph[ORDER, at + end - 1]] == column:
        end -= 1
    place = end
    while end < n_nodes and graph[COLUMN, at + graph[ORDER, at + end]] == column:
        other = graph[ORDER, at + end]
        there = graph[BASE, at + other]
        end += 1
        if there == base:
            node = I32(other)
        if there < base:
            place = end
    return node, place, end


@inlined
def find_nodes(graph, n_nodes, sequence, seat):
    """Set the node of each base of a sequence from its mate's row; returns how many of the nodes are new.

    graph : (FIELDS, n) int32, of all warps.  sequence, seat : Sequence, Seat.
    """
    at, lane, n = seat.at, seat.lane, sequence.n
    n_new, after = I32(0), I32(0)  # after : the end of the column of the last base with a mate
    for start in range(0, n, WARP):
        j = I32(start + lane)
        row, base, node, place, end = I32(0), I32(0), I32(NONE), I32(0), I32(0)
        if j < n:
            row, base = I32(graph[PATH, at + j]), I32(sequence.codes[sequence.begin + j])
        if row > 0:
            node, place, end = find_in_column(graph, at, n_nodes, I32(row - 1), base)
        with_mate = ballot(row > 0)
        below = U32(with_mate & U32((U32(1) << U32(lane)) - U32(1)))
        last = I32(shuffle(I32(end), I32(max(I32(0), last_lane(below)))))
        is_new = j < n and node == NONE
        new = ballot(is_new)
        if is_new:
            k = I32(n_new + lanes_below(new, lane))
            node = I32(n_nodes + k)
            if row == 0:
                place = last if below != 0 else after
            column = node if row == 0 else I32(graph[COLUMN, at + graph[ORDER, at + row - 1]])
            graph[NEW, at + k], graph[BASE, at + node], graph[COLUMN, at + node] = place, base, column
            graph[FIRST_IN, at + node], graph[N_IN, at + node], graph[HAS_NEXT, at + node] = NONE, 0, 0
        if j < n:
            graph[PATH, at + j] = node
        n_new += I32(cuda.popc(I32(new)))
        end = I32(shuffle(I32(end), I32(max(I32(0), last_lane(with_mate)))))
        after = end if with_mate != 0 else after
    sync_warp()
    return n_new


@inlined
def add_edges(graph, n_edges, n, seat):
    """Let a path of n nodes take the edges between them; returns the number of edges.

    graph : (FIELDS, n) int32, of all warps.  seat : Seat.
    """
    at, lane = seat.at, seat.lane
    for start in range(0, n, WARP):
        j = I32(start + lane)
        inside = 0 < j and j < n
        head, tail, edge = I32(0), I32(0), I32(NONE)
        if inside:
            head, tail = I32(graph[PATH, at + j]), I32(graph[PATH, at + j - 1])
            edge = I32(graph[FIRST_IN, at + head])
            while edge != NONE and graph[TAIL, at + edge] != tail:
                edge = I32(graph[NEXT_IN, at + edge])
            graph[HAS_NEXT, at + tail] = 1
            if edge != NONE:
                graph[WEIGHT, at + edge] += 1
        is_new = inside and edge == NONE
        new = ballot(is_new)
        if is_new:
            edge = I32(n_edges + lanes_below(new, lane))
            graph[TAIL, at + edge], graph[WEIGHT, at + edge], graph[NEXT_IN, at + edge] = tail, 1, NONE
            if graph[FIRST_IN, at + head] == NONE:
                graph[FIRST_IN, at + head] = edge
            else:
                graph[NEXT_IN, at + graph[LAST_IN, at + head]] = edge
            graph[LAST_IN, at + head] = edge
            graph[N_IN, at + head] += 1
        n_edges += I32(cuda.popc(I32(new)))
    sync_warp()
    return n_edges


@inlined
def _count_up_to(graph, at, n_new, rank):
    """How many new nodes come before the node that had a rank."""
    low, high = I32(0), I32(n_new)
    while low < high:
        middle = I32((low + high) >> 1)
        if graph[NEW, at + middle] <= rank:
            low = I32(middle + 1)
        else:
            high = middle
    return low


@inlined
def order_nodes(graph, n_nodes, n_new, seat):
    """Put new nodes, numbered from n_nodes on, in their places; those behind them move, the last ones first.

    graph : (FIELDS, n) int32, of all warps.  seat : Seat.
    """
    at, lane = seat.at, seat.lane
    first = I32(graph[NEW, at]) if n_new > 0 else I32(n_nodes)
    start = I32((n_nodes - 1) // WARP * WARP)
    while start >= 0 and start + WARP > first:
        rank, node = I32(start + lane), I32(0)
        if rank < n_nodes:
            node = I32(graph[ORDER, at + rank])
            rank += _count_up_to(graph, at, n_new, rank)
        sync_warp()
        if start + lane < n_nodes:
            graph[ORDER, at + rank] = node
            graph[RANK, at + node] = rank
        sync_warp()
        start -= I32(WARP)
    for k in range(lane, n_new, WARP):
        rank = I32(graph[NEW, at + k] + k)
        graph[ORDER, at + rank] = n_nodes + k
        graph[RANK, at + n_nodes + k] = rank
    sync_warp()


@inlined
def list_rows_before(graph, n_nodes, seat):
    """Set RECORD and BEFORE of all ranks, so that a row finds those before it at once.

    graph : (FIELDS, n) int32, of all warps.  seat : Seat.
    """
    at, lane = seat.at, seat.lane
    total = I32(0)
    for start in range(0, n_nodes, WARP):
        rank = I32(start + lane)
        node, size = I32(0), I32(0)
        if rank < n_nodes:
            node = I32(graph[ORDER, at + rank])
            size = I32(max(I32(graph[N_IN, at + node]), I32(1)))
        up_to, step = size, I32(1)
        while step < WARP:
            other = I32(shuffle(up_to, I32(max(I32(0), I32(lane - step)))))
            up_to = I32(up_to + other) if lane >= step else up_to
            step *= I32(2)
        place = I32(total + up_to - size)
        if rank < n_nodes:
            graph[RECORD, at + rank] = (place << RECORD_BITS) + graph[BASE, at + node]
            edge = I32(graph[FIRST_IN, at + node])
            if edge == NONE:
                graph[BEFORE, at + place] = 0
            while edge != NONE:
                graph[BEFORE, at + place] = graph[RANK, at + graph[TAIL, at + edge]] + 1
                place += I32(1)
                edge = I32(graph[NEXT_IN, at + edge])
        total += I32(shuffle(up_to, I32(WARP - 1)))
    if lane == 0:
        graph[RECORD, at + n_nodes] = total << RECORD_BITS
    sync_warp()
