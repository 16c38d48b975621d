"""One side of an extension: its end, without a path (the inspector); then the path up to that end (the executor).

The inspector keeps its rows at every BLOCK-th anti-diagonal.  The executor computes block after block once more from there,
the last one first, with the ways into all cells, and goes back through them: memory is bounded by a block whatever the
length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.ydrop import sweep
from bellapy.engines.ydrop.row import E_EXTENDS, F_EXTENDS, FROM_E, FROM_F, LANES
from bellapy.engines.ydrop.rule import CHUNK, PAIR, QUERY_ALONE, TARGET_ALONE, cell_type, dead_of
from bellapy.engines.ydrop.sweep import (
    GOING,
    N_STATE,
    NO_ROOM,
    ROWS,
    R,
    Rows,
    Rule,
    Sides,
    Trace,
    begin,
    make_rows,
    sweep_chunk,
)
from bellapy.engines.ydrop.walls import Walls
from bellapy.params.wga import GapScores

BLOCK = 8 * CHUNK
FIRST_ROOM = 4096  # cells of a window; doubled when one needs more
FIRST_KEPT = 16  # blocks; likewise
TABLE = 32
NEVER = 1 << 60


class Kept(NamedTuple):
    """Rows at the beginning of blocks.

    states : (n, N_STATE) int64.  cells : (room,) of the cells' type, ROWS rows for each, from starts on, (n + 1,) int64.
    """

    states: np.ndarray
    cells: np.ndarray
    starts: np.ndarray


class End(NamedTuple):
    """score; r : the anti-diagonal of the end, 0 for none; last : the last one computed.

    low, high : bounds of the diagonals computed, query less target bases.  n_blocks : kept.
    """

    score: int
    r: int
    last: int
    low: int
    high: int
    n_blocks: int


def make_rule(scores: GapScores, ydrop: int) -> Rule:
    """What kernels need of scores; the type of the table is that of the cells."""
    kind = cell_type(scores, ydrop)
    table: np.ndarray = np.zeros(TABLE, kind)
    table[: scores.matrix.size] = scores.matrix.T.ravel()
    return Rule(table, (dead_of(kind), scores.open + scores.extend, scores.extend), ydrop)


class Extender:
    """Extends one side after the other; not to be used by two threads at once."""

    def __init__(self, scores: GapScores, ydrop: int):
        self.rule, self.kind = make_rule(scores, ydrop), cell_type(scores, ydrop)
        self.n_cells = 0
        self._make_room(FIRST_ROOM)

    def _make_room(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows = make_rows(capacity, self.kind)
        sizes = np.zeros(BLOCK + 2, np.int64)
        self.trace = Trace(np.empty(BLOCK * (capacity + 2 * LANES), np.uint8), sizes, sizes.copy(), np.zeros(1, np.int64))
        self._make_kept(FIRST_KEPT)

    def _make_kept(self, n: int) -> None:
        self.kept = Kept(
            np.zeros((n, N_STATE), np.int64), np.empty(n * ROWS * self.capacity, self.kind), np.zeros(n + 1, np.int64)
        )

    def inspect(self, sides: Sides, walls: Walls, until: int = NEVER) -> End:
        """The end of one side, and blocks for `path`, which has to follow before the next call.

        until : the anti-diagonal of the end where it is known.
        """
        while True:
            end, n_blocks, cells = _inspect(self.rows, sides, self.rule, walls, self.kept, until)
            if n_blocks >= 0:
                break
            self.grow(n_blocks)
        self.n_cells += cells
        score, r, last, low, high = end
        return End(score, r, last, low, high, n_blocks)

    @property
    def scratch(self) -> tuple[Rows, Kept, Trace]:
        """For `extend_side`."""
        return self.rows, self.kept, self.trace

    def grow(self, lack: int) -> None:
        """Make the room that was lacking; lack : the number of blocks that told it."""
        if lack == _NO_ROOM:
            self._make_room(2 * self.capacity)
        else:
            self._make_kept(2 * len(self.kept.states))

    def path(self, sides: Sides, walls: Walls, end: End) -> np.ndarray:
        """Runs, (n, 2) int64 of operation and length, from the end back to the beginning."""
        if end.r == 0:
            return np.zeros((0, 2), np.int64)
        runs = np.empty((end.r, 2), np.int64)
        n, cells = _path(self.rows, sides, self.rule, walls, self.kept, (end.r, end.n_blocks), self.trace, runs)
        self.n_cells += cells
        return runs[:n].copy()


_NO_ROOM, _NO_BLOCKS = -1, -2


@njit_inner
def _keep(rows, kept, n):
    """Keep the rows of a window; False if there is no room."""
    if n == len(kept.states):
        return False
    state, capacity = rows.state, len(rows.work) // ROWS
    size = state[sweep.HIGH] - state[sweep.OFFSET] + 2
    at = kept.starts[n]
    if at + ROWS * size > len(kept.cells):
        return False
    for s in range(N_STATE):
        kept.states[n, s] = state[s]
    for number in range(ROWS):
        for x in range(size):
            kept.cells[at + number * size + x] = rows.work[number * capacity + x]
    kept.starts[n + 1] = at + ROWS * size
    return True


@njit_inner
def _restore(rows, rule, kept, n):
    state, capacity = rows.state, len(rows.work) // ROWS
    for s in range(N_STATE):
        state[s] = kept.states[n, s]
    at = kept.starts[n]
    size = (kept.starts[n + 1] - at) // ROWS
    rows.work[:] = rule.costs[0]
    for number in range(ROWS):
        for x in range(size):
            rows.work[number * capacity + x] = kept.cells[at + number * size + x]


@njit
def _inspect(rows, sides, rule, walls, kept, until):
    """What End has before the number of blocks; that number, _NO_ROOM or _NO_BLOCKS; cells."""
    begin(rows, rule)
    state, n = rows.state, 0
    low = high = state[R]
    going = GOING
    while going == GOING and state[R] < until:
        if state[R] % BLOCK == 0:
            if not _keep(rows, kept, n):
                return (low, low, low, low, low), _NO_BLOCKS, state[sweep.CELLS]
            n += 1
        first, last, before = state[sweep.LOW], state[sweep.HIGH], state[R]
        going = sweep_chunk(rows, sides, rule, walls, until, None)
        # a window grows by one cell at its upper end at most, and never at its lower end
        low, high = min(low, 2 * first - state[R]), max(high, 2 * (last - before) + state[R])
    if going == NO_ROOM:
        return (low, low, low, low, low), _NO_ROOM, state[sweep.CELLS]
    return (state[sweep.BASE] + state[sweep.BEST], state[sweep.BEST_R], state[R], low, high), n, state[sweep.CELLS]


@njit_inner
def _first_best(rows):
    """The first cell of the last anti-diagonal with the best score."""
    state, capacity = rows.state, len(rows.work) // ROWS
    at = state[R] % 3 * capacity - state[sweep.OFFSET]
    i = state[sweep.LOW]
    while rows.work[at + i] != state[sweep.BEST]:
        i += 1
    return i


@njit_inner
def _add_run(runs, n, operation):
    """One more column, from the end of the path."""
    if n and runs[n - 1, 0] == operation:
        runs[n - 1, 1] += 1
        return n
    runs[n, 0], runs[n, 1] = operation, 1
    return n + 1


@njit_inner
def _go_back(trace, place, runs, n):
    """Follow the ways back until the anti-diagonals of the trace are left; place : (3,) r, i and the open gap, PAIR for
    none.
    """
    r, i, gap = place[0], place[1], place[2]
    first = trace.first[0]
    while r >= first:
        way = trace.ways[trace.starts[r - first] + i - trace.lows[r - first]]
        if gap == TARGET_ALONE and not way & E_EXTENDS or gap == QUERY_ALONE and not way & F_EXTENDS:
            gap = PAIR
        if gap == PAIR:
            came = way & 3
            gap = TARGET_ALONE if came == FROM_E else QUERY_ALONE if came == FROM_F else PAIR
        n = _add_run(runs, n, gap)
        r -= 2 if gap == PAIR else 1
        i -= 0 if gap == TARGET_ALONE else 1
    place[0], place[1], place[2] = r, i, gap
    return n


@njit
def _path(rows, sides, rule, walls, kept, end, trace, runs):
    """Runs of the path back from the end, their number, and cells; end : its anti-diagonal, and the number of blocks
    kept.
    """
    r_end, n_blocks = end
    place, n, cells, last = np.zeros(3, np.int64), 0, 0, r_end
    state = rows.state
    for block in range(n_blocks - 1, -1, -1):
        if kept.states[block, R] >= r_end:
            continue
        _restore(rows, rule, kept, block)
        before = state[sweep.CELLS]
        trace.first[0], trace.starts[0] = state[R] + 1, 0
        while state[R] < last:
            sweep_chunk(rows, sides, rule, walls, last, trace)
        cells += state[sweep.CELLS] - before
        if last == r_end:
            place[0], place[1] = r_end, _first_best(rows)
        last = kept.states[block, R]
        n = _go_back(trace, place, runs, n)
    return n, cells


@njit
def extend_side(scratch, sides, rule, walls, until):
    """A side's End and cells as `inspect` and `path` of Extender give them, and the runs; `n_blocks` of it below 0: no room.

    scratch : of an Extender.
    """
    rows, kept, trace = scratch
    end, n_blocks, cells = _inspect(rows, sides, rule, walls, kept, until)
    runs, n = np.empty((max(0, end[1]), 2), np.int64), 0
    if n_blocks >= 0 and end[1] > 0:
        n, more = _path(rows, sides, rule, walls, kept, (end[1], n_blocks), trace, runs)
        cells += more
    return End(end[0], end[1], end[2], end[3], end[4], n_blocks), cells, runs[:n]
