"""Stored kernels start without what only the compiler of numba-cuda needs."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("numba_cuda")

from bellapy.compute.gpu.ops import SIMULATED

if SIMULATED:
    pytest.skip("the simulator stores nothing", allow_module_level=True)

from numba.cuda.dispatcher import CUDACache

from bellapy.compute.gpu.stored import StoredKernels


class Context:
    """Of a target; it must not be asked for its rules."""

    def refresh(self):
        raise AssertionError("thousands of rules are entered")


def kernel(numbers):
    numbers[0] = 1


@pytest.mark.parametrize("stored", ["a kernel", None])
def test_rules_wait_for_the_compiler(monkeypatch, stored):
    monkeypatch.setattr(CUDACache, "_load_overload", lambda self, signature, context: stored)
    monkeypatch.setitem(sys.modules, "numba.cuda.np.arraymath", sys)  # stands for it, if it is not there yet
    cache = StoredKernels(kernel)
    assert isinstance(cache, CUDACache) and cache.load_overload("types", Context()) == stored
