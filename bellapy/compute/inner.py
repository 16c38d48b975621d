"""How functions that only compiled code calls are compiled: as parts of their callers.

Numba makes machine code of every function, and keeps it on disk.  That of an inner function is never run, as LLVM takes
its code into each caller and makes machine code there.  So this step is left out: an inner function ends as LLVM's code.

What Numba keeps of each function is made when a caller is compiled: a run that compiles nothing does without.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


class Inner:
    """A function that only compiled code calls.  make : gives what Numba makes of it."""

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

    def __reduce__(self) -> Any:
        """As Numba does: where a function is made by another one, Numba's stored code depends on what it holds."""
        return self.made().__reduce__()


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


class InnerCompiler(Compiler):
    """Numba's own steps, with such a library."""

    def define_pipelines(self) -> list:
        """The steps, once it is known what is compiled."""
        state = self.state
        state["library"] = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
