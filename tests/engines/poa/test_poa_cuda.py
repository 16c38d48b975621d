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

from bellapy.engines.poa import consensus as module
from bellapy.engines.poa.consensus import make_aligner
from bellapy.engines.poa.gpu import batch as batch_cuda
from bellapy.engines.poa.groups import NOT_SOLVED, Groups
from bellapy.engines.poa.windows import GAP_LETTER, Window

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


@settings(max_examples=8)
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
    check([[*noisy(rng, true, 2), true[length // 2 :].tolist()]])


def test_columns_are_those_of_the_naive_graph(rng):
    groups = [noisy(rng, rng.integers(0, 4, 14), 4), [[0, 1], [], [1]]]
    table, solved = groups_of(groups), align(groups, with_alignment=True)
    for w, group in enumerate(groups):
        found, (consensus, _, graph) = solved.window(table, w), naive.window(group, *PoaScoring())
        assert found.alignment.shape == (len(group), len(graph.columns))
        for row, sequence in zip(found.alignment.tolist(), group, strict=True):
            assert [code for code in row if code != GAP_LETTER] == sequence
        for column, nodes in zip(found.alignment.T.tolist(), graph.columns, strict=True):
            assert set(column) - {GAP_LETTER} == set(nodes)
        assert found.consensus.tolist() == consensus
        bases = [found.alignment[:, column].tolist() for column in found.columns]
        assert all(base in column for base, column in zip(consensus, bases, strict=True))


def test_a_graph_that_outgrows_its_room_is_done_again(rng, monkeypatch):
    monkeypatch.setattr(batch_cuda, "USUAL", 0)
    monkeypatch.setattr(batch_cuda, "LEAST_PART", 1)
    check([[rng.integers(0, 4, 9).tolist() for _ in range(3)] for _ in range(2)])


def test_what_fits_no_kernel_goes_to_the_cpu(rng, monkeypatch):
    class Naive:
        def __init__(self, scoring, with_alignment):
            self.scoring = scoring

        def align(self, codes, offsets):
            group = [codes[a:b].tolist() for a, b in zip(offsets, offsets[1:], strict=False)]
            consensus, scores, _ = naive.window(group, *self.scoring)
            return Window(np.array(consensus, np.uint8), np.array(scores), None, None)

    monkeypatch.setattr(module, "Aligner", Naive)
    monkeypatch.setattr(batch_cuda, "COLUMNS", {4: 12})
    groups = [[[0, 1, 2]], [rng.integers(0, 4, 12).tolist()] * 2, [], [[]], [[3, 2, 1, 0], [3, 1, 0]]]
    resources = Resources(1, "cuda")
    found = list(make_aligner(PoaScoring(), False, resources)(groups_of(groups)))
    for group, window in zip(groups, found, strict=True):
        assert window.consensus.tolist() == naive.window(group, *PoaScoring())[0]
    assert [use.windows for use in resources.devices.used()] == [4, 1]


def test_scores_too_large_for_16_bits_are_left():
    solved = align([[[0, 1, 2], [0, 2]]], PoaScoring(100, -100, -100))
    assert solved.sizes.tolist() == [NOT_SOLVED]
