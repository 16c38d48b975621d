"""Tasks on Dask's workers: the same bytes, also when a worker is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from cases import IMPORTS, run, sample_reads

pytest.importorskip("distributed")


def start(*words, **options) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": IMPORTS, "PYTHONWARNINGS": "ignore"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
    return subprocess.Popen([sys.executable, "-m", *map(str, words)], env=environment, **quiet)


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers: its address, and the workers."""
    told = tmp_path / "scheduler.json"
    options = "--scheduler-file", told, "--no-dashboard"
    scheduler = start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *options)
    limits = "--nthreads", 1, "--no-nanny", "--local-directory", tmp_path / "dask"
    workers = [start("distributed.cli.dask_worker", "--scheduler-file", told, *limits) for _ in range(2)]
    import json

    deadline = time.monotonic() + 60
    while not told.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    yield json.loads(told.read_text())["address"], workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


def test_a_killed_worker(tmp_path, cluster):
    address, workers = cluster
    (tmp_path / "reads.fa").write_text(sample_reads(7, genome=20_000, depth=12, error=0.08).fasta())
    assert run("overlap", tmp_path / "reads.fa", "-t1", "-o", tmp_path / "whole.paf").code == 0
    words = ["overlap", tmp_path / "reads.fa", "-q", "-t1", "--workdir", tmp_path / "work", "--blocks", 3]
    job = start("bellapy", *words, "--scheduler", address, "-o", tmp_path / "tiles.paf", stderr=subprocess.PIPE)
    while job.poll() is None and not list((tmp_path / "work").glob("seeds.*")):
        time.sleep(0.02)
    assert job.poll() is None, job.stderr.read()
    workers[0].send_signal(signal.SIGKILL)
    assert job.wait(timeout=120) == 0, job.stderr.read()
    job.stderr.close()
    assert (tmp_path / "tiles.paf").read_bytes() == (tmp_path / "whole.paf").read_bytes()
    assert not (tmp_path / "work").exists()


def test_no_scheduler(tmp_path, monkeypatch):
    from bellapy.runs import cluster

    monkeypatch.setattr(cluster, "PATIENCE", "1s")
    (tmp_path / "reads.fa").write_text(sample_reads(7, genome=9000, depth=8, error=0.08).fasta())
    words = ["--workdir", tmp_path / "work", "--scheduler", "tcp://127.0.0.1:1", "-o", tmp_path / "x"]
    outcome = run("overlap", tmp_path / "reads.fa", "-t1", *words)
    assert outcome.code == 1 and "no Dask scheduler answers there" in outcome.err and not (tmp_path / "x").exists()
