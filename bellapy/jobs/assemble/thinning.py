"""Reads of molecules that are far deeper than the rest, as of a plasmid with 200 copies: only some of them are overlapped.

All reads of such a molecule overlap each other, so that their overlaps would take longer than all others together.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.threads import map_threads
from bellapy.records import ReadSet
from bellapy.seeding.sampling import MIXER, hash_kmers

K, SAMPLED = 15, np.uint64(31)  # of k-mers whose hash has none of these bits, one in 32, it is counted how often they occur
BLOCK = 1 << 17  # bases that are looked at together
CELL_BITS = 20  # of the table that tells which words may be frequent
MOST = 600  # times that a read's k-mers occur in the median, without errors, up to which all such reads are used


def choose_some(reads: ReadSet, threads: int = 1) -> np.ndarray:
    """Mask of the reads that are used: of those whose k-mers occur more than MOST times, about as many as occur so often.

    Which ones depends on their k-mers and lengths, not on their order or their strands.
    """
    words, owner = _sample(reads, threads)
    times = _often(words)
    n, n_often = (np.bincount(some, minlength=len(reads)) for some in (owner, owner[times > 0]))
    looked_at = (n > 0) & (2 * n_often >= n)  # the median of the others is lower
    mine = looked_at[owner]
    words, owner, times = words[mine], owner[mine], times[mine]
    kept = np.ones(len(reads), bool)
    owners, first = np.unique(owner, return_index=True)
    middle = first + n[owners] // 2
    depth = times[np.lexsort((times, owner))][middle]
    mixed = np.add.reduceat(words, first) if len(first) else words
    mixed = (mixed + reads.lengths[owners].astype(np.uint64)) * MIXER
    mixed = (mixed ^ mixed >> np.uint64(29)) * MIXER
    kept[owners] = mixed / 2.0**64 * depth < MOST
    return kept


def _often(words: np.ndarray) -> np.ndarray:
    """How often each word occurs, (n,) int64; 0 for those that occur fewer than MOST times.

    Those are few as a rule, and only words that share a cell of a small table with so many are sorted.
    """
    times, cells = np.zeros(len(words), np.int64), np.zeros(1 << CELL_BITS, np.int64)
    behind = np.uint64(63 - CELL_BITS)  # bits of a hash, which has 63
    _count_cells(words, behind, cells)
    some = np.flatnonzero(cells[words >> behind] >= MOST)
    _, number, n = np.unique(words[some], return_inverse=True, return_counts=True)
    times[some] = np.where(n >= MOST, n, 0)[number]
    return times


@njit_entry
def _count_cells(words, behind, cells):
    """Count the words, uint64, in `cells`, int64, that their bits above those `behind` tell."""
    for i in range(len(words)):
        cells[words[i] >> behind] += 1


def _sample(reads: ReadSet, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of some k-mers, (n,) uint64, and their reads, (n,) int64, in order."""
    codes = reads.codes

    def look(begin: int) -> tuple[np.ndarray, np.ndarray]:
        some = np.empty(min(BLOCK, len(codes) - begin), np.uint64)
        hash_kmers(codes, begin, begin + len(some), K, some)
        chosen = np.flatnonzero(some & SAMPLED == 0)  # which NONE is not
        return some[chosen], np.searchsorted(reads.starts, chosen + begin, side="right") - 1

    words, owner = zip(*map_threads(look, range(0, max(1, len(codes)), BLOCK), threads), strict=True)
    return np.concatenate(words), np.concatenate(owner)
