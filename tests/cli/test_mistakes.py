"""The likeliest mistakes of new users, each made with every command: a message that says what, where and what to do.

Exit status 1 for files, 2 for usage; no traceback, nothing on standard output, and no file begun.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pysam
import pytest
from cases import COMMANDS, IMPORTS, listing, options_of, run, sample_reads

USES = {
    "overlap": "reads.fa -o new.paf",
    "correct": "reads.fa -o new.fa",
    "assemble": "reads.fa -o new.fa",
    "polish": "reference.fa reads.fa -o new.fa",
    "map": "reference.fa reads.fa -o new.paf",
    "index": "reference.fa -o new.idx",
    "exact": "reference.fa other.fa -o new.paf",
    "wga": "reference.fa other.fa -o new.maf",
    "extend": "pairs.tsv -k 4 -x 7 -o new.tsv",
    "pairwise": "pairs.tsv -o new.tsv",
    "consensus": "windows.fa -o new.fa",
    "evaluate": "overlaps.paf --truth truth.tsv --false-list new.paf",
    "count": "reads.fa -o new.npz",
    "candidates": "reads.fa --kmers stage.npz -o new.npz",
    "align": "reads.fa --seeds stage.npz -o new.npz",
    "filter": "reads.fa --alignments stage.npz -o new.paf",
    "plan": "reads.fa --workdir new",
    "view": "r0 --overlaps overlaps.paf -o new.png",
}
"""Every command that reads files, with files of sound kinds; stages get none that is sound."""
TAKEN = {
    "empty": {("evaluate", "overlaps.paf")},  # no overlaps were found
    "same names": {
        ("map", "reads.fa"), ("exact", "reference.fa"), ("exact", "other.fa"), ("wga", "reference.fa"), ("wga", "other.fa"),
        ("consensus", "windows.fa"),
    },
}  # fmt: skip
"""Wrong files that some commands take in some places."""
PAF = "r0\t900\t0\t800\t+\tr1\t900\t100\t900\t700\t800\t255\n"
PROTEIN = "MKVLAAGIVGLLLLQPSTEF" * 30


def write_bam(path: Path) -> None:
    with pysam.AlignmentFile(str(path), "wb", header={"SQ": [{"SN": "g", "LN": 10}]}) as bam:
        segment = pysam.AlignedSegment(bam.header)
        segment.query_name, segment.query_sequence, segment.flag = "r", "ACGT", pysam.FUNMAP
        bam.write(segment)
    path.write_bytes(path.read_bytes()[:-40])  # cut short


WRONG = {
    "missing": None,
    "folder": "folder",
    "empty": b"",
    "pdf": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n" * 20,
    "html": b"<!DOCTYPE html>\n<html>404: not found</html>\n",
    "cut.gz": gzip.compress(b">a\n" + b"ACGTTGCA" * 500)[:-9],
    "bam": write_bam,
    "sam": b"@HD\tVN:1.6\n@SQ\tSN:g\tLN:10\nr\t4\t*\t0\t0\n",
    "protein": f">p\n{PROTEIN}\n".encode(),
    "same names": b">a\nACGT\n>b\nACGT\n>a\nACGT\n",
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with sound files and wrong ones."""
    sample = sample_reads(7, genome=3000, depth=3, mean=900, error=0.05)
    texts = {
        "reads.fa": sample.fasta(), "truth.tsv": sample.truth(), "reference.fa": f">g\n{sample.sequences[0]}\n",
        "other.fa": f">h\n{sample.sequences[1]}\n", "pairs.tsv": "ACGTACGTAC\t2\tACGTACGTAC\t2\tn\n",
        "windows.fa": ">w\nACGTACGT\n>w\nACGTACG\n", "overlaps.paf": PAF, "stage.npz": "",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for name, content in WRONG.items():
        if content == "folder":
            (tmp_path / name).mkdir()
        elif callable(content):
            content(tmp_path / name)
        elif content is not None:
            (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(folder: Path, code: int, *words: str) -> str:
    """What is said of a call that must fail."""
    before = listing(folder)
    outcome = run(*words)
    assert outcome.code == code, outcome.err
    assert outcome.out == b"" and listing(folder) == before
    assert "Traceback" not in outcome.err
    line = outcome.err.strip().splitlines()[-1]
    assert line.startswith("bellapy: error: " if code == 1 else ("bellapy: error: ", "Error: ")), outcome.err
    return line


def sound(command: str) -> list[str]:
    return [command, *USES[command].split()]


def with_wrong(command: str, wrong: str) -> list[list[str]]:
    """Its calls with one of the files that are read replaced; what is sound for a command is left out."""
    words, calls = sound(command), []
    for i, word in enumerate(words):
        if "." in word and not word.startswith("new"):
            fine = (command, word) in TAKEN.get(wrong, ())
            if not fine:
                calls.append([*words[:i], wrong, *words[i + 1 :]])
    return calls


ODD = os.fsdecode(b"\xff\xe9.fa")  # no UTF-8


@pytest.mark.parametrize(
    "words", ["map {} reads.fa -o x.bam", "map {} reads.fa -o x.sam", "overlap {} -o x.bam", "exact {} other.fa -o x.sam",
              "wga {} other.fa -o x.sam", "overlap {} -o x.paf", "correct {} -o x.fa", "map reference.fa {} -o {}.bam"]
)  # fmt: skip
def test_file_names_that_are_not_utf_8(here, words):
    """The command stands in headers and reports."""
    os.rename("reference.fa" if not words.startswith(("overlap", "correct", "map ref")) else "reads.fa", ODD)
    command = [word.replace("{}", ODD) for word in words.split()]
    for report in ("report.html", "report.json", "report.svg", f"{ODD}.html", "report_mqc.json"):
        outcome = run(*command, "--report", report)
        assert outcome.code == 0, outcome.err
        assert "Traceback" not in outcome.err and os.path.exists(report)
        Path(report).read_text()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("overlap reads.fa -o new.paf --report new.pdf", "--report new.pdf: reports are .html, .png, .svg and .json"),
        ("overlap reads.fa -o new.bam --format sam", "--format sam: -o new.bam ends in .bam"),
        ("map reference.fa reads.fa -o new.paf --format bam", "--format bam: -o new.paf ends in .paf"),
        ("map reference.fa reads.fa -o new.maf", "--format paf: -o new.maf ends in .maf"),
    ],
)
def test_names_that_do_not_fit_what_is_written(here, words, problem):
    assert problem in refused(here, 2, *words.split())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda line: line.replace("\t+\t", "\t*\t"), "the strand is '*', not +"),
        (lambda line: line.replace("\t800\t+", "\t901\t+"), "outside the read"),
        (lambda line: line.replace("\t0\t800", "\t-1\t800"), "outside the read"),
        (lambda line: line.replace("\t100\t900\t", "\t900\t100\t"), "not in order"),
    ],
)
def test_lines_of_paf_that_cannot_be(here, change, problem):
    (here / "overlaps.paf").write_text(PAF + change(PAF))
    assert problem in refused(here, 1, "view", "r0", "--overlaps", "overlaps.paf")
    outcome = run("evaluate", "overlaps.paf", "--truth", "truth.tsv")
    if "strand" in problem:
        assert outcome.code == 1 and "overlaps.paf: line 2: the strand is '*', not + or -" in outcome.err
    else:
        assert json.loads(outcome.out)["lines_bad_coordinates"] == 1


