"""From flanks to alignments: one path for every overlap, along the target's forward strand, gaps as far left as they go.

Along the target's forward strand means as SAM and PAF have it: where the reads run in opposite directions, the query's
reverse complement is aligned.

A gap moves left across a pair where the base before the gap equals its last base, so that the pairs stay equal or unequal
and the score stays too.  Gaps of one kind that meet become one.  A gap does not cross one of the other kind and leaves at
least one pair at the beginning.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE, length_of, lengthened, operation_of, pack_run
from bellapy.engines.flank_paths import FlankPaths
from bellapy.engines.lanes.bases import EVERY_BYTE, read_word
from bellapy.engines.lanes.shape import U
from bellapy.records import Overlaps, Paths, ReadSet
from bellapy.records.bases import UNKNOWN


def flank_ends(overlaps: Overlaps) -> np.ndarray:
    """Query and target bases of the extensions of all left flanks, then of all right ones, (2 n, 2) int64."""
    same = overlaps.strand > 0
    before = overlaps.seed_target - overlaps.target_start
    after = overlaps.target_end - overlaps.seed_target - overlaps.seed_length
    left = overlaps.seed_query - overlaps.query_start, np.where(same, before, after)
    right = overlaps.query_end - overlaps.seed_query - overlaps.seed_length, np.where(same, after, before)
    return np.concatenate([np.stack(side, axis=1, dtype=np.int64) for side in (left, right)])


def places(reads: ReadSet, overlaps: Overlaps) -> np.ndarray:
    """(n, 3) int64: where in `ReadSet.both_ways` the aligned bases of query and target begin, as they are read along a path,
    and 3 where the query's are to be complemented, else 0."""
    same = overlaps.strand > 0
    start, end = (reads.starts[overlaps.query_id] + position for position in (overlaps.query_start, overlaps.query_end))
    query_at = np.where(same, start, 2 * len(reads.codes) - end)
    target_at = reads.starts[overlaps.target_id] + overlaps.target_start
    return np.stack([query_at, target_at, np.where(same, 0, 3)], axis=1, dtype=np.int64)


def parts_of(overlaps: Overlaps) -> np.ndarray:
    """(n, 3) int64: the flank that lies to the left on the target, the other one, and the bases of the seed."""
    n = len(overlaps)
    left = np.arange(n)
    first = np.where(overlaps.strand > 0, left, left + n)
    return np.stack([first, 2 * left + n - first, overlaps.seed_length], axis=1, dtype=np.int64)


def join_paths(reads: ReadSet, overlaps: Overlaps, flanks: FlankPaths, beyond: FlankPaths) -> Paths:
    """Paths of overlaps.

    Parameters
    ----------
    flanks : first steps of the left flanks of all overlaps, then of the right ones, as of `Overlaps.turns`.
    beyond : their second steps, from there to `flank_ends`.
    """
    n = len(overlaps)
    room = 2 * int(flanks.counts.sum() + beyond.counts.sum()) + n
    runs, offsets, counts = np.empty(room, np.uint32), np.zeros(n + 1, np.int64), np.zeros((n, 4), np.int32)
    near, far = (flanks.runs, flanks.starts, flanks.counts), (beyond.runs, beyond.starts, beyond.counts)
    _join_all(reads.both_ways, places(reads, overlaps), parts_of(overlaps), near, far, runs, offsets, counts)
    runs = runs[: offsets[-1]].copy()
    return Paths(runs, offsets, *(np.ascontiguousarray(column) for column in counts.T))


@njit_entry
def _join_all(codes, where, table, near, far, out, offsets, found):
    """Join the runs of every overlap's flanks and seed.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    where : (n, 3) int64, of `places`.
    table : (n, 3) int64, of `parts_of`.
    near, far : runs, starts and counts of FlankPaths, of the first steps and the second ones.
    out : uint32, filled in.
    offsets : (n + 1,) int64, filled in but for the first: where the runs of each overlap begin in `out`.
    found : (n, 4) int32, filled in by `count_columns`.
    """
    for i in range(len(table)):
        query, target, flip = where[i]
        begin = end = offsets[i]
        q = t = np.int64(0)
        first, second, seed = table[i]
        for runs, starts, counts in (far, near):  # runs lead from the end of a flank to the seed
            for j in range(starts[first], starts[first] + counts[first]):
                end, q, t = _append(codes, query, target, out, begin, end, runs[j], q, t)
        end, q, t = _append(codes, query, target, out, begin, end, pack_run(PAIR, seed), q, t)
        for runs, starts, counts in (near, far):
            for j in range(starts[second] + counts[second] - 1, starts[second] - 1, -1):
                end, q, t = _append(codes, query, target, out, begin, end, runs[j], q, t)
        offsets[i + 1] = end = _settle(codes, query + q, target + t, out, begin, end)
        count_columns(codes, query, target, flip, out, begin, end, found[i])


