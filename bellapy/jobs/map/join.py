"""Paths of alignments from their strokes: joined, gaps moved left, cut where the score falls too far, and counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, put
from bellapy.compute.runs import length_of, lengthened, operation_of, pack_run
from bellapy.engines.affine.rule import PAIR, QUERY_ALONE, TARGET_ALONE, gap_cost, pair_score
from bellapy.records.bases import UNKNOWN


class Paths(NamedTuple):
    """Alignments with their paths; all columns (n,) int64 but `runs`.

    source : the chain that a part was aligned from; as `join_strokes` gives it, the alignment that it was cut from.
    q_start, q_end, t_start, t_end : in the codes of reads and of the reference.
    score; n_matches : pairs of equal bases; n_mismatches; n_gap_bases; n_gaps : runs of gaps.
    first, n_runs : of the runs in `runs`, uint32, length << 4 | operation, along the reference.
    fall : what the score falls below its best so far, at most; of all parts of an alignment, the most.
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
    n_runs: np.ndarray
    fall: np.ndarray
    runs: np.ndarray


@njit_inner
def _unpack(run):
    """Operation and bases, int64, of a run, uint32."""
    return operation_of(run), length_of(run)


@njit_inner
def advance(operation, size):
    """Query and target bases that a run takes up: an operation and its size in bases."""
    return size if operation != TARGET_ALONE else np.int64(0), size if operation != QUERY_ALONE else np.int64(0)


@njit_inner
def append_run(out, first, n, run):
    """Add a run to out[first:n], uint32, or to the last one there if it is of the same operation; return the new end."""
    if n > first and operation_of(out[n - 1]) == operation_of(run):
        out[n - 1] = lengthened(out[n - 1], length_of(run))
        return n
    out[n] = run
    return n + 1


@njit_inner
def _join(strokes, begin, end, out):
    """The runs of strokes begin to end (of Strokes), one after the other, to out, uint32; their number."""
    n = 0
    for s in range(begin, end):
        first, count = strokes.starts[s], strokes.counts[s]
        for x in range(count):
            n = append_run(out, 0, n, strokes.runs[first + (x if strokes.backward[s] else count - 1 - x)])
    return n


@njit_inner
def _move_left(query, target, q, t, runs, n, out):
    """Move every gap as far left as it goes without a change of the score; return the number of runs then.

    query, target : (any,) uint8, codes of reads and reference.  q, t : where the path begins in them.
    runs : (n or more,) uint32.  out : uint32, gets the new runs; the caller's.
    """
    m = 0
    for x in range(n):
        operation, size = _unpack(runs[x])
        q_size, t_size = advance(operation, size)
        if (
            operation != PAIR
            and m > 0
            and operation_of(out[m - 1]) == PAIR
            and x + 1 < n
            and operation_of(runs[x + 1]) == PAIR
        ):
            codes, end = (query, q + size) if operation == QUERY_ALONE else (target, t + size)
            pairs, back = length_of(out[m - 1]), 0
            while back < pairs - 1 and codes[end - back - 1] == codes[end - size - back - 1]:
                back += 1
            if back > 0:
                out[m - 1] = lengthened(out[m - 1], -back)
                out[m] = runs[x]
                out[m + 1] = pack_run(PAIR, back)
                m += 2
                q, t = q + q_size, t + t_size
                continue
        q, t = q + q_size, t + t_size
        m = append_run(out, 0, m, runs[x])
    return m


@njit_inner
def equal_bases(query, target, q, t, most):
    """How many known bases from q and t on are equal, one after the other, at most `most`.  query, target : codes."""
    n = 0
    while n < most and query[q + n] == target[t + n] and query[q + n] < UNKNOWN:
        n += 1
    return n


@njit_inner
def _gain(query, target, q, t, runs, begin, n, scoring, most):
    """Score of runs[begin:n], uint32, before the next gap that costs more than `most`.

    query, target : codes as in `_move_left`; q, t : where runs[begin] begins in them.  scoring : AffineScoring.
    """
    score = np.int64(0)
    for x in range(begin, n):
        operation, size = _unpack(runs[x])
        if operation == PAIR:
            for b in range(size):
                score += pair_score(query[q + b], target[t + b], scoring)
        elif gap_cost(size, scoring) > most:
            break
        else:
            score -= gap_cost(size, scoring)
        q_size, t_size = advance(operation, size)
        q, t = q + q_size, t + t_size
    return score


@njit_inner
def _keep(points, kept, part, worth, least):
    """Add a part to points, (any, 4) int64, if it is worth more than `least`, or the most while there is none.

    kept : the number of parts so far, and what the first is worth where that is too little to count, else 0.
    part : (run, pairs into it, run, pairs into it), where it begins and ends.

    Returns `kept` then.
    """
    n_parts, spare = kept
    if worth <= (least if n_parts > 0 else spare):
        return kept
    points[n_parts] = part
    return (n_parts, worth) if worth <= least else (n_parts + 1, np.int64(0))


