"""Where a short sequence lies in a longer one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellapy.engines.infix import MOST_PATTERN, find_infix
from bellapy.records.bases import UNKNOWN

bases = st.lists(st.integers(0, UNKNOWN), max_size=90)


def best_place(pattern, text):
    """Edits of the best place and the end of the first such, by the full table."""
    column = list(range(len(pattern) + 1))
    best, end = column[-1], 0
    for j, letter in enumerate(text):
        before, column = column, [0]
        for i, base in enumerate(pattern):
            unequal = base != letter or base == UNKNOWN
            column.append(min(before[i] + unequal, before[i + 1] + 1, column[i] + 1))
        if column[-1] < best:
            best, end = column[-1], j + 1
    return best, end


@given(st.lists(st.integers(0, UNKNOWN), min_size=1, max_size=MOST_PATTERN), bases, bases, st.data())
def test_the_best_place_is_that_of_the_full_table(pattern, before, after, data):
    noisy = [base for base in pattern if data.draw(st.integers(0, 9))]
    text = before + noisy + after
    found = find_infix(np.array(pattern, np.uint8), np.array(text, np.uint8), np.empty(UNKNOWN + 1, np.uint64))
    assert found == best_place(pattern, text)
