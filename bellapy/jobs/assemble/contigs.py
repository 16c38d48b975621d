"""Contigs: the sequences of unitigs and circles, without those that stand in others, on a strand of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bellapy.jobs.assemble.graph import Graph
from bellapy.jobs.assemble.layout import Layout, used_bases
from bellapy.jobs.assemble.words import INSIDE, WORD, distinct, is_allele, share_of, words_of
from bellapy.params.assemble import AssembleParams
from bellapy.records import ReadSet
from bellapy.records.bases import reversed_codes

SMALL = 60_000  # bases of a contig that may stand in another
AROUND = 1.1  # by which a circle counts as longer than it is: errors make a piece of it longer than the turn
CIRCLE_INSIDE = 0.9  # of the words of a circle in another contig, for which it is left out; of others INSIDE


class Contig(NamedTuple):
    """A contig.

    codes : (n,) uint8.  circular : whether its first base follows the last one.
    reads : those that it was made of, in order, as vertices of the graph.
    again : bases from the beginning that the only read of a circle has twice.
    """

    codes: np.ndarray
    circular: bool
    reads: tuple[int, ...]
    again: int = 0


class Chosen(NamedTuple):
    """Contigs that are kept; how many are left out because they are short, and because they stand in others."""

    contigs: list[Contig]
    short: int
    inner: int


def spell(reads: ReadSet, layout: Layout, min_reads: int) -> list[Contig]:
    """The contigs of a layout, the longest first.

    min_reads : that a unitig is made of or that lie inside these, at least, where it does not lead from one to another.
    """
    held, graph = 1 + layout.n_inside, layout.graph
    contigs = []
    for unitig in layout.unitigs:
        n_reads = sum(int(held[v >> 1]) for v in unitig.path)
        if n_reads >= min_reads or (graph.degrees[unitig.path[-1]] and graph.degrees[unitig.path[0] ^ 1]):
            parts = [_bases(reads, layout, v)[:n] for v, n in zip(unitig.path, unitig.steps, strict=True)]
            contigs.append(Contig(np.concatenate(parts), unitig.circular, tuple(unitig.path)))
    for read, turn in layout.circles.items():  # which others cover from end to end
        codes = _bases(reads, layout, 2 * read)
        contigs.append(Contig(codes[:turn], True, (2 * read,), min(turn, len(codes) - turn)))
    return sorted(contigs, key=lambda contig: (-len(contig.codes), contig.reads))


def _bases(reads: ReadSet, layout: Layout, vertex: int) -> np.ndarray:
    codes = used_bases(reads, layout.spans, vertex >> 1)
    return reversed_codes(codes) if vertex & 1 else codes


def choose_contigs(reads: ReadSet, layout: Layout, params: AssembleParams) -> Chosen:
    """The contigs of a layout that are long enough, and stand in no other one."""
    found = spell(reads, layout, params.min_reads)
    long = [one for one in found if len(one.codes) >= params.min_contig]
    closed = close_variants(long, layout.graph, layout.left)
    kept = leave_out_inner(closed, layout.graph, params.haplotypes, layout.allele)
    return Chosen(kept, len(found) - len(long), len(long) - len(kept))


def leave_out_inner(contigs: list[Contig], graph: Graph, haplotypes: int, allele: float) -> list[Contig]:
    """Leave out contigs most of whose words stand in a longer one: what is left over beside it, or another haplotype.

    Circles, and the contigs of several haplotypes, are left out only if they are small; what leads from one contig to
    another is not.

    allele : of `Layout`.
    """
    kept: list[Contig] = []
    known: list[np.ndarray] = []
    for contig in sorted(contigs, key=lambda one: -len(one.codes) * (AROUND if one.circular else 1)):
        in_order = words_of(contig.codes, contig.circular)
        words, most = distinct(in_order), CIRCLE_INSIDE if contig.circular else INSIDE
        small, between = len(contig.codes) < SMALL, graph.targets(contig.reads[-1]) and graph.targets(contig.reads[0] ^ 1)
        looked_at = small if contig.circular else (small or haplotypes == 1) and not between
        within = [
            i for i, other in enumerate(known)
            if looked_at and (share_of(words, other) > most or not contig.circular and is_allele(in_order, other, allele))
        ]  # fmt: skip
        if not within:
            kept.append(contig)
            known.append(words)
        elif contig.circular:  # more than a turn of the same circle
            for i in within:
                if not kept[i].circular and share_of(known[i], words) > INSIDE:
                    kept[i], known[i] = contig, words
                    break
    return sorted(kept, key=lambda one: -len(one.codes))


def leave_out_shallow(depth: np.ndarray, homes: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """The contigs that are at least so deep, (n_kept,) int64, and on which of these each read lies, (n_reads,) int64, or -1.

    Each read of a contig is supported by as many others.  Where fewer lie on the contig, they are more like other contigs:
    it is a read of a repeat with errors that correction has left.

    depth : (n,) float64, reads on a base of each contig.  homes : (n_reads,) int64, the contig of each read; -1: none.
    """
    kept = np.flatnonzero(depth >= least)
    number = np.full(len(depth) + 1, -1)  # the last one is of reads without a contig
    number[kept] = np.arange(len(kept))
    return kept, number[homes]


def close_variants(contigs: list[Contig], graph: Graph, left: np.ndarray) -> list[Contig]:
    """Close the contigs whose end overlaps their own beginning, where all else that goes on there is a variant of them.

    So it is where some copies of a plasmid have a piece turned round.  The variants are left out: they share most of their
    words with the circle, and it with them.  Other circles that are left open have a repeat that no read spans.

    left : (n_arcs,) bool, arcs at which contigs end.
    """
    ends = {end: i for i, one in enumerate(contigs) if not one.circular for end in (one.reads[0], one.reads[-1] ^ 1)}
    words = {}
    left_out: set[int] = set()
    closed = list(contigs)
    for i, one in enumerate(contigs):
        first, last = one.reads[0], one.reads[-1]
        if one.circular or i in left_out or first not in graph.targets(last):
            continue
        arc = graph.first[last] + graph.targets(last).index(first)
        if left[arc]:
            continue
        beside = {w for w in (*graph.targets(last), *graph.targets(first ^ 1)) if w not in (first, last ^ 1)}
        others = {ends.get(w, i) for w in beside}
        for number in others | {i}:
            words[number] = distinct(words_of(contigs[number].codes, circular=False))
        pairs = [(words[i], words[j]) for j in others]
        if any(min(share_of(one, other), share_of(other, one)) <= INSIDE for one, other in pairs):
            continue
        closed[i] = one._replace(codes=one.codes[: len(one.codes) - graph.arcs.overlap[arc]], circular=True)
        left_out |= others - {i}
    return [one for i, one in enumerate(closed) if i not in left_out]


def rejoin(contigs: Sequence[Contig], graph: Graph, left: np.ndarray) -> list[Contig]:
    """The contigs as they were before they had to end at some arcs: else what these overlap by would stand there twice.

    left : (n_arcs,) bool, these arcs.
    """
    ends = {one.reads[-1]: one for some in contigs if not some.circular for one in (some, _turned(some))}
    done = [one for one in contigs if one.circular]
    for arc in np.flatnonzero(left).tolist():
        source, target = int(graph.arcs.source[arc]), int(graph.arcs.target[arc])
        if source not in ends or target ^ 1 not in ends or source == target ^ 1:
            continue
        one, other = ends.pop(source), _turned(ends.pop(target ^ 1))
        codes = np.concatenate([one.codes, other.codes[graph.arcs.overlap[arc] :]])
        if one.reads == other.reads:
            done.append(one._replace(codes=one.codes[: len(one.codes) - graph.arcs.overlap[arc]], circular=True))
        else:
            joined = Contig(codes, False, one.reads + other.reads)
            ends |= {joined.reads[-1]: joined, joined.reads[0] ^ 1: _turned(joined)}
    return done + [one for end, one in ends.items() if end < one.reads[0] ^ 1]


def without_unaligned(contig: Contig, graph: Graph) -> Contig:
    """The contig without what its last reads have beside the reads that go on: it may be of another copy of a repeat."""
    if contig.circular:
        return contig
    first, last = graph.unaligned(contig.reads[0] ^ 1), graph.unaligned(contig.reads[-1])
    return contig._replace(codes=contig.codes[first : len(contig.codes) - last])


def settle(contig: Contig) -> Contig:
    """The contig on the strand, and if it is a circle from the place, that its smallest word tells."""
    words = words_of(contig.codes, contig.circular)
    if not len(words):
        return contig
    at = int(words.argmin())
    word = np.take(contig.codes, np.arange(at, at + WORD), mode="wrap")
    forward = tuple(word) <= tuple(reversed_codes(word))
    if not contig.circular:
        return contig if forward else _turned(contig)
    if forward:
        return contig._replace(codes=np.roll(contig.codes, -at))
    return _turned(contig._replace(codes=np.roll(contig.codes, -(at + WORD))))


def _turned(contig: Contig) -> Contig:
    return contig._replace(codes=reversed_codes(contig.codes), reads=tuple(v ^ 1 for v in contig.reads[::-1]))
