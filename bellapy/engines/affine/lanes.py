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
from bellapy.engines.affine.rule import GLOBAL, band_of, centre_of
from bellapy.params import AffineScoring
from bellapy.records.bases import UNKNOWN

U, I8 = np.uint64, np.int8
LANES = 64
U_LANES = U(LANES)
FLOOR, TOP = -90, 40
CHUNK = 16  # with 32, costs of gaps of one piece, such as 4 + 2 g, would not fit
MAX_STEPS = 4096  # anti-diagonals: bounds the memory of a group
BEYOND_QUERY, BEYOND_TARGET = 6, 7
"""Codes past the ends of a sequence: they match nothing."""


class Scratch(NamedTuple):
    """Working memory of one thread for groups of up to 64 alignments with `height` rows and up to MAX_STEPS anti-diagonals.

    height : int.
    cells : (2 parities, H E1 F1 E2 F2, (height + 2) * LANES) int8, a row of FLOOR before and after.
    query, target : rows of base codes, uint8.
    scores : H of every cell, int8: cell (r, w) of lane l at (r * height + w) * LANES + l.
    bases : (chunks + 1, LANES) int64, what was taken from the scores of a chunk.
    best, shift : (LANES,) int8.  centres : (LANES,) int64, row of diagonal 0, or -1: not computed.
    maxima : (MAX_STEPS + 1, LANES) int8, best H of each anti-diagonal.
    """

    height: int
    cells: np.ndarray
    query: np.ndarray
    target: np.ndarray
    scores: np.ndarray
    bases: np.ndarray
    best: np.ndarray
    shift: np.ndarray
    centres: np.ndarray
    maxima: np.ndarray


class Stack(NamedTuple):
    """The states of one parity: h, e1, f1, e2, f2, ((height + 2) * LANES,) int8 each, rows of Scratch.cells."""

    h: np.ndarray
    e1: np.ndarray
    f1: np.ndarray
    e2: np.ndarray
    f2: np.ndarray


class Costs(NamedTuple):
    """Scores with the drift, int8: of equal and unequal bases; open1 and open2; extend1 less the drift, that of piece 2."""

    equal: int
    unequal: int
    open1: int
    extend1: int
    open2: int


def room_for_scores(height: int) -> np.ndarray:
    """Room for the scores of bands of at most so many rows, int8; pages that are never written take no memory."""
    return np.empty((MAX_STEPS + 2) * height * LANES, np.int8)


