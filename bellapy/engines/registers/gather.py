"""Runs of paths that kernels have written to places far apart, brought together."""

from __future__ import annotations

from numba import cuda

from bellapy.compute.gpu.ops import WARP


def gather_runs(places, counts, begins, runs, packed):
    """Copy the runs of every path to where they stand one after the other, one warp for each path.

    `places`: (n,) int64, where they are in `runs`, uint32; `counts`: (n,) int32, how many; `begins`: (n,) int64, where they
    go in `packed`, uint32.
    """
    lane, path = cuda.threadIdx.x % WARP, cuda.grid(1) // WARP
    if path < counts.shape[0]:
        for i in range(lane, counts[path], WARP):
            packed[begins[path] + i] = runs[places[path] + i]
