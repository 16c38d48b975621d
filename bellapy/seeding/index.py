"""The index of a reference: its bases, and where each of its minimizers stands.

A minimizer is one word, [ rest of the hash | place | strand ], in a sorted array; the first bits of the hash choose a
bucket, whose words stand between starts[b] and starts[b + 1].  That is 8 bytes and a part of 4 for each minimizer.  The file
is these arrays as they are, so that it can be used from disk without being read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.memory import let_go_of_pages
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.errors import ParameterError
from bellapy.records import ReadSet
from bellapy.seeding.kmer_groups import insertion_sort
from bellapy.seeding.minimizers import MAX_WINDOW, find_minimizers, make_room

MAX_K = 28
REPEATED_SHARE = 2e-4  # of different minimizers, the most frequent, are left out of the lookup
LEAST_CUTOFF = 50  # copies that are always looked up: fewer lead to the wrong copy of a repeat
MOST_COUNTED = (1 << 16) - 1  # copies
CHUNK = 1 << 17  # bases whose minimizers a thread finds at a time
AT_ONCE = 32  # chunks whose minimizers are held at a time, for each two threads
SHARE_BITS = 8  # of hashes: minimizers are counted and written by threads that take shares of them
FEW = 24  # words of a bucket that are sorted by insertion
RANGES = 4  # ranges of buckets for each thread, which takes the next one when it is done

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


def build_index(
    reference: ReadSet, k: int, window: int, threads: int = 1, store: Callable[[int], tuple[np.ndarray, int]] | None = None
) -> Index:
    """The index of all sequences of a reference.

    store : gives (n,) uint64 for the words, mapped from a file, and how many of them may be in memory at a time; the fewer,
        the more often all minimizers are found.  None: the words are in memory.

    Raises
    ------
    ParameterError : k or window out of range.
    """
    check_kmers(k, window)
    codes = reference.codes
    chunks = _Chunks(codes, k, window, threads)
    starts = _bucket_ends(chunks, len(codes))
    place_bits, rest_bits = word_bits(k, len(codes), len(starts) - 1)
    n, n_buckets, copies = int(starts[-1]), len(starts) - 1, np.zeros(MOST_COUNTED + 1, np.int64)
    words, at_once = (np.empty(n, np.uint64), n) if store is None else store(n)
    for shares, first, stop in chunks.groups(n_buckets, -(-n // max(1, at_once))):
        end, following = starts[stop - 1], starts[stop]
        chunks.share_out(lambda *some: _fill(*some, words, starts, rest_bits, place_bits), n_buckets, shares)
        starts[stop] = end  # until the next group is filled, this is the end of its own free room
        ranges = [(first + a, first + b) for a, b in even_ranges(stop - first, RANGES * threads)]
        map_threads(lambda some: _sort_buckets(words, starts, *some), ranges, threads)
        copies += sum(map_threads(lambda some: _copies(words, starts, place_bits, *some), ranges, threads))
        starts[stop] = following
        let_go_of_pages(words)
    return index_of(reference, k, window, Lookup(words, starts, place_bits, rest_bits, cutoff_for(copies)))


def check_kmers(k: int, window: int) -> None:
    """Raise ParameterError for a k or a window out of range."""
    if not 4 <= k <= MAX_K or not 1 <= window <= MAX_WINDOW:
        raise ParameterError(f"-k {k}, -w {window}: k must be from 4 to {MAX_K}, the window from 1 to {MAX_WINDOW}")


def word_bits(k: int, n_codes: int, n_buckets: int) -> tuple[int, int]:
    """Bits of place and strand in a word, and of the hash; ParameterError if a word does not hold them."""
    place_bits, rest_bits = int(n_codes).bit_length() + 1, 2 * k - (n_buckets.bit_length() - 1)
    if rest_bits + place_bits > 64:
        raise ParameterError(f"-k {k}: too large for a reference of {n_codes} bases; take a smaller k")
    return place_bits, rest_bits


def index_of(reference: ReadSet, k: int, window: int, lookup: Lookup) -> Index:
    """The index of a reference, whose lookup is done; it is read-only from now on."""
    for array in (lookup.words, lookup.starts):
        array.flags.writeable = False
    return Index(reference.names, reference.codes, reference.starts, reference.lengths, k, window, lookup)


class Dealt(NamedTuple):
    """Minimizers of some chunks, each chunk's in the order of the shares that their hashes belong to.

    hashes, marks : (n,) uint64 and int64, as of `find_minimizers`; all places are in the reference's codes.
    """

    hashes: np.ndarray
    marks: np.ndarray


class _Chunks:
    """The minimizers of a reference, found chunk by chunk and dealt to shares, ranges of hashes.

    Threads that each take a share do not get into each other's way, and what they write lies close together.
    """

    def __init__(self, codes: np.ndarray, k: int, window: int, threads: int):
        self._codes, self.k, self.window, self._threads = codes, k, window, threads
        self.n_shares = 1 << min(SHARE_BITS, 2 * k)
        self._shift = max(0, 2 * k - SHARE_BITS)  # bits of a hash below those of its share
        self._step = AT_ONCE * CHUNK * max(1, threads // 2)

    def groups(self, n_buckets: int, n_groups: int) -> Iterator[tuple[range, int, int]]:
        """Shares that are filled together, and the first of their buckets and the one after the last."""
        if n_buckets < self.n_shares:  # some have a bucket in common
            yield range(self.n_shares), 0, n_buckets
            return
        for first, stop in even_ranges(self.n_shares, n_groups):
            yield range(first, stop), first * n_buckets // self.n_shares, stop * n_buckets // self.n_shares

    def share_out(
        self, use: Callable[[Dealt, np.ndarray, np.ndarray], object], n_buckets: int, shares: range | None = None
    ) -> None:
        """Call `use` with some minimizers, and where those of one share begin and end there, (n_chunks,) int64 both.

        Different shares are used at the same time, unless they have a bucket in common.  shares : None: all.
        """
        shares = range(self.n_shares) if shares is None else shares
        for dealt, edges in self._all():

            def use_share(share: int, dealt=dealt, edges=edges) -> None:
                use(dealt, *np.ascontiguousarray(edges.T[share : share + 2]))

            map_threads(use_share, shares, self._threads if n_buckets >= self.n_shares else 1)

    def _all(self) -> Iterator[tuple[Dealt, np.ndarray]]:
        """Minimizers of some chunks at a time, and where each share of each chunk begins."""
        last = -1
        for begin in range(0, len(self._codes), self._step):
            chunks = range(begin, min(len(self._codes), begin + self._step), CHUNK)
            found = map_threads(lambda at: _of_chunk(self._codes, at, self.k, self.window), chunks, self._threads)
            mine = []
            for hashes, marks in found:
                again = int(len(marks) > 0 and marks[0] == last)  # the last one before counts in its first windows, too
                last = marks[-1] if len(marks) else last
                mine.append((hashes[again:], marks[again:]))
            yield self._deal(mine)
            let_go_of_pages(self._codes)

    def _deal(self, found: list[tuple[np.ndarray, np.ndarray]]) -> tuple[Dealt, np.ndarray]:
        """Some chunks' hashes and marks, dealt to shares, and where each begins, (n_chunks, n_shares + 1) int64."""
        ends = np.cumsum([0] + [len(hashes) for hashes, _ in found])
        dealt = Dealt(np.empty(ends[-1], np.uint64), np.empty(ends[-1], np.int64))
        edges = np.zeros((len(found), self.n_shares + 1), np.int64)

        def deal(chunk: int) -> None:
            _deal_chunk(*found[chunk], self._shift, dealt, ends[chunk], edges[chunk])

        map_threads(deal, range(len(found)), self._threads)
        return dealt, edges


