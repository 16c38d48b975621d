"""Anchors: their order, those left out in repeats, those close to the ends of alignments."""

from __future__ import annotations

import numpy as np
from strategies import mutate, random_bases

from bellapy.jobs.wga import gapped
from bellapy.jobs.wga.gapped import Aligner, Anchors, Spanned, are_close, joined
from bellapy.jobs.wga.kept import Part
from bellapy.params.wga import make_wga_params
from bellapy.records.bases import encode
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE


def test_anchors_are_left_out_where_both_sequences_are_spanned():
    spanned = Spanned(np.zeros(100, np.uint8), np.zeros(100, np.uint8))
    runs = np.array([(PAIR, 10), (TARGET_ALONE, 5), (PAIR, 10)], np.int64)
    assert not spanned.leaves_out(30, 50)
    spanned.add(Part(9000, 20, 40, runs))
    assert spanned.leaves_out(20, 40) and spanned.leaves_out(44, 59) and spanned.n_left_out == 2
    assert not spanned.leaves_out(45, 59) and not spanned.leaves_out(44, 60) and not spanned.leaves_out(19, 40)


def test_copies_of_a_repeat_are_extended_a_few_times_only():
    """All pairs of copies have an anchor; with all copies asked for, all are extended."""
    rng = np.random.default_rng(1)
    repeat = random_bases(rng, 300)
    target, query = (encode("".join(random_bases(rng, 200) + mutate(rng, repeat, 0.03) for _ in range(6))) for _ in range(2))
    places = [(500 * x + 300, 500 * y + 300) for x in range(6) for y in range(6)]
    anchors = Anchors(*np.array([(t, q, 3000 + t + q) for t, q in places], np.int64).T)
    some, every = (Aligner(make_wga_params({"ydrop": 4000, "all_copies": copies})) for copies in (False, True))
    fewer, all_of_them = some.align(target, query, anchors), every.align(target, query, anchors)
    few, many = fewer.parts, all_of_them.parts
    assert all_of_them.n_left_out == 0 and len(many) > 20
    assert fewer.n_left_out > 10 and fewer.n_extended + fewer.n_left_out <= 36 and len(few) < len(many)
    for x in range(6):  # every copy has a partner
        assert any(part.target <= 500 * x + 350 < part.target + 300 for part in few)
        assert any(part.query <= 500 * x + 350 < part.query + 300 for part in few)


def test_weak_anchors_count_near_ends_only(monkeypatch):
    rng = np.random.default_rng(2)
    first, second = random_bases(rng, 200), random_bases(rng, 40)
    target = encode(first + random_bases(rng, 3000) + second)
    query = encode(first + random_bases(rng, 3000) + second)
    anchors = Anchors(np.array([100, 3220]), np.array([100, 3220]), np.array([3000, 2000]))
    params = make_wga_params({"ydrop": 1000})
    assert len(Aligner(params).align(target, query, anchors).parts) == 2
    monkeypatch.setattr(gapped, "CLOSE", 1000)
    assert len(Aligner(params).align(target, query, anchors).parts) == 1


def test_close_places_are_those_of_the_definition():
    rng = np.random.default_rng(3)
    t, q, ends = rng.integers(0, 1000, 200), rng.integers(0, 1000, 200), rng.integers(0, 1000, (20, 2))
    ends = ends[np.argsort(ends[:, 0])]
    expected = [any(max(abs(a - t_end), abs(b - q_end)) <= 50 for t_end, q_end in ends) for a, b in zip(t, q, strict=True)]
    assert are_close(t, q, ends, 50).tolist() == expected and 0 < sum(expected) < 200


def test_runs_that_meet_become_one():
    before, after = np.array([(PAIR, 3), (QUERY_ALONE, 2)]), np.array([(QUERY_ALONE, 1), (PAIR, 4)])
    assert joined(before, after).tolist() == [[PAIR, 3], [QUERY_ALONE, 3], [PAIR, 4]]
    assert joined(before[:0], after).tolist() == after.tolist() and joined(before, after[1:]).tolist()[-1] == [PAIR, 4]
