"""The command line: every bad input and option, exit codes, what goes where, and that nothing half-made stays behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pysam
import pytest
from cases import COMMANDS, listing, options_of, run, sample_reads
from numba.core import caching

import bellapy.io.outputs
from bellapy import __version__
from bellapy.cli import app as app_module
from bellapy.cli.app import load_command
from bellapy.compute.code_cache import PREFIX, digest
from bellapy.errors import MemoryLimitError, OutputClosed
from bellapy.params import RANGES
from bellapy.params.fields import PANELS

ONE_PAIR = "ACGTACGTAC\t2\tACGTACGTAC\t2\tn\n"
PROGRAM = [sys.executable, "-m", "bellapy"]


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    """Reads, the files of all stages made from them, and the truth."""
    folder = tmp_path_factory.mktemp("work")
    sample = sample_reads(7, genome=9000, depth=12, mean=2000, error=0.05)
    (folder / "reads.fa").write_text(sample.fasta())
    (folder / "truth.tsv").write_text(sample.truth())
    (folder / "pairs.tsv").write_text(ONE_PAIR)
    for command in (
        ["overlap", "reads.fa", "-o", "overlaps.paf"],
        ["count", "reads.fa", "-o", "kmers.npz"],
        ["candidates", "reads.fa", "--kmers", "kmers.npz", "-o", "seeds.npz"],
        ["align", "reads.fa", "--seeds", "seeds.npz", "-o", "alignments.npz"],
    ):
        assert run(*(folder / word if "." in word else word for word in command)).code == 0
    return folder


@pytest.fixture
def here(work, tmp_path, monkeypatch):
    """An empty working folder with the files of `work` in it, as links."""
    for path in work.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fails(folder: Path, code: int, *arguments, stdin: bytes = b"") -> str:
    """Run, require the exit code, a message without a traceback, no output and no new file; return the message."""
    before = listing(folder)
    outcome = run(*arguments, stdin=stdin)
    message = outcome.err
    assert outcome.code == code, message
    assert "Traceback" not in message
    assert outcome.out == b""
    assert listing(folder) == before
    return message


def last_line(message: str, code: int = 1) -> str:
    """The error's own line."""
    line = message.splitlines()[-1]
    assert line.startswith("bellapy: error: "), message
    return line


# ---------------------------------------------------------------- reads


def write_bam(path: Path) -> None:
    with pysam.AlignmentFile(str(path), "wb", header={"SQ": [{"SN": "g", "LN": 10}]}) as bam:
        segment = pysam.AlignedSegment(bam.header)
        segment.query_name, segment.query_sequence, segment.flag = "r", "ACGT", pysam.FUNMAP
        bam.write(segment)
    path.write_bytes(path.read_bytes()[:-40])  # cut short


def fastq(*lengths: tuple[int, int]) -> bytes:
    return b"".join(b"@r%d\n%s\n+\n%s\n" % (i, b"A" * n, b"I" * m) for i, (n, m) in enumerate(lengths))


BAD_READS = {
    "missing.fa": (None, "No such file"),
    "folder.fa": ("folder", "Is a directory"),
    "empty.fa": (b"", "empty"),
    "blank.fa": (b"\n\n", "empty"),
    "empty.fa.gz": (gzip.compress(b""), "empty"),
    "binary.fa": (bytes(range(256)) * 4, "binary data"),
    "utf8.fa": ("\ufeff>a\nACGT\n".encode(), "byte-order mark"),
    "utf16.fa": (">a\nACGT\n".encode("utf-16"), "byte-order mark"),
    "bam.bam": (write_bam, "the compressed data are damaged"),
    "cut.fa.gz": (gzip.compress(b">a\n" + b"ACGTTGCA" * 50)[:-9], "compressed data"),
    "damaged.fa.gz": (b"\x1f\x8b\x08" + bytes(range(64)), "compressed data"),
    "unequal.fq": (fastq((5, 5), (7, 6)), "record 2 (line 8): 7 bases but 6 quality values"),
    "cut.fq": (fastq((5, 5), (7, 7))[:-9], "record 2"),
    "twice.fa": (b">a\nACGT\n>b\nACGT\n>a\nCCC\n", "record 3 (line 5): has the same name 'a' as record 1"),
    "text.txt": (b"Dear reader,\n", "text before the first record"),
    "letters.fa": (b">a\nAC1T\n", "record 1 (line 2)"),
    "paf.paf": (b"q\t9\t0\t9\t+\tt\t9\t0\t9\t9\t9\t255\n", "not with '>' (FASTA) or '@' (FASTQ)"),
}


def make(folder: Path, name: str, content) -> str:
    path = folder / name
    if content == "folder":
        path.mkdir()
    elif callable(content):
        content(path)
    elif content is not None:
        path.write_bytes(content)
    return name


