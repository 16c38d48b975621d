"""Output files: whole or not there, compressed when the name says so."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys

import pysam
import pytest
from cases import listing

from bellapy.compute import locks
from bellapy.errors import OutputError, ParameterError
from bellapy.io import outputs as output
from bellapy.io.outputs import check_outputs, check_writable, open_output, whole_files

TEXT = b"".join(b"line %d\n" % i for i in range(30_000))


def write(path, data: bytes = TEXT, **options) -> None:
    with open_output(str(path), **options) as stream:
        for at in range(0, len(data), 10_000):
            stream.write(data[at : at + 10_000])


@pytest.mark.parametrize("name", ["x.paf", "x", "x.gzip", ".gz.txt"])
def test_plain(tmp_path, name):
    write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == TEXT
    assert listing(tmp_path) == {name}


@pytest.mark.parametrize("data", [TEXT, b"", b"x"])
@pytest.mark.parametrize("name", ["x.paf.gz", "x.bgz"])
def test_compressed(tmp_path, name, data):
    path = tmp_path / name
    write(path, data)
    assert gzip.decompress(path.read_bytes()) == data
    with pysam.BGZFile(str(path), "r") as stream:
        assert stream.read(len(data) + 1) == data
    assert path.read_bytes().endswith(bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000"))
    assert listing(tmp_path) == {name}


def test_not_compressible(tmp_path):
    write(tmp_path / "x.gz", compressible=False)
    assert (tmp_path / "x.gz").read_bytes() == TEXT


@pytest.mark.parametrize("name", ["x.paf", "x.gz"])
@pytest.mark.parametrize("old", [None, b"old"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError(28, "No space left on device")])
def test_nothing_new_after_an_error(tmp_path, name, old, error):
    if old:
        (tmp_path / name).write_bytes(old)
    expected = OutputError if isinstance(error, OSError) else error
    with pytest.raises(expected), open_output(str(tmp_path / name)) as stream:
        stream.write(TEXT)
        assert listing(tmp_path) - {name}, "nothing stands under the name yet"
        raise error
    assert listing(tmp_path) == ({name} if old else set())
    if old:
        assert (tmp_path / name).read_bytes() == old


def test_messages_name_the_file(tmp_path, monkeypatch):
    with pytest.raises(OutputError, match=r"x\.paf: No space left on device"), open_output(str(tmp_path / "x.paf")):
        raise OSError(28, "No space left on device")
    with pytest.raises(OutputError, match="does not exist; make it first"):
        write(tmp_path / "a" / "x")
    with pytest.raises(OutputError, match="is a folder"):
        write(tmp_path)

    def refuse(old, new):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OutputError, match="x: Permission denied"):
        write(tmp_path / "x")
    assert listing(tmp_path) == set()


def test_the_file_appears_at_the_end(tmp_path):
    with open_output(str(tmp_path / "x")) as stream:
        stream.write(TEXT)
        assert not (tmp_path / "x").exists()
    assert (tmp_path / "x").exists()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/x")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "x").read_bytes() == TEXT
    assert listing(tmp_path) == {"folder", "folder/x", "link"}


def test_a_device_stays_a_device():
    write("/dev/null")
    check_writable("/dev/null")
    assert not os.path.isfile("/dev/null")


def test_no_file_takes_the_place_of_a_pipe(tmp_path):
    """Some formats cannot be written to a pipe; as root, a device would be lost."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="pipe: is no ordinary file"):
        with whole_files(str(tmp_path / "pipe")):
            pass
    assert os.listdir(tmp_path) == ["pipe"] and not os.path.isfile(tmp_path / "pipe")


def test_names_relative_to_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable("x")
    write("x")
    assert (tmp_path / "x").read_bytes() == TEXT


# ---------------------------------------------------------------- files as files, not as names


