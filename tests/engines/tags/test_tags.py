"""Piles, the tag graph and realignment against plain versions, and what holds of them."""

from __future__ import annotations

import naive_tags as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from piles import pack, piles

from bellapy.engines.tags.columns import FAR, NEAR, SAME, Telling, compare, count_shares, tell_apart
from bellapy.engines.tags.graph import Terms, find_consensus
from bellapy.engines.tags.marks import WORD
from bellapy.engines.tags.realign import IN_VECTORS, realign
from bellapy.engines.tags.symbols import (
    GAP,
    INSERTED,
    UNKNOWN_BASE,
    Pile,
    Sources,
    make_pile,
    pile_of_rows,
    shift_left,
    shorten,
)
from bellapy.records import Paths
from bellapy.records.bases import PAD, UNKNOWN

TELLING = Telling(4, 0.2, 3, 0.1, 3, 20, 0.4)


@njit
def shift(symbols, n, template, start, in_vectors):
    shift_left(symbols, 0, 0, n, template, start, in_vectors)


def unpack(pile: Pile) -> list[tuple[int, list[int]]]:
    parts = [pile.symbols[a:b].tolist() for a, b in zip(pile.offsets[:-1], pile.offsets[1:], strict=True)]
    return list(zip(pile.starts.tolist(), parts, strict=True))


def find(template, reads, terms=Terms(), least=1, with_template=True):  # noqa: B008
    return find_consensus(template, pack(reads), terms, least, with_template=with_template)


@given(piles(letters=2), st.integers(0, 4), st.booleans(), st.integers(-8, 64), st.integers(-32, 32))
def test_consensus_is_that_of_the_definition(pile, least, with_template, insertion, gap):
    template, reads = pile
    found = find(template, reads, Terms(insertion, gap), least, with_template)
    codes, raw, begins = naive.consensus(template.tolist(), reads, insertion, gap, least, with_template)
    assert found.codes.tolist() == codes
    assert found.raw.tolist() == raw
    assert found.begins.tolist() == begins


def test_consensus_goes_on_over_blocks():
    rng = np.random.default_rng(3)
    template = rng.integers(0, 4, 700).astype(np.uint8)
    reads = [(0, template.tolist())]
    for start in (0, 100, 120, 127, 128, 250):
        symbols = []
        for base in template[start : start + 400].tolist():
            symbols.append(base if rng.random() > 0.1 else int(rng.integers(0, 5)))
            symbols += [INSERTED + int(rng.integers(0, 4))] * int(rng.random() < 0.1)
        reads.append((start, [int(template[start]), *symbols[1:]]))
    found = find(template, reads, least=2)
    codes, raw, begins = naive.consensus(template.tolist(), reads, 32, 0, 2, True)
    assert found.codes.tolist() == codes
    assert found.begins.tolist() == begins


def test_three_reads_outvote_the_template():
    template = np.array([0, 1, 2, 3, 0, 1], np.uint8)
    other = [0, 1, 2, INSERTED + 1, 3, GAP, 1]
    found = find(template, [(0, template.tolist()), *[(0, other)] * 3], least=3)
    assert found.codes.tolist() == [0, 1, 2, 1, 3, 1]
    assert found.begins.tolist() == [0, 1, 2, 4, 5, 5, 6]
    assert not found.raw.any()
    assert find(template, [(0, template.tolist()), *[(0, other)] * 2], least=3).raw.all()


@given(piles(letters=2))
def test_gaps_go_as_far_left_as_they_can(pile):
    template, reads = pile
    for start, symbols in reads:
        room = np.concatenate((np.array(symbols, np.uint8), np.full(WORD, GAP, np.uint8)))
        found, plain = room[: len(symbols)], np.array(symbols, np.uint8)
        shift(room, len(symbols), template, start, IN_VECTORS)
        shift(plain, len(symbols), template, start, None)
        assert plain.tolist() == found.tolist() == naive.shift_left(symbols, template.tolist(), start)
        assert [s % INSERTED for s in found if s != GAP] == [s % INSERTED for s in symbols if s != GAP]


@given(piles(longest=90), st.integers(1, 3))
def test_realigned_reads_are_those_of_the_definition(pile, least):
    template, reads = pile
    found = find(template, reads, least=least)
    again = unpack(realign(pack(reads), found))
    for before, after in zip(reads, again, strict=True):
        start, symbols = naive.realign(*before, found.codes.tolist(), found.begins.tolist())
        assert after[1] == symbols
        assert after[0] == start


@given(piles(longest=90, letters=2), st.integers(1, 3))
def test_what_a_new_consensus_leaves_stays(pile, least):
    template, reads = pile
    first = find(template, reads, least=least)
    pile = realign(pack(reads), first)
    found = find_consensus(first.codes, pile, Terms(), least, with_template=False)
    codes, begins = found.codes.tolist(), found.begins.tolist()
    new = naive.new_columns(codes, begins, first.codes.tolist())
    for before, after in zip(unpack(pile), unpack(realign(pile, found, first.codes)), strict=True):
        start, symbols = naive.realign(*before, codes, begins, new)
        assert after == (start, symbols)


