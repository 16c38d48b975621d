"""The text formats, column by column, and whole files against tests/expected.

BELLAPY_REGENERATE=1 writes the expected files anew; review the difference before committing them.
"""

from __future__ import annotations

import difflib
import os

import numpy as np
import pytest
from cases import TESTS, parse_paf, run, sample_reads
from strategies import make_reads

from bellapy.io.paf import CHUNK, FORMATS, format_overlaps
from bellapy.records import Overlaps

EXPECTED = TESTS / "expected"
READS = make_reads(["A" * 100, "C" * 250, "G" * 70_000])
ROWS = [
    # query, target, strand, query start and end, target start and end, score, support, matches, columns
    (0, 1, 1, 10, 100, 0, 95, 70, 3, 85, 100),
    (0, 2, -1, 0, 60, 69_000, 69_058, 40, 2, 50, 62),
    (1, 2, -1, 0, 250, 0, 250, 250, 11, 250, 250),
    (1, 2, 1, 5, 5, 7, 7, 0, 1, 0, 0),
]


def make_overlaps(rows) -> Overlaps:
    columns = zip(*rows, strict=True) if rows else [[]] * 11
    given = [np.array(column, np.int8 if i == 2 else np.int32) for i, column in enumerate(columns)]
    return Overlaps(*given, *np.zeros((7, len(rows)), np.int32))  # no seeds


def lines(rows, overlap_format: str) -> list[str]:
    return b"".join(format_overlaps(READS, make_overlaps(rows), overlap_format)).decode().splitlines()


def test_paf_columns():
    assert lines(ROWS, "paf") == [
        "r0\t100\t10\t100\t+\tr1\t250\t0\t95\t85\t100\t255\ttp:A:S\tcm:i:3\tAS:i:70\tdv:f:0.1500",
        "r0\t100\t0\t60\t-\tr2\t70000\t69000\t69058\t50\t62\t255\ttp:A:S\tcm:i:2\tAS:i:40\tdv:f:0.1935",
        "r1\t250\t0\t250\t-\tr2\t70000\t0\t250\t250\t250\t255\ttp:A:S\tcm:i:11\tAS:i:250\tdv:f:0.0000",
        "r1\t250\t5\t5\t+\tr2\t70000\t7\t7\t0\t0\t255\ttp:A:S\tcm:i:1\tAS:i:0\tdv:f:1.0000",
    ]


def test_bella_columns():
    """query, target, shared k-mers, score, overlap estimate, strand, query start, end, length, the same of the target."""
    assert lines(ROWS, "bella") == [
        "r0\tr1\t3\t70\t100\tn\t10\t100\t100\t0\t95\t250",
        "r0\tr2\t2\t40\t62\tc\t0\t60\t100\t942\t1000\t70000",
        "r1\tr2\t11\t250\t250\tc\t0\t250\t250\t69750\t70000\t70000",
        "r1\tr2\t1\t0\t0\tn\t5\t5\t250\t7\t7\t70000",
    ]


@pytest.mark.parametrize("overlap_format", FORMATS)
def test_nothing_and_many(overlap_format):
    assert lines([], overlap_format) == []
    few = lines(ROWS, overlap_format)
    assert lines(ROWS * (CHUNK // 4 + 3), overlap_format) == few * (CHUNK // 4 + 3)


def test_evaluate_reads_both_formats_alike(tmp_path):
    truth = "".join(f"r{i}\tg\t{i}\t{i + 5000}\t+\n" for i in range(3))
    (tmp_path / "truth.tsv").write_text(truth)
    results = []
    for overlap_format in FORMATS:
        (tmp_path / overlap_format).write_text("\n".join(lines(ROWS, overlap_format)) + "\n")
        outcome = run("evaluate", tmp_path / overlap_format, "--truth", tmp_path / "truth.tsv", "--format", overlap_format)
        assert outcome.code == 0, outcome.err
        results.append(outcome.out)
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("default.paf", []),
        ("candidates.paf", ["--skip-alignment"]),
        ("bella.tsv", ["--format", "bella", "-k", "15"]),
        ("accurate.paf", ["--preset", "hifi"]),
    ],
)
def test_whole_files(tmp_path, name, options):
    error = 0.01 if name == "accurate.paf" else 0.1
    (tmp_path / "reads.fa").write_text(sample_reads(12, genome=6000, depth=10, mean=2000, error=error).fasta())
    got = run("overlap", tmp_path / "reads.fa", *options).out.decode()
    path = EXPECTED / name
    if os.environ.get("BELLAPY_REGENERATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(got)
    difference = difflib.unified_diff(path.read_text().splitlines(), got.splitlines(), str(path), "now", lineterm="", n=0)
    assert "\n".join(difference) == ""
    assert got.count("\n") >= 100
    if name.endswith(".paf"):
        assert all(line.query < line.target for line in parse_paf(got.encode()))
