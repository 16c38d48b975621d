"""Short alignments on a GPU, in growing bands: what lanes of the CPU give, with the same scores and paths."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
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
    use: Callable[[], AbstractContextManager[Desk]], planes: tuple[Any, Any], pieces: Pieces, scoring: AffineScoring,
    effort: Effort,
) -> Tried:  # fmt: skip
    """As `Aligner.try_lanes`, but the runs have no room for more.

    use : gives the device while it is needed: others may have it while numbers are laid out here.
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
    sizes, columns = lengths * waiting, np.stack(pieces)
    order = np.argsort((MAX_STEPS - np.minimum(lengths, MAX_STEPS)).astype(np.uint16), kind="stable")
    left = order[waiting[order]]  # the longest first
    with use() as desk:
        found, runs, counts, cells = _by_classes(desk, Bases(*planes), columns, (sizes, left, rows, needed), scoring, effort)
    return _solved(found, runs, counts, needed, cells)


def _by_classes(
    desk: Desk, planes: Bases, columns: np.ndarray, plan: tuple[np.ndarray, ...], scoring: AffineScoring, effort: Effort
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:  # fmt: skip
    """What `_fetched` gives, of all classes of bands, and the cells that were computed.

    columns : (6, n) int64, of Pieces.
    plan : how many runs each may have; which ones are to be aligned, the longest first; the rows that each asks for, and the
    diagonals that it needs, both changed.
    """
    sizes, left, rows, needed = plan
    n, lengths, cells = len(sizes), columns[1] + columns[3], 0
    whole = desk.send(columns)
    there = Pieces(*(whole[x : x + 1].reshape(-1) for x in range(len(columns))))
    out = Out(
        desk.send(np.cumsum(sizes) - sizes), desk.empty(int(sizes.sum()), np.uint32), desk.zeros((n, RESULTS), np.int32),
        desk.empty(n, np.int32),
    )  # fmt: skip
    for height in HEIGHTS:
        now = rows[left] <= height
        index = left[now]
        if not len(index):
            continue
        blocks, size = _room(desk, len(index), height, int(lengths[index[0]]))
        room, some = desk.empty(blocks * WARPS * size, np.int8), desk.send(index)
        kernel = make_kernel(-(-height // WARP))
        desk.launch(kernel, blocks, WARPS * WARP, planes, there, some, height, scoring, effort, room, size, out)
        cells += int(lengths[index].sum()) * height
        needed[index] = desk.fetch(out.needed)[index]
        rows[index] = height + 1
        left = left[~now | (needed[left] > 0)]
    return *_fetched(desk, out, needed == 0), cells


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


def _fetched(desk: Desk, out: Out, done: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Results, the runs of all paths one after the other, and how many each has.  done : (n,) bool, which have one."""
    n, found = len(done), desk.fetch(out.results)
    counts = np.where(done, found[:, N_RUNS], 0).astype(np.int32)
    begins = np.cumsum(counts, dtype=np.int64) - counts
    packed = desk.empty(int(counts.sum(dtype=np.int64)), np.uint32)
    if packed.size:
        counted, there = desk.send(counts), desk.send(begins)
        desk.launch(gather_runs, -(-n // WARPS), WARPS * WARP, out.begins, counted, there, out.runs, packed)
    return found, desk.fetch_much(packed), counts


def _solved(found: np.ndarray, runs: np.ndarray, counts: np.ndarray, needed: np.ndarray, cells: int) -> Tried:
    """The solutions, from what `_fetched` gives; needed : (n,) int64, as in `Tried`."""
    solved, done = no_solutions(len(needed), 0), needed == 0
    for column, values in zip((SCORE, Q_USED, T_USED, DROPPED), solved[:4], strict=True):
        values[done] = found[done, column]
    solved.starts[:], solved.counts[:] = np.cumsum(counts, dtype=np.int64) - counts, counts
    return Tried(solved._replace(runs=runs, cells=cells), len(runs), needed)
