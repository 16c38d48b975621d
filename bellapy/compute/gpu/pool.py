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
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.devices import Gpu, known_gpus
from bellapy.compute.gpu.errors import OUT_OF_MEMORY
from bellapy.compute.gpu.ops import SIMULATED, current_card, driver, kernel_of
from bellapy.compute.gpu.reads import DeviceReads
from bellapy.compute.threads import even_ranges
from bellapy.report.log import logger
from bellapy.report.run_report import Devices

WORKERS = 1 if SIMULATED else 2  # for each GPU; the simulator runs one kernel at a time
TURN = 1e-3  # seconds until a worker asks another thread for the GIL
FULL = "not enough GPU memory is free; what does not fit is done on the CPU"
_compiling = Lock()  # for all devices: the second one finds on the disk what the first compiled


ON_CPU = 1 << 30  # the CPU's number among the devices of a run, after those of all GPUs


class Work(NamedTuple):
    """Work for GPUs, in pieces.

    pieces : first row and end of each.
    least : rows; what does not fit a GPU's memory in a piece of so few goes to the CPU.
    on_gpu : takes a piece or more; its last argument says that a piece is what is left of one that did not fit.
    on_cpu : does one piece.
    seconds : the name of `DeviceUse` under which time in kernels is noted.
    """

    pieces: list[tuple[int, int]]
    least: int
    on_gpu: Callable[[Worker, Iterator[tuple[int, int]], bool], None]
    on_cpu: Callable[[int, int], None]
    seconds: str


def give_to_cpu(devices: Devices, reason: str, **work: int) -> None:
    """Note what the CPU does instead of a GPU, by names of `DeviceUse`; say so once in a run for each reason."""
    if devices.is_new(reason):
        logger.warning("%s", reason)
    devices.add(ON_CPU, "CPU, what fits no GPU", **work)


class Rooms:
    """Arrays by name, kept for later pieces and made anew where they are too small: taking and freeing is slow."""

    def __init__(self, make: Callable):
        self._make = make
        self._rooms: dict[str, tuple[Any, Any]] = {}  # the whole, and the part given last

    def of(self, name: str, rows: int, *shape: int, dtype: np.typing.DTypeLike) -> Any:
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
    """A GPU, and the reads it holds.

    work_of : where what it does is noted, that of the run whose work it has.
    """

    gpu: Gpu
    packed: bool  # has instructions for packed maxima
    processors: int
    reads: DeviceReads
    work_of: Devices = field(default_factory=Devices)
    workers: list[Worker] = field(default_factory=list)
    zero: Any = None  # event from which `spans` count
    spans: list[tuple[float, float]] = field(default_factory=list)  # when kernels ran, ms
    loaded: set = field(default_factory=set)  # kernels that were started before; two threads must not load one at a time
    lock: Lock = field(default_factory=Lock)

    def count(self, spans: list[tuple[float, float]], **work: int) -> None:
        """Note when kernels ran and what was done, by names of `DeviceUse`."""
        with self.lock:
            self.spans += spans
        self.note(**work)

    def note(self, **work: float) -> None:
        """Note what was done, by names of `DeviceUse`."""
        self.work_of.add(self.gpu.index, self.gpu.name, **work)

    def open_spans(self) -> None:
        self.spans.clear()  # of work that ended with an error
        with driver.gpus[self.gpu.index]:
            self.zero = driver.event()
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
    stream: Any
    copies: Any
    rooms: Rooms = field(default_factory=lambda: Rooms(driver.device_array))
    pinned: Rooms = field(default_factory=lambda: Rooms(driver.pinned_array))
    events: list = field(default_factory=list)  # begin and end of each kernel of a batch; kept like the arrays
    copied: Any = field(default_factory=driver.event)  # when the last copy before a kernel ends

    def has_run(self, function) -> bool:
        """Whether a kernel has been started on the device before, so that it is loaded."""
        return SIMULATED or kernel_of(function, self.device.gpu.index) in self.device.loaded

    def mark(self, i: int) -> None:
        """Let events[i] be when the kernels started so far end."""
        while len(self.events) <= i:
            self.events.append(driver.event())
        self.events[i].record(self.stream)

    def launch(self, function, blocks: int, threads: int, *arguments, shared: int = 0) -> float:
        """Start a kernel; the first time it is compiled, or loaded from the disk.  Return the seconds that took.

        shared : bytes of shared memory of each block.
        """
        device = self.device
        kernel = kernel_of(function, device.gpu.index)
        start = kernel[blocks, threads, self.stream, shared]
        if SIMULATED or kernel in device.loaded:
            start(*arguments)
            return 0.0
        asked = time.perf_counter()
        with _compiling:
            began = time.perf_counter()
            start(*arguments)
            device.loaded.add(kernel)
            device.note(compile_s=time.perf_counter() - began)
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
            own = self._shares[share] if share < len(self._shares) else deque()
            if own:
                return own.popleft()
            fullest = max(self._shares, key=len, default=deque())
            return fullest.pop() if len(fullest) > 1 else None


