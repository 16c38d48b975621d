"""Paths of flanks on a CPU: in narrow windows first, what outgrows them in ever wider ones."""

from __future__ import annotations

import numpy as np

from bellapy.errors import BellapyError
from bellapy.params import Scoring
from bellapy.paths.flank_paths import FlankPaths, most_runs
from bellapy.paths.lanes import trace_lanes
from bellapy.xdrop.batch_cpu import longest_first
from bellapy.xdrop.flanks import Flanks
from bellapy.xdrop.lanes import BYTE, SHORT, classes


def trace_flanks(codes: np.ndarray, flanks: Flanks, ends: np.ndarray, scoring: Scoring, longest: bool) -> FlankPaths:
    """The path of every flank's extension.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    ends : (n, 2) int64, query and target bases of the extension, as its second and third column.
    longest : the extension was SeqAn-compatible: unknown bases match each other.
    """
    starts = np.zeros(len(flanks) + 1, np.int64)
    np.cumsum(most_runs(ends, scoring, longest), out=starts[1:])
    runs, counts = np.empty(starts[-1], np.uint32), np.zeros(len(flanks), np.int64)
    todo = longest_first(ends.sum(axis=1))
    for cell in (BYTE, SHORT):
        for size in classes(scoring, cell):
            if len(todo):
                table = flanks.table(todo)
                counts[todo], failed = trace_lanes(
                    codes, table, ends[todo], size, scoring, longest, cell, runs, starts[todo]
                )
                todo = todo[failed]
    if len(todo):
        raise BellapyError(f"a path needs more than {size.height} diagonals at a time; choose a smaller --xdrop")
    return FlankPaths(runs, starts[:-1].copy(), counts)
