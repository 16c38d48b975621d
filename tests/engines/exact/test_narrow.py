"""Bounds by grids and windows: against tables of true scores, and as bounds of whole alignments that parasail confirms."""

from __future__ import annotations

import os

import naive_exact
import numpy as np
import parasail
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bellapy.engines.exact import align, bounds, cpu, grid_cuts, guess, heights, narrow, parts, rule, sweeps, words
from bellapy.engines.exact.align import align_one
from bellapy.engines.exact.rule import Scores, as_target

EXAMPLES = int(os.environ.get("EXACT_EXAMPLES", "0"))
SCORES = (
    Scores(),
    Scores(2, -4, 4, 2),
    Scores(1, -1, 1, 1),
    Scores(5, -4, 10, 1),
    Scores(100, -100, 900, 100),
    Scores(4, -8, 5, 1),
)
PEERS = {"local": parasail.sw_striped_32, "global": parasail.nw_striped_32, "semiglobal": parasail.sg_striped_32}


@st.composite
def pairs(draw, longest):
    """A query, full of repeats or not, and a target: evolved, with a foreign piece, its halves exchanged, or unrelated."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(20, longest))
    query = rng.integers(0, 4, n).astype(np.uint8)
    if draw(st.booleans()):
        unit = query[:37]
        for at in range(0, n - 40, 53):
            query[at : at + len(unit)] = np.where(rng.random(len(unit)) < 0.05, rng.integers(0, 4, len(unit)), unit)
    rate = draw(st.sampled_from([0, 0.02, 0.1, 0.3, 1]))
    target = np.where(rng.random(n) < rate, rng.integers(0, 4, n), query)[rng.random(n) >= rate / 4].astype(np.uint8)
    middle = len(target) // 2
    foreign = rng.integers(0, 4, draw(st.sampled_from([0, 3, 90]))).astype(np.uint8)
    parts = [target[:middle], foreign, target[middle:]]
    target = np.concatenate(parts[:: draw(st.sampled_from([1, -1]))])
    if draw(st.booleans()):
        query[rng.random(n) < 0.03] = 4
        target[rng.random(len(target)) < 0.03] = 4
    return query, target if len(target) else query


def text(codes) -> str:
    return "".join("ACGTNM"[code] for code in codes)


@pytest.fixture(autouse=True)
def small_grids(monkeypatch):
    """Grids, several levels of them, and windows for short sequences."""
    for name, value in {"FLAT": 8, "LEAST_ROWS": 32, "FINER": 2, "MOST_BANDS": 400}.items():
        monkeypatch.setattr(narrow, name, value)
    for name, value in {"HALF_WIDTH": 8, "STEP": 16, "PART_ROWS": 64, "EARLY": 32}.items():
        monkeypatch.setattr(parts, name, value)
    for name, value in {"WINDOW_SHARE": 1, "WORTH": 0, "WIDE": 0}.items():
        monkeypatch.setattr(narrow, name, value)
    monkeypatch.setattr(bounds, "HOPE", 1 << 20)
    for name, value in {"LEAST_ROWS": 64, "FLAT": 2}.items():
        monkeypatch.setattr(heights, name, value)


def scores_of_cells(query, target, scores, is_global):
    """(3, rows + 1, columns + 1) both: the best score of what leads to each cell, and of what goes on from it; with a gap
    that ends there, along the row or down the column, in the second and third."""
    mode = "global" if is_global else "local"
    behind = np.array(naive_exact.tables(text(query), text(target), *scores, mode))
    ahead = np.array(naive_exact.tables(text(query[::-1]), text(target[::-1]), *scores, mode))
    return behind, ahead[:, ::-1, ::-1]


@settings(max_examples=EXAMPLES or 25, deadline=None)
@given(
    pairs(120),
    st.sampled_from(SCORES),
    st.booleans(),
    st.sampled_from([0, 1, 30, 1 << 20]),
    st.sampled_from(["windows", "words", "large blocks"]),
    st.sampled_from([1, 3]),
    st.lists(st.tuples(st.integers(0, 120), st.integers(1, 90), st.integers(-120, 120), st.integers(0, 60)), max_size=2),
)
def test_bounds_hold_in_every_cell(pair, scores, is_global, less, way, threads, stretches):
    """Of a cell on an alignment that scores what is known: no bound is below what is true, and no interval leaves it out.

    Large blocks are those before a GPU.  stretches : said to match nothing, whether they do or not.
    """
    query, target = pair[0], as_target(pair[1])
    behind, ahead = scores_of_cells(query, target, scores, is_global)
    best = int(behind[0, -1, -1] if is_global else behind[0].max())
    known = best - less if is_global else max(1, best - less)
    n, m = len(query), len(target)
    whole = bounds.whole(n, m)
    unmatched = np.array([(i, i + rows, d, d + more) for i, rows, d, more in stretches], np.int64).reshape(-1, 4)
    matrix = narrow.Matrix(
        query, target, scores, known, is_global, bounds.BLOCK, threads, lambda: way == "large blocks", unmatched
    )
    with pytest.MonkeyPatch.context() as patch:
        if way == "words":
            patch.setattr(narrow, "PASSES", 0)
        if way == "large blocks":
            patch.setattr(narrow, "_is_enough", lambda *_: True)
            patch.setattr(narrow, "finer", None)
        limits = narrow.find_limits(matrix, whole.first, whole.last)
    opened_twice = np.array([0, scores.gap_open, scores.gap_open])[:, None, None]
    state, rows, columns = np.nonzero(behind + ahead + opened_twice >= known)
    assert (behind[state, rows, columns] <= limits.behind[rows] + scores.gap_open).all()
    assert (ahead[state, rows, columns] <= limits.ahead[rows] + scores.gap_open).all()
    for block in (rows // bounds.BLOCK, np.maximum(0, rows - 1) // bounds.BLOCK):
        assert (limits.first[block] <= columns).all() and (columns <= limits.last[block]).all()
    end = np.unravel_index(behind[0].argmax(), behind[0].shape) if not is_global else (n, m)
    ways = ((limits.at_ahead, (n, m), ahead, (rows, columns)), (limits.at_behind, (n, m), behind, (n - rows, m - columns)),
            (limits.at_behind, end, behind, (end[0] - rows, end[1] - columns)))  # fmt: skip
    for way, (at, shape, true, cells) in enumerate(ways):
        blocks = heights.bound_blocks(heights.reversed_heights(at, *shape) if way else at, *shape, scores, 64)
        inside = (cells[0] >= 0) & (cells[1] >= 0)
        for down, right in ((0, 0), (1, 0), (0, 1), (1, 1)):  # on a border, a cell belongs to the blocks before, too
            i, j = (np.maximum(0, x[inside] - by) for x, by in zip(cells, (down, right), strict=True))
            bound = blocks.most[i // blocks.rows, j // blocks.columns]
            assert (true[state, rows, columns][inside] <= bound + scores.gap_open).all()


@settings(max_examples=EXAMPLES or 6, deadline=None)
@given(pairs(400), st.sampled_from(SCORES), st.sampled_from(list(PEERS)), st.sampled_from([1, 3]))
def test_alignments_within_such_bounds_are_optimal(pair, scores, mode, threads):
    """From nothing known, one less than the score, and the score: parasail's score, and the path found without a grid."""
    query, target = pair
    matrix = parasail.matrix_create("ACGTNM", scores.match, scores.mismatch)
    peer = PEERS[mode](text(query), text(as_target(target)), scores.first, scores.gap_extend, matrix).score
    score = peer if mode == "global" else max(0, peer)
    nothing = 1 if mode != "global" else -int(scores.gap(len(query)) + scores.gap(len(target)))
    if mode != "global" and score <= 0:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(align, "solve", lambda *_: None)
        patch.setattr(narrow, "WORTH", 1 << 60)
        expected, _ = align_one(query, target, scores, mode)
    assert expected.score == score
    for known in (nothing, max(nothing, score - 1), score):
        for is_narrow in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(align, "solve", lambda *_: None)
                patch.setattr(align, "lower_bound", lambda *_: known)  # noqa: B023
                if not is_narrow:
                    patch.setattr(sweeps, "is_narrow", lambda *_: False)
                found, _ = align_one(query, target, scores, mode, sweeper=sweeps.Sweeper(threads))
            assert found[:5] == expected[:5]
            np.testing.assert_array_equal(found.runs, expected.runs)


