"""The exact engine against the naive oracle and parasail: scores, paths, bounds, tiles, threads, states."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager

import naive_exact
import numpy as np
import parasail
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.exact import (
    align,
    anchors,
    band,
    bounds,
    cpu,
    guess,
    heights,
    line_paths,
    lines,
    path,
    strips,
    sweeps,
    trace,
    waves,
)
from bellapy.engines.exact.align import align_one
from bellapy.engines.exact.rule import NONE, Scores, as_target
from bellapy.errors import ParameterError

MODES = "local", "global", "semiglobal"
DEFAULT = Scores()
STRICT = Scores(4, -8, 5, 1)
"""Two gaps cost less than two mismatches, and a mismatch more than opening a gap and two bases."""
SCORES = DEFAULT, Scores(2, -4, 4, 2), Scores(1, -1, 0, 1), Scores(5, -4, 10, 1), Scores(100, -100, 900, 100), STRICT


EXAMPLES = int(os.environ.get("EXACT_EXAMPLES", "0"))
"""Random pairs for each of the tests below that compare with parasail; 0: a few."""

WAYS = "chosen", "lines", "tiles"
"""How alignments are made: as the engine chooses; line by line where possible, and by tiles, both without waves."""


@contextmanager
def swept(way: str):
    with pytest.MonkeyPatch.context() as patch:
        if way != "chosen":
            patch.setattr(align, "solve", lambda *_: None)
        if way == "lines":
            patch.setattr(sweeps, "is_narrow", lambda task, *_: band.is_connected(task.bounds.first, task.bounds.last))
        elif way == "tiles":
            patch.setattr(sweeps, "is_narrow", lambda *_: False)
        yield


def text(codes) -> str:
    return "".join("ACGTN"[code] for code in codes)


def codes(sequence: str) -> np.ndarray:
    return np.array(["ACGTN".index(letter) for letter in sequence], np.uint8)


def evolve(rng: np.random.Generator, sequence: np.ndarray, rate: float, insert: int) -> np.ndarray:
    """A relative: substitutions and deleted bases at a rate, and a foreign piece in the middle."""
    changed = np.where(rng.random(len(sequence)) < rate, rng.integers(0, 4, len(sequence)), sequence)
    changed = changed[rng.random(len(changed)) >= rate / 3]
    middle = len(changed) // 2
    return np.concatenate([changed[:middle], rng.integers(0, 4, insert), changed[middle:]]).astype(np.uint8)


@st.composite
def pairs(draw, longest=700):
    """A query and a target, related or not, with some unknown bases."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    query = rng.integers(0, 4, draw(st.integers(1, longest))).astype(np.uint8)
    if draw(st.booleans()):
        target = evolve(rng, query, draw(st.sampled_from([0, 0.01, 0.1, 0.3])), draw(st.sampled_from([0, 5, 200])))
    else:
        target = rng.integers(0, 4, draw(st.integers(1, longest))).astype(np.uint8)
    if draw(st.booleans()):
        query[rng.random(len(query)) < 0.02] = 4
        target[rng.random(len(target)) < 0.02] = 4
    return query, target if len(target) else query


def check_path(alignment, query, target, scores, mode):
    """The path covers what it says and scores what it says."""
    parts = query[alignment.query_start : alignment.query_end], target[alignment.target_start : alignment.target_end]
    operations = [("MID"[operation], size) for operation, size in path.unpacked(alignment.runs).tolist()]
    assert naive_exact.rescore(*map(text, parts), operations, *scores) == alignment.score
    if mode == "global":
        assert list(map(len, parts)) == [len(query), len(target)]
    if mode == "semiglobal":
        assert 0 in (alignment.query_start, alignment.target_start)
        assert alignment.query_end == len(query) or alignment.target_end == len(target)


def score_of(alignment) -> int:
    return alignment.score if alignment else 0


