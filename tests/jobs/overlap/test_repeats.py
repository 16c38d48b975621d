"""Depth along the reads: repeats and deep molecules, against plain counterparts and on small made sets."""

from __future__ import annotations

import itertools
from dataclasses import replace

import naive
import numpy as np
import pytest
from cases import Sample as Reads
from cases import accuracy, noisy_copy, parse_paf, run
from hypothesis import given
from hypothesis import strategies as st
from strategies import column_bounds, make_reads, random_bases

from bellapy.jobs.overlap import depth_steps, linking, repeats
from bellapy.jobs.overlap.depth_steps import STEP, UNIT, WINDOW_BINS, Bins, find_steps, mark_high
from bellapy.jobs.overlap.linking import APART_KIND, DEEP, ORDINARY, REPEAT
from bellapy.records.kmers import FIRST, DepthProfile
from bellapy.seeding.kmer_matrix import PROFILE_WIDTH, build_kmer_matrix, profile_depth, read_ranges
from bellapy.seeding.kmers import count_kmers

K = 13


def counted(sequences, upper):
    reads = make_reads(sequences)
    counts = count_kmers(reads.codes, K, 2, 1 << 30)
    matrix = build_kmer_matrix(replace(counts, entries=counts.entries[:]), reads, K, upper)
    return counts, matrix, profile_depth(matrix, reads)


