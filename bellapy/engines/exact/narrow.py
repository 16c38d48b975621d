"""What of a matrix is left by a grid's bounds: from coarse to fine, and tighter where the best way runs (docs/exact.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.exact.grid import (
    BESIDE,
    Costs,
    Grid,
    fill_gains,
    gains_behind,
    mark_alive,
)  # fmt: skip
from bellapy.engines.exact.grid_cuts import carry_over, finer, first_grid, turned
from bellapy.engines.exact.heights import Heights, block_shape, no_heights
from bellapy.engines.exact.parts import Way, tighten
from bellapy.engines.exact.rule import Scores
from bellapy.engines.exact.windows import HALF_WIDTH, STEP
from bellapy.engines.exact.words import break_cost, near_word_length, word_costs

WORTH, GPU_WORTH = 1 << 36, 1 << 43  # cells beyond which tighter bounds save more than they take
GPU_WIDE = 1 << 23  # columns of a row that a GPU computes while one thread makes windows for it
WIDE = 1 << 15  # columns of an interval on average, for each thread, beyond which tighter bounds save time
MOST_BANDS = 1 << 24  # of all blocks
CLOSE = 8  # an upper bound that is above what is known by no more than such a part of it may soon be below
LEAST_ROWS = 1024
FLAT = 32  # times as many rows as diagonals in a band of a block
FINER = 2
PROGRESS = 4  # another pass of windows follows unless the last one left, or took away, less than such a part of the area
PASSES = 2  # of windows, in blocks of one size
WINDOW_SHARE = 8  # how many times fewer cells windows may have than what is left;
MORE = 3  # but always so many times the least that they need
NONE_UNMATCHED = np.zeros((0, 4), np.int64)


class Limits(NamedTuple):
    """Bounds for alignments that score at least what is known.

    behind, ahead : (rows + 1,) int32, the most that is gained up to a row, and from it on.
    first, last : (blocks,) int64, columns that may be touched, both included, of each `per_interval` rows.
    at_behind, at_ahead : what is gained up to rows, and from them on, by columns.
    """

    behind: np.ndarray
    ahead: np.ndarray
    first: np.ndarray
    last: np.ndarray
    at_behind: Heights
    at_ahead: Heights


FindGpus = Callable[[], object]
"""Says whether GPUs compute what is left, by something true; asked late, since GPUs take a while to start."""


def find_none() -> None:
    """No GPU computes anything."""


class Matrix(NamedTuple):
    """A pair of sequences, (rows,) and (columns,) uint8 codes, and what is known of it.

    known : a score that is reached.  is_global : alignments begin and end in the matrix's corners.
    per_interval : rows of the intervals of columns.  threads : to use.
    unmatched : (any, 4) int64, stretches of rows where good alignments match nothing: first row, end, and the first and the
    last diagonal that they may take there.
    """

    query: np.ndarray
    target: np.ndarray
    scores: Scores
    known: int
    is_global: bool
    per_interval: int
    threads: int
    find_gpus: FindGpus = find_none
    unmatched: np.ndarray = NONE_UNMATCHED

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.query), len(self.target)

    @property
    def need(self) -> int:
        """What is gained behind and ahead together: a gap in between is opened in both."""
        return self.known - self.scores.gap_open

    def reversed(self) -> Matrix:
        n, m = self.shape
        turned = np.array([n, n, m - n, m - n]) - np.take(self.unmatched, [1, 0, 3, 2], axis=1)  # in C order
        return self._replace(query=self.query[::-1].copy(), target=self.target[::-1].copy(), unmatched=turned)


def is_worth(area: int, n: int, threads: int, find_gpus: FindGpus) -> bool:
    """Whether tighter bounds save time, where so many cells of n rows are left."""
    return area > max(WORTH, WIDE * n // threads) and (area > GPU_WORTH or not find_gpus())


def is_for_gpus(matrix: Matrix, area: int) -> bool:
    """Whether GPUs compute what is left: so many cells."""
    return area > WIDE * len(matrix.query) and bool(matrix.find_gpus())


def _needs_windows(matrix: Matrix, area: int) -> bool:
    """Whether windows save time, where so many cells are left."""
    n, threads = len(matrix.query), matrix.threads
    return is_worth(area, n, threads, find_none) and (
        area >= max(GPU_WORTH, GPU_WIDE * n // threads) or not matrix.find_gpus()
    )


def _most_bands(n: int) -> int:
    """Bands of all blocks of n rows: they take as much memory as sequences of that length do else."""
    return max(MOST_BANDS, n)


def find_limits(matrix: Matrix, first: np.ndarray, last: np.ndarray) -> Limits:
    """Bounds by a grid within intervals of columns, `first` to `last` as in Limits."""
    rows = LEAST_ROWS
    area = int(np.maximum(0, last - first + 1).sum()) * matrix.per_interval
    while FLAT * area > _most_bands(len(matrix.query)) * rows * rows:
        rows *= FINER
    grid = first_grid(first, last, matrix.per_interval, matrix.shape, rows, rows // FLAT)
    known = [np.zeros(0, np.int32)] * 2
    while True:
        grid, costs, behind, ahead = _judge(matrix, grid, *known)
        if _finer_by(grid) == 1 and _needs_windows(matrix, grid.area):
            matrix = matrix._replace(find_gpus=find_none)  # threads go on with what is left
            grid, behind, ahead = _look_closer(matrix, grid, costs, behind, ahead)
        by = _finer_by(grid)
        if by == 1 or _is_enough(matrix, grid, ahead):
            return _limits(matrix, grid, costs, behind, ahead)
        coarse, grid = grid, finer(grid, len(matrix.target), by)
        known = carry_over(coarse, grid, by, behind, ahead)


def _is_enough(matrix: Matrix, grid: Grid, ahead: np.ndarray) -> bool:
    """Whether a GPU computes what is left in less time than finer blocks save; those may leave nothing at all, though.

    ahead : what is gained from each band on.
    """
    if grid.area > GPU_WORTH or not is_for_gpus(matrix, grid.area):
        return False
    return int(np.max(ahead, where=grid.alive, initial=0)) - matrix.known > abs(matrix.known) // CLOSE


def _look_closer(
    matrix: Matrix, grid: Grid, costs: Costs, behind: np.ndarray, ahead: np.ndarray
) -> tuple[Grid, np.ndarray, np.ndarray]:
    """The grid with what is alive by windows, and what is gained behind and ahead; as far as that saves time."""
    for _ in range(PASSES):
        before = grid.area
        if not _needs_windows(matrix, before):
            break
        behind, ahead = _tighten_both(matrix, grid, costs, behind, ahead)
        grid = mark_alive(grid, costs, behind, ahead, matrix.need, matrix.threads)
        if _finer_by(grid) > 1 or not before // PROGRESS <= grid.area <= before - before // PROGRESS:
            break
    return grid, behind, ahead


def _finer_by(grid: Grid) -> int:
    """Into how many times as many blocks and bands a grid may be cut; 1: it is as fine as it should be, or can be."""
    by, alive = 1, int(grid.alive.sum())
    while alive and int(grid.edges[1]) // by > LEAST_ROWS and (FINER * by) ** 2 * alive <= _most_bands(int(grid.edges[-1])):
        by *= FINER
    return by


def _judge(
    matrix: Matrix, grid: Grid, known_behind: np.ndarray, known_ahead: np.ndarray
) -> tuple[Grid, Costs, np.ndarray, np.ndarray]:
    """The grid with what is alive by its words; costs of those, and what is gained behind and ahead.

    known_behind, known_ahead : what is known of these; or empty.
    """
    k = near_word_length((2 * BESIDE + 1) * grid.width)
    scores, width = matrix.scores, grid.width
    cost = word_costs(scores, k)
    costs = Costs(
        scores.match, cost.word, cost.unknown, int(cost.up * width), int(cost.down * width), break_cost(scores, k),
        scores.gap_extend, scores.gap_extend + scores.match, not matrix.is_global,
    )  # fmt: skip
    fill_gains(grid, matrix.query, matrix.target, k, costs, matrix.threads)
    ways = (grid, known_behind), (turned(grid, *matrix.shape), known_ahead[::-1].copy())
    behind, ahead = map_threads(lambda way: gains_behind(way[0], costs, way[1]), ways, matrix.threads)
    ahead = ahead[::-1].copy()
    return mark_alive(grid, costs, behind, ahead, matrix.need, matrix.threads), costs, behind, ahead


def _tighten_both(matrix: Matrix, grid: Grid, costs: Costs, behind: np.ndarray, ahead: np.ndarray) -> list[np.ndarray]:
    """`behind` and `ahead` by real scores within windows."""
    least = len(matrix.query) * (2 * HALF_WIDTH + STEP)
    most = max(grid.area // WINDOW_SHARE, MORE * least)
    matrix = matrix._replace(unmatched=_affordable(matrix.unmatched, most))
    turn = matrix.reversed()
    back = Way(
        turn.query, turn.target, turned(grid, *matrix.shape), costs, ahead[::-1].copy(), behind[::-1].copy(), turn.unmatched
    )
    ways = [Way(matrix.query, matrix.target, grid, costs, behind, ahead, matrix.unmatched), back]
    behind, ahead = tighten(ways, matrix.scores, most, matrix.threads)
    return [behind, ahead[::-1].copy()]


def _affordable(unmatched: np.ndarray, most: int) -> np.ndarray:
    """The smallest stretches without matches that have no more than so many cells together."""
    first, end, low, high = unmatched.T
    order = np.argsort((end - first) * (high - low), kind="stable")
    cells = np.cumsum(((end - first) * (high - low))[order])
    return unmatched[order[cells <= most]]


@njit
def _edge_values(grid, behind, ahead, need, blocks, most_behind, most_ahead, every, at_behind, at_ahead):
    """The most that is gained up to each row between blocks, and from it on, by paths that gain `need` or more in all.

    grid, behind, ahead : as in `mark_alive`.  blocks : the first one whose last row is meant, and the one after the last.
    most_behind, most_ahead : (blocks + 1,) int64, zeros, filled.  every : blocks between rows that have Heights.
    at_behind, at_ahead : Heights whose values are NONE, filled.
    """
    columns, last_group = at_behind.columns, at_behind.values.shape[1] - 1
    for block in range(blocks[0], blocks[1]):
        at, after = grid.begin[block], grid.begin[block + 1]
        shift = grid.low[block + 1] - grid.low[block]
        for b in range(max(0, shift), after - at):
            other = after + b - shift
            if other >= grid.begin[block + 2] or not (grid.alive[at + b] and grid.alive[other]):
                continue
            column = grid.edges[block + 1] + (grid.low[block] + b) * grid.width - grid.offset
            if np.int64(behind[at + b]) + ahead[other] < need or column + grid.width <= 0:
                continue
            most_behind[block + 1] = max(most_behind[block + 1], behind[at + b])
            most_ahead[block + 1] = max(most_ahead[block + 1], ahead[other])
            if (block + 1) % every:
                continue
            row = (block + 1) // every - 1
            for g in range(max(0, column) // columns, min(last_group, (column + grid.width - 1) // columns) + 1):
                at_behind.values[row, g] = max(at_behind.values[row, g], behind[at + b])
                at_ahead.values[row, g] = max(at_ahead.values[row, g], ahead[other])


@njit
def _by_row(edges, match, first, last, most_behind, most_ahead, up_to, from_on):
    """What is gained up to each row, and from it on; `edges` : of a grid.  most_behind, most_ahead : as in `_edge_values`.

    first, last : blocks whose rows are meant, the latter excluded.  up_to, from_on : (rows + 1,) int32, filled.
    """
    for block in range(first, last):
        for i in range(edges[block] + 1, edges[block + 1]):
            up_to[i] = most_behind[block] + match * (i - edges[block])
            from_on[i] = most_ahead[block + 1] + match * (edges[block + 1] - i)
        for edge in (block, block + 1):
            up_to[edges[edge]], from_on[edges[edge]] = most_behind[edge], most_ahead[edge]


def _limits(matrix: Matrix, grid: Grid, costs: Costs, behind: np.ndarray, ahead: np.ndarray) -> Limits:
    """A grid's bounds by row, and the columns that its living bands leave."""
    n, m = matrix.shape
    edges = grid.edges
    rows, columns = block_shape(n, m)
    every = max(1, rows // int(edges[1]))
    at_behind, at_ahead = (no_heights(edges[every:-1:every].copy(), columns, m) for _ in range(2))
    most_behind, most_ahead = np.zeros(len(edges), np.int64), np.zeros(len(edges), np.int64)
    most_ahead[0], most_behind[-1] = (
        np.max(values[its], where=grid.alive[its], initial=0)
        for values, its in ((ahead, slice(*grid.begin[:2])), (behind, slice(*grid.begin[-2:])))
    )

    up_to, from_on = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)

    def fill_edges(blocks: tuple[int, int]) -> None:
        _edge_values(grid, behind, ahead, matrix.need, blocks, most_behind, most_ahead, every, at_behind, at_ahead)

    def fill_rows(blocks: tuple[int, int]) -> None:
        _by_row(edges, costs.match, *blocks, most_behind, most_ahead, up_to, from_on)

    for fill, blocks in ((fill_edges, len(grid.low) - 1), (fill_rows, len(grid.low))):
        map_threads(fill, even_ranges(blocks, matrix.threads), matrix.threads)
    low, high = np.empty(len(grid.low), np.int64), np.empty(len(grid.low), np.int64)
    _find_hulls(grid, low, high)
    begins = np.arange(0, n + 1, matrix.per_interval)
    first, last = np.full(len(begins), m + 1), np.full(len(begins), -1)
    for touched in (begins, np.minimum(begins + matrix.per_interval, n), np.maximum(begins - 1, 0)):
        at = np.minimum(touched // edges[1], len(edges) - 2)
        there = low[at] <= high[at]
        first = np.where(there, np.minimum(first, begins + low[at]), first)
        last = np.where(there, np.maximum(last, begins + matrix.per_interval + high[at]), last)
    return Limits(up_to, from_on, np.maximum(first, 0), np.where(last < 0, -1, np.minimum(last, m)), at_behind, at_ahead)


@njit
def _find_hulls(grid, low, high):
    """First and last living diagonal of each block, (blocks,) int64, filled; first > last for none.  grid : Grid."""
    for block in range(len(low)):
        low[block], high[block] = 1 << 40, -(1 << 40)
        for x in range(grid.begin[block], grid.begin[block + 1]):
            if grid.alive[x]:
                diagonal = (grid.low[block] + x - grid.begin[block]) * grid.width - grid.offset
                low[block], high[block] = min(low[block], diagonal), diagonal + grid.width - 1
