"""Base-level overlaps on the command line: tags of PAF, SAM and BAM as pysam reads them, against the reads themselves."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import naive
import numpy as np
import pysam
import pytest
from cases import listing, parse_paf, roomy, run, sample_reads
from pair_cases import make_pairs, rows, text

from bellapy import __version__
from bellapy.compute import own_process
from bellapy.engines import trace as paths
from bellapy.io import sam
from bellapy.params import RANGES


@pytest.fixture(scope="module")
def sample():
    return sample_reads(21, genome=12_000, depth=9, mean=2500, error=0.12)


@pytest.fixture
def here(sample, tmp_path, monkeypatch):
    """An empty working folder with reads in it."""
    (tmp_path / "reads.fa").write_text(sample.fasta())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bellapy(*arguments):
    outcome = run(*arguments)
    assert outcome.code == 0, outcome.err
    return outcome.out


def interval(sample, line) -> tuple[str, str]:
    """Aligned bases of a PAF line along the target's forward strand."""
    query = sample.sequences[line.query][line.query_start : line.query_end]
    target = sample.sequences[line.target][line.target_start : line.target_end]
    return query if line.strand > 0 else naive.reverse_complement(query), target


def columns_of(cigar: str, query: str, target: str):
    """Letters of query and target in every column, "-" in gaps."""
    q = t = 0
    for n, op in re.findall(r"([0-9]+)([MID])", cigar):
        for _ in range(int(n)):
            yield query[q] if op != "D" else "-", target[t] if op != "I" else "-"
            q, t = q + (op != "D"), t + (op != "I")
    assert (q, t) == (len(query), len(target))


# ---------------------------------------------------------------- PAF


def test_tags_of_paf(here, sample):
    plain, exact = parse_paf(bellapy("overlap", "reads.fa")), parse_paf(bellapy("overlap", "reads.fa", "--cigar", "--cs"))
    assert len(plain) == len(exact) > 100 and {line.strand for line in exact} == {1, -1}
    for before, line in zip(plain, exact, strict=True):
        assert before[:9] == line[:9]
        columns = list(columns_of(line.tags["cg:Z"], *interval(sample, line)))
        matches, gaps = sum(a == b for a, b in columns), len(re.findall("[ID]", line.tags["cg:Z"]))
        gap_bases = sum("-" in column for column in columns)
        assert (line.matches, line.columns) == (matches, len(columns))
        assert int(line.tags["NM:i"]) == len(columns) - matches
        assert int(line.tags["AS:i"]) == int(before.tags["AS:i"]) == 2 * matches - len(columns)
        events = len(columns) - matches - gap_bases + gaps
        assert float(line.tags["de:f"]) == pytest.approx(events / (events + matches), abs=6e-5)
        assert list(line.tags) == ["tp:A", "cm:i", "AS:i", "NM:i", "de:f", "cg:Z", "cs:Z"]
        assert len(re.findall(r"[0-9]+", line.tags["cs:Z"])) > 10
        assert abs(before.matches - matches) < 0.05 * matches


def test_only_the_tags_asked_for(here):
    tags = {
        option: set(parse_paf(bellapy("overlap", "reads.fa", *option))[0].tags)
        for option in ((), ("--cigar",), ("--cs",), ("--trim-identity", 0.7))
    }
    assert "dv:f" in tags[()] and not tags[()] & {"NM:i", "cg:Z", "cs:Z"}
    assert {option[0]: tags[option] & {"cg:Z", "cs:Z", "dv:f"} for option in list(tags)[1:]} == {
        "--cigar": {"cg:Z"}, "--cs": {"cs:Z"}, "--trim-identity": set(),
    }  # fmt: skip


