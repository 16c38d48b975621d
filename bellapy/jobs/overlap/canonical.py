"""Reads in an order and on a strand that follow from their bases alone, and back.

Overlapping has many ties: two diagonals with equally many k-mers, two ends with the same score.  They are settled by which
read is the query, and by its direction.  The overlaps shall not depend on the order of the input, on the strand that was
read, or on how reads are split over files.  So the work is done on reads sorted by a hash of their bases, each on the strand
whose hash is smaller.  At the end the results are converted to the reads as they were given.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_vector
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.io.fastx import GatheredReads
from bellapy.records import Overlaps, ReadSet
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.records.reads import memory_of, room_both_ways

U, U8 = np.uint64, np.uint8
SEED, PRIME, SHIFT = U(0xCBF29CE484222325), U(0x9E3779B97F4A7C15), U(29)


@njit
def hash_strands(codes, before, starts, lengths, begin, end, hashes):
    """hashes[0, r] and hashes[1, r] of reads [begin, end): of the read and of its reverse complement, uint64.

    codes : (any,) uint8, those of a ReadSet from place `before` on.  starts, lengths : of the ReadSet.
    """
    for r in range(begin, end):
        first, last = starts[r] - before, starts[r] - before + lengths[r] - 1
        forward = backward = SEED
        for i in range(lengths[r]):
            a, b = U(codes[first + i]), U(codes[last - i])
            forward = (forward ^ (forward >> SHIFT) ^ a) * PRIME
            backward = (backward ^ (backward >> SHIFT) ^ (b if b > 3 else U(3) - b)) * PRIME
        hashes[0, r], hashes[1, r] = forward, backward


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
def copy_reads(codes, before, starts, lengths, begin, end, to, turned, new_codes):
    """Copy reads [begin, end) to new_codes[to[r]:], reverse-complemented where turned[r], with unknown bases behind each.

    codes : (any,) uint8, those of a ReadSet from place `before` on.  starts, lengths : of the ReadSet.
    to : (n_reads,) int64.  turned : (n_reads,) bool.  new_codes : (any,) uint8, filled.
    """
    for r in range(begin, end):
        old, new, n = starts[r] - before, to[r], lengths[r]
        for x in range(U(PAD)):
            new_codes[U(new) + U(n) + x] = U8(UNKNOWN)
        if n and turned[r]:
            _turn(codes, old, n, new_codes, new)
        elif n:
            _copy(codes, old, n, new_codes, new)


@dataclass(frozen=True)
class Order:
    """How reads were sorted and turned.

    given : (n_reads,) int64, index of each read in the input.
    flipped : (n_reads,) bool, whether it is the reverse complement of what was given.
    """

    given: np.ndarray
    flipped: np.ndarray


class _Part(NamedTuple):
    """Consecutive reads: from begin to end; `codes` are theirs, from place `before` among those of all reads on."""

    codes: np.ndarray
    before: int
    begin: int
    end: int


def _parts_of(reads: ReadSet | GatheredReads, threads: int) -> list[list[_Part]]:
    """All reads in parts, for threads to take some at a time; codes that were gathered are used up."""
    if isinstance(reads, ReadSet):
        return [[_Part(reads.codes, 0, *some)] for some in even_ranges(len(reads), 4 * threads)]
    pieces = [piece for some in reads.codes.drain() for piece in some]
    edges = np.concatenate(([0], np.cumsum([len(piece) for piece in pieces])))
    reads_before = np.searchsorted(reads.starts, edges).tolist()
    parts = list(map(_Part, pieces, edges.tolist(), reads_before, reads_before[1:]))
    return [parts[begin:end] for begin, end in even_ranges(len(parts), 4 * threads)]


def canonical_reads(reads: ReadSet | GatheredReads, threads: int = 1) -> tuple[ReadSet, Order]:
    """The reads sorted by hash, each on the strand with the smaller one, and how to get back; gathered ones are used up."""
    hashes, parts = np.empty((2, len(reads.names)), np.uint64), _parts_of(reads, threads)

    def work(some: list[_Part]) -> None:
        for codes, before, begin, end in some:
            hash_strands(codes, before, reads.starts, reads.lengths, begin, end, hashes)

    map_threads(work, parts, threads)
    given = np.argsort(hashes.min(axis=0), kind="stable")
    order = Order(given, (hashes[1] < hashes[0])[given])
    n_codes = PAD + int(reads.lengths.sum(dtype=np.int64)) + PAD * len(given)
    return _arrange(reads, parts, given, order.flipped, room_both_ways(n_codes), threads), order


def given_reads(reads: ReadSet, order: Order, threads: int = 1, *, with_bases: bool) -> ReadSet:
    """The inverse of `canonical_reads`.

    with_bases : the bases are needed.  They then take the place of those of `reads`, which must not be used any more.
    Otherwise the reads have names and lengths only.
    """
    back = np.empty(len(reads), np.int64)
    back[order.given] = np.arange(len(reads))
    if not with_bases:
        names = tuple(reads.names[i] for i in back.tolist())
        return ReadSet(names, np.full(PAD, UNKNOWN, np.uint8), reads.starts[back], reads.lengths[back], reads.error_rate)
    n, room = len(reads.codes), memory_of(reads.codes)
    room.flags.writeable = True  # `ReadSet.both_ways` is done with
    restored = _arrange(reads, _parts_of(reads, threads), back, order.flipped[back], room[n:], threads)
    codes = room[:n]
    codes[:] = restored.codes
    return replace(restored, codes=codes, in_room=True)


def _arrange(
    reads: ReadSet | GatheredReads, parts: list[list[_Part]], source: np.ndarray, flipped: np.ndarray, codes: np.ndarray,
    threads: int,
) -> ReadSet:  # fmt: skip
    """The reads `source`, turned where `flipped`, in `codes`; parts : of all reads as they are."""
    lengths = reads.lengths[source]
    starts = PAD + np.concatenate(([0], np.cumsum(lengths[:-1].astype(np.int64) + PAD)))[: len(lengths)]
    to, turned = np.empty(len(starts), np.int64), np.empty(len(starts), np.bool_)
    to[source], turned[source] = starts, flipped
    codes[:PAD] = UNKNOWN

    def copy(some: list[_Part]) -> None:
        for old, before, begin, end in some:
            copy_reads(old, before, reads.starts, reads.lengths, begin, end, to, turned, codes)

    map_threads(copy, parts, threads)
    names = tuple(reads.names[i] for i in source.tolist())
    return ReadSet(names, codes, starts.astype(np.int64), lengths, reads.error_rate, in_room=True)


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
    columns = np.empty((len(NAMES), n), np.int32)
    map_threads(lambda c: np.copyto(columns[c], getattr(overlaps, NAMES[c])), range(len(NAMES)), threads)
    query, target = given[overlaps.query_id], given[overlaps.target_id]
    turned = order.flipped[overlaps.query_id] != order.flipped[overlaps.target_id]
    strand = np.where(turned, -overlaps.strand, overlaps.strand).astype(np.int8)
    rows = sort_rows(np.minimum(query, target), np.maximum(query, target), strand, len(given))
    restored, strands = np.empty_like(columns), strand[rows]

    def restore(part: tuple[int, int]) -> None:
        restore_rows(columns, lengths, given, order.flipped, rows, strands, *part, restored)

    map_threads(restore, even_ranges(n, threads), threads)
    return Overlaps(**dict(zip(NAMES, restored, strict=True)), strand=strands)


@njit
def restore_rows(columns, lengths, given, flipped, rows, strands, begin, end, restored):
    """Fill restored[:, begin:end] with overlaps of the reads as they were given.

    columns, restored : (17, n) int32, the columns NAMES before and after.  lengths : (n_reads,) int32, and given, int32, and
    flipped of Order, in canonical order.  rows : (n,) int64, the row before of each.  strands : (n,) int8, after.
    """
    for x in range(begin, end):
        row = rows[x]
        query, target = columns[ID[0], row], columns[ID[1], row]
        swapped = given[query] > given[target]
        turned = flipped[query] ^ (swapped and strands[x] < 0)  # left and right are as the query runs
        for c in OF_BOTH:
            restored[c, x] = columns[c, row]
        for side in range(2):
            read, to = columns[ID[side], row], np.int64(swapped) ^ side
            first, last, seed = columns[START[side], row], columns[END[side], row], columns[SEED_AT[side], row]
            left, right = columns[LEFT[side], row], columns[RIGHT[side], row]
            if flipped[read]:
                first, last = lengths[read] - last, lengths[read] - first
                seed = lengths[read] - columns[SEED_LENGTH, row] - seed
            restored[ID[to], x], restored[SEED_AT[to], x] = given[read], seed
            restored[START[to], x], restored[END[to], x] = first, last
            restored[LEFT[to], x], restored[RIGHT[to], x] = (right, left) if turned else (left, right)


def sort_rows(query: np.ndarray, target: np.ndarray, strand: np.ndarray, n_reads: int) -> np.ndarray:
    """The rows by query, target and strand, (n,) int64; equal ones stay in order.

    query, target : (n,) int32, below n_reads.  strand : (n,) int8.
    """
    by_target = _sorted_by(2 * target.astype(np.int64) + (strand > 0), 2 * n_reads, np.arange(len(query)))
    return _sorted_by(query.astype(np.int64), n_reads, by_target)


@njit
def _sorted_by(keys, n_keys, rows):
    """The rows by their keys, (n,) int64; equal ones stay in order.

    keys : (n,) int64, from 0 to n_keys - 1, of every row.  rows : (n,) int64.
    """
    places, ordered = np.zeros(n_keys + 1, np.int64), np.empty(rows.size, np.int64)
    for key in keys:
        places[key + 1] += 1
    for key in range(n_keys):
        places[key + 1] += places[key]
    for row in rows:
        ordered[places[keys[row]]] = row
        places[keys[row]] += 1
    return ordered
