"""Reads of molecules that are far deeper than the rest, as of a plasmid with 200 copies: only some of them are overlapped.

All reads of such a molecule overlap each other, so that their overlaps would take longer than all others together.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.threads import map_threads
from bellapy.records import ReadSet
from bellapy.seeding.sampling import MIXER, NONE, hash_kmers

K, SAMPLED = 15, np.uint64(31)  # of k-mers whose hash has none of these bits, one in 32, it is counted how often they occur
BLOCK = 1 << 19  # bases that are looked at together
MOST = 600  # times that a read's k-mers occur in the median, without errors, up to which all such reads are used


def choose_some(reads: ReadSet, threads: int = 1) -> np.ndarray:
    """Mask of the reads that are used: of those whose k-mers occur more than MOST times, about as many as occur so often.

    Which ones depends on their k-mers and lengths, not on their order or their strands.
    """
    words, owner = _sample(reads, threads)
    order = np.argsort(words)
    begins = np.flatnonzero(np.append(True, np.diff(words[order]) != 0)) if len(words) else np.zeros(0, np.int64)
    times = np.empty(len(words), np.int64)
    sizes = np.diff(np.append(begins, len(words)))
    times[order] = np.repeat(sizes, sizes)
    kept = np.ones(len(reads), bool)
    owners, first = np.unique(owner, return_index=True)
    middle = first + np.diff(np.append(first, len(owner))) // 2
    depth = times[np.lexsort((times, owner))][middle]
    mixed = np.add.reduceat(words, first) if len(first) else words
    mixed = (mixed + reads.lengths[owners].astype(np.uint64)) * MIXER
    mixed = (mixed ^ mixed >> np.uint64(29)) * MIXER
    kept[owners] = mixed / 2.0**64 * depth < MOST
    return kept


def _sample(reads: ReadSet, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Hashes of some k-mers, (n,) uint64, and their reads, (n,) int64, in order."""
    codes = reads.codes

    def look(begin: int) -> tuple[np.ndarray, np.ndarray]:
        some = np.empty(min(BLOCK, len(codes) - begin), np.uint64)
        hash_kmers(codes, begin, begin + len(some), K, some)
        chosen = np.flatnonzero((some & SAMPLED == 0) & (some != NONE))
        return some[chosen], np.searchsorted(reads.starts, chosen + begin, side="right") - 1

    words, owner = zip(*map_threads(look, range(0, max(1, len(codes)), BLOCK), threads), strict=True)
    return np.concatenate(words), np.concatenate(owner)
