"""Bases judged by what reads show, against a plain version and against what is known."""

from __future__ import annotations

import math

import naive_tags as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from piles import pack, piles

from bellapy.engines.tags.judge import LONGEST_RUN, MANY, PARTS, RARER, Odds, find_odds, judge, no_tally, tally
from bellapy.engines.tags.symbols import GAP, INSERTED

USUAL = find_odds([])
of_runs = st.lists(st.integers(-1500, 1500), min_size=LONGEST_RUN + 1, max_size=LONGEST_RUN + 1)
weights = st.lists(of_runs, min_size=GAP, max_size=GAP)


@given(piles(letters=1) | piles(letters=2), st.tuples(weights, weights, weights), st.integers(0, 4))
def test_bases_are_judged_as_defined(pile, odds, least):
    template, reads = pile
    found = judge(pack(reads), template, Odds(*(np.array(part) for part in odds)), least)
    codes, raw, slots, begins = naive.judge(template.tolist(), reads, odds, least, LONGEST_RUN, MANY, RARER)
    assert found.codes.tolist() == codes
    assert found.raw.tolist() == raw
    assert found.slots.tolist() == slots
    assert found.begins.tolist() == begins


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ([0, 1, 3, 3, 2], [0, 1, 3, 3, 2]),
        ([0, 1, GAP, 3, 2], [0, 1, 3, 2]),
        ([0, 1, INSERTED + 3, 3, 3, 2], [0, 1, 3, 3, 3, 2]),
        ([0, INSERTED + 2, 1, 3, 3, 2], [0, 2, 1, 3, 3, 2]),
    ],
)
def test_most_reads_are_right(shown, expected):
    codes = np.array([0, 1, 3, 3, 2], np.uint8)
    reads = [(0, codes.tolist()), *[(0, shown)] * 6, *[(0, codes.tolist())] * 4]
    assert judge(pack(reads), codes, USUAL, 3).codes.tolist() == expected
    assert judge(pack(reads), codes, USUAL, 11).codes.tolist() == codes.tolist(), "too few reads"


def test_the_template_counts_where_there_are_few_reads():
    codes, one_more = [0, 1, 2, 3], [0, 1, 0, 2, 3]
    template, plain = [0, 1, INSERTED + 0, 2, 3], codes

    def judged(n_more, n_plain, least=3):
        reads = [template, *[template] * n_more, *[plain] * n_plain]
        return judge(pack([(0, read) for read in reads]), np.array(codes, np.uint8), USUAL, least)

    assert judged(1, 1).codes.tolist() == one_more, "two of three"
    assert judged(1, 1).raw.tolist() == [False] * 5
    assert judged(0, 2).codes.tolist() == codes
    assert judged(1, 0).raw.all() and judged(0, 0, least=1).raw.all(), "one other read is too few, and none at all"
    even = MANY // 2
    assert judged(even, even + 1).codes.tolist() == codes, "with many reads it has no vote"
    assert judged(even, even).codes.tolist() == one_more


def test_a_base_more_is_a_quarter_as_likely_beforehand():
    """A read tells as much by showing the base as another one by lacking it."""
    assert round(PARTS * math.log(4)) == RARER
    codes = np.array([0, 1, 3, 2], np.uint8)
    even = np.full((GAP, LONGEST_RUN + 1), PARTS)
    whole, short = [(0, codes.tolist())], [(0, [0, 1, GAP, 2])]
    for n_more, expected in ((0, [0, 1, 2]), (1, [0, 1, 2]), (2, codes.tolist())):
        pile = pack([*whole, *whole * (8 + n_more), *short * 8])
        assert judge(pile, codes, Odds(even, 0 * even, -even), 3).codes.tolist() == expected


