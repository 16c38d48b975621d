"""Tasks ahead of their need: each is done once, of several runs by one, and those that fail hold nobody up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from cases import IMPORTS

from bellapy.compute.gpu import ahead
from bellapy.compute.locks import lock_file

FINE, OTHER, FAILING = "time:sleep:0", "time:sleep:1", "time:sleep:-1"
SLOW = """
import os, time
def first():
    if not os.path.exists("at work"):
        with open("new", "w") as file:
            file.write(str(os.getpid()))
        os.rename("new", "at work")
        time.sleep(60)
    second("first")
def second(name="second"):
    with open("done", "a") as file:
        file.write(name + " ")
"""


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


def test_of_several_first_runs_one_does_a_task(fresh, tmp_path):
    """The others wait until it is done, or until that run has been killed."""
    ahead.folder().mkdir(parents=True)
    (tmp_path / "slow.py").write_text(SLOW)
    command = [sys.executable, "-m", ahead.MODULE, "stamp", "2", "slow:first", "slow:second"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), IMPORTS])}
    runs = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    while not (tmp_path / "at work").exists() or not (tmp_path / "done").exists():
        assert all(run.poll() is None for run in runs)
        time.sleep(0.01)
    time.sleep(1)  # others come to it
    assert (tmp_path / "done").read_text() == "second "
    os.kill(int((tmp_path / "at work").read_text()), signal.SIGKILL)
    for run in runs:
        assert sorted(run.communicate(timeout=50)[0].split()) == [b"slow:first", b"slow:second"]
    assert (tmp_path / "done").read_text() == "second first "


def test_nobody_waits_for_ever(fresh, monkeypatch, tmp_path):
    """For a run that was stopped by Ctrl-Z, or a lock that a lost machine left."""
    ahead.folder().mkdir(parents=True)
    monkeypatch.setattr(ahead, "PATIENCE", 0.2)
    mark, done = ahead._mark(FINE, "stamp"), []
    monkeypatch.setattr(ahead, "do", done.append)
    with open(mark, "ab") as held:
        assert lock_file(held.fileno())
        ahead._do_once("stamp", FINE)
    assert done == [FINE] and ahead._is_tried(mark)


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
