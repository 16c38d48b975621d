"""Extension of flanks on NVIDIA GPUs: narrow windows first, what outgrows them goes on in wider ones, the rest at any width.

The workers of compute/gpu/pool.py share pieces of the flanks.  A piece is index records; the bases it needs are packed and
uploaded unless they are there already.  A worker starts the kernel of the narrowest windows for one piece after the other,
and prepares the next while it runs.  Then one kernel for each wider size goes on with what outgrew the windows before, from
all pieces together: kernels with few flanks leave a GPU half empty, so there should be few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from bellapy.compute.gpu.ops import SIMULATED, WARP, free_memory, upload
from bellapy.compute.gpu.pool import FULL, Device, Work, Worker, give_to_cpu, pool
from bellapy.compute.resources import Resources
from bellapy.engines.ends import End, Ends
from bellapy.engines.flanks import Flanks
from bellapy.engines.linear.classes import CLASSES as ALL_CLASSES
from bellapy.engines.linear.classes import SIMULATED_CLASSES
from bellapy.engines.linear.extend_cpu import extend_flanks as extend_on_cpu
from bellapy.engines.linear.gpu.stack_kernels import CELLS, COUNTS, ENDED, HEAD, OUTGROWN, Handed, Queue, make_kernel
from bellapy.engines.linear.gpu.step_kernels import fits, level_of_best, pack_scoring
from bellapy.engines.linear.gpu.wide_kernels import GUARDS, Rest, extend_wide
from bellapy.engines.registers.bases import Reads
from bellapy.engines.registers.host import RESULT_COLUMNS, clear, cut_seeds, list_piece, put_back, put_late, rows_of
from bellapy.params import Scoring

CLASSES = SIMULATED_CLASSES if SIMULATED else ALL_CLASSES
WARPS = 1 if SIMULATED else 4  # of a block
RESIDENT_WARPS = 2 if SIMULATED else 32  # of a processor, at most: a thread takes 64 registers and more
FEW_WARPS = 2  # of the 16 or more of a processor: when fewer flanks than they hold are left, these go on in the next size
WIDE_BLOCKS = 2 if SIMULATED else 4096
SHARES = (2, 3, 6, 6, 6)  # of a GPU's work, for each piece: the first ones are small, so that kernels start early
LEAST_PIECE = 3 << 15  # flanks: smaller ones leave a GPU half empty
BATCH = 1 << 21  # flanks, the most of a worker at a time
STATES_SHARE = 64  # of the free memory: how many times less the states of flanks may take that are perhaps not left
LEAST_BATCH = 1 << 9  # seeds; if so few do not fit, they go to the CPU
STEP, CLOSE = 1.5, 1.0
"""How many times as wide the next size of windows is, at least.  Each size is compiled, and closer ones save few cells, but
for many flanks that are not related and that nothing else stops."""


@dataclass(frozen=True)
class _Job:
    """Extension of one set of flanks."""

    codes: np.ndarray
    flanks: Flanks
    scoring: Scoring
    end: End
    resources: Resources
    devices: int
    room: int  # flanks that a worker takes together, at most
    largest: int  # flanks of a piece, at most
    results: np.ndarray
    sizes: list[tuple[int, int]]  # of windows

    @property
    def longest(self) -> bool:
        return self.end is End.LONGEST


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, end: End, resources: Resources) -> Ends:
    """Where every flank's extension ends.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    resources : whose threads pack reads and do what fits no GPU.
    """
    gpus = pool()
    n_devices = max(1, min(len(gpus.devices), len(flanks) // LEAST_PIECE))
    shares = SHARES[: max(1, len(flanks) // (n_devices * LEAST_PIECE))] * n_devices
    room = min(BATCH, len(flanks) // n_devices + 1)
    pieces = cut_seeds(flanks, shares, (room + 1) // 2)
    largest = 2 * max((end - begin for begin, end in pieces), default=0)
    step = CLOSE if len(flanks) >= LEAST_PIECE and not scoring.fall else STEP
    results, sizes = np.empty((len(flanks), 3), np.int64), window_sizes(scoring, step)
    job = _Job(codes, flanks, scoring, end, resources, n_devices, max(room, largest), largest, results, sizes)
    work = Work(pieces, LEAST_BATCH, partial(_extend_on_gpu, job), partial(_extend_on_cpu, job), "kernel_s")
    gpus.run(work, resources.devices)
    return Ends(job.results)


def window_sizes(scoring: Scoring, step: float = STEP) -> list[tuple[int, int]]:
    """Sizes of windows to try: wide enough for true overlaps, then each at least `step` times as wide, and the widest."""
    chosen: list[tuple[int, int]] = []
    if fits(scoring):
        for group, registers, reach in CLASSES:
            enough = scoring.xdrop // -scoring.gap <= reach
            if enough and (not chosen or group * registers >= step * prod(chosen[-1]) or reach == CLASSES[-1][-1]):
                chosen.append((group, registers))
    return chosen


def _extend_on_cpu(job: _Job, begin: int, end: int) -> None:
    rows = rows_of(begin, end, len(job.flanks))
    give_to_cpu(job.resources.devices, FULL, extensions=len(rows))
    some = Flanks(*(column[rows] for column in job.flanks.columns))
    job.results[rows] = extend_on_cpu(job.codes, some, job.scoring, job.end, job.resources).table


class _Batch:
    """Flanks that a worker extends together, and their arrays, on the device and in pinned memory: with small copies from
    other memory a worker's kernels were seen to start only when those of the other one had ended.

    n : flanks so far, of at most `room`.  last : the first one of those whose kernel was started last.
    rows : of the job's flanks.  table : theirs.
    found : results.  n_back : those of flanks before this one were put back, except for the first n_late of `late`.
    counts, counted : what kernels have done (stack_kernels.py), and its copy.
    asked : groups of lanes that asked in vain for a flank of the first queue, each once, at the end of its kernel.
    lost : of every kernel, seconds in which it was compiled or loaded.
    """

    def __init__(self, job: _Job, worker: Worker, room: int):
        self.job, self.worker, self.room, self.uploaded = job, worker, room, 0
        self.n = self.last = self.n_back = self.n_late = 0
        self.sizes, reads = job.sizes, worker.device.reads
        reads.hold(job.codes)
        self.rows, self.table, self.found, self.late = _pinned(worker, room)
        self.there = worker.rooms.of("table", room, 5, dtype=np.int64)
        self.results = worker.rooms.of("results", room, RESULT_COLUMNS, dtype=np.int32)
        self.counts = worker.rooms.of("counts", len(self.sizes) + 1, COUNTS, dtype=np.int64)
        self.counted = worker.pinned.of("counts", len(self.sizes) + 1, COUNTS, dtype=np.int64)
        self.counted[:] = 0
        upload(self.counted, self.counts, worker.stream)
        self.handed = _handed_over(worker, 0, 1, 2)  # to the next kernel: nothing, all flanks begin in the first one
        self.next = _handed_over(worker, 1, room, 2 * prod(self.sizes[0])) if self.sizes else self.handed
        self.asked = 0
        self.lost: list[float] = []

    def add(self, begin: int, end: int) -> None:
        """Start the first kernel for the flanks of seeds begin .. end - 1, when no more than one before it is running."""
        self._catch_up()
        job, worker, reads, old = self.job, self.worker, self.worker.device.reads, self.n
        self.n += int(list_piece(*job.flanks.columns, begin, end, self.rows[old:], self.table[old:]))
        if self.n > old:
            table = self.table[old : self.n]
            upload(table, self.there[old : self.n], worker.copies)
            worker.copied.record(worker.copies)
            worker.copied.wait(worker.stream)
            self.uploaded += reads.bring(table, job.codes, max(1, job.resources.threads // job.devices), worker.stream)
            if self.sizes:
                self._extend(0, self.n - old)
                self.last = old
        clear(begin, end, job.results)  # for empty flanks; and now, since memory is slow when it is first used

    def _catch_up(self) -> None:
        """When all first kernels but the last one have ended, put back what they have found.

        Before wider windows are started, which may change a result while it is copied.
        """
        if self.n_back < self.last:
            part, copies = slice(self.n_back, self.last), self.worker.copies
            self.worker.events[2 * len(self.lost) - 3].wait(copies)  # until the end of the kernel before the last one
            self.results[part].copy_to_host(self.found[part], stream=copies)
            copies.synchronize()
            self._put_back(self.last)

    def _put_back(self, end: int) -> None:
        """Results found so far, of flanks before `end`, to those of the job."""
        late = self.late[self.n_late :]
        self.n_late += int(put_back(self.n_back, end, self.rows, self.found, self.job.results, late))
        self.n_back = end

    def finish(self) -> None:
        """Go on in wider windows with what outgrew the first ones; results to those of the job."""
        self._catch_up()
        job, worker, left = self.job, self.worker, self.n
        for level in range(len(self.sizes)):
            if level:
                self.next = _handed_over(worker, level + 1, left, 2 * prod(self.sizes[level]))
                self._extend(level, left)
            self.handed = self.next
            if self._need_not_wait(level + 1, left):
                continue
            self._fetch()
            if job.longest and self.counted[level, ENDED]:
                self._extend_at_any_width(level, ENDED)
            left = int(self.counted[level + 1, OUTGROWN])
            if not left:
                break
        if not self.sizes:
            self.counted[0, OUTGROWN] = left
            upload(self.counted, self.counts, worker.stream)
        if left:
            self._extend_at_any_width(len(self.sizes), OUTGROWN)
        if left or job.longest:  # a kernel for any width was started after the last look
            self._fetch()
        self._put_back(self.n)
        put_late(self.late[: self.n_late], self.rows, self.found, job.results)
        ends = [worker.device.zero.elapsed_time(event) for event in worker.events[: 2 * len(self.lost)]]
        spans = [(ends[2 * i], ends[2 * i + 1] - 1e3 * lost) for i, lost in enumerate(self.lost)]
        worker.device.count(spans, extensions=self.n, cells=int(self.counted[:, CELLS:].sum()), uploaded_bases=self.uploaded)

    def _fetch(self) -> None:
        """Counts and results, when all kernels so far have ended."""
        self.counts.copy_to_host(self.counted, stream=self.worker.stream)
        self.results[: self.n].copy_to_host(self.found[: self.n], stream=self.worker.stream)
        self.worker.stream.synchronize()

    def _need_not_wait(self, level: int, left: int) -> bool:
        """Whether a level can start before it is known how many of the flanks there are left for it.

        Not if its kernel might have to be compiled for nothing, nor if the states of all of them would take much memory.
        """
        if level == len(self.sizes) or self.job.longest:
            return False
        room = left * (HEAD + 2 * prod(self.sizes[level])) * np.dtype(np.uint32).itemsize
        return self.worker.has_run(self._kernel(level)) and room <= self.worker.device.gpu.free // STATES_SHARE

    def _kernel(self, level: int):
        group, registers = self.sizes[level]
        return make_kernel(group, registers, self.job.scoring.match == 1, self.worker.device.packed)

    def _extend(self, level: int, n: int) -> None:
        """In the windows of a level, n flanks."""
        job, device, (group, _) = self.job, self.worker.device, self.sizes[level]
        few = device.processors * FEW_WARPS * (WARP // group) if level + 1 < len(self.sizes) else 0
        blocks = _blocks(device, -(-n * group // WARP))
        self._launch(
            self._kernel(level), blocks, WARPS * WARP, Queue(level, self.n, self.asked, few), self.handed, self.next,
            pack_scoring(job.scoring), job.longest, self.results,
        )  # fmt: skip
        if not level:
            self.asked += blocks * WARPS * (WARP // group)

    def _extend_at_any_width(self, level: int, column: int) -> None:
        n = int(self.counted[level, column]) if self.sizes else self.n
        blocks, scratch = _wide_scratch(self.worker, n, int(self.table[: self.n, 1].max()))
        scoring = self.job.scoring
        self._launch(
            extend_wide, blocks, WARP, Rest(level, column, level_of_best(scoring)), self.handed, scoring, self.job.longest,
            scratch, self.results,
        )  # fmt: skip

    def _launch(self, function, blocks: int, threads: int, *arguments) -> None:
        worker, reads, begin = self.worker, self.worker.device.reads, 2 * len(self.lost)
        worker.mark(begin)
        self.lost.append(
            worker.launch(function, blocks, threads, Reads(reads.planes, reads.n_bases), self.there, self.counts, *arguments)
        )
        worker.mark(begin + 1)


def _pinned(worker: Worker, room: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pinned memory for so many flanks: rows, table, found and late of _Batch."""
    return (
        worker.pinned.of("rows", room, dtype=np.int32), worker.pinned.of("table", room, 5, dtype=np.int64),
        worker.pinned.of("found", room, RESULT_COLUMNS, dtype=np.int32), worker.pinned.of("late", room, dtype=np.int32),
    )  # fmt: skip


