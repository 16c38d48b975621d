"""`view`: what is shown of reads is what their sequences and overlaps say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import naive
import numpy as np
import pytest
from strategies import mutate, random_bases

from bellapy import api
from bellapy.errors import InputError
from bellapy.jobs.view.lines import read_mates
from bellapy.jobs.view.overlaps import overlaps_text
from bellapy.jobs.view.pair import Drawn, path_corners, shared_kmers
from bellapy.jobs.view.pile import NOTHING, layout, mate_row, pile_text, position_ticks
from bellapy.records.bases import encode
from bellapy.report.pictures import short_name


@pytest.fixture(scope="module")
def reads() -> dict[str, str]:
    rng = np.random.default_rng(5)
    genome = random_bases(rng, 6000)
    made = {}
    for i, start in enumerate(range(0, 3600, 300)):
        text = mutate(rng, genome[start : start + 2400], 0.08)
        made[f"r{i}"] = naive.reverse_complement(text) if i % 2 else text
    return made


@pytest.fixture(scope="module")
def files(reads, tmp_path_factory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("view")
    (folder / "reads.fa").write_text("".join(f">{name} more\n{text}\n" for name, text in reads.items()))
    api.overlap(reads, cigar=True, threads=1).write(folder / "x.paf")
    return str(folder / "reads.fa"), str(folder / "x.paf")


def test_rows_spell_the_other_reads(reads, files):
    place = 700, 900
    length, mates = read_mates(files[1], "r6")
    assert length == len(reads["r6"])
    assert {mate.strand for mate in mates} == {1, -1}
    assert {mate.is_query for mate in mates} == {True, False}
    assert len(mates) > 6
    for mate in mates:
        row = mate_row(mate, reads[mate.name], place)
        spelled = "".join(base + more for base, more in zip(row.bases, row.inserted, strict=True)).replace("-", "").strip()
        assert spelled in (reads[mate.name], naive.reverse_complement(reads[mate.name]))[mate.strand < 0]
        covered = [base != NOTHING for base in row.bases]
        assert covered == [mate.start <= j < mate.end for j in range(*place)]
        own = reads["r6"][slice(*place)]
        same = sum(a == b for a, b in zip(row.bases, own, strict=True))
        assert same >= 0.7 * sum(covered)


def test_layout_is_rectangular_and_the_text_holds_all(reads, files):
    place = 700, 760
    mates = [mate for mate in read_mates(files[1], "r6")[1] if mate.start < place[1] and mate.end > place[0]]
    shown = layout(reads["r6"], place, [mate_row(mate, reads[mate.name], place) for mate in mates])
    assert len({len(text) for _, text in shown}) == 1
    assert shown[0][1].replace("-", "") == reads["r6"][slice(*place)]
    text = pile_text("r6", place, shown, 60)
    for name, row in shown[1:]:
        lines = [line for line in text.splitlines() if line.split()[:1] == [name]]
        assert re.sub(r"\s", "", "".join(line[len(name) :] for line in lines)) == re.sub(r"\s", "", row)


def test_overlaps_as_text(files):
    length, mates = read_mates(files[1], "r6")
    rows = overlaps_text("r6", length, mates, 100).splitlines()
    assert rows[-1] == f"{len(mates)} overlaps"
    for mate, row in zip(mates, rows[1:-1], strict=True):
        assert row.startswith(mate.name)
        assert ("<" in row) == (mate.strand < 0)


def test_shared_kmers(rng):
    k, query, target = 5, random_bases(rng, 300), random_bases(rng, 200)
    query = query[:50] + "N" + query[50:]
    same, other = shared_kmers(encode(query), encode(target), k)
    for dots, turn in ((same, str), (other, naive.reverse_complement)):
        expected = {
            (i, j) for i in range(len(query) - k + 1) for j in range(len(target) - k + 1)
            if query[i : i + k] == turn(target[j : j + k]) and "N" not in query[i : i + k]
        }  # fmt: skip
        assert set(zip(dots.query.tolist(), dots.target.tolist(), strict=True)) == expected


@pytest.mark.parametrize("strand", [1, -1])
def test_corners_lead_from_end_to_end(strand):
    found = Drawn(10, 25, 100, 117, strand, (12, 102, 3), "5M2D3M1I6M1D", 9, 0.9)
    query, target = path_corners(found)
    assert (query[0], query[-1]) == ((10, 25) if strand > 0 else (25, 10))
    assert (target[0], target[-1]) == (100, 117)


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "bellapy", "view", *arguments], capture_output=True, text=True)


def test_commands(files, tmp_path):
    reads, overlaps = files
    shown = run("r6", "--overlaps", overlaps)
    assert (shown.returncode, shown.stderr) == (0, "")
    shown = run("r2", "r4", "--reads", reads)
    assert "same strand: score" in shown.stdout, shown.stderr
    shown = run("r6", "--overlaps", overlaps, "--reads", reads, "--at", "700-760", "--corrected", reads)
    corrected = next(line for line in shown.stdout.splitlines() if line.startswith("corrected"))
    assert set(corrected[9:].strip()) <= {".", "-"}, shown.stderr
    for name, arguments in {
        "a.png": ("r6", "--overlaps", overlaps),
        "b.svg": ("r2", "r4", "--reads", reads),
        "c.png": ("r6", "--overlaps", overlaps, "--reads", reads, "--at", "700-760"),
    }.items():
        assert run(*arguments, "-o", str(tmp_path / name)).returncode == 0
        assert (tmp_path / name).stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["r6"], 2, "give them with --overlaps"),
        (["r1", "r2"], 2, "give their file with --reads"),
        (["r1", "r1", "--reads", "READS"], 2, "is named twice"),
        (["r1", "no", "--reads", "READS"], 1, "no read is named no"),
        (["no", "--overlaps", "PAF"], 1, "no overlap of a read named no"),
        (["r1", "--overlaps", "PAF", "--reads", "READS", "--at", "9-5"], 2, "two numbers are needed"),
        (["r1", "--overlaps", "PAF", "--reads", "READS", "--at", "0-99999"], 2, "has 2,"),
        (["r1", "--overlaps", "PAF", "-o", "x.doc"], 2, "end it in .png"),
        (["r1", "--overlaps", "PAF", "--at", "1-5"], 2, "give --reads and --overlaps"),
        (["r1", "--overlaps", "PAF", "--reads", "READS", "--at", "\u00b2-9"], 2, "two numbers are needed"),
        (["r1", "--overlaps", "PAF", "--reads", "READS"], 2, "--reads is for two names"),
        (["r1", "r2", "--overlaps", "PAF", "--reads", "READS"], 2, "leave out --overlaps"),
        (["r1", "--overlaps", "gone.paf"], 1, "gone.paf"),
        (["r1", "--overlaps", "READS"], 1, "a line of PAF has 12 columns or more"),
    ],
)
def test_mistakes(files, arguments, code, message):
    given = [{"READS": files[0], "PAF": files[1]}.get(text, text) for text in arguments]
    found = run(*given)
    assert found.returncode == code
    assert message in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"cg:Z:5000M", "does not fit the places"),
        (b"cg:Z:9M\xff", "operations other than M"),
        (b"cg:Z:", "does not fit the places"),
        (b"cg:Z:*", "its overlap has no path"),
    ],
)
def test_paths_are_checked(files, tmp_path, text, message):
    lines = Path(files[1]).read_bytes().splitlines()
    columns = next(line for line in lines if b"r6" in line).split(b"\t")
    wrong = tmp_path / "wrong.paf"
    wrong.write_bytes(b"\t".join([*(column for column in columns if not column.startswith(b"cg:Z:")), text]) + b"\n")
    place = int(columns[2 if columns[0] == b"r6" else 7])
    found = run("r6", "--overlaps", str(wrong), "--reads", files[0], "--at", f"{place}-{place + 9}")
    assert found.returncode == 1 and message in found.stderr and "Traceback" not in found.stderr


def test_reads_are_those_of_the_overlaps(files, tmp_path):
    short = tmp_path / "short.fa"
    short.write_text(re.sub("(?m)^([ACGT]{1000})[ACGT]*$", r"\1", Path(files[0]).read_text()))
    found = run("r6", "--overlaps", files[1], "--reads", str(short), "--at", "700-710")
    assert found.returncode == 1 and "give the same reads" in found.stderr


def test_a_path_is_needed_base_by_base(files):
    mate = read_mates(files[1], "r6")[1][0]._replace(cigar=None)
    with pytest.raises(InputError, match="--cigar"):
        mate_row(mate, "", (0, 1))


@pytest.mark.parametrize(
    ("place", "own", "columns", "texts"),
    [
        ((100, 104), "AC--GT", [0, 1, 4, 5], ["100", "101", "102", "103"]),
        ((1990, 2120), "A" * 130, list(range(10, 130, 20)), ["2,000", "2,020", "2,040", "2,060", "2,080", "2,100"]),
        ((7, 9), "--A-C", [2, 4], ["7", "8"]),
    ],
)
def test_places_below_a_pile_are_round_and_below_their_bases(place, own, columns, texts):
    assert position_ticks(place, own) == (columns, texts)


def test_long_names_keep_both_ends():
    assert short_name("read7") == "read7"
    assert short_name("abcdefghij", 5) == "ab\u2026ij" and len(short_name("x" * 99)) <= 50
