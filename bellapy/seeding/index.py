"""The index of a reference: its bases, and where each of its minimizers stands.

A minimizer is one word, [ rest of the hash | place | strand ], in a sorted array; the first bits of the hash choose a
bucket, whose words stand between starts[b] and starts[b + 1].  That is 8 bytes and a part of 4 for each minimizer.  The file
is these arrays as they are, so that it can be used from disk without being read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.errors import ParameterError
from bellapy.records import ReadSet
from bellapy.seeding.minimizers import find_minimizers

MAX_K = 28
REPEATED_SHARE = 2e-4  # of different minimizers, the most frequent, are left out of the lookup
LEAST_CUTOFF = 50  # copies that are always looked up: fewer lead to the wrong copy of a repeat

U = np.uint64


class Lookup(NamedTuple):
    """What compiled code needs.

    words : (n,) uint64, sorted within buckets.  starts : (n_buckets + 1,) uint32 (uint64 beyond 2^32 words).
    place_bits : of place and strand in a word.  rest_bits : of the hash in a word.
    cutoff : minimizers with more copies are not looked up.
    """

    words: np.ndarray
    starts: np.ndarray
    place_bits: int
    rest_bits: int
    cutoff: int


@dataclass(frozen=True)
class Index:
    """names, codes, starts, lengths : of the reference's sequences, as in ReadSet.

    k, window : of the minimizers.  lookup : where they stand; places are positions in `codes`.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    k: int
    window: int
    lookup: Lookup


def build_index(reference: ReadSet, k: int, window: int) -> Index:
    """The index of all sequences of a reference.

    Raises
    ------
    ParameterError : k or window out of range.
    """
    if not 4 <= k <= MAX_K or not 1 <= window <= 255:
        raise ParameterError(f"-k {k}, -w {window}: k must be from 4 to {MAX_K}, the window from 1 to 255")
    hashes, marks = _minimizers_of(reference.codes, k, window)
    place_bits = int(len(reference.codes)).bit_length() + 1
    bucket_bits = max(1, min(2 * k, len(hashes).bit_length() - 2))
    rest_bits = 2 * k - bucket_bits
    if rest_bits + place_bits > 64:
        raise ParameterError(f"-k {k}: too large for a reference of {reference.n_bases} bases; take a smaller k")
    words, buckets = _sorted_words(hashes, marks, bucket_bits, rest_bits, place_bits)
    lookup = Lookup(words, buckets, place_bits, rest_bits, 0)
    lookup = lookup._replace(cutoff=_cutoff(_copies(lookup)))
    for array in (words, buckets):
        array.flags.writeable = False
    return Index(reference.names, reference.codes, reference.starts, reference.lengths, k, window, lookup)


def _sorted_words(hashes, marks, bucket_bits: int, rest_bits: int, place_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Words of all minimizers and the buckets' starts; sorted in parts where hash and place do not fit one word."""
    n = len(hashes)
    parts = max(0, rest_bits + bucket_bits + place_bits - 64)
    kept = U(rest_bits + bucket_bits - parts)
    words = np.empty(n, np.uint64)
    counts = np.bincount((hashes >> U(rest_bits)).view(np.int64), minlength=1 << bucket_bits)
    at = 0
    for part in range(1 << parts):
        mine = slice(None) if not parts else np.flatnonzero(hashes >> kept == U(part))
        some = hashes[mine] << U(place_bits)  # the bits of the part are shifted out
        some |= marks[mine].view(np.uint64)
        some.sort()
        words[at : at + len(some)] = some
        at += len(some)
    words &= (U(1) << U(rest_bits + place_bits)) - U(1) if rest_bits + place_bits < 64 else ~U(0)
    starts = np.zeros((1 << bucket_bits) + 1, np.uint32 if n < 1 << 32 else np.uint64)
    np.cumsum(counts, out=starts[1:])
    return words, starts


def _minimizers_of(codes: np.ndarray, k: int, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes (n,) uint64 and marks (n,) int64 of all minimizers, chunk by chunk."""
    hashes: list[np.ndarray] = []
    marks: list[np.ndarray] = []
    overlap, size = k + window - 1, 1 << 20
    for begin in range(0, len(codes), size):
        end = min(len(codes), begin + size + overlap - 1)
        some_hashes, some_marks = _chunk(codes, begin, end, k, window)
        if marks and len(some_marks) and some_marks[0] == marks[-1][-1]:  # of the last window before, too
            some_hashes, some_marks = some_hashes[1:], some_marks[1:]
        if len(some_marks):
            hashes.append(some_hashes)
            marks.append(some_marks)
    if not hashes:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    return np.concatenate(hashes), np.concatenate(marks)


@njit
def _chunk(codes, begin, end, k, window):
    """Hashes and marks of the minimizers of codes[begin:end], uint8; k, window : of these."""
    hashes, marks = np.empty(end - begin, np.uint64), np.empty(end - begin, np.int64)
    ring, ring_marks = np.empty(window, np.uint64), np.empty(window, np.int64)
    n = find_minimizers(codes, begin, end, k, window, hashes, marks, ring, ring_marks)
    return hashes[:n].copy(), marks[:n] + 2 * begin


@njit
def _copies(lookup):
    """How often each different minimizer of a Lookup, lookup, occurs: (n,) int64."""
    counts, n = np.empty(len(lookup.words), np.int64), 0
    shift = U(lookup.place_bits)
    for b in range(len(lookup.starts) - 1):
        for x in range(lookup.starts[b], lookup.starts[b + 1]):
            if x > lookup.starts[b] and lookup.words[x] >> shift == lookup.words[x - 1] >> shift:
                counts[n - 1] += 1
            else:
                counts[n] = 1
                n += 1
    return counts[:n]


def _cutoff(copies: np.ndarray) -> int:
    """Copies beyond which a minimizer counts as repeated, as minimap2 chooses it."""
    if not len(copies):
        return LEAST_CUTOFF
    rank = int(len(copies) * REPEATED_SHARE)
    return max(LEAST_CUTOFF, int(np.partition(copies, len(copies) - 1 - rank)[len(copies) - 1 - rank]))


@njit_inner
def find_run(lookup, value):
    """First word of a minimizer and the end of its bucket; both equal if there is none.

    lookup : Lookup.  value : uint64, the minimizer's hash.
    """
    bucket = value >> U(lookup.rest_bits)
    begin, end = np.int64(lookup.starts[bucket]), np.int64(lookup.starts[bucket + U(1)])
    shift = U(lookup.place_bits)
    rest = value & ((U(1) << U(lookup.rest_bits)) - U(1))
    stop = end
    while end - begin > 8:
        middle = (begin + end) // 2
        if lookup.words[middle] >> shift < rest:
            begin = middle + 1
        else:
            end = middle
    while begin < end and lookup.words[begin] >> shift < rest:
        begin += 1
    if begin < stop and lookup.words[begin] >> shift == rest:
        return begin, stop
    return begin, begin
