"""Overlaps of reads -> graph -> unitigs: which reads make which contig, and how contigs are linked."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from bellapy.jobs.assemble.clean import Alike, Cleaned, Inner, clean_graph
from bellapy.jobs.assemble.graph import Arcs, Graph, make_arcs
from bellapy.jobs.assemble.hits import (
    MOST,
    USUAL,
    Hits,
    Kinds,
    Spans,
    clip,
    error_limit,
    find_spans,
    sort_kinds,
    widen,
)
from bellapy.jobs.assemble.reduction import reduce_graph
from bellapy.jobs.assemble.turns import choose_circles, find_turns
from bellapy.jobs.assemble.unitigs import Unitig, find_unitigs
from bellapy.jobs.assemble.words import INSIDE, WORD, distinct, is_allele, share_of, words_of
from bellapy.params.assemble import AssembleParams
from bellapy.records import Overlaps, ReadSet
from bellapy.report.log import logger

MARGIN = 100  # bases at the end of an overlap that are not trusted
OVERHANG, SHARE = 1000, 0.8  # bases that both reads may go on beyond an overlap; its share in all of this
ACCURATE, ACCURATE_OVERHANG = 0.02, 250  # errors up to which reads are accurate, and the same for these
FUZZ = 1000  # bases by which two ways may differ
LONGEST_TURNING = 60_000  # bases of a read that is looked at for turns
UNLIKE = 0.05, 0.02  # share of the reads that no reads like them cover: with more than the first errors are unusual
MANY, COMMON = USUAL / 4, 0.05  # errors of an overlap; share of overlaps with many, from which on haplotypes are sure
FARTHEST = 0.1  # errors of overlaps of two haplotypes
OTHERS = 0.25  # of the overlaps of a read, from which on those with other haplotypes are many
WORST = 5  # times the usual limit of errors, up to which a poor overlap counts
JOINED = 3  # reads of a unitig whose end may be joined to another by a poor overlap


class Layout(NamedTuple):
    """The graph, and what became of the reads.

    spans : the used parts of reads, which at least `min_depth` others cover.
    inside : (n_reads,) bool, reads that others contain; n_inside : (n_reads,) int64, reads that each contains.
    circles : reads of which one turn is a circle, with its bases.
    alive : (n_reads,) bool, the reads that unitigs are made of.  left : (n_arcs,) bool, arcs at which contigs end.
    allele : share of the words of a sequence that stand in its like of another haplotype, at least.
    limit : of errors of overlaps, as a share of their bases.
    """

    graph: Graph
    unitigs: list[Unitig]
    spans: Spans
    min_depth: int
    inside: np.ndarray
    n_inside: np.ndarray
    circles: dict[int, int]
    cleaned: Cleaned
    alive: np.ndarray
    left: np.ndarray
    allele: float
    limit: float

    def ended_at(self, arcs: np.ndarray) -> Layout:
        """The same with unitigs that end at some more arcs, (n_arcs,) bool, too."""
        left = self.left | arcs
        return self._replace(left=left, unitigs=find_unitigs(self.graph, self.alive, left))


def lay_out(
    reads: ReadSet, overlaps: Overlaps, params: AssembleParams, *, exact: bool, depth: float = math.inf,
    tail: int = 0, lines: Collection[int] = (), threads: int = 1,
) -> Layout:  # fmt: skip
    """Find the unitigs of reads.

    overlaps : of these reads; with paths, if they are `exact`, so that their errors tell copies of repeats apart.
    depth : others that lie over a base of a read as a rule, before reads were left out.
    tail : bases at ends of reads that need no others.  lines : reads that do not go round.
    """
    hits = Hits.of(overlaps)
    limit = error_limit(hits, params.haplotypes) if exact else 1.0
    overhang = ACCURATE_OVERHANG if limit <= ACCURATE else OVERHANG
    min_depth = params.min_depth_at(limit, depth)
    spans = find_spans(hits, reads.lengths, min_depth, MARGIN)
    ends = tail if params.haplotypes > 1 else 0  # others that cover them may be of other haplotypes
    hits, limit, has_like = _with_like(hits, limit, spans, reads.lengths, min_depth, ends)
    usual = max(limit, USUAL)
    if tail:
        spans = widen(spans, hits, reads.lengths, MARGIN, tail)
    hits, lengths = clip(hits, spans, params.min_overlap), spans.lengths
    kinds = _without_poor(hits, sort_kinds(hits, lengths, overhang, SHARE), hits.errors <= limit, has_like)
    inside, inner = _find_inner(hits, kinds, len(lengths))
    alive = (lengths > 0) & ~inside
    arcs = make_arcs(hits, kinds, lengths)
    arcs = arcs.take(alive[arcs.source >> 1] & alive[arcs.target >> 1])
    may_turn = alive & (lengths < LONGEST_TURNING)
    may_turn[list(lines)] = False
    looked_at = np.flatnonzero(may_turn).tolist()
    turns = find_turns(((read, used_bases(reads, spans, read)) for read in looked_at), arcs, lengths, usual, threads)
    circles = choose_circles(turns, arcs, inner.n_inside)
    arcs = arcs.take((turns[arcs.source >> 1] == 0) & (turns[arcs.target >> 1] == 0))
    graph, spare = _graph_of(arcs.take(arcs.errors <= WORST * usual), lengths, limit)
    n_transitive, rounds = reduce_graph(graph, FUZZ)
    n_forks = graph.n_forks
    allele = _allele_share(hits, limit, len(lengths)) if params.haplotypes == 1 else math.inf
    tell_alike = _tell_alike(reads, spans, params.haplotypes, allele)
    cleaned = clean_graph(
        graph, inner, tell_alike, usual if exact else 0, long_ways=params.haplotypes == 1, long_ends=allele < math.inf
    )
    in_unitigs = alive & (turns == 0)
    n_joined = _join_ends(graph, spare, in_unitigs)
    unitigs = find_unitigs(graph, in_unitigs)
    logger.info(
        "graph: %s reads of %s are in no other one; errors of overlaps up to %.3f %%; %d others cover what is used; "
        "%s arcs, %s of them transitive (%d rounds); %d forks, then %d; %d tips, %d bubbles, %d weak arcs went; "
        "%d ends joined; %d unitigs, %d reads go round",
        f"{alive.sum():,}", f"{len(lengths):,}", 100 * limit, min_depth, f"{len(arcs.source):,}", f"{n_transitive:,}",
        rounds, n_forks, graph.n_forks, *cleaned, n_joined, len(unitigs), (turns > 0).sum(),
    )  # fmt: skip
    found_circles = {int(read): int(turns[read]) for read in circles}
    none = np.zeros(len(graph), bool)
    return Layout(
        graph, unitigs, spans, min_depth, inside, inner.n_inside, found_circles, cleaned, in_unitigs, none, allele, limit
    )


def used_bases(reads: ReadSet, spans: Spans, read: int) -> np.ndarray:
    """The codes of the used part of a read."""
    at = reads.starts[read]
    return reads.codes[at + spans.start[read] : at + spans.end[read]]


def _with_like(
    hits: Hits, learnt: float, spans: Spans, lengths: np.ndarray, min_depth: int, tail: int
) -> tuple[Hits, float, np.ndarray]:  # fmt: skip
    """The hits, the limit of errors, and whether overlaps within it cover what is used of each read, (n_reads,) bool.

    The limit is below the usual one where haplotypes differ by less, if overlaps within it cover nearly as many reads.  A
    high one is raised until they cover most reads, where correction has left so much wrong that they do not.  Copies of
    repeats and haplotypes cannot be told apart there anyway.

    learnt : the limit by the errors that overlaps have.  tail : bases at ends of reads that need no others like them.
    """
    n_used = np.count_nonzero(spans.lengths)

    def covered(hits: Hits, limit: float) -> np.ndarray:
        like = hits.take(hits.errors <= limit)
        of_like = find_spans(like, lengths, min_depth, MARGIN)
        if tail:
            of_like = widen(of_like, like, lengths, MARGIN, tail)
        return (of_like.start <= spans.start) & (of_like.end >= spans.end)

    limit = max(learnt, USUAL)
    has_like = covered(hits, limit)
    least = np.count_nonzero(has_like) - UNLIKE[1] * n_used
    for some, low in _lower_limits(hits, learnt):
        found = covered(some, low)
        if np.count_nonzero(found) >= least:
            return some, low, found
    if limit >= MOST and np.count_nonzero(~has_like) > UNLIKE[0] * n_used:
        while np.count_nonzero(~has_like) > UNLIKE[1] * n_used:
            limit *= 2
            has_like = covered(hits, limit)
    return hits, limit, has_like


def _lower_limits(hits: Hits, learnt: float) -> list[tuple[Hits, float]]:
    """Limits below the usual one, the lowest first, with the hits, of which all errors may count; none: there is no need.

    There is where overlaps with more errors than learnt have many as a rule: so it is with two haplotypes.  Of what
    correction has left, most overlaps have few.
    """
    errors = hits.errors
    few, many = (np.count_nonzero((errors > low) & (errors <= high)) for low, high in ((learnt, MANY), (MANY, USUAL)))
    if learnt >= MANY or many < few:
        return []
    lower = [(hits, learnt * 2**i) for i in range(4) if learnt * 2**i < USUAL]
    return [(hits._replace(few=np.zeros_like(hits.few)), learnt), *lower] if many > COMMON * len(hits.query) else lower


def _without_poor(hits: Hits, kinds: Kinds, good: np.ndarray, has_like: np.ndarray) -> Kinds:
    """Poor overlaps say that a read is inside another only where reads like it do not cover all of it.

    Reads of the same copy of a repeat, and of the same haplotype, are like each other.  They do not cover what correction
    has left wrong.

    has_like : (n_reads,) bool, whether reads like it cover a read.
    """
    return kinds._replace(
        query_inside=kinds.query_inside & (good | ~has_like[hits.query]),
        target_inside=kinds.target_inside & (good | ~has_like[hits.target]),
    )


def _allele_share(hits: Hits, limit: float, n_reads: int) -> float:
    """Share of the words of a sequence that stand in its like of another haplotype, at least; infinite: there is none.

    Where most reads overlap many that are not of their kind, two haplotypes are there.  It is half of what these share, as
    far as such overlaps tell how far they are apart.

    limit : of errors, up to which reads are of one kind.
    """
    errors = hits.errors
    close, other = errors <= FARTHEST, (errors > limit) & (errors <= FARTHEST)
    read = np.concatenate([hits.query, hits.target])
    n_all, n_other = (np.bincount(read[np.tile(some, 2)], minlength=n_reads) for some in (close, other))
    if not n_all.any() or np.median(n_other[n_all > 0] / n_all[n_all > 0]) < OTHERS:
        return math.inf
    return 0.5 * (1 - float(np.median(errors[other]))) ** WORD


def _tell_alike(reads: ReadSet, spans: Spans, haplotypes: int, allele: float) -> Alike:
    """Tells by their words whether reads spell the same, or what haplotypes do; of several haplotypes none do."""

    def words(vertices: Collection[int]) -> np.ndarray:
        return np.concatenate([words_of(used_bases(reads, spans, v >> 1), circular=False) for v in vertices])

    def alike(others: Collection[int], way: Collection[int]) -> bool:
        if haplotypes > 1 or not others:
            return False
        some, known = words(others), distinct(words(way))
        return share_of(distinct(some), known) > INSIDE or is_allele(some, known, allele)

    return alike


def _find_inner(hits: Hits, kinds: Kinds, n_reads: int) -> tuple[np.ndarray, Inner]:
    """The reads that others contain, (n_reads,) bool, and in which of those that none contains they are."""
    inner = np.concatenate([hits.query[kinds.query_inside], hits.target[kinds.target_inside]])
    outer = np.concatenate([hits.target[kinds.query_inside], hits.query[kinds.target_inside]])
    inside = np.zeros(n_reads, bool)
    inside[inner] = True
    return inside, Inner(inner[~inside[outer]], outer[~inside[outer]], n_reads)


def _graph_of(arcs: Arcs, lengths: np.ndarray, limit: float) -> tuple[Graph, Arcs]:
    """The graph of the good arcs, and of the poor ones where neither end has a good one; the other poor ones."""
    poor = arcs.errors > limit
    has_good = np.zeros(2 * len(lengths), bool)
    has_good[arcs.source[~poor]] = True
    spare = poor & (has_good[arcs.source] | has_good[arcs.target ^ 1])
    return Graph(lengths, arcs.take(~spare)), arcs.take(spare)


def _join_ends(graph: Graph, spare: Arcs, alive: np.ndarray) -> int:
    """Join the ends of unitigs by poor overlaps that are the best ones of both ends; how many were joined."""
    _free_ends(graph, spare, _dead_ends(graph, alive))
    ends = _dead_ends(graph, alive)
    some = spare.take(ends[spare.source] & ends[spare.target ^ 1])
    if not len(some.source):
        return 0
    found = Graph(graph.lengths, some)
    found.drop(found.shared < found.longest_overlaps()[found.arcs.source])
    graph.add(found.arcs)
    return len(found) // 2


def _dead_ends(graph: Graph, alive: np.ndarray) -> np.ndarray:
    """Mask of the vertices that nothing leaves and that unitigs of some reads end with."""
    ends = np.zeros(graph.n_vertices, bool)
    for unitig in find_unitigs(graph, alive):
        if not unitig.circular and len(unitig.path) >= JOINED:
            ends[[unitig.path[-1], unitig.path[0] ^ 1]] = True
    return ends & (graph.degrees == 0)


def _free_ends(graph: Graph, spare: Arcs, dead: np.ndarray) -> None:
    """Take away arcs for which one end has a longer overlap, and the other one a longer poor overlap with a dead end.

    Such an arc lies in a repeat.  Correction has left more errors where it should go on.
    """
    some = spare.take(dead[spare.target ^ 1])
    longest, poor, shared = graph.longest_overlaps(), np.zeros(graph.n_vertices, np.int64), graph.shared
    np.maximum.at(poor, some.source, some.overlap)
    one, other = graph.arcs.source, graph.arcs.target ^ 1
    graph.drop((shared < longest[one]) & (shared < poor[other]) | (shared < poor[one]) & (shared < longest[other]))
