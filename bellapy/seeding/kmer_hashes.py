"""The hashes of all k-mers of a stretch of reads, in vector code.

Bases are packed into words of 32 first, once with the first base in the lowest bits and once with the first one in the
highest.  The first way shows a k-mer's complement read backward, the second way the k-mer itself: both by shifts alone, so
that no k-mer waits for the one before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector

U = np.uint64
U0, U1, U2 = U(0), U(1), U(2)
STRETCH = 1024  # k-mers
BASES = 32  # of a word
WORDS = STRETCH // BASES
EVERY_BYTE = U(0x0101010101010101)
NO_BASE = U(4)
NONE = ~U0  # instead of a hash, where there is no k-mer


class Stretch(NamedTuple):
    """Bases of a stretch, and what its k-mers are.

    low, high : (WORDS + 1,) uint64, bases with the first one in the lowest bits, in the highest.
    unknown : (WORDS + 1,) uint64, a bit for each base that is none.
    hashes : (STRETCH,) uint64, NONE where no k-mer begins.
    marks : (STRETCH,) uint64, twice the place, and 1 more where the canonical k-mer is the reverse complement.
    """

    low: np.ndarray
    high: np.ndarray
    unknown: np.ndarray
    hashes: np.ndarray
    marks: np.ndarray


def make_stretch() -> Stretch:
    """Room for one."""
    return Stretch(*np.empty((3, WORDS + 1), np.uint64), *np.empty((2, STRETCH), np.uint64))


@njit_inner
def _eight(codes, at):
    """Eight `codes`, uint8, from place `at` on, in one word; those past the end are NO_BASE."""
    x = U0
    if at + 8 <= codes.size:
        for i in range(8):
            x |= U(codes[U(at) + U(i)]) << U(8 * i)  # LLVM makes this one load
    else:
        for i in range(8):
            x |= (U(codes[at + i]) if at + i < codes.size else NO_BASE) << U(8 * i)
    return x


@njit_inner
def _turned(x):
    """The bases of a word, `x`, in the opposite order."""
    x = x >> U(32) | x << U(32)
    x = (x >> U(16)) & U(0x0000FFFF0000FFFF) | (x & U(0x0000FFFF0000FFFF)) << U(16)
    x = (x >> U(8)) & U(0x00FF00FF00FF00FF) | (x & U(0x00FF00FF00FF00FF)) << U(8)
    x = (x >> U(4)) & U(0x0F0F0F0F0F0F0F0F) | (x & U(0x0F0F0F0F0F0F0F0F)) << U(4)
    return (x >> U(2)) & U(0x3333333333333333) | (x & U(0x3333333333333333)) << U(2)


@njit_inner
def _pack(codes, begin, stretch):
    """Fill in the bases of a `stretch`, Stretch, from place `begin` of `codes`, uint8, on."""
    for j in range(WORDS + 1):
        low = unknown = U0
        for g in range(BASES // 8):
            x = _eight(codes, begin + BASES * j + 8 * g)
            two = x & (EVERY_BYTE * U(3))
            two = (two | two >> U(6)) & U(0x000F000F000F000F)
            two = (two | two >> U(12)) & U(0x000000FF000000FF)
            low |= ((two | two >> U(24)) & U(0xFFFF)) << U(16 * g)
            unknown |= (((x >> U2) & EVERY_BYTE) * U(0x0102040810204080)) >> U(56) << U(8 * g)
        stretch.low[j], stretch.high[j], stretch.unknown[j] = low, _turned(low), unknown


@njit_vector
def _hash_word(low, high, none, place, k, multiplier, hashes, marks):
    """The k-mers that begin at the BASES of one word.

    Parameters
    ----------
    low, high : the word and the next one, as in Stretch, uint64 each.
    none : bits of the bases where no k-mer begins.
    place : the first base.
    k, multiplier : of Layout (kmers.py), uint64.
    hashes, marks : as in Stretch, from the word on; overwritten.
    """
    (low, next_low), (high, next_high) = low, high
    kmer_mask, unused = (U1 << (k + k)) - U1, U(64) - (k + k)
    for e in range(U(BASES)):
        by, rest = e + e, U(63) - (e + e)
        backward = ~(low >> by | next_low << U1 << rest) & kmer_mask
        forward = (high << by | next_high >> U1 >> rest) >> unused
        h = (min(forward, backward) * multiplier) & kmer_mask
        no_kmer = (none >> e) & U1 | U(forward == backward)  # a palindrome has no strand
        hashes[e] = h | (U0 - no_kmer)
        marks[e] = (place + e) << U1 | U(backward < forward)


@njit_part
def hash_stretch(codes, begin, layout, stretch):
    """Fill in the k-mers of a stretch that begins at place `begin`.

    Parameters
    ----------
    codes : (n,) uint8, as in `ReadSet.codes`; a k-mer with a code above 3 is none.
    begin : the first place.
    layout : Layout (kmers.py).
    stretch : Stretch, overwritten.
    """
    _pack(codes, begin, stretch)
    k, low, high = layout.k, stretch.low, stretch.high
    for j in range(WORDS):
        none, seen = stretch.unknown[j] | stretch.unknown[j + 1] << U(BASES), 1
        while 2 * seen <= k:  # whether any of so many bases from here on is unknown
            none |= none >> U(seen)
            seen *= 2
        none |= none >> U(k - seen)
        at = BASES * j
        _hash_word(
            (low[j], low[j + 1]), (high[j], high[j + 1]), none, U(begin + at), U(k), layout.multiplier,
            stretch.hashes[at:], stretch.marks[at:],
        )  # fmt: skip
