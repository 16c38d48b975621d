"""The graph: a node is a base in a column, an edge links the bases that follow each other in some sequence.

Bases that are aligned with each other share a column.  Columns are a list in which every edge leads forward: a column for an
inserted base goes in right after that of the base before it.  So its order is a topological order of the nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner

NONE = -1
BASES = 5  # A, C, G, T and unknown
N_NODES, N_EDGES, N_COLUMNS, FIRST = range(4)


class Graph(NamedTuple):
    """A graph with room for `n` nodes, columns and edges; all int32 but `base`.

    sizes : (4,) numbers of nodes, edges, columns; the first column of the list.
    base : (n,) uint8.  column : (n,) of each node.  in_first, in_last : (n,) edges into each node, a list; NONE.
    has_next : (n,) 1 if an edge leads on from a node.
    tail, weight, in_next : (n,) of each edge: where it comes from, sequences that take it, the next edge into the same node.
    nodes : (n, BASES) node of each base in a column, or NONE.  column_next : (n,) the column after it, or NONE.
    order : (n,) nodes by column, and of one column by base.  rank : (n,) place in `order`.
    """

    sizes: np.ndarray
    base: np.ndarray
    column: np.ndarray
    in_first: np.ndarray
    in_last: np.ndarray
    has_next: np.ndarray
    tail: np.ndarray
    weight: np.ndarray
    in_next: np.ndarray
    nodes: np.ndarray
    column_next: np.ndarray
    order: np.ndarray
    rank: np.ndarray


@njit_inner
def _add_column(graph, after):
    """A new column after another one, or the first one if that is NONE."""
    column = graph.sizes[N_COLUMNS]
    graph.sizes[N_COLUMNS] += 1
    graph.nodes[column] = NONE
    if after == NONE:
        graph.column_next[column] = graph.sizes[FIRST]
        graph.sizes[FIRST] = column
    else:
        graph.column_next[column] = graph.column_next[after]
        graph.column_next[after] = column
    return column


@njit_inner
def _node_in(graph, column, base):
    """The node of a base in a column, a new one if there is none."""
    node = graph.nodes[column, base]
    if node == NONE:
        node = graph.sizes[N_NODES]
        graph.sizes[N_NODES] += 1
        graph.base[node], graph.column[node], graph.has_next[node] = base, column, 0
        graph.in_first[node] = graph.in_last[node] = NONE
        graph.nodes[column, base] = node
    return node


@njit_inner
def _add_edge(graph, tail, head):
    """Let one more sequence take the edge from `tail` to `head`."""
    edge = graph.in_first[head]
    while edge != NONE:
        if graph.tail[edge] == tail:
            graph.weight[edge] += 1
            return
        edge = graph.in_next[edge]
    edge = graph.sizes[N_EDGES]
    graph.sizes[N_EDGES] += 1
    graph.tail[edge], graph.weight[edge], graph.in_next[edge] = tail, 1, NONE
    graph.has_next[tail] = 1
    if graph.in_first[head] == NONE:
        graph.in_first[head] = edge
    else:
        graph.in_next[graph.in_last[head]] = edge
    graph.in_last[head] = edge


@njit_inner
def add_path(graph, sequence, mates, path):
    """Add a sequence.

    sequence : (n,) uint8 codes.  mates : (n,) int32, the node each base is aligned with, or NONE.
    path : (n,) int32, overwritten: the node of each base.
    """
    before = column = np.int64(NONE)
    for j in range(len(sequence)):
        column = _add_column(graph, column) if mates[j] == NONE else graph.column[mates[j]]
        node = _node_in(graph, column, sequence[j])
        if before != NONE:
            _add_edge(graph, before, node)
        path[j] = before = node


@njit_inner
def sort_nodes(graph):
    """Set `order` and `rank`; returns the number of nodes."""
    n, column = 0, graph.sizes[FIRST]
    while column != NONE:
        for base in range(BASES):
            node = graph.nodes[column, base]
            if node != NONE:
                graph.order[n], graph.rank[node] = node, n
                n += 1
        column = graph.column_next[column]
    return n