def make_scratch(height: int, room: np.ndarray) -> Scratch:
    """Working memory for bands of `height` rows.  room : from `room_for_scores`; those who share it take turns."""
    rows = MAX_STEPS // 2 + height + 8
    return Scratch(
        height,
        np.zeros((2, 5, (height + 2) * LANES), np.int8),
        np.zeros(rows * LANES, np.uint8),
        np.zeros(rows * LANES, np.uint8),
        room[: (MAX_STEPS + 2) * height * LANES],
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
def reach(q_len, t_len, mode, height):
    """How many diagonals beyond the corners a band covers on its narrower side, plus one: `out` of rule.outside.

    q_len, t_len, mode, height : as in `band_of`, rows of the band.
    """
    shift = t_len - q_len if mode == GLOBAL else 0
    lowest, highest = band_of(q_len, t_len, mode, height)
    return min(highest + 1 - max(0, shift), -(lowest - 1) - max(0, -shift))


@njit_vector
def _step(stack, other, up, down, query, target, kept, rows, costs):
    """One anti-diagonal: `stack.h` of two steps ago becomes the new one; E and F are for the next step.

    stack : Stack of the anti-diagonal's parity.  other : Stack of the one before it, read only.
    up, down : rows from a cell to where its E and F come from, in `other`.
    query, target : (rows * LANES,) uint8, bases before the cells.  kept : (rows * LANES,) int8, gets the new H.
    rows : of the band.  costs : Costs.
    """
    h, e1, f1, e2, f2 = stack
    e1_old, f1_old, e2_old, f2_old = other.e1, other.f1, other.e2, other.f2
    equal, unequal, open1, extend1, open2 = costs
    for row in range(U(1), U(rows) + U(1)):
        at, above, below = row * U_LANES, (row + U(up)) * U_LANES, (row + U(down)) * U_LANES
        before = (row - U(1)) * U_LANES
        for l in range(U_LANES):
            a, b, c, d = e1_old[above + l], f1_old[below + l], e2_old[above + l], f2_old[below + l]
            pair = I8(h[at + l] + (equal if query[before + l] == target[before + l] else unequal))
            score = max(max(pair, max(a, b)), max(c, d))
            h[at + l] = score
            kept[before + l] = score
            opened = I8(score - open1)
            e1[at + l] = I8(max(opened, a) - extend1)
            f1[at + l] = I8(max(opened, b) - extend1)
            opened2 = I8(score - open2)
            e2[at + l] = max(opened2, c)
            f2[at + l] = max(opened2, d)


@njit_vector
def _lane_maxima(scores, at, rows, best):
    """The best score of every lane among `rows` rows of scores, int8, from `at` on, to best, (LANES,) int8."""
    for l in range(U_LANES):
        best[l] = I8(-128)
    for row in range(U(rows)):
        for l in range(U_LANES):
            best[l] = max(best[l], scores[U(at) + row * U_LANES + l])


@njit_vector
def _lower(cells, rows, shift):
    """Take shift, (LANES,) int8, from all cells of `rows` rows, int8, but let none fall below FLOOR."""
    for row in range(U(1), U(rows) + U(1)):
        for l in range(U_LANES):
            lowered = np.int16(cells[row * U_LANES + l]) - np.int16(shift[l])
            cells[row * U_LANES + l] = I8(max(lowered, np.int16(FLOOR)))


@njit_inner
def _spread(codes, at, step, n, rows, first, row_step, lane):
    """Spread the bases of one lane over rows, first + b * row_step for base b; return whether one is unknown.

    codes : uint8; base b is codes[at + b * step], b from 0 to n - 1.
    rows : (n_rows * LANES,) uint8, Scratch's; bases beyond them are left out.  lane : 0 to LANES - 1.
    """
    unknown, n_rows = False, len(rows) // LANES
    for b in range(n):
        row = first + b * row_step
        code = codes[at + b * step]
        unknown |= code >= UNKNOWN
        if 0 <= row < n_rows:
            rows[row * LANES + lane] = code
    return unknown


@njit_inner
def pack_group(query_codes, target_codes, pieces, index, scratch):
    """Lay out the bases of a group; return its anti-diagonals and the row of query base 0 less the centre.

    query_codes, target_codes : (any,) uint8.  pieces : Pieces.  index : (up to LANES,) int64, those of the group.
    scratch : Scratch; query, target and centres are filled.
    Lanes with unknown bases, for which the kernel has no score, get a centre of -1.
    """
    steps, height = 0, scratch.height
    for l in range(len(index)):
        steps = max(steps, pieces.q_len[index[l]] + pieces.t_len[index[l]])
    q_rows = steps // 2 + 2
    size = (q_rows + height + 2) * LANES
    queries, targets = scratch.query[:size], scratch.target[:size]
    queries[:] = BEYOND_QUERY
    targets[:] = BEYOND_TARGET
    for l in range(len(index)):
        p = index[l]
        q_len, t_len, step = pieces.q_len[p], pieces.t_len[p], pieces.step[p]
        centre = centre_of(q_len, t_len, pieces.mode[p], height)
        unknown = _spread(query_codes, pieces.q_at[p], step, q_len, queries, q_rows + centre - 1, -1, l)
        unknown |= _spread(target_codes, pieces.t_at[p], step, t_len, targets, centre + 1, 1, l)
        scratch.centres[l] = -1 if unknown else centre
    return steps, q_rows


@njit_inner
def _set_origin(scratch, n, costs):
    """The first anti-diagonal of n lanes: the cell (0, 0) of each.  scratch : Scratch, filled.  costs : Costs."""
    cells, row = scratch.cells, scratch.height * LANES
    cells[:] = FLOOR
    scratch.scores[:row] = FLOOR
    for l in range(n):
        centre = max(scratch.centres[l], 0)
        origin = (centre + 1) * LANES + l
        cells[0, 0, origin] = TOP
        cells[0, 1, origin] = cells[0, 2, origin] = TOP - costs.open1 - costs.extend1
        cells[0, 3, origin] = cells[0, 4, origin] = TOP - costs.open2
        scratch.scores[centre * LANES + l] = TOP
    scratch.bases[0] = -TOP


@njit_inner
def _rebase(scratch, r):
    """At the end of a chunk, anti-diagonal r: scores relative to the best of their lane.  scratch : Scratch."""
    cells, height, chunk = scratch.cells, scratch.height, r // CHUNK
    _lane_maxima(scratch.scores, r * height * LANES, height, scratch.best)
    for l in range(LANES):
        scratch.shift[l] = scratch.best[l] - TOP
        scratch.bases[chunk, l] = scratch.bases[chunk - 1, l] + scratch.shift[l]
    for state in range(5):
        _lower(cells[0, state], height, scratch.shift)
    _lower(cells[1, 0], height, scratch.shift)


@njit_inner
def run_group(steps, q_rows, n, scratch, costs, maxima_too):
    """All anti-diagonals of a packed group of n lanes; with `maxima_too`, the best score of each in `maxima`.

    steps, q_rows : of pack_group.  scratch : Scratch, filled.  costs : Costs.
    """
    cells, scores, height = scratch.cells, scratch.scores, scratch.height
    _set_origin(scratch, n, costs)
    even = Stack(cells[0, 0], cells[0, 1], cells[0, 2], cells[0, 3], cells[0, 4])
    odd = Stack(cells[1, 0], cells[1, 1], cells[1, 2], cells[1, 3], cells[1, 4])
    row = height * LANES
    for r in range(1, steps + 1):
        half = r >> 1
        query, kept = scratch.query[(q_rows - half) * LANES :], scratch.scores[r * row :]
        if r & 1:
            _step(odd, even, 0, 1, query, scratch.target[(half + 1) * LANES :], kept, height, costs)
        else:
            _step(even, odd, -1, 0, query, scratch.target[half * LANES :], kept, height, costs)
        if maxima_too:
            _lane_maxima(scores, r * row, height, scratch.maxima[r])
        if r % CHUNK == 0:
            _rebase(scratch, r)


@njit_inner
def score_at(scratch, lane, r, row):
    """H, with the drift, of the cell in a row of anti-diagonal r of a lane: int64.  scratch : Scratch, after run_group."""
    chunk = (r - 1) // CHUNK if r > 0 else 0
    return np.int64(scratch.scores[(r * scratch.height + row) * LANES + lane]) + scratch.bases[chunk, lane]
