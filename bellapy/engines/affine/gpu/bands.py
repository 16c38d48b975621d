"""Alignments in bands on NVIDIA GPUs.

The workers of compute/gpu/pool.py share the pairs.  Only bases go to a device, and only scores and the runs of paths come
back: the scores of cells stay in memory that each warp uses again for its next pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import SIMULATED, WARP
from bellapy.compute.gpu.pool import Work, Worker, pool
from bellapy.compute.gpu.transfers import fetched, moment, sent
from bellapy.compute.resources import Resources
from bellapy.compute.threads import even_ranges
from bellapy.engines.affine.gpu.band_kernels import (
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
from bellapy.engines.affine.gpu.ends_kernels import TAG_BITS
from bellapy.engines.affine.gpu.step_kernels import Kind, pack_scoring, scale_for
from bellapy.engines.affine.gpu.walk_kernels import NO_PATH, chunk_words, direct_size
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import NO_ZDROP
from bellapy.engines.affine.words import BASES, pack_bases, words_for
from bellapy.engines.registers.gather import gather_runs
from bellapy.engines.registers.window import CHUNK
from bellapy.params import AffineScoring

ROWS = tuple(2 * WARP * registers for registers in MOST_REGISTERS)
"""Rows of the bands that there are kernels for."""
WARPS = 1 if SIMULATED else 4  # of a block
REGISTERS = 1 << 16  # of a processor
LEAST_PART = 1 << 10  # pairs, so that a part fills a GPU
LEAST_BATCH = 1 << 5  # pairs; if so few do not fit, they are left out
FEW_LANES = WARP // 4  # whose scores are kept at first; where a path needs others, those of all lanes are kept
SHARE = 4  # of the free memory: how many times less the scores of a worker's pairs may take


Span = tuple[Any, Any, float]
"""Events before and after a kernel, and seconds of which it was compiled between them."""


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
    device, pieces = worker.device, job.pieces
    if job.bands.ends and not device.packed:
        return
    lengths = pieces.q_len[begin:end] + pieces.t_len[begin:end]
    order = begin + np.argsort(-lengths, kind="stable")
    words, table, known = _packed(job, worker, order)
    order, table = order[known], table[known]
    if not len(order):
        return
    places = job.begins[order + 1] - job.begins[order]
    runs = worker.rooms.of("runs", max(1, int(places.sum())), dtype=np.uint32)
    bases = sent(worker, "words", words)
    found, span = _launch(job, worker, table, FEW_LANES, bases, runs)
    spans = [span]
    if job.bands.paths and len(left := np.flatnonzero(found[:, N_RUNS] == NO_PATH)):
        found[left], span = _launch(job, worker, table[left], WARP, bases, runs)
        spans.append(span)
    for column, values in zip((SCORE, Q_USED, T_USED, DROPPED), job.solved[:4], strict=True):
        values[order] = found[:, column]
    job.taken[order] = found[:, N_RUNS] != NO_PATH
    if job.bands.paths:
        spans.append(_bring_runs(job, worker, order, table[:, RUNS].copy(), np.maximum(found[:, N_RUNS], 0), runs))
    n_bases, paths = int(lengths.sum()), int(job.bands.paths) * len(order)
    spent = [(device.zero.elapsed_time(a), device.zero.elapsed_time(b) - 1e3 * lost) for a, b, lost in spans]
    device.count(spent, extensions=len(order), paths=paths, cells=n_bases * job.bands.rows, uploaded_bases=n_bases)


def _launch(job: _Job, worker: Worker, table: np.ndarray, lanes: int, bases, runs) -> tuple[np.ndarray, Span]:
    """Align the pairs of a table; results, (n, RESULTS) int32, and when the kernel ran.

    lanes : whose scores are kept.  bases, runs : of the kernel, on the device.
    """
    device, stream, scoring, rows = worker.device, worker.stream, job.bands.scoring, job.bands.rows
    two = (scoring.open1, scoring.extend1) != (scoring.open2, scoring.extend2)
    kind = Kind(rows // (2 * WARP), two, job.bands.paths, job.bands.ends, scale_for(scoring, rows), device.packed)
    blocks, room = _room(job, worker, kind, table, lanes)
    kept = worker.rooms.of("kept", max(1, blocks * WARPS * room), dtype=np.uint32)  # all warps of a block may take pairs
    plan, count = sent(worker, "table", table), sent(worker, "count", np.zeros(1, np.int32))
    results = worker.rooms.of("results", len(table), RESULTS, dtype=np.int32)
    bounds = Bounds(direct_size(scoring), job.bands.zdrop, room, lanes)
    begun = moment(stream)
    lost = worker.launch(
        make_kernel(kind), blocks, WARPS * WARP, bases, plan, count, pack_scoring(scoring, rows, kind), scoring,
        bounds, kept, runs, results,
    )  # fmt: skip
    ended, found = moment(stream), fetched(worker, "results", results)
    stream.synchronize()
    return found[: len(table)].copy(), (begun, ended, lost)


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


def _room(job: _Job, worker: Worker, kind: Kind, table: np.ndarray, lanes: int) -> tuple[int, int]:
    """Blocks that work side by side, and words that each of their warps needs for the scores of a pair, of so many lanes."""
    device = worker.device
    resident = 2 if SIMULATED else device.processors * (REGISTERS // (WARPS * WARP * most_registers(kind)))
    blocks = min(-(-len(table) // WARPS), resident)
    if not job.bands.paths:
        return blocks, 0
    diagonals = int((table[:, N_QUERY] + table[:, N_TARGET] + 2 * table[:, PADDING]).max())
    room = -(-diagonals // CHUNK) * chunk_words(kind.registers, lanes)
    blocks = min(blocks, device.gpu.free // SHARE // (4 * room * WARPS))
    if not blocks:
        raise MemoryError("device memory")
    return blocks, room


def _bring_runs(job: _Job, worker: Worker, order: np.ndarray, places: np.ndarray, n_runs: np.ndarray, runs) -> Span:
    """The runs of pairs, which stand at `places` of `runs`, to those of the job; when they were gathered."""
    stream, ends = worker.stream, np.cumsum(n_runs, dtype=np.int64)
    begins, total = ends - n_runs, int(ends[-1])
    columns = [sent(worker, name, rows) for name, rows in (("places", places), ("run counts", n_runs), ("begins", begins))]
    packed = worker.rooms.of("packed", max(1, total), dtype=np.uint32)
    begun = moment(stream)
    lost = worker.launch(gather_runs, -(-len(order) // WARPS), WARPS * WARP, *columns, runs, packed)
    ended, there = moment(stream), fetched(worker, "runs", packed)
    stream.synchronize()
    at = int(job.begins[order.min()])
    job.solved.runs[at : at + total] = there[:total]
    job.solved.starts[order], job.solved.counts[order] = at + begins, n_runs
    return begun, ended, lost
