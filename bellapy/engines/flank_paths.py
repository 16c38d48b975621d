"""What an executor gives: the path of every flank, from the end of its extension to the seed, as runs of one operation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bellapy.params import Scoring

BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class FlankPaths:
    """runs : uint32 (compute/runs.py).

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


def block_chunks(n_chunks: int, chunk_bytes: int, state_bytes: int) -> int:
    """Chunks of a block: all if their bits fit BLOCK_BYTES, else at least so many that bits take no less than saved states.

    chunk_bytes, state_bytes : of the bits of a chunk, of the state between two.
    """
    balanced = math.isqrt(n_chunks * state_bytes // chunk_bytes) + 1
    return min(n_chunks, max(BLOCK_BYTES // chunk_bytes, balanced))
