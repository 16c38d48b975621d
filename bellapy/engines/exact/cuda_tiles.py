"""Tiles of the exact sweep in registers of a GPU: a warp computes a strip of rows, one column of each lane after the other.

Two scores stand in the halves of a word.  A lane has 2 R rows of a strip in R registers: row k of the first half of them in
the low half of register k, the same row of the second half in the high half.  So a warp has LAG = 64 *places*, of R rows
each; place p works p columns behind place 0.  What a place needs from the one above it was made one step before.

A tile is a number of steps of a strip, so it leans: its left and right borders move one column back for each R rows.  Scores
are signed, relative to the best one on the tile's borders.  The recurrence is that of rule.py, with one `floor` under E and
F, and so under H: 0 in local mode, or what no true score falls below (`reach` in cuda_plan.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, add_max2_signed, max2_signed, permute, shuffle
from bellapy.engines.exact.rule import NONE
from bellapy.records.bases import UNKNOWN

LAG = 2 * WARP
HIGHEST = 32767
FIRST_OF_EACH, SECOND_OF_EACH = U32(0x5410), U32(0x7632)  # low halves, high halves of two words
SECOND_THEN_FIRST = U32(0x5432)  # high half of the one, low half of the other
inlined = cuda.jit(device=True, inline="always")


class Kind(NamedTuple):
    """What a kernel is made for; constant while it is compiled.

    registers : of a lane.  steps : of a tile, a multiple of LAG.  masked : the query holds unknown bases.
    """

    registers: int
    steps: int
    masked: bool

    @property
    def rows(self) -> int:
        """Rows of a strip."""
        return LAG * self.registers


class Packed(NamedTuple):
    """Scores as the kernels want them.

    first, extend, mismatch : what is added, in both halves; uint32.  profile : four bytes, mismatches of four bases.
    swap : what makes a byte of them a match.  dead : the lowest score relative to a tile's base, int32.
    alarm : what a cell can lose until its gap is seen below its place's last row, and one more.
    slack : what the opening of a gap cost, which may have been paid before.
    floor : no score is below 0.  seek : the best cell is sought.
    """

    first: np.uint32
    extend: np.uint32
    mismatch: np.uint32
    profile: np.uint32
    swap: np.uint32
    dead: np.int32
    alarm: np.int32
    slack: np.int32
    floor: bool
    seek: bool


class Cells(NamedTuple):
    """A lane's part of a strip, (registers,) uint32 each.

    high, gap : H of the last column, E of the next one.  choice : selectors of `permute` that choose each row's score from
    the profiles of two target bases.  known : where the row's base is known, all bits of its half; unused unless masked.
    """

    high: np.ndarray
    gap: np.ndarray
    choice: np.ndarray
    known: np.ndarray


class Flow(NamedTuple):
    """What a lane hands from column to column; uint32.

    above : H above the first row, of the last step.  below : F below the last row.  profile : of the last target base.
    """

    above: np.uint32
    below: np.uint32
    profile: np.uint32


class Best(NamedTuple):
    """The best cell that a lane has found: score, row and column of the matrix, from 1; int32."""

    score: np.int32
    row: np.int32
    column: np.int32


@inlined
def pack(low, high):
    """A word of two numbers, int32, of which the low 16 bits are kept."""
    return U32(U32(I32(low) & I32(0xFFFF)) | U32(U32(I32(high) & I32(0xFFFF)) << U32(16)))


@inlined
def low_of(word):
    """The low half of a word, int32."""
    return I32(I32(I32(word & U32(0xFFFF)) ^ I32(0x8000)) - I32(0x8000))


@inlined
def high_of(word):
    """The high half of a word, int32."""
    return low_of(U32(word >> U32(16)))


@inlined
def relative(score, base, floor):
    """A score, int32, relative to `base`, but no less than `floor`, for a half of a word."""
    return I32(max(I32(score), I32(base + floor)) - base)


@inlined
def highest_of_warp(value):
    """The highest of a number, int32, of all lanes."""
    lane = I32(cuda.threadIdx.x & (WARP - 1))
    for i in range(5):
        if 1 << i < WARP:
            value = max(value, I32(shuffle(I32(value), lane ^ (1 << i))))
    return value


@inlined
def load_rows(query, first, cells, kind):
    """Selectors of a lane's rows to `cells`, Cells.

    query : (any,) uint8 codes.  first : the lane's first row.  kind : Kind.
    """
    R, last = kind.registers, query.shape[0] - 1
    for k in range(R):
        low, high = I32(query[min(first + k, last)]), I32(query[min(first + R + k, last)])
        bits = I32(low & 3 | (low & 3 | 8) << 4 | (high & 3 | 4) << 8 | (high & 3 | 12) << 12)
        cells.choice[k] = U32(bits)
        if kind.masked:
            cells.known[k] = pack(-1 if low < UNKNOWN else 0, -1 if high < UNKNOWN else 0)


@inlined
def profile_of(target, column, rule):
    """The scores of four query bases with one of the target's, uint8 codes; `rule`: Packed.  Outside it all mismatch."""
    inside = 0 <= column and column < target.shape[0]
    code = I32(target[column]) if inside else I32(UNKNOWN)
    return U32(rule.profile ^ U32(rule.swap << U32(8 * code))) if code < UNKNOWN else rule.profile


@inlined
def _paired(k, low, high, before, gap, cells, rule, kind):
    """The larger of `before` plus the score of register k's pairs, and `gap`.

    `low`, `high`: profiles of the target's bases; `cells`, `rule`, `kind`: Cells, Packed, Kind.
    """
    score = permute(low, high, cells.choice[k])
    if kind.masked:
        score = U32(score & cells.known[k] | rule.mismatch & ~cells.known[k])
    return add_max2_signed(before, score, gap)


