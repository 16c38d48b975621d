"""Lengths of runs and tandem repeats against a plain version, and where paths of reads hide what they lack."""

from __future__ import annotations

import naive_tags as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from piles import pack, piles

from bellapy.engines.tags.graph import Consensus
from bellapy.engines.tags.judge import LONGEST_RUN, RARER
from bellapy.engines.tags.lengths import (
    CLASSES,
    DOUBTED,
    FLANK,
    LONGEST,
    MIDDLE,
    SAMPLED,
    find_weights,
    judge_lengths,
    tally_lengths,
)
from bellapy.engines.tags.symbols import GAP, INSERTED

SHAPE = GAP, LONGEST_RUN + 1, CLASSES
USUAL = np.broadcast_to(np.array([-300, -150, 0, 150, 300]), SHAPE).copy()


def consensus(codes: list[int]) -> Consensus:
    n = len(codes)
    return Consensus(np.array(codes, np.uint8), np.zeros(n, bool), np.zeros(n, np.uint8), np.arange(n + 1))


@given(piles(letters=2), st.integers(0, 1 << 30), st.integers(0, 4))
def test_lengths_are_judged_as_defined(pile, seed, least):
    template, reads = pile
    weights = np.random.default_rng(seed).integers(-900, 900, SHAPE)
    found = judge_lengths(pack(reads), consensus(template.tolist()), weights, least)
    codes, begins = naive.judge_lengths(
        template.tolist(), reads, weights.tolist(), least, LONGEST_RUN, DOUBTED, FLANK, LONGEST, RARER
    )  # fmt: skip
    assert (found.codes.tolist(), found.begins.tolist()) == (codes, begins)


def test_bases_that_reads_add_do_not_stand_in_for_those_that_they_lack():
    """Four of nine reads lack the base too many.  In the other five a base that they add stands in its place."""
    flank, run = [0, 1, 3, 0, 2, 1, 0, 3, 1], [2, 2, 2, 2]
    codes = [*flank, *run, *flank[::-1]]
    lacking, absorbed = [*flank, GAP, *run[1:], *flank[::-1]], [*flank, 2, 2, 0, 2, *flank[::-1]]
    reads = [(0, codes), *[(0, lacking)] * 4, *[(0, absorbed)] * 5]
    found = judge_lengths(pack(reads), consensus(codes), USUAL, 3)
    assert found.codes.tolist() == [*flank, *run[1:], *flank[::-1]]
    assert found.begins.tolist() == [*range(10), *range(9, len(codes))]
    whole = [(0, codes)] * 30
    assert judge_lengths(pack([*reads, *whole]), consensus(codes), USUAL, 3).codes.tolist() == codes


@pytest.mark.parametrize("unit", [[1], [1, 3]])
def test_a_unit_that_most_reads_have_more_comes_in(unit):
    flank = [0, 2, 2, 0, 2, 0, 0, 2, 0]
    codes, longer = [*flank, *2 * unit, *flank], [*flank, *3 * unit, *flank]
    more = [*flank, *(INSERTED + base for base in unit), *2 * unit, *flank]
    found = judge_lengths(pack([(0, codes), *[(0, more)] * 6, *[(0, codes)] * 2]), consensus(codes), USUAL, 3)
    assert found.codes.tolist() == longer


def test_a_base_that_parts_a_run_comes_in_where_reads_add_it_in_several_places():
    """Of seven reads of GGTGGG two have a G more before the T, one has a G less, and two lack the T."""
    flank = [0, 1, 3, 0, 2, 1, 0, 3, 1]
    codes, parted = [*flank, *[2] * 5, *flank], [*flank, 2, 2, 3, 2, 2, 2, *flank]
    whole, more, less = [2, 2, INSERTED + 3, 2, 2, 2], [2, 2, 2, INSERTED + 3, 2, 2, INSERTED + 2], [2, 3, 2, 2, 2]
    reads = [(0, [*flank, *run, *flank]) for run in ([2] * 5, whole, whole, more, more, less, [2] * 5, [2] * 5)]
    found = judge_lengths(pack(reads), consensus(codes), USUAL, 3)
    assert found.codes.tolist() == parted
    assert found.begins.tolist() == [*range(12), *range(13, len(parted) + 1)]
    plain = [(0, codes)] * 4
    assert judge_lengths(pack([*reads, *plain]), consensus(codes), USUAL, 3).codes.tolist() == codes


def test_what_reads_gain_is_counted():
    """Of one run in SAMPLED, here the last one of so many, which is of two bases."""
    codes = [*[0, 1, 2, 3] * 8, 3, *[0, 1, 2, 3] * 3]
    at = SAMPLED - 1
    missing, more = [*codes[:at], GAP, *codes[at + 1 :]], [*codes[:at], INSERTED + 3, *codes[at:]]
    reads = [(0, codes), (0, missing), *[(0, codes)] * 2, (0, more)]
    counts = tally_lengths(pack(reads), np.array(codes, np.uint8))
    assert counts[0, 3, 2].tolist() == [1, 0, 0, 0, 3]  # beside one base
    assert counts[1, 3, 3].tolist() == [3, 0, 0, 0, 1]  # beside three
    assert counts[1, 1, 1].tolist() == [3, 1, 0, 0, 0]  # a false C that parts them
    assert counts.sum() == 12
    for longer in (False, True):
        its = naive.gains(codes, reads, at, at + 2, naive.with_unit(codes, at, 1, longer), longer, FLANK, LONGEST)
        classes = np.bincount(np.clip(its, -MIDDLE, MIDDLE) + MIDDLE, minlength=CLASSES)
        assert counts[int(longer), 3, 2 + longer].tolist() == classes.tolist()


def test_weights_are_logarithms_of_likelihood_ratios():
    counts = np.zeros((2, *SHAPE), np.int64)
    counts[0, :, 2], counts[1, :, 2] = (
        10**7 * np.array(part) for part in ([0.1, 0.1, 0, 0.1, 0.7], [0.6, 0.1, 0, 0.1, 0.2])
    )
    weights = find_weights(counts)
    assert weights[0, 2].tolist() == [-459, 0, 0, 0, 321]
    assert (weights[:, 3] == weights[:, 2]).all(), "runs that are not known are like shorter ones"
