"""Depth as it is measured, against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from cases import noisy_copy
from strategies import make_reads, random_bases

from bellapy.jobs.overlap.depth import (
    LEAST_PIECES,
    MOST_PIECES,
    PIECE,
    find_kmers,
    make_table,
    measure_depth,
    see_pieces,
    usual_pieces,
)
from bellapy.seeding.kmer_hashes import make_stretch

K = 16


def sampled_reads(rng, text, depth, error=0.12, length=5000):
    """Reads of one length from anywhere in a text, of which every second one is turned, and where they begin."""
    starts = rng.integers(0, len(text) - length + 1, int(depth * len(text) / length)).tolist()
    texts = [noisy_copy(rng, text[start : start + length], error)[0] for start in starts]
    return [reverse(read) if i % 2 else read for i, read in enumerate(texts)], starts


def reverse(text: str) -> str:
    return text[::-1].translate(str.maketrans("ACGT", "TGCA"))


def covering(reads, chosen, one_in=1, k=K):
    table, pieces, enough = make_table(reads, chosen, k, one_in)
    columns, listed = (reads.codes, reads.starts, reads.lengths), (np.zeros((2, 0), np.uint64), np.zeros(0, np.int64))
    seen = see_pieces(columns, 0, len(reads), table, pieces, *listed, make_stretch()).reshape(-1, 3)
    return np.bincount(seen[:, 0], minlength=len(chosen)), enough


@pytest.mark.parametrize("one_in", [1, 4])
def test_counts_are_those_of_the_truth(rng, one_in):
    text = random_bases(rng, 30_000)
    sequences, starts = sampled_reads(rng, text, 12, error=0.05)
    reads, chosen = make_reads(sequences), np.arange(15)
    counts, enough = covering(reads, chosen, one_in)
    middles = np.array(starts)[chosen, None] + 2500
    true = ((np.array(starts) <= middles) & (middles < np.array(starts) + 5000)).sum(axis=1) - 1  # not by itself
    assert enough.all() and np.abs(counts - true).max() <= 2 and abs(counts.sum() - true.sum()) <= 0.05 * true.sum()


@pytest.mark.parametrize("depth", [5, 30])
def test_depth(rng, depth):
    reads = make_reads(sampled_reads(rng, random_bases(rng, 100_000), depth)[0])
    measured = measure_depth(reads, K, 1)
    assert measured.depth == pytest.approx(depth, rel=0.15) and 0 < measured.spread < 0.1 * depth
    assert measured == measure_depth(reads, K, 1, threads=3)


@pytest.mark.parametrize("error", [0.0, 0.01, 0.04, 0.12])
@pytest.mark.parametrize("one_in", [1, 4])
def test_correct_kmers(rng, error, one_in):
    """Each base is another one with the same chance."""
    sequences = []
    for read in sampled_reads(rng, random_bases(rng, 60_000), 15, error=0)[0]:
        codes = np.array(["ACGT".index(base) for base in read])
        wrong = rng.random(len(codes)) < error
        sequences.append("".join(np.array(list("ACGT"))[(codes + wrong * rng.integers(1, 4, len(codes))) % 4]))
    measured = measure_depth(make_reads(sequences), K, one_in)
    assert measured.correct == pytest.approx((1 - error) ** K, rel=0.1) and measured.depth == pytest.approx(15, rel=0.15)


def test_repeats_do_not_change_it(rng):
    """A third of the genome is copies of one sequence."""
    element = random_bases(rng, 2000)
    text = "".join(random_bases(rng, int(rng.integers(2000, 6000))) + noisy_copy(rng, element, 0.01)[0] for _ in range(40))
    reads = make_reads(sampled_reads(rng, text, 12)[0])
    assert measure_depth(reads, K, 1).depth == pytest.approx(12, rel=0.25)


def test_half_the_genome_in_families_of_repeats(rng):
    """Old copies of long elements, in and out of which every piece runs, and accurate reads."""
    families, parts = [random_bases(rng, 3000) for _ in range(4)], []
    for i in range(120):
        old = noisy_copy(rng, families[i % 4], float(rng.uniform(0.05, 0.25)))[0]
        parts += [random_bases(rng, 1500), old[int(rng.integers(0, 2000)) :]]
    reads = make_reads(sampled_reads(rng, "".join(parts), 15, error=0.02)[0])
    for one_in in (1, 8):
        measured = measure_depth(reads, K, one_in)
        assert measured.depth == pytest.approx(15, rel=0.15) and measured.correct == pytest.approx(0.98**K, rel=0.1)


def listed(reads, table):
    """What a GPU finds: the k-mers of all reads that the table has."""
    found = np.empty((2, len(reads.codes) + 1), np.uint64)
    n = find_kmers(reads.codes, 0, len(reads.codes), table, *found, make_stretch())
    return found[:, :n][:, np.isin(found[0, :n], table.hashes)]


@pytest.mark.parametrize("one_in", [1, 4])
def test_kmers_found_elsewhere(rng, one_in):
    reads = make_reads(sampled_reads(rng, random_bases(rng, 60_000), 20)[0])
    asked = []
    wanted = measure_depth(reads, K, one_in)
    assert wanted == measure_depth(reads, K, one_in, 3, lambda table: asked.append(table) or listed(reads, table))
    assert wanted == measure_depth(reads, K, one_in, 3, asked.append)  # it gives None
    assert wanted and len(asked) == 2


@pytest.mark.parametrize("letters", [(0.25, 0.25, 0.25, 0.25), (0.35, 0.35, 0.15, 0.15)])
def test_chance_does_not_count(rng, letters):
    """Reads that share nothing but chance: every band of diagonals has hits."""
    letters = rng.choice(list("ATCG"), (150, PIECE), p=letters)
    reads = make_reads(["".join(row) for row in letters])
    assert measure_depth(reads, 13, 1) is None
    assert covering(reads, np.arange(20), k=13)[0].mean() < 0.5


def test_many_pieces_of_one_place(rng):
    """Pieces that come after MOST_PIECES others of the same k-mers are not counted; the others are whole."""
    text = random_bases(rng, 3000)
    reads = make_reads([text] * 200)
    counts, enough = covering(reads, np.arange(64))
    assert enough.tolist() == [True] * MOST_PIECES + [False] * (64 - MOST_PIECES)
    assert (counts[enough] == 199).all()
    assert measure_depth(reads, K, 1) == (199, 0, 1)


def test_a_kmer_that_a_piece_shows_twice_says_nothing(rng):
    unit = random_bases(rng, 171)
    reads = make_reads([unit * 30] * 40)
    assert not covering(reads, np.arange(20))[1].any()
    assert measure_depth(reads, K, 1) is None


def test_too_little_is_not_judged(rng):
    assert measure_depth(make_reads([]), K, 1) is None
    assert measure_depth(make_reads([random_bases(rng, 5000)] * 10), K, 1) is None
    assert measure_depth(make_reads(["ACGT"] * 100), K, 1) is None
    assert measure_depth(make_reads(["N" * 2000] * 100), K, 1) is None


def test_usual_pieces():
    assert usual_pieces(np.full(LEAST_PIECES - 1, 7)) is None
    assert usual_pieces(np.zeros(100, np.int64)) is None
    counts = np.array([10] * 20 + [12] * 20 + [500] * 15 + [1] * 5)
    assert counts[usual_pieces(counts)].tolist() == [10] * 20 + [12] * 20
    counts = np.array([60] * 20 + [66] * 20 + [112] * 15)  # those of two copies are near, and yet apart
    assert counts[usual_pieces(counts)].tolist() == [60] * 20 + [66] * 20
    counts = np.array([50] * 14 + [57] * 12 + [65] * 11 + [113] * 4 + [130] * 9 + [143] * 14)  # 113 is near to most
    assert counts[usual_pieces(counts)].tolist() == [50] * 14 + [57] * 12 + [65] * 11
