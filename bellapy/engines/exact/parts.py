"""Windows of all blocks of a grid, in parts that several threads compute (docs/exact.md).

A part begins some blocks early, with what the grid knows.  It holds for all that begins as it does, or with less.  So it is
lowered by as much as the part before ends below it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import map_threads
from bellapy.engines.exact.antidiagonals import LANES, Differences
from bellapy.engines.exact.band import cell_type, padded_codes, raised_scores
from bellapy.engines.exact.grid import Costs, Grid, Room, enter_block, exit_block, widest
from bellapy.engines.exact.grid_cuts import cut
from bellapy.engines.exact.rule import NONE, Scores
from bellapy.engines.exact.windows import HALF_WIDTH, STEP, Frame, Part, tighten_part

PART_ROWS = 1 << 17  # of a part; in longer ones, paths that come from far at its start may gain more than windows allow
FAR = 16  # half widths: as in windows.Frame
EARLY = 1 << 14  # rows before it, at least, with which it begins


class Seam(NamedTuple):
    """The most that a path has gained where it comes to a block, int64: by bands, and by cells of the window before.

    bands : (bands of the block,), as `enter_block` has it.  first : column of the first cell.  cells : (any,).
    """

    bands: np.ndarray
    first: int
    cells: np.ndarray


@njit
def _enter(grid, block, costs, exits, out):
    """`enter_block`, for callers in Python."""
    enter_block(grid, block, costs, exits, out)


@njit
def pass_by(grid, costs, far, first, end, exits):
    """Fill `exits`, (any,) int32, of blocks from `first` to `end`, the latter excluded, without windows.

    grid, costs : Grid, Costs.  far : (bands of the block `first`,) int64, as `enter_block` has it, changed.
    """
    scratch = np.empty((5, widest(grid)), np.int64)
    entry, room = scratch[0], Room(scratch[1], scratch[2], scratch[3], scratch[4])
    exit_block(grid, first, costs, far, room, exits)
    for block in range(first + 1, end):
        enter_block(grid, block, costs, exits, entry)
        exit_block(grid, block, costs, entry, room, exits)


class Way(NamedTuple):
    """One direction to go through a grid: its sequences, (rows,) and (columns,) uint8 codes.

    grid, costs : as they are in that direction.  behind, ahead : (any,) int32, the most that is gained up to the end of a
    block, and from its beginning on.  unmatched : as in narrow.Matrix.
    """

    query: np.ndarray
    target: np.ndarray
    grid: Grid
    costs: Costs
    behind: np.ndarray
    ahead: np.ndarray
    unmatched: np.ndarray


class _Done(NamedTuple):
    """The gains of a part's blocks, and both its seams, empty where there is none."""

    exits: np.ndarray
    at_start: Seam
    at_end: Seam


def tighten(ways: list[Way], scores: Scores, most: int, threads: int) -> list[np.ndarray]:
    """Each way's `behind`, lower where windows tell so.  most : cells that may be computed for each."""
    parts = [_parts_of(way.grid.edges, way.unmatched, threads) for way in ways]
    tasks = [(k, part) for k in range(len(ways)) for part in parts[k]]
    done = map_threads(lambda task: _compute_part(ways[task[0]], scores, task[1], most), tasks, threads)
    both = zip(ways, parts, (done[: len(parts[0])], done[len(parts[0]) :]), strict=True)
    return map_threads(lambda one: _joined(*one, scores), list(both), threads)


