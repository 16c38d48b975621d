"""A folder that keeps results: whole or not there, gone on with, refused when it is about something else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import listing

from bellapy.errors import InputError, OutputError, ParameterError
from bellapy.io import workdir
from bellapy.io.workdir import Workdir, join_workdir, open_workdir

RESULT = {"a": np.arange(5, dtype=np.int32), "b": np.zeros((2, 0)), "c": np.float64(0.1), "d": np.array([True, False])}


@pytest.fixture
def reads(tmp_path) -> str:
    (tmp_path / "reads.fa").write_text(">a\nACGT\n")
    return str(tmp_path / "reads.fa")


def begin(tmp_path, reads, options=None, kind="test", **more):
    return open_workdir(str(tmp_path / "work"), kind, options or {"k": 15, "group": {"x": None}}, [reads], **more)


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name]) and np.asarray(one[name]).dtype == other[name].dtype for name in one
    )


def test_results_are_kept_until_the_end(tmp_path, reads):
    with pytest.raises(ZeroDivisionError), begin(tmp_path, reads) as work:
        assert work.load("first") is None and not work.has("first")
        work.save("first", RESULT)
        raise ZeroDivisionError
    with begin(tmp_path, reads) as work:
        assert work.has("first") and work.names() == {"first"}
        assert same(RESULT, work.load("first"))
        assert same(RESULT, work.once("first", lambda: {}))
        assert same(RESULT, work.once("second", lambda: RESULT)) and work.has("second")
        work.remove("first")
        work.remove("first")
        assert work.names() == {"second"}
    assert listing(tmp_path) == {"reads.fa"}


def test_a_kept_folder(tmp_path, reads):
    for _ in range(2):
        with begin(tmp_path, reads, keep=True) as work:
            work.once("first", lambda: RESULT)
    assert same(RESULT, join_workdir(str(tmp_path / "work"), "test").load("first"))
    with pytest.raises(InputError, match="another kind or version"):
        join_workdir(str(tmp_path / "work"), "other")
    with pytest.raises(InputError, match="no job was begun"):
        join_workdir(str(tmp_path), "test")


def test_another_job_is_refused(tmp_path, reads, monkeypatch):
    with begin(tmp_path, reads, keep=True) as work:
        work.save("first", RESULT)
    with pytest.raises(OutputError, match=r"begun with another group.x: not given then, 3 now. Name another --workdir"):
        begin(tmp_path, reads, {"k": 15, "group": {"x": 3}}).__enter__()
    with pytest.raises(OutputError, match="begun with another k: 15 then, not given now"):
        begin(tmp_path, reads, {"group": {"x": None}}).__enter__()
    with pytest.raises(OutputError, match="begun by bellapy test; this is other"):
        begin(tmp_path, reads, kind="other").__enter__()
    with pytest.raises(OutputError, match="1 input files, now there are 2"):
        open_workdir(str(tmp_path / "work"), "test", {}, [reads, reads]).__enter__()
    with monkeypatch.context() as changed:
        changed.setattr(workdir, "__version__", "99")
        with pytest.raises(OutputError, match="this is 99"):
            begin(tmp_path, reads).__enter__()
    Path(reads).write_text(">a\nACGA\n")
    with pytest.raises(OutputError, match=r"reads.fa has changed since the job was begun. Name another"):
        begin(tmp_path, reads).__enter__()
    Path(reads).write_text(">a\nACGT\n")
    with begin(tmp_path, reads) as work:
        assert work.has("first"), "nothing was lost"


def test_the_same_reads_under_another_name(tmp_path, reads):
    with begin(tmp_path, reads, keep=True):
        pass
    os.rename(reads, tmp_path / "moved.fa")
    with begin(tmp_path, str(tmp_path / "moved.fa")):
        pass


def test_folders_and_inputs_that_cannot_be_used(tmp_path, reads):
    with pytest.raises(OutputError, match="holds other files"):
        open_workdir(str(tmp_path), "test", {}, [reads]).__enter__()
    assert listing(tmp_path) == {"reads.fa"}
    with pytest.raises(OutputError, match="No such file or directory"):
        open_workdir(str(tmp_path / "none" / "work"), "test", {}, [reads]).__enter__()
    with pytest.raises(OutputError, match="reads.fa: is no folder"):
        open_workdir(reads, "test", {}, [reads]).__enter__()
    with pytest.raises(ParameterError, match="standard input"):
        begin(tmp_path, "-").__enter__()
    with pytest.raises(InputError, match="Check name"):
        begin(tmp_path, str(tmp_path / "none")).__enter__()


def test_only_one_owner(tmp_path, reads):
    with begin(tmp_path, reads), pytest.raises(OutputError, match="another bellapy works in this folder"):
        begin(tmp_path, reads).__enter__()


@pytest.mark.parametrize("damage", [lambda data: data[:-30], lambda data: b"", lambda data: data[:200] + b"x" + data[201:]])
def test_a_damaged_result(tmp_path, reads, damage):
    with begin(tmp_path, reads) as work:
        work.save("first", {"a": np.arange(100)})
        path = work.path_of("first")
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(InputError, match="Remove this file"):
            work.load("first")


def test_a_damaged_journal(tmp_path, reads):
    with begin(tmp_path, reads, keep=True):
        pass
    (tmp_path / "work" / workdir.JOURNAL).write_text("{")
    with pytest.raises(InputError, match="Remove the folder"):
        begin(tmp_path, reads).__enter__()


def test_a_full_disk_keeps_what_is_there(tmp_path, reads, monkeypatch):
    with begin(tmp_path, reads, keep=True) as work:
        work.save("first", RESULT)

        def full(stream, arrays):
            stream.write(b"begun")
            raise OSError(28, "No space left on device")

        before = listing(tmp_path)
        monkeypatch.setattr(workdir, "write_arrays", full)
        with pytest.raises(OutputError, match="No space left on device. What was done is kept"):
            work.save("second", RESULT)
        assert listing(tmp_path) == before
        monkeypatch.undo()
        assert same(RESULT, work.load("first"))


def test_names():
    work = Workdir(Path("x"), {})
    for name in ("", ".x", "a/b", "a b", "ä"):
        with pytest.raises(ValueError):
            work.path_of(name)


def test_processes_with_equal_numbers_do_not_meet(tmp_path, reads, monkeypatch):
    """Two machines on one disk may give the same number to a process, two containers even on one system."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with begin(tmp_path, reads) as work:
        path = work.path_of("x")
        with work.new_file(path) as one, work.new_file(path) as other:
            assert one != other
            one.write_bytes(b"same")
            other.write_bytes(b"same")
            work.remove_unfinished()
            assert one.exists() and other.exists(), "their owners still run"
        assert path.read_bytes() == b"same"
        assert {entry for entry in os.listdir(work.folder) if entry.startswith(".")} == set()