@settings(max_examples=60)
@given(pairs(90), st.sampled_from(SCORES), st.sampled_from(MODES), st.sampled_from(WAYS[1:]))
def test_optimal_by_definition(pair, scores, mode, way):
    query, target = pair
    with swept(way):
        alignment, _ = align_one(query, target, scores, mode)
    assert score_of(alignment) == naive_exact.best_score(text(query), text(target), *scores, mode)
    if alignment:
        check_path(alignment, query, target, scores, mode)


@pytest.mark.parametrize("way", WAYS)
def test_a_gap_goes_on_from_a_cell_far_below_the_one_before(way):
    """A cell may score less than its neighbour on the diagonal by more than what opening a gap leaves of two gaps."""
    query, target = "TTGGAGGCGTCCCTACGC", "CCTGGCTTCACGGCTACCCA"
    with swept(way):
        alignment, _ = align_one(codes(query), codes(target), STRICT, "global")
    assert alignment.score == naive_exact.best_score(query, target, *STRICT, "global")


PEERS = {"local": parasail.sw_striped_32, "global": parasail.nw_striped_32, "semiglobal": parasail.sg_striped_32}


def peer_score(query, target, scores, mode) -> int:
    """parasail's score; its letters N and M match nothing but themselves, so each sequence has its own unknown base."""
    matrix = parasail.matrix_create("ACGTNM", scores.match, scores.mismatch)
    score = PEERS[mode](text(query), text(target).replace("N", "M"), scores.first, scores.gap_extend, matrix).score
    return score if mode == "global" else max(0, score)  # parasail always pairs something in semiglobal mode


@settings(max_examples=EXAMPLES or 150)
@given(pairs(), st.sampled_from([s for s in SCORES if s.gap_open]), st.sampled_from(MODES))
def test_optimal_as_parasail_says(pair, scores, mode):
    """All ways of sweeping find one alignment, which scores what parasail says."""
    query, target = pair
    found = []
    for way in WAYS:
        with swept(way):
            found.append(align_one(query, target, scores, mode)[0])
    assert [score_of(alignment) for alignment in found] == 3 * [peer_score(query, target, scores, mode)]
    if found[0]:
        check_path(found[0], query, target, scores, mode)
        assert_same(*found[:2])
        assert_same(*found[1:])


def assert_same(one, other):
    assert one[:5] == other[:5]
    np.testing.assert_array_equal(one.runs, other.runs)


@pytest.mark.parametrize("mode", ["global", "semiglobal"])
@pytest.mark.parametrize("n", [600, 1500, 5000])
def test_a_path_along_the_border(mode, n):
    """Long sequences against one or two bases: nearly all of the path is one gap at the border of the matrix."""
    long = np.random.default_rng(n).integers(0, 4, n).astype(np.uint8)
    for short in (np.array([3], np.uint8), np.array([1, 2], np.uint8)):
        for query, target in ((long, short), (short, long), (long[::-1].copy(), short)):
            alignment, _ = align_one(query, target, SCORES[0], mode)
            assert score_of(alignment) == peer_score(query, target, SCORES[0], mode)
            if alignment:
                check_path(alignment, query, target, SCORES[0], mode)


@settings(max_examples=EXAMPLES or 60)
@given(
    pairs(), st.sampled_from([s for s in SCORES if s.gap_open]), st.sampled_from(MODES), st.sampled_from(WAYS[1:]),
    st.sampled_from([32, 64]),
)  # fmt: skip
def test_any_lower_bound_gives_the_same_alignment(pair, scores, mode, way, size):
    """From nothing known, from one less than the score and from the score itself: one alignment, which parasail confirms."""
    query, target = pair
    score = peer_score(query, target, scores, mode)
    nothing = 1 if mode != "global" else -int(scores.gap(len(query)) + scores.gap(len(target)))
    if mode != "global" and score <= 0:
        return
    found = []
    with swept(way), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "SIZES", (size,))
        for known in (nothing, max(nothing, score - 1), score):
            patch.setattr(align, "lower_bound", lambda *_: known)  # noqa: B023
            found.append(align_one(query, target, scores, mode)[0])
    check_path(found[0], query, target, scores, mode)
    assert found[0].score == score
    for other in found[1:]:
        assert_same(found[0], other)


