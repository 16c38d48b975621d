"""Chains of many reads on a GPU: those that chain.py finds, in its order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.desk import Desk
from bellapy.compute.gpu.ops import WARP, fill_bytes
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for, scan, total_of
from bellapy.compute.gpu.sort import sort_words
from bellapy.seeding.anchors import Layout
from bellapy.seeding.chain import ChainRule, Chains
from bellapy.seeding.gpu.anchors import Sorted
from bellapy.seeding.gpu.chain_kernels import (
    copy_lonely,
    count_ends,
    count_lonely,
    count_segments,
    describe_chains,
    find_reads,
    list_ends,
    list_segments,
    mark_chains,
    score_segments,
    walk_back,
)

WORD_BITS = 64


class Chained(NamedTuple):
    """Chains of some reads, on the host.

    chains : Chains.  anchors : uint64, theirs.  lonely : uint64, those of all reads that have no chain, sorted.
    """

    chains: Chains
    anchors: np.ndarray
    lonely: np.ndarray


def fits(layout: Layout, n_reads: int, n_anchors: int) -> bool:
    """Whether a word has room for a read, a score and an anchor's number."""
    return n_reads.bit_length() + layout.q_bits + n_anchors.bit_length() <= WORD_BITS


def chains_on_gpu(
    desk: Desk, found: Sorted, layout: Layout, k: int, rule: ChainRule, costs: np.ndarray, starts: np.ndarray
) -> Chained:  # fmt: skip
    """The chains of all reads.

    layout : of the anchors.  k : bases of one.  costs : of `penalties`.  starts : (n_sequences,) int64, of the reference's.

    Raises
    ------
    MemoryError, DriverError : the device has no room, or a word has none.
    """
    anchors, n = found.anchors, found.anchors.size
    if not n:
        return Chained(Chains(*np.zeros((9, 0), np.int64)), np.zeros(0, np.uint64), np.zeros(0, np.uint64))
    if not fits(layout, found.n_reads, n):
        raise MemoryError("a word does not hold a read, a score and an anchor")
    scores, before = _scored(desk, anchors, layout, k, rule, desk.send(costs), desk.send(starts))
    shift = layout.q_bits + layout.place_bits + 1
    anchor_begins = desk.empty(found.n_reads + 1, np.int64)
    desk.launch(find_reads, blocks_for(found.n_reads + 1), BLOCK, anchors, shift, anchor_begins)
    ends = _ends(desk, anchors, scores, layout, rule.min_score, found.n_reads)
    rows, members = _walked(desk, ends, anchor_begins, layout, scores, before, rule, found.n_reads)
    del scores, before
    columns, chained = _described(desk, anchors, layout, k, rows, members)
    lonely = _lonely(desk, anchors, anchor_begins, columns[:1].reshape(-1), found.n_reads)
    return Chained(Chains(*desk.fetch_much(columns)), desk.fetch_much(chained), lonely)


def _scored(
    desk: Desk, anchors: Any, layout: Layout, k: int, rule: ChainRule, costs: Any, starts: Any
) -> tuple[Any, Any]:  # fmt: skip
    """As `score_anchors`, on the device."""
    n_tiles = blocks_for(anchors.size, TILE)
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_segments, n_tiles, BLOCK, anchors, layout, rule.max_gap, starts, sums)
    n_segments = begins_of_tiles(desk, sums)
    begins = desk.empty(n_segments + 1, np.int64)
    desk.launch(list_segments, n_tiles, BLOCK, anchors, layout, rule.max_gap, starts, sums, begins)
    scores, before, tried_by = (desk.empty(anchors.size, np.int32) for _ in range(3))
    fill_bytes(tried_by, 0xFF, desk.stream)
    desk.launch(score_segments, n_segments, WARP, anchors, begins, layout, k, rule, costs, scores, before, tried_by)
    return scores, before


def _ends(desk: Desk, anchors: Any, scores: Any, layout: Layout, min_score: int, n_reads: int) -> Any:
    """The words of `list_ends`, by read, then falling score, then position."""
    n_tiles, number_bits = blocks_for(anchors.size, TILE), anchors.size.bit_length()
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_ends, n_tiles, BLOCK, scores, min_score, sums)
    n = begins_of_tiles(desk, sums)
    ends = desk.empty(n, np.uint64)
    desk.launch(list_ends, n_tiles, BLOCK, anchors, scores, min_score, layout, number_bits, sums, ends)
    top = number_bits + layout.q_bits + n_reads.bit_length()
    return sort_words(desk, ends, desk.empty(n, np.uint64), n, number_bits, top)[0]


def _walked(
    desk: Desk, ends: Any, anchor_begins: Any, layout: Layout, scores: Any, before: Any, rule: ChainRule, n_reads: int
) -> tuple[Any, Any]:  # fmt: skip
    """Rows and members, as `walk_back` of the kernels fills them."""
    number_bits = scores.size.bit_length()
    begins = desk.empty(n_reads + 1, np.int64)
    desk.launch(find_reads, blocks_for(n_reads + 1), BLOCK, ends, number_bits + layout.q_bits, begins)
    used, members = desk.zeros(scores.size, np.bool_), desk.empty(scores.size, np.int32)
    rows = desk.empty((3, ends.size), np.int32)
    desk.launch(
        walk_back, blocks_for(n_reads), BLOCK, ends, begins, anchor_begins, number_bits, scores, before, used, rule, members,
        rows,
    )  # fmt: skip
    return rows, members


def _described(desk: Desk, anchors: Any, layout: Layout, k: int, rows: Any, members: Any) -> tuple[Any, Any]:
    """The columns of Chains, (9, n) int64, and their anchors, uint64; on the device."""
    n_ends = rows.shape[1]
    is_chain = desk.empty(n_ends, np.uint32)
    desk.launch(mark_chains, blocks_for(n_ends), BLOCK, rows, is_chain)
    numbers, n_chains = scan(desk, is_chain)
    firsts, n_chained = scan(desk, rows[:1].reshape(-1))
    columns = desk.empty((9, total_of(desk, n_chains)), np.int64)
    chained = desk.empty(total_of(desk, n_chained), np.uint64)
    desk.launch(describe_chains, n_ends, WARP, anchors, layout, k, rows, members, numbers, firsts, columns, chained)
    return columns, chained


def _lonely(desk: Desk, anchors: Any, anchor_begins: Any, chain_reads: Any, n_reads: int) -> np.ndarray:
    """The anchors of all reads that have no chain.  chain_reads : (n_chains,) int64."""
    sizes = desk.empty(n_reads, np.uint32)
    desk.launch(count_lonely, blocks_for(n_reads), BLOCK, chain_reads, anchor_begins, sizes)
    begins, sums = scan(desk, sizes)
    lonely = desk.empty(total_of(desk, sums), np.uint64)
    desk.launch(copy_lonely, n_reads, WARP, anchors, anchor_begins, sizes, begins, lonely)
    return desk.fetch_much(lonely)
