"""`assemble` and `polish` as a whole: circles without a wrong base, the same bytes whatever the reads' order and strand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cases import listing, noisy_copy, run
from genomes import Molecule, breaks, random_genome, reads_of, turned
from gfa_files import matches_of, parse_gfa

import bellapy
from bellapy.api import polishing
from bellapy.jobs.assemble import thinning

LETTERS = np.frombuffer(b"ACGTN", np.uint8)


def random_bases(seed: int, n: int) -> str:
    return LETTERS[np.random.default_rng(seed).integers(0, 4, n)].tobytes().decode()


MOLECULES = [Molecule(random_bases(1, 12_000), 1.0, True), Molecule(random_bases(2, 2500), 6.0, True)]
READS = reads_of(MOLECULES, 3, depth=30, mean=3500, error=0.02)


def fasta(sequences: dict[str, str]) -> str:
    return "".join(f">{name}\n{text}\n" for name, text in sequences.items())


def parse(text: str) -> dict[str, str]:
    """Sequences by header."""
    return {record.split("\n", 1)[0]: record.split("\n", 1)[1].replace("\n", "") for record in text.split(">")[1:]}


def is_rotation(found: str, circle: str) -> bool:
    return len(found) == len(circle) and (found in 2 * circle or found in 2 * turned(circle))


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "reads.fa").write_text(fasta(READS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_circles_come_out_whole_and_exact(here):
    outcome = run(
        "assemble",
        "reads.fa",
        "-o",
        "new.fa",
        "--gfa",
        "new.gfa",
        "--report",
        "new.json",
        "--read-table",
        "new.tsv",
        "-t",
        "2",
    )
    assert outcome.code == 0, outcome.err
    found = parse(Path("new.fa").read_text())
    assert len(found) == 2
    for (header, text), one in zip(found.items(), MOLECULES, strict=True):
        assert f"length={len(one.sequence)} circular=true depth=" in header
        assert is_rotation(text, one.sequence)
    lines = [line.split("\t") for line in Path("new.gfa").read_text().splitlines()]
    assert [line[2] for line in lines if line[0] == "S"] == list(found.values())
    assert [line[1:] for line in lines if line[0] == "L"] == [[f"contig_{i}", "+", f"contig_{i}", "+", "0M"] for i in (1, 2)]
    report = json.loads(Path("new.json").read_text())
    details = report["details"]
    fates = sum(details["reads"][name] for name in ("in_contigs", "contained", "without_support", "left_over"))
    assert details["spared"] + fates == len(READS)
    assert [one["length"] for one in details["contigs"]] == [12_000, 2500]
    assert {"correct", "graph", "map", "polish"} <= {stage["stage"] for stage in report["stages"]}
    lines = [line.split("\t") for line in Path("new.tsv").read_text().splitlines()]
    assert lines[0] == ["read", "length", "fate", "stretches", "contig"]
    table = {line[0]: line[1:] for line in lines[1:]}
    assert {name: int(line[0]) for name, line in table.items()} == {name: len(text) for name, text in READS.items()}
    fates = Counter(line[1] for line in table.values())
    assert fates["spared"] == details["spared"]
    assert all(fates[name] == n for name, n in details["reads"].items() if name not in ("trimmed", "joined"))
    assert {line[3] for line in table.values()} <= {"contig_1", "contig_2", "*"}
    assert sum(line[3] == "*" for line in table.values()) <= fates["without_support"]


def test_order_strand_threads_and_batches_change_nothing(here, monkeypatch):
    assert run("assemble", "reads.fa", "-o", "one.fa", "-t", "1").code == 0
    rng = np.random.default_rng(4)
    names = list(READS)
    rng.shuffle(names)
    other = {name: turned(READS[name]) if rng.random() < 0.5 else READS[name] for name in names}
    (here / "other.fa").write_text(fasta(other))
    monkeypatch.setattr(polishing, "BATCH_BASES", 20_000)
    assert run("assemble", "other.fa", "-o", "two.fa", "-t", "2").code == 0
    assert Path("one.fa").read_bytes() == Path("two.fa").read_bytes()


def test_of_very_deep_molecules_some_reads_are_enough(here, monkeypatch):
    """Each base of the plasmid lies in about 180 reads."""
    monkeypatch.setattr(thinning, "MOST", 60)
    outcome = run("assemble", "reads.fa", "-o", "new.fa", "--read-table", "new.tsv", "--report", "new.json")
    found = parse(Path("new.fa").read_text()).values()
    assert all(is_rotation(text, one.sequence) for text, one in zip(found, MOLECULES, strict=True))
    fates = Counter(line.split("\t")[2] for line in Path("new.tsv").read_text().splitlines()[1:])
    n_deep = json.loads(Path("new.json").read_text())["details"]["too_deep"]
    assert fates["too_deep"] == n_deep > 50
    assert f"{n_deep} of {len(READS)} reads are not overlapped" in outcome.err
    assert sum(fates.values()) == len(READS)


def test_contigs_go_through_a_row_of_copies(here, monkeypatch):
    """Two copies differ by one base in 45; k-mers that most of the 30 have occur some 600 times, in about 125 reads."""
    monkeypatch.setattr(thinning, "MOST", 200)
    rng = np.random.default_rng(5)
    row = np.tile(rng.integers(0, 4, 1000), 30)
    changed = rng.random(len(row)) < 1 / 90
    row[changed] = (row[changed] + rng.integers(1, 4, changed.sum())) % 4
    genome = random_bases(6, 30_000) + LETTERS[row].tobytes().decode() + random_bases(7, 30_000)
    (here / "row.fa").write_text(fasta(reads_of([Molecule(genome, 1.0, False)], 8, depth=25, mean=6000, error=0.002)))
    assert run("assemble", "row.fa", "-o", "new.fa", "--report", "new.json").code == 0
    (text,) = parse(Path("new.fa").read_text()).values()
    assert len(text) > 85_000 and (text in genome or turned(text) in genome)
    assert json.loads(Path("new.json").read_text())["details"]["too_deep"] < 15  # reads shorter than two copies


def test_lengths_of_tandem_repeats_do_not_end_contigs(here):
    """Correction leaves errors in long ones of short units, of which there is one in 250 bases."""
    rng, parts = np.random.default_rng(0), list[str]()

    def bases(n: int) -> str:
        return LETTERS[rng.integers(0, 4, n)].tobytes().decode()

    for _ in range(40):
        parts += bases(250), (bases(int(rng.integers(1, 4))) * 100)[: int(rng.integers(40, 140))]
    text = "".join(parts)
    (here / "runs.fa").write_text(fasta(reads_of([Molecule(text, 1.0, False)], 0, depth=16, mean=4000, error=0.13)))
    assert run("assemble", "runs.fa", "-o", "new.fa").code == 0
    (found,) = parse(Path("new.fa").read_text()).values()
    assert len(found) > 0.9 * len(text)


def test_a_job_in_a_folder_goes_on(here):
    words = "assemble", "reads.fa", "-o", "new.fa", "--workdir", "work", "--keep-workdir"
    assert run(*words).code == 0
    expected, kept = Path("new.fa").read_bytes(), {name for name in listing(here / "work") if name.endswith(".arrays")}
    assert {"given-overlaps.arrays", "overlaps.arrays", "polished-0.arrays"} <= kept
    for name in ("overlaps.arrays", "polished-0.arrays"):
        (here / "work" / name).unlink()
    assert run(*words).code == 0
    assert Path("new.fa").read_bytes() == expected
    assert run(*words, "--min-depth", "4").code == 1  # another job


def test_without_correction(here):
    assert run("assemble", "reads.fa", "-o", "new.gfa", "--fast").code == 0
    segments = [line.split("\t")[2] for line in Path("new.gfa").read_text().splitlines() if line[0] == "S"]
    assert is_rotation(segments[0], MOLECULES[0].sequence)


def test_too_few_reads_give_nothing_and_say_so(here):
    (here / "few.fa").write_text(fasta(dict(list(READS.items())[:3])))
    outcome = run("assemble", "few.fa", "-o", "new.fa")
    assert outcome.code == 0 and Path("new.fa").read_bytes() == b"" and "no contig" in outcome.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("assemble reads.fa -o new.bam", "-o new.bam: contigs are written as GFA to .gfa"),
        ("assemble reads.fa -o new.fa --gfa new.txt", "--gfa new.txt: name a file that ends in .gfa"),
        ("assemble reads.fa -o new.fa --haplotypes 17", "--haplotypes 17: must be from 1 to 16"),
        ("polish - - -o new.fa", "-: standard input holds the draft or the reads"),
        ("polish reads.fa reads.fa -o new.fa --rounds 11", "--rounds 11: must be from 0 to 10"),
    ],
)
def test_what_cannot_be(here, words, problem):
    outcome = run(*words.split())
    assert outcome.code == 2 and problem in outcome.err
    assert not Path("new.fa").exists()


def test_a_perfect_draft_stays_as_it_is(here):
    draft = {f"c{i} circular=true": one.sequence for i, one in enumerate(MOLECULES)}
    (here / "draft.fa").write_text(fasta(draft))
    assert run("polish", "draft.fa", "reads.fa", "-o", "new.fa").code == 0
    assert Path("new.fa").read_text() == fasta(draft)


def test_a_draft_loses_its_errors(here):
    """Also at the joint of a circle, which its header or its name tells."""
    rng = np.random.default_rng(5)
    noisy = [noisy_copy(rng, one.sequence, 0.05)[0] for one in MOLECULES]
    noisy[0] = noisy[0][3:] + "ACG"
    (here / "draft.fa").write_text(fasta({f"utg1c length={len(noisy[0])}": noisy[0], "b topology=circular": noisy[1]}))
    assert run("polish", "draft.fa", "reads.fa", "-o", "new.fa", "--report", "new.json").code == 0
    found = parse(Path("new.fa").read_text())
    assert list(found) == ["utg1c length=12000", "b topology=circular"]
    assert all(is_rotation(text, one.sequence) for text, one in zip(found.values(), MOLECULES, strict=True))
    rounds = json.loads(Path("new.json").read_text())["details"]["polished"]
    assert rounds[0]["mismatches"] > 100 and sum(rounds[-1].values()) == 0


def test_two_equal_contigs_come_out_as_one_does(here):
    """Reads that fit both as well polish both, also at the joint of a circle."""
    rng = np.random.default_rng(6)
    noisy = noisy_copy(rng, MOLECULES[0].sequence, 0.03)[0]
    draft = {"a circular=true": noisy, "b circular=true": noisy, "c": turned(noisy)}
    (here / "draft.fa").write_text(fasta(draft))
    assert run("polish", "draft.fa", "reads.fa", "-o", "new.fa").code == 0
    found = list(parse(Path("new.fa").read_text()).values())
    assert all(is_rotation(text, MOLECULES[0].sequence) for text in found[:2])
    assert turned(found[2])[1500:-1500] in 2 * MOLECULES[0].sequence


def test_names_of_a_draft_are_unique(here):
    (here / "draft.fa").write_text(">a\nACGT\n>a\nACGT\n")
    outcome = run("polish", "draft.fa", "reads.fa", "-o", "new.fa")
    assert outcome.code == 1 and "draft.fa: record 2: the name 'a' occurs twice" in outcome.err


def test_reads_within_repeats_bring_contigs_through():
    """Four copies of 4,500 bases, one percent apart from each other, and reads of up to 4,400."""
    rng, repeat = np.random.default_rng(7), random_bases(8, 4500)
    parts = [random_bases(i, 20_000) + noisy_copy(rng, repeat, 0.005)[0] for i in range(10, 14)]
    circle = Molecule("".join(parts), 1.0, True)
    reads = reads_of([circle], 4, depth=30, mean=4000, error=0.005)
    (found,) = bellapy.assemble({name: text[:4400] for name, text in reads.items()}, threads=2).segments
    assert found.circular and is_rotation(LETTERS[found.codes].tobytes().decode(), circle.sequence)


def test_haplotypes_reach_their_ends():
    """Where a haplotype's last reads lie alone, others cover them, which differ in one base of 50."""
    rng, genome = np.random.default_rng(11), random_bases(12, 40_000)
    haplotypes = [noisy_copy(rng, genome, 0.01)[0] for _ in range(3)]
    reads, alone = {}, {}
    for i, one in enumerate(haplotypes):
        begins = [300 * i, *range(1500 + 100 * i, len(one) - 6000, 500), len(one) - 6100 - 300 * i]
        reads |= {f"{i}_{at}": noisy_copy(rng, one[at : at + 6000], 0.002)[0] for at in begins}
        alone[i] = begins[-1] + 6000 - begins[0]
    found = bellapy.assemble(reads, threads=2, haplotypes=3).segments
    assert len(found) == 3
    assert all(len(one.codes) >= n - 150 for one, n in zip(found, sorted(alone.values(), reverse=True), strict=True))


