"""Transitive reduction: an arc goes where two others lead to the same place.

Products of SciPy's sparse matrices say where there are such pairs of arcs, ways, and how long these are together.  With A
the matrix of ones and R that of lengths, A A has the number of ways from one vertex to another, R A + A R the sum of their
lengths; the sum of squares is found likewise.  So they tell how far ways differ from an arc, all together.  SciPy knows no
product with minimum and sum (as ELBA uses): where ways differ much, which repeats make, each of them is looked at.
"""

from __future__ import annotations

import numpy as np

from bellapy.jobs.assemble.graph import Graph


def reduce_graph(graph: Graph, fuzz: int) -> tuple[int, int]:
    """Take transitive arcs away until there is none; how many these were, and in how many rounds.

    fuzz : bases by which a way may be longer or shorter than an arc.
    """
    total = rounds = 0
    while n := graph.drop(find_transitive(graph, fuzz)):
        total, rounds = total + n, rounds + 1
    return total, rounds


def find_transitive(graph: Graph, fuzz: int) -> np.ndarray:
    """Mask of the arcs beside which there is a way of two arcs with the same length."""
    ones, lengths = graph.matrix(np.ones(len(graph), np.int64)), graph.matrix(graph.arcs.length)
    ways = _of_arcs(graph, (ones @ ones).multiply(ones))
    total = _of_arcs(graph, (lengths @ ones + ones @ lengths).multiply(ones))
    squares = graph.matrix(graph.arcs.length**2)
    square = _of_arcs(graph, (squares @ ones + 2 * (lengths @ lengths) + ones @ squares).multiply(ones))
    own = graph.arcs.length
    off = square - 2 * own * total + ways * own**2  # of all ways together, squared
    gone = (ways > 0) & (off <= ways * fuzz**2)  # so one at least is as long
    unsure = np.flatnonzero((ways > 0) & ~gone)
    gone[unsure] = _has_way(graph, unsure, fuzz)
    return gone


def _of_arcs(graph: Graph, matrix) -> np.ndarray:
    """The values of a sparse matrix at all arcs, int64."""
    found = matrix.tocoo()
    keys = found.row.astype(np.int64) * graph.n_vertices + found.col
    order = np.argsort(keys)
    return _look_up(graph.keys, keys[order], found.data[order])


def _look_up(wanted: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values of some keys, 0 where there is none; keys : ascending."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0)


def _has_way(graph: Graph, rows: np.ndarray, fuzz: int) -> np.ndarray:
    """Whether any way beside each of some arcs has its length, (n,) bool."""
    arcs, order = graph.arcs, np.argsort(graph.keys)
    n_first = graph.degrees[arcs.source[rows]]
    arc = np.repeat(rows, n_first)
    ends = np.cumsum(n_first)
    step = np.arange(int(n_first.sum())) - np.repeat(ends - n_first, n_first)
    one = graph.first[arcs.source[arc]] + step
    other = _look_up(arcs.target[one] * graph.n_vertices + arcs.target[arc], graph.keys[order], arcs.length[order])
    same = (other > 0) & (np.abs(arcs.length[one] + other - arcs.length[arc]) <= fuzz)
    return np.bincount(np.repeat(np.arange(len(rows)), n_first), same, len(rows)) > 0
