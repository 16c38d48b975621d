"""The codec of entries: compiled code and records agree."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import column_bounds, locate

from bellapy.compute.jit import njit
from bellapy.records import KmerMatrix
from bellapy.records.kmers import places_of
from bellapy.seeding import entries as codec

U = np.uint64


@njit
def pack(place, first, reverse):
    return codec.pack_entry(place, first, reverse)


@njit
def unpack(entry):
    return codec.place_of(entry), codec.is_first(entry), codec.reverse_of(entry), codec.moved(entry, U(7))


@pytest.mark.parametrize("dtype, most", [(np.uint32, (1 << 30) - 1), (np.uint64, 1 << 40)])
def test_an_entry_holds_what_was_packed(rng, dtype, most):
    for place in (0, 1, most, *rng.integers(0, most, 20).tolist()):
        for first in (0, 1):
            for reverse in (0, 1):
                entry = np.array([pack(U(place), U(first), U(reverse))]).astype(dtype)
                assert places_of(entry).tolist() == [place]
                assert unpack(entry[0]) == (place, bool(first), reverse, pack(U(7), U(first), U(reverse)))


def test_a_matrix_reads_them():
    entries = np.array([pack(U(p), U(f), U(r)) for p, f, r in ((3, 1, 0), (12, 0, 1), (4, 1, 1))])
    matrix = KmerMatrix(3, 2, entries.astype(np.uint32), np.array([0, 10, 20], np.int64), 9, 3)
    assert column_bounds(matrix).tolist() == [0, 2, 3]
    assert [column.tolist() for column in locate(matrix)] == [[0, 1, 0], [3, 2, 4], [1, -1, -1]]
