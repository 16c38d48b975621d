"""The product A·Aᵀ and the seeds of its candidates on a GPU: what products.py and seeds.py find, in their order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.columns import begins_of_runs
from bellapy.compute.gpu.desk import Desk, desks, on_each, on_free
from bellapy.compute.gpu.ops import U64
from bellapy.compute.gpu.pool import FULL, give_to_cpu, is_out_of_memory
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for, scan, total_of
from bellapy.compute.gpu.sort import sort_both
from bellapy.compute.resources import Resources
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.gpu.products_kernels import (
    STRONG,
    Group,
    Matrix,
    Sorted,
    choose_candidates,
    count_candidates,
    count_pairs,
    count_within,
    expand_pairs,
    gather_rows,
    list_candidates,
    list_within,
)
from bellapy.jobs.overlap.products import Between, KeyLayout, Multiplied, layout_of
from bellapy.jobs.overlap.seeds import N_COLUMNS, Found, seeds_from_columns
from bellapy.params import SeedParams
from bellapy.records import KmerMatrix, Seeds
from bellapy.records.kmers import HeldMatrix

WORD_BITS = 64
WIDE = "so many or so long reads do not fit the words of a GPU: the product is made on the CPU"
GROUP_PRODUCTS = 1 << 27
SHARED_ENTRIES = 1 << 25  # for each GPU: fewer are multiplied before they are on another one
PRODUCT_BYTES = 28
"""Of device memory for each product: its word and position, as much room, a flag, and what the sort counts."""
ENTRY_BYTES, PLANES_BYTES = 20, 3 / 8
"""For each entry: it, its products, and those before it.  For each base: its bit planes."""
LEAST_PRODUCTS = 1 << 22  # groups of fewer would be too many
DESKS, DESK_PRODUCTS = 6, 1 << 26
"""Of a GPU, since a large candidate keeps one thread busy for milliseconds; more than two only with memory for so many
products each."""
ROOM = 0.6  # share of the memory for products that is planned to be used
PARTS, LEAST_PART = 2, 1 << 14
"""Parts of the seeds for each thread, which need not all take as long; seeds of a part, if there are so many."""
MANY_ENTRIES = 1 << 25  # of which there are groups enough to use memory for their results again
CHOSEN_BYTES = 512 << 20  # of the rows of candidates that are looked at together


class _Bits(NamedTuple):
    """Bits of the parts of a word but the query's; sorted : the first bit that words are sorted by."""

    diagonal: int
    target: int
    sorted: int


def _bits(layout: KeyLayout) -> _Bits:
    return _Bits(layout.diagonal_bits + layout.diagonal_shift, layout.target_bits, layout.diagonal_shift)


def try_on_gpu(
    matrix: KmerMatrix, lengths: np.ndarray, params: SeedParams, resources: Resources, multiplied: Multiplied
) -> Found | None:
    """Seeds of all candidates; None, which is told, where they do not fit the GPU's memory or words.

    Several GPUs share large products; if they do not fit these, the first one tries alone.

    lengths : (n_reads,) int32.
    """
    several = 1 + len(matrix.entries) // SHARED_ENTRIES
    for most in sorted({1, several}, reverse=True):
        reason = WIDE
        try:
            with desks(resources.devices, most) as some:
                found = find_on_gpus(some, matrix, lengths, params, resources.threads, multiplied)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            found, reason = None, FULL
        if found or reason == WIDE:
            break
    if found is None:
        give_to_cpu(resources.devices, reason)
    return found


class _Product(NamedTuple):
    """What is multiplied: a KmerMatrix, of reads with these lengths, (n_reads,) int32.

    targets_begin : the place from which on targets lie.  n_queries : the first so many reads are queries.
    """

    matrix: KmerMatrix
    lengths: np.ndarray
    params: SeedParams
    targets_begin: int
    n_queries: int


class _There(NamedTuple):
    """What a GPU holds of it."""

    matrix: Matrix
    lengths: Any


