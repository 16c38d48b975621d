"""The inspector on a GPU, or in Numba's simulator: the same ends as on the CPU, and what it hands back."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import mutate, random_bases

cuda = pytest.importorskip("numba.cuda", reason="needs numba-cuda")
if not cuda.is_available():
    pytest.skip("needs a GPU or Numba's simulator", allow_module_level=True)

from bellapy.engines.ydrop import inspect_cuda
from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.params.wga import DEFAULT_SCORES
from bellapy.records.bases import encode


def texts(rng, length: int, errors: float) -> tuple[np.ndarray, np.ndarray]:
    """Target and query with unrelated sequence around."""
    text = random_bases(rng, length)
    around = [random_bases(rng, 60) for _ in range(4)]
    return encode(around[0] + text + around[1]), encode(around[2] + mutate(rng, text, errors) + around[3])


@pytest.mark.parametrize("drop", [400, 900])
def test_ends_are_those_of_the_cpu(drop):
    rng = np.random.default_rng(drop)
    extender, n_done = Extender(DEFAULT_SCORES, drop), 0
    for length, errors in ((30, 0.1), (60, 0.25)):
        target, query = texts(rng, length, errors)
        for step in (1, -1):
            t = q = np.array([60, 70, 75], np.int64)
            sides = inspect_cuda.sides_of(target, query, t, q, step)
            ends = inspect_cuda.inspect(target, query, sides, DEFAULT_SCORES, drop)
            for x in range(len(t)):
                at = int(t[x])
                lengths = (len(query) - at, len(target) - at) if step > 0 else (at + 1, at + 1)
                walls = no_walls(len(target) + len(query))
                end = extender.inspect(Sides(query, target, at, at, step, *lengths), walls)
                if ends.done[x]:
                    assert (ends.score[x], ends.r[x]) == (end.score, end.r)
                    assert end.r <= ends.last[x]
                    n_done += 1
    assert n_done > 6 and extender.n_cells


def test_what_is_near_unknown_bases_is_handed_back():
    codes = np.array([4, 0, 1, 2, 4, 3, 3, 4, 1], np.uint8)
    places = np.array([1, 3, 5, 8])
    assert inspect_cuda.free_bases(codes, places, 1).tolist() == [3, 1, 2, 1]
    assert inspect_cuda.free_bases(codes, places, -1).tolist() == [1, 3, 1, 1]
    sides = inspect_cuda.sides_of(codes, codes, places[:1], places[:1], 1)
    assert not inspect_cuda.inspect(codes, codes, sides, DEFAULT_SCORES, 900).done.any()
