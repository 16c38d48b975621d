"""The exact sweep on GPUs: on a GPU if there is one, else in Numba's simulator, if asked for by NUMBA_ENABLE_CUDASIM=1.

The simulator is slow and needs NUMBA_DISABLE_JIT=1 too, so these cases are small; `.ci/run` runs them there.
"""

from __future__ import annotations

import naive_exact
import numpy as np
import pytest

from bellapy.compute.gpu.devices import find_gpus
from bellapy.engines.exact import align, bounds, heights, sweeps
from bellapy.engines.exact.align import align_one
from bellapy.engines.exact.cpu import Bounds, Task, end_borders, free_borders
from bellapy.engines.exact.rule import NONE, Scores, as_target
from bellapy.engines.exact.trace import Cell
from bellapy.errors import DeviceError
from bellapy.report.run_report import Devices

try:
    find_gpus()
except DeviceError as error:
    pytest.skip(f"the GPU kernels do not run here: {error}", allow_module_level=True)

from bellapy.compute.gpu.ops import SIMULATED
from bellapy.compute.gpu.pool import pool
from bellapy.engines.exact.gpu import plan as cuda_plan
from bellapy.engines.exact.gpu import sweep as cuda
from bellapy.engines.exact.gpu.plan import (
    DEFAULT,
    Sizes,
    choose_kept,
    fits,
    keep_busy,
    list_tasks,
    living_tiles,
    panel_edges,
    rows_of,
)
from bellapy.engines.exact.gpu.records import LAG, NOT_KEPT, Kind
from bellapy.engines.exact.gpu.sweep import GpuSweep, best_of

pytestmark = pytest.mark.usefixtures("quick_threads")
MODES = "local", "global", "semiglobal"
SCORES = Scores(), Scores(2, -3, 4, 1), Scores(1, -1, 0, 1), Scores(4, -7, 5, 1)
STRIP = rows_of(Kind(Sizes().registers, Sizes().steps, False))


def text(codes) -> str:
    return "".join("ACGTNN"[code] for code in codes)


def evolved(rng, query, rate=0.1):
    """A relative, as a sweep takes it."""
    target = query[rng.random(len(query)) >= rate / 2]
    return as_target(np.where(rng.random(len(target)) < rate, rng.integers(0, 4, len(target)), target).astype(np.uint8))


