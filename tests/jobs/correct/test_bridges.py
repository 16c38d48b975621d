"""Bad stretches of reads and contigs, and what takes their place."""

from __future__ import annotations

import numpy as np
import pytest
from cases import run, sample_reads
from corrected import edits, oriented, records
from naive import reverse_complement
from strategies import random_bases

from bellapy.jobs.correct.bridges import FLANK, splice
from bellapy.jobs.correct.template import Corrected


@pytest.mark.parametrize("strand", [1, -1])
def test_other_reads_bridge_a_bad_stretch(tmp_path, strand):
    """A read has 1,500 random bases in the place of 900; both its halves overlap others, but no overlap crosses them."""
    rng = np.random.default_rng(3)
    genome = random_bases(rng, 5000)
    reads = sample_reads(4, genome=genome, depth=16, mean=2600, error=0.08)
    bad = oriented(genome[500:2000] + random_bases(rng, 1500) + genome[2900:4500], strand)
    (tmp_path / "reads.fa").write_text(f">bad\n{bad}\n{reads.fasta()}")
    outcome = run("correct", tmp_path / "reads.fa", "-t", 1)
    name, found = records(outcome.out)[0]
    assert name == "bad"
    assert "bad stretches bridged: 1" in outcome.err
    assert edits(oriented(found, strand), genome[400:4600]) < 12  # of 4,000 bases; the stretch alone had 1,000
    assert abs(len(found) - 4000) < 20


@pytest.mark.parametrize("strand", [1, -1])
@pytest.mark.parametrize(("inserted", "left_out"), [(100, 100), (10, 120), (150, 10)])
def test_a_bad_stretch_that_overlaps_cross_is_bridged(tmp_path, strand, inserted, left_out):
    """Paths lead through random bases, or past a gap; without bridges about as many bases stay wrong."""
    rng = np.random.default_rng(6)
    genome = random_bases(rng, 5000)
    reads = sample_reads(4, genome=genome, depth=20, mean=2600, error=0.08)
    bad = oriented(genome[500:2400] + random_bases(rng, inserted) + genome[2400 + left_out : 4500], strand)
    (tmp_path / "reads.fa").write_text(f">bad\n{bad}\n{reads.fasta()}")
    outcome = run("correct", tmp_path / "reads.fa", "-t", 1)
    _, found = records(outcome.out)[0]
    assert edits(oriented(found, strand), genome[400:4600]) < 12
    assert "bad stretches bridged: 1" in outcome.err


def test_a_variant_that_enough_reads_show_is_no_bad_stretch(tmp_path):
    """A third of the reads lack 100 bases; they keep lacking them."""
    rng = np.random.default_rng(8)
    genome = random_bases(rng, 5000)
    other = genome[:2400] + genome[2500:]
    most = sample_reads(4, genome=genome, depth=20, mean=2600, error=0.05).fasta()
    few = sample_reads(5, genome=other, depth=10, mean=2600, error=0.05).fasta().replace(">", ">other_")
    (tmp_path / "reads.fa").write_text(f">one\n{other[500:4500]}\n{most}{few}")
    _, found = records(run("correct", tmp_path / "reads.fa", "-t", 1).out)[0]
    assert edits(found, other[400:4600]) < 20


def test_reads_bridge_what_is_wrong_in_a_contig(tmp_path):
    """Random bases in the place of others, bases turned round, bases left out: no read lies across any of them."""
    rng = np.random.default_rng(9)
    genome = random_bases(rng, 12_000)
    turned, random = reverse_complement(genome[5800:6300]), random_bases(rng, 600)
    draft = genome[:3000] + random + genome[3600:5800] + turned + genome[6300:8500] + genome[9400:]
    reads = sample_reads(4, genome=genome, depth=20, mean=2600, error=0.08)
    (tmp_path / "draft.fa").write_text(f">draft\n{draft}\n")
    (tmp_path / "reads.fa").write_text(reads.fasta())
    outcome = run("polish", tmp_path / "draft.fa", tmp_path / "reads.fa", "-t", 1)
    _, found = records(outcome.out)[0]
    assert edits(found[500:-500], genome) < 5  # of 11,000 bases
    assert abs(len(found) - len(genome)) < 50
    assert "bad stretches bridged: 3" in outcome.err


def test_a_contig_keeps_what_some_reads_show(tmp_path):
    """A third of the reads are as the contig; the others lack 700 of its bases."""
    rng = np.random.default_rng(10)
    genome = random_bases(rng, 8000)
    few = sample_reads(5, genome=genome, depth=10, mean=2600, error=0.05).fasta().replace(">", ">as_it_is_")
    most = sample_reads(4, genome=genome[:4000] + genome[4700:], depth=20, mean=2600, error=0.05).fasta()
    (tmp_path / "draft.fa").write_text(f">draft\n{genome}\n")
    (tmp_path / "reads.fa").write_text(few + most)
    outcome = run("polish", tmp_path / "draft.fa", tmp_path / "reads.fa", "-t", 1)
    _, found = records(outcome.out)[0]
    assert edits(found[500:-500], genome) < 5


def test_a_bridge_takes_the_place_of_a_stretch():
    n, start, end = 400, 150, 220
    codes, raw = np.arange(n, dtype=np.uint8) % 4, np.zeros(n, bool)
    raw[180:200] = True
    found = Corrected(codes, raw, np.arange(n + 1), 5, 0, 0, 4.0)
    bridge = np.full(2 * FLANK + 10, 3, np.uint8)
    after = splice(found, start, end, bridge, found.margins)
    assert after.codes.tolist() == [*codes[: start - FLANK], *bridge, *codes[end + FLANK :]]
    assert not after.raw.any() and len(after.raw) == len(after.codes)
    assert after.begins[0] == 0 and after.begins[-1] == len(after.codes)
    assert (np.diff(after.begins) >= 0).all()
    assert after.begins[end + FLANK] == end + FLANK + 10 - (end - start)
    assert after.n_bridges == 1
