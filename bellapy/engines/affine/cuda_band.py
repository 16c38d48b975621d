"""Global alignments in a band of diagonals on a GPU: a warp for each pair, its cells in registers, its path right after it.

Chunks of 32 anti-diagonals are computed as a whole.  So that the last cell of a table is the last of a chunk, both sequences
begin with `pad` bases more, all equal.  No path gains anything by leaving their diagonal, and the score of each cell of the
table is that of the unpadded one plus `pad` matches.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, shuffle, sync_warp
from bellapy.engines.affine.cuda_bases import compare_bases
from bellapy.engines.affine.cuda_step import Kind, Stacks, begin, compute_chunk, rebase
from bellapy.engines.affine.cuda_walk import Band, walk_back
from bellapy.engines.registers.window import CHUNK, HALF, PAIRS, inlined

QUERY, TARGET, N_QUERY, N_TARGET, PADDING, CENTRE, RUNS = range(7)
COLUMNS = 7
"""Columns of a pair: first words of the sequences, their bases, padding, row of diagonal 0, where its runs may stand."""
SCORE, N_RUNS = range(2)
RESULTS = 2
MOST_REGISTERS = {2: 56, 4: 64, 6: 80, 8: 96, 10: 128, 12: 168, 14: 168}  # of a thread, by registers of cells


def padding(lengths: np.ndarray) -> np.ndarray:
    """Pads for pairs with so many bases in all: at least 1, so that the first cell is kept."""
    return PAIRS - (lengths + 1) // 2 % PAIRS


@inlined
def _value_of(cells, u, registers):
    """The half of row `u` of a lane; `cells`: (registers,) uint32."""
    word = cells[0]
    for j in range(registers):
        if j == u or j + registers == u:
            word = cells[j]
    return I32(word & HALF) if u < registers else I32(word >> U32(16))


@cache
def make_kernel(kind: Kind):
    """The function of a kernel of a Kind."""
    KIND, R = kind, kind.registers
    ROWS, OF_DIAGONAL = 2 * R, R // 2 * WARP

    def align_band(words, table, count, rule, scoring, kept, room, runs, results):
        """Align pairs; each warp takes one after the other.

        Parameters
        ----------
        words : uint64, bases (cuda_bases.py).
        table : (n, COLUMNS) int64.
        count : (1,) int32, pairs that were taken; 0.
        rule, scoring : Packed, AffineScoring.
        kept : uint32, for the scores of a pair of each warp.
        room : words of `kept` for each warp.
        runs : uint32, see RUNS.
        results : (n, RESULTS) int32.
        """
        stacks = Stacks(
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
            cuda.local.array(R, np.uint32), cuda.local.array(R, np.uint32),
        )  # fmt: skip
        lane = I32(cuda.threadIdx.x & (WARP - 1))
        warp = I32(cuda.grid(1)) // I32(WARP)
        while True:
            pair = I32(0)
            if lane == 0:
                pair = I32(cuda.atomic.add(count, 0, 1))
            pair = I32(shuffle(pair, I32(0)))
            if pair >= table.shape[0]:
                break
            n_query, n_target, pad = I32(table[pair, N_QUERY]), I32(table[pair, N_TARGET]), I32(table[pair, PADDING])
            query, target, centre = I32(table[pair, QUERY]), I32(table[pair, TARGET]), I32(table[pair, CENTRE])
            row, base = I32(lane * ROWS), I32(0)
            diagonals = I32(n_query + n_target + 2 * pad)
            begin(stacks, row, centre, rule, KIND)
            at = np.int64(warp) * room + lane
            for pairs in range(0, (diagonals + 1) // 2, PAIRS):
                compare_bases(words, query, target, I32(pairs), I32(row - centre), R, stacks)
                compute_chunk(stacks, lane, kept, at, rule, KIND)
                at += CHUNK * OF_DIAGONAL
                base = I32(base + rebase(stacks, lane, rule, KIND))
            u = I32((n_target - n_query >> 1) + centre - row)
            if 0 <= u < ROWS:
                odd = (n_target - n_query & 1) != 0
                value = _value_of(stacks.odd, u, R) if odd else _value_of(stacks.even, u, R)
                drifted = I32((value - I32(rule.top)) >> KIND.scale) + base
                results[pair, SCORE] = I32(drifted - scoring.extend2 * diagonals - pad * scoring.match)
            sync_warp()
            if KIND.traced:
                if lane == 0:
                    band = Band(words, query, target, pad, kept, np.int64(warp) * room, centre)
                    results[pair, N_RUNS] = walk_back(band, n_query, n_target, scoring, R, runs, table[pair, RUNS])
                sync_warp()

    align_band.most_registers = MOST_REGISTERS[kind.registers]  # type: ignore[attr-defined]  # for `kernel_of`
    return align_band
