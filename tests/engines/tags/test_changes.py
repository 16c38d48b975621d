"""What became of templates, against a count base by base."""

from __future__ import annotations

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bellapy.engines.tags.changes import Corrections, count_changes

BASES = st.integers(0, 3)
TEMPLATES = st.lists(st.tuples(BASES, st.lists(st.tuples(BASES, st.booleans()), max_size=3)), max_size=12)


def offsets_of(parts: list) -> np.ndarray:
    return np.cumsum([0, *map(len, parts)])


@given(st.lists(TEMPLATES, min_size=1, max_size=4))
def test_changes_are_counted_base_by_base(templates):
    """Of each base of a template is given what stands in its place now, and whether that stayed as it was."""
    shown = [[one for _, its in template for one in its] for template in templates]
    begins = [offsets_of([its for _, its in template]) for template in templates]
    flat = list(chain(*shown))
    found = Corrections(
        np.array([base for template in templates for base, _ in template], np.uint8), offsets_of(templates),
        np.array([code for code, _ in flat], np.uint8), np.array([raw for _, raw in flat], bool), offsets_of(shown),
        np.concatenate(begins),
    )  # fmt: skip
    expected = [
        (
            sum(bool(its) and its[0][0] != base for base, its in template),
            sum(max(0, len(its) - 1) for _, its in template),
            sum(not its for _, its in template),
            sum(raw for _, its in template for _, raw in its),
        )
        for template in templates
    ]
    assert count_changes(found) == expected
