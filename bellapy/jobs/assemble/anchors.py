"""Where contigs may go on: only through overlaps that hold sequence which all contigs together have once.

An overlap within a repeat may join two of its copies.  Where other reads show both ways, there is a fork; but these reads
may be missing, or lie inside reads of another copy.  So a contig ends at such an overlap, and the overlap becomes a link.
What reads have beside the alignment, where they may be taken for bad ends, makes no overlap sure.
The same holds for a read whose end repeats its beginning: a line whose ends are copies of a repeat is no circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bellapy.jobs.assemble.contigs import Contig
from bellapy.jobs.assemble.graph import Graph
from bellapy.jobs.assemble.words import WORD, words_of

LEAST, SHARE = 100, 0.02  # words that all contigs have once, of an overlap that is sure: a wrong base makes 31
TELLING = 20  # such words between two overlaps, which tell where the sequence there stands


def find_unsure(contigs: Sequence[Contig], graph: Graph) -> tuple[np.ndarray, list[int]]:
    """Mask of the arcs, with their complements, at which contigs have to end, (n_arcs,) bool; reads that are no circles."""
    found, lines = np.zeros(len(graph), bool), list[int]()
    if not contigs:
        return found, lines
    words = [words_of(one.codes, one.circular) for one in contigs]
    _, number, times = np.unique(np.concatenate(words), return_inverse=True, return_counts=True)
    once = np.split(times[number] == 1, np.cumsum([len(some) for some in words])[:-1])
    for one, alone in zip(contigs, once, strict=True):
        if one.circular and len(one.reads) == 1:
            if alone[: one.again - WORD].sum() < _least(one.again):
                lines.append(one.reads[0] >> 1)
        else:
            found[_of_contig(one, alone, graph)] = True
    return found | np.isin(graph.keys, graph.complements[found]), lines


def _least(n: np.ndarray | int) -> np.ndarray:
    """Words alone that n bases need to be sure."""
    return np.maximum(LEAST, SHARE * n)


def _of_contig(contig: Contig, alone: np.ndarray, graph: Graph) -> list[int]:
    """The arcs at which a contig has to end.

    Of several in a row, between which there is no such sequence either, these are the first and the last one.

    alone : (n_words,) bool, words that all contigs have once.
    """
    steps = [*contig.reads, contig.reads[0]] if contig.circular else contig.reads
    arcs = np.array([graph.first[v] + graph.targets(v).index(w) for v, w in pairwise(steps)], np.int64)
    before = np.concatenate([[0], np.cumsum(np.tile(alone, 2 if contig.circular else 1))])
    its = graph.arcs.take(arcs)
    start = np.cumsum(its.length)
    scale = len(contig.codes) / (start[-1] + (0 if contig.circular else graph.lengths[steps[-1] >> 1])) if len(arcs) else 1
    end = np.minimum(scale * (start + its.overlap - its.tail) - WORD, len(before) - 1).astype(np.int64)
    start = (scale * (start + its.head)).astype(np.int64)
    start = np.minimum(start, end)
    poor = np.flatnonzero(before[end] - before[start] < _least(end - start))
    if not len(poor):
        return []
    arcs, start, end = arcs[poor], before[start[poor]], before[end[poor]]
    ahead = end[-1] - int(alone.sum()) if contig.circular else -TELLING
    begins = np.flatnonzero(start - np.concatenate([[ahead], end[:-1]]) >= TELLING)
    if not len(begins):
        return []
    stops = np.append(begins[1:], len(poor) + (begins[0] if contig.circular else 0))
    return [int(arc) for a, b in zip(begins, stops, strict=True) for arc in (arcs[a], arcs[(b - 1) % len(arcs)])]
