"""Anchors: their order, those left out in repeats, those close to the ends of alignments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from strategies import mutate, random_bases

from bellapy.compute.resources import Resources
from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.foresight import none_known
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.jobs.wga import gapped
from bellapy.jobs.wga.extending import Extending, joined, unforeseen
from bellapy.jobs.wga.gapped import Aligner, are_close, next_anchor
from bellapy.jobs.wga.kept import Keeper, Part, Progress
from bellapy.jobs.wga.scene import Anchors, Scene, Spanned
from bellapy.params.wga import make_wga_params
from bellapy.records.bases import encode
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE


def test_anchors_are_left_out_where_both_sequences_are_spanned():
    spanned = Spanned(np.zeros(100, np.bool_), np.zeros(100, np.bool_))
    spanned.add(Part(9000, 20, 40, np.array([(PAIR, 10), (TARGET_ALONE, 5), (PAIR, 10)], np.int64)))
    left_out, waits, at_once = (2, 1, 0), (1, 0, 0), (0, 0, 0)  # the turn, anchors left out, poor ones
    places = [
        (20, 40, left_out), (44, 59, left_out), (45, 59, waits), (44, 60, waits), (19, 40, waits), (45, 60, at_once),
    ]  # fmt: skip
    for t, q, expected in places:
        some, waiting = (np.array([t]), np.array([q])), np.zeros(1, np.bool_)
        assert next_anchor(no_walls(200), some[1], some[0], 0, spanned, waiting, none_known(1)) == expected
        assert waiting[0] == (expected == waits)


def test_anchors_that_wait_come_last_and_only_if_nothing_better_spans_both():
    spanned, waits = Spanned(np.zeros(100, np.bool_), np.zeros(100, np.bool_)), np.zeros(3, np.bool_)
    spanned.target[10:20] = True
    t, q = np.array([10, 50, 15]), np.array([30, 70, 90])

    def following(turn: int) -> tuple[int, int, int]:
        return next_anchor(no_walls(200), q, t, turn, spanned, waits, none_known(3))

    assert following(0) == (1, 0, 0) and waits.tolist() == [True, False, False]
    spanned.query[85:95] = True
    assert following(2) == (3, 1, 0) and waits.tolist() == [True, False, False]
    spanned.query[25:35] = True
    assert following(3) == (6, 1, 0)


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
    anchors = Anchors(*np.array([(t, q, *2 * [3000 + (t * 7 + q * 3) % 1000]) for t, q in places], np.int64).T)
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
                found.score[x, side], found.r[x, side], found.last[x, side] = end.score, end.r, end.last
        found.known[::2] = True
        asked.append(len(t))
        return found

    monkeypatch.setattr(gapped, "foresee", foretold)
    told = Aligner(params).align(target, query, anchors)
    assert asked and plain[1:5] == told[1:5] and plain.n_cells > told.n_cells
    for one, other in zip(plain.parts, told.parts, strict=True):
        assert one[:3] == other[:3] and np.array_equal(one.runs, other.runs)
    assert len(plain.parts) >= 2


def planted(seed: int) -> tuple[np.ndarray, np.ndarray, Anchors]:
    """Sequences with some segments in common, some of them twice; anchors in and beside them, in any order."""
    rng = np.random.default_rng(seed)
    texts = [random_bases(rng, int(n)) for n in rng.integers(60, 300, 5)]
    target = "".join(text + random_bases(rng, 150) for text in texts + texts[:2])
    query = "".join(mutate(rng, text, 0.1) + random_bases(rng, 120) for text in texts[::-1] + texts[1:3])
    places = [(t, q) for t in range(10, len(target), 90) for q in range(20, len(query), 70)]
    score = rng.integers(3000, 4000, len(places))
    return encode(target), encode(query), Anchors(*np.array(places, np.int64).T, score, score)


def same(one: Progress, other: Progress) -> bool:
    """Alignments and all numbers."""
    parts = zip(one.parts, other.parts, strict=True)
    numbers = one[1:-1] == other[1:-1] and np.array_equal(one.waits, other.waits)
    return numbers and all(a[:3] == b[:3] and np.array_equal(a.runs, b.runs) for a, b in parts)


def test_anchors_ahead_of_their_turn_change_nothing(monkeypatch):
    """Those whose surroundings have changed in the meantime are extended again."""
    redone, is_free = [], gapped.is_free
    monkeypatch.setattr(gapped, "is_free", lambda *where: redone.append(not is_free(*where)) or is_free(*where))
    for seed in range(6):
        params = make_wga_params({"ydrop": 2000, "all_copies": seed < 3})
        target, query, anchors = planted(seed)
        plain = Aligner(params).align(target, query, anchors)
        with ThreadPoolExecutor(3) as pool:
            ahead = Aligner(params, Resources(threads=3), pool).align(target, query, anchors)
        assert same(plain, ahead) and len(plain.parts) > 3 and plain.waits.any() == (not params.all_copies)
    assert any(redone) and not all(redone)


class Stops(Keeper):
    """Notes all that would be saved; a run goes on from what is given."""

    def __init__(self, begin: Progress):
        self.begin, self.saved_all = begin, []

    def load(self) -> Progress:
        return self.begin

    def is_due(self) -> bool:
        return True

    def save(self, progress: Progress) -> None:
        self.saved_all.append(progress._replace(parts=list(progress.parts), waits=progress.waits.copy()))


def test_a_stopped_run_goes_on_from_any_turn():
    target, query, anchors = planted(4)
    aligner, keeper = Aligner(make_wga_params({"ydrop": 2000})), Stops(Progress([]))
    whole = aligner.align(target, query, anchors, keeper=keeper)
    assert any(progress.at > len(progress.waits) for progress in keeper.saved_all[:-1])
    for begin in keeper.saved_all[:: len(keeper.saved_all) // 5]:
        assert same(aligner.align(target, query, anchors, keeper=Stops(begin)), whole)


def test_anchors_told_poor_lead_to_no_alignment():
    """By both ways of telling; most of them are told."""
    params = make_wga_params({"ydrop": 2000})
    target, query, anchors = planted(7)
    scene, extending = Scene(target, query, same=False, leave_out=False), Extending(params)
    t, q = anchors.target, anchors.query
    found = none_known(len(t))
    extender = Extender(params.scores, params.ydrop)
    for x in range(len(t)):
        a, b = int(q[x]), int(t[x])
        sides = (
            Sides(query, target, a, b, -1, a + 1, b + 1),
            Sides(query, target, a + 1, b + 1, 1, len(query) - a - 1, len(target) - b - 1),
        )
        for side in range(2):
            end = extender.inspect(sides[side], scene.walls)
            found.score[x, side], found.r[x, side], found.last[x, side] = end.score, end.r, end.last
    found.known[:] = True
    poor = extending.find_poor(scene, t, q, found)
    outcomes = extending.extend(scene, unforeseen(t, q))
    leads_to_none = np.array([not outcome.parts for outcome in outcomes])
    low, far = found.score.sum(axis=1) < params.gappedthresh, found.r.max(axis=1) >= 60
    assert np.array_equal(poor, leads_to_none & low)
    assert (poor & far).any() and (poor & ~far).any() and (~poor).any()
    # a path that falls and rises again holds an alignment, though its score is low
    assert (low & ~leads_to_none).any()


def test_copies_of_a_repeat_are_extended_a_few_times_only():
    """All pairs of copies have an anchor; with all copies asked for, all are extended."""
    rng = np.random.default_rng(1)
    repeat = random_bases(rng, 300)
    target, query = (encode("".join(random_bases(rng, 200) + mutate(rng, repeat, 0.03) for _ in range(6))) for _ in range(2))
    places = [(500 * x + 300, 500 * y + 300) for x in range(6) for y in range(6)]
    anchors = Anchors(*np.array([(t, q, *2 * [3000 + t + q]) for t, q in places], np.int64).T)
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
    anchors = Anchors(*np.array([[100, 3220], [100, 3220], [3000, 2000], [3000, 2000]]))
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
