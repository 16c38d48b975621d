"""What is told while something takes long: where nobody sees a bar, a line a minute."""

from __future__ import annotations

import logging
import time

import pytest

from bellapy.report import progress
from bellapy.report.log import logger
from bellapy.report.progress import Doing, doing, tell_every_minute
from bellapy.report.run_report import ReadStage, RunReport


@pytest.mark.parametrize(
    ("total", "done", "seconds", "line"),
    [
        (None, 0, 60, "align: at work for 1 min"),
        (None, 12345, 180, "align: at work for 3 min, 12,345 done"),
        (200, 50, 120, "align: at work for 2 min, 25 % done, about 6 min left"),
        (200, 198, 100, "align: at work for 2 min, 99 % done, about 1 s left"),
        (200, 300, 100, "align: at work for 2 min, 100 % done, about 0 s left"),
        (200, 1, 60, "align: at work for 1 min, 1 done"),
        (100, 10, 3600, "align: at work for 60 min, 10 % done, about 9.0 h left"),
    ],
)
def test_lines(monkeypatch, total, done, seconds, line):
    monkeypatch.setattr(progress.time, "monotonic", lambda: 1000.0 + seconds)
    assert Doing("align", total, done=done, begun=1000.0).line() == line


@pytest.fixture
def told(monkeypatch):
    """Lines of the log; one each 20 milliseconds, while the test runs."""
    lines: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    keeper = Keeper()
    monkeypatch.setattr(progress, "INTERVAL", 0.02)
    monkeypatch.setattr(progress, "_doing", [])
    logger.addHandler(keeper)
    before = logger.level
    logger.setLevel(logging.INFO)
    yield lines
    logger.setLevel(before)
    logger.removeHandler(keeper)
    monkeypatch.undo()  # the thread that is left sleeps for minutes, and has nothing to tell


def wait_for(lines, text):
    end = time.monotonic() + 20
    while not any(line.startswith(text) for line in lines):
        assert time.monotonic() < end, lines
        time.sleep(0.01)


def test_every_stage_is_told_of(told):
    tell_every_minute()
    with RunReport("", "").stage(ReadStage("read")):
        wait_for(told, "read: at work for 0 s")
        with progress.progress("align", 100) as advance:
            advance(50)
            wait_for(told, "align: at work for 0 s, 50 % done, about 0 s left")
        told.clear()
        wait_for(told, "read: at work for 0 s")


def test_what_has_a_bar_needs_no_line(told):
    tell_every_minute()
    with doing("align", 100, has_bar=True):
        time.sleep(0.2)
    assert not told
