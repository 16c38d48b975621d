"""64 short alignments side by side, one in each byte lane, in a band of diagonals: every score is kept for the path.

Cells of a lane live in two stacks of `height` rows, one for even and one for odd anti-diagonals r = i + j.  A row is one
diagonal: row w holds j - i = 2 (w - centre) on even anti-diagonals and one more on odd ones, so that nothing moves.  E comes
from the row with the same number or the one below, F from the same or the one above.

Scores drift up by extend2 for every anti-diagonal.  Then the second piece of a gap costs nothing for each base, no cell lies
far below the best one, and a step takes 15 operations.  Every CHUNK anti-diagonals scores are taken relative to the best one
again, which is remembered in `bases`.  What would fall below FLOOR is held there: such a cell is worth too much, so the
score of a path is counted again when it is traced, and must be equal (trace.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_vector
from bellapy.engines.affine.rule import GLOBAL
from bellapy.params import AffineScoring
from bellapy.records.bases import UNKNOWN

U, I8 = np.uint64, np.int8
LANES = 64
U_LANES = U(LANES)
FLOOR, TOP = -90, 40
CHUNK = 32
MAX_STEPS = 4096  # anti-diagonals: bounds the memory of a group
BEYOND_QUERY, BEYOND_TARGET = 6, 7
"""Codes past the ends of a sequence: they match nothing."""


class Scratch(NamedTuple):
    """Working memory for groups of up to 64 alignments with up to `height` rows and MAX_STEPS anti-diagonals.

    cells : (2 parities, H E1 F1 E2 F2, (height + 2) * LANES) int8, a row of FLOOR before and after.
    query, target : rows of base codes, uint8.
    scores : H of every cell, int8: cell (r, w) of lane l at (r * height + w) * LANES + l.
    bases : (chunks + 1, LANES) int64, what was taken from the scores of a chunk.
    best, shift : (LANES,) int8.  centres : (LANES,) int64.  maxima : (MAX_STEPS + 1, LANES) int8.
    """

    cells: np.ndarray
    query: np.ndarray
    target: np.ndarray
    scores: np.ndarray
    bases: np.ndarray
    best: np.ndarray
    shift: np.ndarray
    centres: np.ndarray
    maxima: np.ndarray


def make_scratch(height: int) -> Scratch:
    rows = MAX_STEPS // 2 + height + 8
    return Scratch(
        np.zeros((2, 5, (height + 2) * LANES), np.int8),
        np.zeros(rows * LANES, np.uint8),
        np.zeros(rows * LANES, np.uint8),
        np.empty((MAX_STEPS + 2) * height * LANES, np.int8),
        np.zeros((MAX_STEPS // CHUNK + 2, LANES), np.int64),
        np.zeros(LANES, np.int8),
        np.zeros(LANES, np.int8),
        np.zeros(LANES, np.int64),
        np.zeros((MAX_STEPS + 1, LANES), np.int8),
    )


def fits(scoring: AffineScoring) -> bool:
    """Whether scores of a chunk stay within a byte, with piece 2 the one that extends more cheaply."""
    drift = scoring.extend2
    first = scoring.open1 + scoring.extend1 - drift
    rise = CHUNK // 2 * max(scoring.match + 2 * drift, scoring.mismatch + 2 * drift)
    falls = first, scoring.open2, -scoring.mismatch - 2 * drift
    return TOP + min(first, scoring.open2) + rise <= 127 and FLOOR - max(falls) >= -128


@njit_inner
def centre_of(q_len, t_len, mode, height):
    """Row of diagonal 0 of an alignment: the corners lie equally far from both ends of the band."""
    if mode != GLOBAL:
        return height // 2
    return height // 2 - ((t_len - q_len) >> 2)


@njit_inner
def reach(q_len, t_len, mode, height):
    """How many diagonals beyond the corners a band covers on its narrower side, plus one: `out` of rule.outside."""
    centre, shift = centre_of(q_len, t_len, mode, height), t_len - q_len
    if mode != GLOBAL:
        shift = 0
    lowest, highest = -2 * centre, 2 * (height - 1 - centre) + 1
    return min(highest + 1 - max(0, shift), -(lowest - 1) - max(0, -shift))


@njit_vector
def _step(
    h,
    e1,
    f1,
    e2,
    f2,
    e1_old,
    f1_old,
    e2_old,
    f2_old,
    up,
    down,
    query,
    query_at,
    target,
    target_at,
    kept,
    kept_at,
    rows,
    costs,
):
    """One anti-diagonal: `h` of the same parity two steps ago becomes the new one; E and F are for the next step.

    up, down : rows from a cell to where its E and F come from.
    """
    equal, unequal, open1, extend1, open2 = costs
    for row in range(U(1), U(rows) + U(1)):
        at, above, below = row * U_LANES, (row + U(up)) * U_LANES, (row + U(down)) * U_LANES
        before = (row - U(1)) * U_LANES
        q, t, k = U(query_at) + before, U(target_at) + before, U(kept_at) + before
        for l in range(U_LANES):
            a, b, c, d = e1_old[above + l], f1_old[below + l], e2_old[above + l], f2_old[below + l]
            pair = I8(h[at + l] + (equal if query[q + l] == target[t + l] else unequal))
            score = max(max(pair, max(a, b)), max(c, d))
            h[at + l] = score
            kept[k + l] = score
            opened = I8(score - open1)
            e1[at + l] = I8(max(opened, a) - extend1)
            f1[at + l] = I8(max(opened, b) - extend1)
            opened2 = I8(score - open2)
            e2[at + l] = max(opened2, c)
            f2[at + l] = max(opened2, d)


@njit_vector
def _lane_maxima(scores, at, rows, best):
    """The best score of every lane among `rows` rows from `at` on."""
    for l in range(U_LANES):
        best[l] = I8(-128)
    for row in range(U(rows)):
        for l in range(U_LANES):
            best[l] = max(best[l], scores[U(at) + row * U_LANES + l])


@njit_vector
def _lower(cells, rows, shift):
    """Take `shift` from all cells, but let none fall below FLOOR."""
    for row in range(U(1), U(rows) + U(1)):
        for l in range(U_LANES):
            lowered = np.int16(cells[row * U_LANES + l]) - np.int16(shift[l])
            cells[row * U_LANES + l] = I8(max(lowered, np.int16(FLOOR)))


@njit_inner
def _pack(codes, at, step, n, rows, first, row_step, lane, n_rows):
    """Spread the bases of one lane over rows, first + b * row_step for base b; return whether one is unknown."""
    unknown = False
    for b in range(n):
        row = first + b * row_step
        code = codes[at + b * step]
        unknown |= code >= UNKNOWN
        if 0 <= row < n_rows:
            rows[row * LANES + lane] = code
    return unknown


@njit_inner
def pack_group(query_codes, target_codes, pieces, index, height, scratch):
    """Lay out the bases of a group; return its anti-diagonals and the row of query base 0 less the centre.

    Lanes with unknown bases, for which the kernel has no score, get a centre of -1.
    """
    steps = 0
    for l in range(len(index)):
        steps = max(steps, pieces.q_len[index[l]] + pieces.t_len[index[l]])
    q_rows = steps // 2 + 2
    n_rows = q_rows + height + 2
    scratch.query[: n_rows * LANES] = BEYOND_QUERY
    scratch.target[: n_rows * LANES] = BEYOND_TARGET
    for l in range(len(index)):
        p = index[l]
        q_len, t_len, step = pieces.q_len[p], pieces.t_len[p], pieces.step[p]
        centre = centre_of(q_len, t_len, pieces.mode[p], height)
        scratch.centres[l] = centre
        unknown = _pack(query_codes, pieces.q_at[p], step, q_len, scratch.query, q_rows + centre - 1, -1, l, n_rows)
        unknown |= _pack(target_codes, pieces.t_at[p], step, t_len, scratch.target, centre + 1, 1, l, n_rows)
        if unknown:
            scratch.centres[l] = -1
    return steps, q_rows


@njit_inner
def run_group(steps, q_rows, n, height, scratch, costs, maxima_too):
    """All anti-diagonals of a packed group of n lanes; with `maxima_too`, the best score of each in `maxima`."""
    cells, scores, bases = scratch.cells, scratch.scores, scratch.bases
    cells[:] = FLOOR
    open1, extend1, open2 = costs[2], costs[3], costs[4]
    scores[: height * LANES] = FLOOR
    for l in range(n):
        centre = max(scratch.centres[l], 0)
        origin = (centre + 1) * LANES + l
        cells[0, 0, origin] = TOP
        cells[0, 1, origin] = cells[0, 2, origin] = TOP - open1 - extend1
        cells[0, 3, origin] = cells[0, 4, origin] = TOP - open2
        scores[centre * LANES + l] = TOP
    bases[0] = -TOP
    h, e1, f1, e2, f2 = cells[0, 0], cells[0, 1], cells[0, 2], cells[0, 3], cells[0, 4]
    h_odd, e1_odd, f1_odd, e2_odd, f2_odd = cells[1, 0], cells[1, 1], cells[1, 2], cells[1, 3], cells[1, 4]
    query, target = scratch.query, scratch.target
    row = height * LANES
    for r in range(1, steps + 1):
        half = r >> 1
        q, t = (q_rows - half) * LANES, half * LANES
        if r & 1:
            _step(
                h_odd, e1_odd, f1_odd, e2_odd, f2_odd, e1, f1, e2, f2, 0, 1, query, q, target, t + LANES, scores, r * row,
                height, costs,
            )  # fmt: skip
        else:
            _step(
                h, e1, f1, e2, f2, e1_odd, f1_odd, e2_odd, f2_odd, -1, 0, query, q, target, t, scores, r * row, height, costs
            )
        if maxima_too:
            _lane_maxima(scores, r * row, height, scratch.maxima[r])
        if r % CHUNK == 0:
            _lane_maxima(scores, r * row, height, scratch.best)
            chunk = r // CHUNK
            for l in range(LANES):
                scratch.shift[l] = scratch.best[l] - TOP
                bases[chunk, l] = bases[chunk - 1, l] + scratch.shift[l]
            for state in range(5):
                _lower(cells[0, state], height, scratch.shift)
            _lower(h_odd, height, scratch.shift)


@njit_inner
def score_at(scratch, height, lane, r, row):
    """H, with the drift, of a cell."""
    chunk = (r - 1) // CHUNK if r > 0 else 0
    return np.int64(scratch.scores[(r * height + row) * LANES + lane]) + scratch.bases[chunk, lane]
