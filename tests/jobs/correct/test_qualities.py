"""Qualities of corrected bases."""

from __future__ import annotations

import numpy as np
import pytest
from cases import run, sample_reads
from corrected import edits, oriented
from strategies import random_bases

from bellapy.engines.tags.margins import PARTS
from bellapy.engines.tags.symbols import GAP, INSERTED
from bellapy.jobs.correct.qualities import (
    LOWEST,
    N_BINS,
    SURE,
    UNSURE,
    Half,
    Qualities,
    bins_of,
    compare_halves,
    falling,
    learn_rates,
    path_of,
    shared_errors,
)
from bellapy.jobs.correct.template import Corrected


def corrected(codes, begins, margins=0, raw=False) -> Corrected:
    codes = np.array(codes, np.uint8)
    return Corrected(
        codes, np.full(len(codes), raw), np.array(begins), 9, 0, 0, 9.0, 0, np.zeros(len(codes), np.int32) + margins
    )


def test_a_run_of_equal_bases_has_the_quality_of_its_least_sure_base():
    found = corrected([1, 1, 1, 2, 2], range(6), margins=np.array([50, 20, 30, 10 * PARTS, -10 * PARTS], np.int32))
    assert bins_of(found).tolist() == [20 - LOWEST] * 3 + [0] * 2
    assert len(bins_of(corrected([], [0]))) == 0


def test_a_corrected_read_as_a_path_on_its_raw_one():
    symbols, start = path_of(corrected([3, 2, 1, 0], [0, 0, 1, 3, 3, 4, 4]))
    assert start == 1
    assert symbols.tolist() == [3, 2, INSERTED + 1, GAP, 0]


def test_halves_that_differ_from_the_whole_are_wrong_or_it_is_where_it_is_less_sure():
    template = np.array([0, 1, 2, 3] * 10, np.uint8)
    whole = corrected(template, range(41), margins=PARTS)
    half = corrected([*template[:20], 3, *template[21:30], *template[31:]], [*range(31), *range(30, 40)])
    found = compare_halves(template, whole, half, half)
    assert (found.bases.sum(), found.wrong.sum(), found.with_all.sum()) == (39, 2, 40)
    assert (found.differing, found.apart) == (2, 0)
    found = compare_halves(template, whole, half, whole)
    assert (found.differing, found.apart) == (2, 2)
    less_sure = whole._replace(margins=np.where(np.arange(40) == 20, -1, whole.margins).astype(np.int32))
    assert compare_halves(template, less_sure, half, half).wrong.sum() == 1 + UNSURE
    unsure = corrected(template, range(41), raw=True)
    found = compare_halves(template, whole, unsure, unsure)
    assert (found.bases.sum(), found.wrong.sum()) == (0, 0)


def test_rates_fall_and_stay_near_what_was_seen():
    rates, weights = np.array([0.3, 0.1, 0.2, 0.05, 0.05]), np.array([1.0, 1.0, 3.0, 1.0, 1.0])
    assert falling(rates, weights) == pytest.approx([0.3, 0.175, 0.175, 0.05, 0.05])


def half(true, bases, shared=0.0) -> Half:
    """What a half tells of which so many bases are wrong in each bin, a share of them in common with the other half."""
    wrong = np.round(true * bases)
    n = int(wrong.sum())
    return Half(bases, wrong, n, round(2 * (1 - shared) * n), bases)


def test_rates_are_learnt_and_what_is_surer_than_can_be_told_is_one():
    true = 0.3 * np.exp(-np.arange(N_BINS) / 8.0)
    bases = np.full(N_BINS, 10**6)
    none = learn_rates([])
    assert (np.diff(none) <= 0).all() and 0 < none[-1] < none[0] <= 0.5
    found = learn_rates([half(true, bases)])
    assert found[:SURE] == pytest.approx(true[:SURE], rel=0.2)
    assert found[SURE:] == pytest.approx(true[SURE:].mean(), rel=0.2)


def test_errors_that_both_halves_have_are_a_share_of_all():
    true, bases = 0.3 * np.exp(-np.arange(N_BINS) / 8.0), np.full(N_BINS, 10**6)
    without, found = learn_rates([half(true, bases)]), learn_rates([half(true, bases, shared=0.2)])
    assert shared_errors([half(true, bases, shared=0.2)]) == pytest.approx(0.2, abs=0.01)
    assert found - without == pytest.approx(0.2 * without.mean(), rel=0.05)
    assert shared_errors([half(true, bases, shared=-0.1)]) == shared_errors([]) == 0


def test_raw_bases_have_the_quality_of_raw_reads():
    qualities = Qualities([], 0.1)
    found = corrected([0, 1, 2], range(4), margins=PARTS)
    found.raw[1] = True
    first, raw, last = qualities.of(found).tolist()
    assert raw == 10 < first == last


def test_stated_qualities_agree_with_the_errors(tmp_path):
    genome = random_bases(np.random.default_rng(6), 6000)
    reads = sample_reads(9, genome=genome, depth=12, mean=1800, error=0.15)
    (tmp_path / "reads.fa").write_text(reads.fasta())
    assert run("correct", tmp_path / "reads.fa", "-o", tmp_path / "x.fq", "-t", 1).code == 0
    assert run("correct", tmp_path / "reads.fa", "-o", tmp_path / "x.fa", "-t", 2).code == 0
    lines = (tmp_path / "x.fq").read_text().splitlines()
    assert lines[1::4] == (tmp_path / "x.fa").read_text().splitlines()[1::2]
    stated = wrong = n = 0.0
    for i, (sequence, marks) in enumerate(zip(lines[1::4], lines[3::4], strict=True)):
        assert len(sequence) == len(marks)
        quality = np.frombuffer(marks.encode(), np.uint8).astype(float) - 33
        assert ((quality >= 2) & (quality <= 60)).all()
        if i % 3 == 0:
            wrong += edits(oriented(sequence, reads.strand[i]), genome[max(0, reads.start[i] - 20) : reads.end[i] + 20])
            stated, n = stated + (10 ** (-quality / 10)).sum(), n + len(sequence)
    assert abs(10 * np.log10(stated / wrong)) < 3
    assert wrong / n < 0.05
