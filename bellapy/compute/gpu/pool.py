"""The GPUs of the machine and the threads that keep them busy.

Every GPU has several workers, threads with streams and memory of their own, so that one prepares and copies a piece of the
flanks while the kernels of another run.  Workers take pieces as they become free.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from threading import Lock

from numba import cuda

from bellapy.compute.gpu.devices import Gpu, find_gpus
from bellapy.compute.gpu.ops import SIMULATED, kernel_of
from bellapy.compute.gpu.reads import DeviceReads
from bellapy.compute.threads import even_ranges
from bellapy.report.log import logger

WORKERS = 1 if SIMULATED else 2  # for each GPU; the simulator runs one kernel at a time
LONG = 2.0  # seconds: a kernel was compiled, not loaded
TURN = 1e-3  # seconds until a thread asks another one for the GIL
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
FULL = "not enough GPU memory is free; what does not fit is done on the CPU"
_compiling = Lock()  # for all devices: the second one finds on the disk what the first compiled


@dataclass
class Usage:
    """What a device has done: flanks extended, cells computed (of lanes with live cells), seconds in kernels.

    paths, path_s : flanks whose paths were traced, seconds in the kernels for that.
    idle_s : seconds during which none of its kernels ran, though there was work for some GPU.
    compile_s : seconds spent on compiling kernels or loading them from the disk.
    uploaded : bases of reads that were sent to it.
    """

    name: str
    extensions: int = 0
    cells: int = 0
    kernel_s: float = 0.0
    paths: int = 0
    path_s: float = 0.0
    idle_s: float = 0.0
    compile_s: float = 0.0
    uploaded: int = 0

    def add(self, **work: float) -> None:
        for name, n in work.items():
            setattr(self, name, getattr(self, name) + n)

    def to_dict(self) -> dict:
        gcups = self.cells / self.kernel_s / 1e9 if self.kernel_s else 0.0
        return {
            "name": self.name, "extensions": self.extensions, "cells": self.cells, "kernel_s": round(self.kernel_s, 4),
            "gcups": round(gcups, 1), "paths": self.paths, "path_s": round(self.path_s, 4),
            "idle_s": round(self.idle_s, 4), "compile_s": round(self.compile_s, 3), "uploaded_bases": self.uploaded,
        }  # fmt: skip


class Rooms:
    """Arrays by name, kept for later pieces and made anew where they are too small: taking and freeing is slow."""

    def __init__(self, make: Callable):
        self._make, self._rooms = make, {}

    def of(self, name: str, rows: int, *shape: int, dtype: type) -> object:
        """An array of so many rows of a shape."""
        room, part = self._rooms.get(name, (None, None))
        if room is None or room.shape[0] < rows or room.shape[1:] != shape or room.dtype != dtype:
            self._rooms.pop(name, None)
            room = part = self._make((rows + rows // 8, *shape), dtype)
        if part.shape[0] != rows:  # else the one of last time: to take a part of an array of a device is slow, too
            part = room[:rows]
        self._rooms[name] = room, part
        return part

    def clear(self) -> None:
        self._rooms.clear()


@dataclass
class Device:
    """A GPU, the reads it holds, and what it has done."""

    gpu: Gpu
    packed: bool  # has instructions for packed maxima
    processors: int
    usage: Usage
    reads: DeviceReads
    workers: list[Worker] = field(default_factory=list)
    zero: object = None  # event from which `spans` count
    spans: list[tuple[float, float]] = field(default_factory=list)  # when kernels ran, ms
    loaded: set = field(default_factory=set)  # kernels that were started before; two threads must not load one at a time
    told_of_compiling: bool = False
    lock: Lock = field(default_factory=Lock)

    def count(self, spans: list[tuple[float, float]], **work: int) -> None:
        """Note when kernels ran and what was done, by names of `Usage`."""
        with self.lock:
            self.spans += spans
            self.usage.add(**work)

    def open_spans(self) -> None:
        with cuda.gpus[self.gpu.index]:
            self.zero = cuda.event()
            self.zero.record(self.workers[0].stream)

    def close_spans(self) -> float:
        """Seconds during which at least one worker's kernels ran."""
        end = total = 0.0
        for first, last in sorted(self.spans):
            total += max(0.0, last - max(first, end)) / 1e3
            end = max(end, last)
        self.spans.clear()
        return total


@dataclass
class Worker:
    """Streams of a device, for kernels and for what is copied before them, with memory of their own."""

    device: Device
    stream: object
    copies: object
    rooms: Rooms = field(default_factory=lambda: Rooms(cuda.device_array))
    pinned: Rooms = field(default_factory=lambda: Rooms(cuda.pinned_array))
    events: list = field(default_factory=list)  # begin and end of each kernel of a batch; kept like the arrays
    copied: object = field(default_factory=cuda.event)  # when the last copy before a kernel ends

    def has_run(self, function) -> bool:
        """Whether a kernel has been started on the device before, so that it is loaded."""
        return SIMULATED or kernel_of(function, self.device.gpu.index) in self.device.loaded

    def mark(self, i: int) -> None:
        """Let events[i] be when the kernels started so far end."""
        while len(self.events) <= i:
            self.events.append(cuda.event())
        self.events[i].record(self.stream)

    def launch(self, function, blocks: int, threads: int, *arguments) -> float:
        """Start a kernel; the first time it is compiled, or loaded from the disk.  Return the seconds that took."""
        device = self.device
        kernel = kernel_of(function, device.gpu.index)
        start = kernel[blocks, threads, self.stream]
        if SIMULATED or kernel in device.loaded:
            start(*arguments)
            return 0.0
        asked = time.perf_counter()
        with _compiling:
            began = time.perf_counter()
            start(*arguments)
            device.loaded.add(kernel)
            device.usage.compile_s += time.perf_counter() - began
            if not device.told_of_compiling and device.usage.compile_s > LONG:
                device.told_of_compiling = True
                logger.info("compiling for %s; this happens once", device.gpu.name)
        return time.perf_counter() - asked


