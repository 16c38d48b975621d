"""Alignments in a band of diagonals on a GPU: a warp for each pair, its cells in registers, its path right after it.

Chunks of 32 anti-diagonals are computed as a whole.  So that the last cell of a table is the last of a chunk, both sequences
of a global alignment begin with `pad` bases more, all equal; those of an extension with one, so that the first cell is kept.
No path gains anything by leaving their diagonal, and the score of each cell of the table is that of the unpadded one plus
`pad` matches.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, U64, WARP, inlined, shuffle, sync_warp
from bellapy.engines.affine.gpu.bases_kernels import compare_bases
from bellapy.engines.affine.gpu.ends_kernels import Table, Watch, end_of
from bellapy.engines.affine.gpu.step_kernels import Kind, Room, Stacks, begin, compute_chunk, rebase
from bellapy.engines.affine.gpu.walk_kernels import Band, walk_back, words_of_chunk
from bellapy.engines.registers.window import HALF, PAIRS

QUERY, TARGET, N_QUERY, N_TARGET, PADDING, CENTRE, RUNS = range(7)
COLUMNS = 7
"""Columns of a pair: first words of the sequences, their bases, padding, row of diagonal 0, where its runs may stand."""
SCORE, Q_USED, T_USED, DROPPED, N_RUNS = range(5)
RESULTS = 5
MOST_REGISTERS = {2: 56, 4: 64, 6: 80, 8: 96, 10: 128, 12: 168, 14: 168}
"""Of a thread, by registers of a lane for each state; extensions need more."""
MORE_FOR_ENDS = 32


class Bounds(NamedTuple):
    """Numbers of a run of the kernel.

    direct : what walk_kernels.direct_size says.  zdrop : of extensions, as in rule.py.
    room : words of `kept` for each warp.
    lanes : a power of two: only the scores of so many lanes, around the best one, are kept of each chunk.
    """

    direct: int
    zdrop: int
    room: int
    lanes: int


def padding(lengths: np.ndarray, ends: bool) -> np.ndarray:
    """Pads for pairs with so many bases in all, of extensions or not: at least 1, so that the first cell is kept."""
    return np.ones_like(lengths) if ends else PAIRS - (lengths + 1) // 2 % PAIRS


def most_registers(kind: Kind) -> int:
    """Registers of a thread."""
    return MOST_REGISTERS[kind.registers] + (MORE_FOR_ENDS if kind.ends else 0)


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
    ROWS = 2 * R

    def align_band(words, pairs, count, rule, scoring, bounds, kept, runs, results):
        """Align pairs; each warp takes one after the other.

        Parameters
        ----------
        words : uint64, bases (bases_kernels.py).
        pairs : (n, COLUMNS) int64.
        count : (1,) int32, pairs that were taken; 0.
        rule, scoring, bounds : Packed, AffineScoring, Bounds.
        kept : uint32, for the scores of a pair of each warp.
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
            if pair >= pairs.shape[0]:
                break
            n_query, n_target, pad = I32(pairs[pair, N_QUERY]), I32(pairs[pair, N_TARGET]), I32(pairs[pair, PADDING])
            query, target, centre = I32(pairs[pair, QUERY]), I32(pairs[pair, TARGET]), I32(pairs[pair, CENTRE])
            row, drift, diagonals = I32(lane * ROWS), I32(scoring.extend2), I32(n_query + n_target + 2 * pad)
            table = Table(I32(row - centre), lane, I32(n_query + pad), I32(n_target + pad), I32(bounds.zdrop), drift)
            zero = I32(-(I32(rule.top) >> KIND.scale) - pad * scoring.match)
            watch = Watch(I32(0), I32(0), I32(0), I32(0), I32(0), I32(zero - drift))
            begin(stacks, row, centre, rule, KIND)
            at, lanes, best = np.int64(warp) * bounds.room, I32(bounds.lanes), I32(centre // ROWS)
            for done in range(0, (diagonals + 1) // 2, PAIRS):
                compare_bases(words, query, target, I32(done), table.row, R, stacks)
                first = I32(max(I32(0), min(I32(best - lanes // 2), I32(WARP - lanes))))
                if KIND.traced and lane == 0:
                    kept[U64(at)] = U32(first)
                keeps = first <= lane and lane < first + lanes
                room = Room(at + lanes + (lane & (lanes - 1)), lanes, keeps)
                watch = compute_chunk(stacks, I32(done), kept, room, watch, table, rule, KIND)
                at += words_of_chunk(R, lanes)
                taken, best = rebase(stacks, lane, rule, KIND)
                zero = I32(zero + taken)
                watch = Watch(
                    watch.best, watch.place, watch.diagonal, watch.before, watch.dropped, I32(watch.offset + taken)
                )  # fmt: skip
                if KIND.ends and watch.dropped > 0:
                    break
            i, j = n_query, n_target
            if KIND.ends:
                i, j = end_of(watch, centre, pad, R)
                if lane == 0:
                    results[pair, SCORE], results[pair, DROPPED] = watch.best, watch.dropped
            else:
                u = I32((n_target - n_query >> 1) + centre - row)
                if 0 <= u < ROWS:
                    odd = (n_target - n_query & 1) != 0
                    value = _value_of(stacks.odd, u, R) if odd else _value_of(stacks.even, u, R)
                    results[pair, SCORE] = I32((value >> KIND.scale) + zero - drift * diagonals)
            sync_warp()
            n_runs = I32(0)
            if KIND.traced:
                band = Band(words, query, target, pad, kept, np.int64(warp) * bounds.room, lanes, centre)
                n_runs = walk_back(band, i, j, scoring, bounds.direct, lane, R, runs, pairs[pair, RUNS])
            if lane == 0:
                results[pair, Q_USED], results[pair, T_USED], results[pair, N_RUNS] = i, j, n_runs
            sync_warp()

    align_band.most_registers = most_registers(kind)  # type: ignore[attr-defined]  # for `kernel_of`
    return align_band
