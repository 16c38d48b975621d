"""Tiles of the exact sweep in registers of a GPU: a warp computes a strip of rows, one column of each lane after the other.

Two scores stand in the halves of a word.  A lane has 2 R rows of a strip in R registers: row k of the first half of them in
the low half of register k, the same row of the second half in the high half.  So a warp has LAG = 64 *places*, of R rows
each; place p works p columns behind place 0.  What a place needs from the one above it was made one step before.

A tile is a number of steps of a strip, so it leans: its left and right borders move one column back for each R rows.

Scores are counted with a drift of one gap base for each row and column, so that gaps go on for nothing (rule.py):

    H(i, j) = max(H(i-1, j-1) + pair + 2 extend, E(i, j), F(i, j))   and the floor, where it matters
    E(i, j+1) = max(H(i, j) - open, E(i, j))
    F(i+1, j) = max(H(i, j) - open, F(i, j))

Registers hold H - open, E and F, above the tile's base: H = `base` in row -1 and column -LAG stands there as `zero`.  Halves
are unsigned and never borrow from one another: what is added to a score is 0 or more, and what is taken off is `open` alone.
"""

from __future__ import annotations

from numba import cuda

from bellapy.compute.gpu.ops import (
    BOTH,
    HIGH_HALVES,
    I32,
    LOW_HALVES,
    U32,
    WARP,
    inlined,
    max2,
    multiply_add,
    permute,
    shuffle,
)
from bellapy.engines.exact.gpu.records import LAG, Best, Flow
from bellapy.records.bases import UNKNOWN

HIGHEST = 65_535
HIGH_THEN_LOW = U32(0x5432)  # high half of the one, low half of the other


@inlined
def pack(low, high):
    """A word of two numbers, int32, 0 to HIGHEST."""
    return U32(U32(low) | U32(U32(high) << U32(16)))


@inlined
def low_of(word):
    """The low half of a word, int32."""
    return I32(word & U32(0xFFFF))


@inlined
def high_of(word):
    """The high half of a word, int32."""
    return I32(word >> U32(16))


@inlined
def half_of(score, base, drift, rule):
    """A score, int32, as a half of a word: relative to `base`, with a `drift`; `rule`: Packed."""
    return I32(max(I32(rule.dead), I32(max(I32(score), I32(base - rule.zero)) - base + rule.zero + drift)))


@inlined
def score_of(half, base, drift, rule):
    """The score that a half stands for, int32; the other way."""
    return I32(base + half - rule.zero - drift)


@inlined
def drift_of(row, column, rule):
    """The drift of a cell: rows from the strip's first one, columns from place 0's first one of the tile, int32."""
    return I32(rule.extend * I32(row + 1 + column + LAG))


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
            cells.known[k] = pack(HIGHEST if low < UNKNOWN else 0, HIGHEST if high < UNKNOWN else 0)


@inlined
def profile_of(target, column, rule):
    """The scores of four query bases with one of the target's, uint8 codes; `rule`: Packed.  Outside it all mismatch."""
    inside = 0 <= column and column < target.shape[0]
    code = I32(target[column]) if inside else I32(UNKNOWN)
    return U32(rule.profile ^ U32(rule.swap << U32(8 * code))) if code < UNKNOWN else rule.profile


@inlined
def sum_of(a, b, rule):
    """a + b by the multiplier, since the other unit is busy; `rule`: Packed."""
    return multiply_add(a, rule.one, b)


@inlined
def _paired(k, low, high, before, cells, rule, kind):
    """`before` plus the score of register k's pairs.

    `low`, `high`: profiles of the target's bases; `cells`, `rule`, `kind`: Cells, Packed, Kind.
    """
    score = permute(low, high, cells.choice[k])
    if kind.masked:
        score = U32(score & cells.known[k] | rule.mismatch & ~cells.known[k])
    return sum_of(before, score, rule)


@inlined
def step_column(cells, flow, top, profile, floor, floored, rule, kind):
    """One column of each place of a lane.

    F goes on from every second row to the next by one instruction: a gap that comes from above and ends within a row opens
    no better one, so F needs only the scores without it.  Each instruction waits for the one before, and few warps are there
    to fill the time.

    Parameters
    ----------
    cells : Cells, renewed.
    flow : Flow.
    top : what comes from the lane before: H - open and F of its last row, in the two halves.
    profile : of the target's base of the first place.
    floor : in both halves, for the first row of each place.
    floored : whether that matters.
    rule, kind : Packed, Kind.

    Returns
    -------
    The next Flow.
    """
    high, gap, R = cells.high, cells.gap, kind.registers
    above = permute(top, high[R - 1], LOW_HALVES)
    f = permute(top, flow.below, HIGH_THEN_LOW)
    paired = _paired(0, profile, flow.profile, flow.above, cells, rule, kind)
    for k in range(0, R, 2):
        upper = max2(paired, gap[k])
        lower = max2(_paired(k + 1, profile, flow.profile, high[k], cells, rule, kind), gap[k + 1])
        if k + 2 < R:
            paired = _paired(k + 2, profile, flow.profile, high[k + 1], cells, rule, kind)
        if floored:
            upper, floor = max2(upper, floor), sum_of(floor, rule.drift, rule)
            lower, floor = max2(lower, floor), sum_of(floor, rule.drift, rule)
        opened = sum_of(upper, rule.open, rule)
        high[k] = sum_of(max2(upper, f), rule.open, rule)
        high[k + 1] = sum_of(max2(lower, max2(f, opened)), rule.open, rule)
        gap[k], gap[k + 1] = max2(gap[k], high[k]), max2(gap[k + 1], high[k + 1])
        f = max2(max2(opened, sum_of(lower, rule.open, rule)), f)  # one instruction
    return Flow(above, f, profile)


