"""From seeds to flanks and back: every seed has a left and a right flank, each extended on its own, as index records.

A flank is two ranges of `ReadSet.both_ways`, read forward: the query's bases away from the seed and the target's.  No bases
are copied.  On opposite strands the target's flank lies on its other side and is complemented.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.records import Extensions, ReadSet, Seeds
from bellapy.records.table import freeze


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
        freeze(self, {**dict.fromkeys(longs, np.int64), "complement": np.uint8})

    def __len__(self) -> int:
        return len(self.query_at)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        return self.query_at, self.query_length, self.target_at, self.target_length, self.complement

    def beyond(self, rows: np.ndarray, bases: np.ndarray) -> Flanks:
        """What is left of some flanks after (n, 2) bases of query and target."""
        query, target = bases[rows].T
        return Flanks(
            self.query_at[rows] + query, self.query_length[rows] - query,
            self.target_at[rows] + target, self.target_length[rows] - target, self.complement[rows],
        )  # fmt: skip

    def table(self, rows: np.ndarray) -> np.ndarray:
        """(n, 5) int64, all that compiled code needs of these flanks: beginnings and lengths, 3 to complement, else 0."""
        return np.stack([column[rows] for column in self.columns], axis=1, dtype=np.int64) * (1, 1, 1, 1, 3)


def make_flanks(reads: ReadSet, seeds: Seeds) -> Flanks:
    """The left flanks of all seeds, then their right flanks (left and right as the query runs)."""
    n = len(seeds.query_id)
    longs, complement = np.empty((4, 2 * n), np.int64), np.empty(2 * n, np.uint8)
    length = np.broadcast_to(np.int32(seeds.length), n).astype(np.int32)
    anchors = seeds.query_id, seeds.target_id, seeds.strand, seeds.query_pos, seeds.target_pos, length
    _place_flanks(reads.starts, reads.lengths, 2 * len(reads.codes), *anchors, *longs, complement)
    return Flanks(*longs, complement)


@njit_entry
def _place_flanks(
    starts, lengths, end, query_id, target_id, strand, query_pos, target_pos, length,
    query_at, query_length, target_at, target_length, complement,
):  # fmt: skip
    """Fill in the columns of `Flanks`; `end` is the length of `ReadSet.both_ways`."""
    n = query_id.size
    for i in range(n):
        q, t, k, same = query_id[i], target_id[i], length[i], strand[i] > 0
        left, right = i, n + i
        target_left, target_right = (left, right) if same else (right, left)
        query_at[left] = end - (starts[q] + query_pos[i])  # reversed from the seed's start
        target_at[target_left] = end - (starts[t] + target_pos[i])
        query_length[left], target_length[target_left] = query_pos[i], target_pos[i]
        query_at[right] = starts[q] + query_pos[i] + k  # forward from its end
        target_at[target_right] = starts[t] + target_pos[i] + k
        query_length[right] = lengths[q] - query_pos[i] - k
        target_length[target_right] = lengths[t] - target_pos[i] - k
        complement[left] = complement[right] = np.uint8(not same)


def join_flanks(seeds: Seeds, results: np.ndarray, turns: np.ndarray, match: int) -> Extensions:
    """Alignments of n seeds from the results of their flanks.

    The seed itself counts as `seeds.length` matches.

    Parameters
    ----------
    results : (2 n, 3) int64, score, query bases, target bases.
    turns : (2 n, 2) int64, query and target bases of the first step.
    """
    n = len(seeds)
    left, right = results[:n], results[n:]
    same = seeds.strand > 0
    columns = (
        left[:, 0] + right[:, 0] + seeds.length * match,
        seeds.query_pos - left[:, 1],
        seeds.query_pos + seeds.length + right[:, 1],
        seeds.target_pos - np.where(same, left[:, 2], right[:, 2]),
        seeds.target_pos + seeds.length + np.where(same, right[:, 2], left[:, 2]),
        *turns[:n].T,
        *turns[n:].T,
    )
    return Extensions(*(np.ascontiguousarray(column, np.int32) for column in columns))
