"""Counting of k-mers on a GPU: the same entries, in the same order, as those of kmers.py.

The wanted k-mers are listed, all at once or, where memory is short, by ranges of their hashes.  Those of a list are sorted
by hash, in as many passes as memory and the bits of a word ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellapy.compute.gpu.desk import Desk, on_each
from bellapy.compute.gpu.ops import U32, U64, driver
from bellapy.compute.gpu.scan import BLOCK, TILE, begins_of_tiles, blocks_for
from bellapy.compute.gpu.sort import sort_words
from bellapy.records.kmers import entry_type
from bellapy.seeding.gpu.kmers_kernels import (
    MARKS,
    NO_PASS,
    Wanted,
    count_kept,
    count_marked,
    count_wanted,
    list_wanted,
    mark_passes,
    write_entries,
    write_words,
)
from bellapy.seeding.kmers import SPECTRUM_SIZE, make_layout

WORD_BITS = 64
SORT_BYTES, LIST_BYTES = 24, 9
"""Of device memory for each word: two words, and what the sort counts; for each k-mer of a list: its place, and a mark."""
MOST_LOWER = 64
MARKED_PASSES = NO_PASS  # whose marks are made together
ROOM, LIST_ROOM = 0.4, 0.2  # shares of the free memory that are planned to be used by words and by a list


def can_count(k: int, n_places: int, lower: int) -> bool:
    """Whether a GPU can: not where the CPU's words drop bits of long k-mers, nor for a large `lower`, which it looks for."""
    return make_layout(k, n_places).dropped_bits == 0 and lower <= MOST_LOWER


def lists_for(n_wanted: int, free: int) -> int:
    """Bits of the hash that tell lists apart, if so many k-mers are wanted."""
    room = max(1, int(LIST_ROOM * free) // LIST_BYTES)
    return (n_wanted // room).bit_length()


def passes_for(hash_bits: int, n_listed: int, free: int) -> int:
    """Bits of the hash that tell passes over a list apart; hash_bits : in which the hashes of the list differ."""
    needed = hash_bits + n_listed.bit_length() + 1 - WORD_BITS
    room = max(1, int(ROOM * free) // SORT_BYTES)
    return min(hash_bits, max(0, needed, (n_listed // room).bit_length()))


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
    end = max(1, (1 << layout.partition_bits) // keep_one_in) * partition
    low, high = (end * number // n_shares for number in (mine, mine + 1))
    width = max(1, (1 << (high - low).bit_length()) >> lists_for(n_places // keep_one_in // n_shares, free))
    spectrum, parts = desk.zeros(SPECTRUM_SIZE, np.uint64), []
    for first in range(low, high, width):
        wanted = Wanted(
            np.int32(k), np.int32(0), np.int64(n_places), layout.multiplier, U64(4**k - 1), U64(first),
            U64(min(first + width, high)),
        )  # fmt: skip
        parts += _count_listed(desk, planes, _listed(desk, planes, wanted), wanted, lower, free, spectrum)
    return parts, desk.fetch(spectrum).astype(np.int64)


def _listed(desk: Desk, planes: Any, wanted: Wanted) -> Any:
    """The places of the wanted k-mers, in order, on the device."""
    n_places = int(wanted.n_places)
    n_tiles = blocks_for(n_places, TILE)
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_wanted, n_tiles, BLOCK, planes, wanted, sums)
    places = desk.empty(begins_of_tiles(desk, sums), np.uint32 if n_places < 1 << 32 else np.uint64)
    desk.launch(list_wanted, n_tiles, BLOCK, planes, wanted, sums, places)
    return places


def _count_listed(
    desk: Desk, planes: Any, places: Any, listed: Wanted, lower: int, free: int, spectrum: Any
) -> list[Any]:  # fmt: skip
    """Entries of the k-mers of a list, in the order of their hashes; spectrum : grows.

    listed : which k-mers these are.
    """
    low, end = int(listed.low), int(listed.end)
    hash_bits, to_hash, n_tiles = (end - low - 1).bit_length(), places.size.bit_length() + 1, blocks_for(places.size, TILE)
    to_pass = hash_bits - passes_for(hash_bits, places.size, free)
    width, marks = 1 << to_pass, desk.empty(n_tiles * TILE // MARKS, np.uint32)
    dtype, parts = entry_type(int(listed.n_places)), []
    for number, first in enumerate(range(low, end, width)):
        until = min(first + MARKED_PASSES * width, end)
        wanted = listed._replace(to_hash=np.int32(to_hash), low=U64(first), end=U64(until))
        mark = U32(number % MARKED_PASSES)
        if not mark:
            desk.launch(mark_passes, n_tiles, BLOCK, planes, places, wanted, U64(to_pass), marks)
        words = _words_of(desk, planes, places, wanted, marks, mark, n_tiles)
        words, room = sort_words(
            desk, words, desk.empty(words.size, np.uint64), words.size, to_hash, to_hash + to_pass
        )  # fmt: skip
        del room
        parts.append(_entries_of(desk, words, places, to_hash, lower, spectrum, dtype))
    return parts


def _words_of(
    desk: Desk, planes: Any, places: Any, wanted: Wanted, marks: Any, number: np.uint32, n_tiles: int
) -> Any:  # fmt: skip
    """The words of the k-mers of a pass, in the order of places."""
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_marked, n_tiles, BLOCK, marks, number, sums)
    words = desk.empty(begins_of_tiles(desk, sums), np.uint64)
    desk.launch(write_words, n_tiles, BLOCK, planes, places, wanted, marks, number, sums, words)
    return words


def _entries_of(
    desk: Desk, words: Any, places: Any, to_hash: int, lower: int, spectrum: Any, dtype: type
) -> Any:  # fmt: skip
    """The entries of sorted words, and what they add to the spectrum."""
    n_tiles = blocks_for(words.size, TILE)
    sums = desk.empty(n_tiles + 1, np.int64)
    desk.launch(count_kept, n_tiles, BLOCK, words, U64(to_hash), lower, sums)
    entries = desk.empty(begins_of_tiles(desk, sums), dtype)
    desk.launch(write_entries, n_tiles, BLOCK, words, places, U64(to_hash), lower, sums, spectrum, entries)
    return entries


def _joined(desk: Desk, parts: list[Any], dtype: type) -> Any:
    """Arrays of any device, end to end on one."""
    if len(parts) == 1:
        return parts[0]
    whole, at = desk.empty(sum(part.size for part in parts), dtype), 0
    for part in parts:
        if part.size:
            desk.copy(part, whole[at : at + part.size])
        at += part.size
    return whole
