"""Cutting bad ends off paths.

What is kept of a path is the stretch in which the matches, weighed by 1 - F, exceed the errors (mismatches and gap bases),
weighed by F, by most: no part of it from either of its ends has an identity below F.  So a bad end goes, and where a large X
glued two good parts through a bad one, the better part stays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, length_of, lengthened, operation_of, pack_run
from bellapy.engines.join import count_columns, is_match, places
from bellapy.params import Scoring
from bellapy.records import Overlaps, Paths, ReadSet

UNIT = 1_000_000  # weights are whole numbers of such parts


def trim_paths(
    reads: ReadSet, overlaps: Overlaps, paths: Paths, identity: float, scoring: Scoring
) -> tuple[Overlaps, Paths]:
    """Overlaps and their paths without bad ends; an overlap without any match becomes empty.  Scores are those of what is
    left."""
    n = len(paths)
    runs, offsets = np.empty(len(paths.runs), np.uint32), np.zeros(n + 1, np.int64)
    kept, counts = np.zeros((n, 4), np.int64), np.zeros((n, 4), np.int32)
    error = round(identity * UNIT)
    where = places(reads, overlaps)
    _trim_all(reads.both_ways, where, paths.runs, paths.offsets, error, runs, offsets, kept, counts)
    first_query, first_target, query_end, target_end = kept.T
    same, start, end = overlaps.strand > 0, overlaps.query_start, overlaps.query_end
    matches, mismatches, gap_bases, _ = counts.T
    return replace(
        overlaps,
        query_start=np.where(same, start + first_query, end - query_end).astype(np.int32),
        query_end=np.where(same, start + query_end, end - first_query).astype(np.int32),
        target_start=(overlaps.target_start + first_target).astype(np.int32),
        target_end=(overlaps.target_start + target_end).astype(np.int32),
        score=(scoring.match * matches + scoring.mismatch * mismatches + scoring.gap * gap_bases).astype(np.int32),
        n_matches=matches.copy(),
        n_columns=matches + mismatches + gap_bases,
    ), Paths(runs[: offsets[-1]].copy(), offsets, *(np.ascontiguousarray(column) for column in counts.T))


@njit_entry
def _trim_all(codes, where, runs, offsets, error, out, out_offsets, kept, counts):
    """Cut the ends of every path.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    where : (n, 3) int64, of join.places.
    runs, offsets : of Paths.
    error : weight of an error, in parts of UNIT; a match has the rest.
    out, out_offsets : the same of what is left, filled in.
    kept : (n, 4) int64, filled in by `_best_stretch`.
    counts : (n, 4) int32, filled in by join.count_columns.
    """
    for i in range(len(where)):
        first_run, first_base, last_run, bases = _best_stretch(
            codes, where[i], runs, offsets[i], offsets[i + 1], error, kept[i]
        )
        end = out_offsets[i]
        for j in range(first_run, last_run + 1):
            out[end] = runs[j]
            end += 1
        if end > out_offsets[i]:
            if first_run < last_run:
                out[out_offsets[i]] = lengthened(out[out_offsets[i]], -first_base)
            out[end - 1] = pack_run(PAIR, bases - (first_base if first_run == last_run else 0))
        out_offsets[i + 1] = end
        query, target, flip = where[i]
        count_columns(codes, query + kept[i, 0], target + kept[i, 1], flip, out, out_offsets[i], end, counts[i])


@njit_inner
def _best_stretch(codes, place, runs, begin, end, error, kept):
    """The stretch of a path that is kept.

    Parameters
    ----------
    codes, error : as above.
    place : one row of `where`.
    runs : uint32, of which `begin` to `end` - 1 are the path.
    kept : (4,) int64, overwritten: query and target bases before the stretch, and up to its end.

    Returns
    -------
    The run with its first column and how many bases lie before that in it; the run with its last, bases up to its end.
    """
    query, target, flip = place
    q = t = total = best = np.int64(0)
    start = begin, np.int64(0), q, t
    found = begin, np.int64(0), begin - 1, np.int64(0)
    kept[:] = 0
    for j in range(begin, end):
        op, size = operation_of(runs[j]), length_of(runs[j])
        if op != PAIR:
            total -= error * size
            if op == QUERY_ALONE:
                q += size
            else:
                t += size
            continue
        for i in range(size):
            if total < 0:
                total = np.int64(0)
                start = j, np.int64(i), q, t
            total += UNIT - error if is_match(codes, query + q, target + t, flip) else -error
            q += 1
            t += 1
            if total > best:
                best = total
                found = start[0], start[1], j, np.int64(i + 1)
                kept[0], kept[1], kept[2], kept[3] = start[2], start[3], q, t
    return found
