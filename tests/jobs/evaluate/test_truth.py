"""Tests of bellapy.jobs.evaluate.truth: one truth in all formats, and bad input."""

from __future__ import annotations

import gzip

import numpy as np
import pysam
import pytest

from bellapy.errors import InputError, ParameterError
from bellapy.jobs.evaluate.truth import read_truth

# name, flag, reference, 1-based position, mapping quality, CIGAR; with the same as rows of the table
ALIGNMENTS = [
    ("fwd", 0, "chr", 101, 60, "10S40M5I20M30D35=4H", "fwd chr 100 225 + 114 10 110"),
    ("rev", 16, "chr", 51, 10, "3H7S100M2N50X20S", "rev chr 50 202 - 180 20 170"),
    ("mate", 0, "chr2", 1, 60, "90M", "mate chr2 0 90 + 90 0 90"),
    ("doubt", 0, "chr", 1, 9, "90M", None),
    ("lost", 4, "*", 0, 0, "*", None),
    ("fwd", 0x100, "chr2", 1, 60, "90M", None),
    ("fwd", 0x810, "chr2", 1, 60, "24H90M", None),
]
TABLE = "".join(row[-1].replace(" ", "\t") + "\n" for row in ALIGNMENTS if row[-1])
SAM = "@SQ\tSN:chr\tLN:1000\n@SQ\tSN:chr2\tLN:1000\n" + "".join(
    "\t".join(map(str, (*row[:6], "*", 0, 0, "*", "*"))) + "\n" for row in ALIGNMENTS
)
MAF = """##maf version=1
a score=1
s chr some description 100 125 + 1000 ACGT-
s fwd 10 100 + 114 ACG-T

a
s chr 50 152 + 1000 ACGT
s rev description 10 150 - 180 ACGT

a
s chr2 910 90 - 1000 ACGT
s mate 0 90 - 90 ACGT
"""


def write_bam(path):
    (path.parent / "plain.sam").write_text(SAM)
    with (
        pysam.AlignmentFile(path.parent / "plain.sam") as source,
        pysam.AlignmentFile(path, "wb", template=source) as bam,
    ):
        for alignment in source:
            bam.write(alignment)


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz", "t", "t.gz", "T.TSV.BGZ", "t.txt"])
@pytest.mark.parametrize("text", [TABLE, "\n# comment\n" + TABLE], ids=["bare", "commented"])
def test_table(tmp_path, name, text):
    check_truth(tmp_path, name, text)


@pytest.mark.parametrize("name", ["t.maf", "t.maf.gz", "t", "t.gz"])
@pytest.mark.parametrize("text", [MAF, MAF.split("\n", 1)[1], MAF.split("\n", 1)[1].replace("a score=1", "a")])
def test_maf(tmp_path, name, text):
    check_truth(tmp_path, name, text)


@pytest.mark.parametrize("name", ["t.sam", "t.sam.gz", "t", "t.gz"])
def test_sam(tmp_path, name):
    check_truth(tmp_path, name, SAM)


@pytest.mark.parametrize("name", ["t.bam", "t"])
def test_bam(tmp_path, name):
    write_bam(tmp_path / name)
    check_truth(tmp_path, name, None)


def check_truth(folder, name, text):
    """A truth file, as text unless it is there, holds what TABLE says."""
    path = folder / name
    if text is not None:
        opener = gzip.open if path.suffix.lower() in (".gz", ".bgz") else open
        with opener(path, "wt") as stream:
            stream.write(text)
    truth = read_truth(path)
    refs = ["chr", "chr2"]
    columns = (truth.starts, truth.ends, truth.strands, truth.read_lengths, truth.read_starts, truth.read_ends)
    rows = [[refs[r], *row] for r, *row in zip(truth.ref_ids, *(c.tolist() for c in columns), strict=True)]
    expected = [row.split("\t")[1:] for row in TABLE.splitlines()]
    assert truth.names == ("fwd", "rev", "mate") and len(truth) == 3
    assert rows == [[ref, int(s), int(e), 1 if way == "+" else -1, *map(int, part)] for ref, s, e, way, *part in expected]


def test_truth_is_read_only(tmp_path):
    (tmp_path / "t.tsv").write_text(TABLE)
    with pytest.raises(ValueError, match="read-only"):
        read_truth(tmp_path / "t.tsv").starts[0] = 1


# ---- bad input ----

BAD_TRUTHS = {
    "twice": ("t.tsv", "a\tc\t0\t9\t+\nb\tc\t0\t9\t+\na\tc\t5\t9\t+\n", "line 3: read a occurs a second time"),
    "empty": ("t.tsv", "", "no read"),
    "only comments": ("t.tsv", "#read\tref\n", "no read"),
    "few columns": ("t.tsv", "a\tc\t0\t9\t+\nb\tc\t0\t9\n", "line 2: expected read, ref"),
    "not a number": ("t.tsv", "a\tc\t0\tnine\t+\n", "line 1: .*nine"),
    "not a number on the read": ("t.tsv", "a\tc\t0\t9\t+\t9\t0\tx\n", "line 1: .*'x'"),
    "negative": ("t.tsv", "a\tc\t-1\t9\t+\n", "line 1: start and end"),
    "reversed": ("t.tsv", "a\tc\t9\t1\t+\n", "line 1: start and end"),
    "too large": ("t.tsv", f"a\tc\t9\t{1 << 70}\t+\n", "line 1: start and end"),
    "outside the read": ("t.tsv", "a\tc\t0\t9\t+\t8\t0\t9\n", "line 1: start and end"),
    "unknown text": ("t", "some words\n", "unknown format"),
    "unknown suffix": ("t.xyz", "a b c d e\n", "unknown format"),
    "nothing at all": ("t", "", "unknown format"),
    "maf cut off": ("t.maf", "a\ns chr 0 9 + 99 ACGT\ns read 0 9\n", "line 3: .*cut off"),
    "maf twice": ("t.maf", "a\ns c 0 9 + 99 A\ns r 0 9 + 9 A\ns r 0 9 + 9 A\n", "line 4: read r"),
    "maf without reads": ("t.maf", "a\ns chr 0 9 + 99 ACGT\n", "no read"),
    "sam without alignments": ("t.sam", "@SQ\tSN:c\tLN:9\n", "no read"),
    "sam of something else": ("t.sam", "reads and so on\n", "not readable as SAM"),
    "sam cut off": ("t.sam", "@SQ\tSN:c\tLN:9\nr\t0\tc\t1\n", "not readable as SAM"),
}


@pytest.mark.parametrize("case", BAD_TRUTHS)
def test_bad_truth(tmp_path, case, capfd):
    name, text, message = BAD_TRUTHS[case]
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_truth(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert capfd.readouterr().err == ""


def test_files_that_cannot_be_used(tmp_path):
    packed = gzip.compress(np.random.default_rng(1).bytes(9999))
    (tmp_path / "cut.tsv.gz").write_bytes(packed[:-2000])
    (tmp_path / "damaged.tsv.gz").write_bytes(packed[:5000] + packed[5100:])
    for name in ("missing.tsv", "missing", "missing.sam", ".", "cut.tsv.gz", "damaged.tsv.gz"):
        with pytest.raises(InputError):
            read_truth(tmp_path / name)
    with pytest.raises(ParameterError, match="standard input"):
        read_truth("-")
