"""Extension of flanks on all cores of a CPU: narrow windows first, what outgrows them in ever wider ones."""

from __future__ import annotations

import numpy as np

from bellapy.parallel import map_threads
from bellapy.params import Scoring
from bellapy.xdrop.flanks import Flanks
from bellapy.xdrop.lanes import BYTE, SHORT, TILE, classes, extend_lanes
from bellapy.xdrop.recurrence import GUARD, extend_each

BATCH = 8192  # flanks a thread takes at a time: enough that idle lanes at its end do not matter


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, longest: bool, threads: int) -> np.ndarray:
    """Score, query bases and target bases of every flank's extension, (n, 3) int64.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    longest : the SeqAn-compatible end instead of the best one (recurrence.py).
    """
    results = np.zeros((len(flanks), 3), np.int64)
    shorter = np.minimum(flanks.query_length, flanks.target_length)
    todo = np.flatnonzero(shorter > 0)
    todo = todo[np.argsort(-shorter[todo], kind="stable")]
    for cell in (BYTE, SHORT):
        for size in classes(scoring, cell):
            if len(todo) > size.lanes // 4:
                todo = _in_lanes(codes, flanks, todo, size, scoring, longest, cell, results, threads)
    _one_by_one(codes, flanks, todo, scoring, longest, results, threads)
    return results


def _in_lanes(codes, flanks, todo, size, scoring, longest, cell, results, threads) -> np.ndarray:
    """Fill in `results`; return the flanks that outgrew their windows."""

    def extend(batch):
        results[batch], over = extend_lanes(codes, flanks.table(batch), size, scoring, longest, cell)
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
