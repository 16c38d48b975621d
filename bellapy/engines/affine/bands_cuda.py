"""Alignments in bands on NVIDIA GPUs.

The workers of compute/gpu/pool.py share the pairs.  Only bases go to a device, and only scores and the runs of paths come
back: the scores of cells stay in memory that each warp uses again for its next pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import SIMULATED, WARP
from bellapy.compute.gpu.pool import Work, Worker, pool
from bellapy.compute.gpu.transfers import fetched, moment, sent
from bellapy.compute.resources import Resources
from bellapy.compute.threads import even_ranges
from bellapy.engines.affine.cuda_band import (
    COLUMNS,
    DROPPED,
    MOST_REGISTERS,
    N_QUERY,
    N_RUNS,
    N_TARGET,
    PADDING,
    Q_USED,
    RESULTS,
    RUNS,
    SCORE,
    T_USED,
    Bounds,
    make_kernel,
    most_registers,
    padding,
)
from bellapy.engines.affine.cuda_ends import TAG_BITS
from bellapy.engines.affine.cuda_step import Kind, pack_scoring, scale_for
from bellapy.engines.affine.cuda_walk import NO_PATH, direct_size
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import NO_ZDROP
from bellapy.engines.affine.words import BASES, pack_bases, words_for
from bellapy.engines.registers.gather import gather_runs
from bellapy.params import AffineScoring

ROWS = tuple(2 * WARP * registers for registers in MOST_REGISTERS)
"""Rows of the bands that there are kernels for."""
WARPS = 1 if SIMULATED else 4  # of a block
REGISTERS = 1 << 16  # of a processor
LEAST_PART = 1 << 10  # pairs, so that a part fills a GPU
LEAST_BATCH = 1 << 5  # pairs; if so few do not fit, they are left out
SHARE = 4  # of the free memory: how many times less the scores of a worker's pairs may take


class Bands(NamedTuple):
    """What is wanted of pairs.

    rows : of the bands, one of ROWS.  scoring : from rule.ordered.
    paths : whether they are wanted.
    ends : the mode is EXTEND, not GLOBAL (rule.py).  zdrop : of extensions.
    """

    rows: int
    scoring: AffineScoring
    paths: bool
    ends: bool = False
    zdrop: int = NO_ZDROP

    @property
    def exist(self) -> bool:
        """Whether there is a kernel for them on a device that has instructions for packed maxima."""
        scale = scale_for(self.scoring, self.rows)
        return scale >= (TAG_BITS if self.ends else 0) and (not self.ends or self.rows <= 2 * WARP << TAG_BITS)


@dataclass(frozen=True)
class _Job:
    """Alignment of pairs; runs of piece p go to runs[begins[p] : begins[p + 1]]."""

    query: np.ndarray
    target: np.ndarray
    pieces: Pieces
    bands: Bands
    resources: Resources
    begins: np.ndarray
    solved: Solved
    taken: np.ndarray


def align_bands(
    query: np.ndarray, target: np.ndarray, pieces: Pieces, bands: Bands, resources: Resources
) -> tuple[Solved, np.ndarray]:
    """Align pieces, all of the mode of `bands` and of at least a base on each side.

    Returns the solution, and which pieces have one.  Those with unknown bases have none, nor what fits no memory, nor
    extensions on devices without instructions for packed maxima.
    """
    gpus, n = pool(), len(pieces.q_at)
    begins = np.zeros(n + 1, np.int64)
    np.cumsum((pieces.q_len + pieces.t_len) * bands.paths, out=begins[1:])
    score, q_used, t_used, starts, counts = np.zeros((5, n), np.int64)
    runs = np.empty(int(begins[-1]), np.uint32)
    cells = int((pieces.q_len + pieces.t_len).sum()) * bands.rows
    solved = Solved(score, q_used, t_used, np.zeros(n, np.bool_), runs, starts, counts, cells)
    job = _Job(query, target, pieces, bands, resources, begins, solved, np.zeros(n, np.bool_))
    parts = even_ranges(n, max(1, min(2 * len(gpus.devices), n // LEAST_PART)))
    gpus.run(Work(parts, LEAST_BATCH, partial(_align_on_gpu, job), _leave_out, "kernel_s"), resources.devices)
    return solved, job.taken


def _leave_out(begin: int, end: int) -> None:
    """The caller does what has no solution."""


def _align_on_gpu(job: _Job, worker: Worker, parts: Iterator[tuple[int, int]], alone: bool) -> None:
    """Align the pairs of the next part, first one and end, on the worker's device."""
    begin, end = next(parts)
    device, stream, pieces = worker.device, worker.stream, job.pieces
    if job.bands.ends and not device.packed:
        return
    lengths = pieces.q_len[begin:end] + pieces.t_len[begin:end]
    order = begin + np.argsort(-lengths, kind="stable")
    words, table, known = _packed(job, worker, order)
    order, table = order[known], table[known]
    n = len(order)
    if not n:
        return
    scoring, rows = job.bands.scoring, job.bands.rows
    two = (scoring.open1, scoring.extend1) != (scoring.open2, scoring.extend2)
    kind = Kind(rows // (2 * WARP), two, job.bands.paths, job.bands.ends, scale_for(scoring, rows), device.packed)
    there = sent(worker, "words", words)
    plan = sent(worker, "table", table)
    count = sent(worker, "count", np.zeros(1, np.int32))
    results = worker.rooms.of("results", n, RESULTS, dtype=np.int32)
    runs = worker.rooms.of("runs", max(1, int((job.begins[order + 1] - job.begins[order]).sum())), dtype=np.uint32)
    warps, room = _room(job, worker, kind, table)
    kept = worker.rooms.of("kept", max(1, warps * room), dtype=np.uint32)
    spans = []
    begun = moment(stream)
    lost = worker.launch(
        make_kernel(kind), -(-warps // WARPS), WARPS * WARP, there, plan, count,
        pack_scoring(scoring, rows, kind), scoring, Bounds(direct_size(scoring), job.bands.zdrop, room), kept, runs, results,
    )  # fmt: skip
    spans.append((begun, moment(stream), lost))
    found = fetched(worker, "results", results)
    stream.synchronize()
    for column, values in zip((SCORE, Q_USED, T_USED, DROPPED), job.solved[:4], strict=True):
        values[order] = found[:n, column]
    taken = np.ones(n, np.bool_)
    if job.bands.paths:
        n_runs = found[:n, N_RUNS].astype(np.int64)
        taken = n_runs != NO_PATH
        n_runs[~taken] = 0
        spans.append(_bring_runs(job, worker, order, plan, n_runs, runs))
    job.taken[order] = taken
    zero = device.zero
    device.count(
        [(zero.elapsed_time(a), zero.elapsed_time(b) - 1e3 * lost) for a, b, lost in spans],
        extensions=n, paths=n if job.bands.paths else 0, cells=int(lengths.sum()) * job.bands.rows,
        uploaded_bases=int(lengths.sum()),
    )  # fmt: skip


def _packed(job: _Job, worker: Worker, order: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words of the bases of pieces in `order`, in pinned memory; table of the pairs; which have no unknown bases."""
    pieces, n = job.pieces, len(order)
    q_len, t_len = pieces.q_len[order], pieces.t_len[order]
    pads = padding(q_len + t_len, job.bands.ends)
    sizes = np.concatenate([words_for(q_len + pads), words_for(t_len + pads)])
    places = np.cumsum(sizes) - sizes
    words = worker.pinned.of("packed words", int(sizes.sum()), dtype=np.uint64)
    known, row = np.ones(n, np.bool_), np.empty(BASES, np.uint8)
    step = pieces.step[order]
    pack_bases(job.query, pieces.q_at[order], q_len, step, pads, places[:n], words, known, row)
    pack_bases(job.target, pieces.t_at[order], t_len, step, pads, places[n:], words, known, row)
    table = np.empty((n, COLUMNS), np.int64)
    centre = job.bands.rows // 2 - (0 if job.bands.ends else (t_len - q_len) >> 2)
    room = (job.begins[order + 1] - job.begins[order]) * known
    for column, values in enumerate((places[:n], places[n:], q_len, t_len, pads, centre, np.cumsum(room) - room)):
        table[:, column] = values
    return words, table, known


def _room(job: _Job, worker: Worker, kind: Kind, table: np.ndarray) -> tuple[int, int]:
    """Warps that work side by side, and words that each needs to keep the scores of a pair."""
    device = worker.device
    resident = 2 if SIMULATED else device.processors * (REGISTERS // (WARP * most_registers(kind)))
    warps = min(len(table), resident)
    if not job.bands.paths:
        return warps, 0
    diagonals = int((table[:, N_QUERY] + table[:, N_TARGET] + 2 * table[:, PADDING]).max()) + 1
    room = diagonals * (kind.registers // 2) * WARP
    warps = min(warps, device.gpu.free // SHARE // (4 * room))
    if not warps:
        raise MemoryError("device memory")
    return warps, room


def _bring_runs(job: _Job, worker: Worker, order, plan, n_runs: np.ndarray, runs) -> tuple:
    """The runs of pairs to those of the job; when gathering began and ended, and seconds lost."""
    stream, total = worker.stream, int(n_runs.sum())
    begins = np.cumsum(n_runs) - n_runs
    counts, places = sent(worker, "run counts", n_runs.astype(np.int32)), sent(worker, "begins", begins)
    packed = worker.rooms.of("packed", max(1, total), dtype=np.uint32)
    begun = moment(stream)
    lost = worker.launch(gather_runs, -(-len(order) // WARPS), WARPS * WARP, plan[:, RUNS], counts, places, runs, packed)
    span = begun, moment(stream), lost
    there = fetched(worker, "runs", packed)
    stream.synchronize()
    at = int(job.begins[order.min()])
    job.solved.runs[at : at + total] = there[:total]
    job.solved.starts[order], job.solved.counts[order] = at + begins, n_runs
    return span
