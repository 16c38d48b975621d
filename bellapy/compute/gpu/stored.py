"""Kernels that are kept on disk, and what it takes to start them again.

Before it looks for stored code, numba-cuda imports and enters thousands of rules that only its compiler needs.  Here they
wait for the compiler, which asks for them itself (compute/stored.py does the same for CPUs).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from numba.cuda import utils
from numba.cuda.dispatcher import CUDACache

from bellapy.compute import own_process


class StoredKernels(CUDACache):
    """The stored code of one kernel."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel compiled for these types, None where that is not stored."""
        with utils.numba_target_override(), self._guard_against_spurious_io_errors():
            stored = self._load_overload(sig, target_context)
        if stored is None:
            with own_process.without("scipy.linalg"):
                import_module("numba.cuda.np.arraymath")  # as the compiler does
        return stored
