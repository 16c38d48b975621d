"""Arrays, streams and events: on a GPU if there is one, else those of Numba's simulator, whose names they have."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bellapy.compute.gpu.devices import SIMULATED, known_gpus
from bellapy.errors import DeviceError

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import copy_between, driver, fill_bytes, free_memory, upload
from bellapy.compute.gpu.pool import is_out_of_memory
from bellapy.report.run_report import Devices


def test_copies_parts_and_shapes(rng):
    table = rng.integers(0, 100, (7, 3)).astype(np.int32)
    with driver.gpus[0]:
        there = driver.to_device(table)
        assert (there.shape, there.dtype, there.ndim, there.nbytes, len(there)) == ((7, 3), table.dtype, 2, 84, 7)
        for part in (slice(2, 5), slice(-1, None), slice(None)):
            assert_array_equal(there[part].copy_to_host(), table[part])
        assert_array_equal(there.reshape(3, 7).copy_to_host(), table.reshape(3, 7))
        other = driver.device_array((7, 3), np.int32)
        other.copy_to_device(there)
        other[1:3].copy_to_device(table[5:])
        assert_array_equal(other.copy_to_host(), np.concatenate((table[:1], table[5:], table[3:])))
        fill_bytes(other[:1], 0xFF, 0)
        assert_array_equal(other[:1].copy_to_host(), [[-1, -1, -1]])
        with pytest.raises(ValueError):
            other.copy_to_host(np.zeros((6, 3), np.int32))


@pytest.mark.skipif(SIMULATED or len(driver.gpus) < 2, reason="one GPU")
def test_copies_between_devices(rng, monkeypatch):
    """In several pieces, the last one smaller; and in one."""
    monkeypatch.setattr(driver, "BETWEEN", 1 << 20)
    numbers = rng.integers(0, 1 << 62, (1 << 19) + 12_345)
    with driver.gpus[1]:
        source = driver.to_device(numbers)
    with driver.gpus[0]:
        stream = driver.stream()
        there = driver.device_array(numbers.shape, numbers.dtype, stream=stream)
        for part in (slice(5, None), slice(5)):
            copy_between(source[part], there[part], stream, lambda n: driver.pinned_array(n, np.uint8))
        assert_array_equal(there.copy_to_host(stream=stream), numbers)
        with pytest.raises(ValueError):
            copy_between(source[5:], there[6:], stream, lambda n: driver.pinned_array(n, np.uint8))


def test_a_stream_keeps_its_order(rng):
    numbers = rng.integers(0, 100, 1 << 16).astype(np.int64)
    with driver.gpus[0]:
        streams, copied = [driver.stream() for _ in range(2)], driver.event()
        pinned, back = driver.pinned_array(len(numbers), np.int64), driver.pinned_array(len(numbers), np.int64)
        pinned[:] = numbers
        there, other = (driver.device_array(len(numbers), np.int64) for _ in range(2))
        begun = driver.event()
        begun.record(streams[0])
        upload(pinned, there, streams[0])
        copied.record(streams[0])
        copied.wait(streams[1])
        other.copy_to_device(there, stream=streams[1])
        other.copy_to_host(back, stream=streams[1])
        streams[1].synchronize()
        assert_array_equal(back, numbers)
        copied.synchronize()
        assert SIMULATED or begun.elapsed_time(copied) >= 0


def test_memory_of_the_host_that_devices_use():
    with driver.gpus[0]:
        both = driver.mapped_array(4, np.int32, portable=True)
        both[1:3] = 9
        assert_array_equal(both.copy_to_host()[1:3], [9, 9])


@pytest.mark.skipif(SIMULATED, reason="the simulator's memory has no bound of its own")
def test_memory_serves_again_and_its_end_is_told():
    some = 64 << 20  # bytes: other tests may run beside this one
    with desk(Devices()) as its_desk:
        before = free_memory()
        held = [its_desk.zeros(some, np.uint8) for _ in range(4)]
        with pytest.raises(Exception) as caught:
            its_desk.zeros(1 << 46, np.uint8)
        assert is_out_of_memory(caught.value)
        part = held.pop()[10:20]
        addresses = {array.address for array in held}
        held.clear()
        gc.collect()
        assert {its_desk.zeros(some, np.uint8).address for _ in range(2)} & addresses, "what is free is used again"
        assert len(part) == 10 and before > 0