def test_two_reads_bring_contigs_on_where_reads_are_right():
    """Two reads span base 15,500, at 10X and at 20X."""
    genome = random_bases(9, 30_000)

    def contigs(step: int, **options: int) -> list[int]:
        begins = [*range(0, 11_001, step), 12_600, 14_000, *range(15_600, 26_001, step)]
        reads = {str(at): genome[at : at + 4000] for at in begins}
        return [len(one.codes) for one in bellapy.assemble(reads, threads=2, **options).segments]

    (at_10x,), (at_20x,) = contigs(400), contigs(200)
    assert min(at_10x, at_20x) >= 29_000
    assert len(contigs(200, min_depth=3)) == 2


def test_the_ends_of_a_chromosome_are_kept_where_reads_are_right():
    """Of 12,000 bases 20X; at either end a read begins every 200 bases."""
    genome = random_bases(9, 12_000)

    def longest(error: float, **options: int) -> int:
        rng, begins = np.random.default_rng(3), range(0, 8001, 200)
        reads = {str(at): noisy_copy(rng, genome[at : at + 4000], error)[0] for at in begins}
        return max(len(one.codes) for one in bellapy.assemble(reads, threads=2, **options).segments)

    assert longest(0.001) >= 11_980
    assert longest(0.001, min_depth=3) < 11_400
    assert longest(0.03) < 11_400


