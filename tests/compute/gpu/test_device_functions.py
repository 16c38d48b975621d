"""What kernels call, as far as a machine without a GPU can tell."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

import bellapy

pytest.importorskip("numba_cuda")
pytest.importorskip("cuda.bindings")

OF_KERNELS = {"blockDim", "blockIdx", "grid", "laneid", "shared", "shfl_sync", "syncthreads", "syncwarp", "threadIdx"}


def function_of(value: Any) -> FunctionType | None:
    value = getattr(value, "py_func", getattr(value, "__wrapped__", value))
    return value if isinstance(value, FunctionType) else None


def device_functions() -> Iterator[FunctionType]:
    """All functions of the package that use what only kernels have."""
    for module in pkgutil.walk_packages(bellapy.__path__, "bellapy."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in [name for name in sys.modules if name.startswith("bellapy.")]:
        for value in vars(sys.modules[name]).values():
            function = function_of(value)
            if function and function.__module__ == name and uses_kernels_own(function.__code__.co_names):
                yield function


def uses_kernels_own(names: tuple[str, ...]) -> bool:
    return "cuda" in names and bool(OF_KERNELS.intersection(names))


def called_by(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name in function.__code__.co_names:
        if isinstance(function.__globals__.get(name), Dispatcher):
            yield name, function.__globals__[name]


def test_kernels_call_only_functions_that_numba_cuda_can_take():
    """A function with reference counts may make arrays, which no kernel can."""
    reached, new, wrong = set(), set(device_functions()), set()
    assert len(new) > 20
    while new:
        reached |= new
        calls = [(name, value) for function in new for name, value in called_by(function)]
        wrong |= {name for name, value in calls if value.targetoptions.get("_nrt", True)}
        new = {function for _, value in calls if (function := function_of(value))} - reached
    assert not wrong
