"""The inspector on a GPU, or in Numba's simulator: the same ends as on the CPU, and what it hands back."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import mutate, random_bases

from bellapy.compute.gpu.devices import find_gpus
from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.errors import DeviceError
from bellapy.params.wga import DEFAULT_SCORES
from bellapy.records.bases import encode
from bellapy.report.run_report import Devices

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.compute.gpu.ops import SIMULATED
from bellapy.engines.ydrop import cuda_inspect, inspect_cuda

LENGTHS, DROPS, MANY = ((25, 50), (300,), 1) if SIMULATED else ((300, 3000, 10_000), (900, 9400), 100)
AROUND = 70 if SIMULATED else 4000


def texts(rng, length: int, errors: float) -> tuple[np.ndarray, np.ndarray]:
    """Target and query with unrelated sequence around."""
    text = random_bases(rng, length)
    around = [random_bases(rng, AROUND) for _ in range(4)]
    return encode(around[0] + text + around[1]), encode(around[2] + mutate(rng, text, errors) + around[3])


def n_like_the_cpu(target: np.ndarray, query: np.ndarray, at: np.ndarray, step: int, drop: int) -> int:
    """How many extensions the GPU ends, all as the CPU does."""
    sides = inspect_cuda.sides_of(target, query, at, at, step)
    ends = inspect_cuda.inspect(target, query, sides, DEFAULT_SCORES, drop, Devices())
    extender, walls = Extender(DEFAULT_SCORES, drop), no_walls(len(target) + len(query))
    for x in np.flatnonzero(ends.done):
        place = int(at[x])
        lengths = (len(query) - place, len(target) - place) if step > 0 else (place + 1, place + 1)
        end = extender.inspect(Sides(query, target, place, place, step, *lengths), walls)
        assert (ends.score[x], ends.r[x]) == (end.score, end.r) and end.r <= ends.last[x]
    return int(ends.done.sum())


@pytest.mark.parametrize("drop", DROPS)
def test_ends_are_those_of_the_cpu(drop):
    rng = np.random.default_rng(drop)
    n_done = 0
    for length, errors in zip(LENGTHS, (0.1, 0.25, 0.2), strict=False):
        target, query = texts(rng, length, errors)
        at = AROUND + rng.integers(0, 10, MANY)
        n_done += sum(n_like_the_cpu(target, query, at, step, drop) for step in (1, -1))
    assert n_done > 2 * MANY


def test_what_is_near_unknown_bases_is_handed_back():
    codes = np.array([4, 0, 1, 2, 4, 3, 3, 4, 1], np.uint8)
    places = np.array([1, 3, 5, 8])
    assert inspect_cuda.free_bases(codes, places, 1).tolist() == [3, 1, 2, 1]
    assert inspect_cuda.free_bases(codes, places, -1).tolist() == [1, 3, 1, 1]
    sides = inspect_cuda.sides_of(codes, codes, places[:1], places[:1], 1)
    assert not inspect_cuda.inspect(codes, codes, sides, DEFAULT_SCORES, 900, Devices()).done.any()


@pytest.mark.skipif(not SIMULATED, reason="compiled kernels keep their bound")
def test_long_extensions_are_handed_back(monkeypatch):
    rng = np.random.default_rng(4)
    target, query = texts(rng, 60, 0.0)
    at = np.array([AROUND])
    sides = inspect_cuda.sides_of(target, query, at, at, 1)
    assert inspect_cuda.inspect(target, query, sides, DEFAULT_SCORES, 300, Devices()).done.all()
    monkeypatch.setattr(cuda_inspect, "MOST_R", 32)
    cuda_inspect.make_kernel.cache_clear()
    assert not inspect_cuda.inspect(target, query, sides, DEFAULT_SCORES, 300, Devices()).done.any()
    cuda_inspect.make_kernel.cache_clear()
