"""`bellapy correct` and `bellapy consensus` as commands: every bad input and option, and what goes where."""

from __future__ import annotations

import gzip
import re
from array import array
from pathlib import Path

import pysam
import pytest
from cases import listing, run, sample_reads

from bellapy.jobs import windows

DATA = Path(__file__).parents[2] / "data" / "lambda_reads.fastq.gz"
READS = ">a\nACGTACGTAC\n>b\nACGTACGTACGG\n"
LINE = "a\t10\t0\t10\t+\tb\t12\t0\t10\t10\t10\t255\tcg:Z:10M"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reads.fa").write_text(READS)
    (tmp_path / "good.paf").write_text(f"{LINE}\n")
    return tmp_path


def fails(folder, code, *arguments, stdin: bytes = b"") -> str:
    """The error's line of a run that writes nothing."""
    before = listing(folder)
    outcome = run(*arguments, stdin=stdin)
    assert outcome.code == code, outcome.err
    assert "Traceback" not in outcome.err and not outcome.out
    assert listing(folder) == before
    line = outcome.err.splitlines()[-1]
    assert line.startswith("bellapy: error: ")
    return line


@pytest.mark.parametrize(
    "old, new, message",
    [
        (LINE, "a\t10\t0\t10", "12 columns"),
        ("\t+\t", "\t?\t", "+ or -"),
        ("\tcg:Z:10M", "", "no path in cg:Z"),
        ("\t0\t10\t+", "\t0\tten\t+", "whole number"),
        ("b\t12", "c\t12", "read c is not among the reads"),
        ("b\t12", "b\t13", "12 bases, not 13"),
        ("\t0\t10\t+", "\t5\t5\t+", "places on a"),
        ("b\t12\t0\t10", "b\t12\t4\t14", "places on b"),
        ("10M", "9M", "does not fit"),
        ("10M", "", "does not fit"),
        ("10M", "9M1I", "does not fit"),
        ("10M", "99999999999999999999M", "does not fit"),
        ("10M", "10", "does not fit"),
        ("10M", "1M1I1D" * 40, "does not fit"),
        ("10M", "1M0I" * 40, "does not fit"),
        ("10M", "M", "does not fit"),
        ("10M", "5M5S", "operations other than"),
        ("10M", "1I8M1D1M", "begins or ends with a gap"),
        ("10M", "9M1I1D", "begins or ends with a gap"),
    ],
)
def test_a_damaged_paf_is_told_with_its_line(here, old, new, message):
    (here / "bad.paf").write_text(f"{LINE}\n\n{LINE.replace(old, new)}\n")
    line = fails(here, 1, "correct", "reads.fa", "--overlaps", "bad.paf", "-o", "out.fa")
    assert "bad.paf: line 3" in line
    assert message in line


@pytest.mark.parametrize(
    "options, message",
    [
        (["--min-support", "0"], "--min-support 0: must be from 1 to 1000"),
        (["--max-depth", "3"], "--max-depth 3"),
        (["--rounds", "11"], "--rounds 11"),
        (["--min-length", "-1"], "--min-length -1"),
        (["--trim", "--split"], "leave --trim out"),
        (["--keep-workdir"], "name a folder with --workdir"),
        (["--overlaps", "good.paf", "-e", "0.1"], "--error-rate: rules how overlaps are found"),
        (["--overlaps", "good.paf", "--preset", "hifi"], "--preset: rules"),
        (["--preset", "sanger"], "--preset sanger"),
        (["-t", "0"], "-t"),
    ],
)
def test_options_out_of_range(here, options, message):
    assert message in fails(here, 2, "correct", "reads.fa", *options)


def test_inputs_are_not_written(here):
    assert "is read as input" in fails(here, 1, "correct", "reads.fa", "-o", "reads.fa")
    (here / "good.fa").write_bytes((here / "good.paf").read_bytes())
    assert "is read as input" in fails(here, 1, "correct", "reads.fa", "--overlaps", "good.fa", "-o", "good.fa")
    assert "missing.paf" in fails(here, 1, "correct", "reads.fa", "--overlaps", "missing.paf", "-o", "out.fa")
    assert "a.fa" in fails(here, 1, "correct", "a.fa", "-o", "out.fa")


def test_files_are_written_compressed(here):
    sample = sample_reads(3, genome=3000, depth=8, mean=1500, error=0.05)
    (here / "reads.fa").write_text(sample.fasta())
    assert run("correct", "reads.fa", "-o", "out.fa.gz", "-q").code == 0
    assert gzip.decompress((here / "out.fa.gz").read_bytes()).count(b">") == len(sample)
    assert run("correct", "-", "-q", stdin=sample.fasta().encode()).out == gzip.decompress((here / "out.fa.gz").read_bytes())


def test_too_little_memory_is_told(here):
    sample = sample_reads(4, genome=3000, depth=8, mean=1500, error=0.05)
    (here / "reads.fa").write_text(sample.fasta())
    assert "--max-memory 10M" in fails(here, 1, "correct", "reads.fa", "--max-memory", "10M", "-o", "out.fa")


WINDOWS = ">w1 read 7\nACGTACGTTGCA\n>w1\nACGTACGTGCA\n>w1\nACGTCCGTTGCA\n>w2\nAAAN\n>e\n\n"


