"""Short alignments on a GPU, in growing bands: what lanes of the CPU give, with the same scores and paths."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from bellapy.compute.gpu.desk import Desk
from bellapy.compute.gpu.ops import SIMULATED, WARP
from bellapy.engines.affine.batch_cpu import HEIGHTS, Effort, Tried, first_try, no_solutions
from bellapy.engines.affine.gpu.lane_kernels import (
    DROPPED,
    N_RUNS,
    Q_USED,
    RESULTS,
    SCORE,
    T_USED,
    WARPS,
    Out,
    make_kernel,
)
from bellapy.engines.affine.gpu.lane_step_kernels import Bases
from bellapy.engines.affine.lanes import MAX_STEPS, fits
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.registers.gather import gather_runs
from bellapy.params import AffineScoring

RESIDENT = 8  # blocks of a processor
SHARE = 4  # of the free memory: how many times less the scores of bands may take


def try_lanes_on_gpu(
    desk: Desk, planes: tuple[Any, Any], pieces: Pieces, scoring: AffineScoring, effort: Effort
) -> Tried:  # fmt: skip
    """As `Aligner.try_lanes`, but the runs have no room for more.

    planes : bit planes of the codes of queries and of targets, on the device.  scoring : from rule.ordered.
    effort : with a floor: without one, which band is enough is a matter of proof (batch_cpu.py).

    Raises
    ------
    MemoryError, DriverError : the device has no room.
    """
    lengths = pieces.q_len + pieces.t_len
    waiting, rows, needed = first_try(pieces, effort)
    if not fits(scoring):
        waiting[:] = False
    sizes = lengths * waiting
    columns = desk.send(np.stack(pieces))
    there = Pieces(*(columns[x : x + 1].reshape(-1) for x in range(len(pieces))))
    out = Out(
        desk.send(np.cumsum(sizes) - sizes), desk.empty(int(sizes.sum()), np.uint32),
        desk.zeros((len(lengths), RESULTS), np.int32), desk.empty(len(lengths), np.int32),
    )  # fmt: skip
    order, cells = np.argsort((MAX_STEPS - np.minimum(lengths, MAX_STEPS)).astype(np.uint16), kind="stable"), 0
    for height in HEIGHTS:
        index = order[(waiting & (rows <= height))[order]]
        if not len(index):
            continue
        blocks, size = _room(desk, len(index), height, int(lengths[index[0]]))
        room = desk.empty(blocks * WARPS * size, np.int8)
        kernel = make_kernel(-(-height // WARP))
        desk.launch(
            kernel, blocks, WARPS * WARP, Bases(*planes), there, desk.send(index), height, scoring, effort, room, size, out
        )
        cells += int(lengths[index].sum()) * height
        needed[index] = desk.fetch(out.needed)[index]
        again = index[needed[index] > 0]
        waiting[index], waiting[again], rows[again] = False, True, height + 1
    return _brought(desk, out, needed, cells)


def parts_of(tried: Tried, pieces: Pieces, edges: list[int]) -> list[Tried]:
    """What was found of pieces edges[x] .. edges[x + 1] - 1, with room for the runs of those that have no solution."""
    solved, parts = tried.solved, []
    ends = np.append(solved.starts, tried.n_runs)
    for begin, end in pairwise(edges):
        rows, first, last = slice(begin, end), int(ends[begin]), int(ends[end])
        needed = tried.needed[rows]
        room = int((pieces.q_len[rows] + pieces.t_len[rows])[needed > 0].sum())
        runs = np.empty(last - first + room, np.uint32)
        runs[: last - first] = solved.runs[first:last]
        score, q_used, t_used, dropped = (column[rows] for column in solved[:4])
        part = Solved(score, q_used, t_used, dropped, runs, solved.starts[rows] - first, solved.counts[rows], 0)
        parts.append(Tried(part, last - first, needed))
    return parts


def _room(desk: Desk, n: int, height: int, steps: int) -> tuple[int, int]:
    """Blocks that align n pieces side by side, and bytes that each of their warps needs for anti-diagonals 0 to `steps`."""
    device, size = desk.device, (steps + 1) * height
    blocks = min(-(-n // WARPS), 2 if SIMULATED else device.processors * RESIDENT)
    blocks = min(blocks, device.gpu.free // SHARE // (size * WARPS))
    if not blocks:
        raise MemoryError("device memory")
    return blocks, size


def _brought(desk: Desk, out: Out, needed: np.ndarray, cells: int) -> Tried:
    """What has come out, with the runs of all paths one after the other.  needed : (n,) int64, as in `Tried`."""
    n, found, done = len(needed), desk.fetch(out.results), needed == 0
    counts = np.where(done, found[:, N_RUNS], 0).astype(np.int32)
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if n else 0
    packed = desk.empty(total, np.uint32)
    if total:
        counted, begins = desk.send(counts), desk.send(ends - counts)
        desk.launch(gather_runs, -(-n // WARPS), WARPS * WARP, out.begins, counted, begins, out.runs, packed)
    solved = no_solutions(n, 0)
    for column, values in zip((SCORE, Q_USED, T_USED, DROPPED), solved[:4], strict=True):
        values[done] = found[done, column]
    solved.starts[:], solved.counts[:] = ends - counts, counts
    return Tried(solved._replace(runs=desk.fetch_much(packed), cells=cells), total, needed)
