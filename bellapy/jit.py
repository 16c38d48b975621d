"""Numba defaults, in one place: every compiled function is cached on disk, releases the GIL and never raises.

`njit` is for ordinary kernels.  `njit_vector` is for loops that LLVM must turn into vector code: it promises that array
arguments do not overlap, without which LLVM guards every loop by run-time overlap checks and often gives up.
"""

from __future__ import annotations

import functools

import numba
from numba.core.cpu import CPUTargetOptions
from numba.core.options import TargetOptions

_OPTIONS = {"cache": True, "boundscheck": False, "error_model": "numpy", "nogil": True}

# Numba's CPU code generator honours the flag `noalias`, but its decorator does not offer it as an option.
CPUTargetOptions.noalias = TargetOptions.Mapping("noalias")

njit = functools.partial(numba.njit, **_OPTIONS)
njit_vector = functools.partial(numba.njit, **_OPTIONS, noalias=True)
