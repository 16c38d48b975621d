"""Upper bounds by a coarse matrix: blocks of rows, bands of diagonals, and the best way through them (docs/exact.md).

A word of the query counts as matched only if it occurs in the target near the diagonals on which a path goes, and to change
diagonals costs gaps.  So copies of a repeat elsewhere are worth nothing unless a path can pay for the way there and back.

All values are read in one direction, from the first row on.  For the other one a grid is turned round (`grid_cuts.turned`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.exact.rule import NONE
from bellapy.engines.exact.words import index_words
from bellapy.records.bases import UNKNOWN

BESIDE = 8
"""Bands on either side of one that its gain holds for."""

OFTEN = 1 << 12  # occurrences of a word at a block's bands, beyond which it counts as being everywhere


class Grid(NamedTuple):
    """Blocks of rows, and in each the bands of diagonals that a good alignment may touch.

    edges : (blocks + 1,) int64, rows between blocks; both edges belong to a block.  Band b holds the diagonals (target less
    query position) from b * width - offset on.  low : (blocks,) int64, a block's first band.  begin : (blocks + 1,) int64,
    where a block's bands begin in `alive`, (any,) bool, in `gain`, and in all arrays of values.
    gain : (any,) int32, what a path gains at most in a block while it stays no more than BESIDE bands away from a band.
    start, end : bands in which a global alignment begins and ends.
    """

    edges: np.ndarray
    width: int
    offset: int
    start: int
    end: int
    low: np.ndarray
    begin: np.ndarray
    alive: np.ndarray
    gain: np.ndarray

    @property
    def area(self) -> int:
        """Cells of all living bands, about."""
        return int(self.alive.sum()) * int(self.edges[1]) * self.width


class Costs(NamedTuple):
    """What is gained and lost.

    match : score of one.  word, unknown : what a broken word and an unknown base cost.
    word_up, word_down : what the way through a band to a higher or lower one costs beside broken words.
    most : what a broken word costs where no way is counted.
    up, down : what a diagonal more or less costs where no words are counted.
    local : an alignment may begin and end anywhere.
    """

    match: int
    word: int
    unknown: int
    word_up: int
    word_down: int
    most: int
    up: int
    down: int
    local: bool


class Room(NamedTuple):
    """Scratch for a block's bands, int64: as `leave_near`, `reach_far` and `reach_near` fill it."""

    near: np.ndarray
    far: np.ndarray
    whole: np.ndarray
    stay: np.ndarray


@njit
def _fill_gains(query, grid, first, last, k, begin, places, costs):
    """Gains of the blocks from `first` to `last`, the latter excluded.

    query : (rows,) uint8 codes.  grid : Grid; its gains are filled.  k, begin, places : as in `index_words`.  costs : Costs.
    """
    for block in range(first, last):
        top, end, low = grid.edges[block], grid.edges[block + 1], grid.low[block]
        gain = grid.gain[grid.begin[block] : grid.begin[block + 1]]
        n, lost = len(gain), np.int64(0)
        gain[:] = 0
        word, known = np.int64(0), 0
        for i in range(top, end):
            word, known = word << 2 | np.int64(query[i] & 3), known + 1
            if query[i] >= UNKNOWN:
                lost += costs.unknown
                word, known = np.int64(0), 0
            if known < k:
                continue
            start, here, there = i + 1 - k, begin[word], begin[word + 1]
            word, known = np.int64(0), 0
            first_column = (low - BESIDE) * grid.width - grid.offset + start
            past_column = first_column + (n + 2 * BESIDE) * grid.width
            from_here = here + np.searchsorted(places[here:there], first_column)
            there = here + np.searchsorted(places[here:there], past_column)
            if there - from_here > OFTEN:
                continue
            lost += costs.word
            free = 0  # bands before this one have got the word
            for x in range(from_here, there):
                band = (places[x] - start + grid.offset) // grid.width - low
                if free < n and band + BESIDE >= free:
                    gain[max(free, band - BESIDE)] += costs.word
                    free = min(n, band + BESIDE + 1)
                    if free < n:
                        gain[free] -= costs.word
        total = costs.match * (end - top) - lost
        for b in range(n):
            total += gain[b]
            gain[b] = total


def fill_gains(grid: Grid, query: np.ndarray, target: np.ndarray, k: int, costs: Costs, threads: int) -> None:
    """Count for all bands of a grid which words of k bases can be matched there; costs : of such words."""
    begin, places = index_words(target, k, threads)

    def fill(blocks: tuple[int, int]) -> None:
        _fill_gains(query, grid, *blocks, k, begin, places, costs)

    map_threads(fill, even_ranges(len(grid.low), 4 * threads), threads)


