"""The jobs as functions, beside overlaps and mapping: what the command line writes, from files and from sequences."""

from __future__ import annotations

import numpy as np
import pytest
from cases import noisy_copy, run, sample_reads
from strategies import random_bases

import bellapy
from bellapy.errors import InputError, ParameterError
from bellapy.records.bases import reverse_complement

PAIRS = [("ACGTACGTACGGTTAC", "ACGTTACGTACGGTAC"), ("ACGTTGCA", "TTACGTGCAACC"), ("", "ACG"), ("acgtn", b"ACGTN")]


@pytest.fixture(scope="module")
def sample():
    return sample_reads(7, genome=9000, depth=14, mean=2000, error=0.05)


@pytest.fixture
def here(sample, tmp_path, monkeypatch):
    """A folder with reads, a draft, two genomes, pairs and windows."""
    rng = np.random.default_rng(4)
    genome = random_bases(rng, 12_000)
    relative = noisy_copy(rng, genome, 0.05)[0]
    relative = relative[:4000] + reverse_complement(relative[4000:7000].encode()).decode() + relative[7000:].lower()
    longest = max(sample.sequences, key=len)
    (tmp_path / "reads.fa").write_text(sample.fasta())
    (tmp_path / "draft.fa").write_text(f">d1 circular=true\n{longest}\n>d2\n{sample.sequences[3]}\n")
    (tmp_path / "genome.fa").write_text(f">g\n{genome}\n")
    (tmp_path / "relative.fa").write_text(f">q1\n{relative[:5000]}\n>q2\n{relative[5000:]}\n")
    texts = [(one if isinstance(one, str) else one.decode() for one in pair) for pair in PAIRS]
    (tmp_path / "pairs.tsv").write_text("".join("\t".join(pair) + "\n" for pair in texts))
    (tmp_path / "windows.fa").write_text(
        "".join(f">{name}\n{text}\n" for name, window in WINDOWS.items() for text in window)
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


WINDOWS = {"1": ["ACGTTGCATTAG", "ACGTGCATTAG", "ACGTTGCATAG"], "2": ["TTTT"]}


def records(path):
    """Names and sequences of FASTA, a line each."""
    lines = path.read_text().splitlines()
    return [(name[1:].split()[0], text) for name, text in zip(lines[::2], lines[1::2], strict=True)]


@pytest.mark.parametrize(
    ("name", "options", "arguments"),
    [
        ("x.fa", {}, []),
        ("x.fq", {"min_support": 2, "min_overlap": 700}, ["--min-support", 2, "--min-overlap", 700]),
        ("x.fa", {"split": True, "min_length": 300, "lowercase": True}, ["--split", "--min-length", 300, "--lowercase"]),
    ],
)
def test_correct_is_the_command(here, sample, name, options, arguments):
    assert run("correct", "reads.fa", "-o", f"cli.{name}", "-t", 1, *arguments).code == 0
    for reads in ("reads.fa", {f"r{i}": sequence for i, sequence in enumerate(sample.sequences)}):
        found = bellapy.correct(reads, threads=2, **options)
        found.write(name)
        assert (here / name).read_bytes() == (here / f"cli.{name}").read_bytes() != b""
    assert found.report.details.records == len(found) == len(found.columns()["quality"])


def test_corrected_reads_go_where_reads_do(here):
    corrected = bellapy.correct("reads.fa", threads=1, min_read_length=1500)
    corrected.write("corrected.fa")
    found, expected = (bellapy.overlap(reads, threads=1) for reads in (corrected, "corrected.fa"))
    assert len(found) > 20 and list(found) == list(expected)
    assert dict(corrected).keys() == set(corrected.names)
    assert repr(corrected) == f"<SequenceTable: {len(corrected)} sequences>"


def test_polish_is_the_command(here):
    assert run("polish", "draft.fa", "reads.fa", "-o", "cli.fa", "-t", 1, "--rounds", 2).code == 0
    expected, drafts = records(here / "cli.fa"), records(here / "draft.fa")
    assert [text for _, text in expected] != [text for _, text in drafts]
    assert list(bellapy.polish("draft.fa", "reads.fa", threads=2, rounds=2)) == expected
    found = bellapy.polish(dict(drafts), "reads.fa", circular=["d1"], threads=1, rounds=2)
    assert list(found) == expected and "quality" not in found.columns()
    with pytest.raises(ParameterError, match="these sequences have no qualities; write FASTA"):
        found.write("x.fq")
    with pytest.raises(ParameterError, match="circular: no contig is named d3"):
        bellapy.polish("draft.fa", "reads.fa", circular=["d3"])


@pytest.mark.parametrize("mode", ["global", "extend", "local"])
@pytest.mark.parametrize("cigar", [True, False])
def test_pairwise_is_the_command(here, mode, cigar):
    command = ["pairwise", "pairs.tsv", "--mode", mode, "--gap-open", "5", "--gap-extend", "2", "-t", 1]
    expected = run(*command, *(["--cigar"] if cigar else [])).out
    for pairs in (PAIRS, "pairs.tsv", iter(PAIRS)):
        found = bellapy.pairwise(pairs, mode=mode, cigar=cigar, gap_open=5, gap_extend=(2,), threads=1)
        found.write("x.tsv")
        assert (here / "x.tsv").read_bytes() == expected != b""
    columns = found.columns()
    assert len(found) == len(PAIRS) == len(columns["score"]) and ("cigar" in columns) == cigar
    if mode == "global":
        assert columns["query_end"].tolist() == [len(query) for query, _ in PAIRS]
        assert columns["target_start"].tolist() == [0] * len(PAIRS)
    none = bellapy.pairwise([], mode=mode, cigar=cigar)
    assert len(none) == 0 and none.columns().keys() == columns.keys()


def test_exact_is_the_command(here):
    ((_, genome),), (_, (_, other)) = records(here / "genome.fa"), records(here / "relative.fa")
    turned = reverse_complement(other.encode()).decode()
    (here / "other.fa").write_text(f">o\n{turned}\n")
    line = run("exact", "other.fa", "genome.fa", "-t", 1).out.decode().split("\t")
    for query, target in (("other.fa", "genome.fa"), ({"o": turned}, {"g": genome})):
        found = bellapy.exact(query, target, threads=1)
        assert list(map(str, found[:4])) == line[:4] and list(map(str, found[5:11])) == line[5:11]
        assert (found.strand, line[4]) == (-1, "-")
        assert {f"AS:i:{found.score}", f"cg:Z:{found.cigar}"} <= set("\t".join(line).split())
    assert bellapy.exact("AAAA", b"CCCC", strand="forward") is None
    assert bellapy.exact("ACGTACGT", "ACGTACGT", mode="global").cigar == "8M"


def test_consensus_is_the_command(here):
    for msa in (False, True):
        rows = [text for _, text in map(tuple, _fasta(run("consensus", "windows.fa", *(["--msa"] if msa else [])).out))]
        found = bellapy.consensus(WINDOWS.values(), msa=msa, threads=1)
        assert (found if not msa else [row for window in found for row in window]) == rows != []
    assert bellapy.consensus([]) == []


def _fasta(text):
    lines = text.decode().splitlines()
    return zip(lines[::2], lines[1::2], strict=True)


@pytest.mark.parametrize("name", ["x.maf", "x.paf", "x.chain", "x.psl.gz"])
def test_wga_is_the_command(here, name):
    arguments = ["--chain"] if "chain" in name else []
    assert run("wga", "genome.fa", "relative.fa", "-o", f"cli.{name}", "-t", 1, *arguments).code == 0
    for target, query in (("genome.fa", "relative.fa"), [records(here / path) for path in ("genome.fa", "relative.fa")]):
        found = bellapy.wga(target, query, threads=2)
        found.write(name, chain=bool(arguments))
        assert (here / name).read_bytes() == (here / f"cli.{name}").read_bytes() != b""


def test_columns_of_genomes(here):
    found = bellapy.wga("genome.fa", "relative.fa", threads=1)
    assert run("wga", "genome.fa", "relative.fa", "-o", "cli.paf", "-t", 1).code == 0
    lines = [line.split("\t") for line in (here / "cli.paf").read_text().splitlines()]
    columns = found.columns()
    assert len(found) == len(lines) >= 3 and set(columns["strand"].tolist()) == {1, -1}
    names = "query query_length query_start query_end strand target target_length target_start target_end n_matches"
    for place, name in enumerate(names.split()):
        if name != "strand":
            assert list(map(str, columns[name].tolist())) == [line[place] for line in lines]
    assert [f"cg:Z:{text}" for text in columns["cigar"]] == [line[-1] for line in lines]
    own = bellapy.wga("genome.fa", threads=1)
    assert run("wga", "--self", "genome.fa", "-t", 1).out.count(b"\na ") == len(own)
    none = bellapy.wga("ACGTTGCATG", "TTTTTTTTTT")
    assert len(none) == 0 and none.columns()["score"].tolist() == []


MISTAKES = {
    "correct": (lambda: bellapy.correct("reads.fa", min_supports=3), TypeError, "unknown options: min_supports"),
    "trim": (lambda: bellapy.correct("reads.fa", trim=True, split=True), ParameterError, "--trim and --split"),
    "polish": (lambda: bellapy.polish("draft.fa", "reads.fa", rounds=11), ParameterError, "--rounds 11"),
    "draft": (lambda: bellapy.polish([("d", "ACGT"), ("d", "ACGT")], "reads.fa"), InputError, "the name 'd' occurs twice"),
    "zdrop": (lambda: bellapy.pairwise(PAIRS, zdrop=4), ParameterError, "--zdrop: only extensions end early"),
    "mode": (lambda: bellapy.pairwise(PAIRS, mode="globale"), ParameterError, "--mode globale: choose from"),
    "pieces": (lambda: bellapy.pairwise(PAIRS, gap_open=(4, 24), gap_extend=2), ParameterError, "as many values"),
    "triple": (lambda: bellapy.pairwise([("A", "C", "G")]), InputError, "record 1: a query and a target are needed"),
    "text": (lambda: bellapy.pairwise(["AC"]), InputError, "record 1: a query and a target are needed"),
    "letters": (lambda: bellapy.pairwise([("A", "C"), ("A-", "C")]), InputError, "record 2: the query holds characters"),
    "two": (lambda: bellapy.exact("relative.fa", "genome.fa"), InputError, "relative.fa: holds 2 sequences; the query has"),
    "bases": (lambda: bellapy.exact({"a": ""}, "ACGT"), InputError, "a sequence without bases"),
    "strand": (lambda: bellapy.exact("A", "A", strand="x"), ParameterError, "--strand x"),
    "window": (lambda: bellapy.consensus(["ACGT"]), InputError, "record 1: a window needs sequences"),
    "empty": (lambda: bellapy.consensus([["A"], []]), InputError, "record 2: a window needs sequences"),
    "dash": (lambda: bellapy.consensus([["A-"]]), InputError, "record 1: a sequence of the window is not all letters"),
    "score": (lambda: bellapy.consensus([["A"]], match=0), ParameterError, "--match 0"),
    "itself": (lambda: bellapy.wga("genome.fa", itself=True), TypeError, "unknown options: itself"),
    "files": (lambda: bellapy.wga(["genome.fa", "relative.fa"]), ParameterError, "target: one file is needed"),
    "names": (lambda: bellapy.wga("genome.fa", [("q", "A"), ("q", "C")]), InputError, "two sequences have the name q"),
    "format": (lambda: bellapy.wga("ACGT", "ACGT").write("x.bam"), ParameterError, "x.bam: the name tells no format"),
    "chain": (lambda: bellapy.wga("ACGT", "ACGT").write("x.maf", chain=True), ParameterError, "chain: joins alignments"),
    "device": (lambda: bellapy.exact("A", "A", device="gpu"), ParameterError, "--device gpu: choose from"),
    "threads": (lambda: bellapy.consensus([["A"]], threads=0), ParameterError, "--threads 0"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(here, name):
    call, error, message = MISTAKES[name]
    with pytest.raises(error, match=message):
        call()
    assert not list(here.glob("x.*"))
