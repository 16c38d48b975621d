"""The string graph: its vertices are the two directions of every read, its arcs lead from a read to one that goes on.

Vertex 2 r + d is read r, forward (d = 0) or turned (d = 1); v ^ 1 is the other direction of v.  With every arc v -> w there
is the arc w ^ 1 -> v ^ 1, its complement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from bellapy.jobs.assemble.hits import Hits, Kinds


class Arcs(NamedTuple):
    """Arcs; all columns (n,) int64 but `errors`, float64.

    source, target : vertices.  length : bases of the source before the target begins.  overlap : bases of the source behind.
    errors : share of the overlap's columns.  differences : all columns without two equal bases.
    head, tail : bases of the overlap that are not aligned, as the reads differ there: the target's first, the source's last.
    """

    source: np.ndarray
    target: np.ndarray
    length: np.ndarray
    overlap: np.ndarray
    errors: np.ndarray
    differences: np.ndarray
    head: np.ndarray
    tail: np.ndarray

    def take(self, rows: np.ndarray) -> Arcs:
        """Some of them: indices or a mask."""
        return Arcs(*(column[rows] for column in self))


def make_arcs(hits: Hits, kinds: Kinds, lengths: np.ndarray) -> Arcs:
    """The arcs of overlaps of two ends, each with its complement; of several from one vertex to another the shortest.

    lengths : of the reads, as they are cut.
    """
    some, forward = hits.take(kinds.ends), kinds.forward[kinds.ends]
    before, behind = kinds.query_left - kinds.target_left, kinds.query_right - kinds.target_right
    before, behind = before[kinds.ends], behind[kinds.ends]
    turned = some.turned.astype(np.int64)
    source = np.where(forward, 2 * some.query, 2 * some.query + 1)
    target = np.where(forward, 2 * some.target + turned, 2 * some.target + 1 - turned)
    length, back = np.where(forward, before, behind), np.where(forward, -behind, -before)
    head = np.where(forward, kinds.target_left[kinds.ends], kinds.target_right[kinds.ends])
    tail = np.where(forward, kinds.query_right[kinds.ends], kinds.query_left[kinds.ends])
    source, target = np.concatenate([source, target ^ 1]), np.concatenate([target, source ^ 1])
    length = np.concatenate([length, back])
    head, tail = np.concatenate([head, tail]), np.concatenate([tail, head])
    errors, differences = (np.tile(column, 2) for column in (some.errors, some.n_columns - some.n_matches))
    arcs = Arcs(source, target, length, lengths[source >> 1] - length, errors, differences, head, tail)
    arcs = arcs.take((length > 0) & (source >> 1 != target >> 1))
    arcs = arcs.take(np.lexsort((arcs.length, arcs.target, arcs.source)))
    new = (np.diff(arcs.source, prepend=-1) != 0) | (np.diff(arcs.target, prepend=-1) != 0)
    arcs = arcs.take(new)
    paired = np.isin(_complements(arcs, 2 * len(lengths)), _keys(arcs, 2 * len(lengths)))
    return arcs.take(paired)


def _keys(arcs: Arcs, n_vertices: int) -> np.ndarray:
    return arcs.source * n_vertices + arcs.target


def _complements(arcs: Arcs, n_vertices: int) -> np.ndarray:
    """The keys of the complements."""
    return (arcs.target ^ 1) * n_vertices + (arcs.source ^ 1)


class Graph:
    """Arcs in the order of their sources, then of their lengths.

    lengths : (n_reads,) int64, of the reads, as they are cut; longest_read : the most of these.
    first : (n_vertices + 1,) int64, where the arcs of every vertex begin.
    """

    def __init__(self, lengths: np.ndarray, arcs: Arcs):
        self.lengths, self.n_vertices = lengths, 2 * len(lengths)
        self.longest_read = int(lengths.max(initial=0))
        self._set(arcs)

    def _set(self, arcs: Arcs) -> None:
        self.arcs = arcs.take(np.lexsort((arcs.target, arcs.length, arcs.source)))
        self.first = np.searchsorted(self.arcs.source, np.arange(self.n_vertices + 1))

    def __len__(self) -> int:
        return len(self.arcs.source)

    @property
    def degrees(self) -> np.ndarray:
        """(n_vertices,) int64, arcs that leave each vertex; those that reach v are the arcs that leave v ^ 1."""
        return np.diff(self.first)

    @property
    def into(self) -> np.ndarray:
        """(n_vertices,) int64, arcs that reach each vertex."""
        return self.degrees.reshape(-1, 2)[:, ::-1].ravel()

    @property
    def n_forks(self) -> int:
        """Vertices that several arcs leave."""
        return int((self.degrees > 1).sum())

    @property
    def keys(self) -> np.ndarray:
        """A number for the two ends of each arc."""
        return _keys(self.arcs, self.n_vertices)

    @property
    def complements(self) -> np.ndarray:
        """The keys of the complements of all arcs."""
        return _complements(self.arcs, self.n_vertices)

    def targets(self, vertex: int) -> list[int]:
        """The vertices that arcs of a vertex lead to."""
        return self.arcs.target[self.first[vertex] : self.first[vertex + 1]].tolist()

    def unaligned(self, vertex: int) -> int:
        """The last bases of a vertex that are aligned to none of those that its arcs lead to; 0: it has no arcs."""
        tails = self.arcs.tail[self.first[vertex] : self.first[vertex + 1]]
        return int(tails.min()) if len(tails) else 0

    def matrix(self, values: np.ndarray) -> csr_array:
        """A matrix with a value for each arc, at its source and its target."""
        shape = self.n_vertices, self.n_vertices
        return csr_array((values, (self.arcs.source, self.arcs.target)), shape=shape)

    def drop(self, gone: np.ndarray) -> int:
        """Take arcs away, a mask, and their complements; how many these were."""
        if not gone.any():
            return 0
        keys = np.concatenate([self.keys[gone], self.complements[gone]])
        stay = ~np.isin(self.keys, keys)
        self._set(self.arcs.take(stay))
        return int((~stay).sum())

    def drop_reads(self, gone: np.ndarray) -> int:
        """Take the arcs of reads away, a mask; how many these were."""
        stay = ~(gone[self.arcs.source >> 1] | gone[self.arcs.target >> 1])
        if not stay.all():
            self._set(self.arcs.take(stay))
        return int((~stay).sum())

    def add(self, arcs: Arcs) -> None:
        """Put arcs in, whose complements are among them."""
        self._set(Arcs(*(np.concatenate(pair) for pair in zip(self.arcs, arcs, strict=True))))

    @property
    def shared(self) -> np.ndarray:
        """(n_arcs,) int64, bases of overlaps, the same for an arc and its complement: the fewer of both reads'."""
        order = np.argsort(self.keys)
        complement = order[np.searchsorted(self.keys[order], self.complements)]
        return np.minimum(self.arcs.overlap, self.arcs.overlap[complement])

    def longest_overlaps(self) -> np.ndarray:
        """(n_vertices,) int64, the most that an arc which leaves each vertex has of `shared`; 0 where there is none."""
        longest = np.zeros(self.n_vertices, np.int64)
        np.maximum.at(longest, self.arcs.source, self.shared)
        return longest
