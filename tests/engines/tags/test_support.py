"""Shares of windows and bases of columns, against plain walks along the paths."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.tags.support import NOWHERE, WINDOW, find_bases, list_shares
from bellapy.engines.tags.symbols import Sources


def make_path(rng, n_runs, length):
    """Runs of a path that begins and ends with a pair, at most so many columns of the template long."""
    runs, columns = [(1, PAIR)], 1
    for _ in range(n_runs):
        operation, size = int(rng.integers(3)), int(rng.integers(1, 40))
        runs.append((size, operation))
        columns += size
    runs.append((1, PAIR))
    return runs if columns + 1 <= length else [(1, PAIR), (1, PAIR)]


def make_pile(seed, n_reads, length=400):
    """Codes, template, sources, runs, and for each read its columns: base and column, or -1 for either."""
    rng = np.random.default_rng(seed)
    template, codes = rng.integers(0, 4, length, dtype=np.uint8), rng.integers(0, 4, 2000, dtype=np.uint8)
    rows, runs, walks = [], [], []
    for _ in range(n_reads):
        path = make_path(rng, int(rng.integers(12)), length)
        as_query, backwards = rng.integers(2, size=2).astype(bool).tolist()
        of_read = {PAIR, TARGET_ALONE if as_query else QUERY_ALONE}
        of_template = {PAIR, QUERY_ALONE if as_query else TARGET_ALONE}
        n_columns = sum(size for size, operation in path if operation in of_template)
        start, base = int(rng.integers(0, length - n_columns + 1)), int(rng.integers(0, 1000))
        column, walk, at = start, [], base
        for size, operation in path:
            for _ in range(size):
                walk.append((at if operation in of_read else -1, column if operation in of_template else -1))
                at, column = at + (operation in of_read), column + (operation in of_template)
        written = [size << 2 | operation for size, operation in (path[::-1] if backwards else path)]
        flip, span = 3 * int(rng.integers(2)), (len(runs), len(runs) + len(written))
        rows.append((base, flip, start, *span, len(walk), as_query, backwards))
        runs += written
        walks.append(walk)
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return codes, template, Sources(*columns), np.array(runs, np.uint8), walks


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_shares_are_those_of_a_plain_walk(seed, n_reads):
    codes, template, sources, runs, walks = make_pile(seed, n_reads)
    ends = np.array([max(column for _, column in walk) + 1 for walk in walks])
    windows, shares = list_shares(codes, template, sources, runs, ends)
    expected = []
    for i, walk in enumerate(walks):
        equal, total, here = {}, {}, int(sources.starts[i])
        for base, column in walk:
            here = column if column >= 0 else here
            window = (here if column >= 0 else here + 1) // WINDOW  # bases between columns count with the next one
            total[window] = total.get(window, 0) + 1
            both = base >= 0 and column >= 0
            equal[window] = equal.get(window, 0) + (both and (codes[base] ^ sources.flips[i]) == template[column])
        whole = range(-(-int(sources.starts[i]) // WINDOW), int(ends[i]) // WINDOW)
        for window in whole:
            near = [w for w in (window - 1, window, window + 1) if w in whole]
            expected.append((window, sum(equal[w] for w in near) / sum(total[w] for w in near)))
    assert windows.tolist() == [window for window, _ in expected]
    assert np.allclose(shares, [share for _, share in expected])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sets(st.integers(0, 399), max_size=6))
def test_bases_are_those_of_a_plain_walk(seed, n_reads, some):
    _, _, sources, runs, walks = make_pile(seed, n_reads)
    columns = np.array(sorted(some), np.int64)
    found = find_bases(sources, runs, columns)
    for i, walk in enumerate(walks):
        after, places = int(sources.bases[i]), {}
        for base, column in walk:
            if column >= 0:
                places[column] = base if base >= 0 else after
            after = base + 1 if base >= 0 else after
        assert found[i].tolist() == [places.get(column, NOWHERE) for column in columns.tolist()]
