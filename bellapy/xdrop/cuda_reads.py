"""Reads on a GPU: their codes, and the same as bit planes, which the register kernel compares 16 bases at a time.

Word (b, i) of the planes holds one bit for each of the bases 32 b .. 32 b + 31, the first one in the lowest bit: for i = 0
and 1 the two bits of the code, for i = 2 whether the base is unknown.  The reversed copy that `ReadSet.both_ways` has is not
needed: kernels reverse the words.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.xdrop.cuda_ops import SIMULATED, U32, kernel_of

BASES = 32
THREADS = 32 if SIMULATED else 256


def _pack(codes, planes):
    block = cuda.grid(1)
    if block < planes.shape[0]:
        low = high = unknown = U32(0)
        for i in range(BASES):
            at = BASES * block + i
            code = codes[at] if at < codes.shape[0] else 4
            low |= U32(U32(code & 1) << U32(i))
            high |= U32(U32(code >> 1 & 1) << U32(i))
            unknown |= U32(U32(code >> 2) << U32(i))
        planes[block, 0], planes[block, 1], planes[block, 2] = low, high, unknown


def pack_planes(codes, device: int, stream):
    """Bit planes of the uint8 codes on a device; (blocks, 3) uint32 there."""
    blocks = -(-codes.shape[0] // BASES)
    planes = cuda.device_array((blocks, 3), np.uint32, stream=stream)
    kernel_of(_pack, device)[-(-blocks // THREADS), THREADS, stream](codes, planes)
    return planes


def _clear(rows):
    row = cuda.grid(1)
    if row < rows.shape[0]:
        rows[row, 0] = rows[row, 1] = rows[row, 2] = 0


def zeros_on_device(n: int, device: int, stream):
    """(n, 3) int32 zeros on a device: results of flanks that are not extended there."""
    rows = cuda.device_array((n, 3), np.int32, stream=stream)
    kernel_of(_clear, device)[-(-n // THREADS), THREADS, stream](rows)
    return rows
