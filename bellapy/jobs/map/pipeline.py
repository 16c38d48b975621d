"""The steps of mapping, for one batch of reads at a time: anchors, chains, alignments, choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import local
from typing import NamedTuple

import numpy as np

from bellapy.engines.affine.batch_cpu import NEAR, Aligner, Effort, Pieces
from bellapy.engines.affine.rule import ordered
from bellapy.io.fastx import Records
from bellapy.jobs.map.choose import DROPPED, choose
from bellapy.jobs.map.join import Paths, error_rates, join_strokes, stray
from bellapy.jobs.map.pieces import align_chains, cut_chains
from bellapy.jobs.map.select import select_chains
from bellapy.jobs.map.text import pack_both_ways
from bellapy.params import HIFI_ERRORS, ONT_ERRORS, MapParams
from bellapy.records.bases import ENCODE
from bellapy.seeding.anchors import Layout, find_anchors, layout_for
from bellapy.seeding.chain import ChainRule, Chains, find_chains, penalties
from bellapy.seeding.index import Index

BATCH_BASES = 2_000_000
BATCH_READS = 500
LEFT_OVER = 1000  # bases of a read outside its best chain from which on far joins are tried
SHORT_BEYOND = 5  # bases beyond one anchor that a chain needs where a read has no other
SAMPLE_PIECES = 512
SAMPLE_READS = 200
MARGIN_QUANTILE = 0.75  # of the diagonals that sure pieces stray: the first band is wide enough for so many
FLOOR_QUANTILE = 0.01  # of the scores of sure pieces: below it, a band is proved or widened


class Hits(NamedTuple):
    """Alignments of a batch to write, in the order of reads, then of falling score; all columns (n,) int64.

    read; kind : as in choose.py; strand; quality : mapping quality.
    q_start, q_end : on the read as given.  sequence : of the reference; t_start, t_end : on it.
    score, rival : of the alignment and of the best other one (chain scores where nothing is aligned).
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


class Mapped(NamedTuple):
    """What became of a batch.

    codes : uint8, of each read and its reverse complement.  paths : None where nothing is aligned.
    """

    records: Records
    codes: np.ndarray
    hits: Hits
    paths: Paths | None


