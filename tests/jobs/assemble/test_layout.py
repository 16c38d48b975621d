"""Layouts of reads with known places: reads with errors, and haplotypes that are one or two."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import arcs_of, graph_of

from bellapy.jobs.assemble import layout as its_module
from bellapy.jobs.assemble.hits import FEW, LEAST, Hits
from bellapy.jobs.assemble.layout import JOINED, Layout, lay_out
from bellapy.params.assemble import AssembleParams
from bellapy.records import Overlaps, ReadSet

STEP, SIZE = 400, 5000  # bases
N_READS = 38  # that have SIZE bases
GENOME = np.random.default_rng(1).integers(0, 4, 20_000).astype(np.uint8)


def differing(codes: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Other bases at some places."""
    codes = codes.copy()
    codes[places] ^= 1
    return codes


def laid_out(versions: list[np.ndarray], haplotypes: int = 1) -> Layout:
    """The layout of reads from every STEP bases on, and of two shorter ones inside each.

    versions : of the genome, of every read; all are as long.
    """
    begins = [(STEP * (i % N_READS) + 50 * (i // N_READS), SIZE - 100 * (i // N_READS)) for i in range(3 * N_READS)]
    places = [(*place, one) for place, one in zip(begins, versions, strict=True)]
    return layout_of(places, AssembleParams(haplotypes=haplotypes))


def layout_of(places: list[tuple[int, int, np.ndarray]], params: AssembleParams, depth: float = np.inf) -> Layout:
    """The layout of reads that begin at some place, have so many bases, and are of some version of the genome."""
    reads = [one[at : at + n] for at, n, one in places]
    rows = []
    for q, (query, n_query, _) in enumerate(places):
        for t, (target, n_target, _) in enumerate(places[:q]):
            first, last = max(query, target), min(query + n_query, target + n_target)
            if last - first >= 1000:
                spans = first - query, last - query, first - target, last - target
                matches = (reads[q][slice(*spans[:2])] == reads[t][slice(*spans[2:])]).sum()
                rows.append((q, t, *spans, matches, last - first))
    query, target, *spans, matches, columns = np.ascontiguousarray(np.array(rows, np.int32).T)
    none, strand = np.zeros_like(query), np.ones(len(query), np.int8)
    overlaps = Overlaps(query, target, strand, *spans, none, none, matches, columns, *[none] * 7)
    names = [str(i) for i in range(len(reads))]
    return lay_out(ReadSet.from_codes(reads, names), overlaps, params, exact=True, depth=depth)


def longest(layout: Layout) -> int:
    """Bases of the longest unitig."""
    return max(sum(unitig.steps) for unitig in layout.unitigs)


def test_a_read_with_errors_is_inside_another_though_some_of_its_overlaps_are_good():
    """Of reads with the same sequence only others of that sequence contain it."""
    wrong = differing(GENOME, np.arange(8000, 8060))
    inner = N_READS + 17  # inside read 17, from 6,850 to 11,750
    layout = laid_out([wrong if i == inner else GENOME for i in range(3 * N_READS)])
    assert layout.inside[inner] and layout.graph.n_forks == 0 and longest(layout) > len(GENOME) - 2000
    of_copy = range(N_READS + 10, N_READS + 20), range(2 * N_READS + 10, 2 * N_READS + 20)  # ten reads, and one inside each
    layout = laid_out([wrong if any(i in some for some in of_copy) else GENOME for i in range(3 * N_READS)], haplotypes=2)
    assert not layout.inside[inner]


def test_reads_that_correction_has_left_wrong_make_one_contig():
    """Half of the reads have 400 wrong bases in a row, and all have .6 % elsewhere: such overlaps are usual."""
    rng, versions = np.random.default_rng(1), []
    for i in range(3 * N_READS):
        wrong = rng.random(len(GENOME)) < 0.006
        if rng.random() < 0.5:
            wrong[STEP * (i % N_READS) + rng.integers(1000, 4000) :][:400] = True
        versions.append(differing(GENOME, np.flatnonzero(wrong)))
    layout = laid_out(versions)
    assert layout.graph.n_forks == 0 and len(layout.unitigs) == 1 and longest(layout) > len(GENOME) - 2000


@pytest.mark.parametrize(
    ("errors", "depth", "params", "min_depth"),
    [
        (0, 24, {}, 3), (0, 23.9, {}, 2), (0.002, 16, {}, 2), (0, 15.9, {}, 1), (0, 2, {}, 1), (0.008, 10, {}, 3),
        (0, 10, {"min_depth": 3}, 3), (0.008, 30, {"min_depth": 2}, 2),
    ],
)  # fmt: skip
def test_three_reads_are_enough_to_go_on_where_reads_are_right(errors, depth, params, min_depth):
    """Three of them span base 10,000; two reads differ by twice the errors."""
    rng = np.random.default_rng(2)
    begins = [*range(0, 5000, STEP), 6000, 7600, 9200, *range(10_200, 15_001, STEP)]
    versions = [differing(GENOME, np.flatnonzero(rng.random(len(GENOME)) < errors)) for _ in begins]
    places = [(at, SIZE, one) for at, one in zip(begins, versions, strict=True)]
    layout = layout_of(places, AssembleParams(**params), depth)
    assert layout.min_depth == min_depth
    assert len(layout.unitigs) == (2 if min_depth == 3 else 1)


def test_haplotypes_that_are_nearly_alike_are_one_unless_two_are_asked_for():
    """Half of the reads have another base every 150 bases, from 8,000 to 12,000."""
    other = differing(GENOME, np.arange(8000, 12_000, 150))
    versions = [other if i % 2 else GENOME for i in range(3 * N_READS)]
    one, two = laid_out(versions), laid_out(versions, haplotypes=2)
    assert one.graph.n_forks == 0 and longest(one) > len(GENOME) - 2000
    assert two.graph.n_forks == 2


def test_haplotypes_that_differ_by_less_than_overlaps_usually_may_are_told_apart():
    """They have another base every 400 bases; overlaps of up to 4,600 bases may differ by as much."""
    other = differing(GENOME, np.arange(0, len(GENOME), 400))
    begins = [(STEP * i + inner, SIZE - 2 * inner) for i in range(N_READS) for inner in (0, 50, 100)]
    places = [(*place, one) for place in begins for one in (GENOME, other)]
    two = layout_of(places, AssembleParams(haplotypes=2, min_depth=1))
    assert two.graph.n_forks == 0 and len(two.unitigs) == 2
    assert all(sum(unitig.steps) > len(GENOME) - 2000 for unitig in two.unitigs)


@pytest.mark.parametrize("apart", [0.001, 0.002, None])
def test_what_correction_has_left_is_not_of_haplotypes(apart):
    rng = np.random.default_rng(6)
    left = rng.geometric(0.3, 1000) * (rng.random(1000) < 0.2)
    of_others = np.zeros(0, np.int64) if apart is None else rng.poisson(10_000 * apart, 1000)
    wrong = np.concatenate([left, of_others])
    columns, none = np.full(len(wrong), 10_000), np.zeros(len(wrong), np.int64)
    hits = Hits(none, none + 1, none > 0, none, columns, none, columns, columns - wrong, columns, none + FEW)
    lower = its_module._lower_limits(hits, LEAST)
    assert [some.few[0] for some, _ in lower] == ([] if apart is None else [0, FEW, FEW, FEW, FEW])


@pytest.mark.parametrize(("poor", "joins"), [(7000, True), (1000, False)])
def test_an_overlap_within_a_repeat_makes_room_for_a_longer_poor_one(poor, joins):
    """Reads leave a repeat for their own copy, and overlap another copy's reads a little, which a dead end overlaps more."""
    size, n = 10_000, JOINED
    ends, begins = [2 * (n * chain + n - 1) for chain in range(4)], [2 * n * chain for chain in range(4)]

    def both(arcs: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
        """With their complements, by bases of overlap."""
        return {arc: size - n for (v, w), n in arcs.items() for arc in ((v, w), (w ^ 1, v ^ 1))}

    arcs = {(2 * i, 2 * (i + 1)): 6000 for i in range(4 * n) if i % n < n - 1}
    reads, false, true = np.full(4 * n, size), (ends[0], begins[1]), (ends[3], begins[1])
    graph = graph_of(both(arcs | {(ends[0], begins[2]): 8000, false: 1500}), reads)
    spare = graph_of(both({true: poor}), reads).arcs
    assert its_module._join_ends(graph, spare, np.ones(4 * n, bool)) == joins
    assert (true in arcs_of(graph)) == joins and (false in arcs_of(graph)) != joins
