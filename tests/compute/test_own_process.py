"""What a process of our own leaves out."""

import os
import subprocess
import sys

import pytest

RUN = """
import sys
import numpy as np
from bellapy.compute import own_process
if "claimed" in sys.argv:
    own_process.claim()
own_process.load_numba()
import numba

@numba.njit
def total(table, some):
    return table.sum() + some[0]

some = np.ones(4, np.uint8)[::2]
some.flags.writeable = False
table = np.arange(6.0).reshape(2, 3)
assert [total(each, some) for each in (table, table.T, table[:, ::2])] == [16, 16, 11]
kinds = [str(kind) for signature in total.signatures for kind in signature]
print(*kinds, sep="; ")
print(*(name in sys.modules for name in ("numpy.ma", "yaml", "coverage")))
"""
KINDS = [f"array(float64, 2d, {layout}); readonly array(uint8, 1d, A)" for layout in "CFA"]


@pytest.mark.parametrize("arguments", [["claimed"], []])
def test_numba_types_arrays_the_same_without_what_it_only_looks_at(tmp_path, arguments):
    told = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0"},
    )  # fmt: skip
    kinds, modules = told.stdout.splitlines()
    assert kinds == "; ".join(KINDS)
    if arguments:
        assert modules == "False False False"
    else:
        assert modules.startswith("True")