def test_a_read_with_another_base_speaks_against_a_base_where_reads_add_bases_more_often_than_they_replace_them():
    counts = no_tally()
    counts.runs[:], counts.bases[:] = 10_000, 10_000
    counts.missing[:], counts.more[:], counts.other[:] = 400, 400, 100
    odds = find_odds([counts])
    codes = np.array([0, 1, 3, 2], np.uint8)
    reads = [(0, codes.tolist()), *[(0, codes.tolist())] * 5, *[(0, [0, 1, GAP, 2])] * 4]
    assert judge(pack(reads), codes, odds, 3).codes.tolist() == codes.tolist()
    assert judge(pack([*reads, *[(0, [0, 1, 2, 2])] * 4]), codes, odds, 3).codes.tolist() == [0, 1, 2]


def rates(missing, more, other):
    """Odds of reads with such rates of errors."""
    counts = no_tally()
    counts.runs[:], counts.bases[:] = 10**6, 10**6
    counts.missing[:], counts.more[:], counts.other[:] = (round(10**6 * rate) for rate in (missing, more, other))
    return find_odds([counts])


def test_a_read_with_another_base_in_a_run_does_not_speak_for_its_last_base():
    codes, odds = np.array([0, 3, 3, 3, 2], np.uint8), rates(0.05, 0.03, 0.01)
    whole, short = [(0, codes.tolist())], [(0, [0, GAP, 3, 3, 2])]
    one_less = [0, 3, 3, 2]
    assert judge(pack([*whole * 8, *short * 6]), codes, odds, 3).codes.tolist() == codes.tolist()
    for unlike in ([0, 3, 3, 1, 2], [0, 3, 1, 3, 2]):  # one added base, and no more than two of the run
        assert judge(pack([*whole * 4, *short * 6, *[(0, unlike)] * 4]), codes, odds, 3).codes.tolist() == one_less


@pytest.mark.parametrize("misplaced", [[0, 3, 3, INSERTED + 1, 2], [3, 3, 3, 2], [0, 3, 3, 3]])
def test_a_read_with_a_moved_base_does_not_speak_against_a_missing_one(misplaced):
    codes, odds = np.array([0, 3, 3, 2], np.uint8), rates(0.05, 0.03, 0.03)
    more, plain = [(0, [0, INSERTED + 3, 3, 3, 2])], [(0, codes.tolist())]
    one_more = [0, 3, 3, 3, 2]
    assert judge(pack([*plain, *more * 9, *plain * 11]), codes, odds, 3).codes.tolist() == codes.tolist()
    assert judge(pack([*plain, *more * 9, *plain * 6, *[(0, misplaced)] * 5]), codes, odds, 3).codes.tolist() == one_more


@pytest.mark.parametrize("base", range(GAP))
def test_wrong_bases_in_a_long_run_do_not_make_it_longer(base):
    """Every read shows a few, in different places.  Base 0 is the one that comes first where no read adds a base."""
    other, n = (base + 1) % GAP, 60
    codes = [other, *n * [base], other]
    reads = [(0, codes)]
    for i in range(12):
        reads.append((0, [other, *([other if k % 17 == i else base for k in range(n)]), other]))
    assert judge(pack(reads), np.array(codes, np.uint8), USUAL, 3).codes.tolist() == codes


@pytest.mark.parametrize("base", range(GAP))
def test_wrong_bases_in_a_long_run_are_bases_of_it(base):
    other, n = (base + 2) % GAP, 30
    codes, added = [other, *n * [base], other], INSERTED + base
    plain, one_more, one_less = [(0, codes)], [(0, [other, added, *codes[1:]])], [(0, [other, GAP, *codes[2:]])]
    wrong = [[other, *k * [base], other, *(n - k - 1) * [base], other] for k in range(10, 17)]
    within = [(0, [*read[: k + 11], INSERTED + other, *codes[k + 11 :]]) for k, read in enumerate(wrong)]
    behind = [(0, [*read[: k + 12], added, *codes[k + 12 :]]) for k, read in enumerate(wrong)]
    begin = [(0, [other, (base + 1) % GAP, *codes[2:]])]

    def judged(*reads):
        return len(judge(pack([*plain, *reads]), np.array(codes, np.uint8), USUAL, 3).codes) - len(codes)

    assert judged(*plain * 5, *one_more, *within) == judged(*plain * 5, *one_more, *behind) == 1
    assert judged(*plain * 2, *begin * 6, *one_less * 4) == 0
    assert judged(*plain * 2, *one_less * 10) == -1


