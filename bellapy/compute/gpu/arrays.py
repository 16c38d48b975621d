"""Memory, arrays, streams and events of devices, and kernels that are compiled already.

Names and meanings are those of numba-cuda, whose simulator stands in for this module.  numba-cuda itself only compiles.
All arrays are contiguous, in C order.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.gpu.driver import OUT_OF_MEMORY, Card, Where, check, current_card, gpus, libraries

__all__ = ["current_card", "gpus"]

PORTABLE, MAPPED = 1, 2  # flags of memory of the host
BUFFER, BUFFER_SIZE, END = 1, 2, 0  # marks in the list that hands over arguments
KEPT = 4 << 30  # bytes of freed memory that wait to be used again or given back: to give back waits for all kernels
LEAST_STEP, STEP_BITS = 1 << 9, 4  # between sizes of memory that is used again: bytes, and bits of the size that tell it

Shape = int | tuple[int, ...]


# ---------------------------------------------------------------- memory


class _Freed(NamedTuple):
    """Memory that nothing refers to any more; stream : the handle of the one in whose order it was used, else 0."""

    card: Card
    n_bytes: int
    stream: int
    address: int


_freed: list[_Freed] = []
_freeing = threading.Lock()


def _give_back() -> None:
    """Free what nothing refers to any more."""
    with _freeing:
        some, _freed[:] = list(_freed), []
    for memory in some:
        with memory.card:
            check(libraries().waiting.cuMemFree_v2(Where(memory.address)))


def _use_again(card: Card, n_bytes: int, stream: int) -> int:
    """The address of freed memory of a stream, whose new work comes after all that used it; 0: there is none of the size."""
    with _freeing:
        for i, memory in enumerate(_freed):
            if (memory.card, memory.n_bytes, memory.stream) == (card, n_bytes, stream):
                return _freed.pop(i).address
    return 0


def _allocate(n_bytes: int) -> int:
    """The address of new memory on the device in use."""
    address = Where()
    if sum(memory.n_bytes for memory in list(_freed)) > KEPT:
        _give_back()
    code = libraries().waiting.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(n_bytes))
    if code == OUT_OF_MEMORY:
        _give_back()
        code = libraries().waiting.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(n_bytes))
    check(code)
    return address.value or 0


def free_memory() -> int:
    """Bytes that are free on the device in use."""
    _give_back()
    return current_card().free_and_total()[0]


class _Memory:
    """Memory of a device; used again or given back some time after nothing refers to it any more.

    stream : in whose order all work with it is done; 0: it is not known, and the memory is not used again.
    """

    def __init__(self, n_bytes: int, stream: Stream | int = 0):
        self.card, self.stream, self.address = current_card(), _handle(stream).value or 0, 0
        if self.stream:
            step = max(LEAST_STEP, 1 << max(0, n_bytes.bit_length() - STEP_BITS))
            n_bytes = -(-n_bytes // step) * step  # of few sizes, so that one fits another time
            self.address = _use_again(self.card, n_bytes, self.stream)
        self.n_bytes = n_bytes
        if n_bytes and not self.address:
            self.address = _allocate(n_bytes)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            _freed.append(_Freed(self.card, self.n_bytes, self.stream, self.address))


class _HostMemory:
    """Pinned memory of the host."""

    def __init__(self, n_bytes: int, flags: int):
        self.n_bytes, address = n_bytes, Where()
        self.card = current_card()
        check(libraries().waiting.cuMemHostAlloc(ctypes.byref(address), ctypes.c_size_t(max(1, n_bytes)), flags))
        self.address = address.value or 0

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            with self.card:
                libraries().waiting.cuMemFreeHost(Where(self.address))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.n_bytes,), "typestr": "|u1", "data": (self.address, False), "version": 3}


class DeviceArray:
    """An array of a device, or a part of one along its first axis."""

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
        from numba.cuda import types
        from numba.cuda.np.numpy_support import from_dtype

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
        if self.nbytes:
            _copy("DtoH", here.ctypes.data, self.address, self.nbytes, stream)
        return here

    def copy_to_device(self, source: DeviceArray | np.ndarray, stream: Stream | int = 0) -> None:
        """Overwrite the numbers; from the host an array must not change until the stream has come there."""
        if source.nbytes != self.nbytes or source.dtype != self.dtype:
            raise ValueError(f"{source.dtype} {source.shape} does not fit {self.dtype} {self.shape}")
        if not self.nbytes:
            return
        if isinstance(source, DeviceArray):
            _copy("DtoD", self.address, source.address, self.nbytes, stream)
        else:
            whole = np.ascontiguousarray(source)
            _copy("HtoD", self.address, whole.ctypes.data, self.nbytes, stream if whole is source else 0)


class MappedArray(DeviceArray):
    """An array of the host that devices use, too."""

    def __setitem__(self, rows: slice, values: Any) -> None:
        np.asarray(self._memory).view(self.dtype).reshape(self.shape)[rows] = values


def _copy(way: str, to: int, source: int, n_bytes: int, stream: Stream | int) -> None:
    """Copy between arrays, as a part of the driver's names says which way."""
    if stream:
        copy = getattr(libraries().waiting, f"cuMemcpy{way}Async_v2")
        check(copy(Where(to), Where(source), ctypes.c_size_t(n_bytes), _handle(stream)))
    else:
        current_card()
        check(getattr(libraries().waiting, f"cuMemcpy{way}_v2")(Where(to), Where(source), ctypes.c_size_t(n_bytes)))


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
    memory = _Memory(n_bytes, stream)
    return DeviceArray(memory, memory.address, whole, kind)


