"""The y-drop engine: ends, paths and walls as the definition says, in 16 and 32 bits, in both directions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import naive_wga
import numpy as np
import pytest
import sieved
from strategies import mutate, random_bases

from bellapy.compute.jit import njit
from bellapy.engines.ydrop import extend, row
from bellapy.engines.ydrop.diagonal import extend_left, extend_right, table_of, use_vectors
from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.rule import CHUNK, cell_type
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import add_wall, box_of, is_clear, no_walls, on_wall
from bellapy.jobs.wga.ungapped import HspRule
from bellapy.params.wga import DEFAULT_SCORES, HOXD70, GapScores
from bellapy.records.bases import encode
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE

LARGE = GapScores(HOXD70 * 40, 16_000, 1200)


@njit
def is_on_wall(walls, q, t):
    return on_wall(walls, q, t)


@njit
def run_right(target, query, at, rule):
    return extend_right(target, query, at, at, rule)


@njit
def run_left(target, query, at, most, rule):
    return extend_left(target, query, at, at, most, rule)


def make_pair(rng, length: int, errors: float) -> tuple[np.ndarray, np.ndarray]:
    text = random_bases(rng, length)
    target, query = encode(text), encode(mutate(rng, text, errors)).copy()
    query[rng.random(len(query)) < 0.02] = 4
    return query, target


def random_path(rng, q_len: int, t_len: int) -> tuple[int, int, np.ndarray]:
    """A path through the table, as an earlier alignment has it."""
    q, t = (int(x) for x in rng.integers(5, 20, 2))
    runs, i, j = [], q, t
    while True:
        operation = int(rng.integers(3)) if runs and runs[-1][0] == PAIR else PAIR
        size = int(rng.integers(1, 12))
        i, j = i + size * (operation != TARGET_ALONE), j + size * (operation != QUERY_ALONE)
        if i >= q_len - 2 or j >= t_len - 2:
            return q, t, np.array(runs, np.int64).reshape(-1, 2)
        runs.append((operation, size))


def both_directions(query, target):
    """Sides of an extension to the right and of one to the left, with the sequences as each of them reads them."""
    last = len(query) - 1, len(target) - 1
    yield Sides(query, target, 0, 0, 1, len(query), len(target)), query, target, lambda q, t: (q + 1, t + 1)
    left = Sides(query, target, *last, -1, len(query), len(target))
    yield left, query[::-1], target[::-1], lambda q, t: (len(query) - q, len(target) - t)


def check(extender, sides, walls, expected) -> None:
    score, (i, j), path = expected
    end = extender.inspect(sides, walls)
    runs = extender.path(sides, walls, end)
    assert (end.score, end.r) == (score, i + j)
    assert [operation for operation, size in runs.tolist() for _ in range(size)] == path


@pytest.mark.parametrize("drop", [300, 1500, 9400, 40_000])
@pytest.mark.parametrize("scores", [DEFAULT_SCORES, LARGE], ids=["16 bits", "32 bits"])
def test_ends_and_paths_are_those_of_the_definition(drop, scores):
    rng = np.random.default_rng(drop)
    drop *= scores.open // DEFAULT_SCORES.open
    extender = Extender(scores, drop)
    for length, errors in ((1, 0.0), (30, 0.1), (90, 0.3), (200, 0.15), (200, 0.9)):
        query, target = make_pair(rng, length, errors)
        for sides, a, b, _ in both_directions(query, target):
            walls = no_walls(len(query) + len(target))
            check(extender, sides, walls, naive_wga.ydrop(a, b, scores, drop))


def test_no_path_touches_a_wall():
    rng = np.random.default_rng(5)
    extender, changed = Extender(DEFAULT_SCORES, 9400), 0
    for _ in range(12):
        query, target = make_pair(rng, 150, 0.1)
        walls, dead = no_walls(len(query) + len(target)), set()
        for _ in range(2):
            q, t, runs = random_path(rng, len(query), len(target))
            if len(runs):
                walls = add_wall(walls, q, t, runs)
                dead |= naive_wga.cells_of_path(q, t, runs.tolist())
        for sides, a, b, place in both_directions(query, target):
            expected = naive_wga.ydrop(a, b, DEFAULT_SCORES, 9400, {place(q, t) for q, t in dead})
            changed += expected != naive_wga.ydrop(a, b, DEFAULT_SCORES, 9400)
            check(extender, sides, walls, expected)
        grid = np.indices((len(query), len(target))).reshape(2, -1)
        free = [not is_on_wall(walls, q, t) for q, t in grid.T]
        assert dead == {(int(q), int(t)) for (q, t), is_free in zip(grid.T, free, strict=True) if not is_free}
    assert changed > 5


def test_walls_hold_what_they_held_when_paths_are_added():
    """A thread extends with walls to which another one adds paths, up to several times their room."""
    rng = np.random.default_rng(6)
    extender, changed = Extender(DEFAULT_SCORES, 9400), 0
    query, target = make_pair(rng, 150, 0.1)
    sides = [sides for sides, *_ in both_directions(query, target)]
    walls, known = no_walls(len(query) + len(target)), []
    for _ in range(60):
        known.append((walls, [extender.inspect(side, walls) for side in sides]))
        q, t, runs = random_path(rng, len(query), len(target))
        walls = add_wall(walls, q, t + int(rng.integers(0, 100)), runs)
    for earlier, ends in known:
        assert [extender.inspect(side, earlier) for side in sides] == ends
        changed += [extender.inspect(side, walls) for side in sides] != ends
    assert changed > 5 and len(walls.pieces) > 2 * len(known[0][0].pieces)


def test_a_box_holds_just_the_cells_of_the_latest_paths():
    rng = np.random.default_rng(7)
    walls = no_walls(800)
    for _ in range(50):
        since = walls.used
        paths = [random_path(rng, 300, 300) for _ in range(rng.integers(1, 3))]
        for path in paths:
            walls = add_wall(walls, *path)
        cells = [cell for q, t, runs in paths for cell in naive_wga.cells_of_path(q, t, runs.tolist())]
        if cells:
            q, t = np.array(cells).T
            assert box_of(walls, since).tolist() == [min(q + t), max(q + t), min(q - t), max(q - t)]


@njit
def is_clear_of(walls, q, t, region, since):
    return is_clear(walls, q, t, region, since)


def test_a_region_is_clear_where_no_path_comes_near():
    """Never called clear if a path has a cell within; away from it always, and older paths do not count."""
    rng = np.random.default_rng(8)
    n_clear = 0
    for _ in range(60):
        q_path, t_path, runs = random_path(rng, 400, 400)
        if not len(runs):
            continue
        away = int(rng.integers(0, 3000))
        walls = add_wall(no_walls(8000), q_path, t_path + away, runs)
        cells = np.array(sorted(naive_wga.cells_of_path(q_path, t_path + away, runs.tolist())))
        for _ in range(20):
            q, t, left, right = (int(x) for x in rng.integers(0, (400, 400, 3000, 3000)))
            t += away + int(rng.integers(0, 2)) * 2000
            low, high = -int(rng.integers(0, 60)), int(rng.integers(0, 60))
            sums, diagonals = cells.sum(axis=1) - q - t, cells[:, 0] - cells[:, 1] - (q - t)
            within = (sums >= -left) & (sums <= right + 2) & (diagonals >= low) & (diagonals <= high)
            is_free = is_clear_of(walls, q, t, (left, right, low, high), 0)
            assert not (is_free and within.any())
            near = (sums >= -left - 150) & (sums <= right + 150) & (diagonals >= low - 150) & (diagonals <= high + 150)
            assert is_free or near.any()
            assert is_clear_of(walls, q, t, (left, right, low, high), walls.used)
            n_clear += is_free
    assert n_clear > 20


def test_what_is_computed_lies_within_the_bounds_told():
    """Walls beyond the diagonals that an extension tells of change nothing."""
    rng = np.random.default_rng(9)
    extender = Extender(DEFAULT_SCORES, 3000)
    for _ in range(5):
        query, target = make_pair(rng, 900, 0.15)
        sides = Sides(query, target, 0, 0, 1, len(query), len(target))
        end = extender.inspect(sides, no_walls(len(query) + len(target)))
        walls = no_walls(len(query) + len(target))
        for q, t in ((0, 3 - end.low), (end.high + 3, 0)):
            size = min(len(query) - q, len(target) - t)
            if size > 0:
                walls = add_wall(walls, q, t, np.array([(PAIR, size)], np.int64))
        assert extender.inspect(sides, walls)[:3] == end[:3] and end.low < 0 < end.high


def test_long_extensions_go_on_through_blocks_and_more_room(monkeypatch):
    """Blocks, kept rows and room for windows are all outgrown; the path is worth just the score."""
    rng = np.random.default_rng(6)
    query, target = make_pair(rng, 6000, 0.15)
    walls = no_walls(len(query) + len(target))
    sides = Sides(query, target, 0, 0, 1, len(query), len(target))
    expected = Extender(DEFAULT_SCORES, 9400)
    end = expected.inspect(sides, walls)
    runs = expected.path(sides, walls, end)
    assert end.n_blocks > 3
    assert naive_wga.path_score(target, query, 0, 0, runs[::-1].tolist(), DEFAULT_SCORES) == end.score
    monkeypatch.setattr(extend, "FIRST_ROOM", 2 * CHUNK + 256)
    monkeypatch.setattr(extend, "FIRST_BLOCKS", 1)
    small = Extender(DEFAULT_SCORES, 9400)
    assert small.inspect(sides, walls)[:2] == end[:2] and small.capacity > 2 * CHUNK + 256
    assert np.array_equal(small.path(sides, walls, small.inspect(sides, walls)), runs)


@pytest.mark.parametrize("between", [0, 1800])
def test_parts_of_a_path_that_are_known_early_are_those_computed_late(between):
    """Through unrelated sequence the score does not rise, and no ways are noted.  Parts of another path are left."""
    rng = np.random.default_rng(11)
    pairs = [make_pair(rng, 3000, 0.1) for _ in range(2)]
    unrelated = [rng.integers(0, 4, between).astype(np.uint8) for _ in range(2)]
    query, target = (np.concatenate((pairs[0][x], unrelated[x], pairs[1][x])) for x in range(2))
    walls = no_walls(len(query) + len(target))
    sides, extender = Sides(query, target, 0, 0, 1, len(query), len(target)), Extender(DEFAULT_SCORES, 25_000)
    end = extender.inspect(sides, walls)
    assert end.n_blocks > 4 and end.i > 3000 + between
    known = extender.blocks.parts[: end.n_blocks, 0] >= 0
    assert known.sum() >= 2 and (between == 0 or not known[1:-1].all())
    before = extender.n_cells
    runs = extender.path(sides, walls, end)
    late, cells = extender.n_cells - before, []
    assert naive_wga.path_score(target, query, 0, 0, runs[::-1].tolist(), DEFAULT_SCORES) == end.score
    for wrong in (-1, 1):
        assert extender.inspect(sides, walls) == end
        extender.blocks.held[:] = -1
        extender.blocks.parts[:, 1] += wrong  # another query place
        before = extender.n_cells
        assert np.array_equal(extender.path(sides, walls, end), runs)
        cells.append(extender.n_cells - before)
    assert min(cells) > late


def test_vectors_and_plain_rows_agree(monkeypatch):
    """32-bit cells always take the plain row, so the same extension in both types compares the two."""
    rng = np.random.default_rng(7)
    query, target = make_pair(rng, 1500, 0.2)
    walls, sides = no_walls(4000), Sides(query, target, 0, 0, 1, len(query), len(target))
    assert cell_type(DEFAULT_SCORES, 9400) == np.int16
    narrow = Extender(DEFAULT_SCORES, 9400)
    monkeypatch.setattr(extend, "cell_type", lambda scores, drop: np.int32)
    wide = Extender(DEFAULT_SCORES, 9400)
    assert wide.rows.work.dtype == np.int32
    assert narrow.inspect(sides, walls) == wide.inspect(sides, walls)
    assert np.array_equal(*(e.path(sides, walls, e.inspect(sides, walls)) for e in (narrow, wide)))


def test_diagonals_are_those_of_the_definition():
    rng = np.random.default_rng(8)
    none = np.zeros(1, np.uint32)
    for errors in (0.05, 0.3, 0.9):
        target = encode(random_bases(rng, 400))
        query = np.where(rng.random(400) < errors, rng.integers(0, 5, 400), target).astype(np.uint8)
        for xdrop in (100, 910, 20_000):
            for vectors in {False, use_vectors(HOXD70, xdrop)}:
                rule = HspRule(HOXD70, table_of(HOXD70), vectors, none, False, xdrop, 0, 0, False, none, 19, 1, 0, False)
                for at in (0, 1, 150, 370, 399):
                    right = naive_wga.diagonal(target, query, [(x, x) for x in range(at, 400)], HOXD70, xdrop)
                    assert run_right(target, query, at, rule) == right
                    most = at - at // 3
                    left = naive_wga.diagonal(target, query, [(at - n, at - n) for n in range(1, most + 1)], HOXD70, xdrop)
                    assert run_left(target, query, at, most, rule) == left[:2]


ALONE = """
import sys
import numpy as np
from bellapy.compute.jit import njit
from bellapy.engines.ydrop import row
from bellapy.engines.ydrop.diagonal import extend_left, extend_right, table_of, use_vectors
from bellapy.engines.ydrop.extend import Extender
from bellapy.engines.ydrop.sweep import Sides
from bellapy.engines.ydrop.walls import no_walls
from bellapy.jobs.wga.ungapped import HspRule
from bellapy.params.wga import DEFAULT_SCORES, HOXD70
from sieved import sieved_hits
assert (row.VECTORS, row.LONG_VECTORS) == (sys.argv[1] == "avx2", False)


