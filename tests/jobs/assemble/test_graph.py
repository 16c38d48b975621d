"""Every step on the graph beside its definition: reduction, tips, bubbles, weak arcs, unitigs."""

from __future__ import annotations

import naive_graph as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import arcs_of, graph_of, layout

from bellapy.jobs.assemble import clean
from bellapy.jobs.assemble.reduction import find_transitive, reduce_graph
from bellapy.jobs.assemble.unitigs import find_unitigs

LENGTHS = st.integers(1, 900)


def mirrored(arcs: dict) -> dict:
    """Arcs with their complements; a read has 1,000 bases."""
    return {**arcs, **{(w ^ 1, v ^ 1): n for (v, w), n in arcs.items()}}


def inner_of(n_inside: list[int]) -> clean.Inner:
    """So many reads inside each read, and inside no other one."""
    outer = np.repeat(np.arange(len(n_inside)), n_inside)
    n = len(n_inside) + len(outer)
    return clean.Inner(np.arange(len(n_inside), n), outer, n)


def never(others, way) -> bool:
    """No vertices spell the same."""
    return False


@st.composite
def any_graph(draw):
    """A graph of few reads with any arcs, as no layout has them."""
    n = draw(st.integers(2, 7))
    vertices = st.integers(0, 2 * n - 1)
    arcs = draw(st.dictionaries(st.tuples(vertices, vertices), LENGTHS, max_size=20))
    return n, mirrored({(v, w): length for (v, w), length in arcs.items() if v >> 1 != w >> 1})


@settings(max_examples=200, deadline=None)
@given(any_graph(), st.integers(0, 300))
def test_transitive_arcs_of_any_graph(given, fuzz):
    n, arcs = given
    graph = graph_of(arcs, np.full(n, 1000))
    marked = find_transitive(graph, fuzz)
    assert {arc for arc, gone in zip(arcs_of(graph), marked, strict=True) if gone} == naive.transitive(arcs, fuzz)
    reduce_graph(graph, fuzz)
    assert arcs_of(graph) == naive.reduced(arcs, fuzz)


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("jitter", [0, 30])
def test_a_layout_is_reduced_to_one_path(circular, jitter):
    for seed in range(10):
        graph = layout(seed, 40, 20_000, circular=circular, jitter=jitter)
        expected = naive.reduced(arcs_of(graph), 100)
        reduce_graph(graph, 100)
        assert arcs_of(graph) == expected
        if not jitter:
            assert graph.n_forks == 0


@settings(max_examples=200, deadline=None)
@given(any_graph())
def test_unitigs_of_any_graph(given):
    n, arcs = given
    graph = graph_of(arcs, np.full(n, 1000))
    found = find_unitigs(graph, np.ones(n, bool))
    assert {(frozenset(v >> 1 for v in one.path), one.circular) for one in found} == naive.unitigs(set(arcs), n)
    assert sorted(v >> 1 for one in found for v in one.path) == list(range(n))
    for one in found:
        steps = [*one.path, one.path[0]] if one.circular else one.path
        assert [arcs[arc] for arc in zip(steps[:-1], steps[1:], strict=True)] == one.steps[: len(steps) - 1]


@settings(max_examples=300, deadline=None)
@given(any_graph())
def test_bubbles_of_any_graph(given):
    n, arcs = given
    graph = graph_of(arcs, np.full(n, 1000))
    for source in range(2 * n):
        if graph.degrees[source] < 2:
            continue
        found = clean.find_bubble(graph, source)
        inner = {sink: naive.is_bubble(set(arcs), source, sink) for sink in range(2 * n)}
        inner = {
            sink: some for sink, some in inner.items() if some and not any((v ^ 1) in some | {source, sink} for v in some)
        }
        if found is None:
            assert not {sink for sink in inner if sink ^ 1 != source}
            continue
        others, way, *_ = found
        assert way[0] == source and all(arc in arcs for arc in zip(way[:-1], way[1:], strict=True))
        assert set(others) | set(way[1:-1]) == inner[way[-1]]


