"""X-drop extension on a GPU by anti-diagonals of any width: both results of recurrence.py, any scores; one warp per flank.

Cells are 32-bit scores in device memory, three anti-diagonals per warp, indexed by column.  This kernel takes what the
register kernel (cuda_stack.py) does not: windows that outgrow it, a large X, and the *longest* result.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.xdrop.cuda_ops import I32, WARP, ballot, shuffle, sync_warp

DEAD = I32(-(1 << 30))
UNKNOWN = 4
GUARDS = 3  # slots of an anti-diagonal beyond the query's columns


@cuda.jit(device=True, inline="always")
def _base(codes, at):
    """The code at index `at` of ReadSet.both_ways, of which `codes` is the first half."""
    n = codes.shape[0]
    return codes[at] if at < n else codes[2 * n - 1 - at]


@cuda.jit(device=True, inline="always")
def _substitution(codes, query_at, target_at, flip, apart, match, mismatch):
    q, t = I32(_base(codes, query_at)), I32(_base(codes, target_at))
    if t < UNKNOWN:
        t = I32(t ^ flip)
    return match if q == t and (q < UNKNOWN or not apart) else mismatch


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


def extend_wide(
    codes, query_start, query_length, target_start, target_length, complement, queue, counts, level, scoring, longest,
    scratch, results, work,
):  # fmt: skip
    """Extend the flanks of a queue.

    Parameters
    ----------
    codes : (n,) uint8, the first half of ReadSet.both_ways.
    query_start, ... , complement : as in Flanks.
    queue : int32, flanks to take, in this order; counts[level, 0] of them, counts[level, 1] are taken.
    scoring : Scoring.
    longest : which result is wanted.
    scratch : (blocks, 3, columns) int32, overwritten; as many columns as the longest query has, and GUARDS.
    results : (n_flanks, 3) int32: score, query bases, target bases.
    work : int64; work[level] grows by the cells of the live windows.
    """
    lane = I32(cuda.threadIdx.x)
    match, mismatch, gap, xdrop = I32(scoring.match), I32(scoring.mismatch), I32(scoring.gap), I32(scoring.xdrop)
    n_cells = np.int64(0)
    while True:
        ticket = I32(0)
        if lane == 0:
            ticket = I32(cuda.atomic.add(counts, (level, 1), 1))
        ticket = shuffle(ticket, 0)
        if ticket >= counts[level, 0]:
            break
        flank = queue[ticket]
        n_query, n_target = I32(query_length[flank]), I32(target_length[flank])
        query_at, target_at = query_start[flank], target_start[flank]
        flip = I32(3 if complement[flank] else 0)
        columns, rows = I32(n_query + 1), I32(n_target + 1)
        score = end_column = end_row = I32(0)
        older, old, new = I32(0), I32(1), I32(2)
        cells = scratch[cuda.blockIdx.x]
        sync_warp()
        if lane == 0:
            cells[old, 0] = 0
            cells[old, 1] = DEAD
            cells[new, 0] = cells[new, 1] = DEAD if -gap > xdrop else gap
            cells[new, 2] = DEAD
        sync_warp()
        begin_older = end_older = begin_old = begin_new = I32(0)
        end_old, end_new = I32(1), I32(2)
        k, first, last, best = I32(1), I32(1), I32(2), I32(0)
        if n_query == 0 or n_target == 0:
            last = first
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
                    codes, query_at + c - 1, target_at + k - c - 1, flip, not longest, match, mismatch
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
        if lane == 0:
            results[flank, 0], results[flank, 1], results[flank, 2] = score, end_column, end_row
    if lane == 0:
        cuda.atomic.add(work, level, n_cells)