@pytest.fixture
def reads(tmp_path, monkeypatch):
    """A working folder with a file under several names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reads").write_text(">a\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "soft").symlink_to("reads")
    (tmp_path / "hard").hardlink_to("reads")
    (tmp_path / "way").symlink_to("folder")
    (tmp_path / "ahead").symlink_to("folder/new")
    links = {
        "twice": "soft", "up": "folder/../reads", "whole": tmp_path / "reads", "over": f"../{tmp_path.name}/hard",
        "folder/back": "../reads", "folder/own": "../way/back", "self": ".", "aside": tmp_path, "wrong": "no/../reads",
    }  # fmt: skip
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    return tmp_path


NAMES = [
    "reads",
    "soft",
    "hard",
    "./reads",
    ".//reads",
    "././reads",
    "folder/../reads",
    "folder/.././reads",
    "way/../reads",
    "{}/reads",
    "{}//reads",
    "/{}/reads",
    "//{}/reads",
    "{}/./reads",
    "{}/folder/../reads",
    "{}/way/../reads",
    "{}/soft",
    "{}/hard",
    "{}/../{name}/reads",
    "../{name}/reads",
    "../{name}/soft",
    "folder/../../{name}/reads",
    "twice",
    "up",
    "whole",
    "over",
    "folder/back",
    "way/back",
    "{}/folder/back",
    "folder/../twice",
    "self/reads",
    "self/self/reads",
    "self/soft",
    "/proc/self/cwd/reads",
    "/proc/self/cwd/folder/../hard",
    "./self/../{name}/reads",
    "folder/own",
    "way/own",
    "aside/reads",
    "aside/../{name}/hard",
]
"""The same file, spelled in 40 ways."""
ASTRAY = ["no/../reads", "folder/no/../../reads", "reads/../reads", "soft/../reads", "wrong", "{}/no/../reads"]
"""What looks like it, but leads through a folder that does not exist."""


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_overwritten(reads, name):
    name = name.format(reads, name=reads.name)
    check_outputs({"-o": "new", "--report": None}, ["reads", "-", "missing"])
    for outputs in ({"-o": name}, {"-o": "x", "--report": name}, {"-o": "-", "the index": name}):
        with pytest.raises(OutputError, match="is read as input"):
            check_outputs(outputs, ["-", "reads"])
        with pytest.raises(OutputError, match="is read as input"):
            check_outputs(outputs, ["soft"])


@pytest.mark.parametrize("name", ASTRAY)
def test_a_way_through_no_folder_leads_nowhere(reads, name):
    """Put together by its letters alone, it would lead to the reads."""
    name = name.format(reads)
    for act in (lambda: check_outputs({"-o": name}, ["reads"]), lambda: check_outputs({"-o": name}), lambda: write(name)):
        with pytest.raises(OutputError, match="the folder .* does not exist; make it first"):
            act()
    assert (reads / "reads").read_text() == ">a\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(("reads", name) for name in NAMES[:8]),
        *((name, "hard") for name in NAMES[:8]),
        *(("folder/new", name) for name in ("folder/new", "./folder//new", "way/new", "ahead", "{}/folder/new")),
    ],
)
def test_two_outputs_are_two_files(reads, one, other):
    one = one.format(reads)
    with pytest.raises(ParameterError, match="--report .*: the output goes there"):
        check_outputs({"-o": one, "--report": other.format(reads)})
    check_outputs({"-o": one, "--report": f"{one}2"})


def test_devices_may_be_named_twice():
    check_outputs({"-o": "/dev/null", "--report": "/dev/null"}, ["/dev/null"])
    with pytest.raises(ParameterError, match="--report -"):
        check_outputs({"-o": "-", "--report": "-"})


def test_streams_that_are_files(reads):
    """What `<` and `>>` name is the same file too."""
    code = "import sys; from bellapy.io.outputs import check_outputs; check_outputs({'-o': sys.argv[1]}, [sys.argv[2]])"
    for target, source in (("reads", "-"), ("-", "reads"), ("-", "hard"), ("-", "-")):
        with open("reads", "rb") as stdin, open("reads", "ab") as stdout:
            command = [sys.executable, "-c", code, target, source]
            done = subprocess.run(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True)
        assert "is read as input" in done.stderr
    command = [sys.executable, "-c", code, "-", "reads"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b""


def test_names_that_cannot_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "x").write_text("")
    for name, problem in (
        ("x" * 256, "File name too long"), ("round", "links lead in a circle"), ("a" * 300 + "/x", "File name too long"),
        ("", "an empty name"), ("new/", "new/: is a folder"), ("no/x", "folder no does not exist"),
        ("x/x", "folder x does not exist"),
    ):  # fmt: skip
        with pytest.raises(OutputError, match=problem):
            check_writable(name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file")
def test_a_protected_file_is_not_replaced(tmp_path):
    (tmp_path / "x").write_text("mine")
    (tmp_path / "x").chmod(0o400)
    with pytest.raises(OutputError, match="write-protected"):
        write(tmp_path / "x")


# ---------------------------------------------------------------- the folder of what is not complete


@pytest.mark.parametrize("name", ["x" * 250, "x" * 255, "[a-z]*?.paf", "\udcff\udcfe", "-x", " ", "\n"], ids=ascii)
def test_any_name(tmp_path, name):
    if name == "\udcff\udcfe" and sys.platform == "darwin":
        pytest.skip("names have to be UTF-8 here")
    (tmp_path / "a.paf.1").write_text("another's")
    write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == TEXT
    assert (tmp_path / "a.paf.1").read_text() == "another's"
    assert listing(tmp_path) == {name, "a.paf.1"}


def test_nobody_else_can_foresee_or_enter_it(tmp_path):
    seen = set()
    for _ in range(3):
        with whole_files(str(tmp_path / "x")) as (name,):
            folder = os.path.dirname(name)
            assert os.stat(folder).st_mode & 0o777 == 0o700
            assert os.path.dirname(folder) == str(tmp_path)
            seen.add(folder)
            open(name, "w").close()
    assert len(seen) == 3 and len({folder[-16:] for folder in seen}) == 3


def test_no_link_is_followed(tmp_path, monkeypatch):
    """What stands under the folder's name already, by an evil chance, is left alone."""
    monkeypatch.setattr(output.os, "urandom", bytes)
    (tmp_path / "mine").mkdir()
    with whole_files(str(tmp_path / "x")) as (name,):
        planted = os.path.dirname(name)
        open(name, "w").close()
    os.symlink("mine", planted)
    (tmp_path / "mine" / "kept").write_text("")
    with pytest.raises(OutputError, match="File exists"):
        write(tmp_path / "y")
    assert listing(tmp_path / "mine") == {"kept"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o777])
