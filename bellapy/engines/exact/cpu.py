"""The sweep over a matrix: wavefronts of tiles, of which only those are computed that an optimal alignment may cross.

A tile is left out where its row's interval of columns says so, or where even the best score on its borders and the most that
can still be gained together miss the score that is known to be possible.  Everything that is computed is exact: a score is
never above the true one, and not below it on any alignment that reaches the known score.

The sweep's whole state is a few arrays whose size goes with the number of rows, so it can be stopped after any step, kept
(`Sweep.state`) and continued.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.exact.group_cells import CORNER, TURNS, Matrix, Pool, Scratch, State
from bellapy.engines.exact.heights import NO_BLOCKS, Blocks, Heights, blank_marks
from bellapy.engines.exact.rule import NONE, Scores
from bellapy.engines.exact.tiles import LANES
from bellapy.engines.exact.wavefront import finish_step, run_steps, step_groups
from bellapy.engines.lanes.shape import aligned

STRETCH = 4096  # steps of one thread between two signs of progress
GROUPS_PER_THREAD = 3  # fewer are computed faster by one thread


class Cells(NamedTuple):
    """A type of cells.

    dead : the lowest score of a cell relative to its base.  limit : the highest score on a tile's borders.
    """

    name: str
    dead: int
    limit: int


def wide_cells(scores: Scores, size: int) -> Cells:
    """Cells relative to the best score on a tile's borders.

    Neighbouring cells differ by at most `scores.step()`, so no true score on or within the tile is `dead`: what was left
    out may be taken for it, and is never overrated.
    """
    for name, dead in (("int16", -12_000), ("int32", -(1 << 28))):
        if 3 * size * scores.step() < -dead:
            return Cells(name, dead, 0)
    raise ValueError(f"scores too large: {scores}")


def low_cells(scores: Scores, size: int) -> Cells | None:
    """Bytes for local scores near 0, which is their `dead`; None if there is no room for them."""
    dead = -128 + max(scores.first + scores.gap_extend, -scores.mismatch)
    limit = 127 - size * scores.match - dead
    return Cells("int8", dead, limit) if dead <= 0 and limit >= 48 else None


class Borders(NamedTuple):
    """Scores at the matrix's upper and left borders: H of row 0 and F for row 1, H of column 0 and E for column 1, int32."""

    top: np.ndarray
    top_gap: np.ndarray
    left: np.ndarray
    left_gap: np.ndarray


def end_borders(scores: Scores, n: int, m: int) -> Borders:
    """Borders of a matrix whose alignments all begin in its corner."""
    top, left = (np.int32(-scores.gap_open) - np.int32(scores.gap_extend) * np.arange(k + 1, dtype=np.int32) for k in (m, n))
    first, top[0], left[0] = np.int32(scores.first), 0, 0
    return Borders(top, top - first, left, left - first)


def free_borders(scores: Scores, n: int, m: int) -> Borders:
    """Borders of a matrix whose alignments may begin anywhere on them."""
    top, left = np.zeros(m + 1, np.int32), np.zeros(n + 1, np.int32)
    return Borders(top, top - np.int32(scores.first), left, left - np.int32(scores.first))


class Bounds(NamedTuple):
    """Where an alignment may run, and what it can still gain.

    query, target : (rows + 1,), (columns + 1,) int32: the most that is gained from a row, or a column, on; the smaller of
    the two holds for a cell.  first, last : (n_tile_rows,) int32 columns, both included, that each row of tiles may touch,
    borders included; first > last: none.  blocks : what is gained from cells on; the smallest bound holds.
    """

    query: np.ndarray
    target: np.ndarray
    first: np.ndarray
    last: np.ndarray
    blocks: Blocks = NO_BLOCKS


NO_BOUNDS = Bounds(*(np.zeros(0, np.int32),) * 4)
"""Bounds of a task before they are chosen."""


def _scratch(cell: str, size: int) -> Scratch:
    vectors = aligned(12 * LANES, np.dtype(cell)).reshape(12, LANES)
    return Scratch(vectors, np.zeros(LANES + 1, cell), np.zeros((3, size), cell), np.zeros((LANES, 3), np.int64))


