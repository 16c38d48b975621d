"""Anchors and chains made on a GPU are the CPU's; on a GPU if there is one, else in Numba's simulator."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import make_reads, mutate, random_bases

from bellapy.compute.gpu.devices import known_gpus
from bellapy.errors import DeviceError
from bellapy.seeding.anchors import Layout, find_anchors, layout_for
from bellapy.seeding.chain import ChainRule, find_chains, penalties
from bellapy.seeding.index import build_index

try:
    known_gpus()
except DeviceError as error:
    pytest.skip(f"no GPU: {error}", allow_module_level=True)

from bellapy.compute.gpu.desk import desk
from bellapy.compute.gpu.ops import SIMULATED
from bellapy.report.run_report import Devices
from bellapy.seeding.gpu.anchors import Sorted, anchors_on_gpu
from bellapy.seeding.gpu.chain import chains_on_gpu
from bellapy.seeding.gpu.index import send_index
from bellapy.seeding.gpu.minimizers import send_planes

pytestmark = pytest.mark.usefixtures("quick_threads")


def packed(reads: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of reads, each followed by its reverse complement, and where they begin, as `pack_both_ways` gives them."""
    codes = ["ACGTN".index(base) for read in reads for base in read + naive.reverse_complement(read)]
    lengths = np.array([len(read) for read in reads])
    return np.array(codes, np.uint8), 2 * (np.cumsum(lengths) - lengths), lengths


def some_reads(rng, k, window):
    """A reference of sequences with repeats, and reads: of both strands, of a repeat, too short, with one anchor."""
    n = 26 if SIMULATED else 4000
    unit = random_bases(rng, n // 2)
    one = random_bases(rng, n) + unit + mutate(rng, unit, 0.05) + unit
    two = unit + "N" + random_bases(rng, n)
    reads = [mutate(rng, one, 0.05), naive.reverse_complement(mutate(rng, two, 0.1)), unit * 2, "ACGT"]
    few = random_bases(rng, n) + one[: k + window - 1] + random_bases(rng, n)  # an anchor, but no chain
    return make_reads([one, two]), [*reads, few, one[: n // 4] + two[n // 4 :]]


@pytest.mark.parametrize("k, window", [(5, 3)] if SIMULATED else [(5, 2), (15, 10), (19, 19)])
def test_anchors_and_chains_are_the_cpus(rng, k, window):
    reference, reads = some_reads(rng, k, window)
    index, (codes, at, lengths) = build_index(reference, k, window), packed(reads)
    layout, costs = layout_for(lengths.max(), len(index.codes)), penalties(k, 500)
    rule = ChainRule(100 if SIMULATED else 5000, 500, min_anchors=2, min_score=2 * k)
    anchors, repeated = find_anchors(index.lookup, k, window, codes, at, lengths, layout)
    anchors.sort()
    chains, chained = find_chains(anchors, layout, k, rule, costs, index.starts)
    with desk(Devices()) as here:
        planes = send_planes(here, codes, 1)
        found = anchors_on_gpu(here, send_index(here, index, 1), k, window, planes, at, lengths, layout)
        assert_array_equal(here.fetch(found.anchors), anchors)
        assert_array_equal(found.repeated, repeated)
        there = chains_on_gpu(here, found, layout, k, rule, costs, index.starts)
    assert_array_equal(np.stack(there.chains), np.stack(chains))
    assert_array_equal(there.anchors, chained)
    alone = ~np.isin((anchors >> np.uint64(layout.q_bits + layout.place_bits + 1)).astype(np.int64), chains.read)
    assert_array_equal(there.lonely, anchors[alone])
    assert len(chained) and alone.any() == (SIMULATED or k > 5)  # the shortest k-mers make chains of anything


@pytest.mark.parametrize("max_skips, max_tried", [(1, 3), (2, 20), (25, 5000)])
def test_anchors_that_many_chains_could_take(rng, max_skips, max_tried):
    """Crowded anchors: most predecessors are tried in vain, and searches end early, within a warp's lanes or beyond."""
    n, layout = (90, Layout(6, 18)) if SIMULATED else (20_000, Layout(12, 18))
    places, reads = rng.integers(0, n // 2, n), rng.integers(0, 3, n)
    queries, strands = rng.integers(0, n // 4 if SIMULATED else 4000, n), rng.integers(0, 2, n)
    words = ((reads << 1 | strands) << layout.place_bits | places) << layout.q_bits | queries
    anchors = np.unique(words.astype(np.uint64))
    rule = ChainRule(12 if SIMULATED else 300, 9, max_skips, max_tried, 2, 8)
    starts, costs = np.array([0, n // 8, n // 7]), penalties(4, 9)
    chains, chained = find_chains(anchors, layout, 4, rule, costs, starts)
    with desk(Devices()) as here:
        found = Sorted(here.send(anchors), 4, np.zeros(4, np.int64))
        there = chains_on_gpu(here, found, layout, 4, rule, costs, starts)
    assert_array_equal(np.stack(there.chains), np.stack(chains))
    assert_array_equal(there.anchors, chained)
    assert len(chains.read) > 5
