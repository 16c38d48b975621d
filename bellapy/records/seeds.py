"""Seeds of candidate pairs."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from bellapy.params import RANGES
from bellapy.records.reads import ReadSet
from bellapy.records.table import INT32_MAX, check_columns, check_range, freeze


@dataclass(frozen=True)
class Anchors:
    """Where two reads are taken to match, base by base; an alignment grows from there.

    query_id, target_id : (n,) int32.
    strand : (n,) int8.
    query_pos, target_pos : (n,) int32, start on the forward strand of each read.
    length : (n,) int32, bases.
    """

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_pos: np.ndarray
    target_pos: np.ndarray
    length: np.ndarray

    def __post_init__(self):
        freeze(self, {f.name: np.int8 if f.name == "strand" else np.int32 for f in fields(self)})

    def __len__(self) -> int:
        return len(self.query_id)

    def take(self, rows: np.ndarray | slice) -> Anchors:
        """The anchors of the given rows (indices, mask or slice)."""
        return Anchors(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True)
class Seeds:
    """One or more seeds for every candidate (query, target, strand), in that order, best seed first.

    query_id, target_id : (n,) int32, query_id < target_id.
    strand : (n,) int8.
    query_pos, target_pos : (n,) int32, start of the seed on the forward strand of each read.
    rank : (n,) int8, 0 for the best-supported diagonal of a candidate, 1 for the next, 2 for the best one of another piece.
    n_support : (n,) int32, shared k-mers near the seed's diagonal, at least k apart.
    n_shared : (n,) int32, all shared k-mers of the candidate.
    implied_length : (n,) int32, bases of the overlap if it ran along the seed's diagonal to the ends of the reads.
    query_first, query_last, target_first, target_last : (n,) int32, start of the outermost of the k-mers behind n_support.
    copies : (n,) float32, how often the least repeated of them occur, in units of what is usual; 1 where unknown.
    length : bases of a seed.
    """

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_pos: np.ndarray
    target_pos: np.ndarray
    rank: np.ndarray
    n_support: np.ndarray
    n_shared: np.ndarray
    implied_length: np.ndarray
    query_first: np.ndarray
    query_last: np.ndarray
    target_first: np.ndarray
    target_last: np.ndarray
    copies: np.ndarray
    length: int

    @classmethod
    def none(cls, length: int) -> Seeds:
        """No seed of so many bases."""
        return cls(**{name: np.zeros(0, kind) for name, kind in cls._types().items()}, length=length)

    def __post_init__(self):
        freeze(self, self._types())

    @classmethod
    def _types(cls) -> dict[str, type]:
        special = {"strand": np.int8, "rank": np.int8, "copies": np.float32}
        return {f.name: special.get(f.name, np.int32) for f in fields(cls) if f.name != "length"}

    def __len__(self) -> int:
        return len(self.query_id)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The two reads of each and their strand, which make a candidate."""
        return self.query_id, self.target_id, self.strand

    @property
    def anchors(self) -> Anchors:
        """Where they are, without what speaks for them."""
        length = np.full(len(self), self.length, np.int32)
        return Anchors(self.query_id, self.target_id, self.strand, self.query_pos, self.target_pos, length)

    def check(self, reads: ReadSet) -> None:
        """Every seed in two reads of these."""
        check_range("length", self.length, 1, RANGES["k"].high)
        check_columns(self, self.query_id.size, "length")
        check_range("target_id", self.target_id, 0, len(reads) - 1)
        check_range("query_id", self.query_id, 0, self.target_id - 1)
        check_range("strand", np.abs(self.strand), 1, 1)
        for side, read in (("query", self.query_id), ("target", self.target_id)):
            last = reads.lengths[read] - self.length
            check_range(f"{side}_pos", getattr(self, f"{side}_pos"), 0, last)
            check_range(f"{side}_last", getattr(self, f"{side}_last"), 0, last)
            check_range(f"{side}_first", getattr(self, f"{side}_first"), 0, getattr(self, f"{side}_last"))
        for name in ("rank", "n_support", "n_shared", "implied_length"):
            check_range(name, getattr(self, name), 0, INT32_MAX)
        check_range("copies", self.copies, 0, np.finfo(np.float32).max)

    def take(self, rows: np.ndarray | slice) -> Seeds:
        """The seeds of the given rows (indices, mask or slice)."""
        columns = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "length"}
        return Seeds(**columns, length=self.length)
