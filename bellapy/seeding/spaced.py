"""Spaced seeds of a genome, for queries that may differ from it in one transition.

A seed's pattern says which bases of a window count: 12of19 of LASTZ is 1110100110010101111.  The bases that count make a
word, two bits each.  The index is the sorted words of all windows, with their places; the first bits of a word choose a
bucket.

Source: B. Ma, J. Tromp, M. Li: PatternHunter, Bioinformatics 18, 2002; R. S. Harris: Improved pairwise alignment of genomic
DNA, thesis, Pennsylvania State University 2007 (transitions, 12of19, 14of22).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.errors import ParameterError

PATTERNS = {"12of19": "1110100110010101111", "14of22": "1110101100110010101111"}
LEAST_WEIGHT, MOST_WEIGHT = 4, 16
TRANSITION = 2
"""A and G, C and T differ in this bit."""
MOST_BUCKET_BITS = 24
BUCKETS = 3  # bits more than the number of words has: most buckets are empty, which one bit tells

U = np.uint64


class Pattern(NamedTuple):
    """offsets : (weight,) int64, places of the window's bases that count.  span : bases of the window."""

    offsets: np.ndarray
    span: int


class SeedIndex(NamedTuple):
    """words, places : (n,) uint32, sorted by word, then place; a place is where a window begins.

    starts : (n_buckets + 1,) uint32, first entry of a bucket.  rest_bits : of a word that its bucket does not tell.
    present : (n_buckets / 8,) uint8, a bit for each bucket that is not empty.
    """

    words: np.ndarray
    places: np.ndarray
    starts: np.ndarray
    rest_bits: int
    present: np.ndarray


def parse_pattern(text: str) -> Pattern:
    """A pattern by name (12of19, 14of22), as a number of bases that all count, or as ones and zeros.

    Raises
    ------
    ParameterError : none of these, or too many or too few bases that count.
    """
    shape = PATTERNS.get(text) or ("1" * int(text) if text.isdecimal() and len(text) < 3 else text)
    weight = shape.count("1")
    if not shape or set(shape) - {"0", "1"} or shape[0] + shape[-1] != "11" or not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise ParameterError(
            f"--seed {text}: give {', '.join(PATTERNS)}, a number of bases from {LEAST_WEIGHT} to {MOST_WEIGHT}, or a "
            "pattern of ones and zeros with as many ones, such as 110100110010101111"
        )
    return Pattern(np.array([i for i, one in enumerate(shape) if one == "1"], np.int64), len(shape))


def index_seeds(codes: np.ndarray, masked: np.ndarray, pattern: Pattern, step: int = 1) -> SeedIndex:
    """The seeds of every `step`-th window of known, unmasked bases; codes : (n,) uint8, masked : (n,) bool."""
    words, good = words_of(codes, masked, pattern)
    places = np.flatnonzero(good[::step] if step > 1 else good).astype(np.uint64) * U(step)
    keys = words[places].astype(np.uint64) << U(32) | places
    keys.sort()
    words, places = (keys >> U(32)).astype(np.uint32), keys.astype(np.uint32)
    bits = 2 * len(pattern.offsets)
    bucket_bits = min(bits, MOST_BUCKET_BITS, max(8, len(places).bit_length() + BUCKETS))
    starts, present = _buckets(words, bits - bucket_bits, 1 << bucket_bits)
    return SeedIndex(words, places, starts, bits - bucket_bits, present)


@njit
def _buckets(words, rest_bits, n):
    starts, present = np.zeros(n + 1, np.uint32), np.zeros(max(1, n >> 3), np.uint8)
    for x in range(len(words)):
        bucket = words[x] >> rest_bits
        starts[bucket + 1] += np.uint32(1)
        present[bucket >> 3] |= np.uint8(1 << (bucket & 7))
    for b in range(n):
        starts[b + 1] += starts[b]
    return starts, present


@njit
def words_of(codes, masked, pattern):
    """The word of the window that begins at each base, (n,) uint32, and whether there is one, (n,) bool."""
    n = len(codes)
    words, good = np.zeros(n, np.uint32), np.zeros(n, np.bool_)
    run = 0
    for end in range(n):
        run = run + 1 if codes[end] < 4 and not masked[end] else 0
        if run >= pattern.span:
            begin = end - pattern.span + 1
            word = np.uint32(0)
            for x in range(len(pattern.offsets)):
                word = word << np.uint32(2) | np.uint32(codes[begin + pattern.offsets[x]])
            words[begin], good[begin] = word, True
    return words, good


@njit_inner
def find_word(index, word):
    """First entry of a word and the end of its entries; both equal if there is none."""
    bucket = np.int64(word >> index.rest_bits)
    begin, end = np.int64(index.starts[bucket]), np.int64(index.starts[bucket + 1])
    if index.rest_bits == 0:
        return begin, end
    while begin < end and index.words[begin] < word:
        begin += 1
    stop = begin
    while stop < end and index.words[stop] == word:
        stop += 1
    return begin, stop
