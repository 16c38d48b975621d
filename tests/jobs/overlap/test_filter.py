"""Geometry, thresholds and estimates of the filter, one alignment at a time."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from strategies import change_seeds, make_extensions, make_reads, make_seeds

from bellapy.jobs.overlap.estimate import DEFAULT_ERROR_RATE
from bellapy.jobs.overlap.filter import best_of_candidate, estimate_matches, filter_overlaps, implied_overlaps
from bellapy.jobs.overlap.geometry import Geometry, measure_geometry
from bellapy.jobs.overlap.judging import (
    LEAST_SHARE,
    MAX_FLOOR,
    OTHER_COPY,
    REASONS,
    REPEAT_SPREAD,
    SPREAD,
    Thresholds,
    learn_thresholds,
    rates_of,
    score_floor,
    surely_overlaps,
    teach,
)
from bellapy.params import ExtensionParams, FilterParams
from bellapy.records import Extensions, Seeds

LENGTHS = [50, 80, 120, 33]


@pytest.fixture
def reads():
    return make_reads(["A" * length for length in LENGTHS])


def random_alignments(rng: np.random.Generator, n: int) -> tuple[Seeds, Extensions]:
    """Alignments anywhere on random pairs of reads, several of one candidate among them, in order of candidates."""
    rows = []
    while len(rows) < n:
        query, target = sorted(rng.choice(len(LENGTHS), 2, replace=False).tolist())
        ends = [np.sort(rng.integers(0, LENGTHS[read] + 1, 2)) for read in (query, target)]
        for _ in range(int(rng.integers(1, 3))):
            rows.append(
                (query, target, int(rng.choice([-1, 1])), int(rng.integers(0, 50)), *ends[0].tolist(), *ends[1].tolist())
            )
    rows.sort(key=lambda row: row[:3])
    query, target, strand, score, *ends = (np.array(column) for column in zip(*rows, strict=True))
    rank = [sum(rows[j][:3] == row[:3] for j in range(i)) for i, row in enumerate(rows)]
    seeds = make_seeds(query, target, strand, ends[0], ends[2], 1)
    support = rng.integers(1, 20, len(rows))
    return change_seeds(seeds, rank=rank, n_support=support), make_extensions(score, *ends)


def turned(start: int, end: int, length: int, strand: int) -> tuple[int, int]:
    return (start, end) if strand > 0 else (length - end, length - start)


def test_geometry(reads, rng):
    seeds, extensions = random_alignments(rng, 300)
    geometry = measure_geometry(reads, seeds, extensions)
    for i in range(len(seeds)):
        ql, tl = LENGTHS[seeds.query_id[i]], LENGTHS[seeds.target_id[i]]
        qs, qe = extensions.query_start[i], extensions.query_end[i]
        ts, te = turned(extensions.target_start[i], extensions.target_end[i], tl, seeds.strand[i])
        left, right = min(qs, ts), min(ql - qe, tl - te)
        assert (geometry.left[i], geometry.right[i]) == (left, right)
        assert geometry.span[i] == min(qe - qs, te - ts)
        assert geometry.implied[i] == left + right + (qe - qs + te - ts) / 2


@pytest.mark.parametrize("error", [0, 0.01, 0.15, 0.4, None])
@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("delta", [0, 0.1, 1])
@pytest.mark.parametrize("scores", [(1, -1, -1), (2, -3, -1), (5, -1, -8)])
def test_score_floor(error, given, delta, scores):
    match, mismatch, gap = scores
    right = (1 - (DEFAULT_ERROR_RATE if error is None else error)) ** 2
    expected = (1 - delta) * (right * match + (1 - right) * (mismatch + gap) / 2)
    expected = max(0, expected if given else min(expected, MAX_FLOOR * match))
    floor = score_floor(ExtensionParams(*scores), FilterParams(delta), error, given)
    assert floor == pytest.approx(expected)


def make_geometry(left, right, span, implied):
    return Geometry(left, right, span, implied, np.zeros(len(left), bool))


def test_thresholds_follow_sure_alignments(rng):
    n = 4000
    rate, implied = rng.normal(0.6, 0.02, n), rng.uniform(1000, 3000, n)
    fair = make_geometry(np.zeros(n), np.zeros(n), implied, implied)
    extensions = make_extensions((rate * implied).astype(int), *np.zeros((4, n)))

    def learn(floor, delta, given=True):
        return learn_thresholds(rates_of(extensions, fair, teach(np.ones(n, bool), fair)), floor, delta, given=given)

    found = learn(0.25, 0.01)
    assert found.n_sure == n and found.floor == 0.25
    assert found.median_rate == pytest.approx(0.6, abs=0.003)
    assert found.score_rate == pytest.approx(0.6 - SPREAD * 2.326 * 0.02, abs=0.008)
    assert found.repeat_rate == pytest.approx(0.6 - REPEAT_SPREAD * 2.326 * 0.02, abs=0.004)
    assert learn(0.25, 0.2).score_rate == pytest.approx(0.8 * found.median_rate), "delta of the median is always tolerated"
    assert learn(0.25, 0.2).repeat_rate == found.repeat_rate, "but not in repeats"
    assert learn(0.58, 0.01).score_rate == 0.58, "never below the floor"
    assert learn(0.25, 0.01, given=False).floor == pytest.approx(LEAST_SHARE * found.median_rate)


@pytest.mark.parametrize("spoilt", ["rank", "n_support", "copies", "span", "share", "score"])
def test_what_is_not_sure_teaches_nothing(spoilt):
    n = 100
    seeds = change_seeds(make_seeds([0] * n, [1] * n, [1] * n, [0] * n, [0] * n, 1), n_support=[5] * n)
    geometry = {"left": np.full(n, 50), "right": np.full(n, 50), "span": np.full(n, 1000), "implied": np.full(n, 1100.0)}
    copies, score = np.full(n, 1.3, np.float32), np.full(n, 1200 if spoilt == "share" else 660)
    bad = np.arange(n) < 60
    if spoilt in ("rank", "n_support"):
        seeds = change_seeds(seeds, **{spoilt: np.where(bad, {"rank": 1, "n_support": 4}[spoilt], getattr(seeds, spoilt))})
    elif spoilt == "copies":
        copies[bad] = 1.31
    elif spoilt == "score":
        score[bad] = 0.24 * 1100
    else:
        name, value = {"span": ("span", 999), "share": ("implied", 2001)}[spoilt]
        geometry[name] = np.where(bad, value, geometry[name])
    seeds, geometry = change_seeds(seeds, copies=copies), make_geometry(**geometry)
    extensions = make_extensions(score, *np.zeros((4, n)))
    assert_array_equal(surely_overlaps(seeds, extensions, geometry, 0.25), ~bad)
    taught = learn_thresholds(rates_of(extensions, geometry, teach(~bad, geometry)), 0.25, 0.1, given=False)
    assert taught == Thresholds(0.25, 0.25, 0.25, None, 40), "there are too few"


def passed_by(thresholds: Thresholds, score, copies, geometry, fair) -> dict[str, np.ndarray]:
    """Mask of the alignments that pass each test of scores, by the reason to drop the others."""
    failed = [thresholds.failures(score, copies, geometry, fair, threads) for threads in (1, 3)]
    assert_array_equal(*failed)
    return {REASONS[i]: failed[0] >> i & 1 == 0 for i in (1, 2, 3)}


def test_thresholds_rise_in_repeats():
    thresholds, n = Thresholds(0.1, 0.4, 0.6, 0.7, 100), 5
    copies = np.array([0.5, 1.1, 1.3, 1.5, 9.0])
    whole = make_geometry(np.zeros(n), np.zeros(n), np.full(n, 100), np.full(n, 100.0))
    for score, expected in ((39, [0] * 5), (40, [1, 1, 0, 0, 0]), (51, [1, 1, 1, 0, 0]), (61, [1] * 5)):
        assert_array_equal(passed_by(thresholds, np.full(n, score), copies, whole, whole)["score too low"], expected)
    cut = make_geometry(np.full(n, 6), np.zeros(n), np.full(n, 94), np.full(n, 100.0))
    assert_array_equal(passed_by(thresholds, np.full(n, 90), copies, cut, cut)["stops in a repeat"], [1, 1, 1, 0, 0])
    assert_array_equal(passed_by(thresholds, np.full(n, 90), copies, cut, whole)["stops in a repeat"], [1] * 5)
    nothing_learnt = passed_by(Thresholds(0.4, 0.4, 0.4, None, 3), np.full(n, 41), copies, cut, cut)
    assert all(passed.all() for passed in nothing_learnt.values())


def test_the_lesser_part_of_a_joined_read_is_dropped():
    whole = make_geometry(np.zeros(2), np.zeros(2), np.full(2, 100), np.full(2, 100.0))
    fair = replace(whole, lesser=np.array([False, True]))
    passed = passed_by(Thresholds(0.2, 0.5, 0.6, 0.7, 100), np.full(2, 90), np.ones(2), whole, fair)
    assert_array_equal(passed.pop("in the lesser part of a joined read"), [True, False])
    assert all(mask.all() for mask in passed.values())


def test_bad_ends_do_not_count_but_in_the_floor():
    thresholds = Thresholds(0.2, 0.5, 0.6, 0.7, 100)
    geometry = make_geometry(np.full(2, 300), np.zeros(2), np.full(2, 100), np.full(2, 400.0))
    fair = make_geometry(np.zeros(2), np.zeros(2), np.full(2, 100), np.full(2, 100.0))
    passed = passed_by(thresholds, np.array([79, 80]), np.ones(2), geometry, fair)["score too low"]
    assert_array_equal(passed, [False, True])


@pytest.mark.parametrize("scores", [(1, -1, -1), (2, -3, -2), (1, -2, -4)])
@pytest.mark.parametrize("blocks", [0, 1, 7, 100])
@pytest.mark.parametrize("matches", [0, 50, 3000])
def test_matches_of_known_composition(scores, blocks, matches):
    """One block of errors: a mismatch, a base missing on the query, a base missing on the target."""
    match, mismatch, gap = scores
    score = match * matches + blocks * (mismatch + 2 * gap)
    span = matches + 2 * blocks
    extensions = make_extensions([score], [5], [5 + span], [9], [9 + span])
    got, columns = estimate_matches(ExtensionParams(*scores), extensions)
    assert (got[0], columns[0]) == (matches, matches + 3 * blocks)
    assert got.dtype == columns.dtype == np.int32


def test_matches_stay_in_bounds(rng):
    n = 500
    ends = [rng.integers(0, 100, n), rng.integers(100, 300, n), rng.integers(0, 100, n), rng.integers(100, 300, n)]
    extensions = make_extensions(rng.integers(0, 300, n), *ends)
    matches, columns = estimate_matches(ExtensionParams(), extensions)
    query, target = ends[1] - ends[0], ends[3] - ends[2]
    assert (0 <= matches).all() and (matches <= np.minimum(query, target)).all() and (matches <= columns).all()
    assert (columns >= np.minimum(query, target)).all()


def test_matches_of_identical_reads():
    matches, columns = estimate_matches(ExtensionParams(3, -2, -1), make_extensions([3 * 700], [0], [700], [0], [700]))
    assert matches[0] == columns[0] == 700


@pytest.mark.parametrize("threads", [1, 7])
def test_best_of_candidate(rng, threads):
    seeds, extensions = random_alignments(rng, 300)
    best = {}
    for i in range(len(seeds)):
        key = (seeds.query_id[i], seeds.target_id[i], seeds.strand[i])
        value = (-extensions.score[i], seeds.rank[i])
        if key not in best or value < best[key][0]:
            best[key] = (value, i)
    assert best_of_candidate(seeds, extensions, threads).tolist() == [best[key][1] for key in sorted(best)]


def test_threads_change_nothing(reads, rng):
    seeds, extensions = random_alignments(rng, 200)
    geometry, params = measure_geometry(reads, seeds, extensions), FilterParams(min_overlap=9)
    failed = rng.choice(np.array([0, 0, OTHER_COPY], np.uint8), len(seeds))
    one, other = (
        filter_overlaps(seeds, extensions, geometry, failed, ExtensionParams(), params, threads) for threads in (1, 4)
    )
    assert one[1] == other[1]
    for f in fields(one[0]):
        assert_array_equal(getattr(one[0], f.name), getattr(other[0], f.name), f.name)


@pytest.mark.parametrize(
    "params",
    [
        FilterParams(min_overlap=1),
        FilterParams(min_overlap=12),
        FilterParams(min_overlap=5, max_overhang=10),
        FilterParams(min_overlap=5, max_overhang=0),
        FilterParams(min_overlap=5, min_identity=0.7),
    ],
)
@pytest.mark.parametrize("rate", [0, 0.3])
def test_filter(reads, rng, params, rate):
    seeds, extensions = random_alignments(rng, 400)
    scoring = ExtensionParams()
    geometry, (matches, columns) = measure_geometry(reads, seeds, extensions), estimate_matches(scoring, extensions)
    expected, reasons = [], {"too short": 0, "score too low": 0, "stops in a repeat": 0, "overhang": 0, "identity": 0}
    reasons |= {"in the lesser part of a joined read": 0, "with another copy": 0}
    copies = rng.random(len(seeds)) < 0.2
    best = best_of_candidate(seeds, extensions).tolist()
    for i in best:
        if geometry.span[i] < params.min_overlap:
            reasons["too short"] += 1
        elif extensions.score[i] < rate * geometry.implied[i]:
            reasons["score too low"] += 1
        elif params.max_overhang is not None and max(geometry.left[i], geometry.right[i]) > params.max_overhang:
            reasons["overhang"] += 1
        elif matches[i] < params.min_identity * columns[i]:
            reasons["identity"] += 1
        elif copies[i]:
            reasons["with another copy"] += 1
        else:
            expected.append(i)
    failed = Thresholds(rate, rate, rate, None, 0).failures(extensions.score, seeds.copies, geometry, geometry)
    failed |= np.where(copies, OTHER_COPY, np.uint8(0))
    overlaps, dropped = filter_overlaps(seeds, extensions, geometry, failed, scoring, params)
    assert dropped == reasons
    for name in ("query_id", "target_id", "strand", "n_support"):
        assert getattr(overlaps, name).tolist() == getattr(seeds, name)[expected].tolist()
    for name in ("query_start", "query_end", "target_start", "target_end", "score"):
        assert getattr(overlaps, name).tolist() == getattr(extensions, name)[expected].tolist()
    assert overlaps.n_matches.tolist() == matches[expected].tolist()
    assert overlaps.n_columns.tolist() == columns[expected].tolist()


def test_filter_of_nothing(reads):
    seeds = make_seeds([], [], [], [], [], 5)
    nothing = make_extensions(*[[]] * 5)
    geometry, params = measure_geometry(reads, seeds, nothing), FilterParams(min_overlap=1)
    overlaps, dropped = filter_overlaps(seeds, nothing, geometry, np.zeros(0, np.uint8), ExtensionParams(), params)
    assert len(overlaps) == 0 and set(dropped.values()) == {0}
    assert len(implied_overlaps(reads, seeds)) == 0


def test_implied_overlaps(reads, rng):
    k, rows = 7, []
    for _ in range(300):
        query, target = sorted(rng.choice(len(LENGTHS), 2, replace=False).tolist())
        place = [int(rng.integers(0, LENGTHS[read] - k + 1)) for read in (query, target)]
        rows.append((query, target, int(rng.choice([-1, 1])), *place))
    rows = sorted({row[:3]: row for row in rows}.values())
    seeds = change_seeds(make_seeds(*zip(*rows, strict=True), k), n_support=rng.integers(1, 9, len(rows)))
    overlaps = implied_overlaps(reads, seeds)
    for i, (query, target, strand, query_pos, target_pos) in enumerate(rows):
        ql, tl = LENGTHS[query], LENGTHS[target]
        at, end = turned(target_pos, target_pos + k, tl, strand)
        left, right = min(query_pos, at), min(ql - query_pos - k, tl - end)
        assert (overlaps.query_start[i], overlaps.query_end[i]) == (query_pos - left, query_pos + k + right)
        ends = overlaps.target_start[i], overlaps.target_end[i]
        assert ends == turned(at - left, end + right, tl, strand)
        assert overlaps.n_columns[i] == left + k + right
        assert overlaps.n_matches[i] == min(k * seeds.n_support[i], left + k + right)
        assert overlaps.score[i] == 0
