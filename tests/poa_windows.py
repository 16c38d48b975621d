"""Windows of few bases, for tests of partial-order alignment."""

from __future__ import annotations

from hypothesis import strategies as st

from bellapy.params.correct import PoaScoring

SCORINGS = [PoaScoring(), PoaScoring(5, -4, -8), PoaScoring(1, -1, -1), PoaScoring(2, -9, -1)]


@st.composite
def windows(draw, longest=24, most=6):
    """Sequences that are alike, or not at all."""
    letters = draw(st.sampled_from([2, 4, 5]))
    base = st.integers(0, letters - 1)
    true = draw(st.lists(base, min_size=1, max_size=longest))
    sequences = []
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 5)) == 0:
            sequences.append(draw(st.lists(base, max_size=longest)))
            continue
        copy = []
        for letter in true:
            kind = draw(st.integers(0, 9))
            copy += [] if kind == 0 else [draw(base)] if kind == 1 else [letter, draw(base)] if kind == 2 else [letter]
        sequences.append(copy)
    return sequences