def test_every_command_that_reads_is_here():
    assert set(COMMANDS) - set(USES) == {"run-tile", "gather", "stage-options", "warm-up", "info"}


def from_pipe(data: bytes) -> str:
    """The name of a pipe that gives these bytes, as of <(...) in a shell."""
    reader, writer = os.pipe()
    Thread(target=lambda: (os.write(writer, data), os.close(writer)), daemon=True).start()
    return f"/dev/fd/{reader}"


@pytest.mark.parametrize(
    "words", ["map reference.fa reads.fa", "exact reference.fa other.fa", "wga reference.fa other.fa", "overlap reads.fa",
              "correct reads.fa", "map reference.fa reads.fa --preset hifi --secondary no"]
)  # fmt: skip
def test_pipes_as_files(here, words):
    """Also a reference of `map`, which is indexed anew where the reads want other k-mers."""
    expected = run(*words.split())
    assert expected.code == 0
    for i, name in enumerate(words.split()):
        if name.endswith(".fa"):
            command = words.split()
            command[i] = from_pipe((here / name).read_bytes())
            found = run(*command)
            assert found.code == 0 and found.out == expected.out, found.err
    line = refused(here, 2, "overlap", from_pipe((here / "reads.fa").read_bytes()), "--workdir", "new", "-o", "new.paf")
    assert "/dev/fd/" in line and "cannot be read again" in line


@pytest.mark.parametrize("room", [0, 6000])
@pytest.mark.parametrize(
    "words",
    [
        "map reference.fa reads.fa -o new.bam", "map reference.fa reads.fa -o new.paf.gz", "overlap reads.fa -o new.bam",
        "map reference.fa reads.fa -o new.sam", "index reference.fa -o new.idx", "overlap reads.fa --workdir new",
        "plan reads.fa --workdir new", "correct reads.fa --workdir new", "overlap reads.fa -o new.paf.gz",
        "count reads.fa -o new.npz", "wga reference.fa other.fa -o new.maf", "overlap reads.fa --report new.html",
        "exact reference.fa other.fa -o new.sam",
    ],
)  # fmt: skip
def test_files_that_have_no_room(here, words, room):
    """The system says it, whatever libraries make of it; a limit on the size of files stands for a full disk."""
    command = [sys.executable, "-m", "bellapy", *words.split(), "-q"]
    environment = {**os.environ, "PYTHONPATH": IMPORTS}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )  # fmt: skip
    if room and done.returncode == 0 and "--workdir" not in words:
        pytest.skip("the output is smaller")
    assert done.returncode == 1, done.stderr
    (line,) = [text for text in done.stderr.splitlines() if "compiles again" not in text]
    assert line.startswith("bellapy: error: new") and ": File too large" in line


