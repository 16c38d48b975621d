"""Anchors: their order, those left out in repeats, those close to the ends of alignments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from genomes import genome_of
from strategies import mutate, random_bases

from bellapy.compute.resources import Resources
from bellapy.engines.ydrop.extend import NEVER, Extender
from bellapy.engines.ydrop.foresight import none_known
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.jobs.wga import ahead, gapped
from bellapy.jobs.wga.ahead import next_due, paths_with
from bellapy.jobs.wga.extending import Extending, Wanted, joined
from bellapy.jobs.wga.gapped import Aligner, are_close
from bellapy.jobs.wga.kept import NOWHERE, Keeper, Part, Progress
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.pipeline import align_genomes
from bellapy.jobs.wga.scene import Anchors, Scene, Sequences, Spanned, ends_of, paths_of, stretch_around
from bellapy.jobs.wga.select import stretches
from bellapy.jobs.wga.turns import Turns, next_anchor
from bellapy.params.wga import make_wga_params
from bellapy.records.bases import encode
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE, Alignment
from bellapy.report.run_report import RunReport


def both_strands(target: np.ndarray, query: np.ndarray) -> Sequences:
    """Two sequences, with the query's other strand."""
    ends = np.array([len(query), 2 * len(query)])
    both = np.concatenate((query, 3 - query[::-1]))
    return Sequences(target, both, np.array([0]), np.array([len(target)]), ends - len(query), ends)


def anchors_at(sequences: Sequences, places: list[tuple[int, int]], score) -> Anchors:
    """Anchors at target and query places, taken by their score."""
    t, q = np.array(places, np.int64).T.copy()
    score = np.array(score, np.int64)
    edges = sequences.edges(t, q)
    return Anchors(t, q, score, score, edges, paths_of(t, q, edges, edges))


def align(aligner: Aligner, sequences: Sequences, anchors: Anchors, *, trims: bool = False, keeper: Keeper = NOWHERE):
    """The alignments of two sequences that have none yet."""
    scene = Scene(sequences, same=False, leave_out=not aligner.params.all_copies, trims=trims)
    return aligner.align(scene, anchors, keeper=keeper)


def turns_of(q: np.ndarray, t: np.ndarray, path: np.ndarray | None = None, waits: np.ndarray | None = None) -> Turns:
    """Turns of anchors of which nothing is known."""
    no = np.zeros((2, len(q)), np.bool_)
    path, waits = np.arange(len(q)) if path is None else path, no[0] if waits is None else waits
    return Turns(q, t, path, waits, no[1], none_known(len(q)))


def test_anchors_are_left_out_where_both_sequences_are_spanned():
    spanned = Spanned(np.zeros(100, np.bool_), np.zeros(100, np.bool_))
    spanned.add(Part(9000, 20, 40, np.array([(PAIR, 10), (TARGET_ALONE, 5), (PAIR, 10)], np.int64)))
    left_out, waits, at_once = (2, 1, 0), (1, 0, 0), (0, 0, 0)  # the turn, anchors left out, poor ones
    places = [
        (20, 40, left_out), (44, 59, left_out), (45, 59, waits), (44, 60, waits), (19, 40, waits), (45, 60, at_once),
    ]  # fmt: skip
    for t, q, expected in places:
        turns = turns_of(np.array([q]), np.array([t]))
        assert next_anchor(no_walls(200), spanned, turns, 0) == expected
        assert turns.waits[0] == (expected == waits)


def test_anchors_that_wait_come_last_and_only_if_nothing_better_spans_both():
    spanned = Spanned(np.zeros(100, np.bool_), np.zeros(100, np.bool_))
    spanned.target[10:20] = True
    turns = turns_of(np.array([30, 70, 90]), np.array([10, 50, 15]))

    def following(turn: int) -> tuple[int, int, int]:
        return next_anchor(no_walls(200), spanned, turns, turn)

    assert following(0) == (1, 0, 0) and turns.waits.tolist() == [True, False, False]
    spanned.query[85:95] = True
    assert following(2) == (3, 1, 0) and turns.waits.tolist() == [True, False, False]
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
    both = both_strands(target, query)
    anchors = anchors_at(both, places, [3000 + (t * 7 + q * 3) % 1000 for t, q in places])
    params = make_wga_params({"ydrop": 2000})
    plain = align(Aligner(params), both, anchors)
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
    told = align(Aligner(params), both, anchors)
    with ThreadPoolExecutor(3) as pool:
        assert same(align(Aligner(params, Resources(threads=3), pool), both, anchors), told)
    assert asked and plain[1:5] == told[1:5] and plain.n_cells > told.n_cells
    for one, other in zip(plain.parts, told.parts, strict=True):
        assert one[:3] == other[:3] and np.array_equal(one.runs, other.runs)
    assert len(plain.parts) >= 2


