"""The inner loops: 64 tiles of one wavefront side by side in vector lanes.

A group is 64 rows of tiles; lane l works on row 64 g + l of the tiles.  At step d that lane computes tile column d - row, so
that what a tile needs was made one step before: its left border by the same lane, its top border by the lane before.  The
borders stay where they are; tops move on by one lane.

A group's cells are six arrays of (size * 64): H and F of the tile's columns (tops before the tile, bottoms after), bases of
query and target, H and E of the tile's rows (left borders before, right ones after).  Element k * 64 + l belongs to lane l.

Cells are relative to a base of their lane and as narrow as the scores allow (`cpu.Cells`).  A score below `dead` is raised
to it: `wide_cells` in cpu.py states why no cell gets more than its true score.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector

U = np.uint64
LANES = 64
U_LANES, UNROLLED = U(LANES), U(8)
H, F, QUERY, TARGET, LEFT_H, LEFT_E = range(6)
"""A group's arrays."""

GAP, DIAGONAL, NEXT_DIAGONAL, BEST, FLOOR, WANTED, CAP, SHIFT, LEFT_CAP, LEFT_SHIFT, HIGH, RIGHT = range(12)
"""Vectors of the 64 lanes: rows of a worker's scratch."""


class Group(NamedTuple):
    """A group's cells: (size * 64,) each, in the order of H, F and so on above; bases in the type of the scores.

    tops, gaps : H and F.  query, target : bases.  left, left_gaps : H and E.
    """

    tops: np.ndarray
    gaps: np.ndarray
    query: np.ndarray
    target: np.ndarray
    left: np.ndarray
    left_gaps: np.ndarray


class Along(NamedTuple):
    """What goes along the rows, (64,) each: rows GAP, DIAGONAL, BEST and FLOOR of a worker's vectors."""

    gap: np.ndarray
    diagonal: np.ndarray
    best: np.ndarray
    floor: np.ndarray


class Costs(NamedTuple):
    """Scores in the cells' type; first : what the first base of a gap costs, extend : each further one."""

    match: int
    mismatch: int
    first: int
    extend: int


@njit_vector
def _row(cells, along, at, size, costs):
    """One row of all tiles, eight columns at a time so that what goes along the row stays in registers.

    cells : Group.  along : Along.  at : the row's first element in the query's bases.  size : of a tile.  costs : Costs.
    """
    tops, gaps, query, target = cells.tops, cells.gaps, cells.query, cells.target
    gap, diagonal, best, floor = along
    match, mismatch, first, extend = costs
    cell = tops.dtype.type
    for column in range(U(0), U(size), UNROLLED):
        for l in range(U_LANES):
            e, before, base, highest, lowest = gap[l], diagonal[l], query[at + l], best[l], floor[l]
            for k in range(UNROLLED):
                place = (column + k) * U_LANES + l
                above, f = tops[place], gaps[place]
                h = cell(before + (match if base == target[place] else mismatch))
                h = max(max(h, lowest), max(e, f))
                opened = cell(h - first)
                e = max(opened, cell(e - extend))
                gaps[place] = max(opened, cell(f - extend))
                tops[place] = h
                before = above
                highest = max(highest, h)
            gap[l], diagonal[l], best[l] = e, before, highest


@njit_vector
def _begin_row(left, left_gaps, at, gap, diagonal, next_diagonal):
    """Take the left border of a row, left[at:] and left_gaps[at:], to gap, diagonal and next_diagonal, (64,) each."""
    for l in range(U_LANES):
        gap[l], diagonal[l], next_diagonal[l] = left_gaps[at + l], next_diagonal[l], left[at + l]


@njit_vector
def _end_row(left, left_gaps, at, tops, last, gap, best, wanted):
    """Keep the right border of the row; whether any lane has reached the score it is looked at for.

    left, left_gaps : (size * 64,) cells, written from `at` on.  tops : (size * 64,) cells, the last column's from `last` on.
    gap, best, wanted : (64,) cells.
    """
    reached = False
    for l in range(U_LANES):
        left[at + l] = tops[last + l]
        left_gaps[at + l] = gap[l]
        reached |= best[l] >= wanted[l]
    return reached


@njit_part
def _line_up(cells, at, arrival, row):
    """Fill `row`, (65,), with an arrival and what the lanes have from `at` on; each lane finds the one before there."""
    row[0] = arrival
    for l in range(U_LANES):
        row[l + U(1)] = cells[at + l]