@pytest.mark.parametrize("name", BAD_READS)
@pytest.mark.parametrize("command", ["overlap", "count"])
def test_bad_reads(tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    content, problem = BAD_READS[name]
    make(tmp_path, name, content)
    line = last_line(fails(tmp_path, 1, command, name, "-o", "out.paf", "--report", "out.json"))
    assert line.startswith(f"bellapy: error: {name}: ")
    assert problem in line


def test_bad_reads_on_standard_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "standard input: record 2 (line 8)" in last_line(
        fails(tmp_path, 1, "overlap", "-", stdin=BAD_READS["unequal.fq"][0])
    )
    assert "standard input" in last_line(fails(tmp_path, 2, "overlap", "-", "-", stdin=b">a\nA\n"))


@pytest.mark.parametrize("threads", [1, 2])
def test_other_letters_are_told(tmp_path, monkeypatch, threads):
    """Beyond one in a hundred.  A process of its own may read: `start` is one that may begin another."""
    monkeypatch.chdir(tmp_path)
    for n, told in ((0, False), (1, False), (2, True)):
        (tmp_path / "x.fa").write_text(f">x\n{'ACGTU' * 19 + 'NNN'}{'AR'[:1] * (2 - n)}{'r' * n}\n")
        with start("overlap", "x.fa", "-t", threads, "-o", "x.paf", "--report", "x.json") as process:
            err = process.communicate()[1].decode()
        assert ("2.0 % of the letters are not A, C, G, T, U or N, and match nothing (mostly R: 2)" in err) == told
        assert json.loads((tmp_path / "x.json").read_text())["letters"] == ({"R": n} if n else {})


def test_same_reads_twice(here):
    assert "same name 'r0' as record 1" in last_line(fails(here, 1, "overlap", "reads.fa", "reads.fa", "-o", "x.paf"))


# ---------------------------------------------------------------- options


def values_out_of_range():
    for name, (low, high) in RANGES.items():
        flag = options_of("overlap")[name].flags[-1]
        if options_of("overlap")[name].kind is int:
            beyond = (int(low) - 1, int(high) + 1)
        else:
            beyond = (low - 0.001, high * 1.001, "nan", "inf")
        yield from (pytest.param(flag, value, low, high, id=f"{flag}={value}") for value in beyond)


@pytest.mark.parametrize(("flag", "value", "low", "high"), list(values_out_of_range()))
def test_option_out_of_range(here, flag, value, low, high):
    line = last_line(
        fails(here, 2, "overlap", "reads.fa", "-o", "x.paf", f"{flag}={value}" if flag[1] == "-" else f"{flag}{value}")
    )
    assert line.startswith(f"bellapy: error: {flag} ")
    assert line.endswith(f"must be from {low:.10g} to {high:.10g}")


@pytest.mark.parametrize("name", sorted(RANGES))
@pytest.mark.parametrize("value", ["x", "", "1e", "1,5"])
def test_option_that_is_no_number(here, name, value):
    flag = options_of("overlap")[name].flags[-1]
    assert flag in fails(here, 2, "overlap", "reads.fa", "-o", "x.paf", flag, value)


@pytest.mark.parametrize("name", [name for name in sorted(RANGES) if options_of("overlap")[name].kind is int])
def test_option_that_is_no_whole_number(here, name):
    flag = options_of("overlap")[name].flags[-1]
    assert flag in fails(here, 2, "overlap", "reads.fa", "-o", "x.paf", flag, "12.5")


@pytest.mark.parametrize("flag", ["--preset", "--sampling", "--extension", "--format"])
@pytest.mark.parametrize("value", ["nope", "", "AUTO"])
def test_unknown_choice(here, flag, value):
    line = last_line(fails(here, 2, "overlap", "reads.fa", "-o", "x.paf", flag, value))
    assert line.startswith(f"bellapy: error: {flag} {value}")
    assert "choose from " in line


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--upper", "3", "--lower", "4"], "--upper 3: must not be below --lower 4"),
        (["--sampling-window", "4"], "--sampling-window: choose a --sampling first"),
        (["--sampling-window", "4", "--sampling", "none"], "--sampling-window: choose a --sampling first"),
        (
            ["--sampling-window", "15", "--sampling", "syncmer", "-k", "15"],
            "--sampling-window 15: must be smaller than k (15)",
        ),
        (["--sampling", "syncmer", "-k", "7"], "--sampling-window 8: must be smaller than k (7)"),
        (["--sampling", "syncmer", "--sampling-window", "40"], "--sampling-window 40: must be smaller than k"),
    ],
)
def test_contradictions(here, options, problem):
    assert problem in last_line(fails(here, 2, "overlap", "reads.fa", "-o", "x.paf", *options))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["overlap"], "reads"),
        (["overlap", "reads.fa", "--nope"], "--nope"),
        (["nope"], "nope"),
        (["count", "reads.fa"], "--output"),
        (["candidates", "reads.fa", "-o", "x"], "--kmers"),
        (["align", "reads.fa", "-o", "x"], "--seeds"),
        (["filter", "reads.fa"], "--alignments"),
        (["extend", "pairs.tsv", "-x", "7"], "-k"),
        (["extend", "pairs.tsv", "-k", "4"], "--xdrop"),
        (["evaluate", "overlaps.paf"], "--truth"),
        (["overlap", "reads.fa", "-o"], "-o"),
        (["candidates", "reads.fa", "--kmers", "kmers.npz", "-o", "x", "-k", "5"], "-k"),
        (
            ["filter", "reads.fa", "--alignments", "alignments.npz", "--format", "cram"],
            "--format cram: choose from paf, sam, bam, bella",
        ),
        (["overlap", "reads.fa", "-o", "x.cram"], "-o x.cram: CRAM is not written. Name a BAM file"),
        (["map", "reads.fa", "reads.fa", "--format", "cram"], "--format cram: name a file with -o"),
        (["map", "reads.fa", "reads.fa", "-o", "x.cram.gz"], "--format cram: name a file that does not end in .gz"),
        (["overlap", "reads.fa", "-o", "x.BAM.gz"], "--format bam: name a file that does not end in .gz"),
        (["correct", "reads.fa", "-o", "x.bam"], "-o x.bam: reads are written as FASTQ to .fq or .fastq, and as FASTA to"),
        (["correct", "reads.fa", "-o", "x.PAF.gz"], "-o x.PAF.gz: reads are written as FASTQ"),
        (["consensus", "reads.fa", "-o", "x.sam"], "-o x.sam: the consensus is written as FASTA"),
        (["exact", "reads.fa", "reads.fa", "-o", "x.bam"], "-o x.bam: the name tells no format; end it in .paf, .sam, .txt"),
    ],
)
def test_usage(here, arguments, problem):
    assert problem.casefold() in fails(here, 2, *arguments).casefold()


