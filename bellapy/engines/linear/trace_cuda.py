"""Paths of flanks on NVIDIA GPUs: in narrow windows first, what outgrows them in wider ones, the rest on the CPU.

The workers of compute/gpu/pool.py share pieces of the flanks.  A piece goes through the windows of the extension, by
decreasing length, in batches that fit a bounded part of the device's memory; what comes back are the runs alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from bellapy.compute.gpu import ahead
from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import WARP
from bellapy.compute.gpu.pool import FULL, WORKERS, Work, Worker, give_to_cpu, pool
from bellapy.compute.gpu.transfers import fetched, moment, sent
from bellapy.compute.resources import Resources
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.ends import End
from bellapy.engines.flank_paths import FlankPaths, block_chunks, most_runs
from bellapy.engines.flanks import Flanks
from bellapy.engines.linear.cuda_step import pack_scoring
from bellapy.engines.linear.cuda_trace import BITS, LAST, PLAN, RUNS, Part, chunk_words, make_tracer, state_words
from bellapy.engines.linear.cuda_walk import WAY, make_walker
from bellapy.engines.linear.extend_cuda import BATCH, CLASSES, WARPS, loading_of, ready_sizes, window_sizes
from bellapy.engines.linear.trace_cpu import trace_flanks as trace_on_cpu
from bellapy.engines.linear.trace_plan import lay_out, list_longest_first
from bellapy.engines.registers.bases import Reads
from bellapy.engines.registers.gather import gather_runs
from bellapy.engines.registers.host import cut_pieces
from bellapy.engines.registers.window import CHUNK
from bellapy.params import Scoring
from bellapy.report.run_report import Devices

LEAST_PIECE = 1 << 12  # flanks
LEAST_BATCH = 1 << 5  # flanks; if so few do not fit, they go to the CPU
LEAST_COPY = 1 << 21  # runs; fewer are copied before a thread has begun
BATCH_BYTES = 8 << 30  # of device memory for a worker's batch, where so much is free
SHARE = 8  # of the free memory: how many times less a batch may take
WALKERS = WARPS * WARP  # flanks that a block goes back through


@dataclass(frozen=True)
class _Job:
    """Paths of one set of flanks; runs of a piece go to its part of `runs`, runs[begins[first row] : begins[end]]."""

    codes: np.ndarray
    flanks: Flanks
    ends: np.ndarray
    scoring: Scoring
    end: End
    resources: Resources
    devices: int
    begins: np.ndarray
    runs: np.ndarray
    starts: np.ndarray
    counts: np.ndarray


def trace_flanks(
    codes: np.ndarray, flanks: Flanks, ends: np.ndarray, scoring: Scoring, end: End, resources: Resources
) -> FlankPaths:
    """The path of every flank's extension, as of trace_cpu.py.

    resources : whose threads pack reads and do what fits no GPU.
    """
    gpus, n = pool(), len(flanks)
    if not window_sizes(scoring):
        reason = "such scores do not fit the windows of a GPU: paths are traced on the CPU"
        give_to_cpu(resources.devices, reason, paths=n)
        return trace_on_cpu(codes, flanks, ends, scoring, end, resources)
    begins = np.zeros(n + 1, np.int64)
    np.cumsum(most_runs(ends, scoring, end is End.LONGEST), out=begins[1:])
    n_pieces = max(1, min(WORKERS * len(gpus.devices), n // LEAST_PIECE))
    job = _Job(
        codes, flanks, ends, scoring, end, resources, min(n_pieces, len(gpus.devices)), begins,
        np.empty(begins[-1], np.uint32), np.zeros(n, np.int64), np.zeros(n, np.int64),
    )  # fmt: skip
    aligned = Flanks(flanks.query_at, ends[:, 0].copy(), flanks.target_at, ends[:, 1].copy(), flanks.complement)
    pieces = cut_pieces(aligned, n_pieces, BATCH, len(codes))
    work = Work(pieces, LEAST_BATCH, partial(_trace_on_gpu, job), partial(_trace_on_cpu, job), "path_s")
    gpus.run(work, resources.devices)
    return FlankPaths(job.runs, job.starts, job.counts)


def load_size(number: int) -> None:
    """Compile, or load, the kernels of one size of windows."""
    size, scoring = CLASSES[number][:2], Scoring()
    rule, dear = pack_scoring(scoring), scoring.mismatch < 2 * scoring.gap
    with desk(Devices()) as its_desk:
        zeros, part = its_desk.zeros, Part(1, 1, 0)
        reads, plan = Reads(zeros((1, 3), np.uint32), 1), zeros((1, PLAN), np.int64)
        failed, counts = its_desk.send(np.ones(1, np.int32)), zeros(1, np.int32)
        bits, states, runs = zeros(1, np.uint64), zeros(1, np.uint32), zeros(1, np.uint32)
        tracer = make_tracer(*size, scoring.match == 1, its_desk.device.packed, dear)
        its_desk.launch(
            tracer, 1, WARPS * WARP, reads, zeros((1, 5), np.int64), plan, part, rule, False, bits, states, failed
        )  # fmt: skip
        its_desk.launch(make_walker(*size), 1, WALKERS, plan, part, bits, failed, zeros((1, WAY), np.int64), runs, counts)
        its_desk.launch(gather_runs, 1, WARPS * WARP, plan[:, RUNS], counts, zeros(1, np.int64), runs, zeros(1, np.uint32))
        its_desk.fetch(runs)


def _trace_on_cpu(job: _Job, begin: int, end: int) -> None:
    give_to_cpu(job.resources.devices, FULL, paths=end - begin)
    _put_cpus_paths(job, np.arange(begin, end), int(job.begins[begin]))


def _put_cpus_paths(job: _Job, rows: np.ndarray, at: int) -> None:
    """Paths of some flanks from the CPU, their runs to job.runs[at:]."""
    some = Flanks(*(column[rows] for column in job.flanks.columns))
    found = trace_on_cpu(job.codes, some, job.ends[rows], job.scoring, job.end, job.resources)
    for row, begin, n in zip(rows.tolist(), found.starts.tolist(), found.counts.tolist(), strict=True):
        job.runs[at : at + n] = found.runs[begin : begin + n]
        job.starts[row], job.counts[row] = at, n
        at += n


def _trace_on_gpu(job: _Job, worker: Worker, pieces: Iterator[tuple[int, int]], alone: bool) -> None:
    """Trace the flanks of the next piece, first one and end, on the worker's device."""
    begin, end = next(pieces)
    rows = np.empty(end - begin, np.int64)
    todo = rows[: list_longest_first(job.ends, begin, end, rows)]
    if not len(todo):
        return
    table, reads, n = job.flanks.table(todo), worker.device.reads, len(todo)
    reads.hold(job.codes)
    uploaded = reads.bring(table, job.codes, max(1, job.resources.threads // job.devices), worker.stream)
    at = int(job.begins[begin])
    spans: list[tuple[float, float]] = []
    for size in ready_sizes(window_sizes(job.scoring, 2), __name__):  # what outgrows one begins anew in the next
        if not len(todo):
            break
        failed = []
        for batch in _batches(job, worker, todo, table, size):
            over, n_runs = _trace_batch(job, worker, batch, size, at, spans)
            failed.append(over)
            at += n_runs
        left = np.concatenate(failed)
        todo, table = todo[left], table[left]
    worker.device.count(spans, uploaded_bases=uploaded, paths=n - len(todo))
    if len(todo):
        reason = "paths that outgrow the windows of a GPU are traced on the CPU"
        give_to_cpu(job.resources.devices, reason, paths=len(todo))
        _put_cpus_paths(job, todo, at)


@dataclass(frozen=True)
class _Batch:
    """Flanks that are traced together, the longest first.

    rows : of the job.  table : theirs, `Flanks.table`.  plan : (n, PLAN) int64, cuda_trace.py.
    block : chunks of a block.  n_blocks : (n,) int64.
    room : words of bits, of states, and runs that there must be room for.
    """

    rows: np.ndarray
    table: np.ndarray
    plan: np.ndarray
    block: int
    n_blocks: np.ndarray
    room: tuple[int, ...]


def _batches(job: _Job, worker: Worker, todo: np.ndarray, table: np.ndarray, size: tuple[int, int]) -> list[_Batch]:
    """Flanks, by decreasing length, cut into batches that take no more memory than they may, or of one flank."""
    words, n = (chunk_words(*size), state_words(*size)), len(todo)
    block = block_chunks(-(-int(job.ends[todo[0]].sum()) // CHUNK), 8 * words[0], 4 * words[1])
    plan = np.empty((n + 1, PLAN), np.int64)
    lay_out(todo, job.ends, job.begins, words, block, plan)
    n_blocks = -(-plan[:n, LAST] // (CHUNK * block))
    before = plan[:, BITS:]  # of each flank, and of all
    taken = before @ np.array([8, 4, 8])  # runs twice, as they are written and packed
    most, batches, begin = min(BATCH_BYTES, worker.device.gpu.free // SHARE), [], 0
    while begin < n:
        end = max(begin + 1, int(np.searchsorted(taken, taken[begin] + most, side="right")) - 1)
        its_plan = plan[begin:end].copy()
        its_plan[:, BITS:] -= before[begin]
        room = tuple((before[end] - before[begin]).tolist())
        batches.append(_Batch(todo[begin:end], table[begin:end], its_plan, block, n_blocks[begin:end], room))
        begin = end
    return batches


def _copy(there: np.ndarray, here: np.ndarray, threads: int) -> None:
    """Copy runs to memory that is used for the first time, which takes longer than the copy."""
    if len(here) < LEAST_COPY:
        here[:] = there
        return

    def copy(part: tuple[int, int]) -> None:
        here[slice(*part)] = there[slice(*part)]

    map_threads(copy, even_ranges(len(here), threads), threads)


def _trace_batch(
    job: _Job, worker: Worker, batch: _Batch, size: tuple[int, int], at: int, spans: list
) -> tuple[np.ndarray, int]:
    """Which flanks failed, and how many runs the others have; these go to job.runs[at:], one flank after the other."""
    device, stream, n = worker.device, worker.stream, len(batch.rows)
    table, plan = (sent(worker, name, rows) for name, rows in (("table", batch.table), ("plan", batch.plan)))
    failed, counts = (sent(worker, name, np.zeros(n, np.int32)) for name in ("failed", "run counts"))
    ways = worker.rooms.of("ways", n, WAY, dtype=np.int64)
    bits = worker.rooms.of("bits", batch.room[0], dtype=np.uint64)
    states = worker.rooms.of("states", max(1, batch.room[1]), dtype=np.uint32)
    runs = worker.rooms.of("runs", batch.room[2], dtype=np.uint32)
    dear = job.scoring.mismatch < 2 * job.scoring.gap
    ahead.wait(loading_of(size, __name__))
    tracer = make_tracer(*size, job.scoring.match == 1, device.packed, dear)
    walker, rule, reads = make_walker(*size), pack_scoring(job.scoring), Reads(device.reads.planes, device.reads.n_bases)
    begin, waited = moment(stream), 0.0
    for turn in range(int(batch.n_blocks[0])):
        left = int(np.count_nonzero(batch.n_blocks > turn))
        part = Part(left, batch.block, turn)
        warps = -(-left * size[0] // WARP)
        waited += worker.launch(
            tracer, -(-warps // WARPS), WARPS * WARP,
            reads, table, plan, part, rule, job.end is End.LONGEST, bits, states, failed,
        )  # fmt: skip
        waited += worker.launch(walker, -(-left // WALKERS), WALKERS, plan, part, bits, failed, ways, runs, counts)
    walked = moment(stream)
    n_runs, is_failed = fetched(worker, "run counts", counts), fetched(worker, "failed", failed)
    stream.synchronize()
    after = np.cumsum(n_runs, dtype=np.int64)
    total = int(after[-1])
    begins = sent(worker, "begins", after - n_runs)
    packed = worker.rooms.of("packed", max(1, total), dtype=np.uint32)
    gathering = moment(stream)
    waiting = worker.launch(gather_runs, -(-n // WARPS), WARPS * WARP, plan[:, RUNS], counts, begins, runs, packed)
    gathered = moment(stream)
    there = fetched(worker, "runs", packed)
    stream.synchronize()
    _copy(there[:total], job.runs[at : at + total], max(1, job.resources.threads // job.devices))
    job.starts[batch.rows], job.counts[batch.rows] = at + after - n_runs, n_runs
    for first, last, lost in ((begin, walked, waited), (gathering, gathered, waiting)):
        spans.append((device.zero.elapsed_time(first), device.zero.elapsed_time(last) - 1e3 * lost))
    return is_failed != 0, total
