"""Inner loops over anti-diagonals, for narrow bands: the cells of one anti-diagonal are computed side by side.

Cell (i, j) lies on line i + j.  What goes along a row is kept by row, what goes down a column by column, and columns are
stored from the last one on.  So all that a cell reads and writes has one place in each array, and places rise with the row:

    u[i] = H(i, j) - H(i-1, j) + first      y[i] = E(i, j+1) - H(i, j) + first
    v[j] = H(i, j) - H(i, j-1) + first      x[j] = F(i+1, j) - H(i, j) + first

`first` is what the first base of a gap costs.  All four are 0 or more and at most match + 2 first: bytes, or 16 bits (after
Suzuki and Kasahara 2018).  0 stands for what was not computed: there a gap begins.  That is an alignment too, so no score is
above the true one.

Where scores below 0 are raised to it, or the best cell is looked for, whole scores are computed (int32).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector
from bellapy.engines.exact.rule import NONE

U = np.uint64
LANES = 64
U_LANES = U(LANES)

IN_TARGET_GAP, IN_QUERY_GAP, TARGET_GAP_GOES_ON, QUERY_GAP_GOES_ON = 1, 2, 4, 8
"""Bits of a move: H is E, H is F; the gap goes on beyond this cell."""


class Codes(NamedTuple):
    """Codes by row, (rows + 1 + LANES,), and by column, (columns + 1 + LANES,) from the last one on; in the cells' type."""

    query: np.ndarray
    target: np.ndarray


class Differences(NamedTuple):
    """u, y by row, and v, x by column, as above; LANES more than rows or columns."""

    u: np.ndarray
    y: np.ndarray
    v: np.ndarray
    x: np.ndarray


class Whole(NamedTuple):
    """Scores, int32, NONE where none was computed.

    high : (3, rows + 2 + LANES), H of the last three lines by row, row i at i + 1.  e : E by row; f : F by column; both are
    empty if they are never needed.
    """

    high: np.ndarray
    e: np.ndarray
    f: np.ndarray


class Raised(NamedTuple):
    """Scores in the cells' type, raised so that none is below 0.

    open : what only the first base of a gap costs.  most : of a difference of H.
    """

    match: int
    mismatch: int
    open: int
    most: int


class Plain(NamedTuple):
    """Scores as they are, int32; first, extend : costs of a gap's bases; lowest : that no score falls below."""

    match: np.int32
    mismatch: np.int32
    first: np.int32
    extend: np.int32
    lowest: np.int32


@njit_part
def _cell(codes, d, costs, a, b):
    """The cell with the row at place a and the column at b: u, y, v, x, and how far E, F and H lie above the diagonal cell.

    codes : Codes.  d : Differences.  costs : Raised.
    """
    cell = d.u.dtype.type
    u, v = d.u[a], d.v[b]
    e, f = cell(u + d.y[a]), cell(v + d.x[b])
    h = max(max(costs.match if codes.query[a] == codes.target[b] else costs.mismatch, e), f)
    y, x = cell(max(cell(e + costs.open), h) - h), cell(max(cell(f + costs.open), h) - h)  # h may be below `open`
    return cell(h - v), y, cell(h - u), x, e, f, h


@njit_vector
def _differences(codes, d, costs, a, b, n):
    """n times LANES cells of a line; codes, d, costs, a, b : as in `_cell`, the first cell's."""
    for _ in range(n):
        for l in range(U_LANES):
            u, y, v, x, _e, _f, _h = _cell(codes, d, costs, a + l, b + l)
            d.u[a + l], d.y[a + l], d.v[b + l], d.x[b + l] = u, y, v, x
        a += U_LANES
        b += U_LANES


