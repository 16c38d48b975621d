"""Seeds: real shared k-mers, on the diagonals that were planted, whatever the blocks and threads."""

from __future__ import annotations

from dataclasses import fields

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import make_reads, mutate, random_bases, read_sets, simulate_reads

from bellapy.compute.columns import join_rows
from bellapy.compute.jit import njit
from bellapy.jobs.overlap.candidates import SURE_SUPPORT, Typical, learn_typical, sure_values
from bellapy.jobs.overlap.gate import dense_enough
from bellapy.jobs.overlap.geometry import clear_of, implied_ends
from bellapy.jobs.overlap.products import make_key_layout, multiply, symbolic_product
from bellapy.jobs.overlap.seeds import MAX_MEMBERS, choose_seeds, implied_overlap
from bellapy.params import SeedParams
from bellapy.params.overlap import SHORTEST_OVERLAP
from bellapy.records import Seeds
from bellapy.seeding.kmer_matrix import build_kmer_matrix
from bellapy.seeding.kmers import count_kmers

LOOSE = SeedParams(min_support=1, min_overlap=0)
USUAL = SeedParams(min_overlap=SHORTEST_OVERLAP)


def seeds_of(sequences, k, upper=8, params=LOOSE, threads=1, seed_length=None, **options) -> tuple[Seeds, int, int]:
    """Seeds, number of candidates and of dropped ones; options as for `multiply`."""
    reads = make_reads(sequences)
    counts = count_kmers(reads.codes, k, 2, upper)
    matrix = build_kmer_matrix(counts, reads, k, upper, seed_length=seed_length)
    parts = [
        choose_seeds(products, matrix, reads, params, threads)
        for products in multiply(matrix, symbolic_product(matrix), threads=threads, **options)
    ]
    seeds = join_rows([Seeds.none(matrix.seed_length), *(seeds for part in parts for seeds in part[0])])
    return seeds, sum(part[1] for part in parts), sum(part[2] for part in parts)


def rows(seeds: Seeds, *names: str) -> list[tuple]:
    return list(zip(*(getattr(seeds, name).tolist() for name in names), strict=True))


def lies_apart(seeds: Seeds, i: int, j: int, sequences: list[str]) -> bool:
    """Whether the overlaps that two seeds of a candidate imply share at most the tenth of the shorter one, on both reads."""
    reads = make_reads(sequences)
    one, other = (implied_ends(reads, seeds.take(np.array([row]))) for row in (i, j))
    return bool(clear_of(one, other)[0])


def check(sequences, k, upper, params):
    """What must hold for the seeds of any reads."""
    seeds, n_candidates, n_dropped = seeds_of(sequences, k, upper, params)
    shared = naive.products(naive.matrix_entries(sequences, k, 2, upper))
    names = rows(seeds, "query_id", "target_id", "strand")
    assert n_candidates == len(shared)
    assert n_candidates - n_dropped == len(set(names))
    ranked = [(query, target, -strand, rank) for (query, target, strand), rank in zip(names, seeds.rank, strict=True)]
    assert ranked == sorted(set(ranked)), "seeds come by query, target, strand (same first) and rank"
    assert seeds.length == k
    support, firsts = {}, {}
    for i, candidate in enumerate(names):
        firsts.setdefault(candidate, i)
        query, target, strand = candidate
        members, place = shared[candidate], (int(seeds.query_pos[i]), int(seeds.target_pos[i]))
        assert place in members
        assert seeds.n_shared[i] == len(members)
        assert params.min_support <= seeds.n_support[i] <= min(len(members), MAX_MEMBERS)
        implied = naive.implied_length(*place, strand, len(sequences[query]), len(sequences[target]), k)
        assert seeds.implied_length[i] == implied >= params.min_overlap
        query_span, target_span = zip(*members, strict=True)
        for pos, side, span in zip(place, ("query", "target"), (query_span, target_span), strict=True):
            first, last = int(getattr(seeds, f"{side}_first")[i]), int(getattr(seeds, f"{side}_last")[i])
            assert first <= pos <= last and first in span and last in span
        assert seeds.rank[i] < params.ranks or lies_apart(seeds, i, firsts[candidate], sequences)
        assert seeds.n_support[i] <= support.get(candidate, MAX_MEMBERS), "a worse seed comes after a better one"
        support[candidate] = seeds.n_support[i]
    return seeds, shared


