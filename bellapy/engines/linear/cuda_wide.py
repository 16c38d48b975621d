"""X-drop extension on a GPU by anti-diagonals of any width: both results of rule.py, any scores; one warp per flank.

Cells are 32-bit scores in device memory, three anti-diagonals per warp, indexed by column.  This kernel takes what the
register kernel (cuda_stack.py) leaves: windows that outgrow it and the last anti-diagonals of the *longest* result, from the
state that it hands over, and flanks with a large X from their beginning.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, ballot, shuffle, sync_warp
from bellapy.engines.linear.cuda_host import STATE_COLUMN
from bellapy.engines.linear.cuda_stack import (
    CELLS,
    COLUMN,
    ENDED,
    FIRST_ROW,
    FLANK,
    HALF,
    ONE,
    OUTGROWN,
    PAIRS_DONE,
    ROW,
    SCALE,
    SCORE,
)
from bellapy.engines.linear.rule import STRIDE
from bellapy.params import TILT_UNIT

DEAD = I32(-(1 << 30))
UNKNOWN = 4
GUARDS = 3  # slots of an anti-diagonal beyond the query's columns


@cuda.jit(device=True, inline="always")
def _base(planes, n_bases, at):
    """The code at index `at` of ReadSet.both_ways."""
    at = at if at < n_bases else 2 * n_bases - 1 - at
    block, bit = at >> 5, U32(at & 31)
    low, high, unknown = planes[block, 0] >> bit & ONE, planes[block, 1] >> bit & ONE, planes[block, 2] >> bit & ONE
    return I32(U32(low | high << ONE | unknown << U32(2)))


@cuda.jit(device=True, inline="always")
def _substitution(planes, n_bases, query_at, target_at, flip, apart, match, mismatch):
    q, t = _base(planes, n_bases, query_at), _base(planes, n_bases, target_at)
    if t < UNKNOWN:
        t = I32(t ^ flip)
    return match if q == t and (q < UNKNOWN or not apart) else mismatch


@cuda.jit(device=True, inline="always")
def _tilt(score, bases, scoring):
    """A tilted score (rule.py)."""
    return np.int64(TILT_UNIT) * score - np.int64(scoring.tilt) * bases


@cuda.jit(device=True, inline="always")
def _most(value, lane):
    """The largest value of all lanes."""
    for i in range(5):
        if 1 << i < WARP:
            value = max(value, shuffle(value, lane ^ (1 << i)))
    return value


@cuda.jit(device=True, inline="always")
def _lower_end(new, old, first, end_new, end_old, lane):
    """The first column from `first` on that is alive, or was just before on its left; end_new if there is none."""
    while first < end_new:
        c = I32(first + lane)
        stop = c >= end_new or new[c] != DEAD or c - 1 >= end_old or old[c - 1] != DEAD
        votes = ballot(stop)
        if votes:
            return I32(first + I32(cuda.ffs(I32(votes))) - 1)
        first = I32(first + WARP)
    return first


@cuda.jit(device=True, inline="always")
def _upper_end(new, old, last, begin_new, lane):
    """Behind the last column before `last` that is alive now or was just before; begin_new if there is none."""
    while last > begin_new:
        c = I32(last - 1 - lane)
        votes = ballot(c < begin_new or new[c] != DEAD or old[c] != DEAD)
        if votes:
            return I32(last - (I32(cuda.ffs(I32(votes))) - 1))
        last = I32(last - WARP)
    return last


@cuda.jit(device=True, inline="always")
def _load_cells(saved, ticket, stack, low, high, score_of_zero, column, cells, lane):
    """Scores of a row of saved cells, whose first is at `column`, into columns low .. high - 1 and what surrounds them;
    return the first column and the last one with a live cell.
    """
    first, last = high, I32(low - 1)
    c = I32(max(I32(0), low - 2) + lane)
    while c < high + 2:
        value = I32(0)
        if low <= c and c < high:
            value = I32(U32(saved[ticket, stack, c - column >> 1] >> U32(16 * (c - column & 1))) & HALF)
        cells[c] = I32(value // SCALE + score_of_zero) if value else DEAD
        if value:
            first, last = min(first, c), max(last, c)
        c = I32(c + WARP)
    return I32(-_most(I32(-first), lane)), _most(last, lane)


def extend_wide(planes, n_bases, table, counts, level, column, heads, saved, scoring, units, longest, scratch, results):
    """Extend the flanks of a queue.

    Parameters
    ----------
    planes, n_bases : compute/gpu/reads.py.
    table : (n_flanks, 5) int64, rows of `Flanks.table`.
    counts, level, column : counts[level, column] flanks are in the queue, counts[level, column + 1] are taken; CELLS are
        those of the live windows.
    heads, saved : (n, HEAD) int32, (n, 2, rows / 2) uint32, their states (cuda_stack.py): from the front for OUTGROWN,
        from the back for ENDED; not used at level 0 without such a kernel before, where all flanks begin anew.
    scoring : Scoring.
    units : what the highest score counts in the saved cells before SCALE, where it stands at the start of a chunk.
    longest : which result is wanted.
    scratch : (blocks, 3, columns) int32, overwritten; as many columns as the longest query has, and GUARDS.
    results : (n_flanks, 4) int32 as in cuda_stack.py.
    """
    lane = I32(cuda.threadIdx.x)
    match, mismatch, gap, xdrop = I32(scoring.match), I32(scoring.mismatch), I32(scoring.gap), I32(scoring.xdrop)
    n_cells = np.int64(0)
    while True:
        ticket = I32(0)
        if lane == 0:
            ticket = I32(cuda.atomic.add(counts, (level, column + 1), 1))
        ticket = shuffle(ticket, 0)
        if ticket >= counts[level, column]:
            break
        flank, pairs = ticket, I32(0)
        if level > 0 or column == ENDED:
            ticket = ticket if column == OUTGROWN else I32(heads.shape[0] - 1 - ticket)
            flank, pairs = heads[ticket, FLANK], heads[ticket, PAIRS_DONE]
        query_at, n_query, target_at, n_target = (
            table[flank, 0], I32(table[flank, 1]), table[flank, 2], I32(table[flank, 3])
        )  # fmt: skip
        flip = I32(table[flank, 4])
        columns, rows = I32(n_query + 1), I32(n_target + 1)
        score = end_column = end_row = best = I32(0)  # of the best cell
        found = found_column = found_row = I32(0)  # the result so far
        older, old, new = I32(0), I32(1), I32(2)
        cells = scratch[cuda.blockIdx.x]
        begin_older = end_older = begin_old = begin_new = I32(0)
        sync_warp()
        if pairs == 0:
            if lane == 0:
                cells[old, 0] = 0
                cells[old, 1] = DEAD
                cells[new, 0] = cells[new, 1] = DEAD if -gap > xdrop else gap
                cells[new, 2] = DEAD
            end_old, end_new = I32(1), I32(2)
            k, first, last = I32(1), I32(1), I32(2)
            if n_query == 0 or n_target == 0:
                last = first
        else:
            k, best = I32(2 * pairs), heads[ticket, SCORE]
            if not longest:
                score, end_column, end_row = best, heads[ticket, COLUMN], heads[ticket, ROW]
                found, found_column, found_row = results[flank, 0], results[flank, 1], results[flank, 2]
            begin = I32(pairs + heads[ticket, FIRST_ROW])
            low, high = max(I32(0), begin), min(I32(begin + 2 * saved.shape[2]), columns)
            first_new, last_new = _load_cells(saved, ticket, 0, low, high, I32(best - units), begin, cells[new], lane)
            first_old, last_old = _load_cells(saved, ticket, 1, low, high, I32(best - units - gap), begin, cells[old], lane)
            end_old = end_new = I32(high + 1)
            first, last = min(first_new, I32(first_old + 1)), I32(max(last_new, last_old) + 2)
            first, last = max(max(first, I32(1)), I32(k + 2 - rows)), min(min(last, I32(k + 1)), columns)
        sync_warp()
        while first < last:
            k = I32(k + 1)
            n_cells += last - first
            older, old, new = old, new, older
            begin_older, begin_old, begin_new = begin_old, begin_new, I32(first - 1)
            end_older, end_old, end_new = end_old, end_new, I32(last + 1)
            drop, top, place = I32(best - xdrop), DEAD, I32(0)
            c = I32(first + lane)
            while c < last:
                score_of_pair = _substitution(
                    planes, n_bases, query_at + c - 1, target_at + k - c - 1, flip, not longest, match, mismatch
                )  # fmt: skip
                value = max(I32(cells[older, c - 1] + score_of_pair), I32(max(cells[old, c - 1], cells[old, c]) + gap))
                value = value if value >= drop else DEAD
                cells[new, c] = value
                if value > top:
                    top, place = value, c
                c = I32(c + WARP)
            if lane == 0:
                border = k * gap > best - xdrop
                cells[new, first - 1] = I32(k * gap) if border and first == 1 else DEAD
                cells[new, last] = I32(k * gap) if border and last == k else DEAD
            sync_warp()
            most = _most(top, lane)
            if most > best:
                best = most
                if not longest:
                    score, end_column = best, I32(-_most(I32(-place) if top == most else DEAD, lane))
                    end_row = I32(k - end_column)
            first = _lower_end(cells[new], cells[old], first, end_new, end_old, lane)
            last = I32(_upper_end(cells[new], cells[old], last, begin_new, lane) + 1)
            first, last = max(first, I32(k + 2 - rows)), min(last, columns)
            if not longest and k % STRIDE == 0:
                if _tilt(score, end_column + end_row, scoring) > _tilt(found, found_column + found_row, scoring):
                    found, found_column, found_row = score, end_column, end_row
                highest = _tilt(found, found_column + found_row, scoring)
                if scoring.fall > 0 and _tilt(best, k, scoring) < highest - scoring.fall:
                    break
        if longest and n_query > 0 and n_target > 0:
            end_column, diagonal, score = I32(end_new - 2), k, cells[new, end_new - 2]
            if score == DEAD:
                end_column, diagonal, score = I32(end_old - 2), I32(k - 1), cells[old, end_old - 2]
                if score == DEAD and end_old - begin_old > 2:
                    end_column, score = I32(end_old - 3), cells[old, end_old - 3]
            if score == DEAD:
                diagonal, place = I32(k - 2), I32(0)
                c = I32(begin_older + lane)
                while c < end_older:
                    if cells[older, c] > score:
                        score, place = cells[older, c], c
                    c = I32(c + WARP)
                most = _most(score, lane)
                end_column = I32(-_most(I32(-place) if score == most else DEAD, lane))
                score = most
            end_row = I32(diagonal - end_column)
            if score == DEAD:
                score = end_column = end_row = I32(0)
        if longest or _tilt(score, end_column + end_row, scoring) > _tilt(found, found_column + found_row, scoring):
            found, found_column, found_row = score, end_column, end_row
        if lane == 0:
            results[flank, 0], results[flank, 1], results[flank, 2] = found, found_column, found_row
            results[flank, STATE_COLUMN] = 0
    if lane == 0:
        cuda.atomic.add(counts, (level, CELLS), n_cells)
