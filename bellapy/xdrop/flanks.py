"""From seeds to flanks and back: every seed has a left and a right flank, each extended on its own, as index records.

A flank is two ranges of `ReadSet.both_ways`, read forward: the query's bases away from the seed and the target's.  No bases
are copied.  On opposite strands the target's flank lies on its other side and is complemented.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellapy.records import Extensions, ReadSet, Seeds, _freeze


@dataclass(frozen=True)
class Flanks:
    """Flanks to extend.

    query_at, target_at : (n,) int64, where the bases begin in `ReadSet.both_ways`.
    query_length, target_length : (n,) int64, bases.
    complement : (n,) uint8, 1 where the target's bases are to be complemented.
    """

    query_at: np.ndarray
    query_length: np.ndarray
    target_at: np.ndarray
    target_length: np.ndarray
    complement: np.ndarray

    def __post_init__(self):
        longs = ("query_at", "query_length", "target_at", "target_length")
        _freeze(self, {**dict.fromkeys(longs, np.int64), "complement": np.uint8})

    def __len__(self) -> int:
        return len(self.query_at)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.query_at, self.query_length, self.target_at, self.target_length, self.complement

    def table(self, rows: np.ndarray) -> np.ndarray:
        """(n, 5) int64, all that compiled code needs of these flanks: beginnings and lengths, 3 to complement, else 0."""
        return np.stack([column[rows] for column in self.columns], axis=1, dtype=np.int64) * (1, 1, 1, 1, 3)


def make_flanks(reads: ReadSet, seeds: Seeds) -> Flanks:
    """The left flanks of all seeds, then their right flanks (left and right as the query runs)."""
    end = 2 * len(reads.codes)
    k = seeds.length
    query_pos, target_pos = seeds.query_pos.astype(np.int64), seeds.target_pos.astype(np.int64)
    query_at, target_at = reads.starts[seeds.query_id] + query_pos, reads.starts[seeds.target_id] + target_pos
    query_after = reads.lengths[seeds.query_id] - query_pos - k
    target_after = reads.lengths[seeds.target_id] - target_pos - k
    same = seeds.strand > 0
    back, forth = end - target_at, target_at + k  # reversed from the seed's start, forward from its end
    return Flanks(
        np.concatenate((end - query_at, query_at + k)),
        np.concatenate((query_pos, query_after)),
        np.concatenate((np.where(same, back, forth), np.where(same, forth, back))),
        np.concatenate((np.where(same, target_pos, target_after), np.where(same, target_after, target_pos))),
        np.tile(~same, 2).astype(np.uint8),
    )


def join_flanks(seeds: Seeds, results: np.ndarray, match: int) -> Extensions:
    """Alignments from the (2 n, 3) int64 results (score, query bases, target bases) of the flanks of n seeds.

    The seed itself counts as `seeds.length` matches.
    """
    left, right = results[: len(seeds)], results[len(seeds) :]
    same = seeds.strand > 0
    columns = (
        left[:, 0] + right[:, 0] + seeds.length * match,
        seeds.query_pos - left[:, 1],
        seeds.query_pos + seeds.length + right[:, 1],
        seeds.target_pos - np.where(same, left[:, 2], right[:, 2]),
        seeds.target_pos + seeds.length + np.where(same, right[:, 2], left[:, 2]),
    )
    return Extensions(*(np.ascontiguousarray(column, np.int32) for column in columns))
