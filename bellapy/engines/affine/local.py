"""Where the best local alignment ends: the rule of this engine with paths that may begin in any cell.

From that end on, an extension back to the beginning finds the path: it cannot score more, and need not score less.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.affine.pieces import Pieces
from bellapy.engines.affine.rule import EXTEND, LOWEST, pair_score


def local_pieces(query: np.ndarray, target: np.ndarray, pieces: Pieces, scoring) -> Pieces:
    """Extensions back from the ends of the best local alignments of all pieces; where none scores, both are empty.

    query, target, pieces : as in `Aligner.align`, all of step 1.  scoring : AffineScoring, from rule.ordered.
    """
    ends = local_ends(query, target, pieces, scoring)
    q_at, t_at = np.maximum(pieces.q_at + ends[0] - 1, 0), np.maximum(pieces.t_at + ends[1] - 1, 0)
    return Pieces(q_at, ends[0], t_at, ends[1], -pieces.step, np.full_like(pieces.mode, EXTEND))


@njit
def local_ends(query, target, pieces, scoring):
    """Query and target bases up to the end of the best local alignment of each piece, (2, n) int64.

    Of equal scores it is the first in the order of the sum of both, then of query bases.
    query, target : (any,) uint8, codes.  pieces : Pieces.  scoring : AffineScoring.
    """
    n = len(pieces.q_at)
    ends, longest = np.zeros((2, n), np.int64), np.int64(0)
    for p in range(n):
        longest = max(longest, pieces.t_len[p])
    above = np.empty((3, longest + 1), np.int32)  # scores of the row above, of both kinds of gaps in the target
    open1, open2 = np.int32(scoring.open1), np.int32(scoring.open2)
    extend1, extend2 = np.int32(scoring.extend1), np.int32(scoring.extend2)
    for p in range(n):
        above[0], above[1:] = np.int32(0), np.int32(LOWEST)
        best, best_i, best_j = np.int32(0), np.int64(0), np.int64(0)
        for i in range(1, pieces.q_len[p] + 1):
            base = query[pieces.q_at[p] + i - 1]
            diagonal, left = np.int32(0), np.int32(0)
            gap1 = gap2 = np.int32(LOWEST)
            for j in range(1, pieces.t_len[p] + 1):
                up = above[0, j]
                above[1, j] = max(up - open1, above[1, j]) - extend1
                above[2, j] = max(up - open2, above[2, j]) - extend2
                gap1, gap2 = max(left - open1, gap1) - extend1, max(left - open2, gap2) - extend2
                paired = diagonal + np.int32(pair_score(base, target[pieces.t_at[p] + j - 1], scoring))
                score = max(np.int32(0), paired, above[1, j], above[2, j], gap1, gap2)
                diagonal, above[0, j], left = up, score, score
                if score >= best and score > 0 and (score > best or i + j < best_i + best_j):
                    best, best_i, best_j = score, i, np.int64(j)
        ends[0, p], ends[1, p] = best_i, best_j
    return ends
