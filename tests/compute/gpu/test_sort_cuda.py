"""Scans and sorts of a GPU: on a GPU if there is one, else in Numba's simulator (see test_extend_cuda.py)."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bellapy.compute.gpu.devices import known_gpus
from bellapy.errors import DeviceError

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.compute.gpu.scan import TILE, scan, total_of
from bellapy.compute.gpu.sort import sort_both, sort_words
from bellapy.report.run_report import Devices

pytestmark = pytest.mark.usefixtures("quick_threads")
MANY = 2 * TILE + 5 if SIMULATED else 1_000_003


@pytest.mark.parametrize("n", [1, TILE - 1, TILE, MANY])
def test_scan(rng, n):
    numbers = rng.integers(0, 1 << 32, n).astype(np.uint32)
    with desk(Devices()) as its_desk:
        out, sums = scan(its_desk, its_desk.send(numbers))
        ends = np.cumsum(numbers, dtype=np.int64)
        assert_array_equal(its_desk.fetch(out), ends - numbers)
        assert total_of(its_desk, sums) == ends[-1]


@pytest.mark.parametrize(("first", "end"), [(5, 9), (62, 64), (7, 7)] if SIMULATED else [(0, 64), (3, 4), (9, 40), (7, 7)])
@pytest.mark.parametrize("n", [0, 1, TILE + 1, MANY])
@pytest.mark.parametrize("different", [2, 1 << 20])
def test_sort_by_some_bits_keeps_the_order_of_equal_words(rng, n, first, end, different):
    digits = rng.integers(0, different, n).astype(np.uint64) << np.uint64(first)
    words = digits ^ (rng.integers(0, 1 << 63, n).astype(np.uint64) if different > 2 else np.uint64(0))
    words ^= np.arange(n, dtype=np.uint64) << np.uint64(41)
    key = (words >> np.uint64(first)) & np.uint64((1 << (end - first)) - 1)
    with desk(Devices()) as its_desk:
        found, _ = sort_words(its_desk, its_desk.send(words), its_desk.empty(n, np.uint64), n, first, end)
        assert_array_equal(its_desk.fetch(found), words[np.argsort(key, kind="stable")])


def test_what_words_carry_goes_with_them(rng):
    words, carried = rng.integers(0, 1 << 20, MANY).astype(np.uint64), np.arange(MANY, dtype=np.uint32)
    order = np.argsort(words >> np.uint64(3), kind="stable")
    with desk(Devices()) as its_desk:
        both = [(its_desk.send(some), its_desk.empty(MANY, some.dtype)) for some in (words, carried)]
        found = sort_both(its_desk, *both, MANY, 3, 20)
        assert_array_equal(its_desk.fetch(found[0][0]), words[order])
        assert_array_equal(its_desk.fetch(found[1][0]), order)
