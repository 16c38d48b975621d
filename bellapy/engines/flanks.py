"""From anchors to flanks and back: every anchor has a left and a right flank, each extended on its own, as index records.

A flank is two ranges of `ReadSet.both_ways`, read forward: the query's bases away from the anchor and the target's.  No
bases are copied.  On opposite strands the target's flank lies on its other side and is complemented.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.engines.ends import Ends
from bellapy.records import Anchors, Extensions, ReadSet
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


class _Columns(NamedTuple):
    """The columns of Anchors, for compiled code."""

    query: np.ndarray
    target: np.ndarray
    strand: np.ndarray
    query_pos: np.ndarray
    target_pos: np.ndarray
    length: np.ndarray


def make_flanks(reads: ReadSet, anchors: Anchors) -> Flanks:
    """The left flanks of all anchors, then their right flanks (left and right as the query runs)."""
    n = len(anchors)
    longs, complement = np.empty((4, 2 * n), np.int64), np.empty(2 * n, np.uint8)
    columns = _Columns(
        anchors.query_id, anchors.target_id, anchors.strand, anchors.query_pos, anchors.target_pos, anchors.length
    )
    _place_flanks(reads.starts, reads.lengths, 2 * len(reads.codes), columns, longs, complement)
    return Flanks(longs[0], longs[1], longs[2], longs[3], complement)


@njit_entry
def _place_flanks(starts, lengths, end, anchors, places, complement):
    """Fill in the columns of `Flanks`.

    Parameters
    ----------
    starts, lengths : of ReadSet.
    end : length of `ReadSet.both_ways`.
    anchors : _Columns of Anchors.
    places : (4, 2 n) int64, overwritten: the columns of Flanks but the last.
    complement : (2 n,) uint8, overwritten.
    """
    query_id, target_id, strand, query_pos, target_pos, length = anchors
    query_at, query_length, target_at, target_length = places[0], places[1], places[2], places[3]
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


def list_further(flanks: Flanks, turns: np.ndarray, near: int, least: int) -> np.ndarray:
    """The flanks, as `make_flanks` makes them, of which more than `near` bases are left behind `turns`, ascending.

    Not those of anchors around which fewer than `least` bases were found, of both reads and flanks together.
    turns : (n, 2) int64, query and target bases.
    """
    rows = np.empty(len(flanks), np.int64)
    return rows[: _list_further(flanks.query_length, flanks.target_length, turns, near, least, rows)].copy()


@njit_entry
def _list_further(query_length, target_length, turns, near, least, rows):
    """Write the rows of `list_further` to rows, (n,) int64; return how many.  query_length, target_length : of Flanks."""
    half, n = len(query_length) // 2, 0
    for row in range(2 * half):
        left, right = row % half, half + row % half
        found = turns[left, 0] + turns[left, 1] + turns[right, 0] + turns[right, 1]
        rows[n] = row
        n += found >= least and min(query_length[row] - turns[row, 0], target_length[row] - turns[row, 1]) > near
    return n


def join_flanks(anchors: Anchors, ends: Ends, turns: np.ndarray, match: int) -> Extensions:
    """Alignments of n anchors from the ends of their flanks.

    The anchor itself counts as so many matches as it has bases.

    Parameters
    ----------
    ends : of 2 n flanks, as `make_flanks` makes them.
    turns : (2 n, 2) int64, query and target bases of the first step.
    """
    found = np.empty((9, len(anchors)), np.int32)
    columns = anchors.strand, anchors.query_pos, anchors.target_pos, anchors.length
    _join(columns, ends.table, np.ascontiguousarray(turns), match, found)
    return Extensions(*found)


@njit_entry
def _join(anchors, table, turns, match, found):
    """Fill in the columns of Extensions.

    anchors : strand, query_pos, target_pos and length of Anchors.  table : of Ends.  turns, match : as of `join_flanks`.
    found : (9, n) int32.
    """
    strand, query_pos, target_pos, length = anchors
    n = len(strand)
    for i in range(n):
        left, right = i, n + i
        before, behind = (left, right) if strand[i] > 0 else (right, left)
        found[0, i] = table[left, 0] + table[right, 0] + np.int64(length[i]) * match
        found[1, i] = query_pos[i] - table[left, 1]
        found[2, i] = query_pos[i] + length[i] + table[right, 1]
        found[3, i] = target_pos[i] - table[before, 2]
        found[4, i] = target_pos[i] + length[i] + table[behind, 2]
        found[5, i], found[6, i] = turns[left, 0], turns[left, 1]
        found[7, i], found[8, i] = turns[right, 0], turns[right, 1]
