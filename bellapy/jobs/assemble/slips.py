"""Gaps that are some units of a tandem repeat more or less, which say nothing about where reads come from.

Polymerases and pores slip in runs of a base and in other short tandem repeats, and correction leaves what most reads have.
So two reads of one place may differ there by more bases than reads of two copies of a repeat do elsewhere.  HiCanu leaves
such differences out for the same reason (Nurk et al. 2020, doi:10.1101/gr.263566.120).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.records import Overlaps, Paths, ReadSet
from bellapy.records.bases import UNKNOWN

LONGEST_UNIT = 6  # bases
LEAST_UNITS, LEAST_BASES = 3, 8  # of a tandem repeat: shorter ones are everywhere, and hold
QUERY_ALONE, TARGET_ALONE = 1, 2  # operations of Paths


@njit_inner
def is_slip(codes, begin, end, low, high):
    """Whether codes[begin:end] are whole units of a tandem repeat that lies in codes[low:high]."""
    for unit in range(1, LONGEST_UNIT + 1):
        if (end - begin) % unit:
            continue
        first, last = begin, begin
        while first > low and codes[first - 1] == codes[first - 1 + unit] != UNKNOWN:
            first -= 1
        while last + unit < high and codes[last] == codes[last + unit] != UNKNOWN:
            last += 1
        last += unit
        if last >= end and last - first >= max(LEAST_UNITS * unit, LEAST_BASES):
            return True
    return False


@njit
def count_slips(codes, starts, ids, begins, ends, turned, runs, offsets, slips):
    """slips[i] = bases of overlap i that one read has alone and that are such gaps.

    codes, starts : of a ReadSet.  ids, begins, ends : (2, n) int32, query and target, and where the overlap lies on them.
    turned : (n,) bool, whether the path runs along the query backwards.  runs, offsets : of Paths.  slips : (n,) int64.
    """
    for i in range(len(turned)):
        low = (starts[ids[0, i]] + begins[0, i], starts[ids[1, i]] + begins[1, i])
        high = (starts[ids[0, i]] + ends[0, i], starts[ids[1, i]] + ends[1, i])
        query, target = high[0] if turned[i] else low[0], low[1]
        slips[i] = 0
        for run in runs[offsets[i] : offsets[i + 1]]:
            n, operation = np.int64(run >> 4), run & 15
            if operation != TARGET_ALONE:
                query += -n if turned[i] else n
            if operation != QUERY_ALONE:
                target += n
            if operation == QUERY_ALONE:
                begin = query if turned[i] else query - n
                slips[i] += n * is_slip(codes, begin, begin + n, low[0], high[0])
            elif operation == TARGET_ALONE:
                slips[i] += n * is_slip(codes, target - n, target, low[1], high[1])


def without_slips(reads: ReadSet, overlaps: Overlaps, paths: Paths) -> Overlaps:
    """The overlaps of reads; such gaps do not count among the columns of their paths."""
    ids, begins, ends = (
        np.stack(columns)
        for columns in (
            (overlaps.query_id, overlaps.target_id), (overlaps.query_start, overlaps.target_start),
            (overlaps.query_end, overlaps.target_end),
        )
    )  # fmt: skip
    slips = np.empty(len(overlaps), np.int64)
    count_slips(reads.codes, reads.starts, ids, begins, ends, overlaps.strand < 0, paths.runs, paths.offsets, slips)
    return replace(overlaps, n_columns=(overlaps.n_columns - slips).astype(np.int32))
