"""Align a sequence to a graph on a GPU: a warp computes one row after the other, its cells in registers.

A lane holds 2 R neighbouring prefixes in R registers: prefix k of its 2 R in the low half of register k, prefix R + k in the
high half.  So a stretch of R prefixes has its step along the sequence done in both halves at a time, as on the CPU
(align.py); what the stretches before it hand on is found by the lanes together.  Rows go to memory, where later rows and the
way back read them.

No score needs more than 16 bits: every node lies on a path of at most as many nodes as a sequence has bases, so that the
best score of a cell is never lower than that of gaps alone along it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.ops import BOTH, I32, U32, U64, WARP, add2, ballot, largest, shuffle, signed_add_max2, signed_max2
from bellapy.engines.poa.gpu.graph_kernels import BASE_MASK, BEFORE, HAS_NEXT, ORDER, PATH, RECORD, RECORD_BITS, first_lane
from bellapy.engines.registers.window import HALF, inlined
from bellapy.params.correct import PoaScoring
from bellapy.records.bases import UNKNOWN

MOST_SCORE = 12_000  # of cells; sums of two stay within 16 bits
LOWEST = -16_000
NEVER = U32((LOWEST & 0xFFFF) * BOTH)
OFFSET = 1 << 15  # makes scores positive
OFFSET_OF_ROWS = 1 << 30  # more than there are


class Registers(NamedTuple):
    """Of a lane: (UNKNOWN,) uint32 prefixes that end in each base; (R,) uint32 cells of a row, and what pairs gain there."""

    masks: np.ndarray
    cells: np.ndarray
    gains: np.ndarray


class Costs(NamedTuple):
    """Scores as kernels take them.

    match, mismatch, gap : PoaScoring.  unequal, either : uint32, the mismatch in both halves, and what makes a match of it.
    gaps : uint32, the gap in both halves.
    """

    match: np.int32
    mismatch: np.int32
    gap: np.int32
    unequal: np.uint32
    either: np.uint32
    gaps: np.uint32


def pack_scoring(scoring: PoaScoring) -> Costs:
    """Costs of a scoring."""
    match, mismatch, gap = (np.uint32((score & 0xFFFF) * BOTH) for score in scoring)
    return Costs(np.int32(scoring.match), np.int32(scoring.mismatch), np.int32(scoring.gap), mismatch, match ^ mismatch, gap)


def fits(scoring: PoaScoring, columns: int) -> bool:
    """Whether scores of sequences of up to so many bases have room in 16 bits."""
    return max(scoring.match, -scoring.mismatch, -scoring.gap) * 2 * columns <= MOST_SCORE


@inlined
def _low(word):
    return I32(I32(U32(word) << U32(16)) >> I32(16))


@inlined
def _high(word):
    return I32(I32(word) >> I32(16))


@inlined
def _pack(low, high):
    return U32((U32(low) & HALF) | (U32(high) << U32(16)))


@inlined
def mark_bases(masks, sequence, lane, R):
    """Set the prefixes of a lane that end in each base: bit k for prefix k, bit 16 + k for prefix R + k.

    masks : (UNKNOWN,) uint32, local.  sequence : Sequence.
    """
    for base in range(UNKNOWN):
        masks[base] = U32(0)
    for k in range(2 * R):
        j = I32(lane * 2 * R + k)
        code = I32(UNKNOWN)
        if 0 < j and j <= sequence.n:
            code = I32(sequence.codes[sequence.begin + j - 1])
        bit = U32(U32(1) << U32(k if k < R else 16 + k - R))
        for base in range(UNKNOWN):
            if code == base:
                masks[base] = U32(masks[base] | bit)


@inlined
def _begin_rows(rows, first, gap, lane, R):
    """The row of no node."""
    for k in range(R):
        j = I32(lane * 2 * R + k)
        rows[U64(first + k * WARP)] = _pack(I32(j * gap), I32((j + R) * gap))


@inlined
def _finish_row(cells, costs, lane, R):
    """Bases of the sequence alone: inside each stretch, then from those before it.

    cells : (R,) uint32, local.
    """
    for k in range(1, R):
        cells[k] = signed_add_max2(cells[k - 1], costs.gaps, cells[k])
    low, cost = _low(cells[R - 1]), I32(costs.gap * R)
    end = I32(max(_high(cells[R - 1]), I32(low + cost)))
    step, far = I32(1), I32(2 * cost)
    while step < WARP:  # each lane takes over what those before it hand on, from ever farther away
        end = I32(max(end, I32(shuffle(end, I32(max(I32(0), I32(lane - step)))) + far)))
        step, far = I32(2 * step), I32(2 * far)
    before = I32(shuffle(end, I32(max(I32(0), I32(lane - 1)))))
    if lane == 0:
        before = I32(LOWEST)
    carry = _pack(before, I32(max(low, I32(before + cost))))
    for k in range(R):
        carry = add2(carry, costs.gaps)
        cells[k] = signed_max2(carry, cells[k])


@inlined
def fill_rows(graph, n_nodes, rows, seat, stacks, costs, R):
    """Scores of all nodes of a graph, in their order, with all prefixes of a sequence.

    graph : (FIELDS, n) int32, of all warps.  seat, costs : Seat, Costs.
    rows : uint32, of all warps; a warp's register k of lane l of row r stands at (r * R + k) * WARP + l.
    stacks : Registers, with the masks of the sequence.
    """
    at, lane, first, cells, gains = seat.at, seat.lane, seat.origin + seat.lane, stacks.cells, stacks.gains
    _begin_rows(rows, first, costs.gap, lane, R)
    record = I32(graph[RECORD, at])
    for rank in range(n_nodes):
        base, place = I32(record & BASE_MASK), I32(record >> RECORD_BITS)
        record = I32(graph[RECORD, at + rank + 1])
        end = I32(record >> RECORD_BITS)
        mask = U32(0)
        for other in range(UNKNOWN):
            mask = stacks.masks[other] if base == other else mask
        for k in range(R):
            equal = U32(U32(U32(mask >> U32(k)) & U32(BOTH)) * HALF)
            gains[k] = U32((equal & costs.either) ^ costs.unequal)
            cells[k] = NEVER
        while place < end:
            row = first + np.int64(graph[BEFORE, at + place]) * (R * WARP)
            last = rows[U64(row + (R - 1) * WARP)]
            beside = U32(U32(shuffle(I32(last), I32(max(I32(0), I32(lane - 1))))) >> U32(16))
            beside = U32(NEVER & HALF) if lane == 0 else beside
            diagonal = U32(beside | U32(last << U32(16)))
            for k in range(R):
                above = rows[U64(row + k * WARP)]
                cells[k] = signed_add_max2(diagonal, gains[k], signed_add_max2(above, costs.gaps, cells[k]))
                diagonal = above
            place += I32(1)
        _finish_row(cells, costs, lane, R)
        row = first + np.int64(rank + 1) * (R * WARP)
        for k in range(R):
            rows[U64(row + k * WARP)] = cells[k]


@inlined
def _cell(rows, seat, row, j, R):
    """The score of a row with prefix j."""
    lane, k = I32(j // (2 * R)), I32(j % (2 * R))
    register = k if k < R else I32(k - R)
    word = rows[U64(seat.origin + (np.int64(row) * R + register) * WARP + lane)]
    return _low(word) if k < R else _high(word)


@inlined
def best_end(graph, n_nodes, rows, seat, n, R):
    """The row where the best alignment ends, of the nodes that no edge leads on from, and its score; the first of equals."""
    score, row = I32(-OFFSET), I32(0)
    for rank in range(seat.lane, n_nodes, WARP):
        if graph[HAS_NEXT, seat.at + graph[ORDER, seat.at + rank]] == 0:
            here = _cell(rows, seat, rank + 1, n, R)
            if here > score:
                score, row = here, I32(rank + 1)
    best = I32(I32(largest(U32(score + OFFSET))) - OFFSET)
    rest = U32(OFFSET_OF_ROWS - row) if row > 0 and score == best else U32(0)  # the largest is of the first row
    return I32(OFFSET_OF_ROWS - I32(largest(rest))), best


@inlined
def _row_before(graph, rows, seat, row, j, score, R):
    """The first row before this one whose cell with prefix j has this score; -1 if there is none."""
    at, lane = seat.at, seat.lane
    place, end = I32(graph[RECORD, at + row - 1] >> RECORD_BITS), I32(graph[RECORD, at + row] >> RECORD_BITS)
    found, before = U32(0), I32(0)
    while place < end and found == 0:
        equal = False
        if place + lane < end:
            before = I32(graph[BEFORE, at + place + lane])
            equal = _cell(rows, seat, before, j, R) == score
        found = ballot(equal)
        place += I32(WARP)
    first = I32(shuffle(before, I32(max(I32(0), first_lane(found)))))
    return first if found != 0 else I32(-1)


@inlined
def trace_mates(graph, rows, seat, sequence, row, score, costs, R):
    """Set the rows of the nodes that bases are aligned with, on the best alignment that ends at a row; others stay 0.

    Of equals, seen from the end, a pair goes before a base alone and this before a node alone; of edges the older.
    """
    at, j = seat.at, I32(sequence.n)
    while j > 0 and row > 0:
        base, letter = I32(graph[RECORD, at + row - 1] & BASE_MASK), I32(sequence.codes[sequence.begin + j - 1])
        gain = I32(costs.match) if letter == base and letter != UNKNOWN else I32(costs.mismatch)
        before = _row_before(graph, rows, seat, row, I32(j - 1), I32(score - gain), R)
        if before >= 0:
            if seat.lane == 0:
                graph[PATH, at + j - 1] = row
            row, j, score = before, I32(j - 1), I32(score - gain)
        else:
            score = I32(score - costs.gap)
            if _cell(rows, seat, row, j - 1, R) == score:
                j -= I32(1)
            else:
                row = _row_before(graph, rows, seat, row, j, score, R)
