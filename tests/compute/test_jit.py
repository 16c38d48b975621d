"""Functions are compiled as seldom as can be: once for all constants, inner ones only into their callers."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import bellapy

CALLS = """
import numpy as np
from bellapy.compute.jit import njit, njit_inner

@njit_inner
def add(a, b):
    return a + b

@njit_inner
def add_pair(pair, number):
    return add(pair[0], number) + add(pair[1], 3)

@njit
def call(number):
    return add_pair((1, number), number) + add_pair((number, 2), 1)

print(call(5), call(np.int64(6)), len(add.overloads), len(add_pair.overloads))
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compilation is switched off (NUMBA_DISABLE_JIT)")
def test_inner_functions_are_compiled_once_and_not_kept(tmp_path):
    """A constant takes the code for numbers, and the folder of compiled code holds what Python calls only."""
    program, kept = tmp_path / "calls.py", tmp_path / "kept"
    program.write_text(CALLS)
    env = os.environ | {"PYTHONPATH": str(Path(bellapy.__file__).parents[1]), "NUMBA_CACHE_DIR": str(kept)}
    for _ in range(2):
        run = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert run.stdout.split()[:2] == [str(1 + 5 + 5 + 3 + 5 + 1 + 2 + 3), str(1 + 6 + 6 + 3 + 6 + 1 + 2 + 3)]
        compiled = run.stdout.split()[2:]
        assert compiled in (["1", "1"], ["0", "0"])  # the second time, all comes from the folder
    assert {path.name.split("-")[0] for path in kept.rglob("*.nbc")} == {"calls.call"}
