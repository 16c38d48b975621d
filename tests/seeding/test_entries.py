"""The codec of entries: compiled code and records agree."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import column_bounds, locate

from bellapy.records import KmerMatrix
from bellapy.records.kmers import places_of
from bellapy.seeding.entries import is_first, moved, pack_entry, place_of, reverse_of


@pytest.mark.parametrize("dtype, most", [(np.uint32, (1 << 30) - 1), (np.uint64, 1 << 40)])
def test_an_entry_holds_what_was_packed(rng, dtype, most):
    for place in (0, 1, most, *rng.integers(0, most, 20).tolist()):
        for first in (0, 1):
            for reverse in (0, 1):
                entry = np.array([pack_entry(np.uint64(place), np.uint64(first), np.uint64(reverse))]).astype(dtype)
                assert places_of(entry).tolist() == [place]
                assert (place_of(entry[0]), bool(is_first(entry[0])), reverse_of(entry[0])) == (place, bool(first), reverse)
                assert moved(entry[0], np.uint64(7)) == pack_entry(np.uint64(7), np.uint64(first), np.uint64(reverse))


def test_a_matrix_reads_them():
    entries = np.array(
        [pack_entry(np.uint64(p), np.uint64(f), np.uint64(r)) for p, f, r in ((3, 1, 0), (12, 0, 1), (4, 1, 1))]
    )
    matrix = KmerMatrix(3, 2, entries.astype(np.uint32), np.array([0, 10, 20], np.int64), 9, 3)
    assert column_bounds(matrix).tolist() == [0, 2, 3]
    assert [column.tolist() for column in locate(matrix)] == [[0, 1, 0], [3, 2, 4], [1, -1, -1]]