@settings(max_examples=60)
@given(pairs(), st.sampled_from(SCORES[:3]), st.sampled_from(MODES))
@example((codes("ACGTACGTAC"), codes("ACGTACGTAC")), DEFAULT, "local")
def test_bounds_hold_for_every_optimal_path(pair, scores, mode):
    """Along the path found without bounds, score so far, bound and corridor agree that it reaches the optimum."""
    query, target = pair
    alignment, _ = align_one(query, target, scores, mode)
    if not alignment:
        return
    region = bounds.bound_region(query, as_target(target), scores, mode, alignment.score)
    ahead = [gains.ahead(mode == "global") for gains in (region.rows, region.columns)]
    behind = [gains.behind(mode == "global") for gains in (region.rows, region.columns)]
    i, j, so_far = alignment.query_start, alignment.target_start, 0
    for operation, size in path.unpacked(alignment.runs).tolist():
        for step in range(size):
            if operation == PAIR:
                so_far += scores.match if query[i] == target[j] < 4 else scores.mismatch
            else:
                so_far -= scores.gap_extend + (scores.gap_open if step == 0 else 0)
            i, j = i + (operation != TARGET_ALONE), j + (operation != QUERY_ALONE)
            rest = alignment.score - so_far
            assert rest <= min(ahead[0][i], ahead[1][j]) + scores.gap_open
            assert so_far <= min(behind[0][i], behind[1][j])
            block = i // bounds.BLOCK
            assert region.corridor.first[block] <= j <= region.corridor.last[block]


@pytest.mark.parametrize("ends", [False, True])
def test_intervals_hold_what_can_reach_the_score_and_no_more(ends):
    """The widest interval of each block by definition, made to slide one way."""
    rng = np.random.default_rng(7)
    n, m, block = 150, 130, bounds.BLOCK
    rows, columns = (bounds.Gains(*(np.cumsum(rng.integers(-2, 4, (2, k + 1)), 1).astype(np.int32))) for k in (n, m))
    gained = [[gains.behind(ends), gains.ahead(ends)] for gains in (rows, columns)]
    for gains, (behind, ahead) in zip((rows, columns), gained, strict=True):
        for i in range(len(behind)):
            assert behind[i] == gains.end[i] - (gains.start[0] if ends else gains.start[: i + 1].min())
            assert ahead[i] == (gains.end[-1] if ends else gains.end[i:].max()) - gains.start[i]
    whole = bounds.whole(n, m)
    for known in range(-20, int(max(gained[0][1])) + 20, 7):
        found = bounds.find_corridor(rows, columns, known, 3, ends, ends, whole)
        first, last = [], []
        for begin in range(0, n + 1, block):
            (behind, ahead), (columns_behind, columns_ahead) = gained
            part = slice(begin, min(begin + block, n) + 1)
            begins = np.flatnonzero(columns_behind + ahead[part].max() + 3 >= known)
            stops = np.flatnonzero(columns_ahead + behind[part].max() + 3 >= known)
            possible = (behind[part] + ahead[part]).max() + 3 >= known
            first.append(begins[0] if possible and len(begins) else m + 1)
            last.append(stops[-1] if possible and len(stops) else -1)
        assert found.first.tolist() == np.minimum.accumulate(first[::-1])[::-1].tolist()
        assert found.last.tolist() == np.maximum.accumulate(last).tolist()


def related(seed: int, length: int, rate: float = 0.05, insert: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 4, length).astype(np.uint8)
    return query, evolve(rng, query, rate, insert)


@pytest.mark.parametrize("length", [3200, 3207])
@pytest.mark.parametrize("mode", MODES)
def test_the_lower_bound_is_a_good_one(mode, length):
    """Also where the chain goes straight, at rows where blocks of the corridor meet."""
    for seed in range(5):
        query, target = related(seed, length, 0.02, 64)
        target = np.concatenate([target, target[:96]])
        _, work = align_one(query, target, DEFAULT, mode)
        assert work.lower >= 0.97 * score_of(align_one(query, target, DEFAULT, mode)[0])


