"""Where reads lie on contigs.  A read of what contigs have several times lies on all of them, and counts for one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Placements(NamedTuple):
    """Reads on contigs, one line each; all columns (n,) int64 but the last five.

    base, flip : of the first base that is aligned, in `ReadSet.both_ways`, and 3 if bases are to be complemented there.
    contig, start, end : where it lies; past the end of a circle positions go on.
    first, last : of its short runs in `runs`, uint8.  read : its number.  unsure : bool, the read fits elsewhere as well.
    again : bool, it lies elsewhere first.  errors : float64, share of its columns.
    """

    base: np.ndarray
    flip: np.ndarray
    contig: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    last: np.ndarray
    read: np.ndarray
    unsure: np.ndarray
    again: np.ndarray
    errors: np.ndarray
    runs: np.ndarray

    @property
    def counted(self) -> np.ndarray:
        """Bases of its contig under each line, (n,) int64; 0 where the read lies elsewhere first."""
        return np.where(self.again, 0, self.end - self.start)


def depth_of(placed: Placements, lengths: np.ndarray) -> np.ndarray:
    """The reads on a base of each contig, (n_contigs,) float64; lengths : of the contigs."""
    return np.bincount(placed.contig, placed.counted, len(lengths)) / np.maximum(1, lengths)


def homes(placed: Placements, n_reads: int) -> np.ndarray:
    """The contig that has most bases of each read, (n_reads,) int64; -1: none."""
    n = int(placed.contig.max(initial=0)) + 1
    keys, row = np.unique(placed.read * n + placed.contig, return_inverse=True)
    bases = np.bincount(row, placed.counted, len(keys))
    read, contig = np.divmod(keys, n)
    order = np.lexsort((contig, -bases, read))
    found = np.full(n_reads, -1)
    found[read[order][::-1]] = contig[order][::-1]  # the first of each read is written last
    return found
