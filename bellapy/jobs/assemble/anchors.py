"""Where contigs may go on: only through overlaps that stand in all contigs together once.

An overlap within a repeat may join two of its copies.  Where other reads show both ways, there is a fork; but these reads
may be missing, or lie inside reads of another copy.  So a contig ends at such an overlap, and the overlap becomes a link.
What reads have beside the alignment, where they may be taken for bad ends, makes no overlap sure.  An overlap of two repeats
is sure where no other place has both.
The same holds for a read whose end repeats its beginning: a line whose ends are copies of a repeat is no circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bellapy.jobs.assemble.contigs import Contig
from bellapy.jobs.assemble.graph import Graph
from bellapy.jobs.assemble.hits import USUAL
from bellapy.jobs.assemble.words import WORD, distinct, find_alone, words_of

LEAST, SHARE = 100, 0.02  # words that no other place has, of an overlap that is sure: a wrong base makes 31
LEAST_CLOSE = 50  # besides what its own errors make, where the limit of errors tells closer haplotypes apart than usual
TELLING = 20  # such words between two overlaps, which tell where the sequence there stands
NEAR = 1000  # bases by which the gaps of two copies may differ
MANY = 50  # times of a word from which on it is not looked where it stands: it counts as standing everywhere


class _Words:
    """The words of all contigs, and where else each of them stands.

    begins : (n_contigs,) int64, where the words of each contig begin.
    """

    def __init__(self, contigs: Sequence[Contig], threads: int = 1):
        its = [words_of(one.codes, one.circular) for one in contigs]
        sizes, circular = np.array([len(some) for some in its]), np.array([one.circular for one in contigs])
        words = np.concatenate(its)
        self._alone, self._others = find_alone(words, threads)
        is_new = np.diff(words[self._others], prepend=~words[self._others[:1]]) != 0
        self._first = np.flatnonzero(is_new)
        self._times = np.diff(np.append(self._first, len(is_new)))
        self._number = np.zeros(len(words), np.int64)
        self._number[self._others] = np.cumsum(is_new) - 1
        self.begins = np.cumsum(sizes) - sizes
        self._period = np.where(circular, sizes, 2 * len(words) + NEAR)  # of places on a contig

    def alone(self, contig: int) -> np.ndarray:
        """Mask of the words of a contig that stand nowhere else, (n,) bool."""
        return self._alone[self.begins[contig] : np.append(self.begins, len(self._alone))[contig + 1]]

    def of_copy(self, words: np.ndarray) -> int:
        """How many of some words, (n,) int64 indices, which follow each other, one other place has together, at the most.

        All places that share some of the words themselves, as the units of a tandem array do, are one: of an array the
        contigs may have too few units.
        """
        own = np.flatnonzero(~self._alone[words])
        numbers = self._number[words[own]]
        n = np.where(self._times[numbers] < MANY, self._times[numbers], 0)
        step = np.arange(int(n.sum())) - np.repeat(np.cumsum(n) - n, n)
        other = self._others[np.repeat(self._first[numbers], n) + step]
        own = np.repeat(own, n)
        own, other = own[other != words[own]], other[other != words[own]]
        contig, is_one = np.searchsorted(self.begins, other, side="right") - 1, np.isin(other, words)
        most = 0
        for diagonal in (other - own, other + own):  # a copy on the same strand, and one on the other
            for shift in (0, NEAR // 2):
                place = contig * (len(self._alone) + NEAR) + (diagonal + shift) % self._period[contig] // NEAR
                place[np.isin(place, place[is_one])] = -1
                held = distinct(place * len(words) + own) // len(words)  # a place for each word that it has
                begins = np.flatnonzero(np.diff(held, prepend=-2))
                most = max(most, int(np.diff(begins, append=len(held)).max(initial=0)))
        return most + int((n == 0).sum())


def find_unsure(
    contigs: Sequence[Contig], graph: Graph, limit: float = USUAL, threads: int = 1
) -> tuple[np.ndarray, list[int]]:  # fmt: skip
    """Mask of the arcs, with their complements, at which contigs have to end, (n_arcs,) bool; reads that are no circles.

    limit : of errors of overlaps, as a share of their bases.
    """
    found, lines = np.zeros(len(graph), bool), list[int]()
    if not contigs:
        return found, lines
    words = _Words(contigs, threads)
    for i, one in enumerate(contigs):
        if one.circular and len(one.reads) == 1:
            if words.alone(i)[: one.again - WORD].sum() < _least(one.again):
                lines.append(one.reads[0] >> 1)
        else:
            found[_of_contig(i, one, words, graph, limit)] = True
    return found | np.isin(graph.keys, graph.complements[found]), lines


def _least(n: np.ndarray | int) -> np.ndarray:
    """Words alone that n bases need to be sure."""
    return np.maximum(LEAST, SHARE * n)


def _least_of_arcs(n: np.ndarray, differences: np.ndarray, limit: float) -> np.ndarray:
    """The same of n bases of each of some arcs."""
    if limit >= USUAL:
        return _least(n)
    return np.minimum(_least(n), np.maximum(LEAST_CLOSE + WORD * differences, WORD * limit * n))


def _of_contig(number: int, contig: Contig, words: _Words, graph: Graph, limit: float) -> list[int]:
    """The arcs at which a contig, that of a number, has to end.

    Of several in a row, between which there is no such sequence either, these are the first and the last one.
    """
    alone = words.alone(number)
    steps = [*contig.reads, contig.reads[0]] if contig.circular else contig.reads
    arcs = np.array([graph.first[v] + graph.targets(v).index(w) for v, w in pairwise(steps)], np.int64)
    before, turns = np.concatenate([[0], np.cumsum(alone)]), 2 if contig.circular else 1

    def alone_before(place: np.ndarray) -> np.ndarray:
        turn, at = np.divmod(place, max(1, len(alone)))
        return turn * before[-1] + before[at]

    its = graph.arcs.take(arcs)
    start = np.cumsum(its.length)
    scale = len(contig.codes) / (start[-1] + (0 if contig.circular else graph.lengths[steps[-1] >> 1])) if len(arcs) else 1
    end = np.minimum(scale * (start + its.overlap - its.tail) - WORD, turns * len(alone)).astype(np.int64)
    start = (scale * (start + its.head)).astype(np.int64)
    start = np.minimum(start, end)
    least = _least_of_arcs(end - start, its.differences, limit)
    poor = np.flatnonzero(alone_before(end) - alone_before(start) < least)
    held = [words.begins[number] + np.arange(start[i], end[i]) % len(alone) for i in poor]
    n_own = np.array([len(some) - words.of_copy(some) for some in held], np.int64)
    poor = poor[n_own < least[poor]]
    if not len(poor):
        return []
    arcs, start, end = arcs[poor], alone_before(start[poor]), alone_before(end[poor])
    ahead = end[-1] - before[-1] if contig.circular else -TELLING
    begins = np.flatnonzero(start - np.concatenate([[ahead], end[:-1]]) >= TELLING)
    if not len(begins):
        return []
    stops = np.append(begins[1:], len(poor) + (begins[0] if contig.circular else 0))
    return [int(arc) for a, b in zip(begins, stops, strict=True) for arc in (arcs[a], arcs[(b - 1) % len(arcs)])]