@dataclass
class Pool:
    """All usable GPUs of the machine; kept as long as the process lives, since a context costs a second.

    It knows nothing of runs: what was done is noted where the caller says.
    """

    devices: list[Device]
    threads: ThreadPoolExecutor  # of the workers; kept, since a new one costs milliseconds at its first call to a device
    turn: Lock = field(default_factory=Lock)  # workers have memory for the work of one caller at a time

    def run(self, work: Work, devices: Devices) -> None:
        """Do pieces of work by as many workers; note in `devices` what was done.

        What does not fit a GPU's memory is tried in halves, each alone.
        """
        with self.turn:
            self._run(work, devices)

    def _run(self, work: Work, devices: Devices) -> None:
        began = time.perf_counter()
        workers = [worker for turn in zip(*(device.workers for device in self.devices), strict=True) for worker in turn]
        workers = workers[: len(work.pieces)]
        left = Pieces(work.pieces, len(self.devices))

        def take_pieces(worker: Worker) -> None:
            share = next(i for i, device in enumerate(self.devices) if device is worker.device)
            pieces = iter(partial(left.take, share), None)
            for piece in pieces:
                _fit(worker, work, chain([piece], pieces), False)

        def do(worker: Worker) -> None:
            with driver.gpus[worker.device.gpu.index]:
                take_pieces(worker)

        for device in self.devices:
            device.work_of = devices
            device.open_spans()
        if len(workers) == 1:
            do(workers[0])
        else:
            with quick_turns(TURN):
                list(self.threads.map(do, workers))
        seconds, passed = [device.close_spans() for device in self.devices], time.perf_counter() - began
        for device, spent in zip(self.devices, seconds, strict=True):
            device.note(**{work.seconds: spent}, idle_s=max(0.0, passed - spent))


def _fit(worker: Worker, work: Work, pieces: Iterator[tuple[int, int]], alone: bool) -> None:
    """Do pieces on a worker's device, as many as it takes; what does not fit in halves, and small ones on the CPU."""
    taken = []

    def take() -> Iterator[tuple[int, int]]:
        for piece in pieces:
            taken.append(piece)
            yield piece

    try:
        work.on_gpu(worker, take(), alone)
        return
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    worker.stream.synchronize()
    worker.rooms.clear()
    for begin, end in taken:
        middle = (begin + end) // 2
        if end - begin > work.least:
            _fit(worker, work, iter([(begin, middle)]), True)
            _fit(worker, work, iter([(middle, end)]), True)
        else:
            work.on_cpu(begin, end)


@contextmanager
def quick_turns(seconds: float) -> Iterator[None]:
    """Threads that release the GIL for a moment, in calls to the driver, get it back before one that waits has woken up; so
    those that wait should soon ask for it: after so many seconds.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, seconds))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that a GPU's memory, or the pinned one, is full."""
    return isinstance(error, MemoryError) or OUT_OF_MEMORY in str(error)


_pools: list[Pool] = []
_making = Lock()


def pool() -> Pool:
    """The usable GPUs; found once, by whichever thread asks first."""
    with _making:
        if not _pools:
            _pools.append(_make_pool())
        return _pools[0]


def _make_pool() -> Pool:
    devices, helpers = [], ThreadPoolExecutor()
    for gpu in known_gpus():
        with driver.gpus[gpu.index]:
            packed, processors = True, 1
            if not SIMULATED:
                card = current_card()
                packed, processors = card.compute_capability >= (9, 0), card.MULTIPROCESSOR_COUNT
            device = Device(gpu, packed, processors, DeviceReads(Rooms(driver.device_array), helpers))
            device.workers = [Worker(device, driver.stream(), driver.stream()) for _ in range(WORKERS)]
            devices.append(device)
    return Pool(devices, ThreadPoolExecutor(WORKERS * len(devices)))
