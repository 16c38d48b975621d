"""K-mers that are unique in both of two sequences: which place of the one belongs to which place of the other.

K-mers are put into a table by their hash.  They are shared out by parts of the table first, so that a part fits a cache.
Threads do the parts; what is found does not depend on their number.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.exact.words import push
from bellapy.seeding.sampling import MIXER

EMPTY = -1
PAIRED = 3  # in the place of a count: the first k-mer of a slot was seen
JOIN = 24  # anchors of one diagonal no further apart are one segment
PART_BITS = 8  # of a slot, its highest: slots of a part, and what is known of them, fit a cache


@njit_inner
def _slot_of(word, bits):
    """The slot of a k-mer, uint64, in a table of 1 << bits slots."""
    return (word * MIXER) >> np.uint64(64 - bits)


@njit
def _count_parts(codes, k, bits, begin, end, counts):
    """Count the k-mers that start in [begin, end), by the part of their slot.

    codes : (any,) uint8.  bits : of slots.  counts : (parts,) int64, added to.
    """
    mask, to_part = np.uint64((1 << (2 * k)) - 1), np.uint64(bits - PART_BITS)
    word, known = np.uint64(0), 0
    for at in range(begin, min(end + k - 1, len(codes))):
        word, known = push(word, known, codes[at], mask)
        if known >= k:
            counts[_slot_of(word, bits) >> to_part] += 1


@njit
def _share_out(codes, k, bits, begin, end, places, words):
    """Write each k-mer that starts in [begin, end) to its part: slot within the part << 32 | start.

    codes, k, bits : as above.  places : (parts,) int64, where the next one of each part goes; moved on.
    words : (any,) uint64, written.
    """
    mask, to_part = np.uint64((1 << (2 * k)) - 1), np.uint64(bits - PART_BITS)
    word, known, within = np.uint64(0), 0, (np.uint64(1) << to_part) - np.uint64(1)
    for at in range(begin, min(end + k - 1, len(codes))):
        word, known = push(word, known, codes[at], mask)
        if known >= k:
            slot = _slot_of(word, bits)
            part = slot >> to_part
            words[places[part]] = (slot & within) << np.uint64(32) | np.uint64(at + 1 - k)
            places[part] += 1


@njit
def _pair_up(query, target, query_words, target_words, k, several, counts, places, partners):
    """Note where in the target the k-mers of a part are whose slot is theirs alone in both.

    query, target : (any,) uint8 codes.  query_words, target_words : (any,) uint64, those of the part, as `_share_out` writes
    them.  several : the first ones of a slot, whether there are others or not.
    counts, places : (slots of a part,) uint8, int32; zeros and EMPTY, overwritten.
    partners : (bases,) int32, changed at the k-mers' starts.
    """
    low = np.uint64(0xFFFFFFFF)
    for x in range(len(query_words)):
        slot = query_words[x] >> np.uint64(32)
        counts[slot] = min(2, counts[slot] + 1)
    for x in range(len(target_words)):
        slot = target_words[x] >> np.uint64(32)
        if places[slot] == EMPTY:
            places[slot] = target_words[x] & low
        elif not several:
            places[slot] = EMPTY - 1
    for x in range(len(query_words)):
        slot, i = query_words[x] >> np.uint64(32), np.int64(query_words[x] & low)
        j = np.int64(places[slot])
        if j < 0 or counts[slot] == PAIRED or counts[slot] > 1 and not several:
            continue
        counts[slot] = PAIRED
        same = True
        for y in range(k):
            same &= query[i + y] == target[j + y]
        if same:
            partners[i] = j


@njit
def _join(partners, k, segments):
    """Segments of k-mers on one diagonal: (query, target, query end, matching bases); their number.

    partners : (bases,) int32, as `_pair_up` leaves them.  segments : (bases + 1, 4) int32, filled.
    """
    n = 0
    for i in range(len(partners)):
        j, end = partners[i], i + k
        if j == EMPTY:
            continue
        if n and j - i == segments[n - 1, 1] - segments[n - 1, 0] and i <= segments[n - 1, 2] + JOIN:
            segments[n - 1, 3] += end - max(i, segments[n - 1, 2])
            segments[n - 1, 2] = end
        else:
            segments[n, 0], segments[n, 1], segments[n, 2], segments[n, 3] = i, j, end, k
            n += 1
    return n


def find_segments(query: np.ndarray, target: np.ndarray, k: int, bits: int, threads: int) -> np.ndarray:
    """(n, 4) int64: segments of k-mers that are unique in both: query, target, query end, matching bases.

    If there are none, of the first ones of each.  bits : of a table's slots.
    """
    segments = np.empty((len(query) + 1, 4), np.int32)
    n = 0
    for several in (False, True):
        partners = _partners(query, target, k, bits, several, threads)
        n = _join(partners, k, segments)
        if n:
            break
    return segments[:n].astype(np.int64)


def _partners(query: np.ndarray, target: np.ndarray, k: int, bits: int, several: bool, threads: int) -> np.ndarray:
    """(bases,) int32: the place in the target of what begins at each place of the query, or EMPTY."""
    partners, slots = np.full(len(query), EMPTY, np.int32), 1 << (bits - PART_BITS)
    (mine, edges), (its, its_edges) = (_by_part(codes, k, bits, threads) for codes in (query, target))

    def pair_up(part: int) -> None:
        words = mine[edges[part] : edges[part + 1]], its[its_edges[part] : its_edges[part + 1]]
        counts, places = np.zeros(slots, np.uint8), np.full(slots, EMPTY, np.int32)
        _pair_up(query, target, *words, k, several, counts, places, partners)

    map_threads(pair_up, range(1 << PART_BITS), threads)
    return partners


def _by_part(codes: np.ndarray, k: int, bits: int, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """All k-mers by parts, in order of their starts, as `_share_out` writes them; where each part begins, and the end."""
    ranges = even_ranges(len(codes), threads)
    counts = np.zeros((len(ranges), 1 << PART_BITS), np.int64)
    map_threads(lambda r: _count_parts(codes, k, bits, *ranges[r], counts[r]), range(len(ranges)), threads)
    edges = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
    places, words = edges[:-1] + np.cumsum(counts, axis=0) - counts, np.empty(edges[-1], np.uint64)
    map_threads(lambda r: _share_out(codes, k, bits, *ranges[r], places[r], words), range(len(ranges)), threads)
    return words, edges
