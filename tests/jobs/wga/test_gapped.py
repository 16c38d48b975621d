"""Anchors: their order, those left out in repeats, those close to the ends of alignments."""

from __future__ import annotations

import numpy as np
from strategies import mutate, random_bases

from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.foresight import none_known
from bellapy.engines.ydrop.sweep import R, Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.jobs.wga import gapped
from bellapy.jobs.wga.gapped import Aligner, Anchors, Spanned, are_close, joined, next_anchor
from bellapy.jobs.wga.kept import Part
from bellapy.params.wga import make_wga_params
from bellapy.records.bases import encode
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE


def test_anchors_are_left_out_where_both_sequences_are_spanned():
    spanned = Spanned(np.zeros(100, np.bool_), np.zeros(100, np.bool_))
    spanned.add(Part(9000, 20, 40, np.array([(PAIR, 10), (TARGET_ALONE, 5), (PAIR, 10)], np.int64)))
    places = [(20, 40, True), (44, 59, True), (45, 59, False), (44, 60, False), (19, 40, False)]
    for t, q, left_out in places:
        some = np.array([t]), np.array([q])
        found = next_anchor(no_walls(200), some[1], some[0], 0, spanned, none_known(1), (0, 0))
        assert found == ((1, 1, 0) if left_out else (0, 0, 0))


def test_foresight_changes_nothing(monkeypatch):
    """Ends that are found without walls, in advance: the same alignments, and hardly any other extension."""
    rng = np.random.default_rng(5)
    texts = [random_bases(rng, 400) for _ in range(3)]
    target = encode(texts[0] + random_bases(rng, 3000) + texts[1] + texts[2])
    query = encode(mutate(rng, texts[1], 0.1) + random_bases(rng, 3000) + mutate(rng, texts[0], 0.1) + texts[1])
    places = [(int(t), int(q)) for t in range(10, len(target), 260) for q in range(20, len(query), 260)] + [
        (200, 3600),
        (3600, 200),
    ]
    anchors = Anchors(*np.array([(t, q, 3000 + (t * 7 + q * 3) % 1000) for t, q in places], np.int64).T)
    params = make_wga_params({"ydrop": 2000})
    plain = Aligner(params).align(target, query, anchors)
    asked = []

    def foretold(sequences, t, q, scores, ydrop, means):
        extender, walls, found = Extender(scores, ydrop), no_walls(len(target) + len(query)), none_known(len(t))
        for x in range(len(t)):
            at = int(q[x]), int(t[x])
            sides = (
                Sides(query, target, *at, -1, at[0] + 1, at[1] + 1),
                Sides(query, target, at[0] + 1, at[1] + 1, 1, len(query) - at[0] - 1, len(target) - at[1] - 1),
            )
            for side in range(2):
                end = extender.inspect(sides[side], walls)
                found.score[x, side], found.r[x, side], found.last[x, side] = end.score, end.r, int(extender.rows.state[R])
        found.known[::2] = True
        asked.append(len(t))
        return found

    monkeypatch.setattr(gapped, "foresee", foretold)
    told = Aligner(params).align(target, query, anchors)
    assert asked and plain[1:-1] == told[1:-1] and plain.n_cells > told.n_cells
    for one, other in zip(plain.parts, told.parts, strict=True):
        assert one[:3] == other[:3] and np.array_equal(one.runs, other.runs)
    assert len(plain.parts) >= 2


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