@pytest.mark.parametrize(
    "params",
    [LOOSE, USUAL, SeedParams(2, 100, 20, 0.0, 1), SeedParams(1, 0, 0, 0.0, 3), SeedParams(3, 300, 10, 0.1, 2)],
    ids=str,
)
@pytest.mark.parametrize(("k", "upper"), [(8, 20), (15, 8), (16, 40)])
def test_seeds_of_simulated_reads(k, upper, params):
    seeds, _ = check(simulate_reads(np.random.default_rng(17)), k, upper, params)
    assert len(seeds) and set(seeds.strand.tolist()) == {1, -1}


@settings(max_examples=100)
@given(
    sequences=read_sets(), k=st.integers(1, 15), upper=st.sampled_from((2, 6, 1000)),
    params=st.builds(
        SeedParams, min_support=st.integers(1, 3), min_overlap=st.sampled_from((0, 10, 40)),
        band=st.sampled_from((0, 3, 100)), band_slope=st.sampled_from((0.0, 0.03, 0.5)), ranks=st.integers(1, 3),
    ),
)  # fmt: skip
def test_seeds_of_small_sets(sequences, k, upper, params):
    check(sequences, k, upper, params)


@pytest.mark.parametrize("block_products", [1, 7, 300, 1 << 16])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_and_blocks_change_nothing(block_products, threads):
    sequences = simulate_reads(np.random.default_rng(23))
    expected, *numbers = seeds_of(sequences, 13, 12)
    for group_products in (1, 1000, 1 << 24):
        options = {"threads": threads, "block_products": block_products, "group_products": group_products}
        got, *its_numbers = seeds_of(sequences, 13, 12, **options)
        assert its_numbers == numbers
        for field in fields(Seeds):
            assert_array_equal(getattr(got, field.name), getattr(expected, field.name), err_msg=field.name)


@pytest.mark.parametrize("shift", [1, 4, 7])
def test_coarse_diagonals_lose_no_seed(shift):
    """Keys with only the high bits of diagonals: two k-mers on either side of a step may still agree."""
    rng, k, n, width = np.random.default_rng(29), 15, 40, 5
    sequences, n_wide = [], n // 4
    for i in range(n):
        one, other = random_bases(rng, k), random_bases(rng, k)
        apart = width + (i < n_wide)  # diagonals: a band has room for them, or there is one too many
        sequences.append(random_bases(rng, 50) + one + random_bases(rng, 30) + other)
        sequences.append(random_bases(rng, 60 + i) + one + random_bases(rng, 30 + apart) + other)
    fine = make_key_layout(1 << 16, len(sequences), max(map(len, sequences)))
    coarse = fine._replace(diagonal_bits=fine.diagonal_bits - shift, diagonal_shift=fine.diagonal_shift + shift)
    params = SeedParams(2, 0, width, 0.0, 1)
    seeds, n_candidates, n_dropped = seeds_of(sequences, k, 2, params, layout=coarse)
    assert (n_candidates, n_dropped) == (n, n_wide) and seeds.query_id.tolist() == list(range(2 * n_wide, 2 * n, 2))


