"""X-drop extension: every execution against SeqAn's answers, the full table, and one another."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from dataclasses import fields

import llvmlite.binding
import naive
import numba
import numpy as np
import pytest
from cases import IMPORTS
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import (
    extend_seeds,
    flank_pairs,
    lay_out_flanks,
    make_reads,
    make_seeds,
    mutate,
    on_tables,
    random_bases,
    scorings,
    simulate_flanks,
)

from bellapy.compute.resources import Resources
from bellapy.engines import extend as xdrop
from bellapy.engines.ends import Ends
from bellapy.engines.flanks import Flanks, join_flanks, make_flanks
from bellapy.engines.lanes.shape import BYTE, HALVES, SHORT, TILE, Shape
from bellapy.engines.linear import extend_cpu as batch_cpu
from bellapy.engines.linear.extend_lanes import extend_lanes
from bellapy.engines.linear.rule import GUARD, extend_each
from bellapy.engines.linear.sizes import fits, narrow_height, shapes
from bellapy.params import Scoring
from bellapy.records import Extensions

SCORINGS = [
    Scoring(1, -1, -1, 0),
    Scoring(1, -1, -1, 1),
    Scoring(1, -1, -1, 7),
    Scoring(1, -1, -1, 30),
    Scoring(1, -1, -2, 1),  # a gap dies at once
    Scoring(1, -1, -2, 2),  # a gap equals X
    Scoring(1, -2, -1, 15),
    Scoring(1, -3, -2, 10),
    Scoring(2, -3, -4, 20),
    Scoring(2, -1, -1, 40),
    Scoring(3, -1, -6, 60),
    Scoring(5, -4, -6, 50),
    Scoring(4, -16, -3, 30),
    Scoring(1, -1, -1, 15, 7, 50 * 64),
    Scoring(1, -1, -1, 100, 12, 400),
    Scoring(1, -1, -1, 30, 60, 1),
    Scoring(2, -3, -4, 40, 20, 900),
]
MISMATCHES_AND_GAPS = [(-1, -1), (-1, -2), (-3, -1), (-1, -3), (-6, -2), (-16, -1), (-18, -1), (-19, -2), (-16, -16)]


def fits_at_all(scoring: Scoring, cell) -> bool:
    """Whether chunks of some length do."""
    return any(fits(scoring, cell, half) for half in HALVES)


def widest(match: int, mismatch: int, gap: int) -> Scoring | None:
    """The largest X with which these scores fit in bytes."""
    fitting = [s for x in range(500) if fits_at_all(s := Scoring(match, mismatch, gap, x), BYTE)]
    return max(fitting, key=lambda s: s.xdrop, default=None)


EXTREME = [s for match in (1, 2, 5) for rest in MISMATCHES_AND_GAPS if (s := widest(match, *rest))]


SHAPES = [(TILE, 8), (TILE, 124), (32, 248), (8, 64), (1, 7936)]
SIZES = [Shape(lanes, height, 3 if lanes == TILE else half + 1, half) for half in HALVES for lanes, height in SHAPES]


def one_by_one(codes, flanks, scoring, longest=False):
    """Results of the scalar rule."""
    results = np.full((len(flanks), 3), -99, np.int64)
    size = 3, int(flanks.query_length.max(initial=0)) + GUARD
    cells = np.random.default_rng(1).integers(-(1 << 40), 1 << 40, size)  # what was there before does not matter
    extend_each(codes, flanks.table(np.arange(len(flanks))), scoring, longest, cells, results)
    return results


def side_by_side(codes, flanks, scoring, size, todo, longest=False, cell=BYTE):
    """Results of the lanes for the flanks `todo`, and which of these they left out."""
    results = np.full((len(flanks), 3), -99, np.int64)
    results[todo], over = extend_lanes(codes, flanks.table(todo), size, scoring, longest, cell)
    return results, todo[over]


def by_table(pairs, scoring, longest=False):
    """Results of the oracle."""
    oracle = naive.xdrop_longest if longest else naive.xdrop_best
    return np.array([oracle(query, target, *scoring) for query, target in pairs], np.int64).reshape(len(pairs), 3)


def assert_same(got: Extensions, expected: Extensions):
    for name in Extensions.__dataclass_fields__:
        assert_array_equal(getattr(got, name), getattr(expected, name), err_msg=name)


# ---------------------------------------------------------------- SeqAn


def numbers(rows, *names):
    return np.array([[int(row[name]) for name in names] for row in rows])


@pytest.mark.parametrize("x", [7, 15, 25, 50, 100])
def test_longest_is_seqan(oracle, backend, device, x):
    n = 0
    for (_, its_x), (rows, reads, seeds) in oracle.items():
        if its_x != x:
            continue
        n += len(rows)
        scoring = Scoring(1, -1, -1, x)
        results = backend(reads.both_ways, make_flanks(reads, seeds.anchors), scoring, True, 1)
        assert_array_equal(results[:, 0].reshape(2, -1).T, numbers(rows, "score_left", "score_right"))
        got = extend_seeds(reads, seeds, (scoring,), longest=True, device=device)
        got = np.transpose([got.score, got.query_start, got.query_end, got.target_start, got.target_end])
        assert_array_equal(got, numbers(rows, "score", "beginV", "endV", "beginH", "endH"))
    assert n == 600


@pytest.mark.parametrize("x", [7, 15, 25, 50, 100])
def test_best_is_seqans_highest_score(oracle, backend, x):
    for (_, its_x), (rows, reads, seeds) in oracle.items():
        if its_x == x:
            results = backend(reads.both_ways, make_flanks(reads, seeds.anchors), Scoring(1, -1, -1, x), False, 1)
            known = np.array(["N" not in row["seqH"] + row["seqV"] for row in rows])  # N equals N there
            best = results[:, 0].reshape(2, -1).T
            assert_array_equal(best[known], numbers(rows, "best_left", "best_right")[known])
            assert (best <= numbers(rows, "best_left", "best_right")).all()


def test_naive_longest_is_seqan(oracle):
    for rows, _, seeds in oracle.values():
        k = seeds.length
        for row in rows[::40]:
            x, v, h = int(row["X"]), int(row["posV"]), int(row["posH"])
            left = naive.xdrop_longest(row["seqV"][:v][::-1], row["seqH"][:h][::-1], 1, -1, -1, x)
            right = naive.xdrop_longest(row["seqV"][v + k :], row["seqH"][h + k :], 1, -1, -1, x)
            got = (left[0], right[0], v - left[1], v + k + right[1], h - left[2], h + k + right[2])
            names = ("score_left", "score_right", "beginV", "endV", "beginH", "endH")
            assert got == tuple(int(row[name]) for name in names)


# ---------------------------------------------------------------- the full table


@settings(max_examples=800)
@given(pair=flank_pairs(), scoring=scorings(), seed=st.integers(0, 7))
@example(("", ""), Scoring(1, -1, -1, 7), 0)
@example(("A", "A"), Scoring(1, -1, -1, 0), 1)
@example(("N", "N"), Scoring(1, -1, -1, 7), 2)
@example(("ACGT" * 20, "ACGT" * 20), Scoring(5, -6, -6, 0), 3)
@example(("A" * 70, "C" * 70), Scoring(1, -1, -1, 300), 4)
@example(("N" * 30, "N" * 30), Scoring(1, -2, -1, 300), 5)
def test_the_rule_is_the_full_table(pair, scoring, seed):
    codes, flanks = lay_out_flanks([pair], np.random.default_rng(seed))
    assert_array_equal(one_by_one(codes, flanks, scoring), by_table([pair], scoring))


@settings(max_examples=800)
@given(pair=flank_pairs(), scoring=scorings(), seed=st.integers(0, 7))
@example(("N" * 30, "N" * 30), Scoring(1, -1, -1, 7), 0)
@example(("N", "N"), Scoring(1, -1, -2, 1), 1)
@example(("A" * 100, "A"), Scoring(1, -1, -1, 300), 2)
@example(("ACGTACGT", "ACGTACGT" + "N" * 30), Scoring(1, -1, -1, 7), 3)  # N does not meet what follows the query
@example(("ACGTACGT" + "N" * 30, "ACGTACGT"), Scoring(2, -3, -1, 9), 4)
def test_the_rule_is_seqans(pair, scoring, seed):
    codes, flanks = lay_out_flanks([pair], np.random.default_rng(seed))
    assert_array_equal(one_by_one(codes, flanks, scoring, longest=True), by_table([pair], scoring, longest=True))


@settings(max_examples=60)
@given(pairs=st.lists(flank_pairs(60), max_size=12), scoring=scorings(), longest=st.booleans(), seed=st.integers(0, 7))
def test_backend_is_the_full_table(backend, pairs, scoring, longest, seed):
    pairs = pairs * (TILE // 8)  # often enough for the lanes
    codes, flanks = lay_out_flanks(pairs, np.random.default_rng(seed))
    assert_array_equal(backend(codes, flanks, scoring, longest, 1), by_table(pairs, scoring, longest))


@pytest.mark.parametrize("scoring", SCORINGS + EXTREME[::3], ids=str)
def test_backend_is_the_full_table_on_many_flanks(backend, rng, scoring):
    pairs = simulate_flanks(rng, 2 * TILE + 2, 70)
    codes, flanks = lay_out_flanks(pairs, rng)
    assert_array_equal(backend(codes, flanks, scoring, False, 1), by_table(pairs, scoring))


@pytest.mark.parametrize(
    "scoring",
    [Scoring(1, -6, -1, x) for x in (1, 7, 32, 40, 110)] + [Scoring(2, -9, -3, 60), Scoring(1, -9, -2, 34)],
    ids=str,
)
def test_gaps_at_the_border_die_on_equality(backend, rng, scoring):
    """A diagonal that begins with a gap just too long, or not, before or after a few matches."""
    whole, reach = random_bases(rng, 60), scoring.xdrop // -scoring.gap
    pairs = []
    for begin in range(4):
        for size in range(max(0, reach - begin * (1 + scoring.match) - 2), reach + 3):
            pairs += [(whole, whole[:begin] + "N" * size + whole), (whole[:begin] + "N" * size + whole, whole)]
    pairs = pairs * -(-TILE // len(pairs))
    codes, flanks = lay_out_flanks(pairs, rng)
    expected = [naive.xdrop_best_sparse(*pair, *scoring) for pair in pairs]
    assert_array_equal(one_by_one(codes, flanks, scoring), expected)
    assert_array_equal(backend(codes, flanks, scoring, False, 1), expected)


@settings(max_examples=100)
@given(pair=flank_pairs(), scoring=scorings())
def test_sparse_oracle_is_the_full_table(pair, scoring):
    assert naive.xdrop_best_sparse(*pair, *scoring) == naive.xdrop_best(*pair, *scoring)


# ---------------------------------------------------------------- lanes


@pytest.mark.parametrize(
    ("scoring", "cell", "half"),
    [(s, cell, half) for s in SCORINGS for cell in (BYTE, SHORT) for half in HALVES if fits(s, cell, half)],
    ids=lambda value: value.name if value in (BYTE, SHORT) else str(value),
)
@pytest.mark.parametrize("shape", [None, *SHAPES], ids=str)
@pytest.mark.parametrize("longest", [False, True])
def test_lanes_follow_the_rule(rng, scoring, shape, cell, half, longest):
    lanes, height = shape or (TILE, narrow_height(scoring))
    size = Shape(lanes, height, 3 if lanes == TILE else half + 1, half)
    codes, flanks = lay_out_flanks(simulate_flanks(rng, 3 * TILE + 7), rng)
    todo = np.flatnonzero(np.minimum(flanks.query_length, flanks.target_length) > 0)
    results, over = side_by_side(codes, flanks, scoring, size, todo, longest, cell)
    written = np.setdiff1d(todo, over)
    assert len(np.unique(over)) == len(over)
    assert_array_equal(results[written], one_by_one(codes, flanks, scoring, longest)[written])
    if size.height >= 124 and scoring.xdrop <= 10:
        assert len(over) < len(todo) / 4
    if size.height == 7936:
        assert len(over) == 0


@pytest.mark.parametrize("scoring", EXTREME, ids=str)
def test_lanes_at_the_limit_of_bytes(rng, scoring):
    assert fits_at_all(scoring, BYTE) and not fits_at_all(scoring._replace(xdrop=scoring.xdrop + 1), BYTE)
    codes, flanks = lay_out_flanks(simulate_flanks(rng, 2 * TILE + 1), rng)
    todo = np.flatnonzero(np.minimum(flanks.query_length, flanks.target_length) > 0)
    for longest in (False, True):
        expected = one_by_one(codes, flanks, scoring, longest)
        for size in shapes(scoring, BYTE):
            results, over = side_by_side(codes, flanks, scoring, size, todo, longest)
            written = np.setdiff1d(todo, over)
            assert_array_equal(results[written], expected[written])
            assert len(written), "the case proves nothing"


@pytest.mark.parametrize(
    "scoring", [Scoring(100, -100, -100, 16_000), Scoring(100, -1, -1, 16_000), Scoring(1, -100, -1, 900)]
)
@pytest.mark.parametrize("longest", [False, True])
def test_scores_that_fit_no_byte(backend, rng, scoring, longest):
    assert not fits_at_all(scoring, BYTE) and fits_at_all(scoring, SHORT)
    codes, flanks = lay_out_flanks(simulate_flanks(rng, TILE + 1), rng)
    assert_array_equal(backend(codes, flanks, scoring, longest, 1), one_by_one(codes, flanks, scoring, longest))


def test_windows_wider_than_any_lane(monkeypatch, rng):
    """What outgrows the last class is extended by the scalar rule."""
    monkeypatch.setattr(batch_cpu, "shapes", lambda scoring, cell: [Shape(TILE, 8, 3, 16)] if cell is BYTE else [])
    scoring = Scoring(1, -1, -1, 15)
    codes, flanks = lay_out_flanks(simulate_flanks(rng, TILE + 1), rng)
    for longest in (False, True):
        got = on_tables(batch_cpu.extend_flanks)(codes, flanks, scoring, longest, 2)
        assert_array_equal(got, one_by_one(codes, flanks, scoring, longest))


@pytest.mark.parametrize(("height", "hopeless"), [(8, True), (124, False)])
def test_windows_that_most_flanks_outgrow_are_not_tried_by_all(monkeypatch, rng, height, hopeless):
    tried = []

    def extend(codes, table, shape, *others):
        tried.append(len(table))
        return extend_lanes(codes, table, shape, *others)

    monkeypatch.setattr(batch_cpu, "extend_lanes", extend)
    monkeypatch.setattr(batch_cpu, "PROBE", 8)
    monkeypatch.setattr(batch_cpu, "shapes", lambda scoring, cell: [Shape(TILE, height, 3, 32)] if cell is BYTE else [])
    scoring, n = Scoring(1, -1, -1, 15), 70
    codes, flanks = lay_out_flanks([(random_bases(rng, 200), random_bases(rng, 200)) for _ in range(n)], rng)
    got = on_tables(batch_cpu.extend_flanks)(codes, flanks, scoring, False, 1)
    assert_array_equal(got, one_by_one(codes, flanks, scoring))
    assert tried[0] < 2 * 8 and sum(tried) == (tried[0] if hopeless else n)


@pytest.mark.parametrize("n", [0, 1, 2, TILE - 1, TILE, TILE + 1, 2 * TILE - 1, 2 * TILE, 3 * TILE + 1])
def test_any_number_of_flanks(backend, rng, n):
    scoring = Scoring(1, -1, -1, 15)
    pairs = simulate_flanks(rng, n, 150)
    codes, flanks = lay_out_flanks(pairs, rng)
    expected = one_by_one(codes, flanks, scoring)
    assert_array_equal(backend(codes, flanks, scoring, False, 1), expected)
    todo = np.flatnonzero(np.minimum(flanks.query_length, flanks.target_length) > 0)
    results, over = side_by_side(codes, flanks, scoring, Shape(TILE, 124, 3, 32), todo)
    written = np.setdiff1d(todo, over)
    assert_array_equal(results[written], expected[written])


@settings(max_examples=60)
@given(
    pairs=st.lists(flank_pairs(), min_size=1, max_size=20), scoring=scorings(60), seed=st.integers(0, 99),
    size=st.sampled_from(SIZES), longest=st.booleans(),
)  # fmt: skip
def test_lanes_are_the_full_table(pairs, scoring, seed, size, longest):
    assume(fits(scoring, BYTE, size.half))
    codes, flanks = lay_out_flanks(pairs, np.random.default_rng(seed))
    todo = np.flatnonzero(np.minimum(flanks.query_length, flanks.target_length) > 0)
    results, over = side_by_side(codes, flanks, scoring, size, todo, longest)
    written = np.setdiff1d(todo, over)
    assert_array_equal(results[written], by_table([pairs[i] for i in written], scoring, longest))


# ---------------------------------------------------------------- long and short flanks


def test_long_flanks(backend, rng):
    """More than 65,535 bases, and a score beyond 16 bits: scores are kept relative to a base that moves."""
    scoring = Scoring(1, -2, -2, 20)
    whole = random_bases(rng, 200_000)
    pairs = [
        (whole, whole),
        (whole, mutate(rng, whole, 0.01)),
        (mutate(rng, whole, 0.01), whole[:90_000]),
        (whole[:70_000] + random_bases(rng, 30_000), whole[:70_000] + random_bases(rng, 30_000)),
    ]
    codes, flanks = lay_out_flanks(pairs + simulate_flanks(rng, TILE, 100), rng)
    expected = one_by_one(codes, flanks, scoring)
    assert tuple(expected[0]) == (200_000, 200_000, 200_000)
    assert expected[1, 0] > 180_000 and expected[1, 1:].min() > 199_000
    assert expected[2, 2] > 89_900
    assert 70_000 <= expected[3, 0] < 70_200
    results, over = side_by_side(codes, flanks, scoring, Shape(TILE, 3 * narrow_height(scoring), 3, 16), np.arange(4))
    assert len(over) == 0
    assert_array_equal(results[:4], expected[:4])
    assert_array_equal(backend(codes, flanks, scoring, False, 1), expected)


@pytest.mark.parametrize("scoring", [Scoring(1, -1, -1, 10), Scoring(5, -6, -6, 20)], ids=str)
def test_long_flank_is_the_oracle(backend, rng, scoring):
    whole = random_bases(rng, 70_000)
    pairs = [(whole, mutate(rng, whole, 0.01))]
    expected = [naive.xdrop_best_sparse(*pairs[0], *scoring)]
    assert expected[0][0] > 32_767 and min(expected[0][1:]) > 65_535
    for n in (1, TILE):
        codes, flanks = lay_out_flanks(pairs * n, rng)
        assert_array_equal(backend(codes, flanks, scoring, False, 1), expected * n)


def test_long_flank_ends_where_seqan_ends(backend, rng):
    scoring = Scoring(2, -3, -2, 25)
    whole = random_bases(rng, 20_000)
    pairs = [
        (whole, mutate(rng, whole, 0.03)),
        (whole[:9_000] + random_bases(rng, 5_000), whole[:9_000] + random_bases(rng, 5_000)),
    ]
    codes, flanks = lay_out_flanks(pairs, rng)
    assert_array_equal(backend(codes, flanks, scoring, True, 1), by_table(pairs, scoring, longest=True))


@pytest.mark.parametrize("longest", [False, True])
@pytest.mark.parametrize("scoring", SCORINGS, ids=str)
def test_short_flanks(backend, rng, scoring, longest):
    bases = ["", "A", "C", "N", "AC", "NN", "ACA"]
    pairs = [(query, target) for query in bases for target in bases] * 2
    codes, flanks = lay_out_flanks(pairs, rng)
    assert_array_equal(backend(codes, flanks, scoring, longest, 1), by_table(pairs, scoring, longest))


# ---------------------------------------------------------------- seeds


@pytest.fixture(scope="module")
def seeded():
    """Reads of both strands of one genome, some related, and seeds between them."""
    rng = np.random.default_rng(7)
    genome = random_bases(rng, 4000)
    sequences, seeds, k = [], [], 17
    for i in range(160):
        start, length = int(rng.integers(0, 2000)), int(rng.integers(100, 2000))
        seed = random_bases(rng, k) if i % 8 == 0 else genome[start + length // 2 : start + length // 2 + k]
        pair = []
        for j in range(2):
            a, b = start + int(rng.integers(0, length // 3)), start + length - int(rng.integers(0, length // 3))
            left = mutate(rng, genome[a : start + length // 2], 0.08)
            right = mutate(rng, genome[start + length // 2 + k : b], 0.08)
            if i % 8 == 0 and j == 1:
                left = random_bases(rng, len(left))
            if i % 16 == 1:
                left = ""
            if i % 8 == 4 and j == 1:  # errors on both sides of the seed
                left, right = (
                    left[:-30] + random_bases(rng, len(left[-30:])),
                    random_bases(rng, len(right[:30])) + right[30:],
                )
            pair.append((left + seed + right, len(left)))
        (query, query_pos), (target, target_pos) = pair
        strand = 1 if rng.random() < 0.5 else -1
        if strand < 0:
            target, target_pos = naive.reverse_complement(target), len(target) - k - target_pos
        seeds.append((len(sequences), len(sequences) + 1, strand, query_pos, target_pos))
        sequences += [query, target]
    return sequences, make_seeds(*zip(*seeds, strict=True), k)


STEPS = (Scoring(1, -1, -1, 9),), (Scoring(1, -1, -1, 2, 9, 20 * 64), Scoring(1, -1, -1, 40, 9, 100 * 64))


@pytest.mark.parametrize("steps", STEPS, ids=len)
@pytest.mark.parametrize("longest", [False, True])
def test_extensions_are_the_oracle(seeded, device, longest, steps):
    sequences, seeds = seeded
    k, further, poor = seeds.length, 0, 0
    got = extend_seeds(make_reads(sequences), seeds, steps, longest=longest, device=device)
    for i in range(0, len(seeds), 2):
        query, target = sequences[seeds.query_id[i]], sequences[seeds.target_id[i]]
        q, t = int(seeds.query_pos[i]), int(seeds.target_pos[i])
        if seeds.strand[i] < 0:
            target, t = naive.reverse_complement(target), len(target) - k - t
        flanks = (query[:q][::-1], target[:t][::-1]), (query[q + k :], target[t + k :])
        ends = naive.xdrop_steps(flanks, steps, xdrop.NEAR, xdrop.LEAST_FOUND, longest)
        (*left, left_turn), (*right, right_turn) = ends
        poor += naive.xdrop_steps(flanks, steps, xdrop.NEAR, 0, longest) != ends
        start, end = t - left[2], t + k + right[2]
        if seeds.strand[i] < 0:
            start, end = len(target) - end, len(target) - start
        assert got.score[i] == left[0] + k + right[0]
        assert (got.query_start[i], got.query_end[i]) == (q - left[1], q + k + right[1])
        assert (got.target_start[i], got.target_end[i]) == (start, end)
        assert (got.left_query[i], got.left_target[i]) == left_turn
        assert (got.right_query[i], got.right_target[i]) == right_turn
        further += right_turn != tuple(right[1:])
    assert (further > 5 and poor > 5) or len(steps) == 1


@pytest.mark.parametrize("scoring", [Scoring(1, -1, -1, 15), Scoring(2, -4, -3, 30), Scoring(5, -6, -1, 200)], ids=str)
@pytest.mark.parametrize("longest", [False, True])
def test_threads_order_and_batches_change_nothing(seeded, device, monkeypatch, scoring, longest):
    sequences, seeds = seeded
    reads = make_reads(sequences)
    expected = extend_seeds(reads, seeds, (scoring,), longest=longest, device=device)
    for threads in (2, 3, 8):
        assert_same(extend_seeds(reads, seeds, (scoring,), longest=longest, threads=threads, device=device), expected)
    order = np.random.default_rng(1).permutation(len(seeds))
    got = extend_seeds(reads, seeds.take(order), (scoring,), longest=longest, threads=2, device=device)
    assert_same(got, expected.take(order))
    for size in (1, 7, len(seeds)):
        done = []
        monkeypatch.setattr(xdrop, "BATCH_SEEDS", size)
        few = seeds.take(slice(0, 20)) if size == 1 else seeds
        got = extend_seeds(reads, few, (scoring,), longest=longest, device=device, progress=done.append)
        assert_same(got, expected.take(slice(0, len(few))))
        assert done == [min(at + size, len(few)) for at in range(0, len(few), size)]


def test_intervals_hold_the_seed_and_lie_inside_the_reads(seeded, device):
    sequences, seeds = seeded
    reads = make_reads(sequences)
    for longest in (False, True):
        got = extend_seeds(reads, seeds, (Scoring(1, -1, -1, 40),), longest=longest, device=device)
        for side in ("query", "target"):
            start, end, pos = getattr(got, f"{side}_start"), getattr(got, f"{side}_end"), getattr(seeds, f"{side}_pos")
            assert (0 <= start).all() and (start <= pos).all() and (pos + seeds.length <= end).all()
            assert (end <= reads.lengths[getattr(seeds, f"{side}_id")]).all()


@pytest.mark.parametrize("longest", [False, True])
def test_target_of_the_other_strand_mirrors_its_coordinates(seeded, device, longest):
    sequences, seeds = seeded
    scoring, k = Scoring(1, -1, -1, 15), seeds.length
    expected = extend_seeds(make_reads(sequences), seeds, (scoring,), longest=longest, device=device)
    turned = [naive.reverse_complement(s) if i % 2 else s for i, s in enumerate(sequences)]
    reads = make_reads(turned)
    lengths = reads.lengths[seeds.target_id]
    mirror = make_seeds(seeds.query_id, seeds.target_id, -seeds.strand, seeds.query_pos, lengths - k - seeds.target_pos, k)
    got = extend_seeds(reads, mirror, (scoring,), longest=longest, device=device)
    assert_array_equal(got.score, expected.score)
    assert_array_equal(got.query_start, expected.query_start)
    assert_array_equal(got.query_end, expected.query_end)
    assert_array_equal(got.target_start, lengths - expected.target_end)
    assert_array_equal(got.target_end, lengths - expected.target_start)


def test_score_is_symmetric(seeded, device):
    """Reads swapped, or both turned around: the best score stays."""
    sequences, seeds = seeded
    scoring, k = Scoring(1, -2, -1, 20), seeds.length
    expected = extend_seeds(make_reads(sequences), seeds, (scoring,), device=device).score
    swapped = make_seeds(seeds.target_id, seeds.query_id, seeds.strand, seeds.target_pos, seeds.query_pos, k)
    assert_array_equal(extend_seeds(make_reads(sequences), swapped, (scoring,), device=device).score, expected)
    reads = make_reads([naive.reverse_complement(sequence) for sequence in sequences])
    turned = make_seeds(
        seeds.query_id, seeds.target_id, seeds.strand,
        reads.lengths[seeds.query_id] - k - seeds.query_pos, reads.lengths[seeds.target_id] - k - seeds.target_pos, k,
    )  # fmt: skip
    assert_array_equal(extend_seeds(reads, turned, (scoring,), device=device).score, expected)


def test_seed_at_the_ends_of_reads(device):
    reads = make_reads(["ACGTTGCA", "ACGTTGCA", "TGCAACGT", "ACGTTGCACC"])
    seeds = make_seeds([0, 0, 0, 0], [1, 2, 1, 3], [1, -1, 1, 1], [0, 4, 4, 0], [0, 0, 4, 0], 4)
    for longest in (False, True):
        got = extend_seeds(reads, seeds, (Scoring(1, -1, -1, 3),), longest=longest, device=device)
        assert_array_equal(got.query_start, 0)
        assert_array_equal(got.query_end, 8)
        assert_array_equal(got.target_start, 0)
        assert_array_equal(got.target_end[:3], 8)
        assert_array_equal(got.score[:3], 8)


def test_seed_that_is_the_whole_read(device):
    seeds = make_seeds([0], [1], [1], [0], [1], 4)
    got = extend_seeds(make_reads(["ACGT", "CACGTC"]), seeds, (Scoring(3, -1, -1, 3),), device=device)
    assert [int(getattr(got, name)[0]) for name in Extensions.__dataclass_fields__] == [12, 0, 4, 1, 5, 0, 0, 0, 0]


def test_no_seeds(device):
    got = extend_seeds(make_reads(["ACGT", "CACGTC"]), make_seeds(*[[]] * 5, 17), (Scoring(),), device=device)
    assert len(got) == 0


def test_flanks_come_back_where_they_belong():
    """make_flanks and join_flanks on a case that can be checked by eye."""
    reads = make_reads(["AACCCCGTT", "TTACGGGGTTT"])  # CCCC at 2 of the first; its complement GGGG at 4 of the second
    seeds = make_seeds([0], [1], [-1], [2], [4], 4)
    flanks = make_flanks(reads, seeds.anchors)
    assert isinstance(flanks, Flanks)
    bases = []
    for i in range(2):
        query = reads.both_ways[flanks.query_at[i] : flanks.query_at[i] + flanks.query_length[i]]
        target = reads.both_ways[flanks.target_at[i] : flanks.target_at[i] + flanks.target_length[i]]
        bases.append(("".join("ACGT"[c] for c in query), "".join("ACGT"[c ^ 3] for c in target)))
        assert flanks.complement[i] == 1
    assert bases == [("AA", "AAA"), ("GTT", "GTAA")]  # left: away from the seed
    got = join_flanks(seeds.anchors, Ends(np.array([[2, 2, 1], [-1, 3, 4]])), np.array([[1, 0], [3, 4]]), 5)
    assert [int(getattr(got, name)[0]) for name in Extensions.__dataclass_fields__] == [21, 0, 9, 0, 9, 1, 0, 3, 4]


# ---------------------------------------------------------------- speed


COMPILE_AND_SHOW = """
import numpy as np
from bellapy.engines.lanes.shape import BYTE
from bellapy.engines.linear.extend_lanes import extend_lanes
from bellapy.engines.linear.lanes import _step
from bellapy.engines.linear.sizes import shapes
from bellapy.engines.linear.trace_lanes import trace_lanes
from bellapy.params import Scoring

