"""Sums of all numbers before each one, on GPUs: where what many threads write has to go, in their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from bellapy.compute.gpu.desk import Desk
from bellapy.compute.gpu.ops import SIMULATED, inlined

BLOCK = 8 if SIMULATED else 256
"""Threads of a block."""
OWN = 4 if SIMULATED else 16
"""Consecutive items of a thread."""
TILE = BLOCK * OWN


def blocks_for(n: int, of_block: int = BLOCK) -> int:
    """Blocks that do `n` items, so many each."""
    return -(-n // of_block)


@inlined
def sum_before(value, sums):
    """Sum of the values of the threads before this one in its block, and the sum of all; all threads have to come here.

    value : int64.  sums : (BLOCK,) int64, shared, overwritten; it can be used again at once.
    """
    me, step = cuda.threadIdx.x, 1
    sums[me] = value
    cuda.syncthreads()
    while step < BLOCK:
        other = sums[me - step] if me >= step else np.int64(0)
        cuda.syncthreads()
        sums[me] += other
        cuda.syncthreads()
        step *= 2
    before, total = sums[me] - value, sums[BLOCK - 1]
    cuda.syncthreads()
    return before, total


def add_tiles(numbers, sums):
    """sums[i] = the sum of the i-th TILE numbers, one block for each.  numbers : (n,) uint32.

    sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        i = cuda.blockIdx.x * TILE + r * BLOCK + me
        if i < numbers.size:
            own += np.int64(numbers[i])
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def scan_tiles(sums):
    """Turn the sums of tiles into sums of all tiles before, the last of which is that of all; by one block.

    sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, before = cuda.threadIdx.x, np.int64(0)
    for at in range(0, sums.size, BLOCK):
        i = at + me
        value = sums[i] if i < sums.size - 1 else np.int64(0)
        mine, total = sum_before(value, scratch)
        if i < sums.size:
            sums[i] = before + mine
        before += total


def scan_numbers(numbers, sums, out):
    """out[i] = the sum of all numbers before i.  numbers : (n,) uint32.  sums : from `scan_tiles`.  out : (n,) int64."""
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, own = cuda.blockIdx.x * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    for i in range(first, min(first + OWN, numbers.size)):
        own += np.int64(numbers[i])
    before, _ = sum_before(own, scratch)
    at = sums[cuda.blockIdx.x] + before
    for i in range(first, min(first + OWN, numbers.size)):
        out[i] = at
        at += np.int64(numbers[i])


def begins_of_tiles(desk: Desk, sums: Any) -> int:
    """Turn (n_tiles + 1,) int64 numbers of tiles into those of all tiles before; return the number of all."""
    desk.launch(scan_tiles, 1, BLOCK, sums)
    return total_of(desk, sums)


def total_of(desk: Desk, sums: Any) -> int:
    """The number of all, when tiles have been scanned."""
    return int(desk.fetch(sums[-1:])[0])


def scan(desk: Desk, numbers: Any) -> tuple[Any, Any]:
    """The sum of all numbers before each one, (n,) int64, and the sums of tiles; numbers : (n,) uint32 on the device."""
    n_tiles = blocks_for(numbers.size, TILE)
    sums, out = desk.empty(n_tiles + 1, np.int64), desk.empty(numbers.size, np.int64)
    desk.launch(add_tiles, n_tiles, BLOCK, numbers, sums)
    desk.launch(scan_tiles, 1, BLOCK, sums)
    desk.launch(scan_numbers, n_tiles, BLOCK, numbers, sums, out)
    return out, sums
