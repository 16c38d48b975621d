"""The kernel of short alignments on GPUs: a warp for each, which decides as batch_cpu.py whether a path is good enough."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, SIMULATED, WARP, inlined, sync_warp
from bellapy.engines.affine.batch_cpu import ALL, EARLY_MARGIN, HEIGHTS, NEAR, WORTH_A_GAP
from bellapy.engines.affine.gpu.lane_step_kernels import STATES, Band, Costs, fill_band, load_codes
from bellapy.engines.affine.gpu.lane_walk_kernels import NO_PATH, find_end, query_end, row_of, score_at, trace
from bellapy.engines.affine.lanes import CHUNK, MAX_STEPS, reach
from bellapy.engines.affine.rule import GLOBAL, REACH, centre_of, outside, width_needed

WARPS = 1 if SIMULATED else 4
"""Of a block."""
CHUNKS = MAX_STEPS // CHUNK + 2
CODES, BASES = WARPS * MAX_STEPS, WARPS * CHUNKS
SCORE, Q_USED, T_USED, DROPPED, N_RUNS = range(5)
RESULTS = 5
WIDEST = HEIGHTS[-1]


class Out(NamedTuple):
    """Where results go.

    begins : (n_pieces,) int64, where the runs of each may be written in `runs`, uint32.
    results : (n_pieces, RESULTS) int32, zeros at first.
    needed : (n_pieces,) int32, diagonals that a wider band needs, 0 where a path is taken.
    """

    begins: np.ndarray
    runs: np.ndarray
    results: np.ndarray
    needed: np.ndarray


@inlined
def _end_of(band, mode, effort, bonus, lane):
    """As `_end_of` of batch_cpu.py: the cell where the path ends, its score, whether zdrop ended it."""
    if mode == GLOBAL:
        r = band.q_len + band.t_len
        return band.q_len, band.t_len, I32(score_at(band, r, row_of(band, band.q_len, band.t_len)) - band.drift * r), False
    i, j, score, dropped = find_end(band, effort.zdrop, lane)
    if bonus > 0 and not dropped:
        other, its_score = query_end(band)
        if other >= 0 and its_score + bonus >= score:
            return band.q_len, other, its_score, False
    return i, j, score, dropped


@inlined
def _settle(band, mode, scoring, effort, lane, out, p):
    """As `_settle` of batch_cpu.py: diagonals that are needed beyond this band, 0 if its path is taken.

    band : Band of piece p.  out : Out; row p of results is filled.
    """
    results = out.results
    bonus = effort.bonus if mode == REACH else 0
    i, j, score, dropped = _end_of(band, mode, effort, bonus, lane)
    n, counted, near = trace(band, i, j, scoring, lane, out.runs, out.begins[p])
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

    def align_lanes(planes, pieces, index, height, scoring, effort, room, size, out):
        """Align some pieces in bands of `height` rows; each warp takes one after the other.

        planes : Bases.  pieces : Pieces of device arrays.  index : (any,) int64, which of them; each has at most MAX_STEPS
        bases.  scoring : AffineScoring.  effort : Effort; its floor is not NEVER.
        room : (n_warps * size,) int8, for the scores of bands.  out : Out.
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
            is_unknown = load_codes(planes, pieces, p, codes, band.codes_at, lane)
            more = np.int64(ALL)
            if not is_unknown:
                fill_band(even, odd, band, costs, lane, R)
                more = _settle(band, mode, scoring, effort, lane, out, p)
            if lane == 0:
                out.needed[p] = more
            sync_warp()

    return align_lanes
