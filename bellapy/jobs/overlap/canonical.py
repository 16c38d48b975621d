"""Reads in an order and on a strand that follow from their bases alone, and back.

Overlapping has many ties: two diagonals with equally many k-mers, two ends with the same score.  They are settled by which
read is the query, and by its direction.  The overlaps shall not depend on the order of the input, on the strand that was
read, or on how reads are split over files.  So the work is done on reads sorted by a hash of their bases, each on the strand
whose hash is smaller.  At the end the results are converted to the reads as they were given.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from bellapy.compute.jit import njit, put
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.records import Overlaps, ReadSet
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.records.reads import memory_of, room_both_ways

U = np.uint64
SEED, PRIME, SHIFT = U(0xCBF29CE484222325), U(0x9E3779B97F4A7C15), U(29)


@njit
def hash_strands(codes, starts, lengths, begin, end, hashes):
    """hashes[0, r] and hashes[1, r] of reads [begin, end): of the read and of its reverse complement, uint64.

    codes, starts, lengths : of a ReadSet.
    """
    for r in range(begin, end):
        first, last = starts[r], starts[r] + lengths[r] - 1
        forward = backward = SEED
        for i in range(lengths[r]):
            a, b = U(codes[first + i]), U(codes[last - i])
            forward = (forward ^ (forward >> SHIFT) ^ a) * PRIME
            backward = (backward ^ (backward >> SHIFT) ^ (b if b > 3 else U(3) - b)) * PRIME
        hashes[0, r], hashes[1, r] = forward, backward


@njit
def copy_reads(codes, starts, lengths, source, flipped, begin, end, new_codes, new_starts):
    """Copy read source[r] of `codes` to new_starts[r], reverse-complemented where flipped[r], for r in [begin, end).

    codes, starts, lengths : of a ReadSet.  new_codes : (any,) uint8, filled; new_starts : (n_reads,) int64, places there.
    """
    for r in range(begin, end):
        old, new, n = starts[source[r]], new_starts[r], lengths[source[r]]
        if flipped[r]:
            for i in range(n):
                code = codes[old + n - 1 - i]
                new_codes[new + i] = code if code > 3 else 3 - code
        else:
            put(new_codes, new, codes, old, old + n)


@dataclass(frozen=True)
class Order:
    """How reads were sorted and turned.

    given : (n_reads,) int64, index of each read in the input.
    flipped : (n_reads,) bool, whether it is the reverse complement of what was given.
    """

    given: np.ndarray
    flipped: np.ndarray


def canonical_reads(reads: ReadSet, threads: int = 1) -> tuple[ReadSet, Order]:
    """The reads sorted by hash, each on the strand with the smaller one, and how to get back."""
    hashes = np.empty((2, len(reads)), np.uint64)

    def work(piece):
        hash_strands(reads.codes, reads.starts, reads.lengths, *piece, hashes)

    map_threads(work, even_ranges(len(reads), 4 * threads), threads)
    given = np.argsort(hashes.min(axis=0), kind="stable")
    order = Order(given, (hashes[1] < hashes[0])[given])
    return _arrange(reads, given, order.flipped, room_both_ways(len(reads.codes)), threads), order


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
    restored = _arrange(reads, back, order.flipped[back], room[n:], threads)
    codes = room[:n]
    codes[:] = restored.codes
    return replace(restored, codes=codes, in_room=True)


def _arrange(reads: ReadSet, source: np.ndarray, flipped: np.ndarray, codes: np.ndarray, threads: int) -> ReadSet:
    """The reads `source`, turned where `flipped`, in `codes`."""
    lengths = reads.lengths[source]
    starts = PAD + np.concatenate(([0], np.cumsum(lengths[:-1].astype(np.int64) + PAD)))[: len(lengths)]
    edges = np.concatenate(([0], starts[1:] - PAD, [len(codes)]))  # a read goes with the unknown bases before it
    codes[: starts[0] if len(starts) else len(codes)] = UNKNOWN

    def copy(piece):
        codes[edges[piece[0]] : edges[piece[1]]] = UNKNOWN  # by the thread that fills it: first touches take time
        copy_reads(reads.codes, reads.starts, reads.lengths, source, flipped, *piece, codes, starts)

    map_threads(copy, even_ranges(len(reads), 4 * threads), threads)
    names = tuple(reads.names[i] for i in source.tolist())
    return ReadSet(names, codes, starts.astype(np.int64), lengths, reads.error_rate, in_room=True)


def given_overlaps(overlaps: Overlaps, lengths: np.ndarray, order: Order) -> Overlaps:
    """What was found, of the reads as they were given; the read given first is the query.

    lengths : (n_reads,) int32, of the reads in canonical order.
    """
    columns = {f.name: getattr(overlaps, f.name) for f in fields(Overlaps)}
    strand = columns["strand"].copy()
    for side in ("query", "target"):
        ids = columns[f"{side}_id"]
        turned, n = order.flipped[ids], lengths[ids]
        start, end, seed = columns[f"{side}_start"], columns[f"{side}_end"], columns[f"seed_{side}"]
        columns[f"{side}_id"] = order.given[ids].astype(np.int32)
        columns[f"{side}_start"] = np.where(turned, n - end, start)
        columns[f"{side}_end"] = np.where(turned, n - start, end)
        columns[f"seed_{side}"] = np.where(turned, n - columns["seed_length"] - seed, seed)
        strand[turned] *= -1
    columns["strand"] = strand
    swapped = columns["query_id"] > columns["target_id"]
    for name in ("query_id", "query_start", "query_end", "seed_query", "left_query", "right_query"):
        _swap(columns, name, name.replace("query", "target"), swapped)
    turned = order.flipped[overlaps.query_id] ^ (swapped & (strand < 0))  # left and right are as the query runs
    for name in ("left_query", "left_target"):
        _swap(columns, name, name.replace("left", "right"), turned)
    rows = np.lexsort((strand, columns["target_id"], columns["query_id"]))  # stable: lines of one pair stay in order
    return Overlaps(**{name: column[rows] for name, column in columns.items()})


def _swap(columns: dict[str, np.ndarray], one: str, other: str, rows: np.ndarray) -> None:
    """Swap two columns in some rows."""
    columns[one], columns[other] = (
        np.where(rows, columns[other], columns[one]), np.where(rows, columns[one], columns[other]),
    )  # fmt: skip