@inlined
def last_row_of(cells, flow, kind):
    """H - open and F that a lane's last row hands on; `cells`, `flow`, `kind`: Cells, Flow, Kind."""
    return permute(cells.high[kind.registers - 1], flow.below, HIGH_HALVES)


@inlined
def _lift(word, least, shift):
    """A word less `shift`, whose halves are raised to those of `least` before."""
    return U32(max2(word, least) - shift)


@inlined
def rebase(cells, flow, by, rule, kind):
    """Cells and Flow of the next tile: all halves less by `by`, int32, but no lower than dead; `rule`, `kind`: as above."""
    by = I32(min(I32(by), I32(HIGHEST - rule.dead)))
    if by < 0:
        up = U32(U32(-by) * U32(BOTH))
        for k in range(kind.registers):
            cells.high[k] += up
            cells.gap[k] += up
        return Flow(U32(flow.above + up), U32(flow.below + up), flow.profile)
    shift, least = U32(U32(by) * U32(BOTH)), U32(U32(I32(rule.dead + by)) * U32(BOTH))
    for k in range(kind.registers):
        cells.high[k] = _lift(cells.high[k], least, shift)
        cells.gap[k] = _lift(cells.gap[k], least, shift)
    return Flow(_lift(flow.above, least, shift), _lift(flow.below, least, shift), flow.profile)


@inlined
def clear(cells, corner, level, growth, rule, kind):
    """Empty `cells`, Cells, and the Flow that goes with them.

    corner : the half above the lane's first place, left of it.  level, growth : H - open of the first row of each place, and
    how it grows from row to row; uint32.  rule, kind : Packed, Kind.
    """
    empty = U32(U32(rule.dead) * U32(BOTH))
    for k in range(kind.registers):
        cells.high[k], cells.gap[k] = level, empty
        level = U32(level + growth)
    return Flow(pack(corner, rule.dead), empty, U32(0))


