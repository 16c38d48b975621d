"""Extension one bit of each flank in every vector: against the scalar rule, and its bases against the reads."""

from __future__ import annotations

import weakref

import naive
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from strategies import flank_pairs, lay_out_flanks, mutate, on_tables, random_bases, simulate_flanks

from bellapy.engines.flanks import Flanks
from bellapy.engines.linear import extend_cpu
from bellapy.engines.linear.extend_slices import extend_slices, slices_fit
from bellapy.engines.linear.rule import GUARD, extend_each
from bellapy.engines.linear.slice_bases import APART, BASE_PLANES, BITS, LANES, WORDS, fetch, pack, planes_of, turn
from bellapy.engines.linear.slices import HEIGHT, XDROP
from bellapy.params import Scoring

SCORINGS = [Scoring(1, -1, -1, XDROP), Scoring(1, -1, -1, XDROP, 9, 3200), Scoring(1, -1, -1, XDROP, 60, 1)]


@numba.njit
def turned(rows):
    turn(rows)


@numba.njit
def fetched(planes, at, begin, end, is_target, flip, rows):
    fetch(planes, at, begin, end, is_target, flip, rows)


def one_by_one(codes, table, scoring):
    """Results of the scalar rule."""
    results = np.zeros((len(table), 3), np.int64)
    extend_each(codes, table, scoring, False, np.empty((3, int(table[:, 1].max()) + GUARD), np.int64), results)
    return results


def table_of(flanks: Flanks) -> np.ndarray:
    """The flanks that are not empty, the longest first."""
    shorter = np.minimum(flanks.query_length, flanks.target_length)
    order = np.argsort(-shorter, kind="stable")
    return flanks.table(order[shorter[order] > 0])


def check(codes, flanks, scoring, most_over):
    """Slices give what the rule gives, and leave out no more than this share."""
    table = table_of(flanks)
    results, over = extend_slices(pack(codes), table, scoring)
    assert len(np.unique(over)) == len(over) <= most_over * len(table)
    done = np.setdiff1d(np.arange(len(table)), over)
    assert_array_equal(results[done], one_by_one(codes, table, scoring)[done])


@pytest.mark.parametrize("scoring", SCORINGS, ids=str)
@pytest.mark.parametrize("n", [1, LANES - 1, 2 * LANES + 7])
def test_slices_follow_the_rule(rng, scoring, n):
    codes, flanks = lay_out_flanks(simulate_flanks(rng, n), rng)
    check(codes, flanks, scoring, 0.2 if n > 1 else 1)


def test_slices_follow_long_flanks(rng):
    """Windows are moved in either direction many times."""
    pairs = []
    for _ in range(60):
        query = random_bases(rng, 3000)
        target = mutate(rng, query, 0.13)
        drift = "".join(target[i : i + 40] + random_bases(rng, 2) for i in range(0, len(target), 40))
        pairs += [(query, target), (query, drift), (drift, query)]
    codes, flanks = lay_out_flanks(pairs, rng)
    for scoring in SCORINGS:
        check(codes, flanks, scoring, 0.6)


def test_gaps_at_the_border_die_on_equality(rng):
    """A diagonal that begins with a gap just too long, or not, before or after a few matches."""
    whole, pairs = random_bases(rng, 60), []
    for begin in range(6):
        for size in range(XDROP - 2 * begin - 3, XDROP + 3):
            other = whole[:begin] + "N" * size + whole
            pairs += [(whole, other), (other, whole)]
    codes, flanks = lay_out_flanks(pairs, rng)
    table = flanks.table(np.arange(len(pairs)))
    results, over = extend_slices(pack(codes), table, SCORINGS[0])
    expected = np.array([naive.xdrop_best_sparse(*pair, *SCORINGS[0]) for pair in pairs])
    done = np.setdiff1d(np.arange(len(pairs)), over)
    assert len(done) > len(pairs) / 2
    assert_array_equal(results[done], expected[done])


@settings(max_examples=60)
@given(pairs=st.lists(flank_pairs(), min_size=1, max_size=20), seed=st.integers(0, 99), scoring=st.sampled_from(SCORINGS))
def test_slices_are_the_full_table(pairs, seed, scoring):
    codes, flanks = lay_out_flanks(pairs, np.random.default_rng(seed))
    if not (np.minimum(flanks.query_length, flanks.target_length) > 0).any():
        return
    check(codes, flanks, scoring, 1)