@settings(max_examples=EXAMPLES or 25, deadline=None)
@given(pairs(300), st.sampled_from(SCORES), st.booleans(), st.integers(0, 30), st.sampled_from([1, 3]))
def test_corridors_by_the_transposed_matrix_hold_the_alignment(pair, scores, is_global, less, threads):
    """Whatever stretches of columns are said to match nothing; and no score is above the bound."""
    query, target = pair[0], as_target(pair[1])
    behind, ahead = scores_of_cells(query, target, scores, is_global)
    best = int(behind[0, -1, -1] if is_global else behind[0].max())
    known = best - less if is_global else max(1, best - less)
    mode = "global" if is_global else "local"
    across = np.array([[0, len(target), -len(target), len(query)], [5, 40, -20, 30]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "WORTH", 0)
        patch.setattr(narrow, "WIDE", 0)
        patch.setattr(bounds, "HOPE", 1 << 40)
        region = bounds.bound_region(query, target, scores, mode, known, threads, unmatched_across=across)
    if best >= known:
        assert bounds.upper_bound(region) >= best
    opened_twice = np.array([0, scores.gap_open, scores.gap_open])[:, None, None]
    _, rows, columns = np.nonzero(behind + ahead + opened_twice >= known)
    for block in (rows // bounds.BLOCK, np.maximum(0, rows - 1) // bounds.BLOCK):
        assert (region.corridor.first[block] <= columns).all() and (columns <= region.corridor.last[block]).all()


@pytest.mark.parametrize("on_gpu, worth, most, is_enough", [
    (True, 1 << 40, 160, True), (False, 1 << 40, 160, False), (True, 1 << 10, 160, False), (True, 1 << 40, 110, False)
])  # fmt: skip
def test_large_blocks_are_enough_for_a_gpu_unless_much_is_left_or_all_may_go(monkeypatch, on_gpu, worth, most, is_enough):
    monkeypatch.setattr(narrow, "GPU_WORTH", worth)
    codes, whole = np.zeros(300, np.uint8), bounds.whole(300, 300)
    matrix = narrow.Matrix(codes, codes, Scores(), 100, False, bounds.BLOCK, 1, lambda: on_gpu)
    grid = grid_cuts.first_grid(whole.first, whole.last, bounds.BLOCK, matrix.shape, 64, 8)
    ahead = np.full(len(grid.alive), most)
    ahead[0], grid.alive[0] = 1000, False
    assert narrow._is_enough(matrix, grid, ahead) == is_enough


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("k", [3, 6])
def test_words_are_listed_where_they_are(k, threads):
    rng = np.random.default_rng(k)
    codes = rng.integers(0, 4, 500).astype(np.uint8)
    codes[[7, 300, 301]] = 4, 5, 4
    begin, places = words.index_words(codes, k, threads)
    for word in range(4**k):
        bases = [word >> 2 * (k - 1 - x) & 3 for x in range(k)]
        true = [i for i in range(len(codes) - k + 1) if codes[i : i + k].tolist() == bases]
        assert places[begin[word] : begin[word + 1]].tolist() == true


@pytest.mark.parametrize("scores", [*SCORES, Scores(1, -1, 0, 1), Scores(3, -1, 0, 2), Scores(1, -3, 50, 1)])
@pytest.mark.parametrize("k", [3, 9])
def test_costs_of_words_and_diagonals_are_paid_by_every_gap(scores, k):
    costs = words.word_costs(scores, k)
    assert costs.word >= 1 and costs.up >= 0 and costs.down >= 0
    assert costs.word <= scores.match - scores.mismatch >= costs.unknown
    most, per_base = words.break_cost(scores, k), scores.gap_extend + scores.match
    assert costs.word <= most <= min(scores.first, k * per_base, scores.gap_open / 2 + per_base)
    assert costs.unknown * most / costs.word <= min(scores.match - scores.mismatch, per_base)
    for size in range(1, 200):
        assert costs.word + costs.up * size <= scores.gap_open + scores.gap_extend * size
        paid = scores.gap_open + (scores.gap_extend + scores.match) * size - costs.down * size
        touched = 1 if size == 1 else (size - 2) // k + 2
        assert touched * costs.word <= paid and costs.unknown * size <= paid


@pytest.mark.parametrize("is_local", [True, False])
def test_a_sweep_marks_the_highest_scores(is_local):
    """The true ones, of a row's groups of columns; of tiles that were left out there is none."""
    rng = np.random.default_rng(5)
    query = rng.integers(0, 4, 200).astype(np.uint8)
    target = np.where(rng.random(200) < 0.2, rng.integers(0, 4, 200), query)[:-30].astype(np.uint8)
    n, m, scores = len(query), len(target), Scores()
    borders = cpu.free_borders(scores, n, m) if is_local else cpu.end_borders(scores, n, m)
    limits = bounds.open_bounds(bounds.whole(n, m), n, m, scores)
    known = 1 if is_local else -1000
    sweep = cpu.Sweep(cpu.Task(query, target, scores, borders, limits, known, is_local, True, 32, marks=(64, 32)))
    sweep.run()
    true = np.array(naive_exact.tables(text(query), text(target), *scores, "local" if is_local else "global")[0])
    assert sweep.marks.rows.tolist() == [64, 128, 192]
    for row, values in zip(sweep.marks.rows, sweep.marks.values, strict=True):
        highest = np.array([true[row, g + 1 : g + 33].max() for g in range(0, m, 32)])
        there = values != rule.NONE
        assert (values[there] == highest[there]).all() and there[highest.argmax()]


def test_a_turned_grid_holds_the_same_cells():
    """Of reversed sequences: block by block in reverse order, the same bands of diagonals."""
    n, m = 300, 210
    whole = bounds.whole(n, m)
    one = grid_cuts.first_grid(whole.first, whole.last, bounds.BLOCK, (n, m), 64, 8)
    two = grid_cuts.turned(one, n, m)

    def diagonals(of, block, b):
        return (int(of.low[block]) + b) * of.width - of.offset

    for block in range(len(one.low)):
        back, size = len(one.low) - 1 - block, int(one.begin[block + 1] - one.begin[block])
        assert two.edges[back + 1] == n - one.edges[block]
        for b in range(size):
            assert diagonals(two, back, size - 1 - b) == m - n - (diagonals(one, block, b) + one.width - 1)
    for band, diagonal in ((two.start, 0), (two.end, m - n)):
        assert band * two.width - two.offset <= diagonal < (band + 1) * two.width - two.offset


def test_a_transposed_corridor_holds_the_same_cells():
    rng = np.random.default_rng(4)
    n, m = 400, 350
    first, last = (np.sort(rng.integers(0, m, n // bounds.BLOCK + 1)) for _ in range(2))
    corridor = bounds.Corridor(np.minimum(first, last), np.maximum(first, last))
    across = bounds.transposed(corridor, n, m)
    for i in range(n + 1):
        for j in range(corridor.first[i // bounds.BLOCK], corridor.last[i // bounds.BLOCK] + 1):
            assert across.first[j // bounds.BLOCK] <= i <= across.last[j // bounds.BLOCK]


def test_nothing_is_left_of_what_scores_too_little(monkeypatch):
    """Unrelated sequences, and a score that takes related ones: the grid alone tells that there is no such alignment."""
    rng = np.random.default_rng(6)
    query, target = (rng.integers(0, 4, 20_000).astype(np.uint8) for _ in range(2))
    for name, value in {"FLAT": 32, "LEAST_ROWS": 256, "MOST_BANDS": 1 << 20}.items():
        monkeypatch.setattr(narrow, name, value)
    gains, scores = bounds.whole_gains(query, target, Scores()), Scores()
    region = bounds.Region(*gains, bounds.whole(len(query), len(target)), 11_000, scores.gap_open, False, False)
    matrix = narrow.Matrix(query, target, scores, region.known, False, bounds.BLOCK, 1)
    assert bounds.upper_bound(region) >= region.known
    assert bounds.upper_bound(bounds._by_grid(matrix, region)) == region.known - 1


def test_an_inversion_leaves_little(monkeypatch):
    """Windows hold every way around what matches nothing."""
    rng = np.random.default_rng(7)
    query = rng.integers(0, 4, 60_000).astype(np.uint8)
    target = np.where(rng.random(len(query)) < 0.02, rng.integers(0, 4, len(query)), query).astype(np.uint8)
    target[30_000:34_000] = 3 - target[30_000:34_000][::-1]
    for name, value in {"FLAT": 32, "LEAST_ROWS": 256, "MOST_BANDS": 1 << 20}.items():
        monkeypatch.setattr(narrow, name, value)
    for name, value in {"HALF_WIDTH": 128, "STEP": 256}.items():
        monkeypatch.setattr(parts, name, value)
    found, work = align_one(query, target, Scores(), "local")
    assert work.upper < found.score + 2_000 and work.forward < len(query) ** 2 / 50, work


@pytest.mark.parametrize("threads", [1, 3])
def test_a_long_insertion_leaves_little(threads, monkeypatch):
    """Windows hold every way through rows that match nothing, as far as a chain tells of them; in parts, too."""
    rng = np.random.default_rng(7)
    query = rng.integers(0, 4, 60_000).astype(np.uint8)
    target = as_target(np.where(rng.random(len(query)) < 0.02, rng.integers(0, 4, len(query)), query).astype(np.uint8))
    query = np.concatenate([query[:40_000], rng.integers(0, 4, 6_000).astype(np.uint8), query[40_000:]])
    for name, value in {"FLAT": 32, "LEAST_ROWS": 256, "MOST_BANDS": 1 << 20}.items():
        monkeypatch.setattr(narrow, name, value)
    for name, value in {"HALF_WIDTH": 64, "STEP": 128, "PART_ROWS": 16384, "EARLY": 2048}.items():
        monkeypatch.setattr(parts, name, value)
    known, unmatched = guess.guess_best(query, target, Scores(), "local")[::2]
    assert abs(unmatched - [[40_000, 46_000, -9_000, 3_000]]).max() < 60
    most = [
        bounds.upper_bound(bounds.bound_region(query, target, Scores(), "local", known, threads, unmatched=stretches))
        for stretches in (unmatched, narrow.NONE_UNMATCHED)
    ]
    assert known <= most[0] < known + 1_500 < most[1], (known, most)


def test_stretches_without_matches_are_kept_in_bounds():
    """The smallest ones, with as many cells as may be computed; and those of the reversed sequences."""
    unmatched = np.array([[0, 100, -10, 90], [20, 30, 5, 15], [200, 300, 0, 10]])
    assert narrow._affordable(unmatched, 1_100).tolist() == [[20, 30, 5, 15], [200, 300, 0, 10]]
    assert narrow._affordable(unmatched, 50).tolist() == []
    codes = np.zeros(400, np.uint8)
    matrix = narrow.Matrix(codes, codes[:300], Scores(), 10, False, bounds.BLOCK, 1, False, unmatched)
    assert matrix.reversed().unmatched.tolist() == [[300, 400, -190, -90], [370, 380, -115, -105], [100, 200, -110, -100]]
    assert matrix.reversed().reversed().unmatched.tolist() == unmatched.tolist()


def test_copies_of_repeats_cost_little(monkeypatch):
    """Copies of a repeat everywhere: with a grid hardly anything is left, and without it much."""
    rng = np.random.default_rng(3)
    query, unit = (rng.integers(0, 4, n).astype(np.uint8) for n in (60_000, 300))
    for at in range(0, len(query) - 300, 400):
        query[at : at + 300] = np.where(rng.random(300) < 0.05, rng.integers(0, 4, 300), unit)
    target = np.where(rng.random(len(query)) < 0.1, rng.integers(0, 4, len(query)), query).astype(np.uint8)
    for name, value in {"FLAT": 32, "LEAST_ROWS": 256, "MOST_BANDS": 1 << 20, "PASSES": 1}.items():
        monkeypatch.setattr(narrow, name, value)
    for name, value in {"HALF_WIDTH": 128, "STEP": 256}.items():
        monkeypatch.setattr(parts, name, value)
    known, area = guess.lower_bound(query, as_target(target), Scores(), "local"), []
    for worth in (0, 1 << 60):
        monkeypatch.setattr(narrow, "WORTH", worth)
        region = bounds.bound_region(query, as_target(target), Scores(), "local", known)
        area.append(region.corridor.area(len(query)))
    assert 5 * area[0] < area[1], area


def test_parts_of_windows_tell_as_much_as_one_whole(monkeypatch):
    """Of a pair with gaps of up to a hundred bases: hardly more is left if the windows are cut into parts."""
    rng = np.random.default_rng(8)
    query = rng.integers(0, 4, 60_000).astype(np.uint8)
    target = np.where(rng.random(len(query)) < 0.05, rng.integers(0, 4, len(query)), query).astype(np.uint8)
    target = np.delete(target, np.concatenate([np.arange(at, at + at // 600) for at in range(2_000, 60_000, 3_000)]))
    for name, value in {"FLAT": 32, "LEAST_ROWS": 256, "MOST_BANDS": 1 << 20}.items():
        monkeypatch.setattr(narrow, name, value)
    for name, value in {"HALF_WIDTH": 128, "STEP": 256, "PART_ROWS": 8192, "EARLY": 2048}.items():
        monkeypatch.setattr(parts, name, value)
    whole, target = bounds.whole(len(query), len(target)), as_target(target)
    matrix = narrow.Matrix(query, target, Scores(), guess.lower_bound(query, target, Scores(), "local"), False, 32, 1)
    most = [narrow.find_limits(matrix._replace(threads=n), whole.first, whole.last).ahead.max() for n in (1, 3)]
    assert matrix.known <= most[0] <= most[1] < most[0] + 300, (matrix.known, most)