@inlined
def highest_cell(cells, flow, row, step, base, rule, kind):
    """The highest score that a lane's part of a tile hands on.

    cells, flow, rule, kind : Cells, Flow, Packed, Kind.  row : the lane's first row in the strip.
    step : that comes next in the tile, for place 0; base : of the scores; int32.
    """
    R, most = kind.registers, flow.above
    for k in range(R):
        most = max2(most, U32(cells.high[k]))  # drifts rise with rows: of equal halves the upper one is the higher score
    column = I32(step - 1 - row // R)
    low = score_of(low_of(most), base, drift_of(I32(row - 1), I32(column - 1), rule), rule)
    high = score_of(high_of(most), base, drift_of(I32(row + R - 1), I32(column - 2), rule), rule)
    return I32(max(low, high) + rule.opening)


@inlined
def show(cells, shown, rule, kind):
    """Copy a lane's H - open to `shown`, and return how many rows it has.

    cells, rule, kind : Cells, Packed, Kind.  shown : (2 registers,) int32 of local memory: the lane's rows in order.

    The number is made so that the compiler does not know it: loops over rows that are seldom needed stay short code.
    """
    R = kind.registers
    for k in range(R):
        shown[k], shown[R + k] = low_of(cells.high[k]), high_of(cells.high[k])
    return I32(I32(rule.one) * 2 * R)


@inlined
def _shown_score(shown, row, place, step, base, rule, kind):
    """H of one of a lane's rows.

    `shown`: as `show` fills it; `row`: from the lane's first; `place`, `rule`, `kind`: as below; `step`, `base`: of the
    tile.
    """
    R = kind.registers
    column = I32(step - 2 * place.lane - (1 if row >= R else 0))
    drift = drift_of(I32(2 * R * place.lane + row), column, rule)
    return I32(score_of(shown[row], base, drift, rule) + rule.opening)


@inlined
def _highest_in(cells, place, step, base, rule, kind):
    """The highest score of a lane's column, and the first row that has it, as Best.

    cells, place, rule, kind : Cells, sweep_kernels.Place, Packed, Kind.  step, base : of the tile.

    Scores are compared with the drift of the last row of their place.
    """
    R, inside, column = kind.registers, I32(2 * kind.registers * place.lane), I32(step - 2 * place.lane)
    most = U32(cells.high[R - 1])
    for k in range(R - 1):
        most = max2(most, multiply_add(rule.drift, U32(R - 1 - k), U32(cells.high[k])))
    low = score_of(low_of(most), base, drift_of(I32(inside + R - 1), column, rule), rule)
    high = score_of(high_of(most), base, drift_of(I32(inside + 2 * R - 1), I32(column - 1), rule), rule)
    in_high = high > low
    row, half = I32(R - 1), high_of(most) if in_high else low_of(most)
    for i in range(1, R):
        word = multiply_add(rule.drift, U32(i), U32(cells.high[R - 1 - i]))
        row = I32(R - 1 - i) if (high_of(word) if in_high else low_of(word)) == half else row
    row = I32(place.row + row + 1 + (R if in_high else 0))
    return Best(I32(max(low, high) + rule.opening), row, I32(place.column + column + (0 if in_high else 1)))


@inlined
def look(cells, shown, place, step, ends, tile, best, rule, kind):
    """The best cell of a lane's column if it is no worse than `best`, Best, and than what is wanted, and comes first.

    Parameters
    ----------
    cells, shown : Cells; scratch of `show`.
    place, tile : sweep_kernels.Place and Tile.
    step : of the tile.
    ends : rows and columns of the matrix.
    rule, kind : Packed, Kind.
    """
    found = _highest_in(cells, place, step, tile.base, rule, kind)
    if found.score < max(tile.wanted, best.score):
        return best
    if found.row <= ends[0] and 1 <= found.column and found.column <= ends[1]:
        return found if found.score > best.score or found.row < best.row else best
    rows = show(cells, shown, rule, kind)  # one by one, since some lie outside the matrix
    for k in range(rows):
        score = _shown_score(shown, k, place, step, tile.base, rule, kind)
        row = I32(place.row + k + 1)
        at = I32(place.column + step - 2 * place.lane - (1 if k >= kind.registers else 0) + 1)
        if score >= tile.wanted and row <= ends[0] and 1 <= at and at <= ends[1]:
            if score > best.score or score == best.score and row < best.row:
                best = Best(score, row, at)
    return best


@inlined
def _put(word, value, half):
    """A word with one half, 0 or 1, replaced by `value`, int32."""
    return pack(low_of(word), value) if half else pack(value, high_of(word))


@inlined
def enter(cells, shown, flow, half, place, step, border, base, rule, kind):
    """Take the matrix's left border to one place of a lane, before its first column.

    Parameters
    ----------
    cells, flow : Cells, changed; Flow.
    shown : (2 registers,) int32, scratch.
    half : 0 or 1: which place of the lane.
    place, step : sweep_kernels.Place, step of the tile.
    border : (H, E), (rows + 1,) int32 each.
    base : int32.
    rule, kind : Packed, Kind.

    Returns
    -------
    The Flow then.
    """
    R, last = kind.registers, border[0].shape[0] - 1
    row, inside = I32(place.row + half * R), I32(2 * R * place.lane + half * R)
    column = I32(step - 2 * place.lane - half)
    for k in range(I32(rule.one) * R):
        at = min(row + k + 1, last)
        drift = drift_of(I32(inside + k), column, rule)
        shown[k] = half_of(I32(border[0][at] - rule.opening), base, I32(drift - rule.extend), rule)
        shown[R + k] = half_of(border[1][at], base, drift, rule)
    for k in range(R):
        cells.high[k], cells.gap[k] = _put(cells.high[k], shown[k], half), _put(cells.gap[k], shown[R + k], half)
    drift = drift_of(I32(inside - 1), I32(column - 1), rule)
    corner = half_of(I32(border[0][min(row, last)] - rule.opening), base, drift, rule)
    return Flow(_put(flow.above, corner, half), flow.below, flow.profile)


@inlined
def leave(cells, shown, half, place, step, base, last_column, rule, kind):
    """Keep what one place of a lane has in the matrix's last column.

    cells, shown, half, place, step, base, rule, kind : as in `enter`.  last_column : (rows + 1,) int32, written.
    """
    show(cells, shown, rule, kind)
    n = last_column.shape[0] - 1
    for k in range(I32(rule.one) * kind.registers):
        row = I32(half * kind.registers + k)
        if place.row + row < n:
            last_column[place.row + row + 1] = _shown_score(shown, row, place, step, base, rule, kind)


@inlined
def score_in(cells, shown, row, place, step, base, rule, kind):
    """H of one of a lane's rows, counted from its first; the others as in `enter`."""
    show(cells, shown, rule, kind)
    return _shown_score(shown, row, place, step, base, rule, kind)
