"""The steps of mapping, for one batch of reads at a time: anchors, chains, alignments, choice."""

from __future__ import annotations

from functools import partial
from threading import local
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_threads
from bellapy.engines.affine.batch_cpu import Aligner, Effort, Tried
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import ordered
from bellapy.io.fastx import Records
from bellapy.jobs.map.bases import pack_both_ways
from bellapy.jobs.map.batches import halves, part_of
from bellapy.jobs.map.choose import DROPPED, PRIMARY, SUPPLEMENTARY, Placed, choose, weigh, weigh_together
from bellapy.jobs.map.circles import Crossed, Target, cut_at_origins, fold, linear, longest_sure, to_circles, without_images
from bellapy.jobs.map.far import Found, join_far, merge_chains
from bellapy.jobs.map.inversions import find_inversions
from bellapy.jobs.map.join import Paths, join_strokes, merge_paths
from bellapy.jobs.map.learn import effort_from, error_rates, rates_and_strays
from bellapy.jobs.map.pieces import Steps, align_chains, cut_chains, do_steps
from bellapy.jobs.map.select import NONE, select_chains, still_open
from bellapy.params import HIFI_ERRORS, HQ_ERRORS, ONT_ERRORS, AffineScoring, MapParams
from bellapy.records.bases import ENCODE
from bellapy.seeding.anchors import Layout, find_anchors, layout_for
from bellapy.seeding.chain import ChainRule, Chains, find_chains, penalties
from bellapy.seeding.index import Index

SHORT_BEYOND = 5  # bases beyond one anchor that a chain needs where a read has no other
SAMPLE_PIECES = 512
SAMPLE_READS, SAMPLE_PART = 200, 50  # reads that are learnt from, and how many of them a thread takes at a time


class Hits(NamedTuple):
    """Alignments of a batch to write, in the order of reads, then of falling weight; all columns (n,) int64.

    read; kind : as in choose.py; strand; quality : mapping quality.
    q_start, q_end : on the read as given.  sequence : of the reference; t_start, t_end : on it.
    score : of the alignment, or of the chain where nothing is aligned.  rival : the weight of the best other one.
    chain_score, rival_chain, n_anchors : of the chain.  row : in Paths.
    n_matches, n_columns : of the path, or estimates from the chain.
    """

    read: np.ndarray
    kind: np.ndarray
    strand: np.ndarray
    quality: np.ndarray
    q_start: np.ndarray
    q_end: np.ndarray
    sequence: np.ndarray
    t_start: np.ndarray
    t_end: np.ndarray
    score: np.ndarray
    rival: np.ndarray
    chain_score: np.ndarray
    rival_chain: np.ndarray
    n_anchors: np.ndarray
    row: np.ndarray
    n_matches: np.ndarray
    n_columns: np.ndarray

    def take(self, rows: np.ndarray) -> Hits:
        """Some of them: indices or a mask."""
        return Hits(*(column[rows] for column in self))


class Reads(NamedTuple):
    """The bases of a batch and what is known of its reads.

    codes : uint8, of each read and its reverse complement.  at, lengths : (n_reads,) int64, where each begins in `codes`,
    and its bases.  repeated : (n_reads,) int64, bases that repeated minimizers lie on.  layout : of anchors.
    """

    codes: np.ndarray
    at: np.ndarray
    lengths: np.ndarray
    repeated: np.ndarray
    layout: Layout


class Sampled(NamedTuple):
    """Some pieces of reads, to learn from.  codes : uint8, of the reads and their reverse complements."""

    codes: np.ndarray
    pieces: Pieces


class Mapped(NamedTuple):
    """The result of a batch.

    codes : uint8, of each read and its reverse complement.  repeated : as in Reads.  paths : None where nothing is aligned.
    scoring : of the alignments.  crossed : on circles.
    """

    records: Records
    codes: np.ndarray
    repeated: np.ndarray
    hits: Hits
    paths: Paths | None
    scoring: AffineScoring
    crossed: Crossed = Crossed()