@njit_inner
def cut_points(query, target, q, t, runs, n, scoring, zdrop, bonus, points):
    """Where a path is to be cut: rows (run, pairs into it, run, pairs into it) of each part's beginning and end.

    A part ends at its best score when the path then falls by more than zdrop, and by what the gaps since cost that have led
    to another diagonal; the next one begins at the lowest score after that.  A path is also cut at a gap that costs more
    than the part on either side is worth.  A beginning or an end that costs more than `bonus` is left out.

    query, target, q, t : codes and the path's beginning in them, as in `_move_left`.  runs : (n or more,) uint32.
    scoring : AffineScoring.  points : (any, 4) int64, filled; the caller's.

    Returns the number of parts, and what the score falls below its best before it is cut, at most.
    """
    score = base = best = lowest = fall = np.int64(0)
    kept = (0, np.int64(0))
    begin_run = begin_in = end_run = end_in = low_run = low_in = 0
    shift = best_shift = np.int64(0)
    falling = False
    half = zdrop // 2
    for x in range(n):
        operation, size = _unpack(runs[x])
        q_size, t_size = advance(operation, size)
        if operation != PAIR:
            q, t, shift = q + q_size, t + t_size, shift + t_size - q_size
            cost = gap_cost(size, scoring)
            if cost > zdrop and not falling:
                if cost > min(best - base, _gain(query, target, q, t, runs, x + 1, n, scoring, zdrop)):
                    kept = _keep(points, kept, (begin_run, begin_in, end_run, end_in), best - base, np.int64(0))
                    begin_run = end_run = x + 1
                    begin_in = end_in = 0
                    base, best, best_shift = score, score, shift
                    continue
            score -= cost
            fall = max(fall, (best - score) * (not falling))
            if not falling and score - base < -bonus:
                kept = _keep(points, kept, (begin_run, begin_in, end_run, end_in), best - base, half)
                begin_run = end_run = x + 1
                begin_in = end_in = 0
                base, best, best_shift = score, score, shift
            continue
        b = 0
        while b < size:
            gained = pair_score(query[q + b], target[t + b], scoring)
            if falling and score < lowest:
                lowest, low_run, low_in = score, x, b
            score += gained
            fall = max(fall, (best - score) * (not falling))
            if falling:
                if score - lowest > half:
                    begin_run, begin_in, end_run, end_in = low_run, low_in, x, b + 1
                    base, best, best_shift, falling = lowest, score, shift, False
            elif score >= best:
                best, best_shift, end_run, end_in = score, shift, x, b + 1
            elif score - base < -bonus:
                kept = _keep(points, kept, (begin_run, begin_in, end_run, end_in), best - base, half)
                begin_run = end_run = x
                begin_in = end_in = b + 1
                base, best, best_shift = score, score, shift
            elif best - score > zdrop + scoring.extend1 * abs(shift - best_shift):
                kept = _keep(points, kept, (begin_run, begin_in, end_run, end_in), best - base, np.int64(0))
                falling, lowest, low_run, low_in = True, score, x, b + 1
            b += 1  # equal bases from here on raise the score, so that they cut nothing
            equal = equal_bases(query, target, q + b, t + b, (size - b) * (not falling))
            score, b = score + equal * scoring.match, b + equal
            if score >= best and not falling:
                best, best_shift, end_run, end_in = score, shift, x, b
        q, t = q + q_size, t + t_size
    if not falling and best > base:
        if best - score <= bonus:
            end_run, end_in = n - 1, length_of(runs[n - 1])
        kept = _keep(points, kept, (begin_run, begin_in, end_run, end_in), best - base, np.int64(0))
    return kept[0] + (kept[1] > 0), fall


@njit_inner
def count_path(query, target, q, t, runs, first, n, scoring):
    """Score, matches, mismatches, gap bases, gaps of a path; and the ends of query and target.

    query, target, q, t : codes and the path's beginning in them, as in `_move_left`.  runs[first : first + n], uint32, is
    the path.  scoring : AffineScoring.
    """
    score = matches = mismatches = gap_bases = gaps = np.int64(0)
    for x in range(first, first + n):
        operation, size = _unpack(runs[x])
        if operation == PAIR:
            equal = unknown = np.int64(0)
            for b in range(size):
                left, right = query[q + b], target[t + b]
                unknown += left | right >= UNKNOWN
                equal += left == right and left < UNKNOWN
            matches, mismatches = matches + equal, mismatches + size - equal
            score += equal * scoring.match + unknown * scoring.unknown + (size - equal - unknown) * scoring.mismatch
        else:
            score -= gap_cost(size, scoring)
            gap_bases, gaps = gap_bases + size, gaps + 1
        q_size, t_size = advance(operation, size)
        q, t = q + q_size, t + t_size
    return score, matches, mismatches, gap_bases, gaps, q, t


@njit_inner
def _copy_part(path, point, runs, n):
    """Copy a part of a path to runs, uint32, from n on, without gaps at its beginning and end.

    path : (any,) uint32, the runs of all of it.  point : (4,) int64, as in `cut_points`.

    Returns where the copied runs begin and end, and the query and target bases that were left out before them.
    """
    first, q, t = n, np.int64(0), np.int64(0)
    for x in range(point[0], point[2] + 1):
        low = point[1] if x == point[0] else 0
        high = point[3] if x == point[2] else length_of(path[x])
        if high > low:
            n = append_run(runs, first, n, pack_run(operation_of(path[x]), high - low))
    while n > first and operation_of(runs[n - 1]) != PAIR:
        n -= 1
    while n > first and operation_of(runs[first]) != PAIR:
        operation, size = _unpack(runs[first])
        q_size, t_size = advance(operation, size)
        q, t, first = q + q_size, t + t_size, first + 1
    return first, n, q, t


