"""Machine code on the disk: which arguments share it, and that it does the same as what was compiled."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import numba
import numpy as np
import pytest
from cases import IMPORTS

from bellapy.compute import compiler, stored
from bellapy.compute.jit import njit
from bellapy.compute.late import COMPILES, watch_compilation
from bellapy.compute.stored import PACKAGE, folder, kind_of, package_sources
from bellapy.report.log import collect_warnings, logger

needs_compiler = pytest.mark.skipif(not COMPILES, reason="compilation is switched off (NUMBA_DISABLE_JIT)")


class Pair(NamedTuple):
    first: object
    second: object


class OtherPair(NamedTuple):
    first: object
    second: object


def some_arguments() -> list:
    table, words = np.arange(6.0).reshape(2, 3), np.arange(4)
    fixed, shifted = words.copy(), np.zeros(33, np.uint8)[1:].view(np.int64)
    fixed.flags.writeable = False
    arrays = [table, table.T, table[:, ::2], table[:1], table[:0], words, words[::2], words[:0], fixed, shifted]
    numbers = [1, -1, True, 2.5, 1 << 63, (1 << 63) - 1, None]
    scalars = [np.int64(1), np.uint64(1), np.int8(1), np.bool_(True), np.float32(1), np.float64(1)]
    tuples = [(), (1,), (1, 2), (words, 1), ((words,), 1), Pair(words, 1), Pair(1, words), OtherPair(words, 1)]
    return [*arrays, *(words.astype(kind) for kind in "bBhHiIQfd?"), *numbers, *scalars, *tuples]


def test_arguments_are_told_apart_as_numba_does():
    for one, other in combinations(some_arguments(), 2):
        assert (kind_of(one) == kind_of(other)) == (numba.typeof(one) == numba.typeof(other)), (one, other)


MODULE = """
from typing import NamedTuple
import numpy as np
from bellapy.compute.jit import njit, njit_inner

class Found(NamedTuple):
    numbers: np.ndarray
    total: float

@njit_inner
def half(number):
    return number / 2

@njit
def in_order(numbers, most):
    numbers.sort()
    return numbers.sum() / 0.5, numbers[numbers < most], numbers[-1]

@njit
def as_record(numbers, more):
    return Found(numbers * 2, half(numbers.sum()) + len(more))

@njit
def views(pair):
    return pair[0][1:], np.log(pair[1]), pair[1] > 1
"""
RUN = """
import gc
import sys
import numpy as np
from kept import as_record, in_order, views

for _ in range(200):
    numbers = np.arange(100, dtype=np.uint64)[::-1].copy()
    told = in_order(numbers, 3), as_record(numbers, (1, 2)), views((numbers, 8.0))
    loaded = "numba.core.compiler" in sys.modules
    del numbers
gc.collect()
print(told, type(told[1]).__name__, sys.getrefcount(told[2][0]), file=sys.stderr)
print(loaded)
"""


@needs_compiler
def test_stored_code_does_the_same(tmp_path):
    """Arrays, tuples and records come back, and arrays stay alive as long as their views."""
    (tmp_path / "kept.py").write_text(MODULE)
    paths = os.pathsep.join([str(tmp_path), IMPORTS])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}
    runs = [
        subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == ["True\n", "False\n"]
    assert runs[0].stderr == runs[1].stderr and "Found" in runs[0].stderr


def double(number):
    return 2 * number


ALIKE = """
import sys
import numpy as np
from bellapy.compute.jit import njit, njit_inner

def make(n):
    @njit_inner
    def mixed(numbers, by):
        total = n
        for i in range(len(numbers)):
            if numbers[i] % 7 == by:
                total += numbers[i] * n
            elif numbers[i] % 5 == by:
                numbers[i] += total
            else:
                total ^= numbers[i] >> 1
            for j in range(i, len(numbers), 3):
                total += numbers[j] if total & 4 else n
        return total
    return mixed

one, two = make(1), make(2)

@njit
def first(numbers):
    return one(numbers, 1) + one(numbers, 2) + one(numbers, 3)

@njit
def second(numbers):
    return two(numbers, 1) + two(numbers, 2) + two(numbers, 3)

for name in sys.argv[1:]:
    print(globals()[name](np.arange(50)))
"""


@needs_compiler
def test_functions_of_one_name_from_two_processes_are_told_apart(tmp_path):
    """Numba numbers functions, but each process begins at 1."""
    (tmp_path / "alike.py").write_text(ALIKE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def told(*names):
        command = [sys.executable, tmp_path / "alike.py", *names]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    alone = told("first") + told("second")
    assert len(set(alone)) == 2 and told("first", "second") == alone


class Compiled:
    """How long it took, once there was something to compile."""

    compile_s = 0.0


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """An empty folder; a list that grows with each compilation."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    seen, compile_for = [], compiler.compile_for
    monkeypatch.setattr(compiler, "compile_for", lambda *of: seen.append(1) or compile_for(*of))
    return seen


