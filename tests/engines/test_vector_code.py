"""The inner loops of the engines with affine gaps run on whole vectors, for processors with AVX2 and no more.

Otherwise a kernel would be right, and many times slower.  It is compiled anew, by another process: Numba cannot show code
from its cache.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys

import llvmlite.binding
import numba
import pytest
from cases import IMPORTS

SHOW = """
import numba
import numpy as np
from bellapy.engines.affine import lanes
from bellapy.engines.exact import tiles
from bellapy.engines.linear import slices
from bellapy.engines.poa import align

def row(dtype):
    return np.zeros(64, dtype)

def show(kernel, *arguments):
    kernel.compile(tuple(map(numba.typeof, arguments)))
    print(*kernel.inspect_asm().values())

i8, u8 = np.int8(1), row("u1")

def show_row(dtype):
    one, size = np.dtype(dtype).type(1), np.int64(32)
    show(tiles._row, tiles.Group(*[row(dtype)] * 6), tiles.Along(*[row(dtype)] * 4), size, size, tiles.Costs(*[one] * 4))

stack = lanes.Stack(*(row("i1") for _ in range(5)))
i2, size = row("i2"), np.int64(64)
u64 = row("u8")
"""
CASES = {
    "first edge to a node": ("show(align._begin_row, i2, i2, i2, size, size, size, np.int16(1))", "vpmaxsw"),
    "further edges": ("show(align._add_predecessor, i2, i2, i2, size, size, size, np.int16(1))", "vpmaxsw"),
    "bases alone": ("show(align._finish_row, i2, size, size, i2, np.int16(1))", "vpmaxsw"),
    "affine lanes": ("show(lanes._step, stack, stack, 0, 1, u8, u8, row('i1'), 12, lanes.Costs(*[i8] * 5))", "vpmaxsb"),
    "bits of cells": ("show(slices._step, u64, u64, u64, u64, size, u64, u64, u64)", "vpxor"),
    "exact bytes": ("show_row('i1')", "vpmaxsb"),
    "exact words": ("show_row('i2')", "vpmaxsw"),
}
"""A call that shows a kernel's machine code, and an instruction that it must hold for whole vectors."""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="compilation is switched off (NUMBA_DISABLE_JIT)")
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="knows only the instructions of x86-64")
@pytest.mark.parametrize("case", CASES)
def test_the_inner_loop_is_vector_code(tmp_path, case):
    if not llvmlite.binding.get_host_cpu_features().get("avx2"):
        pytest.skip("this processor has no AVX2")
    code, instruction = CASES[case]
    env = {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(tmp_path)}
    env |= {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2"}
    run = subprocess.run([sys.executable, "-c", SHOW + code], env=os.environ | env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    whole, half = (len(re.findall(rf"\b{instruction}\b.*%[{kind}]mm", run.stdout)) for kind in ("yz", "x"))
    assert whole >= 3, "cells are not compared on vectors"
    assert half < whole, "most cells are compared on half vectors"  # LLVM 14 takes them for what is handed on once a row
