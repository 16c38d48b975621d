"""Numba, where it compiles; nothing of this is loaded before.

Numba makes machine code of every function, which `stored.py` keeps.  That of an inner function is never run, as LLVM takes
its code into each caller and makes machine code there.  So this step is left out: an inner function ends as LLVM's code.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.cpu import CPUTargetOptions
from numba.core.options import TargetOptions

from bellapy.compute import rows
from bellapy.compute.processor import vector_code

# Numba's CPU code generator honours the flag `noalias`, but its decorator does not offer it as an option.
CPUTargetOptions.noalias = TargetOptions.Mapping("noalias")
rows.make_known()
if vector_code()[0] is not None:
    numba.config.CPU_FEATURES = vector_code()[0]

_OPTIONS = {"boundscheck": False, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}


class _NoMachineCode:
    """Stands where Numba tells machine code which Python objects it may use: an inner function uses none."""

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing."""


class InnerLibrary(JITCodeLibrary):
    """LLVM's code of an inner function, which waits for its callers."""

    codegen = _NoMachineCode()

    def finalize(self) -> None:
        """Take in the code of functions that are called, and optimise all of it for the callers."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._optimize_final_module()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "external":
                function.linkage = "linkonce_odr"  # several callers may bring the same one along
        self._shared_module = self._final_module
        self._finalized = True


class OuterLibrary(JITCodeLibrary):
    """Machine code that is kept: the functions that it calls are its own.

    LLVM takes functions of one name for the same one where it loads code.  Numba numbers functions, so that names differ.
    But each process begins at 1, and code of several is loaded together.
    """

    def _finalize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        self.enable_object_caching()
        super()._finalize_final_module()


class InnerCompiler(Compiler):
    """Numba's own steps, with such a library."""

    kept_as: type[JITCodeLibrary] = InnerLibrary

    def define_pipelines(self) -> list:
        """The steps, once it is known what is compiled."""
        state = self.state
        state["library"] = self.kept_as(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class OuterCompiler(InnerCompiler):
    """Likewise."""

    kept_as = OuterLibrary


class MachineCode(NamedTuple):
    """What it takes to call a compiled function again.

    name : of what takes a tuple of Python objects.  place : name of the place for the objects that it uses.
    objects : these.  code : a file of machine code, as LLVM writes it.
    """

    name: str
    place: str
    objects: list
    code: bytes


def dispatcher(function: Callable, inner: bool, options: dict) -> Any:
    """What Numba makes of a function, once for all constants; options : those that differ from the usual ones."""
    own = {"pipeline_class": InnerCompiler if inner else OuterCompiler, "no_cpython_wrapper": inner}
    return _once_for_constants(numba.njit(function, **_OPTIONS, **own, **options))


def compile_for(made: Any, arguments: tuple, known: Callable[[str], bool]) -> tuple[Callable, MachineCode | None]:
    """A dispatcher's function for such arguments, and its machine code; None where that uses names that are not `known`."""
    kinds = tuple(map(made.typeof_pyval, arguments))
    entry = made.compile(kinds)
    result = made.overloads[kinds]
    library, names = attrgetter("library", "fndesc")(result)
    module = library._final_module
    used = [each.name for each in (*module.functions, *module.global_variables) if each.is_declaration]
    if library.has_dynamic_globals or not all(name.startswith(("llvm.", names.env_name)) or known(name) for name in used):
        return entry, None  # it holds addresses of this process, or nobody would find what it calls
    code = library._get_compiled_object()
    return entry, MachineCode(names.llvm_cpython_wrapper_name, names.env_name, list(result.environment.consts), code)


def _plain(kind: Any) -> Any:
    """The type of a number, for that of a constant or of a tuple with constants."""
    constant = isinstance(kind, (numba.types.IntegerLiteral, numba.types.Tuple, numba.types.UniTuple))
    return numba.types.unliteral(kind) if constant else kind


def _once_for_constants(made: Any) -> Any:
    """Let calls with a constant take the code for any number: Numba would compile the function for each constant."""
    compiled_for_types = made.get_call_template
    made.get_call_template = lambda args, kws: compiled_for_types(
        tuple(map(_plain, args)), {name: _plain(kind) for name, kind in kws.items()}
    )
    return made
