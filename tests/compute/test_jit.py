"""Functions are compiled as seldom as can be: once for all constants, inner ones only into their callers."""

import os
import subprocess
import sys

import pytest
from cases import IMPORTS

from bellapy.compute.late import COMPILES

needs_compiler = pytest.mark.skipif(not COMPILES, reason="compilation is switched off (NUMBA_DISABLE_JIT)")

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

print(call(5), call(np.int64(6)), *(f._made and len(f.made().overloads) for f in (add, add_pair)))
"""


@needs_compiler
def test_inner_functions_are_compiled_once_and_not_kept(tmp_path):
    """A constant takes the code for numbers, and the folder of compiled code holds what Python calls only."""
    program, kept = tmp_path / "calls.py", tmp_path / "kept"
    program.write_text(CALLS)
    env = os.environ | {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(kept)}
    for _ in range(2):
        run = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert run.stdout.split()[:2] == [str(1 + 5 + 5 + 3 + 5 + 1 + 2 + 3), str(1 + 6 + 6 + 3 + 6 + 1 + 2 + 3)]
        compiled = run.stdout.split()[2:]
        assert compiled in (["1", "1"], ["None", "None"])  # the second time, all comes from the folder
    assert {path.name.rpartition("-")[0] for path in kept.iterdir()} == {"code-__main__.call"}


LATER = """
import sys
import numpy as np
from bellapy.compute.jit import njit

@njit
def sums(words):
    totals = np.zeros(2, np.int64)
    for word in words:
        totals[word & 1] += word
    return totals

@njit
def twice(words):
    return 2 * sums(words)

words = np.arange(5)
print(*sums(words), "numba" in sys.modules)
if sys.argv[1:]:
    print(*twice(words), "numba" in sys.modules)
"""


@needs_compiler
def test_stored_code_comes_back_without_numba(tmp_path):
    """It is loaded to compile, also where a caller is compiled later."""
    program = tmp_path / "later.py"
    program.write_text(LATER)
    env = os.environ | {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}

    def told(*arguments):
        run = subprocess.run([sys.executable, program, *arguments], env=env, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()

    assert told() == ["6 4 True"]
    assert told() == ["6 4 False"]
    assert told("compile the caller") == ["6 4 False", "12 8 True"]
    assert told("load it") == ["6 4 False", "12 8 False"]
    os.utime(program)
    assert told() == ["6 4 False"], "only its time stamp has changed"
    program.write_text(LATER.replace("return 2 * sums", "return 1 + sums"))
    assert told() == ["6 4 True"], "the source has changed"


@needs_compiler
def test_definitions_load_nothing():
    """A command defines far more functions than it calls."""
    jobs = ", ".join(f"bellapy.jobs.{job}.pipeline" for job in ("overlap", "map", "correct", "exact", "wga"))
    code = f"import sys, bellapy.jobs.windows, bellapy.jobs.pairwise, {jobs}; print('numba' in sys.modules)"
    env = os.environ | {"PYTHONPATH": IMPORTS}
    run = subprocess.run([sys.executable, "-c", code], env=env, cwd="/", capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["False"]