@njit
def run(target, query, rule):
    return extend_left(target, query, 200, 200, 150, rule), extend_right(target, query, 20, 20, rule)


rng = np.random.default_rng(9)
target = rng.integers(0, 4, 300).astype(np.uint8)
query = np.where(rng.random(300) < 0.2, rng.integers(0, 5, 300), target).astype(np.uint8)
none = np.zeros(1, np.uint32)
rule = HspRule(HOXD70, table_of(HOXD70), use_vectors(HOXD70, 910), none, False, 910, 0, 0, False, none, 19, 1, 0, False)
sides = Sides(query, target, 0, 0, 1, 300, 300)
extender = Extender(DEFAULT_SCORES, 9400)
print(*extender.inspect(sides, no_walls(600)), extender.path(sides, no_walls(600), extender.inspect(sides, no_walls(600))))
print(run(target, query, rule))
if row.VECTORS:
    print("sieve", sieved_hits())
"""
"""Prints ends and paths of the processor that the environment names."""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names features of x86")
def test_processors_with_short_vectors_or_none_give_the_same(tmp_path):
    features = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+avx,+popcnt,+64bit,+cx16,"
    printed, program = [], tmp_path / "alone.py"
    program.write_text(ALONE)
    (tmp_path / "sieved.py").write_text(Path(sieved.__file__).read_text())
    for what, last in (("avx2", "+avx2"), ("none", "-avx2")):
        there = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features + last, "NUMBA_CACHE_DIR": str(tmp_path / what)}
        command = [sys.executable, str(program), what]
        printed.append(subprocess.run(command, env=os.environ | there, capture_output=True, text=True, check=True).stdout)
    same, last = printed[0].split("sieve ")
    assert same == printed[1]
    if row.VECTORS:
        assert last.split() == [str(sieved.sieved_hits())]
    rng = np.random.default_rng(9)
    target = rng.integers(0, 4, 300).astype(np.uint8)
    query = np.where(rng.random(300) < 0.2, rng.integers(0, 5, 300), target).astype(np.uint8)
    sides, extender = Sides(query, target, 0, 0, 1, 300, 300), Extender(DEFAULT_SCORES, 9400)
    end = extender.inspect(sides, no_walls(600))
    assert printed[0].startswith(f"{' '.join(map(str, end))} {extender.path(sides, no_walls(600), end)}")
