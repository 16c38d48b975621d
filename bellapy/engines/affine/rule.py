"""The rule that all executions of this engine follow, and what proves that a band of diagonals was wide enough.

With H(i, j) the best score of a path from (0, 0) to query base i and target base j,

    H(i, j)  = max(H(i-1, j-1) + pair, E1(i, j), E2(i, j), F1(i, j), F2(i, j))
    Ep(i, j) = max(H(i, j-1) - open_p, Ep(i, j-1)) - extend_p         target alone, for both pieces p
    Fp(i, j) = max(H(i-1, j) - open_p, Fp(i-1, j)) - extend_p         query alone

H(0, 0) = 0 and all else outside the table is minus infinity.  A *global* alignment ends at the last cell.  An *extension*
ends at the cell with the highest score: of equal ones the first in the order of i + j, then of i.  `zdrop` ends an extension
at the first anti-diagonal i + j where the better one of the last two falls by more than that below the best score so far.

A path that leaves a band of diagonals d = j - i has to pay for the gaps that lead out and, if global, back in, and cannot
have more pairs than are left.  If it scores less than the band's best even with all pairs equal, that is the best.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.errors import ParameterError
from bellapy.params import AffineScoring
from bellapy.records.bases import UNKNOWN

GLOBAL, EXTEND, REACH = range(3)
"""Modes: end to end; from the beginning to the best end; the same, with a bonus for using up the query."""
NO_ZDROP = 1 << 30
BAND_ROWS = 128
"""Bands that are asked for have a multiple of so many rows, as the lanes of a GPU hold."""
LOWEST = -(1 << 29)
"""Minus infinity in 32 bits: nothing that is added to it wraps around."""

__all__ = ["EXTEND", "GLOBAL", "LOWEST", "NO_ZDROP", "PAIR", "QUERY_ALONE", "REACH", "TARGET_ALONE"]


def ordered(scoring: AffineScoring) -> AffineScoring:
    """The same costs with the piece that is cheaper for long gaps second, as kernels expect them.

    Raises
    ------
    ParameterError : a score of the wrong sign.
    """
    if scoring.match < 1 or scoring.mismatch > -1:
        raise ParameterError("--match has to be above 0 and --mismatch below")
    if min(scoring.open1, scoring.open2) < 0 or min(scoring.extend1, scoring.extend2) < 1:
        raise ParameterError("--gap-open must not be below 0, and --gap-extend not below 1")
    if scoring.extend2 > scoring.extend1:
        first, second = (scoring.open2, scoring.extend2), (scoring.open1, scoring.extend1)
        return scoring._replace(open1=first[0], extend1=first[1], open2=second[0], extend2=second[1])
    return scoring


def rows_of_band(diagonals: int | np.ndarray, q_len: np.ndarray, t_len: np.ndarray, mode: np.ndarray) -> np.ndarray:
    """Rows, of two diagonals each, of bands that have at least so many diagonals and hold both ends of the alignments.

    They are multiples of BAND_ROWS.  q_len, t_len, mode : (n,) int64, as in pieces.Pieces.
    """
    shift = np.where(mode == GLOBAL, np.abs(t_len - q_len), 0)
    return -(-np.maximum(diagonals, shift + 2) // (2 * BAND_ROWS)) * BAND_ROWS


@njit_inner
def centre_of(q_len, t_len, mode, rows):
    """Row of diagonal 0 in a band of so many rows: the corners lie equally far from both ends of the band.

    Row w holds the diagonals 2 (w - centre) and 2 (w - centre) + 1.  q_len, t_len : bases.  mode : GLOBAL and so on.
    """
    if mode != GLOBAL:
        return rows // 2
    return rows // 2 - ((t_len - q_len) >> 2)


@njit_inner
def band_of(q_len, t_len, mode, rows):
    """The lowest and the highest diagonal of a band of so many rows; q_len, t_len, mode : as in `centre_of`."""
    centre = centre_of(q_len, t_len, mode, rows)
    return -2 * centre, 2 * (rows - 1 - centre) + 1


@njit_inner
def gap_cost(n, scoring):
    """What a gap of n bases costs by scoring (AffineScoring), at least 0; 0 for none."""
    if n <= 0:
        return 0
    return min(scoring.open1 + n * scoring.extend1, scoring.open2 + n * scoring.extend2)


@njit_inner
def pair_score(query, target, scoring):
    """What a pair of bases scores; query, target : uint8 codes, scoring : AffineScoring."""
    if query >= UNKNOWN or target >= UNKNOWN:
        return scoring.unknown
    return scoring.match if query == target else scoring.mismatch


@njit_inner
def outside(out, q_len, t_len, mode, bonus, scoring):
    """No path that visits diagonal t_len - q_len + out or 0 - out, `out` beyond the corner diagonals, scores more than this.

    Both sides are looked at; where no such diagonal exists, the bound is LOWEST.
    q_len, t_len : bases.  mode : GLOBAL and so on.  bonus : for reaching the query's end.  scoring : AffineScoring.
    """
    shift = t_len - q_len
    best = LOWEST
    if mode == GLOBAL:
        above, below = max(0, shift) + out, max(0, -shift) + out
        if above <= t_len:
            best = scoring.match * (t_len - above) - gap_cost(above, scoring) - gap_cost(above - shift, scoring)
        if below <= q_len:
            other = scoring.match * (q_len - below) - gap_cost(below, scoring) - gap_cost(below + shift, scoring)
            best = max(best, other)
        return best
    if out <= t_len:
        best = scoring.match * min(q_len, t_len - out) - gap_cost(out, scoring) + bonus
    if out <= q_len:
        best = max(best, scoring.match * min(q_len - out, t_len) - gap_cost(out, scoring) + bonus)
    return best


@njit_inner
def width_needed(score, q_len, t_len, mode, bonus, scoring):
    """The smallest `out` for which `outside` is below a score that was reached: so many diagonals, less one, are enough.

    q_len, t_len, mode, bonus, scoring : as in `outside`.
    """
    low, high = 1, max(q_len, t_len) + 1
    while low < high:
        middle = (low + high) // 2
        if outside(middle, q_len, t_len, mode, bonus, scoring) < score:
            high = middle
        else:
            low = middle + 1
    return low