@njit_vector
def reach_near(values, whole, n, up, down, near):
    """What each of n bands gets from itself and those up to BESIDE bands away, less the diagonals between.

    values, whole : (n,) int64, the second one without the cost of diagonals: the smaller counts.
    up, down : what the way through a band costs, to a higher or to a lower one.  near : (n,), filled.
    """
    for b in range(n):
        near[b] = min(values[b], whole[b])
    for away in range(1, min(BESIDE, n - 1) + 1):
        rise, fall = up * (away - 1), down * (away - 1)
        for b in range(n - away):
            near[b + away] = max(near[b + away], min(whole[b], values[b] - rise))
        for b in range(n - away):
            near[b] = max(near[b], min(whole[b + away], values[b + away] - fall))


@njit_vector
def leave_near(values, n, up, down, near):
    """The same for paths that go farther away than BESIDE bands in between, up or down, and come back.

    The inner loops stand here once more: as a function that both call they make a whole job 7 % slower.
    """
    for b in range(n):
        near[b] = values[b] - BESIDE * (up + down)
    for away in range(1, min(BESIDE, n - 1) + 1):
        rise = min(BESIDE * up + (BESIDE - away) * down, BESIDE * down + (BESIDE + away) * up)
        fall = min(BESIDE * down + (BESIDE - away) * up, BESIDE * up + (BESIDE + away) * down)
        for b in range(n - away):
            near[b + away] = max(near[b + away], values[b] - rise)
        for b in range(n - away):
            near[b] = max(near[b], values[b + away] - fall)


@njit_inner
def reach_far(values, n, up, down, far):
    """What each of n bands gets from those farther away; parameters as of `reach_near`."""
    best, first = np.int64(4 * NONE), BESIDE + 1
    for b in range(n):
        best = max(best - up, values[b - first] - BESIDE * up if b >= first else best)
        far[b] = best
    best = np.int64(4 * NONE)
    for b in range(n - 1, -1, -1):
        best = max(best - down, values[b + first] - BESIDE * down if b + first < n else best)
        far[b] = max(far[b], best)


@njit_inner
def enter_block(grid, block, costs, exits, out):
    """out[: bands of a block] : the most that a path has gained when it comes to the block's first row, NONE if it can't.

    grid, costs : Grid, Costs.  exits : as `exit_block` fills it, up to the block before.  out : (any,) int64.
    """
    at, low = grid.begin[block], grid.low[block]
    before = max(0, block - 1)
    shift = grid.begin[before] + low - grid.low[before]  # of the same band in the block before
    for b in range(grid.begin[block + 1] - at):
        there = grid.begin[before] <= shift + b < grid.begin[block]
        value = np.int64(exits[shift + b]) if block and there else np.int64(NONE)
        if block == 0 and (costs.local or low + b == grid.start):
            value = np.int64(0)
        out[b] = value if grid.alive[at + b] else np.int64(NONE)


@njit_inner
def _gain(grid, block, costs, entry, whole):
    """Add to `entry` what a path gains in a block while it stays near a band; in `whole`, if no diagonals are counted.

    grid, block, costs : Grid, block, Costs.  entry : (any,) int64, changed.  whole : (any,) int64, filled.
    """
    at, all_match = grid.begin[block], costs.match * (grid.edges[block + 1] - grid.edges[block])
    for b in range(grid.begin[block + 1] - at):
        lost = all_match - grid.gain[at + b]
        whole[b] = entry[b] + all_match - lost * costs.most // costs.word
        entry[b] += grid.gain[at + b]


@njit_inner
def exit_block(grid, block, costs, entry, room, exits):
    """Fill a block's part of `exits`, (any,) int32: the most that a path has gained when it leaves the block's last row.

    grid, costs : Grid, Costs.  entry : as `enter_block` has it; changed.  room : Room.

    A path stays in its first band and those beside it, or it crosses one of these, and pays for that.
    """
    at, n = grid.begin[block], grid.begin[block + 1] - grid.begin[block]
    all_match = costs.match * (grid.edges[block + 1] - grid.edges[block])
    up, down = costs.up * grid.width, costs.down * grid.width
    leave_near(entry, n, up, down, room.near)
    reach_far(entry, n, up, down, room.far)
    _gain(grid, block, costs, entry, room.whole)
    reach_near(entry, room.whole, n, costs.word_up, costs.word_down, room.stay)
    for b in range(n):
        best = max(room.stay[b], all_match + max(room.near[b], room.far[b]))
        if costs.local:
            best = max(best, all_match)  # it may begin here
        exits[at + b] = max(best, NONE) if grid.alive[at + b] else NONE


