"""How kernels are kept, and how arguments are handed to them: no GPU is needed, as the compiler and the driver stand in."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba_cuda")
pytest.importorskip("cuda.bindings")

from bellapy.compute.gpu import kernels
from bellapy.compute.gpu.arrays import DeviceArray
from bellapy.compute.gpu.errors import DriverError, telling


class Machine:
    """compiled : arguments of the compiler.  loaded : code and name.  started : what the driver was handed."""

    def __init__(self):
        self.compiled, self.loaded, self.started = [], [], []

    def compile_kernel(self, function, arguments):
        time.sleep(0.02)
        self.compiled.append((function.__closure__[0].cell_contents, *map(kernels.kind_of, arguments)))
        return b"\x7fELF\n\n\0", "name"

    def from_cubin(self, code):
        return SimpleNamespace(get_kernel=lambda name: self.loaded.append((code, name)) or name)

    def launch(self, stream, config, kernel, *numbers):
        self.started.append((stream, config.grid[0], config.block[0], config.shmem_size, kernel, *numbers))


@pytest.fixture
def machine(monkeypatch, tmp_path):
    made = Machine()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "not there yet"))
    monkeypatch.setattr(kernels, "compile_kernel", made.compile_kernel)
    monkeypatch.setattr(kernels, "ObjectCode", made)
    monkeypatch.setattr(kernels, "launch", made.launch)
    monkeypatch.setattr(kernels, "current_card", lambda: SimpleNamespace(compute_capability=(9, 0)))
    monkeypatch.setattr(kernels, "of_cuda", lambda stream: stream)
    return made


def array_of(n, dtype):
    return DeviceArray(None, 4096, (n,), np.dtype(dtype))


def make_kernel(n):
    def kernel(numbers):
        numbers[0] = n

    return kernel


class Inside(NamedTuple):
    flag: bool
    number: np.uint32


class Outside(NamedTuple):
    rows: DeviceArray
    inside: Inside
    size: int


def test_records_and_arrays_are_handed_over_one_number_after_the_other(machine):
    rows = DeviceArray(None, 4096, (4, 5), np.dtype(np.int16))
    kernel = kernels.Kernel(make_kernel(1))
    kernel[3, 32, 7, 64](Outside(rows, Inside(True, np.uint32(7)), -3), np.float32(0.5), np.uint8(200), 2.5)
    how, numbers = machine.started[0][:5], machine.started[0][5:]
    assert how == (7, 3, 32, 64, "name") and machine.loaded == [(b"\x7fELF\n\n\0", "name")]
    assert numbers == (0, 0, 20, 2, 4096, 4, 5, 10, 2, True, 7, -3, 0.5, 200, 2.5)
    assert list(map(type, numbers[10:])) == [np.uint32, int, np.float32, np.uint8, float]


def test_kernels_are_compiled_once_for_each_kind_of_arguments(machine, monkeypatch):
    words, bytes_ = array_of(3, np.uint32), array_of(3, np.uint8)
    for _ in range(2):
        for n in (1, 2):
            kernel = kernels.Kernel(make_kernel(n))
            for argument in (words, words[1:], bytes_):
                kernel[1, 32, 0](argument)
    assert machine.compiled == [(n, kind) for n in (1, 2) for kind in (("<u4", 1), ("|u1", 1))]
    assert len(machine.loaded) == 8 and set(machine.loaded) == {(b"\x7fELF\n\n\0", "name")}
    monkeypatch.setattr(kernels, "stamp", lambda: "another compiler")
    kernels.Kernel(make_kernel(1))[1, 32](words)
    assert len(machine.compiled) == 5


def test_a_kernel_is_compiled_once_for_all_gpus_and_again_where_its_file_is_damaged(machine):
    words, kernel = array_of(3, np.uint32), make_kernel(1)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: kernels.Kernel(kernel)[1, 32](words), range(4)))
    assert len(machine.compiled) == 1
    (place,) = kernels.folder().iterdir()
    place.write_bytes(place.read_bytes()[:-1])
    for _ in range(2):
        kernels.Kernel(kernel)[1, 32](words)
    assert len(machine.compiled) == 2


def test_where_nothing_can_be_kept_a_warning_tells_it(machine, said, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(kernels, "folder", lambda: tmp_path / "file" / "inside")
    kernels._warn.cache_clear()
    kernels.Kernel(make_kernel(1))[1, 32](array_of(3, np.uint32))
    assert "so the next run compiles again" in said.text and len(machine.started) == 1


def test_errors_of_the_driver_become_ours():
    with pytest.raises(DriverError, match="--device cpu") as caught, telling:
        raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")
    assert caught.value.problem.startswith("CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(ZeroDivisionError), telling:
        1 / 0  # noqa: B018
