"""The product A·Aᵀ and the seeds of its candidates on a GPU: what candidates.py and seeds.py find, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu import ahead
from bellapy.compute.gpu.desk import Desk, desk
from bellapy.compute.gpu.ops import U64
from bellapy.compute.gpu.pool import FULL, give_to_cpu, is_out_of_memory
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for, scan, total_of
from bellapy.compute.gpu.sort import sort_words
from bellapy.compute.resources import Resources
from bellapy.compute.threads import even_ranges
from bellapy.jobs.overlap.candidates import Between, KeyLayout, layout_of
from bellapy.jobs.overlap.cuda_products import (
    STRONG,
    Group,
    Matrix,
    choose_candidates,
    count_candidates,
    count_pairs,
    expand_pairs,
    gather_rows,
    list_candidates,
)
from bellapy.jobs.overlap.seeds import N_COLUMNS, seeds_from_columns
from bellapy.jobs.overlap.seeds_of_matrix import Found, Multiplied
from bellapy.params import SeedParams
from bellapy.records import KmerMatrix, Seeds
from bellapy.records.kmers import HeldMatrix
from bellapy.records.table import INT32_MAX
from bellapy.report.run_report import Devices

WORD_BITS = 64
LOADING = "bellapy.compute.gpu.sort:load", f"{__name__}:load", f"{__name__}:load_choice"
WIDE = "so many or so long reads do not fit the words of a GPU: the product is made on the CPU"
GROUP_PRODUCTS = 1 << 27
PRODUCT_BYTES = 20
"""Of device memory for each product: two words, a flag, and what the sort counts."""
ENTRY_BYTES = 20
ROOM = 0.6  # share of the free memory that is planned to be used
CHOSEN_BYTES = 512 << 20  # of the rows of candidates that are looked at together


class _Bits(NamedTuple):
    """Bits of the parts of a word but the query's; sorted : the first bit that words are sorted by."""

    position: int
    diagonal: int
    target: int
    sorted: int


def _bits(matrix: KmerMatrix, layout: KeyLayout) -> _Bits:
    longest = int(np.diff(matrix.starts).max(initial=0))
    position = longest.bit_length()
    diagonal = layout.diagonal_bits + layout.diagonal_shift
    return _Bits(position, diagonal, layout.target_bits, position + layout.diagonal_shift)


def try_on_gpu(
    matrix: KmerMatrix, lengths: np.ndarray, params: SeedParams, resources: Resources, multiplied: Multiplied
) -> Found | None:
    """Seeds of all candidates; None, which is told, where they do not fit the GPU's memory or words.

    lengths : (n_reads,) int32.
    """
    found, reason = None, WIDE
    ahead.wait(*LOADING)
    try:
        with desk(resources.devices) as its_desk:
            found = find_on_gpu(its_desk, matrix, lengths, params, resources.threads, multiplied)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        reason = FULL
    if found is None:
        give_to_cpu(resources.devices, reason)
    return found


def load() -> None:
    """Compile, or load, the kernels of products: by two reads with one k-mer, too few for a seed."""
    with desk(Devices()) as its_desk:
        find_on_gpu(its_desk, _small_matrix(), np.full(2, 10, np.int32), SeedParams(min_support=2), 1, Multiplied())


def load_choice() -> None:
    """Compile, or load, the kernels that choose seeds: for one product."""
    columns: list[np.ndarray] = []
    group = Group(*map(np.int64, (0, 20, 0, 4, 5, 2, 10)))
    with desk(Devices()) as its_desk:
        words, room = its_desk.send(np.array([1 << 10], np.uint64)), its_desk.zeros(1, np.uint64)
        lengths, params = its_desk.send(np.full(2, 10, np.int32)), SeedParams(min_support=1)
        _choose(its_desk, words, room, lengths, group, _small_matrix(), params, columns)


def _small_matrix() -> KmerMatrix:
    return KmerMatrix(1, 1, np.array([2, 40], np.uint32), np.array([0, 10, 20]), INT32_MAX, 1)


