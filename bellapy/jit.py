"""Numba defaults, in one place: every compiled function is cached on disk, releases the GIL and never raises.

`njit` is for ordinary kernels.  The others leave out reference counts, which are atomic operations and would cost more than
the short functions of an inner loop: they must not make arrays.  The inner ones are for calls from compiled code only (from
Python they would crash), which halves their code.  The vector ones are for loops that LLVM must turn into vector code: they
promise that array arguments do not overlap, without which LLVM guards every loop by run-time overlap checks and often gives
up.
"""

from __future__ import annotations

import functools
import sys

import numba
from numba.core.cpu import CPUTargetOptions
from numba.core.options import TargetOptions

if sys.modules.get("scipy.linalg", numba) is None:  # hidden from Numba by the command line, not from others
    del sys.modules["scipy.linalg"]

_OPTIONS = {"cache": True, "boundscheck": False, "error_model": "numpy", "nogil": True}
_NO_COUNTS = {**_OPTIONS, "_nrt": False}
_INNER = {**_NO_COUNTS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Numba's CPU code generator honours the flag `noalias`, but its decorator does not offer it as an option.
CPUTargetOptions.noalias = TargetOptions.Mapping("noalias")

njit = functools.partial(numba.njit, **_OPTIONS)
njit_entry = functools.partial(numba.njit, **_NO_COUNTS)
njit_vector_entry = functools.partial(numba.njit, **_NO_COUNTS, noalias=True)
njit_inner = functools.partial(numba.njit, **_INNER)
njit_vector = functools.partial(numba.njit, **_INNER, noalias=True)
