"""The jobs as functions: what the command line writes, from any thread, and nothing of the process changed."""

from __future__ import annotations

import gc
import gzip
import logging
import re
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from cases import run, sample_reads

import bellapy
from bellapy.errors import BellapyError, InputError, ParameterError

TOP = Path(__file__).parents[1]
PAIRS = [("ACGTACGTAC", 2, "ACGTTACGTAC", 7, 1), ("ACGTTGCA", 0, "TGCAACGT", 4, -1)]


@pytest.fixture(scope="module")
def sample():
    return sample_reads(7, genome=9000, depth=12, mean=2000, error=0.05)


@pytest.fixture
def here(sample, tmp_path, monkeypatch):
    """An empty folder with reads in it."""
    (tmp_path / "reads.fa").write_text(sample.fasta())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def state() -> tuple:
    """What the process shares and no call may change."""
    root, own = logging.getLogger(), logging.getLogger("bellapy")
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    logs = [(log.level, log.propagate, *log.handlers) for log in (root, own)]
    return gc.isenabled(), gc.get_freeze_count(), handlers, logs, list(sys.argv), sys.modules.get("scipy.linalg")


def test_what_there_is():
    assert {"Aligner", "correct", "exact", "extend", "map", "overlap", "wga", "__version__"} <= set(dir(bellapy))


def test_overlaps_by_their_place(here):
    found = bellapy.overlap("reads.fa", threads=1, min_overlap=500)
    rows = list(found)
    assert found[0] == rows[0] and found[-1] == rows[-1] and found[2:9:3] == rows[2:9:3]
    with pytest.raises(IndexError):
        found[len(rows)]


def test_reads_are_taken_as_by_the_command_line(here, sample):
    long = [len(sequence) for sequence in sample.sequences if len(sequence) >= 2000]
    found = bellapy.overlap("reads.fa", threads=1, min_length=2000)
    assert sorted(found.reads.lengths.tolist()) == sorted(long) and len(long) < len(sample.sequences)
    assert len(found) and found.report.dropped.to_dict()["reads too short"] == len(sample.sequences) - len(long)


@pytest.mark.parametrize("kind", [str, str.lower, str.encode])
def test_a_sequence_is_mapped_as_such(here, sample, kind):
    """As mappy does it; a file of this name comes first."""
    aligner = bellapy.Aligner({"g": sample.sequences[0]}, preset="ont")
    sequence = sample.sequences[0][100:900]
    expected = list(aligner.map({"read": sequence}))
    assert expected and list(aligner.map(kind(sequence))) == expected
    with pytest.raises(InputError, match="No such file"):
        list(aligner.map("reads.fastq"))
    (here / "ACGT").write_text(f">r\n{sequence}\n")
    assert [found.query for found in aligner.map("ACGT")] == ["r"]


def test_twice_in_one_process_and_in_four_threads(here):
    assert run("overlap", "reads.fa", "-o", "cli.paf", "-t", 1, "--min-overlap", 500).code == 0
    expected, before = (here / "cli.paf").read_bytes(), state()
    assert expected

    def call(i: int) -> bytes:
        found = bellapy.overlap("reads.fa", threads=1 + i % 2, min_overlap=500)
        found.write(f"{i}.paf")
        return (here / f"{i}.paf").read_bytes()

    assert [call(i) for i in (0, 1)] == [expected] * 2
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(4))) == [expected] * 4
    assert state() == before


@pytest.mark.parametrize("kind", [dict, list, iter])
def test_sequences_give_what_files_do(here, sample, kind):
    pairs = [(f"r{i}", sequence) for i, sequence in enumerate(sample.sequences)]
    bellapy.overlap(kind(pairs), threads=1).write("a.paf")
    bellapy.overlap([here / "reads.fa"], threads=1).write("b.paf")
    assert (here / "a.paf").read_bytes() == (here / "b.paf").read_bytes() != b""


@pytest.mark.parametrize(
    ("name", "options", "arguments"),
    [
        ("x.paf", {}, ["--cigar"]),
        ("x.paf.gz", {"cs": True}, ["--cigar", "--cs"]),
        ("x.sam", {}, []),
        ("x.bam", {"sort": True}, ["--sort"]),
    ],
)
def test_paths_are_written_as_by_the_command_line(here, name, options, arguments):
    assert run("overlap", "reads.fa", "-o", f"cli.{name}", "-t", 2, "--min-identity", 0.9, *arguments).code == 0
    found = bellapy.overlap("reads.fa", threads=2, cigar=True, min_identity=0.9)
    found.write(name, **options)
    ours, theirs = ((here / path).read_bytes() for path in (name, f"cli.{name}"))
    if name.endswith("bam"):
        import pysam

        pysam.index(name)
        ours, theirs = (pysam.view(path).encode() for path in (name, f"cli.{name}"))
    elif name.endswith("gz"):
        ours, theirs = gzip.decompress(ours), gzip.decompress(theirs)
    without_program = [re.sub(rb"@PG[^\n]*\n", b"", text) for text in (ours, theirs)]
    assert without_program[0] == without_program[1] != b""


