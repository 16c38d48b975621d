"""One side of an extension: its end (the inspector), and the path up to that end (the executor).

The inspector keeps its rows at every BLOCK-th anti-diagonal.  While the best score rises it notes the ways into all cells
too, those of two blocks at a time, and follows them back from the best cell (blocks.py).  The executor goes back from the
end, block after block.  It takes over what was followed already where it enters a block at the same cell, which is nearly
always.  Other blocks are computed once more from their kept rows.  So memory is bounded by two blocks whatever the length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.ydrop import sweep
from bellapy.engines.ydrop.blocks import BLOCK, Blocks, clear, follow, keep, make_blocks, note_part, point
from bellapy.engines.ydrop.rule import cell_type, dead_of
from bellapy.engines.ydrop.sweep import GOING, NO_ROOM, R, Rows, Rule, Sides, begin, make_rows, sweep_chunk
from bellapy.engines.ydrop.walls import Walls
from bellapy.params.wga import GapScores

FIRST_ROOM = 4096 + 128  # cells of a window; doubled when one needs more; rows must not begin at one place of a page
FIRST_BLOCKS = 256  # likewise; memory that is not used is not taken
TABLE = 32
NEVER = 1 << 60


class End(NamedTuple):
    """score; r : the anti-diagonal of the end, 0 for none; last : the last one computed.

    low, high : bounds of the diagonals computed, query less target bases.  n_blocks : kept.  i : the end's query place.
    """

    score: int
    r: int
    last: int
    low: int
    high: int
    n_blocks: int
    i: int


def make_rule(scores: GapScores, ydrop: int) -> Rule:
    """What kernels need of scores; the type of the table is that of the cells."""
    kind = cell_type(scores, ydrop)
    table: np.ndarray = np.zeros(TABLE, kind)
    table[: scores.matrix.size] = scores.matrix.T.ravel() + 2 * scores.extend
    return Rule(table, (dead_of(kind), scores.open, scores.extend), ydrop)


class Extender:
    """Extends one side after the other; not to be used by two threads at once."""

    def __init__(self, scores: GapScores, ydrop: int):
        self.rule, self.kind = make_rule(scores, ydrop), cell_type(scores, ydrop)
        self.n_cells = 0
        self._make_room(FIRST_ROOM)

    def _make_room(self, capacity: int) -> None:
        self.capacity = capacity
        self.rows = make_rows(capacity, self.kind)
        self._make_blocks(FIRST_BLOCKS)

    def _make_blocks(self, n: int) -> None:
        self.blocks = make_blocks(n, self.capacity, self.kind)

    def inspect(self, sides: Sides, walls: Walls, until: int = NEVER) -> End:
        """The end of one side, and blocks for `path`, which has to follow before the next call.

        until : the anti-diagonal of the end where it is known.
        """
        while True:
            end, cells = _inspect(self.rows, sides, self.rule, walls, self.blocks, until)
            if end[5] >= 0:
                self.n_cells += cells
                return End(*end)
            self.grow(end[5])

    @property
    def scratch(self) -> tuple[Rows, Blocks]:
        """For `extend_side`."""
        return self.rows, self.blocks

    def grow(self, lack: int) -> None:
        """Make the room that was lacking; lack : the number of blocks that told it."""
        if lack == _NO_ROOM:
            self._make_room(2 * self.capacity)
        else:
            self._make_blocks(2 * len(self.blocks.states))

    def path(self, sides: Sides, walls: Walls, end: End) -> np.ndarray:
        """Runs, (n, 2) int64 of operation and length, from the end back to the beginning."""
        if end.r == 0:
            return np.zeros((0, 2), np.int64)
        runs = np.empty((end.r, 2), np.int64)
        n, cells = _follow(self.rows, sides, self.rule, walls, self.blocks, (end.r, end.i, end.n_blocks), runs)
        self.n_cells += cells
        return runs[:n].copy()


_NO_ROOM, _NO_BLOCKS = -1, -2


@njit
def _inspect(rows, sides, rule, walls, blocks, until):
    """What End has, with _NO_ROOM or _NO_BLOCKS for the number of blocks if that is so; cells."""
    begin(rows, rule)
    clear(blocks)
    state, n, rises = rows.state, np.int64(0), True
    low = high = state[R]
    going = GOING
    while going == GOING and state[R] < until:
        if state[R] % BLOCK == 0:
            if n > 0:
                was_traced, rises = rises, state[sweep.BEST_R] > blocks.states[n - 1, R]
                if was_traced and rises:
                    note_part(blocks, n - 1, (state[sweep.BEST_R], state[sweep.BEST_I]))
            if not keep(rows, blocks, n):
                return (low, low, low, low, low, _NO_BLOCKS, low), state[sweep.CELLS]
            if rises:
                point(blocks, n)
            n += 1
        first, last, before = state[sweep.LOW], state[sweep.HIGH], state[R]
        going = sweep_chunk(rows, sides, rule, walls, until, rises, blocks.trace)
        # a window grows by one cell at its upper end at most, and never at its lower end
        low, high = min(low, 2 * first - state[R]), max(high, 2 * (last - before) + state[R])
    if going == NO_ROOM:
        return (low, low, low, low, low, _NO_ROOM, low), state[sweep.CELLS]
    score = state[sweep.BASE] + state[sweep.BEST]
    return (score, state[sweep.BEST_R], state[R], low, high, n, state[sweep.BEST_I]), state[sweep.CELLS]


@njit
def _follow(rows, sides, rule, walls, blocks, end, runs):
    """`follow` for callers that are not compiled."""
    return follow(rows, sides, rule, walls, blocks, end, runs)


@njit
def extend_side(scratch, sides, rule, walls, until):
    """A side's End and cells as `inspect` and `path` of Extender give them, and the runs; `n_blocks` of it below 0: no room.

    scratch : of an Extender.
    """
    rows, blocks = scratch
    end, cells = _inspect(rows, sides, rule, walls, blocks, until)
    side = End(*end)
    runs, n = np.empty((max(0, side.r), 2), np.int64), 0
    if side.n_blocks >= 0 and side.r > 0:
        n, more = follow(rows, sides, rule, walls, blocks, (side.r, side.i, side.n_blocks), runs)
        cells += more
    return side, cells, runs[:n]