def _extend_on_gpu(job: _Job, worker: Worker, pieces: Iterator[tuple[int, int]], alone: bool) -> None:
    """Extend the flanks of pieces, first seed and end, on the worker's device, as many as there is room for."""
    begin, end = next(pieces)
    batch = _Batch(job, worker, 2 * (end - begin) if alone else job.room)
    batch.add(begin, end)
    while batch.n + job.largest <= batch.room and (piece := next(pieces, None)):
        batch.add(*piece)
    if batch.n:
        batch.finish()


def _handed_over(worker: Worker, level: int, n: int, rows: int) -> Handed:
    """Room for the states of n flanks that a level takes from the one before (stack_kernels.py)."""
    heads = worker.rooms.of(f"heads {level}", n, HEAD, dtype=np.int32)
    return Handed(heads, worker.rooms.of(f"cells {level}", n, 2, rows // 2, dtype=np.uint32))


def _blocks(device: Device, warps: int) -> int:
    """Blocks for so many warps of work, but no more than a device can hold; the last ones to start find nothing to do."""
    return (min(device.processors * RESIDENT_WARPS, warps) + WARPS - 1) // WARPS


def _wide_scratch(worker: Worker, n: int, longest_query: int) -> tuple[int, object]:
    """Blocks of the kernel for any width, and their cells in device memory."""
    columns = 1 << (longest_query + GUARDS - 1).bit_length()  # few sizes, which can be used again
    blocks = min(n, WIDE_BLOCKS)
    if not SIMULATED:
        blocks = min(blocks, free_memory() // 2 // (12 * columns))
    if not blocks:
        raise MemoryError("device memory")
    return blocks, worker.rooms.of("scratch", blocks, 3, columns, dtype=np.int32)
