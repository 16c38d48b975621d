"""Devices, memory, arrays, streams and events, by NVIDIA's cuda.core.

Names and meanings are those of numba-cuda, whose simulator stands in for this module.  All arrays are contiguous, in C
order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from cuda.bindings.driver import cuMemGetInfo
from cuda.core import Buffer, Device, DeviceMemoryResource, LegacyPinnedMemoryResource, StreamOptions
from numba import from_dtype, types

from bellapy.compute.gpu.errors import telling

Shape = int | tuple[int, ...]
BETWEEN = 1 << 25  # bytes that are copied at a time from one device to another


# ---------------------------------------------------------------- devices


class Card:
    """A device; `with card:` makes it the one in use, for this thread."""

    def __init__(self, index: int):
        self.id, self.device = index, Device(index)
        with self:
            self.name, self.compute_capability = self.device.name, tuple(self.device.compute_capability)
            self.MULTIPROCESSOR_COUNT = self.device.properties.multiprocessor_count
            self.memory, self.default_stream = DeviceMemoryResource(self.device), self.device.default_stream

    def free_and_total(self) -> tuple[int, int]:
        """Bytes of its memory; what the pool holds for later counts as free."""
        with self:
            _, free, total = cuMemGetInfo()
            held = self.memory.attributes
            return free + held.reserved_mem_current - held.used_mem_current, total

    def __enter__(self) -> Card:
        with telling:
            Device(self.id).set_current()
        _used().append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _used().pop()
        if _used():
            Device(_used()[-1].id).set_current()


_own = threading.local()


def _used() -> list[Card]:
    """The devices that this thread has taken in use, the last of which is."""
    if not hasattr(_own, "cards"):
        _own.cards = []
    return _own.cards


class Cards:
    """All devices, by number."""

    def __init__(self) -> None:
        self._cards: dict[int, Card] = {}
        self._lock = threading.Lock()

    def __getitem__(self, index: int) -> Card:
        with self._lock:
            if index not in self._cards:
                self._cards[index] = Card(index)
            return self._cards[index]

    def __len__(self) -> int:
        with telling:
            return len(Device.get_all_devices())

    def first(self) -> Card:
        """The first one that has let this process in; the first of all if none has been asked."""
        return self[min(self._cards, default=0)]


gpus = Cards()


def current_card() -> Card:
    """The device in use; the first usable one if none is."""
    if not _used():
        gpus.first().__enter__()
    return _used()[-1]


def free_memory() -> int:
    """Bytes that are free on the device in use."""
    return current_card().free_and_total()[0]


# ---------------------------------------------------------------- order of work


class Stream:
    """Work that is done in its order; it waits for copies that name no stream, and these wait for it."""

    def __init__(self) -> None:
        with telling:
            self.its = current_card().device.create_stream(options=StreamOptions(nonblocking=False))

    def synchronize(self) -> None:
        """Wait until all of it is done."""
        with telling:
            self.its.sync()


stream = Stream


def of_cuda(stream: Stream | int) -> Any:
    """The stream as cuda.core has it; 0 : that of the device in use which all others wait for."""
    return stream.its if isinstance(stream, Stream) else current_card().default_stream


class Event:
    """A moment in a stream."""

    def __init__(self) -> None:
        with telling:
            self.its = current_card().device.create_event({"timing_enabled": True})

    def record(self, stream: Stream | int = 0) -> None:
        """Let it be when the work so far is done."""
        with telling:
            of_cuda(stream).record(self.its)

    def wait(self, stream: Stream | int = 0) -> None:
        """Let what comes in a stream wait for it."""
        with telling:
            of_cuda(stream).wait(self.its)

    def synchronize(self) -> None:
        """Wait for it here."""
        with telling:
            self.its.sync()

    def elapsed_time(self, later: Event) -> float:
        """Milliseconds until another one."""
        with telling:
            return later.its - self.its


event = Event


# ---------------------------------------------------------------- arrays


class _HostMemory:
    """Pinned memory of the host, which all devices can use."""

    def __init__(self, n_bytes: int):
        current_card()
        with telling:
            self.n_bytes, self._buffer = n_bytes, _pinned().allocate(max(1, n_bytes))
        self.address = int(self._buffer.handle)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.n_bytes,), "typestr": "|u1", "data": (self.address, False), "version": 3}


@cache
def _pinned() -> LegacyPinnedMemoryResource:
    return LegacyPinnedMemoryResource()


class DeviceArray:
    """An array of a device, or a part of one along its first axis.  memory : what it lies in, kept while it is used."""

    def __init__(self, memory: Any, address: int, shape: tuple[int, ...], dtype: np.dtype):
        self._memory, self.address, self.shape, self.dtype = memory, address, shape, dtype
        self.size = prod(shape)
        self.nbytes = self.size * dtype.itemsize
        strides = [dtype.itemsize]
        for n in reversed(shape[1:]):
            strides.append(strides[-1] * n)
        self.as_argument = (0, 0, self.size, dtype.itemsize, address, *shape, *reversed(strides))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def _numba_type_(self) -> Any:
        """What the compiler takes it for."""
        return types.Array(from_dtype(self.dtype), self.ndim, "C")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> DeviceArray:
        begin, end, _ = rows.indices(self.shape[0])
        n, row = max(0, end - begin), self.nbytes // max(1, self.shape[0])
        return DeviceArray(self._memory, self.address + begin * row, (n, *self.shape[1:]), self.dtype)

    def reshape(self, *shape: int) -> DeviceArray:
        """The same numbers in another shape; one length may be -1."""
        known = prod(n for n in shape if n >= 0)
        whole = tuple(self.size // max(1, known) if n < 0 else n for n in shape)
        return DeviceArray(self._memory, self.address, whole, self.dtype)

    def copy_to_host(self, here: np.ndarray | None = None, stream: Stream | int = 0) -> np.ndarray:
        """The numbers; with a stream, once it has come there."""
        if here is None:
            here = np.empty(self.shape, self.dtype)
        if here.shape != self.shape or here.dtype != self.dtype or not here.flags.c_contiguous:
            raise ValueError(f"{self.dtype} {self.shape} does not fit {here.dtype} {here.shape}")
        _copy(here.ctypes.data, self.address, self.nbytes, stream)
        return here

    def copy_to_device(self, source: DeviceArray | np.ndarray, stream: Stream | int = 0) -> None:
        """Overwrite the numbers; from the host an array must not change until the stream has come there."""
        if source.nbytes != self.nbytes or source.dtype != self.dtype:
            raise ValueError(f"{source.dtype} {source.shape} does not fit {self.dtype} {self.shape}")
        if isinstance(source, DeviceArray):
            _copy(self.address, source.address, self.nbytes, stream)
        else:
            whole = np.ascontiguousarray(source)
            _copy(self.address, whole.ctypes.data, self.nbytes, stream if whole is source else 0)


class MappedArray(DeviceArray):
    """An array of the host that devices use, too."""

    def __setitem__(self, rows: slice, values: Any) -> None:
        np.asarray(self._memory).view(self.dtype).reshape(self.shape)[rows] = values


def _copy(to: int, source: int, n_bytes: int, stream: Stream | int) -> None:
    """Copy between addresses, on devices or here; without a stream it is done at the end."""
    if n_bytes:
        order = of_cuda(stream)
        with telling:
            Buffer.from_handle(to, n_bytes).copy_from(Buffer.from_handle(source, n_bytes), stream=order)
            if not stream:
                order.sync()


def copy_between(source: DeviceArray, there: DeviceArray, stream: Stream, pinned: Callable[[int], np.ndarray]) -> None:
    """Copy an array to one of the device in use; from another one by the host, since only its own may reach a pool's memory.

    All work on the array has to be done.  A piece comes from the one device while that before it goes to the other.

    stream : in whose order the memory of `there` is used.  pinned : gives so many bytes of pinned memory.
    """
    if source.nbytes != there.nbytes or source.dtype != there.dtype:
        raise ValueError(f"{source.dtype} {source.shape} does not fit {there.dtype} {there.shape}")
    owner = source._memory.device_id
    if owner == current_card().id:
        there.copy_to_device(source)
        return
    rooms, sent = pinned(2 * BETWEEN).reshape(2, BETWEEN), (Event(), Event())
    with gpus[owner]:
        coming = Stream()
    for number, at in enumerate(range(0, source.nbytes, BETWEEN)):
        room, its_sent, n_bytes = rooms[number % 2].ctypes.data, sent[number % 2], min(BETWEEN, source.nbytes - at)
        its_sent.synchronize()  # what was in this room before
        with gpus[owner]:
            _copy(room, source.address + at, n_bytes, coming)
            coming.synchronize()
        _copy(there.address + at, room, n_bytes, stream)
        its_sent.record(stream)
    stream.synchronize()


def _laid_out(shape: Shape, dtype: np.typing.DTypeLike) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape, type and bytes."""
    whole = tuple(int(n) for n in shape) if isinstance(shape, Sequence) else (int(shape),)
    kind = np.dtype(dtype)
    return whole, kind, prod(whole) * kind.itemsize