@njit_vector
def shift_lanes(cells, arrivals, row, cap, shift, lowest, size):
    """Give every lane what the lane before has, and lane 0 the arrivals, relative to the base of the lane that gets it.

    cells : (size * 64,).  arrivals : (size,).  row : (65,) scratch.  All in the cells' type.
    cap : (64,), what a lane's new cells are at most, `lowest` for nothing at all.  shift : (64,), added to them.
    """
    cell = cells.dtype.type
    for k in range(U(size)):
        at = k * U_LANES
        _line_up(cells, at, arrivals[k], row)
        for l in range(U_LANES):
            cells[at + l] = max(lowest, cell(min(row[l], cap[l]) + shift[l]))


@njit_vector
def pass_lanes(cells, arrivals, row, size):
    """The same for bases, which are relative to nothing; cells, arrivals, row, size : as in `shift_lanes`."""
    for k in range(U(size)):
        at = k * U_LANES
        _line_up(cells, at, arrivals[k], row)
        for l in range(U_LANES):
            cells[at + l] = row[l]


@njit_vector
def rebase_lanes(cells, cap, shift, lowest, size):
    """Take every lane's cells relative to its new base; cells, cap, shift, lowest, size : as in `shift_lanes`."""
    cell = cells.dtype.type
    for k in range(U(size)):
        at = k * U_LANES
        for l in range(U_LANES):
            cells[at + l] = max(lowest, cell(min(cells[at + l], cap[l]) + shift[l]))


@njit_vector
def highest_cells(cells, high, size):
    """high[l]: the highest of a lane's cells.  cells : (size * 64,).  high : (64,), filled."""
    for l in range(U_LANES):
        high[l] = cells[l]
    for k in range(U(size)):
        at = k * U_LANES
        for l in range(U_LANES):
            high[l] = max(high[l], cells[at + l])


@njit_inner
def compute_tiles(cells, vectors, size, costs, origin, edge, found, last_row, last_column):
    """Compute a group's tiles in place.

    Parameters
    ----------
    cells : Group.
    vectors : scratch; GAP and so on say what each row holds.
    size : of a tile.
    costs : Costs.
    origin : (64, 3) int64: row and column of each lane's tile, base of its scores.
    edge : (row, lane, column, lane): where the last row and column of the matrix lie within a tile, and the lanes that hold
        them, -1 for none.
    found : (3,) int64: best score, row and column, of all cells that reach what is wanted; the first one in order of rows.
    last_row, last_column : absolute scores of the matrix's last row and column, int32.
    """
    tops, left, left_gaps = cells.tops, cells.left, cells.left_gaps
    along = Along(vectors[GAP], vectors[DIAGONAL], vectors[BEST], vectors[FLOOR])
    last = U(size - 1) * U_LANES
    end_row, row_lane, end_column, column_lane = edge
    for i in range(size):
        at = U(i) * U_LANES
        _begin_row(left, left_gaps, at, vectors[GAP], vectors[DIAGONAL], vectors[NEXT_DIAGONAL])
        _row(cells, along, at, size, costs)
        if _end_row(left, left_gaps, at, tops, last, vectors[GAP], vectors[BEST], vectors[WANTED]):
            _note(tops, vectors[BEST], vectors[WANTED], size, i, origin, found)
        if column_lane >= 0:
            place = origin[column_lane, 0] + i + 1
            if place < len(last_column):
                last_column[place] = origin[column_lane, 2] + tops[end_column * LANES + column_lane]
        if row_lane >= 0 and i == end_row:
            for j in range(min(size, len(last_row) - 1 - origin[row_lane, 1])):
                last_row[origin[row_lane, 1] + j + 1] = origin[row_lane, 2] + tops[j * LANES + row_lane]


@njit_inner
def _note(tops, best, wanted, size, i, origin, found):
    """Remember the first cell of row i in each lane that reaches what is wanted, if it beats, or precedes, the last.

    tops : (size * 64,) cells.  best, wanted : (64,) cells.  origin, found : as in `compute_tiles`.
    """
    for l in range(LANES):
        if best[l] < wanted[l]:
            continue
        j = 0
        while j < size - 1 and tops[j * LANES + l] != best[l]:
            j += 1
        score, row, column = origin[l, 2] + best[l], origin[l, 0] + i + 1, origin[l, 1] + j + 1
        if score > found[0] or score == found[0] and (row < found[1] or row == found[1] and column < found[2]):
            found[0], found[1], found[2] = score, row, column
        if best[l] < np.iinfo(tops.dtype).max:
            wanted[l] = best[l] + 1
