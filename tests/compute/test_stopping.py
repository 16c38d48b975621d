"""Signals: the program ends within a second whatever it does, tells no lies about why, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import IMPORTS, listing, sample_reads

import bellapy

ROOT = Path(bellapy.__file__).parents[1]
PROGRAM = [sys.executable, "-m", "bellapy"]
ENDS = [
    (signal.SIGINT, b"bellapy: interrupted\n"),
    (signal.SIGTERM, b"bellapy: stopped by SIGTERM\n"),
    (signal.SIGHUP, b"bellapy: stopped by SIGHUP\n"),
]
SOON = 1.0  # seconds


def heed_interrupts():
    """Tests may run in the background or under nohup, where programs ignore them."""
    for sent in (signal.SIGINT, signal.SIGHUP):
        signal.signal(sent, signal.SIG_DFL)


def start(*command, **options):
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*map(str, command)], **{**pipes, "preexec_fn": heed_interrupts, **options})


def code(text, *arguments, **options):
    return start(sys.executable, "-c", text, *arguments, cwd=ROOT, **options)


def wait_until_it_heeds(process):
    """Until the program has handlers of its own: while Python starts, which may take long on a busy machine, it has not."""
    status = Path(f"/proc/{process.pid}/status")
    while status.exists() and process.poll() is None:
        caught = int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16)
        if caught >> (signal.SIGHUP - 1) & 1:  # the last one that `heed` sets
            return
        time.sleep(0.005)


def ends_by(process, sent):
    """Send a signal; how the program ended, and after how many seconds."""
    process.send_signal(sent)
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    return process.returncode, err, time.monotonic() - began


# Compiled code that runs for a minute, in the thread that Python's own signal handlers need, beside a half-written file.
BUSY = """
import sys
from bellapy.compute import stopping
stopping.heed()
import numpy as np
from bellapy.compute.jit import njit
from bellapy.io.outputs import whole_files

@njit
def spin(n):
    total = np.uint64(1)
    for i in range(n):
        total = total * np.uint64(6364136223846793005) + np.uint64(i)
    return total

stopping.watch()
spin(10)
with whole_files(sys.argv[1]) as (name,):
    open(name, "w").write("half")
    print("busy", flush=True)
    spin(60_000_000_000)
"""


@pytest.mark.parametrize(("sent", "message"), ENDS)
def test_in_compiled_code(tmp_path, sent, message):
    (tmp_path / "x").write_text("old")
    with code(BUSY.replace("@njit\n", "@__import__('numba').njit(nogil=True)\n"), tmp_path / "x") as process:
        assert process.stdout.readline() == b"busy\n"
        assert len(listing(tmp_path)) > 1
        time.sleep(0.2)
        status, err, took = ends_by(process, sent)
    assert (status, err) == (128 + sent, message)
    assert took < SOON
    assert listing(tmp_path) == {"x"} and (tmp_path / "x").read_text() == "old"


def test_twice_is_once(tmp_path):
    with code(BUSY.replace("@njit\n", "@__import__('numba').njit(nogil=True)\n"), tmp_path / "x") as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert ends_by(process, signal.SIGINT)[:2] == (130, b"bellapy: interrupted\n")
    assert listing(tmp_path) == set()


@pytest.mark.parametrize(("sent", "message"), ENDS)
def test_while_the_program_starts(tmp_path, sent, message):
    """In an import that takes long: no traceback of it."""
    slow = f"import os, sys, time\nos.kill(os.getpid(), {int(sent)})\ntime.sleep(60)\n"
    (tmp_path / "typer.py").write_text(slow)
    paths = os.pathsep.join([str(tmp_path), IMPORTS])
    with start(*PROGRAM, "overlap", "x.fa", env={**os.environ, "PYTHONPATH": paths}) as process:
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (128 + sent, message)


@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGINT])
def test_what_is_ignored_stays_ignored(tmp_path, sent):
    """As under nohup."""
    text = "import os; from bellapy.compute import stopping; stopping.heed(); stopping.watch(); os.kill(os.getpid(), {})"
    with code(text.format(int(sent)), preexec_fn=lambda: signal.signal(sent, signal.SIG_IGN)) as process:
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_a_folder_in_which_others_still_write(tmp_path):
    text = """
import os, sys, threading
from bellapy.compute import stopping
folder = sys.argv[1]
def write():
    for i in range(10**9):
        try:
            open(os.path.join(folder, str(i)), "w").close()
        except OSError:
            return
threading.Thread(target=write).start()
stopping.begun.add(folder)
stopping.end_now(15)
"""
    (tmp_path / "x").mkdir()
    with code(text, tmp_path / "x") as process:
        process.communicate(timeout=20)
    assert process.returncode == 143
    assert listing(tmp_path) == set()


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    path = tmp_path_factory.mktemp("reads") / "reads.fa"
    path.write_text(sample_reads(3, genome=12_000, depth=15, error=0.1).fasta())
    subprocess.run([*PROGRAM, "overlap", path, "-o", os.devnull, "-q"], check=True, cwd=ROOT)
    return path


@pytest.mark.parametrize("seed", range(6))
def test_at_any_moment(tmp_path, reads, seed):
    """Whatever the moment: an output that is whole or not there, no other file, no process, and no traceback."""
    rng = __import__("random").Random(seed)
    name, sent = rng.choice(["x.paf", "x.paf.gz", "x.sam", "x.bam"]), rng.choice([*ENDS, (signal.SIGKILL, b"")])[0]
    (tmp_path / "tmp").mkdir()
    (tmp_path / "out").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": IMPORTS}
    command = [*PROGRAM, "overlap", reads, "-t", rng.choice([1, 2]), "-o", name, "-q", *(["--sort"] * (name == "x.bam"))]
    with start(*command, cwd=tmp_path / "out", env=environment) as process:
        wait_until_it_heeds(process)
        time.sleep(0.1 + 1.2 * rng.random())
        done = process.poll() is not None
        status, err, took = ends_by(process, sent)
    assert b"Traceback" not in err and b"Exception" not in err
    assert took < SOON or sent == signal.SIGKILL
    assert done or status in (0, 128 + sent, -sent)
    if sent != signal.SIGKILL:
        assert listing(tmp_path / "out") <= {name, f"{name}.bai"}
    assert listing(tmp_path / "tmp") == set()
    if status == 0 or name in listing(tmp_path / "out"):
        assert (tmp_path / "out" / name).stat().st_size > 1000
