"""Many windows on NVIDIA GPUs; what fits none of their kernels is left to the CPU.

The workers of compute/gpu/pool.py share the windows.  Bases go to a device; scores, consensus and columns come back.
Windows are taken by decreasing work, so that the last ones are short.  A warp uses its memory again for its next window:
there is room for graphs as they usually are, and those that outgrow it are done again with room for all their bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import SIMULATED, WARP
from bellapy.compute.gpu.pool import Work, Worker, give_to_cpu, pool
from bellapy.compute.gpu.transfers import fetched, moment, sent
from bellapy.compute.resources import Resources
from bellapy.compute.threads import even_ranges
from bellapy.engines.poa.gpu.align_kernels import fits, pack_scoring
from bellapy.engines.poa.gpu.graph_kernels import FIELDS
from bellapy.engines.poa.gpu.window_kernels import (
    MOST_REGISTERS,
    N_COLUMNS,
    N_CONSENSUS,
    N_ROWS,
    RESULTS,
    Room,
    Written,
    make_kernel,
)
from bellapy.engines.poa.groups import LEFT, NOT_SOLVED, Groups, Solved
from bellapy.engines.registers.gather import gather_runs
from bellapy.params.correct import PoaScoring

WARPS = 1 if SIMULATED else 4  # of a block
REGISTERS = 1 << 16  # of a processor
COLUMNS = {registers: 2 * WARP * registers for registers in MOST_REGISTERS}
"""Prefixes of a sequence that a kernel computes, by its registers."""
USUAL = 6  # nodes of a graph for each prefix, at first
LEAST_PART = 1 << 10  # windows, so that a part fills a GPU
LEAST_BATCH = 1 << 2  # windows; if so few do not fit, they are left out
SHARE = 4  # of the free memory: how many times less the cells and graphs of a worker may take


@dataclass(frozen=True)
class _Job:
    """Consensus of groups; what is found goes to `solved`, of a window to where its bases are."""

    groups: Groups
    scoring: PoaScoring
    resources: Resources
    kernel: np.ndarray
    solved: Solved


class _Sent(NamedTuple):
    """What lies on a device for a part of the windows: the codes, and offsets from the first of them."""

    codes: Any
    offsets: Any
    written: Written


def align_groups(groups: Groups, scoring: PoaScoring, with_alignment: bool, resources: Resources) -> Solved:
    """Consensus of windows; those that have none are left to the CPU, which is noted."""
    gpus, n = pool(), len(groups)
    longest = np.maximum.reduceat(np.append(groups.lengths, 0), groups.firsts[:-1]) * (np.diff(groups.firsts) > 0)
    kernel = np.zeros(n, np.int64)  # registers, 0 where there is none
    for registers, columns in reversed(COLUMNS.items()):
        if fits(scoring, columns):
            kernel[longest < columns] = registers
    job = _Job(groups, scoring, resources, kernel, Solved.empty(groups, with_alignment))
    parts = even_ranges(n, max(1, min(2 * len(gpus.devices), n // LEAST_PART)))
    gpus.run(Work(parts, LEAST_BATCH, partial(_align_on_gpu, job), _leave_out, "kernel_s"), resources.devices)
    if left := int((job.solved.sizes == NOT_SOLVED).sum()):
        give_to_cpu(resources.devices, LEFT, windows=left)
    return job.solved


def _leave_out(begin: int, end: int) -> None:
    """The caller does what has no solution."""


def _align_on_gpu(job: _Job, worker: Worker, parts: Iterator[tuple[int, int]], alone: bool) -> None:
    """Align the windows of the next part, first one and end, on the worker's device."""
    begin, end = next(parts)
    if not worker.device.packed:
        return
    groups, its = job.groups, slice(begin, end)
    some = groups.take(begin, end)
    bases = np.diff(some.offsets[some.firsts])
    there = _send(worker, some, job.solved.layout is not None)
    results, spans = np.full((end - begin, RESULTS), -1, np.int32), []
    for registers in np.unique(job.kernel[its][job.kernel[its] > 0]).tolist():
        left = np.flatnonzero(job.kernel[its] == registers)
        left = left[np.argsort(-bases[left], kind="stable")]
        for most in (USUAL * COLUMNS[registers], int(bases[left[0]])):
            if len(left):
                found, span = _launch(job, worker, some, left, registers, min(most, int(bases[left[0]])), there)
                results[left] = found[left]
                spans.append(span)
                left = left[results[left, N_CONSENSUS] < 0]
    spans.append(_bring(job, worker, begin, some, results, there))
    device, done = worker.device, results[:, N_CONSENSUS] >= 0
    spent = [(device.zero.elapsed_time(a), device.zero.elapsed_time(b) - 1e3 * lost) for a, b, lost in spans]
    cells = int((results[:, N_ROWS].astype(np.int64) * done * np.array(job.kernel[its]) * 2 * WARP).sum())
    device.count(spent, windows=int(done.sum()), cells=cells, uploaded_bases=int(bases.sum()))


