"""Machine code that is kept on disk, and what it takes to use it again.

Numba gets ready to compile before it looks for stored code: it imports and enters thousands of rules, and reads what LLVM
knew of each function, so that its callers may take it in.  It also looks for the folder of each function's code as soon as
the function is defined.  Code that is only called needs none of this, and a command that runs for the second time compiles
nothing.  So all of it waits until a compiler starts, or a function is called: that saves a fifth of the start.

Numba's runtime counts references to arrays.  It is part of this program.  Numba compiles functions for its callers at
every start; stored code has them in it, and only asks for names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
from numba.core import environment
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime import _nrt_python

from bellapy.compute import own_process


class OuterCompiler(Compiler):
    """Numba's own steps, after the imports that they would make with more than is needed."""

    def __init__(self, *arguments: Any, **options: Any):
        own_process.collect_cycles()
        with own_process.without("scipy.linalg"):
            import_module("numba.np.arraymath")
        super().__init__(*arguments, **options)


class StoredLibrary(JITCodeLibrary):
    """Machine code from the disk; LLVM reads its own code of it when a caller is compiled that takes it in."""

    _for_callers = b""
    _shared_module: llvm.ModuleRef | None

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> JITCodeLibrary:
        name, kind, data = state
        if kind != "object":
            return super()._unserialize(codegen, state)
        self = cls(codegen, name)
        machine_code, self._for_callers = data
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()
        return self

    def get_pointer_to_function(self, name: str) -> int:
        """The address of one of its functions; Numba would first look for the name in LLVM's code."""
        return self._codegen._engine.get_function_address(name)

    def _get_module_for_linking(self) -> llvm.ModuleRef:
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self._for_callers)
            self._codegen._engine._load_defined_symbols(self._shared_module)
        return self._shared_module


def _environment(module: str, constants: list, name: str) -> environment.Environment:
    """What machine code knows of Python: objects that it uses, and the name of the module that it stands in.

    Numba imports the module, for globals that only code of Python objects looks up.  Most are modules of Numba's own, with
    rules for compiling: a tenth of a second.
    """
    known = environment.lookup_environment(name)
    if known is not None:
        return known
    made = environment.Environment({"__name__": module})
    made.consts[:] = constants
    made.env_name = name
    environment.Environment._memo[name] = made
    return made


@cache
def _name_runtime() -> None:
    """Let LLVM find Numba's runtime, as Numba itself does before it compiles functions that call it."""
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@cache
def _remember_processor(codegen: Any) -> None:
    """Let the processor be looked at once, not for each function."""
    codegen.magic_tuple = cache(codegen.magic_tuple)


@contextmanager
def _without_modules() -> Iterator[None]:
    """Let stored code be read without imports of the modules that it was compiled from; Numba's lock is held."""
    numbas = environment._rebuild_env
    environment._rebuild_env = _environment
    try:
        yield
    finally:
        environment._rebuild_env = numbas


class _Results(CompileResultCacheImpl):
    """What is stored of a function, and how it comes back."""

    def rebuild(self, target_context: Any, payload: tuple) -> Any:
        """The compiled function; Numba's lock is held here, so that only this one gets such a library."""
        codegen = target_context.codegen()
        codegen._library_class = StoredLibrary
        try:
            return super().rebuild(target_context, payload)
        finally:
            del codegen._library_class


class StoredCode(FunctionCache):
    """The stored code of one function."""

    _impl_class = _Results

    def __init__(self, function: Callable):
        self._function = function

    def __getattr__(self, name: str) -> Any:
        """What Numba knows of the function's file and of the folder, when it is first asked for."""
        super().__init__(self._function)
        return object.__getattribute__(self, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function compiled for these types, None where that is not stored; what machine code calls is made known."""
        _name_runtime()
        _remember_processor(target_context.codegen())
        with self._guard_against_spurious_io_errors(), _without_modules():
            return self._load_overload(sig, target_context)
