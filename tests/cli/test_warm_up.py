"""`bellapy warm-up`: after it, first runs compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cases import IMPORTS, TESTS, run

from bellapy.compute.jit import COMPILES
from bellapy.jobs import warm_up

READS = TESTS.parent / "data" / "lambda_reads.fastq.gz"


def test_unknown_commands():
    assert run("warm-up", "foo").code == 2
    assert "foo: nothing to compile for; known are overlap, " in run("warm-up", "foo").err


def test_unknown_devices():
    outcome = run("warm-up", "--device", "foo")
    assert outcome.code == 2 and "--device foo: choose from auto, cpu, cuda" in outcome.err


def test_a_run_that_fails_is_told(monkeypatch):
    monkeypatch.setattr(warm_up, "RUNS", {"overlap": (("overlap", "nowhere.fa"),)})
    outcome = run("warm-up", "overlap", "--device", "cpu", "-t", "1")
    assert outcome.code == 1 and "1 of the runs failed: overlap nowhere.fa" in outcome.err
    assert "nowhere.fa: no such file" in outcome.err.lower()


@pytest.mark.skipif(not COMPILES, reason="compilation is switched off (NUMBA_DISABLE_JIT)")
def test_nothing_is_compiled_after_it(tmp_path):
    kept = tmp_path / "kept"
    env = os.environ | {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(kept)}

    def program(*words):
        command = [sys.executable, "-m", "bellapy", *words, "--device", "cpu"]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stderr

    assert "overlap noisy.fastq.gz" in program("warm-up", "overlap")
    before = {path.name for path in kept.rglob("*.nbc")}
    assert "compiling" not in program("overlap", str(READS), "-o", "x.paf", "-t", "2")
    assert before and {path.name for path in kept.rglob("*.nbc")} == before
