"""Values that differ, and the one in the middle, as NumPy finds them; and that a run does without masked arrays."""

import subprocess
import sys

import numpy as np
import pytest

from bellapy.compute.sorting import distinct, median

SIZES = (1, 2, 3, 10, 11, 1000)


@pytest.mark.parametrize("n", (0, *SIZES))
def test_values_that_differ(rng, n):
    for values in (rng.integers(0, 20, n), rng.integers(-3, 3, n).astype(np.int32), np.zeros(n, np.uint64)):
        found = distinct(values)
        assert found.dtype == values.dtype
        assert found.tolist() == np.unique(values).tolist()


@pytest.mark.parametrize("n", SIZES)
def test_the_value_in_the_middle(rng, n):
    for values in (rng.random(n), rng.integers(0, 3, n) / 3):
        assert median(values) == np.median(values)


def test_no_masked_arrays_are_loaded():
    code = "from bellapy.compute.sorting import distinct, median; import numpy, sys; distinct(numpy.ones(3, int)); "
    code += "median(numpy.ones(2)); print('numpy.ma' in sys.modules)"
    start = "from bellapy.compute import own_process; own_process.claim(); own_process.load_numba(); "
    assert subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True).stdout.strip() == "False"
