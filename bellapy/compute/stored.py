"""Machine code that is kept on the disk, and called again without Numba.

Numba makes of each function one for Python, which takes a tuple of objects.  LLVM loads the machine code and tells where
that function lies.  What the code asks for is Python, the C library, and helpers that Numba has in modules in C: these are
loaded without the package around them, which takes a sixth of a second.

Each kind of arguments has a file.  Its name tells them, the processor, Python, Numba, LLVM and NumPy.  It begins with
a checksum, and with a stamp of the sources.  Damaged code, or that of another stamp, is compiled again and overwritten.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from bellapy.compute import own_process
from bellapy.compute.late import Late, compiling
from bellapy.compute.processor import compiled_for
from bellapy.report.log import FOR_ALL, logger

PACKAGE = Path(__file__).resolve().parents[1]
COMPILERS = "numba", "llvmlite", "numpy"
SUM = 4  # bytes of a checksum
C_ORDER, FORTRAN_ORDER, WRITABLE = 0x1, 0x2, 0x400  # flags of an array, as NumPy numbers them
NUMBERS = {bool: np.dtype(np.bool_), float: np.dtype(np.float64)}
SMALL, LARGE = np.dtype(np.int64), np.dtype(np.uint64)
_alone = RLock()  # LLVM loads for one thread at a time


# ---------------------------------------------------------------- the place


def folder() -> Path:
    """Where compiled code is kept: where the user says, in the package, or, if nothing can be written there, at home."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    inside = PACKAGE / "__pycache__"
    if os.access(inside if inside.exists() else PACKAGE, os.W_OK):
        return inside
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bellapy"


@cache
def installed(package: str) -> tuple[str, ...]:
    """Which version of a package is installed, by the names of what describes it: to ask for versions takes longer."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ()
    return tuple(sorted(path.name for path in Path(spec.origin).parents[1].glob(f"{package}-*")))


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


@cache
def package_sources() -> tuple[tuple[str, bytes], ...]:
    """All modules of the package and what is in each, in short; time stamps may stay when a file changes."""
    return tuple(sorted((path, _digest(path)) for path in _sources(str(PACKAGE))))


def _sources(folder: str) -> Iterator[str]:
    """Modules in a folder and in those below; pathlib takes three times as long."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _sources(entry.path)


def _digest(path: str) -> bytes:
    with open(path, "rb") as stream:
        return hashlib.sha1(stream.read()).digest()


@cache
def _stamp(source: str) -> bytes:
    """What code from this file depends on, in short: it takes in functions and constants of any module of the package."""
    with suppress(OSError):
        return hashlib.sha1(repr((_digest(source), package_sources())).encode()).digest()
    return b""


def place_of(kind: str, function: Callable, *whole: Any) -> Path:
    """The file for the code of a function, by all that tells it apart; one that another made, by what it got from there."""
    own = [repr(cell.cell_contents) for cell in function.__closure__ or () if not callable(cell.cell_contents)]
    told = function.__code__.co_filename, function.__qualname__, own, sys.version, *map(installed, COMPILERS), *whole
    module = function.__module__.rpartition(".")[2]
    return folder() / f"{kind}-{module}.{function.__name__}-{hashlib.sha1(repr(told).encode()).hexdigest()[:16]}"


# ---------------------------------------------------------------- LLVM


@cache
def _numba() -> Path:
    spec = find_spec("numba")
    if spec is None or spec.origin is None:
        raise ImportError("No module named 'numba'", name="numba")
    return Path(spec.origin).parent


def _module_in_c(name: str) -> ModuleType:
    """One of Numba's modules in C, loaded without the packages that it stands in; Numba takes the same one later."""
    if name not in sys.modules:
        spec = PathFinder.find_spec(name, [str(_numba().joinpath(*name.split(".")[1:-1]))])
        if spec is None or spec.loader is None:
            raise ImportError(f"No module named {name!r}", name=name)
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@cache
def _helpers() -> dict[str, int]:
    """Names and addresses of what Numba's machine code calls of Numba."""
    runtime = _module_in_c("numba.core.runtime._nrt_python")
    runtime.memsys_use_cpython_allocator()  # as Numba does
    named = {f"numba_{name}": at for module in ("_helperlib", "_dynfunc") for name, at in _c_helpers(module)}
    return named | {name if name.startswith("_") else f"NRT_{name}": at for name, at in runtime.c_helpers.items()}


