"""Where extensions end: the tilt learnt from reads, the steps, and real-looking reads with bad ends and bursts of errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import run
from strategies import extend_seeds, make_reads, make_seeds, mutate, random_bases

from bellapy.compute.columns import join_rows
from bellapy.compute.resources import Resources
from bellapy.jobs.overlap import align, gate
from bellapy.jobs.overlap.candidates import SURE_SUPPORT
from bellapy.params import TILT_UNIT, ExtensionParams, Scoring
from bellapy.records import ReadSet


@pytest.fixture(scope="module")
def sample():
    """60 pairs of reads with 10 % errors in each, a seed in the middle of what they share."""
    rng = np.random.default_rng(3)
    sequences, seeds, k = [], [], 15
    for i in range(60):
        shared = random_bases(rng, 800), random_bases(rng, k), random_bases(rng, 800)
        for _ in range(2):
            sequences.append(mutate(rng, shared[0], 0.1) + shared[1] + mutate(rng, shared[2], 0.1))
        seeds.append((2 * i, 2 * i + 1, 1, sequences[-2].index(shared[1]), sequences[-1].index(shared[1])))
    seeds = make_seeds(*zip(*seeds, strict=True), k)
    return make_reads(sequences), replace(seeds, n_support=np.full(60, SURE_SUPPORT, np.int32))


@pytest.mark.parametrize(
    ("scores", "low", "high"),
    [((1, -1, -1), 0.05, 0.06), ((2, -2, -2), 0.1, 0.12), ((1, -2, -2), 0, 0.002), ((2, -3, -3), 0, 0.002)],
)
def test_what_unrelated_sequence_gains(scores, low, high):
    """The linear phase of local alignment for the first two, the logarithmic one for the others."""
    assert low <= align.unrelated_gain(Scoring(*scores, 130 * scores[0]), 0.5, Resources()) <= high


def test_unrelated_sequence_gains_more_where_bases_are_not_as_frequent():
    gains = [align.unrelated_gain(Scoring(1, -1, -1, 130), gc, Resources()) for gc in (0.5, 0.3, 0.2, 0.8)]
    assert gains[0] + 0.02 < gains[1] < gains[2] - 0.02
    assert gains[3] == pytest.approx(gains[2], abs=0.005)


def test_what_unrelated_sequence_gains_is_found_once(monkeypatch):
    asked = []
    monkeypatch.setattr(align, "_known_gains", {})
    monkeypatch.setattr(
        align, "_unrelated_gain", lambda scoring, gc, resources: asked.append((scoring, gc)) or float(scoring.xdrop + gc)
    )
    few, many = Scoring(1, -1, -1, 3), Scoring(1, -1, -1, 4)
    given = [(few, 0.5), (many, 0.5), (few, 0.5), (few, 0.201), (few, 0.199)]
    assert [align.unrelated_gain(*one, Resources()) for one in given] == [53.0, 54.0, 53.0, 23.0, 23.0]
    assert asked == [(few, 50), (many, 50), (few, 20)]


def test_tilt_lies_between_what_unrelated_sequence_and_homology_gain(sample):
    tilt = align.choose_tilt(*sample, Scoring(), Resources()) / TILT_UNIT
    assert 0.06 < tilt < 0.2


def test_the_order_of_reads_does_not_change_the_tilt(sample, monkeypatch):
    monkeypatch.setattr(gate, "PILOT_SEEDS", 30)
    reads, seeds = sample
    order = np.random.default_rng(0).permutation(len(seeds))
    assert align.choose_tilt(reads, seeds, Scoring(), Resources()) == align.choose_tilt(
        reads, seeds.take(order), Scoring(), Resources()
    )
    assert set(gate.pilot_seeds(reads.lengths, seeds).query_id) == set(
        gate.pilot_seeds(reads.lengths, seeds.take(order)).query_id
    )


def test_repeats_do_not_change_the_tilt(sample):
    """Three times as many pairs of reads share a repeat alone, of 100 bases in 1,700."""
    reads, seeds = sample
    rng, n, k = np.random.default_rng(4), 3 * len(seeds), 15
    repeat = random_bases(rng, 100)
    copies = make_reads([random_bases(rng, 800) + repeat + random_bases(rng, 800) for _ in range(2 * n)])
    ids = len(reads) + 2 * np.arange(n)
    in_repeats = make_seeds(ids, ids + 1, np.ones(n, int), np.full(n, 840), np.full(n, 840), k)
    columns = {"n_support": np.full(n, SURE_SUPPORT, np.int32), "copies": np.full(n, 3, np.float32)}
    both = join_rows([seeds, replace(in_repeats, **columns)])
    codes = [some.codes[a : a + size] for some in (reads, copies) for a, size in zip(some.starts, some.lengths, strict=True)]
    found = align.choose_tilt(ReadSet.from_codes(codes), both, Scoring(), Resources())
    assert abs(found - align.choose_tilt(*sample, Scoring(), Resources())) <= 1


def test_too_few_sure_seeds_teach_nothing(sample):
    reads, seeds = sample
    few, none = seeds.take(np.arange(align.MIN_PILOT - 1)), seeds.take(np.arange(0))
    assert align.choose_tilt(reads, few, Scoring(), Resources()) == align.choose_tilt(reads, none, Scoring(), Resources())


@pytest.mark.parametrize(
    ("given", "expected"), [({}, [15, 130]), ({"xdrop": 40}, [40]), ({"match": 2, "mismatch": -3, "gap": -3}, [30, 260])]
)
def test_steps_of_homology(sample, given, expected):
    steps = align.choose_steps(*sample, ExtensionParams(**given), Resources())
    assert [step.xdrop for step in steps] == expected
    assert len({step.tilt for step in steps}) == 1 and all(step.fall > TILT_UNIT * step.xdrop for step in steps)


@pytest.mark.parametrize("kind", ["best", "longest"])
def test_best_and_longest_take_one_step_without_a_tilt(sample, kind):
    assert align.choose_steps(*sample, ExtensionParams(extension=kind), Resources()) == (Scoring(1, -1, -1, 25),)
    assert align.choose_steps(*sample, ExtensionParams(extension=kind, xdrop=7), Resources()) == (Scoring(1, -1, -1, 7),)


def test_ends_stop_at_unrelated_sequence_and_cross_a_burst_of_errors(rng):
    """What a large X alone gets wrong, and what a small one does."""
    k, sequences, seeds = 15, [], []
    for i in range(40):
        first, seed, second, third = (
            random_bases(rng, 700),
            random_bases(rng, k),
            random_bases(rng, 700),
            random_bases(rng, 900),
        )
        left = mutate(rng, first, 0.08)
        burst = mutate(rng, second, 0.08) + random_bases(rng, 80) + mutate(rng, third, 0.08)
        sequences.append(random_bases(rng, 3000) + left + seed + burst)
        other = mutate(rng, second, 0.08) + mutate(rng, third, 0.08)
        sequences.append(random_bases(rng, 3000) + mutate(rng, first, 0.08) + seed + other)
        seeds.append((2 * i, 2 * i + 1, 1, 3000 + len(left), len(sequences[-1]) - len(other) - k))
    reads, seeds = make_reads(sequences), make_seeds(*zip(*seeds, strict=True), k)
    seeds = replace(seeds, n_support=np.full(40, SURE_SUPPORT, np.int32))
    steps = align.choose_steps(reads, seeds, ExtensionParams(), Resources())
    found = extend_seeds(reads, seeds, steps)
    beyond = 3000 - found.query_start
    assert np.median(np.abs(beyond)) < 40 and (beyond > 200).mean() < 0.1
    assert (found.query_end > reads.lengths[seeds.query_id] - 100).mean() > 0.9
    small, large = (extend_seeds(reads, seeds, (Scoring(1, -1, -1, x),)) for x in (5, 130))
    assert (small.query_end > reads.lengths[seeds.query_id] - 100).mean() < 0.5
    assert (3000 - large.query_start > 200).mean() > 0.5


def test_extend_learns_nothing_from_pairs(tmp_path):
    (tmp_path / "pairs.tsv").write_text("ACGTACGT\t0\tACGTACGT\t0\tn\n")
    outcome = run("extend", tmp_path / "pairs.tsv", "-k", "4", "-x", "7", "--extension", "homology")
    assert outcome.code == 2 and "choose best or longest" in outcome.err


def test_the_order_of_candidates():
    """Rows of a candidate lie together and as they were, pairs of reads ascend; the order of strands is as it may be."""
    strand, zeros = [1, -1, 1, -1], [0] * 4
    assert align.in_candidate_order(make_seeds(zeros, [1] * 4, strand, zeros, zeros, 1)).tolist() == [1, 3, 0, 2]
    assert align.in_candidate_order(make_seeds(zeros, [1, 1, 2, 2], strand, zeros, zeros, 1)) is None
    assert align.in_candidate_order(make_seeds(zeros, [2, 2, 1, 1], strand, zeros, zeros, 1)).tolist() == [3, 2, 1, 0]
