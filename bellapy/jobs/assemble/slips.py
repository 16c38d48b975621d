"""Differences in short tandem repeats, which say nothing about where reads come from.

Polymerases and pores slip in runs of a base and in other short tandem repeats, and correction leaves what most reads have.
So two reads of one place may differ there by more bases than reads of two copies of a long repeat do elsewhere.  HiCanu
leaves such differences out for the same reason (Nurk et al. 2020, doi:10.1101/gr.263566.120).
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
def in_tandem(codes, place, low, high):
    """Whether codes[place] lies in a tandem repeat within codes[low:high]."""
    for unit in range(1, LONGEST_UNIT + 1):
        least = max(LEAST_UNITS * unit, LEAST_BASES) - unit  # bases in a row that are as those a unit later
        same = 0
        for x in range(max(low, place - least - unit + 1), min(high - unit, place + least)):
            same = same + 1 if codes[x] == codes[x + unit] != UNKNOWN else 0
            if same == least:
                return True
    return False


@njit
def count_errors(codes, starts, ids, begins, ends, turned, runs, offsets, errors):
    """errors[i] = columns of the path of overlap i without two equal bases, of which no base lies in a tandem repeat.

    codes, starts : of a ReadSet.  ids, begins, ends : (2, n) int32, query and target, and where the overlap lies on them.
    turned : (n,) bool, whether the path runs along the query backwards.  runs, offsets : of Paths.  errors : (n,) int32.
    """
    for i in range(len(turned)):
        low, t_low = starts[ids[0, i]] + begins[0, i], starts[ids[1, i]] + begins[1, i]
        high, t_high = starts[ids[0, i]] + ends[0, i], starts[ids[1, i]] + ends[1, i]
        q, t, step = (high - 1, t_low, -1) if turned[i] else (low, t_low, 1)
        errors[i] = 0
        for run in runs[offsets[i] : offsets[i + 1]]:
            operation = run & 15
            for _ in range(run >> 4):
                if operation == QUERY_ALONE:
                    errors[i] += not in_tandem(codes, q, low, high)
                elif operation == TARGET_ALONE:
                    errors[i] += not in_tandem(codes, t, t_low, t_high)
                elif not (codes[q] + codes[t] == 3 if turned[i] else codes[q] == codes[t] != UNKNOWN):
                    errors[i] += not (in_tandem(codes, q, low, high) or in_tandem(codes, t, t_low, t_high))
                q += step * (operation != TARGET_ALONE)
                t += operation != QUERY_ALONE


def without_slips(reads: ReadSet, overlaps: Overlaps, paths: Paths) -> Overlaps:
    """The overlaps of reads; columns of their paths count that have two equal bases, or that lie in no tandem repeat."""
    ids = np.stack([overlaps.query_id, overlaps.target_id])
    begins = np.stack([overlaps.query_start, overlaps.target_start])
    ends = np.stack([overlaps.query_end, overlaps.target_end])
    errors = np.empty(len(overlaps), np.int32)
    count_errors(reads.codes, reads.starts, ids, begins, ends, overlaps.strand < 0, paths.runs, paths.offsets, errors)
    return replace(overlaps, n_columns=overlaps.n_matches + errors)