def _parts_of(edges: np.ndarray, unmatched: np.ndarray, threads: int) -> list[Part]:
    """Blocks between `edges`, cut into parts where there are threads for more than both directions.

    Stretches that match nothing are not cut: too much is known of them only as a whole.
    """
    blocks, rows = len(edges) - 1, int(np.diff(edges).max())  # the first or the last one may have fewer
    size, early = max(1, PART_ROWS // rows) if threads > 2 else blocks, max(1, EARLY // rows)
    first, stop = np.searchsorted(edges, unmatched[:, 0], side="right") - 1, np.searchsorted(edges, unmatched[:, 1])
    cuts = [at for at in range(size, blocks, size) if not ((first < at) & (at < stop)).any()]
    return [Part(max(0, at - early), at, end) for at, end in pairwise([0, *cuts, blocks])]


def _compute_part(way: Way, scores: Scores, part: Part, most: int) -> _Done:
    """The gains of a part's blocks, from what is known of the block before them."""
    start, stop = max(0, part.begin - 1), min(len(way.grid.low), part.end + 1)
    grid, bands = cut(way.grid, start, stop), slice(way.grid.begin[start], way.grid.begin[stop])
    begin, first, end = (block - start for block in part)
    exits = np.full(len(grid.alive), NONE, np.int32)
    exits[: grid.begin[begin]] = way.behind[bands][: grid.begin[begin]]
    at_start, at_end = (
        np.full(grid.begin[x + 1] - grid.begin[x] if x < len(grid.low) else 0, NONE, np.int64) for x in (first, end)
    )
    frame = _frame_of(way, grid, scores, most * int(grid.edges[-1] - grid.edges[0]) // len(way.query))
    costs = way.costs if part.first == 0 else way.costs._replace(local=False)
    here = Part(begin, first, end)
    start_at, start_cells, end_at, end_cells = tighten_part(
        frame, grid, costs, way.behind[bands], way.ahead[bands], here, exits, at_start, at_end
    )
    ends = Seam(at_start, start_at, start_cells), Seam(at_end, end_at, end_cells)
    return _Done(exits[grid.begin[first] : grid.begin[end]], *ends)


def _far(unmatched: np.ndarray, row: int, end: int) -> int:
    """As in Frame, for a part of some rows: a way from farther off gains nothing by a stretch in it that matches nothing."""
    first, stop, low, high = unmatched.T
    return max(FAR * HALF_WIDTH, int((high - low).max(initial=0, where=(first < end) & (row < stop))))


def _frame_of(way: Way, grid: Grid, scores: Scores, most: int) -> Frame:
    """A Frame for the blocks of a grid."""
    columns, cell, there = len(way.target), cell_type(scores), np.diff(grid.begin) > 0
    diagonals = grid.low * grid.width - grid.offset, (grid.low + np.diff(grid.begin)) * grid.width - grid.offset
    first = max(0, int((grid.edges[:-1] + diagonals[0])[there].min(initial=columns)))
    last = max(first, min(columns, int((grid.edges[1:] + diagonals[1])[there].max(initial=0))))
    row, end = int(grid.edges[0]), int(grid.edges[-1])
    by_row, by_column = STEP + 1 + LANES, last - first + 1 + LANES
    return Frame(
        padded_codes(way.query[row:end], way.target[first:last], cell),
        Differences(*(np.zeros(k, cell) for k in (by_row, by_row, by_column, by_column))), raised_scores(scores, cell),
        row, first, columns, scores.gap_open, scores.gap_extend, scores.match, HALF_WIDTH,
        _far(way.unmatched, row, end), max(1, HALF_WIDTH // grid.width), STEP, most, way.unmatched,
    )  # fmt: skip


def _joined(way: Way, parts: list[Part], done: list[_Done], scores: Scores) -> np.ndarray:
    """The gains of all parts, each lowered by as much as the part before ends below what it began with."""
    grid, exits, lower = way.grid, way.behind.copy(), 0
    far = np.full(len(exits) if len(parts) > 1 else 0, NONE, np.int32)
    for k, part in enumerate(parts):
        place = slice(grid.begin[part.first], grid.begin[part.end])
        values = done[k].exits
        if k:
            began, ended = done[k].at_start, done[k - 1].at_end
            bands, beyond = (np.empty(len(began.bands), np.int64) for _ in range(2))
            _enter(grid, part.first, way.costs, exits, bands)
            _enter(grid, part.first, way.costs, far, beyond)
            columns = began.first + np.arange(len(began.cells))
            band = (columns - grid.edges[part.first] + grid.offset) // grid.width - grid.low[part.first]
            band = np.clip(band, 0, len(bands) - 1)
            cells, both = bands[band] + scores.gap_open, np.isin(columns, ended.first + np.arange(len(ended.cells)))
            inside = ended.cells[columns[both] - ended.first] + lower
            cells[both] = np.maximum(inside, beyond[band][both] + scores.gap_open)
            reached, first = np.append(bands, cells), np.append(began.bands, began.cells)
            near = first > NONE // 2
            lower = int((reached[near] - first[near]).max(initial=NONE // 2))
            pass_by(grid, way.costs, np.where(began.bands > NONE // 2, NONE, bands), part.first, part.end, far)
            values = np.maximum(values + np.int32(lower), far[place])
        np.minimum(exits[place], values, out=exits[place])
    return exits
