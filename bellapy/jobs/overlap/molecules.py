"""Stage 3b, continued: reads that are a few times as deep as most, without a step in their depth, and yet in no repeat.

They come from a repeat of a few copies that is longer than they are, or from a molecule with more copies than most, such as
a small plasmid.  Of a repeat some reads cross the border.  These show a step from usual depth to a higher one, and share the
k-mers of the high side with the reads within.  Of a molecule no read does, but for chimeras, and for repeats that it has in
common with others.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import shared_by
from bellapy.jobs.overlap.depth import LEAST_KMERS, STEP, UNIT, WINDOW_BINS, Bins, count_votes, find_steps, mark_high
from bellapy.records import DepthProfile, KmerMatrix

RAISED = 2.0  # times the usual depth: such reads may be taken for repeats
LEAST_RAISED = 5  # reads
CROSSING = 0.03  # share of places on the high side of a step: fewer are chimeras
CLEAN = 0.6  # share of a read's bins with fewer


@njit
def _count_clean(offsets, votes, most, n_voted, n_clean):
    """Bins of each read with k-mers that voted, and those of them where they voted at most `most` for a repeat.

    offsets : of a DepthProfile.  votes : of `count_votes`.  n_voted, n_clean : (n_reads,) int64, filled.
    """
    for r in range(len(n_voted)):
        voted = clean = 0
        for b in range(offsets[r], offsets[r + 1]):
            voted += votes[1, b] > 0
            clean += votes[1, b] > 0 and np.int64(votes[0, b]) <= most * np.int64(votes[1, b])
        n_voted[r], n_clean[r] = voted, clean


def in_molecules(
    parts: Iterable[KmerMatrix], bins: Bins, profile: DepthProfile, upper: int, level: np.ndarray, usual: float, threads: int
) -> np.ndarray:
    """Mask of the reads in molecules that are RAISED to STEP times as deep as usual, (n_reads,) bool.

    Parameters
    ----------
    parts, bins, profile, upper : as in `judge_stretches`.
    level, usual : the depth of each read, (n_reads,) float64, 0 where unknown, and that of most bases.
    """
    raised = (level > RAISED * usual) & (level <= STEP * usual)
    if usual == 0 or raised.sum() < LEAST_RAISED:
        return np.zeros(len(level), bool)
    n_reads, by_reads, columns = len(level), shared_by(threads), (profile.offsets, profile.n_kmers, profile.copies)
    low, high = np.empty(n_reads), np.zeros(len(profile.n_kmers), np.uint8)
    by_reads(lambda part: find_steps(*columns, WINDOW_BINS, RAISED, LEAST_KMERS, *part, low), n_reads)
    low[raised | (low > RAISED * usual) | (low * RAISED < usual)] = np.inf
    by_reads(lambda part: mark_high(*columns, low, RAISED, *part, high), n_reads)
    n_voted, n_clean = np.empty((2, n_reads), np.int64)
    _count_clean(profile.offsets, count_votes(parts, bins, upper, high, 0, threads), CROSSING * UNIT, n_voted, n_clean)
    return raised & (n_clean > CLEAN * n_voted)
