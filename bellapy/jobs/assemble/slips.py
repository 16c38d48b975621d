"""Differences in short tandem repeats, which say nothing about where reads come from.

Polymerases and pores slip in runs of a base and in other short tandem repeats, and correction leaves what most reads have.
So two reads of one place may differ there by more bases than reads of two copies of a long repeat do elsewhere.  HiCanu
leaves such differences out for the same reason (Nurk et al. 2020, doi:10.1101/gr.263566.120).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE, length_of, operation_of
from bellapy.engines.join import is_match, places
from bellapy.records import Overlaps, Paths, ReadSet
from bellapy.records.bases import UNKNOWN

LONGEST_UNIT = 6  # bases
LEAST_UNITS, LEAST_BASES = 3, 8  # of a tandem repeat: shorter ones are everywhere, and hold


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
def count_errors(codes, where, ends, runs, offsets, errors):
    """errors[i] = columns of the path of overlap i without two equal bases, of which no base lies in a tandem repeat.

    codes : uint8, `ReadSet.both_ways`.  where : (n, 3) int64, of join.places.  ends : (n, 2) int64, where the aligned bases
    of query and target end there.  runs, offsets : of Paths.  errors : (n,) int32.
    """
    for i in range(len(where)):
        query, target, flip = where[i]
        q, t, errors[i] = query, target, 0
        for j in range(offsets[i], offsets[i + 1]):
            operation = operation_of(runs[j])
            for _ in range(length_of(runs[j])):
                if operation != PAIR or not is_match(codes, q, t, flip):
                    unsure = operation != TARGET_ALONE and in_tandem(codes, q, query, ends[i, 0])
                    unsure = unsure or (operation != QUERY_ALONE and in_tandem(codes, t, target, ends[i, 1]))
                    errors[i] += not unsure
                q += operation != TARGET_ALONE
                t += operation != QUERY_ALONE


def without_slips(reads: ReadSet, overlaps: Overlaps, paths: Paths) -> Overlaps:
    """The overlaps of reads; columns of their paths count that have two equal bases, or that lie in no tandem repeat."""
    where, errors = places(reads, overlaps), np.empty(len(overlaps), np.int32)
    sizes = overlaps.query_end - overlaps.query_start, overlaps.target_end - overlaps.target_start
    count_errors(reads.both_ways, where, where[:, :2] + np.stack(sizes, axis=1), paths.runs, paths.offsets, errors)
    return replace(overlaps, n_columns=overlaps.n_matches + errors)
