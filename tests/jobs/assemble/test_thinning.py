"""Of reads of a very deep molecule some are used, the same ones whatever their order and strand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bellapy.jobs.assemble import thinning
from bellapy.jobs.assemble.thinning import choose_some
from bellapy.records import ReadSet
from bellapy.records.bases import reversed_codes
from bellapy.seeding.sampling import MIXER, hash_kmers

RNG = np.random.default_rng(1)
GENOME, PLASMID = (RNG.integers(0, 4, n).astype(np.uint8) for n in (60_000, 2000))
LONG = [GENOME[at : at + 6000] for at in range(0, 54_000, 300)]  # 20 reads on each base
SIZES = RNG.integers(1600, 2001, 900)  # 810 reads on each base
SHORT = [np.roll(PLASMID, -int(at))[:n] for at, n in zip(RNG.integers(0, 2000, 900), SIZES, strict=True)]


def kept(reads: list[np.ndarray]) -> np.ndarray:
    return choose_some(ReadSet.from_codes(reads))


def test_about_as_many_are_used_as_may_be(monkeypatch):
    assert kept([*LONG, *SHORT[:600]]).all()
    monkeypatch.setattr(thinning, "MOST", 100)
    mask = kept([*LONG, *SHORT])
    assert mask[: len(LONG)].all()
    assert mask[len(LONG) :].sum() == pytest.approx(900 * 100 / 810, rel=0.3)


def test_order_and_strand_do_not_count(monkeypatch):
    monkeypatch.setattr(thinning, "MOST", 100)
    reads = [*LONG[:50], *SHORT]
    order = np.random.default_rng(2).permutation(len(reads))
    again = [reversed_codes(reads[i]) if i % 2 else reads[i] for i in order]
    assert (kept(again) == kept(reads)[order]).all()


@pytest.mark.parametrize("most", [8, 30, 90])
def test_which_ones_is_the_definition(most, monkeypatch):
    """Of many sizes and depths; in a table of so few cells that words share them."""
    monkeypatch.setattr(thinning, "MOST", most)
    monkeypatch.setattr(thinning, "CELL_BITS", 4)
    rng = np.random.default_rng(most)
    lines = rng.permutation(np.array([*LONG, *SHORT[:200], *[read[:200] for read in SHORT[:20]]], object))
    reads = ReadSet.from_codes(list(lines))
    hashes, first = np.empty(len(reads.codes), np.uint64), reads.starts.tolist()
    hash_kmers(reads.codes, 0, len(hashes), thinning.K, hashes)
    words = [hashes[at : at + n] for at, n in zip(first, reads.lengths.tolist(), strict=True)]
    words = [[int(word) for word in some if word & thinning.SAMPLED == 0] for some in words]
    times = Counter(word for some in words for word in some)
    of_deep = Counter(w for some in words if 2 * sum(times[w] >= most for w in some) >= len(some) for w in some)
    expected = []
    for some, size in zip(words, reads.lengths.tolist(), strict=True):
        depth = sorted(times[word] for word in some)[len(some) // 2] if some else 0
        wide = min(thinning.STRETCH, len(some) // thinning.SHARE)
        stretches = [some[at : at + wide] for at in range(len(some) - wide + 1)]
        in_repeat = any(thinning.FREQUENT * sum(times[word] >= most for word in part) < wide for part in stretches)
        rarer = sum(times[word] < most and of_deep[word] >= thinning.SOLID for word in some)
        in_repeat |= 2 * sum(some.count(word) > 1 for word in some) >= len(some) and thinning.RARER * rarer >= len(some)
        mixed = (sum(some) + size) * int(MIXER) % 2**64
        mixed = (mixed ^ mixed >> 29) * int(MIXER) % 2**64
        expected.append(in_repeat or mixed / 2**64 * depth < most)
    assert choose_some(reads).tolist() == choose_some(reads, 3).tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_reads_of_repeats_are_all_used(monkeypatch):
    """A row of copies, and reads that lead out of a repeat, at an end or between two; a molecule as deep is not all used."""
    monkeypatch.setattr(thinning, "MOST", 100)
    rng = np.random.default_rng(3)
    row = np.tile(rng.integers(0, 4, 500).astype(np.uint8), 100)
    row[rng.random(len(row)) < 0.01] = 0
    within = [row[at : at + 4000] for at in rng.integers(0, 46_000, 300)]
    repeat, flanks = GENOME[:6000], rng.integers(0, 4, (150, 2, 2700)).astype(np.uint8)

    def across(flank: int) -> list[np.ndarray]:
        return [np.concatenate([left[:flank], repeat, right[:flank]]) for left, right in flanks]

    between = [np.concatenate([repeat[:3000], *some, repeat[3000:]]) for some in flanks[:, :, :1000]]
    assert kept([*within, *across(2700)]).all()
    assert kept(between).all()
    assert kept(across(100)).sum() == pytest.approx(100, rel=0.3)
    assert kept([np.tile(read, 3) for read in SHORT[:300]]).sum() < 60, "turns of a circle"


def test_no_reads_and_unknown_bases():
    assert len(kept([])) == 0
    assert kept([np.full(3000, 4, np.uint8), np.zeros(5, np.uint8)]).all()
