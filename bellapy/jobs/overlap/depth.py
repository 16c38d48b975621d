"""Depth and the share of correct k-mers, measured: how many other reads cover the middle of a read, and show its k-mers.

The spectrum of k-mers tells depth only through k-mers that occur often.  In large and noisy sets few of these are of single
copies: most are repeats, errors that repeat, and chance.  Overlaps are not mistaken for any of these.

1. Pieces are taken from the middle of the first reads, which in canonical order (canonical.py) are a random sample.
2. Every read is searched for the k-mers of the pieces.  It covers a piece's middle if MIN_HITS of them, at least k apart,
   lie within one band of diagonals, and on both sides of it.  They end short of the overlap, by their mean distance.
   Where other bands have hits too, more are asked for: this is the term for chance.  They have to span most of what read and
   piece have in common along this diagonal, and to be LEAST_SHARE of what is usual: repeats end before, or differ.
3. Depth is the mean number over the pieces, without those that are far from most: repeats and deep molecules.
4. A piece's k-mer is found in a read that covers it if it is correct in both.  The median over pieces tells how many are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner, njit_vector_entry, prefetch, put
from bellapy.compute.mapped import let_go
from bellapy.compute.sorting import sort_few
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.records import ReadSet
from bellapy.seeding.kmer_hashes import STRETCH, hash_stretch, make_stretch
from bellapy.seeding.sampling import multiplier_of

U = np.uint64
U0, U1, U6, U63 = (U(x) for x in (0, 1, 6, 63))
PIECE, BAND = 6_000, 300  # bases, diagonals
MIN_HITS, SPREADS = 3, 4.0  # hits have to be so many, and exceed what chance gives by so many times its spread
MOST_PIECES = 16  # of one k-mer
LEAST_KEPT = 0.5  # share of a piece's k-mers
SPANNED = 1 / 2  # of what a read and a piece have in common
EVENTS = 1 << 10
MARK_BITS, HEAD_BITS = 23, 18  # 1 MB of bits that most k-mers of the reads stop at, 1 MB of heads
DEPTH_BYTES = 32 << 20  # of the pieces' k-mers, while they are sorted
AHEAD = 12  # k-mers: so early the table's lines are asked for
ITEM_BITS = 20  # of an item of Table
POS_BITS, DIAGONAL_BITS = U(13), U(33)  # of a hit: PIECE fits, and the sum of two positions
N_PIECES, LEAST_PIECES = 64, 16
NEAR, CLOSE, MORE = 2.0, 1.4, 1.25  # counts up to a factor are near each other, or close; times as many that are close
SPREAD, LEAST_SPREAD = 2.0, 1 / 3  # they are as far from their median as Poisson's spread allows, or uneven sequencing
LEAST_SHARE = 0.05  # of the k-mers that a piece usually shares with a read that covers it
TELLING = 3  # reads that share most with a piece: the last of them tells what is usual
RANGES, FEW_THREADS = 64, 8  # of reads, for each thread; threads that are enough where the k-mers are found already
ALL_READS = slice(None)


class Table(NamedTuple):
    """The k-mers of the pieces, by hash.

    k, multiplier : of the hash, the canonical k-mer times the multiplier modulo 4^k.
    bits : hashes with more than so many bits are left out.
    marks : (n,) uint64, a bit for each prefix of a hash: whether there is one.
    heads : (n + 1,) int32, by prefix: where its hashes begin.  hashes : (m,) uint64, ascending.
    items : (m,) uint64, piece << 14 | position in it << 1 | 1 where it shows the reverse complement.
    """

    k: int
    multiplier: np.uint64
    bits: int
    marks: np.ndarray
    heads: np.ndarray
    hashes: np.ndarray
    items: np.ndarray


Finder = Callable[[Table], np.ndarray | None]


@njit_vector_entry
def find_kmers(codes, begin, end, table, hashes, places, stretch):
    """Write hash, and place << 1 | reverse, of the k-mers in codes[begin:end] that the marks let pass; return their number.

    codes : (n,) uint8, as in ReadSet.  table : Table.  hashes, places : (end - begin + 1 or more,) uint64, filled.
    stretch : Stretch, overwritten.
    """
    limit, to_mark, n, stop = U1 << U(table.bits), U(max(0, table.bits - MARK_BITS)), U0, end - table.k + 1
    for at in range(begin, stop, STRETCH):
        hash_stretch(codes, at, table, stretch)
        for x in range(U(min(STRETCH, stop - at))):
            h = stretch.hashes[x]
            hashes[n], places[n] = h, stretch.marks[x]
            prefix = min(h, limit - U1) >> to_mark
            marked = (table.marks[prefix >> U6] >> (prefix & U63)) & U1
            n += U(h < limit) & marked  # without a branch, as in seeding/kmers.py
    return n


@njit_inner
def _join_hits(found, n, start, table, hits, sizes):
    """Write what k-mers of a read share with the pieces: [piece | opposite strand | diagonal | position in the piece].

    found : (2, n or more) uint64, of find_kmers, n of the read.  start : where the read begins.  table : Table.
    hits : (MOST_PIECES times as many,) uint64.  sizes : (any,) int64, filled: hits of each piece and strand.
    Return the number of hits.
    """
    n_hits, to_head, bias = 0, U(max(0, table.bits - HEAD_BITS)), U(PIECE)
    sizes[:] = 0
    for x in range(n):
        prefetch(table.heads, found[0, min(x + 2 * AHEAD, n - 1)] >> to_head)
        coming = table.heads[found[0, min(x + AHEAD, n - 1)] >> to_head]
        prefetch(table.hashes, coming)
        prefetch(table.items, coming)
        h = found[0, x]
        at, end = table.heads[h >> to_head], table.heads[(h >> to_head) + U1]
        while at < end and table.hashes[at] < h:
            at += 1
        while at < end and table.hashes[at] == h:
            item = table.items[at]
            position, target = (item >> U1) & U(0x1FFF), (found[1, x] >> U1) - U(start)
            opposite = (item ^ found[1, x]) & U1
            diagonal = target + (position if opposite else bias - position)
            strand = ((item >> U(14)) << U1) | opposite
            hits[n_hits] = (((strand << DIAGONAL_BITS) | diagonal) << POS_BITS) | position
            sizes[strand] += 1
            n_hits += 1
            at += 1
    return n_hits


@njit_inner
def _group(hits, n_hits, sizes, grouped):
    """Copy hits[:n_hits] to `grouped`, by piece and strand; sizes : of _join_hits, becomes where each group ends."""
    begin = 0
    for s in range(sizes.size):
        begin, sizes[s] = begin + sizes[s], begin
    for i in range(n_hits):
        strand = hits[i] >> (POS_BITS + DIAGONAL_BITS)
        grouped[sizes[strand]] = hits[i]
        sizes[strand] += 1


@njit_inner
def _overlap(hit, opposite, length, k, size):
    """Where a piece of `size` bases overlaps a read of `length` bases, by the diagonal of a hit: begin and end."""
    diagonal = np.int64((hit >> POS_BITS) & ((U1 << DIAGONAL_BITS) - U1))
    first = diagonal + k - length if opposite else PIECE - diagonal
    return max(first, 0), min(first + length, size)


@njit_inner
def _covers(hits, positions, opposite, length, k, piece):
    """The k-mers and the bases that a read shares with a piece; 0 where `hits` do not speak for an overlap over its middle.

    hits : (any,) uint64, sorted, of one piece and strand.  positions : (hits or more,) uint64, overwritten.
    opposite : whether the read shows the reverse complement.  length : of the read.  piece : its middle and its size.
    """
    middle, size = piece
    begin, best, best_begin = 0, np.int64(0), 0
    for i in range(hits.size):
        while (hits[i] >> POS_BITS) - (hits[begin] >> POS_BITS) > U(BAND):
            begin += 1
        if i + 1 - begin > best:
            best, best_begin = i + 1 - begin, begin
    chance = (hits.size - best) * BAND / (length + PIECE)  # hits of a band, as many as there are elsewhere
    enough = MIN_HITS + chance + SPREADS * math.sqrt(chance)
    if best < enough:
        return 0, 0
    for i in range(best):
        positions[i] = hits[best_begin + i] & U(0x1FFF)
    sort_few(positions, best)
    n, before = 0, np.int64(-k)
    for i in range(best):
        if np.int64(positions[i]) - before >= k:
            before = np.int64(positions[i])
            n += 1
    if n < enough:
        return 0, 0
    low, high = np.int64(positions[0]), np.int64(positions[best - 1]) + k
    beyond = (high - low) // (n - 1)
    first, last = _overlap(hits[best_begin + best // 2], opposite, length, k, size)
    if not (low - beyond <= middle < high + beyond and high - low + 2 * beyond >= SPANNED * (last - first)):
        return 0, 0
    return best - np.int64(np.rint(chance)), max(last - first, 1)


class Pieces(NamedTuple):
    """The pieces: (n_pieces,) int64, the read of each, its middle, its size, and how many k-mers the table has of it."""

    own: np.ndarray
    middles: np.ndarray
    sizes: np.ndarray
    kept: np.ndarray


@njit_inner
def _see_read(found, n, read, table, pieces, scratch, seen, n_seen):
    """Write each piece whose middle a read covers, and the k-mers and the bases that the two share; return the end in seen.

    found : (2, n or more) uint64, k-mers of the read.
    read : its id, where it begins, its length.  table : Table.  pieces : Pieces.
    seen : (n_seen + 3 n_pieces or more,) int64, n_seen of them written.
    scratch : hits and grouped, (MOST_PIECES times the k-mers,) uint64, and ends, (2 n_pieces,) int64; overwritten.
    """
    (r, start, length), (hits, grouped, ends) = read, scratch
    n_hits = _join_hits(found, n, start, table, hits, ends)
    _group(hits, n_hits, ends, grouped)
    first, before = 0, -1
    for strand in range(ends.size):
        last, p = ends[strand], strand >> 1
        if last - first >= MIN_HITS and p != before and pieces.own[p] != r:
            group = grouped[first:last]
            sort_few(group, last - first)
            shared, bases = _covers(group, hits, strand & 1, length, table.k, (pieces.middles[p], pieces.sizes[p]))
            if bases:
                seen[n_seen], seen[n_seen + 1], seen[n_seen + 2] = p, shared, bases
                n_seen += 3
                before = p  # on either strand, once
        first = last
    return n_seen


@njit
def see_pieces(reads, begin, end, table, pieces, listed, edges, stretch):
    """What the reads [begin, end) show of the pieces, (3 n,) int64, as _see_read writes it.

    reads : codes, starts and lengths of a ReadSet.  table : Table.  pieces : Pieces.
    listed : (2, n) uint64, the k-mers of the table in all reads, hash and place << 1 | reverse, by place, if they are known.
    edges : (n_reads + 1,) int64, the first of these of each read; none: k-mers are found here.
    stretch : Stretch, overwritten.
    """
    (codes, starts, lengths), longest, n_pieces = reads, 0, pieces.own.size
    for r in range(begin, end):
        longest = max(longest, lengths[r])
    found, scratch = np.empty((2, longest + 1), np.uint64), np.empty((2, 1 << 12), np.uint64)
    ends, seen, n_seen = np.empty(2 * n_pieces, np.int64), np.empty(EVENTS, np.int64), np.int64(0)
    for r in range(begin, end):
        if edges.size:
            n = edges[r + 1] - edges[r]
            put(found[0], 0, listed[0], edges[r], edges[r + 1])
            put(found[1], 0, listed[1], edges[r], edges[r + 1])
        else:
            n = np.int64(find_kmers(codes, starts[r], starts[r] + lengths[r], table, found[0], found[1], stretch))
        if scratch.shape[1] < MOST_PIECES * n:
            scratch = np.empty((2, 2 * MOST_PIECES * n), np.uint64)
        if seen.size < n_seen + 3 * n_pieces:
            larger = np.empty(2 * (n_seen + 3 * n_pieces), np.int64)
            put(larger, 0, seen, 0, n_seen)
            seen = larger
        read = r, starts[r], lengths[r]
        n_seen = _see_read(found, n, read, table, pieces, (scratch[0], scratch[1], ends), seen, n_seen)
    return seen[:n_seen]


@njit_entry
def index_hashes(hashes, items, to_mark, to_head, kept, marks, heads):
    """Keep the k-mers that a piece shows once, and of equal ones MOST_PIECES, at the start of the columns; return how many.

    One that a piece shows twice says nothing of where a read lies, and one that many pieces show has said enough.

    hashes, items : (n,) uint64, columns of a Table, in order, overwritten.  kept : (n_pieces,) int64, added to: those
    of each piece.  marks, heads : of Table, zeros, filled.  to_mark, to_head : uint64, bits from a hash to its prefix there.
    """
    n, last = 0, len(hashes) - 1
    n_equal, before, piece_before = 0, U0, ~U0
    for i in range(len(hashes)):
        hashed, item = hashes[i], items[i]
        piece = item >> U(14)
        if hashed != before:
            n_equal, before, piece_before = 0, hashed, ~U0
        twice = piece == piece_before or (i < last and hashes[i + 1] == hashed and items[i + 1] >> U(14) == piece)
        piece_before = piece
        if twice or n_equal == MOST_PIECES:
            continue
        n_equal += 1
        kept[np.int64(piece)] += 1
        prefix = hashed >> to_mark
        marks[np.int64(prefix >> U6)] |= U1 << (prefix & U63)
        heads[np.int64(hashed >> to_head) + 1] += 1
        hashes[n], items[n] = hashed, item
        n += 1
    for prefix in range(1, len(heads)):
        heads[prefix] += heads[prefix - 1]
    return n


def make_table(reads: ReadSet, chosen: np.ndarray, k: int, one_in: int) -> tuple[Table, Pieces, np.ndarray]:
    """The k-mers of pieces from the middle of some reads; the pieces; and whether each kept enough of its k-mers.

    chosen : (n,) int64, the reads.  one_in : a power of two; k-mers are left out so that one in so many is kept.
    """
    bits = 2 * k - (one_in.bit_length() - 1)
    empty = np.empty(0, np.uint64)
    everything = Table(k, multiplier_of(k), bits, np.full(1 << MARK_BITS >> 6, ~U0), empty.astype(np.int32), empty, empty)
    begins = reads.starts[chosen] + np.maximum(0, (reads.lengths[chosen].astype(np.int64) - PIECE) // 2)
    sizes, stretch = np.minimum(reads.lengths[chosen], PIECE).astype(np.int64), make_stretch()

    def look(piece: int) -> tuple[np.ndarray, np.ndarray]:
        begin, size = int(begins[piece]), int(sizes[piece])
        found = np.empty((2, size + 1), np.uint64)
        hashes, places = found[:, : find_kmers(reads.codes, begin, begin + size, everything, *found, stretch)]
        return hashes, U(piece) << U(14) | (places - (U(begin) << U1))

    parts = [look(piece) for piece in range(len(chosen))]  # a millisecond: threads would take longer to begin
    hashes, items = (np.concatenate([part[i] for part in parts]) for i in range(2))
    least = np.maximum(MIN_HITS, LEAST_KEPT * np.array([len(part[0]) for part in parts]))
    hashes, items = _by_hash(hashes, items, bits)
    kept, marks = np.zeros(len(chosen), np.int64), np.zeros(1 << MARK_BITS >> 6, np.uint64)
    heads, to_mark, to_head = np.zeros((1 << HEAD_BITS) + 1, np.int32), *(max(0, bits - n) for n in (MARK_BITS, HEAD_BITS))
    n_kept = index_hashes(hashes, items, U(to_mark), U(to_head), kept, marks, heads)
    table = everything._replace(marks=marks, heads=heads, hashes=hashes[:n_kept], items=items[:n_kept])
    return table, Pieces(chosen, sizes // 2, sizes, kept), kept >= least


def _by_hash(hashes: np.ndarray, items: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Both columns of a Table by hash and item, (n,) uint64 each; bits : of a hash."""
    if bits + ITEM_BITS > 64:
        order = np.lexsort((items, hashes))
        return hashes[order], items[order]
    words = np.sort(hashes << U(ITEM_BITS) | items)  # much faster than to sort by two columns
    return words >> U(ITEM_BITS), words & U((1 << ITEM_BITS) - 1)


