"""What a mapper learns from pieces that are aligned without doubt: how wide bands have to be, and which scores are low."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.runs import length_of, operation_of
from bellapy.engines.affine.batch_cpu import NEAR, Effort
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.jobs.map.join import advance, count_path

MARGIN_QUANTILE = 0.75  # of the diagonals that sure pieces stray: the first band is wide enough for so many
FLOOR_QUANTILE = 0.01  # of the scores of sure pieces: below it, a band is proved or widened


@njit
def stray(runs, starts, counts):
    """How many diagonals the path of each solved piece leaves those between its corners, (n,) int64.

    runs, starts, counts : of Solved.
    """
    found = np.zeros(len(counts), np.int64)
    for p in range(len(counts)):
        shift = lowest = highest = np.int64(0)
        for x in range(starts[p], starts[p] + counts[p]):
            operation, size = operation_of(runs[x]), np.int64(length_of(runs[x]))
            q_size, t_size = advance(operation, size)
            shift += t_size - q_size
            lowest, highest = min(lowest, shift), max(highest, shift)
        found[p] = max(min(0, shift) - lowest, highest - max(0, shift))
    return found


@njit
def error_rates(query, target, pieces, solved, scoring):
    """Mismatches and gap bases of all columns of each solved piece that runs forward, (n,) float64.

    query, target : (any,) uint8, codes of reads and reference.  pieces : Pieces.  solved : Solved.  scoring : AffineScoring.
    """
    rates = np.zeros(len(solved.counts))
    for p in range(len(rates)):
        runs = solved.runs[solved.starts[p] : solved.starts[p] + solved.counts[p]][::-1].copy()
        counted = count_path(query, target, pieces.q_at[p], pieces.t_at[p], runs, 0, len(runs), scoring)
        rates[p] = (counted[2] + counted[3]) / max(np.int64(1), counted[1] + counted[2] + counted[3])
    return rates


def rates_and_strays(pieces: Pieces, solved: Solved) -> tuple[np.ndarray, np.ndarray]:
    """Of pieces solved without doubt the scores per 1,000 bases, and the diagonals that paths stray, (n,) int64 both."""
    return 1000 * solved.score // np.minimum(pieces.q_len, pieces.t_len), stray(solved.runs, solved.starts, solved.counts)


def effort_from(rates: np.ndarray, strays: np.ndarray, effort: Effort) -> Effort:
    """The effort that is enough for pieces like those that `rates_and_strays` tells of; zdrop and bonus stay."""
    margin = int(np.quantile(strays, MARGIN_QUANTILE)) + 2 * NEAR
    return effort._replace(floor=int(np.quantile(rates, FLOOR_QUANTILE)), margin=margin)
