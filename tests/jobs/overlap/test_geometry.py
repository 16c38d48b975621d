"""Which overhangs count: those where other alignments of both reads go on."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, make_seeds

from bellapy.jobs.overlap.faults import (
    AT_END,
    BEYOND,
    BIN,
    Aligned,
    Crossings,
    Standing,
    bin_starts,
    find_crossings,
    hull_steps_of,
    steps_of,
)
from bellapy.jobs.overlap.geometry import measure_geometry
from bellapy.jobs.overlap.judging import fair_geometry
from bellapy.records import Extensions


def alignments(rows):
    """Seeds and extensions from rows of query, target, strand, query start and end, target start and end."""
    query, target, strand, *ends = (list(column) for column in zip(*rows, strict=True))
    seeds = make_seeds(query, target, strand, ends[0], ends[2], 1)
    return seeds, Extensions(*np.array([[1] * len(rows), *ends, *[[0] * len(rows)] * 4], np.int32))


def overhang_of(geometry):
    """Unaligned bases where both reads go on, on the side with more."""
    return np.maximum(geometry.left, geometry.right)


def judged(reads, seeds, extensions, geometry, telling):
    """The geometry without bad ends, of all alignments; `telling` : those that tell where reads go on."""
    every = Aligned.of(seeds, extensions)
    crossings = find_crossings(len(reads), every, telling)
    steps = steps_of(reads, every, telling, crossings, crossings.partners, 2), hull_steps_of(reads, every)
    return fair_geometry(seeds, extensions, geometry, Standing.of(reads.lengths, *steps))


def test_going_on_is_counted_by_bins(rng):
    lengths = [3000, 150, 5210]
    reads, rows = make_reads(["A" * n for n in lengths]), []
    for _ in range(200):
        q, t = sorted(rng.choice(3, 2, replace=False).tolist())
        rows.append((q, t, 1, *np.sort(rng.integers(0, lengths[q] + 1, 2)), *np.sort(rng.integers(0, lengths[t] + 1, 2))))
    seeds, extensions = alignments(rows)
    some, telling = Aligned.of(seeds, extensions), np.ones(len(rows), bool)
    crossings = find_crossings(len(reads), some, telling)
    starts = bin_starts(reads.lengths)
    found = np.cumsum(steps_of(reads, some, telling, crossings, crossings.partners))
    expected = np.zeros_like(found)
    for q, t, _, *ends in rows:
        for read, begin, end in ((q, *ends[:2]), (t, *ends[2:])):
            for i in range(lengths[read] // BIN + 1):
                from_begin = begin <= AT_END or begin + BEYOND <= i * BIN
                to_end = end >= lengths[read] - AT_END or i <= (end - BEYOND) // BIN
                expected[starts[read] + i] += from_begin and to_end
    assert_array_equal(found, expected)


def test_threads_change_nothing(rng):
    reads, rows = make_reads(["A" * n for n in rng.integers(2000, 6000, 12)]), []
    for _ in range(300):
        q, t = sorted(rng.choice(12, 2, replace=False).tolist())
        ends = (np.sort(rng.integers(0, reads.lengths[read] + 1, 2)) for read in (q, t))
        rows.append((q, t, int(rng.choice([1, -1])), *(place for pair in ends for place in pair)))
    seeds, extensions = alignments(sorted(rows, key=lambda row: row[:2]))
    telling, some = rng.random(300) < 0.6, Aligned.of(seeds, extensions)
    crossings = find_crossings(len(reads), some, telling)
    wanted = measure_geometry(reads, seeds, extensions)
    for one, other in zip(crossings, find_crossings(len(reads), some, telling, 5), strict=True):
        assert_array_equal(one, other)
    assert len(crossings.rows)
    about = telling, crossings, crossings.partners
    steps = steps_of(reads, some, *about), hull_steps_of(reads, some)
    fair = fair_geometry(seeds, extensions, wanted, Standing.of(reads.lengths, *steps))
    got = measure_geometry(reads, seeds, extensions, 5)
    in_parts = steps_of(reads, some, *about, 5), hull_steps_of(reads, some, 5)
    for one, other in zip(steps, in_parts, strict=True):
        assert_array_equal(one, other)
    fair_in_parts = fair_geometry(seeds, extensions, got, Standing.of(reads.lengths, *in_parts, 5), 5)
    for one, other in ((wanted, got), (fair, fair_in_parts)):
        for f in fields(one):
            assert_array_equal(getattr(one, f.name), getattr(other, f.name), f.name)
    assert (fair.left < wanted.left).any() and (fair.right < wanted.right).any()


def test_crossings_and_hulls_do_not_depend_on_the_order_of_the_rows_of_a_pair(rng):
    """Pairs of reads, most of which align several times; each row on its own, as in the definition."""
    reads, rows = make_reads(["A" * n for n in rng.integers(3000, 9000, 9)]), []
    for _ in range(150):
        q, t = sorted(rng.choice(9, 2, replace=False).tolist())
        ends = (np.sort(rng.integers(0, reads.lengths[read] + 1, 2)) for read in (q, t))
        rows.append((q, t, int(rng.choice([1, -1])), *(place for pair in ends for place in pair)))
    by_pair = sorted(rows, key=lambda row: row[:2])
    telling = rng.random(150) < 0.8
    shuffled = sorted(rng.permutation(150).tolist(), key=lambda i: by_pair[i][:2])
    found = []
    for its_rows, tells in ((by_pair, telling), ([by_pair[i] for i in shuffled], telling[shuffled])):
        some = Aligned.of(*alignments(its_rows))
        some = some._replace(score=np.array([1 + hash(row) % 1000 for row in its_rows], np.int32))
        crossings = find_crossings(len(reads), some, tells)
        places = sorted(zip(map(its_rows.__getitem__, crossings.rows), *crossings.place.tolist(), strict=True))
        found.append((places, crossings.partners.tolist(), hull_steps_of(reads, some).tolist()))
        hulls: dict = {}
        for q, t, _, *ends in its_rows:
            known = hulls.setdefault((q, t), list(ends))
            hulls[q, t] = [pick(a, b) for pick, a, b in zip((min, max, min, max), known, ends, strict=True)]
        whole = Aligned.of(*alignments([(*pair, 1, *ends) for pair, ends in sorted(hulls.items())]))
        every = np.ones(len(whole.score), bool)
        nowhere = Crossings(np.zeros(0, np.int64), *np.zeros((2, 2, 0), np.int64), np.zeros(9, np.int64))
        assert_array_equal(hull_steps_of(reads, some), steps_of(reads, whole, every, nowhere, nowhere.partners))
    assert found[0] == found[1] and len(found[0][0]) > 20
    both = {row[:2] for row, tells in zip(by_pair, telling, strict=True) if tells and row[2] > 0}
    both &= {row[:2] for row, tells in zip(by_pair, telling, strict=True) if tells and row[2] < 0}
    assert len(found[0][0]) == sum(row[:2] in both and tells for row, tells in zip(by_pair, telling, strict=True))


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
    fair = judged(reads, seeds, extensions, geometry, np.ones(len(rows), bool))
    assert overhang_of(fair)[0] == (4000 if bad == "neither" else 0)
    assert fair.implied[0] == (6000 if bad == "neither" else 2000) and fair.implied[0] - overhang_of(fair)[0] == 2000
    nobody = judged(reads, seeds, extensions, geometry, np.zeros(len(rows), bool))
    assert not overhang_of(nobody).any(), "nothing shows that the reads go on"


@pytest.mark.parametrize("apart, strand", [(0, 1), (300, 1), (300, -1)])
@pytest.mark.parametrize("others", [0, 2])
def test_reads_that_turn_do_not_vouch_for_each_other(apart, strand, others):
    """Reads 0 and 1 go 5,000 bases forth and back, turning `apart` bases from one another, and align on both strands.
    Reads 2 and 3, which are sound, hold one way of read 0 each and go on; `others` align with all of it, as read 1 does.
    """
    n, reads = 10_000, make_reads(["A" * 10_000] * 7)
    reach = n - 2 * apart  # of the alignment on the target, whose turn lies `apart` before the middle
    rows = [(0, 1, 1, 0, n, 0, reach), (0, 1, -1, 0, n, 0, reach)]
    rows += [(0, 2, strand, 0, 5000, 3000, 8000), (0, 3, 1, 5000, n, 2000, 7000)]
    rows += [(0, 4 + i, s, 0, n, 0, n) for i in range(others) for s in (1, -1)]
    rows += [(read, 6, 1, 0, n, 0, n) for read in (2, 3)]
    seeds, extensions = alignments(rows)
    geometry = measure_geometry(reads, seeds, extensions)
    fair = judged(reads, seeds, extensions, geometry, np.ones(len(rows), bool))
    assert overhang_of(geometry)[2] >= 2000 <= overhang_of(geometry)[3]
    for row in (2, 3):
        assert overhang_of(fair)[row] == (overhang_of(geometry)[row] if others else 0)
    assert not fair.lesser.any()


@pytest.mark.parametrize("strand", [1, -1])
@pytest.mark.parametrize("side", ["query", "target"])
def test_of_a_joined_read_the_larger_part_counts(strand, side):
    """Bases 0 to 4,000 of a read come from one place, the others up to 10,000 from another one; 3 reads cover each part."""
    n, join, reads = 10_000, 4000, make_reads(["A" * 10_000] * 8)
    there = {1: [(6000, n), (0, 6000)], -1: [(0, 4000), (4000, n)]}[strand]
    parts = [((0, join), there[0]), ((join, n), there[1])]

    def row(other, here, there):
        return (0, other, strand, *here, *there) if side == "query" else (other, 7, strand, *there, *here)

    rows = [row(1 + 3 * part + i, *parts[part]) for part in (0, 1) for i in range(3)]

    def found(rows):
        seeds, extensions = alignments(sorted(rows, key=lambda row: row[:2]))
        geometry = measure_geometry(reads, seeds, extensions)
        assert not geometry.lesser.any()
        return judged(reads, seeds, extensions, geometry, np.ones(len(rows), bool)).lesser

    assert not found(rows).any(), "the others end there too: no overhang"
    inside = [[(5000, 9000), (1000, 7000)], [(1000, 5000), (3000, 9000)]][strand < 0]
    rows = [row(1 + 3 * part + i, parts[part][0], inside[part]) for part in (0, 1) for i in range(3)]
    assert_array_equal(found(rows), [True] * 3 + [False] * 3)
    turned = [row(1, (5000, n), (1000, 6000))[:2] + (-strand,) + row(1, (5000, n), (1000, 6000))[3:]]
    assert not found(rows + turned).any(), "a read aligns on both sides: it is a turn or a bad stretch"


def test_no_alignments():
    reads = make_reads(["ACGT", "ACGT"])
    seeds, extensions = make_seeds(*[[]] * 5, 3), Extensions(*np.zeros((9, 0), np.int32))
    geometry = measure_geometry(reads, seeds, extensions)
    assert len(judged(reads, seeds, extensions, geometry, np.zeros(0, bool)).implied) == 0