@pytest.mark.parametrize("extension", ["best", "longest"])
def test_threads_pieces_and_memory_change_nothing(here, monkeypatch, extension):
    options = ("--cigar", "--cs", "--extension", extension)
    expected = bellapy("overlap", "reads.fa", "-t", 1, *options)
    monkeypatch.setattr(paths, "BLOCK_BASES", 20_000)
    for threads in (1, 2, 5):
        assert bellapy("overlap", "reads.fa", "-t", threads, *options) == expected
    assert bellapy("overlap", "reads.fa", "-t", 2, *roomy(), *options) == expected


def test_in_stages(here):
    bellapy("count", "reads.fa", "-o", "k")
    bellapy("candidates", "reads.fa", "--kmers", "k", "-o", "s")
    bellapy("align", "reads.fa", "--seeds", "s", "-x", 17, "--extension", "longest", "-o", "a")
    for options in (["--cigar"], ["--format", "sam"], ["--cs", "--trim-identity", 0.75]):
        got, expected = (
            bellapy(*command, *options)
            for command in (
                ["filter", "reads.fa", "--alignments", "a"],
                ["overlap", "reads.fa", "-x", 17, "--extension", "longest"],
            )
        )
        assert [line for line in got.splitlines() if not line.startswith(b"@PG")] == [
            line for line in expected.splitlines() if not line.startswith(b"@PG")
        ]


def test_identity_is_the_paths(here):
    every = parse_paf(bellapy("overlap", "reads.fa", "--cigar"))
    least = float(np.median([line.matches / line.columns for line in every]))
    some = parse_paf(bellapy("overlap", "reads.fa", "--cigar", "--min-identity", least, "--report", "report.json"))
    assert some == [line for line in every if line.matches >= least * line.columns]
    report = json.loads((here / "report.json").read_text())
    stages = {stage["stage"]: stage for stage in report["stages"]}
    assert stages["paths"]["overlaps"] == len(some) == stages["filter"]["overlaps"] - report["dropped"]["identity"]
    assert 0 < report["dropped"]["identity"] == len(every) - len(some)


def test_trimming(here, sample):
    options = "overlap", "reads.fa", "--cigar", "--min-overlap", 1000
    every = parse_paf(bellapy(*options))
    trimmed = parse_paf(bellapy(*options, "--trim-identity", 0.8))
    whole = {(line.query, line.target, line.strand): line for line in every}
    assert 0 < len(trimmed) <= len(every) and min(line.span for line in trimmed) >= 1000
    for line in trimmed:
        before = whole[line.query, line.target, line.strand]
        assert before.query_start <= line.query_start < line.query_end <= before.query_end
        columns = list(columns_of(line.tags["cg:Z"], *interval(sample, line)))
        same = [a == b for a, b in columns]
        assert same[0] and same[-1] and (line.matches, line.columns) == (sum(same), len(same))
        for part in (np.array(same), np.array(same[::-1])):
            assert (np.cumsum(part) >= 0.8 * np.arange(1, len(part) + 1) - 1e-6).all()
    assert any(line.columns < whole[line.query, line.target, line.strand].columns for line in trimmed)


# ---------------------------------------------------------------- SAM and BAM


def read_records(path) -> list[pysam.AlignedSegment]:
    with pysam.AlignmentFile(str(path), check_sq=False) as records:
        return list(records)


