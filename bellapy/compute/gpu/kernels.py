"""Kernels: compiled by numba-cuda, kept on the disk, loaded and started by cuda.core.

`compile_kernel` is the only door to a compiler.  What is kept is the machine code of a kernel for one kind of arguments and
of GPU, and its name, behind a checksum.  The folder is that of the sources as they are (code_cache.py).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from cuda.core import LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from numba import cuda, typeof

from bellapy.compute.code_cache import folder
from bellapy.compute.compiling import compiling
from bellapy.compute.gpu.arrays import DeviceArray, Stream, current_card, of_cuda
from bellapy.compute.gpu.errors import telling
from bellapy.report.log import FOR_ALL, logger

SUM = 4  # bytes of a checksum
NUMBERS = {bool: "|b1", int: "<i8", float: "<f8"}
"""What the compiler takes Python's numbers for."""
_compiling = Lock()


# ---------------------------------------------------------------- code on the disk


@cache
def stamp() -> str:
    """What compiled code depends on beside the sources and the GPU, in short."""
    return repr((sys.version, *map(version, ("numba-cuda", "cuda-core", "cuda-bindings"))))


def place_of(function: Callable, *whole: Any) -> Path:
    """The file for the code of a function, by all that tells it apart; one that another made, by what it got from there."""
    own = [repr(cell.cell_contents) for cell in function.__closure__ or () if not callable(cell.cell_contents)]
    told = function.__qualname__, own, stamp(), *whole
    module = function.__module__.rpartition(".")[2]
    return folder() / f"kernel-{module}.{function.__name__}-{hashlib.sha1(repr(told).encode()).hexdigest()[:16]}"


def read(place: Path) -> bytes:
    """What is kept at a place; nothing if there is no such file, or a damaged one: such code could do anything."""
    with suppress(OSError):
        content = memoryview(place.read_bytes())
        if content[:SUM] == _sum(place, content[SUM:]):
            return bytes(content[SUM:])
    return b""


def _sum(place: Path, content: bytes | memoryview) -> bytes:
    """A checksum, also of the file's name: under that of another one it is damaged."""
    return zlib.crc32(content, zlib.crc32(os.fsencode(place.name))).to_bytes(SUM, "little")


def keep(place: Path, content: bytes) -> None:
    """Write a file, whole or not at all; where that fails nothing is kept, and a warning tells it."""
    beside = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(_sum(place, content) + content)
        beside.replace(place)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        _warn(place.parent, error.strerror)


@cache
def _warn(folder: Path, reason: str) -> None:
    text = "%s: %s; so the next run compiles again. NUMBA_CACHE_DIR names another folder"
    logger.warning(text, folder, reason, extra=FOR_ALL)


# ---------------------------------------------------------------- arguments


def kind_of(value: Any) -> Any:
    """What tells arguments apart that need code of their own: the same in every process, and quick to find."""
    if isinstance(value, DeviceArray):
        return value.dtype.str, value.ndim
    if isinstance(value, tuple):
        return type(value).__qualname__, *map(kind_of, value)
    return NUMBERS[type(value)] if type(value) in NUMBERS else value.dtype.str


def numbers_of(values: tuple, numbers: list) -> list:
    """Append all numbers of arguments to a list: records and arrays are handed over one number after the other."""
    for value in values:
        if isinstance(value, DeviceArray):
            numbers.extend(value.as_argument)
        elif isinstance(value, tuple):
            numbers_of(value, numbers)
        else:
            numbers.append(value)
    return numbers


# ---------------------------------------------------------------- kernels


class Kernel:
    """A function as a kernel of one device, started as in numba-cuda: kernel[blocks, threads, stream, shared](...)."""

    def __init__(self, function: Callable):
        self._function = function
        self._loaded: dict[Any, Any] = {}

    def __getitem__(self, how: tuple) -> Callable[..., None]:
        blocks, threads, stream, shared = (*how, 0, 0)[:4]
        return partial(self._start, blocks, threads, stream, shared)

    def _start(self, blocks: int, threads: int, stream: Stream | int, shared: int, *arguments: Any) -> None:
        kind = kind_of(arguments)
        loaded = self._loaded.get(kind)
        if loaded is None:
            loaded = self._loaded[kind] = self._load(kind, arguments)
        config = LaunchConfig(grid=int(blocks), block=int(threads), shmem_size=int(shared))
        with telling:
            launch(of_cuda(stream), config, loaded, *numbers_of(arguments, []))

    def _load(self, kind: Any, arguments: tuple) -> Any:
        """The kernel for such arguments, from the disk or from the compiler."""
        place = place_of(self._function, kind, current_card().compute_capability)
        content = read(place)
        if not content:
            with _compiling:
                content = read(place) or self._compiled(arguments)  # another thread, of another GPU, may have come first
                keep(place, content)
        name, _, code = content.partition(b"\n")
        with telling:
            return ObjectCode.from_cubin(code).get_kernel(name.decode())

    def _compiled(self, arguments: tuple) -> bytes:
        with compiling():
            code, name = compile_kernel(self._function, arguments)
        return name.encode() + b"\n" + code


def compile_kernel(function: Callable, arguments: tuple) -> tuple[bytes, str]:
    """The machine code of a kernel for such arguments, for the device in use, and the name that it has there."""
    kinds, capability = tuple(map(typeof, arguments)), current_card().compute_capability
    text, _ = cuda.compile(function, kinds, device=False, abi="numba", cc=capability, output="ptx")
    entry = re.search(r"\.entry\s+(\w+)", text)
    if entry is None:
        raise ValueError(f"{function.__qualname__}: the compiler made no kernel")
    major, minor = capability
    most = getattr(function, "most_registers", None)
    made = Program(text, "ptx", ProgramOptions(arch=f"sm_{major}{minor}", max_register_count=most)).compile("cubin")
    return bytes(made.code), entry[1]
