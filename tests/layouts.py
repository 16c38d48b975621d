"""Graphs of reads that lie on a line or a circle, for tests."""

from __future__ import annotations

import numpy as np

from bellapy.jobs.assemble.graph import Arcs, Graph


def graph_of(lengths: dict[tuple[int, int], int], reads: np.ndarray) -> Graph:
    """A graph with arcs of these lengths between vertices; reads : lengths of the reads."""
    source, target = (np.array([arc[i] for arc in lengths], np.int64) for i in (0, 1))
    length = np.array(list(lengths.values()), np.int64)
    none = np.zeros_like(length)
    return Graph(reads, Arcs(source, target, length, reads[source >> 1] - length, none.astype(float), none, none, none))


def arcs_of(graph: Graph) -> dict[tuple[int, int], int]:
    """The inverse of `graph_of`."""
    arcs = graph.arcs
    return dict(zip(zip(arcs.source.tolist(), arcs.target.tolist(), strict=True), arcs.length.tolist(), strict=True))


def layout(seed: int, n: int, genome: int, *, circular: bool, jitter: int = 0, mean: int = 2000) -> Graph:
    """The graph of reads at random places of a genome, without those that others contain.

    jitter : bases by which lengths of arcs are off.
    """
    rng = np.random.default_rng(seed)
    start, length, turned = rng.integers(0, genome, n), rng.integers(mean // 2, 2 * mean, n), rng.integers(0, 2, n)
    if not circular:
        length = np.minimum(length, genome - start)
    offs = (start[None, :] - start[:, None]) % genome if circular else start[None, :] - start[:, None]
    inside = (offs >= 0) & (offs + length[None, :] <= length[:, None]) & ~np.eye(n, dtype=bool)
    alive = ~inside.any(axis=0)
    lengths = {}
    for i in range(n):
        for j in range(n):
            off = int(offs[i, j])
            if i != j and alive[i] and alive[j] and 0 < off < length[i] - 50 and off + length[j] > length[i]:
                one, other = 2 * i + int(turned[i]), 2 * j + int(turned[j])
                lengths[one, other] = max(1, off + int(rng.integers(-jitter, jitter + 1)))
                lengths[other ^ 1, one ^ 1] = int(off + length[j] - length[i])
    return graph_of(lengths, length.astype(np.int64))
