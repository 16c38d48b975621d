"""A chunk of anti-diagonals of one extension: window, staged bases, walls, scores relative to the best.

The cells of anti-diagonal r are held by their query position i, in a window that moves along: cell i stands at i - offset.
H(r) needs H(r-2), E and F of r-1 and nothing else, so three rows of H, one of E and two of F are all there is.  E and F are
stored where they come from: E at i is what leaves cell i for target alone, F at i leaves for query alone, to cell i + 1.

The living cells are looked for at the end of every GROUP of anti-diagonals.  Within one the window grows by a cell at its
upper end with each of them, as the living cells may.  So the next anti-diagonal can begin before the last one is done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_vector
from bellapy.engines.ydrop.row import LANES, WAYS, first_alive, first_equal, last_alive, row, row_traced
from bellapy.engines.ydrop.rule import CHUNK, KINDS, PAIR, TARGET_ALONE
from bellapy.engines.ydrop.walls import walls_near

NONE = 1 << 40  # no living cell
R, LOW, HIGH, FIRST, LAST, FIRST_BEFORE, LAST_BEFORE, BASE, BEST, BEST_R, BEST_I, OFFSET, CELLS, N_NEAR, TILT = range(15)
N_STATE = 15
ALIGNED = 64  # bytes; a vector
BESIDE = 2 * LANES  # cells of room on either side of a window
ROWS = 6  # H of three anti-diagonals, E, F of two
GROUP = 8
UNKNOWN = np.uint8(KINDS - 1)
GOING, ENDED, NO_ROOM = range(3)


class Sides(NamedTuple):
    """The two sequences as one extension sees them.

    query, target : (n,) uint8 codes.  q_at, t_at : where base 1 stands.  step : 1, or -1 for an extension to the left.
    q_len, t_len : bases there are.
    """

    query: np.ndarray
    target: np.ndarray
    q_at: int
    t_at: int
    step: int
    q_len: int
    t_len: int


class Rows(NamedTuple):
    """Working memory of one extension at a time.

    work : (ROWS * capacity,) int16 or int32, scores relative to the state's BASE, tilted from the chunk's beginning on.
    spare : (capacity,), likewise.
    query, target : (capacity + CHUNK,) int16, staged codes: five times those of cells, and those of the target backwards.
    near : (capacity, 4) int64, pieces of walls that the chunk may meet: r and i of the first cell, cells, operation.
    state : (N_STATE,) int64.  R: the anti-diagonal computed last.  LOW, HIGH: its cells.  FIRST, LAST: the living cells of
        the last one of a group, and _BEFORE those of the one before.  BASE: what is added to scores.  BEST: the best score,
        relative; BEST_R, BEST_I: where.  OFFSET: of the window.  CELLS: computed so far.  N_NEAR: pieces of walls.  TILT: of
        the anti-diagonal computed last.
    """

    work: np.ndarray
    spare: np.ndarray
    query: np.ndarray
    target: np.ndarray
    near: np.ndarray
    state: np.ndarray


class Rule(NamedTuple):
    """table : (32,) of the cells' type, by 5 query + target, tilted (row.py).  costs : minus infinity, the cost of opening a
    gap, that of each of its bases.
    """

    table: np.ndarray
    costs: tuple[int, int, int]
    ydrop: int


class Trace(NamedTuple):
    """ways : (room,) uint32, the ways into the cells of some anti-diagonals (row.py), end to end.

    starts, lows : (rows + 1,) int64, where an anti-diagonal begins, and its first cell.  first : (1,) int64, the first one.
    """

    ways: np.ndarray
    starts: np.ndarray
    lows: np.ndarray
    first: np.ndarray


def make_rows(capacity: int, kind: type) -> Rows:
    """Rows for windows of up to capacity - CHUNK - 2 BESIDE cells."""
    query, target = (np.zeros(capacity + 2 * CHUNK, np.int16) for _ in range(2))
    n_bytes = ROWS * capacity * np.dtype(kind).itemsize
    room = np.empty(n_bytes + ALIGNED, np.uint8)
    begin = -room.ctypes.data % ALIGNED
    work: np.ndarray = room[begin : begin + n_bytes].view(kind)
    return Rows(
        work, np.empty(capacity, kind), query, target, np.zeros((capacity, 4), np.int64), np.zeros(N_STATE, np.int64)
    )


@njit_inner
def begin(rows, rule):
    """Anti-diagonal 0: the cell (0, 0)."""
    dead, opened, _ = rule.costs
    capacity = len(rows.work) // ROWS
    rows.work[:] = dead
    state = rows.state
    state[:] = 0
    state[OFFSET] = -BESIDE
    state[FIRST_BEFORE], state[LAST_BEFORE] = NONE, -NONE
    rows.work[BESIDE] = 0
    rows.work[3 * capacity + BESIDE] = rows.work[4 * capacity + BESIDE] = -opened


@njit_vector
def _put_scores(into, source, shift, dead):
    """Scores less `shift`, but not below `dead`; two arrays that do not overlap."""
    for x in range(len(into)):
        into[x] = max(np.int32(source[x]) - np.int32(shift), np.int32(dead))


@njit_inner
def _shift(rows, rule):
    """Move the window to the beginning of its room, take scores relative to the best one, and tilt them from here on."""
    state, work, dead = rows.state, rows.work, rule.costs[0]
    capacity = len(work) // ROWS
    low = min(state[LOW], state[FIRST], state[FIRST_BEFORE] + 1)
    by = low - BESIDE - state[OFFSET]
    high = state[HIGH] - state[OFFSET]
    shift, best = state[BEST], state[BEST] - state[BEST]
    for number in range(ROWS):
        at = number * capacity
        n = high + 3 - by - BESIDE
        if n > 0:
            spare, begin = rows.spare[:n], at + BESIDE - 1
            _put_scores(spare, work[begin + by : begin + by + n], shift + state[TILT], dead)
            _put_scores(work[begin : begin + n], spare, np.int64(0), dead)
        work[at : at + BESIDE - 1] = dead
        end = max(BESIDE - 1, high + 2 - by)
        work[at + end : at + max(end, min(capacity, high + 2 - by + CHUNK + BESIDE))] = dead
    state[OFFSET] += by
    state[BASE] += shift
    state[BEST], state[TILT] = best, 0


@njit_vector
def _put_codes(into, codes, step, factor):
    """Codes, those from the last one down if step is -1, times `factor`; what is not known is KINDS - 1."""
    n = len(into)
    if step > 0:
        for x in range(n):
            into[x] = factor * np.int16(min(codes[x], UNKNOWN))
    else:
        for x in range(n):
            into[x] = factor * np.int16(min(codes[n - 1 - x], UNKNOWN))


@njit_inner
def _stage(rows, sides):
    """Codes of the bases that the next chunk may look at; unknown beyond the ends.

    Returns the position whose place is 0; it may be beyond the end.
    """
    state, low, reach = rows.state, rows.state[LOW], rows.state[HIGH] + CHUNK
    first, last = max(low, 1), min(reach, sides.q_len)
    rows.query[:] = KINDS * (KINDS - 1)
    base = sides.q_at - sides.step
    if last >= first:
        begin = base + min(first * sides.step, last * sides.step)
        n, at = last + 1 - first, first - state[OFFSET]
        _put_codes(rows.query[at : at + n], sides.query[begin : begin + n], sides.step, np.int16(KINDS))
    j_last = state[R] + CHUNK - low
    rows.target[:] = KINDS - 1
    base = sides.t_at - sides.step
    first, last = max(1, state[R] + 1 - reach), min(j_last, sides.t_len)
    if last >= first:
        begin = base + min(first * sides.step, last * sides.step)
        n, at = last + 1 - first, LANES + j_last - last
        _put_codes(rows.target[at : at + n], sides.target[begin : begin + n], -sides.step, np.int16(1))
    return j_last + LANES


@njit_inner
def _block(rows, at, r, low, high, begin, dead):
    """Cut what leads into the cells of anti-diagonal r that lie on walls.

    Returns the first piece that is not over, from `begin` on.
    """
    two, _, e, old, _ = at
    p, over = begin, True
    while p < rows.state[N_NEAR] and rows.near[p, 0] <= r:
        k, size, operation = r - rows.near[p, 0], rows.near[p, 2], rows.near[p, 3]
        odd = operation == PAIR and k & 1
        k = k >> 1 if operation == PAIR else k
        over = over and k >= size - 1
        if k < size and not odd:
            i = rows.near[p, 1] + (0 if operation == TARGET_ALONE else k)
            if low <= i <= high:
                x = i - rows.state[OFFSET]
                rows.work[two + x - 1] = rows.work[e + x] = rows.work[old + x - 1] = dead
        p += 1
        begin = p if over else begin
    return begin


@njit_inner
def _prepare(rows, sides, rule, walls):
    """Make ready for the next chunk; returns the target position at place 0, -1 if there is no room."""
    state = rows.state
    _shift(rows, rule)
    if state[HIGH] - state[OFFSET] + 2 * CHUNK + 2 * BESIDE > len(rows.work) // ROWS:
        return -1
    high = min(state[HIGH] + CHUNK, sides.q_len)
    state[N_NEAR] = walls_near(walls, sides, state[R], state[LOW], high, rows.near)
    return _stage(rows, sides) if state[N_NEAR] >= 0 else -1


@njit_inner
def _living(work, row, low, high, offset, dead):
    """The first and the last living cell of a row with cells low to high; NONE and -NONE if there is none."""
    first = first_alive(work, row, low - offset, high + 1 - offset, dead)
    if first < 0:
        return NONE, -NONE
    return first + offset, last_alive(work, row, low - offset, high + 1 - offset, dead) + offset


@njit_inner
def _find_best(rows, row, low, high, score):
    """Note the first cell, from low on, that has the best score, in a row not older than two anti-diagonals; returns NONE.

    score : tilted.
    """
    offset = rows.state[OFFSET]
    rows.state[BEST_I] = offset + first_equal(rows.work, row, low - offset, high + 1 - offset, score)
    return NONE


@njit_inner
def _close(rows, at, r, low, high, sides, dead):
    """Cut what leads into cells beyond the ends of the sequences."""
    two, _, e, old, _ = at
    offset, work = rows.state[OFFSET], rows.work
    if high == sides.q_len:
        work[two + high - offset] = work[old + high - offset] = dead
    if low == r - sides.t_len:
        work[two + low - offset - 2] = work[e + low - offset - 1] = dead


@njit_inner
def _clear(work, begin, end, dead):
    """Let places that no cell is computed for any more hold nothing, in all rows."""
    for number in range(ROWS):
        at = number * (len(work) // ROWS)
        work[at + begin : at + end] = dead


@njit_inner
def sweep_chunk(rows, sides, rule, walls, r_end, traced, trace):
    """Compute anti-diagonals up to r_end, at most CHUNK of them.

    traced : whether `trace` gets the ways into the cells, with trace.first set.
    Returns GOING, ENDED if there is no living cell, or NO_ROOM.
    """
    j_last = _prepare(rows, sides, rule, walls)
    if j_last < 0:
        return NO_ROOM
    state, work, (dead, _, slope) = rows.state, rows.work, rule.costs
    capacity, offset, blocked = len(work) // ROWS, state[OFFSET], state[N_NEAR] > 0
    first, last, first_before, last_before = state[FIRST], state[LAST], state[FIRST_BEFORE], state[LAST_BEFORE]
    low, high, best, going = state[LOW], state[HIGH], state[BEST], GOING
    r_first, piece, top, tilt = state[R] + 1, np.int64(0), np.int64(0), 0
    best_low = np.int64(NONE)  # where to look for the cell of a new best score, which is done late
    # rows of H: of r - 2, of r - 1, of r; of F: of r - 1, of r
    two, one, now = (r_first + 1) % 3 * capacity, (r_first + 2) % 3 * capacity, r_first % 3 * capacity
    e_row, f_old, f_new = 3 * capacity, (4 + (r_first + 1) % 2) * capacity, (4 + r_first % 2) * capacity
    for r in range(r_first, min(r_first + CHUNK - 1, r_end) + 1):
        if r % GROUP == 1:
            low, high = min(first, first_before + 1), max(last, last_before)
        low, high = max(low, r - sides.t_len), min(high + 1, sides.q_len)
        if low > high:
            going = ENDED
            break
        n, x, y, tilt = high - low + 1, low - offset, j_last - (r - low), tilt + slope
        at = (two, now, e_row, f_old, f_new)
        if blocked or high == sides.q_len or low == r - sides.t_len:
            if best_low != NONE and state[BEST_R] == r - 2:  # its cell may be cut off now
                best_low = _find_best(rows, two, best_low, high, best + tilt - 2 * slope)
            _close(rows, at, r, low, high, sides, dead)
            piece = _block(rows, at, r, low, high, piece, dead)
        top_before, top = top, (x + n & -LANES) + LANES
        if top < top_before:
            _clear(work, top, top_before, dead)
        least = best - rule.ydrop + tilt
        if traced:
            begin = x - 1 & -LANES
            z = trace.starts[r - trace.first[0]]
            trace.lows[r - trace.first[0]] = offset + begin
            trace.starts[r - trace.first[0] + 1] = z + (top - begin) // LANES * WAYS
            window = (x, n, y, z)
            most = row_traced(
                work, at, window, rows.query, rows.target, rule.table, least, rule.costs, trace.ways
            )  # fmt: skip
        else:
            window = (x, n, y, 0)
            most = row(work, at, window, rows.query, rows.target, rule.table, least, rule.costs)
        if r % GROUP == 0 or r % GROUP == GROUP - 1:
            first_before, last_before = first, last
            first, last = _living(work, now, low, high, offset, dead)
        state[R] = r
        state[CELLS] += n
        if most - tilt > best:
            best, state[BEST_R], best_low = most - tilt, r, low
        elif best_low != NONE and state[BEST_R] == r - 2:
            best_low = _find_best(rows, two, best_low, high, best + tilt - 2 * slope)
        two, one, now, f_old, f_new = one, now, two, f_new, f_old
    if best_low != NONE:
        behind = state[R] - state[BEST_R]
        _find_best(rows, two if behind else one, best_low, high, best + tilt - behind * slope)
    state[FIRST], state[LAST], state[FIRST_BEFORE], state[LAST_BEFORE] = first, last, first_before, last_before
    state[LOW], state[HIGH], state[BEST], state[TILT] = low, high, best, tilt
    return going
