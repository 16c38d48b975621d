"""Rows of records of columns: some of them, several records end to end, and where rows change."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_extensions, make_seeds

from bellapy.compute import columns
from bellapy.compute.columns import (
    begins_of_runs,
    choose_rows,
    join_made,
    join_rows,
    list_rows,
    make_rows,
    sum_runs,
    take_rows,
    whole_runs,
)
from bellapy.records import Seeds


def random_seeds(rng, n):
    return make_seeds(*rng.integers(0, 3, (2, n)), rng.choice([1, -1], n), *rng.integers(0, 99, (2, n)), 5)


def assert_same(one, other):
    for f in fields(one):
        assert_array_equal(getattr(one, f.name), getattr(other, f.name), f.name)


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_taken_and_joined(rng, threads):
    seeds, extensions = random_seeds(rng, 40), make_extensions(*rng.integers(0, 99, (5, 40)))
    rows = rng.integers(0, 40, 60)
    for record in (seeds, extensions):
        assert_same(take_rows(record, rows, threads), record.take(rows))
        parts = [record.take(slice(*cut)) for cut in ((0, 0), (0, 7), (7, 7), (7, 40))]
        assert_same(join_rows(parts, threads), record)
    assert join_rows([Seeds.none(5), seeds]) is seeds and len(join_rows([Seeds.none(5)])) == 0


@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_runs_begin_where_rows_change(rng, n):
    pairs = random_seeds(rng, n).pairs
    rows = list(zip(*(column.tolist() for column in pairs), strict=True))
    assert begins_of_runs(*pairs).tolist() == [i == 0 or rows[i] != rows[i - 1] for i in range(n)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 40])
def test_values_are_made_of_some_rows_at_a_time(rng, monkeypatch, threads, n):
    monkeypatch.setattr(columns, "AT_ONCE", 7)
    numbers = rng.integers(0, 99, n)
    made = make_rows(lambda rows: numbers[rows] / 2, n, np.float32, threads)
    assert made.dtype == np.float32 and made.tolist() == (numbers / 2).tolist()
    even = join_made(lambda rows: numbers[rows][numbers[rows] % 2 == 0], n, threads)
    assert choose_rows(numbers, numbers % 2 == 0, threads).tolist() == even.tolist()
    assert even.dtype == numbers.dtype and even.tolist() == [number for number in numbers.tolist() if number % 2 == 0]


@pytest.mark.parametrize("parts", [1, 3, 50])
@pytest.mark.parametrize("n", [0, 1, 30])
def test_runs_are_not_cut(rng, n, parts):
    a, b = np.sort(rng.integers(0, 4, n)), rng.integers(0, 2, n)
    cuts = whole_runs(n, parts, a, b)
    assert [i for begin, end in cuts for i in range(begin, end)] == list(range(n)) and len(cuts) <= parts
    assert all((a[begin], b[begin]) != (a[begin - 1], b[begin - 1]) for begin, _ in cuts[1:])

    def write(begin, end, room):
        found = [i for i in range(begin, end) if b[i]]
        room[: len(found)] = found
        return len(found)

    assert list_rows(write, n, parts, a, b).tolist() == np.flatnonzero(b).tolist()
    assert not n or len(whole_runs(n, parts, np.zeros(n))) == 1


@pytest.mark.parametrize("threads", [1, 4])
def test_sums_of_runs(rng, threads):
    edges = np.concatenate(([0], np.cumsum(rng.integers(1, 9, 20))))
    numbers = rng.integers(0, 1 << 30, edges[-1])
    sums = sum_runs(lambda rows: 8 * numbers[rows], edges, threads)
    assert sums.tolist() == [8 * sum(numbers[begin:end].tolist()) for begin, end in zip(edges[:-1], edges[1:], strict=True)]