@inlined
def step_column(cells, flow, top, profile, floor, rule, kind):
    """One column of each place of a lane.

    Parameters
    ----------
    cells : Cells, renewed.
    flow : Flow.
    top : what comes from the lane before: H and F of its last row, in the two halves.
    profile : of the target's base of the first place.
    floor : in both halves.
    rule, kind : Packed, Kind.

    Returns
    -------
    The next Flow.
    """
    high, gap, R = cells.high, cells.gap, kind.registers
    above = permute(top, high[R - 1], FIRST_OF_EACH)
    f = permute(top, flow.below, SECOND_THEN_FIRST)
    paired = _paired(0, profile, flow.profile, flow.above, gap[0], cells, rule, kind)
    for k in range(R):
        h = max2_signed(paired, f)
        if k + 1 < R:
            paired = _paired(k + 1, profile, flow.profile, high[k], gap[k + 1], cells, rule, kind)
        high[k] = h
        opened = add_max2_signed(h, rule.first, floor)
        gap[k] = add_max2_signed(gap[k], rule.extend, opened)
        f = add_max2_signed(f, rule.extend, opened)
    return Flow(above, f, profile)


@inlined
def last_row_of(cells, flow, kind):
    """H and F that a lane's last row hands on; `cells`, `flow`, `kind`: Cells, Flow, Kind."""
    return permute(cells.high[kind.registers - 1], flow.below, SECOND_OF_EACH)


@inlined
def lift(word, shift, least):
    """Scores of a tile relative to another base, which is `shift` less, but no less than what `least` becomes; both packed."""
    return add_max2_signed(max2_signed(word, least), shift, U32(0x80008000))


@inlined
def rebase(cells, flow, by, floor, kind):
    """Cells and Flow relative to a base that is less by `by`, int32, and no lower than `floor`, int32; `kind`: Kind."""
    by = I32(max(I32(by), I32(floor - HIGHEST)))
    shift, least = pack(by, by), pack(I32(floor - by), I32(floor - by))
    for k in range(kind.registers):
        cells.high[k] = lift(cells.high[k], shift, least)
        cells.gap[k] = lift(cells.gap[k], shift, least)
    return Flow(lift(flow.above, shift, least), lift(flow.below, shift, least), flow.profile)


@inlined
def clear(cells, corner, floor, kind):
    """Empty `cells`, Cells, and the Flow that goes with them; corner : H above the lane's first row, left of its first column.

    corner, floor : int32, relative.  kind : Kind.
    """
    empty = pack(floor, floor)
    for k in range(kind.registers):
        cells.high[k] = cells.gap[k] = empty
    return Flow(pack(corner, floor), empty, U32(0))


@inlined
def highest_cell(cells, flow, kind):
    """The highest score that a lane's part of a tile hands on, relative; `cells`, `flow`, `kind`: Cells, Flow, Kind."""
    most = flow.above
    for k in range(kind.registers):
        most = max2_signed(most, cells.high[k])
    return max(low_of(most), high_of(most))


@inlined
def look(cells, column, first, n, m, base, wanted, best, kind):
    """The best cell of a lane's column if it is no worse than `best`, Best, and than `wanted`, and comes first; else `best`.

    Parameters
    ----------
    cells : Cells.
    column, first : column of the lane's first place, from 0; its first row.
    n, m : rows and columns of the matrix.
    base, wanted : int32.
    kind : Kind.
    """
    R = kind.registers
    for k in range(R):
        word = cells.high[k]
        for half in range(2):
            score = I32(base + (high_of(word) if half else low_of(word)))
            row, at = I32(first + half * R + k + 1), I32(column - half + 1)
            if score >= wanted and row <= n and 1 <= at and at <= m:
                if score > best.score or score == best.score and row < best.row:
                    best = Best(score, row, at)
    return best


@inlined
def _put(word, value, half):
    """A word with one half, 0 or 1, replaced by `value`, int32."""
    return pack(low_of(word), value) if half else pack(value, high_of(word))


@inlined
def enter(cells, flow, place, first, left, left_gap, base, floor, kind):
    """Take the matrix's left border to one place of a lane, before its first column.

    Parameters
    ----------
    cells, flow : Cells, changed; Flow.
    place : 0 or 1.
    first : the lane's first row.
    left, left_gap : (rows + 1,) int32, H and E.
    base, floor : int32.
    kind : Kind.

    Returns
    -------
    The Flow then.
    """
    R, last = kind.registers, left.shape[0] - 1
    row = I32(first + place * R)
    for k in range(R):
        at = min(row + k + 1, last)
        cells.high[k] = _put(cells.high[k], relative(left[at], base, floor), place)
        cells.gap[k] = _put(cells.gap[k], relative(left_gap[at], base, floor), place)
    corner = relative(left[min(row, last)], base, floor)
    return Flow(_put(flow.above, corner, place), flow.below, flow.profile)


@inlined
def leave(cells, place, first, n, base, last_column, kind):
    """Keep what one place of a lane, 0 or 1, has in the matrix's last column.

    `cells`, `kind`: Cells, Kind; `first`, `n`, `base`: the lane's first row, rows of the matrix, base of the scores;
    `last_column`: (rows + 1,) int32, written.
    """
    for k in range(kind.registers):
        row = I32(first + place * kind.registers + k)
        if row < n:
            last_column[row + 1] = base + (high_of(cells.high[k]) if place else low_of(cells.high[k]))


@inlined
def score_in(cells, row, kind):
    """H of one of a lane's rows, counted from its first, relative; `cells`, `kind`: Cells, Kind."""
    R, word = kind.registers, U32(0)
    for k in range(R):
        if k == row or k + R == row:
            word = cells.high[k]
    return high_of(word) if row >= R else low_of(word)


