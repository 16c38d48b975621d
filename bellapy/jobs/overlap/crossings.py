"""Where the two alignments of reads that align on both strands cross.

Reads that turn do so (geometry.py): after one strand of a molecule they go back along the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.records import Extensions, Overlaps, Seeds

BEYOND = 400  # bases: an alignment goes on past a place if it covers so many on both sides of it
NOWHERE = -(1 << 40)


@dataclass(frozen=True)
class Aligned:
    """What geometry looks at of alignments and their seeds, (n,) each, as in Seeds and Extensions."""

    query_id: np.ndarray
    target_id: np.ndarray
    strand: np.ndarray
    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray
    score: np.ndarray

    @classmethod
    def of(cls, seeds: Seeds | Overlaps, extensions: Extensions | Overlaps) -> Aligned:
        """Those of seeds and the alignments that grew from them; overlaps are both."""
        return cls(
            seeds.query_id, seeds.target_id, seeds.strand, extensions.query_start, extensions.query_end,
            extensions.target_start, extensions.target_end, extensions.score,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.query_id)

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """All but the score, for compiled code."""
        ends = self.query_start, self.query_end, self.target_start, self.target_end
        return self.query_id, self.target_id, self.strand, *ends

    def take(self, rows: np.ndarray) -> Aligned:
        """The same of some rows."""
        return Aligned(*(column[rows] for column in (*self.columns, self.score)))


@njit_entry
def _are_in_order(query_id, target_id):
    """Whether rows are in the order of their pairs of reads, (n,) int32 each."""
    for i in range(1, len(query_id)):
        if query_id[i] < query_id[i - 1] or (query_id[i] == query_id[i - 1] and target_id[i] < target_id[i - 1]):
            return False
    return True


def in_order(some: Aligned) -> tuple[Aligned, np.ndarray | None]:
    """The rows by their two reads, and which ones these are; None: all, which is usual."""
    if _are_in_order(some.query_id, some.target_id):
        return some, None
    order = np.lexsort((some.target_id, some.query_id))
    return some.take(order), order


@njit_entry
def _list_both(query_id, target_id, strand, telling, found):
    """Write the rows of pairs of reads that align on both strands to `found`, (n,) int64; return their number.

    query_id, target_id, strand : of Aligned, by pairs.  telling : (n,) bool, the rows that count.
    """
    n, i = 0, 0
    while i < len(query_id):
        last, forth, back = i, False, False
        while last < len(query_id) and query_id[last] == query_id[i] and target_id[last] == target_id[i]:
            forth |= telling[last] and strand[last] > 0
            back |= telling[last] and strand[last] < 0
            last += 1
        if forth and back:
            for x in range(i, last):
                if telling[x]:
                    found[n] = x
                    n += 1
        i = last
    return n


def _on_both_strands(some: Aligned, telling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of pairs of reads that align on both strands; for each the best row of its reads on the other strand."""
    by_pair, order = in_order(some)
    rows = np.empty(len(some), np.int64)
    tells = telling if order is None else telling[order]
    rows = rows[: _list_both(by_pair.query_id, by_pair.target_id, by_pair.strand, tells, rows)].copy()
    mine = by_pair.take(rows)
    pair = np.cumsum(np.diff(mine.query_id, prepend=-1).astype(bool) | np.diff(mine.target_id, prepend=-1).astype(bool))
    candidate = 2 * pair + (mine.strand > 0)
    by_score = np.lexsort((mine.score, candidate))
    best = by_score[np.diff(candidate[by_score], append=-1) != 0]
    others = rows[best[np.searchsorted(candidate[best], candidate ^ 1)]]
    return (rows, others) if order is None else (order[rows], order[others])


class Crossings(NamedTuple):
    """Alignments of reads that align on both strands, and where the two cross.

    rows : (n,) int64, the alignments.
    place : (2, n) int64, on the query and on the target.
    across : (2, n) bool, whether both run across this place on the query, on the target.
    partners : (n_reads,) int64, reads with which each read has such a place.
    """

    rows: np.ndarray
    place: np.ndarray
    across: np.ndarray
    partners: np.ndarray

    def turns(self, some: Aligned, partners: np.ndarray) -> np.ndarray:
        """Where reads turn that one other read alone runs across, and that on both strands; (2, n) int64.

        Of each of the rows the place on the query and on the target, NOWHERE where they do not turn.  Several such reads
        are evidence of an inverted repeat in the molecule: reads turn at random places.

        some : all alignments.  partners : the sum of those of all alignments of these reads.
        """
        read = np.stack((some.query_id[self.rows], some.target_id[self.rows]))
        return np.where(self.across & (partners == 1)[read], self.place, NOWHERE)


def find_crossings(n_reads: int, some: Aligned, telling: np.ndarray) -> Crossings:
    """Where the two alignments of reads that align on both strands cross; all those of a pair have to be given.

    telling : (n,) bool, the alignments that count.
    """
    rows, others = _on_both_strands(some, telling)
    mine, its = some.take(rows), some.take(others)
    read = np.stack((mine.query_id, mine.target_id))
    start, end, start_of_other, end_of_other = (
        np.stack((getattr(one, f"query_{edge}"), getattr(one, f"target_{edge}"))).astype(np.int64)
        for one in (mine, its) for edge in ("start", "end")
    )  # fmt: skip
    same, twice, twice_of_other = mine.strand > 0, start + end, start_of_other + end_of_other
    ahead, back = np.where(same, twice, twice_of_other), np.where(same, twice_of_other, twice)
    difference, total = ahead[1] - ahead[0], back[0] + back[1]
    place = np.stack((total - difference, total + difference)) // 4  # where the two diagonals cross
    within = np.maximum(start, start_of_other) + BEYOND <= place
    within &= place <= np.minimum(end, end_of_other) - BEYOND
    pairs = np.unique(read[within].astype(np.int64) << 32 | read[::-1][within])
    return Crossings(rows, place, within, np.bincount(pairs >> 32, minlength=n_reads))
