"""Align a sequence to a graph, both from end to end, at the highest score: all cells are computed.

A row holds the scores of one node with all prefixes of the sequence.  It is cut into LANES stretches of equal length that
lie side by side.  So the step along the sequence, for which the next cell waits, is done for all stretches at a time.  What
a stretch gets from those before it is added afterwards.  Source of the layout: Farrar 2007.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_vector
from bellapy.engines.poa.graph import BASES, NONE
from bellapy.records.bases import UNKNOWN

LANES = 64
U = np.uint64
UL = U(LANES)


class Rows(NamedTuple):
    """Working memory; whole numbers of one type that holds all scores.

    cells : scores of row r from r * size on; prefix j lies at LANES + j % length * LANES + j // length behind that, and what
        lies left of the stretches before them.  Row 0 is that of no node.
    profile : score of each base with each of the sequence's, laid out as a row.
    carry : (4 * LANES,) what stretches hand on, twice, with the lowest score of all before each.
    """

    cells: np.ndarray
    profile: np.ndarray
    carry: np.ndarray


@njit_inner
def stretch_length(n):
    """Cells of a stretch, for a sequence of n bases and so n + 1 prefixes."""
    return n // LANES + 1


@njit_inner
def make_profile(profile, sequence, length, scoring):
    """Fill the profile; prefix 0 ends in no base."""
    for base in range(BASES):
        for k in range(length):
            for lane in range(LANES):
                j = lane * length + k
                equal = 1 <= j <= len(sequence) and sequence[j - 1] == base and base != UNKNOWN
                profile[(base * length + k) * LANES + lane] = scoring.match if equal else scoring.mismatch


@njit_vector
def _begin_row(cells, profile, before, at, new, size, gap):
    """Scores of a row by its first predecessor: pairs and gaps in the sequence."""
    cell = cells.dtype.type
    for t in range(U(size)):
        k = t * UL
        for e in range(UL):
            paired = cell(before[U(at) + k + e - UL] + profile[k + e])
            cells[U(new) + k + e] = max(paired, cell(before[U(at) + k + e] + gap))


@njit_vector
def _add_predecessor(cells, profile, before, at, new, size, gap):
    """The same of a further one."""
    cell = cells.dtype.type
    for t in range(U(size)):
        k = t * UL
        for e in range(UL):
            paired = cell(before[U(at) + k + e - UL] + profile[k + e])
            best = max(paired, cell(before[U(at) + k + e] + gap))
            cells[U(new) + k + e] = max(cells[U(new) + k + e], best)


@njit_vector
def _finish_row(cells, new, length, carry, gap):
    """Bases of the sequence alone: inside each stretch, then from those before it.

    It reads what it has just written: no array may be passed twice, as the other functions here get theirs.
    """
    cell = cells.dtype.type
    for t in range(U(1), U(length)):
        k = U(new) + t * UL
        for e in range(UL):
            cells[k + e] = max(cells[k + e], cell(cells[k + e - UL] + gap))
    for e in range(UL):  # the last cells of all stretches
        carry[UL + e] = cells[U(new) + U(length - 1) * UL + e]
    at, step, cost = UL, U(1), cell(gap * length)
    while step < UL:  # each takes over what those before it hand on, from ever farther away
        to = U(4) * UL - at
        for e in range(UL):
            carry[to + e] = max(carry[at + e], cell(carry[at + e - step] + cost))
        at, step, cost = to, step + step, cell(cost + cost)
    at -= U(1)
    for e in range(UL):
        cells[U(new) + e - UL] = carry[at + e]
    cost = cell(gap)
    for t in range(U(length)):
        k = U(new) + t * UL
        for e in range(UL):
            cells[k + e] = max(cells[k + e], cell(carry[at + e] + cost))
        cost = cell(cost + gap)


@njit_inner
def fill_rows(graph, n_nodes, rows, length, scoring):
    """Scores of all nodes of a graph, in their order, with all prefixes of the sequence of the profile."""
    cells, size, gap = rows.cells, (length + 1) * LANES, rows.cells.dtype.type(scoring.gap)
    for k in range(length):
        for lane in range(LANES):
            cells[LANES + k * LANES + lane] = (lane * length + k) * scoring.gap
    cells[0] = rows.carry[0]
    for lane in range(1, LANES):
        cells[lane] = (lane * length - 1) * scoring.gap
    for r in range(n_nodes):
        node = graph.order[r]
        new = (r + 1) * size + LANES
        at = np.int64(graph.base[node]) * length * LANES
        profile = rows.profile[at : at + length * LANES]
        edge = graph.in_first[node]
        before = 0 if edge == NONE else graph.rank[graph.tail[edge]] + 1
        _begin_row(cells, profile, cells, before * size + LANES, new, length, gap)
        while edge != NONE:
            edge = graph.in_next[edge]
            if edge != NONE:
                before = graph.rank[graph.tail[edge]] + 1
                _add_predecessor(cells, profile, cells, before * size + LANES, new, length, gap)
        _finish_row(cells, new, length, rows.carry, gap)


@njit_inner
def _cell(rows, row, j, length):
    """The score of a row with prefix j."""
    return np.int64(rows.cells[row * (length + 1) * LANES + LANES + j % length * LANES + j // length])


@njit_inner
def best_end(graph, n_nodes, rows, n, length):
    """The node where the best alignment ends, of those that no edge leads on from, and its score; the first of equals."""
    best, highest = NONE, np.int64(0)
    for r in range(n_nodes):
        node = graph.order[r]
        if not graph.has_next[node]:
            score = _cell(rows, r + 1, n, length)
            if best == NONE or score > highest:
                best, highest = node, score
    return best, highest


@njit_inner
def _step_back(graph, rows, node, j, score, gain, length):
    """The node before in a best alignment whose cell (node, j) has `score`; its prefix is j.  NONE - 1 if there is none.

    gain : what the step to it scores.
    """
    edge = graph.in_first[node]
    if edge == NONE:
        return NONE if _cell(rows, 0, j, length) + gain == score else NONE - 1
    while edge != NONE:
        tail = graph.tail[edge]
        if _cell(rows, graph.rank[tail] + 1, j, length) + gain == score:
            return tail
        edge = graph.in_next[edge]
    return NONE - 1


@njit_inner
def trace_mates(graph, rows, sequence, node, length, scoring, mates):
    """Set the node that each base is aligned with, or NONE, on the best alignment that ends at a node.

    Of equals, seen from the end, a pair goes before a base alone and this before a node alone; of edges the older.
    """
    j = len(sequence)
    while j > 0:
        if node == NONE:
            mates[j - 1] = NONE
            j -= 1
            continue
        score = _cell(rows, graph.rank[node] + 1, j, length)
        equal = sequence[j - 1] == graph.base[node] and sequence[j - 1] != UNKNOWN
        before = _step_back(graph, rows, node, j - 1, score, scoring.match if equal else scoring.mismatch, length)
        if before >= NONE:
            mates[j - 1] = node
            node, j = before, j - 1
        elif _cell(rows, graph.rank[node] + 1, j - 1, length) + scoring.gap == score:
            mates[j - 1] = NONE
            j -= 1
        else:
            node = _step_back(graph, rows, node, j, score, scoring.gap, length)