def _bucket_ends(chunks: _Chunks, n_codes: int) -> np.ndarray:
    """Where each bucket ends among the words of all, (n_buckets + 1,); the last value is the number of words.

    As many buckets as could be needed are counted, and joined then.
    """
    most = most_buckets(chunks.k, chunks.window, n_codes)
    counts = np.zeros(most, np.uint32)
    shift = 2 * chunks.k - (most.bit_length() - 1)
    chunks.share_out(lambda some, begins, ends: _count(some.hashes, begins, ends, counts, shift), most)
    n = int(counts.sum(dtype=np.int64))
    while len(counts) > buckets_for(n, most):
        counts = counts[::2] + counts[1::2]
    ends = np.empty(len(counts) + 1, np.uint32 if n < 1 << 32 else np.uint64)
    np.cumsum(counts, out=ends[:-1])
    ends[-1] = n
    return ends


def most_buckets(k: int, window: int, n_codes: int) -> int:
    """The number of buckets that a reference of so many bases could need."""
    most_words = 2 * (2 * n_codes // (window + 1) + 1)
    return 1 << min(2 * k, max(1, most_words.bit_length() - 2))


def buckets_for(n_words: int, most: int) -> int:
    """The number of buckets: with 2 to 4 words each, but not more than `most`."""
    return min(most, 1 << max(1, n_words.bit_length() - 2))


@njit
def _of_chunk(codes, begin, k, window):
    """Hashes and marks, (n,) uint64 and int64, of the minimizers of the windows that begin in codes[begin : begin + CHUNK].

    codes : (any,) uint8; all places are in it.
    """
    end = min(len(codes), begin + CHUNK + k + window - 2)
    hashes, marks = np.empty(end - begin, np.uint64), np.empty(end - begin, np.int64)
    n = find_minimizers(codes, begin, end, k, window, hashes, marks, make_room())
    return hashes[:n].copy(), marks[:n] + 2 * begin


@njit
def _deal_chunk(hashes, marks, shift, dealt, at, edges):
    """Write the minimizers of a chunk, share by share, to `dealt` (Dealt) from `at` on.

    hashes, marks : (n,) uint64 and int64, of `_of_chunk`.  shift : bits of a hash below those of its share.
    edges : (n_shares + 1,) int64, zeros; filled with where each share begins.
    """
    for value in hashes:
        edges[np.int64(value >> U(shift)) + 1] += 1
    edges[0] = at
    for share in range(1, len(edges)):
        edges[share] += edges[share - 1]
    free = edges.copy()
    for x in range(len(hashes)):
        share = np.int64(hashes[x] >> U(shift))
        dealt.hashes[free[share]], dealt.marks[free[share]] = hashes[x], marks[x]
        free[share] += 1


@njit
def _count(hashes, begins, ends, counts, shift):
    """Count some minimizers by the first bits of their hashes, (n,) uint64.

    begins, ends : (n_chunks,) int64, those of `hashes` to count.  counts : (n_buckets,) uint32, to which they are added.
    shift : bits of a hash below those.
    """
    for chunk in range(len(begins)):
        for x in range(begins[chunk], ends[chunk]):
            counts[hashes[x] >> U(shift)] += np.uint32(1)


@njit
def _fill(some, begins, ends, words, starts, rest_bits, place_bits):
    """Write the words of some minimizers to their buckets, in no order.

    some : Dealt.  begins, ends : (n_chunks,) int64, which ones.  words : (n_words,) uint64, filled.
    starts : as in Lookup, ends of what is free in buckets, which become their starts.  rest_bits, place_bits : as in Lookup.
    """
    mask = (U(1) << U(rest_bits)) - U(1)
    for chunk in range(len(begins)):
        for x in range(begins[chunk], ends[chunk]):
            bucket = some.hashes[x] >> U(rest_bits)
            starts[bucket] -= np.uint32(1)
            words[starts[bucket]] = (some.hashes[x] & mask) << U(place_bits) | U(some.marks[x])


@njit
def _sort_buckets(words, starts, first, stop):
    """Sort words, (n,) uint64, within each of the buckets from `first` to `stop`; starts : as in Lookup."""
    for b in range(first, stop):
        begin, end = np.int64(starts[b]), np.int64(starts[b + 1])
        if end - begin > FEW:
            words[begin:end].sort()
        else:
            insertion_sort(words, begin, end)


@njit
def _copies(words, starts, place_bits, first, stop):
    """How many different minimizers occur so often, (MOST_COUNTED + 1,) int64; the last one counts those with more, too.

    words, starts, place_bits : as in Lookup.  first, stop : the buckets to look at.
    """
    histogram, shift = np.zeros(MOST_COUNTED + 1, np.int64), U(place_bits)
    for b in range(first, stop):
        copies = 0
        for x in range(starts[b], starts[b + 1]):
            if copies > 0 and words[x] >> shift != words[x - 1] >> shift:
                histogram[min(copies, MOST_COUNTED)] += 1
                copies = 0
            copies += 1
        if copies > 0:
            histogram[min(copies, MOST_COUNTED)] += 1
    return histogram


def cutoff_for(histogram: np.ndarray) -> int:
    """Copies beyond which a minimizer counts as repeated, as minimap2 chooses it.  histogram : of `_copies`."""
    different = int(histogram.sum())
    rank = different - 1 - int(different * REPEATED_SHARE)
    return max(LEAST_CUTOFF, int(np.searchsorted(np.cumsum(histogram), rank, side="right")) if different else 0)


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
