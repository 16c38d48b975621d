"""Blocks of an extension: rows at their beginnings, ways into their cells, and parts of the path that are known already.

A path is followed back through the ways into the cells.  Those of two blocks are held at a time.  When a block is done, the
path from the best cell so far is followed back through it, and on through the block before.  There it has joined the final
path, nearly always.  So that part is noted, with the cell and the open gap where it enters the block.  The final path takes
it over if it enters at the same cell with the same gap: what lies before does not depend on what comes behind.  Otherwise
the block is computed again from its kept rows.

Source: R. Sramek, B. Brejova, T. Vinar: On-line Viterbi algorithm for analysis of long biological sequences, WABI 2007 (that
paths join); here a path that did not join costs time, nothing else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner
from bellapy.engines.ydrop import sweep
from bellapy.engines.ydrop.row import E_EXTENDS, F_EXTENDS, FROM_F, FROM_GAP, LANES, WAYS
from bellapy.engines.ydrop.rule import CHUNK, PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.ydrop.sweep import N_STATE, ROWS, R, Trace, sweep_chunk

BLOCK = 8 * CHUNK
SLOTS, SLOT = 2, BLOCK + 2
"""Blocks whose ways are held; entries of `starts` and `lows` for each."""
RUNS = 512  # of a path in a block, on average, that there is room for
ENTERS, LEAVES, BEGIN, END = 0, 3, 6, 7


class Blocks(NamedTuple):
    """Of one extension at a time; n blocks at most.

    states : (n, N_STATE) int64, at the beginning of a block.  cells : (room,) of the cells' type, ROWS rows for each,
        from starts on, (n + 1,) int64.
    trace : the ways of SLOTS blocks.  held : (SLOTS,) int64, which blocks these are, -1 for none.
    parts : (n, 8) int64, where the path enters a block and where it leaves it, going back: anti-diagonal, query place and
        open gap of each, the first of them -1 if that is not known; then the first of its runs, and the one after the last.
    runs : (room, 2) int64, operation and length.  used : (1,) int64, runs there are.
    place : (3,) int64, where a path is followed: anti-diagonal, query place, open gap, PAIR for none.
    """

    states: np.ndarray
    cells: np.ndarray
    starts: np.ndarray
    trace: Trace
    held: np.ndarray
    parts: np.ndarray
    runs: np.ndarray
    used: np.ndarray
    place: np.ndarray


def make_blocks(n: int, capacity: int, kind: type) -> Blocks:
    """Room for n blocks with windows of `capacity` cells."""
    ways = np.empty(SLOTS * BLOCK * (capacity // LANES + 2) * WAYS, np.uint32)
    trace = Trace(ways, np.zeros(SLOTS * SLOT, np.int64), np.zeros(SLOTS * SLOT, np.int64), np.zeros(1, np.int64))
    return Blocks(
        np.zeros((n, N_STATE), np.int64), np.empty(n * ROWS * capacity, kind), np.zeros(n + 1, np.int64), trace,
        np.zeros(SLOTS, np.int64), np.zeros((n, 8), np.int64), np.empty((n * RUNS, 2), np.int64), np.zeros(1, np.int64),
        np.zeros(3, np.int64),
    )  # fmt: skip


@njit_inner
def clear(blocks):
    """For a new extension."""
    blocks.held[:] = -1
    blocks.used[0] = 0


@njit_inner
def keep(rows, blocks, n):
    """Keep the rows at the beginning of block n; False if there is no room."""
    if n == len(blocks.states):
        return False
    state, capacity = rows.state, len(rows.work) // ROWS
    size = state[sweep.HIGH] - state[sweep.OFFSET] + 2
    at = blocks.starts[n]
    if at + ROWS * size > len(blocks.cells):
        return False
    for s in range(N_STATE):
        blocks.states[n, s] = state[s]
    for number in range(ROWS):
        for x in range(size):
            blocks.cells[at + number * size + x] = rows.work[number * capacity + x]
    blocks.starts[n + 1] = at + ROWS * size
    blocks.parts[n, ENTERS] = -1
    return True


@njit_inner
def _restore(rows, rule, blocks, n):
    state, capacity = rows.state, len(rows.work) // ROWS
    for s in range(N_STATE):
        state[s] = blocks.states[n, s]
    at = blocks.starts[n]
    size = (blocks.starts[n + 1] - at) // ROWS
    rows.work[:] = rule.costs[0]
    for number in range(ROWS):
        for x in range(size):
            rows.work[number * capacity + x] = blocks.cells[at + number * size + x]


@njit_inner
def point(blocks, n):
    """Let the trace write and read the ways of block n, where they are held or will be."""
    trace, slot = blocks.trace, n % SLOTS
    trace.first[0] = blocks.states[n, R] + 1 - slot * SLOT
    trace.starts[slot * SLOT] = slot * (len(trace.ways) // SLOTS)
    blocks.held[slot] = n


@njit_inner
def _add_run(runs, n, operation, size):
    """More columns, from the end of the path."""
    if n and runs[n - 1, 0] == operation:
        runs[n - 1, 1] += size
        return n
    runs[n, 0], runs[n, 1] = operation, size
    return n + 1


@njit_inner
def _go_back(blocks, block, runs, n):
    """Follow the ways of a block that is held from the place in `blocks` back to its beginning; runs there are then."""
    point(blocks, block)
    trace, place, first = blocks.trace, blocks.place, blocks.states[block, R] + 1
    r, i, gap = place[0], place[1], place[2]
    while r >= first:
        at = r - trace.first[0]
        cell = i - trace.lows[at]
        ways, bit = trace.starts[at] + cell // LANES * WAYS, np.uint32(1) << np.uint32(cell % LANES)
        if gap != PAIR and not trace.ways[ways + (E_EXTENDS if gap == TARGET_ALONE else F_EXTENDS)] & bit:
            gap = PAIR
        if gap == PAIR and trace.ways[ways + FROM_GAP] & bit:
            gap = QUERY_ALONE if trace.ways[ways + FROM_F] & bit else TARGET_ALONE
        n = _add_run(runs, n, gap, np.int64(1))
        r -= 2 if gap == PAIR else 1
        i -= 0 if gap == TARGET_ALONE else 1
    place[0], place[1], place[2] = r, i, gap
    return n


@njit_inner
def note_part(blocks, block, best):
    """Note the path through the block before `block`, both held; best : (r, i) of a cell in `block`."""
    begin = blocks.used[0]
    runs = blocks.runs[begin:]
    if block == 0 or blocks.held[(block - 1) % SLOTS] != block - 1 or len(runs) < 2 * BLOCK:
        return
    part, place, zero = blocks.parts[block - 1], blocks.place, np.int64(0)
    place[0], place[1], place[2] = best[0], best[1], PAIR
    _go_back(blocks, block, runs, zero)
    for x in range(3):
        part[ENTERS + x] = place[x]
    n = _go_back(blocks, block - 1, runs, zero)
    for x in range(3):
        part[LEAVES + x] = place[x]
    part[BEGIN], part[END] = begin, begin + n
    blocks.used[0] = begin + n


@njit_inner
def follow(rows, sides, rule, walls, blocks, end, runs):
    """Runs of the path back from the end, their number, and cells; end : its r and i, and the number of blocks."""
    place, n, cells = blocks.place, np.int64(0), 0
    place[0], place[1], place[2] = end[0], end[1], PAIR
    state = rows.state
    for block in range(end[2] - 1, -1, -1):
        if blocks.states[block, R] >= place[0]:
            continue
        part = blocks.parts[block]
        if part[ENTERS] == place[0] and part[ENTERS + 1] == place[1] and part[ENTERS + 2] == place[2]:
            for x in range(part[BEGIN], part[END]):
                n = _add_run(runs, n, blocks.runs[x, 0], blocks.runs[x, 1])
            for x in range(3):
                place[x] = part[LEAVES + x]
            continue
        if blocks.held[block % SLOTS] != block:
            _restore(rows, rule, blocks, block)
            before = state[sweep.CELLS]
            point(blocks, block)
            while state[R] < place[0]:
                sweep_chunk(rows, sides, rule, walls, place[0], np.bool_(True), blocks.trace)
            cells += state[sweep.CELLS] - before
        n = _go_back(blocks, block, runs, n)
    return n, cells
