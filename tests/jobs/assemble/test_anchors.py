"""Joints that are not sure: within repeats, and where a read's end repeats its beginning."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import graph_of

from bellapy.jobs.assemble.anchors import find_unsure
from bellapy.jobs.assemble.contigs import Contig
from bellapy.jobs.assemble.hits import LEAST
from bellapy.jobs.assemble.turns import find_turns
from bellapy.jobs.assemble.words import find_alone
from bellapy.records.bases import reversed_codes


def random_codes(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, n).astype(np.uint8)


REPEAT, ONE, TWO, OTHER = random_codes(1, 5000), random_codes(2, 4000), random_codes(3, 4000), random_codes(4, 4000)
ELSEWHERE = Contig(np.concatenate([REPEAT, OTHER]), False, (20,))


def chain(*reads: tuple[int, int], circle: int = 0):
    """The graph of reads 0, 1, ... that lie at some places, one after another; circle : bases of a turn."""
    n = len(reads)
    arcs = {(2 * i, 2 * i + 2): reads[i + 1][0] - reads[i][0] for i in range(n - 1)}
    if circle:
        arcs[2 * n - 2, 0] = reads[0][0] + circle - reads[-1][0]
    arcs |= {(w ^ 1, v ^ 1): length for (v, w), length in arcs.items()}
    return graph_of(arcs, np.array([end - start for start, end in reads] + [5000] * (11 - n)))


def ends_of(contig: Contig, graph) -> set[tuple[int, int]]:
    """The arcs along the contig at which it has to end, by reads."""
    found, lines = find_unsure([contig, ELSEWHERE], graph)
    assert not lines
    pairs = {(int(v), int(w)) for v, w in zip(graph.arcs.source[found], graph.arcs.target[found], strict=True)}
    assert pairs == {(w ^ 1, v ^ 1) for v, w in pairs}
    return {(v >> 1, w >> 1) for v, w in pairs if v % 2 == 0}


def test_an_overlap_within_a_repeat_joins_nothing():
    """The repeat stands at 4,000 to 9,000, and in another contig."""
    contig = Contig(np.concatenate([ONE, REPEAT, TWO]), False, (0, 2))
    assert ends_of(contig, chain((0, 8000), (5000, 13_000))) == {(0, 1)}
    assert ends_of(contig, chain((0, 8000), (3500, 13_000))) == set()  # 500 bases of the overlap are before the repeat
    assert ends_of(contig, chain((0, 8000), (3980, 13_000))) == {(0, 1)}  # too few to be sure


def test_fewer_words_are_enough_where_overlaps_tell_haplotypes_apart():
    """Seventy words are before the repeat; two wrong bases of the overlap may have made as many."""
    contig, graph = Contig(np.concatenate([ONE, REPEAT, TWO]), False, (0, 2)), chain((0, 8000), (3930, 13_000))
    assert find_unsure([contig, ELSEWHERE], graph)[0].all()
    assert not find_unsure([contig, ELSEWHERE], graph, LEAST)[0].any()
    graph.arcs = graph.arcs._replace(differences=graph.arcs.differences + 2)
    assert find_unsure([contig, ELSEWHERE], graph, LEAST)[0].all()


def test_an_overlap_of_two_repeats_beside_each_other_is_sure():
    """Each stands in another contig, but nowhere are they together; where one of them is all of the overlap, it is not."""
    both = np.concatenate([ONE, REPEAT[:2500], OTHER[:2500], TWO])
    elsewhere = [Contig(np.concatenate([random_codes(i, 500), some, random_codes(i + 5, 500)]), False, (2 * i,))
                 for i, some in ((8, REPEAT), (9, OTHER))]  # fmt: skip
    contig, graph = Contig(both, False, (0, 2)), chain((0, 8500), (4500, 13_000))
    assert not find_unsure([contig, *elsewhere], graph)[0].any()
    assert find_unsure([contig, *elsewhere], chain((0, 8500), (6460, 13_000)))[0].any()
    together = Contig(reversed_codes(np.concatenate([both[4000:9000], random_codes(5, 400)])), False, (16,))
    assert find_unsure([contig, together], graph)[0].all()
    on_a_circle = Contig(np.roll(together.codes, 2000), True, (16,), 400)
    assert find_unsure([contig, on_a_circle], graph)[0].any(), "it stands on both sides of where the circle is cut"


def test_an_overlap_of_units_of_an_array_is_not_sure():
    """The next place has all units but one: the genome may have more of them."""
    array = Contig(np.concatenate([ONE, np.tile(REPEAT[:1500], 4), TWO]), False, (0, 2))
    graph = chain((0, 9900), (4100, 14_000))
    assert find_unsure([array], graph)[0].all()


def test_what_is_not_aligned_does_not_make_an_overlap_sure():
    """The first read goes on for 200 bases behind the repeat, or the second one begins 200 bases before it."""
    contig = Contig(np.concatenate([ONE, REPEAT, TWO]), False, (0, 2))
    for reads, head, tail in (((0, 8000), (3800, 13_000)), 200, 0), (((0, 9200), (5000, 13_000)), 0, 200):
        graph = chain(*reads)
        assert ends_of(contig, graph) == set()
        first = graph.arcs.source == 0
        graph.arcs = graph.arcs._replace(head=np.where(first, head, tail), tail=np.where(first, tail, head))
        assert ends_of(contig, graph) == {(0, 1)}


def test_of_several_overlaps_in_a_repeat_the_first_and_the_last_one_end():
    contig = Contig(np.concatenate([ONE, REPEAT, TWO]), False, (0, 2, 4, 6))
    assert ends_of(contig, chain((0, 6000), (4500, 8000), (5000, 8500), (6500, 13_000))) == {(0, 1), (2, 3)}


def test_a_contig_does_not_go_on_into_a_repeat():
    """It might be another copy's: what is before the repeat may stand in other contigs, too."""
    contig = Contig(np.concatenate([REPEAT, ONE]), False, (0, 2, 4))
    assert ends_of(contig, chain((0, 3000), (1000, 4500), (2500, 9000))) == {(0, 1), (1, 2)}
    assert ends_of(contig._replace(reads=(0, 2)), chain((0, 6500), (4000, 9000))) == set()  # a read reaches beyond it