def test_consensus_of_windows(here):
    (here / "w.fa").write_text(WINDOWS)
    outcome = run("consensus", "w.fa", "-t", 1)
    assert outcome.out == b">w1\nACGTACGTTGCA\n>w2\nAAAN\n>e\n\n"
    assert "3 windows, 5 sequences" in outcome.err
    rows = b">w1\nACGTACGTTGCA\n>w1\nACGTACG-TGCA\n>w1\nACGTCCGTTGCA\n>w2\nAAAN\n>e\n\n"
    assert run("consensus", "-", "--msa", "-q", stdin=WINDOWS.encode()).out == rows
    assert run("consensus", "w.fa", "-t", 3, "-q").out == outcome.out


def test_windows_that_cannot_be_done(here):
    (here / "w.fa").write_text(f"{WINDOWS}>w1\nACGT\n")
    assert "the window w1 comes again" in fails(here, 1, "consensus", "w.fa", "-o", "out.fa")
    (here / "w.fa").write_text(f">w\n{'ACGT' * 9000}\n>w\n{'ACGT' * 9000}\n")
    assert "cut it into shorter ones" in fails(here, 1, "consensus", "w.fa", "-o", "out.fa")
    (here / "w.fa").write_text("")
    assert "empty" in fails(here, 1, "consensus", "w.fa", "-o", "out.fa")
    assert "--gap -300: must be from" in fails(here, 2, "consensus", "w.fa", "--gap", "300")
    assert "only once" in fails(here, 2, "consensus", "-", "-")


def test_consensus_takes_the_device_that_is_asked_for(here, monkeypatch):
    """With a GPU the windows of the whole file are handed over at once, else some at a time."""
    monkeypatch.setattr("bellapy.compute.resources.choose_device", lambda wanted: wanted)
    monkeypatch.setattr(windows, "BATCH_BASES", 1)
    asked, make = [], windows.make_aligner

    def watched(scoring, with_alignment, resources):
        align = make(scoring, with_alignment, type(resources)(resources.threads))

        def counted(groups):
            asked.append((resources.device, len(groups)))
            return align(groups)

        return counted

    monkeypatch.setattr(windows, "make_aligner", watched)
    (here / "w.fa").write_text(WINDOWS)
    found = {device: run("consensus", "w.fa", "-q", "-t", 1, "--device", device).out for device in ("cpu", "cuda")}
    assert found["cpu"] == found["cuda"] != b""
    assert asked == [("cpu", 1)] * 3 + [("cuda", 3)]


# ---------------------------------------------------------------- comments and tags


@pytest.fixture(scope="module")
def sample():
    return sample_reads(3, genome=5000, depth=8, mean=1200, error=0.05)


def headers(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if line[:1] in (">", "@")]


def test_comments_stay_with_their_reads(here, sample):
    """What was said of the length before is left out, and counted; a pipe is told that there is nothing to read again."""
    text = "".join(f">r{x} ch={x} length={len(bases)} run 7\n{bases}\n" for x, bases in enumerate(sample.sequences))
    (here / "in.fa").write_text(text)
    outcome = run("correct", "in.fa")
    assert outcome.code == 0, outcome.err
    assert headers(outcome.out) == [f">r{x} ch={x} run 7" for x in range(len(sample))]
    assert f"length of {len(sample)} reads" in outcome.err
    kept = [x for x, bases in enumerate(sample.sequences) if len(bases) >= 1000]
    some = run("correct", "in.fa", "--min-read-length", "1000", "-q")
    assert headers(some.out) == [f">r{x} ch={x} run 7" for x in kept]
    piped = run("correct", "-", stdin=text.encode())
    assert "comments of the reads are left out" in piped.err
    assert headers(piped.out) == [f">r{x}" for x in range(len(sample))]
    pieces = headers(run("correct", "in.fa", "--split", "-q").out)
    assert all(re.fullmatch(r">r(\d+):\d+-\d+ ch=\1 run 7", line) for line in pieces) and len(pieces) >= len(sample)


def test_tags_of_bam_stay_but_for_those_about_bases(here, sample):
    """RG and the like stay true; modified bases, qualities and arrays along the read do not."""
    header = {"HD": {"VN": "1.6"}, "RG": [{"ID": "g", "SM": "s"}]}
    with pysam.AlignmentFile("in.bam", "wb", header=header) as bam:
        for x, bases in enumerate(sample.sequences):
            read = pysam.AlignedSegment(bam.header)
            read.query_name, read.query_sequence, read.flag = f"r{x}", bases, 4
            read.query_qualities = pysam.qualitystring_to_array("5" * len(bases))
            read.set_tags([
                ("RG", "g"), ("MM", "C+m,0;"), ("ML", array("B", [9])), ("np", x, "i"), ("rq", 0.99, "f"),
                ("mv", array("b", [1] * 40)), ("sn", array("f", [1.0, 2.0])), ("dq", "!" * len(bases)),
            ])  # fmt: skip
            bam.write(read)
    outcome = run("correct", "in.bam", "-o", "out.fq")
    assert outcome.code == 0, outcome.err
    written = [line for line in (here / "out.fq").read_text().splitlines()[::4]]
    assert written == [f"@r{x}\tRG:Z:g\tnp:i:{x}\tsn:B:f,1,2" for x in range(len(sample))]
    n = len(sample)
    assert f"ML of {n}, MM of {n}, dq of {n}, mv of {n}, rq of {n} reads" in outcome.err
    mapped = run("map", "in.bam", "out.fq", "-q", "--format", "sam", "--sam-hit-only")
    assert b"RG:Z:g\tnp:i:" in mapped.out


def test_reads_that_change_meanwhile_are_told():
    from bellapy.errors import InputError
    from bellapy.io.read_comments import ReadComments
    from bellapy.params.reads import ReadParams

    with pytest.raises(InputError, match="have changed"):
        list(ReadComments([str(DATA)], ReadParams())(["a", "b"]))
