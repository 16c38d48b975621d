"""Stage 2: reads -> the k-mers that are neither errors nor repeats, with all their places.

Every k-mer occurrence is one 64-bit word, so that sorting moves no payload beside the key:

    [ hash of the k-mer, without the bits that name its partition | place | reverse ]

`place` is the k-mer's start in `ReadSet.codes`, `reverse` is 1 where the canonical form is the reverse complement.  The
hash is a bijection (multiplication by an odd number modulo 4^k), so partition and remaining bits are the k-mer.  Words are
scattered into partitions that fit the cache, and kmer_groups.py makes entries of the matrix (records/kmers.py) of each.
Partitions are worked on in a few passes over the reads, which bounds memory.  With no limit there are about MOST_PASSES at
any size, so the time grows as the reads do.  Every step writes to places that its thread owns, in an order that the number
of threads does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_vector_entry, prefetch
from bellapy.compute.mapped import let_go, pieces_of
from bellapy.compute.memory import UNLIMITED, Budget
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.records.kmers import entry_type
from bellapy.seeding.kmer_groups import group_partitions
from bellapy.seeding.kmer_hashes import STRETCH, hash_stretch, make_stretch
from bellapy.seeding.sampling import multiplier_of

U = np.uint64
U0, U1 = U(0), U(1)  # uint64 with a bare int is int64 or float64 in Numba

PARTITION_WORDS = 1 << 17  # 1 MB
LEAST_PASSES = 2  # memory that is touched for the first time costs more than a second pass
PASS_WORDS = 1 << 25  # 256 MB, the most; more where there would be more passes than MOST_PASSES
MOST_PASSES = 8  # then the words of a pass take a byte for each base of the reads
WORD_BYTES = 8
SCRATCH_WORDS = 3  # of a thread, for each word of the largest partition
PASS_PARTITIONS = 1024  # streams written at once
MOST_PARTITION_BITS = 13  # MOST_PASSES times PASS_PARTITIONS
STREAM_AHEAD = 24  # words of a partition that are asked for before they are written
NO_MASK = np.zeros(0, np.uint8)


class Layout(NamedTuple):
    """How a k-mer occurrence is laid out in a word, and how k-mers are spread over partitions."""

    k: int
    multiplier: np.uint64  # of the hash
    partition_bits: int
    dropped_bits: int  # low bits of the hash that do not fit the word; k-mers are then compared in the reads
    hash_bits: int  # bits of the hash in the word
    place_bits: int


def make_layout(k: int, n_places: int) -> Layout:
    """Partitions of about PARTITION_WORDS words for `n_places` k-mer occurrences, of more where these are very many."""
    place_bits = max(1, int(n_places).bit_length())
    partition_bits = min(2 * k, MOST_PARTITION_BITS, max(2, (n_places // PARTITION_WORDS).bit_length()))
    hash_bits = min(2 * k - partition_bits, 63 - place_bits)
    multiplier = multiplier_of(k)
    return Layout(k, multiplier, partition_bits, 2 * k - partition_bits - hash_bits, hash_bits, place_bits)


@njit_vector_entry
def count_partitions(codes, mask, begin, end, layout, sizes, stretch):
    """Add the k-mers that start in [begin, end) of `codes` to sizes[partition]; partitions past its end are left out.

    Parameters
    ----------
    codes : (n,) uint8.
    mask : (n,) uint8, 1 where a k-mer may start, or empty: everywhere.
    layout : Layout.
    stretch : Stretch, overwritten.
    """
    to_partition, last = U(2 * layout.k - layout.partition_bits), U(sizes.size)
    stop = min(end, codes.size - layout.k + 1)
    for at in range(begin, stop, STRETCH):
        hash_stretch(codes, at, layout, stretch)
        for x in range(U(min(STRETCH, stop - at))):
            part = stretch.hashes[x] >> to_partition
            if part < last and (mask.size == 0 or mask[U(at) + x]):
                sizes[part] += 1


@njit_vector_entry
def scatter(codes, mask, begin, end, layout, first, at, out, stretch):
    """Send every k-mer that count_partitions counts to its partition, if that is one of first .. first + len(at) - 1.

    Parameters
    ----------
    codes, mask, begin, end, layout, stretch : as in count_partitions.
    at : int64, next free slot of each partition in `out`; advanced.
    out : uint64 words.
    """
    to_partition = U(2 * layout.k - layout.partition_bits)
    low, width = U(first) << to_partition, U(at.size) << to_partition
    rest, dropped, to_hash = (U1 << to_partition) - U1, U(layout.dropped_bits), U(layout.place_bits + 1)
    hashes, marks = stretch.hashes, stretch.marks
    stop = min(end, codes.size - layout.k + 1)
    for begins in range(begin, stop, STRETCH):
        hash_stretch(codes, begins, layout, stretch)
        n = U0
        for x in range(U(min(STRETCH, stop - begins))):
            h, mark = hashes[x] - low, marks[x]  # unsigned: one comparison tests both ends
            hashes[n], marks[n] = h, mark  # without a branch: one mispredicted costs more than ten k-mers
            keep = h < width
            if mask.size and keep:
                keep = mask[mark >> U1] != 0
            n += U(keep)
        for x in range(n):
            h = hashes[x]
            p = h >> to_partition
            slot = at[p]
            prefetch(out, slot + STREAM_AHEAD)
            out[slot] = (((h & rest) >> dropped) << to_hash) | marks[x]
            at[p] = slot + 1


@njit
def _append_entries(words, begin, n, entries, at):
    """Copy n words from words[begin] on to entries[at] on, which may be the same memory further to the front."""
    for i in range(n):
        entries[at + i] = words[begin + i]


@dataclass(frozen=True)
class KmerCounts:
    """The kept k-mers.

    entries : (n,) as in `KmerMatrix`; or Held.
    n_kmers : number of different ones.
    spectrum : (n,) int64, number of distinct k-mers by number of occurrences; 0 for 0 and 1: singletons are not seen.
    """

    entries: Any
    n_kmers: int
    spectrum: np.ndarray


SPECTRUM_SIZE = 10_001


class Known(NamedTuple):
    """The k-mers of the first so many partitions, counted before: with the same k and bounds, no mask and no other share.

    counts : is used up.  For counting without a bound on memory: what a pass may need is judged by the passes before.
    """

    n_partitions: int
    counts: KmerCounts


class Share(NamedTuple):
    """The part-th of n_parts parts of all k-mers; the entries of all parts, end to end, are those of the whole.

    sizes : (n_ranges, n_partitions) int64, as `size_partitions` gives it for the whole, so that it is not done again.
    known : what of the only part is known already.
    """

    part: int
    n_parts: int
    sizes: np.ndarray
    known: Known | None = None


def size_partitions(
    codes: np.ndarray, k: int, *, keep_one_in: int = 1, mask: np.ndarray = NO_MASK, n_ranges: int = 1, threads: int = 1
) -> np.ndarray:
    """How many k-mers of each partition start in each of some even ranges of the codes, (n_ranges, n_partitions) int64.

    Parameters
    ----------
    codes, k, keep_one_in, mask : as in `count_kmers`.
    """
    layout = make_layout(k, codes.size)
    used = max(1, (1 << layout.partition_bits) // keep_one_in)
    ranges = even_ranges(codes.size, max(n_ranges, pieces_of(codes)))

    def count_range(bounds: tuple[int, int]) -> np.ndarray:
        sizes = np.zeros(used, np.int64)
        count_partitions(codes, mask, *bounds, layout, sizes, make_stretch())
        let_go(codes)
        return sizes

    return np.array(map_threads(count_range, ranges, threads)).reshape(len(ranges), used)


def count_kmers(
    codes: np.ndarray,
    k: int,
    lower: int,
    upper: int,
    *,
    keep_one_in: int = 1,
    mask: np.ndarray = NO_MASK,
    share: Share | None = None,
    threads: int = 1,
    pass_words: int | None = None,
    budget: Budget = UNLIMITED,
) -> KmerCounts:
    """Count canonical k-mers and keep those that occur `lower` to `upper` times, with their places.

    Parameters
    ----------
    codes : (n,) uint8 as in `ReadSet.codes`; a k-mer with a code above 3 is none.
    k : 1 to 31.
    keep_one_in : count only this share of all possible k-mers, the same ones in every read, chosen by hash.
    mask : (n,) uint8, 1 where a k-mer may start; empty: everywhere.
    share : the part of the k-mers that is counted; None: all of them.
    pass_words : k-mer occurrences held at a time, in words of 8 bytes; does not change the result.  Unless given it
        follows from `usual_pass`.
    budget : may make passes smaller.

    Raises
    ------
    MemoryLimitError : `budget` has no room for a partition and what was kept of those before.
    """
    layout = make_layout(k, codes.size)
    counted = _Counted(codes, mask, layout, lower, upper)
    limited = budget.limit is not None  # then there are fewer shares, since each takes memory of its own
    n_groups = (4 if limited else 8) * threads
    if share is None:
        n_ranges = usual_ranges(threads, limited)
        whole = size_partitions(codes, k, keep_one_in=keep_one_in, mask=mask, n_ranges=n_ranges, threads=threads)
        share = Share(0, 1, whole)
    ranges, used = even_ranges(codes.size, len(share.sizes)), share.sizes.shape[1]
    least, used = used * share.part // share.n_parts, used * (share.part + 1) // share.n_parts
    known = KmerCounts(np.empty(0, entry_type(codes.size)), 0, np.zeros(SPECTRUM_SIZE, np.int64))
    if share.known and share.known.n_partitions <= used:
        least, known = share.known
    if least == used:
        return known
    histogram = share.sizes[:, :used].copy()
    histogram[:, :least] = 0
    sizes = histogram.sum(axis=0)
    scratch = SCRATCH_WORDS * threads * int(sizes.max(initial=0))
    pass_words = pass_words or usual_pass(sizes, share.n_parts)
    # One buffer holds the entries kept so far, and behind them the words of a pass.  With no limit it has room for all that
    # may be kept: what is never touched takes no memory, and all threads touch it first.  Under a limit it grows in place:
    # the system moves pages, not their contents.  (NumPy marks the pages of what it makes large; then it cannot.)
    buffer, dtype, n_entries, n_kmers = np.empty(0, np.uint64), known.entries.dtype, len(known.entries), known.n_kmers
    spectrum = known.spectrum
    words = entries = np.empty(0, np.uint64)
    group: Callable | None = None
    first = least
    while first < used:
        n_kept = _words_of(n_entries, dtype)
        to_come = int(n_kept * (sizes[first:].sum() / max(1, sizes[:first].sum())))  # partitions are alike
        room = budget.items(
            "counting k-mers", WORD_BYTES, least=int(sizes[first]) + scratch + to_come, most=pass_words + scratch,
            reused=buffer.nbytes - n_kept * WORD_BYTES,
        )  # fmt: skip
        last = _end_of_pass(sizes, first, room - scratch)
        n_words = n_kept + int(sizes[first:last].sum())
        if first == least and (budget.limit is None or last == used):
            buffer = np.empty(n_words + _words_of(int(sizes[last:].sum()), dtype), np.uint64)
        elif n_words > len(buffer):
            buffer.resize(n_words, refcheck=False)
        words, entries = buffer[n_kept:n_words], buffer.view(dtype)
        if first == least:
            entries[:n_entries] = known.entries
        _scatter_pass(counted, ranges, histogram[:, first:last], first, words, threads)
        bounds = np.concatenate(([0], np.cumsum(sizes[first:last])))
        group = partial(_group_range, counted, words, bounds)
        for begin, n, its_kmers, its_spectrum in map_threads(group, even_ranges(last - first, n_groups), threads):
            _append_entries(words, begin, n, entries, n_entries)
            n_entries, n_kmers = n_entries + n, n_kmers + its_kmers
            spectrum += its_spectrum
        first = last
    del words, entries, group  # nothing may look into what is about to move
    buffer.resize(_words_of(n_entries, dtype), refcheck=False)
    spectrum[:2] = 0  # what singletons slip through depends on how partitions are shared out
    return KmerCounts(buffer.view(dtype)[:n_entries], n_kmers, spectrum)


def usual_ranges(threads: int, limited: bool) -> int:
    """Number of ranges that the codes are scanned in; fewer where memory is limited, since each has sizes of its own."""
    return threads if limited or threads == 1 else 4 * threads


def usual_pass(sizes: np.ndarray, n_parts: int) -> int:
    """Words of a pass over partitions of these sizes, (n,) int64, of one of `n_parts` parts of all k-mers.

    There are LEAST_PASSES, more where a pass would exceed PASS_WORDS, and at most MOST_PASSES, those of all parts together.
    """
    few, most = (words_of_passes(sizes, max(1, n // n_parts)) for n in (LEAST_PASSES, MOST_PASSES))
    return max(min(PASS_WORDS, few), most)


def words_of_passes(sizes: np.ndarray, n_passes: int = MOST_PASSES) -> int:
    """Words for each of so many passes over partitions of these sizes, (n,) int64: a pass holds whole partitions."""
    return -(-int(sizes.sum()) // n_passes) + int(sizes.max(initial=0))


def _words_of(n_entries: int, dtype: type) -> int:
    """Number of words that hold so many entries."""
    return -(-n_entries * np.dtype(dtype).itemsize // WORD_BYTES)


class _Counted(NamedTuple):
    """What is counted: the arguments of `count_kmers`, and the layout of words."""

    codes: np.ndarray
    mask: np.ndarray
    layout: Layout
    lower: int
    upper: int


def _scatter_pass(
    counted: _Counted, ranges: Sequence[tuple[int, int]], sizes: np.ndarray, first: int, words: np.ndarray, threads: int
) -> None:
    """Fill `words` with the k-mers of some partitions, those from `first` on.

    sizes : (n_ranges, n_partitions) int64, how many of each partition start in each range.
    """
    bounds = np.concatenate(([0], np.cumsum(sizes.sum(axis=0))))
    begins = bounds[:-1] + np.cumsum(sizes, axis=0) - sizes  # after those of the same partition by the threads before
    codes, mask, layout, *_ = counted

    def scatter_range(task):
        piece, at = task
        scatter(codes, mask, *piece, layout, first, at, words, make_stretch())
        let_go(codes)

    map_threads(scatter_range, zip(ranges, begins, strict=True), threads)


def _group_range(
    counted: _Counted, words: np.ndarray, bounds: np.ndarray, piece: tuple[int, int]
) -> tuple[int, int, int, np.ndarray]:
    """Begin and number of the entries, k-mers and spectrum of the partitions piece[0] to piece[1] - 1."""
    codes, _, layout, lower, upper = counted
    mine = bounds[piece[0] : piece[1] + 1]
    spectrum = np.zeros(SPECTRUM_SIZE, np.int64)
    n_entries, n_kmers = group_partitions(words, mine, codes, layout, lower, upper, spectrum)
    return int(mine[0]), n_entries, n_kmers, spectrum


def _end_of_pass(sizes: np.ndarray, first: int, pass_words: int) -> int:
    """End of the partitions from `first` on that hold at most `pass_words` words (or of `first` itself)."""
    fit = int(np.searchsorted(np.cumsum(sizes[first : first + PASS_PARTITIONS]), pass_words, side="right"))
    return first + max(1, fit)
