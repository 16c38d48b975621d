"""Paths of overlaps on a GPU: the runs of both flanks and of the seed become one path, as in join.py, a thread for each.

The last run of a path is held back until the next one is another: a gap goes left before a pair follows it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, U64, inlined, reverse_bits
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.linear.gpu.walk_kernels import lengthened, operation_of, pack_run
from bellapy.engines.registers.window import EVERY_BIT, ONE

FIRST, SECOND, SEED, QUERY, TARGET, FLIP, ROOM = range(7)
"""What the kernel is told of an overlap, int64: the flank to the left on the target and the other one, bases of the seed;
where query and target begin, and 3 to complement the query's bases, as `join.places` has it; where its runs go."""
N_SHORT, N_RUNS, N_MATCHES, N_MISMATCHES, N_GAP_BASES, N_GAPS = range(6)
COUNTED = 6
"""What it tells of its path."""
MOST = 63
"""Columns of a short run: one byte, length << 2 | operation.  A longer run becomes several."""
PARTS = 5
"""Of a path: second and first step of one flank, seed, first and second step of the other."""


class Steps(NamedTuple):
    """Runs of both steps of all flanks, first those of the first steps; each from the end of the flank to its seed.

    runs : uint32.  begins : (2 n_flanks,) int64, where they begin.  counts : (2 n_flanks,) int32, how many.
    """

    runs: np.ndarray
    begins: np.ndarray
    counts: np.ndarray


class Open(NamedTuple):
    """A path that grows.

    end : of the runs that are written.  last : the run that is held back, 0 at the start.
    """

    end: np.int64
    last: np.int64


@inlined
def length_of(run):
    """Columns of a run, int64."""
    return np.int64(run) >> np.int64(4)


@inlined
def _code(reads, at):
    """The code of the base at place `at` of `ReadSet.both_ways`; `reads`: Reads."""
    place = at if at < reads.n_bases else 2 * reads.n_bases - 1 - at
    word, bit = place >> 5, U32(place & 31)
    planes = reads.planes
    low, high, unknown = planes[word, 0] >> bit & ONE, planes[word, 1] >> bit & ONE, planes[word, 2] >> bit & ONE
    return low | high << U32(1) | unknown << U32(2)


@inlined
def _settle(reads, query, target, path, begin, out):
    """Shift the gap that a path ends with, if it ends with one, left; returns the path, Open.

    `reads`: Reads; `query`, `target`: places of the bases after the path; `path`: Open; `begin`: of the path in `out`,
    uint32, changed.
    """
    if operation_of(path.last) == PAIR:
        return path
    last_base = (query if operation_of(path.last) == QUERY_ALONE else target) - 1
    end, gap, moved, more = path.end, path.last, np.int64(0), True
    while more and end > begin and operation_of(out[end - 1]) == PAIR:
        size, left, least = length_of(gap), length_of(out[end - 1]), 1 if end - begin == 1 else 0
        while left > least and _code(reads, last_base - moved) == _code(reads, last_base - moved - size):
            left -= 1
            moved += 1
        if left > 0:
            out[end - 1] = U32(pack_run(PAIR, left))
            more = False
        else:
            end -= 1
            more = operation_of(out[end - 1]) == operation_of(gap)
            if more:
                gap = np.int64(lengthened(gap, length_of(out[end - 1])))
                end -= 1
    if moved > 0:
        out[end] = U32(gap)
        return Open(end + 1, np.int64(pack_run(PAIR, moved)))
    return Open(end, gap)


@inlined
def _append(path, run, out):
    """A path, Open, with one more run; `out`: uint32, changed."""
    if path.last > 0 and operation_of(path.last) == operation_of(run):
        return Open(path.end, np.int64(lengthened(path.last, length_of(run))))
    if path.last > 0:
        out[path.end] = U32(path.last)
        return Open(path.end + 1, run)
    return Open(path.end, run)


@inlined
def _word(planes, plane, begin, reverse):
    """One plane of 32 bases from place `begin` of the planes on, which may lie outside; `reverse`: turned around."""
    most, block = I32(planes.shape[0] - 1), I32(begin >> 5)
    low, high = planes[max(I32(0), min(block, most)), plane], planes[max(I32(0), min(I32(block + 1), most)), plane]
    word = U32((U64(high) << U64(32) | U64(low)) >> U64(begin & 31))
    return reverse_bits(word) if reverse else word


