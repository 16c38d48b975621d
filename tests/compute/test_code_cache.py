"""Machine code on the disk: that of other sources is never taken, and nothing goes wrong where none can be kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import IMPORTS

from bellapy.compute import code_cache, compiling
from bellapy.compute.code_cache import PACKAGE, PREFIX, UNUSED_DAYS, base, can_keep, digest, folder
from bellapy.compute.compiling import watch_compilation
from bellapy.compute.jit import COMPILES, njit
from bellapy.report.log import collect_warnings, logger

needs_compiler = pytest.mark.skipif(not COMPILES, reason="compilation is switched off (NUMBA_DISABLE_JIT)")


@pytest.fixture
def place(monkeypatch, tmp_path):
    """An empty folder for compiled code."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    can_keep.cache_clear()
    yield tmp_path / "kept"
    can_keep.cache_clear()


def double(number):
    return 2 * number


def code_in(place: Path) -> list[str]:
    return sorted(path.name for path in place.rglob("*.nbc"))


@needs_compiler
def test_code_is_kept_for_each_kind_of_arguments(place):
    for _ in range(2):
        function = njit(double)
        assert [function(4), function(2.5), function(-1)] == [8, 5.0, -2]
        assert len(code_in(place)) == 2
    assert list(place.iterdir()) == [folder()] and folder().name == f"{PREFIX}{digest()}"


class Compiled:
    """How long it took, once there was something to compile."""

    compile_s = 0.0


@needs_compiler
@pytest.mark.parametrize(("long", "said"), [(0, ["compiling what this command needs; later runs load it"]), (60, [])])
def test_compiling_is_told_once_if_it_takes_long_and_timed(place, monkeypatch, long, said):
    report, function, told = Compiled(), njit(double), []
    monkeypatch.setattr(logger, "info", lambda text, **_: told.append(text))
    monkeypatch.setattr(compiling, "LONG", long)
    with watch_compilation(report):
        function(3)
        first = report.compile_s
        function(3)
        assert 0 < first == report.compile_s
        function(2.5)
        second = report.compile_s
        njit(double)(3)
        assert first < second == report.compile_s, "what is loaded is not compiled"
    assert told == said


INNER = """
from bellapy.compute.jit import njit_inner

@njit_inner
def number():
    return {}
"""
OUTER = """
from bellapy.compute.jit import njit
from bellapy.engines.numbers_for_a_test import number

@njit
def told():
    return number()

print(told())
"""


@needs_compiler
def test_an_inner_function_that_changed_with_its_time_stamp_kept(tmp_path):
    """As `cp -p` and images do it that can be made again."""
    shutil.copytree(PACKAGE, tmp_path / "bellapy", ignore=shutil.ignore_patterns("__pycache__"))
    inner = tmp_path / "bellapy" / "engines" / "numbers_for_a_test.py"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python's byte code goes by the time stamp, too
    (tmp_path / "outer.py").write_text(OUTER)
    for number in (1, 2, 1):
        inner.write_text(INNER.format(number))
        os.utime(inner, (10**9, 10**9))
        command = [sys.executable, tmp_path / "outer.py"]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert found.stdout == f"{number}\n"


def test_the_sources_are_all_modules():
    assert set(code_cache._sources(str(PACKAGE))) == set(map(str, PACKAGE.rglob("*.py")))


def test_versions_are_part_of_the_name(monkeypatch):
    """Two versions of Numba may share a folder: each would overwrite the other's code."""
    names = set()
    for number in ("1", "2"):
        monkeypatch.setattr(code_cache, "version", lambda package, number=number: number)
        digest.cache_clear()
        names.add(digest())
    digest.cache_clear()
    assert len(names) == 2


def test_where_nothing_can_be_written_code_is_kept_at_home(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert base() == PACKAGE / "__pycache__"
    monkeypatch.setattr(code_cache.os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert base() == tmp_path / "bellapy"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert base() == Path.home() / ".cache" / "bellapy"


@needs_compiler
def test_a_folder_that_cannot_be_written_is_told_once(place, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    told: list[str] = []
    with collect_warnings(told):
        assert [njit(double)(3), njit(double)(2.5)] == [6, 5.0]
    assert [text.partition(": ")[2] for text in told] == [
        "Not a directory; so the next run compiles again. NUMBA_CACHE_DIR names another folder"
    ]


def test_what_nobody_uses_any_more_is_removed(place):
    old, young = place / f"{PREFIX}old", place / f"{PREFIX}young"
    other = place / "of another program"
    for each in (old, young, other):
        each.mkdir(parents=True)
        (each / "code").touch()
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86_400
    for each in (old, other):
        os.utime(each, (long_ago, long_ago))
    assert can_keep()
    assert not old.exists() and young.exists() and other.exists()


THEIRS = """
import numba
usual = numba.config.CACHE_DIR
import bellapy.seeding.kmers
print(numba.config.CACHE_DIR == usual)
"""


def test_functions_of_others_are_kept_where_they_were():
    command = [sys.executable, "-c", THEIRS]
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": IMPORTS}, capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"
