"""Stage 4: A -> the non-zeros of A·Aᵀ with the places of the shared k-mers, by blocks of queries.

The semiring's multiply makes (query, target, relative strand, query position, target position) of two entries of one
column.  Its add collects all that one query, target and strand share.  A symbolic pass counts the products of every query
first.  Queries are cut into blocks whose products fit the cache.  A product is a key that sorts by query, target and strand

    [ query within its block | target | opposite strand | diagonal | number of the product within its block ]

and a payload, its two positions.  The payload stays where it was written, and the number finds it.  The diagonal is target
position less query position, or their sum on opposite strands.  The key holds as many of its high bits as there is room for.
So products of a pair come nearly sorted by diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, prefetch
from bellapy.compute.memory import UNLIMITED, Budget
from bellapy.compute.sorting import DIGITS, sort_by_digits
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.errors import InputError
from bellapy.records import KmerMatrix
from bellapy.seeding.entries import is_first, place_of, reverse_of
from bellapy.seeding.kmer_matrix import next_column, read_at, unsigned_read_at

U = np.uint64
U0, U1, U2, U32 = (U(x) for x in (0, 1, 2, 32))

BLOCK_PRODUCTS = 1 << 16  # 1 MB
BLOCK_QUERIES = 1 << 10
GROUP_PRODUCTS = 1 << 22  # 64 MB; more where there would be more groups than MOST_GROUPS
MOST_GROUPS = 16  # every group goes through all entries once more
PRODUCT_BYTES = 16
SCRATCH = 1 << 12
STREAM_AHEAD = U(16)  # products of a block that are asked for before they are written


class KeyLayout(NamedTuple):
    """Bits of the parts of a product's key, and how a diagonal becomes its part: (diagonal + bias) >> shift."""

    number_bits: int
    diagonal_bits: int
    target_bits: int
    diagonal_bias: int
    diagonal_shift: int


def make_key_layout(block_products: int, n_reads: int, longest_read: int) -> KeyLayout:
    """Room for blocks of up to `block_products` products and BLOCK_QUERIES queries, the rest for the diagonal.

    Raises
    ------
    InputError : a read shares more k-mers with others than 64 bits can number.
    """
    number_bits, target_bits = max(1, (block_products - 1).bit_length()), max(1, n_reads.bit_length())
    room = 63 - number_bits - target_bits - BLOCK_QUERIES.bit_length()
    if room < 0:
        raise InputError(
            "the reads", f"one of them shares {block_products:,} k-mers with the others, which is too many to number; "
            "give a smaller --upper or a longer -k, or fewer reads",
        )  # fmt: skip
    wanted = (2 * longest_read).bit_length()
    diagonal_bits = min(wanted, room)
    return KeyLayout(number_bits, diagonal_bits, target_bits, longest_read, wanted - diagonal_bits)


class Products(NamedTuple):
    """The products of consecutive queries, in blocks.

    keys : (n,) uint64, sorted inside every block.
    payload : (n,) uint64, query position << 32 | target position, block by block in unsorted order.
    bounds : (n_blocks + 1,) int64, where the blocks begin in both.
    first_query : (n_blocks,) int64.
    layout : KeyLayout.
    """

    keys: np.ndarray
    payload: np.ndarray
    bounds: np.ndarray
    first_query: np.ndarray
    layout: KeyLayout


class Between(NamedTuple):
    """Which reads are multiplied with which.  n_queries : the first so many reads are queries.

    first_target : reads from this one on are targets, of the queries before them.
    """

    n_queries: int
    first_target: int


class Multiplied(NamedTuple):
    """Which reads are multiplied, and the layout of the products' keys; None: all with each other, and their own."""

    between: Between | None = None
    layout: KeyLayout | None = None


class Columns(NamedTuple):
    """What compiled code needs of a KmerMatrix: entries, starts, read_table and upper; and of Between, as places.

    queries_end : the queries lie before it.  targets_begin : the targets lie from there on.
    """

    entries: np.ndarray
    starts: np.ndarray
    table: np.ndarray
    upper: int
    queries_end: int
    targets_begin: int


class Blocks(NamedTuple):
    """Consecutive blocks of queries, the first of them number 0.

    block : (n_reads,) int64, of each query.  first_query : (n_blocks,) int64.
    origin : (n_blocks,) int64, first slot of each block.  layout : KeyLayout.
    """

    block: np.ndarray
    first_query: np.ndarray
    origin: np.ndarray
    layout: KeyLayout


@njit_inner
def _find_entries(entries, begin, end, low, width, found):
    """Write the indices of the entries with low <= entry < low + width in [begin, end) to `found`; return their number.

    entries : of a KmerMatrix.  low, width : uint64.  found : (end - begin + 1,) uint64.
    """
    n = U0
    for i in range(U(begin), U(end)):  # without a branch: there are few, and no telling where
        found[n] = i
        n += U(U(entries[i]) - low < width)
    return n


