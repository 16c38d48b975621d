"""Bits of 512 flanks side by side: the reads as bit planes, and windows of their bases turned so that each lane is a bit.

A row of bits holds one bit for each of LANES lanes, in WORDS words: that of lane i * WORDS + e is bit i of word e.  So the
words of all lanes, one after the other, are 64 such rows turned by `turn`, and the other way round.
"""

from __future__ import annotations

import weakref

import numpy as np

from bellapy.compute.jit import bit_of_each, njit_entry, njit_inner, njit_vector, prefetch
from bellapy.compute.rows import WORDS, row_at, word_of
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.lanes.shape import U

U_WORDS = U(WORDS)
BITS = 64  # of a word
LANES = BITS * WORDS
APART = LANES + WORDS
"""Words between planes of the same bases: 4 KB apart they would compete for the same places of the cache."""
GUARD = 6  # words before and after the planes of reads, since windows may begin or end outside
AHEAD = 3  # words: a few chunks
BASE_PLANES = 3  # of a base: the two bits of its code, and whether it matches nothing
U0, U1 = U(0), U(1)
ALL = ~U0


@njit_entry
def _pack(codes, planes, begin, end):
    """Fill in rows begin .. end - 1 of `planes`, without the guard, from `codes`, uint8."""
    for word in range(begin, end):
        at = BITS * word
        if at + BITS <= len(codes):
            for i in range(BASE_PLANES):
                planes[word, i] = U(bit_of_each(codes, at, i)) | U(bit_of_each(codes, at + 32, i)) << U(32)
        else:
            for i in range(BASE_PLANES):
                planes[word, i] = U0
                for j in range(at, len(codes)):
                    planes[word, i] |= U(codes[j] >> i & 1) << U(j - at)


def pack(codes: np.ndarray, threads: int = 1) -> np.ndarray:
    """Bit planes of reads: they take a third of the memory, so that the windows of many lanes stay in the cache.

    codes : (n,) uint8, as `ReadSet.both_ways`.

    Returns
    -------
    (words + 2 GUARD, BASE_PLANES) uint64: bits of BITS codes each, the first one's lowest, in `words` rows.
    """
    words = -(-len(codes) // BITS)
    planes = np.empty((words + 2 * GUARD, BASE_PLANES), np.uint64)
    planes[:GUARD] = planes[words + GUARD :] = 0
    map_threads(lambda part: _pack(codes, planes[GUARD:], *part), even_ranges(words, threads), threads)
    return planes


_kept: list[tuple[weakref.ref[np.ndarray], np.ndarray]] = []  # the last codes that were packed, and their planes


def planes_of(codes: np.ndarray, threads: int = 1) -> np.ndarray:
    """`pack` of the same array once, while it exists and if it cannot be written to."""
    if codes.flags.writeable:
        return pack(codes, threads)
    for known, planes in _kept:
        if known() is codes:
            return planes
    planes = pack(codes, threads)
    _kept[:] = [(weakref.ref(codes, _let_go), planes)]
    return planes


def _let_go(gone: weakref.ref[np.ndarray]) -> None:
    _kept[:] = [kept for kept in _kept if kept[0] is not gone]


@njit_inner
def _beyond(length):
    """A word whose bits from `length` on, which may be any number, are set."""
    inside = min(max(length, 0), BITS - 1)
    return U0 if length >= BITS else ALL << U(inside)


@njit_vector
def fetch(planes, at, begin, end, is_target, flip, rows):
    """The next BITS bases of query or target of every lane, not turned yet.

    Bases that are unknown, or outside the flank, get codes that match nothing: 4 and 6 in the query, 5 and 7 in the
    target.

    Parameters
    ----------
    planes : flat, as `pack` makes them.
    at, begin, end : (LANES,) int64, where windows begin in the reads, and where the flanks' bases begin and end.
    is_target : whether it is the target.
    flip : (LANES,) int64, 3 to complement the bases, else 0.
    rows : (BASE_PLANES * APART,) uint64, overwritten.
    """
    for l in range(U(LANES)):
        place = U(at[l] + GUARD * BITS)
        word, shift = (place >> U(6)) * U(BASE_PLANES), place & U(BITS - 1)
        prefetch(planes, word + U(AHEAD * BASE_PLANES))
        window = row_at(planes, word) >> shift | row_at(planes, word + U(BASE_PLANES)) << U1 << (U(BITS - 1) - shift)
        rows[l] = word_of(window, 0)
        rows[l + U(APART)] = word_of(window, 1)
        rows[l + U(2 * APART)] = word_of(window, 2)
    for l in range(U(LANES)):
        complement = U(-(flip[l] & 1))
        none = rows[l + U(2 * APART)] | _beyond(end[l] - at[l]) | ~_beyond(begin[l] - at[l])
        low = rows[l] ^ complement
        rows[l] = low | none if is_target else low & ~none
        rows[l + U(APART)] ^= complement
        rows[l + U(2 * APART)] = none


@njit_vector
def _exchange(rows, others, n, apart, low):
    """Exchange the high bits of some words with the low ones of others, as many apart as the two arrays are.

    `rows`, `others`: (n,) uint64; changed.  `apart`: bits.  `low`: a mask of the low ones.
    """
    for x in range(n):
        a, b = rows[x], others[x]
        t = ((a >> apart) ^ b) & low
        rows[x] = a ^ (t << apart)
        others[x] = b ^ t


@njit_inner
def turn(rows):
    """Turn BITS rows of bits into the words of all lanes, or these into rows.  `rows`: (BITS * WORDS,) uint64; changed."""
    apart, low = U(32), U(0xFFFFFFFF)
    while apart:
        n = apart * U_WORDS
        for at in range(U0, U(BITS * WORDS), n + n):
            _exchange(rows[at:], rows[at + n :], n, apart, low)
        apart >>= U1
        low ^= low << apart
