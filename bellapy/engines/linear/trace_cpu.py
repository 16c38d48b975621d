"""Paths of overlaps on a CPU: flanks in narrow windows first, what outgrows them in ever wider ones; then joined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines.ends import End
from bellapy.engines.flank_paths import FlankPaths, most_runs
from bellapy.engines.flanks import Flanks, make_flanks
from bellapy.engines.join import flank_ends, join_paths
from bellapy.engines.lanes.shape import BYTE, SHORT, TILE
from bellapy.engines.linear.sizes import shapes
from bellapy.engines.linear.trace_lanes import trace_lanes
from bellapy.errors import BellapyError
from bellapy.params import Scoring
from bellapy.records import Overlaps, Paths, ReadSet


def trace_overlaps(
    reads: ReadSet, overlaps: Overlaps, steps: Sequence[Scoring], end: End, resources: Resources
) -> Paths:  # fmt: skip
    """Paths of overlaps: of their left flanks, then of the right ones, of the first step, and of the second one."""
    flanks, turns = make_flanks(reads, overlaps.anchors), overlaps.turns
    near = trace_flanks(reads.both_ways, flanks, turns, steps[0], end, resources)
    beyond, left = flanks.beyond(np.arange(len(flanks)), turns), flank_ends(overlaps) - turns
    return join_paths(reads, overlaps, near, trace_flanks(reads.both_ways, beyond, left, steps[-1], end, resources))


def trace_flanks(
    codes: np.ndarray, flanks: Flanks, ends: np.ndarray, scoring: Scoring, end: End, resources: Resources
) -> FlankPaths:
    """The path of every flank's extension.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    ends : (n, 2) int64, query and target bases of the extension, as `Ends.bases`.
    """
    longest, threads = end is End.LONGEST, resources.threads
    starts = np.zeros(len(flanks) + 1, np.int64)
    np.cumsum(most_runs(ends, scoring, longest), out=starts[1:])
    runs, counts = np.empty(starts[-1], np.uint32), np.zeros(len(flanks), np.int64)
    bases = ends.sum(axis=1)
    todo = np.flatnonzero(bases)
    todo = todo[np.argsort(-bases[todo], kind="stable")]
    failed = np.ones(len(flanks), np.bool_)
    for cell in (BYTE, SHORT):
        for shape in shapes(scoring, cell):

            def trace(rows, shape=shape, cell=cell):
                counts[rows], failed[rows] = trace_lanes(
                    codes, flanks.table(rows), ends[rows], shape, scoring, longest, cell, runs, starts[rows]
                )

            map_threads(trace, _shares(todo, threads), threads)
            todo = todo[failed[todo]]
    if len(todo):
        raise BellapyError(f"a path needs more than {shape.height} diagonals at a time; choose a smaller --xdrop")
    return FlankPaths(runs, starts[:-1].copy(), counts)


def _shares(todo: np.ndarray, threads: int) -> list[np.ndarray]:
    """A share of the flanks for each thread, all with as many long ones, in the same order."""
    n = max(1, min(threads, len(todo) // TILE))
    return [todo[i::n] for i in range(n) if len(todo)]
