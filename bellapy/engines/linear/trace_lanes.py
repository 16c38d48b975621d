"""Paths of many flanks side by side in vector lanes: the executor.

The score-only extension (extend_cpu.py) has found where each flank's alignment ends.  Here its live cells are computed once
more, in the same windows and by the same steps (lanes.py), up to that end cell, and two bits are kept of every cell:

- whether the pair of bases before it, on its diagonal, is a best predecessor;
- if not: whether the cell one query base before it is, else the one a target base before.

So ties have one rule: a pair, then a query base alone (I), then a target base alone (D), as seen from the end cell.  A live
cell's best predecessor is live, whence the path's score is that of the extension.

Flanks of like length run in groups, as many as there are lanes, all from anti-diagonal 0: every lane is at the same anti-
diagonal.  Bits of OCTET steps along a diagonal share a byte, [octet][parity of the anti-diagonal][which bit][cell], so that
going back costs as much as there are gaps, not bases, and all lanes go back through the same memory at the same time.

Memory is bounded for any length: a group runs in blocks of chunks, keeps the state at the beginning of each, and goes back
block by block, computing each but the last a second time.  Blocks grow with the square root of the length once that is
beyond BLOCK_BYTES.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner, njit_vector
from bellapy.engines.flank_paths import PAIR, QUERY_ALONE, TARGET_ALONE, block_chunks
from bellapy.engines.linear.lanes import (
    FLANK,
    HIGH,
    LOW,
    N_NOW,
    QUERY_AT,
    QUERY_OFFSET,
    TARGET_AT,
    TARGET_OFFSET,
    TILE,
    U_TILE,
    CellType,
    Class,
    U,
    agree,
    aligned,
    begin_step,
    copy_cells,
    fetch,
    find_edges,
    join_phases,
    live_tiles,
    load_bases,
    move,
    place,
    put_borders,
    scores_of,
    survey,
    watch_ends,
)
from bellapy.engines.linear.rule import flank_at
from bellapy.params import Scoring

OCTET = 8  # steps, two anti-diagonals each
PAIRED, INSERTED = range(2)
TRAILING_ONES = np.array([(~i & (i + 1)).bit_length() - 1 for i in range(256)], np.int64)


class State(NamedTuple):
    """A group of lanes between two chunks: `even`, `odd` and `now` of lanes.py."""

    even: np.ndarray
    odd: np.ndarray
    now: np.ndarray


class Work(NamedTuple):
    """Room for one chunk: bases of query and target, now and next; best scores and the like; bases as they come; borders."""

    bases: np.ndarray
    lines: np.ndarray
    words: np.ndarray
    edges: np.ndarray


class Bits(NamedTuple):
    """What is kept of a block's cells.

    planes : (octets, 2, 2, n_cells) uint8, see above; the first step of an octet in the highest bit.
    columns : (octets, TILE) int64, column of row 0 at the beginning of each octet.
    """

    planes: np.ndarray
    columns: np.ndarray


@njit_vector
def _step(
    new, new_at, old, old_at, query, query_at, target, target_at, tiles, lanes, best, was, drop, pairs, inserts, scores
):
    """One anti-diagonal of all lanes, as in lanes.py; a bit is appended to `pairs` and `inserts` of every cell."""
    equal, unequal, drift, xdrop, dead = scores
    cell = new.dtype.type
    begin_step(best, was, drop, drift, xdrop)
    for tile in range(U(tiles[0]), U(tiles[1])):
        at = tile * U_TILE
        n, o, q, r = U(new_at) + at, U(old_at) + at, U(query_at) + at, U(target_at) + at
        for e in range(U_TILE):
            after_query, after_target = old[o + e], old[o + U(lanes) + e]
            gapped = max(after_query, after_target)
            paired = cell(new[n + e] + (equal if query[q + e] == target[r + e] else unequal))
            value = max(gapped, paired)
            best[e] = max(best[e], value)
            new[n + e] = value if value >= drop[e] else dead
            pairs[at + e] = np.uint8(pairs[at + e] + pairs[at + e] + (paired >= gapped))
            inserts[at + e] = np.uint8(inserts[at + e] + inserts[at + e] + (after_query >= after_target))


@njit_inner
def _advance(codes, flanks, size, scoring, longest, cell_scores, state, work, bits, chunk, slot, last_diagonal, failed):
    """Compute a chunk of all lanes; its bits go to place `slot` of the block."""
    lanes, height, _, half = size
    even, odd, now = state
    turn = chunk & 1
    query, next_query, target, next_target = (
        work.bases[turn],
        work.bases[1 - turn],
        work.bases[2 + turn],
        work.bases[3 - turn],
    )
    best, was, update, drop, row, ends, shift, first, last = (
        work.lines[0], work.lines[1], work.lines[2], work.lines[3], work.lines[4], work.lines[5], work.lines[6],
        work.lines[7], work.lines[8],
    )  # fmt: skip
    twice = work.lines[9:12].reshape(3 * TILE)
    dead, top = cell_scores[4], cell_scores[5]
    scores = cell_scores[0], cell_scores[1], cell_scores[2], cell_scores[3], dead
    n_cells, apart = height * lanes, 0 if longest else 1
    place(codes, flanks, len(flanks), size, now, (even, odd, query, target), best, apart, cell_scores)
    n_edges = find_edges(flanks, size, now, scoring.xdrop // -scoring.gap, False, work.edges)
    fetch(codes, size, now, apart, work.words, query, target)
    tiles = live_tiles(size, now)
    best[:] = top
    update[:] = -1
    ends[:] = dead
    for p in range(half):
        octet = (slot * half + p) // OCTET
        if p % OCTET == 0:
            for l in range(lanes):
                bits.columns[octet, l] = now[QUERY_OFFSET, l] + p
        odds, evens = bits.planes[octet, 0], bits.planes[octet, 1]
        q, t = p * lanes, (half - p) * lanes
        _step(
            odd, TILE, even, 0, query, q, target, t, tiles, lanes, best, was, drop, odds[PAIRED], odds[INSERTED], scores,
        )  # fmt: skip
        agree(best, was, update, twice, lanes, 0)
        put_borders(odd, TILE, lanes, height, work.edges, n_edges, False, p, 0, drop, dead)
        _step(
            even, 0, odd, TILE - lanes, query, q, target, t - lanes, tiles, lanes, best, was, drop, evens[PAIRED],
            evens[INSERTED], scores,
        )  # fmt: skip
        agree(best, was, update, twice, lanes, 0)
        put_borders(even, 0, lanes, height, work.edges, n_edges, False, p, 1, drop, dead)
        watch_ends(even, odd, TILE + n_cells - lanes, lanes, ends)
    survey(even, odd, TILE, tiles, n_cells // TILE, top, dead, best, shift, first, last)
    copy_cells(next_query, 0, query, half * lanes, n_cells)
    copy_cells(next_target, half * lanes, target, 0, n_cells)
    join_phases(update, row, first, last, size, now)
    _retire(last_diagonal, 2 * half * (chunk + 1), size, ends, dead, state, failed)


@njit_inner
def _retire(last_diagonal, k, size, ends, dead, state, failed):
    """Stop lanes that have passed their end cell before anti-diagonal k, or may have had live cells outside their window."""
    lanes, height, margin, half = size
    now = state.now
    for l in range(lanes):
        if now[FLANK, l] < 0:
            continue
        done = last_diagonal[l] <= k
        if ends[l] > dead or not done and now[HIGH, l] - now[LOW, l] > height - margin:
            failed[l] = 1
        elif not done:
            now[QUERY_AT, l] += half
            now[TARGET_AT, l] += half
            now[QUERY_OFFSET, l] += half
            now[TARGET_OFFSET, l] += half
            continue
        now[FLANK, l] = -1
        move(state.even, 0, lanes, height, l, height, dead)
        move(state.odd, TILE, lanes, height, l, height, dead)


@njit_inner
def _go_back(bits, octet, l, lanes, first_k, pending, ops, at):
    """Follow one lane back through one octet, whose first anti-diagonal is first_k + 1.

    pending : (3,) int64, overwritten: anti-diagonal and column of its cell, and the unfinished run of operations.
    ops, at : where finished runs go.

    Returns
    -------
    Where the next run goes.
    """
    planes, origin = bits.planes[octet], bits.columns[octet, l] + 1
    t, column, run = pending[0] - first_k - 1, pending[1], pending[2]
    while t >= 0:
        p = t >> 1
        cell = (column - origin - p) * lanes + l
        paired = TRAILING_ONES[planes[t & 1, PAIRED, cell] >> (OCTET - 1 - p)]
        if paired > 0:
            if run & 15 != PAIR:
                ops[at] = run
                at += 1
                run = 0
            run += paired << 4
            column -= paired
            t -= 2 * paired
            if t < 0:
                break
        p = t >> 1
        inserted = planes[t & 1, INSERTED, cell] >> (OCTET - 1 - p) & 1
        op = QUERY_ALONE if inserted else TARGET_ALONE
        if run & 15 != op:
            if run > 0:
                ops[at] = run
                at += 1
            run = op
        run += 16
        column -= inserted
        t -= 1
    pending[0], pending[1], pending[2] = first_k + 1 + t, column, run
    return at


@njit_inner
def _copy_state(to, source):
    copy_cells(to.even, 0, source.even, 0, len(source.even))
    copy_cells(to.odd, 0, source.odd, 0, len(source.odd))
    for row in range(len(source.now)):
        copy_cells(to.now[row], 0, source.now[row], 0, TILE)


@njit_inner
def _saved(states, i):
    return State(states.even[i], states.odd[i], states.now[i])


@njit_inner
def _begin(codes, flanks, size, longest, cell_scores, state, work):
    """Put all lanes at the start of their flanks."""
    even, odd, now = state
    even[:] = odd[:] = cell_scores[4]
    now[:] = 0
    now[FLANK] = -1
    stacks = even, odd, work.bases[0], work.bases[2]
    place(codes, flanks, 0, size, now, stacks, work.lines[0], 0 if longest else 1, cell_scores)


@njit_inner
def _return_to(codes, flanks, size, longest, state, saved, work, chunk):
    """Take up the state at the beginning of a chunk."""
    _copy_state(state, saved)
    turn, now, apart = chunk & 1, state.now, 0 if longest else 1
    for l in range(size[0]):
        if now[FLANK, l] >= 0:
            flank = flank_at(flanks, now[FLANK, l])
            at = now[QUERY_AT, l], now[TARGET_AT, l]
            load_bases(codes, flank, l, size, at[0], at[1], apart, work.bases[turn], work.bases[2 + turn])


@njit_entry
def _run(
    codes, flanks, ends, size, scoring, longest, cell_scores, state, states, work, bits, block, lane, ops, starts, counts,
    failed,
):  # fmt: skip
    """Group by group, block by block, forth and back.

    block : chunks of a block.
    lane : (6, TILE) int64: last anti-diagonal; whether it failed; anti-diagonal, column and run as in `_go_back`; next slot.
    """
    lanes, half = size[0], size[3]
    for begin in range(0, len(flanks), lanes):
        group, n = flanks[begin : begin + lanes], min(lanes, len(flanks) - begin)
        lane[:] = 0
        for l in range(n):
            lane[0, l] = lane[2, l] = ends[begin + l, 0] + ends[begin + l, 1]
            lane[3, l], lane[5, l] = ends[begin + l, 0], starts[begin + l]
        n_chunks = (lane[0, 0] + 2 * half - 1) // (2 * half)
        last_block = (n_chunks - 1) // block
        _begin(codes, group, size, longest, cell_scores, state, work)
        for b in range(last_block + 1):
            _copy_state(_saved(states, b), state)
            for chunk in range(b * block, min((b + 1) * block, n_chunks)):
                _advance(
                    codes, group, size, scoring, longest, cell_scores, state, work, bits, chunk, chunk - b * block, lane[0],
                    lane[1],
                )  # fmt: skip
        for b in range(last_block, -1, -1):
            first = b * block
            if b < last_block:
                _return_to(codes, group, size, longest, state, _saved(states, b), work, first)
                for chunk in range(first, first + block):
                    _advance(
                        codes, group, size, scoring, longest, cell_scores, state, work, bits, chunk, chunk - first, lane[0],
                        lane[1],
                    )  # fmt: skip
            for octet in range(block * half // OCTET - 1, -1, -1):
                k = 2 * (first * half + octet * OCTET)
                for l in range(n):
                    if lane[2, l] > k and not lane[1, l]:
                        lane[5, l] = _go_back(bits, octet, l, lanes, k, lane[2:5, l], ops, lane[5, l])
        for l in range(n):
            failed[begin + l] = lane[1, l]
            if lane[4, l] > 0:
                ops[lane[5, l]] = lane[4, l]
                lane[5, l] += 1
            counts[begin + l] = 0 if lane[1, l] else lane[5, l] - starts[begin + l]


def trace_lanes(codes, flanks, ends, size: Class, scoring: Scoring, longest: bool, cell: CellType, ops, starts):
    """Paths of flanks; those whose window grew beyond `size.height` rows are left out.

    Parameters
    ----------
    codes : uint8 as `ReadSet.both_ways`.
    flanks : (n, 5) int64 as `Flanks.table`, by decreasing length of their alignments.
    ends : (n, 2) int64, query and target bases of each alignment, not both 0, as the extension found them.
    size, cell : Class, and CellType that holds such scores.
    longest : unknown bases match each other.
    ops : uint32, overwritten: runs of one operation, length << 4 | operation, from the end cell to the seed.
    starts : (n,) int64, where the runs of each flank begin in `ops`; `most_runs` tells the room they need.

    Returns
    -------
    counts : (n,) int64, runs of each flank; 0 where it is left out.
    failed : (n,) bool, the flanks left out.
    """
    n_cells, cell_scores = size.height * size.lanes, scores_of(scoring, cell, size)
    n_bases = n_cells + size.half * size.lanes
    state = State(
        aligned(n_cells + TILE, cell.name), aligned(n_cells + 2 * TILE, cell.name), np.zeros((N_NOW, TILE), np.int64)
    )
    n_chunks = -(-int(ends.sum(axis=1).max(initial=1)) // (2 * size.half))
    octet_bytes = 4 * n_cells + 8 * TILE
    block = block_chunks(n_chunks, octet_bytes * size.half // OCTET, sum(array.nbytes for array in state))
    states = State(*(np.empty((-(-n_chunks // block), *array.shape), array.dtype) for array in state))
    work = Work(
        aligned(4 * n_bases, np.uint8).reshape(4, n_bases),
        aligned(12 * TILE, cell.name).reshape(12, TILE),
        np.zeros((size.half // 4, TILE), np.uint64),
        np.empty((TILE, 5), np.int64),
    )
    octets = block * size.half // OCTET
    bits = Bits(aligned(octets * 4 * n_cells, np.uint8).reshape(octets, 2, 2, n_cells), np.empty((octets, TILE), np.int64))
    counts, failed = np.zeros(len(flanks), np.int64), np.zeros(len(flanks), np.int64)
    lane = np.zeros((6, TILE), np.int64)
    _run(
        codes, flanks, ends, size, scoring, longest, cell_scores, state, states, work, bits, block, lane, ops, starts,
        counts, failed,
    )  # fmt: skip
    return counts, failed > 0
