"""Reads of molecules that are far deeper than the rest, as of a plasmid with 200 copies: only some of them are overlapped.

All reads of such a molecule overlap each other, so that their overlaps would take longer than all others together.  Reads
of repeats have frequent k-mers, too.  All are used of two kinds.  A read with a stretch in which few k-mers are frequent
leads out of the repeats that the genome is full of.  A read with more than one of a row of copies holds k-mers more than
once, and others that are solid but rarer, since the copies differ.  Reads that go round a deep circle several times lack
these, unless there are so many with so many errors that errors return.
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
STRETCH, SHARE = 32, 4  # k-mers of a stretch, about 1,000 bases, or so many times fewer than the read has, if these are less
FREQUENT = 8  # at least one of so many is, in any stretch of a read of a deep molecule
SOLID, RARER = 5, 30  # times that k-mers occur which set copies apart, and at least one in so many of a read is such


def choose_some(reads: ReadSet, threads: int = 1) -> np.ndarray:
    """Mask of the reads that are used: of those whose k-mers occur more than MOST times, about as many as occur so often.

    Which ones depends on their k-mers and lengths, not on their order or their strands.
    """
    words, owner = _sample(reads, threads)
    times = _often(words)
    n, n_often = (np.bincount(some, minlength=len(reads)) for some in (owner, owner[times > 0]))
    mine = ((n > 0) & (2 * n_often >= n))[owner]  # the median of the others is lower
    words, owner, times = words[mine], owner[mine], times[mine]
    kept = np.ones(len(reads), bool)
    owners, first, number, n = np.unique(owner, return_index=True, return_inverse=True, return_counts=True)
    depth = times[np.lexsort((times, owner))][first + n // 2]
    mixed = np.add.reduceat(words, first) if len(first) else words
    mixed = (mixed + reads.lengths[owners].astype(np.uint64)) * MIXER
    mixed = (mixed ^ mixed >> np.uint64(29)) * MIXER
    in_repeat = _lead_out(number, times > 0, n) | _are_rows(words, number, times > 0, n)
    kept[owners] = in_repeat | (mixed / 2.0**64 * depth < MOST)
    return kept


def _lead_out(owner: np.ndarray, is_often: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Mask of the reads with a stretch in which few k-mers are frequent, (n_reads,) bool.

    owner : (n_words,) int64, the read of each word, in order.  is_often : (n_words,) bool.  n : (n_reads,) int64, its words.
    """
    size = np.minimum(STRETCH, n // SHARE)[owner]
    begin = np.arange(len(owner))
    end = begin + size
    whole = end <= np.cumsum(n)[owner]
    so_far = np.append(0, np.cumsum(is_often))
    rare = whole & (FREQUENT * (so_far[np.minimum(end, len(owner))] - so_far[begin]) < size)
    return np.bincount(owner[rare], minlength=len(n)) > 0


def _are_rows(words: np.ndarray, owner: np.ndarray, is_often: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Mask of the reads with more than one of copies that differ, (n_reads,) bool; the other ones: as in `_lead_out`."""
    _, which, times = np.unique(words, return_inverse=True, return_counts=True)
    _, pair, in_read = np.unique(owner * len(words) + which, return_inverse=True, return_counts=True)
    several, rarer = in_read[pair] > 1, ~is_often & (times[which] >= SOLID)
    n_several, n_rarer = (np.bincount(owner[some], minlength=len(n)) for some in (several, rarer))
    return (2 * n_several >= n) & (RARER * n_rarer >= n)


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