def planted(seed: int) -> tuple[Sequences, Anchors]:
    """Sequences with some segments in common, some of them twice; anchors in and beside them, in any order."""
    rng = np.random.default_rng(seed)
    texts = [random_bases(rng, int(n)) for n in rng.integers(60, 300, 5)]
    target = "".join(text + random_bases(rng, 150) for text in texts + texts[:2])
    query = "".join(mutate(rng, text, 0.1) + random_bases(rng, 120) for text in texts[::-1] + texts[1:3])
    places = [(t, q) for t in range(10, len(target), 90) for q in range(20, len(query), 70)]
    both = both_strands(encode(target), encode(query))
    return both, anchors_at(both, places, rng.integers(3000, 4000, len(places)))


def same(one: Progress, other: Progress) -> bool:
    """Alignments and all numbers."""
    parts = zip(one.parts, other.parts, strict=True)
    numbers = one[1:-1] == other[1:-1] and np.array_equal(one.waits, other.waits)
    return numbers and all(a[:3] == b[:3] and np.array_equal(a.runs, b.runs) for a, b in parts)


def test_anchors_ahead_of_their_turn_change_nothing(monkeypatch):
    """Those whose surroundings have changed in the meantime are extended again, be they of one path or of many."""
    redone, is_free = [], ahead.is_free
    monkeypatch.setattr(ahead, "is_free", lambda *where: redone.append(not is_free(*where)) or is_free(*where))
    for seed in range(8):
        params = make_wga_params({"ydrop": 2000, "all_copies": seed < 3, "sensitive": seed == 6})
        both, anchors = planted(seed)
        anchors = anchors._replace(path=np.arange(len(anchors.path)) >> seed % 4)
        plain = align(Aligner(params), both, anchors, trims=seed == 5)
        with ThreadPoolExecutor(3) as pool:
            threaded = align(Aligner(params, Resources(threads=3), pool), both, anchors, trims=seed == 5)
        assert same(plain, threaded) and len(plain.parts) > 3 and plain.waits.any() == (not params.all_copies)
    assert any(redone) and not all(redone)


