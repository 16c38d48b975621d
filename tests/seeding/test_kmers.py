"""Counting k-mers: exactly the naive count, whatever the layout, the memory and the number of threads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import make_reads, random_bases, read_sets, simulate_reads

from bellapy.seeding import kmers
from bellapy.seeding.kmers import SPECTRUM_SIZE, KmerCounts, Known, Share, count_kmers, make_layout, size_partitions

ANY = 1 << 30
scatter_pass = kmers._scatter_pass


def runs_of(counts: KmerCounts) -> np.ndarray:
    """Number of places of each k-mer."""
    return np.diff(np.append(np.flatnonzero(counts.entries & 2), len(counts.entries)))


def found(reads, counts: KmerCounts, k: int) -> dict[str, list[tuple[int, int, int]]]:
    """Canonical k-mer to (read, position, strand) of its places; each k-mer must come once, its places in order."""
    entries, kept, at = counts.entries.astype(np.int64), {}, 0
    assert counts.entries.dtype == np.uint32 and len(runs_of(counts)) == counts.n_kmers
    assert runs_of(counts).sum() == len(entries)
    for length in runs_of(counts).tolist():
        places, reverses = entries[at : at + length] >> 2, entries[at : at + length] & 1
        assert (np.diff(places) > 0).all()
        at += length
        rows, names = [], set()
        for place, reverse in zip(places.tolist(), reverses.tolist(), strict=True):
            read = int(np.searchsorted(reads.starts, place, side="right")) - 1
            position = place - int(reads.starts[read])
            assert 0 <= position <= reads.lengths[read] - k
            kmer = "".join("ACGT"[code] for code in reads.codes[place : place + k])
            names.add(naive.reverse_complement(kmer) if reverse else kmer)
            rows.append((read, position, -1 if reverse else 1))
        assert len(names) == 1, "different k-mers were taken for one"
        (name,) = names
        assert name not in kept, "one k-mer was taken for two"
        kept[name] = rows
    return kept


def expected_spectrum(sequences, k: int) -> np.ndarray:
    spectrum = np.zeros(SPECTRUM_SIZE, np.int64)
    for places in naive.kmer_places(sequences, k).values():
        spectrum[min(len(places), SPECTRUM_SIZE - 1)] += 1
    return spectrum


def assert_equal_counts(got: KmerCounts, expected: KmerCounts):
    """Singletons are not all counted, and how many are depends on the number of threads."""
    assert_array_equal(got.entries, expected.entries)
    assert got.n_kmers == expected.n_kmers
    assert_array_equal(got.spectrum[2:], expected.spectrum[2:])


def check(sequences, k, lower, upper, **options) -> KmerCounts:
    reads = make_reads(sequences)
    counts = count_kmers(reads.codes, k, lower, upper, **options)
    assert found(reads, counts, k) == naive.matrix_entries(sequences, k, lower, upper)
    assert_array_equal(counts.spectrum[2:], expected_spectrum(sequences, k)[2:])
    return counts


@pytest.fixture(scope="module")
def sequences() -> list[str]:
    return simulate_reads(np.random.default_rng(3))


@pytest.mark.parametrize("k", range(1, 32))
def test_every_k(sequences, k):
    assert check(sequences, k, 2, ANY).n_kmers


@pytest.mark.parametrize(("lower", "upper"), [(2, 2), (2, 8), (3, 4), (5, 40), (10, ANY), (9, 8)])
@pytest.mark.parametrize("k", [4, 15])
def test_bounds(sequences, k, lower, upper):
    check(sequences, k, lower, upper)


@settings(max_examples=150)
@given(sequences=read_sets(), k=st.integers(1, 31), lower=st.integers(2, 4), more=st.sampled_from((0, 1, 5, ANY)))
@example([""], 1, 2, ANY)
@example(["A"], 1, 2, ANY)
@example(["A", "T"], 1, 2, ANY)
@example(["ACGT" * 5], 4, 2, ANY)  # palindromes
@example(["A" * 31, "T" * 31, "A" * 30], 31, 2, ANY)
def test_small_sets(sequences, k, lower, more):
    check(sequences, k, lower, lower + more)


def test_no_reads():
    counts = check([], 17, 2, 8)
    assert counts.n_kmers == len(counts.entries) == 0


def test_lower_case_is_upper_case():
    check(["acgtaccgtNNacgGaTTa", "ACGTACCGTaCGGATTA"], 5, 2, 8)


def test_a_kmer_with_an_unknown_base_is_none():
    counts = check(["AACCGTTTA", "AACCNTTTA", "AACCRTTTA", "AACC-TTTA"], 9, 2, ANY)
    assert counts.n_kmers == 0


def test_very_many_of_one_kmer():
    counts = check(["A" * 6000, "C" * 50, "T" * 6000], 7, 2, ANY)
    assert counts.spectrum[-1] == 1 and runs_of(counts).max() == 2 * (6000 - 6)


@pytest.mark.parametrize("k", [3, 16, 31])
@pytest.mark.parametrize("partition_words", [200, 1 << 17])
def test_threads_and_memory_change_nothing(sequences, monkeypatch, k, partition_words):
    monkeypatch.setattr(kmers, "PARTITION_WORDS", partition_words)
    codes = make_reads(sequences).codes
    expected = check(sequences, k, 2, 20)
    for threads in (1, 2, 3, 7):
        for pass_words in (1, 50, 4000, 1 << 25):
            if threads in (2, 7) or pass_words == 50:
                got = count_kmers(codes, k, 2, 20, threads=threads, pass_words=pass_words)
                assert_equal_counts(got, expected)
    monkeypatch.setattr(kmers, "PASS_PARTITIONS", 3)
    assert_equal_counts(count_kmers(codes, k, 2, 20, threads=2), expected)


def crowd(monkeypatch, hash_bits: int, partition_bits: int) -> list:
    """Leave so few bits of the hash in a word that different k-mers look alike; return the layouts that were made."""
    made = []

    def make(k, n_places):
        layout = make_layout(k, n_places)._replace(partition_bits=min(partition_bits, 2 * k))
        kept = min(hash_bits, 2 * k - layout.partition_bits)
        dropped = 2 * k - layout.partition_bits - kept
        made.append(layout._replace(hash_bits=kept, dropped_bits=dropped, place_bits=63 - hash_bits))
        return made[-1]

    monkeypatch.setattr(kmers, "make_layout", make)
    return made


@pytest.mark.parametrize(("hash_bits", "partition_bits"), [(1, 2), (3, 2), (3, 5), (6, 2), (9, 1)])
@pytest.mark.parametrize("k", [7, 8, 16, 21, 31])
def test_hashes_that_do_not_fit_a_word(sequences, monkeypatch, k, hash_bits, partition_bits):
    expected = naive.matrix_entries(sequences, k, 2, 12)
    made = crowd(monkeypatch, hash_bits, partition_bits)
    counts = check(sequences, k, 2, 12)
    assert len(set(made)) == 1
    layout = made[0]
    assert layout.dropped_bits > 0
    if len(expected) <= 1 << hash_bits + partition_bits:
        pytest.fail("the k-mers may all have had hashes of their own: the case proves nothing")
    codes = make_reads(sequences).codes
    for threads, pass_words in ((2, 1 << 25), (3, 100)):
        assert_equal_counts(count_kmers(codes, k, 2, 12, threads=threads, pass_words=pass_words), counts)


@settings(max_examples=60)
@given(sequences=read_sets(), k=st.integers(4, 31), hash_bits=st.integers(1, 4))
def test_hashes_that_do_not_fit_a_word_in_small_sets(sequences, k, hash_bits):
    with pytest.MonkeyPatch.context() as patch:
        made = crowd(patch, hash_bits, 2)
        check(sequences, k, 2, ANY)
        assert made[0].dropped_bits > 0


def test_layout_loses_nothing():
    for k in range(1, 32):
        for n_places in (0, 1, 1000, 1 << 20, 1 << 28, 1 << 34, 1 << 40):
            layout = make_layout(k, n_places)
            assert layout.partition_bits + layout.hash_bits + layout.dropped_bits == 2 * k
            assert layout.hash_bits + layout.place_bits + 1 <= 64
            assert layout.hash_bits >= 0 and layout.dropped_bits >= 0
            assert n_places < 1 << layout.place_bits
            assert layout.multiplier % 2 == 1 and layout.multiplier < 4**k


@pytest.mark.parametrize("k", [11, 16, 25])
def test_a_share_is_the_same_kmers_in_every_read(monkeypatch, k):
    monkeypatch.setattr(kmers, "PARTITION_WORDS", 64)
    rng = np.random.default_rng(5)
    genome = random_bases(rng, 2000)
    sequences = [genome[:1300], genome[700:], naive.reverse_complement(genome[200:1500])]
    reads = make_reads(sequences)
    entries = naive.matrix_entries(sequences, k, 2, ANY)
    kept = {}
    for share in (1, 2, 3, 4, 8, 16):
        counts = count_kmers(reads.codes, k, 2, ANY, keep_one_in=share)
        kept[share] = found(reads, counts, k)
        assert kept[share].items() <= entries.items(), "a kept k-mer keeps all its places"
        assert 0.6 < len(kept[share]) * share / len(entries) < 1.5
        assert_array_equal(counts.spectrum[2:4], np.bincount(runs_of(counts), minlength=4)[2:4])
        for threads, pass_words in ((2, 1 << 25), (3, 100)):
            again = count_kmers(reads.codes, k, 2, ANY, keep_one_in=share, threads=threads, pass_words=pass_words)
            assert_equal_counts(again, counts)
    assert kept[1] == entries
    assert kept[16].keys() <= kept[8].keys() <= kept[4].keys() <= kept[2].keys()
    others = make_reads([random_bases(rng, 1300), random_bases(rng, 1300), sequences[0], sequences[0]])
    assert make_layout(k, others.codes.size).partition_bits == make_layout(k, reads.codes.size).partition_bits
    theirs = found(others, count_kmers(others.codes, k, 2, ANY, keep_one_in=4), k)
    mine = set(naive.kmer_places([sequences[0]], k)) & entries.keys()
    assert theirs.keys() & mine == kept[4].keys() & mine


@pytest.mark.parametrize("keep_one_in", [1, 3])
def test_what_is_known_is_not_counted_again(monkeypatch, sequences, keep_one_in):
    """The first partitions, counted before: some of those that are wanted, all of them, or more than all."""
    monkeypatch.setattr(kmers, "PARTITION_WORDS", 256)
    codes, k = make_reads(sequences).codes, 13
    expected = count_kmers(codes, k, 2, ANY, keep_one_in=keep_one_in)
    whole = size_partitions(codes, k)
    wanted, scattered = whole[:, : whole.shape[1] // keep_one_in], []
    monkeypatch.setattr(kmers, "_scatter_pass", lambda *args: scattered.append(args[2].sum()) or scatter_pass(*args))
    for n in (1, wanted.shape[1] - 1, wanted.shape[1], whole.shape[1]):
        before = count_kmers(codes, k, 2, ANY, share=Share(0, 1, whole[:, :n]))
        for pass_words in (None, 300):
            scattered.clear()
            known = Known(n, replace(before, entries=before.entries.copy(), spectrum=before.spectrum.copy()))
            got = count_kmers(codes, k, 2, ANY, share=Share(0, 1, wanted, known), pass_words=pass_words, threads=2)
            assert_equal_counts(got, expected)
            assert sum(scattered) == (wanted[:, n:] if n <= wanted.shape[1] else wanted).sum()


def test_a_share_larger_than_the_number_of_partitions(sequences):
    reads = make_reads(sequences)
    kept = found(reads, count_kmers(reads.codes, 15, 2, ANY, keep_one_in=1000), 15)
    assert kept and kept.items() <= naive.matrix_entries(sequences, 15, 2, ANY).items()


@pytest.mark.parametrize("k", [1, 6, 15])
def test_mask(sequences, k):
    reads = make_reads(sequences)
    mask = (np.random.default_rng(1).random(len(reads.codes)) < 0.5).astype(np.uint8)
    expected = {}
    for kmer, places in naive.kmer_places(sequences, k).items():
        seen = [place for place in places if mask[reads.starts[place[0]] + place[1]]]
        if 2 <= len(seen) <= 30:
            expected[kmer] = seen
    for threads in (1, 3):
        assert found(reads, count_kmers(reads.codes, k, 2, 30, mask=mask, threads=threads), k) == expected
    full = count_kmers(reads.codes, k, 2, 30, mask=np.ones_like(mask))
    assert_equal_counts(full, count_kmers(reads.codes, k, 2, 30))
    assert len(count_kmers(reads.codes, k, 2, 30, mask=np.zeros_like(mask)).entries) == 0


def test_counts_do_not_change_when_reads_are_turned_around(sequences):
    turned = make_reads([naive.reverse_complement(sequence) for sequence in sequences])
    there, back = (count_kmers(reads.codes, 15, 2, 50) for reads in (make_reads(sequences), turned))
    assert Counter(runs_of(there).tolist()) == Counter(runs_of(back).tolist())
    assert_array_equal(there.spectrum[2:], back.spectrum[2:])


@pytest.mark.parametrize("n_places", [10**5, 3 * 10**8, 10**9, 10**10, 10**12])
def test_passes_over_the_reads_are_few_at_any_size(rng, n_places):
    partitions = 1 << make_layout(19, n_places).partition_bits
    sizes = rng.poisson(n_places / partitions, partitions)
    at = passes = 0
    while at < partitions:
        at = kmers._end_of_pass(sizes, at, kmers.usual_pass(sizes, 1))
        passes += 1
    assert kmers.LEAST_PASSES <= passes <= kmers.MOST_PASSES
    assert kmers.words_of_passes(sizes, 1) >= sizes.sum()  # a part of eight is counted in one