def to_device(here: np.ndarray, stream: Stream | int = 0) -> DeviceArray:
    """A copy of an array on the device in use."""
    there = device_array(here.shape, here.dtype)
    there.copy_to_device(here, stream)
    return there


def pinned_array(shape: Shape, dtype: np.typing.DTypeLike) -> np.ndarray:
    """An array of the host from which copies need not wait."""
    whole, kind, n_bytes = _laid_out(shape, dtype)
    return np.asarray(_HostMemory(n_bytes, 0))[:n_bytes].view(kind).reshape(whole)


def mapped_array(shape: Shape, dtype: np.typing.DTypeLike, portable: bool = True) -> MappedArray:
    """An array of the host that all devices use, too."""
    whole, kind, n_bytes = _laid_out(shape, dtype)
    memory = _HostMemory(n_bytes, MAPPED | (PORTABLE if portable else 0))
    return MappedArray(memory, memory.address, whole, kind)


def upload(rows: np.ndarray, there: DeviceArray, stream: Stream | int) -> None:
    """Copy contiguous rows to an array of the same shape and dtype."""
    if rows.nbytes:
        _copy("HtoD", there.address, rows.ctypes.data, rows.nbytes, stream)


def fill_bytes(there: DeviceArray, byte: int, stream: Stream | int) -> None:
    """Fill an array with one byte."""
    if there.nbytes:
        current_card()
        fill = libraries().quick.cuMemsetD8Async
        check(fill(Where(there.address), ctypes.c_ubyte(byte), ctypes.c_size_t(there.nbytes), _handle(stream)))


# ---------------------------------------------------------------- order of work


class Stream:
    """Work that is done in its order."""

    def __init__(self) -> None:
        current_card()
        self.handle = Where()
        check(libraries().waiting.cuStreamCreate(ctypes.byref(self.handle), 0))

    def synchronize(self) -> None:
        """Wait until all of it is done."""
        check(libraries().waiting.cuStreamSynchronize(self.handle))


stream = Stream


def _handle(stream: Stream | int) -> Where:
    return stream.handle if isinstance(stream, Stream) else Where(stream)


class Event:
    """A moment in a stream."""

    def __init__(self) -> None:
        current_card()
        self.handle = Where()
        check(libraries().waiting.cuEventCreate(ctypes.byref(self.handle), 0))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            libraries().quick.cuEventDestroy_v2(self.handle)

    def record(self, stream: Stream | int = 0) -> None:
        """Let it be when the work so far is done."""
        check(libraries().quick.cuEventRecord(self.handle, _handle(stream)))

    def wait(self, stream: Stream | int = 0) -> None:
        """Let what comes in a stream wait for it."""
        check(libraries().quick.cuStreamWaitEvent(_handle(stream), self.handle, 0))

    def synchronize(self) -> None:
        """Wait for it here."""
        check(libraries().waiting.cuEventSynchronize(self.handle))

    def elapsed_time(self, later: Event) -> float:
        """Milliseconds until another one."""
        passed = ctypes.c_float()
        check(libraries().quick.cuEventElapsedTime(ctypes.byref(passed), self.handle, later.handle))
        return passed.value


event = Event


# ---------------------------------------------------------------- kernels


class Function:
    """A compiled kernel, loaded on the device in use."""

    def __init__(self, cubin: bytes, name: str):
        driver, self._module, self._handle = libraries().waiting, Where(), Where()
        current_card()
        check(driver.cuModuleLoadData(ctypes.byref(self._module), cubin))
        check(driver.cuModuleGetFunction(ctypes.byref(self._handle), self._module, name.encode()))

    def start(self, blocks: int, threads: int, stream: Stream | int, shared: int, arguments: bytes) -> None:
        """Start it.  shared : bytes of shared memory of each block.  arguments : all of them, laid out as in memory."""
        whole, size = ctypes.c_char_p(arguments), ctypes.c_size_t(len(arguments))
        handed = (Where * 5)(
            BUFFER, ctypes.cast(whole, Where), BUFFER_SIZE, ctypes.cast(ctypes.pointer(size), Where), END
        )  # fmt: skip
        check(
            libraries().quick.cuLaunchKernel(
                self._handle, int(blocks), 1, 1, int(threads), 1, 1, int(shared), _handle(stream), None, handed
            )
        )  # fmt: skip
