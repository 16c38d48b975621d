"""Contigs: where circles begin, on which strand, what is left out, and what is closed."""

from __future__ import annotations

import math

import numpy as np
from gfa_files import GfaLink, matches_of
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import graph_of

from bellapy.io.gfa import Segment, format_fasta, format_gfa
from bellapy.jobs.assemble.contigs import (
    Contig,
    close_variants,
    leave_out_inner,
    leave_out_shallow,
    rejoin,
    settle,
    without_unaligned,
)
from bellapy.jobs.assemble.links import find_links
from bellapy.jobs.assemble.words import WORD, words_of
from bellapy.records.bases import LETTERS, reversed_codes
from bellapy.seeding.sampling import MIXER


def random_codes(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, n).astype(np.uint8)


def linear(codes: np.ndarray, *reads: int) -> Contig:
    return Contig(codes, False, reads or (0,))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(40, 400), st.integers(0, 400), st.booleans())
def test_a_circle_begins_at_the_same_place(seed, n, shift, flip):
    codes = random_codes(seed, n)
    other = np.roll(reversed_codes(codes) if flip else codes, shift)
    one, two = settle(Contig(codes, True, (0, 2))), settle(Contig(other, True, (0, 2)))
    assert np.array_equal(one.codes, two.codes)
    assert sorted(words_of(one.codes, True)) == sorted(words_of(codes, True))


def plain_word(codes: np.ndarray) -> int:
    """The number of one word, by whole numbers of any size."""
    forward, back = (int("".join(str(c & 3) for c in some), 4) for some in (codes, 3 - (codes[::-1] & 3)))
    word = min(forward, back)
    for _ in range(2):
        word = (word ^ word >> 29) * int(MIXER) % 2**64
    return word ^ word >> 32


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 100), st.booleans())
def test_words_are_those_of_the_definition(seed, n, circular):
    codes = np.random.default_rng(seed).integers(0, 5, n).astype(np.uint8)
    whole = np.concatenate([codes, np.resize(codes, WORD - 1)]) if circular else codes
    wanted = [plain_word(whole[i : i + WORD]) for i in range(len(whole) - WORD + 1)]
    assert words_of(codes, circular).tolist() == wanted


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(31, 400))
def test_both_strands_of_a_contig_become_the_same(seed, n):
    codes = random_codes(seed, n)
    one, two = settle(linear(codes, 0, 2)), settle(linear(reversed_codes(codes), 3, 1))
    assert np.array_equal(one.codes, two.codes) and one.reads == two.reads


def test_what_stands_in_another_contig_is_left_out():
    long, other = random_codes(1, 90_000), random_codes(2, 20_000)
    piece, plasmid = linear(reversed_codes(long[5000:9000])), Contig(other[:5000], True, (8,))
    haplotig = long[:80_000].copy()
    haplotig[::200] ^= 1
    contigs = [linear(long), linear(haplotig), linear(other[5000:]), plasmid, piece]
    no_arcs = graph_of({}, np.full(5, 1000))
    assert leave_out_inner(contigs, no_arcs, 1, math.inf) == [contigs[0], contigs[2], plasmid]
    assert leave_out_inner(contigs, no_arcs, 2, math.inf) == [contigs[0], contigs[1], contigs[2], plasmid]
    between = graph_of({(2, 0): 100, (1, 3): 100, (0, 4): 100, (5, 1): 100}, np.full(5, 1000))
    assert leave_out_inner(contigs, between, 2, math.inf) == contigs


def test_of_two_haplotypes_one_is_left_out_though_they_share_few_words():
    rng, long = np.random.default_rng(4), random_codes(1, 90_000)
    haplotig = (long[:80_000] + (rng.random(80_000) < 0.02)) % 4
    beyond = np.concatenate([long[60_000:], random_codes(2, 30_000)])  # shares half of its words
    contigs = [linear(long), linear(haplotig.astype(np.uint8)), linear(beyond)]
    no_arcs = graph_of({}, np.full(5, 1000))
    assert leave_out_inner(contigs, no_arcs, 1, math.inf) == contigs
    assert leave_out_inner(contigs, no_arcs, 1, 0.25) == [contigs[0], contigs[2]]


