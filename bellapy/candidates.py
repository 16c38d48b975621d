"""Stage 4: A -> the non-zeros of A·Aᵀ with the places of the shared k-mers, by blocks of queries.

The semiring's multiply makes (query, target, relative strand, query position, target position) of two entries of one
column; its add collects all that one query, target and strand share.  A symbolic pass counts the products of every query
first.  Queries are cut into blocks whose products fit the cache; a product is a key that sorts by query, target and strand

    [ query within its block | target | opposite strand | diagonal | number of the product within its block ]

and a payload, its two positions, which stays where it was written and is found by the number.  Of the diagonal (target
position less query position, or their sum on opposite strands) as many high bits are taken as there is room for: products of
a pair then come nearly sorted by diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.jit import njit
from bellapy.parallel import even_ranges, map_threads
from bellapy.records import KmerMatrix

U = np.uint64
U1, U32 = U(1), U(32)

BLOCK_PRODUCTS = 1 << 16  # 1 MB
BLOCK_QUERIES = 1 << 10
GROUP_PRODUCTS = 1 << 23  # 128 MB


class KeyLayout(NamedTuple):
    """Bits of the parts of a product's key, and how a diagonal becomes its part: (diagonal + bias) >> shift."""

    number_bits: int
    diagonal_bits: int
    target_bits: int
    diagonal_bias: int
    diagonal_shift: int


def make_key_layout(block_products: int, n_reads: int, longest_read: int) -> KeyLayout:
    """Room for blocks of up to `block_products` products and BLOCK_QUERIES queries, the rest for the diagonal."""
    number_bits, target_bits = max(1, block_products.bit_length()), max(1, n_reads.bit_length())
    wanted = (2 * longest_read).bit_length()
    diagonal_bits = max(0, min(wanted, 63 - number_bits - target_bits - BLOCK_QUERIES.bit_length()))
    return KeyLayout(number_bits, diagonal_bits, target_bits, longest_read, wanted - diagonal_bits)


@dataclass(frozen=True)
class Products:
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


@njit
def count_products(indptr, read_id, upper, begin, end, work):
    """Add the number of products of each query over the columns [begin, end) to work, (n_reads,) int64."""
    for column in range(begin, end):
        first, last = indptr[column], indptr[column + 1]
        if last - first > upper:
            continue
        next_read = last
        for i in range(last - 1, first - 1, -1):  # entries after the last one of the same read
            if i + 1 < last and read_id[i + 1] != read_id[i]:
                next_read = i + 1
            work[read_id[i]] += last - next_read


@njit
def expand_products(
    indptr, read_id, position, strand, upper, begin, end, queries, block, first_query, layout, at, origin, keys, payload
):
    """Write the products of the queries in [queries[0], queries[1]) over the columns [begin, end) to their blocks.

    at : (n_blocks,) int64, next free slot of each block; advanced.
    origin : (n_blocks,) int64, first slot of each block.
    """
    diagonal_shift = U(layout.number_bits)
    strand_shift = U(layout.number_bits + layout.diagonal_bits)
    target_shift, query_shift = strand_shift + U1, strand_shift + U(1 + layout.target_bits)
    for column in range(begin, end):
        first, last = indptr[column], indptr[column + 1]
        if last - first > upper:
            continue
        for i in range(first, last - 1):
            query = read_id[i]
            if query < queries[0] or query >= queries[1]:
                continue
            b = block[query]
            slot = at[b]
            high = U(query - first_query[b]) << query_shift
            query_pos = U(position[i]) << U32
            for j in range(i + 1, last):
                if read_id[j] != query:  # a k-mer twice in one read makes no product with itself
                    opposite = strand[i] != strand[j]
                    diagonal = np.int64(position[j]) + (position[i] if opposite else layout.diagonal_bias - position[i])
                    keys[slot] = (
                        high
                        | (U(read_id[j]) << target_shift)
                        | (U(opposite) << strand_shift)
                        | ((U(diagonal) >> U(layout.diagonal_shift)) << diagonal_shift)
                        | U(slot - origin[b])
                    )
                    payload[slot] = query_pos | U(position[j])
                    slot += 1
            at[b] = slot


