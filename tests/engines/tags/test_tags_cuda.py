"""Piles on GPUs: on a GPU if there is one, else in Numba's simulator; so these cases are small."""

from __future__ import annotations

from itertools import pairwise

import naive_tags as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from piles import pack

from bellapy.compute.gpu.devices import find_gpus
from bellapy.engines.tags.columns import FAR, NEAR, Choice, Look, Telling, compare, tell_apart
from bellapy.engines.tags.graph import Terms
from bellapy.engines.tags.judge import LONGEST_RUN, MANY, RARER, find_odds
from bellapy.engines.tags.symbols import Pile, Sources, make_pile
from bellapy.errors import DeviceError
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.report.run_report import Devices

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.engines.tags.gpu import batch as batch_cuda
from bellapy.engines.tags.gpu.records import Given, Rule

pytestmark = pytest.mark.usefixtures("quick_threads")
PAIR, QUERY, TARGET = 0, 1, 2
TELLING = Telling(4, 0.2, 2, 0.1, 2, 4, 0.3)


def members_of(rng: np.random.Generator, template: np.ndarray, n: int, error: float):
    """Reads that follow a template with errors: their bases, first column and runs."""
    for _ in range(n):
        start = int(rng.integers(0, len(template) // 2 + 1))
        end = int(rng.integers(start + 1, len(template) + 1))
        bases, operations = [], []
        for column in range(start, end):
            kind = rng.random() / error
            inner = start < column < end - 1
            if kind < 0.3 and inner:
                operations.append(TARGET)
                continue
            operations.append(PAIR)
            bases.append(int(rng.integers(0, 4)) if kind < 0.5 else int(template[column]))
            for _ in range(int(rng.integers(1, 4)) if kind > 0.5 and kind < 1 and column < end - 1 else 0):
                operations.append(QUERY)
                bases.append(int(rng.integers(0, 5)))
        runs = []
        for operation in operations:
            if runs and runs[-1] & 3 == operation and runs[-1] >> 2 < 63:
                runs[-1] += 4
            else:
                runs.append(4 | operation)
        yield np.array(bases, np.uint8), start, runs, len(operations)


def make(rng: np.random.Generator, lengths: list[int], error: float) -> tuple[np.ndarray, Given]:
    """Piles of some templates, and the bases of all reads."""
    codes, runs, columns = [], [], {name: [] for name in Sources._fields}
    templates, members = [], []
    for n in lengths:
        template = rng.integers(0, 5 if rng.random() < 0.3 else 4, n).astype(np.uint8)
        templates.append(template)
        members.append(int(rng.integers(1, 7)))
        for bases, start, its, size in members_of(rng, template, members[-1], error):
            backwards = bool(rng.random() < 0.5)
            values = (
                sum(map(len, codes)), 3 if rng.random() < 0.1 else 0, start, len(runs), len(runs) + len(its), size, False,
                backwards,
            )  # fmt: skip
            for name, value in zip(Sources._fields, values, strict=True):
                columns[name].append(value)
            codes.append(bases)
            runs += its[::-1] if backwards else its
    sources = Sources(
        *(np.array(columns[name], bool if name in ("as_query", "backwards") else np.int64) for name in columns)
    )
    offsets = np.cumsum([0, *lengths])
    return np.concatenate([*codes, np.full(PAD, UNKNOWN, np.uint8)]), Given(
        np.concatenate(templates), offsets, np.array(members), sources, np.array(runs, np.uint8)
    )


def keep_same(look: Look) -> Choice:
    kept = look.sizes > 0
    for least in (FAR, NEAR):
        kept &= look.kinds(kept) < least
        kept[look.firsts[:-1]] = True
    own = kept.copy()
    kept &= look.differences().identity > 0.3
    kept[look.firsts[:-1]] = True
    n_reads = np.diff(look.firsts) - 1
    n_foreign = np.add.reduceat(~own, look.firsts[:-1], dtype=np.int64)
    return Choice(own, kept, n_foreign, n_reads + look.n_columns, n_foreign % 2 == 1)


def unpack(pile: Pile) -> list[tuple[int, list[int]]]:
    parts = [pile.symbols[a:b].tolist() for a, b in pairwise(pile.offsets)]
    return list(zip(pile.starts.tolist(), parts, strict=True))


def choose(reads, codes: list[int], rule: Rule) -> Choice:
    pile, template = pack(reads), np.array(codes, np.uint8)
    firsts, sizes = np.array([0, len(pile)]), np.diff(pile.offsets)

    def kinds(kept: np.ndarray) -> np.ndarray:
        return tell_apart(pile, kept, len(codes), rule.telling)[0]

    return rule.choose(Look(firsts, np.array([len(codes)]), pile.starts, sizes, kinds, lambda: compare(pile, template)))


def one_by_one(both_ways: np.ndarray, asked: Given, rule: Rule):
    """The same steps for one pile after the other, as they are defined."""
    odds = tuple(column.tolist() for column in rule.odds)
    for t in range(len(asked.members)):
        one = asked.take(t, t + 1)
        raw_reads = reads = unpack(make_pile(both_ways, one.codes, one.sources, one.runs))
        codes, _, begins = naive.consensus(one.codes.tolist(), reads, *rule.terms, rule.least, True)
        new = None
        for turn in range(1, rule.rounds + rule.judged):
            reads = [naive.realign(start, symbols, codes, begins, new) for start, symbols in reads if symbols]
            if turn == 1:
                choice = choose(reads, codes, rule)
                if choice.anew[0]:
                    reads = [read for read, stays in zip(raw_reads, choice.kept, strict=True) if stays]
                    codes, _, begins = naive.consensus(one.codes.tolist(), reads, *rule.terms, rule.least, True)
                    reads = [naive.realign(start, symbols, codes, begins, None) for start, symbols in reads]
                else:
                    reads = [read for read, stays in zip(reads, choice.kept, strict=True) if stays]
                places = begins
            before = codes
            if turn < rule.rounds:
                codes, raw, begins = naive.consensus(before, reads, *rule.terms, rule.least, False)
            else:
                codes, raw, _, begins = naive.judge(before, reads, odds, rule.least, LONGEST_RUN, MANY, RARER)
            new = naive.new_columns(codes, begins, before)
            places = [begins[place] for place in places]
        own, *left_out = choice.own[1:].tolist(), int(choice.n_foreign[0]), int(choice.n_deep[0])
        yield codes, raw, places, sum(len(symbols) for _, symbols in reads[1:]), own, *left_out


def check(both_ways: np.ndarray, asked: Given, rule: Rule) -> None:
    (piles, *_) = batch_cuda.make_piles(both_ways, Devices())
    found = list(piles.correct(asked, rule))
    for one, expected in zip(found, one_by_one(both_ways, asked, rule), strict=True):
        letters = one.codes.tolist(), one.raw.tolist(), one.begins.tolist()
        assert (*letters, one.n_symbols, one.own.tolist(), one.n_foreign, one.n_deep) == expected


@settings(max_examples=6)
@given(
    st.integers(0, 1 << 30), st.lists(st.integers(1, 45), min_size=1, max_size=3), st.sampled_from([0.1, 0.3, 0.8]),
    st.sampled_from([Terms(), Terms(20, -9)]), st.integers(1, 3), st.integers(1, 3),
)  # fmt: skip
def test_equals_the_definition(seed, lengths, error, terms, rounds, least):
    both_ways, asked = make(np.random.default_rng(seed), lengths, error)
    check(both_ways, asked, Rule(terms, find_odds([]), rounds, 2, least, TELLING, keep_same))


@pytest.mark.parametrize("cells, n_again", [(6, 18), (12, 17), (30, 15), (90, 11), (400, 4)])
def test_rows_with_large_rectangles_are_done_again(monkeypatch, cells, n_again):
    """Scores have just the room that a rectangle's band takes: the simulator tells of a write behind it."""
    inner, again = batch_cuda._Batch._realign_some, []

    def count(batch, order, shape, *rest):
        if shape[1] == 1:
            again.append(shape[0])
        inner(batch, order, shape, *rest)

    monkeypatch.setattr(batch_cuda._Batch, "_realign_some", count)
    monkeypatch.setattr(batch_cuda, "CELLS", cells)
    both_ways, asked = make(np.random.default_rng(3), [40, 30], 0.6)
    check(both_ways, asked, Rule(Terms(), find_odds([]), 2, 2, 2, TELLING, keep_same))
    assert sum(again) == n_again


def test_what_does_not_fit_at_once_is_done_in_parts(monkeypatch):
    monkeypatch.setattr(batch_cuda, "SHARE", 1 << 60)
    both_ways, asked = make(np.random.default_rng(4), [20, 9, 14], 0.2)
    check(both_ways, asked, Rule(Terms(), find_odds([]), 2, 1, 1, TELLING, keep_same))


def test_what_does_not_fit_after_all_is_halved(monkeypatch):
    judge, sizes = batch_cuda._Batch._judge, []

    def refuse(batch):
        sizes.append(batch._n)
        if batch._n > 1:
            raise MemoryError
        return judge(batch)

    monkeypatch.setattr(batch_cuda._Batch, "_judge", refuse)
    both_ways, asked = make(np.random.default_rng(6), [12, 9, 8], 0.2)
    check(both_ways, asked, Rule(Terms(), find_odds([]), 1, 1, 1, TELLING, keep_same))
    assert sizes == [3, 1, 2, 1, 1]