def test_records_and_columns_agree(here):
    found = bellapy.overlap("reads.fa", threads=1, cigar=True)
    columns = found.columns()
    assert len(found) == len(list(found)) > 100
    for i, overlap in enumerate(islice(found, 50)):
        assert overlap == tuple(columns[name][i] for name in overlap._fields)
        steps = [(int(n), kind) for n, kind in re.findall(r"(\d+)(.)", overlap.cigar)]
        spans = overlap.query_end - overlap.query_start, overlap.target_end - overlap.target_start
        assert tuple(sum(n for n, kind in steps if kind in kinds) for kinds in ("MI", "MD")) == spans
    assert "cigar" not in bellapy.overlap("reads.fa", threads=1).columns()


def test_tables_are_shown_in_short(here):
    found, pairs = bellapy.overlap("reads.fa", threads=1), bellapy.extend(PAIRS, 4, 7, threads=1)
    assert repr(found) == f"<OverlapTable: {len(found):,} overlaps of {len(found.reads):,} reads>"
    assert repr(pairs) == f"<ExtensionTable: {len(PAIRS)} pairs>"
    assert repr(found.reads) == f"<ReadSet: {len(found.reads):,} reads, {found.reads.n_bases:,} bases>"


def test_other_tables(here):
    found = bellapy.overlap("reads.fa", threads=1)
    import pandas

    frame, table = found.to_pandas(), found.to_arrow()
    pandas.testing.assert_frame_equal(frame, table.to_pandas(), check_dtype=False)
    assert len(frame) == len(found)
    assert set(frame["strand"]) == {1, -1}


@pytest.mark.parametrize(("module", "method"), [("pandas", "to_pandas"), ("pyarrow", "to_arrow")])
def test_missing_packages_are_told(here, monkeypatch, module, method):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BellapyError, match=f"{module} is not installed; pip install"):
        getattr(bellapy.extend(PAIRS, 4, 7, threads=1), method)()


def test_nothing_found_is_an_empty_table(here):
    for sequences in ({}, {"a": ""}, {"a": "ACGT", "b": "GGGTTTACCA"}):
        found = bellapy.overlap(sequences, threads=1, cigar=True)
        found.write("x.paf")
        assert len(found) == len(list(found)) == 0 and (here / "x.paf").read_bytes() == b""


@pytest.mark.parametrize("extension", ["best", "longest"])
def test_extend_is_the_command(here, extension):
    (here / "pairs.tsv").write_text(
        "".join(f"{q}\t{i}\t{t}\t{j}\t{'n' if strand > 0 else 'c'}\n" for q, i, t, j, strand in PAIRS)
    )
    for options, arguments in (({}, []), ({"cs": True}, ["--cigar", "--cs"])):
        command = ["extend", "pairs.tsv", "-k", 4, "-x", 7, "--extension", extension, "-t", 1, *arguments]
        expected = run(*command).out
        for pairs in (PAIRS, "pairs.tsv"):
            found = bellapy.extend(pairs, 4, 7, extension=extension, cigar=bool(options), threads=1)
            found.write("x.tsv", **options)
            assert (here / "x.tsv").read_bytes() == expected != b""
    assert found.columns()["cigar"].tolist()[0]


def test_extend_seeds_of_reads():
    reads = {"a": PAIRS[0][0], "b": PAIRS[0][2], "c": PAIRS[1][0], "d": PAIRS[1][2]}
    named = [("a", *PAIRS[0][1:2], "b", *PAIRS[0][3:]), ("c", *PAIRS[1][1:2], "d", *PAIRS[1][3:])]
    one, other = bellapy.extend(PAIRS, 4, 7, threads=1), bellapy.extend(named, 4, 7, reads=reads, threads=1)
    for name, column in one.columns().items():
        np.testing.assert_array_equal(column, other.columns()[name])
    assert len(bellapy.extend([], 4, 7, threads=1)) == 0
    with pytest.raises(InputError, match="record 2: no read is named 'x'"):
        bellapy.extend([named[0], ("a", 0, "x", 0, 1)], 4, 7, reads=reads)


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    """A genome, its reads, and what `bellapy map` makes of them."""
    folder = tmp_path_factory.mktemp("map")
    rng = np.random.default_rng(3)
    text = "".join(rng.choice(list("ACGT"), 20_000))
    reads = sample_reads(8, genome=text, depth=5, mean=3000, error=0.05)
    (folder / "genome.fa").write_text(f">g\n{text}\n")
    (folder / "reads.fa").write_text(reads.fasta())
    return folder, text, reads, run("map", folder / "genome.fa", folder / "reads.fa", "-t", 1).out.decode().splitlines()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("from_files", [True, False])
