"""Small piles for tests; a read is (start, symbols)."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from bellapy.engines.tags.symbols import GAP, INSERTED, UNKNOWN_BASE, Pile

SYMBOLS = [0, 1, 2, 3, GAP, UNKNOWN_BASE, INSERTED, INSERTED + 1, INSERTED + 3, INSERTED + UNKNOWN_BASE]


def pack(reads: list[tuple[int, list[int]]]) -> Pile:
    sizes = [len(symbols) for _, symbols in reads]
    symbols = np.array([symbol for _, symbols in reads for symbol in symbols], np.uint8)
    return Pile(symbols, np.concatenate(([0], np.cumsum(sizes))), np.array([start for start, _ in reads], np.int64))


@st.composite
def piles(draw, longest=40, letters=4):
    """A template with unknown bases and reads that follow it with errors."""
    n = draw(st.integers(1, longest))
    template = draw(
        st.lists(st.sampled_from([*range(letters), *range(letters), 4][: 2 * letters + 1]), min_size=n, max_size=n)
    )
    reads = [(0, [UNKNOWN_BASE if base == 4 else base for base in template])]
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, n - 1))
        end = draw(st.integers(start + 1, n))
        symbols = []
        for column in range(start, end):
            kind = draw(st.integers(0, 9))
            inner = column not in (start, end - 1)
            symbols.append(draw(st.sampled_from(SYMBOLS[:4])) if kind > 7 or template[column] == 4 else template[column])
            if kind == 0 and inner:
                symbols[-1] = GAP
            if kind == 1 and column < end - 1:
                symbols += draw(st.lists(st.sampled_from(SYMBOLS[6:]), min_size=1, max_size=7))
            if kind == 2:
                symbols[-1] = UNKNOWN_BASE
        reads.append((start, symbols))
    return np.array(template, np.uint8), reads