WRITER = """
import sys, time, numpy as np
from bellapy.io.workdir import join_workdir
work = join_workdir(sys.argv[1], "test")
with work.new_file(work.path_of("x")) as written:
    written.write_bytes(b"half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_leaves_goes(tmp_path, reads):
    with begin(tmp_path, reads, keep=True) as work:
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(work.folder)], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"ready\n"
        work.remove_unfinished()
        left = [name for name in os.listdir(work.folder) if name.endswith(workdir.UNFINISHED)]
        assert len(left) == 1, "it still runs"
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        assert not work.has("x")
    with begin(tmp_path, reads, keep=True) as work:
        assert set(os.listdir(work.folder)) == {workdir.JOURNAL, workdir.OWNER}


def test_stopped_while_results_are_removed(tmp_path, reads, monkeypatch):
    """What is left of the results of a job that ended says nothing of what is done."""

    def stop(folder, pattern):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), monkeypatch.context() as patch, begin(tmp_path, reads) as work:
        work.save("first", RESULT)
        work.save("second", RESULT)
        patch.setattr(workdir, "_remove", stop)
    assert work.has("first")
    with begin(tmp_path, reads) as work:
        assert not work.names()
        work.save("first", RESULT)
    assert listing(tmp_path) == {"reads.fa"}


MAKER = """
import sys, time, numpy as np
from bellapy.io.workdir import join_workdir
def make():
    print("made", flush=True)
    time.sleep(0.5)
    return {"a": np.arange(3)}
join_workdir(sys.argv[1], "test").once("sums", make)
"""


def test_once_is_made_by_one_process(tmp_path, reads):
    with begin(tmp_path, reads) as work:
        command = [sys.executable, "-c", MAKER, str(work.folder)]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
        told = [child.communicate(timeout=60)[0] for child in children]
        assert [child.returncode for child in children] == [0, 0, 0]
        assert sorted(told) == [b"", b"", b"made\n"]
        assert same({"a": np.arange(3)}, work.load("sums"))