@pytest.mark.parametrize("command", USES)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_file(here, command, wrong):
    for words in with_wrong(command, wrong):
        line = refused(here, 1, *words)
        assert wrong in line, line


@pytest.mark.parametrize("command", USES)
def test_output_that_cannot_be(here, command):
    words = sound(command)
    at = next(i for i, word in enumerate(words) if word.startswith("new"))
    ending = Path(words[at]).suffix
    folder, read = here / f"folder{ending}", next(word for word in words if "." in word)
    folder.mkdir(exist_ok=True)
    refused(here, 1, *words[:at], f"nowhere/new{ending}", *words[at + 1 :])
    if command != "plan":  # which wants a folder
        assert "is a folder" in refused(here, 1, *words[:at], folder.name, *words[at + 1 :])
        if Path(read).suffix == ending or command in ("overlap", "count", "extend"):
            assert "is read as input" in refused(here, 1, *words[:at], read, *words[at + 1 :])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("command", USES)
def test_folder_that_is_read_only(here, command):
    (here / "locked").mkdir(mode=0o500)
    words = [word.replace("new", "locked/new") for word in sound(command)]
    assert "ermission" in refused(here, 1, *words)


@pytest.mark.parametrize("command", USES)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--threads", "-1"), ("--threads", "0"), ("--threads", "999999999"), ("--threads", "two"),
        ("--max-memory", "-5G"), ("--max-memory", "banana"), ("--device", "gpu"), ("--preset", "nanopore"),
        ("--min-overlap", "-10"), ("--min-overlap", "1e99"), ("-k", "-3"), ("-k", "1000"), ("--xdrop", "-1"),
    ],
)  # fmt: skip
def test_absurd_value(here, command, option, value):
    known = {flag for field in options_of(command).values() for flag in field.flags}
    if option not in known:
        pytest.skip("the command has no such option")
    assert option in refused(here, 2, *sound(command), option, value)


@pytest.mark.parametrize(
    ("command", "words", "problem"),
    [
        ("overlap", ["-k", "abc"], "-k abc: give a whole number"),
        ("overlap", ["--depth", "3x"], "--depth 3x: give a number"),
        ("extend", ["--match", "1.5"], "--match 1.5: give a whole number"),
        ("pairwise", ["--band", "0"], "--band 0: must be from 1 to 2147483647"),
    ],
)
def test_value_of_another_type(here, command, words, problem):
    assert refused(here, 2, *sound(command), *words) == f"bellapy: error: {problem}"


@pytest.mark.parametrize("command", USES)
def test_typing_errors(here, command):
    assert "No such option: --ouptut" in refused(here, 2, *sound(command), "--ouptut", "x")
    near = f"{command}x: there is no such command; did you mean `bellapy {command}`?"
    assert near in refused(here, 2, f"{command}x", "reads.fa")
    line = run(command).err.strip().splitlines()[-1]
    assert line.startswith(("Error: Missing", "bellapy: error: ")), line


@pytest.mark.parametrize("command", [command for command in USES if "device" in options_of(command)])
def test_no_gpu(here, command, monkeypatch):
    monkeypatch.setattr("bellapy.compute.gpu.devices.find_devices", None, raising=False)
    outcome = run(*sound(command), "--device", "cuda")
    if outcome.code == 0:
        pytest.skip("there is a GPU")
    assert outcome.code == 1 and "Traceback" not in outcome.err


@pytest.mark.parametrize("command", [command for command in USES if "max_memory" in options_of(command)])
def test_too_little_memory(here, command):
    outcome = run(*sound(command), "--max-memory", "2M")
    assert outcome.code == 1 and "needs more" in outcome.err or "stage.npz" in outcome.err, outcome.err
    assert command == "plan" or not list(here.glob("new*"))  # which keeps the reads that it has read


def test_reads_of_unknown_bases_are_not_called_too_shallow(tmp_path):
    (tmp_path / "n.fa").write_text("".join(f">r{x}\n{'N' * 3000}\n" for x in range(4)))
    for command in ("overlap", "correct"):
        outcome = run(command, tmp_path / "n.fa")
        assert outcome.code == 0 and "100 % of the bases are unknown (N, or no letter of a base)" in outcome.err
        assert "shallow" not in outcome.err
