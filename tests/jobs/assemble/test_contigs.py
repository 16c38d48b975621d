"""Contigs: where circles begin, on which strand, what is left out, and what is closed."""

from __future__ import annotations

import numpy as np
from gfa_files import GfaLink, matches_of
from hypothesis import given, settings
from hypothesis import strategies as st
from layouts import graph_of

from bellapy.io.gfa import Segment, format_fasta, format_gfa
from bellapy.jobs.assemble.contigs import Contig, close_variants, leave_out_inner, settle, words_of
from bellapy.jobs.assemble.links import find_links
from bellapy.records.bases import LETTERS, reversed_codes


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
    assert leave_out_inner(contigs, no_arcs, 1) == [contigs[0], contigs[2], plasmid]
    assert leave_out_inner(contigs, no_arcs, 2) == [contigs[0], contigs[1], contigs[2], plasmid]
    between = graph_of({(2, 0): 100, (1, 3): 100, (0, 4): 100, (5, 1): 100}, np.full(5, 1000))
    assert leave_out_inner(contigs, between, 2) == contigs


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
    found = leave_out_inner([linear(other), line, Contig(circle, True, (6,)), inner], graph_of({}, np.full(5, 1000)), 1)
    assert [(len(one.codes), one.circular) for one in found] == [(9000, False), (5000, True)]


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