def find_on_gpus(
    its_desks: Sequence[Desk], matrix: KmerMatrix, lengths: np.ndarray, params: SeedParams, n_parts: int,
    multiplied: Multiplied,
) -> Found | None:  # fmt: skip
    """Seeds of all candidates, in some parts for each of `n_parts`; None where a word does not hold a product.

    its_desks : of GPUs that share the queries; the first one holds what a device holds of the matrix.
    matrix : all of whose columns link reads.  lengths : (n_reads,) int32.
    """
    between, layout = multiplied
    n_queries, first_target = between or Between(matrix.n_reads, 0)
    product = _Product(matrix, lengths, params, int(matrix.starts[first_target]) if first_target else 0, n_queries)
    first = its_desks[0]
    entries = matrix.entries.entries if isinstance(matrix, HeldMatrix) else first.send(matrix.entries)
    there, of_query = _bring(first, product, entries), first.zeros(matrix.n_reads + 1, np.uint64)
    counts = first.empty(len(matrix.entries), np.uint32)
    _count(first, there, (0, int(matrix.starts[n_queries])), first.empty(0, np.int64), counts, of_query)
    products = first.fetch(of_query)[:n_queries].astype(np.int64)
    del counts
    layout = layout or layout_of(matrix, int(products.max(initial=1)))
    bits = _bits(layout)
    query_bits = WORD_BITS - bits.target - 1 - bits.diagonal
    if query_bits < 0:
        return None
    total, free = int(products.sum()), min(its.device.gpu.free for its in its_desks)
    room = products_for(free, len(matrix.entries), int(matrix.starts[-1]), total)
    each = max(2, min(DESKS, room // DESK_PRODUCTS))
    most = max(1, min(GROUP_PRODUCTS, room // each, -(-total // len(its_desks))))
    groups = list(_groups(products, most, 1 << query_bits))
    its_desks = its_desks[: max(1, len(groups))]
    its = _bring_to_all(its_desks, product, there, entries)
    sharing = [desk for turn in zip(*(desk.several(each) for desk in its_desks), strict=True) for desk in turn]

    def find(its_desk: Desk, some: list[tuple[int, int]]) -> list[_Chosen]:
        there = its[its_desk.device.gpu.index]
        listed = _list(its_desk, there, int(matrix.starts[some[0][0]]), int(matrix.starts[some[-1][1]]))
        counts = its_desk.empty(listed.size, np.uint32)
        blocks = [Block(*group, bits, layout.diagonal_bias) for group in some]
        return [_multiply(its_desk, there, listed, counts, product, block) for block in blocks]

    together = max(1, math.isqrt(len(groups)) // 2)  # few lists of entries, and short ones
    some = [groups[at : at + together] for at in range(0, len(groups), together)]
    chosen = [one for found in on_free(find, sharing, some) for one in found]
    columns = [x for some in chosen for x in some.columns]
    n_candidates, n_weak = (sum(getattr(some, name) for some in chosen) for name in ("n_candidates", "n_weak"))
    return Found(_cut(columns, matrix.seed_length, PARTS * n_parts), total, n_candidates, n_weak)


def _bring_to_all(its_desks: Sequence[Desk], product: _Product, there: _There, entries: Any) -> dict[int, _There]:
    """What the GPU of each of these desks holds, by its index; there, entries : of the first one."""

    def bring(its_desk: Desk) -> _There:
        its = there if its_desk is its_desks[0] else _bring(its_desk, product, _copied(its_desk, entries))
        its_desk.stream.synchronize()  # what is there is for all desks
        return its

    indices = [its_desk.device.gpu.index for its_desk in its_desks]
    return dict(zip(indices, on_each(bring, its_desks), strict=True))


def products_for(free: int, n_entries: int, n_places: int, total: int) -> int:
    """How many of the products a GPU with so many bytes of free memory may hold, beside the bases and what each entry takes.

    n_entries : of the matrix.  n_places : of the reads.  total : products of all queries.

    Raises
    ------
    MemoryError : so few that there would be too many groups.
    """
    room = int(ROOM * (free - ENTRY_BYTES * n_entries - PLANES_BYTES * n_places)) // PRODUCT_BYTES
    if room < min(LEAST_PRODUCTS, total):
        raise MemoryError("device memory")
    return room


class Block(NamedTuple):
    """Queries that are multiplied together, first one and end, and how words are laid out."""

    first: int
    end: int
    bits: _Bits
    bias: int


class _Chosen(NamedTuple):
    """Seeds, (N_COLUMNS, n) int32 in parts, the number of candidates, and of those without a seed."""

    columns: list[np.ndarray]
    n_candidates: int
    n_weak: int


def _bring(desk: Desk, product: _Product, entries: Any) -> _There:
    matrix = product.matrix
    there = Matrix(entries, desk.send(matrix.starts), desk.send(matrix.read_table), np.int64(product.targets_begin))
    return _There(there, desk.send(product.lengths))


def _copied(desk: Desk, entries: Any) -> Any:
    """The entries that another GPU holds."""
    here = desk.empty(entries.size, entries.dtype)
    desk.copy(entries, here)
    return here


def _list(desk: Desk, there: _There, low: int, high: int) -> Any:
    """The entries with places in [low, high), (n,) int64 on the device: a group looks at these instead of all."""
    entries, places = there.matrix.entries, (np.int64(low), np.int64(high))
    n_tiles = blocks_for(entries.size, TILE)
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_within, n_tiles, BLOCK, entries, *places, sums)
    listed = desk.empty(begins_of_tiles(desk, sums), np.int64)
    desk.launch(list_within, n_tiles, BLOCK, entries, *places, sums, listed)
    return listed


def _multiply(desk: Desk, there: _There, listed: Any, counts: Any, product: _Product, block: Block) -> _Chosen:
    """The seeds of a block of queries.

    listed : of `_list`, their entries and perhaps others.  counts : (n_listed,) uint32, overwritten.
    """
    (first, end, bits, bias), starts = block, product.matrix.starts
    low, high = int(starts[first]), int(starts[end])
    group = Group(*map(np.int64, (low, high, first, bits.diagonal, bits.target, bias)))
    counts = _count(desk, there, (low, high), listed, counts, desk.empty(0, np.uint64))
    begins, sums = scan(desk, counts)
    n = total_of(desk, sums)
    words, positions = ((desk.empty(n, dtype), desk.empty(n, dtype)) for dtype in (np.uint64, np.uint32))
    desk.launch(expand_pairs, blocks_for(counts.size), BLOCK, there.matrix, group, listed, begins, words[0], positions[0])
    last_bit = bits.diagonal + bits.target + 1 + (end - first - 1).bit_length()
    words, positions = sort_both(desk, words, positions, n, bits.sorted, last_bit)
    return _choose(desk, Sorted(words[0], positions[0]), words[1], there.lengths, group, product.matrix, product.params)


def _count(desk: Desk, there: _There, places: tuple[int, int], listed: Any, counts: Any, of_query: Any) -> Any:
    """The products of each entry listed, or of all if none is, to counts, (n,) uint32 on the device."""
    low, high = map(np.int64, places)
    desk.launch(count_pairs, blocks_for(counts.size), BLOCK, there.matrix, low, high, listed, counts, of_query)
    return counts


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
    desk: Desk, products: Sorted, room: Any, lengths: Any, group: Group, matrix: KmerMatrix, params: SeedParams
) -> _Chosen:
    """The seeds of sorted products."""
    words = products.words
    n_tiles, to_pair = blocks_for(words.size, TILE), U64(group.diagonal_bits)
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_candidates, n_tiles, BLOCK, words, to_pair, params.min_support, sums)
    total = begins_of_tiles(desk, sums)
    n_candidates, n_strong = total & ((1 << STRONG) - 1), total >> STRONG
    begins, used, chosen = desk.empty(n_strong, np.int64), desk.empty(words.size, np.bool_), 0
    columns: list[np.ndarray] = []
    desk.launch(list_candidates, n_tiles, BLOCK, words, to_pair, params.min_support, sums, begins)
    most = params.ranks + 1
    at_once = max(1, CHOSEN_BYTES // (4 * N_COLUMNS * most))
    shape = np.int64(matrix.k), np.int64(matrix.seed_length)
    for at in range(0, n_strong, at_once):
        some = begins[at : min(at + at_once, n_strong)]
        rows, counts = desk.empty((some.size * most, N_COLUMNS), np.int32), desk.empty(some.size, np.uint32)
        blocks = blocks_for(some.size)
        desk.launch(
            choose_candidates, blocks, BLOCK, products, room, used, some, lengths, group, shape, params, rows, counts
        )  # fmt: skip
        of_rows, n_rows = scan(desk, counts)
        packed = desk.empty((N_COLUMNS, total_of(desk, n_rows)), np.int32)
        desk.launch(gather_rows, blocks, BLOCK, rows, counts, of_rows, most, packed)
        columns.append(desk.fetch_much(packed) if len(matrix.entries) > MANY_ENTRIES else desk.fetch(packed))
        chosen += int(np.count_nonzero(begins_of_runs(*columns[-1][:3])))
    return _Chosen(columns, n_candidates, n_candidates - chosen)


def _cut(columns: list[np.ndarray], seed_length: int, n_parts: int) -> list[Seeds]:
    """Seeds in at most about so many parts, each of whole queries or ending with what was chosen together.

    columns : (N_COLUMNS, n) int32 each, whole candidates.
    """
    most, parts = max(LEAST_PART, -(-sum(some.shape[1] for some in columns) // n_parts)), list[np.ndarray]()
    for some in columns:
        query = some[0]
        if not len(query):
            continue
        begins = [begin for begin, _ in even_ranges(len(query), -(-len(query) // most))]
        edges = np.unique([np.searchsorted(query, query[begin]) for begin in begins])
        parts += [some[:, begin:end] for begin, end in zip(edges, [*edges[1:], len(query)], strict=True)]
    return map_threads(lambda part: seeds_from_columns(part, seed_length), parts, n_parts)
