"""The index of a reference on a GPU: made there, or sent there; the same words and buckets as index.py makes.

Minimizers are listed in the order of places, and sorted by hash: as many bits of it at a time as a word holds beside the
number of a minimizer, the lowest first.  The sort keeps the order of equal ones, so that places ascend.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.desk import Desk
from bellapy.compute.gpu.ops import U64
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for
from bellapy.compute.gpu.sort import sort_words
from bellapy.records import ReadSet
from bellapy.seeding.gpu.index_kernels import (
    count_copies,
    count_runs,
    gather_hashes,
    list_runs,
    write_digits,
    write_words,
)
from bellapy.seeding.gpu.minimizers import Minimizers, find_on_gpu, send_planes
from bellapy.seeding.index import (
    MOST_COUNTED,
    Index,
    Lookup,
    buckets_for,
    check_kmers,
    cutoff_for,
    index_of,
    most_buckets,
    word_bits,
)

WORD_BITS = 64


class OnDevice(NamedTuple):
    """An index on a device.  planes : of its codes (`send_planes`).  lookup : Lookup with arrays of the device."""

    planes: Any
    lookup: Lookup


def build_on_gpu(desk: Desk, reference: ReadSet, k: int, window: int, threads: int) -> tuple[Index, OnDevice]:
    """As `build_index`; and what stays on the device.

    Raises
    ------
    ParameterError : as `build_index`.  MemoryError, DriverError : the device has no room.
    """
    check_kmers(k, window)
    codes = reference.codes
    planes = send_planes(desk, codes, threads)
    found = find_on_gpu(desk, planes, k, window, np.zeros(1, np.int64), np.array([len(codes)]))
    n = found.hashes.size
    n_buckets = buckets_for(n, most_buckets(k, window, len(codes)))
    place_bits, rest_bits = word_bits(k, len(codes), n_buckets)
    starts = desk.zeros(n_buckets + 1, np.uint32 if n < 1 << 32 else np.uint64)
    words, copies = _words_of(desk, found, 2 * k, place_bits, rest_bits, starts)
    there = Lookup(words, starts, place_bits, rest_bits, cutoff_for(copies))
    index = index_of(reference, k, window, there._replace(words=desk.fetch_much(words), starts=desk.fetch_much(starts)))
    return index, OnDevice(planes, there)


def send_index(desk: Desk, index: Index, threads: int) -> OnDevice:
    """An index, to the device; it is there, for other desks too.

    Raises
    ------
    MemoryError, DriverError : it has no room.
    """
    lookup = index.lookup
    there = lookup._replace(words=desk.send(lookup.words), starts=desk.send(lookup.starts))
    sent = OnDevice(send_planes(desk, index.codes, threads), there)
    desk.stream.synchronize()
    return sent


def _words_of(
    desk: Desk, found: Minimizers, hash_bits: int, place_bits: int, rest_bits: int, starts: Any
) -> tuple[Any, np.ndarray]:  # fmt: skip
    """The words of an index, and how many minimizers have how many copies; starts : filled."""
    n = found.hashes.size
    blocks, number_bits = blocks_for(n), n.bit_length()
    number_mask = U64((1 << number_bits) - 1)
    order, ordered = _sorted_by_hash(desk, found.hashes, hash_bits, number_bits)
    desk.launch(gather_hashes, blocks, BLOCK, found.hashes, order, number_mask, ordered)
    words = desk.empty(n, np.uint64)
    desk.launch(
        write_words, blocks, BLOCK, ordered, found.marks, order, number_mask, U64(place_bits), U64(rest_bits), starts, words
    )
    return words, _copies(desk, ordered)


def _sorted_by_hash(desk: Desk, hashes: Any, hash_bits: int, number_bits: int) -> tuple[Any, Any]:
    """Words whose lowest bits are the numbers of minimizers in the order of their hashes, and another array of the size."""
    n, at_once = hashes.size, WORD_BITS - number_bits
    words, room = desk.empty(n, np.uint64), desk.empty(n, np.uint64)
    for shift in range(0, hash_bits, at_once):
        size = min(at_once, hash_bits - shift)
        desk.launch(
            write_digits, blocks_for(n), BLOCK, hashes, words, U64((1 << number_bits) - 1), U64(shift), U64((1 << size) - 1),
            U64(number_bits), not shift, room,
        )  # fmt: skip
        words, room = sort_words(desk, room, words, n, number_bits, number_bits + size)
    return words, room


def _copies(desk: Desk, ordered: Any) -> np.ndarray:
    """As that of index.py.  ordered : (n,) uint64, the hashes in their order."""
    n_tiles = blocks_for(ordered.size, TILE)
    sums, histogram = desk.empty(n_tiles + 1, np.int64), desk.zeros(MOST_COUNTED + 1, np.uint64)
    desk.launch(count_runs, n_tiles, BLOCK, ordered, sums)
    n_runs = begins_of_tiles(desk, sums) if n_tiles else 0
    begins = desk.empty(n_runs + 1, np.int64)
    desk.launch(list_runs, n_tiles, BLOCK, ordered, sums, begins)
    desk.launch(count_copies, blocks_for(n_runs, TILE), BLOCK, begins, MOST_COUNTED, histogram)
    return desk.fetch(histogram).astype(np.int64)