def symbolic_product(matrix: KmerMatrix, threads: int = 1) -> np.ndarray:
    """Number of products of each query, (n_reads,) int64: the work of A·Aᵀ, known before it is done."""

    def count(piece):
        work = np.zeros(matrix.n_reads, np.int64)
        count_products(matrix.indptr, matrix.read_id, matrix.upper, *piece, work)
        return work

    parts = map_threads(count, even_ranges(matrix.n_kmers, threads), threads)
    return np.sum(parts, axis=0, dtype=np.int64) if parts else np.zeros(matrix.n_reads, np.int64)


@njit
def cut_blocks(work, block_products, block_queries, block, first_query):
    """Number of blocks; block[q] is the block of query q, first_query[b] the first query of block b."""
    n_blocks = size = 0
    for q in range(work.size):
        if n_blocks == 0 or size + work[q] > block_products or q - first_query[n_blocks - 1] >= block_queries:
            first_query[n_blocks] = q
            n_blocks += 1
            size = 0
        size += work[q]
        block[q] = n_blocks - 1
    return n_blocks


def multiply(
    matrix: KmerMatrix,
    work: np.ndarray,
    *,
    threads: int = 1,
    block_products: int = BLOCK_PRODUCTS,
    group_products: int = GROUP_PRODUCTS,
) -> Iterator[Products]:
    """Products of A·Aᵀ with query < target, for groups of consecutive blocks of queries.

    The arrays of one group are overwritten by the next.

    Parameters
    ----------
    work : as `symbolic_product` gives it.
    block_products : products of a block, more only where a single query has more.
    group_products : products held in memory at a time, more only where a single block has more.
    """
    block, first_query = np.empty(len(work), np.int64), np.empty(len(work) + 1, np.int64)
    n_blocks = cut_blocks(work, block_products, BLOCK_QUERIES, block, first_query)
    first_query = np.append(first_query[:n_blocks], len(work))
    before = np.concatenate(([0], np.cumsum(work)))
    sizes = np.diff(before[first_query])
    layout = make_key_layout(int(sizes.max(initial=1)), matrix.n_reads, int(matrix.position.max(initial=0)) + 1)
    groups = list(_groups(sizes, group_products))
    room = np.empty((2, max((int(sizes[b:e].sum()) for b, e in groups), default=0)), np.uint64)
    for b, e in groups:
        yield _expand_group(matrix, layout, block, first_query, sizes, b, e, room, threads)


def _groups(sizes: np.ndarray, group_products: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of blocks that hold at most `group_products` products each (or one block); none are empty."""
    b = 0
    while b < len(sizes):
        e = b + max(1, int(np.searchsorted(np.cumsum(sizes[b:]), group_products, side="right")))
        if sizes[b:e].any():
            yield b, min(e, len(sizes))
        b = e


def _expand_group(matrix, layout, block, first_query, sizes, b, e, room, threads) -> Products:
    """The products of blocks [b, e)."""
    queries = (int(first_query[b]), int(first_query[e]))
    bounds = np.concatenate(([0], np.cumsum(sizes[b:e])))
    keys, payload = room[:, : int(bounds[-1])]
    ranges = even_ranges(matrix.n_kmers, threads)
    columns = (matrix.indptr, matrix.read_id)

    def count(piece):
        work = np.zeros(matrix.n_reads, np.int64)
        count_products(*columns, matrix.upper, *piece, work)
        return np.bincount(block[queries[0] : queries[1]] - b, work[queries[0] : queries[1]], e - b).astype(np.int64)

    if len(ranges) > 1:
        shares = np.array(map_threads(count, ranges, threads))
        starts = bounds[:-1] + np.concatenate((np.zeros_like(shares[:1]), np.cumsum(shares, axis=0)))[:-1]
    else:
        starts = bounds[:-1][None, :].copy()

    def expand(task):
        piece, at = task
        expand_products(
            *columns, matrix.position, matrix.strand, matrix.upper, *piece, queries, block - b, first_query[b:e], layout,
            at, bounds[:-1], keys, payload,
        )  # fmt: skip

    map_threads(expand, zip(ranges, starts, strict=True), threads)
    map_threads(lambda i: keys[bounds[i] : bounds[i + 1]].sort(), range(e - b), threads)
    return Products(keys, payload, bounds, first_query[b:e], layout)