class Mapper:
    """Maps reads to an index; may be used by several threads.

    align : False for chains only.
    """

    def __init__(self, index: Index, params: MapParams, *, align: bool = True):
        self.index, self.params, self.align = index, params, align
        self.scoring = ordered(params.scoring)
        select = params.select
        if not align:
            select = select._replace(min_score=select.min_chain)
        self.select, self.effort = select, Effort(zdrop=params.zdrop, bonus=params.end_bonus)
        self._rule = ChainRule(params.max_gap, params.band, min_score=select.min_chain)
        self._far = ChainRule(params.long_gap, params.long_gap, min_score=select.min_chain)
        self._short = ChainRule(params.max_gap, params.band, min_anchors=2, min_score=index.k + SHORT_BEYOND)
        self._costs = penalties(index.k, params.long_gap)
        self._mine = local()

    def learn(self, records: Records) -> float | None:
        """Learn from the first reads how wide bands have to be, and which scores are so low that a wider one is tried.

        Returns the typical share of errors in the columns of their alignments; None if no read fits the reference.
        """
        chains, anchors, layout, codes, at, lengths, _ = self._chain(_first(records, SAMPLE_READS))
        kept, _ = select_chains(chains, anchors, layout, lengths, self.select)
        inner, *_ = self._cut(chains, anchors, kept, layout, at, lengths)
        inner = inner[:, np.minimum(inner[1], inner[3]) > 0]
        if not inner.shape[1]:
            return None
        some = Pieces(*np.ascontiguousarray(inner[:6, :: -(-inner.shape[1] // SAMPLE_PIECES)]))
        solved = self._aligner().align(codes, self.index.codes, some)
        rates = 1000 * solved.score // np.minimum(some.q_len, some.t_len)
        strays = stray(solved.runs, solved.starts, solved.counts)
        margin = int(np.quantile(strays, MARGIN_QUANTILE)) + 2 * NEAR
        self.effort = self.effort._replace(floor=int(np.quantile(rates, FLOOR_QUANTILE)), margin=margin)
        return float(np.median(error_rates(codes, self.index.codes, some, solved, self.scoring)))

    def map(self, records: Records) -> list[Mapped]:
        """Map some reads; a batch too large for the words of anchors gives several parts."""
        layout = self._layout(records)
        if len(records.names) > layout.most_reads:
            half = len(records.names) // 2
            return [part for some in _halves(records, half) for part in self.map(some)]
        chains, anchors, layout, codes, at, lengths, repeated = self._chain(records)
        kept, rival_chain = select_chains(chains, anchors, layout, lengths, self.select)
        if not self.align:
            return [Mapped(records, codes, self._chains_as_hits(chains, kept, rival_chain, lengths, repeated), None)]
        inner, ends, spans = self._cut(chains, anchors, kept, layout, at, lengths)
        strokes, _ = align_chains(self._aligner(), codes, self.index.codes, inner, ends, spans, self.effort)
        rows, runs = join_strokes(
            codes, self.index.codes, strokes, spans, self.scoring, self.params.zdrop, self.params.end_bonus
        )  # fmt: skip
        paths = Paths(*rows, runs)
        return [Mapped(records, codes, self._choose(chains, kept, rival_chain, paths, at, lengths, repeated), paths)]

    def _aligner(self) -> Aligner:
        if not hasattr(self._mine, "aligner"):
            self._mine.aligner = Aligner(self.scoring)
        return self._mine.aligner

    def _layout(self, records: Records) -> Layout:
        return layout_for(max(map(len, records.sequences), default=1), len(self.index.codes))

    def _chain(self, records: Records):
        """Chains of all reads and what they stand on."""
        index, layout = self.index, self._layout(records)
        codes, at, lengths = pack_both_ways(records.sequences, ENCODE)
        anchors, repeated = find_anchors(index.lookup, index.k, index.window, codes, at, lengths, layout)
        anchors.sort()
        found = find_chains(anchors, layout, index.k, self._rule, self._costs, index.starts)
        found = self._join_far(*found, layout, lengths)
        chains, chained = self._try_harder(*found, anchors, layout, len(lengths))
        return chains, chained, layout, codes, at, lengths, repeated

    def _join_far(self, chains: Chains, chained: np.ndarray, layout: Layout, lengths: np.ndarray):
        """Chain the chains again, over longer gaps, of reads whose best one leaves much of the read."""
        first = np.flatnonzero(np.diff(chains.read, prepend=-1))
        several = np.diff(first, append=len(chains.read)) > 1
        left = lengths[chains.read[first]] - (chains.q_end[first] - chains.q_start[first])
        again = np.zeros(len(lengths), bool)
        again[chains.read[first[several & (left > LEFT_OVER)]]] = True
        some = chained[np.repeat(again[chains.read], chains.n_anchors)]
        return self._chain_again(chains, chained, some, again, self._far, layout)

    def _try_harder(self, chains: Chains, chained: np.ndarray, anchors: np.ndarray, layout: Layout, n_reads: int):
        """Take shorter chains of reads that have none; their alignments will tell."""
        none = np.ones(n_reads, bool)
        none[chains.read] = False
        some = anchors[none[(anchors >> np.uint64(layout.q_bits + layout.place_bits + 1)).astype(np.int64)]]
        return self._chain_again(chains, chained, some, none, self._short, layout)

    def _chain_again(
        self, chains: Chains, chained: np.ndarray, some: np.ndarray, reads: np.ndarray, rule: ChainRule, layout
    ):
        """The chains with those of some reads replaced by chains of the anchors `some` by another rule."""
        if not len(some):
            return chains, chained
        index = self.index
        new, its_anchors = find_chains(np.sort(some), layout, index.k, rule, self._costs, index.starts)
        stay = ~reads[chains.read]
        both = [np.concatenate([a[stay], b]) for a, b in zip(chains, new, strict=True)]
        both[-1][stay.sum() :] += len(chained)
        order = np.argsort(both[0], kind="stable")
        return Chains(*(column[order] for column in both)), np.concatenate([chained, its_anchors])

    def _cut(self, chains, anchors, kept, layout, at, lengths):
        index = self.index
        return cut_chains(chains, anchors, kept, layout, index.k, at, lengths, index.starts, index.lengths)

    def _choose(self, chains, kept, rival_chain, paths: Paths, at, lengths, repeated) -> Hits:
        chain = kept[paths.source]
        read, strand = chains.read[chain], chains.strand[chain]
        base = at[read] + strand * lengths[read]
        q_start, q_end = _on_read(paths.q_start - base, paths.q_end - base, strand, lengths[read])
        columns = paths.n_matches + paths.n_mismatches + paths.n_gap_bases
        order = np.lexsort((np.arange(len(read)), -paths.score, read))
        taken = [
            column[order]
            for column in (
                read, strand, q_start, q_end, paths.t_start, paths.t_end, paths.score, chains.score[chain],
                rival_chain[chain], chains.n_anchors[chain], paths.n_matches / np.maximum(columns, 1),
            )
        ]  # fmt: skip
        kind, quality, rival = choose(*taken, repeated, self.select, self.scoring.match, True)
        read, strand, q_start, q_end, t_start, t_end, score, chain_score, rival_chain, n_anchors, _ = taken
        row = order
        return self._hits(
            kind, read, strand, quality, q_start, q_end, t_start, t_end, score, rival, chain_score, rival_chain, n_anchors,
            row, paths.n_matches[order], columns[order],
        )  # fmt: skip

    def _chains_as_hits(self, chains, kept, rival_chain, lengths, repeated) -> Hits:
        some = Chains(*(column[kept] for column in chains))
        q_start, q_end = _on_read(some.q_start, some.q_end, some.strand, lengths[some.read])
        score, rivals = some.score, rival_chain[kept]
        kind, quality, rival = choose(
            some.read, some.strand, q_start, q_end, some.t_start, some.t_end, score, score, rivals, some.n_anchors,
            np.ones(len(kept)), repeated, self.select, 1, False,
        )  # fmt: skip
        columns = np.maximum(some.q_end - some.q_start, some.t_end - some.t_start)
        matches = np.minimum(some.n_anchors * self.index.k, columns)
        return self._hits(
            kind, some.read, some.strand, quality, q_start, q_end, some.t_start, some.t_end, score, rival, score, rivals,
            some.n_anchors, np.zeros_like(score), matches, columns,
        )  # fmt: skip

    def _hits(self, kind, read, strand, quality, q_start, q_end, t_start, t_end, *others) -> Hits:
        """Those that are not dropped, with positions on sequences of the reference."""
        sequence = np.searchsorted(self.index.starts, t_start, side="right") - 1
        base = self.index.starts[sequence]
        columns = (read, kind, strand, quality, q_start, q_end, sequence, t_start - base, t_end - base, *others)
        keep = kind != DROPPED
        return Hits(*(column[keep] for column in columns))


def _on_read(start, end, strand, length):
    """Intervals on the read as given, of intervals on the oriented read."""
    return np.where(strand == 1, length - end, start), np.where(strand == 1, length - start, end)


def _halves(records: Records, at: int) -> list[Records]:
    return [Records(*(column and column[part] for column in records)) for part in (slice(None, at), slice(at, None))]


def _first(records: Records, n: int) -> Records:
    return _halves(records, n)[0]


def batches(stream: Iterable[Records]) -> Iterator[Records]:
    """Records in batches of a bounded size, which depends on the records alone."""
    waiting: list[Records] = []
    n_reads = n_bases = 0
    for records in stream:
        kind = records.qualities is None
        if waiting and (waiting[-1].qualities is None) != kind:
            yield _merge(waiting)
            waiting, n_reads, n_bases = [], 0, 0
        waiting.append(records)
        n_reads, n_bases = n_reads + len(records.names), n_bases + sum(map(len, records.sequences))
        if n_bases >= BATCH_BASES or n_reads >= BATCH_READS:
            yield _merge(waiting)
            waiting, n_reads, n_bases = [], 0, 0
    if waiting:
        yield _merge(waiting)


def _merge(parts: list[Records]) -> Records:
    columns = zip(*parts, strict=True)
    return Records(*(None if column[0] is None else [item for part in column for item in part] for column in columns))


def preset_for(errors: float | None) -> str:
    """The preset that fits reads with so many errors."""
    if errors is None:
        return "ont"
    return "hifi" if errors < HIFI_ERRORS else "ont" if errors < ONT_ERRORS else "clr"
