"""Spaced seeds of a genome, for queries that may differ from it in one transition.

A seed's pattern says which bases of a window count: 12of19 of LASTZ is 1110100110010101111.  The bases that count make a
word of two halves.  The upper half has a bit of each base that transitions leave, the lower half the bit that they turn.  So
a word and those that differ in a transition stand close together.  The index is the sorted words of all windows, with their
places; the first bits of a word choose a bucket.  A bit for each bucket tells whether it is empty.  Where a full one begins
is found by its rank among the full ones.

The bits of the last 64 bases are kept in two registers, which move by one bit with each base.  Tables tell which bits of a
word come from each TABLE_BITS of a register.

Source: B. Ma, J. Tromp, M. Li: PatternHunter, Bioinformatics 18, 2002; R. S. Harris: Improved pairwise alignment of genomic
DNA, thesis, Pennsylvania State University 2007 (transitions, 12of19, 14of22).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, prefetch
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.errors import ParameterError
from bellapy.seeding.sampling import MIXER

PATTERNS = {"12of19": "1110100110010101111", "14of22": "1110101100110010101111"}
LEAST_WEIGHT, MOST_WEIGHT = 4, 16
MOST_SPAN = 64
TABLE_BITS = 11
STAYS, TURNS = 0, 1
"""Bits of a base: A and G, C and T differ in the second one."""
MOST_BUCKET_BITS = 24
LEAST_BUCKET_BITS = 8
BUCKETS = 5  # bits more than the number of words has: most buckets are empty
LARGEST_HASH = (1 << 64) - 1  # of a word: its product with MIXER
MOST_SHARE_BITS = 6  # of words, which tell the threads that take them

U = np.uint64


class Pattern(NamedTuple):
    """tables : (n, 1 << TABLE_BITS) uint16, what the last TABLE_BITS bases, and those before, give to a word's half.

    weight : bases of the window that count.  span : bases of the window.
    most : the highest hash of a word that counts, uint64.
    """

    tables: np.ndarray
    weight: int
    span: int
    most: np.uint64


class SeedIndex(NamedTuple):
    """places : (n,) uint32, where windows begin, sorted by word, then place.

    words : (n,) uint32, likewise; none where a word is its bucket.
    full : (n_buckets / 64,) uint64, a bit for each bucket that is not empty.  ranks : likewise uint32, full buckets before.
    starts : (n_full + 1,) uint32, first entry of each full bucket.  rest_bits : of a word that its bucket does not tell.
    """

    places: np.ndarray
    words: np.ndarray
    full: np.ndarray
    ranks: np.ndarray
    starts: np.ndarray
    rest_bits: int


def parse_pattern(text: str, sampled: int = 1) -> Pattern:
    """A pattern by name (12of19, 14of22), as a number of bases that all count, or as ones and zeros.

    sampled : one word in so many counts, by its hash.

    Raises
    ------
    ParameterError : none of these, or too many or too few bases that count.
    """
    shape = PATTERNS.get(text) or ("1" * int(text) if text.isdecimal() and len(text) < 3 else text)
    weight, span = shape.count("1"), len(shape)
    is_shape = shape and not set(shape) - {"0", "1"} and shape[0] + shape[-1] == "11"
    if not is_shape or not LEAST_WEIGHT <= weight <= MOST_WEIGHT or span > MOST_SPAN:
        raise ParameterError(
            f"--seed {text}: give {', '.join(PATTERNS)}, a number of bases from {LEAST_WEIGHT} to {MOST_WEIGHT}, or a "
            f"pattern of ones and zeros with as many ones and at most {MOST_SPAN} in all, such as 110100110010101111"
        )
    ones = [at for at, one in enumerate(shape[::-1]) if one == "1"]
    bits = np.arange(1 << TABLE_BITS)
    tables = np.zeros((-(-span // TABLE_BITS), len(bits)), np.uint16)
    for number, at in enumerate(ones):
        tables[at // TABLE_BITS] |= ((bits >> at % TABLE_BITS & 1) << number).astype(np.uint16)
    return Pattern(tables, weight, span, U(LARGEST_HASH // sampled))


INDEX_BYTES = 16
"""For each base of the target, while its seeds are sorted."""


def index_seeds(
    codes: np.ndarray, masked: np.ndarray | None, pattern: Pattern, step: int = 1, threads: int = 1
) -> SeedIndex:
    """The seeds of every `step`-th window of known, unmasked bases.

    codes : (n,) uint8.  masked : (n,) bool; None: no base is.
    """
    parts = _sorted_parts(codes, masked, pattern, step, threads)
    n, bits = sum(map(len, parts)), 2 * pattern.weight
    bucket_bits = min(bits, MOST_BUCKET_BITS, max(LEAST_BUCKET_BITS, n.bit_length() + BUCKETS))
    rest_bits = bits - bucket_bits
    full = np.zeros(1 << bucket_bits >> 6, np.uint64)
    places, words = np.empty(n, np.uint32), np.empty(n if rest_bits else 0, np.uint32)
    share_bits = min((threads - 1).bit_length(), MOST_SHARE_BITS, len(full).bit_length() - 1)
    ends = np.arange(1, 1 << share_bits, dtype=U) << U(32 + bits - share_bits)
    cuts = np.array([[0, *np.searchsorted(part, ends), len(part)] for part in parts])
    edges = cuts.sum(axis=0)

    def gather(share: int) -> np.ndarray:
        """The entries of all words that begin with some bits; the full buckets among theirs are marked.  Returns where each
        of these begins.
        """
        keys = np.concatenate([part[slice(*cut)] for part, cut in zip(parts, cuts[:, share : share + 2], strict=True)])
        if len(parts) > 1:
            keys.sort()
        rows = slice(*edges[share : share + 2])
        places[rows] = keys
        if rest_bits:
            words[rows] = keys >> U(32)
        starts = np.empty(len(keys), np.uint32)
        return starts[: _begin_buckets(keys, rest_bits, edges[share], full, starts)].copy()

    starts = map_threads(gather, range(1 << share_bits), threads)
    ones = np.bitwise_count(full)
    ranks = (np.cumsum(ones) - ones).astype(np.uint32)
    return SeedIndex(places, words, full, ranks, np.concatenate((*starts, [np.uint32(n)])), rest_bits)


def _sorted_parts(
    codes: np.ndarray, masked: np.ndarray | None, pattern: Pattern, step: int, threads: int
) -> list[np.ndarray]:  # fmt: skip
    """Word and place of each seed, as one number, ascending, (n,) uint64, for every of some ranges of places."""
    hidden = np.zeros(1, np.bool_) if masked is None else masked

    def keys_of(places: tuple[int, int]) -> np.ndarray:
        keys = np.empty(places[1] - places[0], np.uint64)
        some = keys[: _put_keys(codes, hidden, masked is None, pattern, step, places, keys)]
        some.sort()
        return some

    return map_threads(keys_of, even_ranges(len(codes), threads), threads)


@njit
def _put_keys(codes, masked, everywhere, pattern, step, places, keys):
    """Word and place of each seed, as one number, into `keys`; returns their number.

    everywhere : no base is masked.  places : the first, and the one after the last, where windows begin.
    """
    stays = turns = U(0)
    run = n = 0
    for end in range(places[0], min(len(codes), places[1] + pattern.span - 1)):
        code = U(codes[end])
        stays, turns = stays << U(1) | code >> U(STAYS) & U(1), turns << U(1) | code >> U(TURNS) & U(1)
        run = run + 1 if code < U(4) and (everywhere or not masked[end]) else 0
        begin = end - pattern.span + 1
        if run >= pattern.span and begin % step == 0:
            word = _word_of(stays, turns, pattern)
            if word * MIXER <= pattern.most:
                keys[n] = word << U(32) | U(begin)
                n += 1
    return n


@njit_inner
def _word_of(stays, turns, pattern):
    """The word of the window that ends at the last base of both registers, uint64."""
    upper = lower = U(0)
    last = U((1 << TABLE_BITS) - 1)
    for x in range(len(pattern.tables)):
        by = U(x * TABLE_BITS)
        upper |= U(pattern.tables[x, stays >> by & last])
        lower |= U(pattern.tables[x, turns >> by & last])
    return upper << U(pattern.weight) | lower


def transitions_of(pattern: Pattern) -> np.ndarray:
    """What turns a word into those that differ in a transition, (weight,) uint32, from the last base on."""
    return np.uint32(1) << np.arange(pattern.weight, dtype=np.uint32)


@njit_inner
def count_ones(x):
    """Ones among the bits of a uint64; LLVM knows this form, and makes one instruction of it."""
    x = x - (x >> U(1) & U(0x5555555555555555))
    x = (x & U(0x3333333333333333)) + (x >> U(2) & U(0x3333333333333333))
    x = x + (x >> U(4)) & U(0x0F0F0F0F0F0F0F0F)
    return np.int64(x * U(0x0101010101010101) >> U(56))


@njit
def _begin_buckets(keys, rest_bits, begin, full, starts):
    """Mark the full buckets of some sorted keys, and note where each begins; returns their number.

    begin : of the keys among all.
    """
    n, last = 0, np.int64(-1)
    for x in range(len(keys)):
        bucket = np.int64(keys[x] >> U(32)) >> rest_bits
        if bucket != last:
            full[bucket >> 6] |= U(1) << U(bucket & 63)
            starts[n], last = begin + x, bucket
            n += 1
    return n


@njit
def words_of(codes, masked, pattern):
    """The words that count, (n,) uint32, and where their windows begin, (n,) uint32."""
    words, places = np.empty(len(codes), np.uint32), np.empty(len(codes), np.uint32)
    stays = turns = U(0)
    run = n = 0
    for end in range(len(codes)):
        code = U(codes[end])
        stays, turns = stays << U(1) | code >> U(STAYS) & U(1), turns << U(1) | code >> U(TURNS) & U(1)
        run = run + 1 if code < U(4) and not masked[end] else 0
        if run >= pattern.span:
            word = _word_of(stays, turns, pattern)
            if word * MIXER <= pattern.most:
                words[n], places[n] = word, end - pattern.span + 1
                n += 1
    return words[:n], places[:n]


@njit_inner
def has_bucket(index, word):
    """1 if the bucket of a word, uint32, is not empty, else 0."""
    bucket = np.uint32(word) >> np.uint32(index.rest_bits)
    return np.int64(index.full[bucket >> np.uint32(6)] >> U(bucket & np.uint32(63)) & U(1))


@njit_inner
def expect(index, word):
    """Ask for the memory that `has_bucket` will read for a word, uint32."""
    prefetch(index.full, np.int64(np.uint32(word) >> np.uint32(index.rest_bits) >> np.uint32(6)))


@njit_inner
def rank_of(index, word):
    """The rank of a word's bucket, which is full, among the full ones."""
    bucket = U(word) >> U(index.rest_bits)
    before = index.full[bucket >> U(6)] & ((U(1) << (bucket & U(63))) - U(1))
    return np.int64(index.ranks[bucket >> U(6)]) + count_ones(before)


@njit_inner
def find_word(index, word, rank):
    """First entry of a word and the end of its entries; both equal if there is none.  rank : of its bucket."""
    begin, end = np.int64(index.starts[U(rank)]), np.int64(index.starts[U(rank + 1)])
    if index.rest_bits == 0:
        return begin, end
    while begin < end and index.words[U(begin)] < word:
        begin += 1
    stop = begin
    while stop < end and index.words[U(stop)] == word:
        stop += 1
    return begin, stop