class Pieces:
    """Pieces of the flanks: every device has its share, consecutive ones, and takes from others when that is done.

    The last piece of a share is left to its device, which is about to take it.
    """

    def __init__(self, pieces: list[tuple[int, int]], shares: int):
        self._lock = Lock()
        self._shares = [deque(pieces[begin:end]) for begin, end in even_ranges(len(pieces), shares)]

    def take(self, share: int) -> tuple[int, int] | None:
        with self._lock:
            own = self._shares[share] if share < len(self._shares) else ()
            if own:
                return own.popleft()
            fullest = max(self._shares, key=len, default=())
            return fullest.pop() if len(fullest) > 1 else None


@dataclass
class Pool:
    """All usable GPUs."""

    devices: list[Device]
    threads: ThreadPoolExecutor  # of the workers; kept, since a new one costs milliseconds at its first call to a device
    on_cpu: Usage = field(default_factory=lambda: Usage("CPU, what fits no GPU"))
    told: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def run(
        self, pieces: list[tuple[int, int]], least: int, on_gpu: Callable[[Worker, Iterator[tuple[int, int]], bool], None],
        on_cpu: Callable[[int, int], None],
    ) -> list[float]:  # fmt: skip
        """Work on pieces, first row and end of each, by as many workers; seconds of kernels, of each device.

        on_gpu : takes a piece or more.  What does not fit a GPU's memory is tried in halves, each alone (its last argument);
            what does not fit in a piece of `least` rows goes to the CPU.
        """
        began = time.perf_counter()
        workers = [worker for turn in zip(*(device.workers for device in self.devices), strict=True) for worker in turn]
        workers = workers[: len(pieces)]
        left = Pieces(pieces, len(self.devices))

        @cuda.require_context  # asked for once, not in each call: all threads would take turns at that
        def take_pieces(worker: Worker) -> None:
            share = next(i for i, device in enumerate(self.devices) if device is worker.device)
            pieces = iter(partial(left.take, share), None)
            for piece in pieces:
                self._fit(worker, least, on_gpu, on_cpu, chain([piece], pieces), False)

        def work(worker: Worker) -> None:
            with cuda.gpus[worker.device.gpu.index]:
                take_pieces(worker)

        for device in self.devices:
            device.open_spans()
        if len(workers) == 1:
            work(workers[0])
        else:
            with _quick_turns():
                list(self.threads.map(work, workers))
        seconds, passed = [device.close_spans() for device in self.devices], time.perf_counter() - began
        for device, spent in zip(self.devices, seconds, strict=True):
            device.usage.add(idle_s=max(0.0, passed - spent))
        return seconds

    def _fit(self, worker: Worker, least: int, on_gpu, on_cpu, pieces: Iterator[tuple[int, int]], alone: bool) -> None:
        taken = []

        def take() -> Iterator[tuple[int, int]]:
            for piece in pieces:
                taken.append(piece)
                yield piece

        try:
            on_gpu(worker, take(), alone)
            return
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
        worker.stream.synchronize()
        worker.rooms.clear()
        for begin, end in taken:
            middle = (begin + end) // 2
            if end - begin > least:
                self._fit(worker, least, on_gpu, on_cpu, iter([(begin, middle)]), True)
                self._fit(worker, least, on_gpu, on_cpu, iter([(middle, end)]), True)
            else:
                on_cpu(begin, end)

    def give_to_cpu(self, reason: str, **work: int) -> None:
        """Note what the CPU does instead, by names of `Usage`; say so once for each reason."""
        with self.lock:
            if reason not in self.told:
                logger.warning("%s", reason)
            self.told.add(reason)
            self.on_cpu.add(**work)


@contextmanager
def _quick_turns() -> Iterator[None]:
    """Threads that release the GIL for a moment, in calls to the driver, get it back before one that waits has woken up; so
    those that wait should soon ask for it.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or getattr(error, "code", None) == OUT_OF_MEMORY


@cache
def pool() -> Pool:
    """The usable GPUs; found once."""
    devices, helpers = [], ThreadPoolExecutor()
    for gpu in find_gpus():
        with cuda.gpus[gpu.index]:
            packed, processors = True, 1
            if not SIMULATED:
                card = cuda.get_current_device()
                packed, processors = card.compute_capability >= (9, 0), card.MULTIPROCESSOR_COUNT
            device = Device(gpu, packed, processors, Usage(gpu.name), DeviceReads(Rooms(cuda.device_array), helpers))
            device.workers = [Worker(device, cuda.stream(), cuda.stream()) for _ in range(WORKERS)]
            devices.append(device)
    return Pool(devices, ThreadPoolExecutor(WORKERS * len(devices)))


def usage() -> list[dict]:
    """What every device has done since the program started."""
    return [used.to_dict() for used in (*(d.usage for d in pool().devices), pool().on_cpu) if used.extensions or used.paths]