def task_of(query, target, scores, mode, known=None, limits=None, every=0, marks=(0, 0)):
    """A sweep over the whole matrix, or within limits."""
    n, m, size = len(query), len(target), 32
    if limits is None:
        n_rows = -(-n // size)
        gains = [np.full(k + 1, 1 << 20, np.int32) for k in (n, m)]
        limits = Bounds(*gains, np.zeros(n_rows, np.int32), np.full(n_rows, m, np.int32))
    known = known if known is not None else 1 if mode == "local" else -(1 << 29)
    borders, local = (end_borders if mode == "global" else free_borders)(scores, n, m), mode == "local"
    return Task(query, target, scores, borders, limits, known, local, local, size, every, marks)


def first_best(high):
    """Score, row and column of the first best cell in order of rows."""
    best = max(map(max, high))
    return next((best, i, row.index(best)) for i, row in enumerate(high) if best in row)


def swept(*arguments, sizes=DEFAULT, **options):
    sweep = GpuSweep(task_of(*arguments, **options), sizes=sizes)
    sweep.run()
    return sweep


@pytest.mark.parametrize(
    "mode, scores, panel",
    [(mode, SCORES[(i + j) % 4], panel) for i, mode in enumerate(MODES) for j, panel in enumerate((0, 1, 3))],
)
def test_cells_are_those_of_the_definition(rng, mode, scores, panel):
    """More than one strip, unknown bases in one pair, panels of any width."""
    query = rng.integers(0, 4, STRIP + 7).astype(np.uint8)
    target = evolved(rng, query) if panel != 1 else rng.integers(0, 4, STRIP).astype(np.uint8)
    if panel == 3:
        query[[3, STRIP - 1]], target[[3, 9]] = 4, 5
    sweep = swept(query, target, scores, mode, sizes=Sizes(panel=panel))
    high, _, _ = naive_exact.tables(text(query), text(target), *scores, mode)
    if mode == "local":
        assert tuple(sweep.best) == first_best(high)
        assert sweep.n_cells == len(query) * len(target)
    else:
        assert sweep.last_row.tolist() == high[-1]
        assert sweep.last_column.tolist() == [row[-1] for row in high]


@pytest.mark.parametrize("n, m", [(1, 1), (1, 40), (40, 1), (STRIP, LAG), (STRIP + 1, LAG + 1)])
def test_sizes_at_edges(rng, n, m):
    query, target = (rng.integers(0, 4, k).astype(np.uint8) for k in (n, m))
    sweep = swept(query, target, SCORES[0], "global")
    high, _, _ = naive_exact.tables(text(query), text(target), *SCORES[0], "global")
    assert sweep.last_row.tolist() == high[-1] and sweep.last_column.tolist() == [row[-1] for row in high]


@pytest.mark.parametrize("below", [0, 1, 100])
def test_tiles_are_left_out_and_the_best_cell_stays(rng, below):
    """With the score known, one less, and nothing known."""
    size = 3 * STRIP if SIMULATED else 20_000
    query = rng.integers(0, 4, size).astype(np.uint8)
    target = evolved(rng, query, 0.02)
    if SIMULATED:
        high, _, _ = naive_exact.tables(text(query), text(target), *SCORES[0], "local")
        expected = first_best(high)
    else:
        expected = tuple(swept(query, target, SCORES[0], "local").best)
    known = max(1, expected[0] - below)
    region = bounds.bound_region(query, target, SCORES[0], "local", known)
    limits = bounds.ahead_bounds(region, 32, SCORES[0])
    for panel in (0, 2):
        sweep = swept(query, target, SCORES[0], "local", known=known, limits=limits, sizes=Sizes(panel=panel))
        assert tuple(sweep.best) == expected
        assert below > 1 or sweep.n_cells < 0.9 * size * len(target)
        there = sweep.reach[:, 1] >= 0
        assert there.any() and (sweep.reach[there, 0] <= sweep.reach[there, 1]).all()


def test_kept_rows_hold_the_scores_that_matter(rng):
    """All from which a path may lead to the goal, with F for the row below."""
    query = rng.integers(0, 4, 2 * STRIP + 5).astype(np.uint8)
    target = evolved(rng, query)
    if not SIMULATED:
        query, target = query[: STRIP + 5], target[: STRIP + 5]
    sweep = swept(query, target, SCORES[0], "global", every=STRIP)
    rows = sweep.special_rows()
    assert rows.rows.tolist() == list(range(STRIP, len(query), STRIP))
    high, _, gap = naive_exact.tables(text(query), text(target), *SCORES[0], "global")
    goal = Cell(len(query), len(target), False, int(high[-1][-1]))
    for row in rows.rows.tolist():
        first, scores, gaps = rows.get(row, len(target), goal)
        assert 0 < len(scores) == len(gaps)
        for column in range(1, len(target) + 1):  # all from which the goal can be reached
            down, across = goal.row - row, goal.column - column
            most = SCORES[0].match * min(down, across) - int(SCORES[0].gap(abs(down - across)))
            inside = first <= column < first + len(scores)
            assert inside or high[row][column] + most < goal.score
        assert scores.tolist() == high[row][first : first + len(scores)]
        below = [max(h - SCORES[0].first, f - SCORES[0].gap_extend) for h, f in zip(high[row], gap[row], strict=True)]
        assert gaps.tolist() == below[first : first + len(gaps)]


@pytest.mark.parametrize("mode", MODES)
def test_alignments_are_those_of_the_definition(rng, mode, monkeypatch):
    """Score and path, both sweeps on the GPU."""
    monkeypatch.setattr(align, "solve", lambda *_: None)
    monkeypatch.setattr(sweeps, "GPU_CELLS", 0)
    monkeypatch.setattr(sweeps, "GPU_WIDTH", 0)
    monkeypatch.setattr(sweeps, "EVERY", STRIP)
    monkeypatch.setattr(align, "solve", lambda *_: None)  # waves, which need no sweep
    query = rng.integers(0, 4, STRIP + 12).astype(np.uint8)
    target = np.concatenate([rng.integers(0, 4, 5).astype(np.uint8), evolved(rng, query)])
    devices = Devices()
    found, work = align_one(query, target, SCORES[0], mode, sweeper=sweeps.Sweeper(find_devices=lambda: devices))
    assert found.score == naive_exact.best_score(text(query), text(target), *SCORES[0], mode)
    assert sum(use.cells for use in devices.used()) == work.forward + work.backward > 0
    if not SIMULATED:
        expected, _ = align_one(query, target, SCORES[0], mode)
        assert expected[:5] == found[:5] and (expected.runs == found.runs).all()


@pytest.mark.parametrize("moved, done", [(0, ["forward_gpu"]), (3, ["forward_gpu", "backward_gpu"])])
def test_the_sweep_back_is_done_beside_the_one_forth(rng, moved, done, monkeypatch):
    """From where the best alignment most likely ends; if it does not, another one is made."""
    monkeypatch.setattr(sweeps, "GPU_CELLS", 0)
    monkeypatch.setattr(sweeps, "GPU_WIDTH", 0)
    names, sweep_on_gpus, guess_best = [], sweeps.Sweeper._sweep_on_gpus, align.guess_best

    def sweep(sweeper, name, *given):
        names.append(name)
        return sweep_on_gpus(sweeper, name, *given)

    def guess(*given):
        found = guess_best(*given)
        return found._replace(end=(found.end[0] - moved, found.end[1]))

    monkeypatch.setattr(GpuSweep, "leaves_room", True)
    monkeypatch.setattr(sweeps.Sweeper, "_sweep_on_gpus", sweep)
    monkeypatch.setattr(align, "guess_best", guess)
    query = rng.integers(0, 4, 3 * STRIP + 12).astype(np.uint8)
    flanks = [rng.integers(0, 4, 9).astype(np.uint8) for _ in range(2)]
    target = np.concatenate([flanks[0], evolved(rng, query, 0.02), flanks[1]])
    expected, _ = align_one(query, target, SCORES[0], "local")
    known, told = [], Devices()
    sweeper = sweeps.Sweeper(find_devices=lambda: told, beside=known.append)
    found, work = align_one(query, target, SCORES[0], "local", sweeper=sweeper)
    assert expected[:5] == found[:5] and (expected.runs == found.runs).all()
    assert names == done and known == [work.lower, found.score][: len(done)]
    assert sum(use.cells for use in told.used()) == work.forward + work.backward


@pytest.mark.parametrize("mode, panels, shares", [("local", 1, 1), ("global", 3, 1), ("local", 2, 2)])
def test_the_highest_scores_of_rows_are_noted(rng, mode, panels, shares):
    """The true ones, by groups of columns that are wider than tiles or not; also where panels are dealt to several GPUs."""
    query = rng.integers(0, 4, 2 * STRIP + 5).astype(np.uint8)
    target = evolved(rng, query, 0.2)[: STRIP + 3]
    columns = LAG if shares == 1 else 4 * LAG
    task, kind = task_of(query, target, SCORES[0], mode, marks=(STRIP, columns)), Kind(*DEFAULT[:2], False)
    sizes = Sizes(panel=-(-int(living_tiles(task, kind).max()) // panels))
    sweep = GpuSweep(task, sizes=sizes, gpus=[pool().devices[0]] * shares)
    sweep.run()
    high = np.array(naive_exact.tables(text(query), text(target), *SCORES[0], mode)[0])
    assert sweep.marks.rows.tolist() == [STRIP, 2 * STRIP] and sweep.marks.columns == columns
    for row, values in zip(sweep.marks.rows, sweep.marks.values, strict=True):
        highest = [high[row, g + 1 : g + columns + 1].max(initial=NONE) for g in range(0, len(target) + 1, columns)]
        assert values.tolist() == highest


@pytest.mark.parametrize("less", [0, 1])
def test_noted_scores_leave_little_to_the_sweep_back(rng, less):
    """The same best cell and kept rows as without them and without bounds along the sequences; with the score known, or one
    less."""
    query = rng.integers(0, 4, 3 * STRIP + 9).astype(np.uint8)
    flank = rng.integers(0, 4, 2 * STRIP).astype(np.uint8)
    target = np.concatenate([flank, evolved(rng, query, 0.03), flank[: STRIP // 2]])
    forth = swept(query, target, SCORES[0], "local", marks=(STRIP, LAG))
    known, (n, m) = int(forth.best[0]) - less, forth.best[1:].tolist()
    behind = heights.reversed_heights(forth.marks, n, m)
    back = task_of(query[:n][::-1].copy(), target[:m][::-1].copy(), SCORES[0], "local", known)
    back = back._replace(borders=end_borders(SCORES[0], n, m), floor=False, every=STRIP)
    blocks = heights.bound_blocks(behind, n, m, SCORES[0], STRIP)
    sweeps_back = [GpuSweep(task) for task in (back, back._replace(bounds=back.bounds._replace(blocks=blocks)))]
    for sweep in sweeps_back:
        sweep.run()
    assert tuple(sweeps_back[0].best) == tuple(sweeps_back[1].best) and sweeps_back[0].best[0] == forth.best[0]
    assert sweeps_back[1].n_cells < 0.8 * sweeps_back[0].n_cells
    score, *cell = sweeps_back[0].best.tolist()
    all_rows, rows = (sweep.special_rows() for sweep in sweeps_back)
    windows = rows.windows
    assert (windows.end - windows.begin < all_rows.windows.end - all_rows.windows.begin).any()
    for row in rows.rows[rows.rows < cell[0]].tolist():
        column, _ = at = rows.highest(row)
        assert at == all_rows.highest(row)
        begin, *values = rows.get(row, cell[1], Cell(*cell, False, score))
        its_begin, *its_values = all_rows.get(row, cell[1], Cell(*cell, False, score))
        assert [x[column - begin] for x in values] == [x[column - its_begin] for x in its_values]


def test_warps_that_would_only_wait_are_left_out():
    wide, narrow = np.tile(np.array([0, 19_150]), (4000, 1)), 4 * np.arange(4000)[:, None] + [0, 300]
    assert keep_busy(wide, 1056) and not keep_busy(narrow, 1056) and keep_busy(narrow, 40)


def test_a_sweep_is_kept_for_later(rng):
    query = rng.integers(0, 4, 2 * STRIP).astype(np.uint8)
    sweep = swept(query, as_target(query), SCORES[0], "local", marks=(STRIP, LAG))
    other = GpuSweep(sweep.task)
    other.restore(sweep.state())
    assert other.done and other.n_cells == sweep.n_cells
    assert (other.marks.values == sweep.marks.values).all() and other.marks.values.max() == 2 * STRIP
    assert tuple(other.best) == (2 * STRIP,) * 3


def test_panels_are_dealt_to_several_gpus(rng, monkeypatch):
    """Two shares of one GPU, of one panel each: the second one goes on where the first one ends."""
    monkeypatch.setattr(cuda, "BLOCKS", 1)
    query, target = (rng.integers(0, 4, k).astype(np.uint8) for k in (STRIP + 3, 2 * LAG))
    device, tiles = pool().devices[0], -(-(2 * LAG + 2 * LAG) // Sizes().steps)
    for mode in ("global", "local"):
        task = task_of(query, target, SCORES[0], mode)
        sweep = GpuSweep(task, sizes=Sizes(panel=max(1, tiles // 2)), gpus=[device, device])
        sweep.run()
        high, _, _ = naive_exact.tables(text(query), text(target), *SCORES[0], mode)
        if mode == "global":
            assert sweep.last_row.tolist() == high[-1] and sweep.last_column.tolist() == [row[-1] for row in high]
        else:
            assert tuple(sweep.best) == first_best(high)


def test_every_living_tile_is_one_task(rng):
    """In an order in which nothing waits for what comes later, however the panels are dealt out."""
    kind = Kind(2, 2 * LAG, False)
    n, m = 9 * rows_of(kind), 30 * LAG
    first = np.sort(rng.integers(0, m // 2, -(-n // 32)))
    limits = Bounds(np.zeros(n + 1, np.int32), np.zeros(m + 1, np.int32), first, first + m // 3)
    limits.last[5:9] = -1
    task = Task(np.zeros(n, np.uint8), np.zeros(m, np.uint8), SCORES[0], None, limits, 1, True, True, 32)
    tiles = living_tiles(task, kind)
    assert (np.diff(tiles, axis=0) >= 0).all()
    edges = panel_edges(tiles, 1, width=4)
    for shares in (1, 2, 3):
        seen = []
        for share in range(shares):
            for strip, begin, end, above, above_end in list_tasks(tiles, edges, share, shares).tolist():
                seen += [(tile // 4, strip, tile) for tile in range(begin, end)]
                assert above == above_end or tiles[strip - 1, 0] <= above < above_end <= tiles[strip - 1, 1]
            assert shares > 1 or seen == sorted(seen)
        assert sorted((strip, tile) for _, strip, tile in seen) == [
            (strip, tile) for strip, (begin, end) in enumerate(tiles.tolist()) for tile in range(begin, end)
        ]


def test_panels_cover_all_tiles_and_gpus_have_equal_shares():
    whole = np.tile(np.array([0, 19_150], np.int32), (4000, 1))
    for n_gpus in (1, 2, 3, 4):
        for warps in (64, 528, 1056, 9000, 50_000):
            widths = np.diff(panel_edges(whole, warps, n_gpus))
            assert widths.sum() == 19_150 and widths.min() > 0
            assert len(widths) < 2 * n_gpus or widths.min() >= min(warps, 19_150 // n_gpus)
            if n_gpus == 2:
                assert abs(widths[::2].sum() - widths[1::2].sum()) <= len(widths)
    assert panel_edges(whole, 1056, 2, width=10_000).tolist() == [0, 10_000, 19_150]
    part = np.stack([np.arange(4000), np.arange(4000) + 300], axis=1)
    assert panel_edges(part, 64, 2).tolist() == [0, 4299]


def test_rows_are_kept_within_their_room():
    kind, tiles = Kind(2, 2 * LAG, False), np.tile(np.array([0, 40], np.int32), (64, 1))
    m = 60 * LAG
    for most in (1 << 40, 20 * m, 5 * m, m - 1):
        kept = choose_kept(tiles, m, kind, 1, most, NOT_KEPT)
        assert kept.n <= most and ((kept.places > NOT_KEPT).sum() == len(kept.strips))
        assert (kept.last <= m).all() and len(kept.strips) == min(63, len(kept.strips))
    assert choose_kept(tiles, m, kind, 0, 1 << 40, NOT_KEPT).n == 0


def test_only_scores_that_fit_are_taken():
    assert fits(Scores()) and fits(Scores(2, -4, 4, 2))
    for scores in (Scores(100, -100, 900, 100), Scores(1, -200, 3, 2), Scores(1, -3, 30_000, 2)):
        assert not fits(scores)
    kind = Kind(Sizes().registers, Sizes().steps, False)
    assert 2 * cuda_plan.reach(Scores(), kind) < 1 << 15


def test_the_first_of_the_best_cells_is_taken():
    found = np.array([[NONE, 0, 0], [9, 7, 3], [9, 5, 8], [9, 5, 6], [8, 1, 1]], np.int32)
    assert best_of(found, 1).tolist() == [9, 5, 6]
    assert best_of(found, 10).tolist() == [10, -1, -1]


def test_old_gpus_leave_the_matrix_to_the_cpu(rng, monkeypatch, said):
    monkeypatch.setattr(align, "solve", lambda *_: None)
    monkeypatch.setattr(sweeps, "GPU_CELLS", 0)
    monkeypatch.setattr(sweeps, "GPU_WIDTH", 0)
    monkeypatch.setattr(pool().devices[0], "packed", False)
    query, target = (rng.integers(0, 4, 40).astype(np.uint8) for _ in range(2))
    devices = Devices()
    found, _ = align_one(query, as_target(target), SCORES[0], "global", sweeper=sweeps.Sweeper(find_devices=lambda: devices))
    assert found.score == naive_exact.best_score(text(query), text(target), *SCORES[0], "global")
    assert not devices.used()
    assert said.messages == [sweeps.OLD_GPU]
