"""Reads in an order and on a strand that follow from their bases alone, and back.

Overlapping has many ties: two diagonals with equally many k-mers, two ends with the same score.  They are settled by which
read is the query, and by its direction.  The overlaps shall not depend on the order of the input, on the strand that was
read, or on how reads are split over files.  So the work is done on reads sorted by a hash of their bases, each on the strand
whose hash is smaller.  At the end the results are converted to the reads as they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner, njit_vector
from bellapy.compute.sorting import sort_few
from bellapy.compute.threads import even_ranges, map_threads, shared_by
from bellapy.errors import ParameterError
from bellapy.records import Overlaps, ReadSet
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.records.reads import memory_of, room_both_ways
from bellapy.seeding.sampling import MIXER

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.fastx import GatheredReads
    from bellapy.io.fastx_blocks import Taken

Item = TypeVar("Item")
Result = TypeVar("Result")
U, U8 = np.uint64, np.uint8
ROW_BITS, ROW = U(32), U((1 << 32) - 1)
SEED, SHIFT = U(0xCBF29CE484222325), U(29)


@njit_inner
def _next_hashes(hashed, forward, backward):
    """The hashes of a read and of its reverse complement, `hashed`, with one code more of each, as the read has them."""
    a, b = U(forward), U(backward)
    return (
        (hashed[0] ^ (hashed[0] >> SHIFT) ^ a) * MIXER,
        (hashed[1] ^ (hashed[1] >> SHIFT) ^ (b if b > 3 else U(3) - b)) * MIXER,
    )


@njit
def hash_strands(codes, starts, lengths, rows, hashes):
    """hashes[0, r] and hashes[1, r] of the reads `rows`, (n,) int64: of the read and of its reverse complement, uint64.

    Two reads are hashed at a time, since each step waits for the one before: so neighbours should be about as long.
    codes, starts, lengths : of a ReadSet.
    """
    for x in range(0, len(rows), 2):
        r, other = rows[x], rows[min(x + 1, len(rows) - 1)]
        one, two = (SEED, SEED), (SEED, SEED)
        n, n_of_two, of_both = U(lengths[r]), U(lengths[other]), U(min(lengths[r], lengths[other]))
        first, first_of_two = U(starts[r]), U(starts[other])
        last, last_of_two = first + n - U(1), first_of_two + n_of_two - U(1)
        for i in range(of_both):
            one = _next_hashes(one, codes[first + i], codes[last - i])
            two = _next_hashes(two, codes[first_of_two + i], codes[last_of_two - i])
        for i in range(of_both, n):
            one = _next_hashes(one, codes[first + i], codes[last - i])
        for i in range(of_both, n_of_two):
            two = _next_hashes(two, codes[first_of_two + i], codes[last_of_two - i])
        (hashes[0, r], hashes[1, r]), (hashes[0, other], hashes[1, other]) = one, two


@njit_vector
def _copy(codes, old, n, new_codes, new):
    """Copy n codes from codes[old:], uint8, to new_codes[new:], uint8."""
    for i in range(U(n)):
        new_codes[U(new) + i] = codes[U(old) + i]


@njit_vector
def _turn(codes, old, n, new_codes, new):
    """Write the reverse complement of n codes from codes[old:], uint8, to new_codes[new:], uint8."""
    last = U(old) + U(n) - U(1)
    for i in range(U(n)):
        code = codes[last - i]
        new_codes[U(new) + i] = code if code > 3 else U8(3) - code


@njit_entry
def copy_reads(codes, starts, lengths, source, flipped, begin, end, new_codes, new_starts):
    """Copy read source[r] of `codes` to new_starts[r], reverse-complemented where flipped[r], for r in [begin, end).

    Unknown bases are written behind each.
    codes, starts, lengths : of a ReadSet.  new_codes : (any,) uint8, filled; new_starts : (n_reads,) int64, places there.
    """
    for r in range(begin, end):
        old, new, n = starts[source[r]], new_starts[r], lengths[source[r]]
        if n and flipped[r]:
            _turn(codes, old, n, new_codes, new)
        elif n:
            _copy(codes, old, n, new_codes, new)
        for x in range(new + n, new + n + PAD):
            new_codes[x] = UNKNOWN


@dataclass(frozen=True)
class Order:
    """How reads were sorted and turned.

    given : (n_reads,) int64, index of each read in the input.
    flipped : (n_reads,) bool, whether it is the reverse complement of what was given.
    """

    given: np.ndarray
    flipped: np.ndarray


class _Piece(NamedTuple):
    """Some consecutive reads, for compiled code.

    first : number of the first one.  codes : (any,) uint8, read-only, which hold them.  starts : (n,) int64, places there.
    """

    first: int
    codes: np.ndarray
    starts: np.ndarray

    @property
    def rows(self) -> slice:
        """Their numbers."""
        return slice(self.first, self.first + len(self.starts))


def number_of_queries(file_ends: Sequence[int]) -> int:
    """How many reads are queries, where the last file holds the targets; file_ends : as in GatheredReads.

    Raises
    ------
    ParameterError : where nothing is left of either.
    """
    n_queries, n_reads = int(file_ends[-2]), int(file_ends[-1])
    if not 0 < n_queries < n_reads:
        what = "target" if n_queries else "query"
        raise ParameterError(f"no {what} is left: all are too short or of low quality (--min-length, --min-quality)")
    return n_queries


def order_of(hashes: np.ndarray, n_queries: int | None = None) -> Order:
    """The order by hash; hashes : (2, n_reads) uint64, of the reads and of their reverse complements.

    n_queries : the first so many reads are queries, and stay before the others, their targets.
    """
    least, n = hashes.min(axis=0), n_queries or 0
    given = np.concatenate((np.argsort(least[:n], kind="stable"), n + np.argsort(least[n:], kind="stable")))
    return Order(given, (hashes[1] < hashes[0])[given])


def canonical_reads(
    reads: ReadSet | GatheredReads, threads: int = 1, n_queries: int | None = None
) -> tuple[ReadSet, Order]:  # fmt: skip
    """The reads sorted by hash, each on the strand with the smaller one, and how to get back.

    reads : what has been gathered is used up; what was seen meanwhile are the hashes of `hash_taken`.
    n_queries : as in `order_of`.
    """
    if isinstance(reads, ReadSet):
        names, lengths, n_codes, pieces = reads.names, reads.lengths, len(reads.codes), _pieces_of(reads, threads)
    else:
        names, lengths, n_codes, pieces = reads.names, reads.lengths, reads.codes.size, list(_gathered_pieces(reads))

    seen = () if isinstance(reads, ReadSet) else reads.seen
    if not len(seen):
        seen = _of_each(lambda piece: _hashes_of(piece.codes, piece.starts, lengths[piece.rows]), pieces, threads)
    hashes = np.concatenate([np.zeros((2, 0), np.uint64), *seen], axis=1)
    order = order_of(hashes, n_queries)
    codes = room_both_ways(n_codes)
    starts, new_lengths = _arrange(pieces, lengths, order.given, order.flipped, codes, threads)
    new_names = tuple(map(names.__getitem__, order.given.tolist()))
    return ReadSet(new_names, codes, starts, new_lengths, reads.error_rate, in_room=True), order


def hash_taken(taken: Taken) -> np.ndarray:
    """The hashes of some reads and of their reverse complements, (2, n) uint64; by the thread that has just read them."""
    codes, lengths = taken.codes[:], taken.lengths.astype(np.int32)
    starts = np.cumsum(taken.lengths + PAD) - taken.lengths - PAD
    for column in (codes, lengths, starts):
        column.flags.writeable = False  # as in a ReadSet, for which there is compiled code
    return _hashes_of(codes, starts, lengths)


def _hashes_of(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The same; codes, starts, lengths : as in a ReadSet."""
    hashes = np.empty((2, len(starts)), np.uint64)
    hash_strands(codes, starts, lengths, np.argsort(lengths), hashes)
    return hashes