@needs_compiler
def test_compiling_is_told_once_and_timed(compiled, monkeypatch):
    report, function, told = Compiled(), njit(double), []
    monkeypatch.setattr(logger, "info", lambda text, **_: told.append(text))
    with watch_compilation(report):
        function(3)
        first = report.compile_s
        function(3)
        assert 0 < first == report.compile_s
        function(2.5)
    assert report.compile_s > first
    function(np.int8(3))
    assert told == ["compiling what this command needs; later runs load it"]


@needs_compiler
def test_each_kind_of_arguments_is_compiled_once(compiled):
    for times, n_compiled in ((1, 2), (2, 2)):
        function = njit(double)
        assert [function(4), function(2.5), function(np.int64(7)), function(-1)] == [8, 5.0, 14, -2]
        assert len(compiled) == n_compiled, times
    assert len(list(folder().iterdir())) == 2


DAMAGE = {
    "empty": lambda code: b"",
    "cut short": lambda code: code[: len(code) // 2],
    "another byte": lambda code: code[:-100] + bytes([code[-100] ^ 1]) + code[-99:],
}


@needs_compiler
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_code_is_compiled_again(compiled, damage):
    assert njit(double)(3) == 6
    (place,) = folder().iterdir()
    whole = place.read_bytes()
    place.write_bytes(DAMAGE[damage](whole))
    assert njit(double)(3) == 6 and len(compiled) == 2
    assert njit(double)(3) == 6 and len(compiled) == 2


@needs_compiler
def test_a_change_anywhere_in_the_package_counts(compiled, monkeypatch):
    """Functions of other modules, and constants, are part of the code."""
    assert njit(double)(3) == 6
    monkeypatch.setattr(stored, "package_sources", lambda: "changed")
    stored._stamp.cache_clear()
    assert njit(double)(3) == 6 and len(compiled) == 2
    stored._stamp.cache_clear()


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
    (tmp_path / "outer.py").write_text(OUTER)
    for number in (1, 2, 1):
        inner.write_text(INNER.format(number))
        os.utime(inner, (10**9, 10**9))
        command = [sys.executable, tmp_path / "outer.py"]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert found.stdout == f"{number}\n"


def test_versions_are_part_of_the_name():
    for package in stored.COMPILERS:
        assert any(name.startswith(f"{package}-{version(package)}") for name in stored.installed(package))


@needs_compiler
def test_code_under_the_name_of_another_is_not_taken(compiled):
    assert (njit(double)(3), njit(double)(2.5)) == (6, 5.0)
    one, other = folder().iterdir()
    code = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(code)
    assert (njit(double)(3), njit(double)(2.5)) == (6, 5.0) and len(compiled) == 4


def test_the_sources_are_all_modules():
    assert {name for name, _ in package_sources()} == set(map(str, PACKAGE.rglob("*.py")))


NUMBERS = np.arange(1 << 18)


def number_at(i):
    return NUMBERS[i]


@needs_compiler
def test_code_with_addresses_of_this_process_is_not_kept(compiled):
    """Numba does not take large arrays into the code."""
    assert njit(number_at)(3) == 3 and not folder().exists()


@needs_compiler
def test_threads_that_come_together_compile_once(compiled):
    function, told = njit(double), []
    threads = [Thread(target=lambda: told.append(function(21))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [42] * 8 and len(compiled) == 1


@needs_compiler
def test_what_nobody_would_find_is_not_kept(compiled, monkeypatch):
    """LLVM ends the program where machine code asks for a name that is not there."""
    monkeypatch.setattr(stored, "_is_known", lambda name: False)
    assert njit(double)(3) == 6
    assert not folder().exists()


@needs_compiler
def test_functions_that_need_not_be_kept(compiled):
    assert njit(double, cache=False)(3) == 6 and not folder().exists()


def test_where_nothing_can_be_written_code_is_kept_at_home(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert folder() == stored.PACKAGE / "__pycache__"
    monkeypatch.setattr(stored.os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "bellapy"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert folder() == Path.home() / ".cache" / "bellapy"


@needs_compiler
def test_a_folder_that_cannot_be_written_is_told_once(compiled, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    function, told = njit(double), []
    with collect_warnings(told):
        assert [function(3), function(2.5)] == [6, 5.0]
    assert [text.partition(": ")[2] for text in told] == [
        "Not a directory; so the next run compiles again. NUMBA_CACHE_DIR names another folder"
    ]
