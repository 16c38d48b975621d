"""The device is chosen, and what it needs is loaded, beside the reading."""

from __future__ import annotations

import threading

import pytest

from bellapy.errors import DeviceError
from bellapy.jobs.overlap import first_run


def test_the_cpu_needs_no_thread(monkeypatch):
    monkeypatch.setattr(first_run, "choose_device", lambda wanted: 1 / 0)
    assert first_run.choose_beside("cpu").result(0) == "cpu"


@pytest.mark.parametrize("found", ["cuda", "cpu"])
def test_another_thread_chooses_and_loads(monkeypatch, found):
    chosen, loaded, begun = threading.Event(), threading.Event(), []

    def choose(wanted):
        begun.append(wanted)
        assert chosen.wait(60)
        return found

    monkeypatch.setattr(first_run, "choose_device", choose)
    monkeypatch.setattr(first_run, "load_ahead", loaded.set)
    choice = first_run.choose_beside("auto")
    assert not choice.done()
    chosen.set()
    assert choice.result(60) == found and begun == ["auto"]
    assert loaded.wait(60 if found == "cuda" else 0.1) == (found == "cuda")


def test_what_goes_wrong_is_told(monkeypatch):
    def fail(wanted):
        raise DeviceError("none is there")

    monkeypatch.setattr(first_run, "choose_device", fail)
    with pytest.raises(DeviceError, match="none is there"):
        first_run.choose_beside("cuda").result(60)


def test_all_tasks_to_load_have_a_name():
    """Of a function that is there; those of GPUs are done in tests/compute/gpu/test_ahead_cuda.py."""
    first_run.load_program()
    for task in (first_run.PROGRAM, *first_run.ESTIMATE):
        module, name = task.split(":")
        assert module == first_run.__name__ and callable(getattr(first_run, name))