class Mapper:
    """Maps reads to an index; may be used by several threads.

    align : False for chains only.  target : with its circles unrolled; None: there are none.  Reads of circles are aligned.
    """

    def __init__(self, index: Index, params: MapParams, *, align: bool = True, target: Target | None = None):
        self.index, self.params, self.align = index, params, align
        self.target = target or linear(index)
        self.scoring = ordered(params.scoring)
        select = params.select
        if not align:
            select = select._replace(min_score=select.min_chain)
        self.select, self.effort = select, Effort(zdrop=params.zdrop, bonus=params.end_bonus)
        self.rule = ChainRule(params.max_gap, params.band, min_score=select.min_chain)
        self._far = ChainRule(params.long_gap, params.long_gap, min_score=select.min_chain)
        self._short = ChainRule(params.max_gap, params.band, min_anchors=2, min_score=index.k + SHORT_BEYOND)
        self.costs = penalties(index.k, params.long_gap)
        self._mine = local()

    def sample(self, records: Records, threads: int = 1) -> list[Sampled]:
        """Inner pieces of the first reads, spread evenly, to learn from."""
        some = part_of(records, slice(SAMPLE_READS))
        parts = [part_of(some, slice(at, at + SAMPLE_PART)) for at in range(0, SAMPLE_READS, SAMPLE_PART)]
        found = map_threads(self._inner_pieces, [part for part in parts if part.names], threads)
        spacing = max(1, -(-sum(pieces.shape[1] for _, pieces in found) // SAMPLE_PIECES))
        sampled, at = [], 0
        for codes, pieces in found:
            sampled.append(Sampled(codes, Pieces(*np.ascontiguousarray(pieces[:, -at % spacing :: spacing]))))
            at += pieces.shape[1]
        return [some for some in sampled if len(some.pieces.q_at)]

    def learn(self, sample: list[Sampled], threads: int = 1) -> float | None:
        """Learn from some pieces how wide bands have to be, and which scores are so low that a wider one is tried.

        Returns the typical share of errors in the columns of their alignments; None if there is none.
        """
        if not sample:
            return None
        rates, strays, errors = np.concatenate(map_threads(self._inspect, sample, threads), axis=1)
        self.effort = effort_from(rates, strays, self.effort)
        return float(np.quantile(errors, 0.5))

    def chains_like(self, other: Mapper) -> bool:
        """Whether another mapper cuts the same pieces."""
        rules = ((mapper.rule, mapper._far, mapper._short, mapper.select) for mapper in (self, other))
        return self.index is other.index and next(rules) == next(rules)

    def map(self, records: Records) -> list[Mapped]:
        """Map some reads; a batch too large for the words of anchors gives several parts."""
        return [self.map_anchored(some, *self._anchor(some)) for some in self.fitting(records)]

    def fitting(self, records: Records) -> list[Records]:
        """The reads in parts that fit the words of anchors."""
        if len(records.names) <= self.layout(records).most_reads:
            return [records]
        return [part for some in halves(records, len(records.names) // 2) for part in self.fitting(some)]

    def pack(self, records: Records) -> Reads:
        """The bases of reads, of which nothing else is known yet."""
        codes, at, lengths = pack_both_ways(records.sequences, ENCODE)
        return Reads(codes, at, lengths, np.zeros_like(lengths), self.layout(records))

    def map_anchored(self, records: Records, reads: Reads, anchors: np.ndarray) -> Mapped:
        """Map reads whose anchors, (n,) uint64, are found; these are sorted in place."""
        return do_steps(self.map_chained(records, reads, *self._chain(reads, anchors)), partial(self.solve, reads))

    def solve(self, reads: Reads, pieces: Pieces, tried: Tried | None = None) -> Solved:
        """Align pieces of reads and of the target; tried : what narrow bands have given, where that is known."""
        codes, aligner = (reads.codes, self.target.codes), self._aligner()
        if tried is None:
            return aligner.align(*codes, pieces, self.effort)
        return aligner.finish(codes, pieces, self.effort, tried)

    def map_chained(self, records: Records, reads: Reads, chains: Chains, anchors: np.ndarray) -> Steps[Mapped]:
        """The steps of mapping reads whose chains are found; anchors : of these."""
        kept, host, rival_chain = select_chains(chains, anchors, reads.layout, reads.lengths, self.select)
        if not self.align:
            return self._mapped(records, reads, self._chains_as_hits(reads, chains, kept, rival_chain), None)
        paths = yield from self._align(reads, chains, anchors, kept[host == NONE])
        guests, host = kept[host != NONE], host[host != NONE]
        left = guests[still_open(chains, guests, host, paths, reads.at, reads.lengths, self.select.mask)]
        if len(left):
            paths = merge_paths(paths, (yield from self._align(reads, chains, anchors, left)))
        chains, rival_chain, paths = yield from self._turn(reads, chains, rival_chain, paths)
        hits = self._choose(reads, chains, rival_chain, paths)
        if not self.target.has_circles:
            return self._mapped(records, reads, hits, paths)
        hits, paths, crossed = self._cut_circles(reads, hits, paths)
        return self._mapped(records, reads, hits, paths)._replace(crossed=crossed)

    def _mapped(self, records: Records, reads: Reads, hits: Hits, paths: Paths | None) -> Mapped:
        return Mapped(records, reads.codes, reads.repeated, hits, paths, self.scoring)

    def _align(self, reads: Reads, chains: Chains, anchors: np.ndarray, some: np.ndarray) -> Steps[Paths]:
        """The alignments of some chains, (n,) int64 ascending; `source` of a path is its chain."""
        inner, ends, spans, whose = self._cut(reads, chains, anchors, some)
        codes, target = reads.codes, self.target.codes
        strokes = yield from align_chains(inner, ends, spans)
        rows, runs = join_strokes(codes, target, strokes, spans, self.scoring, self.params.zdrop, self.params.end_bonus)
        return Paths._make([whose[rows[0]], *rows[1:], runs])

    def _turn(
        self, reads: Reads, chains: Chains, rival: np.ndarray, paths: Paths
    ) -> Steps[tuple[Chains, np.ndarray, Paths]]:
        """Chains, their rivals and alignments with inversions: each has the chain around it, on the other strand."""
        read, params, least = chains.read[paths.source], self.params, self.select.min_score
        codes, mirror = (reads.codes, self.target.codes), 2 * (reads.at[read] + reads.lengths[read]) - 1
        paths, turned = yield from find_inversions(
            *codes, paths, mirror, self.scoring, params.zdrop, params.end_bonus, least
        )
        host = turned.source
        if not len(host):
            return chains, rival, paths
        others = Chains(*(column[host] for column in chains))
        others = others._replace(strand=1 - others.strand)
        both = Chains(*map(np.concatenate, zip(chains, others, strict=True)))
        paths = merge_paths(paths, turned._replace(source=len(chains.read) + np.arange(len(host))))
        order = np.argsort(both.read[paths.source], kind="stable")
        paths = Paths._make([*(column[order] for column in paths[:-1]), paths.runs])
        return both, np.concatenate([rival, rival[host]]), paths

    def _inner_pieces(self, records: Records) -> tuple[np.ndarray, np.ndarray]:
        """The codes of some reads, and the columns of their inner pieces of which no side is empty."""
        reads, anchors = self._anchor(records)
        chains, anchors = self._chain(reads, anchors)
        kept, host, _ = select_chains(chains, anchors, reads.layout, reads.lengths, self.select)
        inner, *_ = self._cut(reads, chains, anchors, kept[host == NONE])
        return reads.codes, inner[:6, np.minimum(inner[1], inner[3]) > 0]

    def _inspect(self, sampled: Sampled) -> np.ndarray:
        """Of each piece, aligned without doubt: score per 1,000 bases, diagonals that its path strays, share of errors."""
        codes, pieces = sampled
        solved = self._aligner().align(codes, self.target.codes, pieces)
        errors = error_rates(codes, self.target.codes, pieces, solved, self.scoring)
        return np.stack([*rates_and_strays(pieces, solved), errors])

    def _aligner(self) -> Aligner:
        if not hasattr(self._mine, "aligner"):
            self._mine.aligner = Aligner(self.scoring)
        return self._mine.aligner

    def layout(self, records: Records) -> Layout:
        """Of the anchors of some reads."""
        return layout_for(max(map(len, records.sequences), default=1), len(self.target.codes))

    def _anchor(self, records: Records) -> tuple[Reads, np.ndarray]:
        """Reads and their anchors, not sorted."""
        index, reads = self.index, self.pack(records)
        anchors, repeated = find_anchors(
            index.lookup, index.k, index.window, reads.codes, reads.at, reads.lengths, reads.layout
        )
        return reads._replace(repeated=repeated), anchors

    def _chain(self, reads: Reads, anchors: np.ndarray) -> tuple[Chains, np.ndarray]:
        """Chains of all reads, and their anchors; `anchors` may be sorted in place."""
        index, layout, target = self.index, reads.layout, self.target
        if target.has_circles:
            anchors = to_circles(anchors, layout, reads.lengths, target, self.params.long_gap)
        anchors.sort()
        found = find_chains(anchors, layout, index.k, self.rule, self.costs, self.target.starts)
        found = self.join_far(*found, reads)
        none = np.ones(len(reads.lengths), bool)
        none[found[0].read] = False
        some = anchors[none[(anchors >> np.uint64(layout.q_bits + layout.place_bits + 1)).astype(np.int64)]]
        chains, chained = self.try_harder(*found, some, reads)
        if target.has_circles:
            kept = without_images(chains, chained, layout, target)
            chains = Chains(*(column[kept] for column in chains))
        return chains, chained

    def join_far(self, chains: Chains, chained: np.ndarray, reads: Reads) -> Found:
        """Join chains over longer gaps."""
        k, starts = self.index.k, self.target.starts
        return join_far(chains, chained, reads.layout, k, reads.lengths, self._far, self.costs, starts)

    def try_harder(self, chains: Chains, chained: np.ndarray, anchors: np.ndarray, reads: Reads) -> Found:
        """Accept shorter chains for reads that have none, whose anchors are given; their alignments will decide."""
        if not len(anchors):
            return chains, chained
        index = self.index
        found = find_chains(np.sort(anchors), reads.layout, index.k, self._short, self.costs, self.target.starts)
        return merge_chains(chains, chained, np.ones(len(chains.read), bool), *found)

    def _cut(self, reads: Reads, chains: Chains, anchors: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, ...]:
        """Pieces, ends, spans and chains of the alignments of the chains `kept`, as cut_chains gives them."""
        return cut_chains(
            chains, anchors, kept, reads.layout, self.index.k, reads.at, reads.lengths, self.target.starts,
            self.target.lengths, self.target.codes,
        )  # fmt: skip

    def _choose(self, reads: Reads, chains: Chains, rival_chain: np.ndarray, paths: Paths) -> Hits:
        """The alignments to write; paths : in the order of reads, then of chains."""
        read, strand = chains.read[paths.source], chains.strand[paths.source]
        base = reads.at[read] + strand * reads.lengths[read]
        q_start, q_end = _on_read(paths.q_start - base, paths.q_end - base, strand, reads.lengths[read])
        weight = weigh(read, reads.lengths, paths, self.scoring)
        weight = weigh_together(weight, read, paths.source, q_start, q_end, self.params.zdrop // 2)
        order = np.lexsort((np.arange(len(weight)), -paths.score, -weight, read))
        paths = Paths._make([*(column[order] for column in paths[:-1]), paths.runs])
        read, strand, q_start, q_end, chain = read[order], strand[order], q_start[order], q_end[order], paths.source
        columns = paths.n_matches + paths.n_mismatches + paths.n_gap_bases
        t_start, t_end = paths.t_start, paths.t_end
        if self.target.has_circles:  # so that those which end alike are seen, whatever the turn
            t_start, t_end = fold(t_start, self.target), fold(t_end - 1, self.target) + 1
        placed = Placed(
            read, strand, q_start, q_end, t_start, t_end, paths.score, weight[order],
            chains.score[chain], rival_chain[chain], chains.n_anchors[chain], paths.n_matches / np.maximum(columns, 1),
        )  # fmt: skip
        kind, quality, rival = choose(placed, reads.repeated, self.select, self.scoring.match, True)
        return self._hits(placed, kind, quality, rival, order, paths.n_matches, columns)

    def _cut_circles(self, reads: Reads, hits: Hits, paths: Paths) -> tuple[Hits, Paths, Crossed]:
        """Alignments cut at origins, each part with score and quality of the whole, the largest of each first."""
        target, on = self.target, self.target.lengths[hits.sequence]
        where = np.stack([hits.sequence, hits.t_start])
        cut, runs = cut_at_origins(reads.codes, target, paths, hits.row, where, self.scoring)
        parts = Paths._make([*cut, runs])
        whole, first = parts.source, np.zeros(len(parts.source), bool)
        largest = np.lexsort((-parts.n_matches, whole))
        first[largest[np.diff(whole[largest], prepend=-1) > 0]] = True
        order = np.lexsort((~first, whole))
        parts, first = Paths._make([*(column[order] for column in parts[:-1]), runs]), first[order]
        some = hits.take(parts.source)
        base, t_base = reads.at[some.read] + some.strand * reads.lengths[some.read], self.index.starts[some.sequence]
        q_start, q_end = _on_read(parts.q_start - base, parts.q_end - base, some.strand, reads.lengths[some.read])
        n_columns = parts.n_matches + parts.n_mismatches + parts.n_gap_bases
        some = some._replace(
            kind=np.where(first | (some.kind != PRIMARY), some.kind, SUPPLEMENTARY), q_start=q_start, q_end=q_end,
            t_start=parts.t_start - t_base, t_end=parts.t_end - t_base, row=np.arange(len(first)),
            n_matches=parts.n_matches, n_columns=n_columns,
        )  # fmt: skip
        primary, circle = hits.kind == PRIMARY, target.track[hits.sequence] >= 0
        several = np.bincount(whole, minlength=len(primary)) > 1
        around = paths.t_end[hits.row] - paths.t_start[hits.row] > on
        long = reads.lengths[hits.read] > longest_sure(self.params.long_gap)
        told = (several & primary, several & around & primary, circle & long & primary)
        return some, parts, Crossed(*(int(some.sum()) for some in told))

    def _chains_as_hits(self, reads: Reads, chains: Chains, kept: np.ndarray, rival_chain: np.ndarray) -> Hits:
        """The chains to write, where nothing is aligned."""
        some = Chains(*(column[kept] for column in chains))
        q_start, q_end = _on_read(some.q_start, some.q_end, some.strand, reads.lengths[some.read])
        placed = Placed(
            some.read, some.strand, q_start, q_end, some.t_start, some.t_end, some.score, some.score, some.score,
            rival_chain[kept], some.n_anchors, np.ones(len(kept)),
        )  # fmt: skip
        kind, quality, rival = choose(placed, reads.repeated, self.select, 1, False)
        columns = np.maximum(some.q_end - some.q_start, some.t_end - some.t_start)
        matches = np.minimum(some.n_anchors * self.index.k, columns)
        return self._hits(placed, kind, quality, rival, np.zeros_like(some.score), matches, columns)

    def _hits(
        self, placed: Placed, kind: np.ndarray, quality: np.ndarray, rival: np.ndarray, row: np.ndarray, matches: np.ndarray,
        columns: np.ndarray,
    ) -> Hits:  # fmt: skip
        """Those that are not dropped, with positions on sequences of the reference."""
        sequence = np.searchsorted(self.index.starts, placed.t_start, side="right") - 1
        base = self.index.starts[sequence]
        hits = Hits(
            placed.read, kind, placed.strand, quality, placed.q_start, placed.q_end, sequence, placed.t_start - base,
            placed.t_end - base, placed.score, rival, placed.chain_score, placed.rival_chain, placed.n_anchors, row, matches,
            columns,
        )  # fmt: skip
        return hits.take(kind != DROPPED)


def _on_read(start: np.ndarray, end: np.ndarray, strand: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals on the read as given, of intervals on the oriented read."""
    return np.where(strand == 1, length - end, start), np.where(strand == 1, length - start, end)


def preset_for(errors: float | None) -> str:
    """The preset that fits reads with so many errors."""
    if errors is None or errors >= HQ_ERRORS:
        return "clr" if errors is not None and errors >= ONT_ERRORS else "ont"
    return "hifi" if errors < HIFI_ERRORS else "hq"
