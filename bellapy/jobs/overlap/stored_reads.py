"""Reads in a folder: checked and packed once, in canonical order, so that a task loads no more than its own blocks.

Two passes over the codes are made, and neither holds them all: one while the files are read, one to put them in order.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import BinaryIO, NamedTuple

import numpy as np

from bellapy.compute.mapped import let_go, map_bytes, pieces_of
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.errors import InputError
from bellapy.io.fastx import gather_reads
from bellapy.io.pieces import WrittenPieces
from bellapy.io.workdir import Workdir
from bellapy.jobs.overlap.canonical import Order, copy_reads, given_reads, hash_strands, number_of_queries, order_of
from bellapy.jobs.overlap.store import FolderStore, Result
from bellapy.jobs.overlap.work import with_ids
from bellapy.params.reads import ReadParams
from bellapy.records import Overlaps, ReadSet
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.records.reads import room_both_ways

CODES, GIVEN = "codes", "given"
SUMMED = 1 << 20  # codes of the file that have a checksum of their own
PIECE_BASES = 1 << 22  # put in order at a time; they lie all over the file, each with what the system maps around it


@dataclass(frozen=True)
class ReadTable:
    """What is known of the reads of a folder besides their bases.

    names : as the input has them, (n_bytes,) uint8, a line each.  lengths : (n_reads,) int32, in canonical order.
    given, flipped : as in Order.  sums : (n,) uint32, of `_write_summed`.  error_rate, other_letters : as in ReadSet.
    dropped : as in GatheredReads.  n_queries : as in Work.
    """

    names: np.ndarray
    lengths: np.ndarray
    given: np.ndarray
    flipped: np.ndarray
    sums: np.ndarray
    error_rate: float | None
    other_letters: dict[str, int]
    dropped: dict[str, int]
    n_queries: int | None


READS = Result("reads", ReadTable)


def store_reads(
    folder: Workdir, paths: Sequence[str], progress: Callable[[int, int], None] | None = None, threads: int = 1,
    wanted: ReadParams | None = None, *, targets: bool = False,
) -> None:  # fmt: skip
    """Read files of reads into the folder, unless that was done; wanted : as of `gather_reads`.

    targets : the last file holds targets, the others their queries.
    """
    store = FolderStore(folder)
    if store.has(READS):
        return
    given = folder.bytes_of(GIVEN)
    with folder.new_file(given) as written, open(written, "wb") as stream:

        def write(codes: memoryview) -> None:
            with folder.told(given):  # here: around it, errors are those of reading
                stream.write(codes)

        gathered = gather_reads(paths, progress, WrittenPieces(write), threads, wanted=wanted)
    names, _, starts, lengths, error_rate, other_letters, *_ = gathered
    codes = map_bytes(given)
    n_queries = number_of_queries(gathered.file_ends) if targets else None
    order = _order(codes, starts, lengths, threads, n_queries)
    with folder.new_file(folder.bytes_of(CODES)) as written, open(written, "wb") as stream:
        sums = _write_summed(stream, _in_order(codes, starts, lengths, order))
    text = "\n".join(names).encode()
    store.put(READS, ReadTable(
        np.frombuffer(text, np.uint8), lengths[order.given], order.given, order.flipped, sums, error_rate, other_letters,
        dict(gathered.dropped), n_queries,
    ))  # fmt: skip
    del codes
    given.unlink()


def _order(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray, threads: int, n_queries: int | None) -> Order:
    """As `canonical_reads` has it."""
    hashes = np.empty((2, len(lengths)), np.uint64)

    def work(piece: tuple[int, int]) -> None:
        hash_strands(codes, starts, lengths, piece[0] + np.argsort(lengths[slice(*piece)]), hashes)
        let_go(codes)

    map_threads(work, even_ranges(len(lengths), max(4 * threads, pieces_of(codes))), threads)
    return order_of(hashes, n_queries)


def _in_order(codes: np.ndarray, starts: np.ndarray, lengths: np.ndarray, order: Order):
    """The codes of the reads in canonical order, some reads at a time, with what stands before, between and behind them."""
    yield np.full(PAD, UNKNOWN, np.uint8)
    new_lengths = lengths[order.given]
    ends = np.cumsum(new_lengths.astype(np.int64) + PAD)
    new_starts = ends - PAD - new_lengths
    for first, last in even_ranges(len(lengths), 1 + len(codes) // PIECE_BASES):
        begin = int(ends[first - 1]) if first else 0
        piece = np.full(int(ends[last - 1]) - begin, UNKNOWN, np.uint8)
        rows = slice(first, last)
        its_order = order.given[rows], order.flipped[rows]
        copy_reads(codes, starts, lengths, *its_order, 0, last - first, piece, new_starts[rows] - begin)
        let_go(codes)
        yield piece


def _write_summed(stream: BinaryIO, pieces: Iterable[np.ndarray]) -> np.ndarray:
    """Write pieces of codes; the checksum of every SUMMED codes of them, (n,) uint32."""
    sums, last, room = list[int](), 0, SUMMED
    for piece in pieces:
        stream.write(piece.data)
        left = piece.data
        while len(left):
            last, room, left = zlib.crc32(left[:room], last), room - len(left[:room]), left[room:]
            if not room:
                sums.append(last)
                last, room = 0, SUMMED
    return np.array([*sums, last], np.uint32)


def even_blocks(lengths: np.ndarray, n_blocks: int) -> np.ndarray:
    """The first read of each of so many blocks of about equal bases, and the number of reads, (n_blocks + 1,) int64."""
    reached = np.cumsum(lengths, dtype=np.int64)
    total = int(reached[-1]) if len(reached) else 0
    inner = np.searchsorted(reached, total * np.arange(1, n_blocks) / n_blocks, side="right")
    return np.concatenate(([0], inner, [len(lengths)])).astype(np.int64)


class SomeOverlaps(NamedTuple):
    """Some overlaps, with no more reads than they need.

    reads : that the ids of the overlaps number.  ids : (n,) of these reads among all; None: they are all.
    """

    reads: ReadSet
    overlaps: Overlaps
    ids: np.ndarray | None = None

    def of_all(self, overlaps: Overlaps) -> Overlaps:
        """Overlaps of these reads, by the ids of all reads."""
        return overlaps if self.ids is None else with_ids(overlaps, self.ids)


class StoredReads:
    """The reads of a folder."""

    def __init__(self, folder: Workdir):
        self._folder, self._stored = folder, FolderStore(folder).get(READS)
        self.lengths, self.error_rate = self._stored.lengths, self._stored.error_rate
        self._unchecked = set(range(len(self._stored.sums)))  # parts of the file not yet compared with their checksums
        self.starts = PAD + np.cumsum(self.lengths.astype(np.int64) + PAD) - self.lengths - PAD

    @property
    def other_letters(self) -> dict[str, int]:
        """As in ReadSet."""
        return self._stored.other_letters

    @property
    def dropped(self) -> dict[str, int]:
        """As in GatheredReads."""
        return self._stored.dropped

    @property
    def n_queries(self) -> int | None:
        """As in Work."""
        return self._stored.n_queries

    @property
    def order(self) -> Order:
        """How the reads were sorted and turned."""
        return Order(self._stored.given, self._stored.flipped)

    @property
    def _size(self) -> int:
        return int(self.starts[-1] + self.lengths[-1]) + PAD if len(self.lengths) else PAD

    def _check(self, stream: BinaryIO, begin: int, end: int) -> None:
        """Raise InputError unless codes begin to end of the file are those that were written; no part is checked twice."""
        for part in sorted(self._unchecked.intersection(range(begin // SUMMED, -(-end // SUMMED)))):
            stream.seek(part * SUMMED)
            if zlib.crc32(stream.read(SUMMED)) != self._stored.sums[part]:
                raise InputError(
                    self._folder.bytes_of(CODES), "is damaged or cut short. Remove the folder, and start again."
                )
            self._unchecked.discard(part)

    @cached_property
    def _all(self) -> ReadSet:
        path = self._folder.bytes_of(CODES)
        with open(path, "rb") as stream:
            self._check(stream, 0, self._size)
        codes = map_bytes(path)
        names = ("",) * len(self.lengths)
        return ReadSet(names, codes, self.starts, self.lengths, self.error_rate, self.other_letters, in_room=True)

    def all(self) -> ReadSet:
        """All of them: their codes are those of the file, and their names are left out."""
        return self._all

    def of(self, ids: np.ndarray) -> ReadSet:
        """Some reads, in memory, in the order of `ids`."""
        lengths = self.lengths[ids]
        ends = np.cumsum(lengths.astype(np.int64) + PAD)
        starts = PAD + ends - lengths - PAD
        codes = room_both_ways(PAD + (int(ends[-1]) if len(ends) else 0))
        codes[:PAD] = UNKNOWN
        room = codes.data
        runs = np.flatnonzero(np.diff(ids, prepend=-2) != 1)
        with open(self._folder.bytes_of(CODES), "rb") as stream:
            for first, last in pairwise(np.append(runs, len(ids)).tolist()):
                at, end, place = int(starts[first]), int(ends[last - 1]) + PAD, int(self.starts[ids[first]])
                self._check(stream, place, place + end - at)
                stream.seek(place)
                stream.readinto(room[at:end])
        names = ("",) * len(ids)
        return ReadSet(names, codes, starts, lengths, self.error_rate, in_room=True)

    @cached_property
    def _names(self) -> list[str]:
        """As the input has them."""
        return self._stored.names.tobytes().decode().split("\n") if len(self.lengths) else []

    def as_given(self) -> ReadSet:
        """The reads as the input has them, without bases."""
        nothing, lengths = np.full(PAD, UNKNOWN, np.uint8), np.empty_like(self.lengths)
        lengths[self.order.given] = self.lengths
        return ReadSet(tuple(self._names), nothing, np.zeros(len(lengths), np.int64), lengths, self.error_rate)

    def with_reads(self, overlaps: Overlaps, room: int, threads: int = 1) -> Iterator[SomeOverlaps]:
        """Overlaps of the reads as the input has them, in order, and their reads: up to `room` bases, or one pair."""
        lengths = np.empty(len(self.lengths), np.int64)
        lengths[self.order.given] = self.lengths
        query, target = overlaps.query_id, overlaps.target_id
        ends = np.cumsum(lengths[target] + lengths[query] * (np.diff(query, prepend=-1) != 0))
        at = 0
        while at < len(overlaps):
            done = int(ends[at - 1] - lengths[query[at]]) if at else 0  # its query may have been counted before
            end = max(at + 1, int(np.searchsorted(ends, done + room, side="right")))
            ids = np.unique(np.concatenate((query[at:end], target[at:end])))
            new_ids = np.zeros(len(lengths), np.int32)
            new_ids[ids] = np.arange(len(ids))
            yield SomeOverlaps(self.some_as_given(ids, threads), with_ids(overlaps.take(slice(at, end)), new_ids), ids)
            at = end

    def some_as_given(self, given: np.ndarray, threads: int = 1) -> ReadSet:
        """Some reads as the input has them; given : (n,) their places there, ascending."""
        order = self.order
        ids = np.flatnonzero(np.isin(order.given, given, assume_unique=True))
        places, held = order.given[ids], self.of(ids)
        named = replace(held, names=tuple(self._names[place] for place in places.tolist()), in_room=True)
        return given_reads(named, Order(np.searchsorted(given, places), order.flipped[ids]), threads, with_bases=True)
