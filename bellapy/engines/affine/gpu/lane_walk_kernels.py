"""Kernels of short alignments on GPUs: where a path ends, and the way back by the rule of trace.py.

All lanes of a warp go back together: each looks at a pair of bases of its own, or tries a gap of a length of its own.
"""

from __future__ import annotations

from numba import cuda

from bellapy.compute import runs as codec
from bellapy.compute.gpu.ops import I32, U64, WARP, ballot, inlined, on_device, shuffle
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.affine.lanes import CHUNK
from bellapy.engines.affine.rule import gap_cost

NO_PATH = -1
pack_run = on_device(codec.pack_run)


@inlined
def row_of(band, i, j):
    """Row of the cell (i, j) of a band."""
    return I32(((j - i) >> 1) + band.centre)


@inlined
def score_at(band, r, row):
    """H, with the drift, of the cell in a row of anti-diagonal r."""
    chunk = (r - 1) // CHUNK if r > 0 else 0
    return I32(band.scores[U64(band.scores_at + r * band.height + row)] + band.bases[U64(band.bases_at + chunk)])


@inlined
def _highest(band, r):
    """The best score of anti-diagonal r, without the drift."""
    best = score_at(band, r, 0)
    for row in range(1, band.height):
        best = max(best, score_at(band, r, row))
    return I32(best - band.drift * r)


@inlined
def find_end(band, zdrop, lane):
    """As `find_end` of trace.py: i, j, score, and whether zdrop ended it.  Each lane looks at an anti-diagonal at a time."""
    best, best_r, before, dropped = I32(0), I32(0), I32(0), False
    n = band.q_len + band.t_len
    first = 1
    while first <= n and not dropped:
        mine = _highest(band, min(first + lane, n))
        for x in range(min(WARP, n - first + 1)):
            highest = shuffle(mine, x)
            if not dropped:
                if highest > best:
                    best, best_r = highest, I32(first + x)
                dropped = best - max(highest, before) > zdrop
                before = highest
        first += WARP
    if best_r == 0:
        return I32(0), I32(0), I32(0), dropped
    i, most = I32(max(0, best_r - band.t_len)), min(band.q_len, best_r)
    while i <= most:
        row = row_of(band, i + lane, best_r - i - lane)
        is_best = False
        if i + lane <= most and row >= 0 and row < band.height:
            is_best = score_at(band, best_r, row) - band.drift * best_r == best
        votes = ballot(is_best)
        if votes != 0:
            i = I32(i + cuda.ffs(votes) - 1)
            return i, I32(best_r - i), best, dropped
        i = I32(i + WARP)
    return I32(0), I32(0), I32(0), dropped  # the best one lies outside the table


@inlined
def query_end(band):
    """As `query_end` of trace.py: target base and score of the best cell that uses up the query; (-1, 0) for none."""
    found, top = I32(-1), I32(0)
    lowest = band.q_len - 2 * band.centre
    for j in range(max(0, lowest), min(band.t_len, lowest + 2 * band.height) + 1):
        row = row_of(band, band.q_len, j)
        if row >= 0 and row < band.height:
            score = score_at(band, band.q_len + j, row) - band.drift * (band.q_len + j)
            if found < 0 or score > top:
                found, top = I32(j), I32(score)
    return found, top


@inlined
def _equal_bases(band, i, j, lane):
    """How many bases are equal, one after the other, back from the cell (i, j)."""
    most, n = min(i, j), I32(0)
    while n < most:
        back = n + lane
        same = False
        if back < most:
            q, t = band.codes_at + i - 1 - back, band.codes_at + band.q_len + j - 1 - back
            same = band.codes[U64(q)] == band.codes[U64(t)]
        unlike = ballot(not same)
        if unlike != 0:
            return min(most, I32(n + cuda.ffs(unlike) - 1))
        n = I32(n + WARP)
    return most


@inlined
def _explain_pairs(band, i, j, score, row, scoring, lane):
    """As `_explain_pairs` of trace.py: how many pairs lead to the cell (i, j), and their score."""
    drift, equal = 2 * band.drift, _equal_bases(band, i, j, lane)
    if equal == 0:
        if min(i, j) > 0 and score_at(band, i + j - 2, row) + scoring.mismatch + drift == score:
            return I32(1), I32(scoring.mismatch)
        return I32(0), I32(0)
    if score_at(band, i + j - 2 * equal, row) + equal * (scoring.match + drift) == score:
        return equal, I32(equal * scoring.match)
    if score_at(band, i + j - 2, row) + scoring.match + drift == score:
        return I32(1), I32(scoring.match)
    return I32(0), I32(0)


@inlined
def _explain_gap(band, i, j, score, scoring, lane):
    """As `_explain_gap` of trace.py: the shortest gap that gives the cell its score; each lane tries one length."""
    first, most = I32(1), min(max(i, j), 2 * band.height)
    while first <= most:
        size, operation = first + lane, I32(PAIR)
        cost, r = gap_cost(size, scoring) - band.drift * size, i + j - size
        if size <= j and size <= most:
            row = row_of(band, i, j - size)
            if row >= 0 and row < band.height and score_at(band, r, row) - cost == score:
                operation = I32(TARGET_ALONE)
        if operation == PAIR and size <= i and size <= most:
            row = row_of(band, i - size, j)
            if row >= 0 and row < band.height and score_at(band, r, row) - cost == score:
                operation = I32(QUERY_ALONE)
        votes = ballot(operation != PAIR)
        if votes != 0:
            best = cuda.ffs(votes) - 1
            return shuffle(operation, best), I32(first + best)
        first = I32(first + WARP)
    return I32(PAIR), I32(0)


@inlined
def trace(band, i, j, scoring, lane, runs, at):
    """As `trace` of trace.py: the runs written from `at` on, or NO_PATH; their score; how near an end they come."""
    n, last, length, near, total = I32(0), I32(PAIR), I32(0), I32(1 << 20), I32(0)
    while i > 0 or j > 0:
        row = row_of(band, i, j)
        near = I32(min(near, min(row, band.height - 1 - row)))
        score = score_at(band, i + j, row)
        operation = I32(PAIR)
        size, gain = _explain_pairs(band, i, j, score, row, scoring, lane)
        if size == 0:
            operation, size = _explain_gap(band, i, j, score, scoring, lane)
            if size == 0:
                return I32(NO_PATH), total, I32(0)
            gain = I32(-gap_cost(size, scoring))
        total = I32(total + gain)
        if operation != last and length > 0:
            if lane == 0:
                runs[at + n] = pack_run(last, length)
            n, length = I32(n + 1), I32(0)
        last, length = operation, I32(length + size)
        if operation != TARGET_ALONE:
            i = I32(i - size)
        if operation != QUERY_ALONE:
            j = I32(j - size)
    if length > 0:
        if lane == 0:
            runs[at + n] = pack_run(last, length)
        n = I32(n + 1)
    return n, total, near
