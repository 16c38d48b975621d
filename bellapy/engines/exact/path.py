"""A path as runs, in the codec of `compute/runs.py`, put together part by part."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.runs import length_of, lengthened, operation_of, pack_run

LONGEST = (1 << 28) - 1
"""Bases that a run can hold."""


@njit
def add_base(out, n, operation):
    """Add a base to the last of n runs in out, (any,) uint32, or a run of another operation; their number then."""
    if n and operation_of(out[n - 1]) == operation:
        out[n - 1] = lengthened(out[n - 1], np.int64(1))
        return n
    out[n] = pack_run(operation, np.int64(1))
    return n + 1


@njit
def _join(runs):
    """Join neighbouring runs of one operation in place; their number then.  runs : (any,) uint32."""
    n = 0
    for k in range(len(runs)):
        if n and operation_of(runs[n - 1]) == operation_of(runs[k]):
            runs[n - 1] = lengthened(runs[n - 1], length_of(runs[k]))
        else:
            runs[n] = runs[k]
            n += 1
    return n


class Runs:
    """Parts of a path, in order."""

    def __init__(self, *parts: np.ndarray):
        self._parts = list(parts)

    def add(self, runs: np.ndarray) -> None:
        """(n,) uint32."""
        self._parts.append(runs)

    def add_run(self, operation: np.int64, bases: int) -> None:
        if bases:
            self.add(np.array([pack_run(operation, bases)], np.uint32))

    def extend(self, runs: Runs) -> None:
        """Add all parts of others."""
        self._parts += runs._parts

    def joined(self) -> np.ndarray:
        """(n,) uint32, neighbouring runs of one operation joined."""
        runs = np.concatenate([np.zeros(0, np.uint32), *self._parts])
        return runs[: _join(runs)].copy()


def unpacked(runs: np.ndarray) -> np.ndarray:
    """(n, 2) int64, operation and bases of every run."""
    pairs = np.empty((len(runs), 2), np.int64)
    _unpack(runs, pairs)
    return pairs


@njit
def _unpack(runs, pairs):
    """Fill `pairs`, (n, 2) int64, with operation and bases of `runs`, (n,) uint32."""
    for k in range(len(runs)):
        pairs[k, 0], pairs[k, 1] = operation_of(runs[k]), length_of(runs[k])
