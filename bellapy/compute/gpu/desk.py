"""A GPU on which one piece of work after the other is done: arrays, and kernels of one thread of work, in order.

The pool (pool.py) shares pieces among workers.  What has to see all k-mers at once works on a desk: one stream of one
device, with arrays that are given back when nothing refers to them any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from bellapy.compute.gpu.ops import copy_between, driver, fill_bytes
from bellapy.compute.gpu.pool import Device, Worker, pool
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.report.run_report import Devices

Item = TypeVar("Item")
Result = TypeVar("Result")
COPIERS, LEAST_COPIED, FETCHED = 4, 1 << 20, 1 << 26
"""Threads that copy what has come to new memory; bytes that each should have; bytes that are fetched at a time."""


@dataclass
class Desk:
    """One stream of a device, that of a worker."""

    worker: Worker

    @property
    def device(self) -> Device:
        return self.worker.device

    @property
    def stream(self) -> Any:
        return self.worker.stream

    def several(self, n: int) -> list[Desk]:
        """So many desks of the same device: while the last threads of one's kernel end, others begin theirs."""
        with driver.gpus[self.device.gpu.index]:
            others = [Worker(self.device, driver.stream(), driver.stream()) for _ in range(n - len(self.device.workers))]
        return [Desk(worker) for worker in [*self.device.workers, *others][:n]]

    def empty(self, shape: int | tuple[int, ...], dtype: np.typing.DTypeLike) -> Any:
        """An array on the device; MemoryError, or an error of the driver, where there is no room."""
        return driver.device_array(shape, dtype, stream=self.stream)

    def zeros(self, shape: int | tuple[int, ...], dtype: np.typing.DTypeLike) -> Any:
        """An array of zeros on the device."""
        there = self.empty(shape, dtype)
        fill_bytes(there, 0, self.stream)
        return there

    def send(self, here: np.ndarray) -> Any:
        """A copy of an array on the device."""
        return driver.to_device(np.ascontiguousarray(here), stream=self.stream)

    def copy(self, source: Any, there: Any) -> None:
        """Copy an array of any device, on which all work is done, to one of this one."""
        copy_between(source, there, self.stream, lambda n: self.worker.pinned.of("between", n, dtype=np.uint8))

    def fetch(self, there: Any) -> np.ndarray:
        """A copy of an array of the device, when all work before has been done."""
        here = there.copy_to_host(stream=self.stream)
        self.stream.synchronize()
        return here

    def fetch_much(self, there: Any) -> np.ndarray:
        """The same by way of memory that is kept: a copy straight to new memory waits for every page of it."""
        flat, here = there.reshape(there.size), np.empty(there.size, there.dtype)
        for begin in range(0, there.size, FETCHED // there.dtype.itemsize):
            some = flat[begin : begin + FETCHED // there.dtype.itemsize]
            kept = self.worker.pinned.of("fetched", some.nbytes, dtype=np.uint8).view(there.dtype)
            some.copy_to_host(kept, stream=self.stream)
            self.stream.synchronize()
            self._copy(kept, here[begin : begin + some.size])
        return here.reshape(there.shape)

    @staticmethod
    def _copy(kept: np.ndarray, here: np.ndarray) -> None:
        parts = even_ranges(here.size, min(COPIERS, 1 + here.nbytes // LEAST_COPIED))
        map_threads(lambda part: np.copyto(here[slice(*part)], kept[slice(*part)]), parts, COPIERS)

    def launch(self, kernel: Callable, blocks: int, threads: int, *arguments: Any) -> None:
        """Start a kernel; nothing happens for no blocks."""
        if blocks:
            self.worker.launch(kernel, blocks, threads, *arguments)


@contextmanager
def desks(devices: Devices, most: int) -> Iterator[list[Desk]]:
    """Some GPUs, the first ones, for one caller at a time; what is done is noted in `devices`."""
    gpus = pool()
    with gpus.turn:
        began, some = time.perf_counter(), gpus.devices[:most]
        for device in some:
            device.work_of = devices
        yield [Desk(device.workers[0]) for device in some]
        for device in some:
            device.note(seeding_s=time.perf_counter() - began)


def on_each(function: Callable[..., Result], all_desks: Sequence[Desk], *items: Sequence[Any]) -> list[Result]:
    """Results of a function on every desk, and an item of each of the others, side by side."""

    def do(its_desk: Desk, *its_items: Any) -> Result:
        with driver.gpus[its_desk.device.gpu.index]:
            return function(its_desk, *its_items)

    if len(all_desks) == 1:
        return [do(all_desks[0], *(some[0] for some in items))]
    with ThreadPoolExecutor(len(all_desks)) as threads:
        return list(threads.map(do, all_desks, *items))


class FreeDesks:
    """Desks, of any devices, that have one user at a time each."""

    def __init__(self, all_desks: Iterable[Desk]):
        self._free: SimpleQueue[Desk] = SimpleQueue()
        for each in all_desks:
            self._free.put(each)

    @contextmanager
    def take(self) -> Iterator[Desk]:
        """One that is free, with its device in use."""
        its_desk = self._free.get()
        try:
            with driver.gpus[its_desk.device.gpu.index]:
                yield its_desk
        finally:
            self._free.put(its_desk)


def on_free(function: Callable[[Desk, Item], Result], all_desks: Sequence[Desk], items: Iterable[Item]) -> list[Result]:
    """Results of a function for every item, in their order, each on a desk that is free then."""
    free = FreeDesks(all_desks)

    def do(item: Item) -> Result:
        with free.take() as its_desk:
            return function(its_desk, item)

    with ThreadPoolExecutor(len(all_desks)) as threads:
        return list(threads.map(do, items))


@contextmanager
def desk(devices: Devices, number: int = 0) -> Iterator[Desk]:
    """One of the GPUs, for one caller at a time; what is done is noted in `devices`."""
    gpus = pool()
    device = gpus.devices[number]
    with gpus.turn, driver.gpus[device.gpu.index]:
        device.work_of, began = devices, time.perf_counter()
        yield Desk(device.workers[0])
        device.note(seeding_s=time.perf_counter() - began)


def desks_of_its_own(devices: Devices, each: int) -> list[list[Desk]]:
    """Of every GPU so many desks with streams that nobody else has, for work that goes on while the pool has other callers.

    What is done is noted in `devices`.
    """
    made = []
    for device in pool().devices:
        device.work_of = devices
        with driver.gpus[device.gpu.index]:
            made.append([Desk(Worker(device, driver.stream(), driver.stream())) for _ in range(each)])
    return made