def test_one_diagonal():
    """Identical reads, some turned: one seed, in the middle, with one k-mer of support every k bases."""
    rng, k = np.random.default_rng(1), 15
    piece = random_bases(rng, 240)
    for turned in (False, True):
        target = "C" * 30 + piece + "G" * 10
        start = 10 if turned else 30
        seeds, _ = check([piece, naive.reverse_complement(target) if turned else target], k, 2, LOOSE)
        n = 240 - k + 1
        assert len(seeds) == 1 and seeds.strand[0] == (-1 if turned else 1)
        assert seeds.n_shared[0] == n
        assert seeds.n_support[0] == naive.spaced_support([(i, i) for i in range(n)], k) == 16
        assert seeds.query_pos[0] == n // 2
        assert seeds.target_pos[0] == start + (n - 1 - n // 2 if turned else n // 2)
        assert seeds.implied_length[0] == 240
        assert (seeds.query_first[0], seeds.query_last[0]) == (0, n - 1)
        assert (seeds.target_first[0], seeds.target_last[0]) == (start, start + n - 1)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_two_diagonals_give_two_ranks(turned, ranks):
    rng, k = np.random.default_rng(2), 15
    long, short = random_bases(rng, 700), random_bases(rng, 500)
    target = long + random_bases(rng, 1500) + short
    sequences = [long + short, naive.reverse_complement(target) if turned else target]
    seeds, _ = check(sequences, k, 2, USUAL._replace(ranks=ranks))
    strand = -1 if turned else 1
    assert rows(seeds, "query_id", "target_id", "strand", "rank") == [(0, 1, strand, r) for r in range(min(ranks, 2))]
    for i, (begin, end, offset) in enumerate([(0, 700, 0), (700, 1200, 1500)][: len(seeds)]):
        query_pos, target_pos = int(seeds.query_pos[i]), int(seeds.target_pos[i])
        assert begin <= query_pos <= end - k
        assert target_pos == (len(target) - k - query_pos - offset if turned else query_pos + offset)
        assert begin <= seeds.query_first[i] <= seeds.query_last[i] <= end - k
        assert 0.7 * (end - begin) / 19 < seeds.n_support[i] <= (end - begin) / k


def test_noise_does_not_hide_the_overlap():
    """Reads with errors overlap by a piece and share a few k-mers elsewhere: the seed lies on the overlap."""
    rng, k = np.random.default_rng(3), 13
    for _ in range(10):
        piece = random_bases(rng, 2500)
        decoys = [piece[a : a + 30] for a in rng.integers(0, 400, 3)]
        query = random_bases(rng, 2000) + mutate(rng, piece, 0.06)
        target = mutate(rng, piece, 0.06) + "".join(decoy + random_bases(rng, 300) for decoy in decoys)
        seeds, _ = check([query, target], k, 6, USUAL)
        assert seeds.rank[0] == 0
        assert abs(int(seeds.query_pos[0]) - int(seeds.target_pos[0]) - 2000) < 60


def test_one_kmer_many_times_is_little_support():
    """Tandem repeats share k-mers on many diagonals; k-mers less than k apart support each other only once."""
    unit = random_bases(np.random.default_rng(6), 9)
    seeds, shared = check([unit * 12, unit * 12], 15, 1000, LOOSE)
    n_shared = len(shared[0, 1, 1])
    assert seeds.n_shared[0] == n_shared > 900
    assert seeds.n_support.max() <= len(unit) * 12 // 15


def test_very_many_shared_kmers():
    """Only so many are looked at, spread over all of them."""
    piece = random_bases(np.random.default_rng(7), 9000)
    seeds, _ = check([piece, piece], 15, 2, USUAL)
    assert len(seeds) == 1
    assert seeds.n_shared[0] == 9000 - 14
    assert MAX_MEMBERS / 2 <= seeds.n_support[0] <= MAX_MEMBERS
    assert 4000 < seeds.query_pos[0] < 5000
    assert seeds.query_first[0] < 100 and seeds.query_last[0] > 8800


def test_minimum_overlap_and_support():
    rng, k = np.random.default_rng(8), 15
    piece = random_bases(rng, 200)
    sequences = [random_bases(rng, 300) + piece, piece + random_bases(rng, 300)]
    assert len(seeds_of(sequences, k, 2, SeedParams(min_overlap=200))[0]) == 1
    seeds, n_candidates, n_dropped = seeds_of(sequences, k, 2, SeedParams(min_overlap=201))
    assert (len(seeds), n_candidates, n_dropped) == (0, 1, 1)
    most = naive.spaced_support([(i, i) for i in range(200 - k + 1)], k)
    assert len(seeds_of(sequences, k, 2, SeedParams(min_overlap=0, min_support=most))[0]) == 1
    assert len(seeds_of(sequences, k, 2, SeedParams(min_overlap=0, min_support=most + 1))[0]) == 0


def test_no_candidates():
    seeds, n_candidates, n_dropped = seeds_of(["ACGTACGGT", "", "CCCCCCCCC"], 9)
    assert (len(seeds), n_candidates, n_dropped) == (0, 0, 0)


@njit
def implied_here(query_pos, target_pos, strand, query_length, target_length, k):
    """For Python."""
    return implied_overlap(query_pos, target_pos, strand, query_length, target_length, k)


@settings(max_examples=300)
@given(data=st.data(), k=st.integers(1, 31), strand=st.sampled_from((1, -1)))
def test_implied_overlap(data, k, strand):
    query_length, target_length = (data.draw(st.integers(k, 100_000)) for _ in range(2))
    query_pos, target_pos = (data.draw(st.integers(0, length - k)) for length in (query_length, target_length))
    arguments = (query_pos, target_pos, strand, query_length, target_length, k)
    implied = implied_here(*arguments)
    assert implied == naive.implied_length(*arguments)
    assert k <= implied <= min(query_length, target_length)


def test_dense_enough():
    sequences = simulate_reads(np.random.default_rng(29), n_reads=40)
    seeds, *_ = seeds_of(sequences, 13, 12)
    depth = np.random.default_rng(1).random(len(seeds))
    sure = [i for i in range(len(seeds)) if seeds.n_support[i] >= SURE_SUPPORT and seeds.rank[i] == 0]
    typical = learn_typical(*sure_values([seeds], [depth], np.zeros(len(sequences), bool)))
    assert len(sure) >= 50
    for found, values in ((typical.density, seeds.n_support / seeds.implied_length), (typical.depth, depth)):
        every = sorted(values[i] for i in sure for _ in range(seeds.n_support[i]))
        assert found == every[(len(every) - 1) // 2], "the median, weighted by support"
    for share in (0.1, 0.5, 1.0):
        expected = [
            support >= share * min(typical.density * length, MAX_MEMBERS / 2)
            for support, length in rows(seeds, "n_support", "implied_length")
        ]
        assert_array_equal(dense_enough(seeds, typical, share), expected)
    assert 0 < dense_enough(seeds, typical, 0.5).sum() < len(seeds)
    assert dense_enough(seeds, typical, 0.0).all() and dense_enough(seeds, Typical(0.0, 0.0), 1.0).all()


def test_too_few_seeds_show_nothing_typical():
    seeds, *_ = seeds_of(["ACGTTGCATTGACCA" * 3, "ACGTTGCATTGACCA" * 3], 9, 50)
    assert learn_typical(*sure_values([seeds], [np.ones(len(seeds))], np.zeros(2, bool))) == Typical(0.0, 0.0)


@pytest.mark.parametrize("turned", [False, True])
def test_a_seed_for_each_piece_of_a_circle(rng, turned):
    """Also where a repeat in the circle gives a better band than its shorter piece: that seed is one more."""
    repeat, parts = random_bases(rng, 1000), [random_bases(rng, n) for n in (800, 900, 1200)]
    circle = parts[0] + repeat + parts[1] + repeat + parts[2]
    first, second = circle, circle[600:] + circle[:600]
    second = naive.reverse_complement(second) if turned else second
    seeds, *_ = seeds_of([first, second], 15, params=SeedParams(min_overlap=500))
    seeds = seeds.take(seeds.strand == (-1 if turned else 1))
    target_pos = len(circle) - 15 - seeds.target_pos if turned else seeds.target_pos
    diagonals = (target_pos - seeds.query_pos).tolist()
    assert seeds.rank.tolist() == [0, 1, 2]
    assert (diagonals[0], diagonals[2]) == (-600, len(circle) - 600)
    plain = parts[0] + random_bases(rng, 1000) + parts[1] + parts[2]
    seeds, *_ = seeds_of([plain, plain[600:] + plain[:600]], 15, params=SeedParams(min_overlap=500))
    assert seeds.rank.tolist() == [0, 1], "the second seed is the piece"