class Measured(NamedTuple):
    """What the pieces tell.

    depth : reads that cover a base, for most bases.  spread : standard error of that.
    correct : share of the k-mers without errors.
    """

    depth: float
    spread: float
    correct: float


def measure_depth(
    reads: ReadSet, k: int, one_in: int, threads: int = 1, find: Finder | None = None, sampled: slice = ALL_READS
) -> Measured | None:
    """Depth and share of correct k-mers; None where the reads are too few or too bad to tell.

    k : of k-mers that are rarely shared by chance.  one_in : keep one in so many of them, where reads share many.
    find : finds the table's k-mers in all reads, as `see_pieces` takes them; without it, or where it gives None, the
        CPU does.
    sampled : the reads that pieces are taken from.
    """
    ids = np.arange(len(reads))[sampled]
    long_enough = ids[reads.lengths[ids] >= np.median(reads.lengths[ids])] if len(ids) else ids
    chosen = long_enough[:N_PIECES]
    if len(chosen) < LEAST_PIECES or reads.lengths[chosen].min() < k:
        return None
    table, pieces, enough = make_table(reads, chosen, k, one_in)
    piece, shared, bases = _see(reads, table, pieces, threads, find(table) if find else None).T
    share = shared / (bases * (pieces.kept / pieces.sizes)[piece])
    sure = share >= LEAST_SHARE * _usual_share(piece, share)
    counts = np.bincount(piece[sure], minlength=len(chosen))
    usual = usual_pieces(counts[enough])
    if usual is None:
        return None
    covering, rows = counts[enough][usual], sure & np.isin(piece, np.flatnonzero(enough)[usual])
    correct = math.sqrt(min(1.0, float(np.median(share[rows]))))
    return Measured(float(covering.mean()), float(covering.std() / math.sqrt(len(covering))), correct)


