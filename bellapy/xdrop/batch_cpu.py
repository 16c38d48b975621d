"""Extension of flanks on all cores of a CPU: narrow lanes first, what outgrows them in wider ones, the rest one by one."""

from __future__ import annotations

import numpy as np

from bellapy.jit import njit
from bellapy.parallel import map_threads
from bellapy.params import Scoring
from bellapy.xdrop.flanks import Flanks
from bellapy.xdrop.lanes import LANES, MAX_HEIGHT, extend_lanes, fits, narrow_height, top_score
from bellapy.xdrop.wavefront import BLOCK, extend_flank

BATCH = 8192  # flanks a thread takes at a time: enough that idle lanes at its end do not matter
WIDE_BATCH = 128


@njit
def _extend_each(
    codes, query_at, query_length, target_at, target_length, complement, todo, scoring, longest, cells, results
):
    for i in todo:
        extend_flank(
            codes, query_at[i], query_length[i], target_at[i], target_length[i], complement[i], scoring, longest, cells,
            results[i],
        )  # fmt: skip


def _batches(todo: np.ndarray, size: int) -> list[np.ndarray]:
    return [todo[at : at + size] for at in range(0, len(todo), size)]


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, longest: bool, threads: int) -> np.ndarray:
    """Score, query bases and target bases of every flank's extension, (n, 3) int64.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    longest : the SeqAn-compatible end instead of the best one (wavefront.py).
    """
    results = np.zeros((len(flanks), 3), np.int64)
    shorter = np.minimum(flanks.query_length, flanks.target_length)
    todo = np.flatnonzero(shorter > 0)
    todo = todo[np.argsort(-shorter[todo], kind="stable")]
    if not longest and fits(scoring):
        for height in _heights(scoring):
            if len(todo) >= LANES:
                todo = _in_lanes(codes, flanks, todo, height, scoring, results, threads)
    _one_by_one(codes, flanks, todo, scoring, longest, results, threads)
    return results


def _heights(scoring: Scoring) -> list[int]:
    narrow = narrow_height(scoring)
    return sorted({narrow, min(2 * narrow, MAX_HEIGHT), MAX_HEIGHT})


def _in_lanes(codes, flanks, todo, height, scoring, results, threads) -> np.ndarray:
    def extend(batch):
        return extend_lanes(
            codes, flanks.query_at, flanks.target_at, flanks.complement, batch, height, scoring, top_score(scoring), results
        )

    size = min(BATCH, max(LANES, -(-len(todo) // threads)))
    return np.concatenate(map_threads(extend, _batches(todo, size), threads))


def _one_by_one(codes, flanks, todo, scoring, longest, results, threads) -> None:
    def extend(batch):
        cells = np.empty((3, int(flanks.query_length[batch].max()) + 3 * BLOCK), np.int16)
        _extend_each(
            codes, flanks.query_at, flanks.query_length, flanks.target_at, flanks.target_length, flanks.complement, batch,
            scoring, longest, cells, results,
        )  # fmt: skip

    map_threads(extend, _batches(todo, WIDE_BATCH), threads)