@njit_inner
def _append(codes, query, target, out, begin, end, run, q, t):
    """Append a run to a path; a gap before it, which is whole now, goes as far left as it can.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    query, target : where the path begins in it.
    out : uint32, whose runs `begin` to `end` - 1 are the path so far; changed.
    run : what is appended.
    q, t : query and target bases of the path so far.

    Returns
    -------
    The end of the runs, and the bases then.
    """
    op, size = operation_of(run), length_of(run)
    if end > begin and operation_of(out[end - 1]) != op:
        end = _settle(codes, query + q, target + t, out, begin, end)
    if end > begin and operation_of(out[end - 1]) == op:
        out[end - 1] = lengthened(out[end - 1], size)
    else:
        out[end] = np.uint32(run)
        end += 1
    return end, q + (0 if op == TARGET_ALONE else size), t + (0 if op == QUERY_ALONE else size)


@njit_inner
def _settle(codes, query, target, out, begin, end):
    """Shift a gap at the end of a path left; return the end of the runs.

    `codes`: uint8; `query`, `target`: where the bases after the path begin in it; `out`: uint32, whose runs `begin` to
    `end` - 1 are the path; changed.
    """
    op = operation_of(out[end - 1]) if end > begin else PAIR
    if op == PAIR:
        return end
    return _shift_left(codes, (query if op == QUERY_ALONE else target) - 1, op, out, begin, end)


@njit_inner
def _shift_left(codes, at, op, out, begin, end):
    """Shift the gap at the end of `out`[`begin`:`end`], uint32; return the end of the runs.

    `codes`: uint8, of which number `at` is the gap's last base; `op`: the gap's operation.
    """
    moved = np.int64(0)
    while end - begin > 1 and operation_of(out[end - 2]) == PAIR:
        size, pairs = length_of(out[end - 1]), length_of(out[end - 2])
        least = 1 if end - begin == 2 else 0
        left = pairs
        while left > least and codes[at - moved] == codes[at - moved - size]:
            left -= 1
            moved += 1
        if left > 0:
            out[end - 2] = pack_run(PAIR, left)
            break
        end -= 1
        out[end - 1] = pack_run(op, size)
        if operation_of(out[end - 2]) != op:
            break
        end -= 1
        out[end - 1] = lengthened(out[end - 1], size)
    if moved > 0:
        out[end] = pack_run(PAIR, moved)
        end += 1
    return end


@njit_inner
def is_match(codes, query, target, flip):
    """Whether `codes`[`query`], complemented where `flip` is 3, is the known base `codes`[`target`]."""
    return (codes[query] ^ flip) == codes[target] and codes[target] != UNKNOWN


@njit_inner
def count_columns(codes, query, target, flip, runs, begin, end, found):
    """Matches, mismatches, gap bases and gaps of a path; unknown bases match nothing.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    query, target : where the path begins in it.
    flip : 3 to complement the query's bases, or 0.
    runs : uint32, of which `begin` to `end` - 1 are the path.
    found : (4,) int32, overwritten.
    """
    pairs = mismatches = gap_bases = gaps = np.int64(0)
    complement = EVERY_BYTE * U(flip)
    for j in range(begin, end):
        op, size = operation_of(runs[j]), length_of(runs[j])
        if op == PAIR:
            for i in range(0, size, 8):  # the reads' padding lets words reach beyond an end
                unequal = _unequal(read_word(codes, query + i) ^ complement, read_word(codes, target + i))
                mismatches += _count_bytes(unequal, min(size - i, 8))
            pairs += size
            query += size
            target += size
        else:
            gap_bases += size
            gaps += 1
            if op == QUERY_ALONE:
                query += size
            else:
                target += size
    found[0], found[1], found[2], found[3] = pairs - mismatches, mismatches, gap_bases, gaps


@njit_inner
def _unequal(x, y):
    """1 in every byte in which two words of codes, `x` and `y`, differ, or that is no known base."""
    z = x ^ y
    return (z | z >> U(1) | z >> U(2) | y >> U(2)) & EVERY_BYTE


@njit_inner
def _count_bytes(word, n):
    """Sum of the first `n` bytes of a `word`, 1 to 8 of 0 or 1 each."""
    return np.int64((word << U(64 - 8 * n)) * EVERY_BYTE >> U(56))