def columns(sequences):
    """Places of every k-mer that occurs more than once: (read, bin, way round)."""
    every = naive.matrix_entries(sequences, K, 2, 1 << 30).values()
    return [[(read, position // PROFILE_WIDTH, way) for read, position, way in places] for places in every]


def sample_of(molecules: list[tuple[str, float]], error: float, mean: int = 3000) -> Reads:
    """Reads of several molecules, each with its own depth; places count on behind the molecules before."""
    rng = np.random.default_rng(len(molecules))
    parts, before = ([], [], [], [], []), 0
    for text, fold in molecules:
        for _ in range(int(fold * len(text) / mean)):
            length = min(len(text), int(rng.integers(mean // 2, 3 * mean // 2)))
            start = int(rng.integers(0, len(text) - length + 1))
            copy, place = noisy_copy(rng, text[start : start + length], error)
            strand = int(rng.choice([1, -1]))
            rows = (
                copy if strand > 0 else naive.reverse_complement(copy), before + start, before + start + length, strand,
                place if strand > 0 else len(copy) - place,
            )  # fmt: skip
            for part, value in zip(parts, rows, strict=True):
                part.append(value)
        before += len(text) + 10_000
    return Reads(parts[0], np.array(parts[1]), np.array(parts[2]), np.array(parts[3]), parts[4])


@given(st.lists(st.integers(1, 80), min_size=0, max_size=30), st.integers(0, 40))
def test_steps(levels, n):
    n_kmers = np.full(len(levels), n, np.uint32)
    offsets, low = np.array([0, len(levels)]), np.empty(1)
    copies = np.array(levels, np.uint32) * n_kmers
    find_steps(offsets, n_kmers, copies, WINDOW_BINS, STEP, 8, 0, len(low), low)
    beside = []
    for b in range(WINDOW_BINS, len(levels) - WINDOW_BINS + 1):
        left, right = np.mean(levels[b - WINDOW_BINS : b]), np.mean(levels[b : b + WINDOW_BINS])
        if n * WINDOW_BINS >= 8 and max(left, right) > STEP * min(left, right):
            beside.append(min(left, right))
    assert low[0] == pytest.approx(min(beside, default=np.inf))
    repeat = np.zeros(len(levels), np.uint8)
    mark_high(offsets, n_kmers, copies, low, STEP, 0, len(low), repeat)
    assert repeat.tolist() == [int(n > 0 and np.isfinite(low[0]) and level > STEP * low[0]) for level in levels]


@pytest.mark.parametrize("n_mixed, needed", [(5, 0.28), (20, 0.52), (32, 0.66), (50, 0.66)])
def test_where_steps_are_many_more_reads_have_to_show_one(monkeypatch, n_mixed, needed):
    """Of 100 reads of 20 bins some have five high ones in the middle; two bins on each side of these are beside a step."""
    levels = np.full((100, 20), 10)
    levels[:n_mixed, 8:13] = 100
    copies, one = levels.ravel().astype(np.uint32) * 10, np.zeros(100)
    offsets, n_kmers = 20 * np.arange(101), np.full(2000, 10, np.uint32)
    profile = DepthProfile(PROFILE_WIDTH, offsets, n_kmers, copies, one.astype(np.float32), one.astype(np.uint8))
    bins = Bins(np.arange(101), np.zeros(1), offsets, PROFILE_WIDTH)
    for share, is_kept in ((needed - 0.01, False), (needed + 0.01, True)):
        shares = np.array([[int(share * UNIT)], [1]]) * np.ones(n_mixed, np.int64)
        monkeypatch.setattr(depth_steps, "add_up_company", lambda *_, shares=shares: shares)
        repeat, mixed, many = depth_steps.find_repeats([], bins, profile, 1)
        assert repeat.reshape(100, 20)[:, 8:13].all(axis=1).sum() == (n_mixed if is_kept else 0)
        assert mixed == (n_mixed / 100 if is_kept else 0) and many == (n_mixed > 30)


def numbered(offsets, high, reach):
    """What `number_runs` and `count_runs` fill."""
    n_reads = len(offsets) - 1
    n_runs, runs = np.empty(n_reads, np.int64), np.empty(len(high), np.int32)
    depth_steps.count_runs(offsets, high, 0, n_reads, n_runs)
    firsts = np.concatenate(([0], np.cumsum(n_runs)))
    depth_steps.number_runs(offsets, high, firsts, reach, 0, n_reads, runs)
    return runs, n_runs


@given(st.lists(st.lists(st.integers(0, 1), max_size=20), max_size=5), st.integers(1, 4))
def test_runs(marks, reach):
    """A bin is beside the last run before it, if that is near enough, or else beside the first one behind it."""
    offsets = np.concatenate(([0], np.cumsum([len(its) for its in marks]))).astype(np.int64)
    high = np.array([mark for its in marks for mark in its], np.uint8)
    runs, n_runs = numbered(offsets, high, reach)
    number, expected = 0, []
    for its in marks:
        found = [[b for b, _ in group] for high, group in itertools.groupby(enumerate(its), lambda pair: pair[1]) if high]
        for b in range(len(its)):
            within = [-number - r for r, run in enumerate(found, 1) if b in run]
            before = [2 * (number + r) for r, run in enumerate(found, 1) if 0 < b - run[-1] <= reach]
            behind = [2 * (number + r) + 1 for r, run in enumerate(found, 1) if 0 < run[0] - b <= reach]
            expected.append([*within, *before[-1:], *behind, 0][0])
        number += len(found)
    assert runs.tolist() == expected and n_runs.sum() == number
    repeat = (np.arange(len(runs)) % 3 > 0).astype(np.uint8)
    depth_steps.keep_believed(runs, np.arange(number) % 2 == 0, 0, len(runs), repeat)
    assert repeat.tolist() == [int(b % 3 > 0 and run < 0 and -run % 2 == 1) for b, run in enumerate(expected)]


@pytest.mark.parametrize(("threads", "doubted", "n_reads", "again"), [(1, 0, 12, 0.02), (3, 2, 40, 0.1), (2, 2, 40, 2.0)])
def test_company_and_votes(rng, threads, doubted, n_reads, again):
    shared = random_bases(rng, 2900)
    sequences = [random_bases(rng, 700) + shared[int(rng.integers(0, 300)) :] + shared[:200] for _ in range(n_reads)]
    sequences += [naive.reverse_complement(sequences[0]), ""]
    _, matrix, profile = counted(sequences, 5)
    bins = Bins(matrix.starts, matrix.read_table, profile.offsets, profile.width)
    repeat = (rng.random(len(profile.n_kmers)) < 0.4).astype(np.uint8)
    runs, n_runs = numbered(profile.offsets, repeat, 1)
    company = depth_steps.add_up_company([matrix], threads, bins, runs, n_runs)
    voting = repeats.Voting(doubted, int(again * UNIT), 3)
    votes = repeats.count_votes([matrix], bins, 5, repeat, voting, threads)
    its_company, its_votes, kinds = np.zeros_like(company), np.zeros(votes.shape, np.int64), set()
    for places in columns(sequences):
        at = [profile.offsets[read] + b for read, b, _ in places]
        sizes = np.diff(profile.offsets)
        whole = [WINDOW_BINS <= b < sizes[read] - WINDOW_BINS for read, b, _ in places]
        sides = [(runs[i] + (way < 0)) % 2 if runs[i] > 0 else None for i, (_, _, way) in zip(at, places, strict=True)]
        for x, i in enumerate(at):
            others = [y for y in range(len(at)) if y != x and whole[y]]
            if runs[i] > 0 and others:
                n_alike = sum(runs[at[y]] < 0 or sides[y] == sides[x] for y in others)
                its_company[:, runs[i] // 2 - 1] += np.array([UNIT * n_alike // len(others), 1], np.uint32)
        if len(places) > 5:
            firsts = {read: i for (read, *_), i in reversed(list(zip(places, at, strict=True)))}
            n, n_again = sum(bool(repeat[i]) for i in firsts.values()), len(places) - len(firsts)
            comes_round = n_again >= 3 and UNIT * n_again >= voting.again * len(places)
            sure = comes_round and UNIT * n_again >= 2 * voting.again * len(places)
            kinds.add((comes_round, sure))
            if sure:
                share = UNIT
            elif comes_round:
                share = min(UNIT, 3 * UNIT * n // len(places))
            else:
                share = UNIT * max(0, n - min(doubted, len(places) // repeats.ONE_IN)) // len(places)
            for i in at:
                its_votes[:, i] += share, 1
    np.testing.assert_array_equal(company, its_company)
    np.testing.assert_array_equal(votes, its_votes)
    assert votes[0].any() and company[0].any() and len(kinds) == (1 if again > 1 else 3 if again == 0.1 else 2), kinds


@given(st.lists(st.integers(2, 9), max_size=30), st.integers(2, 9))
def test_columns_that_link_reads(sizes, upper):
    """Where the user gives the bound, columns up to it link reads, and no others."""
    its = np.array(sizes, np.int64)
    begins = np.cumsum(its) - its
    entries = 4 * np.arange(sum(sizes), dtype=np.uint32)
    entries[begins] += FIRST
    bins = Bins(np.array([0, 1 << 20]), np.zeros(1 << 10, np.int32), np.array([0, 1 << 12]), PROFILE_WIDTH)
    tests = linking.Tests(bins, upper, 0, np.zeros(1 << 12, bool), np.zeros(1 << 12, np.float32), 8, 0)
    for edges in ((0, len(entries)), (0, len(entries) // 2, len(entries))):
        kinds, products = np.zeros((2, linking.N_KINDS), np.int64)
        for part in itertools.pairwise(edges):
            assert linking.survey_columns(entries, *part, tests, kinds, products) == 0
        for kind, some in ((ORDINARY, [n for n in sizes if n <= upper]), (REPEAT, [n for n in sizes if n > upper])):
            assert (kinds[kind], products[kind]) == (len(some), sum(n * (n - 1) // 2 for n in some))
    kept, left = np.zeros((2, linking.N_KINDS), np.int64), np.repeat(its <= upper, its)
    wanted = entries[left].tolist()
    n = linking.keep_linking(entries, tests, np.ones(linking.N_KINDS, np.int64), kept, np.zeros(1, np.int64))
    assert entries[:n].tolist() == wanted
    assert kept[1].tolist() == kinds.tolist() and kept[0, ORDINARY] == kinds[ORDINARY] == kept[0].sum()


@given(st.lists(st.integers(1, 70), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_bins_are_judged_by_their_votes_or_by_those_around_them(sizes, random):
    offsets, voted = np.concatenate(([0], np.cumsum(sizes))), 300
    n = int(offsets[-1])
    votes = np.array([[random.choice([0, 0, 0, 900]) for _ in range(n)], [random.randrange(4) for _ in range(n)]], np.uint32)
    repeat = np.array([random.random() < 0.1 for _ in range(n)], np.uint8)
    is_repeat, deep = np.empty((2, n), bool)
    repeats.judge_bins(offsets, votes, 1.2, voted, repeat, 0, len(offsets) - 1, is_repeat, deep)
    for first, last in zip(offsets[:-1], offsets[1:], strict=True):
        are_deep, are_repeats = [], []
        for b in range(first, last):
            around = votes[:, max(first, b - WINDOW_BINS // 2) : min(last, b + (WINDOW_BINS + 1) // 2)].astype(int)
            are_deep.append(int(around[1].sum()) > 1.2 * around.shape[1])
            share, n_high = votes[:, b].astype(int) if votes[1, b] else around.sum(1)
            are_repeats.append(repeat[b] > 0 or (are_deep[-1] and share > voted * n_high))
        both = [its and own for its, own in zip(are_deep, are_repeats, strict=True)]
        as_a_whole = sum(both) > repeats.WHOLE * sum(are_deep)
        expected = [its or (own and as_a_whole) for its, own in zip(are_repeats, are_deep, strict=True)]
        assert is_repeat[first:last].tolist() == expected
        assert deep[first:last].tolist() == [own and not its for own, its in zip(are_deep, expected, strict=True)]


def test_ranges_of_reads(rng):
    starts = np.concatenate(([16], 16 + np.cumsum(rng.integers(1, 900, 50))))
    for parts in (1, 2, 7, 60):
        edges = read_ranges(starts, parts)
        assert len(edges) <= parts and edges[0][0] == 0 and edges[-1][1] == starts[-1]
        assert all(a[1] == b[0] and b[0] in starts for a, b in itertools.pairwise(edges))


def linked(sequences, upper, **options):
    counts, matrix, profile = counted(sequences, upper)
    rules = linking.learn_rules([matrix], profile, 0.9**K, 1.0, **options)
    kept = linking.keep_columns(counts.entries, rules)
    profile, links = linking.link_profile(profile, rules, [kept])
    return counts.entries[: kept.n_entries], profile, links


@pytest.mark.parametrize("n_parts", [2, 5])
def test_a_matrix_in_parts(rng, n_parts):
    """Rules are learnt from all parts, and every part keeps what it would keep of the whole."""
    element = random_bases(rng, 1500)
    text = "".join(random_bases(rng, 2500) + element for _ in range(12)) + random_bases(rng, 20_000)
    sequences = sample_of([(text, 8), (random_bases(rng, 5000), 90)], 0.05).sequences
    expected, profile, links = linked(sequences, 12)
    counts, matrix, plain = counted(sequences, 12)
    edges = column_bounds(matrix)[np.linspace(0, matrix.n_kmers, n_parts + 1).astype(int)]
    pieces = [counts.entries[a:b].copy() for a, b in zip(edges[:-1], edges[1:], strict=True)]
    parts = [replace(matrix, entries=piece[:]) for piece in pieces]
    rules = linking.learn_rules(parts, plain, 0.9**K, 1.0)
    kept = [linking.keep_columns(piece, rules, part) for part, piece in enumerate(pieces)]
    joined = [piece[: its.n_entries] for piece, its in zip(pieces, kept, strict=True)]
    np.testing.assert_array_equal(np.concatenate(joined), expected)
    got, its_links = linking.link_profile(plain, rules, kept)
    assert its_links == links and links.kept[DEEP] > 0 and links.found[REPEAT] > 0 and links.one_in[DEEP] > 1
    for name in ("reference", "repeats"):
        np.testing.assert_array_equal(getattr(got, name), getattr(profile, name))


def test_what_is_kept_is_whole_columns(rng):
    text = random_bases(rng, 4000)
    sequences = sample_of([(text, 60), (random_bases(rng, 30_000), 8)], 0.05).sequences
    counts, matrix, _ = counted(sequences, 12)
    before = {tuple(column) for column in np.split(counts.entries.copy(), column_bounds(matrix)[1:-1])}
    entries, _, links = linked(sequences, 12)
    starts = np.flatnonzero(entries & 2)
    after = [tuple(column) for column in np.split(entries, starts[1:])]
    assert len(after) == len(set(after)) == sum(links.kept) and set(after) <= before
    assert {column for column in before if len(column) <= 12} <= set(after)
    assert links.found[ORDINARY] == links.kept[ORDINARY] and links.kept[DEEP] > 100 and sum(links.found) == len(before)
    assert linked(sequences, 12, strict=True)[2].kept == [links.kept[ORDINARY], 0, 0, 0]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_deep_molecule_is_no_repeat(rng, threads):
    deep, rest = random_bases(rng, 6000), random_bases(rng, 60_000)
    sample = sample_of([(deep, 100), (rest, 8)], 0.05)
    _, profile, links = linked(sample.sequences, 12, threads=threads)
    assert links.deep_share > 0.3 and links.repeat_share == 0 and not profile.repeats.any()
    level = profile.reference[np.asarray(sample.start) < len(deep)]
    assert np.median(level) > STEP * np.median(profile.reference[np.asarray(sample.start) > len(deep)])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_molecule_a_few_times_as_deep_has_a_level_of_its_own(rng, threads):
    deep, rest = random_bases(rng, 8000), random_bases(rng, 80_000)
    sample = sample_of([(deep, 56), (rest, 14)], 0.05)
    _, profile, _ = linked(sample.sequences, 22, threads=threads)
    inside, usual = np.asarray(sample.start) < len(deep), profile.reference.min()
    assert (profile.reference[~inside] == usual).mean() > 0.99
    assert (profile.reference[inside] > 2 * usual).mean() > 0.9


def test_it_has_one_though_many_of_its_reads_are_chimeras(rng):
    """Of its places one in five is in a read that is joined to one of anywhere else, and shows a step there."""
    deep, rest = random_bases(rng, 8000), random_bases(rng, 80_000)
    sample = sample_of([(deep, 42), (rest, 14)], 0.05)
    starts = rng.integers(0, len(deep) - 2500, 40), rng.integers(0, len(rest) - 2500, 40)
    chimeras = [deep[one : one + 2500] + rest[other : other + 2500] for one, other in zip(*starts, strict=True)]
    _, profile, _ = linked([*sample.sequences, *chimeras], 22)
    inside, usual = np.flatnonzero(np.asarray(sample.start) < len(deep)), profile.reference.min()
    assert (profile.reference[inside] > 2 * usual).mean() > 0.6


def test_a_repeat_of_four_long_copies_has_none(rng):
    """Most of its reads are from end to end in it, and as deep as those of a molecule with four copies."""
    element = random_bases(rng, 5000)
    text = "".join(random_bases(rng, 20_000) + element for _ in range(4)) + random_bases(rng, 20_000)
    _, profile, _ = linked(sample_of([(text, 14)], 0.05).sequences, 22)
    assert len(set(profile.reference[profile.reference > 0].tolist())) == 1


def test_a_transposon_is_a_repeat(rng):
    element = random_bases(rng, 2000)
    text = "".join(random_bases(rng, 2500) + element for _ in range(16)) + random_bases(rng, 60_000)
    _, profile, links = linked(sample_of([(text, 8)], 0.05, mean=4000).sequences, 12)
    assert links.repeat_share > 0.1 and links.deep_share == 0 and links.kept[DEEP] == 0 and links.found[REPEAT] > 500
    assert len(set(profile.reference[profile.reference > 0].tolist())) == 1 and profile.repeats.any()


def test_chimeras_make_no_repeats(rng):
    """One read with a step says nothing of the molecule."""
    deep, rest = random_bases(rng, 6000), random_bases(rng, 60_000)
    sequences = sample_of([(deep, 100), (rest, 8)], 0.05).sequences
    sequences += [deep[at : at + 2000] + rest[5000 * at // 500 :][:2000] for at in range(0, 3000, 500)]
    _, profile, links = linked(sequences, 12)
    assert links.repeat_share == 0 and links.deep_share > 0.3


def test_chimeras_whose_step_is_believed_make_no_repeats(rng):
    """Their other part has an insertion element, so that its reads show steps, too."""
    element, rest = random_bases(rng, 1300), random_bases(rng, 60_000)
    deep, text = random_bases(rng, 4000), "".join(rest[at : at + 5000] + element for at in range(0, 60_000, 5000))
    sequences = sample_of([(text, 14), (deep, 160)], 0.05, mean=4000).sequences
    at = text.index(element) - 1500
    sequences += [deep[1000:3000] + text[at : at + 4000], text[at : at + 4000] + deep[2000:]]
    _, profile, links = linked(sequences, 22)
    assert 2 * links.found[REPEAT] < links.found[DEEP] > 3900


def test_chimeras_with_a_repeat_elsewhere_make_no_repeats(rng):
    """Each stretch is judged by its own place: other reads show that of the insertion element, and none shows the joint."""
    element, rest = random_bases(rng, 1300), random_bases(rng, 60_000)
    deep, text = random_bases(rng, 4000), "".join(rest[at : at + 5000] + element for at in range(0, 60_000, 5000))
    sequences = sample_of([(text, 14), (deep, 160)], 0.05, mean=4000).sequences
    sequences += [deep[:3000] + text[6300 * i + 2500 :][:5000] for i in range(8)]
    _, profile, links = linked(sequences, 22)
    assert 2 * links.found[REPEAT] < links.found[DEEP] > 3900


def test_a_long_array_among_repeats_is_one(rng):
    """Its borders are two, and few of its reads show them, whereas half of all reads show a step."""
    element, rest, unit = random_bases(rng, 1300), random_bases(rng, 100_000), random_bases(rng, 170)
    array = "".join(noisy_copy(rng, unit, 0.05)[0] for _ in range(500))
    text = "".join(rest[at : at + 4000] + element + (array if at == 48_000 else "") for at in range(0, 100_000, 4000))
    _, profile, links = linked(sample_of([(text, 14)], 0.05, mean=4000).sequences, 22)
    assert 20 * links.found[DEEP] < links.found[REPEAT] > 1000


@pytest.mark.parametrize(
    "copies, apart, depth, mean, error, least",
    [(60, 4000, 12, 3000, 0.05, 3000), (500, 2500, 8, 2500, 0.05, 3000), (150, 4000, 4, 5000, 0.15, 2000)],
)
def test_an_array_of_copies_about_as_long_as_reads_is_one(copies, apart, depth, mean, error, least):
    """As the one before, but few k-mers come again in a read, and few of its reads cross its borders.

    In the last genome steps are as many, but hardly one is believed.
    """
    rng = np.random.default_rng(5)
    element, rest, unit = random_bases(rng, 1300), random_bases(rng, 100_000), random_bases(rng, 2000)
    array = "".join(noisy_copy(rng, unit, 0.015)[0] for _ in range(copies))
    parts = [rest[at : at + apart] + element for at in range(0, 100_000, apart)]
    text = "".join([*parts[:12], array, *parts[12:]])
    _, profile, links = linked(sample_of([(text, depth)], error, mean=mean).sequences, 20)
    assert 20 * links.found[DEEP] < links.found[REPEAT] > least


def test_an_array_that_few_reads_enter_is_one():
    """Depth is low and errors are many, so only a third to two thirds of the other reads show where it begins and ends."""
    rng = np.random.default_rng(6)
    rest, unit = random_bases(rng, 200_000), random_bases(rng, 2000)
    array = "".join(noisy_copy(rng, unit, 0.015)[0] for _ in range(100))
    sample = sample_of([(rest[:100_000] + array + rest[100_000:], 8)], 0.12, mean=3000)
    _, profile, links = linked(sample.sequences, 8)
    assert 20 * links.found[DEEP] < links.found[REPEAT] > 3000


def test_a_plasmid_may_have_reads_that_come_round_it():
    """As dimers do.  Some of its reads are joined to others by mistake, so near each other that one step is believed."""
    rng = np.random.default_rng(5)
    rest, plasmid = random_bases(rng, 100_000), random_bases(rng, 2000)
    sequences = sample_of([(rest, 12), (3 * plasmid, 150)], 0.05, mean=4000).sequences
    sequences += [(3 * plasmid)[400 * i % 2000 :][:3000] + rest[300 * i + 50_000 :][:3000] for i in range(7)]
    _, profile, links = linked(sequences, 20)
    assert links.found[DEEP] > 1900 and links.found[REPEAT] < 100


def test_a_row_of_many_equal_copies_is_a_repeat(rng):
    """As ribosomal genes: its borders are two, nothing else shows a step, and its reads are most of all."""
    unit, before, after = (random_bases(rng, n) for n in (500, 100_000, 100_000))
    _, profile, links = linked(sample_of([(before + 600 * unit + after, 14)], 0.05, mean=2000).sequences, 22)
    assert links.deep_share == 0 and links.found[DEEP] == 0 and links.repeat_share > 0.5 and profile.repeats.any()


def test_a_plasmid_may_be_a_third_insertion_element(rng):
    """The element is a repeat of the chromosome; what lies beside it in the plasmid links reads."""
    element, rest = random_bases(rng, 1300), random_bases(rng, 60_000)
    plasmid = random_bases(rng, 1400) + element + random_bases(rng, 1300)
    text = rest[:30_000] + element + rest[30_000:]
    _, profile, links = linked(sample_of([(text, 20), (plasmid, 200)], 0.03, mean=5000).sequences, 40)
    assert links.found[DEEP] > 2400 and links.found[REPEAT] > 1200


def test_kmers_that_set_copies_apart(rng):
    """Units of a tandem repeat that differ in a base each."""
    unit = random_bases(rng, 180)
    units = [unit[:at] + "ACGT"[("ACGT".index(unit[at]) + 1) % 4] + unit[at + 1 :] for at in rng.integers(0, 180, 300)]
    text = random_bases(rng, 30_000) + "".join(units) + random_bases(rng, 30_000)
    _, profile, links = linked(sample_of([(text, 20)], 0.02).sequences, 30)
    assert links.kept[APART_KIND] > 100 and (profile.repeats == 2).any()


def test_reads_of_one_base_change_nothing_of_others(rng):
    """A repeat has a run of A, so a k-mer that occurs hundreds of times as often as those around it."""
    repeat = random_bases(rng, 300) + "A" * 30 + random_bases(rng, 300)
    sequences = sample_of([("".join(random_bases(rng, 1000) + repeat for _ in range(30)), 20)], 0.02).sequences
    without, _, (_, _, _, kept, found, _) = linked(sequences, 40)
    beside, _, links = linked([*sequences, *["A" * 10_000] * 20], 40)
    assert links.kept == kept and links.found == found and len(beside) == len(without)


def test_thinning_leaves_what_overlaps_need():
    assert linking.choose_thinning(0, 0, 1.0) == 1
    assert linking.choose_thinning(1000, 1000, 1.0) == linking.LINK_SPACING
    assert linking.choose_thinning(10, 1000, 1.0) == 1
    assert linking.choose_thinning(500, 1000, 0.5) == linking.LINK_SPACING // 2


def test_nothing_to_judge():
    for sequences in ([], [""], ["ACGGTTCATGCCATAGGACT"]):
        entries, profile, links = linked(sequences, 8)
        assert links.deep_share == links.repeat_share == 0 and len(profile.repeats) == len(sequences)


# ---------------------------------------------------------------- the whole job


def job(sample: Reads, tmp_path) -> tuple[float, float, str]:
    (tmp_path / "reads.fa").write_text(sample.fasta())
    outcome = run("overlap", tmp_path / "reads.fa", "-t", 1, "--min-overlap", 500)
    assert outcome.code == 0, outcome.err
    return *accuracy(sample, parse_paf(outcome.out)), outcome.err


def test_metagenome(rng, tmp_path):
    sample = sample_of([(random_bases(rng, 4000), 100), (random_bases(rng, 80_000), 8)], 0.08)
    recall, precision, messages = job(sample, tmp_path)
    assert recall > 0.96 and precision > 0.99
    assert "uneven depth" in messages


def test_a_plasmid_of_four_copies(rng, tmp_path):
    sample = sample_of([(random_bases(rng, 8000), 64), (random_bases(rng, 100_000), 16)], 0.08)
    recall, precision, _ = job(sample, tmp_path)
    assert recall > 0.98 and precision > 0.99


def test_identical_reads_beyond_any_bound(rng, tmp_path):
    read = random_bases(rng, 1500)
    (tmp_path / "reads.fa").write_text("".join(f">r{i}\n{read}\n" for i in range(150)))
    outcome = run("overlap", tmp_path / "reads.fa", "-t", 1)
    assert len(parse_paf(outcome.out)) == 150 * 149 // 2, outcome.err


def test_a_prefix_that_all_reads_share(rng, tmp_path):
    prefix = random_bases(rng, 1200)
    sample = sample_of([(random_bases(rng, 30_000), 15)], 0.05)
    plain = job(sample, tmp_path)
    sequences = [noisy_copy(rng, prefix, 0.05)[0] + sequence for sequence in sample.sequences]
    (tmp_path / "reads.fa").write_text("".join(f">r{i}\n{s}\n" for i, s in enumerate(sequences)))
    lines = parse_paf(run("overlap", tmp_path / "reads.fa", "-t", 1, "--min-overlap", 500).out)
    recall, precision = accuracy(sample, lines)
    assert plain[0] > 0.99 and recall > 0.8 and precision > 0.95
