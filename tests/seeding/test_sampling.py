"""Sampled k-mers and homopolymer compression against their definitions."""

from __future__ import annotations

import itertools

import naive
import numpy as np
import pytest
from strategies import make_reads, random_bases, sprinkle

import bellapy.seeding.sampling
from bellapy.errors import ParameterError
from bellapy.records.bases import UNKNOWN, encode
from bellapy.seeding.sampling import NONE, compress_homopolymers, hash_kmers, restore_places, sampling_mask


def hashes(codes: np.ndarray, k: int) -> list[int]:
    out = np.empty(len(codes), np.uint64)
    hash_kmers(codes, 0, len(codes), k, out)
    return out.tolist()


@pytest.fixture
def codes(rng):
    """Reads with N, repeats and short ones, in one array."""
    sequences = [sprinkle(rng, random_bases(rng, 700)), "ACGT", "", "A" * 90, "ACACAC" * 20, random_bases(rng, 300)]
    return make_reads(sequences).codes


@pytest.mark.parametrize("k", [3, 8, 15, 31])
def test_hashes_tell_kmers_apart_and_strands_alike(rng, k):
    text = sprinkle(rng, random_bases(rng, 2000))
    got = hashes(encode(text), k)
    canonical = {}
    for at in range(len(text)):
        kmer = text[at : at + k]
        if len(kmer) < k or set(kmer) - set("ACGT"):
            assert got[at] == int(NONE)
            continue
        other = naive.reverse_complement(kmer)
        assert canonical.setdefault(min(kmer, other), got[at]) == got[at] != int(NONE)
    assert len(set(canonical.values())) == len(canonical)


@pytest.mark.parametrize("k", [5, 15, 31])
@pytest.mark.parametrize("window", [2, 3, 10, 40])
def test_minimizers(codes, k, window):
    values = hashes(codes, k)
    chosen = set()
    for start in range(len(values) - window + 1):
        least = min(values[start : start + window])
        chosen |= {i for i in range(start, start + window) if values[i] == least != int(NONE)}
    assert set(np.flatnonzero(sampling_mask(codes, k, "minimizer", window))) == chosen


@pytest.mark.parametrize(("k", "window"), [(15, 2), (15, 8), (15, 14), (31, 5), (5, 3)])
def test_closed_syncmers(codes, k, window):
    s = k - window + 1
    values = hashes(codes, s)
    chosen = set()
    for start in range(len(codes) - k + 1):
        inner = values[start : start + window]
        if min(inner) != int(NONE) and min(inner) in (inner[0], inner[-1]):
            chosen.add(start)
    known = {i for i in chosen if (codes[i : i + k] <= 3).all()}
    got = {int(i) for i in np.flatnonzero(sampling_mask(codes, k, "syncmer", window)) if (codes[i : i + k] <= 3).all()}
    assert got == known


@pytest.mark.parametrize("sampling", ["minimizer", "syncmer"])
@pytest.mark.parametrize("k", [14, 15])
def test_both_strands_give_the_same_kmers(rng, sampling, k):
    text = sprinkle(rng, random_bases(rng, 3000))
    chosen = []
    for strand in (text, naive.reverse_complement(text)):
        codes = make_reads([strand]).codes
        mask = sampling_mask(codes, k, sampling, 6)
        chosen.append({int(i) for i in np.flatnonzero(mask) if (codes[i : i + k] <= 3).all()})
    assert chosen[0] == {len(codes) - k - i for i in chosen[1]}
    assert len(chosen[0]) > 500


@pytest.mark.parametrize(("sampling", "expected"), [("minimizer", 2 / 9), ("syncmer", 2 / 8)])
def test_share_of_kmers_that_is_kept(rng, sampling, expected):
    mask = sampling_mask(encode(random_bases(rng, 60_000)), 19, sampling, 8)
    assert mask.mean() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("sampling", ["minimizer", "syncmer"])
@pytest.mark.parametrize("window", [2, 5, 10])
@pytest.mark.parametrize("block", [1, 7, 100, 1000])
def test_blocks_and_threads_do_not_matter(codes, monkeypatch, sampling, window, block):
    expected = sampling_mask(codes, 11, sampling, window)
    monkeypatch.setattr(bellapy.seeding.sampling, "BLOCK", block)
    for threads in (1, 3):
        np.testing.assert_array_equal(sampling_mask(codes, 11, sampling, window, threads), expected)


@pytest.mark.parametrize("window", [11, 12, 40])
def test_syncmers_need_a_window_below_k(codes, window):
    with pytest.raises(ParameterError, match=rf"--sampling-window {window}: must be smaller than k \(11\)"):
        sampling_mask(codes, 11, "syncmer", window)


def places_before(codes: np.ndarray, marks: np.ndarray, n: int, threads: int = 1) -> list[int]:
    """Where each of n compressed bases stood."""
    entries = (np.arange(n, dtype=np.uint32) << 2) | np.arange(n, dtype=np.uint32) % 4
    restored = restore_places(codes, marks, entries.copy(), threads)
    assert restored.dtype == np.uint32 and (restored & 3 == entries & 3).all()
    return (restored >> 2).tolist()


@pytest.mark.parametrize("text", ["", "A", "AAAA", "ACGT", "AACCCGTTTT", "ANNNNA", "NNAANN", "ACACAAC", "AACCNGGTT" * 50])
@pytest.mark.parametrize("threads", [1, 3])
def test_homopolymers(text, threads):
    codes = encode(text)
    kept, marks = compress_homopolymers(codes)
    expected = []
    at = 0
    for letter, run in itertools.groupby(text):
        size = len(list(run))
        expected += [(letter, at + i) for i in range(size if letter == "N" else 1)]
        at += size
    assert kept.tolist() == encode("".join(letter for letter, _ in expected)).tolist()
    assert places_before(codes, marks, len(kept), threads) == [place for _, place in expected]


def test_padding_is_not_compressed():
    reads = make_reads(["AAAC", "CCCA"])
    kept, marks = compress_homopolymers(reads.codes)
    assert (kept == UNKNOWN).sum() == (reads.codes == UNKNOWN).sum()
    np.testing.assert_array_equal(reads.codes[places_before(reads.codes, marks, len(kept))], kept)
