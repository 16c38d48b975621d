"""Gaps that are units of tandem repeats, against a plain counterpart on text."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_reads

from bellapy.jobs.assemble.slips import without_slips
from bellapy.records import Overlaps, Paths


def reversed_strand(text: str) -> str:
    return text.translate(str.maketrans("ACGT", "TGCA"))[::-1]


def plain_is_slip(text: str, begin: int, end: int) -> bool:
    """Whether text[begin:end] are whole units of a run of at least three units and eight bases."""
    for unit in range(1, 7):
        runs = (
            (first, last)
            for first in range(begin + 1)
            for last in range(end, len(text) + 1)
            if last - first >= max(8, 3 * unit)
        )
        if (end - begin) % unit == 0 and any(
            "N" not in text[a:b] and text[a : b - unit] == text[a + unit : b] for a, b in runs
        ):
            return True
    return False


@pytest.mark.parametrize(
    ("text", "gap", "expected"),
    [
        ("GAAAAAAAAG", (1, 3), True),  # where the gap is put does not matter
        ("GAAAAAAAAG", (7, 9), True),
        ("GAAAAAAAG", (1, 3), False),  # seven bases
        ("GAAAAAAAAG", (7, 10), False),  # another base among them
        ("GACACACACG", (1, 3), True),
        ("GACACACACG", (1, 2), False),  # half a unit
        ("GACACACACG", (3, 7), True),
        ("TTACGTACGTACGTT", (2, 6), True),
        ("TTACGTACGTCCGTT", (2, 6), False),  # two units
        ("CNNNNNNNNNNC", (2, 4), False),
    ],
)
def test_slips(text, gap, expected):
    begin, end = gap
    runs = [(begin, 0), (end - begin, 2), (len(text) - end, 0)]
    assert plain_is_slip(text, *gap) == expected
    assert columns_left(text[:begin] + text[end:], text, runs) == len(text) - expected * (end - begin)


def columns_left(query: str, target: str, runs: list[tuple[int, int]], turned: bool = False, outside=(0, 0, 0, 0)) -> int:
    """The columns that count of an overlap with such a path.  outside : bases of both reads before and behind it."""
    before, behind, t_before, t_behind = outside
    own = reversed_strand(query) if turned else query
    reads = make_reads(["A" * before + own + "C" * behind, "A" * t_before + target + "G" * t_behind])
    numbers = {
        "target_id": 1, "strand": -1 if turned else 1, "query_start": before, "query_end": before + len(query),
        "target_start": t_before, "target_end": t_before + len(target), "n_columns": sum(n for n, _ in runs),
    }  # fmt: skip
    columns = ((f.name, np.int8 if f.name == "strand" else np.int32) for f in fields(Overlaps))
    overlaps = Overlaps(*(np.array([numbers.get(name, 0)], dtype) for name, dtype in columns))
    packed = np.array([n << 4 | operation for n, operation in runs], np.uint32)
    paths = Paths(packed, np.array([0, len(runs)]), *(np.zeros(1, np.int32) for _ in range(4)))
    return without_slips(reads, overlaps, paths).n_columns.tolist()[0]


def texts_with_runs() -> st.SearchStrategy[str]:
    bases = st.text("ACGT", min_size=1, max_size=8)
    runs = st.builds(lambda unit, n: unit * n, st.text("ACGTN", min_size=1, max_size=7), st.integers(2, 9))
    return st.lists(bases | runs, min_size=1, max_size=4).map("".join)


@given(texts_with_runs(), texts_with_runs(), st.booleans(), st.tuples(*[st.integers(0, 5)] * 4), st.data())
def test_columns_of_slips_do_not_count(query, target, turned, outside, data):
    """Any path; positions are those of the forward strand of both reads."""
    q, t, runs, expected = 0, 0, list[tuple[int, int]](), 0
    while q < len(query) or t < len(target):
        operation = data.draw(st.sampled_from([0, 1, 2]))
        most = min((len(query) - q, len(target) - t)) if operation == 0 else (len(query) - q, len(target) - t)[operation - 1]
        if most:
            n = data.draw(st.integers(1, most))
            text, at = ((query, q), (query, q), (target, t))[operation]
            expected += n * (operation == 0 or not plain_is_slip(text, at, at + n))
            q, t = q + n * (operation != 2), t + n * (operation != 1)
            runs.append((n, operation))
    assert columns_left(query, target, runs, turned, outside) == expected