@njit_inner
def widest(grid):
    """Bands of the block that has most; grid : Grid."""
    most = 1
    for block in range(len(grid.low)):
        most = max(most, grid.begin[block + 1] - grid.begin[block])
    return most


@njit
def _gains_behind(grid, costs, known, exits):
    """`exits` of all blocks, as in `exit_block`; grid, costs : Grid, Costs.  known : as in `gains_behind`."""
    n = widest(grid)
    entry = np.empty(n, np.int64)
    room = Room(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64))
    for block in range(len(grid.low)):
        enter_block(grid, block, costs, exits, entry)
        exit_block(grid, block, costs, entry, room, exits)
        if len(known):
            for x in range(grid.begin[block], grid.begin[block + 1]):
                exits[x] = min(exits[x], known[x])


def gains_behind(grid: Grid, costs: Costs, known: np.ndarray) -> np.ndarray:
    """(any,) int32 by bands of blocks: the most that a path has gained when it leaves a block.

    known : what is known of that, (any,) int32; or empty.
    """
    exits = np.empty(len(grid.alive), np.int32)
    _gains_behind(grid, costs, known, exits)
    return exits


@njit
def _mark_alive(grid, costs, behind, ahead, need, first, last, alive):
    """alive : (any,) bool, False, filled: bands that a path may touch which gains `need` or more.

    grid, costs : Grid, Costs.  behind : as `gains_behind` has it.  ahead : the same of the turned grid, turned back.
    first, last : blocks to look at, the latter excluded.
    """
    n, blocks = widest(grid), len(grid.low)
    entry, exit_ = np.empty(n, np.int64), np.empty(n, np.int64)
    near, far, near_on, far_on = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    whole, free_on = np.empty(n, np.int64), np.empty(n, np.int64)
    up, down, no_cost = costs.up * grid.width, costs.down * grid.width, np.int64(0)
    for block in range(first, last):
        at, size = grid.begin[block], grid.begin[block + 1] - grid.begin[block]
        all_match = np.int64(costs.match * (grid.edges[block + 1] - grid.edges[block]))
        enter_block(grid, block, costs, behind, entry)
        after = min(block + 1, blocks - 1)
        shift = grid.begin[after] + grid.low[block] - grid.low[after]
        for b in range(size):
            there = block + 1 < blocks and grid.begin[after] <= shift + b < grid.begin[after + 1]
            exit_[b] = ahead[shift + b] if there else NONE
            if costs.local:
                exit_[b] = max(exit_[b], 0)
            elif block + 1 == blocks and grid.low[block] + b == grid.end:
                exit_[b] = 0
        reach_near(entry, entry, size, no_cost, no_cost, near)
        reach_far(entry, size, up, down, far)
        reach_near(exit_, exit_, size, no_cost, no_cost, free_on)
        reach_far(exit_, size, down, up, far_on)
        for b in range(size):
            come, go = max(near[b], far[b]), max(free_on[b], far_on[b])
            best = max(near[b] + free_on[b] - BESIDE * min(up, down), max(far[b] + go, come + far_on[b]))
            if costs.local:
                best = max(best, max(come, go))
            alive[at + b] = best + all_match >= need
        _gain(grid, block, costs, entry, whole)
        reach_near(entry, entry, size, costs.word_up, costs.word_down, near)
        reach_near(entry, whole, size, costs.word_up, costs.word_down, far)
        reach_near(exit_, exit_, size, costs.word_down, costs.word_up, near_on)
        reach_far(exit_, size, costs.word_down, costs.word_up, far_on)
        for b in range(size):
            best = max(min(near[b] + near_on[b], far[b] + free_on[b]), near[b] + far_on[b])
            alive[at + b] |= best >= need
    for x in range(grid.begin[first], grid.begin[last]):
        alive[x] &= grid.alive[x]


def mark_alive(grid: Grid, costs: Costs, behind: np.ndarray, ahead: np.ndarray, need: int, threads: int) -> Grid:
    """The grid with those bands alive only which a path that gains `need` or more may touch.

    behind, ahead : what is gained at most up to the end of a block, and from its beginning on; as `gains_behind` has it.
    """
    alive = np.zeros_like(grid.alive)

    def mark(blocks: tuple[int, int]) -> None:
        _mark_alive(grid, costs, behind, ahead, need, *blocks, alive)

    map_threads(mark, even_ranges(len(grid.low), 4 * threads), threads)
    return grid._replace(alive=alive)
