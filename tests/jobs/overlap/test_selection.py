"""Overlaps that are kept of all: against plain counterparts, and in whatever order they come."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
from cases import run, sample_reads

from bellapy.jobs.overlap.filter import BEYOND, CONTAINED, by_merit, contained_reads, select
from bellapy.params import FilterParams
from bellapy.records import Overlaps


def random_overlaps(rng, lengths, n):
    """Overlaps of any two reads, query before target; many scores are equal, and many reads whole."""
    pairs = np.sort(np.array([rng.choice(len(lengths), 2, replace=False) for _ in range(n)]), axis=1)
    pairs = np.unique(pairs, axis=0)
    columns = {f.name: np.zeros(len(pairs), np.int32) for f in fields(Overlaps)}
    columns |= {"query_id": pairs[:, 0], "target_id": pairs[:, 1], "strand": rng.choice([-1, 1], len(pairs))}
    columns |= {"score": rng.integers(0, 5, len(pairs)), "n_support": rng.integers(0, 3, len(pairs))}
    for side, ids in zip(("query", "target"), pairs.T, strict=True):
        start = (rng.integers(0, 2, len(pairs)) * lengths[ids] * 0.3).astype(int)
        columns |= {f"{side}_start": start, f"{side}_end": lengths[ids] - rng.integers(0, 10, len(pairs))}
    kinds = {name: np.int8 if name == "strand" else np.int32 for name in columns}
    return Overlaps(**{name: np.ascontiguousarray(column, kinds[name]) for name, column in columns.items()})


def naive_selection(lengths, overlaps, most):
    """The rules in plain words: rows that are kept."""
    rows = [{f.name: int(getattr(overlaps, f.name)[i]) for f in fields(Overlaps)} for i in range(len(overlaps))]
    contained = set()
    for row in rows:
        q, t = row["query_id"], row["target_id"]
        shorter, side = (q, "query") if (lengths[q], -q) < (lengths[t], -t) else (t, "target")
        if row[f"{side}_end"] - row[f"{side}_start"] >= 0.9 * lengths[shorter]:
            contained.add(shorter)
    left = [i for i, row in enumerate(rows) if not {row["query_id"], row["target_id"]} & contained]
    left.sort(key=lambda i: (-rows[i]["score"], -rows[i]["n_support"], rows[i]["query_id"], rows[i]["target_id"]))
    n, kept = dict.fromkeys(range(len(lengths)), 0), set()
    for i in left:
        pair = rows[i]["query_id"], rows[i]["target_id"]
        if max(n[read] for read in pair) < most:
            kept.add(i)
            for read in pair:
                n[read] += 1
    return contained, kept, len(rows) - len(left), len(left) - len(kept)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("most", [1, 3])
def test_selection_is_that_of_the_rules(seed, most):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(100, 105, 30).astype(np.int32)
    overlaps = random_overlaps(rng, lengths, 120)
    contained, kept, n_contained, n_beyond = naive_selection(lengths, overlaps, most)
    assert set(np.flatnonzero(contained_reads(lengths, overlaps)).tolist()) == contained
    params = FilterParams(drop_contained=True, max_overlaps_per_read=most)
    keep, dropped = select(lengths, overlaps, params)
    assert set(np.flatnonzero(keep).tolist()) == kept
    assert dropped == {CONTAINED: n_contained, BEYOND: n_beyond}
    other = rng.permutation(len(overlaps))
    assert np.array_equal(select(lengths, overlaps.take(other), params)[0], keep[other])
    assert np.array_equal(other[by_merit(overlaps.take(other))], by_merit(overlaps))


def test_nothing_is_left_out_unless_asked_for(rng):
    lengths = np.full(10, 100, np.int32)
    overlaps = random_overlaps(rng, lengths, 20)
    keep, dropped = select(lengths, overlaps, FilterParams())
    assert keep.all() and dropped == {}
    assert len(select(lengths, overlaps.take(slice(0)), FilterParams(drop_contained=True, max_overlaps_per_read=1))[0]) == 0


def test_options(tmp_path):
    """The command keeps what the rules keep, the same in tiles, and counts what it drops."""
    (tmp_path / "reads.fa").write_text(sample_reads(3, 20_000, depth=12, error=0.08).fasta())
    options = "-t1", "--drop-contained", "--max-overlaps-per-read", 1, "--report", tmp_path / "report.json"
    assert run("overlap", tmp_path / "reads.fa", "-t1", "-o", tmp_path / "all.paf").code == 0
    assert run("overlap", tmp_path / "reads.fa", *options, "-o", tmp_path / "some.paf").code == 0
    told = json.loads((tmp_path / "report.json").read_text())
    before, after = ((tmp_path / name).read_text().splitlines() for name in ("all.paf", "some.paf"))
    times = Counter(name for line in after for name in (line.split("\t")[0], line.split("\t")[5]))
    assert 0 < len(after) < len(before) and set(after) < set(before) and max(times.values()) == 1
    assert told["dropped"][CONTAINED] > 0 and told["dropped"][BEYOND] > 0
    assert told["dropped"][CONTAINED] + told["dropped"][BEYOND] + len(after) == len(before)
    tiles = "--workdir", tmp_path / "work", "--blocks", 3
    assert run("overlap", tmp_path / "reads.fa", *options, *tiles, "-o", tmp_path / "tiles.paf").code == 0
    assert (tmp_path / "tiles.paf").read_bytes() == (tmp_path / "some.paf").read_bytes()
