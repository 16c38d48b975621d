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

from bellapy.errors import OutputError
from bellapy.output import check_writable, open_output

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


def test_names_relative_to_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable("x")
    write("x")
    assert (tmp_path / "x").read_bytes() == TEXT


def test_inputs_are_not_overwritten(tmp_path):
    (tmp_path / "reads").write_text("")
    (tmp_path / "link").symlink_to("reads")
    check_writable(str(tmp_path / "new"), [str(tmp_path / "reads"), "-", "missing"])
    check_writable("-", ["-"])
    for name in ("reads", "link"):
        with pytest.raises(OutputError, match="is read as input"):
            check_writable(str(tmp_path / name), ["-", str(tmp_path / "reads")])


def test_standard_output(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stream)
    write("-")
    assert stream.buffer.getvalue() == TEXT
    assert not stream.closed


def test_standard_output_of_a_process():
    code = "import bellapy.output as o\nwith o.open_output('-') as s: s.write(b'\\x00\\xff\\n')\nprint('more')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"\x00\xff\nmore\n"
