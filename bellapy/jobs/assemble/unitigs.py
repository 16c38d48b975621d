"""Unitigs: paths of reads without forks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.jobs.assemble.graph import Graph


class Unitig(NamedTuple):
    """A path of vertices.

    circular : whether the first one follows the last one.  steps : bases of each vertex before the next one begins; the last
    one's are all its bases, or those before the first one begins.
    """

    path: list[int]
    steps: list[int]
    circular: bool


def find_unitigs(graph: Graph, alive: np.ndarray, left: np.ndarray | None = None) -> list[Unitig]:
    """All unitigs, each in one direction; reads without arcs are unitigs, too.

    alive : (n_reads,) bool, reads that take part.  left : (n_arcs,) bool, arcs that unitigs do not go along; None: none.
    """
    degrees, arcs = graph.degrees, graph.arcs
    single = (degrees[arcs.source] == 1) & (degrees[arcs.target ^ 1] == 1)
    if left is not None:
        single &= ~left
    after, step = np.full(graph.n_vertices, -1), np.zeros(graph.n_vertices, np.int64)
    after[arcs.source[single]], step[arcs.source[single]] = arcs.target[single], arcs.length[single]
    follows, steps, used = after.tolist(), step.tolist(), np.zeros(len(alive), bool)
    found = []
    for read in np.flatnonzero(alive).tolist():
        if used[read]:
            continue
        start = _first_of(2 * read, follows)
        path = [start]
        while (v := follows[path[-1]]) >= 0 and v != start:
            path.append(v)
        used[[v >> 1 for v in path]] = True
        circular = follows[path[-1]] == start
        sizes = [steps[v] for v in path]
        if not circular:
            sizes[-1] = int(graph.lengths[path[-1] >> 1])
        found.append(Unitig(path, sizes, circular))
    return found


def _first_of(vertex: int, follows: list[int]) -> int:
    """The first vertex of the path that leads to a vertex; any one of a circle.

    No path has both directions of a read: between them there would be an arc from a vertex to its own other direction.
    """
    v = vertex
    while (before := follows[v ^ 1]) >= 0 and before ^ 1 != vertex:
        v = before ^ 1
    return v