@njit_vector
def _last_differences(codes, d, costs, a, b, rest):
    """The last `rest` cells of a line, fewer than LANES; codes, d, costs, a, b : as in `_cell`."""
    cell = d.u.dtype.type
    for l in range(U_LANES):
        inside = cell(l) < rest
        u, y, v, x, _e, _f, _h = _cell(codes, d, costs, a + l, b + l)
        d.u[a + l], d.y[a + l] = u if inside else d.u[a + l], y if inside else d.y[a + l]
        d.v[b + l], d.x[b + l] = v if inside else d.v[b + l], x if inside else d.x[b + l]


@njit_vector
def _moves(codes, d, costs, a, b, n, moves, at):
    """Moves of n times LANES cells, before they are computed.

    codes, d, costs, a, b : as in `_cell`.  moves : (any,) in the cells' type, filled from `at` on.
    """
    cell = d.u.dtype.type
    none, in_target, in_query = cell(0), cell(IN_TARGET_GAP), cell(IN_QUERY_GAP)
    target_on, query_on = cell(TARGET_GAP_GOES_ON), cell(QUERY_GAP_GOES_ON)
    for _ in range(n):
        for l in range(U_LANES):
            _u, y, _v, x, e, f, h = _cell(codes, d, costs, a + l, b + l)
            source = cell((in_target if e == h else none) | (in_query if f == h else none))
            goes_on = cell((target_on if y > none else none) | (query_on if x > none else none))
            moves[at + l] = cell(source | goes_on)
        a += U_LANES
        b += U_LANES
        at += U_LANES


@njit_inner
def differences_line(codes, d, costs, row, place, n):
    """A line of n cells in differences.

    codes : Codes.  d : Differences.  costs : Raised.  row, place : of the first cell, in arrays by row and by column.
    """
    cell = d.u.dtype.type
    a, b, full = U(row), U(place), U(n) // U_LANES
    _differences(codes, d, costs, a, b, full)
    if n % LANES:
        _last_differences(codes, d, costs, a + full * U_LANES, b + full * U_LANES, cell(n % LANES))


@njit_inner
def limit_ends(d, most, row, place, n):
    """Limit the differences between a line's ends and what was not computed beside them, which could grow line by line.

    d, row, place, n : as in `differences_line`.  most : by which true scores of neighbours differ; so what was not computed
    may be taken to be higher.
    """
    d.u[row] = min(d.u[row], most)
    d.v[place + n - 1] = min(d.v[place + n - 1], most)


@njit_inner
def moves_line(codes, d, costs, row, place, n, moves, at):
    """The same, and each cell's move; codes, d, costs, row, place, n, moves, at : as above."""
    _moves(codes, d, costs, U(row), U(place), U(n + LANES - 1) // U_LANES, moves, U(at))
    differences_line(codes, d, costs, row, place, n)


@njit_vector
def _whole(codes, above, high, e, f, costs, a, b, n):
    """The first n cells of a line, and the best of them.

    codes : Codes.  above, high : rows of Whole.high, two lines before and this one.  e, f : of Whole.  costs : Plain.
    a, b : as in `_cell`.
    """
    best = high.dtype.type(NONE)
    for l in range(n):
        pair = costs.match if codes.query[a + l] == codes.target[b + l] else costs.mismatch
        h = max(max(np.int32(above[a + l] + pair), costs.lowest), max(e[a + l], f[b + l]))
        opened = np.int32(h - costs.first)
        e[a + l] = max(opened, np.int32(e[a + l] - costs.extend))
        f[b + l] = max(opened, np.int32(f[b + l] - costs.extend))
        high[a + l + U(1)] = h
        best = max(best, h)
    return best


@njit_inner
def whole_line(codes, w, costs, line, row, place, n):
    """A line of n cells in whole scores; the best of them.

    codes : Codes.  w : Whole.  costs : Plain.  line : its number.  row, place : as in `differences_line`.
    """
    high = w.high[line % 3]
    best = _whole(codes, w.high[(line - 2) % 3], high, w.e, w.f, costs, U(row), U(place), U(n))
    high[row], high[row + n + 1] = NONE, NONE
    return best
