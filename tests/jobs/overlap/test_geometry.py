"""Which overhangs count: those where other alignments of both reads go on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, make_seeds

from bellapy.jobs.overlap.geometry import AT_END, BEYOND, BIN, _going_on, fair_geometry, measure_geometry
from bellapy.records import Extensions


def alignments(rows):
    """Seeds and extensions from rows of query, target, strand, query start and end, target start and end."""
    query, target, strand, *ends = (list(column) for column in zip(*rows, strict=True))
    seeds = make_seeds(query, target, strand, ends[0], ends[2], 1)
    return seeds, Extensions(*np.array([[1] * len(rows), *ends, *[[0] * len(rows)] * 4], np.int32))


def test_going_on_is_counted_by_bins(rng):
    lengths = [3000, 150, 5210]
    reads, rows = make_reads(["A" * n for n in lengths]), []
    for _ in range(200):
        q, t = sorted(rng.choice(3, 2, replace=False).tolist())
        rows.append((q, t, 1, *np.sort(rng.integers(0, lengths[q] + 1, 2)), *np.sort(rng.integers(0, lengths[t] + 1, 2))))
    starts, found = _going_on(reads, *alignments(rows))
    expected = np.zeros_like(found)
    for q, t, _, *ends in rows:
        for read, begin, end in ((q, *ends[:2]), (t, *ends[2:])):
            for i in range(lengths[read] // BIN + 1):
                from_begin = begin <= AT_END or begin + BEYOND <= i * BIN
                to_end = end >= lengths[read] - AT_END or i <= (end - BEYOND) // BIN
                expected[starts[read] + i] += from_begin and to_end
    assert_array_equal(found, expected)


@pytest.mark.parametrize("strand", [1, -1])
@pytest.mark.parametrize("bad", ["query", "target", "neither"])
def test_an_overhang_counts_where_both_reads_go_on(strand, bad):
    """Reads 0 and 1 share their first 2,000 bases (the last of read 1 on the other strand), 2 to 5 cover them."""
    n, reads = 6000, make_reads(["A" * 6000] * 6)
    end = {name: 2000 if bad == name else n for name in ("query", "target")}

    def on_target(start, stop):
        return (start, stop) if strand > 0 else (n - stop, n - start)

    rows = [(0, 1, strand, 0, 2000, *on_target(0, 2000))]
    rows += [(0, 2 + i, 1, 0, end["query"], 0, end["query"]) for i in range(2)]
    rows += [(1, 4 + i, 1, *on_target(0, end["target"]), 0, end["target"]) for i in range(2)]
    seeds, extensions = alignments(rows)
    geometry = measure_geometry(reads, seeds, extensions)
    assert (geometry.left[0], geometry.right[0], geometry.implied[0]) == (0, 4000, 6000)
    fair = fair_geometry(reads, seeds, extensions, geometry, np.ones(len(rows), bool))
    assert fair.overhang[0] == (4000 if bad == "neither" else 0)
    assert fair.implied[0] == (6000 if bad == "neither" else 2000) and fair.aligned[0] == 2000
    nobody = fair_geometry(reads, seeds, extensions, geometry, np.zeros(len(rows), bool))
    assert not nobody.overhang.any(), "nothing shows that the reads go on"


def test_no_alignments():
    reads = make_reads(["ACGT", "ACGT"])
    seeds, extensions = make_seeds(*[[]] * 5, 3), Extensions(*np.zeros((9, 0), np.int32))
    geometry = measure_geometry(reads, seeds, extensions)
    assert len(fair_geometry(reads, seeds, extensions, geometry, np.zeros(0, bool)).implied) == 0