def find_on_gpu(
    desk: Desk, matrix: KmerMatrix, lengths: np.ndarray, params: SeedParams, n_parts: int, multiplied: Multiplied
) -> Found | None:
    """Seeds of all candidates, in about `n_parts` parts; None where a word does not hold a product.

    matrix : all of whose columns link reads.  lengths : (n_reads,) int32.
    """
    between, layout = multiplied
    n_queries, first_target = between or Between(matrix.n_reads, 0)
    targets_begin = int(matrix.starts[first_target]) if first_target else 0
    entries = matrix.entries.entries if isinstance(matrix, HeldMatrix) else desk.send(matrix.entries)
    there = Matrix(entries, desk.send(matrix.starts), desk.send(matrix.read_table), np.int64(targets_begin))
    counts, of_query = desk.empty(len(matrix.entries), np.uint32), desk.zeros(matrix.n_reads + 1, np.uint64)
    _count(desk, there, (0, int(matrix.starts[n_queries])), counts, of_query)
    products = desk.fetch(of_query)[:n_queries].astype(np.int64)
    layout = layout or layout_of(matrix, int(products.max(initial=1)))
    bits = _bits(matrix, layout)
    query_bits = WORD_BITS - bits.target - 1 - bits.diagonal - bits.position
    if query_bits < 0:
        return None
    of_lengths, found = desk.send(lengths), Found([], int(products.sum()), 0, 0)
    room = int(ROOM * desk.device.gpu.free) - ENTRY_BYTES * len(matrix.entries)
    most = max(1, min(GROUP_PRODUCTS, room // PRODUCT_BYTES))
    columns: list[np.ndarray] = []
    none = desk.empty(0, np.uint64)
    for first, end in _groups(products, most, 1 << query_bits):
        low, high = int(matrix.starts[first]), int(matrix.starts[end])
        group = Group(*map(np.int64, (low, high, first, bits.position, bits.diagonal, bits.target, layout.diagonal_bias)))
        _count(desk, there, (low, high), counts, none)
        begins, _ = scan(desk, counts)
        n = int(products[first:end].sum())
        words, room_for = desk.empty(n, np.uint64), desk.empty(n, np.uint64)
        desk.launch(expand_pairs, blocks_for(counts.size), BLOCK, there, group, begins, words)
        last_bit = bits.position + bits.diagonal + bits.target + 1 + (end - first - 1).bit_length()
        words, room_for = sort_words(desk, words, room_for, n, bits.sorted, last_bit)
        n_candidates, n_weak = _choose(desk, words, room_for, of_lengths, group, matrix, params, columns)
        found = found._replace(n_candidates=found.n_candidates + n_candidates, n_weak=found.n_weak + n_weak)
    whole = np.concatenate([np.zeros((N_COLUMNS, 0), np.int32), *columns], axis=1)
    found.parts.extend(_cut(whole, matrix.seed_length, n_parts))
    return found


def _count(desk: Desk, there: Matrix, places: tuple[int, int], counts: Any, of_query: Any) -> None:
    low, high = map(np.int64, places)
    desk.launch(count_pairs, blocks_for(counts.size), BLOCK, there, low, high, counts, of_query)


def _groups(products: np.ndarray, most: int, most_queries: int) -> Iterator[tuple[int, int]]:
    """First query and end of groups of at most so many products, but of one query, and so many queries."""
    before = np.concatenate(([0], np.cumsum(products)))
    first = 0
    while first < len(products) and before[first] < before[-1]:
        end = int(np.searchsorted(before, before[first] + most, side="right")) - 1
        end = min(max(first + 1, end), first + most_queries, len(products))
        if before[end] > before[first]:
            yield first, end
        first = end


def _choose(
    desk: Desk, words: Any, room: Any, lengths: Any, group: Group, matrix: KmerMatrix, params: SeedParams,
    columns: list[np.ndarray],
) -> tuple[int, int]:  # fmt: skip
    """Append the seeds of sorted products to `columns`; return the number of candidates, and of those without a seed."""
    n_tiles, to_pair = blocks_for(words.size, TILE), U64(group.position_bits + group.diagonal_bits)
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_candidates, n_tiles, BLOCK, words, to_pair, params.min_support, sums)
    total = begins_of_tiles(desk, sums)
    n_candidates, n_strong = total & ((1 << STRONG) - 1), total >> STRONG
    begins, used, chosen = desk.empty(n_strong, np.int64), desk.empty(words.size, np.bool_), 0
    desk.launch(list_candidates, n_tiles, BLOCK, words, to_pair, params.min_support, sums, begins)
    most = params.ranks + 1
    at_once = max(1, CHOSEN_BYTES // (4 * N_COLUMNS * most))
    shape = np.int64(matrix.k), np.int64(matrix.seed_length)
    for at in range(0, n_strong, at_once):
        some = begins[at : min(at + at_once, n_strong)]
        rows, counts = desk.empty((some.size * most, N_COLUMNS), np.int32), desk.empty(some.size, np.uint32)
        blocks = blocks_for(some.size)
        desk.launch(
            choose_candidates, blocks, BLOCK, words, room, used, some, lengths, group, shape, params, rows, counts
        )  # fmt: skip
        of_rows, n_rows = scan(desk, counts)
        packed = desk.empty((N_COLUMNS, total_of(desk, n_rows)), np.int32)
        desk.launch(gather_rows, blocks, BLOCK, rows, counts, of_rows, most, packed)
        columns.append(desk.fetch(packed))
        chosen += int(np.count_nonzero(desk.fetch(counts)))
    return n_candidates, n_candidates - chosen


def _cut(columns: np.ndarray, seed_length: int, n_parts: int) -> list[Seeds]:
    """Seeds in about so many parts, each of whole queries; columns : (N_COLUMNS, n) int32."""
    query = columns[0]
    if not len(query):
        return []
    edges = np.unique([np.searchsorted(query, query[begin]) for begin, _ in even_ranges(len(query), n_parts)])
    return [
        seeds_from_columns(columns[:, begin:end], seed_length)
        for begin, end in zip(edges, [*edges[1:], len(query)], strict=True)
    ]
