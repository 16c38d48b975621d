"""What an executor gives: the path of every flank, from the end of its extension to the seed, as runs of one operation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellapy.params import Scoring

PAIR, QUERY_ALONE, TARGET_ALONE = range(3)
"""Operations, numbered as in BAM (M, I, D): a pair of bases, equal or not; a query base alone; a target base alone."""


@dataclass(frozen=True)
class FlankPaths:
    """runs : uint32, length << 4 | operation, as BAM packs them.

    starts, counts : (n,) int64; the runs of flank i are runs[starts[i] : starts[i] + counts[i]].
    """

    runs: np.ndarray
    starts: np.ndarray
    counts: np.ndarray


def most_runs(ends: np.ndarray, scoring: Scoring, longest: bool) -> np.ndarray:
    """How many runs a path can have, (n,) int64: with more gaps it would score less than any extension does.

    ends : (n, 2) int64, query and target bases.
    """
    bases = ends.sum(axis=1)
    least = -scoring.xdrop if longest else 0
    gaps = (scoring.match * bases - 2 * least) // (scoring.match - 2 * scoring.gap)
    return np.minimum(bases, 2 * gaps + 1)