def test_no_command_shows_the_help():
    outcome = run()
    assert outcome.code == 2
    assert "overlap" in outcome.out.decode() + outcome.err


# ---------------------------------------------------------------- outputs


@pytest.mark.parametrize("flag", ["-o", "--report"])
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere/x", "nowhere does not exist"),
        ("folder", "is a folder"),
        ("reads.fa/x", "does not exist"),
        ("reads.fa", "is read as input"),
        ("", "name a file"),
    ],
)
def test_output_that_cannot_be(here, monkeypatch, flag, path, problem):
    (here / "folder").mkdir()
    monkeypatch.setattr("bellapy.api.reading.gather_reads", None)  # nothing is read before the error
    line = last_line(fails(here, 1, "overlap", "reads.fa", flag, path))
    assert problem in line
    assert line.startswith(f"bellapy: error: {path}: " if path else "bellapy: error: an empty name ")


def test_inputs_of_later_stages_are_not_overwritten(here):
    for command, flag, path in (("candidates", "--kmers", "kmers.npz"), ("align", "--seeds", "seeds.npz")):
        assert "is read as input" in last_line(fails(here, 1, command, "reads.fa", flag, path, "-o", path))
    message = fails(here, 1, "filter", "reads.fa", "--alignments", "alignments.npz", "-o", "alignments.npz")
    assert "is read as input" in last_line(message)
    assert "is read as input" in last_line(fails(here, 1, "extend", "pairs.tsv", "-k4", "-x7", "-o", "pairs.tsv"))


@pytest.mark.parametrize("path", ["-", "same"])
def test_output_and_report_must_differ(here, path):
    assert f"--report {path}" in last_line(fails(here, 2, "overlap", "reads.fa", "-o", path, "--report", path))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["overlap", "reads.fa", "--sort", "-o", "x.bam", "--report", "./x.bam.bai"],
            "--report ./x.bam.bai: the output goes",
        ),
        (["overlap", "x.bam.bai", "--sort", "-o", "x.bam"], "x.bam.bai: is read as input"),
        (["filter", "reads.fa", "--alignments", "x.bam.bai", "--sort", "-o", "x.bam"], "x.bam.bai: is read as input"),
        (["overlap", "reads.fa", "--sort", "-o", "folder/x.bam"], "folder/x.bam.bai: is a folder"),
        (
            ["overlap", "reads.fa", "-o", "./new", "--report", "folder/../new"],
            "--report folder/../new: the output goes there",
        ),
        (["evaluate", "overlaps.paf", "--truth", "truth.tsv", "--false-list", "./truth.tsv"], "is read as input"),
        (["evaluate", "overlaps.paf", "--truth", "truth.tsv", "--false-list", "hard.paf"], "is read as input"),
        (["evaluate", "overlaps.paf", "--truth", "truth.tsv", "--false-list", "-"], "--false-list -: the output goes there"),
    ],
)
def test_outputs_are_compared_as_files(here, arguments, problem):
    (here / "x.bam.bai").write_bytes((here / "reads.fa").read_bytes())
    (here / "hard.paf").hardlink_to((here / "overlaps.paf").resolve())
    (here / "folder" / "x.bam.bai").mkdir(parents=True)
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    code = 2 if "goes" in problem else 1
    assert problem in last_line(fails(here, code, *arguments))
    assert before == {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(here, closed):
    """No file takes the place of a stream, where libraries would write into it."""
    command = shlex.join([*PROGRAM, "overlap", "reads.fa", "-o", "x.paf"])
    assert subprocess.run(f"{command} {closed}", shell=True).returncode == 0
    assert (here / "x.paf").read_bytes() == (here / "overlaps.paf").read_bytes()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("overlap reads.fa >&-", "standard output: is closed"),
        ("info >&-", "standard output: is closed"),
        ("overlap - <&-", "standard input: is closed"),
        ("extend - -k4 -x7 <&-", "standard input: is closed"),
    ],
)
def test_closed_streams_that_are_needed(here, words, problem):
    done = subprocess.run(f"{shlex.join(PROGRAM)} {words}", shell=True, capture_output=True, text=True)
    assert done.returncode == 1 and problem in last_line(done.stderr) and "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_permission(here):
    (here / "locked").mkdir(mode=0o500)
    assert "no permission" in last_line(fails(here, 1, "overlap", "reads.fa", "-o", "locked/x"))