@pytest.mark.parametrize("unit", [[1, 2], [0, 1, 2], [0, 0, 2]])
def test_a_unit_of_a_tandem_repeat_that_reads_lack_in_different_places_goes(unit):
    n, three, two = len(unit), [3, *3 * unit, 3], [3, *2 * unit, 3]
    codes, first, second = np.array(three, np.uint8), [3, *[GAP] * n, *2 * unit, 3], [3, *unit, *[GAP] * n, *unit, 3]
    reads = [(0, three), *[(0, first)] * 5, *[(0, second)] * 4, *[(0, three)]]
    assert judge(pack(reads), codes, USUAL, 3).codes.tolist() == two
    assert judge(pack([*reads, *[(0, three)] * 9]), codes, USUAL, 3).codes.tolist() == three
    assert judge(pack(reads), codes, USUAL, 12).codes.tolist() == three, "too few reads"


@pytest.mark.parametrize("n_short", [1, 5])
def test_a_read_that_lacks_many_units_of_a_tandem_repeat_counts_once(n_short):
    unit = [1, 2, 0]
    codes, short = [3, *15 * unit, 3], [3, *12 * [GAP] * len(unit), *3 * unit, 3]
    reads = [(0, codes), *[(0, short)] * n_short, *[(0, codes)] * (6 - n_short)]
    found = judge(pack(reads), np.array(codes, np.uint8), USUAL, 3).codes.tolist()
    assert found == (codes if n_short == 1 else [3, *3 * unit, 3])


def test_odds_are_logarithms_of_likelihood_ratios():
    counts = no_tally()
    counts.runs[:], counts.bases[:] = 10**7, 10**7
    counts.more[:], counts.missing[:], counts.other[:] = 200_000, 500_000, 300_000
    odds = find_odds([counts, no_tally()])
    assert odds.shown[0, 1] / PARTS == pytest.approx(math.log((1 - 0.05 - 0.03) / 0.02), abs=0.01)
    assert odds.other[0, 1] / PARTS == pytest.approx(math.log(0.03 / 3 / 0.02), abs=0.01)
    assert odds.missing[0, 1] / PARTS == pytest.approx(math.log(0.05 / (1 - 4 * 0.02)), abs=0.01)
    rare = no_tally()
    rare.runs[:, :2], rare.missing[:, 1] = 10**6, [10**5, 2 * 10**5, 10**5, 10**5]
    missing = find_odds([rare]).missing
    assert (missing[:, 2] == missing[:, 1]).all(), "runs without any reads are like shorter ones"
    assert missing[1, 1] > missing[0, 1], "a base that is often missing says less"


def test_runs_are_counted():
    codes = np.array([0, 1, 1, 1, 2, 0], np.uint8)
    reads = [codes.tolist(), [0, GAP, 1, 1, 2, 0], [0, INSERTED + 1, 1, 1, 1, 2, 0], [0, 1, 1, 3, 2, INSERTED + 2, 0]]
    found = tally(pack([(0, read) for read in reads]), codes, 3)
    assert found.runs[[0, 2, 1], [1, 1, 3]].tolist() == [3, 3, 3]  # runs of one base but the last one; the run of three
    assert found.missing[1, 3] == found.more[1, 3] == 1
    assert found.missing.sum() == 1
    assert found.more[:, 0].tolist() == [0, 0, 1, 0]
    assert found.runs[:, 0].sum() == 3 * 3 * 5  # behind each column three bases are unlike the next one
    assert (found.bases[0], found.other[0]) == (5 * 3 - 1, 1)
    assert tally(pack([(0, read) for read in reads]), codes, 4).runs.sum() == 0
