"""Grids from intervals of columns, and from other grids: finer ones, parts of them, and those of reversed sequences."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.exact.grid import Grid


def turned(grid: Grid, n: int, m: int) -> Grid:
    """The grid of the reversed sequences, n and m bases long; its values are those of the grid in reverse order."""
    sizes = np.diff(grid.begin)
    top = int((grid.low + sizes).max(initial=1))
    begin = np.concatenate(([0], np.cumsum(sizes[::-1])))
    offset = (top + 1) * grid.width - 1 + n - m - grid.offset
    return Grid(
        (n - grid.edges)[::-1].copy(), grid.width, offset, top - grid.end, top - grid.start,
        (top - (grid.low + sizes - 1))[::-1].copy(), begin, grid.alive[::-1].copy(), grid.gain[::-1].copy(),
    )  # fmt: skip


def cut(grid: Grid, first: int, last: int) -> Grid:
    """Blocks of a grid from `first` to `last`, the latter excluded."""
    begin = grid.begin[first : last + 1]
    bands = slice(begin[0], begin[-1])
    return grid._replace(
        edges=grid.edges[first : last + 1], low=grid.low[first:last], begin=begin - begin[0],
        alive=grid.alive[bands], gain=grid.gain[bands],
    )  # fmt: skip


def first_grid(
    first: np.ndarray, last: np.ndarray, per_interval: int, shape: tuple[int, int], rows: int, width: int
) -> Grid:
    """The grid of blocks of `rows` rows and bands of `width` diagonals that covers intervals of columns.

    first, last : (any,) int64, columns of each `per_interval` rows, both included; first > last for none.
    shape : rows and columns of the matrix.
    """
    n, m = shape
    edges = np.append(np.arange(0, n, rows), n)
    offset = -(-n // width) * width
    low, sizes = np.zeros(len(edges) - 1, np.int64), np.zeros(len(edges) - 1, np.int64)
    for block, (top, end) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        part = slice(top // per_interval, end // per_interval + 1)
        column, stop = int(first[part].min()), int(last[part].max())
        if column <= stop:
            low[block] = (column - end + offset) // width
            sizes[block] = (stop - top + offset) // width + 1 - low[block]
    begin = np.concatenate(([0], np.cumsum(sizes)))
    start, end = offset // width, (m - n + offset) // width
    return Grid(edges, width, offset, start, end, low, begin, np.ones(begin[-1], bool), np.zeros(begin[-1], np.int32))


def finer(grid: Grid, m: int, by: int) -> Grid:
    """A grid of the living bands of one, cut into `by` times as many blocks and bands.  m : columns."""
    n, rows = int(grid.edges[-1]), int(grid.edges[1]) // by
    width = grid.width // by
    edges = np.append(np.arange(0, n, rows), n)
    low, parts = np.zeros(len(edges) - 1, np.int64), []
    for block in range(len(edges) - 1):
        coarse = block // by
        alive = grid.alive[grid.begin[coarse] : grid.begin[coarse + 1]]
        there = np.flatnonzero(alive)
        first, stop = (there[0], there[-1] + 1) if len(there) else (0, 0)
        low[block] = (grid.low[coarse] + first) * by
        parts.append(np.repeat(alive[first:stop], by))
    begin = np.concatenate(([0], np.cumsum([len(part) for part in parts])))
    start, end = ((d + grid.offset) // width for d in (0, m - n))
    return Grid(
        edges, width, grid.offset, start, end, low, begin, np.concatenate(parts), np.zeros(begin[-1], np.int32)
    )  # fmt: skip


@njit
def _carry_over(coarse, fine, by, behind, ahead, fine_behind, fine_ahead):
    """Fill `fine_behind` and `fine_ahead`; all parameters as in `carry_over`."""
    for block in range(len(fine.low)):
        above = block // by
        shift = coarse.begin[above] - coarse.low[above]
        is_last = block + 1 == len(fine.low) or (block + 1) // by > above
        for x in range(fine.begin[block], fine.begin[block + 1]):
            there = (fine.low[block] + x - fine.begin[block]) // by + shift
            if is_last:
                fine_behind[x] = behind[there]
            if block % by == 0:
                fine_ahead[x] = ahead[there]


def carry_over(coarse: Grid, fine: Grid, by: int, behind: np.ndarray, ahead: np.ndarray) -> list[np.ndarray]:
    """`behind` and `ahead` of a grid for one that `finer` made of it: of rows that lie between blocks of both."""
    both = [np.full(len(fine.alive), np.iinfo(np.int32).max, np.int32) for _ in range(2)]
    _carry_over(coarse, fine, by, behind, ahead, *both)
    return both