def test_threads_do_not_matter(monkeypatch):
    monkeypatch.setattr(cpu, "GROUPS_PER_THREAD", 0)
    monkeypatch.setattr(sweeps, "is_narrow", lambda *_: False)
    query, target = related(1, 9000)
    for mode in MODES:
        one, work = align_one(query, target, DEFAULT, mode, sweeper=sweeps.Sweeper(threads=1))
        two, other_work = align_one(query, target, DEFAULT, mode, sweeper=sweeps.Sweeper(threads=2))
        assert_same(one, two)
        assert work[:4] == other_work[:4]


@pytest.mark.parametrize("moved, most, done", [(0, 1 << 26, 2), (3, 1 << 26, 3), (0, 1 << 10, 2)])
def test_two_sweeps_along_lines_at_once(moved, most, done, monkeypatch):
    """The sweep back begins before the one forth has ended; if it began at a wrong cell, another one is made."""
    guess_best, band_sweep, begun = align.guess_best, sweeps.BandSweep, []

    def guess_beside(*given):
        found = guess_best(*given)
        return found._replace(end=(found.end[0] - moved, found.end[1]))

    def sweep(task, *given):
        begun.append(threading.current_thread() is threading.main_thread())
        return band_sweep(task, *given)

    monkeypatch.setattr(align, "guess_best", guess_beside)
    monkeypatch.setattr(sweeps, "BandSweep", sweep)
    monkeypatch.setattr(sweeps, "BOTH_BASES", most)
    query, target = related(1, 9000, 0.02)
    with swept("lines"):
        one, work = align_one(query, target, DEFAULT, "local")
        begun.clear()
        four, other_work = align_one(query, target, DEFAULT, "local", sweeper=sweeps.Sweeper(threads=4))
    assert_same(one, four)
    assert len(begun) == done and begun.count(False) == (most > 1 << 10)
    assert work.forward == other_work.forward and (other_work.backward > 1.5 * work.backward) == bool(moved)


@pytest.mark.parametrize("guess_from", ["highest", "another column", "another score", "no column"])
def test_a_path_is_the_same_wherever_threads_begin(guess_from, monkeypatch):
    """Walks ahead begin where the path runs, beside it, at a cell that no path comes to, or not at all."""
    true = cpu.SpecialRows.highest

    def highest(rows, row):
        column, score = true(rows, row)
        moved = {"another column": (column + 9, score), "another score": (column, score + 1), "no column": (1 << 20, score)}
        return moved.get(guess_from, (column, score))

    monkeypatch.setattr(cpu.SpecialRows, "highest", highest)
    monkeypatch.setattr(sweeps, "EVERY", 64)
    monkeypatch.setattr(trace, "STRETCH", 3)
    steps = []  # whether they were made ahead
    step = trace._Walker.step

    def noted_step(*given):
        steps.append(threading.current_thread() is not threading.main_thread())
        return step(*given)

    monkeypatch.setattr(trace._Walker, "step", noted_step)
    query, target = related(3, 3000, 0.1, 300)
    for mode in MODES:
        with swept("tiles"):
            one, two = (align_one(query, target, DEFAULT, mode, sweeper=sweeps.Sweeper(threads=n))[0] for n in (1, 3))
        assert_same(one, two)
    ahead = sum(steps)
    if guess_from == "highest":
        assert len(steps) - ahead < 1.6 * ahead  # half of them are those of one thread
    if guess_from == "no column":
        assert 0 < ahead < len(steps) / 4  # those from the path's first cell