@pytest.mark.parametrize("step", [100, 30_000])
def test_a_bubble_keeps_the_way_of_long_overlaps(step):
    """Also of reads so long that a way of one read is longer than other bubbles."""
    arcs = mirrored({(0, 2): step, (2, 6): step, (0, 4): step + 200, (4, 6): step + 200, (8, 0): 10, (6, 10): 10})
    graph = graph_of(arcs, np.full(6, 900 + step))
    assert clean.pop_bubbles(graph, inner_of([0] * 6), never) == 1
    assert set(arcs_of(graph)) == set(mirrored({(0, 2): 1, (2, 6): 1, (8, 0): 1, (6, 10): 1}))


def test_ways_of_different_lengths_stay():
    """They go through different numbers of copies of a repeat."""
    arcs = mirrored({(0, 2): 100, (2, 6): 900, (0, 6): 200, (8, 0): 10, (6, 10): 10})
    graph = graph_of(arcs, np.full(6, 2000))
    assert clean.find_bubble(graph, 0)[2:] == (1000, 800)
    assert clean.pop_bubbles(graph, inner_of([0] * 6), never, errors=0.7) == 0 and arcs_of(graph) == arcs
    assert clean.pop_bubbles(graph, inner_of([0] * 6), never, errors=0.8) == 1, "reads may differ by as much"


def test_of_two_reads_between_the_same_two_one_goes_though_another_way_leads_on():
    """2 and 4 lie between 0 and the dead end 6; behind 0, 8 leads on."""
    beside = {(0, 8): 250, **{(8 + 2 * i, 10 + 2 * i): 250 for i in range(5)}}
    arcs = mirrored({(0, 2): 100, (2, 6): 300, (0, 4): 100, (4, 6): 350, **beside})
    graph, few, many = graph_of(arcs, np.full(10, 1000)), inner_of([0] * 10), inner_of([5] * 10)
    assert clean.find_bubble(graph, 0) is None
    assert clean.drop_tips(graph, few, never) == 0
    assert clean.drop_parallel(graph, many, never) == 0
    assert clean.drop_parallel(graph, many, lambda others, way: (others, way) == ([4], [0, 2, 6])) == 1, "they are alike"
    assert arcs_of(graph) == mirrored({(0, 2): 100, (2, 6): 300, **beside})
    assert clean.drop_tips(graph, few, never) == 2
    assert arcs_of(graph) == mirrored(beside)


def test_of_a_circle_about_as_long_as_its_reads_one_way_stays():
    """One turn has 3,000 bases: of three reads of 2,900, or of one of them and a short one, 6 or 8, which tells the same."""
    turn = {(0, 2): 900, (2, 4): 1100, (4, 0): 1000}
    arcs = mirrored({**turn, (0, 6): 2100, (6, 0): 910, (2, 8): 2000, (8, 2): 1010})
    graph, many = graph_of(arcs, np.array([2900, 2900, 2900, 1400, 1700])), inner_of([5] * 5)
    assert clean.pop_bubbles(graph, many, never) == 0
    assert clean.drop_parallel(graph, many, lambda others, way: len(way) == 4) == 2
    assert arcs_of(graph) == mirrored(turn)
    assert [one.circular for one in find_unitigs(graph, np.array([True] * 3 + [False] * 2))] == [True]


@pytest.mark.parametrize("change", [{(4, 0): 1600}, {(6, 0): 1600}, {(0, 2): 300, (2, 4): 400, (4, 0): 2300}])
def test_of_a_circle_other_ways_stay(change):
    """They are longer, or shorter; or an overlap is shorter than those of the other way."""
    arcs = mirrored({(0, 2): 900, (2, 4): 1100, (4, 0): 1000, (0, 6): 2100, (6, 0): 910} | change)
    graph = graph_of(arcs, np.full(4, 2900))
    assert clean.drop_parallel(graph, inner_of([0] * 4), never) == 0 and arcs_of(graph) == arcs


def test_reads_between_the_same_two_over_different_lengths_stay():
    arcs = mirrored({(0, 2): 100, (2, 6): 300, (0, 4): 400, (4, 6): 600, (0, 8): 250, (8, 10): 250})
    graph = graph_of(arcs, np.full(6, 2000))
    assert clean.drop_parallel(graph, inner_of([0] * 6), never) == 0 and arcs_of(graph) == arcs


