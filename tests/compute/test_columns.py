"""Rows of records of columns: some of them, several records end to end, and where rows change."""

from __future__ import annotations

from dataclasses import fields

import pytest
from numpy.testing import assert_array_equal
from strategies import make_extensions, make_seeds

from bellapy.compute.columns import begins_of_runs, join_rows, take_rows
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
    columns = random_seeds(rng, n).pairs
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert begins_of_runs(*columns).tolist() == [i == 0 or rows[i] != rows[i - 1] for i in range(n)]
