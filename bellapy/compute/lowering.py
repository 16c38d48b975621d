"""What LLVM has to be told and Numba's public interface does not offer: the only file that knows Numba's inside.

Without the promise that arrays do not overlap, and with reference counts, code is slower, and nothing else changes.
"""

from __future__ import annotations

from typing import Any

import numba

from bellapy.compute.processor import vector_code

if vector_code()[0] is not None:
    numba.config.CPU_FEATURES = vector_code()[0]


def _options() -> tuple[dict[str, Any], dict[str, Any]]:
    """Options for Numba's decorator: array arguments do not overlap, and reference counts are left out; empty if unknown.

    Code generation knows the flag of the first, the decorator not; of the second the decorator's name is private.
    """
    try:
        from numba.core.cpu import CPUTargetOptions
        from numba.core.options import TargetOptions

        CPUTargetOptions.noalias = TargetOptions.Mapping("noalias")
    except (ImportError, AttributeError):
        return {}, {}
    return {"noalias": True}, {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}


NO_OVERLAP, NO_COUNTS = _options()
