"""Which vector code is made for which processor."""

from __future__ import annotations

import os
import subprocess
import sys

import llvmlite.binding as llvm
import numba
import pytest
from cases import IMPORTS

from bellapy.compute.processor import ICE_LAKE, choose_features

FEATURES_IN_USE = """
import bellapy.compute.jit
from numba.core.registry import cpu_target
print(*cpu_target.target_context.codegen().magic_tuple()[1:], sep="|")
"""
ADD_BYTES = """
import numba
import numpy as np
from bellapy.compute.jit import njit_vector

def add(a, b):
    for i in range(np.uint64(1024)):
        a[i] += b[i]

bytes_, compiled = numba.uint8[::1], njit_vector(add)
compiled.compile((bytes_, bytes_))
print(*compiled.inspect_asm().values())
"""


def run_code(code: str, **settings: str) -> str:
    """What Python prints for this code, in a program of its own with these settings of Numba."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU_")}
    env["PYTHONPATH"] = IMPORTS
    run = subprocess.run([sys.executable, "-c", code], env=env | settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def features_in_use(**settings: str) -> list[str]:
    """Name and features of the processor for which Numba compiles."""
    return run_code(FEATURES_IN_USE, **settings).rstrip("\n").split("|")


@pytest.mark.parametrize(
    ("host", "whole_width"),
    [
        ("+avx2,+avx512bw,+avx512vl,+avx512vbmi2", True),  # Ice Lake and what came after
        ("+avx2,+avx512bw,+avx512vl,+avx512vnni,-avx512vbmi2", False),  # Cascade Lake
        ("+avx2,-avx512bw", False),
        ("+neon", False),
        ("", False),
    ],
)
def test_whole_width_from_ice_lake_on(host, whole_width):
    features, reason = choose_features(host, None, None)
    assert features == (f"{host},-prefer-256-bit" if whole_width else None)
    assert ("512" in reason) == whole_width


@pytest.mark.parametrize("given", [("haswell", None), (None, "+avx2"), ("haswell", ""), (None, "")])
def test_what_the_user_sets_is_left_alone(given):
    features, reason = choose_features(f"+{ICE_LAKE}", *given)
    assert features is None and "NUMBA_CPU" in reason


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="compilation is switched off (NUMBA_DISABLE_JIT)")
def test_numba_compiles_for_the_choice():
    """No feature is added to the processor's own, and the choice is part of what stored code is found by."""
    host = llvm.get_host_cpu_features()
    name, features = features_in_use()
    assert name == llvm.get_host_cpu_name()
    assert features.removeprefix(host.flatten()) == (",-prefer-256-bit" if host.get(ICE_LAKE) else "")
    assert features_in_use(NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="+avx2") == ["haswell", "+avx2"]


SETTINGS = [
    {}, {"NUMBA_ENABLE_AVX": "0"}, {"NUMBA_CPU_NAME": "generic"},
    {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2"},
]  # fmt: skip


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="compilation is switched off (NUMBA_DISABLE_JIT)")
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_numbas_settings_are_read_as_numba_reads_them(settings):
    told = run_code('from bellapy.compute.processor import compiled_for; print(*compiled_for(), sep="|")', **settings)
    assert told.rstrip("\n").split("|") == features_in_use(**settings)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="compilation is switched off (NUMBA_DISABLE_JIT)")
def test_loops_over_bytes_use_the_whole_width():
    if not llvm.get_host_cpu_features().get(ICE_LAKE):
        pytest.skip("this processor is none from Ice Lake or Zen 4 on")
    assert "%zmm" in run_code(ADD_BYTES)