def device_array(shape: Shape, dtype: np.typing.DTypeLike, stream: Stream | int = 0) -> DeviceArray:
    """A new array on the device in use.

    stream : in whose order all work with it is done, so that its memory serves other arrays of the stream at once later.
    """
    whole, kind, n_bytes = _laid_out(shape, dtype)
    if not n_bytes:
        return DeviceArray(None, 0, whole, kind)
    with telling:
        memory = current_card().memory.allocate(n_bytes, stream=of_cuda(stream))
    return DeviceArray(memory, int(memory.handle), whole, kind)


def to_device(here: np.ndarray, stream: Stream | int = 0) -> DeviceArray:
    """A copy of an array on the device in use."""
    there = device_array(here.shape, here.dtype)
    there.copy_to_device(here, stream)
    return there


def pinned_array(shape: Shape, dtype: np.typing.DTypeLike) -> np.ndarray:
    """An array of the host from which copies need not wait."""
    whole, kind, n_bytes = _laid_out(shape, dtype)
    return np.asarray(_HostMemory(n_bytes))[:n_bytes].view(kind).reshape(whole)


def mapped_array(shape: Shape, dtype: np.typing.DTypeLike, portable: bool = True) -> MappedArray:
    """An array of the host that all devices use, too; portable : numba-cuda's word for all."""
    whole, kind, n_bytes = _laid_out(shape, dtype)
    memory = _HostMemory(n_bytes)
    return MappedArray(memory, memory.address, whole, kind)


def upload(rows: np.ndarray, there: DeviceArray, stream: Stream | int) -> None:
    """Copy contiguous rows to an array of the same shape and dtype."""
    _copy(there.address, rows.ctypes.data, rows.nbytes, stream)


def fill_bytes(there: DeviceArray, byte: int, stream: Stream | int) -> None:
    """Fill an array with one byte."""
    if there.nbytes:
        with telling:
            Buffer.from_handle(there.address, there.nbytes).fill(byte, stream=of_cuda(stream))
