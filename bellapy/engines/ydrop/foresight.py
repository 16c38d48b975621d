"""Ends of extensions that are known before their turn: a GPU finds those of all anchors side by side, without walls.

Such an end is right as long as no wall lies where the extension has been (`is_clear` in walls.py).  The CPU then goes no
further than the end, and leaves extensions out that are too short to matter.  What a GPU hands back is not known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.params.wga import GapScores

LEAST_ANCHORS = 256
"""With fewer the GPU saves no time."""


class Foresight(NamedTuple):
    """known : (n,) bool, for each anchor.  poor : likewise, whether it leads to no alignment; `find_poor` tells (jobs/wga).

    score, r, last : (n, 2) int64, to the left and to the right: score and anti-diagonal of the end, and the last
        anti-diagonal looked at.
    """

    known: np.ndarray
    poor: np.ndarray
    score: np.ndarray
    r: np.ndarray
    last: np.ndarray


def none_known(n: int) -> Foresight:
    """The foresight of n anchors of which nothing is known."""
    return Foresight(np.zeros(n, np.bool_), np.zeros(n, np.bool_), *(np.zeros((n, 2), np.int64) for _ in range(3)))


def foresee(
    sequences: tuple[np.ndarray, np.ndarray], t: np.ndarray, q: np.ndarray, scores: GapScores, ydrop: int, means: Resources
) -> Foresight:
    """What a GPU tells of anchors; sequences : uint8 codes of target and query.  t, q : (n,) int64, places on these."""
    if means.device != "cuda" or len(t) < LEAST_ANCHORS:
        return none_known(len(t))
    from bellapy.engines.ydrop.gpu import inspect  # loads what a machine without GPUs may lack

    if not inspect.fits(scores, ydrop) or not inspect.is_packed():
        return none_known(len(t))
    left, right = (inspect.sides_of(*sequences, t + on, q + on, step) for on, step in ((0, -1), (1, 1)))
    ends = inspect.inspect(*sequences, np.concatenate((left, right)), scores, ydrop, means.devices)
    columns = (np.stack((column[: len(t)], column[len(t) :]), axis=1) for column in (ends.score, ends.r, ends.last))
    known = ends.done[: len(t)] & ends.done[len(t) :]
    return Foresight(known, np.zeros(len(t), np.bool_), *(column.astype(np.int64) for column in columns))
