"""Paths of overlaps on NVIDIA GPUs: in narrow windows first, what outgrows them in wider ones, the rest on the CPU.

The workers of compute/gpu/pool.py share pieces of the overlaps.  The flanks of a piece, of both steps of the extension, go
through the windows by decreasing length, in batches that fit a bounded part of the device's memory.  Their runs stay there:
what comes back are whole paths, joined by a thread for each overlap (join_kernels.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import WARP
from bellapy.compute.gpu.pool import FULL, WORKERS, Work, Worker, give_to_cpu, pool
from bellapy.compute.gpu.transfers import fetched, moment, sent
from bellapy.compute.resources import Resources
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.ends import End
from bellapy.engines.flank_paths import SomePaths, block_chunks, most_runs
from bellapy.engines.flanks import Flanks, make_flanks
from bellapy.engines.join import flank_ends, parts_of, places
from bellapy.engines.linear import trace_cpu
from bellapy.engines.linear.gpu.extend import WARPS, window_sizes
from bellapy.engines.linear.gpu.join_kernels import COUNTED, N_RUNS, N_SHORT, Steps, join_flanks, shorten_runs
from bellapy.engines.linear.gpu.step_kernels import pack_scoring
from bellapy.engines.linear.gpu.trace_kernels import BITS, LAST, PLAN, STATES, Part, chunk_words, make_tracer, state_words
from bellapy.engines.linear.gpu.walk_kernels import WAY, make_walker
from bellapy.engines.linear.short_paths import ShortPaths
from bellapy.engines.linear.trace_plan import lay_out, list_longest_first
from bellapy.engines.registers.bases import Reads
from bellapy.engines.registers.window import CHUNK
from bellapy.params import Scoring
from bellapy.records import Overlaps, Paths, ReadSet, join_paths

LEAST_PIECE = 1 << 11  # overlaps
LEAST_BATCH = 1 << 4  # overlaps; if so few do not fit, they go to the CPU
LEAST_COPY = 1 << 23  # runs; fewer are copied before a thread has begun
BATCH_BYTES = 8 << 30  # of device memory for a worker's batch, where so much is free
SHARE = 8  # of the free memory: how many times less a batch may take
WALKERS = WARPS * WARP  # flanks that a block goes back through, overlaps that it joins
WIDE = "paths that outgrow the windows of a GPU are traced on the CPU"
UNFIT = "such scores do not fit the windows of a GPU: paths are traced on the CPU"


@dataclass(frozen=True)
class _Job:
    """Paths of some overlaps; `found` : the first overlap of each piece that is done, and its paths."""

    reads: ReadSet
    overlaps: Overlaps
    steps: Sequence[Scoring]
    end: End
    resources: Resources
    devices: int
    found: list[tuple[int, SomePaths]]


def trace_overlaps(
    reads: ReadSet, overlaps: Overlaps, steps: Sequence[Scoring], end: End, resources: Resources
) -> list[SomePaths]:
    """Paths of overlaps, as of trace_cpu.py, in consecutive parts.

    resources : whose threads pack reads and do what fits no GPU.
    """
    gpus, n = pool(), len(overlaps)
    if not n:
        return [trace_cpu.trace_overlaps(reads, overlaps, steps, end, resources)]
    n_pieces = max(1, min(WORKERS * len(gpus.devices), n // LEAST_PIECE))
    job = _Job(reads, overlaps, steps, end, resources, min(n_pieces, len(gpus.devices)), [])
    if not all(map(window_sizes, steps)):
        _trace_on_cpu(job, UNFIT, 0, n)
    else:
        work = Work(
            _pieces(overlaps, n_pieces), LEAST_BATCH, partial(_trace_on_gpu, job), partial(_trace_on_cpu, job, FULL),
            "path_s",
        )  # fmt: skip
        gpus.run(work, resources.devices)
    return [paths for _, paths in sorted(job.found, key=lambda found: found[0])]


def _pieces(overlaps: Overlaps, n: int) -> list[tuple[int, int]]:
    """First overlap and end of about `n` pieces of equal work."""
    total = np.cumsum(overlaps.query_end - overlaps.query_start, dtype=np.int64)
    inner = np.searchsorted(total, np.linspace(0, total[-1] if len(total) else 0, n + 1)[1:-1]).tolist()
    edges = [0, *inner, len(overlaps)]
    return [(begin, end) for begin, end in zip(edges, edges[1:], strict=False) if end > begin]


def _trace_on_cpu(job: _Job, reason: str, begin: int, end: int) -> None:
    some = job.overlaps.take(slice(begin, end))
    give_to_cpu(job.resources.devices, reason, paths=int(np.count_nonzero(flank_ends(some).any(axis=1))))
    job.found.append((begin, trace_cpu.trace_overlaps(job.reads, some, job.steps, job.end, job.resources)))


class _Laid(NamedTuple):
    """The flanks of a piece: those of the first steps, then those of the second ones.

    flanks : Flanks of both steps.  ends : (2 n_flanks, 2) int64, bases up to where each step ends.
    begins : (2 n_flanks + 1,) int64, sums of the runs that there is room for.
    counts : (2 n_flanks,) int32, runs, filled in as they are found.
    """

    flanks: tuple[Flanks, Flanks]
    ends: np.ndarray
    begins: np.ndarray
    counts: np.ndarray


def _lay_flanks(job: _Job, overlaps: Overlaps) -> _Laid:
    flanks, turns = make_flanks(job.reads, overlaps.anchors), overlaps.turns
    beyond = flanks.beyond(np.arange(len(flanks)), turns)
    ends = np.concatenate([turns, flank_ends(overlaps) - turns])
    begins, longest = np.zeros(len(ends) + 1, np.int64), job.end is End.LONGEST
    most = [most_runs(part, step, longest) for part, step in zip(np.split(ends, 2), _both(job.steps), strict=True)]
    np.cumsum(np.concatenate(most), out=begins[1:])
    return _Laid((flanks, beyond), ends, begins, np.zeros(len(ends), np.int32))


def _both(steps: Sequence[Scoring]) -> tuple[Scoring, Scoring]:
    return steps[0], steps[-1]


def _trace_on_gpu(job: _Job, worker: Worker, pieces: Iterator[tuple[int, int]], alone: bool) -> None:
    """Trace the overlaps of the next piece, first one and end, on the worker's device."""
    begin, end = next(pieces)
    overlaps = job.overlaps.take(slice(begin, end))
    laid, reads, n_flanks = _lay_flanks(job, overlaps), worker.device.reads, 2 * len(overlaps)
    spans: list[tuple[float, float]] = []
    codes = job.reads.both_ways
    reads.hold(codes)
    threads = max(1, job.resources.threads // job.devices)
    uploaded = reads.bring(laid.flanks[0].table(np.arange(n_flanks)), codes, threads, worker.stream)
    runs = worker.rooms.of("runs", max(1, int(laid.begins[-1])), dtype=np.uint32)
    todo = [_longest_first(laid.ends, first, first + n_flanks) for first in (0, n_flanks)]
    n, sizes = sum(map(len, todo)), [window_sizes(step) for step in _both(job.steps)]
    for level in range(max(map(len, sizes))):  # what outgrows one size begins anew in the next
        started = [
            (step, _start(job, worker, laid, step, todo[step], sizes[step][level]))
            for step in range(2) if len(todo[step]) and level < len(sizes[step])
        ]  # fmt: skip
        worker.stream.synchronize()
        for step, (counts, failed, first, last, lost) in started:
            laid.counts[todo[step]] = np.where(failed, 0, counts)
            todo[step] = todo[step][failed != 0]
            _note(worker, spans, first, last, lost)
    left = np.concatenate(todo)
    paths = _join_on_gpu(job, worker, overlaps, laid, runs, spans, threads)
    worker.device.count(spans, uploaded_bases=uploaded, paths=n - len(left))
    if len(left):
        give_to_cpu(job.resources.devices, WIDE, paths=len(left))
        paths = _with_cpus(job, overlaps, paths, np.unique(left % len(overlaps)))
    job.found.append((begin, paths))


def _longest_first(ends: np.ndarray, begin: int, end: int) -> np.ndarray:
    rows = np.empty(end - begin, np.int64)
    return rows[: list_longest_first(ends, begin, end, rows)]


def _note(worker: Worker, spans: list[tuple[float, float]], first: Any, last: Any, lost: float) -> None:
    """When kernels ran, between two events, but for the seconds in which they were loaded."""
    zero = worker.device.zero
    spans.append((zero.elapsed_time(first), zero.elapsed_time(last) - 1e3 * lost))


def _with_cpus(job: _Job, overlaps: Overlaps, paths: SomePaths, rows: np.ndarray) -> Paths:
    """The paths with those of some rows, ascending, from the CPU in their place."""
    theirs = trace_cpu.trace_overlaps(job.reads, overlaps.take(rows), job.steps, job.end, job.resources)
    parts, done = [], 0
    for i, row in enumerate(rows.tolist()):
        parts += [paths.part(done, row), theirs.part(i, i + 1)]
        done = row + 1
    return join_paths([*parts, paths.part(done, len(paths))])


class _Batch(NamedTuple):
    """Flanks `begin` .. `end` - 1 of those that are traced, by decreasing length.

    n_blocks : (n,) int64, of each.  room : words of bits and of states that there must be room for.
    """

    begin: int
    end: int
    n_blocks: np.ndarray
    room: tuple[int, int]


def _batches(plan: np.ndarray, block: int, most: int) -> list[_Batch]:
    """Cut flanks into batches of at most so many bytes, or of one flank; in `plan`, of `lay_out`, each begins at 0 then."""
    n = len(plan) - 1
    n_blocks = -(-plan[:n, LAST] // (CHUNK * block))
    before = plan[:, BITS : STATES + 1].copy()  # of each flank, and of all
    taken, batches, begin = before @ np.array([8, 4]), [], 0
    while begin < n:
        end = max(begin + 1, int(np.searchsorted(taken, taken[begin] + most, side="right")) - 1)
        plan[begin:end, BITS : STATES + 1] -= before[begin]
        bits, states = (before[end] - before[begin]).tolist()
        batches.append(_Batch(begin, end, n_blocks[begin:end], (bits, states)))
        begin = end
    return batches


def _start(
    job: _Job, worker: Worker, laid: _Laid, step: int, todo: np.ndarray, size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, Any, Any, float]:
    """Start the kernels for some flanks of a step.

    todo : rows of `laid`, the longest first.

    Returns
    -------
    What there will be once the stream has come there: runs of each flank, and whether it failed; events before and after
    the kernels; seconds that loading them took.
    """
    device, stream, scoring, n = worker.device, worker.stream, _both(job.steps)[step], len(todo)
    words = chunk_words(*size), state_words(*size)
    block = block_chunks(-(-int(laid.ends[todo[0]].sum()) // CHUNK), 8 * words[0], 4 * words[1])
    plan = np.empty((n + 1, PLAN), np.int64)
    lay_out(todo, laid.ends, laid.begins, words, block, plan)
    batches = _batches(plan, block, min(BATCH_BYTES, device.gpu.free // SHARE))
    rows = laid.flanks[step].table(todo - step * len(laid.flanks[0]))
    table, its_plan = sent(worker, f"table {step}", rows), sent(worker, f"plan {step}", plan)
    failed, counts = (sent(worker, f"{name} {step}", np.zeros(n, np.int32)) for name in ("failed", "counts"))
    ways = worker.rooms.of("ways", n, WAY, dtype=np.int64)
    bits = worker.rooms.of("bits", max(batch.room[0] for batch in batches), dtype=np.uint64)
    states = worker.rooms.of("states", max(1, *(batch.room[1] for batch in batches)), dtype=np.uint32)
    runs = worker.rooms.of("runs", max(1, int(laid.begins[-1])), dtype=np.uint32)
    tracer = make_tracer(*size, scoring.match == 1, device.packed, scoring.mismatch < 2 * scoring.gap)
    walker, rule, reads = make_walker(*size), pack_scoring(scoring), Reads(device.reads.planes, device.reads.n_bases)
    first, lost = moment(stream), 0.0
    for batch in batches:
        some = slice(batch.begin, batch.end)
        its = [array[some] for array in (table, its_plan, failed, ways, counts)]
        for turn in range(int(batch.n_blocks[0])):
            left = int(np.count_nonzero(batch.n_blocks > turn))
            part, warps = Part(left, block, turn), -(-left * size[0] // WARP)
            lost += worker.launch(
                tracer, -(-warps // WARPS), WARPS * WARP,
                reads, its[0], its[1], part, rule, job.end is End.LONGEST, bits, states, its[2],
            )  # fmt: skip
            lost += worker.launch(walker, -(-left // WALKERS), WALKERS, its[1], part, bits, its[2], its[3], runs, its[4])
    last = moment(stream)
    return fetched(worker, f"counts {step}", counts), fetched(worker, f"failed {step}", failed), first, last, lost


def _join_on_gpu(
    job: _Job, worker: Worker, overlaps: Overlaps, laid: _Laid, runs: Any, spans: list[tuple[float, float]], threads: int
) -> SomePaths:
    """Whole paths; those of overlaps with a flank without runs are worth nothing."""
    n, device, stream = len(overlaps), worker.device, worker.stream
    room = 2 * laid.counts.reshape(4, n).sum(axis=0, dtype=np.int64) + 1
    begins = np.cumsum(room) - room
    told = np.concatenate([parts_of(overlaps), places(job.reads, overlaps), begins[:, None]], axis=1)
    steps = Steps(runs, sent(worker, "begins", laid.begins[:-1]), sent(worker, "all counts", laid.counts))
    table, found = sent(worker, "overlaps", told), worker.rooms.of("found", n, COUNTED, dtype=np.int32)
    joined = worker.rooms.of("joined", int(room.sum()), dtype=np.uint32)
    first, reads = moment(stream), Reads(device.reads.planes, device.reads.n_bases)
    lost = worker.launch(join_flanks, -(-n // WALKERS), WALKERS, reads, table, steps, joined, found)
    last, numbers = moment(stream), fetched(worker, "found", found)
    stream.synchronize()
    _note(worker, spans, first, last, lost)
    numbers = numbers.copy()  # of the pinned memory
    offsets = np.concatenate(([0], np.cumsum(numbers[:, N_SHORT], dtype=np.int64)))
    to = sent(worker, "offsets", offsets[:-1])
    packed = worker.rooms.of("packed", int(offsets[-1]), dtype=np.uint8)
    first = moment(stream)
    lost = worker.launch(shorten_runs, -(-n // WALKERS), WALKERS, table, found, to, joined, packed)
    last, there = moment(stream), fetched(worker, "packed", packed)
    stream.synchronize()
    _note(worker, spans, first, last, lost)
    return ShortPaths(_copied(there, threads), offsets, numbers[:, N_RUNS:])


def _copied(there: np.ndarray, threads: int) -> np.ndarray:
    """A copy of runs, by some threads: memory that is used for the first time takes longer than the copy."""
    here = np.empty_like(there)

    def copy(part: tuple[int, int]) -> None:
        here[slice(*part)] = there[slice(*part)]

    map_threads(copy, even_ranges(len(here), threads if len(here) >= LEAST_COPY else 1), threads)
    return here
