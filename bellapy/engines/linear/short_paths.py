"""Paths as they come from a GPU: the copy of their runs takes longer than the kernels, so a run is a byte on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.runs import lengthened, operation_of, pack_run
from bellapy.records import Paths


@dataclass(frozen=True)
class ShortPaths:
    """short : uint8, short runs (gpu/join_kernels.py) of all paths.

    offsets : (n + 1,) int64; those of path i are short[offsets[i] : offsets[i + 1]].
    numbers : (n, 5) int32: runs, matches, mismatches, gap bases, gaps.
    """

    short: np.ndarray
    offsets: np.ndarray
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, begin: int, end: int) -> Paths:
        """Rows begin .. end - 1."""
        numbers = self.numbers[begin:end]
        offsets = np.concatenate(([0], np.cumsum(numbers[:, 0], dtype=np.int64)))
        runs = np.empty(offsets[-1], np.uint32)
        lengthen(self.short, self.offsets[begin : end + 1], runs, offsets)
        return Paths(runs, offsets, *(np.ascontiguousarray(column) for column in numbers[:, 1:].T))


@njit_entry
def lengthen(short, begins, runs, offsets):
    """Whole runs from short ones: neighbours of one operation belong together.

    Parameters
    ----------
    short : uint8.
    begins : (n + 1,) int64, where those of each path begin, and those of the last one end.
    runs : uint32 (compute/runs.py), filled in.
    offsets : (n + 1,) int64, where those of each path go.
    """
    for i in range(len(begins) - 1):
        at, run = offsets[i], np.uint32(0)
        for j in range(begins[i], begins[i + 1]):
            operation, size = np.int64(short[j]) & 3, np.int64(short[j]) >> 2
            if run > 0 and operation_of(run) == operation:
                run = lengthened(run, size)
                continue
            if run > 0:
                runs[at] = run
                at += 1
            run = pack_run(operation, size)
        if run > 0:
            runs[at] = run
