"""Paths of alignments from their strokes: joined, gaps moved left, cut where the score falls too far, and counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.affine.rule import PAIR, QUERY_ALONE, TARGET_ALONE, gap_cost
from bellapy.records.bases import UNKNOWN

SIZE = np.uint32(4)
OPERATION = np.uint32(15)


class Paths(NamedTuple):
    """Alignments with their paths; all columns (n,) int64 but `runs`.

    source : the alignment that a part was cut from, as given to `join_strokes`.
    q_start, q_end, t_start, t_end : in the codes of reads and of the reference.
    score; n_matches : pairs of equal bases; n_mismatches; n_gap_bases; n_gaps : runs of gaps.
    first, count : of the runs in `runs`, uint32, length << 4 | operation, along the reference.
    """

    source: np.ndarray
    q_start: np.ndarray
    q_end: np.ndarray
    t_start: np.ndarray
    t_end: np.ndarray
    score: np.ndarray
    n_matches: np.ndarray
    n_mismatches: np.ndarray
    n_gap_bases: np.ndarray
    n_gaps: np.ndarray
    first: np.ndarray
    count: np.ndarray
    runs: np.ndarray


@njit_inner
def _append(out, first, n, run):
    """Add a run behind others, or to the last one if it is of the same operation."""
    if n > first and (out[n - 1] ^ run) & OPERATION == 0:
        out[n - 1] += run & ~OPERATION
        return n
    out[n] = run
    return n + 1


@njit_inner
def _join(strokes, begin, end, out):
    """The runs of strokes begin to end, one after the other; their number."""
    n = 0
    for s in range(begin, end):
        first, count = strokes.starts[s], strokes.counts[s]
        for x in range(count):
            n = _append(out, 0, n, strokes.runs[first + (x if strokes.backward[s] else count - 1 - x)])
    return n


@njit_inner
def _move_left(query, target, q, t, runs, n, out):
    """Move every gap as far left as it goes without a change of the score; the runs go to `out`, their number is returned.

    q, t : where the path begins.
    """
    m = 0
    for x in range(n):
        operation, size = runs[x] & OPERATION, np.int64(runs[x] >> SIZE)
        if operation == PAIR:
            q, t = q + size, t + size
        elif m > 0 and out[m - 1] & OPERATION == PAIR and x + 1 < n and runs[x + 1] & OPERATION == PAIR:
            codes, end = (query, q + size) if operation == QUERY_ALONE else (target, t + size)
            pairs, back = np.int64(out[m - 1] >> SIZE), 0
            while back < pairs - 1 and codes[end - back - 1] == codes[end - size - back - 1]:
                back += 1
            if back > 0:
                out[m - 1] -= np.uint32(back << 4)
                out[m] = runs[x]
                out[m + 1] = np.uint32(back << 4 | PAIR)
                m += 2
                if operation == QUERY_ALONE:
                    q += size
                else:
                    t += size
                continue
        if operation == QUERY_ALONE:
            q += size
        elif operation == TARGET_ALONE:
            t += size
        m = _append(out, 0, m, runs[x])
    return m


@njit_inner
def _score(a, b, scoring):
    if a >= UNKNOWN or b >= UNKNOWN:
        return scoring.unknown
    return scoring.match if a == b else scoring.mismatch


@njit_inner
def _gain(query, target, q, t, runs, begin, n, scoring, most):
    """Score of the runs from `begin` on, before the next gap that costs more than `most`."""
    score = np.int64(0)
    for x in range(begin, n):
        operation, size = runs[x] & OPERATION, np.int64(runs[x] >> SIZE)
        if operation == PAIR:
            for b in range(size):
                score += _score(query[q + b], target[t + b], scoring)
        elif gap_cost(size, scoring) > most:
            break
        else:
            score -= gap_cost(size, scoring)
        q += size if operation != TARGET_ALONE else 0
        t += size if operation != QUERY_ALONE else 0
    return score


@njit_inner
def _cut_points(query, target, q, t, runs, n, scoring, zdrop, bonus, points):
    """Where a path is to be cut: rows (run, pairs into it, run, pairs into it) of each part's beginning and end.

    A part ends at its best score when the path then falls by more than zdrop, and by what the gaps since cost that have led
    to another diagonal; the next one begins at the lowest score after that.  A path is also cut at a gap that costs more
    than the part on either side is worth.  A beginning or an end that costs more than `bonus` is left out.
    """
    n_parts, score, base, best, lowest = 0, np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    begin_run = begin_in = end_run = end_in = low_run = low_in = 0
    shift = best_shift = np.int64(0)
    falling = False
    for x in range(n):
        operation, size = runs[x] & OPERATION, np.int64(runs[x] >> SIZE)
        if operation != PAIR:
            q += size if operation == QUERY_ALONE else 0
            t += size if operation == TARGET_ALONE else 0
            shift += size if operation == TARGET_ALONE else -size
            cost = gap_cost(size, scoring)
            if cost > zdrop and not falling:
                if cost > min(best - base, _gain(query, target, q, t, runs, x + 1, n, scoring, zdrop)):
                    points[n_parts] = (begin_run, begin_in, end_run, end_in)
                    n_parts += 1
                    begin_run = end_run = x + 1
                    begin_in = end_in = 0
                    base, best, best_shift = score, score, shift
                    continue
            score -= cost
            if not falling and score - base < -bonus:
                if best - base > zdrop // 2:
                    points[n_parts] = (begin_run, begin_in, end_run, end_in)
                    n_parts += 1
                begin_run = end_run = x + 1
                begin_in = end_in = 0
                base, best, best_shift = score, score, shift
            continue
        for b in range(size):
            gained = _score(query[q + b], target[t + b], scoring)
            if falling and score < lowest:
                lowest, low_run, low_in = score, x, b
            score += gained
            if falling:
                if score - lowest > zdrop // 2:
                    begin_run, begin_in, end_run, end_in = low_run, low_in, x, b + 1
                    base, best, best_shift, falling = lowest, score, shift, False
            elif score >= best:
                best, best_shift, end_run, end_in = score, shift, x, b + 1
            elif score - base < -bonus:
                if best - base > zdrop // 2:
                    points[n_parts] = (begin_run, begin_in, end_run, end_in)
                    n_parts += 1
                begin_run = end_run = x
                begin_in = end_in = b + 1
                base, best, best_shift = score, score, shift
            elif best - score > zdrop + scoring.extend1 * abs(shift - best_shift):
                points[n_parts] = (begin_run, begin_in, end_run, end_in)
                n_parts += 1
                falling, lowest, low_run, low_in = True, score, x, b + 1
        q, t = q + size, t + size
    if not falling and best > base:
        if best - score <= bonus:
            end_run, end_in = n - 1, np.int64(runs[n - 1] >> SIZE)
        points[n_parts] = (begin_run, begin_in, end_run, end_in)
        n_parts += 1
    return n_parts


@njit_inner
def _count(query, target, q, t, runs, first, n, scoring):
    """Score, matches, mismatches, gap bases, gaps of a path; and the ends of query and target."""
    score = matches = mismatches = gap_bases = gaps = np.int64(0)
    for x in range(first, first + n):
        operation, size = runs[x] & OPERATION, np.int64(runs[x] >> SIZE)
        if operation == PAIR:
            equal = unknown = np.int64(0)
            for b in range(size):
                left, right = query[q + b], target[t + b]
                unknown += left | right >= UNKNOWN
                equal += left == right and left < UNKNOWN
            matches, mismatches = matches + equal, mismatches + size - equal
            score += equal * scoring.match + unknown * scoring.unknown + (size - equal - unknown) * scoring.mismatch
            q, t = q + size, t + size
            continue
        score -= gap_cost(size, scoring)
        gap_bases, gaps = gap_bases + size, gaps + 1
        if operation == QUERY_ALONE:
            q += size
        else:
            t += size
    return score, matches, mismatches, gap_bases, gaps, q, t


@njit
def join_strokes(query, target, strokes, spans, scoring, zdrop, bonus):
    """Paths of all alignments; one that is cut gives several, in their order.

    spans : (4, n_alignments), where each begins and ends in the codes of reads and of the reference.

    Returns the columns of Paths, (12, n), and the runs.
    """
    n_alignments = spans.shape[1]
    longest = 2
    for a in range(n_alignments):
        longest = max(longest, spans[1, a] - spans[0, a] + spans[3, a] - spans[2, a] + 4)
    joined, moved = np.empty(longest, np.uint32), np.empty(longest, np.uint32)
    points = np.empty((longest // max(1, zdrop // (4 * scoring.match)) + 4, 4), np.int64)  # each rises by a half of zdrop
    rows, n_rows = np.empty((12, max(16, 2 * n_alignments)), np.int64), 0
    runs, n_runs = np.empty(max(1024, strokes.counts.sum() + 2 * len(strokes.counts)), np.uint32), 0
    s = 0
    for a in range(n_alignments):
        begin = s
        while s < len(strokes.alignment) and strokes.alignment[s] == a:
            s += 1
        n = _join(strokes, begin, s, joined)
        q, t = spans[0, a], spans[2, a]
        n = _move_left(query, target, q, t, joined, n, moved)
        if n == 0:
            continue
        n_parts = _cut_points(query, target, q, t, moved, n, scoring, zdrop, bonus, points)
        if n_rows + n_parts > rows.shape[1]:
            more = np.empty((12, 2 * rows.shape[1] + n_parts), np.int64)
            more[:, :n_rows] = rows[:, :n_rows]
            rows = more
        if n_runs + n + 2 * n_parts > len(runs):
            longer = np.empty(2 * len(runs) + n + 2 * n_parts, np.uint32)
            longer[:n_runs] = runs[:n_runs]
            runs = longer
        at = 0
        for p in range(n_parts):
            while at < points[p, 0]:
                operation, size = moved[at] & OPERATION, np.int64(moved[at] >> SIZE)
                q += size if operation != TARGET_ALONE else 0
                t += size if operation != QUERY_ALONE else 0
                at += 1
            first = n_runs
            for x in range(points[p, 0], points[p, 2] + 1):
                low = points[p, 1] if x == points[p, 0] else 0
                high = points[p, 3] if x == points[p, 2] else np.int64(moved[x] >> SIZE)
                if high > low:
                    n_runs = _append(runs, first, n_runs, np.uint32((high - low) << 4) | (moved[x] & OPERATION))
            q_begin, t_begin = q + points[p, 1], t + points[p, 1]
            while n_runs > first and runs[n_runs - 1] & OPERATION != PAIR:  # a path begins and ends with a pair
                n_runs -= 1
            while n_runs > first and runs[first] & OPERATION != PAIR:
                q_begin += np.int64(runs[first] >> SIZE) if runs[first] & OPERATION == QUERY_ALONE else 0
                t_begin += np.int64(runs[first] >> SIZE) if runs[first] & OPERATION == TARGET_ALONE else 0
                first += 1
            if n_runs == first:
                continue
            counted = _count(query, target, q_begin, t_begin, runs, first, n_runs - first, scoring)
            rows[0, n_rows], rows[1, n_rows], rows[2, n_rows] = a, q_begin, counted[5]
            rows[3, n_rows], rows[4, n_rows] = t_begin, counted[6]
            for x in range(5):
                rows[5 + x, n_rows] = counted[x]
            rows[10, n_rows], rows[11, n_rows] = first, n_runs - first
            n_rows += 1
    return rows[:, :n_rows].copy(), runs[:n_runs]


@njit
def stray(runs, starts, counts):
    """How many diagonals the path of each solved piece leaves those between its corners, (n,) int64."""
    found = np.zeros(len(counts), np.int64)
    for p in range(len(counts)):
        shift = lowest = highest = np.int64(0)
        for x in range(starts[p], starts[p] + counts[p]):
            operation, size = runs[x] & OPERATION, np.int64(runs[x] >> SIZE)
            shift += size if operation == TARGET_ALONE else -size if operation == QUERY_ALONE else 0
            lowest, highest = min(lowest, shift), max(highest, shift)
        found[p] = max(min(0, shift) - lowest, highest - max(0, shift))
    return found


@njit
def error_rates(query, target, pieces, solved, scoring):
    """Mismatches and gap bases of all columns of each solved piece that runs forward, (n,) float64."""
    rates = np.zeros(len(solved.counts))
    for p in range(len(rates)):
        runs = solved.runs[solved.starts[p] : solved.starts[p] + solved.counts[p]][::-1].copy()
        counted = _count(query, target, pieces.q_at[p], pieces.t_at[p], runs, 0, len(runs), scoring)
        rates[p] = (counted[2] + counted[3]) / max(np.int64(1), counted[1] + counted[2] + counted[3])
    return rates
