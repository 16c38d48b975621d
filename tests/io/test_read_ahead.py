"""Reading in another process.  Every case runs in a fresh interpreter: this one has threads, and must not be forked."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import bellapy
from bellapy.io.read_ahead import PIPE_SIZE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads are read in another process on Linux only")

BEGIN = """
import os, signal, sys, time
import numpy as np
from bellapy.errors import BellapyError, InputError
from bellapy.io.read_ahead import can_read_ahead, read_ahead
from bellapy.io.fastx import gather_reads, load_reads

def nothing(look):
    pass

def no_child_left():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True

assert can_read_ahead()
here = os.getpid()
"""


def start(code, *arguments):
    """Run the code in a process without threads."""
    return subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", BEGIN + code, *map(str, arguments)],
        capture_output=True, text=True, timeout=60, cwd=Path(bellapy.__file__).parents[1],
        env={"PATH": "", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip


def run(code, *arguments):
    """What the code prints."""
    done = start(code, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("n_reads", [0, 1, 3000])
def test_the_same_reads(tmp_path, n_reads):
    """3,000 reads do not fit into the pipe."""
    assert 3000 * 1000 > PIPE_SIZE
    path = tmp_path / "reads.fq"
    path.write_text("".join(f"@read{i}\n{'ACGTN' * 200}\n+\n{'+5' * 500}\n" for i in range(n_reads)) or "@empty\n\n+\n\n")
    code = """
pids = []
def read():
    assert os.getpid() != here
    return gather_reads(sys.argv[1:])
reads, expected = read_ahead(read, lambda look: pids.append(os.getpid())), load_reads(sys.argv[1:])
assert pids == [here]
assert reads.names == expected.names and reads.error_rate == expected.error_rate
for name in ("codes", "starts", "lengths", "both_ways"):
    np.testing.assert_array_equal(getattr(reads, name), getattr(expected, name))
    assert getattr(reads, name).dtype == getattr(expected, name).dtype
assert not reads.codes.flags.writeable and no_child_left()
print(len(reads))
"""
    assert run(code, path) == [str(max(1, n_reads))]


def test_what_is_wrong_with_the_input(tmp_path):
    path = tmp_path / "reads.fq"
    path.write_text("@a\nACGT\n+\nIII\n")
    code = """
for read in (lambda: gather_reads(sys.argv[1:]), lambda: gather_reads(["none.fq"]), lambda: gather_reads([])):
    caught = []
    for way in (lambda: read_ahead(read, nothing), read):
        try:
            way()
        except BellapyError as error:
            caught.append((type(error), str(error), vars(error)))
    assert len(caught) == 2 and caught[0] == caught[1], caught
assert no_child_left()
print(caught[0][0].__name__)
"""
    assert run(code, path) == ["ParameterError"]


@pytest.mark.parametrize("fails", [False, True])
def test_looking_before_reading_look(tmp_path, fails):
    """An error that is known ends the work beside; what comes later is told at the end."""
    path = tmp_path / "reads.fa"
    path.write_text(">a\nACGT\n")
    code = f"""
fails = {fails}
def watch(look):
    look()
    open(go, "w").close()
    for _ in range(50):
        time.sleep(0.01)
        look()
    print("went on")

def read():
    while not os.path.exists(go):
        time.sleep(0.01)
    if fails:
        raise InputError("x", "y")
    return gather_reads(sys.argv[1:])

import tempfile
with tempfile.TemporaryDirectory() as folder:
    go = os.path.join(folder, "go")
    try:
        print(*read_ahead(read, watch).names)
    except InputError as error:
        print(error)
"""
    assert run(code, path) == (["x:", "y"] if fails else ["went", "on", "a"])


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(1)", "sys.exit(1)"])
def test_a_process_that_ends_early(end):
    code = f"""
try:
    read_ahead(lambda: {end}, nothing)
except BellapyError as error:
    assert no_child_left()
    print(error)
"""
    assert " ".join(run(code)) == "the reading process ended early; it was stopped, or it ran out of memory"


def test_nothing_goes_on_after_an_error_here():
    """Not even a process that waits for ever."""
    code = """
def fail(look):
    raise ValueError

try:
    read_ahead(lambda: time.sleep(1000), fail)
except ValueError:
    print(no_child_left())
"""
    assert run(code) == ["True"]


@pytest.mark.parametrize("name, status, message", [("SIGINT", 130, "bellapy: interrupted\n"), ("SIGTERM", 143, "")])
def test_interrupts_that_would_get_lost(name, status, message):
    """Imports and LLVM call Python back, and lose what is raised there."""
    code = f"""
def load(look):
    try:
        signal.raise_signal(signal.{name})
    except BaseException:
        pass

from bellapy.compute import stopping
signal.signal(signal.SIGINT, signal.default_int_handler)  # which tests in the background do not have
stopping.heed()
read_ahead(lambda: time.sleep(1000), load)
"""
    done = start(code)
    assert (done.returncode, done.stderr) == (status, message)


def has_ended(number):
    """Whether a process is gone, or waits for its new parent to take note of its end."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV"])
def test_no_orphan(tmp_path, name):
    """However this process ends, the other one ends too, even while it waits for input."""
    code = f"""
def load(look):
    stream.readline()
    os.kill(here, signal.{name})
    time.sleep(60)

def read():
    print(os.getpid(), flush=True)
    os.write(sender, f"{{os.getpid()}}\\n".encode())
    time.sleep(60)

receiver, sender = os.pipe()
stream = open(receiver)
read_ahead(read, load)
"""
    started = time.monotonic()
    done = start(code)
    assert time.monotonic() - started < 30 and done.returncode < 0
    assert any(has_ended(done.stdout.strip()) or time.sleep(0.05) for _ in range(100))


def test_what_signals_do_before_and_after(tmp_path):
    """An ignored one stays ignored."""
    path = tmp_path / "reads.fa"
    path.write_text(">a\nACGT\n")
    code = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.signal(signal.SIGINT, signal.SIG_IGN)
before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
reads = read_ahead(lambda: gather_reads(sys.argv[1:]), lambda look: signal.raise_signal(signal.SIGINT))
assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
print(len(reads))
"""
    assert run(code, path) == ["1"]


def test_no_room_for_a_second_process():
    code = """
def fail():
    raise BlockingIOError(11, "Resource busy")

os.fork = fail
try:
    read_ahead(lambda: None, nothing)
except BellapyError as error:
    print(error)
"""
    assert " ".join(run(code)) == "no second process can be started (Resource busy): use one thread (-t 1)"


def test_not_beside_threads():
    code = """
import threading
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
print(can_read_ahead())
stop.set()
thread.join()
"""
    assert run(code) == ["False"]
