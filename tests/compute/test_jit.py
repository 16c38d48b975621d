"""What the decorators promise, and that only one file knows Numba's inside."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cases import IMPORTS

import bellapy
from bellapy.compute.jit import COMPILES

needs_compiler = pytest.mark.skipif(not COMPILES, reason="compilation is switched off (NUMBA_DISABLE_JIT)")
PACKAGE = Path(bellapy.__file__).parent
CALLS = """
import numpy as np
from bellapy.compute.jit import njit, njit_inner

@njit_inner
def add(a, b):
    return a + b

@njit
def call(number):
    return add(number, 3)

print(call(5), call(2.5))
"""

READING = """
import sys
from bellapy.io import fastx_scan
from bellapy.io.fastx import load_reads

load_reads(sys.argv[1:])
inner = "_encode", "_pack", "_count_letters", "_line_end", "_name_end", "_put_gap"
print({name: len(getattr(fastx_scan, name).signatures) for name in inner})
"""


@needs_compiler
def test_functions_are_compiled_once(tmp_path):
    reads = tmp_path / "reads.fa"
    reads.write_text(">a\nACGTN\nACGT\n>b\nTTGCA\n")
    env = os.environ | {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    command = [sys.executable, "-c", READING, str(reads)]
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert set(ast.literal_eval(told).values()) == {1}


@needs_compiler
def test_inner_functions_are_kept_as_part_of_their_callers(tmp_path):
    program, kept = tmp_path / "calls.py", tmp_path / "kept"
    program.write_text(CALLS)
    env = os.environ | {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(kept)}
    for _ in range(2):
        run = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True, check=True)
        assert run.stdout.split() == ["8", "5.5"]
    assert {path.name.partition("-")[0] for path in kept.rglob("*.nbc")} == {"calls.call"}


PUBLIC = {
    "numba.core.cgutils", "numba.core.event", "numba.core.config",  # told in Numba's documentation
    "numba.core.compiler_lock",  # of GPUs, below
}  # fmt: skip
"""Modules of numba.core that may be used anywhere."""
LOWERING = PACKAGE / "compute" / "lowering.py"
OF_NUMBA = re.compile(r"\bnumba\.core\.\w+|from numba\.core import \w+|\bnumba\._\w+")


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_one_file_knows_numbas_inside(path):
    text = path.read_text()
    names = {name.replace("from numba.core import ", "numba.core.") for name in OF_NUMBA.findall(text)}
    assert path == LOWERING or (names <= PUBLIC and '"_nrt"' not in text and "_nrt=" not in text)


PRIVATE = {".".join(found) for found in re.findall(r"from (numba\.core\.[\w.]+) import (\w+)", LOWERING.read_text())}
OPTION = "numba.core.cpu._options_mixin._nrt"
RENAMED = """
{change}
import numpy as np
from bellapy.compute.jit import njit, put

@njit
def copied(words):
    other = np.zeros(4, np.int64)
    put(other, 1, words, 0, 3)
    return other

print(copied(np.arange(5)))
"""


@needs_compiler
@pytest.mark.parametrize("name", ["", *sorted(PRIVATE), OPTION])
def test_without_a_private_name_code_is_slower_and_nothing_else(name, tmp_path):
    """As if the next version of Numba had renamed it."""
    program = tmp_path / "copied.py"
    program.write_text(RENAMED.format(change=f"import numba.core.registry\ndel {name}" if name else ""))
    env = os.environ | {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    run = subprocess.run([sys.executable, program], env=env, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "[0 0 1 2]\n"), run.stderr


VERSION = """
import importlib.metadata, sys
installed = importlib.metadata.version
importlib.metadata.version = lambda name: sys.argv[1] if name == "numba" else installed(name)
"""


@needs_compiler
def test_two_versions_of_numba_share_a_folder(tmp_path):
    """Neither takes the other's code, nor writes over it."""
    program, kept = tmp_path / "calls.py", tmp_path / "kept"
    program.write_text(VERSION + CALLS)
    env = os.environ | {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(kept)}
    written: list[dict[Path, int]] = []
    for version in ("0.1", "0.2", "0.1", "0.2"):
        run = subprocess.run([sys.executable, program, version], env=env, capture_output=True, text=True, check=True)
        assert run.stdout.split() == ["8", "5.5"]
        written.append({path: path.stat().st_mtime_ns for path in kept.rglob("*.nbc")})
    assert len(written[1]) == 2 * len(written[0]) and written[1] == written[2] == written[3]
