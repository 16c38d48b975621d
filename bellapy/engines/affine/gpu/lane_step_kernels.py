"""Kernels of short alignments on GPUs: the bases of a piece, and all scores of its band, as lanes.py computes them.

The lanes of a warp hold the rows of the band.  All scores go to memory.  None falls below FLOOR, as on the CPU: which band
is enough depends on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import I32, U32, U64, WARP, ballot, inlined, shuffle, sync_warp
from bellapy.engines.affine.lanes import CHUNK, FLOOR, TOP
from bellapy.records.bases import UNKNOWN

H, E1, F1, E2, F2 = range(5)
STATES = 5


class Bases(NamedTuple):
    """Bit planes, (words, 3) uint32, of compute/gpu/planes.py: of the codes of queries and of targets."""

    query: np.ndarray
    target: np.ndarray


class Band(NamedTuple):
    """A piece, and the scores of its band.

    codes : uint8, of the query and, right behind it, of the target, from `codes_at` on.  q_len, t_len : their bases.
    scores : int8, H of every cell: that in a row of anti-diagonal r at scores_at + r * height + row.
    bases : int32, from `bases_at` on, what was taken from the scores of a chunk.
    height, centre : rows, and the one of diagonal 0.  drift : of scores, for each anti-diagonal.
    """

    codes: np.ndarray
    codes_at: np.int32
    q_len: np.int32
    t_len: np.int32
    scores: np.ndarray
    scores_at: np.int64
    bases: np.ndarray
    bases_at: np.int32
    height: np.int32
    centre: np.int32
    drift: np.int32


class Costs(NamedTuple):
    """As in lanes.py."""

    equal: np.int32
    unequal: np.int32
    open1: np.int32
    extend1: np.int32
    open2: np.int32


@inlined
def _code_at(planes, place):
    """The code of a base; planes : (words, 3) uint32, of compute/gpu/planes.py.  place : int64."""
    word, bit = place >> 5, U32(place & 31)
    low, high, unknown = (planes[word, 0] >> bit) & 1, (planes[word, 1] >> bit) & 1, (planes[word, 2] >> bit) & 1
    return I32(UNKNOWN if unknown else low | high << 1)


@inlined
def load_codes(planes, pieces, p, codes, at, lane):
    """Write the codes of query and target of piece p to codes, uint8, from `at` on; return whether one is unknown.

    planes : Bases.  pieces : Pieces.  lane : of the warp.
    """
    q_len, n, step, is_unknown = pieces.q_len[p], pieces.q_len[p] + pieces.t_len[p], pieces.step[p], False
    for b in range(lane, n, WARP):
        if b < q_len:
            code = _code_at(planes.query, pieces.q_at[p] + b * step)
        else:
            code = _code_at(planes.target, pieces.t_at[p] + (b - q_len) * step)
        codes[at + b] = code
        is_unknown = is_unknown or code >= UNKNOWN
    sync_warp()
    return ballot(is_unknown) != 0


@inlined
def _set_origin(even, odd, band, costs, lane, registers):
    """The first anti-diagonal: the cell (0, 0).  even, odd : (STATES, registers) int32, rows of a lane."""
    for u in range(registers):
        row = lane * registers + u
        is_origin = row == band.centre
        for state in range(STATES):
            even[state, u] = odd[state, u] = FLOOR
        if is_origin:
            even[H, u] = TOP
            even[E1, u] = even[F1, u] = TOP - costs.open1 - costs.extend1
            even[E2, u] = even[F2, u] = TOP - costs.open2
        if row < band.height:
            band.scores[band.scores_at + row] = TOP if is_origin else FLOOR
    if lane == 0:
        band.bases[band.bases_at] = -TOP


@inlined
def _is_pair(band, half, row, is_odd):
    """Whether the bases before a cell are equal; past the ends nothing is.  half : of its anti-diagonal."""
    i, j = I32(half - row + band.centre - 1), I32(half + row - band.centre - (0 if is_odd else 1))
    if U32(i) >= U32(band.q_len) or U32(j) >= U32(band.t_len):  # or below 0
        return False
    q, t = I32(band.codes_at + i), I32(band.codes_at + band.q_len + j)
    return band.codes[U32(q)] == band.codes[U32(t)]


@inlined
def _step(own, other, r, is_odd, band, costs, lane, registers):
    """Anti-diagonal r: `own` H of two steps ago becomes the new one; E and F are for the next step.

    own, other : (STATES, registers) int32, of its parity and of that before it.  is_odd : of r.
    """
    beside = (lane + 1 if is_odd else lane - 1) & (WARP - 1)
    beside1 = shuffle(other[F1, 0] if is_odd else other[E1, registers - 1], beside)
    beside2 = shuffle(other[F2, 0] if is_odd else other[E2, registers - 1], beside)
    if lane == (WARP - 1 if is_odd else 0):
        beside1 = beside2 = I32(FLOOR)
    half, at = I32(r >> 1), band.scores_at + I32(r * band.height)
    for u in range(registers):
        row = I32(lane * registers + u)
        if row < band.height:
            if is_odd:
                a, c = other[E1, u], other[E2, u]
                b, d = (other[F1, u + 1], other[F2, u + 1]) if u + 1 < registers else (beside1, beside2)
            else:
                a, c = (other[E1, u - 1], other[E2, u - 1]) if u > 0 else (beside1, beside2)
                b, d = other[F1, u], other[F2, u]
            pair = I32(own[H, u] + (costs.equal if _is_pair(band, half, row, is_odd) else costs.unequal))
            score = I32(max(max(pair, max(a, b)), max(c, d)))
            opened, opened2 = I32(score - costs.open1), I32(score - costs.open2)
            own[H, u] = score
            own[E1, u] = I32(max(opened, a) - costs.extend1)
            own[F1, u] = I32(max(opened, b) - costs.extend1)
            own[E2, u] = I32(max(opened2, c))
            own[F2, u] = I32(max(opened2, d))
            band.scores[U64(at + row)] = score


@inlined
def _rebase(even, odd, r, band, lane, registers):
    """At the end of a chunk, the even anti-diagonal r: scores relative to the best one.  even, odd : as in `_step`."""
    best, step = even[H, 0], 1
    for u in range(1, registers):
        best = max(best, even[H, u])
    while step < WARP:
        best = max(best, shuffle(best, lane ^ step))
        step *= 2
    shift = I32(best - TOP)
    for u in range(registers):
        if lane * registers + u < band.height:
            for state in range(STATES):
                even[state, u] = I32(max(even[state, u] - shift, FLOOR))
            odd[H, u] = I32(max(odd[H, u] - shift, FLOOR))
    if lane == 0:
        chunk = band.bases_at + r // CHUNK
        band.bases[chunk] = band.bases[chunk - 1] + shift
    sync_warp()


@inlined
def fill_band(even, odd, band, costs, lane, registers):
    """All scores of a band.  even, odd : (STATES, registers) int32, of the lane's rows."""
    _set_origin(even, odd, band, costs, lane, registers)
    sync_warp()
    for number in range(1, band.q_len + band.t_len + 1):
        r = I32(number)
        if r & 1:
            _step(odd, even, r, True, band, costs, lane, registers)
        else:
            _step(even, odd, r, False, band, costs, lane, registers)
            if r & (CHUNK - 1) == 0:
                _rebase(even, odd, r, band, lane, registers)
    sync_warp()
