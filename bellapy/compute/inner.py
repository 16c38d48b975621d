"""How functions that only compiled code calls are compiled: as parts of their callers.

Numba makes machine code of every function, and keeps it on disk.  That of an inner function is never run, as LLVM takes
its code into each caller and makes machine code there.  So this step is left out: an inner function ends as LLVM's code.
"""

from __future__ import annotations

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


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
