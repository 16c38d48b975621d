"""Stage 3: A -> the non-zeros of A·Aᵀ with the places of the shared k-mers, by blocks of queries.

The semiring's multiply makes (query, target, relative strand, query position, target position) of two entries of one
column; its add collects all that one query, target and strand share.  A symbolic pass counts the products of every query
first.  Queries are cut into blocks whose products fit the cache; a product is a key that sorts by query, target and strand

    [ query within its block | target | opposite strand | number of the product within its block ]

and a payload, its two positions, which stays where it was written and is found by the number.
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
GROUP_PRODUCTS = 1 << 24  # 256 MB


class KeyLayout(NamedTuple):
    """Where the parts of a product's key begin, in bits."""

    number_bits: int
    target_bits: int

    @property
    def pair_shift(self) -> int:
        """Everything above: one value for each query, target and strand."""
        return self.number_bits


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
def expand_products(indptr, read_id, position, strand, upper, begin, end, queries, block, first_query, layout, at, origin, keys, payload):
    """Write the products of the queries in [queries[0], queries[1]) over the columns [begin, end) to their blocks.

    at : (n_blocks,) int64, next free slot of each block; advanced.
    origin : (n_blocks,) int64, first slot of each block.
    """
    target_shift = U(layout.number_bits + 1)
    query_shift = U(layout.number_bits + 1 + layout.target_bits)
    strand_shift = U(layout.number_bits)
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
                    opposite = U(strand[i] != strand[j])
                    keys[slot] = high | (U(read_id[j]) << target_shift) | (opposite << strand_shift) | U(slot - origin[b])
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
    layout = KeyLayout(max(1, int(sizes.max(initial=1)).bit_length()), max(1, matrix.n_reads.bit_length()))
    b = 0
    while b < n_blocks:
        e = b + max(1, int(np.searchsorted(np.cumsum(sizes[b:]), group_products, side="right")))
        if sizes[b:e].any():
            yield _expand_group(matrix, layout, block, first_query, sizes, b, min(e, n_blocks), threads)
        b = e


def _expand_group(matrix, layout, block, first_query, sizes, b, e, threads) -> Products:
    """The products of blocks [b, e)."""
    queries = (int(first_query[b]), int(first_query[e]))
    bounds = np.concatenate(([0], np.cumsum(sizes[b:e])))
    keys, payload = np.empty((2, int(bounds[-1])), np.uint64)
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