@njit_inner
def _end_of_partners(entries, i, upper):
    """End of the column of entry i of `entries`, or i + 1 if that has more than `upper` of them."""
    first = i
    while i - first < upper and not is_first(entries[first]):
        first -= 1
    last = i + 1
    while last < entries.size and last - first <= upper and not is_first(entries[last]):
        last += 1
    return last if last - first <= upper else i + 1


@njit
def count_products(columns, begin, end, work):
    """Add the number of products of each query over the columns that begin in [begin, end) to work, (n_reads,) int64.

    columns : Columns; begin and end count entries.
    """
    entries, starts, table, upper, queries_end, targets_begin = columns
    first = next_column(entries, begin)
    while first < end:
        last = next_column(entries, first + 1)
        if 1 < last - first <= upper:
            next_read, query, targets = last, np.int64(-1), last
            for i in range(last - 1, first - 1, -1):  # entries after the last one of the same read
                place = place_of(entries[i])
                read = read_at(place, starts, table)
                if read != query:
                    next_read, query = i + 1, read
                if place >= targets_begin:
                    targets = i
                if place < queries_end:
                    work[query] += last - max(next_read, targets)
        first = last


@njit
def expand_products(columns, begin, end, queries, blocks, at, keys, payload):
    """Write the products of the queries in [queries[0], queries[1]) over the columns that begin in [begin, end).

    columns : Columns; begin and end count entries.  blocks : Blocks of these queries.
    at : (n_blocks,) int64, next free slot of each block; advanced.
    keys, payload : uint64, as in Products; filled.
    """
    entries, starts, table, upper, _, targets_begin = columns
    block, first_query, origin, layout = blocks
    low, width = U(starts[queries[0]]) << U2, U(starts[queries[1]] - starts[queries[0]]) << U2
    diagonal_shift, lost_bits, bias = U(layout.number_bits), U(layout.diagonal_shift), U(layout.diagonal_bias)
    strand_shift = U(layout.number_bits + layout.diagonal_bits)
    target_shift, query_shift = strand_shift + U1, strand_shift + U(1 + layout.target_bits)
    found = np.empty(SCRATCH + 1, np.uint64)
    end, last = next_column(entries, end), np.int64(0)
    for piece in range(next_column(entries, begin), end, SCRATCH):
        for x in range(_find_entries(entries, piece, min(end, piece + SCRATCH), low, width, found)):
            i = np.int64(found[x])
            if i >= last:
                last = _end_of_partners(entries, i, upper)
            if i + 1 == last:
                continue
            place, reverse = place_of(entries[i]), reverse_of(entries[i])
            query = unsigned_read_at(place, starts, table)
            query_pos, least = U(place - starts[query]), max(starts[query + U1], targets_begin)
            b = U(block[query])
            slot, its_origin = U(at[b]), U(origin[b])
            prefetch(keys, slot + STREAM_AHEAD)
            prefetch(payload, slot + STREAM_AHEAD)
            high = (query - U(first_query[b])) << query_shift
            for j in range(U(i + 1), U(last)):
                place = place_of(entries[j])
                if place < least:  # nor does a k-mer twice in one read make one with itself
                    continue
                target = unsigned_read_at(place, starts, table)
                target_pos = U(place - starts[target])
                opposite = reverse ^ reverse_of(entries[j])
                diagonal = target_pos + (query_pos if opposite else bias - query_pos)
                keys[slot] = (
                    high
                    | (target << target_shift)
                    | (opposite << strand_shift)
                    | ((diagonal >> lost_bits) << diagonal_shift)
                    | (slot - its_origin)
                )
                payload[slot] = (query_pos << U32) | target_pos
                slot += U1
            at[b] = slot


@njit
def sort_blocks(keys, bounds, begin, end, layout):
    """Sort the keys of blocks [begin, end), in each of which they stand by the number of their product.

    keys, bounds : as in Products, the keys not yet sorted.  layout : KeyLayout.
    """
    largest = 0
    for b in range(begin, end):
        largest = max(largest, bounds[b + 1] - bounds[b])
    spare, heads = np.empty(largest, np.uint64), np.empty(DIGITS + U1, np.int64)
    for b in range(begin, end):
        sort_by_digits(keys[bounds[b] : bounds[b + 1]], layout.number_bits, spare, heads)


def _columns(matrix: KmerMatrix, between: Between | None) -> Columns:
    n_queries, first_target = between or Between(matrix.n_reads, 0)
    places = int(matrix.starts[n_queries]), int(matrix.starts[first_target]) if first_target else 0
    return Columns(matrix.entries, matrix.starts, matrix.read_table, matrix.upper, *places)


def symbolic_product(matrix: KmerMatrix, threads: int = 1, between: Between | None = None) -> np.ndarray:
    """Number of products of each query: the work of A·Aᵀ, known before it is done.

    Parameters
    ----------
    between : which reads are multiplied; None: each with all that come later.

    Returns
    -------
    (n, n_reads) int64, n at most `threads`: row i counts the columns that begin in the i-th of n even ranges of the entries.
    """
    ranges, columns = even_ranges(len(matrix.entries), threads), _columns(matrix, between)

    def count(piece: tuple[int, int]) -> np.ndarray:
        work = np.zeros(matrix.n_reads, np.int64)
        count_products(columns, *piece, work)
        return work

    return np.array(map_threads(count, ranges, threads), np.int64).reshape(len(ranges), matrix.n_reads)


