"""Arrays of devices, and how arguments are handed to kernels, with a driver that works on memory of the host."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bellapy.compute.gpu import arrays, driver, stored
from bellapy.compute.gpu.arrays import DeviceArray, device_array, mapped_array, pinned_array, to_device
from bellapy.compute.gpu.driver import DriverError


def address_of(where) -> int:
    return where.value if hasattr(where, "value") else where


class HostDriver:
    """One device, whose memory is the host's; `room`: bytes that it has.  started: arguments of kernels, as bytes."""

    def __init__(self, room=1 << 20):
        self.room, self.held, self.started = room, {}, []

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: 0  # contexts, streams and events need nothing here

    def cuMemAlloc_v2(self, address, n):
        if sum(map(len, self.held.values())) + n.value > self.room:
            return arrays.OUT_OF_MEMORY
        memory = ctypes.create_string_buffer(n.value)
        address._obj.value = ctypes.addressof(memory)
        self.held[address._obj.value] = memory
        return 0

    def cuMemFree_v2(self, address):
        del self.held[address.value]
        return 0

    def cuMemHostAlloc(self, address, n, flags):
        return self.cuMemAlloc_v2(address, n)

    def cuMemFreeHost(self, address):
        return self.cuMemFree_v2(address)

    def cuMemcpyHtoD_v2(self, to, source, n):
        ctypes.memmove(to.value, source.value, n.value)
        return 0

    cuMemcpyDtoH_v2 = cuMemcpyDtoD_v2 = cuMemcpyHtoD_v2

    def cuMemsetD8Async(self, to, byte, n, stream):
        ctypes.memset(to.value, byte.value, n.value)
        return 0

    def cuLaunchKernel(self, function, *how):
        handed = how[-1]
        assert [handed[i] for i in (0, 2)] == [arrays.BUFFER, arrays.BUFFER_SIZE]
        self.started.append(ctypes.string_at(handed[1], ctypes.c_size_t.from_address(handed[3]).value))
        return 0


@pytest.fixture
def host(monkeypatch):
    gc.collect()  # what other tests have left on a GPU is given back to it, not to this driver
    made = HostDriver()
    monkeypatch.setattr(driver, "libraries", lambda: driver.Libraries(made, made))
    monkeypatch.setattr(arrays, "libraries", driver.libraries)
    cards = driver.Cards()
    monkeypatch.setattr(driver, "gpus", cards)
    monkeypatch.setattr(driver, "_own", type(driver._own)())
    monkeypatch.setattr(arrays, "_freed", [])
    yield made
    gc.collect()
    arrays._freed.clear()


def test_copies_parts_and_shapes(host, rng):
    table = rng.integers(0, 100, (7, 3)).astype(np.int32)
    there = to_device(table)
    assert (there.shape, there.dtype, there.ndim, there.nbytes, len(there)) == ((7, 3), table.dtype, 2, table.nbytes, 7)
    for part in (slice(2, 5), slice(-1, None), slice(None), slice(5, 2)):
        assert_array_equal(there[part].copy_to_host(), table[part])
    assert_array_equal(there.reshape(3, -1).copy_to_host(), table.reshape(3, 7))
    other = device_array((7, 3), np.int32)
    other.copy_to_device(there)
    other[1:3].copy_to_device(table[5:])
    assert_array_equal(other.copy_to_host(), np.concatenate((table[:1], table[5:], table[3:])))
    arrays.fill_bytes(other[:1], 0xFF, 0)
    assert_array_equal(other[:1].copy_to_host(), [[-1, -1, -1]])
    with pytest.raises(ValueError, match="does not fit"):
        other.copy_to_device(table[:2])
    with pytest.raises(ValueError, match="does not fit"):
        other.copy_to_host(np.zeros((7, 3), np.int64))
    assert device_array(0, np.uint8).copy_to_host().size == 0 and device_array((0, 3), np.int64).nbytes == 0


def test_memory_of_the_host(host):
    here = pinned_array((2, 3), np.int16)
    here[:] = [[1, 2, 3], [4, 5, 6]]
    assert here.shape == (2, 3) and here.sum() == 21
    both = mapped_array(4, np.int32)
    both[1:3] = 9
    assert_array_equal(both.copy_to_host()[1:3], [9, 9])