def test_tips_go_one_after_another():
    """Of two dead ends at a fork the shorter one goes, and the other stays."""
    arcs = mirrored({(0, 2): 100, (2, 4): 100, (4, 6): 100, (4, 8): 200, (6, 10): 400, (10, 12): 400})
    graph = graph_of(arcs, np.full(7, 1000))
    assert clean.drop_tips(graph, inner_of([0] * 7), never) == 1
    assert set(arcs_of(graph)) == set(mirrored({(0, 2): 1, (2, 4): 1, (4, 6): 1, (6, 10): 1, (10, 12): 1}))


def test_a_long_dead_end_stays():
    chain = {(2 * i, 2 * i + 2): 100 for i in range(12)}
    arcs = mirrored({**chain, (12, 30): 100, **{(28 + 2 * i, 30 + 2 * i): 100 for i in range(1, 7)}})
    graph, none = graph_of(arcs, np.full(24, 1000)), inner_of([0] * 24)
    assert clean.drop_tips(graph, none, never) == 0 and arcs_of(graph) == arcs
    assert clean.drop_tips(graph, none, never, long_ends=True) == 0 and arcs_of(graph) == arcs
    assert clean.drop_tips(graph, none, lambda *_: True) == 0 and arcs_of(graph) == arcs
    assert clean.drop_tips(graph, none, lambda *_: True, long_ends=True) == 6, "it is what another haplotype has there"


def test_a_long_bubble_goes_where_haplotypes_make_it():
    """Few reads show its ways, which are 60 kb long; that is enough only where reads are so long that no way is long."""
    arcs = mirrored({(0, 2): 30_000, (2, 6): 30_000, (0, 4): 30_200, (4, 6): 30_200, (8, 0): 10, (6, 10): 10})
    graph, few = graph_of(arcs, np.full(6, 10_000)), inner_of([0] * 6)
    assert clean.pop_bubbles(graph, few, never, long_ways=True) == 0
    assert clean.pop_bubbles(graph, few, lambda *_: True) == 0 and arcs_of(graph) == arcs
    assert clean.pop_bubbles(graph, few, lambda *_: True, long_ways=True) == 1
    assert clean.pop_bubbles(graph_of(arcs, np.full(6, 31_000)), few, never, long_ways=True) == 1


def test_what_many_reads_show_stays():
    many = inner_of([5] * 7)
    arcs = mirrored({(0, 2): 100, (2, 4): 100, (4, 6): 100, (4, 8): 200, (6, 10): 400, (10, 12): 400})
    graph = graph_of(arcs, np.full(7, 1000))
    assert clean.drop_tips(graph, many, never) == 0 and arcs_of(graph) == arcs
    arcs = mirrored({(0, 2): 100, (2, 6): 100, (0, 4): 300, (4, 6): 300, (8, 0): 10, (6, 10): 10})
    graph = graph_of(arcs, np.full(6, 1000))
    assert clean.pop_bubbles(graph, many, never) == 0 and arcs_of(graph) == arcs
    assert clean.pop_bubbles(graph, many, lambda others, way: (others, way) == ([4], [0, 2, 6])) == 1, "the ways are alike"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(5, 12), st.integers(0, 4)), max_size=30), st.sets(st.integers(0, 4), min_size=1))
def test_reads_that_only_some_contain(pairs, some):
    inner = clean.Inner(*(np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1)), 13)
    outer = {read: {o for i, o in pairs if i == read} for read, _ in pairs}
    assert inner.only_in(some) == sum(its <= some for its in outer.values())
    assert inner.n_inside.tolist() == [sum(read in its for its in outer.values()) for read in range(13)]


def test_what_the_way_on_explains_does_not_show_a_tip():
    """The reads inside the dead end lie inside the read beside it, too."""
    arcs = mirrored({(0, 2): 100, (2, 4): 100, (4, 6): 100, (4, 8): 200, (6, 10): 400, (10, 12): 400})
    graph, outer = graph_of(arcs, np.full(7, 1000)), np.repeat(np.arange(7), 5)
    inner, n = np.arange(7, 42), 42
    assert clean.drop_tips(graph, clean.Inner(inner, outer, n), never) == 0
    of_tip = inner[outer == 4]
    beside = clean.Inner(np.concatenate([inner, of_tip]), np.concatenate([outer, np.full(5, 3)]), n)
    assert clean.drop_tips(graph, beside, never) == 1 and (4, 8) not in arcs_of(graph)


