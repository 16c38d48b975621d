"""Extension of flanks on all cores of a CPU: narrow windows first, what outgrows them in ever wider ones."""

from __future__ import annotations

import numpy as np

from bellapy.compute.threads import map_threads
from bellapy.engines.flanks import Flanks
from bellapy.engines.lanes.shape import BYTE, SHORT, TILE
from bellapy.engines.linear.extend_lanes import extend_lanes
from bellapy.engines.linear.rule import GUARD, extend_each
from bellapy.engines.linear.sizes import shapes
from bellapy.params import Scoring

BATCH = 8192  # flanks a thread takes at a time: enough that idle lanes at its end do not matter


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, longest: bool, threads: int) -> np.ndarray:
    """Score, query bases and target bases of every flank's extension, (n, 3) int64.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    longest : the SeqAn-compatible end instead of the best one (rule.py).
    """
    results = np.zeros((len(flanks), 3), np.int64)
    todo = longest_first(np.minimum(flanks.query_length, flanks.target_length))
    for cell in (BYTE, SHORT):
        for shape in shapes(scoring, cell):
            if len(todo) > shape.lanes // 4:
                todo = _in_lanes(codes, flanks, todo, shape, scoring, longest, cell, results, threads)
    _one_by_one(codes, flanks, todo, scoring, longest, results, threads)
    return results


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """Rows with a length above 0, the longest first; in steps if need be: 16-bit numbers are sorted much faster."""
    todo = np.flatnonzero(lengths)
    most = int(lengths.max(initial=0))
    keys = (most - lengths[todo]) >> max(0, most.bit_length() - 16)
    return todo[np.argsort(keys.astype(np.uint16), kind="stable")]


def _in_lanes(codes, flanks, todo, shape, scoring, longest, cell, results, threads) -> np.ndarray:
    """Fill in `results`; return the flanks that outgrew their windows."""

    def extend(batch):
        results[batch], over = extend_lanes(codes, flanks.table(batch), shape, scoring, longest, cell)
        return batch[over]

    most = BATCH if threads == 1 else max(4 * TILE, len(todo) // (4 * threads))  # for every thread some, to balance
    return np.concatenate(map_threads(extend, _batches(todo, min(BATCH, most)), threads))


def _one_by_one(codes, flanks, todo, scoring, longest, results, threads) -> None:
    def extend(batch):
        cells = np.empty((3, int(flanks.query_length[batch].max()) + GUARD), np.int64)
        rows = np.empty((len(batch), 3), np.int64)
        extend_each(codes, flanks.table(batch), scoring, longest, cells, rows)
        results[batch] = rows

    map_threads(extend, _batches(todo, 1), threads)


def _batches(todo: np.ndarray, size: int) -> list[np.ndarray]:
    return [todo[at : at + size] for at in range(0, len(todo), size)]
