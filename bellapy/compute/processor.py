"""Which processor code is compiled for, and how wide its vectors are.

LLVM prefers vectors of 256 bits on every Intel processor with AVX-512, since the first of these lowered their clock for
longer vectors.  From Ice Lake on the clock hardly falls.  There the kernels with one flank in each lane take about 0.7 of
the time with 512 bits (benchmarks/NOTEBOOK.md). On AMD's processors with AVX-512, LLVM uses the whole width by itself.

Only this preference is changed.  No instruction is added to those that LLVM finds, so the code runs wherever LLVM's own
does.
"""

from __future__ import annotations

import os
from functools import cache

import llvmlite.binding as llvm

ICE_LAKE = "avx512vbmi2"  # instructions that Ice Lake was the first to have
WHOLE_WIDTH = "-prefer-256-bit"


def choose_features(host: str, cpu_name: str | None, cpu_features: str | None) -> tuple[str | None, str]:
    """Features to compile for, None for those that Numba takes by itself, and the reason in words.

    host : the processor's features as LLVM tells them, such as "+avx2,-sha".
    cpu_name, cpu_features : NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, None where the user sets none.
    """
    if cpu_name is not None or cpu_features is not None:
        return None, "as NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say"
    if f"+{ICE_LAKE}" in host.split(","):
        return f"{host},{WHOLE_WIDTH}", "vectors of 512 bits, which processors from Ice Lake and Zen 4 on run fastest"
    return None, "vectors as LLVM chooses them for this processor"


@cache
def _host() -> str:
    """The processor's features, as Numba takes them."""
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM cannot tell them for every kind of processor
        return ""
    if os.environ.get("NUMBA_ENABLE_AVX") == "0":
        features.update((name, False) for name in features if name.startswith("avx"))
    return features.flatten()


def _asked_for() -> tuple[str | None, str | None]:
    """Name and features of the processor as the user sets them, None where not: as Numba reads its settings."""
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    return name, "" if features is None and str(name).lower() == "generic" else features


@cache
def vector_code() -> tuple[str | None, str]:
    """What `choose_features` says here."""
    return choose_features(_host(), *_asked_for())


@cache
def compiled_for() -> tuple[str, str]:
    """Name and features of the processor that code is compiled for."""
    name, features = _asked_for()
    return name or llvm.get_host_cpu_name(), vector_code()[0] or (_host() if features is None else features)