@inlined
def _count_unequal(reads, query, target, flip, size):
    """Pairs of bases that differ or are unknown.

    `reads`: Reads; `query`, `target`: where `size` bases of each begin in `ReadSet.both_ways`; `flip`: every bit set to
    complement the query's, or none, uint32.
    """
    n, planes, reverse = I32(0), reads.planes, query >= reads.n_bases
    for done in range(0, size, 32):
        at = 2 * reads.n_bases - (query + done) - 32 if reverse else query + done
        unequal = _word(planes, 2, at, reverse) | _word(planes, 2, target + done, False)
        for plane in range(2):
            unequal |= _word(planes, plane, at, reverse) ^ _word(planes, plane, target + done, False) ^ flip
        left = size - done
        n += cuda.popc(U32(unequal & (EVERY_BIT if left >= 32 else U32((ONE << U32(left)) - ONE))))
    return n


def join_flanks(reads, table, steps, out, found):
    """Join the runs of every overlap's flanks and seed.

    Parameters
    ----------
    reads : Reads.
    table : (n, 7) int64, see FIRST and on.
    steps : Steps, of 2 n flanks.
    out : uint32, filled in.
    found : (n, COUNTED) int32, filled in.
    """
    i = cuda.grid(1)
    n = table.shape[0]
    if i >= n:
        return
    begin, query, target = table[i, ROOM], table[i, QUERY], table[i, TARGET]
    path, q, t = Open(begin, np.int64(0)), np.int64(0), np.int64(0)
    for part in range(PARTS):
        flank = table[i, FIRST if part < 2 else SECOND] + (2 * n if part == 0 or part == PARTS - 1 else 0)
        first, n_runs = steps.begins[flank], np.int64(steps.counts[flank])
        if part == 2:
            n_runs = np.int64(1)
        for j in range(n_runs):
            run = np.int64(pack_run(PAIR, table[i, SEED]))
            if part != 2:
                run = np.int64(steps.runs[first + (j if part < 2 else n_runs - 1 - j)])
            op, size = operation_of(run), length_of(run)
            if operation_of(path.last) != op:
                path = _settle(reads, query + q, target + t, path, begin, out)
            path = _append(path, run, out)
            q += 0 if op == TARGET_ALONE else size
            t += 0 if op == QUERY_ALONE else size
    path = _settle(reads, query + q, target + t, path, begin, out)
    out[path.end] = U32(path.last)
    _count(reads, table[i], out, path.end + 1, found[i])


@inlined
def _count(reads, told, out, end, found):
    """Matches, mismatches, gap bases and gaps of a path; unknown bases match nothing.

    `reads`: Reads; `told`: a row of the table; `out`: uint32, where the path ends before `end`; `found`: (COUNTED,) int32.
    """
    flip = EVERY_BIT if told[FLIP] else U32(0)
    query, target, short = told[QUERY], told[TARGET], I32(0)
    pairs, unequal, gap_bases, gaps = I32(0), I32(0), I32(0), I32(0)
    for j in range(told[ROOM], end):
        op, size = operation_of(out[j]), length_of(out[j])
        short += (size + MOST - 1) // MOST
        if op == PAIR:
            unequal += _count_unequal(reads, query, target, flip, size)
            pairs += size
        else:
            gap_bases += size
            gaps += 1
        query += 0 if op == TARGET_ALONE else size
        target += 0 if op == QUERY_ALONE else size
    found[N_SHORT] = short
    found[N_RUNS], found[N_MATCHES], found[N_MISMATCHES] = end - told[ROOM], pairs - unequal, unequal
    found[N_GAP_BASES], found[N_GAPS] = gap_bases, gaps


def shorten_runs(table, found, begins, joined, packed):
    """Write the runs of every path as short ones, one path after the other, a thread for each.

    It takes whole tables: to take a column of one on a device, numba-cuda goes through its rows in Python.

    Parameters
    ----------
    table, found, joined : of `join_flanks`.
    begins : (n,) int64, where the short runs of each path go.
    packed : uint8, filled in.
    """
    i = cuda.grid(1)
    if i < table.shape[0]:
        at, first = begins[i], table[i, ROOM]
        for j in range(first, first + found[i, N_RUNS]):
            op, size = operation_of(joined[j]), length_of(joined[j])
            while size > 0:
                packed[at] = np.uint8(min(size, MOST) << 2 | op)
                size -= MOST
                at += 1
