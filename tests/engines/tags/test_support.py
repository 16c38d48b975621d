"""Stretches with too little support, and bases of columns, against plain walks along the paths."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.tags.support import NOWHERE, UNIT, WINDOW, Support, find_bases, find_stretches
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
    kinds = [np.int64] * 6 + [np.bool_] * 2
    columns = [np.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return codes, template, Sources(*columns), np.array(runs, np.uint8), walks


def shares_of(codes, template, flip, start, walk):
    """The share of each window that a path crosses from edge to edge, as a plain walk tells it."""
    equal, total, here, end = Counter(), Counter(), start, max(column for _, column in walk) + 1
    for base, column in walk:
        here = column if column >= 0 else here
        window = (here if column >= 0 else here + 1) // WINDOW  # bases between columns count with the next one
        total[window] += 1
        equal[window] += base >= 0 and column >= 0 and (codes[base] ^ flip) == template[column]
    whole = range(-(-start // WINDOW), end // WINDOW)
    near = {window: [w for w in (window - 1, window, window + 1) if w in whole] for window in whole}
    return {window: UNIT * sum(equal[w] for w in its) // sum(total[w] for w in its) for window, its in near.items()}


def stretches_of(shares, length, rule):
    """Stretches by the definition; shares : those of each path."""
    levels = sorted(share for one in shares for share in one.values())
    if not levels:
        return []
    usual, unrelated = levels[int(rule.usual * (len(levels) - 1))], rule.unrelated * UNIT
    enough, joined = unrelated + rule.well * (usual - unrelated), []
    for window in range(length // WINDOW):
        its = [one[window] >= enough for one in shares if window in one]
        if sum(its) >= max(rule.least, rule.telling * len(its)):
            continue
        begin = window * WINDOW
        if joined and begin - joined[-1][1] < rule.apart:
            begin = joined.pop()[0]
        joined.append((begin, (window + 1) * WINDOW))
    return [(a, b) for a, b in joined if a >= rule.beside and b <= length - rule.beside and b - a <= rule.longest]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 15), min_size=1, max_size=4), st.data())
def test_stretches_are_those_of_plain_walks(seed, sizes, data):
    """Of several reads at a time, some of which have no others."""
    rng, draw = np.random.default_rng(seed), data.draw
    rule = Support(
        draw(st.integers(1, 3)), draw(st.sampled_from([0.0, 0.4, 0.7])), draw(st.sampled_from([0.1, 0.3])), 0.75, 0.5,
        draw(st.sampled_from([0, 40])), draw(st.sampled_from([1, 32, 64])), draw(st.sampled_from([64, 400])),
    )  # fmt: skip
    piles = [make_pile(int(rng.integers(1 << 30)), n, int(rng.integers(5, 20)) * 25) for n in sizes]
    codes, expected, parts, runs, ends, at = [], [], [], [], [], 0
    for read, (its_codes, template, sources, its_runs, walks) in enumerate(piles):
        shares = [
            shares_of(its_codes, template, *source)
            for source in zip(sources.flips, sources.starts.tolist(), walks, strict=True)
        ]
        expected += [[read, *stretch] for stretch in stretches_of(shares, len(template), rule)]
        ends += [max(column for _, column in walk) + 1 for walk in walks]
        shift = sum(map(len, runs))
        parts.append(sources._replace(bases=sources.bases + at, begins=sources.begins + shift, ends=sources.ends + shift))
        runs.append(its_runs)
        codes += [its_codes, template]
        at += len(its_codes) + len(template)
    firsts, lengths = np.cumsum([0] + [len(one) for one in codes])[1::2], np.array([len(one) for one in codes[1::2]])
    joined = Sources(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    together = np.concatenate(codes)
    found = find_stretches(
        together, firsts, lengths, together, joined, np.concatenate(runs), np.array(ends, np.int64),
        np.cumsum([0, *sizes]), rule,
    )  # fmt: skip
    assert found.tolist() == expected


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