@njit
def cut_blocks(work, block_products, block_queries, block, first_query):
    """Number of blocks; block[q] is the block of query q, first_query[b] the first query of block b.

    work : (n_reads,) int64, products of each query.  block_products, block_queries : of a block, at most.
    """
    n_blocks = size = 0
    for q in range(work.size):
        if n_blocks == 0 or size + work[q] > block_products or q - first_query[n_blocks - 1] >= block_queries:
            first_query[n_blocks] = q
            n_blocks += 1
            size = 0
        size += work[q]
        block[q] = n_blocks - 1
    return n_blocks


def layout_of(matrix: KmerMatrix, most_products: int, block_products: int = BLOCK_PRODUCTS) -> KeyLayout:
    """The layout of keys for a matrix of which a query has up to `most_products`.

    It says how finely diagonals are told apart, and with that which k-mers of a candidate with very many are looked at.  So
    parts of a matrix have to take the layout of the whole.
    """
    return make_key_layout(max(block_products, most_products), matrix.n_reads, int(np.diff(matrix.starts).max(initial=0)))


def multiply(
    matrix: KmerMatrix,
    work: np.ndarray,
    *,
    between: Between | None = None,
    layout: KeyLayout | None = None,
    threads: int = 1,
    block_products: int = BLOCK_PRODUCTS,
    group_products: int | None = None,
    budget: Budget = UNLIMITED,
    result_bytes: int = 0,
) -> Iterator[Products]:
    """Products of A·Aᵀ with query < target, for groups of consecutive blocks of queries.

    The arrays of one group are overwritten by the next.

    Parameters
    ----------
    work : as `symbolic_product` gives it, for any number of threads.
    between : as there.
    layout : of the whole, where the matrix is a part; None: its own.
    block_products : products of a block, more only where a single query has more.
    group_products : products held in memory at a time, more only where a single block has more.  Unless given it is
        GROUP_PRODUCTS, or what MOST_GROUPS groups need.
    budget : may make groups smaller.
    result_bytes : what the caller may make of each product of a group before it lets go of the group.

    Raises
    ------
    MemoryLimitError : `budget` has no room for the largest block.
    """
    n_queries = between.n_queries if between else matrix.n_reads
    of_query, columns = work.sum(axis=0)[:n_queries], _columns(matrix, between)
    block, first_query = np.empty(n_queries, np.int64), np.empty(n_queries + 1, np.int64)
    n_blocks = cut_blocks(of_query, block_products, BLOCK_QUERIES, block, first_query)
    first_query = np.append(first_query[:n_blocks], n_queries)
    before = np.concatenate(([0], np.cumsum(of_query)))[first_query]
    sizes = np.diff(before)
    layout = layout or layout_of(matrix, int(of_query.max(initial=1)), block_products)
    group_products = group_products or max(GROUP_PRODUCTS, -(-int(of_query.sum()) // MOST_GROUPS))
    b, size, room = 0, PRODUCT_BYTES + result_bytes, np.empty((2, 0), np.uint64)
    while b < n_blocks:
        n = budget.items("the product A·Aᵀ", size, least=int(sizes[b]), most=group_products, reused=room.nbytes)
        e = max(b + 1, int(np.searchsorted(before, before[b] + n, side="right")) - 1)
        n = int(before[e] - before[b])
        if n > room.shape[1]:
            del room  # before the new one comes
            room = np.empty((2, n), np.uint64)
        if n:
            yield _expand_group(columns, layout, block - b, first_query[b : e + 1], work, room[:, :n], threads)
        b = e


def _expand_group(
    columns: Columns, layout: KeyLayout, block: np.ndarray, first_query: np.ndarray, work: np.ndarray, room: np.ndarray,
    threads: int,
) -> Products:  # fmt: skip
    """The products of some blocks, the first of them number 0; the last of `first_query` is where they end.

    A thread takes the columns of one range, and writes to places in every block that come after those of the ranges before.
    """
    queries, begins = (int(first_query[0]), int(first_query[-1])), first_query[:-1]
    by_range = np.add.reduceat(work[:, queries[0] : queries[1]], begins - queries[0], axis=1)
    bounds = np.concatenate(([0], np.cumsum(by_range.sum(axis=0))))
    at = bounds[:-1] + np.cumsum(by_range, axis=0) - by_range
    blocks = Blocks(block, begins, bounds[:-1], layout)
    keys, payload = room

    def expand(task):
        piece, its_at = task
        expand_products(columns, *piece, queries, blocks, its_at, keys, payload)

    map_threads(expand, zip(even_ranges(len(columns.entries), len(work)), at, strict=True), threads)
    map_threads(lambda part: sort_blocks(keys, bounds, *part, layout), even_ranges(len(begins), 4 * threads), threads)
    return Products(keys, payload, bounds, begins, layout)