@pytest.mark.parametrize("options", [(), ("--cs",), ("--extension", "longest")], ids=str)
def test_records_are_the_lines_of_paf(here, sample, options):
    lines = parse_paf(bellapy("overlap", "reads.fa", "--cigar", "--cs", *options))
    bellapy("overlap", "reads.fa", "-o", "x.sam", *options)
    records = read_records("x.sam")
    assert len(lines) == len(records)
    for line, record in zip(lines, records, strict=True):
        query, target = interval(sample, line)
        assert (record.query_name, record.reference_name) == (f"r{line.query}", f"r{line.target}")
        assert record.flag == (256 if line.strand > 0 else 256 | 16)
        assert (record.reference_start, record.reference_end) == (line.target_start, line.target_end)
        assert record.mapping_quality == 255 and record.next_reference_id == -1 and record.query_qualities is None
        assert record.query_sequence == query
        assert record.get_reference_sequence().upper() == target  # from MD, CIGAR and the bases
        assert record.infer_read_length() == line.query_length  # with clips
        assert re.sub("[0-9]+H", "", record.cigarstring) == line.tags["cg:Z"]
        before = line.query_start if line.strand > 0 else line.query_length - line.query_end
        assert (record.cigartuples[0] == (5, before)) == (before > 0)
        assert dict(record.get_tags())["NM"] == line.columns - line.matches
        for tag in ("NM:i", "AS:i", "cm:i", "tp:A"):
            assert str(record.get_tag(tag[:2])) == line.tags[tag]
        assert record.get_tag("de") == pytest.approx(float(line.tags["de:f"]))
        assert record.has_tag("cs") == ("--cs" in options)
        if record.has_tag("cs"):
            assert record.get_tag("cs") == line.tags["cs:Z"]
    header = pysam.AlignmentFile("x.sam").header.to_dict()
    assert header["SQ"] == [{"SN": f"r{i}", "LN": len(s)} for i, s in enumerate(sample.sequences)]
    (program,) = header["PG"]
    assert (program["ID"], program["VN"]) == ("bellapy", __version__)
    assert program["CL"].startswith("bellapy overlap reads.fa -o x.sam")


@pytest.mark.parametrize("threads", [1, 3])
def test_bam_is_sam(here, threads):
    bellapy("overlap", "reads.fa", "-o", "x.sam", "-t", threads)
    bellapy("overlap", "reads.fa", "-o", "x.bam", "-t", threads)
    bellapy("overlap", "reads.fa", "--format", "bam", "-o", "y", "-t", threads)
    bellapy("overlap", "reads.fa", "-o", "x.sam.gz", "-t", threads)
    expected = [record.to_string() for record in read_records("x.sam")]
    assert len(expected) > 100
    for name in ("x.bam", "y", "x.sam.gz"):
        assert [record.to_string() for record in read_records(name)] == expected
    pysam.quickcheck("x.sam", "x.bam", "y")
    assert pysam.AlignmentFile("x.bam").is_bam and not pysam.AlignmentFile("x.sam").is_bam
    out, written = bellapy("overlap", "reads.fa", "--format", "sam", "-t", threads), (here / "x.sam").read_bytes()
    assert [line for line in out.splitlines() if line[:3] != b"@PG"] == [
        line for line in written.splitlines() if line[:3] != b"@PG"
    ]
    assert listing(here) == {"reads.fa", "x.sam", "x.bam", "y", "x.sam.gz"}


def test_sorted_and_indexed(here, monkeypatch):
    bellapy("overlap", "reads.fa", "-o", "x.bam")
    bellapy("overlap", "reads.fa", "-o", "y.bam", "--sort", "-t", 2)
    assert listing(here) == {"reads.fa", "x.bam", "y.bam", "y.bam.bai"}
    before, after = read_records("x.bam"), read_records("y.bam")
    assert sorted(map(str, before)) == sorted(map(str, after))
    places = [(record.reference_id, record.reference_start) for record in after]
    assert places == sorted(places)
    with pysam.AlignmentFile("y.bam") as records:
        assert records.header.to_dict()["HD"]["SO"] == "coordinate"
        for name in ("r3", "r17"):
            assert len(list(records.fetch(name))) == sum(record.reference_name == name for record in before)


def test_calmd_agrees(here):
    """samtools computes NM and MD itself, from the bases of records and references."""
    bellapy("overlap", "reads.fa", "-o", "x.sam")
    with pysam.AlignmentFile("x.sam") as opened:
        fresh = [pysam.AlignedSegment.fromstring(line, opened.header) for line in calmd("x.sam", "reads.fa")]
    records = read_records("x.sam")
    assert len(fresh) == len(records) > 100
    for a, b in zip(fresh, records, strict=True):
        assert (a.get_tag("NM"), a.get_tag("MD")) == (b.get_tag("NM"), b.get_tag("MD"))


