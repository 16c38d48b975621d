"""Which candidates are taken for chance or repeats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import change_seeds, make_seeds

from bellapy.compute.ranks import weighted_median
from bellapy.jobs.overlap.candidates import (
    MIN_SURE,
    SURE_SUPPORT,
    WINDOW_BINS,
    Typical,
    count_support,
    learn_support,
    learn_typical,
    lowest_depth,
    sure_values,
    usual_reference,
)
from bellapy.jobs.overlap.gate import copies, count_dropped, count_partners, dense_enough, indistinct, mark_seeds
from bellapy.jobs.overlap.seeds import MAX_MEMBERS
from bellapy.records import DepthProfile

WIDTH = 10


def make_profile(offsets, n_kmers, copies, reference=None, repeats=None) -> DepthProfile:
    n = len(offsets) - 1
    reference = np.zeros(n, np.float32) if reference is None else np.array(reference, np.float32)
    repeats = np.zeros(n, np.uint8) if repeats is None else np.array(repeats, np.uint8)
    return DepthProfile(WIDTH, np.asarray(offsets), n_kmers, copies, reference, repeats)


def random_profile(rng: np.random.Generator, lengths: list[int]) -> DepthProfile:
    offsets = np.concatenate(([0], np.cumsum([length // WIDTH + 1 for length in lengths])))
    n_kmers = rng.choice([0, 0, 1, 3, 9], offsets[-1]).astype(np.uint32)
    return make_profile(offsets, n_kmers, n_kmers * rng.integers(2, 40, offsets[-1]).astype(np.uint32))


def least_mean(profile: DepthProfile, read: int, first: int, last: int) -> float:
    """The lowest mean count of the k-mers in WINDOW_BINS neighbouring bins, or in all if there are fewer."""
    bins = list(range(profile.offsets[read] + first // WIDTH, profile.offsets[read] + last // WIDTH + 1))
    windows = [bins[i : i + WINDOW_BINS] for i in range(max(1, len(bins) - WINDOW_BINS + 1))]
    totals = [(int(profile.n_kmers[w].sum()), int(profile.copies[w].sum())) for w in windows]
    return min((total / n for n, total in totals if n), default=np.inf)


def test_lowest_depth(rng):
    lengths = [60, 200, 500, 9]
    profile = random_profile(rng, lengths)
    rows = []
    for _ in range(300):
        query, target = sorted(rng.choice(4, 2, replace=False).tolist())
        ends = [np.sort(rng.integers(0, lengths[read], 2)).tolist() for read in (query, target)]
        rows.append((query, target, *ends[0], *ends[1]))
    query, target, query_first, query_last, target_first, target_last = zip(*rows, strict=True)
    seeds = change_seeds(
        make_seeds(query, target, [1] * 300, [0] * 300, [0] * 300, 5),
        query_first=query_first, query_last=query_last, target_first=target_first, target_last=target_last,
    )  # fmt: skip
    expected = [min(least_mean(profile, q, qf, ql), least_mean(profile, t, tf, tl)) for q, t, qf, ql, tf, tl in rows]
    np.testing.assert_allclose(lowest_depth(seeds, profile, 1.0), expected)


def test_a_unique_stretch_saves_a_candidate():
    n_kmers, depths = np.full(40, 5, np.uint32), np.full(40, 30, np.uint32)
    depths[10 : 10 + WINDOW_BINS] = 6
    profile = make_profile(np.array([0, 20, 40]), n_kmers, n_kmers * depths)
    seeds = make_seeds([0], [1], [1], [0], [0], 5)
    seeds = change_seeds(seeds, query_first=[0], query_last=[199], target_first=[0], target_last=[199])
    assert lowest_depth(seeds, profile, 1.0)[0] == 6
    assert lowest_depth(change_seeds(seeds, query_last=[109]), profile, 1.0)[0] > 6
    assert lowest_depth(change_seeds(seeds, query_first=[100], query_last=[109], target_first=[20]), profile, 1.0)[0] == 6


def sure_seeds(n: int):
    seeds = make_seeds([0] * n, [1] * n, [1] * n, [0] * n, [0] * n, 5)
    return change_seeds(seeds, n_support=np.arange(n) % 30 + SURE_SUPPORT, implied_length=np.arange(n) * 7 % 900 + 500)


def lower_median(values, weights) -> float:
    """The middle of a list that holds every value as often as its weight says."""
    every = sorted(value for value, weight in zip(values, weights, strict=True) for _ in range(int(weight)))
    return every[(len(every) - 1) // 2]


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 6)), min_size=1, max_size=30))
def test_weighted_median(pairs):
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    assert weighted_median(values, weights) == lower_median(values, weights)


def sure(parts, depths, own=()):
    """Of reads of which some, given by their ids, have a level of their own."""
    n_reads = 1 + max(int(max(seeds.query_id.max(), seeds.target_id.max())) for seeds in parts)
    return sure_values(parts, depths, np.isin(np.arange(n_reads), own))


def test_reads_with_a_level_of_their_own_are_typical_of_nothing_else():
    """A deep molecule has most of the candidates."""
    n, few = 1000, MIN_SURE
    seeds = change_seeds(make_seeds([0] * n, [1] * few + [2] * (n - few), [1] * n, [0] * n, [0] * n, 5), n_support=[9] * n)
    seeds, depth = change_seeds(seeds, implied_length=[900] * few + [90] * (n - few)), np.where(np.arange(n) < few, 1.0, 0.5)
    assert learn_typical(*sure([seeds], [depth])) == Typical(0.1, 0.5)
    assert learn_typical(*sure([seeds], [depth], [2])) == Typical(0.01, 1.0)
    assert learn_typical(*sure([seeds], [depth], [1, 2])) == Typical(0.1, 0.5), "there is nothing else"


@pytest.mark.parametrize(
    ("counts", "least"),
    [
        ((0, 0, 0, 0, 0, 0), 0),
        ((0, 0, 1000, 900, 800, 400), 0),  # noisy reads: they fade slowly
        ((0, 0, 1000, 100, 80, 501), 0),  # fewer than twice the sure ones
        ((0, 0, 1000, 100, 80, 499), 3),
        ((0, 0, 1000, 125, 80, 499), 0),
        ((0, 0, 90_000, 9_000, 900, 400), 4),
        ((0, 8_000, 900, 90, 40, 400), 3),
        ((0, 0, 40, 0, 0, 0), 0),  # few say nothing
    ],
)
def test_support_that_chance_seldom_gives(counts, least):
    assert learn_support(np.array(counts)) == least


def test_candidates_with_the_support_of_chance_are_not_dense():
    seeds = sure_seeds(20)
    few = replace(seeds, n_support=np.arange(20, dtype=np.int32) % 5)
    assert (dense_enough(few, Typical(0.0, 0.0, 3), 0.05) == (few.n_support >= 3)).all()
    assert count_support(replace(few, rank=np.arange(20, dtype=np.int8) % 2)).tolist() == [2, 2, 2, 2, 2, 0]


def test_typical_is_the_median_of_the_sure():
    seeds, depth = sure_seeds(200), np.arange(200) % 17 + 1.0
    density = seeds.n_support / seeds.implied_length
    found = learn_typical(*sure([seeds], [depth]))
    assert found == Typical(lower_median(density, seeds.n_support), lower_median(depth, seeds.n_support))
    bad = np.arange(200) % 2 == 0
    for column, value in (("rank", 1), ("n_support", SURE_SUPPORT - 1)):
        spoilt = change_seeds(seeds, **{column: np.where(bad, value, getattr(seeds, column))})
        weights = seeds.n_support[~bad]
        expected = Typical(lower_median(density[~bad], weights), lower_median(depth[~bad], weights))
        assert learn_typical(*sure([spoilt], [np.where(bad, 1000, depth)])) == expected


def test_chance_does_not_hide_what_is_typical():
    """A few sound candidates of long reads among many that agree by chance."""
    n, sound = 2000, 200
    seeds = make_seeds([0] * n, [1] * n, [1] * n, [0] * n, [0] * n, 5)
    seeds = change_seeds(
        seeds, n_support=np.where(np.arange(n) < sound, 150, SURE_SUPPORT + 1), implied_length=np.full(n, 50_000)
    )
    typical = learn_typical(*sure([seeds], [np.where(np.arange(n) < sound, 4.0, 2.0)]))
    assert typical == Typical(150 / 50_000, 4.0)
    assert dense_enough(seeds, typical, 0.05).tolist() == [True] * sound + [False] * (n - sound)


def test_too_few_are_not_typical():
    assert learn_typical(*sure([sure_seeds(MIN_SURE - 1)], [np.ones(MIN_SURE - 1)])) == Typical(0.0, 0.0)
    assert learn_typical(*sure([sure_seeds(MIN_SURE)], [np.ones(MIN_SURE)])).depth == 1
    seeds = sure_seeds(20)
    assert dense_enough(seeds, Typical(0.0, 0.0), 1.0).all()
    assert (copies(np.full(20, np.inf), Typical(0.0, 0.0)) == 1).all()


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 1])
def test_dense_enough(share):
    seeds, typical = sure_seeds(300), Typical(0.02, 8.0)
    expected = [
        int(support) >= share * min(typical.density * int(length), MAX_MEMBERS / 2)
        for support, length in zip(seeds.n_support, seeds.implied_length, strict=True)
    ]
    assert dense_enough(seeds, typical, share).tolist() == expected
    assert len(set(expected)) == (1 if share == 0 else 2) or share == 0.1


def test_candidates_with_all_the_members_looked_at_are_dense_enough():
    seeds = change_seeds(sure_seeds(1), n_support=[MAX_MEMBERS // 2], implied_length=[10**6])
    assert dense_enough(seeds, Typical(0.05, 8.0), 1.0).all()


def test_copies():
    assert copies(np.array([4.0, 8.0, 20.0]), Typical(0.1, 8.0)).tolist() == [0.5, 1, 2.5]
    assert len(copies(np.zeros(0), replace(Typical(0.1, 8.0), density=0.2))) == 0


def repeats_of(n_ordinary: int, n_apart: int, kinds=(1, 1)):
    """Reads 0 and 1 inside a repeat, others outside; seeds of ordinary pairs, and of the two with many others."""
    n = n_ordinary + n_apart
    query, target = [2] * n_ordinary + [0] * n_apart, [3] * n_ordinary + [1] * n_apart
    seeds = make_seeds(query, target, [1] * n, [0] * n, [0] * n, 5)
    seeds = change_seeds(
        seeds, n_support=[20] * n_ordinary + [SURE_SUPPORT] * n_apart, implied_length=[1000] * n,
        copies=np.repeat([1, 50], [n_ordinary, n_apart]).astype(np.float32),
    )  # fmt: skip
    profile = make_profile([0, 1, 2, 3, 4], np.ones(4, np.uint32), np.ones(4, np.uint32), repeats=[*kinds, 0, 0])
    return seeds, profile


@pytest.mark.parametrize(
    ("n_apart", "kinds", "kept"), [(35, (1, 1), True), (45, (1, 1), False), (45, (2, 2), True), (35, (1, 0), False)]
)
def test_copies_of_a_repeat_that_can_be_told_apart(n_apart, kinds, kept):
    seeds, profile = repeats_of(10, n_apart, kinds)

    def sound(seeds):
        marks = mark_seeds(seeds, 8.0 * seeds.copies, Typical(0.02, 8.0), profile.repeats, 0.0, 2.5)
        partners = (count_partners([seeds], [rows], 4) for rows in (marks.dense & marks.few, marks.apart))
        return marks.sound(seeds, indistinct(*partners, profile))

    mask = sound(seeds)
    assert mask.tolist() == [True] * 10 + [kept] * n_apart
    weak = change_seeds(seeds, n_support=np.where(seeds.copies > 1, SURE_SUPPORT - 1, 20))
    assert not sound(weak)[10:].any()


def test_depth_in_units_of_what_is_usual_for_the_reads():
    profile = make_profile([0, 1, 2, 3], np.full(3, 5, np.uint32), np.full(3, 100, np.uint32), reference=[20, 4, 20])
    seeds = make_seeds([0, 0], [2, 1], [1, 1], [0, 0], [0, 0], 5)
    assert lowest_depth(seeds, profile, 1.0).tolist() == [1, 5]
    nobody_knows = make_profile([0, 1, 2, 3], np.full(3, 5, np.uint32), np.full(3, 100, np.uint32), reference=[0, 4, 0])
    assert lowest_depth(seeds, nobody_knows, 2.0).tolist() == [10, 5], "what is usual for most; what the other read tells"
    assert usual_reference(nobody_knows.reference) == 4 and usual_reference(np.zeros(3, np.float32)) == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_partners_of_parts(rng, threads):
    parts = [make_seeds(*rng.integers(0, 9, (2, n)), np.ones(n), np.zeros(n), np.zeros(n), 5) for n in (0, 40, 7, 1, 30)]
    parts = [change_seeds(part, rank=rng.integers(0, 2, len(part))) for part in parts]
    masks = [rng.random(len(part)) < 0.7 for part in parts]
    expected = [0] * 9
    for part, mask in zip(parts, masks, strict=True):
        for i in np.flatnonzero(mask & (part.rank == 0)):
            expected[part.query_id[i]] += 1
            expected[part.target_id[i]] += 1
    assert count_partners(parts, masks, 9, threads).tolist() == expected


def test_candidates_of_which_nothing_is_left(rng):
    pairs = np.sort(rng.integers(0, 3, (3, 200)), axis=1)
    dense = rng.random(200) < 0.3
    kept = dense & (rng.random(200) < 0.5)
    of_pair: dict = {}
    for i, pair in enumerate(zip(*pairs.tolist(), strict=True)):
        of_pair.setdefault(pair, []).append((dense[i], kept[i]))
    sparse = sum(not any(x for x, _ in rows) for rows in of_pair.values())
    lost = sum(any(x for x, _ in rows) and not any(x for _, x in rows) for rows in of_pair.values())
    assert count_dropped(*pairs, dense, kept) == (sparse, lost)
    assert count_dropped(*pairs[:, :0], dense[:0], kept[:0]) == (0, 0)