def frozen(array):
    array.flags.writeable = False
    return array

codes, scoring = frozen(np.zeros(2000, np.uint8)), Scoring()
shape, flanks = shapes(scoring, BYTE)[0], np.zeros((0, 5), np.int64)
"""
KERNELS = {
    "extension": "extend_lanes(codes, flanks, shape, scoring, False)",
    "paths": """
ends, runs = np.zeros((0, 2), np.int64), np.zeros(0, np.uint32)
trace_lanes(codes, flanks, ends, shape, scoring, False, BYTE, runs, np.zeros(0, np.int64))
""",
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_loop_over_lanes_is_vector_code(tmp_path, kernel):
    """One anti-diagonal of all lanes runs on whole vectors of bytes, for processors with AVX2 and no more.

    Otherwise the kernel would be right, and thirty times slower.  It is compiled anew, by another process: numba cannot
    show code from its cache.
    """
    if numba.config.DISABLE_JIT:
        pytest.skip("compilation is switched off (NUMBA_DISABLE_JIT)")
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip(f"knows only the vector instructions of x86-64, not of {platform.machine()}")
    if not llvmlite.binding.get_host_cpu_features().get("avx2"):
        pytest.skip("this processor has no AVX2")
    env = {"PYTHONPATH": IMPORTS, "NUMBA_CACHE_DIR": str(tmp_path)}
    env |= {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2"}
    code = COMPILE_AND_SHOW + KERNELS[kernel] + "\nprint(*_step.inspect_asm().values())"
    run = subprocess.run([sys.executable, "-c", code], env=os.environ | env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert len(re.findall(r"\bvpmaxsb\b.*%[yz]mm", run.stdout)) >= 3, "the maxima of a cell are not taken on vectors"
    assert not re.findall(r"\bvpmaxsb\b.*%xmm", run.stdout)


def test_batches_side_by_side_change_nothing(rng, monkeypatch):
    """What a GPU is given in several batches at a time; here the CPU stands in for it."""
    sequences = [random_bases(rng, 60) for _ in range(9)]
    reads, n = make_reads(sequences), 40
    query = rng.integers(0, 8, n)
    seeds = make_seeds(query, query + 1, rng.choice([1, -1], n), rng.integers(0, 50, n), rng.integers(0, 50, n), 3)
    steps = (Scoring(1, -1, -1, 5), Scoring(1, -1, -1, 9))
    expected = xdrop.extend_anchors(reads, seeds.anchors, steps)
    monkeypatch.setitem(xdrop.BACKENDS, "cuda", xdrop.BACKENDS["cpu"])
    monkeypatch.setattr(xdrop, "GPU_BATCH_SEEDS", 7)
    told: list[int] = []
    for threads, n_gpus in (1, 1), (2, 1), (8, 1), (8, 2):
        monkeypatch.setattr(xdrop, "known_gpus", lambda n_gpus=n_gpus: range(n_gpus))
        found = xdrop.extend_anchors(
            reads, seeds.anchors, steps, resources=Resources(threads, "cuda", progress=told.append)
        )  # fmt: skip
        for f in fields(found):
            np.testing.assert_array_equal(getattr(found, f.name), getattr(expected, f.name))
    assert told == [40, *2 * [7, 14, 21, 28, 35, 40], 14, 28, 40]