@pytest.mark.parametrize("where", ["run_counting", "run_candidates", "run_alignment", "run_filter", "format_overlaps"])
@pytest.mark.parametrize(
    ("error", "code", "problem"),
    [(MemoryError, 1, "out of memory"), (KeyboardInterrupt, 130, ""), (OutputClosed(""), 141, "")],
)
def test_failure_halfway_leaves_nothing(here, monkeypatch, where, error, code, problem):
    def fail(*arguments, **options):
        raise error

    module = "api.overlapping" if where == "format_overlaps" else "jobs.overlap.pipeline"
    monkeypatch.setattr(f"bellapy.{module}.{where}", fail)
    assert problem in fails(here, code, "overlap", "reads.fa", "-o", "x.paf", "--report", "x.json")


@pytest.mark.parametrize(
    "words",
    [
        "overlap reads.fa",
        "map reads.fa reads.fa",
        "map reads.fa reads.fa --format sam",
        "map reads.fa reads.fa --format bam",
    ],
)
def test_a_reader_that_closes_the_output(here, words):
    """As `head` does: nothing is said, and the status is that of a program which SIGPIPE ended."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*PROGRAM, *words.split(), "-q"], cwd=here, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_bam_goes_to_a_reader_that_is_slow(tmp_path):
    """More than pipe and buffers hold when the file is closed: pysam lets no other thread run then."""
    rng = np.random.default_rng(3)
    genome = "".join(rng.choice(list("ACGT"), 20_000))
    (tmp_path / "g.fa").write_text(f">g\n{genome}\n")
    with open(tmp_path / "reads.fq", "w") as stream:
        for x, start in enumerate(rng.integers(0, 17_000, 84).tolist()):
            quality = rng.integers(33, 100, 3000, np.uint8).tobytes().decode()
            stream.write(f"@r{x}\n{genome[start : start + 3000]}\n+\n{quality}\n")
    words = [*PROGRAM, "map", "g.fa", "reads.fq", "--format", "bam", "-q", "-t", "1"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE) as program:
        try:
            time.sleep(0.5)
            text, _ = program.communicate(timeout=120)
        finally:
            program.kill()
    (tmp_path / "x.bam").write_bytes(text)
    assert program.returncode == 0 and 4 << 16 < len(text) < 5 << 16
    with pysam.AlignmentFile(str(tmp_path / "x.bam")) as file:
        assert sum(1 for _ in file.fetch(until_eof=True)) == 84


@pytest.mark.parametrize("options", [[], ["--workdir", "wk", "--blocks", "2"], ["-t", "3"]])
def test_both_directions(here, options):
    """Each line is followed by the same overlap, seen from the target."""
    once = run("overlap", "reads.fa", "-q").out.decode().splitlines()
    both = run("overlap", "reads.fa", "-q", "--both-directions", *options).out.decode().splitlines()
    assert both[::2] == once
    for line, other in zip(once, both[1::2], strict=True):
        columns = line.split("\t")
        assert other.split("\t") == [*columns[5:9], columns[4], *columns[:4], *columns[9:]]
    for wrong in (["--cigar"], ["-o", "x.sam"], ["--format", "bella"]):
        assert "--both-directions: only PAF without" in last_line(
            fails(here, 2, "overlap", "reads.fa", "--both-directions", *wrong)
        )


class FullDisk:
    """A stream into a file that takes `room` bytes."""

    def __init__(self, path: str, room: int):
        self.file, self.room = open(path, "wb"), room

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 2000])
@pytest.mark.parametrize(
    "command",
    [
        ["overlap", "reads.fa"],
        ["count", "reads.fa"],
        ["candidates", "reads.fa", "--kmers", "kmers.npz"],
        ["align", "reads.fa", "--seeds", "seeds.npz"],
        ["filter", "reads.fa", "--alignments", "alignments.npz"],
    ],
)
def test_full_disk_leaves_nothing(here, monkeypatch, command, room):
    monkeypatch.setattr(bellapy.io.outputs, "_open_stream", lambda path, compressed: FullDisk(path, room))
    assert "x.out: No space left on device" in last_line(fails(here, 1, *command, "-o", "x.out"))


def test_a_failed_run_keeps_the_old_output(here, monkeypatch):
    (here / "x.paf").write_text("old")
    monkeypatch.setattr(bellapy.io.outputs, "_open_stream", lambda path, compressed: FullDisk(path, 10))
    fails(here, 1, "overlap", "reads.fa", "-o", "x.paf")
    assert (here / "x.paf").read_text() == "old"


def test_debug_shows_where_an_error_comes_from(here):
    with pytest.raises(bellapy.io.outputs.OutputError, match="is a folder"):
        run("overlap", "reads.fa", "-o", str(here), "--debug")


# ---------------------------------------------------------------- stage files


def damage(content: bytes, at: float) -> bytes:
    """Some bytes changed, more than the headers inside an archive have: what those say stands twice, and may not matter."""
    place = int(len(content) * at)
    return content[:place] + bytes(byte ^ 0xFF for byte in content[place : place + 200]) + content[place + 200 :]


def foreign_npz(path: Path) -> None:
    with open(path, "wb") as stream:
        np.savez(stream, a=np.arange(3))


def plain_npy(path: Path) -> None:
    with open(path, "wb") as stream:
        np.save(stream, np.arange(3))


STAGES = {
    "candidates": ("--kmers", "kmers.npz"),
    "align": ("--seeds", "seeds.npz"),
    "filter": ("--alignments", "alignments.npz"),
}
BAD_STAGES = {
    "missing": (None, "there is no such file"),
    "folder": ("folder", "there is no such file"),
    "empty": (b"", "damaged"),
    "text": (b"hello\n", "damaged"),
    "npz": (foreign_npz, "damaged"),
    "npy": (plain_npy, "damaged"),
    "zip": (b"PK\x03\x04" + bytes(100), "damaged"),
}


@pytest.mark.parametrize("command", STAGES)
@pytest.mark.parametrize("name", BAD_STAGES)
def test_bad_stage_file(here, command, name):
    content, problem = BAD_STAGES[name]
    make(here, name, content)
    line = last_line(fails(here, 1, command, "reads.fa", STAGES[command][0], name, "-o", "x"))
    assert line.startswith(f"bellapy: error: {name}: ")
    assert problem in line


@pytest.mark.parametrize("command", STAGES)
@pytest.mark.parametrize("kind", ["cut", "last byte cut", "start", "middle"])
def test_damaged_stage_file(here, command, kind):
    flag, good = STAGES[command]
    content = (here / good).read_bytes()
    bad = {
        "cut": content[: len(content) // 2],
        "last byte cut": content[:-1],
        "start": damage(content, 0.01),
        "middle": damage(content, 0.5),
    }
    (here / "bad").write_bytes(bad[kind])
    assert "bad: is not a stage file of this version of bellapy, or damaged" in fails(
        here, 1, command, "reads.fa", flag, "bad", "-o", "x"
    )


@pytest.mark.parametrize("name", ["query_start", "query_end", "target_start", "target_end", "score"])
@pytest.mark.parametrize("flag", ["--cigar", "--cs", "--format=sam", "--trim-identity=0.5"])
def test_ends_that_no_extension_has(here, name, flag):
    """Each within its read; but what traces paths goes by the end, and would look far from where the path lies."""
    with np.load("alignments.npz") as stored:
        held = dict(stored)
    held[f"extensions.{name}"] = held[f"extensions.{name}"].copy()
    held[f"extensions.{name}"][::7] += -1 if name.endswith("end") else 1
    with open("bad", "wb") as stream:
        np.savez(stream, **held)
    command = ["filter", "reads.fa", "--alignments", "bad", "-o", "x", flag]
    problem = last_line(fails(here, 1, *command))
    assert problem.startswith("bellapy: error: bad: is not a stage file of this version of bellapy")
    assert run("filter", "reads.fa", "--alignments", "alignments.npz", "-o", "x", flag).code == 0


@pytest.mark.parametrize("command", STAGES)
def test_stage_file_of_another_stage(here, command):
    flag, good = STAGES[command]
    for _, other in STAGES.values():
        if other != good:
            assert "are needed here" in last_line(fails(here, 1, command, "reads.fa", flag, other, "-o", "x"))


@pytest.mark.parametrize("command", STAGES)
@pytest.mark.parametrize("change", ["one read fewer", "a name", "a base"])
def test_stage_file_made_from_other_reads(here, command, change):
    records = (here / "reads.fa").read_text().split(">")[1:]
    first = records[0]
    if change == "one read fewer":
        records = records[1:]
    elif change == "a name":
        records[0] = "x" + first
    else:
        records[0] = first[:-2] + ("A" if first[-2] != "A" else "C") + "\n"
    (here / "other.fa").write_text("".join(">" + record for record in records))
    flag, path = STAGES[command]
    assert f"{path}: was made from other reads" in last_line(fails(here, 1, command, "other.fa", flag, path, "-o", "x"))


# ---------------------------------------------------------------- extend


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "pairs: No such file"),
        ("folder", "pairs: Is a directory"),
        (b"", "pairs: is empty"),
        (b"ACGTACGT\t0\tACGTACGT\t0\n", "line 1: 4 columns instead of 5"),
        (b"ACGTACGT\t0\tACGTACGT\t0\tn\t7\n", "line 1: 6 columns instead of 5"),
        (b"ACGTACGT 0 ACGTACGT 0 n\n", "line 1: 1 columns instead of 5"),
        (ONE_PAIR.encode() + b"\n", "line 2: 1 columns instead of 5"),
        (b"ACGTACGT\t5\tACGTACGT\t0\tn\n", "line 1: the seed of 4 bases at 5 is not inside the query of 8"),
        (b"ACGTACGT\t0\tACGTACGT\t-1\tn\n", "line 1: the seed of 4 bases at -1 is not inside the target of 8"),
        (b"ACGTACGT\t0\tACG\t0\tn\n", "not inside the target of 3"),
        (b"ACGTACGT\t99999999999999999999\tACGTACGT\t0\tn\n", "not inside the query of 8"),
        (b"ACGTACGT\tx\tACGTACGT\t0\tn\n", "columns 2 and 4 must be whole numbers"),
        (b"ACGTACGT\t1.0\tACGTACGT\t0\tn\n", "columns 2 and 4 must be whole numbers"),
        (ONE_PAIR.encode() * 2 + b"ACGTACGT\t0\tACGTACGT\t0\t+\n", "line 3: column 5 must be n"),
        (b"ACGTACGT\t0\tACGTACGT\t0\t\xff\n", "line 1: column 5 must be n"),
        (b"ACGT-CGT\t0\tACGTACGT\t0\tn\n", "the query holds characters that are not letters"),
        (b"ACGTACGT\t0\tACGT\xc3\x80CGT\t0\tn\n", "the target holds characters that are not letters"),
        (gzip.compress(ONE_PAIR.encode())[:-6], "cut short"),
        (b"\x1f\x8b\x08" + bytes(range(64)), "cut short"),
        (gzip.compress(ONE_PAIR.encode() * 500)[:20] + b"\xff" * 50, "cut short"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,
)
def test_bad_pairs(tmp_path, monkeypatch, content, problem):
    monkeypatch.chdir(tmp_path)
    make(tmp_path, "pairs", content)
    line = last_line(fails(tmp_path, 1, "extend", "pairs", "-k", 4, "-x", 7, "-o", "out"))
    assert line.startswith("bellapy: error: pairs: ")
    assert problem in line
    if isinstance(content, bytes):
        message = fails(tmp_path, 1, "extend", "-", "-k", 4, "-x", 7, "-o", "out", stdin=content)
        assert problem.replace("pairs: ", "standard input: ") in last_line(message)


@pytest.mark.parametrize("k", [-1, 0, 32])
def test_length_of_given_seeds(here, k):
    assert f"-k {k}: must be from 1 to 31" in last_line(fails(here, 2, "extend", "pairs.tsv", f"-k{k}", "-x7", "-o", "x"))


@pytest.mark.parametrize("name", sorted(set(RANGES) & set(options_of("extend")) - {"k"}))
def test_options_of_extend(here, name):
    low, high = RANGES[name]
    for value in (int(low) - 1, int(high) + 1):
        options = {"xdrop": 7, name: value}
        words = [f"--{key.replace('_', '-')}={number}" for key, number in options.items()]
        assert f"--{name} {value}: must be from" in last_line(
            fails(here, 2, "extend", "pairs.tsv", "-k4", *words, "-o", "x")
        )


# ---------------------------------------------------------------- evaluate


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["overlaps.paf", "--truth", "missing.tsv"], 1, "missing.tsv: "),
        (["missing.paf", "--truth", "truth.tsv"], 1, "missing.paf: "),
        (["overlaps.paf", "--truth", "-"], 2, "--truth -: the truth cannot come from standard input"),
        (["overlaps.paf", "--truth", "pairs.tsv"], 1, "pairs.tsv: line 1: "),
        (["truth.tsv", "--truth", "truth.tsv"], 1, "truth.tsv: line 1: 5 columns"),
        (["reads.fa", "--truth", "truth.tsv"], 1, "reads.fa: line 1: "),
        (["overlaps.paf", "--truth", "truth.tsv", "--min-overlap", "0"], 2, "--min-overlap 0: must be from 1 to"),
        (["overlaps.paf", "--truth", "truth.tsv", "--grey", "-1"], 2, "grey"),
        (["overlaps.paf", "--truth", "truth.tsv", "--grey", "3000"], 2, "grey"),
        (["overlaps.paf", "--truth", "truth.tsv", "--min-span", "-1"], 2, "min-span"),
        (["overlaps.paf", "--truth", "truth.tsv", "--end-to-end", "-1"], 2, "end-to-end"),
        (["overlaps.paf", "--truth", "truth.tsv", "--bins", "5,x"], 2, "--bins 5,x"),
        (["overlaps.paf", "--truth", "truth.tsv", "--bins", "5000,2000"], 2, "--bins 5000,2000: give"),
        (["overlaps.paf", "--truth", "truth.tsv", "--format", "sam"], 2, "format"),
        (["overlaps.paf", "--truth", "truth.tsv", "--false-list", "nowhere/x"], 1, "nowhere/x"),
    ],
)
def test_bad_evaluation(here, arguments, code, problem):
    line = last_line(fails(here, code, "evaluate", *arguments))
    assert problem in line.replace("_", "-") or problem in line


def test_evaluate_gives_json(here):
    outcome = run("evaluate", "overlaps.paf", "--truth", "truth.tsv", "--min-overlap", "1000", "--bins", "1000,1500")
    result = json.loads(outcome.out)
    assert outcome.code == 0 and outcome.err == ""
    assert result["recall"] > 0.98 and result["precision"] > 0.98 and result["strand_accuracy"] == 1
    assert list(result["recall_by_true_overlap"]) == ["1000-1500", "1500-"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda line: "", "overlaps: holds no overlaps"),
        (lambda line: "x" + line, "both of its reads in the truth. Compare the names: the truth has reads such as 'r0'"),
        (
            lambda line: "\t".join([*line.split("\t")[:5], *line.split("\t")[:1], *line.split("\t")[6:]]),
            "of a read with itself",
        ),
    ],
)
def test_evaluation_of_nothing(here, change, problem):
    lines = (here / "overlaps.paf").read_text().splitlines()
    (here / "overlaps").write_text("".join(f"{change(line)}\n" for line in lines if change(line)))
    outcome = run("evaluate", "overlaps", "--truth", "truth.tsv")
    assert outcome.code == 0 and json.loads(outcome.out)["recall"] == 0
    assert problem in outcome.err and len(outcome.err.splitlines()) == 1


def test_several_reasons_for_nothing_to_evaluate(here):
    """A read that the truth does not have is no sign of other names where other lines have its names."""
    line = (here / "overlaps.paf").read_text().splitlines()[0].split("\t")
    inside = [*line[:2], "300", "1500", line[4], *line[5:7], "300", "1500", *line[9:]]
    (here / "overlaps").write_text("\t".join(inside) + "\n" + "\t".join(["x", *line[1:]]) + "\n")
    outcome = run("evaluate", "overlaps", "--truth", "truth.tsv", "--end-to-end", 100)
    assert "no line is left to judge: 1 of a read that the truth does not have, 1 with overhangs" in outcome.err


# ---------------------------------------------------------------- what goes where


def test_version_and_info():
    assert run("--version") == (0, f"bellapy {__version__}\n".encode(), "")
    outcome = run("info")
    rows = dict(re.split(r"\s{2,}|(?<=\S{14}) ", line, maxsplit=1) for line in outcome.out.decode().splitlines())
    assert outcome.code == 0 and outcome.err == ""
    assert rows["bellapy"] == __version__
    assert {"python", "numba", "numpy", "processor", "vector code", "devices"} <= set(rows)


def test_info_counts_all_compiled_code(monkeypatch, tmp_path):
    kept = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(kept))
    place = kept / f"{PREFIX}{digest()}"
    assert run("info").out.decode().splitlines()[-1].endswith(f"{place} (0 functions, 0.0 MB)")
    (place / "rule_12").mkdir(parents=True)
    for name in (
        "rule_12/extend_each-34.py311.1.nbc",
        "rule_12/extend_each-34.py311.nbi",
        "kernel-count-34",
        "something else",
    ):
        (place / name).write_bytes(bytes(1_000_000))
    assert run("info").out.decode().splitlines()[-1].endswith(f"{place} (2 functions, 2.0 MB)")


def test_damaged_code_is_removed(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(app_module.sys, "argv", ["bellapy", "overlap"])
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    place = tmp_path / f"{PREFIX}{digest()}"
    place.mkdir()

    def command(**_):
        caching.IndexDataCacheFile(str(place), "index", "stamp")._load_data("damaged")

    (place / "damaged").write_bytes(b"no pickle")
    assert app_module._guarded(command) == 1
    assert not place.exists() and "damaged; it is removed: run the command again" in capfd.readouterr().err
    with pytest.raises(ZeroDivisionError):
        app_module._guarded(lambda **_: 1 / 0)


@pytest.mark.parametrize("command", [*COMMANDS, None])
def test_help(command):
    outcome = run(*([command] if command else []), "--help")
    assert outcome.code == 0
    assert re.match(rf"Usage: .*bellapy {command or '.OPTIONS.'}", outcome.out.decode())
    assert outcome.err == ""
    assert not re.search(
        r"<\w+>|<list", run(*([command, "--help-all"] if command else ["-h"])).out.decode()
    )  # Python's types


def test_only_overlaps_on_standard_output(here):
    outcome = run("overlap", "reads.fa", "--report", "x.json")
    assert outcome.out == (here / "overlaps.paf").read_bytes()
    assert all(line.startswith("[bellapy] ") for line in outcome.err.splitlines())
    stages = ["read", "estimate", "count", "candidates", "align", "filter", "write"]
    assert re.findall(r"^\[bellapy\] (\w+): .*\([\d.]+ s, peak \d+ MB\)$", outcome.err, re.M) == stages
    assert re.search(
        rf"bellapy {re.escape(__version__)}: bellapy overlap reads.fa .*wall [\d.]+ s", outcome.err.splitlines()[-1]
    )


def test_quiet(here):
    assert run("overlap", "reads.fa", "-q") == (0, (here / "overlaps.paf").read_bytes(), "")
    outcome = run("overlap", "-", "-q", stdin=b">a\nACGT\n")
    assert outcome.code == 0 and "no read is as long as k" in outcome.err


def options_shown(*arguments) -> list[str]:
    """The options that a help text lists."""
    return re.findall(r"^  (?:-\w, )?(--?[\w-]+)", run(*arguments).out.decode(), re.MULTILINE)


def test_short_help_shows_what_people_use_first():
    short, full = options_shown("overlap", "-h"), options_shown("overlap", "--help-all")
    assert set(short) < set(full)
    assert len(short) <= 20 < 30 < len(full)
    assert {"-k", "--min-overlap", "--cigar", "--threads", "--help-all"} <= set(short)
    declared = {flag for option in options_of("overlap").values() for flag in option.flags}
    assert set(full) == {flag for flag in declared if flag.startswith("--")} | {"-k", "--help"}
    assert f"{len(full) - len(short)} more options: bellapy overlap --help-all" in run("overlap", "-h").out.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_panels_of_help(command):
    """Every option that is a parameter stands in its own panel, and panels in their order."""
    fields = load_command(command).fields
    parts = re.split(r"^(\w+):$", run(command, "--help-all").out.decode(), flags=re.M)
    panels = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert [name for name in panels if name in PANELS] == [name for name in PANELS if name in panels]
    for name, field in fields.items():
        assert f"{options_of(command)[name].flags[0]}" in panels[field.about.panel], name


def test_report(here):
    assert run("overlap", "reads.fa", "-o", "x.paf", "--report", "x.json", "--min-overlap", "700", "-k", "15").code == 0
    report = json.loads((here / "x.json").read_text())
    assert report["schema"] == 2 and report["version"] == __version__
    assert report["command"] == "bellapy overlap reads.fa -o x.paf --report x.json --min-overlap 700 -k 15"
    assert report["parameters"]["kmers"]["k"] == report["estimates"]["k"] == 15
    assert report["parameters"]["seeds"]["min_overlap"] == report["parameters"]["filter"]["min_overlap"] == 700
    assert report["details"]["thresholds"]["n_sure"] >= 0 and report["details"]["typical"]["density"] > 0
    assert report["stages"][-1]["lines"] == len((here / "x.paf").read_text().splitlines())


@pytest.mark.parametrize("command", ["candidates", "align", "filter", "extend"])
def test_report_of_a_single_stage(here, command):
    words = ["pairs.tsv", "-k4", "-x7"] if command == "extend" else ["reads.fa", *STAGES[command]]
    assert run(command, *words, "-o", "x", "--report", "x.json").code == 0
    assert command in [stage["stage"] for stage in json.loads((here / "x.json").read_text())["stages"]]


# ---------------------------------------------------------------- as a process of its own


def start(*arguments, **options) -> subprocess.Popen:
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], **pipes)


@pytest.mark.parametrize("threads", [1, 2])
def test_process_from_pipe_to_pipe(here, threads):
    with start("overlap", "-", "-t", threads, stdin=subprocess.PIPE) as process:
        out, err = process.communicate((here / "reads.fa").read_bytes())
    assert process.returncode == 0
    assert out == (here / "overlaps.paf").read_bytes()
    assert b"write:" in err


def test_process_with_bad_option(here):
    with start("overlap", "reads.fa", "-k", 99) as process:
        out, err = process.communicate()
    assert (process.returncode, out, err) == (2, b"", b"bellapy: error: -k 99: must be from 3 to 31\n")


def test_broken_pipe_is_quiet(here):
    with start("overlap", "reads.fa", "-q") as process:
        process.stdout.close()
        err = process.stderr.read()
        process.wait()
    assert err == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ["overlap", "reads.fa", "-q"],
        ["extend", "pairs.tsv", "-k4", "-x7"],
        ["evaluate", "overlaps.paf", "--truth", "truth.tsv"],
        ["info"],
        ["-h"],
        ["overlap", "-h"],
        ["--version"],
    ],
)
def test_full_standard_output(here, command):
    with open("/dev/full", "wb") as full, start(*command, stdout=full) as process:
        err = process.communicate()[1].decode()
    assert process.returncode == 1
    assert "bellapy: error: standard output: No space left on device\n" in err
    assert "Traceback" not in err and "Exception ignored" not in err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [["overlap", "-t1"], ["overlap", "-t2"], ["extend", "-k4", "-x7"]])
def test_interrupt(tmp_path, command, sent):
    fifo = tmp_path / "reads.fa"
    os.mkfifo(fifo)

    def heed_interrupts():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with start(*command, fifo, "-o", tmp_path / "x.paf", preexec_fn=heed_interrupts) as process:
        with open(fifo, "wb") as stream:  # opens once the program reads
            stream.write(b">a\nACGT\n" if command[0] == "overlap" else ONE_PAIR.encode())
            stream.flush()
            time.sleep(0.2)
            process.send_signal(sent)
            _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + sent
    assert b"Traceback" not in err
    assert listing(tmp_path) == {"reads.fa"}


def test_output_to_a_pipe(here):
    os.mkfifo(here / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((here / "pipe").read_bytes()))
    reader.start()
    assert run("overlap", "reads.fa", "-o", "pipe").code == 0
    reader.join()
    assert got == [(here / "overlaps.paf").read_bytes()]
    assert (here / "pipe").is_fifo()


def test_options_are_read_without_pydantic(here):
    """Typer would load it for every command, for a tenth of a second."""
    code = (
        "import sys, bellapy.cli.app as c; sys.argv = ['bellapy', 'overlap', '-qt', '1', 'reads.fa', '--delta', '.1'];"
        "c._guarded(c.app); sys.exit(any(name.startswith('pydantic') for name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "") and run.stdout


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("overlap reads.fa", ["--max-memory", "--sampling"]),
        ("correct reads.fa", ["--max-memory"]),
        ("map reads.fa reads.fa", ["--max-memory"]),
    ],
)
@pytest.mark.parametrize("kind", [MemoryError, MemoryLimitError])
def test_too_little_memory_names_options_of_the_command(here, monkeypatch, command, named, kind):
    def fail(*_, **__):
        raise kind() if kind is MemoryError else kind(10**9, "the work", 10**9)

    monkeypatch.setattr("bellapy.cli.session.run_params", fail)
    message = last_line(fails(here, 1, *command.split()))
    assert [option for option in ("--max-memory", "--sampling") if option in message.replace("--max-memory 1000M", "")] == [
        option for option in named if kind is MemoryError or option == "--sampling"
    ]


def test_what_is_not_compiled_is_told(here):
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([*PROGRAM, "overlap", "missing.fa"], cwd=here, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "NUMBA_DISABLE_JIT is set: nothing is compiled" in done.stderr


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), NotADirectoryError(20, "Not a directory")])
def test_info_where_the_folder_of_compiled_code_cannot_be_read(monkeypatch, error):
    def fail(path):
        raise error

    monkeypatch.setattr("bellapy.jobs.info.os.scandir", fail)
    outcome = run("info")
    assert outcome.code == 0 and f"({error.strerror}; NUMBA_CACHE_DIR names another folder)" in outcome.out.decode()


def processor_time() -> float:
    """Seconds of processors that ended processes took: unlike those of a clock they do not tell of other programs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_is_quick_and_loads_no_kernels():
    code = "import sys, bellapy.cli.app as c; sys.argv = ['bellapy', '--help']; c._guarded(c.app); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "typer" in modules
    assert not {"numba", "numpy", "scipy", "pysam", "pyfastx"} & set(modules)
    best = 9.0
    for _ in range(3):
        before = processor_time()
        subprocess.run([*PROGRAM, "--help"], capture_output=True, check=True)
        best = min(best, processor_time() - before)
    assert best < 0.5
