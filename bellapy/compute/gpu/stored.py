"""Kernels on the disk: compiled once for each kind of arguments and of GPU, and started without the compiler.

What is stored is the code of the device, and the name under which it is found there.  A stamp of all that it depends on is
part of the file's name: the sources of the package, Python and the compiler.
"""

from __future__ import annotations

import hashlib
import struct
import sys
from collections.abc import Callable
from functools import cache, partial
from threading import Lock
from typing import Any

import numpy as np

from bellapy.compute.gpu.arrays import DeviceArray, Function, current_card
from bellapy.compute.gpu.devices import DRIVER_FILE, card_models
from bellapy.compute.late import compiling
from bellapy.compute.stored import COMPILERS, installed, keep, package_sources, place_of, read

LETTERS = {"u": "BHIQ", "i": "bhiq", "f": " efd", "b": "?"}  # of the module struct, for 1, 2, 4 and 8 bytes
NUMBERS = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float64)}
_compiling = Lock()


# ---------------------------------------------------------------- the place


@cache
def stamp() -> str:
    """What compiled code depends on, in short."""
    versions = [installed(package) for package in (*COMPILERS, "numba_cuda")]
    whole = package_sources(), sys.version, versions, card_models(), DRIVER_FILE.read_text() if DRIVER_FILE.exists() else ""
    return hashlib.sha1(repr(whole).encode()).hexdigest()[:16]


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
        place = place_of("kernel", self._function, stamp(), kind, current_card().compute_capability)
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