def test_what_a_thread_raises_ends_the_alignment(monkeypatch):
    both, anchors = planted(1)

    def fail(self, scene, wanted):
        raise MemoryError("no room")

    monkeypatch.setattr(Extending, "extend", fail)
    with ThreadPoolExecutor(2) as pool, pytest.raises(MemoryError, match="no room"):
        align(Aligner(make_wga_params({}), Resources(threads=2), pool), both, anchors)


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
    both, anchors = planted(4)
    aligner, keeper = Aligner(make_wga_params({"ydrop": 2000})), Stops(Progress([]))
    whole = align(aligner, both, anchors, keeper=keeper)
    assert any(progress.at > len(progress.waits) for progress in keeper.saved_all[:-1])
    for begin in keeper.saved_all[:: len(keeper.saved_all) // 5]:
        assert same(align(aligner, both, anchors, keeper=Stops(begin)), whole)


def test_anchors_told_poor_lead_to_no_alignment():
    """By both ways of telling; most of them are told."""
    params = make_wga_params({"ydrop": 2000})
    both, anchors = planted(7)
    scene, extending, target = Scene(both, same=False, leave_out=False), Extending(params), both.target
    query = both.query[: len(both.query) // 2]
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
    poor = extending.find_poor(scene, anchors, found)
    nothing = np.full((len(t), 2), NEVER), np.zeros((len(t), 2), np.int64)
    outcomes = extending.extend(scene, Wanted(t, q, anchors.limits, *nothing))
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
    both = both_strands(target, query)
    anchors = anchors_at(both, places, [3000 + t + q for t, q in places])
    some, every = (Aligner(make_wga_params({"ydrop": 4000, "all_copies": copies})) for copies in (False, True))
    fewer, all_of_them = align(some, both, anchors), align(every, both, anchors)
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
    both = both_strands(target, query)
    anchors = anchors_at(both, [(100, 100), (3220, 3220)], [3000, 2000])
    params = make_wga_params({"ydrop": 1000})
    assert len(align(Aligner(params), both, anchors).parts) == 2
    two = both._replace(t_starts=np.array([0, 3000]), t_ends=np.array([3000, len(target)]))  # no end of the same sequence
    assert len(align(Aligner(params), two, anchors._replace(limits=two.edges(*anchors[:2]))).parts) == 1
    monkeypatch.setattr(gapped, "CLOSE", 1000)
    assert len(align(Aligner(params), both, anchors).parts) == 1


def test_copies_are_left_out_whatever_their_strand_and_sequence():
    """A repeat has two places on each genome: one alignment of each, not four, though one copy is turned."""
    rng = np.random.default_rng(3)
    repeat, before = random_bases(rng, 300), [random_bases(rng, 500) for _ in range(2)]
    turned = repeat[::-1].translate(str.maketrans("ACGT", "TGCA"))
    target = genome_of(before[0] + repeat, before[1] + turned)
    query = genome_of(before[0] + mutate(rng, repeat, 0.02), before[1] + mutate(rng, turned, 0.02))
    for copies, expected in ((False, {(0, 0, 1), (1, 1, 1)}), (True, {(0, 0, 1), (1, 1, 1), (0, 1, -1), (1, 0, -1)})):
        report = RunReport()
        found = align_genomes(target, query, make_wga_params({"all_copies": copies}), Means(report))
        extended = next(stage for stage in report.stages if stage.stage == "extend")
        assert {one[1:4] for one in found} == expected and extended.alignments == len(expected)


def test_an_extension_stays_within_its_limits():
    rng = np.random.default_rng(6)
    text = random_bases(rng, 600)
    both = both_strands(encode(text), encode(text))
    anchors = anchors_at(both, [(300, 300)], [3000])
    for limits in ([0, 600, 0, 600], [100, 600, 0, 600], [0, 600, 150, 420], [0, 500, 0, 600]):
        (part,) = align(Aligner(make_wga_params({})), both, anchors._replace(limits=np.array([limits]))).parts
        begin, end = max(limits[0], limits[2]), min(limits[1], limits[3])
        assert part[1:3] == (begin, begin) and part.runs.tolist() == [[PAIR, end - begin]]


def test_what_earlier_alignments_span_is_left_out_of_later_ones():
    """The second path runs on along a copy whose target has an alignment; a copy alone is taken in the second turn."""
    rng = np.random.default_rng(7)
    first, second = random_bases(rng, 400), random_bases(rng, 200)
    target, query = first + second, second + random_bases(rng, 100) + first + random_bases(rng, 500) + first[200:] + second
    both = both_strands(encode(target), encode(query))
    anchors = anchors_at(both, [(100, 400), (500, len(query) - 100)], [9000, 8000])
    whole, trimmed = (align(Aligner(make_wga_params({})), both, anchors, trims=trims).parts for trims in (False, True))
    assert len(whole) == len(trimmed) == 2 and whole[0][:3] == trimmed[0][:3]
    assert whole[1].target <= 200 and ends_of(whole[1])[1] == ends_of(trimmed[1])[1] == (600, len(query))
    assert trimmed[1].target == ends_of(trimmed[0])[1][0] >= 400


def test_a_stretch_around_an_anchor_is_that_of_its_definition():
    rng = np.random.default_rng(11)
    for _ in range(200):
        n, half = 60, 60
        runs = np.array([(PAIR, rng.integers(1, 6))], np.int64)
        for _ in range(rng.integers(0, 5)):
            gaps = [(alone, rng.integers(1, 4)) for alone in rng.permutation((QUERY_ALONE, TARGET_ALONE))[: rng.integers(3)]]
            runs = np.concatenate((runs, [*gaps, (PAIR, rng.integers(1, 6))]))
        place = int(rng.integers(0, 10)), int(rng.integers(0, 70))
        path = Alignment(0, 0, 0, 1, *place, runs)
        spanned = Spanned(rng.random(n) < 0.1, rng.random(half) < 0.1)
        t, q = path.pairs()
        anchor, least = int(rng.integers(t[0], t[-1] + 1)), int(rng.integers(1, 3))
        on_query = spanned.query[np.where(q < half, q, 2 * half - 1 - q)]
        free = spanned.target[t] + on_query.astype(int) < least
        at = int((t < anchor).sum())
        edges = np.flatnonzero(~free)
        low, high = edges[edges < at].max(initial=-1) + 1, edges[edges >= at].min(initial=len(t))
        *found, left = stretch_around(place, runs, anchor, spanned, least)
        free[:low], free[high:] = False, False
        (expected,) = stretches(path, free) or [path._replace(runs=runs[:0])]
        assert left.tolist() == expected.runs.tolist()
        assert len(left) == 0 or tuple(found) == (expected.t_start, expected.q_start)


def test_anchors_ahead_lead_to_different_paths():
    n = 1 << 21
    t = np.array([10, 20, 5000, 30, n, 7])
    q = np.array([15, 20, 5010, 9000, n, 7])
    spanned = Spanned(*(np.zeros(0, np.bool_) for _ in range(2)))
    edges = np.zeros((6, 4), np.int64)
    limits = edges + np.array([[1], [2], [0], [1], [0], [0]])
    by_place = ((0, (9, 9), [1, 3, 4]), (0, (2, 9), [1, 3]), (2, (9, 9), [3, 4, 5]), (5, (9, 9), []))
    by_limits = ((0, (9, 9), [1, 2, 3, 4]), (0, (2, 9), [1, 2, 3]), (0, (1, 9), [1]), (0, (9, 2), [1, 2]))
    for cases, some in ((by_place, edges), (by_limits, limits)):
        path = paths_of(t, q, some, edges)
        for begin, most, expected in cases:
            paths, over = paths_with(path, np.ones(6, np.bool_)), np.zeros(0, np.int64)
            found = next_due(paths, no_walls(8 * n), spanned, turns_of(q, t, path), over, begin, most)
            assert found.tolist() == expected


def test_a_path_has_its_next_anchor_when_the_turn_of_one_is_over():
    """Random anchors, some of them spanned on both genomes and never due, taken in turns of any size."""
    rng = np.random.default_rng(12)
    for _ in range(50):
        n = 40
        path, some = rng.integers(0, 8, n), rng.random(n) < 0.8
        is_out = rng.random(n) < 0.3
        spanned, turns = Spanned(is_out, is_out), turns_of(np.arange(n), np.arange(n), path, some)
        expected = {
            number: [x for x in range(1, n) if some[x] and path[x] == number and not is_out[x]] for number in range(8)
        }
        paths, turn, held = paths_with(path, some), n, list[int]()  # the second turn of the first anchor
        while any(expected.values()):
            over = [x for x in held if rng.random() < 0.5]
            turn = max([turn, *(n + x for x in over)])
            for number in range(8):
                is_held = any(path[x] == number for x in held if x not in over)
                expected[number] = [x for x in expected[number] if x not in over and (is_held or n + x > turn)]
            held = [x for x in held if x not in over]
            busy = {path[x] for x in held}
            due = sorted(of[0] for number, of in expected.items() if of and number not in busy)
            most = int(rng.integers(0, 4))
            found = next_due(paths, no_walls(2 * n), spanned, turns, n + np.array(over, np.int64), turn, (most, most))
            assert (found - n).tolist() == due[:most]
            held += (found - n).tolist()


def test_close_places_are_those_of_the_definition():
    rng = np.random.default_rng(3)
    t, q, pairs = rng.integers(0, 1000, 200), rng.integers(0, 1000, 200), rng.integers(0, 2, 200)
    ends = np.append(rng.integers(0, 1000, (30, 2)), rng.integers(0, 2, (30, 1)), axis=1)
    ends = ends[np.argsort(ends[:, 0])]
    expected = [
        any(max(abs(a - t_end), abs(b - q_end)) <= 50 and pair == of for t_end, q_end, of in ends)
        for a, b, pair in zip(t, q, pairs, strict=True)
    ]
    assert are_close(t, q, pairs, ends, 50).tolist() == expected and 0 < sum(expected) < 200


def test_runs_that_meet_become_one():
    before, after = np.array([(PAIR, 3), (QUERY_ALONE, 2)]), np.array([(QUERY_ALONE, 1), (PAIR, 4)])
    assert joined(before, after).tolist() == [[PAIR, 3], [QUERY_ALONE, 3], [PAIR, 4]]
    assert joined(before[:0], after).tolist() == after.tolist() and joined(before, after[1:]).tolist()[-1] == [PAIR, 4]