@njit_inner
def describe_path(query, target, begin, runs, first, n, scoring, row):
    """Write the columns of Paths of a path to a row, (13,) int64, all but `fall`.

    begin : its source, and where its first pair lies in both codes.  All else as in `count_path`.
    """
    source, q, t = begin
    counted = count_path(query, target, q, t, runs, first, n, scoring)
    row[0], row[1], row[2], row[3], row[4] = source, q, counted[5], t, counted[6]
    for x in range(5):
        row[5 + x] = counted[x]
    row[10], row[11], row[12] = first, n, 0


@njit_inner
def write_parts(query, target, whole, place, path, points, n_parts, to, scoring):
    """Write parts of a path: rows, runs, and how many there are of both, are `to`.

    query, target : codes.  whole : the alignment that they are of.  place : where it begins in both of these.
    path : (any,) uint32, its runs.  points : (n_parts or more, 4) int64, as in `cut_points`.
    to : (any, 13) int64, the columns of Paths; int64; (any,) uint32; int64.  scoring : AffineScoring.

    Returns how many rows and runs there are then.
    """
    rows, n_rows, runs, n_runs = to
    (q, t), at = place, 0
    for p in range(n_parts):
        while at < points[p, 0]:
            operation, size = _unpack(path[at])
            q_size, t_size = advance(operation, size)
            q, t, at = q + q_size, t + t_size, at + 1
        first, n_runs, q_out, t_out = _copy_part(path, points[p], runs, n_runs)
        if n_runs > first:
            begin = (whole, q + points[p, 1] + q_out, t + points[p, 1] + t_out)
            describe_path(query, target, begin, runs, first, n_runs - first, scoring, rows[n_rows])
            n_rows += 1
    return n_rows, n_runs


@njit
def _copy_rows(rows, n, longer):
    """Make the first n of `longer` like those of `rows`, (any,) or (any, any) of one type."""
    put(longer.reshape(-1), 0, rows.reshape(-1), 0, n * (rows.size // max(1, len(rows))))


@njit
def with_room(array, n, more):
    """The array, or where it has no room for `more` rows beyond the first n, a longer one that begins with these."""
    if n + more <= len(array):
        return array
    longer = np.empty((2 * len(array) + more,) + array.shape[1:], array.dtype)
    _copy_rows(array, n, longer)
    return longer


@njit
def join_strokes(query, target, strokes, spans, scoring, zdrop, bonus):
    """Paths of all alignments; one that is cut gives several, in their order.

    query, target : (any,) uint8, codes of reads and reference.  strokes : Strokes.
    spans : (4, n_alignments) int64, where each begins and ends in the codes of reads and of the reference.
    scoring : AffineScoring.  zdrop, bonus : as in `cut_points`.

    Returns the columns of Paths, (13, n), and the runs.
    """
    n_alignments = spans.shape[1]
    longest = 2
    for a in range(n_alignments):
        longest = max(longest, spans[1, a] - spans[0, a] + spans[3, a] - spans[2, a] + 4)
    joined, path = np.empty(longest, np.uint32), np.empty(longest, np.uint32)
    points = np.empty((longest // max(1, zdrop // (4 * scoring.match)) + 4, 4), np.int64)  # each rises by a half of zdrop
    rows, n_rows = np.empty((max(16, 2 * n_alignments), 13), np.int64), np.int64(0)
    runs = np.empty(max(1024, strokes.counts.sum() + 2 * len(strokes.counts)), np.uint32)
    n_runs, s = np.int64(0), 0
    for a in range(n_alignments):
        begin = s
        while s < len(strokes.alignment) and strokes.alignment[s] == a:
            s += 1
        n = _join(strokes, begin, s, joined)
        q, t = spans[0, a], spans[2, a]
        n = _move_left(query, target, q, t, joined, n, path)
        if n == 0:
            continue
        n_parts, fall = cut_points(query, target, q, t, path, n, scoring, zdrop, bonus, points)
        rows, runs = with_room(rows, n_rows, n_parts), with_room(runs, n_runs, n + 2 * n_parts)
        begin, to = n_rows, (rows, n_rows, runs, n_runs)
        n_rows, n_runs = write_parts(query, target, a, (q, t), path, points, n_parts, to, scoring)
        for x in range(begin, n_rows):
            rows[x, 12] = fall
    return rows[:n_rows].T.copy(), runs[:n_runs]


def merge_paths(one: Paths, other: Paths) -> Paths:
    """All paths of both, in the order of their sources."""
    other = other._replace(first=other.first + len(one.runs))
    columns = [np.concatenate(both) for both in zip(one, other, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Paths._make([*(column[order] for column in columns[:-1]), columns[-1]])
