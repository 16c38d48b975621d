"""Counting of k-mers on a GPU: the same entries, in the same order, as those of kmers.py.

All k-mers are sorted by hash, in as many passes over the reads as memory and the bits of a word ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellapy.compute.gpu.desk import Desk, on_each
from bellapy.compute.gpu.ops import U32, U64, copy_between, driver
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for
from bellapy.compute.gpu.sort import sort_words
from bellapy.records.kmers import entry_type
from bellapy.seeding.cuda_kmers import (
    MARKS,
    NO_PASS,
    Wanted,
    count_kept,
    count_marked,
    mark_passes,
    write_entries,
    write_words,
)
from bellapy.seeding.kmers import SPECTRUM_SIZE, make_layout

WORD_BITS = 64
SORT_BYTES = 24
"""Of device memory for each word: two words, and what the sort counts."""
MOST_LOWER = 64
MARKED_PASSES = NO_PASS  # whose marks are made together
ROOM = 0.6  # share of the free memory that is planned to be used


def can_count(k: int, n_places: int, lower: int) -> bool:
    """Whether a GPU can: not where the CPU's words drop bits of long k-mers, nor for a large `lower`, which it looks for."""
    return make_layout(k, n_places).dropped_bits == 0 and lower <= MOST_LOWER


def passes_for(k: int, n_places: int, free: int) -> int:
    """Bits of the hash that tell passes apart."""
    needed = 2 * k + n_places.bit_length() + 1 - WORD_BITS
    room = max(1, int(ROOM * free) // SORT_BYTES)
    return min(2 * k, max(0, needed, (n_places // room).bit_length()))


def count_on_gpus(
    desks: Sequence[Desk], planes: Sequence[Any], n_places: int, k: int, lower: int, free: int, keep_one_in: int = 1
) -> tuple[Any, np.ndarray]:  # fmt: skip
    """Entries of all k-mers that occur `lower` times or more, on the first device, and the spectrum.

    Parameters
    ----------
    desks : of devices that share the passes, if there are several.
    planes : (words, 3) uint32 on each device, all bases of the reads.
    n_places : of `ReadSet.codes`.
    k, lower, keep_one_in : as in `count_kmers`; `can_count` says whether they are possible.
    free : bytes of memory of each device.
    """
    shares = [(i, len(desks)) for i in range(len(desks))]

    def count(desk: Desk, its_planes: Any, share: tuple[int, int]) -> tuple[list[Any], np.ndarray]:
        return _count(desk, its_planes, (n_places, k, lower, keep_one_in), free, share)

    found = on_each(count, desks, planes, shares)
    with driver.gpus[desks[0].device.gpu.index]:
        entries = _joined(desks[0], [part for parts, _ in found for part in parts], entry_type(n_places))
    return entries, sum((spectrum for _, spectrum in found), np.zeros(SPECTRUM_SIZE, np.int64))


def _count(
    desk: Desk, planes: Any, what: tuple[int, int, int, int], free: int, share: tuple[int, int]
) -> tuple[list[Any], np.ndarray]:  # fmt: skip
    """Entries of the passes of a share, and what they add to the spectrum.

    what : n_places, k, lower and keep_one_in.  share : its number, and how many there are.
    """
    (n_places, k, lower, keep_one_in), (mine, n_shares) = what, share
    layout = make_layout(k, n_places)
    partition = 1 << (2 * k - layout.partition_bits)
    n_tiles, to_hash = blocks_for(n_places, TILE), n_places.bit_length() + 1
    pass_bits = passes_for(k, n_places, free - n_tiles * TILE)  # a mark for each place has to be there, too
    width, end = 1 << (2 * k - pass_bits), max(1, (1 << layout.partition_bits) // keep_one_in) * partition
    n_passes = -(-end // width)
    first, last = n_passes * mine // n_shares, n_passes * (mine + 1) // n_shares
    spectrum, marks = desk.zeros(SPECTRUM_SIZE, np.uint64), desk.empty(n_tiles * TILE // MARKS, np.uint32)
    parts: list[Any] = []
    for low in range(first * width, min(last * width, end), width):
        wanted = Wanted(
            np.int32(k), np.int32(to_hash), np.int64(n_places), layout.multiplier, U64(4**k - 1), U64(low),
            U64(min(low + MARKED_PASSES * width, end)),
        )  # fmt: skip
        number = U32((low // width - first) % MARKED_PASSES)
        if not number:
            desk.launch(mark_passes, n_tiles, BLOCK, planes, wanted, U64(2 * k - pass_bits), marks)
        words = _words_of(desk, planes, wanted, marks, number, n_tiles)
        words, room = sort_words(
            desk, words, desk.empty(words.size, np.uint64), words.size, to_hash, to_hash + 2 * k - pass_bits
        )
        del room
        parts.append(_entries_of(desk, words, to_hash, lower, spectrum, entry_type(n_places)))
    return parts, desk.fetch(spectrum).astype(np.int64)


def _words_of(desk: Desk, planes: Any, wanted: Wanted, marks: Any, number: np.uint32, n_tiles: int) -> Any:
    """The words of the k-mers of a pass, in the order of places."""
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_marked, n_tiles, BLOCK, marks, number, sums)
    words = desk.empty(begins_of_tiles(desk, sums), np.uint64)
    desk.launch(write_words, n_tiles, BLOCK, planes, wanted, marks, number, sums, words)
    return words


def _entries_of(desk: Desk, words: Any, to_hash: int, lower: int, spectrum: Any, dtype: type) -> Any:
    """The entries of sorted words, and what they add to the spectrum."""
    n_tiles = blocks_for(words.size, TILE)
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_kept, n_tiles, BLOCK, words, U64(to_hash), lower, sums)
    entries = desk.empty(begins_of_tiles(desk, sums), dtype)
    desk.launch(write_entries, n_tiles, BLOCK, words, U64(to_hash), lower, sums, spectrum, entries)
    return entries


def _joined(desk: Desk, parts: list[Any], dtype: type) -> Any:
    """Arrays of any device, end to end on one."""
    if len(parts) == 1:
        return parts[0]
    whole, at = desk.empty(sum(part.size for part in parts), dtype), 0
    for part in parts:
        if part.size:
            copy_between(part, whole[at : at + part.size], desk.stream)
        at += part.size
    desk.stream.synchronize()  # memory of another device may be used again there as soon as nothing refers to it
    return whole