@pytest.mark.parametrize("error_rate, length", [(0.1, 1500), (0.7, 900), (1.0, 600)])
def test_realignment_of_long_and_bad_reads(error_rate, length):
    rng = np.random.default_rng(length)
    template = rng.integers(0, 4, length).astype(np.uint8)
    reads = [(0, template.tolist())]
    for _ in range(4):
        symbols = []
        for base in template[1:-1].tolist():
            bad = rng.random() < error_rate
            symbols.append(int(rng.integers(0, 5)) if bad else base)
            symbols += [INSERTED + int(rng.integers(0, 4))] * int(bad and rng.random() < 0.4)
        reads.append((0, [0, *symbols, 0]))
    found = find(template, reads, least=2)
    for before, after in zip(reads, unpack(realign(pack(reads), found)), strict=True):
        assert after == naive.realign(*before, found.codes.tolist(), found.begins.tolist())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), flip=st.sampled_from([0, 3]), longest=st.sampled_from([2, 20, 63]), role=st.booleans())
def test_runs_of_any_length_become_symbols(seed, flip, longest, role):
    """Short runs and long ones, of paths that stand side by side, with unknown bases, complemented or not."""
    rng = np.random.default_rng(seed)
    template = rng.integers(0, 2, 400).astype(np.uint8)
    codes, runs, expected, columns = [], [], [], {name: [] for name in Sources._fields}
    for _ in range(3):
        operations = [0, *rng.integers(0, 3, rng.integers(0, 8)).tolist(), 0]
        sizes = rng.integers(1, longest + 1, len(operations)).tolist()
        n_template = sum(size for size, operation in zip(sizes, operations, strict=True) if operation != (2 if role else 1))
        start = int(rng.integers(0, max(1, len(template) - n_template)))
        at, begin, symbols = sum(map(len, codes)), len(runs), []
        bases = rng.choice([0, 1, 2, 3, UNKNOWN], 64 * len(operations), p=[0.47, 0.47, 0.02, 0.02, 0.02]).astype(np.uint8)
        taken = iter(np.where(bases < UNKNOWN, bases ^ flip, UNKNOWN + 1).tolist())
        for size, operation in zip(sizes, operations, strict=True):
            runs.append(size << 2 | operation)
            alone = operation == (2 if role else 1)
            symbols += [next(taken) + INSERTED * alone if operation == 0 or alone else GAP for _ in range(size)]
        values = at, flip, start, begin, len(runs), len(symbols), role, False
        for name, value in zip(Sources._fields, values, strict=True):
            columns[name].append(value)
        codes.append(bases)
        expected.append((start, naive.shift_left(symbols, template.tolist(), start)))
    sources = Sources(*(np.array(columns[name]) for name in Sources._fields))
    padded = np.concatenate([*codes, np.full(PAD, UNKNOWN, np.uint8)])
    assert unpack(make_pile(padded, template, sources, np.array(runs, np.uint8)))[1:] == expected


def test_a_pile_is_read_from_paths_in_either_role():
    """The query's reverse complement on the target: each is once the template."""
    query, target = np.array([3, 1, 1, 0, 2], np.uint8), np.array([1, 3, 1, 0], np.uint8)
    codes = np.concatenate([np.full(3, 4, np.uint8), query, np.full(3, 4, np.uint8), target, np.full(3, 4, np.uint8)])
    both = np.concatenate([codes, codes[::-1]])
    # the query's reverse complement is 1 3 2 2 0: one base more than the target, which lacks one of two G
    runs = np.array([2 << 4, 1 << 4 | 1, 2 << 4], np.uint32)
    zero = np.zeros(1, np.int32)
    paths = Paths(runs, np.array([0, 3], np.int64), zero, zero.copy(), zero.copy(), zero.copy())
    short, offsets = shorten(paths)
    assert short.tolist() == [2 << 2, 1 << 2 | 1, 2 << 2]
    one = np.ones(1, np.int64)

    def sources(base, flip, backwards, as_query):
        return Sources(
            base * one, flip * one, 0 * one, offsets[:-1], offsets[1:], 5 * one, np.array([as_query]), np.array([backwards])
        )  # fmt: skip

    on_target = make_pile(both, target, sources(2 * len(codes) - 3 - 5, 3, False, False), short)
    assert unpack(on_target) == [(0, [1, 3, 1, 0]), (0, [1, 3, INSERTED + 2, 2, 0])]
    on_query = make_pile(both, query, sources(2 * len(codes) - 11 - 4, 3, True, True), short)
    assert unpack(on_query) == [
        (0, query.tolist()),
        (0, [3, GAP, 2, 0, 2]),
    ]  # the gap moved left


