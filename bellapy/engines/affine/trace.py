"""The path of one lane, found from the scores that lanes.py kept: no directions are stored.

A cell's score tells where it came from: the pair before it, or a gap of the shortest length that explains it; of two gaps of
one length the one in the query.  A run of equal bases is recognised by one comparison of scores.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_inner
from bellapy.compute.runs import lengthened, operation_of, pack_run
from bellapy.engines.affine.lanes import CHUNK, score_at
from bellapy.engines.affine.rule import PAIR, QUERY_ALONE, TARGET_ALONE, gap_cost

NO_PATH = -1


@njit_inner
def row_of(i, j, centre):
    """Row of the cell (i, j) in a band whose diagonal 0 is row `centre`."""
    return ((j - i) >> 1) + centre


@njit_inner
def find_end(scratch, lane, q_len, t_len, zdrop, drift):
    """Where an extension ends, and its score: the first best cell before it falls by `zdrop`; (0, 0) if none is above.

    scratch : lanes.Scratch, after a group was run with maxima; lane : of the group.  q_len, t_len : bases.
    drift : of scores, for each anti-diagonal.

    Returns i, j, score, whether zdrop ended it.
    """
    centre, height = scratch.centres[lane], scratch.height
    best, best_r, before, dropped = np.int64(0), 0, np.int64(0), False
    for r in range(1, q_len + t_len + 1):
        base = scratch.bases[(r - 1) // CHUNK, lane]
        highest = np.int64(scratch.maxima[r, lane]) + base - drift * r
        if highest > best:
            best, best_r = highest, r
        if best - max(highest, before) > zdrop:
            dropped = True
            break
        before = highest
    if best_r > 0:
        for i in range(max(0, best_r - t_len), min(q_len, best_r) + 1):
            row = row_of(i, best_r - i, centre)
            if 0 <= row < height and score_at(scratch, lane, best_r, row) - drift * best_r == best:
                return i, best_r - i, best, dropped
    return 0, 0, np.int64(0), dropped


@njit_inner
def query_end(scratch, lane, q_len, t_len, drift):
    """The best cell that uses up the query: j and its score; (-1, 0) if the band has none.

    scratch, lane, q_len, t_len, drift : as in `find_end`.
    """
    centre = scratch.centres[lane]
    found, top = -1, np.int64(0)
    for j in range(t_len + 1):
        row = row_of(q_len, j, centre)
        if 0 <= row < scratch.height:
            score = score_at(scratch, lane, q_len + j, row) - drift * (q_len + j)
            if found < 0 or score > top:
                found, top = j, score
    return found, top


@njit_inner
def add_run(runs, first, n, operation, size):
    """Append a run of size bases to runs, uint32, or lengthen the last one if it is of the same operation.

    The path began at runs[first]; its runs end at n, and then at the number returned.
    """
    if n > first and operation_of(runs[n - 1]) == operation:
        runs[n - 1] = lengthened(runs[n - 1], size)
        return n
    runs[n] = pack_run(operation, size)
    return n + 1


@njit_inner
def _explain_gap(scratch, lane, i, j, score, scoring):
    """The shortest gap that gives the cell (i, j) its score: its operation and length; length 0 if there is none.

    scratch, lane : as in `trace`.  score : with the drift.  scoring : AffineScoring.
    """
    centre, height, drift, r = scratch.centres[lane], scratch.height, scoring.extend2, i + j
    for size in range(1, max(i, j) + 1):
        cost = gap_cost(size, scoring) - drift * size
        row = row_of(i, j - size, centre)
        if size <= j and 0 <= row < height and score_at(scratch, lane, r - size, row) - cost == score:
            return TARGET_ALONE, size
        row = row_of(i - size, j, centre)
        if size <= i and 0 <= row < height and score_at(scratch, lane, r - size, row) - cost == score:
            return QUERY_ALONE, size
    return PAIR, 0


@njit_inner
def _explain_pairs(scratch, lane, piece, i, j, score, row, scoring):
    """How many pairs lead to the cell (i, j), and their score: a run of equal ones if the scores allow, else one or none.

    scratch, lane, piece : as in `trace`.  score : with the drift.  row : of the cell.  scoring : AffineScoring.
    """
    query, q, target, t, step = piece.query, piece.q_at, piece.target, piece.t_at, piece.step
    drift, most = 2 * scoring.extend2, min(i, j)
    equal = 0
    while equal < most and query[q + step * (i - 1 - equal)] == target[t + step * (j - 1 - equal)]:
        equal += 1
    if equal == 0:
        if most > 0 and score_at(scratch, lane, i + j - 2, row) + scoring.mismatch + drift == score:
            return 1, scoring.mismatch
        return 0, 0
    if score_at(scratch, lane, i + j - 2 * equal, row) + equal * (scoring.match + drift) == score:
        return equal, equal * scoring.match
    if score_at(scratch, lane, i + j - 2, row) + scoring.match + drift == score:
        return 1, scoring.match
    return 0, 0


@njit_inner
def trace(scratch, lane, piece, i, j, scoring, runs, n):
    """Write the path from (0, 0) to (i, j), from its end, to `runs` from n on.

    scratch : lanes.Scratch, after its group was run.  lane : of the piece.  piece : Piece.  scoring : AffineScoring.
    runs : uint32, length << 4 | operation; the caller's.

    Returns the end of the runs (NO_PATH if the scores do not explain each other), the path's score, and how near it came to
    an end of the band, in rows.
    """
    first, near, total = n, 1 << 20, np.int64(0)
    while i > 0 or j > 0:
        row = row_of(i, j, scratch.centres[lane])
        near = min(near, row, scratch.height - 1 - row)
        score = score_at(scratch, lane, i + j, row)
        pairs, gain = _explain_pairs(scratch, lane, piece, i, j, score, row, scoring)
        if pairs > 0:
            n = add_run(runs, first, n, PAIR, pairs)
            i, j, total = i - pairs, j - pairs, total + gain
            continue
        operation, size = _explain_gap(scratch, lane, i, j, score, scoring)
        if size == 0:
            return NO_PATH, total, 0
        n = add_run(runs, first, n, operation, size)
        total -= gap_cost(size, scoring)
        if operation == TARGET_ALONE:
            j -= size
        else:
            i -= size
    return n, total, near
