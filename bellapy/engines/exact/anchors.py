"""K-mers that are unique in both of two sequences: which place of the one belongs to which place of the other.

K-mers are put into a table by their hash.  Threads share the work by parts of the table, so that none waits for another,
and what is found does not depend on their number.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.threads import map_threads
from bellapy.engines.exact.words import push

EMPTY = -1
PAIRED = 3  # in the place of a count: the first k-mer of a slot was seen
JOIN = 24  # anchors of one diagonal no further apart are one segment
MOST_PARTS = 8  # every thread looks at all k-mers: more parts cost more than they save


@njit_inner
def _slot_of(word, bits):
    """The slot of a k-mer, uint64, in a table of 1 << bits slots."""
    return (word * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)


@njit
def _index(codes, k, bits, part, places):
    """Put the k-mers of a part into its table.

    codes : (any,) uint8.  bits : of slots; part : that the highest of them tell.
    places : (slots of a part,) int32, EMPTY at first: start of the k-mer of each slot; of several, -2 less the first one's.
    """
    mask, size = np.uint64((1 << (2 * k)) - 1), np.uint64(len(places))
    word, known, begin = np.uint64(0), 0, np.uint64(part) * size
    for end in range(1, len(codes) + 1):
        word, known = push(word, known, codes[end - 1], mask)
        slot = _slot_of(word, bits) - begin
        if slot < size and known >= k:
            if places[slot] >= 0:
                places[slot] = -2 - places[slot]
            elif places[slot] == EMPTY:
                places[slot] = end - k


@njit
def _count(codes, k, bits, part, counts):
    """Count the k-mers of a part up to two.

    codes, k, bits, part : as in `_index`.  counts : (slots of a part,) uint8, zeros at first.
    """
    mask, size = np.uint64((1 << (2 * k)) - 1), np.uint64(len(counts))
    word, known, begin = np.uint64(0), 0, np.uint64(part) * size
    for end in range(1, len(codes) + 1):
        word, known = push(word, known, codes[end - 1], mask)
        slot = _slot_of(word, bits) - begin
        if slot < size and known >= k:
            counts[slot] = min(2, counts[slot] + 1)


@njit
def _first_place(place, several):
    """Where the first k-mer of a slot starts, EMPTY for none; several : whether there may be more than one."""
    return -2 - place if several and place < EMPTY else place


@njit
def _pair_up(query, target, k, bits, part, counts, places, several, partners):
    """Note where in the target the k-mers of a part are that are unique in both.

    query, target : (any,) uint8 codes.  k, bits, part : as in `_index`.
    counts, places : of the query's k-mers, and the target's, as `_count` and `_index` fill them; counts is changed.
    several : also the first ones of those that are not unique.  partners : (bases,) int32, changed at the k-mers' starts.
    """
    mask, size = np.uint64((1 << (2 * k)) - 1), np.uint64(len(counts))
    word, known, begin = np.uint64(0), 0, np.uint64(part) * size
    for end in range(1, len(query) + 1):
        word, known = push(word, known, query[end - 1], mask)
        slot = _slot_of(word, bits) - begin
        if slot >= size or known < k:
            continue
        i, j = end - k, np.int64(_first_place(places[slot], several))
        if j < 0 or counts[slot] == PAIRED or counts[slot] > 1 and not several:
            continue
        if several:
            counts[slot] = PAIRED
        same = True
        for x in range(k):
            same &= query[i + x] == target[j + x]
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
    partners = np.full(len(query), EMPTY, np.int32)
    n_parts = 1 << min(max(1, threads), MOST_PARTS).bit_length() - 1

    def pair_up(part: int) -> None:
        slots = (1 << bits) // n_parts
        counts, places = np.zeros(slots, np.uint8), np.full(slots, EMPTY, np.int32)
        _count(query, k, bits, part, counts)
        _index(target, k, bits, part, places)
        _pair_up(query, target, k, bits, part, counts, places, several, partners)

    map_threads(pair_up, range(n_parts), threads)
    return partners
