"""Reliable k-mers and their places in the reads, and how often the k-mers of each stretch occur."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from bellapy.params import RANGES
from bellapy.records.reads import ReadSet
from bellapy.records.table import CHECKED, INT32_MAX, check_columns, check_range, freeze

REVERSE, FIRST, PLACE_BITS = 1, 2, 2
"""The bits of an entry: its first, its second, and below its place; seeding/entries.py has them for compiled code."""
TABLE_SHIFT = 10  # one entry of a matrix' table of reads for so many bits of place


def entry_type(n_places: int) -> type:
    """The smaller of the types that hold entries of a KmerMatrix for reads of so many places."""
    return np.uint32 if n_places <= 1 << 30 else np.uint64


def places_of(entries: np.ndarray) -> np.ndarray:
    """The places in entries of a KmerMatrix, int64."""
    return (entries >> np.uint8(PLACE_BITS)).astype(np.int64)


class Held(ABC):
    """Entries of a KmerMatrix that a device holds: they are looked at there, or brought here."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def on_host(self) -> np.ndarray:
        """The entries as an array."""


@dataclass(frozen=True)
class KmerMatrix:
    """The sparse matrix A, reads x reliable k-mers, with the place of every k-mer in every read.

    Counting finds k-mers one by one, so A is held by columns (equally: the rows of its transpose).  A k-mer that occurs
    several times in one read keeps all its positions.  An entry is one number,

        [ place | first | reverse ]

    of which `place` is the start of the k-mer in `ReadSet.codes`, from which read and position follow; `first` is 1 in the
    first entry of a column, whose places ascend; `reverse` is 1 where the read shows the reverse complement of the
    canonical form.

    k, n_kmers : length of the k-mers, number of columns.
    entries : (nnz,) uint32, uint64 for more than 2^30 places.
    starts : (n_reads + 1,) int64, where each read begins in `ReadSet.codes`, and the length of that.
    upper : columns with more entries are repeats: they mark repeats, but link no reads.
    seed_length : exactly matching bases at each position (k; 1 where homopolymers were compressed).
    """

    k: int
    n_kmers: int
    entries: np.ndarray
    starts: np.ndarray
    upper: int
    seed_length: int

    def __post_init__(self):
        freeze(self, {"entries": entry_type(int(self.starts[-1])), "starts": np.int64})

    def check(self, reads: ReadSet) -> None:
        """Every place in a read of these, with room for a seed; places ascend in a column, and all columns are there."""
        check_range("k", self.k, *RANGES["k"])
        check_range("seed_length", self.seed_length, 1, self.k)
        check_range("upper", self.upper, 1, INT32_MAX)
        if not np.array_equal(self.starts, np.append(reads.starts, len(reads.codes))):
            raise ValueError("starts: not those of the reads")
        if self.entries.ndim != 1:
            raise ValueError("entries: not a column")
        n_columns, before = 0, 0
        for at in range(0, len(self.entries), CHECKED):
            entries = self.entries[at : at + CHECKED]
            place, first = places_of(entries), (entries & np.uint8(FIRST)) != 0
            read = np.maximum(np.searchsorted(reads.starts, place, side="right") - 1, 0)
            if not len(reads):
                raise ValueError("entries: out of range")
            begin = reads.starts[read]
            check_range("entries", place, begin, begin + reads.lengths[read] - self.seed_length)
            if not np.all(first | (np.diff(place, prepend=before) > 0)) or not (at or first[0]):
                raise ValueError("entries: not in order")
            n_columns, before = n_columns + int(first.sum()), place[-1]
        if n_columns != self.n_kmers:
            raise ValueError("n_kmers: not the number of columns")

    @property
    def n_reads(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def read_table(self) -> np.ndarray:
        """The read that begins last at or before place i << TABLE_SHIFT, or the first one, for every i, int32."""
        n = (int(self.starts[-1]) >> TABLE_SHIFT) + 1
        first_of_later = np.minimum(-(-self.starts[1:-1] >> TABLE_SHIFT), n)
        sizes = np.diff(np.concatenate(([0], first_of_later, [n])))
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


@dataclass(frozen=True)
class HeldMatrix(KmerMatrix):
    """A KmerMatrix whose entries a device holds."""

    entries: Any

    def __post_init__(self):
        freeze(self, {"starts": np.int64})

    def on_host(self) -> KmerMatrix:
        """The same with its entries in memory."""
        columns = {f.name: getattr(self, f.name) for f in fields(self)}
        return KmerMatrix(**{**columns, "entries": self.entries.on_host()})


@dataclass(frozen=True)
class DepthProfile:
    """How often the k-mers of each stretch of each read occur in all reads: repeats stand out.

    Bins of `width` bases; the bins of read r are offsets[r] to offsets[r + 1].

    offsets : (n_reads + 1,) int64.
    n_kmers : (n_bins,) uint32, occurrences of k-mers that occur at least twice.
    copies : (n_bins,) uint32, sum of their counts.
    reference : (n_reads,) float32, mean count that is usual for the k-mers of this read; 0 where unknown.
    repeats : (n_reads,) uint8, whether a read holds repeats: 0 none, 1 some, 2 with k-mers that set their copies apart.
    """

    width: int
    offsets: np.ndarray
    n_kmers: np.ndarray
    copies: np.ndarray
    reference: np.ndarray
    repeats: np.ndarray

    def __post_init__(self):
        dtypes = {
            "offsets": np.int64,
            "n_kmers": np.uint32,
            "copies": np.uint32,
            "reference": np.float32,
            "repeats": np.uint8,
        }
        freeze(self, dtypes)

    def check(self, reads: ReadSet) -> None:
        """As many bins as the reads have."""
        check_range("width", self.width, 1, INT32_MAX)
        check_columns(self, len(reads) + 1, "width", "n_kmers", "copies", "reference", "repeats")
        check_columns(self, len(reads), "width", "offsets", "n_kmers", "copies")
        check_range("reference", self.reference, 0, np.finfo(np.float32).max)
        check_range("repeats", self.repeats, 0, 2)
        if self.offsets[0] or not np.array_equal(np.diff(self.offsets), reads.lengths // self.width + 1):
            raise ValueError("offsets: not those of the reads")
        check_columns(self, int(self.offsets[-1]), "width", "offsets", "reference", "repeats")
