"""numba-cuda, which is loaded when a kernel is compiled, and not before.

A run whose kernels are all on the disk compiles nothing.  So what a module of kernels says to numba-cuda while it is loaded
waits: `cuda` is a module that loads itself when something of it is used, and functions for kernels are `Inner` ones until
`make_inner` lets numba-cuda's own ones take their places.  In the simulator nothing waits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import Any

import numba
from numba import config

SIMULATED = bool(config.ENABLE_CUDASIM)


def _later(name: str) -> ModuleType:
    """A module that is loaded when something of it is first used."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"No module named {name!r}", name=name)
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if SIMULATED:
    from numba import cuda
else:
    cuda = numba.cuda = _later("numba.cuda")


class Inner:
    """A function that only kernels call.  make : gives what numba-cuda makes of it."""

    def __init__(self, make: Callable[[], Any]):
        self._make = make
        self._made: Any = None

    def made(self) -> Any:
        """What numba-cuda makes of it, once."""
        if self._made is None:
            self._made = self._make()
        return self._made


def inner(**options: Any) -> Callable[[Callable], Any]:
    """A decorator of functions that kernels call; options : of numba-cuda."""

    def decorate(function: Callable) -> Any:
        if SIMULATED:
            return cuda.jit(device=True, **options)(function)
        return Inner(lambda: cuda.jit(device=True, **options)(function))

    return decorate


def intrinsic(function: Callable) -> Any:
    """A decorator of functions that say what code a call in a kernel becomes."""

    def make() -> Any:
        from numba.cuda.extending import intrinsic as made_by_numba

        return made_by_numba(function)

    return Inner(make)


def make_inner(kernel: Callable) -> None:
    """Put what numba-cuda makes in the places of inner functions: in all modules that are loaded, and in a kernel's own."""
    modules = [
        vars(module) for name, module in list(sys.modules.items()) if name.startswith(f"{__package__.split('.')[0]}.")
    ]
    for names in [*modules, kernel.__globals__]:
        for name, value in list(names.items()):
            if isinstance(value, Inner):
                names[name] = value.made()
    for cell in kernel.__closure__ or ():
        if isinstance(cell.cell_contents, Inner):
            cell.cell_contents = cell.cell_contents.made()