def _c_helpers(module: str) -> Any:
    return _module_in_c(f"numba.{module}").c_helpers.items()


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def _unpickle(at: int, size: int, digest: int) -> Any:
    """What machine code makes classes of arrays and records with; Numba's own would load Numba."""
    return _unpickled(ctypes.string_at(at, size))


_unpickled = cache(pickle.loads)


def _is_known(name: str) -> bool:
    """Whether LLVM finds a name when it loads machine code: it ends the program otherwise."""
    return name in _helpers() or hasattr(ctypes.CDLL(None), name)


@cache
def _engine() -> llvm.ExecutionEngine:
    """What loads machine code."""
    own = {"numba_unpickle": ctypes.cast(_unpickle, ctypes.c_void_p).value}
    for name, address in {**_helpers(), **own}.items():
        llvm.add_symbol(name, address)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    if os.environ.get("NUMBA_ENABLE_PROFILING", "0") != "0":
        engine.enable_jit_events()
    return engine


def _load(function: Callable, name: str, place: str, objects: list, code: bytes) -> Callable:
    """The function for Python in machine code, by the parts of compiler.MachineCode."""
    engine, module = _engine(), sys.modules[function.__module__]
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    environment = _module_in_c("numba._dynfunc").Environment(vars(module))
    environment.consts[:] = objects
    ctypes.c_void_p.from_address(engine.get_global_value_address(place)).value = id(environment)
    address = engine.get_function_address(name)
    make = _module_in_c("numba._dynfunc").make_function
    return make(module, function.__name__, "", address, environment, ())


# ---------------------------------------------------------------- functions


def kind_of(value: Any) -> Any:
    """What tells arguments apart that need code of their own, as Numba tells them apart."""
    if isinstance(value, np.ndarray):
        flags = value.flags.num
        order = C_ORDER if flags & C_ORDER else flags & FORTRAN_ORDER
        return value.dtype, value.ndim, order | flags & WRITABLE
    if isinstance(value, tuple):
        return type(value), *map(kind_of, value)
    if isinstance(value, np.generic):
        return value.dtype
    kind = type(value)
    if kind is int:
        return SMALL if -1 << 63 <= value < 1 << 63 else LARGE
    return NUMBERS.get(kind, kind)


class Outer(Late):
    """A function that Python calls, and compiled code may.

    make : gives Numba's dispatcher.  kept : whether its machine code is kept on the disk.
    """

    def __init__(self, function: Callable, make: Callable[[], Any], kept: bool):
        super().__init__(function, make)
        self._kept = kept
        self._stamp = _stamp(function.__code__.co_filename)  # now, as the file may change before a call
        self._ready: dict[Any, Callable] = {}

    def __call__(self, *arguments: Any) -> Any:
        kind = kind_of(arguments)
        ready = self._ready.get(kind)
        if ready is None:
            with _alone:
                ready = self._ready.get(kind) or self._get_ready(kind, arguments)
        return ready(*arguments)

    def _get_ready(self, kind: Any, arguments: tuple) -> Callable:
        """The function for such arguments, from the disk or from the compiler."""
        function, stamp = self.__wrapped__, self._stamp
        place = place_of("code", function, kind, compiled_for())
        content = read(place) if self._kept else b""
        if stamp and content.startswith(stamp):
            ready = _load(function, *pickle.loads(memoryview(content)[len(stamp) :]))
        else:
            ready, machine_code = self._compile(arguments)
            if self._kept and stamp and machine_code:
                keep(place, stamp + pickle.dumps(tuple(machine_code)))
        self._ready[kind] = ready
        return ready

    def _compile(self, arguments: tuple) -> tuple[Callable, Any]:
        own_process.collect_cycles()
        with compiling():
            from bellapy.compute.compiler import compile_for

            return compile_for(self.made(), arguments, _is_known)
