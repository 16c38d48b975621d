"""The sequencing depth and the share of correct k-mers, measured: how many other reads cover the middle of a read, and how
many of its k-mers they show.

The spectrum of k-mers tells depth only through k-mers that occur often.  In large and noisy sets few of these are of single
copies: most are repeats, errors that repeat, and chance.  Overlaps are not mistaken for any of these.

1. Pieces are taken from the middle of some reads.  In the canonical order of reads (canonical.py) the first ones are a
   random sample.
2. Every read is searched for the k-mers of the pieces.  It covers a piece's middle if MIN_HITS of them, at least k apart,
   lie within one band of diagonals, and on both sides of it.  They end short of the overlap, by their mean distance.
   Where other bands have hits too, more are asked for: this is the term for chance.  They have to span most of what read and
   piece have in common along this diagonal, and to be LEAST_SHARE of what is usual: the copy of a repeat ends before, or
   differs.
3. Depth is the mean number over the pieces, without those that are far from most: repeats and deep molecules.
4. A k-mer of the piece is found in a read that covers it if it is correct in both.  The median over these pieces tells how
   many are.

A k-mer that a piece shows twice says nothing of where a read lies, and one that MOST_PIECES pieces show has said enough.
Pieces that lose much of their k-mers in this way are not counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner, njit_vector_entry, prefetch, put
from bellapy.compute.sorting import sort_few
from bellapy.records import ReadSet
from bellapy.seeding.kmer_hashes import STRETCH, hash_stretch, make_stretch

U = np.uint64
U0, U1, U6, U63 = (U(x) for x in (0, 1, 6, 63))

PIECE = 6_000  # bases
MIN_HITS = 3
SPREADS = 4.0  # hits have to exceed what chance gives by so many times its spread
BAND = 300  # diagonals
MOST_PIECES = 16  # of one k-mer
LEAST_KEPT = 0.5  # share of a piece's k-mers
SPANNED = 1 / 2  # of what a read and a piece have in common
EVENTS = 1 << 10
MARK_BITS, HEAD_BITS = 23, 18  # 1 MB of bits that most k-mers of the reads stop at, 1 MB of heads
DEPTH_BYTES = 32 << 20  # of the pieces' k-mers, while they are sorted
AHEAD = 12  # k-mers: so early the table's lines are asked for
ITEM_BITS = 20  # of an item of Table
POS_BITS, DIAGONAL_BITS = U(13), U(33)  # of a hit: PIECE fits, and the sum of two positions


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
def _join_hits(found, first, last, start, table, hits, sizes):
    """Write what k-mers of a read share with the pieces: [piece | opposite strand | diagonal | position in the piece].

    found : (2, any) uint64, of find_kmers; of the read: first to last - 1.  start : where the read begins.  table : Table.
    hits : (MOST_PIECES times as many,) uint64.  sizes : (any,) int64, filled: hits of each piece and strand.
    Return the number of hits.
    """
    n_hits, to_head, bias = 0, U(max(0, table.bits - HEAD_BITS)), U(PIECE)
    sizes[:] = 0
    for x in range(first, last):
        prefetch(table.heads, found[0, min(x + 2 * AHEAD, last - 1)] >> to_head)
        coming = table.heads[found[0, min(x + AHEAD, last - 1)] >> to_head]
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
    begin, best, best_begin = 0, 0, 0
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
def _see_read(found, shown, read, table, pieces, scratch, seen, n_seen):
    """Write each piece whose middle a read covers, and the k-mers and the bases that the two share; return the end in seen.

    found : (2, any) uint64, k-mers of the read among others.  shown : the first of these, and the one after the last.
    read : its id, where it begins, its length.  table : Table.  pieces : Pieces.
    seen : (n_seen + 3 n_pieces or more,) int64, n_seen of them written.
    scratch : hits and grouped, (MOST_PIECES times the k-mers,) uint64, and ends, (2 n_pieces,) int64; overwritten.
    """
    (r, start, length), (hits, grouped, ends) = read, scratch
    n_hits = _join_hits(found, shown[0], shown[1], start, table, hits, ends)
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
def see_pieces(codes, starts, lengths, begin, end, table, pieces, stretch):
    """What the reads [begin, end) show of the pieces, (3 n,) int64, as _see_read writes it.

    codes, starts, lengths : of a ReadSet.  table : Table.  pieces : Pieces.
    stretch : Stretch, overwritten.
    """
    longest = 0
    for r in range(begin, end):
        longest = max(longest, lengths[r])
    found, scratch = np.empty((2, longest + 1), np.uint64), np.empty((2, 1 << 12), np.uint64)
    ends, seen, n_seen = np.empty(2 * pieces.own.size, np.int64), np.empty(EVENTS, np.int64), 0
    for r in range(begin, end):
        n = find_kmers(codes, starts[r], starts[r] + lengths[r], table, found[0], found[1], stretch)
        if scratch.shape[1] < MOST_PIECES * n:
            scratch = np.empty((2, 2 * MOST_PIECES * n), np.uint64)
        if seen.size < n_seen + 3 * pieces.own.size:
            larger = np.empty(2 * (n_seen + 3 * pieces.own.size), np.int64)
            put(larger, 0, seen, 0, n_seen)
            seen = larger
        read = r, starts[r], lengths[r]
        n_seen = _see_read(found, (0, n), read, table, pieces, (scratch[0], scratch[1], ends), seen, n_seen)
    return seen[:n_seen]


@njit
def see_pieces_by(found, edges, starts, lengths, begin, end, table, pieces, scratch):
    """`see_pieces` where it is known which k-mers of the reads the table has.

    found : (2, n) uint64, hash, and place << 1 | reverse, by place.  edges : (n_reads + 1,) int64, the first of each read.
    scratch : as in _see_read, overwritten.
    """
    seen, n_seen = np.empty(EVENTS, np.int64), 0
    for r in range(begin, end):
        if seen.size < n_seen + 3 * pieces.own.size:
            larger = np.empty(2 * (n_seen + 3 * pieces.own.size), np.int64)
            put(larger, 0, seen, 0, n_seen)
            seen = larger
        read = r, starts[r], lengths[r]
        n_seen = _see_read(found, (edges[r], edges[r + 1]), read, table, pieces, scratch, seen, n_seen)
    return seen[:n_seen]


@njit_entry
def index_hashes(hashes, items, to_mark, to_head, kept, marks, heads):
    """Keep the k-mers that a piece shows once, and of equal ones MOST_PIECES, at the start of the columns; return how many.

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
    multiplier = U(0x9E3779B97F4A7C15 & ((1 << 2 * k) - 1) | 1)
    empty = np.empty(0, np.uint64)
    everything = Table(k, multiplier, bits, np.full(1 << MARK_BITS >> 6, ~U0), empty.astype(np.int32), empty, empty)
    begins = reads.starts[chosen] + np.maximum(0, (reads.lengths[chosen].astype(np.int64) - PIECE) // 2)
    sizes = np.minimum(reads.lengths[chosen], PIECE).astype(np.int64)

    stretch = make_stretch()

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
    hashes, items = hashes[:n_kept], items[:n_kept]
    return Table(k, multiplier, bits, marks, heads, hashes, items), Pieces(chosen, sizes // 2, sizes, kept), kept >= least


def _by_hash(hashes: np.ndarray, items: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Both columns of a Table by hash and item, (n,) uint64 each; bits : of a hash."""
    if bits + ITEM_BITS > 64:
        order = np.lexsort((items, hashes))
        return hashes[order], items[order]
    words = np.sort(hashes << U(ITEM_BITS) | items)  # much faster than to sort by two columns
    return words >> U(ITEM_BITS), words & U((1 << ITEM_BITS) - 1)