def calmd(sam_file: str, reference: str) -> list[str]:
    text = Path(sam_file).read_text()
    Path("stripped.sam").write_text(re.sub(r"\t(NM:i:|MD:Z:)[^\t\n]*", "", text))
    return [line for line in pysam.calmd("stripped.sam", reference).splitlines() if line[:1] != "@"]


def test_no_overlaps(here):
    (here / "one.fa").write_text(">a\nACGTACGTAC\n>empty\n\n")
    bellapy("overlap", "one.fa", "-o", "x.bam", "--sort")
    bellapy("overlap", "one.fa", "-o", "x.sam")
    for name in ("x.bam", "x.sam"):
        assert read_records(name) == []
        assert pysam.AlignmentFile(name).header.to_dict()["SQ"] == [{"SN": "a", "LN": 10}]
    assert bellapy("overlap", "one.fa", "--cigar") == b""


def test_names_that_sam_does_not_allow(here):
    for name in ("a,b", "(a)", "=a", "*a", "a" * 255):
        (here / "odd.fa").write_text(f">{name}\nACGT\n")
        outcome = run("overlap", "odd.fa", "-o", "x.sam")
        assert outcome.code == 1 and "SAM does not allow this name" in outcome.err
        assert "estimate" not in outcome.err  # raised before the work
        assert run("overlap", "odd.fa", "--cigar").code == 0
    assert listing(here) == {"reads.fa", "odd.fa"}


def test_longest_name(here):
    (here / "odd.fa").write_text(f">{'a' * 254}\nACGT\n")
    bellapy("overlap", "odd.fa", "-o", "x.bam", "--sort")
    (here / "odd.fa").write_text(f">{'a' * 255}\nACGT\n")
    outcome = run("overlap", "odd.fa", "-o", "x.bam")
    assert re.search(r"read 'a{40}\.\.\.': .* at most 254 letters; rename the read, or write PAF", outcome.err)


@pytest.mark.skipif(sys.platform == "darwin", reason="names have to be UTF-8 here")
@pytest.mark.parametrize("ending", ["sam", "bam"])
@pytest.mark.parametrize("name", ["\udcff\udcfe", "\udcff/\udcfe", "[x]*", "µ", "x" * 246, "a b", "-x"], ids=ascii)
def test_odd_names_of_files(here, name, ending):
    """Which also stand in the header.  pysam as such takes no names that are not UTF-8."""
    folder = here / "odd"
    folder.mkdir()
    (folder / name).parent.mkdir(exist_ok=True)
    path = f"{folder / name}.{ending}"
    (here / "few.fa").write_text("".join(f">{i}\n{'ACGTTGCA' * 3}\n" for i in "ab"))
    bellapy("overlap", "few.fa", "-o", path, *(["--sort"] if ending == "bam" else []))
    with pysam.AlignmentFile(path) as opened:
        assert opened.header.to_dict()["PG"][0]["CL"].startswith("bellapy overlap few.fa")
    assert len(os.listdir(os.path.dirname(path))) == 1 + (ending == "bam")


@pytest.mark.parametrize("name", ["x.sam", "x.bam", "x.paf"])
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (MemoryError, 1), (OSError(28, "No space left"), 1)])
def test_failure_halfway_leaves_nothing(here, monkeypatch, name, error, code):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("bellapy.jobs.overlap.filter.trim_and_test", fail)
    outcome = run("overlap", "reads.fa", "-o", name, "--cigar")
    assert outcome.code == code and "Traceback" not in outcome.err
    assert listing(here) == {"reads.fa"}