@pytest.mark.parametrize("width, threads", [(200, 1), (200, 3), (4000, 3)])
def test_a_path_is_the_same_by_windows_of_rows(width, threads, monkeypatch):
    """Narrow windows hold what a path needs of some rows only."""

    def windows_of(rows):
        all_rows = [rows.get(row, 1 << 30) for row in rows.rows.tolist()]
        values = np.full((2, len(all_rows), width), NONE, np.int32)
        about = np.zeros((4, len(all_rows)), np.int64)
        for k, (first, high, gap) in enumerate(all_rows):
            skip = max(0, min(int(high.argmax()) - width // 2, len(high) - width))
            about[:, k] = first + skip, first, first + len(high), high.max()
            values[0, k, : len(high) - skip], values[1, k, : len(high) - skip] = high[skip:][:width], gap[skip:][:width]
        return strips.Windows(rows.rows, *about, *values)

    query, target = related(3, 4000, 0.1, 700)
    monkeypatch.setattr(sweeps, "EVERY", 128)
    monkeypatch.setattr(trace, "STRETCH", 5)
    reached = []
    by_windows = trace.walk_windows
    monkeypatch.setattr(trace, "walk_windows", lambda *given: reached.append(by_windows(*given)) or reached[-1])
    for mode in MODES:
        with swept("tiles"):
            expected, _ = align_one(query, target, DEFAULT, mode)
            with monkeypatch.context() as patch:
                patch.setattr(cpu.SpecialRows, "windows", property(windows_of))
                found, _ = align_one(query, target, DEFAULT, mode, sweeper=sweeps.Sweeper(threads=threads))
        assert_same(found, expected)
    assert sum(reached) > 3 * 15 and (min(reached) < 5)


@settings(max_examples=EXAMPLES or 25, deadline=None)
@given(pairs(900), st.sampled_from(SCORES), st.sampled_from(MODES), st.sampled_from([100, 20_000]), st.sampled_from([1, 3]))
def test_strips_are_cut_until_they_fit(pair, scores, mode, moves, threads):
    """With hardly any room for moves the path is the same."""
    with swept("tiles"):
        expected, _ = align_one(*pair, scores, mode)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (("DIRECT_MOVES", moves), ("DIRECT_ROWS", 2)):
                patch.setattr(trace, name, value)
            found, _ = align_one(*pair, scores, mode, sweeper=sweeps.Sweeper(threads))
    assert (found is None) == (expected is None)
    if found:
        assert_same(found, expected)


def test_lines_and_strips_are_cut_until_they_fit(monkeypatch):
    """With hardly any room for moves, special rows and kept lines the path is the same."""
    query, target = related(2, 5000, 0.1, 3000)
    for mode in MODES:
        expected, _ = align_one(query, target, DEFAULT, mode)
        for way in WAYS[1:]:
            with monkeypatch.context() as patch, swept(way):
                patch.setattr(trace, "DIRECT_MOVES", 20_000)
                patch.setattr(line_paths, "MOST_LINES", 100)
                found, _ = align_one(query, target, DEFAULT, mode, sweeper=sweeps.Sweeper(budget=100_000))
            assert_same(found, expected)
        check_path(found, query, target, DEFAULT, mode)


@pytest.mark.parametrize("piece", [200, 1000])
def test_lower_bounds_by_pieces_belong_to_alignments(monkeypatch, piece):
    """However a chain is cut, no bound is above the best score, or far below that of the chain as a whole."""
    rng = np.random.default_rng(8)
    query, target = related(5, 4000, 0.03)
    foreign = rng.integers(0, 4, 900).astype(np.uint8)
    pairs = [(query, target), (np.concatenate([foreign, query, foreign]), target)]
    pairs.append((query, np.concatenate([target[:1500], foreign, target[1500:]])))
    for one, other in pairs:
        for mode in MODES:
            best = align_one(one, other, DEFAULT, mode)[0]
            whole = guess.lower_bound(one, as_target(other), DEFAULT, mode)
            with monkeypatch.context() as patch:
                patch.setattr(guess, "PIECE", piece)
                known = [guess.guess_best(one, as_target(other), DEFAULT, mode, threads) for threads in (1, 2)]
            assert whole - 50 <= known[0].score <= best.score and known[0][:2] == known[1][:2]
            for one_thread, two in zip(known[0][2:], known[1][2:], strict=True):
                assert one_thread.tolist() == two.tolist()
            assert known[0].end == ((best.query_end, best.target_end) if mode == "local" else None)


def test_parts_of_a_table_pair_the_same_words():
    """Also where a word has an unknown base, and where no word is unique."""
    query, target = related(4, 3000, 0.02)
    query[[5, 1000]], target[77] = 4, 5
    unit = query[:80]
    for one, other in ((query, target), (np.tile(unit, 30), np.tile(unit, 20))):
        for k in (11, 16):
            whole, *others = (anchors.find_segments(one, other, k, 14, threads) for threads in (1, 2, 5, 8))
            assert len(whole) and all(np.array_equal(whole, found) for found in others)
            for i, j, end, matching in whole.tolist():
                same = one[i:end] == other[j : j + end - i]
                assert same[:k].all() and same[-k:].all() and k <= matching <= same.sum()


@pytest.mark.parametrize("apart", [0.02, 0.002, 0])
def test_chains_go_on_through_arrays_of_repeats(apart):
    """Few words of an array are unique, or none; what lies on both sides of it is worth less than its bases would cost."""
    rng = np.random.default_rng(4)

    def mutated(sequence, rate):
        return np.where(rng.random(len(sequence)) < rate, rng.integers(0, 4, len(sequence)), sequence).astype(np.uint8)

    unit, sides = rng.integers(0, 4, 171), rng.integers(0, 4, (2, 3000))
    target = np.concatenate([sides[0], *(mutated(unit, apart) for _ in range(160)), sides[1]]).astype(np.uint8)
    query = np.concatenate([target[:9000], target[9100:]])
    query = mutated(query, 0.02)
    best, _ = align_one(query, target, DEFAULT, "local")
    assert guess.lower_bound(query, as_target(target), DEFAULT, "local") > 0.99 * best.score > 0.7 * len(query)


def test_repeats_without_unique_words_have_a_lower_bound():
    rng = np.random.default_rng(9)
    unit = rng.integers(0, 4, 97).astype(np.uint8)
    known = guess.lower_bound(np.tile(unit, 30), as_target(np.tile(unit, 20)), DEFAULT, "local")
    assert known == 20 * len(unit)


def test_most_of_the_matrix_is_left_out():
    query, target = related(3, 60_000, 0.02)
    alignment, work = align_one(query, target, DEFAULT, "local")
    assert work.lower == alignment.score <= work.upper
    assert work.forward < 0.02 * len(query) * len(target)
    assert alignment.score == peer_score(query, target, DEFAULT, "local")


def test_unrelated_sequences_are_computed_in_full():
    rng = np.random.default_rng(4)
    query, target = (rng.integers(0, 4, n).astype(np.uint8) for n in (20_000, 15_000))
    alignment, work = align_one(query, target, DEFAULT, "local")
    assert alignment.score == peer_score(query, target, DEFAULT, "local")
    assert work.forward > 0.9 * len(query) * len(target)


def make(name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    base = rng.integers(0, 4, 3000).astype(np.uint8)
    unit = rng.integers(0, 4, 37).astype(np.uint8)
    nothing = np.full(3000, 4, np.uint8)
    return {
        "identical": (base, base),
        "nothing in common": (np.zeros(3000, np.uint8), np.full(2000, 3, np.uint8)),
        "one base": (base[:1], base[:1]),
        "one base against many": (base[:1], base),
        "unknown only": (nothing, base),
        "unknown runs": (np.concatenate([base, nothing, base]), np.concatenate([base, nothing[:2500], base])),
        "long insertion": (base, np.concatenate([base[:1500], rng.integers(0, 4, 6000).astype(np.uint8), base[1500:]])),
        "tandem repeat": (np.tile(unit, 80), np.tile(unit, 60)),
        "one letter": (np.zeros(900, np.uint8), np.zeros(700, np.uint8)),
    }[name]


CASES = (
    "identical", "nothing in common", "one base", "one base against many", "unknown only", "unknown runs", "long insertion",
    "tandem repeat", "one letter",
)  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_hard_cases(name, mode, way):
    query, target = make(name)
    with swept(way):
        alignment, _ = align_one(query, target, DEFAULT, mode)
    assert score_of(alignment) == peer_score(query, target, DEFAULT, mode)
    if alignment:
        check_path(alignment, query, target, DEFAULT, mode)


def test_ties_are_broken_as_written():
    """First end in order of rows, last start, gaps as far left as they go, target bases left out first."""
    found, _ = align_one(codes("ACGTTGCAAAAC"), codes("ACGTTGCAAAAAC"), DEFAULT, "global")
    assert path.unpacked(found.runs).tolist() == [[0, 7], [2, 1], [0, 5]]
    twice = codes("ACGTACCA" + "G" * 20 + "ACGTACCA")
    found, _ = align_one(codes("ACGTACCA"), twice, DEFAULT, "local")
    assert (found.query_start, found.query_end, found.target_start, found.target_end) == (0, 8, 0, 8)
    found, _ = align_one(codes("AC"), codes("GT"), Scores(1, -9, 0, 1), "global")
    assert path.unpacked(found.runs).tolist() == [[2, 2], [1, 2]]


def sweep_task(query, target, known, size=32, every=64):
    n, m = len(query), len(target)
    region = bounds.bound_region(query, target, DEFAULT, "local", known)
    free = cpu.free_borders(DEFAULT, n, m)
    return cpu.Task(query, target, DEFAULT, free, bounds.ahead_bounds(region, size, DEFAULT), known, True, True, size, every)


def test_a_sweep_goes_on_from_any_step():
    query, target = related(6, 4000, 0.1)
    task = sweep_task(query, as_target(target), 1)
    whole = cpu.Sweep(task)
    whole.run()
    n_steps = len(whole._ranges)
    for stop in np.linspace(0, n_steps, 11).astype(int):
        first = cpu.Sweep(task)
        ranges, first._ranges = first._ranges, first._ranges[:stop]
        first.run()
        kept = {name: np.copy(value) for name, value in first.state().items()}
        second = cpu.Sweep(task)
        second.restore(kept)
        assert len(ranges) == n_steps and second.step == stop
        second.run()
        np.testing.assert_array_equal(second.best, whole.best)
        np.testing.assert_array_equal(second.last_row, whole.last_row)
        assert second.n_cells == whole.n_cells
        one, other = second.special_rows(), whole.special_rows()
        np.testing.assert_array_equal(one.rows, other.rows)
        for row in one.rows:
            for a, b in zip(one.get(row, len(target)), other.get(row, len(target)), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("floor", [True, False])
def test_a_band_goes_on_from_any_line(floor, monkeypatch):
    """Stopped anywhere, kept and continued: the same best cell, ends, reach and kept lines."""
    query, target = related(6, 4000, 0.1)
    task = sweep_task(query, as_target(target), 900, 32, 512)
    if not floor:
        task = task._replace(borders=cpu.end_borders(DEFAULT, len(query), len(target)), floor=False)
    whole = band.BandSweep(task, keep_ends=floor)
    whole.run()
    assert whole.best[1] > 0
    for stop in np.linspace(0, len(query) + len(target), 11).astype(int):
        first = band.BandSweep(task, keep_ends=floor)
        while first._state.now[lines.LINE] < stop and not first.done:
            lines.run_lines(first._frame, first._state, first._kept, stop)
            first._make_room()
        kept = {name: np.copy(value) for name, value in first.state().items()}
        second = band.BandSweep(task, keep_ends=floor)
        second.restore(kept)
        second.run()
        for name, value in whole.state().items():
            np.testing.assert_array_equal(second.state()[name], value, err_msg=name)


@settings(max_examples=EXAMPLES or 60)
@given(pairs(300), st.sampled_from(SCORES))
@example((codes("AAAAAAAA"), codes("AAAAAAAAAAA")), DEFAULT)
@example((codes("ACGT"), codes("T")), DEFAULT)
def test_waves_find_the_same_alignment(pair, scores):
    """With room for any penalty: score and path of the sweep."""
    query, target = pair
    with swept("lines"):
        expected, _ = align_one(query, target, scores, "global")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "LEAST_CELLS", 1 << 21)
        assert waves.solve(query[::-1].copy(), as_target(target)[::-1].copy(), scores)
        found, work = align_one(query, target, scores, "global")
    assert_same(found, expected)
    assert work.backward > 0


def test_waves_stop_in_time():
    """Sequences that differ much, and repeats in which everything matches, are left to other ways."""
    rng = np.random.default_rng(9)
    one, other = (rng.integers(0, 4, 20_000).astype(np.uint8) for _ in range(2))
    assert waves.solve(one, other, DEFAULT) is None
    assert waves.solve(np.zeros(20_000, np.uint8), np.zeros(19_000, np.uint8), DEFAULT) is None
    assert waves.solve(one, one, DEFAULT).score == len(one)


@settings(max_examples=40)
@given(pairs(300), st.sampled_from(SCORES), st.integers(0, 2**32 - 1))
def test_a_band_never_overrates(pair, scores, seed):
    """In any corridor scores are those of real alignments; where it holds the whole matrix they are the best ones."""
    query, target = pair
    n, m = len(query), len(target)
    rng = np.random.default_rng(seed)
    slack = int(rng.integers(1, m + 2))
    middle = np.linspace(0, m, n // 32 + 1)
    corridor = bounds.Corridor(*(np.clip(middle + by, 0, m).astype(np.int64) for by in (-slack, slack)))
    corridor.first[0], corridor.last[-1] = 0, m
    borders, limits = cpu.end_borders(scores, n, m), bounds.open_bounds(corridor, n, m, scores)
    task = cpu.Task(query, as_target(target), scores, borders, limits, -(1 << 28), False, False, 32)
    sweep = band.BandSweep(task)
    sweep.run()
    true = align_one(query, target, scores, "global")[0].score
    assert sweep.last_row[-1] <= true
    if not corridor.first.any() and (corridor.last == m).all():
        assert sweep.last_row[-1] == true


def test_special_rows_hold_true_scores():
    query, target = related(7, 300, 0.1)
    sweep = cpu.Sweep(sweep_task(query, as_target(target), 1))
    sweep.run()
    high, _, gap = naive_exact.tables(text(query), text(target), *DEFAULT, "local")
    special = sweep.special_rows()
    assert special.rows.tolist() == [64, 128, 192, 256]
    for row in special.rows:
        first, scores, gaps = special.get(row, len(target))
        true, true_gap = (np.array(table[row][first : first + len(scores)]) for table in (high, gap))
        there = scores > NONE
        assert there.any() and (scores <= true).all()
        assert (gaps <= np.maximum(true - DEFAULT.first, true_gap - DEFAULT.gap_extend)).all()


def test_scores_that_fit_no_sequence_are_an_error():
    query = np.zeros(3_000_000, np.uint8)
    with pytest.raises(ParameterError, match="too large"):
        align_one(query, query, Scores(100, -100, 0, 1), "local")


def test_wide_and_narrow_cells_keep_their_distance():
    """What cells.dead and cells.limit promise: differences within a tile fit between."""
    for scores in SCORES:
        for size in sweeps.SIZES:
            wide = cpu.wide_cells(scores, size)
            assert 3 * size * scores.step() < -wide.dead
            assert np.iinfo(wide.name).min < 2 * wide.dead - 2 * scores.first
            low = cpu.low_cells(scores, size)
            if low:
                assert low.limit + size * scores.match + low.dead <= 127
                assert low.dead - scores.first - scores.gap_extend >= -128 and low.dead + scores.mismatch >= -128


def test_blocks_are_few_enough_and_tiles_fit_in():
    for n, m in ((1, 1), (5_000_000, 5_000_000), (250_000_000, 200_000_000), (1_000, 300_000_000)):
        rows, columns = heights.block_shape(n, m)
        assert (n // rows + 1) * (m // columns + 1) <= heights.MOST_BLOCKS
        assert rows % max(sweeps.SIZES) == columns % max(sweeps.SIZES) == 0
