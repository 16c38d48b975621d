"""Alignments: grown from seeds, reported as overlaps, base by base."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from bellapy.params import RANGES
from bellapy.records.reads import ReadSet
from bellapy.records.seeds import Anchors, Seeds
from bellapy.records.table import INT32_MAX, check_columns, check_range, freeze


@dataclass(frozen=True)
class Extensions:
    """The alignment that grew from each seed; row i belongs to seed i.

    score : (n,) int32.
    query_start, query_end, target_start, target_end : (n,) int32, forward strand of each read.
    left_query, left_target, right_query, right_target : (n,) int32, bases from the seed to where the second step of the
        extension began (engines/extend.py), or to its end where there was none; left and right as the query runs.
    """

    score: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    left_query: np.ndarray
    left_target: np.ndarray
    right_query: np.ndarray
    right_target: np.ndarray

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where they lie on the query and on the target."""
        return self.query_start, self.query_end, self.target_start, self.target_end

    def __post_init__(self):
        freeze(self, {f.name: np.int32 for f in fields(self)})

    def __len__(self) -> int:
        return len(self.score)

    def check(self, reads: ReadSet, seeds: Seeds) -> None:
        """Every alignment in its reads, and around its seed; a score that so many bases can have."""
        check_columns(self, len(seeds))
        shorter = np.full(len(self), INT32_MAX, np.int32)
        for side, read in (("query", seeds.query_id), ("target", seeds.target_id)):
            start, end = getattr(self, f"{side}_start"), getattr(self, f"{side}_end")
            seed = getattr(seeds, f"{side}_pos")
            check_range(f"{side}_start", start, 0, seed)
            check_range(f"{side}_end", end, seed + np.int32(seeds.length), reads.lengths[read])
            shorter = np.minimum(shorter, end - start)
        same = seeds.strand > 0
        before, after = seeds.target_pos - self.target_start, self.target_end - seeds.target_pos - np.int32(seeds.length)
        check_range("left_query", self.left_query, 0, seeds.query_pos - self.query_start)
        check_range("right_query", self.right_query, 0, self.query_end - seeds.query_pos - np.int32(seeds.length))
        check_range("left_target", self.left_target, 0, np.where(same, before, after))
        check_range("right_target", self.right_target, 0, np.where(same, after, before))
        check_range("score", self.score, -2 * RANGES["xdrop"].high, RANGES["match"].high * shorter.astype(np.int64))

    def take(self, rows: np.ndarray | slice) -> Extensions:
        """The extensions of the given rows (indices, mask or slice)."""
        return Extensions(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True)
class Overlaps:
    """What is reported, by query, target and strand; all (n,) int32 but `strand`, int8.

    query_id, target_id, strand, query_start, query_end, target_start, target_end : as in Seeds and Extensions.
    score : of the alignment; 0 where none was made.
    n_support : shared k-mers that agree on the seed's diagonal.
    n_matches, n_columns : matching bases and length of the alignment; estimates where there is no path.
    seed_query, seed_target, seed_length : where the seed stands, as in Seeds.
    left_query, left_target, right_query, right_target : as in Extensions; 0 where no alignment was made.
    """

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    score: np.ndarray
    n_support: np.ndarray
    n_matches: np.ndarray
    n_columns: np.ndarray
    seed_query: np.ndarray
    seed_target: np.ndarray
    seed_length: np.ndarray
    left_query: np.ndarray
    left_target: np.ndarray
    right_query: np.ndarray
    right_target: np.ndarray

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The two reads of each and their strand, which make a candidate."""
        return self.query_id, self.target_id, self.strand

    @property
    def intervals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where they lie on the query and on the target."""
        return self.query_start, self.query_end, self.target_start, self.target_end

    @property
    def anchors(self) -> Anchors:
        """The seeds that the overlaps grew from."""
        return Anchors(*self.pairs, self.seed_query, self.seed_target, self.seed_length)

    @property
    def turns(self) -> np.ndarray:
        """(2 n, 2) int64: query and target bases of the first step, of all left flanks, then of all right ones."""
        sides = (self.left_query, self.left_target), (self.right_query, self.right_target)
        return np.concatenate([np.stack(side, axis=1, dtype=np.int64) for side in sides])

    def __post_init__(self):
        freeze(self, {f.name: np.int8 if f.name == "strand" else np.int32 for f in fields(self)})

    def __len__(self) -> int:
        return len(self.query_id)

    def take(self, rows: np.ndarray | slice) -> Overlaps:
        """The overlaps of the given rows (indices, mask or slice)."""
        return Overlaps(*(getattr(self, f.name)[rows] for f in fields(self)))


def join_overlaps(parts: list[Overlaps]) -> Overlaps:
    """Overlaps of consecutive parts as one record."""
    return Overlaps(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Overlaps)))


@dataclass(frozen=True)
class Paths:
    """The base-level paths of some overlaps, row i that of overlap i, along the target's forward strand.

    runs : uint32, length << 4 | operation, as BAM packs a CIGAR: 0 a pair of bases, equal or not (M), 1 query bases alone
        (I), 2 target bases alone (D).
    offsets : (n + 1,) int64; the runs of overlap i are runs[offsets[i] : offsets[i + 1]].
    n_matches, n_mismatches, n_gap_bases, n_gaps : (n,) int32; unknown bases match nothing.
    """

    runs: np.ndarray
    offsets: np.ndarray
    n_matches: np.ndarray
    n_mismatches: np.ndarray
    n_gap_bases: np.ndarray
    n_gaps: np.ndarray

    def __post_init__(self):
        numbers = ("n_matches", "n_mismatches", "n_gap_bases", "n_gaps")
        freeze(self, {"runs": np.uint32, "offsets": np.int64, **dict.fromkeys(numbers, np.int32)})

    def __len__(self) -> int:
        return len(self.n_matches)

    def take(self, mask: np.ndarray) -> Paths:
        """The paths of the rows that a mask, (n,) bool, holds."""
        sizes = np.diff(self.offsets)
        numbers = (self.n_matches, self.n_mismatches, self.n_gap_bases, self.n_gaps)
        offsets = np.concatenate(([0], np.cumsum(sizes[mask])))
        return Paths(self.runs[np.repeat(mask, sizes)], offsets, *(column[mask] for column in numbers))

    def part(self, begin: int, end: int) -> Paths:
        """The paths of rows begin .. end - 1; the runs are not copied."""
        offsets = self.offsets[begin : end + 1]
        numbers = (self.n_matches, self.n_mismatches, self.n_gap_bases, self.n_gaps)
        return Paths(self.runs[offsets[0] : offsets[-1]], offsets - offsets[0], *(column[begin:end] for column in numbers))


def join_paths(parts: list[Paths]) -> Paths:
    """Paths of consecutive parts as one record."""
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    names = ("n_matches", "n_mismatches", "n_gap_bases", "n_gaps")
    counts = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return Paths(np.concatenate([part.runs for part in parts]), np.concatenate(([0], np.cumsum(sizes))), *counts)