def test_the_permissions_of_what_is_replaced_stay(tmp_path, mode):
    (tmp_path / "x").write_text("old")
    (tmp_path / "x").chmod(mode)
    write(tmp_path / "x")
    assert (tmp_path / "x").stat().st_mode & 0o7777 == mode
    assert (tmp_path / "x").read_bytes() == TEXT


def test_no_old_index_beside_a_new_file(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / name).write_text("old")

    def killed(old, new):
        raise PermissionError(1, "killed")

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(OutputError), whole_files(str(tmp_path / "a"), str(tmp_path / "b")) as names:
        for name in names:
            open(name, "w").close()
    assert listing(tmp_path) == {"a"}


KILLED = """
import os, signal, sys, time
from bellapy.io import outputs as output
if len(sys.argv) > 3:
    output.BOOT_ID = sys.argv[3]
with output.whole_files(sys.argv[1]) as (name,):
    open(name, "w").write("half")
    print(name, flush=True)
    sys.stdin.read() if sys.argv[2] == "lives" else os.kill(os.getpid(), signal.SIGKILL)
"""


def begin(path, end, *system):
    """A process that writes to a file; it waits, or was killed."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), end, *map(str, system)], **pipes)
    process.stdout.readline()
    return process


def finish(process):
    process.communicate()
    return process.returncode


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    assert finish(begin(tmp_path / "x", "dies")) == -9
    assert len(listing(tmp_path)) == 3
    write(tmp_path / "y")
    assert listing(tmp_path) == {"y"}


def test_a_live_run_keeps_what_it_writes(tmp_path):
    process = begin(tmp_path / "x", "lives")
    before = listing(tmp_path)
    write(tmp_path / "x")
    assert listing(tmp_path) == before | {"x"}
    assert finish(process) == 0
    assert listing(tmp_path) == {"x"}
    assert (tmp_path / "x").read_text() == "half"


@pytest.mark.parametrize("end", ["lives", "dies"])
def test_another_system_s_files_are_left_alone(tmp_path, end):
    """Of a run on another machine that uses the same disk, nobody can know here whether it lives, whatever its number."""
    (tmp_path / "boot").write_text("another system")
    process = begin(tmp_path / "x", end, tmp_path / "boot")
    before = listing(tmp_path)
    write(tmp_path / "x")
    assert listing(tmp_path) == before | {"x"}
    finish(process)


def test_a_folder_without_a_lock(tmp_path):
    """Its owner has just begun, or was killed while it removed the folder."""
    folder = tmp_path / f"{output.PREFIX}{output.system_id()}-0"
    folder.mkdir()
    write(tmp_path / "x")
    assert folder.exists()
    os.utime(folder, (1, 1))
    write(tmp_path / "x")
    assert listing(tmp_path) == {"x"}


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(38, "Function not implemented")

    finish(begin(tmp_path / "x", "dies"))
    before = listing(tmp_path)
    monkeypatch.setattr(locks.fcntl, "flock", none)
    write(tmp_path / "y")
    assert listing(tmp_path) == before | {"y"}


def test_a_folder_that_another_run_takes_for_an_old_one_is_left(tmp_path, monkeypatch):
    """It may, between the making of the lock and the locking."""
    answers = iter([False, True])
    monkeypatch.setattr(output, "lock_file", lambda file: next(answers))
    write(tmp_path / "x")
    assert listing(tmp_path) == {"x"} and list(answers) == []


def test_standard_output(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stream)
    write("-")
    assert stream.buffer.getvalue() == TEXT
    assert not stream.closed


def test_standard_output_of_a_process():
    code = "import bellapy.io.outputs as o\nwith o.open_output('-') as s: s.write(b'\\x00\\xff\\n')\nprint('more')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"\x00\xff\nmore\n"


@pytest.mark.parametrize(
    ("path", "ending", "compressed"),
    [
        ("x.sam", "sam", False), ("X.SAM.GZ", "sam", True), ("a.b/x", "", False), ("x.fq.bgz", "fq", True), ("-", "", False),
        ("x.gz", "", True), ("x.tar.gz.paf", "paf", False),
    ],
)  # fmt: skip
def test_endings(path, ending, compressed):
    assert output.ending_of(path) == ending and output.is_compressed(path) == compressed


def test_capitals_compress(tmp_path):
    with open_output(str(tmp_path / "x.GZ")) as stream:
        stream.write(b"ACGT")
    assert gzip.decompress((tmp_path / "x.GZ").read_bytes()) == b"ACGT"
