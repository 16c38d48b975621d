"""Kernels compiled ahead: every task can be done, and needs no more than itself."""

from __future__ import annotations

import pytest

pytest.importorskip("numba_cuda")

from bellapy.cli import correct
from bellapy.compute.gpu import ahead
from bellapy.compute.gpu.devices import known_gpus
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.engines.linear.extend_cuda import CLASSES, loading_of, ready_sizes
from bellapy.engines.ydrop import foresight
from bellapy.errors import DeviceError
from bellapy.jobs.overlap import columns_cuda, first_run, products_cuda


def test_what_the_job_waits_for_is_what_it_began():
    tasks = first_run.tasks(with_paths=True)
    assert set(columns_cuda.LOADING) | set(products_cuda.LOADING) <= set(tasks)
    sizes = [
        loading_of(its[:2], f"bellapy.engines.linear.{name}") for name in ("extend_cuda", "trace_cuda") for its in CLASSES
    ]
    assert {*sizes, *first_run.ESTIMATE, first_run.JUDGING} <= set(tasks) and len(set(tasks)) == len(tasks)
    judging = joining = 1
    assert SIMULATED or len(sizes) + len(first_run.COUNTING) + len(first_run.ESTIMATE) + judging + joining == len(tasks)
    assert set(first_run.tasks(with_paths=False)) < set(tasks)


@pytest.mark.usefixtures("quick_threads")
@pytest.mark.parametrize(
    "task",
    [
        *(task for task in first_run.tasks(with_paths=True) if not task[-1:].isdigit() or task[-1] < "2"),
        *correct.KERNELS,
        foresight.KERNELS,
    ],
)
def test_every_task_can_be_done(task):
    try:
        known_gpus()
    except DeviceError as error:
        pytest.skip(f"no GPU: {error}")
    ahead.do(task)


def test_windows_that_are_not_ready_are_left_out_but_the_widest(monkeypatch):
    sizes = [its[:2] for its in CLASSES]
    assert ready_sizes(sizes) == sizes and ready_sizes([]) == []
    monkeypatch.setattr(ahead, "is_ready", lambda task: task != loading_of(sizes[0]))
    assert ready_sizes(sizes) == sizes[1:]
    monkeypatch.setattr(ahead, "is_ready", lambda task: False)
    assert ready_sizes(sizes) == sizes[-1:]
