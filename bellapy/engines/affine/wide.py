"""One alignment of any size, in a band of diagonals or in the whole table, with 32-bit scores.

Anti-diagonals are computed one after the other; their cells are numbered by i, and plain loops over them become vector code.
A byte a cell says which gaps explain its score, and whether the gaps that leave it are opened there: the path is that of
trace.py.  Where these bytes would take too much memory, the state at the start of every block of anti-diagonals is kept
instead, and blocks are computed again, the last one first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.engines.affine.rule import GLOBAL, LOWEST, PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.affine.trace import add_run
from bellapy.records.bases import UNKNOWN

U = np.uint64
N_STATES = 9  # H of three anti-diagonals, E1, E2, and F1, F2 of two
FROM_E1, FROM_F1, FROM_E2, FROM_F2 = 1, 2, 4, 8
E1_GOES_ON, F1_GOES_ON, E2_GOES_ON, F2_GOES_ON = 16, 32, 64, 128
GAPS = 15
"""Bits of a way.  None of GAPS: a pair explains the score."""


class Costs(NamedTuple):
    """AffineScoring in int32."""

    match: int
    mismatch: int
    unknown: int
    open1: int
    extend1: int
    open2: int
    extend2: int


class Table(NamedTuple):
    """What is to be computed.

    query : (q_len + 1,) uint8, bases in the order of the alignment from index 1 on.  target : (t_len + 1,) uint8, the same
    reversed.  lowest, highest : diagonals j - i of the band.  costs : Costs.
    """

    query: np.ndarray
    target: np.ndarray
    q_len: int
    t_len: int
    lowest: int
    highest: int
    costs: Costs


class Memory(NamedTuple):
    """Working memory of one alignment.

    state : (N_STATES, q_len + 3) int32: H of r, r-1, r-2 in rows r % 3; E1, E2; F1 and F2, those of r in rows 5 + r % 2 * 2.
    saved : (n_blocks, N_STATES, q_len + 3) int32, the state before each block.  block : anti-diagonals of a block.
    ways : uint8, of one block.  rows : (block,) int64, where the ways of each anti-diagonal stand, less its first i.
    end_of : (7,) int64, best score, its i, its r, whether dropped; best score at the query's end, its r; best score of the
    last anti-diagonal.
    """

    state: np.ndarray
    saved: np.ndarray
    block: int
    ways: np.ndarray
    rows: np.ndarray
    end_of: np.ndarray


class Front(NamedTuple):
    """Scores of an anti-diagonal, int32 arrays indexed by i + 1: rows of Memory.state.

    h, f1_new, f2_new : written.  h2 : H two anti-diagonals before.  e1, e2 : read, then written.  f1, f2 : read.
    """

    h: np.ndarray
    h2: np.ndarray
    e1: np.ndarray
    e2: np.ndarray
    f1: np.ndarray
    f2: np.ndarray
    f1_new: np.ndarray
    f2_new: np.ndarray


@njit_vector
def _cells(front, query, target, shift, low, high, costs, ways, ways_at):
    """Cells low to high of one anti-diagonal.

    front : Front.  query[i], uint8, is the base before cell i; target[i + shift], of the reversed target, the one before
    the cell's j.  costs : Costs.  ways : uint8; ways[ways_at + i] gets that of cell i.
    """
    h, h2, e1, e2, f1, f2, f1_new, f2_new = front
    match, mismatch, unknown, open1, extend1, open2, extend2 = costs
    for i in range(U(low), U(high) + U(1)):
        a, b = query[i], target[i + U(shift)]
        pair = match if a == b else mismatch
        pair = unknown if (a | b) >= np.uint8(UNKNOWN) else pair
        paired = h2[i] + pair
        x1, x2, y1, y2 = e1[i + U(1)], e2[i + U(1)], f1[i], f2[i]
        score = max(max(paired, max(x1, y1)), max(x2, y2))
        way = np.int32(FROM_E1) if x1 == score else np.int32(0)
        way |= np.int32(FROM_F1) if y1 == score else np.int32(0)
        way |= np.int32(FROM_E2) if x2 == score else np.int32(0)
        way |= np.int32(FROM_F2) if y2 == score else np.int32(0)
        way = np.int32(0) if paired == score else way
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
    """The best of the cells low to high of h, int32, indexed by i + 1."""
    best = np.int32(LOWEST)
    for i in range(U(low), U(high) + U(1)):
        best = max(best, h[i + U(1)])
    return best


@njit_inner
def first_cell(r, t_len, highest):
    """The smallest i on anti-diagonal r, with t_len target bases and diagonals up to `highest`."""
    return max(0, r - t_len, (r - highest + 1) >> 1)


@njit_inner
def last_cell(r, q_len, lowest):
    """The largest i on anti-diagonal r, with q_len query bases and diagonals from `lowest` on."""
    return min(q_len, r, (r - lowest) >> 1)


@njit_inner
def _begin(state, costs):
    """Make state, that of Memory, the one at anti-diagonal 0.  costs : Costs."""
    state[:] = LOWEST
    state[0, 1] = 0
    state[3, 1] = state[5, 1] = -costs.open1 - costs.extend1
    state[4, 1] = state[6, 1] = -costs.open2 - costs.extend2


@njit_inner
def _watch_end(end_of, h, r, low, high, q_len):
    """Note the best cells of anti-diagonal r; return its best score.

    end_of : of Memory.  h : (q_len + 3,) int32, H of cells low to high, indexed by i + 1.
    """
    highest = np.int64(_highest(h, low, high))
    if highest > end_of[0]:
        end_of[0], end_of[2] = highest, r
        for i in range(low, high + 1):
            if h[i + 1] == highest:
                end_of[1] = i
                break
    if high == q_len and h[q_len + 1] > end_of[4]:
        end_of[4], end_of[5] = h[q_len + 1], r
    return highest


@njit_inner
def _advance(table, memory, r, low, high, ways_at):
    """Cells low to high of anti-diagonal r, where low is high + 1 at most.

    table : Table.  memory : Memory; state is advanced.  ways_at : memory.ways[ways_at + i] gets the way of cell i.
    """
    state = memory.state
    old, new = 5 + (r - 1) % 2 * 2, 5 + r % 2 * 2
    front = Front(
        state[r % 3], state[(r - 2) % 3], state[3], state[4], state[old], state[old + 1], state[new], state[new + 1]
    )  # fmt: skip
    _cells(front, table.query, table.target, table.t_len - r, low, high, table.costs, memory.ways, ways_at)
    for s in (r % 3, 3, 4, new, new + 1):  # what the next two anti-diagonals find beside these cells
        state[s, low] = state[s, high + 2] = LOWEST


@njit_inner
def _walk(table, memory, begin, end, keep, zdrop):
    """Anti-diagonals begin + 1 to end; returns the last one done.

    table : Table.  memory : Memory; state is advanced.  keep : whether ways are kept, where `rows` says.
    zdrop : ends the walk; where it is not negative, `end_of` is looked after.
    """
    end_of, q_len, t_len = memory.end_of, table.q_len, table.t_len
    for r in range(begin + 1, end + 1):
        low, high = first_cell(r, t_len, table.highest), last_cell(r, q_len, table.lowest)
        if low <= high + 1:  # else the band of an extension has left the table
            _advance(table, memory, r, low, high, memory.rows[r - begin - 1] if keep else -low)
        if zdrop < 0:
            continue
        highest = _watch_end(end_of, memory.state[r % 3], r, low, high, q_len)
        if end_of[0] - max(highest, end_of[6]) > zdrop:
            end_of[3] = 1
            return r
        end_of[6] = highest
    return end


@njit_inner
def _lay_out(table, begin, end, rows):
    """Fill rows, those of Memory, for anti-diagonals begin + 1 to end of table (Table); return the bytes of their ways."""
    at = 0
    for r in range(begin + 1, end + 1):
        low, high = first_cell(r, table.t_len, table.highest), last_cell(r, table.q_len, table.lowest)
        rows[r - begin - 1] = at - low
        at += max(0, high - low + 1)
    return at


@njit_inner
def _opened(way, open_gaps, one, two):
    """Whether a gap that leaves a cell is opened there.

    way : of the cell.  open_gaps : those that are followed, of GAPS.  one, two : the bits of GAPS of its two pieces.
    """
    return (open_gaps & one > 0 and way & (one << 4) == 0) or (open_gaps & two > 0 and way & (two << 4) == 0)


@njit_inner
def _trace_block(memory, begin, i, j, gaps, size, runs, first, n):
    """Follow the ways from cell (i, j) back until anti-diagonal `begin` or before it.

    memory : Memory, whose ways are those from `begin` on.
    gaps, size : which gaps may lead to the cell, of GAPS, and how long they are at least; 0, 0: a pair leads there, perhaps.
    runs : uint32; the path stands in runs[first : n] and goes on there.

    Returns i, j, gaps, size and the end of the runs.
    """
    ways, rows = memory.ways, memory.rows
    while i + j - size > begin:
        at = rows[i + j - size - begin - 1]
        if size == 0:
            gaps = ways[at + i] & GAPS
            if gaps == 0:
                n = add_run(runs, first, n, PAIR, 1)
                i, j = i - 1, j - 1
            else:
                size = 1
        elif gaps & (FROM_E1 | FROM_E2) and _opened(ways[at + i], gaps, FROM_E1, FROM_E2):
            n = add_run(runs, first, n, TARGET_ALONE, size)
            j, gaps, size = j - size, 0, 0
        elif gaps & (FROM_F1 | FROM_F2) and _opened(ways[at + i - size], gaps, FROM_F1, FROM_F2):
            n = add_run(runs, first, n, QUERY_ALONE, size)
            i, gaps, size = i - size, 0, 0
        else:
            size += 1
    if begin == 0 and size > 0:  # from the first cell
        n = add_run(runs, first, n, TARGET_ALONE if i == 0 else QUERY_ALONE, size)
        i = j = 0
    return i, j, gaps, size, n


@njit_inner
def _block_steps(table, room):
    """Anti-diagonals of a block: all if their ways fit `room` bytes, else so many that ways take as much as saved states.

    table : Table.
    """
    steps = table.q_len + table.t_len
    width = min(table.q_len, table.t_len, (table.highest - table.lowest) // 2 + 1) + 1
    if steps * width <= room:
        return max(steps, 1)
    balanced = int(np.sqrt(float(steps) * N_STATES * 4 * (table.q_len + 3) / width))
    return min(steps, max(room // width, balanced, 1))


@njit
def _copy(codes, at, step, n):
    """(n + 1,) uint8, bases codes[at], codes[at + step] and so on (uint8) from index 1 on."""
    found = np.zeros(n + 1, np.uint8)
    for b in range(n):
        found[b + 1] = codes[at + b * step]
    return found


@njit
def _make_table(piece, band, scoring):
    """The Table of piece (Piece).  band : its lowest and its highest diagonal.  scoring : AffineScoring."""
    costs = Costs(
        np.int32(scoring.match), np.int32(scoring.mismatch), np.int32(scoring.unknown), np.int32(scoring.open1),
        np.int32(scoring.extend1), np.int32(scoring.open2), np.int32(scoring.extend2),
    )  # fmt: skip
    query = _copy(piece.query, piece.q_at, piece.step, piece.q_len)
    target = _copy(piece.target, piece.t_at, piece.step, piece.t_len)[::-1].copy()
    return Table(query, target, piece.q_len, piece.t_len, band[0], band[1], costs)


@njit
def _make_memory(table, room):
    """Memory for table (Table), with at most about `room` bytes for the ways of a block."""
    steps = table.q_len + table.t_len
    block = _block_steps(table, room)
    rows = np.empty(block, np.int64)
    n_ways = 0
    for begin in range(0, steps, block):
        n_ways = max(n_ways, _lay_out(table, begin, min(steps, begin + block), rows))
    state = np.empty((N_STATES, table.q_len + 3), np.int32)
    saved = np.empty((max(1, -(-steps // block)), N_STATES, table.q_len + 3), np.int32)
    end_of = np.array([0, 0, 0, 0, LOWEST, 0, 0])
    return Memory(state, saved, block, np.empty(n_ways + 1, np.uint8), rows, end_of)


@njit_inner
def _copy_state(one, other):
    """Make `other` like `one`, (N_STATES, any) int32."""
    for s in range(one.shape[0]):
        for x in range(one.shape[1]):
            other[s, x] = one[s, x]


@njit
def _forward(table, memory, zdrop):
    """All blocks of table (Table), keeping in memory (Memory) the state before each, and the ways if there is only one.

    zdrop : as in `_walk`.
    """
    steps, block, alone = table.q_len + table.t_len, memory.block, len(memory.saved) == 1
    for b in range(len(memory.saved)):
        _copy_state(memory.state, memory.saved[b])
        begin, end = b * block, min(steps, (b + 1) * block)
        if alone:
            _lay_out(table, begin, end, memory.rows)
        if _walk(table, memory, begin, end, alone, zdrop) < end:
            break


@njit
def _backward(table, memory, i, j, runs, n):
    """The path to (i, j), from its end, block by block, written to runs (uint32) from n on; returns the end of its runs.

    table : Table.  memory : Memory, after `_forward`.
    """
    first, gaps, size, r = n, 0, 0, i + j
    for b in range(len(memory.saved) - 1, -1, -1):
        begin = b * memory.block
        if i + j - size <= begin and begin > 0:
            continue
        if len(memory.saved) > 1:
            end = min(r, begin + memory.block)
            _copy_state(memory.saved[b], memory.state)
            _lay_out(table, begin, end, memory.rows)
            _walk(table, memory, begin, end, True, -1)
        i, j, gaps, size, n = _trace_block(memory, begin, i, j, gaps, size, runs, first, n)
    return n


@njit
def align_wide(piece, band, scoring, zdrop, bonus, room, runs, n):
    """Align one piece (Piece) within diagonals band[0] to band[1] (of j - i; both corners of a global alignment lie inside).

    scoring : AffineScoring.  zdrop : see rule.py.
    bonus : an extension prefers to use up the query if that costs no more than this.
    room : bytes for the ways of a block.
    runs : uint32; the path is written from n on, from its end.

    Returns score, query and target bases used, whether zdrop ended it, and the end of the runs.
    """
    table = _make_table(piece, band, scoring)
    memory = _make_memory(table, room)
    _begin(memory.state, table.costs)
    _forward(table, memory, zdrop if piece.mode != GLOBAL else -1)
    end_of, q_len, t_len = memory.end_of, piece.q_len, piece.t_len
    if piece.mode != GLOBAL:
        score, i, j = end_of[0], end_of[1], end_of[2] - end_of[1]
        if end_of[4] + bonus >= score and (end_of[4] > LOWEST // 2) and bonus > 0:
            score, i, j = end_of[4], q_len, end_of[5] - q_len
    else:
        score, i, j = np.int64(memory.state[(q_len + t_len) % 3, q_len + 1]), q_len, t_len
    n = _backward(table, memory, i, j, runs, n)
    return score, i, j, end_of[3] > 0, n