def _pieces_of(reads: ReadSet, threads: int) -> list[_Piece]:
    """Reads in pieces that threads share."""
    return [_Piece(begin, reads.codes, reads.starts[begin:end]) for begin, end in even_ranges(len(reads), 4 * threads)]


def _gathered_pieces(gathered: GatheredReads) -> Iterator[_Piece]:
    """Reads as they were gathered, each whole in one piece; what holds no read begins the first one."""
    at, first = 0, 0
    gathered.lengths.flags.writeable = False  # as in a ReadSet, for which there is compiled code
    for codes in chain.from_iterable(gathered.codes.drain()):
        end = first + int(np.searchsorted(gathered.starts[first:], at + len(codes)))
        codes, starts = codes[:], gathered.starts[first:end] - at
        codes.flags.writeable = starts.flags.writeable = False
        if len(starts):
            yield _Piece(first, codes, starts)
        at, first = at + len(codes), end


def as_given(
    reads: ReadSet, overlaps: Overlaps, order: Order, threads: int, *, with_bases: bool
) -> tuple[ReadSet, Overlaps]:  # fmt: skip
    """Reads and overlaps as the input has them; with_bases : as of `given_reads`."""
    overlaps = given_overlaps(overlaps, reads.lengths, order, threads)
    return given_reads(reads, order, threads, with_bases=with_bases), overlaps


