"""Kernels on the disk: compiled once for each kind of arguments and of GPU, and started without the compiler.

What is stored is the code of the device, and the name under which it is found there, behind a checksum.  The folder is that
of the sources as they are (code_cache.py).  All else that code depends on is part of the file's name.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from bellapy.compute.code_cache import folder
from bellapy.compute.compiling import compiling
from bellapy.compute.gpu.arrays import DeviceArray, Function, current_card
from bellapy.compute.gpu.devices import DRIVER_FILE, card_models
from bellapy.report.log import FOR_ALL, logger

SUM = 4  # bytes of a checksum
LETTERS = {"u": "BHIQ", "i": "bhiq", "f": " efd", "b": "?"}  # of the module struct, for 1, 2, 4 and 8 bytes
NUMBERS = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float64)}
_compiling = Lock()


# ---------------------------------------------------------------- the place


@cache
def stamp() -> str:
    """What compiled code depends on beside the sources, in short."""
    driver = DRIVER_FILE.read_text() if DRIVER_FILE.exists() else ""
    try:
        compiler = version("numba-cuda")
    except PackageNotFoundError:
        compiler = ""  # nothing will be compiled
    whole = sys.version, compiler, card_models(), driver
    return hashlib.sha1(repr(whole).encode()).hexdigest()[:16]


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
    return NUMBERS[type(value)].str if type(value) in NUMBERS else value.dtype.str


def letters_of(value: Any) -> str:
    """How an argument is laid out in memory, by letters of the module `struct`, with the gaps that C leaves."""
    if isinstance(value, DeviceArray):
        return "q" * len(value.as_argument)
    if isinstance(value, tuple):
        return "".join(map(letters_of, value))
    kind = NUMBERS[type(value)] if type(value) in NUMBERS else value.dtype
    return LETTERS[kind.kind][kind.itemsize.bit_length() - 1]


def numbers_of(values: tuple, numbers: list) -> list:
    """Append all numbers of arguments to a list."""
    for value in values:
        if isinstance(value, DeviceArray):
            numbers.extend(value.as_argument)
        elif isinstance(value, tuple):
            numbers_of(value, numbers)
        else:
            numbers.append(value.item() if isinstance(value, np.generic) else value)
    return numbers


# ---------------------------------------------------------------- kernels


class Kernel:
    """A function as a kernel of one device, started as in numba-cuda: kernel[blocks, threads, stream, shared](...)."""

    def __init__(self, function: Callable):
        self._function = function
        self._loaded: dict[Any, tuple[Function, struct.Struct]] = {}

    def __getitem__(self, how: tuple) -> Callable[..., None]:
        blocks, threads, stream, shared = (*how, 0, 0)[:4]
        return partial(self._start, blocks, threads, stream, shared)

    def _start(self, blocks: int, threads: int, stream: Any, shared: int, *arguments: Any) -> None:
        kind = kind_of(arguments)
        loaded = self._loaded.get(kind)
        if loaded is None:
            layout = struct.Struct(f"@{letters_of(arguments)}")
            loaded = self._loaded[kind] = Function(*self._code(kind, arguments)), layout
        function, layout = loaded
        function.start(blocks, threads, stream, shared, layout.pack(*numbers_of(arguments, [])))

    def _code(self, kind: Any, arguments: tuple) -> tuple[bytes, str]:
        """The code for such arguments, and its name, from the disk or from the compiler."""
        place = place_of(self._function, kind, current_card().compute_capability)
        content = read(place)
        if not content:
            with _compiling:
                content = read(place) or self._compiled(arguments)  # another thread, of another GPU, may have come first
                keep(place, content)
        name, _, code = content.partition(b"\n")
        return code, name.decode()

    def _compiled(self, arguments: tuple) -> bytes:
        with compiling():
            code, name = compile_kernel(self._function, arguments)
        return name.encode() + b"\n" + code


def compile_kernel(function: Callable, arguments: tuple) -> tuple[bytes, str]:
    """The code of a kernel for such arguments, for the device in use, and the name that it has there."""
    from numba import cuda
    from numba.core.compiler_lock import global_compiler_lock

    from bellapy.compute.gpu.late import make_inner

    with global_compiler_lock:
        make_inner(function)
        dispatcher = cuda.jit(max_registers=getattr(function, "most_registers", None))(function)
        with cuda.gpus[current_card().id]:
            made = dispatcher.compile(tuple(map(cuda.typing.typeof.typeof, arguments)))
            return bytes(made._codelibrary.get_cubin().code), made.entry_name
