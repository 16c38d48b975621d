"""Kernels of short alignments on GPUs, in the bands of lanes.py and with its scores, byte for byte: a warp for each.

The lanes of a warp hold the rows of the band.  All scores of the band go to memory; then the warp goes back through them by
the rule of trace.py, and decides as batch_cpu.py whether the path is good enough.  Which band is enough depends on these
scores, so that here, too, none falls below FLOOR.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute import runs as codec
from bellapy.compute.gpu.ops import I32, SIMULATED, U32, U64, WARP, ballot, inlined, on_device, shuffle, sync_warp
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.affine.batch_cpu import ALL, EARLY_MARGIN, HEIGHTS, NEAR, WORTH_A_GAP
from bellapy.engines.affine.lanes import CHUNK, FLOOR, MAX_STEPS, TOP, reach
from bellapy.engines.affine.rule import GLOBAL, REACH, centre_of, gap_cost, outside, width_needed
from bellapy.records.bases import UNKNOWN

WARPS = 1 if SIMULATED else 4
"""Of a block."""
CHUNKS = MAX_STEPS // CHUNK + 2
CODES, BASES = WARPS * MAX_STEPS, WARPS * CHUNKS
H, E1, F1, E2, F2 = range(5)
STATES = 5
SCORE, Q_USED, T_USED, DROPPED, N_RUNS = range(5)
RESULTS = 5
WIDEST = HEIGHTS[-1]
NO_PATH = -1
pack_run = on_device(codec.pack_run)


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
def _load_codes(q_planes, t_planes, pieces, p, codes, at, lane):
    """Write the codes of query and target of piece p to codes, uint8, from `at` on; return whether one is unknown."""
    q_len, n, step, is_unknown = pieces.q_len[p], pieces.q_len[p] + pieces.t_len[p], pieces.step[p], False
    for b in range(lane, n, WARP):
        if b < q_len:
            code = _code_at(q_planes, pieces.q_at[p] + b * step)
        else:
            code = _code_at(t_planes, pieces.t_at[p] + (b - q_len) * step)
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
def _fill_band(even, odd, band, costs, lane, registers):
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


@inlined
def _row_of(band, i, j):
    """Row of the cell (i, j) of a band."""
    return I32(((j - i) >> 1) + band.centre)


@inlined
def _score_at(band, r, row):
    """H, with the drift, of the cell in a row of anti-diagonal r."""
    chunk = (r - 1) // CHUNK if r > 0 else 0
    return I32(band.scores[U64(band.scores_at + r * band.height + row)] + band.bases[U64(band.bases_at + chunk)])


@inlined
def _highest(band, r):
    """The best score of anti-diagonal r, without the drift."""
    best = _score_at(band, r, 0)
    for row in range(1, band.height):
        best = max(best, _score_at(band, r, row))
    return I32(best - band.drift * r)


@inlined
def _find_end(band, zdrop, lane):
    """As `find_end` of trace.py: i, j, score, and whether zdrop ended it.  Each lane looks at an anti-diagonal at a time."""
    best, best_r, before, dropped = I32(0), I32(0), I32(0), False
    n = band.q_len + band.t_len
    first = 1
    while first <= n and not dropped:
        mine = _highest(band, min(first + lane, n))
        for x in range(min(WARP, n - first + 1)):
            highest = shuffle(mine, x)
            if not dropped:
                if highest > best:
                    best, best_r = highest, I32(first + x)
                dropped = best - max(highest, before) > zdrop
                before = highest
        first += WARP
    if best_r == 0:
        return I32(0), I32(0), I32(0), dropped
    i, most = I32(max(0, best_r - band.t_len)), min(band.q_len, best_r)
    while i <= most:
        row = _row_of(band, i + lane, best_r - i - lane)
        is_best = False
        if i + lane <= most and row >= 0 and row < band.height:
            is_best = _score_at(band, best_r, row) - band.drift * best_r == best
        votes = ballot(is_best)
        if votes != 0:
            i = I32(i + cuda.ffs(votes) - 1)
            return i, I32(best_r - i), best, dropped
        i = I32(i + WARP)
    return I32(0), I32(0), I32(0), dropped  # the best one lies outside the table


@inlined
def _query_end(band):
    """As `query_end` of trace.py: target base and score of the best cell that uses up the query; (-1, 0) for none."""
    found, top = I32(-1), I32(0)
    lowest = band.q_len - 2 * band.centre
    for j in range(max(0, lowest), min(band.t_len, lowest + 2 * band.height) + 1):
        row = _row_of(band, band.q_len, j)
        if row >= 0 and row < band.height:
            score = _score_at(band, band.q_len + j, row) - band.drift * (band.q_len + j)
            if found < 0 or score > top:
                found, top = I32(j), I32(score)
    return found, top


@inlined
def _equal_bases(band, i, j, lane):
    """How many bases are equal, one after the other, back from the cell (i, j)."""
    most, n = min(i, j), I32(0)
    while n < most:
        back = n + lane
        same = False
        if back < most:
            q, t = band.codes_at + i - 1 - back, band.codes_at + band.q_len + j - 1 - back
            same = band.codes[U64(q)] == band.codes[U64(t)]
        unlike = ballot(not same)
        if unlike != 0:
            return min(most, I32(n + cuda.ffs(unlike) - 1))
        n = I32(n + WARP)
    return most


@inlined
def _explain_pairs(band, i, j, score, row, scoring, lane):
    """As `_explain_pairs` of trace.py: how many pairs lead to the cell (i, j), and their score."""
    drift, equal = 2 * band.drift, _equal_bases(band, i, j, lane)
    if equal == 0:
        if min(i, j) > 0 and _score_at(band, i + j - 2, row) + scoring.mismatch + drift == score:
            return I32(1), I32(scoring.mismatch)
        return I32(0), I32(0)
    if _score_at(band, i + j - 2 * equal, row) + equal * (scoring.match + drift) == score:
        return equal, I32(equal * scoring.match)
    if _score_at(band, i + j - 2, row) + scoring.match + drift == score:
        return I32(1), I32(scoring.match)
    return I32(0), I32(0)


@inlined
def _explain_gap(band, i, j, score, scoring, lane):
    """As `_explain_gap` of trace.py: the shortest gap that gives the cell its score; each lane tries one length."""
    first, most = I32(1), min(max(i, j), 2 * band.height)
    while first <= most:
        size, operation = first + lane, I32(PAIR)
        cost, r = gap_cost(size, scoring) - band.drift * size, i + j - size
        if size <= j and size <= most:
            row = _row_of(band, i, j - size)
            if row >= 0 and row < band.height and _score_at(band, r, row) - cost == score:
                operation = I32(TARGET_ALONE)
        if operation == PAIR and size <= i and size <= most:
            row = _row_of(band, i - size, j)
            if row >= 0 and row < band.height and _score_at(band, r, row) - cost == score:
                operation = I32(QUERY_ALONE)
        votes = ballot(operation != PAIR)
        if votes != 0:
            best = cuda.ffs(votes) - 1
            return shuffle(operation, best), I32(first + best)
        first = I32(first + WARP)
    return I32(PAIR), I32(0)


@inlined
def _trace(band, i, j, scoring, lane, runs, at):
    """As `trace` of trace.py: the runs written from `at` on, or NO_PATH; their score; how near an end they come."""
    n, last, length, near, total = I32(0), I32(PAIR), I32(0), I32(1 << 20), I32(0)
    while i > 0 or j > 0:
        row = _row_of(band, i, j)
        near = I32(min(near, min(row, band.height - 1 - row)))
        score = _score_at(band, i + j, row)
        operation = I32(PAIR)
        size, gain = _explain_pairs(band, i, j, score, row, scoring, lane)
        if size == 0:
            operation, size = _explain_gap(band, i, j, score, scoring, lane)
            if size == 0:
                return I32(NO_PATH), total, I32(0)
            gain = I32(-gap_cost(size, scoring))
        total = I32(total + gain)
        if operation != last and length > 0:
            if lane == 0:
                runs[at + n] = pack_run(last, length)
            n, length = I32(n + 1), I32(0)
        last, length = operation, I32(length + size)
        if operation != TARGET_ALONE:
            i = I32(i - size)
        if operation != QUERY_ALONE:
            j = I32(j - size)
    if length > 0:
        if lane == 0:
            runs[at + n] = pack_run(last, length)
        n = I32(n + 1)
    return n, total, near


@inlined
def _end_of(band, mode, effort, bonus, lane):
    """As `_end_of` of batch_cpu.py: the cell where the path ends, its score, whether zdrop ended it."""
    if mode == GLOBAL:
        r = band.q_len + band.t_len
        return band.q_len, band.t_len, I32(_score_at(band, r, _row_of(band, band.q_len, band.t_len)) - band.drift * r), False
    i, j, score, dropped = _find_end(band, effort.zdrop, lane)
    if bonus > 0 and not dropped:
        other, its_score = _query_end(band)
        if other >= 0 and its_score + bonus >= score:
            return band.q_len, other, its_score, False
    return i, j, score, dropped


@inlined
def _settle(band, mode, scoring, effort, lane, runs, at, results, p):
    """As `_settle` of batch_cpu.py: diagonals that are needed beyond this band, 0 if its path is taken.

    runs, at : where it is written.  results : (n, RESULTS) int32, of all pieces; row p is filled.
    """
    bonus = effort.bonus if mode == REACH else 0
    i, j, score, dropped = _end_of(band, mode, effort, bonus, lane)
    n, counted, near = _trace(band, i, j, scoring, lane, runs, at)
    if n == NO_PATH or counted != score:
        return np.int64(2 * band.height + 1)
    q_len, t_len = np.int64(band.q_len), np.int64(band.t_len)
    covered = reach(q_len, t_len, mode, np.int64(band.height))
    sure = outside(covered, q_len, t_len, mode, bonus, scoring) < score or (dropped and near >= NEAR)
    good = np.int64(score) * 1000 >= effort.floor * min(i, j) or band.height == WIDEST
    early = mode != GLOBAL and min(q_len - i, t_len - j) >= WORTH_A_GAP
    if early and (band.height < WIDEST or results[p, SCORE] != score):
        sync_warp()
        results[p, SCORE] = score
        return np.int64(EARLY_MARGIN)
    if not sure and not (near >= NEAR and good):
        return np.int64(width_needed(score, q_len, t_len, mode, bonus, scoring))
    if lane == 0:
        results[p, SCORE], results[p, Q_USED], results[p, T_USED] = score, i, j
        results[p, DROPPED], results[p, N_RUNS] = dropped, n
    return np.int64(0)


@cache
def make_kernel(registers: int):
    """The kernel for bands whose rows are so many for each lane of a warp."""
    R = registers

    def align_lanes(q_planes, t_planes, pieces, index, begins, height, scoring, effort, room, size, runs, results, needed):
        """Align some pieces in bands of `height` rows; each warp takes one after the other.

        q_planes, t_planes : (words, 3) uint32, of the codes of queries and of targets.
        pieces : Pieces of device arrays.  index : (any,) int64, which of them, with at most MAX_STEPS bases.
        begins : (n_pieces,) int64, where the runs of each may be written.
        scoring : AffineScoring.  effort : Effort; its floor is not NEVER.
        room : (n_warps * size,) int8, for the scores of bands.  runs : uint32.
        results : (n_pieces, RESULTS) int32, zeros at first.
        needed : (n_pieces,) int32, filled with diagonals that a wider band needs, 0 where a path is taken.
        """
        codes = cuda.shared.array(CODES, np.uint8)
        bases = cuda.shared.array(BASES, np.int32)
        even = cuda.local.array((STATES, R), np.int32)
        odd = cuda.local.array((STATES, R), np.int32)
        lane, warp = I32(cuda.threadIdx.x % WARP), I32(cuda.threadIdx.x // WARP)
        costs = Costs(
            I32(scoring.match + 2 * scoring.extend2), I32(scoring.mismatch + 2 * scoring.extend2), I32(scoring.open1),
            I32(scoring.extend1 - scoring.extend2), I32(scoring.open2),
        )  # fmt: skip
        mine = np.int64(cuda.blockIdx.x) * WARPS + warp
        for x in range(mine, index.size, np.int64(cuda.gridDim.x) * WARPS):
            p = index[x]
            q_len, t_len, mode = pieces.q_len[p], pieces.t_len[p], pieces.mode[p]
            band = Band(
                codes, I32(warp * MAX_STEPS), I32(q_len), I32(t_len), room, mine * size, bases, I32(warp * CHUNKS),
                I32(height), I32(centre_of(q_len, t_len, mode, np.int64(height))), I32(scoring.extend2),
            )  # fmt: skip
            is_unknown = _load_codes(q_planes, t_planes, pieces, p, codes, band.codes_at, lane)
            more = np.int64(ALL)
            if not is_unknown:
                _fill_band(even, odd, band, costs, lane, R)
                more = _settle(band, mode, scoring, effort, lane, runs, begins[p], results, p)
            if lane == 0:
                needed[p] = more
            sync_warp()

    return align_lanes
