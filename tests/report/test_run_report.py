"""The report: every number has a declared name, and JSON holds all of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from bellapy.jobs.overlap.report import REASONS, Estimates, start_report
from bellapy.report.run_report import SCHEMA, Devices, DeviceUse, Dropped, ReadStage, RunReport, Stage


class Pair(NamedTuple):
    a: int
    b: list[int]


@dataclass(slots=True)
class Learnt:
    pair: Pair
    missing: str | None = None


def test_unknown_names_are_impossible():
    for record in (RunReport(), Stage("x"), ReadStage("read"), DeviceUse("gpu"), Estimates()):
        with pytest.raises(AttributeError):
            record.unheard_of = 1
    with pytest.raises(TypeError):
        Stage("x", bases=1)
    with pytest.raises(KeyError):
        Dropped("repeat").add({"repeats": 1})


def test_dropped_adds_up():
    dropped = start_report(RunReport()).dropped
    dropped.add({"repeat": 2, "overhang": 1})
    dropped.add({"repeat": 3})
    assert list(dropped.to_dict()) == list(REASONS)
    assert dropped.to_dict() == {**dict.fromkeys(REASONS, 0), "repeat": 5, "overhang": 1}
    assert str(dropped) == "5 (repeat), 1 (overhang)"


def test_devices_add_up_and_stay_in_their_order():
    devices = Devices()
    for number, work in ((1, {"paths": 2, "path_s": 0.12345}), (0, {"extensions": 3, "cells": 5 * 10**8, "kernel_s": 0.25})):
        devices.add(number, f"gpu {number}", **work)
        devices.add(number, f"gpu {number}", **work)
    devices.add(2, "idle", idle_s=9.0)
    assert devices.used() == [
        DeviceUse("gpu 0", extensions=6, cells=10**9, kernel_s=0.5, gcups=2.0), DeviceUse("gpu 1", paths=4, path_s=0.2469)
    ]  # fmt: skip
    assert [devices.is_new(reason) for reason in ("full", "full", "wide")] == [True, False, True]


def test_json_holds_everything():
    report = RunReport("bellapy x", "1", {"k": 3}, details=Learnt(Pair(1, [2])))
    report.devices.add(1, "gpu", cells=7, extensions=1)
    report.devices.add(1, "gpu", cells=2)
    with report.stage(ReadStage("read")) as stage:
        stage.bases = 12
    report.count_letters({"R": 1}, 1000)
    report.finish()
    found = json.loads(report.to_json())
    assert found["schema"] == SCHEMA and found["command"] == "bellapy x" and found["parameters"] == {"k": 3}
    assert found["details"] == {"pair": {"a": 1, "b": [2]}, "missing": None} and found["estimates"] == {}
    (read,) = found["stages"]
    assert read["stage"] == "read" and read["bases"] == 12 and "reads" not in read and read["peak_memory_bytes"] > 0
    assert found["devices"][0]["cells"] == 9 and found["letters"] == {"R": 1}
    assert found["wall_s"] >= read["wall_s"] >= 0


def test_a_stage_that_fails_is_not_told():
    report = RunReport()
    with pytest.raises(ZeroDivisionError), report.stage(Stage("x")):
        raise ZeroDivisionError
    assert report.stages == []
