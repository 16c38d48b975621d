"""Kernels compiled ahead: each task is done once, those that fail hold nobody up, and none needs more than itself."""

from __future__ import annotations

import threading

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

FINE, OTHER, FAILING = "time:sleep:0", "time:sleep:1", "time:sleep:-1"


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A machine with a driver and an empty cache; call it for another run of the program."""
    driver = tmp_path / "version"
    driver.write_text("a driver")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(ahead, "DRIVER_FILE", driver)

    def run():
        for helper in ahead._helpers:
            helper.communicate()
        for name in ("_helpers", "_begun", "_done"):
            monkeypatch.setattr(ahead, name, type(getattr(ahead, name))())

    run()
    yield run
    run()


def test_tasks_are_done_once_and_failures_are_told(fresh):
    ahead.start([FINE, FAILING])
    assert ahead._begun == {FINE, FAILING}
    ahead.wait(FINE, "not:begun")
    assert ahead.is_ready(FINE) and ahead.is_ready("not:begun")
    ahead.wait(FAILING, FINE)
    assert ahead._done >= {FINE, FAILING}
    fresh()
    ahead.start([FINE, FAILING])
    assert not ahead._begun and ahead.is_ready(FINE)
    ahead.wait(FINE)
    ahead.start([FINE, OTHER])
    ahead.start([FAILING])
    assert ahead._begun == {OTHER}
    ahead.wait(OTHER)


def test_without_a_driver_nothing_begins(fresh, monkeypatch, tmp_path):
    monkeypatch.setattr(ahead, "DRIVER_FILE", tmp_path / "none")
    ahead.start([FINE])
    ahead.wait(FINE)
    assert not ahead._begun


def test_what_is_ready_is_loaded_in_a_thread(fresh, monkeypatch, tmp_path):
    done, last = [], threading.Event()

    def do(task):
        done.append((task, threading.current_thread() is threading.main_thread()))
        if task == FAILING:
            raise MemoryError
        if task == OTHER:
            last.set()

    monkeypatch.setattr(ahead, "do", do)
    monkeypatch.setattr(ahead, "is_ready", lambda task: task != "not:ready")
    ahead.load([FINE, "not:ready", FAILING, OTHER])
    assert last.wait(10) and done == [(FINE, False), (FAILING, False), (OTHER, False)]
    monkeypatch.setattr(ahead, "DRIVER_FILE", tmp_path / "none")
    monkeypatch.setattr(ahead, "Thread", lambda **given: pytest.fail("there is no GPU"))
    ahead.load([FINE])


def test_gpus_are_let_go_of_when_nothing_is_loaded_any_more(fresh, monkeypatch):
    left, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(ahead.driver.gpus, "close", left.set)
    monkeypatch.setattr(ahead, "_loading", [])
    monkeypatch.setattr(ahead, "do", lambda task: may_end.wait(10))
    ahead.leave()
    monkeypatch.setattr(ahead.own_process, "_claimed", True)
    ahead.leave()
    ahead.load([FINE])
    ahead.leave()
    assert not left.wait(0.05), "nothing was loaded, or is not yet"
    may_end.set()
    ahead._loading[0].join(10)
    monkeypatch.setattr(ahead.own_process, "_claimed", False)
    ahead.leave()
    assert not left.wait(0.05), "the process is the caller's"
    monkeypatch.setattr(ahead.own_process, "_claimed", True)
    ahead.leave()
    assert left.wait(10)


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
