"""Which reads are taken, and which pairs: --min-length, --min-quality, --targets."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest
from cases import run
from strategies import mutate, random_bases

LENGTHS = 1500, 2600


class Sets:
    """Two files of reads of one genome, and a third one of reads with qualities."""

    def __init__(self, folder):
        rng = np.random.default_rng(2)
        genome = random_bases(rng, 20_000)
        self.folder, self.sequences = folder, {}
        for x in range(120):
            size = int(rng.integers(*LENGTHS))
            begin = int(rng.integers(0, len(genome) - size))
            self.sequences[f"r{x}"] = mutate(rng, genome[begin : begin + size], 0.04)
        names = list(self.sequences)
        self.first, self.second = names[:50], names[50:]
        self.fasta("a.fa", self.first)
        self.fasta("b.fa", self.second)
        self.quality = {name: 8 if x % 5 == 0 else 20 for x, name in enumerate(names)}
        self.fastq("all.fq", names)

    def fasta(self, file, names):
        (self.folder / file).write_text("".join(f">{name}\n{self.sequences[name]}\n" for name in names))
        return self.folder / file

    def fastq(self, file, names):
        lines = []
        for name in names:
            bases = self.sequences[name]
            letters = chr(33 + self.quality[name]) * (len(bases) - 1) + "5"
            lines.append(f"@{name}\n{bases}\n+\n{letters}\n")
        (self.folder / file).write_text("".join(lines))
        return self.folder / file


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    return Sets(tmp_path_factory.mktemp("sets"))


def pairs_of(out: bytes) -> list[tuple[str, str, str]]:
    """Query, target and strand of every line."""
    return [(words[0], words[5], words[4]) for words in (line.split("\t") for line in out.decode().splitlines())]


@pytest.mark.parametrize("options", [(), ("--cigar",), ("--skip-alignment",)])
def test_targets_give_the_overlaps_between_the_files(sets, options):
    """They are those of all reads together, of a read of one file with one of the other; each pair once, query first."""
    a, b = sets.folder / "a.fa", sets.folder / "b.fa"
    whole = run("overlap", a, b, *options, "-q")
    between = run("overlap", a, "--targets", b, *options)
    assert whole.code == between.code == 0
    first, second = set(sets.first), set(sets.second)
    wanted = {pair for pair in pairs_of(whole.out) if pair[0] in first and pair[1] in second}
    found = pairs_of(between.out)
    assert len(wanted) > 100 and len(found) == len(set(found)) and found == sorted(found, key=lambda pair: int(pair[0][1:]))
    assert len(wanted & set(found)) >= 0.99 * max(len(wanted), len(found))
    assert "50 reads against 70 targets" in between.err and "of reads and targets together" in between.err


def test_only_pairs_of_a_read_and_a_target_are_worked_out(sets, tmp_path):
    """Neither multiplied nor aligned is a read with another one of its file."""
    a, b, stages = sets.folder / "a.fa", sets.folder / "b.fa", []
    for words in (("overlap", a, b), ("overlap", a, "--targets", b)):
        assert run(*words, "-q", "-o", tmp_path / "o.paf", "--report", tmp_path / "r.json").code == 0
        stages.append({stage["stage"]: stage for stage in json.loads((tmp_path / "r.json").read_text())["stages"]})
    for stage, number in (("candidates", "products"), ("candidates", "seeds"), ("align", "extensions")):
        of_all, between = (its[stage][number] for its in stages)
        assert 0.4 < between / of_all < 0.56, number  # 50 x 70 of 120 x 119 / 2


def test_depth_is_that_where_reads_and_targets_meet(tmp_path):
    """Reads of a piece of a genome, against few reads of all of it: the piece is deep, most targets lie elsewhere."""
    rng = np.random.default_rng(6)
    genome, depth, size = random_bases(rng, 150_000), 20, 2000
    places = {"piece": rng.integers(60_000, 78_000, depth * 20_000 // size), "all": rng.integers(0, 148_000, 3 * 75)}
    for name, starts in places.items():
        reads = [mutate(rng, genome[start : start + size], 0.05) for start in starts.tolist()]
        (tmp_path / f"{name}.fa").write_text("".join(f">{name}{x}\n{bases}\n" for x, bases in enumerate(reads)))
    for words in (("piece", "all"), ("all", "piece")):
        files = [tmp_path / f"{name}.fa" for name in words]
        outcome = run("overlap", files[0], "--targets", files[1], "-o", tmp_path / "o.paf")
        told = float(re.search(r"depth about (\d+)x", outcome.err)[1])
        assert outcome.code == 0 and depth < told < depth + 8, outcome.err


def test_the_order_of_reads_does_not_matter_with_targets(sets):
    """Nor do the strand and the order in which they are given; and the files may change places."""
    back = [sets.fasta("a2.fa", sets.first[::-1]), sets.fasta("b2.fa", sets.second[::-1])]
    outcomes = [
        run("overlap", first, "--targets", second, "-q")
        for first, second in ((sets.folder / "a.fa", sets.folder / "b.fa"), back, back[::-1])
    ]
    lines = [sorted(outcome.out.decode().splitlines()) for outcome in outcomes]
    assert lines[0] == lines[1]
    turned = {(target, query, strand) for query, target, strand in pairs_of(outcomes[2].out)}
    there = set(pairs_of(outcomes[0].out))
    assert len(turned & there) >= 0.99 * max(len(turned), len(there))


def test_targets_in_a_folder_and_in_tiles(sets, tmp_path):
    a, b = sets.folder / "a.fa", sets.folder / "b.fa"
    plain = run("overlap", a, "--targets", b, "-q")
    folder = run("overlap", a, "--targets", b, "-q", "--workdir", tmp_path / "w", "--blocks", "3")
    assert folder.code == 0 and folder.out == plain.out and plain.out
    with_paths = run("overlap", a, "--targets", b, "-q", "--cigar", "--workdir", tmp_path / "w2", "--blocks", "3")
    assert with_paths.out == run("overlap", a, "--targets", b, "-q", "--cigar").out
    both = run("overlap", a, "--targets", b, "-q", "--both-directions")
    assert both.out.count(b"\n") == 2 * plain.out.count(b"\n")
    other = run("overlap", a, b, "-q", "--workdir", tmp_path / "w3", "--keep-workdir")
    assert other.code == 0
    again = run("overlap", a, "--targets", b, "-q", "--workdir", tmp_path / "w3")
    assert again.code == 1 and "targets" in again.err, again.err


def test_the_best_overlaps_of_each_read_with_targets(sets):
    out = run("overlap", sets.folder / "a.fa", "--targets", sets.folder / "b.fa", "-q", "--max-overlaps-per-read", "3").out
    pairs = pairs_of(out)
    for column in (0, 1):
        assert max(Counter(pair[column] for pair in pairs).values()) == 3


def test_what_does_not_go_with_targets_is_told(sets):
    outcome = run("overlap", sets.folder / "a.fa", "--targets", sets.folder / "b.fa", "--drop-contained")
    assert outcome.code == 2 and "--drop-contained: looks at overlaps within a file" in outcome.err
    short = sets.folder / "short.fa"
    short.write_text(">s\nACGTACGT\n")
    for words, what in (
        ([sets.folder / "a.fa", "--targets", short], "target"),
        ([short, "--targets", sets.folder / "a.fa"], "query"),
    ):
        outcome = run("overlap", *words, "--min-length", "100")
        assert outcome.code == 2 and f"no {what} is left" in outcome.err, outcome.err


def test_targets_may_not_be_the_output(sets):
    path = sets.fasta("c.fa", sets.second)
    before = path.read_bytes()
    outcome = run("overlap", sets.folder / "a.fa", "--targets", path, "-o", path)
    assert outcome.code != 0 and path.read_bytes() == before


@pytest.mark.parametrize("command", [("overlap",), ("correct",)])
def test_short_and_poor_reads_are_left_out(sets, tmp_path, command):
    """The output is that of a file without them, and the log and the report count them."""
    names = list(sets.sequences)
    long = [name for name in names if len(sets.sequences[name]) >= 2000]
    good = [name for name in long if sets.quality[name] == 20]
    of = "--min-read" if command == ("correct",) else "--min"
    length, quality = f"{of}-length", f"{of}-quality"
    reads, report = sets.folder / "all.fq", tmp_path / "r.json"
    left = run(*command, reads, length, "2000", quality, "15", "--report", report)
    alone = run(*command, sets.fastq("good.fq", good), "-q")
    assert left.code == alone.code == 0, left.err
    assert left.out == alone.out and left.out
    short, poor = len(names) - len(long), len(long) - len(good)
    assert f"left out: {short} (reads too short), {poor} (reads of low quality)" in left.err
    dropped = json.loads(report.read_text())["dropped"]
    assert (dropped["reads too short"], dropped["reads of low quality"]) == (short, poor)
    assert min(short, poor) > 10


def test_reads_are_left_out_in_a_folder_and_of_wrapped_text(sets, tmp_path):
    reads = sets.folder / "all.fq"
    plain = run("overlap", reads, "--min-length", "2000", "-q")
    folder = run("overlap", reads, "--min-length", "2000", "--workdir", tmp_path / "w", "--blocks", "2")
    assert folder.code == 0 and folder.out == plain.out and "(reads too short)" in folder.err
    wrapped = tmp_path / "wrapped.fa"
    wrapped.write_text("".join(f">{name}\n{bases[:700]}\n\n{bases[700:]}\n" for name, bases in sets.sequences.items()))
    plain_fasta = sets.fasta("plain.fa", list(sets.sequences))
    texts = [run("overlap", path, "--min-length", "2000", "-q").out for path in (wrapped, plain_fasta)]
    assert texts[0] == texts[1] and texts[0]


def test_what_cannot_be_left_out_is_told(sets, tmp_path):
    outcome = run("overlap", sets.folder / "a.fa", "--min-quality", "10")
    assert outcome.code == 2 and "reads of FASTA have no quality values" in outcome.err
    outcome = run("overlap", sets.folder / "a.fa", "--min-length", "10000")
    assert outcome.code == 2 and "no read is left of 50 (reads too short)" in outcome.err
    outcome = run("correct", sets.folder / "a.fa", "--overlaps", sets.folder / "b.fa", "--min-read-length", "10")
    assert outcome.code == 2 and "--min-read-length: rules how overlaps are found" in outcome.err
    damaged = tmp_path / "damaged.fq"
    damaged.write_text((sets.folder / "all.fq").read_text() + "@x\nACGT\n+\nII\n")
    outcome = run("overlap", damaged, "--min-length", "100")
    assert outcome.code == 1 and f"line {4 * 120 + 4}: 4 bases but 2 quality values" in outcome.err
    twice = tmp_path / "twice.fq"
    twice.write_text((sets.folder / "all.fq").read_text() * 2)
    outcome = run("overlap", twice, "--min-length", "100")
    assert outcome.code == 1 and f"line {4 * 120 + 1}: has the same name 'r0' as another record" in outcome.err