def _send(worker: Worker, some: Groups, laid_out: bool) -> _Sent:
    n, rooms = len(some.codes), worker.rooms
    written = Written(
        rooms.of("scores", max(1, len(some.lengths)), dtype=np.int32),
        rooms.of("results", len(some), RESULTS, dtype=np.int32),
        rooms.of("consensus", max(1, n), dtype=np.uint8),
        rooms.of("consensus columns", max(1, n * laid_out), dtype=np.int32),
        rooms.of("columns", max(1, n * laid_out), dtype=np.int32),
    )
    codes = some.codes if n else np.zeros(1, np.uint8)
    return _Sent(sent(worker, "codes", codes), sent(worker, "offsets", some.offsets), written)


def _launch(
    job: _Job, worker: Worker, some: Groups, order: np.ndarray, registers: int, nodes: int, there: _Sent
) -> tuple[np.ndarray, tuple[Any, Any, float]]:
    """Align windows, in this order, with room for graphs of so many nodes; results of all, and when the kernel ran."""
    device, stream, laid_out = worker.device, worker.stream, job.solved.layout is not None
    room = Room(nodes, 2 * nodes + 1, laid_out)
    of_rows, of_graph = (nodes + 1) * registers * WARP, room.places
    resident = 2 if SIMULATED else device.processors * (REGISTERS // (WARPS * WARP * MOST_REGISTERS[registers]))
    blocks = min(-(-len(order) // WARPS), resident, device.gpu.free // SHARE // (4 * WARPS * (of_rows + FIELDS * of_graph)))
    if not blocks:
        raise MemoryError("device memory")
    rows = worker.rooms.of("rows", blocks * WARPS * of_rows, dtype=np.uint32)
    graph = worker.rooms.of("graph", FIELDS * blocks * WARPS * of_graph, dtype=np.int32).reshape(FIELDS, -1)
    plan = sent(worker, "plan", np.stack((order, some.firsts[order], some.firsts[order + 1]), axis=1))
    count = sent(worker, "count", np.zeros(1, np.int32))
    begun = moment(stream)
    lost = worker.launch(
        make_kernel(registers), blocks, WARPS * WARP, there.codes, there.offsets, plan, count, pack_scoring(job.scoring),
        room, rows, graph, there.written,
    )  # fmt: skip
    ended, found = moment(stream), fetched(worker, "results", there.written.results)
    stream.synchronize()
    return found.copy(), (begun, ended, lost)


def _bring(
    job: _Job, worker: Worker, begin: int, some: Groups, results: np.ndarray, there: _Sent
) -> tuple[Any, Any, float]:  # fmt: skip
    """What was found of the windows from `begin` on to the job; when the consensus was gathered."""
    stream, solved, sizes = worker.stream, job.solved, np.maximum(results[:, N_CONSENSUS], 0).astype(np.int64)
    begins, total = np.cumsum(sizes) - sizes, int(sizes.sum())
    columns = {"places": some.offsets[some.firsts[:-1]], "sizes": sizes, "begins": begins}
    tables = [sent(worker, name, column) for name, column in columns.items()]
    written, base = there.written, int(job.groups.offsets[job.groups.firsts[begin]])
    layout = solved.layout
    names = ("consensus", "consensus columns") if layout else ("consensus",)
    begun, lost, packed = moment(stream), 0.0, []
    for name, column in zip(names, (written.consensus, written.consensus_columns), strict=False):
        gathered = worker.rooms.of(f"packed {name}", max(1, total), dtype=column.dtype)
        lost += worker.launch(gather_runs, -(-len(some) // WARPS), WARPS * WARP, *tables, column, gathered)
        packed.append(gathered)
    ended = moment(stream)
    here = [fetched(worker, f"packed {name}", column) for name, column in zip(names, packed, strict=True)]
    scores = fetched(worker, "scores", written.scores)
    places = fetched(worker, "columns", written.columns) if layout else None
    stream.synchronize()
    first, n = int(job.groups.firsts[begin]), len(some)
    solved.consensus[base : base + total] = here[0][:total]
    solved.starts[begin : begin + n], solved.sizes[begin : begin + n] = base + begins, results[:, N_CONSENSUS]
    solved.scores[first : first + len(some.lengths)] = scores[: len(some.lengths)]
    if layout and places is not None:
        layout.consensus[base : base + total] = here[1][:total]
        layout.bases[base : base + len(some.codes)] = places[: len(some.codes)]
        layout.sizes[begin : begin + n] = results[:, N_COLUMNS]
    return begun, ended, lost