def given_reads(reads: ReadSet, order: Order, threads: int = 1, *, with_bases: bool) -> ReadSet:
    """The inverse of `canonical_reads`.

    with_bases : the bases are needed.  They then take the place of those of `reads`, which must not be used any more.
    Otherwise the reads have names and lengths only.
    """
    back = np.empty(len(reads), np.int64)
    back[order.given] = np.arange(len(reads))
    if not with_bases:
        names = tuple(map(reads.names.__getitem__, back.tolist()))
        return ReadSet(names, np.full(PAD, UNKNOWN, np.uint8), reads.starts[back], reads.lengths[back], reads.error_rate)
    n, room = len(reads.codes), memory_of(reads.codes)
    room.flags.writeable = True  # `ReadSet.both_ways` is done with
    restored = room[n:]
    starts, lengths = _arrange(_pieces_of(reads, threads), reads.lengths, back, order.flipped[back], restored, threads)
    codes = room[:n]
    codes[:] = restored
    names = tuple(map(reads.names.__getitem__, back.tolist()))
    return ReadSet(names, codes, starts, lengths, reads.error_rate, in_room=True)


def _arrange(
    pieces: list[_Piece], lengths: np.ndarray, source: np.ndarray, flipped: np.ndarray, codes: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Put the reads `source` in `codes`, turned where `flipped`, and let go of the pieces; starts and lengths there.

    lengths : (n_reads,) int32, of the reads in the order of the pieces.
    """
    new_lengths = lengths[source]
    starts = PAD + np.concatenate(([0], np.cumsum(new_lengths[:-1].astype(np.int64) + PAD)))[: len(source)].astype(np.int64)
    places, turned = np.empty(len(source), np.int64), np.empty(len(source), bool)
    places[source], turned[source] = starts, flipped
    codes[: PAD if len(source) else len(codes)] = UNKNOWN

    def copy(i: int) -> None:
        piece, rows, n = pieces[i], pieces[i].rows, len(pieces[i].starts)
        pieces[i] = piece._replace(codes=codes[:0])  # so that it can be freed
        copy_reads(piece.codes, piece.starts, lengths[rows], np.arange(n), turned[rows], 0, n, codes, places[rows])

    _of_each(copy, range(len(pieces)), threads)
    return starts, new_lengths


def _of_each(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Results of a function on many items, of which threads take some at a time."""
    parts = even_ranges(len(items), 4 * threads)
    return list(chain.from_iterable(map_threads(lambda part: list(map(function, items[slice(*part)])), parts, threads)))


NAMES = [f.name for f in fields(Overlaps) if f.name != "strand"]
ID, START, END, SEED_AT, LEFT, RIGHT = (
    (NAMES.index(query), NAMES.index(query.replace("query", "target")))
    for query in ("query_id", "query_start", "query_end", "seed_query", "left_query", "right_query")
)
"""Columns of the query and of the target."""
SEED_LENGTH = NAMES.index("seed_length")
OF_BOTH = tuple(NAMES.index(name) for name in ("score", "n_support", "n_matches", "n_columns", "seed_length"))


def given_overlaps(overlaps: Overlaps, lengths: np.ndarray, order: Order, threads: int = 1) -> Overlaps:
    """What was found, of the reads as they were given; the read given first is the query.

    lengths : (n_reads,) int32, of the reads in canonical order.
    """
    given, n = order.given.astype(np.int32), len(overlaps)
    columns = tuple(getattr(overlaps, name) for name in NAMES)
    (query, target), strand = np.empty((2, n), np.int32), np.empty(n, np.int8)
    share = shared_by(threads)
    share(lambda part: name_given(*overlaps.pairs, given, order.flipped, *part, query, target, strand), n)
    rows = sort_rows(query, target, strand, len(given), threads)
    restored, strands = np.empty((len(NAMES), n), np.int32), np.empty(n, np.int8)

    def restore(part: tuple[int, int]) -> None:
        strands[slice(*part)] = strand[rows[slice(*part)]]
        restore_rows(columns, lengths, given, order.flipped, rows, strands, *part, restored)

    share(restore, n)
    return Overlaps(**dict(zip(NAMES, restored, strict=True)), strand=strands)


@njit
def name_given(query_id, target_id, strand, given, flipped, begin, end, query, target, its_strand):
    """Fill query, target, (n,) int32, and its_strand, (n,) int8, of rows [begin, end): by the reads as they were given.

    query_id, target_id, strand : of Overlaps, in canonical order.  given, int32, flipped : of Order.
    """
    for i in range(begin, end):
        q, t = query_id[i], target_id[i]
        query[i], target[i] = min(given[q], given[t]), max(given[q], given[t])
        its_strand[i] = -strand[i] if flipped[q] != flipped[t] else strand[i]


@njit
def restore_rows(columns, lengths, given, flipped, rows, strands, begin, end, restored):
    """Fill restored[:, begin:end] with overlaps of the reads as they were given.

    columns, restored : 17 times (n,) int32, the columns NAMES before and after.  lengths : (n_reads,) int32, and given,
    int32, and flipped of Order, in canonical order.  rows : (n,) int64, the row before of each.  strands : (n,) int8, after.
    """
    for x in range(begin, end):
        row = rows[x]
        query, target = columns[ID[0]][row], columns[ID[1]][row]
        swapped = given[query] > given[target]
        turned = flipped[query] ^ (swapped and strands[x] < 0)  # left and right are as the query runs
        for c in OF_BOTH:
            restored[c, x] = columns[c][row]
        for side in range(2):
            read, to = columns[ID[side]][row], np.int64(swapped) ^ side
            first, last, seed = columns[START[side]][row], columns[END[side]][row], columns[SEED_AT[side]][row]
            left, right = columns[LEFT[side]][row], columns[RIGHT[side]][row]
            if flipped[read]:
                first, last = lengths[read] - last, lengths[read] - first
                seed = lengths[read] - columns[SEED_LENGTH][row] - seed
            restored[ID[to], x], restored[SEED_AT[to], x] = given[read], seed
            restored[START[to], x], restored[END[to], x] = first, last
            restored[LEFT[to], x], restored[RIGHT[to], x] = (right, left) if turned else (left, right)


def sort_rows(query: np.ndarray, target: np.ndarray, strand: np.ndarray, n_reads: int, threads: int = 1) -> np.ndarray:
    """The rows by query, target and strand, (n,) int64; equal ones stay in order.

    query, target : (n,) int32, below n_reads.  strand : (n,) int8.
    """
    rows, counts, share = np.empty(len(query), np.int64), np.zeros(n_reads, np.int64), shared_by(threads)
    share(lambda part: count_queries(query, *part, counts), n_reads)
    begins = np.concatenate(([0], np.cumsum(counts)))
    at = begins[:-1].copy()
    share(lambda part: list_by_query(query, *part, at, rows), n_reads)
    share(lambda part: sort_each(target, strand, begins, *part, rows), n_reads)
    return rows


@njit
def count_queries(query, low, high, counts):
    """Count the rows of each query in [low, high); query : (n,) int32.  counts : (n_reads,) int64, zeros."""
    for i in range(len(query)):
        if low <= query[i] < high:
            counts[query[i]] += 1


@njit
def list_by_query(query, low, high, at, rows):
    """Write the rows of queries q in [low, high) to rows[at[q]:], equal ones in order.

    query : (n,) int32.  at : (n_reads,) int64, advanced.  rows : (n,) int64.
    """
    for i in range(len(query)):
        if low <= query[i] < high:
            rows[at[query[i]]] = i
            at[query[i]] += 1


@njit
def sort_each(target, strand, begins, low, high, rows):
    """Sort the rows of each query in [low, high) by target and strand; equal ones stay in order.

    target, strand : (n,).  begins : (n_reads + 1,) int64, first of the rows of each query.  rows : (n,) int64.
    """
    most = 0
    for q in range(low, high):
        most = max(most, begins[q + 1] - begins[q])
    keys = np.empty(most, np.uint64)
    for q in range(low, high):
        first, n = begins[q], begins[q + 1] - begins[q]
        for i in range(n):  # the row behind the key makes all different
            row = rows[first + i]
            keys[i] = U(2 * np.int64(target[row]) + (strand[row] > 0)) << ROW_BITS | U(row - rows[first])
        base = rows[first] if n else 0
        sort_few(keys, n)
        for i in range(n):
            rows[first + i] = base + np.int64(keys[i] & ROW)
