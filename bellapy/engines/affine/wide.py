"""One alignment of any size, in a band of diagonals or in the whole table, with 32-bit scores.

Anti-diagonals are computed one after the other; their cells are numbered by i, and plain loops over them become vector code.
A byte a cell says where its score came from, and whether the gaps that leave it are opened there.  Where these bytes would
take too much memory, the state at the start of every block of anti-diagonals is kept instead, and blocks are computed again,
the last one first.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.engines.affine.rule import GLOBAL, LOWEST, PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.affine.trace import add_run
from bellapy.records.bases import UNKNOWN

U = np.uint64
N_STATES = 9  # H of three anti-diagonals, E1, E2, and F1, F2 of two
FROM_PAIR, FROM_E1, FROM_F1, FROM_E2, FROM_F2 = range(5)
E1_GOES_ON, F1_GOES_ON, E2_GOES_ON, F2_GOES_ON = 8, 16, 32, 64
SOURCE = 7


@njit_vector
def _cells(h, h2, e1, e2, f1, f2, f1_new, f2_new, query, target, shift, low, high, costs, ways, ways_at):
    """Cells low to high of one anti-diagonal; arrays of scores are indexed by i + 1.

    query[i] is the base before cell i; target[i + shift], of the reversed target, is the one before the cell's j.
    """
    match, mismatch, unknown, open1, extend1, open2, extend2 = costs
    for i in range(U(low), U(high) + U(1)):
        a, b = query[i], target[i + U(shift)]
        pair = match if a == b else mismatch
        pair = unknown if (a | b) >= np.uint8(UNKNOWN) else pair
        score, way = h2[i] + pair, np.int32(FROM_PAIR)
        x1, x2, y1, y2 = e1[i + U(1)], e2[i + U(1)], f1[i], f2[i]
        way = np.int32(FROM_E1) if x1 > score else way
        score = max(score, x1)
        way = np.int32(FROM_F1) if y1 > score else way
        score = max(score, y1)
        way = np.int32(FROM_E2) if x2 > score else way
        score = max(score, x2)
        way = np.int32(FROM_F2) if y2 > score else way
        score = max(score, y2)
        h[i + U(1)] = score
        opened1, opened2 = score - open1, score - open2
        way |= np.int32(E1_GOES_ON) if x1 > opened1 else np.int32(0)
        way |= np.int32(F1_GOES_ON) if y1 > opened1 else np.int32(0)
        way |= np.int32(E2_GOES_ON) if x2 > opened2 else np.int32(0)
        way |= np.int32(F2_GOES_ON) if y2 > opened2 else np.int32(0)
        e1[i + U(1)] = max(opened1, x1) - extend1
        f1_new[i + U(1)] = max(opened1, y1) - extend1
        e2[i + U(1)] = max(opened2, x2) - extend2
        f2_new[i + U(1)] = max(opened2, y2) - extend2
        ways[U(ways_at) + i] = np.uint8(way)


@njit_vector
def _highest(h, low, high):
    best = np.int32(LOWEST)
    for i in range(U(low), U(high) + U(1)):
        best = max(best, h[i + U(1)])
    return best


@njit_inner
def first_cell(r, t_len, highest):
    """The smallest i on an anti-diagonal, with diagonals up to `highest`."""
    return max(0, r - t_len, (r - highest + 1) >> 1)


@njit_inner
def last_cell(r, q_len, lowest):
    """The largest i, with diagonals from `lowest` on."""
    return min(q_len, r, (r - lowest) >> 1)


@njit_inner
def _begin(state, costs):
    """The state at anti-diagonal 0."""
    open1, extend1, open2, extend2 = costs[3:]
    state[:] = LOWEST
    state[0, 1] = 0
    state[3, 1] = state[5, 1] = -open1 - extend1
    state[4, 1] = state[6, 1] = -open2 - extend2


@njit_inner
def _walk(state, query, target, q_len, t_len, band, begin, end, costs, ways, rows, end_of, zdrop):
    """Anti-diagonals begin + 1 to end.

    state : (N_STATES, q_len + 3) int32: H of r, r-1, r-2 in rows r % 3; E1, E2; F1 and F2, those of r in rows 5 + r % 2 * 2.
    rows : (n,) int64, where the ways of each anti-diagonal stand, less its first i; none are kept if it is empty.
    end_of : (7,) int64, best score, its i, its r, whether dropped; best score at the query's end, its r; best score of the
    last anti-diagonal.  Looked after if zdrop is not negative.

    Returns the last anti-diagonal done.
    """
    keep = len(rows) > 0
    for r in range(begin + 1, end + 1):
        low, high = first_cell(r, t_len, band[1]), last_cell(r, q_len, band[0])
        h, h2 = state[r % 3], state[(r - 2) % 3]
        old, new = 5 + (r - 1) % 2 * 2, 5 + r % 2 * 2
        at = rows[r - begin - 1] if keep else -low
        _cells(
            h, h2, state[3], state[4], state[old], state[old + 1], state[new], state[new + 1], query, target,
            t_len - r, low, high, costs, ways, at,
        )  # fmt: skip
        for s in (r % 3, 3, 4, new, new + 1):  # what the next two anti-diagonals find beside these cells
            state[s, low] = state[s, high + 2] = LOWEST
        if zdrop < 0:
            continue
        highest = np.int64(_highest(h, low, high))
        if highest > end_of[0]:
            end_of[0], end_of[2] = highest, r
            for i in range(low, high + 1):
                if h[i + 1] == highest:
                    end_of[1] = i
                    break
        if high == q_len and h[q_len + 1] > end_of[4]:
            end_of[4], end_of[5] = h[q_len + 1], r
        if end_of[0] - max(highest, end_of[6]) > zdrop:
            end_of[3] = 1
            return r
        end_of[6] = highest
    return end


@njit_inner
def _lay_out(begin, end, q_len, t_len, band, rows):
    """Fill `rows` for a block; return the bytes that its ways take."""
    at = 0
    for r in range(begin + 1, end + 1):
        low, high = first_cell(r, t_len, band[1]), last_cell(r, q_len, band[0])
        rows[r - begin - 1] = at - low
        at += max(0, high - low + 1)
    return at


@njit_inner
def _trace_block(ways, rows, begin, i, j, gap, runs, first, n):
    """Follow the ways from cell (i, j) back until anti-diagonal `begin` or before it.

    gap : the source of the gap by which the path leaves the cell, 0 if it leaves by a pair.

    Returns i, j, the gap and the end of the runs.
    """
    while i + j > begin:
        way = ways[rows[i + j - begin - 1] + i]
        source = gap if gap > 0 and way & (4 << gap) else way & SOURCE
        gap = source
        if source == FROM_PAIR:
            n = add_run(runs, first, n, PAIR, 1)
            i, j = i - 1, j - 1
        elif source == FROM_E1 or source == FROM_E2:
            n = add_run(runs, first, n, TARGET_ALONE, 1)
            j -= 1
        else:
            n = add_run(runs, first, n, QUERY_ALONE, 1)
            i -= 1
    return i, j, gap, n


@njit_inner
def _block_steps(steps, q_len, t_len, band, room):
    """Anti-diagonals of a block: all if their ways fit `room` bytes, else so many that ways take as much as saved states."""
    width = min(q_len, t_len, (band[1] - band[0]) // 2 + 1) + 1
    if steps * width <= room:
        return max(steps, 1)
    balanced = int(np.sqrt(float(steps) * N_STATES * 4 * (q_len + 3) / width))
    return min(steps, max(room // width, balanced, 1))


@njit
def _copy(codes, at, step, n):
    """(n + 1,) uint8, bases in the order of the alignment from index 1 on."""
    found = np.zeros(n + 1, np.uint8)
    for b in range(n):
        found[b + 1] = codes[at + b * step]
    return found


@njit
def _forward(state, saved, query, target, q_len, t_len, band, block, costs, ways, rows, end_of, zdrop):
    """All blocks, keeping the state before each, and the ways if there is only one."""
    steps, done = q_len + t_len, 0
    none = np.empty(0, np.int64)
    for b in range(len(saved)):
        saved[b] = state
        begin, end = b * block, min(steps, (b + 1) * block)
        if len(saved) == 1:
            _lay_out(begin, end, q_len, t_len, band, rows)
            done = _walk(state, query, target, q_len, t_len, band, begin, end, costs, ways, rows, end_of, zdrop)
        else:
            done = _walk(state, query, target, q_len, t_len, band, begin, end, costs, ways, none, end_of, zdrop)
        if done < end:
            break
    return done


@njit
def _backward(state, saved, query, target, q_len, t_len, band, block, costs, ways, rows, i, j, runs, n):
    """The path to (i, j), from its end, block by block; returns the end of its runs."""
    first, gap, r = n, 0, i + j
    for b in range(len(saved) - 1, -1, -1):
        begin = b * block
        if i + j <= begin:
            continue
        if len(saved) > 1:
            end = min(r, begin + block)
            state[:] = saved[b]
            _lay_out(begin, end, q_len, t_len, band, rows)
            _walk(state, query, target, q_len, t_len, band, begin, end, costs, ways, rows, np.empty(0, np.int64), -1)
        i, j, gap, n = _trace_block(ways, rows, begin, i, j, gap, runs, first, n)
    return n


@njit
def align_wide(query_codes, q_at, q_len, target_codes, t_at, t_len, step, mode, band, scoring, zdrop, bonus, room, runs, n):
    """Align one pair within diagonals band[0] to band[1] (of j - i; both corners of a global alignment lie inside).

    step : 1, or -1 for sequences that are read backwards from q_at and t_at.
    bonus : an extension prefers to use up the query if that costs no more than this.
    room : bytes for the ways of a block.
    runs : uint32; the path is written from n on, from its end.

    Returns score, query and target bases used, whether zdrop ended it, and the end of the runs.
    """
    costs = (
        np.int32(scoring.match), np.int32(scoring.mismatch), np.int32(scoring.unknown), np.int32(scoring.open1),
        np.int32(scoring.extend1), np.int32(scoring.open2), np.int32(scoring.extend2),
    )  # fmt: skip
    query, target = _copy(query_codes, q_at, step, q_len), _copy(target_codes, t_at, step, t_len)
    target = target[::-1].copy()
    steps = q_len + t_len
    block = _block_steps(steps, q_len, t_len, band, room)
    rows = np.empty(block, np.int64)
    n_ways = 0
    for begin in range(0, steps, block):
        n_ways = max(n_ways, _lay_out(begin, min(steps, begin + block), q_len, t_len, band, rows))
    ways = np.empty(n_ways + 1, np.uint8)
    state = np.empty((N_STATES, q_len + 3), np.int32)
    saved = np.empty((max(1, -(-steps // block)), N_STATES, q_len + 3), np.int32)
    end_of = np.array([0, 0, 0, 0, LOWEST, 0, 0])
    _begin(state, costs)
    _forward(
        state, saved, query, target, q_len, t_len, band, block, costs, ways, rows, end_of, zdrop if mode != GLOBAL else -1
    )
    if mode != GLOBAL:
        score, i, j = end_of[0], end_of[1], end_of[2] - end_of[1]
        if end_of[4] + bonus >= score and (end_of[4] > LOWEST // 2) and bonus > 0:
            score, i, j = end_of[4], q_len, end_of[5] - q_len
    else:
        score, i, j = np.int64(state[steps % 3, q_len + 1]), q_len, t_len
    n = _backward(state, saved, query, target, q_len, t_len, band, block, costs, ways, rows, i, j, runs, n)
    return score, i, j, end_of[3] > 0, n
