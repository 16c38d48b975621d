"""What users of minimap2 type, and what is near to a command's name."""

from __future__ import annotations

import pytest
from cases import run, sample_reads

from bellapy.cli.habits import from_minimap2


@pytest.fixture
def here(tmp_path, monkeypatch):
    sample = sample_reads(7, genome=6000, depth=4, mean=1500, error=0.03)
    (tmp_path / "reads.fa").write_text(sample.fasta())
    (tmp_path / "g.fa").write_text(f">g\n{sample.sequences[0]}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("-x map-ont a b", "--preset map-ont a b"),
        ("-xmap-ont a b", "--preset map-ont a b"),
        ("-ax map-ont a b", "--format sam --preset map-ont a b"),
        ("-axmap-ont a b", "--format sam --preset map-ont a b"),
        ("-a a b", "--format sam a b"),
        ("-a a b -o x.bam", "a b -o x.bam"),
        ("-ax ont a b -o x.sam.gz", "--preset ont a b -o x.sam.gz"),
        ("-x 15 a", "-x 15 a"),
        ("-x15 a", "-x 15 a"),
        ("-x", "--preset"),
        ("- -t 3 -- -x ont", "- -t 3 -- -x ont"),
        ("--xdrop 7 -N 3", "--xdrop 7 -N 3"),
        ("a b --cs=long", "a b --cs-long"),
        ("a b --cs=short", "a b --cs"),
        ("--cs long a b", "--cs-long a b"),
    ],
)
def test_words_of_minimap2(given, made):
    assert from_minimap2(given.split(), lambda word: not word.isdigit()) == made.split()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("map -x map-ont g.fa reads.fa", "map --preset ont g.fa reads.fa"),
        ("map -xlr:hq g.fa reads.fa", "map --preset hq g.fa reads.fa"),
        ("map -x map-pb g.fa reads.fa", "map --preset clr g.fa reads.fa"),
        ("map g.fa reads.fa --mismatch 4 --gap-open=-4,-24", "map g.fa reads.fa --mismatch -4 --gap-open 4,24"),
        ("overlap -x ava-ont reads.fa", "overlap --preset ont reads.fa"),
        ("overlap -x 15 reads.fa --gap 1", "overlap --xdrop 15 reads.fa --gap -1"),
    ],
)
def test_what_is_meant(here, given, meant):
    one, other = run(*given.split(), "-q", "-t1"), run(*meant.split(), "-q", "-t1")
    assert one.code == other.code == 0 and one.out == other.out != b"", one.err


def test_alignments_are_asked_for(here):
    assert run("map", "-ax", "map-ont", "g.fa", "reads.fa", "-q").out.startswith(b"@HD\t")
    assert run("map", "-ax", "map-ont", "g.fa", "reads.fa", "-q", "-o", "x.bam").code == 0 and (here / "x.bam.bai").exists()


@pytest.mark.parametrize("preset", ["asm5", "asm10", "asm20"])
def test_presets_for_assemblies(here, preset, rng):
    """Two genomes that differ by some bases and an insertion are one alignment."""
    bases = "".join(rng.choice(list("ACGT"), 30_000))
    other = "".join("ACGT"["ACGT".index(base) - 1] if i % 700 == 350 else base for i, base in enumerate(bases))
    (here / "a.fa").write_text(f">a\n{bases}\n")
    (here / "b.fa").write_text(f">b\n{other[:12_000]}{other[3000:3040][::-1]}{other[12_000:]}\n")
    (line,) = run("map", "-x", preset, "a.fa", "b.fa", "-q").out.decode().splitlines()
    columns = line.split("\t")
    assert (columns[2], columns[3], columns[7], columns[8]) == ("0", "30040", "0", "30000")
    assert "NM:i:83" in columns  # 43 bases, and an insertion of 40


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("mapp g.fa reads.fa", "mapp: there is no such command; did you mean `bellapy map`?"),
        ("nothing", "nothing: there is no such command; `bellapy -h` shows all"),
        ("map -x sr g.fa reads.fa", "--preset sr: choose from clr, ont, hq, hifi, asm5, asm10, asm20"),
        ("overlap -x map-foo reads.fa", "--preset map-foo: no preset has this name"),
        ("map --presett ont g.fa reads.fa", "--preset"),
    ],
)
def test_near_words(here, words, problem):
    outcome = run(*words.split())
    assert outcome.code == 2 and problem in outcome.err, outcome.err
