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
    BESIDE,
    LOWEST,
    N_BINS,
    Half,
    Qualities,
    bins_of,
    compare_halves,
    falling,
    learn_rates,
    path_of,
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


def test_halves_that_differ_are_wrong():
    template = np.array([0, 1, 2, 3] * 10, np.uint8)
    whole = corrected(template, range(41))
    half = corrected([*template[:20], 3, *template[21:30], *template[31:]], [*range(31), *range(30, 40)])
    found = compare_halves(template, whole, half)
    assert (found.bases.sum(), found.wrong.sum(), found.with_all.sum()) == (39, 2, 40)
    unsure = corrected(template, range(41), raw=True)
    found = compare_halves(template, whole, unsure)
    assert (found.bases.sum(), found.wrong.sum()) == (0, 0)


def test_rates_fall_and_stay_near_what_was_seen():
    rates, weights = np.array([0.3, 0.1, 0.2, 0.05, 0.05]), np.array([1.0, 1.0, 3.0, 1.0, 1.0])
    assert falling(rates, weights) == pytest.approx([0.3, 0.175, 0.175, 0.05, 0.05])


def test_rates_are_learnt_and_errors_that_nothing_tells_of_are_a_share_of_all():
    true = 0.2 * np.exp(-np.arange(N_BINS) / 8.0)
    bases = np.full(N_BINS, 10**6)
    none = learn_rates([])
    assert (np.diff(none) <= 0).all() and 0 < none[-1] < none[0] <= 0.5
    found = learn_rates([Half(bases, np.round(true * bases), bases)])
    assert found[:8] == pytest.approx(true[:8], rel=0.2)
    assert found[-1] == pytest.approx(BESIDE * found.mean(), rel=0.01)


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