def test_failure_of_the_sorting_leaves_nothing(here, monkeypatch):
    def fail(*arguments):
        raise pysam.SamtoolsError("no room")

    monkeypatch.setattr(pysam, "sort", fail)
    outcome = run("overlap", "reads.fa", "-o", "x.bam", "--sort")
    assert outcome.code == 1 and "x.bam: no room" in outcome.err
    assert listing(here) == {"reads.fa"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["-o", "x.paf", "--sort"], "--sort: only BAM is sorted"),
        (["-o", "x.sam", "--sort"], "--sort: only BAM is sorted"),
        (["--format", "bam", "--sort"], "--sort: only BAM is sorted; name a file"),
        (["--format", "bam", "-o", "x.gz"], "--format bam: name a file"),
        (["--format", "bella", "--cigar"], "--format bella: has no place for base-level paths"),
        (["--format", "bella", "--trim-identity", "0.5"], "--format bella: has no place for base-level paths"),
        (["--skip-alignment", "--cigar"], "--skip-alignment: without alignments there are no paths"),
        (["--skip-alignment", "-o", "x.bam"], "--skip-alignment: without alignments there are no paths"),
        (["--format", "cram"], "--format cram: choose from paf, sam, bam, bella"),
        (["--trim-identity", "1"], f"--trim-identity 1.0: must be from 0 to {RANGES['trim_identity'].high}"),
    ],
)
def test_contradictions(here, monkeypatch, options, problem):
    monkeypatch.setattr("bellapy.api.reading.gather_reads", None)  # nothing is read before the error
    outcome = run("overlap", "reads.fa", *options)
    assert outcome.code == 2 and problem in outcome.err.splitlines()[-1]
    assert listing(here) == {"reads.fa"}


def test_name_rule():
    for name in ("a", "S1_1", "m64011/7/0_1500", "read=1", "channel_72:R73/a.fast5", "a*b", "!#$%&+-.^_|~?;", "a" * 254):
        assert sam.NAME_RULE.fullmatch(name)


# ---------------------------------------------------------------- extend


@pytest.mark.parametrize("options", [("--cigar",), ("--cs",), ("--cigar", "--cs", "--extension", "longest")], ids=str)
def test_extend(rng, options):
    pairs = make_pairs(rng, 60)
    plain = rows(run("extend", "-", "-k", 9, "-x", 15, *options[2:], stdin=text(pairs)).out)
    lines = run("extend", "-", "-k", 9, "-x", 15, *options, stdin=text(pairs)).out.decode().splitlines()
    assert len(lines) == len(pairs)
    for pair, numbers, line in zip(pairs, plain, lines, strict=True):
        columns = line.split("\t")
        assert tuple(map(int, columns[:6])) == numbers
        tags = {column[:4]: column[5:] for column in columns[6:]}
        assert ("cg:Z" in tags, "cs:Z" in tags) == ("--cigar" in options, "--cs" in options)
        _, score, start, end, first, last = numbers
        query = pair[0][start:end] if pair[4] == "n" else naive.reverse_complement(pair[0][start:end])
        if "cg:Z" in tags:
            found = list(columns_of(tags["cg:Z"], query, pair[2][first:last]))
            same = sum(a == b and a in naive.KNOWN for a, b in found)
            assert int(tags["NM:i"]) == len(found) - same
            if "longest" not in options:
                assert score == 2 * same - len(found)


def test_samtools_leaves_its_files_where_a_signal_cleans_up(here, monkeypatch):
    places, sort = [], pysam.sort
    monkeypatch.setattr(own_process, "_claimed", True)
    monkeypatch.setattr(pysam, "sort", lambda *arguments: places.append(Path(tempfile.gettempdir())) or sort(*arguments))
    before = tempfile.gettempdir()
    bellapy("overlap", "reads.fa", "--cigar", "--sort", "-o", "x.bam")
    assert [place.parent for place in places] == [here] and not places[0].exists()
    assert tempfile.gettempdir() == before