def test_long_runs_become_several():
    zero = np.zeros(1, np.int32)
    runs = np.array([200 << 4, 64 << 4 | 2, 63 << 4], np.uint32)
    short, offsets = shorten(Paths(runs, np.array([0, 3], np.int64), zero, zero.copy(), zero.copy(), zero.copy()))
    assert [(run >> 2, run & 3) for run in short.tolist()] == [(63, 0)] * 3 + [(11, 0), (63, 2), (1, 2), (63, 0)]
    assert offsets.tolist() == [0, 7]


def test_differences_count_columns_and_what_is_between():
    template = np.array([0, 1, 4, 3], np.uint8)
    pile = pack([(0, [0, 1, UNKNOWN_BASE, 3]), (1, [1, INSERTED, GAP, 2])])
    found = compare(pile, template)
    assert found.columns.tolist() == [4, 3]
    assert found.matches.tolist() == [3, 1]
    assert found.gaps.tolist() == [0, 1]
    assert found.inserted.tolist() == [0, 1]
    assert found.identity.tolist() == [0.75, 0.25]


def told_apart(reads: list[tuple[int, list[int]]], kept: list[bool] | None = None) -> tuple[np.ndarray, int]:
    kept = [True] * len(reads) if kept is None else kept
    return tell_apart(pack(reads), np.array(kept), len(reads[0][1]), TELLING)


def test_reads_of_another_copy_are_told_by_the_columns_that_two_bases_share():
    own, other = [0] * 20, [0] * 20
    for column in (3, 9, 15):
        other[column] = 2
    noisy = own.copy()
    noisy[5] = 1  # one read alone tells nothing
    kinds, n = told_apart([(0, own), *[(0, own)] * 5, (0, noisy), *[(0, other)] * 4])
    assert n == 3
    assert kinds.tolist() == [SAME] * 7 + [NEAR] * 4
    kinds, n = told_apart([(0, own), *[(0, own)] * 5, *[(0, other)] * 3])
    assert n == 0
    assert not kinds.any()


def test_of_a_rare_haplotype_fewer_reads_are_needed():
    """Three of fifteen show what the template shows; of a template of the other haplotype, they tell nothing."""
    rare, other = [0] * 20, [0] * 20
    for column in (3, 9, 15):
        other[column] = 2
    others = [*[(0, rare)] * 3, *[(0, other)] * 12]
    kinds, n = told_apart([(0, rare), *others])
    assert n == 3 and kinds.tolist() == [SAME] * 4 + [NEAR] * 12
    kinds, n = told_apart([(0, other), *others])
    assert n == 0 and not kinds.any()


def test_haplotypes_are_seen_where_reads_of_other_copies_are_gone():
    own, other, copy = [0] * 60, [0] * 60, [2] * 40 + [0] * 20
    for column in (43, 49, 55):
        other[column] = 1
    reads = [(0, own), *[(0, own)] * 5, *[(0, other)] * 5, *[(0, copy)] * 12]
    kinds, n = told_apart(reads)
    assert n == 43 and kinds.tolist() == [SAME] * 11 + [FAR] * 12
    kinds, n = told_apart(reads, [one[1] != copy for one in reads])
    assert n == 3 and kinds.tolist() == [SAME] * 6 + [NEAR] * 5 + [SAME] * 12


def test_of_four_copies_each_is_seen():
    """Of columns in which one copy differs from all others, as many are for a read of another copy as against it."""
    copies = [[2 if column // 20 == copy else 0 for column in range(80)] for copy in range(4)]
    kinds, n = told_apart([(0, copies[c]) for c in (0, *[0, 1, 2, 3] * 6)])
    assert n == 80 and kinds.tolist() == [SAME, *[SAME, FAR, FAR, FAR] * 6]


def test_shares_of_reads_that_show_a_base():
    reads = [(0, [0, 1]), *[(0, [0, 1])] * 6, *[(0, [0, INSERTED + 2, 1])] * 2, *[(0, [0, INSERTED + 3, 1])], (0, [GAP, 1])]
    counts = count_shares(pack(reads), 2, 8, 10)
    # a base in 9 of 10 reads, one in all, one inserted by 2 of 10, none behind the last
    assert counts.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 2]
    assert not count_shares(pack(reads), 2, 11, 10).any()


def test_a_pile_is_read_from_sequences_in_columns():
    none = 9
    rows = [
        [0, none, 1, 2, 3],
        [0, 3, 1, none, 3],
        [none, none, none, 2, none],
        [none, 0, none, 4, 2],
        [none] * 5,
        [none, 1, none, none, none],
    ]
    pile = pile_of_rows(np.array(rows, np.uint8), np.array([0, 2, 3, 4]), none)
    assert unpack(pile) == [
        (0, [0, 1, 2, 3]), (0, [0, INSERTED + 3, 1, GAP, 3]), (2, [2]), (2, [UNKNOWN_BASE, 2]), (4, []), (4, []),
    ]  # fmt: skip
