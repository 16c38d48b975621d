"""Which of 32 hits the sieve leaves, for processors that a test names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.engines.ydrop.row import LANES
from bellapy.engines.ydrop.sieve import WORDS, pack, sieve, sieve_table
from bellapy.params.wga import HOXD70


class Rule(NamedTuple):
    sieve_table: np.ndarray
    span: int
    xdrop: int
    least: int


@njit
def _run(target, query, hits, rule, words):
    return sieve(target, query, hits, 0, len(hits), rule, words)


def sieved_hits() -> int:
    """A bit for each hit, some related over few bases, some over many."""
    rng = np.random.default_rng(11)
    target = rng.integers(0, 4, 32 * 200).astype(np.uint8)
    query = rng.integers(0, 4, len(target)).astype(np.uint8)
    for x in range(LANES):
        query[200 * x + 70 : 200 * x + 90 + x] = target[200 * x + 70 : 200 * x + 90 + x]
    hits = np.stack([np.arange(LANES, dtype=np.int64) * 200 + 70] * 2, axis=1)
    rule = Rule(sieve_table(HOXD70), 19, 910, 2500)
    return int(_run(pack(target), pack(query), hits, rule, np.empty(2 * WORDS * LANES, np.uint64)))