def _usual_share(piece: np.ndarray, share: np.ndarray) -> float:
    """The share of a piece's k-mers that a read which covers it shows, for most pieces: repeats show less.

    piece, share : (n,) of all reads that seem to cover pieces, the piece and its share.
    """
    order = np.lexsort((-share, piece))
    first = np.flatnonzero(np.diff(piece[order], prepend=-1))
    sizes = np.diff(np.append(first, len(piece)))
    return float(np.median(share[order][first + np.minimum(sizes, TELLING) - 1])) if len(first) else 0.0


def _see(reads: ReadSet, table: Table, pieces: Pieces, threads: int, found: np.ndarray | None) -> np.ndarray:
    """What all reads show of the pieces, (n, 3) int64, as `see_pieces` gives it; found : `listed` there, or None."""
    ends = np.append(reads.starts, len(reads.codes)).astype(np.uint64)
    edges = np.zeros(0, np.int64) if found is None else np.searchsorted(found[1] >> U1, ends)
    columns, listed = (reads.codes, reads.starts, reads.lengths), np.zeros((2, 0), np.uint64) if found is None else found

    def see(part: tuple[int, int]) -> np.ndarray:
        seen = see_pieces(columns, *part, table, pieces, listed, edges, make_stretch())
        let_go(reads.codes)
        return seen

    parts = even_ranges(len(reads), RANGES * threads if found is None else min(threads, FEW_THREADS))
    return np.concatenate([np.zeros(0, np.int64), *map_threads(see, parts, threads)]).reshape(-1, 3)


def usual_pieces(counts: np.ndarray) -> np.ndarray | None:
    """Mask of the counts around the one that has most others near it, without those of two copies and more.

    One between those of one copy and of two may be near to both.  If many more counts are close to another one, it is that.
    None for too few, or where most are 0.
    """
    if len(counts) < LEAST_PIECES or not np.median(counts):
        return None
    levels, usual, middle = np.unique(counts[counts > 0])[:, None], counts > 0, math.nan  # none yet
    for factor in (NEAR, CLOSE):
        near = (counts >= levels / factor) & (counts <= levels * factor)
        most = np.flatnonzero(near.sum(axis=1) == near.sum(axis=1).max())
        found = near[most[len(most) // 2]]
        if found.sum() > MORE * ((counts >= middle / CLOSE) & (counts <= middle * CLOSE)).sum():
            usual, middle = found, float(np.median(counts[found]))
    return usual & (np.abs(counts - middle) <= max(SPREAD * math.sqrt(middle), LEAST_SPREAD * middle))
