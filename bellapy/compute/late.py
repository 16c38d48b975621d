"""What waits until something is compiled.

To load Numba takes a sixth of a second, and most runs compile nothing: their code is on the disk.  So what a module says to
Numba while it is loaded waits.  Functions stand in for those that Numba makes of them, and modules of Numba are loaded when
something of them is used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import update_wrapper
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from bellapy.report.log import FOR_ALL, logger


def _is_on(setting: str) -> bool:
    return os.environ.get(setting, "0") not in ("", "0")


COMPILES = not _is_on("NUMBA_DISABLE_JIT")
SIMULATED = _is_on("NUMBA_ENABLE_CUDASIM")
"""Whether functions are compiled at all, and whether Numba's simulator stands in for GPUs: settings of Numba."""


class Compiling(Protocol):
    """What adds up the seconds of compilation."""

    compile_s: float


_watchers: list[Callable[[], AbstractContextManager]] = []


@contextmanager
def compiling() -> Iterator[None]:
    """Something is compiled in this block."""
    with ExitStack() as stack:
        for watcher in _watchers:
            stack.enter_context(watcher())
        yield


@contextmanager
def watch_compilation(report: Compiling) -> Iterator[None]:
    """Announce the first compilation of a run, and add up the time of all; loading from the cache does not count."""
    if not COMPILES:
        logger.warning("NUMBA_DISABLE_JIT is set: nothing is compiled, and the work takes hundreds of times as long")

    @contextmanager
    def watch() -> Iterator[None]:
        if not report.compile_s:
            logger.info("compiling what this command needs; later runs load it", extra=FOR_ALL)
        started = time.perf_counter()
        try:
            yield
        finally:
            report.compile_s += time.perf_counter() - started

    _watchers.append(watch)
    try:
        yield
    finally:
        _watchers.remove(watch)


class Module:
    """A module that is loaded when something of it is used."""

    def __init__(self, name: str):
        self._name = name

    def made(self) -> ModuleType:
        """The module."""
        return import_module(self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies and describes objects asks for
            raise AttributeError(name)
        return getattr(self.made(), name)


class Late:
    """A function that compiled code may call.  make : gives what Numba makes of it."""

    def __init__(self, function: Callable, make: Callable[[], Any]):
        update_wrapper(self, function)  # type: ignore[arg-type]
        self._make = make
        self._made: Any = None

    def made(self) -> Any:
        """What Numba makes of it, once."""
        if self._made is None:
            self._made = self._make()
        return self._made

    @property
    def _numba_type_(self) -> Any:
        """Its type, which Numba asks for where it compiles a caller."""
        return self.made()._numba_type_

    @property
    def py_func(self) -> Callable:
        """The function of Python, under Numba's name for it."""
        return self.__wrapped__

    def __getattr__(self, name: str) -> Any:
        """What Numba tells of it."""
        if name.startswith("__"):  # what copies and describes objects asks for
            raise AttributeError(name)
        return getattr(self.made(), name)


class Inner(Late):
    """A function that only compiled code calls."""


class Intrinsic(Late):
    """A function that says which of LLVM's code a call becomes."""

    @property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        made = self.made()
        cpu_target.typing_context.refresh()  # Numba looks for new ones only where it begins to compile
        return cpu_target.typing_context.resolve_value_type(made)


def intrinsic(function: Callable, plain: Callable | None = None) -> Any:
    """As Numba's decorator.  plain : does the same without compiled code."""

    def make() -> Any:
        from numba.extending import intrinsic as made_by_numba

        return made_by_numba(function)

    return Intrinsic(function, make) if COMPILES else plain
