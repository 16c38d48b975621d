"""What LLVM has to be told and Numba's public interface does not offer: the only file that knows Numba's inside.

Without the promise that arrays do not overlap code is slower, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature

from bellapy.compute.processor import vector_code

if vector_code()[0] is not None:
    numba.config.CPU_FEATURES = vector_code()[0]


def _no_overlap() -> dict[str, Any]:
    """The option that promises that array arguments do not overlap: code generation knows the flag, the decorator not."""
    try:
        from numba.core.cpu import CPUTargetOptions
        from numba.core.options import TargetOptions

        CPUTargetOptions.noalias = TargetOptions.Mapping("noalias")
    except (ImportError, AttributeError):
        return {}
    return {"noalias": True}


NO_OVERLAP = _no_overlap()


def add_operators(kinds: tuple, make: Callable, *operators: Callable) -> None:
    """Let compiled code apply operators to values of these types of Numba; the result has the first one.

    make : builds LLVM's code, from its builder and the values.
    """

    class Rule(ConcreteTemplate):
        cases = [signature(kinds[0], *kinds)]

    def generate(context, builder, signature, arguments):
        return make(builder, *arguments)

    for each in operators:
        infer_global(each)(Rule)
        lower_builtin(each, *kinds)(generate)
