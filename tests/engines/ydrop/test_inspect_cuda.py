"""The inspector on a GPU, or in Numba's simulator: the same ends as on the CPU, and what it hands back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from strategies import mutate, random_bases

from bellapy.compute.gpu.devices import find_gpus
from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.errors import DeviceError
from bellapy.params.wga import DEFAULT_SCORES, GapScores
from bellapy.records.bases import encode
from bellapy.report.run_report import Devices

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.compute.gpu.ops import SIMULATED
from bellapy.engines.ydrop.gpu import inspect as inspect_cuda
from bellapy.engines.ydrop.gpu import inspect_kernels as cuda_inspect

LENGTHS, MANY = ((30,), 1) if SIMULATED else ((300, 3000, 10_000), 100)
AROUND = 70 if SIMULATED else 4000


LOW = GapScores(DEFAULT_SCORES.matrix // 10, 40, 3)
"""Next to the drop these rise so little in a chunk that most chunks need no watch for a better score."""
STEEP = GapScores(np.where(np.eye(5, dtype=bool), 127, -127).astype(DEFAULT_SCORES.matrix.dtype), 25_000, 890)
"""Gaps that cost nearly as much as the numbers of cells allow."""
CASES = (
    ((DEFAULT_SCORES, 300), (LOW, 70), (STEEP, 1500))
    if SIMULATED
    else ((DEFAULT_SCORES, 900), (DEFAULT_SCORES, 9400), (LOW, 940), (STEEP, 30_000))
)


def texts(rng, length: int, errors: float) -> tuple[np.ndarray, np.ndarray]:
    """Target and query with unrelated sequence around."""
    text = random_bases(rng, length)
    around = [random_bases(rng, AROUND) for _ in range(4)]
    return encode(around[0] + text + around[1]), encode(around[2] + mutate(rng, text, errors) + around[3])


def n_like_the_cpu(target: np.ndarray, query: np.ndarray, at: np.ndarray, step: int, scores: GapScores, drop: int) -> int:
    """How many extensions the GPU ends, all as the CPU does."""
    sides = inspect_cuda.sides_of(target, query, at, at, step)
    ends = inspect_cuda.inspect(target, query, sides, scores, drop, Devices())
    extender, walls = Extender(scores, drop), no_walls(len(target) + len(query))
    for x in np.flatnonzero(ends.done):
        place = int(at[x])
        lengths = (len(query) - place, len(target) - place) if step > 0 else (place + 1, place + 1)
        end = extender.inspect(Sides(query, target, place, place, step, *lengths), walls)
        assert (ends.score[x], ends.r[x]) == (end.score, end.r) and end.r <= ends.last[x]
    return int(ends.done.sum())


@pytest.mark.parametrize(("scores", "drop"), CASES)
def test_ends_are_those_of_the_cpu(scores, drop):
    assert inspect_cuda.fits(scores, drop)
    rng = np.random.default_rng(drop)
    n_done = 0
    for length, errors in zip(LENGTHS, (0.1, 0.25, 0.2), strict=False):
        target, query = texts(rng, length, errors)
        at = AROUND + rng.integers(0, 10, MANY)
        n_done += sum(n_like_the_cpu(target, query, at, step, scores, drop) for step in (1, -1))
    assert n_done > 2 * MANY or SIMULATED and n_done == 2


def test_scores_that_cells_cannot_hold_are_refused():
    matrix = DEFAULT_SCORES.matrix
    assert inspect_cuda.fits(DEFAULT_SCORES, 9400)
    for scores, drop in (
        (GapScores(2 * matrix, 400, 30), 9400), (GapScores(matrix, 28_650, 30), 9400),
        (GapScores(matrix, 400, 4000), 9400), (DEFAULT_SCORES, 32_700),
    ):  # fmt: skip
        assert not inspect_cuda.fits(scores, drop)


def test_inspections_side_by_side():
    codes = np.zeros(9, np.uint8)
    sides = inspect_cuda.sides_of(codes, codes, np.array([3]), np.array([3]), 1)
    with ThreadPoolExecutor() as pool:
        both = list(pool.map(lambda _: inspect_cuda.inspect(codes, codes, sides, DEFAULT_SCORES, 900, Devices()), range(2)))
    assert not any(ends.done.any() for ends in both)


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