def test_a_circle_ends_in_its_repeat():
    contig = Contig(np.concatenate([ONE, REPEAT]), True, (0, 2))
    assert ends_of(contig, chain((0, 8000), (5000, 13_000), circle=9000)) == {(0, 1)}
    contig = Contig(np.roll(contig.codes, -5000), True, (0, 2))  # its joint is within the repeat
    assert ends_of(contig, chain((5000, 13_000), (9000, 17_000), circle=9000)) == {(1, 0)}


def test_a_line_whose_ends_are_copies_of_a_repeat_is_no_circle():
    graph = graph_of({}, np.full(11, 9000))
    circle = Contig(np.concatenate([REPEAT[:1000], ONE]), True, (4,), 1000)
    assert find_unsure([circle, ELSEWHERE], graph)[1] == [2]
    assert find_unsure([circle], graph)[1] == []


def test_a_read_without_neighbours_does_not_go_round():
    codes = np.concatenate([ONE, ONE[:2000]])
    reads, lengths = [(0, codes)], np.array([6000, 4000])
    alone, beside = graph_of({}, lengths), graph_of({(0, 2): 3000, (3, 1): 1000}, lengths)
    assert find_turns(reads, alone.arcs, lengths, 0).tolist() == [0, 0]
    assert find_turns(reads, beside.arcs, lengths, 0).tolist() == [4000, 0]
    half = np.concatenate([TWO[:2500], REPEAT[:2500], ONE, TWO[3000:], REPEAT[:2500]])  # a repeat at its end alone
    assert find_turns([(0, half)], beside.arcs, np.array([12_500, 4000]), 0).tolist() == [0, 0]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 2000])
def test_words_that_stand_alone(n, threads):
    words = np.random.default_rng(n).integers(0, 2000, n).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    alone, others = find_alone(words, threads)
    _, row, times = np.unique(words, return_inverse=True, return_counts=True)
    assert alone.tolist() == (times[row] == 1).tolist()
    assert sorted(others.tolist()) == np.flatnonzero(~alone).tolist()
    assert words[others].tolist() == sorted(words[~alone].tolist())