def variant_graph(own):
    """Contigs 0 .. 2 and 4 .. 6, each of which goes on at the beginning of both; own : length of the arc to its own."""
    arcs = {(0, 2): 3000, (4, 6): 3000, (2, 0): own, (2, 4): 2500, (6, 4): own, (6, 0): 2500}
    return graph_of({**arcs, **{(w ^ 1, v ^ 1): n for (v, w), n in arcs.items()}}, np.full(4, 5000))


def test_a_circle_with_a_variant_is_closed():
    circle = random_codes(3, 5000)
    variant = circle.copy()
    variant[1000:2000] = reversed_codes(circle[1000:2000])
    contigs = [linear(np.concatenate([one, one[:3000]]), *reads) for one, reads in ((circle, (0, 2)), (variant, (4, 6)))]
    (found,) = close_variants(contigs, variant_graph(2000), np.zeros(12, bool))
    assert found.circular and np.array_equal(found.codes, circle)


def test_a_variant_that_lacks_much_closes_nothing():
    """So the reads on the joint of two copies in a row would close the circle with one copy."""
    circle = random_codes(3, 5000)
    contigs = [linear(np.concatenate([circle, circle[:3000]]), 0, 2), linear(circle[:3000], 4, 6)]
    assert close_variants(contigs, variant_graph(2000), np.zeros(12, bool)) == contigs


def test_a_circle_is_kept_in_the_place_of_more_than_a_turn():
    circle, other = random_codes(7, 5000), random_codes(8, 9000)
    line, inner = linear(np.concatenate([circle, circle[:300]])), Contig(other[:4000], True, (8,))
    found = leave_out_inner(
        [linear(other), line, Contig(circle, True, (6,)), inner], graph_of({}, np.full(5, 1000)), 1, math.inf
    )
    assert [(len(one.codes), one.circular) for one in found] == [(9000, False), (5000, True)]


def test_a_piece_of_a_circle_that_errors_make_longer_than_a_turn_is_left_out():
    circle = random_codes(7, 2400)
    piece = np.insert(circle, np.arange(120, 2400, 120), 0)
    contigs = [linear(piece), Contig(circle, True, (6,)), linear(random_codes(8, 2300))]
    assert len(piece) > len(circle)
    assert leave_out_inner(contigs, graph_of({}, np.full(5, 1000)), 1, math.inf) == contigs[1:]


def test_contigs_are_joined_again_where_they_had_to_end():
    """Three pieces, one of which is turned; with one arc more they are a circle."""
    codes = random_codes(5, 9000)
    line = {(0, 2): 2000, (2, 4): 2000}
    pieces = [linear(codes[:4000], 0), Contig(reversed_codes(codes[2000:7000]), False, (3,)), linear(codes[4000:], 4)]
    other = Contig(random_codes(6, 3000), True, (8, 10))
    for more in ({}, {(4, 0): 4000}):
        arcs = {**line, **more}
        lengths = np.array([4000, 5000, 5000, 1000, 2000, 2000])
        graph = graph_of(
            {**arcs, **{(w ^ 1, v ^ 1): lengths[w >> 1] - lengths[v >> 1] + n for (v, w), n in arcs.items()}}, lengths
        )
        circle, *lines = sorted(rejoin([*pieces, other], graph, np.ones(len(graph), bool)), key=lambda one: len(one.codes))
        assert circle == other
        (found,) = lines
        expected = Contig(codes[:8000] if more else codes, bool(more), (0, 2, 4))
        assert found.circular == expected.circular and len(found.reads) == 3
        assert np.array_equal(settle(found).codes, settle(expected).codes)
    assert len(rejoin([*pieces, other], graph, np.zeros(len(graph), bool))) == 4