class Task(NamedTuple):
    """One matrix to sweep over.

    query, target : (rows,), (columns,) uint8 codes; unknown bases of the two differ (`rule.as_target`).
    known : a score that an alignment is known to reach.
    floor : scores below 0 are 0, as local mode has it.  seek : look for the best cell, wherever it is.
    every : bases between special rows, which are kept for tracing paths; 0: none.
    marks : rows, and columns, of the blocks at whose lower ends the highest scores are noted (not line by line); 0: none.
    """

    query: np.ndarray
    target: np.ndarray
    scores: Scores
    borders: Borders
    bounds: Bounds
    known: int
    floor: bool
    seek: bool
    size: int
    every: int = 0
    marks: tuple[int, int] = (0, 0)

    @property
    def n_allowed(self) -> int:
        """Cells that the intervals of columns leave."""
        width = np.maximum(0, self.bounds.last.astype(np.int64) - self.bounds.first + 1)
        return int(width.sum()) * self.size


class SpecialRows:
    """Scores of some rows of a matrix, where they were computed."""

    windows: Any = None  # as trace.Rows has it: no parts are cut out

    def __init__(self, pool: Pool, size: int):
        n = pool.used[0]
        self._order = np.lexsort((pool.places[:n, 1], pool.places[:n, 0]))
        self._places, self._values, self._size = pool.places[self._order], pool.values, size
        self.rows = np.unique(self._places[:, 0]).astype(np.int64) * size

    def get(self, row: int, n_columns: int, goal: Any = None) -> tuple[int, np.ndarray, np.ndarray]:
        """First column, scores H there and to the right of it, F for the row below; NONE where none was computed.

        goal : the cell that a path comes to; rows on a GPU leave out what does not lead to it.
        """
        begin, end = np.searchsorted(self._places[:, 0], [row // self._size, row // self._size + 1])
        tiles, size = self._places[begin:end, 1].astype(np.int64), self._size
        first = tiles[0] * size + 1
        high = np.full((tiles[-1] + 1) * size + 1 - first, NONE, np.int32)
        gap = high.copy()
        places = ((tiles * size + 1 - first)[:, None] + np.arange(size)).ravel()
        values = self._values[self._order[begin:end]]
        high[places], gap[places] = values[:, 0].ravel(), values[:, 1].ravel()
        keep = n_columns + 1 - first
        return int(first), high[:keep], gap[:keep]

    def highest(self, row: int) -> tuple[int, int]:
        """The first column that has the highest score, and that score."""
        first, high, _ = self.get(row, 1 << 30)
        at = int(high.argmax())
        return first + at, int(high[at])


class Ends:
    """Where a sweep's state has the scores of the matrix's last row and column."""

    _state: Any

    @property
    def marks(self) -> Heights | None:
        """The highest scores of some rows, if they were noted."""
        return None

    @property
    def last_row(self) -> np.ndarray:
        """(columns + 1,) int32: scores of the matrix's last row; NONE where it was not computed."""
        return self._state.last_row

    @property
    def last_column(self) -> np.ndarray:
        """(rows + 1,) int32."""
        return self._state.last_column


class Sweep(Ends):
    """A sweep that can be stopped, kept and continued; `run` until it is done.

    budget : bytes that special rows may take; where they would take more, every other one is dropped.
    """

    def __init__(self, task: Task, budget: int = 1 << 28):
        self.task, self._budget = task, budget
        self.step = 0
        self.best = np.array([task.known, -1, -1], np.int64)
        self._size = size = task.size
        self._matrix = self._make_matrix()
        n_tile_rows = len(self._matrix.first_tile)
        n_groups = -(-n_tile_rows // LANES)
        n_columns = len(self._matrix.column_bound)
        self._ranges = self._active_groups(n_groups, n_tile_rows + n_columns - 1)
        wide_name = wide_cells(task.scores, size).name
        wide = aligned(n_groups * 6 * size * LANES, np.dtype(wide_name)).reshape(n_groups, 6, size * LANES)
        self._names = wide_name, "int8"
        self._state = State(
            wide, wide.view(np.int8).reshape(n_groups, -1, size * LANES), np.zeros(n_groups, bool),
            np.zeros(n_groups, bool), np.zeros((n_groups, 7, LANES), np.int64),
            np.zeros((TURNS, n_groups, 2, size), np.int32), np.full((TURNS, n_groups), -1, np.int64),
            np.full((n_groups, 3), NONE, np.int64), np.zeros(n_groups, np.int64),
            np.tile(np.array([n_columns, -1], np.int32), (n_tile_rows, 1)),
            np.full(len(task.target) + 1, NONE, np.int32), np.full(len(task.query) + 1, NONE, np.int32),
            self._no_marks().values,
        )  # fmt: skip
        self._state.lanes[:, CORNER] = NONE
        self._state.last_row[0], self._state.last_column[0] = task.borders.left[-1], task.borders.top[-1]
        self._pool = self._new_pool(1024 if task.every else 0)

    def _make_matrix(self) -> Matrix:
        task, size, scores = self.task, self._size, self.task.scores
        wide, low = wide_cells(scores, size), low_cells(scores, size) if self.task.floor else None
        bounds = task.bounds
        row_bound = _by_tile(bounds.query, size)
        group_bound = np.maximum.reduceat(row_bound, np.arange(0, len(row_bound), LANES))
        first = np.maximum(0, (bounds.first.astype(np.int64) - 1) // size)
        last = np.minimum((len(task.target) - 1) // size, bounds.last.astype(np.int64) // size)
        return Matrix(
            task.query, task.target, *task.borders, row_bound, _by_tile(bounds.target, size), group_bound,
            first.astype(np.int32), last.astype(np.int32), size, scores.match, scores.mismatch, scores.first,
            scores.gap_extend, task.floor, task.seek, wide.dead, low.dead if low else 0, low.limit if low else 0,
            -(-task.every // size), bounds.blocks.rows // size, bounds.blocks.columns // size, bounds.blocks.most,
            task.marks[0] // size, task.marks[1] // size,
        )  # fmt: skip

    def _no_marks(self) -> Heights:
        return blank_marks(self.task.marks, len(self.task.query), len(self.task.target))

    @property
    def marks(self) -> Heights | None:
        """As Ends has it."""
        return self._no_marks()._replace(values=self._state.marks) if self.task.marks[0] else None

    def _active_groups(self, n_groups: int, n_steps: int) -> np.ndarray:
        """(n_steps, 2) int32: the groups that each step may have to compute."""
        rows = np.arange(len(self._matrix.first_tile))
        first, last = self._matrix.first_tile, self._matrix.last_tile
        there = first <= last
        starts = np.where(there, rows + first, n_steps + 1)
        ends = np.where(there, rows + last, -1)
        edges = np.arange(n_groups) * LANES
        starts, ends = np.minimum.reduceat(starts, edges), np.maximum.reduceat(ends, edges)
        starts = np.minimum.accumulate(starts[::-1])[::-1]
        steps = np.arange(n_steps)
        begin = np.searchsorted(np.maximum.accumulate(ends), steps)
        end = np.searchsorted(starts, steps, side="right")
        return np.stack([begin, np.maximum(begin, end)], axis=1).astype(np.int32)

    def _new_pool(self, room: int) -> Pool:
        return Pool(np.zeros((room, 2), np.int32), np.zeros((room, 2, self._size), np.int32), np.zeros(1, np.int64))

    def _make_room(self, needed: int) -> None:
        """Room for more parts of special rows: more memory, or as many again by dropping every other row."""
        pool, per_part = self._pool, 8 * self._size + 8
        while pool.used[0] + needed > len(pool.places):
            used = int(pool.used[0])
            room = max(5 * len(pool.places) // 4, used + needed)
            if room * per_part > self._budget and used:
                every = 2 * self._matrix.every
                self._matrix = self._matrix._replace(every=every)
                kept = np.flatnonzero(pool.places[:used, 0] % every == 0)
                pool.places[: len(kept)], pool.values[: len(kept)] = pool.places[kept], pool.values[kept]
                pool.used[0] = len(kept)
                room = max(len(pool.places), len(kept) + needed)
            pool.places.resize((room, 2), refcheck=False)  # in place where the system can
            pool.values.resize((room, 2, self._size), refcheck=False)

    @property
    def done(self) -> bool:
        return self.step >= len(self._ranges)

    @property
    def n_cells(self) -> int:
        """Cells computed so far."""
        return int(self._state.n_cells.sum())

    @property
    def share_done(self) -> float:
        """The share of the steps that are done, each counted by the groups it may have to compute."""
        if not hasattr(self, "_work"):
            self._work = np.concatenate(([0], np.cumsum(self._ranges[:, 1] - self._ranges[:, 0], dtype=np.int64)))
        return float(self._work[self.step] / max(1, self._work[-1]))

    def run(self, threads: int = 1, seconds: float | None = None) -> None:
        """Go on until the sweep is done, or for about so many seconds, but for some steps at least."""
        stop = None if seconds is None else time.monotonic() + seconds
        scratches = [tuple(_scratch(name, self._size) for name in self._names) for _ in range(threads)]
        few = GROUPS_PER_THREAD * threads if threads > 1 else 1 << 30
        while not self.done:
            begin, end = (int(x) for x in self._ranges[self.step])
            if self.task.every:
                self._make_room((end - begin + 1) * LANES)
            if end - begin > few:
                self._step_by_threads(begin, end, scratches)
            else:
                last = min(len(self._ranges), self.step + (len(self._ranges) if stop is None else STRETCH))
                self.step = run_steps(
                    self._matrix, self._state, self.step, last, self._ranges, self.best, self._pool, *scratches[0], few
                )
            if stop is not None and time.monotonic() >= stop:
                return

    def _step_by_threads(self, begin: int, end: int, scratches: list) -> None:
        best = self.best[0]

        def work(piece):
            (first, last), scratch = piece
            step_groups(self._matrix, self._state, begin + first, begin + last, self.step, best, *scratch)

        pieces = even_ranges(end - begin, len(scratches))
        map_threads(work, zip(pieces, scratches, strict=False), len(scratches))
        finish_step(self._matrix, self._state, begin, end, self.step, self.best, self._pool)
        self.step += 1

    @property
    def reach(self) -> np.ndarray:
        """(n_tile_rows, 2) int32: first and last tile that was computed in each row of tiles; -1 as the last: none."""
        return self._state.reach

    def special_rows(self) -> SpecialRows:
        return SpecialRows(self._pool, self._size)

    def state(self) -> dict[str, np.ndarray]:
        """All that changes, to go on from here another time with `restore`."""
        arrays = {name: value for name, value in self._state._asdict().items() if name != "low"}
        used = self._pool.used[0]
        return arrays | {
            "step": np.array(self.step), "best": self.best, "every": np.array(self._matrix.every),
            "places": self._pool.places[:used], "values": self._pool.values[:used],
        }  # fmt: skip

    def restore(self, state) -> None:
        """Go on from a `state` of a sweep of the same task."""
        for name, value in self._state._asdict().items():
            if name != "low":
                value[...] = state[name]
        self.step, self.best = int(state["step"]), state["best"].copy()
        self._matrix = self._matrix._replace(every=int(state["every"]))
        used = len(state["places"])
        self._pool = self._new_pool(used)
        self._pool.places[:], self._pool.values[:], self._pool.used[0] = state["places"], state["values"], used


def _by_tile(bound: np.ndarray, size: int) -> np.ndarray:
    """The largest bound of each tile's rows or columns, both borders included."""
    edges = np.arange(0, len(bound) - 1, size)
    inside = np.maximum.reduceat(bound, edges)
    ends = np.minimum(edges + size, len(bound) - 1)
    return np.maximum(inside, bound[ends])
