"""Differences in tandem repeats, against a plain counterpart on text."""

from __future__ import annotations

from dataclasses import fields

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_reads

from bellapy.jobs.assemble.slips import without_slips
from bellapy.records import Overlaps, Paths


def in_tandem(text: str) -> list[bool]:
    """Whether each base lies in a run, of a unit of up to six bases, with at least three units and eight bases."""
    found = [False] * len(text)
    for unit in range(1, 7):
        least = max(8, 3 * unit)
        for at in range(len(text) - least + 1):
            run = text[at : at + least]
            if "N" not in run and run[unit:] == run[:-unit]:
                found[at : at + least] = [True] * least
    return found


def columns_of(query: str, target: str, runs: list[tuple[int, int]], turned: bool = False, outside=(0, 0, 0, 0)) -> int:
    """The columns that count of an overlap with such a path.  outside : bases of both reads before and behind it."""
    before, behind, t_before, t_behind = outside
    own = naive.reverse_complement(query) if turned else query
    reads = make_reads(["A" * before + own + "C" * behind, "A" * t_before + target + "G" * t_behind])
    numbers = {
        "target_id": 1, "strand": -1 if turned else 1, "query_start": before, "query_end": before + len(query),
        "target_start": t_before, "target_end": t_before + len(target), "n_matches": matches_of(query, target, runs),
    }  # fmt: skip
    columns = ((f.name, np.int8 if f.name == "strand" else np.int32) for f in fields(Overlaps))
    overlaps = Overlaps(*(np.array([numbers.get(name, 0)], dtype) for name, dtype in columns))
    packed = np.array([n << 4 | operation for n, operation in runs], np.uint32)
    paths = Paths(packed, np.array([0, len(runs)]), *(np.zeros(1, np.int32) for _ in range(4)))
    return int(without_slips(reads, overlaps, paths).n_columns[0])


def pairs_of(runs: list[tuple[int, int]]) -> list[tuple[int | None, int | None]]:
    """The places on both texts of every column."""
    q, t, pairs = 0, 0, list[tuple[int | None, int | None]]()
    for n, operation in runs:
        for _ in range(n):
            pairs.append((None if operation == 2 else q, None if operation == 1 else t))
            q, t = q + (operation != 2), t + (operation != 1)
    return pairs


def matches_of(query: str, target: str, runs: list[tuple[int, int]]) -> int:
    return sum(q is not None and t is not None and query[q] == target[t] != "N" for q, t in pairs_of(runs))


@pytest.mark.parametrize(
    ("query", "target", "runs", "expected"),
    [
        ("GAAAAAAAAG", "GAAAAAAG", [(3, 0), (2, 1), (5, 0)], 8),
        ("GAAAAAAAG", "GAAAAAG", [(3, 0), (2, 1), (4, 0)], 9),  # seven bases
        ("GACACG", "GACACACACG", [(1, 0), (4, 2), (5, 0)], 6),
        ("GTTACGTACGTACGTT", "GTTACGTACGTT", [(4, 0), (4, 1), (8, 0)], 12),
        ("GTTACGTACGTT", "GTTACGTT", [(4, 0), (4, 1), (4, 0)], 12),  # two units
        ("AAAACAAAAG", "AAAAAAAAAG", [(10, 0)], 9),
        ("ATCG", "AACG", [(4, 0)], 4),
        ("CNNNNNNNNNNC", "CC", [(1, 0), (10, 1), (1, 0)], 12),
    ],
)
def test_differences_in_tandem_repeats(query, target, runs, expected):
    assert columns_of(query, target, runs) == expected


def texts_with_runs() -> st.SearchStrategy[str]:
    bases = st.text("ACGT", min_size=1, max_size=8)
    runs = st.builds(lambda unit, n: unit * n, st.text("ACGTN", min_size=1, max_size=7), st.integers(2, 9))
    return st.lists(bases | runs, min_size=1, max_size=4).map("".join)


@given(texts_with_runs(), texts_with_runs(), st.booleans(), st.tuples(*[st.integers(0, 5)] * 4), st.data())
def test_any_path(query, target, turned, outside, data):
    q, t, runs = 0, 0, list[tuple[int, int]]()
    while q < len(query) or t < len(target):
        operation = data.draw(st.sampled_from([0, 1, 2]))
        left = len(query) - q, len(target) - t
        if most := min(left) if operation == 0 else left[operation - 1]:
            n = data.draw(st.integers(1, most))
            q, t = q + n * (operation != 2), t + n * (operation != 1)
            runs.append((n, operation))
    of_query, of_target = in_tandem(query), in_tandem(target)
    unsure = sum(
        (q is None or t is None or not query[q] == target[t] != "N")
        and ((q is not None and of_query[q]) or (t is not None and of_target[t]))
        for q, t in pairs_of(runs)
    )
    assert columns_of(query, target, runs, turned, outside) == len(pairs_of(runs)) - unsure
