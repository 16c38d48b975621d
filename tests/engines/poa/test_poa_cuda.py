"""Windows on GPUs: on a GPU if there is one, else in Numba's simulator, as in test_extend_cuda.py; so these cases are small.

The simulator runs no code for CPUs: there the naive graph is all that kernels are compared with.
"""

from __future__ import annotations

import naive_poa as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poa_windows import SCORINGS, windows

from bellapy.compute.gpu.devices import find_gpus
from bellapy.compute.resources import Resources
from bellapy.errors import DeviceError
from bellapy.params.correct import PoaScoring

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.engines.poa import batch_cuda
from bellapy.engines.poa.groups import NOT_SOLVED, Groups, make_aligner

pytestmark = pytest.mark.usefixtures("quick_threads")


def groups_of(groups) -> Groups:
    lengths = [len(sequence) for group in groups for sequence in group]
    codes = [base for group in groups for sequence in group for base in sequence]
    firsts = np.cumsum([0] + [len(group) for group in groups])
    return Groups(np.array(codes, np.uint8), np.cumsum([0, *lengths]), firsts)


def align(groups, scoring=PoaScoring(), with_alignment=False):  # noqa: B008
    return batch_cuda.align_groups(groups_of(groups), scoring, with_alignment, Resources(1, "cuda"))


def check(groups, scoring=PoaScoring()) -> None:  # noqa: B008
    table = groups_of(groups)
    solved = align(groups, scoring)
    assert (solved.sizes != NOT_SOLVED).all()
    for w, group in enumerate(groups):
        consensus, scores, _ = naive.window(group, *scoring)
        found = solved.window(table, w)
        assert found.scores.tolist() == scores
        assert found.consensus.tolist() == consensus


@settings(max_examples=12)
@given(st.lists(windows(longest=12, most=4), min_size=1, max_size=3), st.sampled_from(SCORINGS))
def test_equals_the_naive_graph(groups, scoring):
    check(groups, scoring)


def noisy(rng, true, n):
    copies = []
    for _ in range(n):
        copy = np.where(rng.random(len(true)) < 0.06, rng.integers(0, 4, len(true)), true)[rng.random(len(true)) > 0.07]
        copies.append(np.insert(copy, rng.integers(0, max(1, len(copy)), 3), rng.integers(0, 4, 3)).tolist())
    return copies


@pytest.mark.parametrize("length", [30, 70])
def test_all_lanes_and_each_kernel(length, rng):
    true = rng.integers(0, 4, length)
    check([[*noisy(rng, true, 3), true[length // 2 :].tolist()]])