def test_contigs_end_without_what_is_aligned_to_no_read_behind():
    codes, lengths = random_codes(5, 4000), np.full(3, 4000)
    graph = graph_of({(0, 2): 1000, (3, 1): 1000, (4, 0): 500, (1, 5): 500}, lengths)
    graph.arcs = graph.arcs._replace(tail=np.where(graph.arcs.source == 0, 30, np.where(graph.arcs.source == 1, 12, 0)))
    assert np.array_equal(without_unaligned(linear(codes, 0), graph).codes, codes[12:-30])
    assert np.array_equal(without_unaligned(linear(codes, 2), graph).codes, codes)
    assert np.array_equal(without_unaligned(Contig(codes, True, (0,)), graph).codes, codes)
    ends = [without_unaligned(linear(codes, 0), graph), linear(np.concatenate([codes[1000:], random_codes(6, 1000)]), 2)]
    assert [link.cigar for link in find_links(ends, graph)] == ["2970M"]


def test_ends_in_the_same_repeat_are_linked():
    """No overlap of reads tells of it."""
    repeat = random_codes(9, 4000)
    near = np.delete(repeat, 2000)
    parts = [
        np.concatenate([random_codes(10, 3000), repeat[:2500]]),
        np.concatenate([repeat[1500:], random_codes(11, 3000)]),
    ]
    parts += [reversed_codes(np.concatenate([random_codes(12, 3000), near[:2999]])), random_codes(13, 3000)]
    contigs = [linear(codes, 4 * i, 4 * i + 2) for i, codes in enumerate(parts)]
    links = {link[:4]: link.cigar for link in find_links(contigs, graph_of({}, np.full(8, 1000)))}
    assert set(links) == {(0, False, 1, False), (1, True, 2, False)}
    segments = {str(i): LETTERS[codes].tobytes().decode() for i, codes in enumerate(parts)}
    assert links[0, False, 1, False] == "1000M"
    one = GfaLink("1", "-", "2", "+", links[1, True, 2, False])
    equal, columns = matches_of(one, segments)
    assert equal >= 1498 and columns <= 1502


def test_two_ways_between_repeats_stay_open_and_linked():
    """Both contigs may be circles of their own, or one after the other: no read tells."""
    repeat = random_codes(4, 2500)
    contigs = [linear(np.concatenate([repeat, random_codes(i, 4000), repeat]), 4 * i, 4 * i + 2) for i in (0, 1)]
    found = close_variants(contigs, variant_graph(2500), np.zeros(12, bool))
    assert found == contigs
    links = find_links(found, variant_graph(2500))
    ends = {(one.source, one.source_turned, one.target, one.target_turned) for one in links}
    assert ends == {(0, False, 0, False), (0, False, 1, False), (1, False, 0, False), (1, False, 1, False)}
    assert {one.cigar for one in links} == {"2500M"}


def test_files():
    circle, line = random_codes(5, 50), random_codes(6, 40)
    segments = [Segment("contig_1", circle, True, 30.5, 1.0), Segment("contig_2", line, False, 61.0, 2.0)]
    text = b"".join(format_fasta(segments)).decode().splitlines()
    assert text[0] == ">contig_1 length=50 circular=true depth=1.00x"
    assert text[2] == ">contig_2 length=40 circular=false depth=2.00x"
    lines = b"".join(format_gfa(segments, [])).decode().splitlines()
    assert lines[0] == "H\tVN:Z:1.2" and lines[-1] == "L\tcontig_1\t+\tcontig_1\t+\t0M"
    assert lines[1].split("\t")[3:] == ["LN:i:50", "dp:f:30.50", "KC:i:1525"]


def test_contigs_with_few_reads_are_left_out_and_their_reads_are_of_no_contig():
    depth, homes = np.array([30.0, 2.9, 3.0, 0.0]), np.array([0, 1, 2, 3, -1, 2])
    kept, found = leave_out_shallow(depth, homes, 3)
    assert kept.tolist() == [0, 2] and found.tolist() == [0, -1, 1, -1, -1, 1]
    kept, found = leave_out_shallow(depth, homes, 40)
    assert kept.tolist() == [] and found.tolist() == [-1] * 6
