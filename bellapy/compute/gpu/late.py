"""numba-cuda, which is loaded when a kernel is compiled, and not before.

A run whose kernels are all on the disk compiles nothing.  So what a module of kernels says to numba-cuda while it is loaded
waits: `cuda` stands for a module that is loaded when something of it is used, and functions for kernels are `Inner` ones,
until `make_inner` lets numba-cuda's own ones take their places.  In the simulator nothing waits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from types import ModuleType
from typing import Any

from bellapy.compute.compiling import is_on

SIMULATED = is_on("NUMBA_ENABLE_CUDASIM")
"""Whether Numba's simulator stands in for GPUs."""


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


class Inner:
    """A function that only kernels call.  make : gives what numba-cuda makes of it."""

    def __init__(self, function: Callable, make: Callable[[], Any]):
        update_wrapper(self, function)  # type: ignore[arg-type]
        self._make = make
        self._made: Any = None

    def made(self) -> Any:
        """What numba-cuda makes of it, once."""
        if self._made is None:
            self._made = self._make()
        return self._made


if SIMULATED:
    from numba import cuda
else:
    cuda = Module("numba.cuda")


def inner(**options: Any) -> Callable[[Callable], Any]:
    """A decorator of functions that kernels call; options : of numba-cuda."""

    def decorate(function: Callable) -> Any:
        if SIMULATED:
            return cuda.jit(device=True, **options)(function)
        return Inner(function, lambda: cuda.jit(device=True, **options)(function))

    return decorate


def intrinsic(function: Callable) -> Any:
    """A decorator of functions that say what code a call in a kernel becomes."""

    def make() -> Any:
        from numba.cuda.extending import intrinsic as made_by_numba

        return made_by_numba(function)

    return Inner(function, make)


def make_inner(kernel: Callable) -> None:
    """Put numba-cuda's own functions and modules in their places: in all modules that are loaded, and in a kernel's own."""
    modules = [
        vars(module) for name, module in list(sys.modules.items()) if name.startswith(f"{__package__.split('.')[0]}.")
    ]
    for names in [*modules, kernel.__globals__]:
        for name, value in list(names.items()):
            if isinstance(value, (Inner, Module)):
                names[name] = value.made()
    for cell in kernel.__closure__ or ():
        if isinstance(cell.cell_contents, Inner):
            cell.cell_contents = cell.cell_contents.made()