def test_a_rare_way_beside_a_common_one_goes():
    """Five reads inside show it, and 40 the other way."""
    arcs = mirrored({(0, 2): 100, (2, 6): 100, (0, 4): 300, (4, 6): 300, (8, 0): 10, (6, 10): 10})
    graph = graph_of(arcs, np.full(6, 1000))
    assert clean.pop_bubbles(graph, inner_of([5, 40, 10, 5, 5, 5]), never) == 0
    assert clean.pop_bubbles(graph, inner_of([5, 40, 5, 5, 5, 5]), never) == 1
    assert (0, 4) not in arcs_of(graph)


def test_reads_of_two_copies_are_parted_where_others_span_the_repeat():
    """0 and 4 come in, 8 and 12 go out; 2 and 6 span it, and 0 -> 12, 4 -> 8 are arcs within the repeat only."""
    right = {(0, 2): 200, (2, 8): 200, (4, 6): 200, (6, 12): 200}
    graph = graph_of(mirrored({**right, (0, 12): 600, (4, 8): 600}), np.full(7, 1000))
    assert clean.drop_weak(graph) == 4
    assert arcs_of(graph) == mirrored(right)


def test_the_end_of_a_chromosome_stays_beside_an_overlap_within_a_repeat():
    """4 is the last read; 6 lies on another chromosome, and overlaps 2 by less than both overlap reads of their own."""
    right = {(0, 2): 200, (2, 4): 200, (8, 6): 200, (6, 10): 200}
    graph = graph_of(mirrored({**right, (2, 6): 700}), np.full(6, 1000))
    assert clean.clean_graph(graph, inner_of([0] * 6), never) == (0, 0, 2)
    assert arcs_of(graph) == mirrored(right)


def test_a_crossing_stays():
    """No read spans the repeat: longer overlaps do not tell which way is right."""
    arcs = mirrored({(0, 4): 100, (0, 6): 300, (2, 4): 200, (2, 6): 400})
    graph = graph_of(arcs, np.full(4, 1000))
    assert clean.drop_weak(graph) == 0 and arcs_of(graph) == arcs


def test_a_crossing_keeps_no_arcs_of_a_copy_that_a_read_spans():
    """No read spans the copies 0 -> 4 and 2 -> 6; 8 -> 10 -> 12 spans a third one."""
    crossing = {(0, 4): 500, (0, 6): 600, (2, 4): 550, (2, 6): 650}
    spanned = {(8, 10): 200, (10, 12): 200}
    within = {(8, 4): 700, (8, 6): 700, (0, 12): 700, (2, 12): 700}
    graph = graph_of(mirrored(crossing | spanned | within), np.full(7, 1000))
    assert clean.drop_weak(graph) == 2 * len(within)
    assert arcs_of(graph) == mirrored(crossing | spanned)


def test_the_only_way_out_of_a_read_stays():
    """Both reads of an overlap have different numbers of bases in it: an arc and its complement are judged alike."""
    arcs = {(0, 2): 100, (3, 1): 105, (4, 2): 102, (3, 5): 101}
    graph = graph_of(arcs, np.full(3, 1000))
    assert sorted(graph.shared.tolist()) == [895, 895, 898, 898]
    assert clean.drop_weak(graph) == 0 and arcs_of(graph) == arcs


def test_bases_that_are_aligned_to_nothing_behind():
    """Of two arcs the one that leaves fewer of them counts."""
    graph = graph_of(mirrored({(0, 2): 200, (0, 4): 300}), np.full(3, 1000))
    graph.arcs = graph.arcs._replace(tail=np.where(graph.arcs.source == 0, graph.arcs.length - 180, 7))
    assert [graph.unaligned(v) for v in range(6)] == [20, 0, 0, 7, 0, 7]
