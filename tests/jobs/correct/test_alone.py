"""Reads that too few others overlap: which they are, against plain counts, and what their overlaps with each other do."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from cases import noisy_copy, run
from corrected import edits, records
from strategies import random_bases

from bellapy.jobs.correct import alone
from bellapy.jobs.correct.alone import BIN, find_alone, groups_of, new_overlaps
from bellapy.records import Overlaps


def overlaps_of(query, target, query_span, target_span) -> Overlaps:
    """Overlaps with these columns, and nothing but zeros in the others."""
    none = {f.name: np.zeros(len(query), np.int8 if f.name == "strand" else np.int32) for f in fields(Overlaps)}
    columns = {"query_id": query, "target_id": target, "query_start": query_span[0], "query_end": query_span[1]}
    columns |= {"target_start": target_span[0], "target_end": target_span[1]}
    return Overlaps(**none | {name: np.asarray(column, np.int32) for name, column in columns.items()})


def random_overlaps(rng, lengths, n) -> Overlaps:
    pairs = np.sort(np.array([rng.choice(len(lengths), 2, replace=False) for _ in range(n)]), axis=1)
    spans = [
        np.sort([rng.integers(0, lengths[side] - 500, n), rng.integers(0, lengths[side], n)], axis=0) for side in pairs.T
    ]
    return overlaps_of(*pairs.T, *((start, np.maximum(end, start + 500)) for start, end in spans))


@pytest.mark.parametrize("least", [1, 3])
def test_which_reads_are_alone(rng, monkeypatch, least):
    """Bins that an overlap holds from end to end count."""
    monkeypatch.setattr(alone, "FEWEST", 1)
    monkeypatch.setattr(alone, "MOST", 1.0)
    lengths = rng.integers(500, 4000, 60).astype(np.int32)
    overlaps = random_overlaps(rng, lengths, 200 * least)
    expected = []
    for read, length in enumerate(lengths.tolist()):
        depth = np.zeros(length // BIN, int)
        for side in ("query", "target"):
            mine = getattr(overlaps, f"{side}_id") == read
            for start, end in zip(*(getattr(overlaps, f"{side}_{what}")[mine] for what in ("start", "end")), strict=True):
                depth += (np.arange(len(depth)) * BIN >= start) & ((np.arange(len(depth)) + 1) * BIN <= end)
        if 4 * (depth < least).sum() > len(depth):
            expected.append(read)
    assert find_alone(overlaps, lengths, least, 0.1).tolist() == expected and 5 < len(expected) < 55
    assert find_alone(overlaps.take(slice(0)), lengths, least, 0.1).tolist() == list(range(60))
    assert not len(find_alone(overlaps.take(slice(0)), lengths[:0], least, 0.1))


def test_few_reads_and_most_reads_are_left_as_they_are():
    """Few are the ends of molecules, and most where depth is low."""
    lengths = np.full(100, 1024, np.int32)
    for n_alone, n in ((19, 0), (20, 20), (25, 25), (26, 0)):
        beside = np.arange(n_alone, 100, dtype=np.int32)
        whole = np.zeros(len(beside)), np.full(len(beside), 1024)
        assert len(find_alone(overlaps_of(beside, beside, whole, whole), lengths, 2, 0.1)) == n


@pytest.mark.parametrize("error_rate, n", [(None, 0), (0.04, 0), (0.05, 20)])
def test_accurate_reads_are_left_as_they_are(error_rate, n):
    """Copies of a repeat are further apart than such reads from the truth."""
    lengths, beside = np.full(100, 1024, np.int32), np.arange(20, 100, dtype=np.int32)
    whole = np.zeros(len(beside)), np.full(len(beside), 1024)
    assert len(find_alone(overlaps_of(beside, beside, whole, whole), lengths, 2, error_rate)) == n


def test_groups_hold_all_reads(monkeypatch):
    monkeypatch.setattr(alone, "TOGETHER", 10_000)
    reads, lengths = np.array([1, 3, 4, 7, 9]), np.full(10, 5000)
    assert [group.tolist() for group in groups_of(reads, lengths)] == [[1, 3], [4, 7], [9]]
    assert groups_of(reads[:0], lengths) == []


def test_only_new_pairs_count(rng):
    lengths = np.full(8, 2000, np.int32)
    before, group = random_overlaps(rng, lengths, 12), np.array([1, 2, 5, 7])
    found = random_overlaps(rng, lengths[:4], 20)
    new = new_overlaps(before, found, group, 8)
    known = set(zip(before.query_id.tolist(), before.target_id.tolist(), strict=True))
    named = replace(
        found, query_id=group[found.query_id].astype(np.int32), target_id=group[found.target_id].astype(np.int32)
    )
    is_new = [(q, t) not in known for q, t in zip(named.query_id.tolist(), named.target_id.tolist(), strict=True)]
    expected = named.take(np.array(is_new))
    assert all(getattr(new, f.name).tolist() == getattr(expected, f.name).tolist() for f in fields(Overlaps))
    assert 0 < sum(is_new) < 20


def test_reads_inside_an_array_are_corrected_by_its_copies(tmp_path):
    """Their k-mers link no reads, and so they stayed as they were."""
    rng = np.random.default_rng(6)
    unit = random_bases(rng, 1500)
    array = "".join(noisy_copy(rng, unit, 0.01)[0] for _ in range(30))
    text = random_bases(rng, 120_000) + array + random_bases(rng, 120_000)
    truth, lines = [], []
    for i, start in enumerate(rng.integers(0, len(text) - 3000, 1200).tolist()):
        truth.append(text[start : start + 3000])
        lines.append(f">{i}\n{noisy_copy(rng, truth[-1], 0.1)[0]}\n")
    (tmp_path / "reads.fa").write_text("".join(lines))
    outcome = run("correct", tmp_path / "reads.fa", "-o", tmp_path / "out.fa", "-t", 2)
    assert outcome.code == 0 and "too few others beside them" in outcome.err, outcome.err
    raw, corrected = "".join(lines).splitlines()[1::2], dict(records((tmp_path / "out.fa").read_bytes()))
    inside = [i for i, one in enumerate(truth) if one in array]
    assert len(inside) > 100
    before, after = (
        sum(edits(one[i], truth[i]) for i in inside[::20]) for one in (raw, [corrected[str(i)] for i in range(1200)])
    )
    assert after < before / 5
