"""Bad stretches of reads, and what takes their place."""

from __future__ import annotations

import numpy as np
import pytest
from cases import run, sample_reads
from corrected import edits, oriented, records
from hypothesis import given
from hypothesis import strategies as st
from strategies import random_bases

from bellapy.jobs.correct.bridges import FLANK, LEAST, MARGIN, find_gaps, splice
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


@given(st.lists(st.integers(1, 400), max_size=12), st.booleans())
def test_gaps_are_those_of_the_definition(sizes, raw_first):
    is_raw = (np.arange(len(sizes)) % 2 == 0) == raw_first
    raw, ends = np.repeat(is_raw, sizes), np.cumsum(sizes)
    gaps: list[tuple[int, int]] = []
    for i in np.flatnonzero(is_raw):
        begin, end = int(ends[i] - sizes[i]), int(ends[i])
        if gaps and begin - gaps[-1][1] < 2 * MARGIN + FLANK:
            begin = gaps.pop()[0]
        gaps.append((begin, end))
    room = MARGIN + FLANK
    assert find_gaps(raw) == [(a, b) for a, b in gaps if b - a >= LEAST and room <= a and b <= len(raw) - room]


def test_only_stretches_with_both_flanks_are_bridged():
    room = MARGIN + FLANK
    raw = np.zeros(3000, bool)
    raw[:LEAST] = raw[-LEAST:] = True  # the ends
    raw[500 : 500 + LEAST - 1] = True  # too short
    raw[1000 : 1000 + LEAST] = True
    assert find_gaps(raw) == [(1000, 1000 + LEAST)]
    raw[1000 + LEAST + room : 1200] = True  # no whole flank lies between the two
    assert find_gaps(raw) == [(1000, 1200)]
    raw[LEAST : LEAST + 1] = False
    raw[LEAST + 1 : 100] = True
    assert find_gaps(raw) == [(1000, 1200)]
    assert find_gaps(np.ones(9, bool)) == find_gaps(np.zeros(9, bool)) == find_gaps(np.zeros(0, bool)) == []


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