GENOMES = range(int(os.environ.get("ASSEMBLE_GENOMES", "0"))) or (2, 28, 137)


@pytest.mark.parametrize("seed", GENOMES)
def test_contigs_run_as_genomes_with_repeats_do(seed, tmp_path):
    """CONTRIBUTING.md says how to run many.  What is left open in 28, an array of four copies, is linked; 137 is a line that
    looks like a circle."""
    molecules = random_genome(seed)
    found = bellapy.assemble(reads_of(molecules, seed, depth=25, mean=5000, error=0.02), threads=2)
    assert found.segments
    for one in found.segments:
        assert breaks(LETTERS[one.codes].tobytes().decode(), one.circular, molecules) == []
    found.write(tmp_path / "x.gfa")
    segments, links = parse_gfa((tmp_path / "x.gfa").read_text())
    assert len(segments) == len(found.segments)
    for link in links:
        if link.cigar != "0M":
            equal, columns = matches_of(link, segments)
            assert equal > (0.95 if seed in (2, 28, 137) else 0.8) * columns
    assert links if seed == 28 else True


@pytest.mark.skipif(not shutil.which("Bandage"), reason="needs Bandage")
def test_bandage_opens_the_graph(here):
    molecules = random_genome(28)
    bellapy.assemble(reads_of(molecules, 28, depth=25, mean=5000, error=0.02), threads=2).write("new.gfa")
    quiet = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_RUNTIME_DIR": str(here)}
    told = subprocess.run(["Bandage", "info", "new.gfa"], env=quiet, capture_output=True, text=True, check=True).stdout
    segments, links = parse_gfa(Path("new.gfa").read_text())
    numbers = dict(re.findall(r"^(Node count|Edge count): +(\d+)", told, re.MULTILINE))
    assert numbers == {"Node count": str(len(segments)), "Edge count": str(len(links))}


def test_from_python(tmp_path):
    found = bellapy.assemble(READS, threads=1, rounds=0)
    found.write(tmp_path / "x.gfa")
    found.write(tmp_path / "x.fa")
    assert (tmp_path / "x.gfa").read_text().startswith("H\tVN:Z:1.2\nS\tcontig_1\t")
    assert (tmp_path / "x.fa").read_text().startswith(">contig_1 length=12000 circular=true")
    with pytest.raises(TypeError, match="speed"):
        bellapy.assemble(READS, speed=3)
