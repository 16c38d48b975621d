"""Stored machine code is used again without what was needed to compile it."""

import os
import subprocess
import sys

MODULE = """
from bellapy.compute.jit import njit

@njit
def in_order(numbers):
    numbers.sort()
    return numbers.sum() / 0.5
"""
RUN = """
import sys
import numpy as np
from kept import in_order
assert in_order(np.arange(100, dtype=np.uint64)[::-1].copy()) == 9900
print("numba.np.arraymath" in sys.modules, sum(in_order.stats.cache_hits.values()))
"""


def test_stored_code_needs_no_modules_for_compiling(tmp_path):
    (tmp_path / "kept.py").write_text(MODULE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    said = [
        subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said == ["True 0\n", "False 1\n"]