def test_memory_is_given_back_when_there_is_no_more(host):
    first = device_array(host.room // 2, np.uint8)
    part = first[10:20]
    device_array(host.room // 2, np.uint8)
    del first
    assert len(host.held) == 2, "a part still uses the first, and nothing is given back before it is needed"
    device_array(host.room // 2, np.uint8)
    with pytest.raises(DriverError) as caught:
        device_array(host.room, np.uint8)
    assert caught.value.code == arrays.OUT_OF_MEMORY and len(part) == 10


def test_memory_of_a_stream_is_used_again_by_it_alone(host):
    streams = [arrays.Stream() for _ in range(2)]
    for number, stream in enumerate(streams, 1):
        stream.handle.value = number
    first = device_array(10_000, np.uint8, stream=streams[0])
    part, address = first[5:], first.address
    assert device_array(10_000, np.uint8, stream=streams[0]).address != address, "it is still used"
    arrays._give_back()
    del first
    assert device_array(10_000, np.uint8, stream=streams[0]).address != address, "a part of it is"
    arrays._give_back()
    del part
    assert all(device_array(10_000, np.uint8, stream=other).address != address for other in (streams[1], 0))
    assert device_array(20_000, np.uint8, stream=streams[0]).address != address
    again = device_array(2_475, np.int32, stream=streams[0])  # of nearly the same size
    assert again.address == address and again.nbytes == 9_900
    del again
    arrays._give_back()
    assert not host.held


class Inside(NamedTuple):
    flag: bool
    number: np.uint32


class Outside(NamedTuple):
    rows: DeviceArray
    inside: Inside
    size: int


class Layout(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("none", "nor", "n", "item", "at", "rows", "columns", "step", "row")),
        ("flag", ctypes.c_bool), ("number", ctypes.c_uint32), ("size", ctypes.c_int64), ("half", ctypes.c_float),
        ("byte", ctypes.c_uint8), ("last", ctypes.c_double),
    ]  # fmt: skip


def test_arguments_are_laid_out_as_in_c(host, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(stored, "compile_kernel", lambda function, arguments: (b"code\nof it", "its name"))
    rows = device_array((4, 5), np.int16)
    arguments = Outside(rows, Inside(True, np.uint32(7)), -3), np.float32(0.5), np.uint8(200), 2.5
    stored.Kernel(test_arguments_are_laid_out_as_in_c)[1, 32](*arguments)
    expected = Layout(0, 0, 20, 2, rows.address, 4, 5, 10, 2, True, 7, -3, 0.5, 200, 2.5)
    (got,) = host.started
    assert len(got) == ctypes.sizeof(Layout)
    assert [getattr(Layout.from_buffer_copy(got), name) for name, _ in Layout._fields_] == [
        getattr(expected, name) for name, _ in Layout._fields_
    ]


def make_kernel(n):
    def kernel(numbers):
        numbers[0] = n

    return kernel


def test_a_kernel_is_compiled_once_for_all_gpus_and_again_where_its_file_is_damaged(host, monkeypatch, tmp_path):
    compiled = []

    def compile_kernel(function, arguments):
        time.sleep(0.05)
        compiled.append(function)
        return b"code", "name"

    monkeypatch.setattr(stored, "compile_kernel", compile_kernel)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    words, kernel = device_array(3, np.uint32), make_kernel(1)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: stored.Kernel(kernel)[1, 32](words), range(4)))
    assert len(compiled) == 1
    (place,) = stored.folder().iterdir()
    place.write_bytes(place.read_bytes()[:-1])
    stored.Kernel(kernel)[1, 32](words)
    stored.Kernel(kernel)[1, 32](words)
    assert len(compiled) == 2


def test_kernels_are_compiled_once_for_each_kind_of_arguments(host, monkeypatch, tmp_path):
    compiled = []

    def compile_kernel(function, arguments):
        compiled.append((function.__closure__[0].cell_contents, *map(stored.kind_of, arguments)))
        return b"\x7fELF\n\n\0", "name"

    monkeypatch.setattr(stored, "compile_kernel", compile_kernel)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "not there yet"))
    words, bytes_ = device_array(3, np.uint32), device_array(3, np.uint8)
    for _ in range(2):
        for n in (1, 2):
            kernel = stored.Kernel(make_kernel(n))
            for argument in (words, words[1:], bytes_):
                kernel[1, 32, 0](argument)
    assert compiled == [(n, kind) for n in (1, 2) for kind in (("<u4", 1), ("|u1", 1))]
    assert kernel._code(stored.kind_of((words,)), (words,)) == (b"\x7fELF\n\n\0", "name")
    monkeypatch.setattr(stored, "stamp", lambda: "another source")
    stored.Kernel(make_kernel(1))[1, 32](words)
    assert len(compiled) == 5


def test_only_the_compiler_loads_numba_cuda():
    pytest.importorskip("numba_cuda")
    modules = (
        "bellapy.jobs.overlap.pipeline", "bellapy.jobs.overlap.columns_cuda", "bellapy.jobs.overlap.products_cuda",
        "bellapy.jobs.overlap.coverage_cuda", "bellapy.engines.linear.extend_cuda", "bellapy.engines.linear.trace_cuda",
    )  # fmt: skip
    program = f"import sys, {', '.join(modules)}\nprint('numba.cuda.dispatcher' in sys.modules)\n"
    told = subprocess.run(
        [sys.executable, "-c", program + "from bellapy.compute.gpu.late import cuda\nprint(cuda.jit.__module__)"],
        env={**__import__("os").environ, "NUMBA_ENABLE_CUDASIM": "0"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.split() == ["False", "numba.cuda.decorators"]