def test_map_is_the_command(genome, threads, from_files):
    folder, text, reads, lines = genome
    given = folder / "genome.fa", str(folder / "reads.fa")
    if not from_files:
        given = {"g": text}, ((f"r{i}", sequence) for i, sequence in enumerate(reads.sequences))
    found = list(bellapy.map(*given, threads=threads))
    assert len(found) == len(lines) > 20
    for alignment, line in zip(found, lines, strict=True):
        words = line.split("\t")
        assert list(map(str, alignment[:4])) == words[:4] and list(map(str, alignment[5:12])) == words[5:12]
        assert words[4] == "-+"[alignment.strand > 0] and f"cg:Z:{alignment.cigar}" in words
        assert f"AS:i:{alignment.score}" in words


def test_an_aligner_serves_several_threads(genome):
    folder, _, reads, _ = genome
    aligner = bellapy.Aligner(folder / "genome.fa", preset="clr", secondary=False)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: list(aligner.map({f"r{i}": reads.sequences[i]}, threads=1)), range(12)))
    for i, of_read in enumerate(found):
        assert {alignment.query for alignment in of_read} == {f"r{i}"}
        assert {alignment.kind for alignment in of_read} <= {"primary", "supplementary"}
    fast = bellapy.Aligner(folder / "genome.fa", align=False)
    assert all(alignment.cigar is None for alignment in fast.map({"r": reads.sequences[0]}))
    assert not list(fast.map({}))


BAD = {
    "min_overlap": ({"min_overlap": 0}, ParameterError, "--min-overlap 0: must be from 1"),
    "preset": ({"preset": "sequel"}, ParameterError, "--preset sequel"),
    "threads": ({"threads": 5000}, ParameterError, "--threads 5000"),
    "name": ({"min_overlaps": 5}, TypeError, "min_overlaps"),
    "file": ({"reads": "none.fa"}, InputError, "none.fa: No such file"),
    "twice": ({"reads": [("a", "ACGT"), ("a", "ACGT")]}, InputError, "record 2: the name 'a' occurs twice"),
    "word": ({"reads": {"a b": "ACGT"}}, InputError, "record 1: the name 'a b' is no word"),
    "letters": ({"reads": {"a": "AC-T"}}, InputError, "record 1: the sequence of 'a' is not all letters"),
    "pairs": ({"reads": [("a", "C", "G")]}, InputError, "record 1: a name and a sequence are needed"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_are_the_package_s_own(here, name):
    options, error, message = BAD[name]
    with pytest.raises(error, match=message):
        bellapy.overlap(**{"reads": "reads.fa", **options})


def test_errors_of_other_functions(here):
    with pytest.raises(ParameterError, match="call overlap with cigar=True"):
        bellapy.overlap({"a": "ACGT"}, threads=1).write("x.sam")
    with pytest.raises(ParameterError, match="-k 40"):
        bellapy.extend(PAIRS, 40, 7)
    with pytest.raises(InputError, match="record 1: the seed of 9 bases at 2"):
        bellapy.extend(PAIRS, 9, 7)
    with pytest.raises(TypeError, match="unknown options: band"):
        bellapy.Aligner({"a": "ACGT"}, band=3)
    with pytest.raises(ParameterError, match="--zdrop 0"):
        bellapy.Aligner({"a": "ACGT"}, zdrop=0)
    with pytest.raises(AttributeError, match="no attribute 'overlaps'"):
        bellapy.overlaps  # noqa: B018
    assert not list(here.glob("x.*"))


def test_the_example_of_the_documentation(tmp_path, monkeypatch, capsys):
    (tmp_path / "data").symlink_to(TOP / "data")
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", (TOP / "docs" / "api.md").read_text(), re.DOTALL)
    exec(compile(example, "docs/api.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert int(shown[0].split()[0]) == len((tmp_path / "overlaps.paf").read_text().splitlines()) > 1000
    assert "[22] ['22M']" in shown and "[16  6] ['6M1I5M' '6M']" in shown
    assert shown[-1].split()[:3] == ["NC_001416.1", "0", "83"]