def test_windows_at_the_ends_of_all_reads(rng):
    """The first flank begins with the first base, the last one ends with the last: windows reach beyond both."""
    bases = rng.integers(0, 4, 90).astype(np.uint8)
    codes = np.concatenate((bases, bases))
    columns = np.zeros(3, np.int64), np.full(3, 90), np.array([90, 95, 150]), np.array([90, 85, 30])
    flanks = Flanks(*(np.asarray(column, np.int64) for column in columns), np.zeros(3, np.uint8))
    check(codes, flanks, SCORINGS[0], 0)
    results, _ = extend_slices(pack(codes), flanks.table(np.arange(1)), SCORINGS[0])
    assert_array_equal(results, [[90, 90, 90]])


def test_what_grows_wider_than_the_window_is_left_out(rng):
    """Unrelated sequence gains score too, far from the diagonal where the extension began."""
    same = random_bases(rng, 80)
    pairs = [(random_bases(rng, 3000), random_bases(rng, 3000)) for _ in range(40)] + [(same, same)]
    codes, flanks = lay_out_flanks(pairs, rng)
    _, over = extend_slices(pack(codes), flanks.table(np.arange(len(pairs))), SCORINGS[0])
    assert len(over) > 10 and len(pairs) - 1 not in over
    check(codes, flanks, SCORINGS[0], 1)


@pytest.mark.parametrize("threads", [1, 3])
def test_many_flanks_go_through_slices(monkeypatch, rng, threads):
    sliced = []

    def extend(planes, table, scoring):
        sliced.append(len(table))
        return extend_slices(planes, table, scoring)

    monkeypatch.setattr(extend_cpu, "extend_slices", extend)
    codes, flanks = lay_out_flanks(simulate_flanks(rng, extend_cpu.MIN_SLICED * 3 // 2, 60), rng)
    table = flanks.table(np.arange(len(flanks)))
    for scoring, n in ((SCORINGS[1], len(table_of(flanks))), (SCORINGS[1]._replace(xdrop=14), 0)):
        sliced.clear()
        got = on_tables(extend_cpu.extend_flanks)(codes, flanks, scoring, False, threads)
        assert sum(sliced) == n
        assert_array_equal(got, one_by_one(codes, table, scoring))


def test_which_scores_fit():
    assert slices_fit(SCORINGS[1], False) and not slices_fit(SCORINGS[1], True)
    assert not any(slices_fit(s, False) for s in (Scoring(1, -1, -1, 14), Scoring(1, -2, -1, 15), Scoring(2, -1, -1, 15)))


def test_turned_rows_are_words_of_lanes(rng):
    words = rng.integers(0, 1 << 64, LANES, np.uint64)
    rows = words.copy()
    turned(rows)
    bits = (words.reshape(BITS, 1, WORDS) >> np.arange(BITS, dtype=np.uint64)[:, None]) & np.uint64(1)
    expected = (bits << np.arange(BITS, dtype=np.uint64)[:, None, None]).sum(axis=0, dtype=np.uint64)
    assert_array_equal(rows, expected.ravel())
    turned(rows)
    assert_array_equal(rows, words)


@pytest.mark.parametrize("is_target", [False, True])
def test_windows_of_bases(rng, is_target):
    codes = rng.integers(0, 5, 1000).astype(np.uint8)
    at, flip = rng.integers(-70, 1000, LANES), rng.integers(0, 2, LANES) * 3
    end = np.minimum(at + rng.integers(-5, 150, LANES), len(codes))
    begin = np.minimum(np.maximum(0, at + rng.integers(-50, 40, LANES)), end)
    rows = np.empty(BASE_PLANES * APART, np.uint64)
    fetched(pack(codes, 3).reshape(-1), at, begin, end, is_target, flip, rows)
    bits = rows.reshape(BASE_PLANES, APART, 1)[:, :LANES] >> np.arange(BITS, dtype=np.uint64) & np.uint64(1)
    got = (bits * np.array([1, 2, 4], np.uint64)[:, None, None]).sum(axis=0)
    for l in range(LANES):
        places = at[l] + np.arange(BITS)
        its = np.where((places >= 0) & (places < end[l]), codes[np.clip(places, 0, 999)], 0)
        known = (places >= begin[l]) & (places < end[l]) & (its < 4)
        assert_array_equal(got[l][known], its[known] ^ flip[l])
        beyond = (places < begin[l]) | (places >= end[l]) | (its == 4)
        assert (got[l][beyond] & np.uint64(5) == (5 if is_target else 4)).all()


def test_reads_are_packed_once(rng):
    codes = rng.integers(0, 5, 200).astype(np.uint8)
    assert planes_of(codes) is not planes_of(codes)  # it may be written to
    codes.flags.writeable = False
    assert planes_of(codes) is planes_of(codes)
    other = codes.copy()
    other.flags.writeable = False
    assert planes_of(other) is not planes_of(codes)
    alive = weakref.ref(planes_of(codes))
    del other
    assert alive() is not None
    del codes
    assert alive() is None
    assert HEIGHT + 32 <= BITS
