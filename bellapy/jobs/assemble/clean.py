"""What is taken from a reduced graph: tips, ways through bubbles, and arcs that only repeats make.

Nothing is guessed.  What many reads show stays, and so do the forks at repeats that no read spans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np

from bellapy.jobs.assemble.graph import Graph

TIP_READS, TIP_BASES = 4, 50_000  # of a dead end that is short
BUBBLE_BASES, BUBBLE_READS, BUBBLE_VERTICES = 50_000, 2, 400  # of a way through a bubble, or so many of the longest reads
ALLELE_BASES, ALLELE_VERTICES = 10_000_000, 4000  # of a way through a bubble that two haplotypes make
ALIKE = 500  # bases by which the ways through a bubble may differ, or what errors of reads make of their length
WELL_SHOWN = 2  # reads inside each read of a tip, or of a way through a bubble, and in no other, in the mean: it is no error
RARE = 0.25  # of the reads on one way through a bubble, up to which another one is shown by few
Alike = Callable[[Collection[int], Collection[int]], bool]
"""Whether the reads of some vertices spell the same as those of others, but for errors or what haplotypes differ in."""
TURNS = 4  # of tips, bubbles and weak arcs: one may make the other


class Inner:
    """Which reads are inside which others.

    inner, outer : (n,) int64, such reads; those of `outer` are in no other one.
    """

    def __init__(self, inner: np.ndarray, outer: np.ndarray, n_reads: int):
        pairs = np.unique(outer * n_reads + inner)
        self._outer, self._inner = np.divmod(pairs, n_reads)
        self._first = np.searchsorted(self._outer, np.arange(n_reads + 1))
        self._n_outer = np.bincount(self._inner, minlength=n_reads)

    @property
    def n_inside(self) -> np.ndarray:
        """(n_reads,) int64, reads that each contains."""
        return np.diff(self._first)

    def only_in(self, reads: Collection[int]) -> int:
        """How many reads are inside these, and inside no other one."""
        its = [self._inner[self._first[read] : self._first[read + 1]] for read in reads]
        found, times = np.unique(np.concatenate(its), return_counts=True)
        return int((times == self._n_outer[found]).sum())


class Cleaned(NamedTuple):
    """Reads of tips, bubbles, and weak arcs that were taken away."""

    tips: int
    bubbles: int
    weak: int


def clean_graph(
    graph: Graph, inner: Inner, alike: Alike, errors: float = 0, *, long_ways: bool = False, long_ends: bool = False
) -> Cleaned:  # fmt: skip
    """Take away what hides the way through a graph.

    errors : share that reads of one place may differ by.
    long_ways, long_ends : whether one way goes through bubbles, and dead ends go, that are as long as haplotypes make them.
    """
    total = np.zeros(3, np.int64)
    for _ in range(TURNS):
        weak = drop_weak(graph)
        popped = pop_bubbles(graph, inner, alike, errors, long_ways=long_ways) + drop_parallel(graph, inner, alike, errors)
        done = drop_tips(graph, inner, alike, long_ends=long_ends), popped, weak
        total += done
        if not any(done):
            break
    return Cleaned(*total.tolist())


def drop_weak(graph: Graph) -> int:
    """Arcs for which both ends have longer overlaps, and which are no part of a crossing, or have an end that goes on
    elsewhere for sure; how many these were.

    Where a read spans a repeat, its overlaps with the reads that end in the repeat are longer than those of these with each
    other, which may be from two copies.  Where none does, all reads that come into the repeat overlap all that leave it: the
    longer overlaps tell nothing.  But such a crossing may have arcs of reads that end in a copy that another read spans.
    That one begins before the repeat, where no others lead to it.
    """
    arcs, longest, shared = graph.arcs, graph.longest_overlaps(), graph.shared
    weak = (shared < longest[arcs.source]) & (shared < longest[arcs.target ^ 1])
    goes_on = np.zeros(graph.n_vertices, bool)
    goes_on[arcs.source[(shared == longest[arcs.source]) & (graph.into[arcs.target] == 1)]] = True
    unsure = np.flatnonzero(weak & ~goes_on[arcs.source] & ~goes_on[arcs.target ^ 1])
    weak[unsure] = ~_crosses(graph, unsure)
    return graph.drop(weak)


def _crosses(graph: Graph, rows: np.ndarray) -> np.ndarray:
    """Whether each of some arcs is part of a crossing: two vertices that lead to the same two others."""
    first, target = graph.first, graph.arcs.target
    found = np.zeros(len(rows), bool)
    for i, arc in enumerate(rows.tolist()):
        v, w = int(graph.arcs.source[arc]), int(target[arc])
        others = target[first[v] : first[v + 1]]
        beside = target[first[w ^ 1] : first[(w ^ 1) + 1]] ^ 1  # that lead to w, too
        found[i] = any(np.isin(target[first[x] : first[x + 1]], others[others != w]).any() for x in beside[beside != v])
    return found


class _Tip(NamedTuple):
    """A dead end, from its end to the read before the fork; ordered by what it is worth."""

    bases: int
    reads: int
    last: int  # vertex
    path: tuple[int, ...]
    is_short: bool


def drop_tips(graph: Graph, inner: Inner, alike: Alike, *, long_ends: bool = False) -> int:
    """Short dead ends that few reads show, or that spell the same as what is beside them, the shortest first, as long as
    something else goes on at their fork; how many reads these were.

    One goes after another: all at once, both sides of a fork would go.

    long_ends : whether long ones that spell the same go, too, as two haplotypes make them at the end of a chromosome.
    """
    first, target, gone = graph.first.tolist(), graph.arcs.target.tolist(), np.zeros(graph.n_vertices // 2, bool)
    for tip in sorted(_find_tips(graph, long_ends)):
        if any(gone[v >> 1] for v in tip.path):
            continue
        after = [w for w in target[first[tip.last] : first[tip.last + 1]] if not gone[w >> 1]]
        if not all(sum(not gone[x >> 1] for x in target[first[w ^ 1] : first[(w ^ 1) + 1]]) > 1 for w in after):
            continue
        few = tip.is_short and not _is_well_shown(tip.path, inner)
        if few or alike(tip.path, _beside(graph, tip, gone, ALLELE_VERTICES if long_ends else BUBBLE_VERTICES)):
            gone[[v >> 1 for v in tip.path]] = True
    graph.drop_reads(gone)
    return int(gone.sum())


def _find_tips(graph: Graph, long_ends: bool) -> list[_Tip]:
    """The dead ends that come to a fork, short ones or all."""
    first, target, degrees = graph.first.tolist(), graph.arcs.target.tolist(), graph.degrees.tolist()
    length = graph.arcs.length.tolist()
    tips = []
    most_reads, most_bases = (ALLELE_VERTICES, ALLELE_BASES) if long_ends else (TIP_READS, TIP_BASES)
    for end in np.flatnonzero((graph.degrees == 0) & (graph.into > 0)).tolist():
        v = end ^ 1
        path, bases = [v], 0
        while len(path) <= most_reads and bases <= most_bases and degrees[v] > 0:
            arc = first[v]
            w = target[arc]
            if degrees[v] > 1 or degrees[w ^ 1] > 1:
                is_short = len(path) <= TIP_READS and bases <= TIP_BASES
                tips.append(_Tip(bases + int(graph.lengths[v >> 1]), len(path), v, tuple(path), is_short))
                break
            bases, v = bases + length[arc], w
            path.append(v)
    return tips


def _beside(graph: Graph, tip: _Tip, gone: np.ndarray, most: int) -> set[int]:
    """The vertices that a tip leads to, and those from which other ways lead there, as far back as the tip reaches.

    gone : (n_reads,) bool, reads that are no longer there.  most : how many are found, or a few more.
    """
    after = [w for w in graph.targets(tip.last) if not gone[w >> 1]]
    found, ready = set(after), [(w, 0) for w in after]
    while ready and len(found) < most:
        v, bases = ready.pop()
        for arc in range(graph.first[v ^ 1], graph.first[(v ^ 1) + 1]):
            before = int(graph.arcs.target[arc]) ^ 1
            if before not in found and before not in tip.path and not gone[before >> 1] and bases < tip.bases:
                found.add(before)
                ready.append((before, bases + int(graph.arcs.length[arc])))
    return found


def _is_well_shown(vertices: Collection[int], inner: Inner) -> bool:
    return len(vertices) > 0 and inner.only_in([v >> 1 for v in vertices]) >= WELL_SHOWN * len(vertices)


def _is_rare(others: Collection[int], way: Collection[int], n_inside: np.ndarray) -> bool:
    """Whether few reads are on some vertices beside those on a way, with the reads inside all of these."""
    of_others, of_way = (len(some) + sum(int(n_inside[v >> 1]) for v in some) for some in (others, way))
    return of_others < RARE * of_way


def pop_bubbles(graph: Graph, inner: Inner, alike: Alike, errors: float = 0, *, long_ways: bool = False) -> int:
    """Keep one way through each superbubble (Onodera 2013) whose other ways few reads show, alone or beside it, or spell the
    same; how many there were.

    Its ways have to be about as long: others lead through more or fewer copies of a repeat, or over different sequences.
    The way that is kept is that of the longest overlaps.  Of ways as long as only two haplotypes make them these count that
    spell the same.

    long_ways : whether these are looked at.
    """
    popped, most = 0, _usual_way(graph)
    for source in np.flatnonzero(graph.degrees > 1).tolist():
        bubble = find_bubble(graph, source, long_ways=long_ways) if graph.degrees[source] > 1 else None
        if bubble is None:
            continue
        others, way, longest, spread = bubble
        few = longest <= most and (not _is_well_shown(others, inner) or _is_rare(others, way[1:-1], inner.n_inside))
        if spread > max(ALIKE, errors * longest) or not (few or alike(others, way)):
            continue
        gone = np.zeros(graph.n_vertices // 2, bool)
        gone[[v >> 1 for v in others]] = True
        gone[[v >> 1 for v in way]] = False
        n = graph.drop_reads(gone)
        on_way = np.zeros(graph.n_vertices, bool)
        on_way[way] = True
        steps = np.array(way[:-1]) * graph.n_vertices + np.array(way[1:])
        inside = on_way[graph.arcs.source] & on_way[graph.arcs.target]
        leaves = inside & (graph.arcs.source != way[-1]) & (graph.arcs.target != way[0])
        n += graph.drop(leaves & ~np.isin(graph.keys, steps))
        popped += n > 0
    return popped


def drop_parallel(graph: Graph, inner: Inner, alike: Alike, errors: float = 0) -> int:
    """Reads beside which a way of longer overlaps, about as long, leads between the same two others, go as the ways through
    a bubble, also where more ways leave or reach these two; how many went.

    Else such a read hides a dead end behind it.  A circle of few turns of reads has no bubbles: every way through it comes
    back to where it began.
    """
    arcs, first, degrees, into = graph.arcs, graph.first, graph.degrees, graph.into
    single = (degrees == 1) & (into == 1)
    some = []
    for back in np.flatnonzero(single[arcs.target] & (degrees[arcs.source] > 1)).tolist():
        v = int(arcs.target[back])
        ahead = int(first[v])
        if into[arcs.target[ahead]] > 1:
            some.append((int(min(arcs.overlap[[back, ahead]])), v, back, ahead))
    gone = np.zeros(graph.n_vertices // 2, bool)
    for overlap, v, back, ahead in sorted(some):
        if gone[v >> 1]:
            continue
        before, behind, bases = int(arcs.source[back]), int(arcs.target[ahead]), int(arcs.length[[back, ahead]].sum())
        gone[v >> 1] = True
        way = _way_beside(graph, before, behind, overlap, (bases, max(ALIKE, errors * bases)), gone)
        few = not _is_well_shown([v], inner) or _is_rare([v], way, inner.n_inside)
        gone[v >> 1] = len(way) > 0 and (few or alike([v], [before, *way, behind]))
    graph.drop_reads(gone)
    return int(gone.sum())


def _way_beside(
    graph: Graph, before: int, behind: int, overlap: int, length: tuple[int, float], gone: np.ndarray
) -> list[int]:  # fmt: skip
    """Vertices of a way from one vertex to another, or back to it; empty: there is none.

    overlap : bases that its overlaps have at least.  length : bases of the way, and by how many it may differ.
    gone : (n_reads,) bool, reads that it does not lead through.
    """
    arcs, (bases, spread) = graph.arcs, length
    reached = {before: (0, -1)}  # bases from the first vertex, vertex before
    ready = [before]
    while ready and len(reached) < BUBBLE_VERTICES:
        v = ready.pop()
        for arc in range(graph.first[v], graph.first[v + 1]):
            w, at = int(arcs.target[arc]), reached[v][0] + int(arcs.length[arc])
            if arcs.overlap[arc] < overlap or gone[w >> 1] or at > bases + spread:
                continue
            if w == behind and at >= bases - spread and v != before:
                way = [v]
                while reached[way[-1]][1] != before:
                    way.append(reached[way[-1]][1])
                return way[::-1]
            if w not in reached:
                reached[w] = at, v
                ready.append(w)
    return []


class Bubble(NamedTuple):
    """others : vertices beside the way that is kept.  way : this, from the source.

    longest : bases of the longest way.  spread : by which ways differ.
    """

    others: list[int]
    way: list[int]
    longest: int
    spread: int


def _usual_way(graph: Graph) -> int:
    """Bases of the longest way through a bubble that errors or copies of repeats make."""
    return max(BUBBLE_BASES, BUBBLE_READS * graph.longest_read)


def find_bubble(graph: Graph, source: int, *, long_ways: bool = False) -> Bubble | None:
    """The bubble that begins at a vertex; None: there is none.

    A bubble is a part of the graph without cycles that is entered at its source only, and left at one vertex only.

    long_ways : whether it may be as large as those of two haplotypes.
    """
    first, target = graph.first, graph.arcs.target
    best: dict[int, tuple[int, int, int]] = {source: (0, 0, -1)}  # overlaps together, bases from the source, vertex before
    shortest, longest = {source: 0}, {source: 0}
    most, most_vertices = (ALLELE_BASES, ALLELE_VERTICES) if long_ways else (_usual_way(graph), BUBBLE_VERTICES)
    waits: dict[int, int] = {}  # arcs that have not been gone along yet, of vertices that were reached
    ready = [source]
    while ready:
        v = ready.pop()
        if first[v + 1] == first[v]:
            return None  # a dead end inside
        overlaps, bases, _ = best[v]
        for arc in range(first[v], first[v + 1]):
            w = int(target[arc])
            if w == source or w ^ 1 in best or bases + graph.arcs.length[arc] > most:
                return None
            if w not in waits:
                waits[w] = int(first[(w ^ 1) + 1] - first[w ^ 1])
            found = (overlaps + int(graph.arcs.overlap[arc]), bases + int(graph.arcs.length[arc]), v)
            if w not in best or found[0] > best[w][0]:
                best[w] = found
            length = int(graph.arcs.length[arc])
            shortest[w] = min(shortest.get(w, most), shortest[v] + length)
            longest[w] = max(longest.get(w, 0), longest[v] + length)
            waits[w] -= 1
            if waits[w] == 0:
                ready.append(w)
        if len(ready) == 1 and not any(waits.values()):
            way = [ready[0]]
            while way[-1] != source:
                way.append(best[way[-1]][2])
            most, least = longest[way[0]], shortest[way[0]]
            return Bubble([v for v in best if v not in set(way)], way[::-1], most, most - least)
        if len(best) > most_vertices:
            return None
    return None
