"""What LLVM has to be told and Numba's public interface does not offer: the only file that knows Numba's inside.

Without the promise that arrays do not overlap, and with reference counts, code is slower, and nothing else changes.
"""

from __future__ import annotations

from typing import Any

import numba

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


def _no_counts() -> dict[str, Any]:
    """The option that leaves reference counts out: the decorator takes it, under a private name."""
    try:
        from numba.core.cpu import CPUTargetOptions
    except ImportError:
        return {}
    return {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {}


NO_OVERLAP, NO_COUNTS = _no_overlap(), _no_counts()
