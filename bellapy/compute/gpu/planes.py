"""Reads as bit planes, for GPUs.

Bit planes let the register kernel compare 16 bases at a time.  Word (b, i) holds one bit for each of the bases 32 b ..
32 b + 31, the first one in the lowest bit: for i = 0 and 1 the two bits of the code, for i = 2 whether the base is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bellapy.compute.jit import bit_of_each, njit_entry

BASES = 32  # of a word of the planes


BLOCK = 1 << 16  # bases that are uploaded together


@njit_entry
def pack_planes(codes, planes):
    """Bit planes of `codes`, uint8, into `planes`, uint32, three for each BASES codes; unknown bases fill the last word."""
    whole = len(codes) // BASES
    for word in range(whole):
        for i in range(3):
            planes[word, i] = bit_of_each(codes, BASES * word, i)
    rest = len(codes) - BASES * whole
    if rest:
        planes[whole, 0] = planes[whole, 1] = 0
        planes[whole, 2] = 0xFFFFFFFF << rest & 0xFFFFFFFF
        for j in range(rest):
            for i in range(3):
                planes[whole, i] |= np.uint32(codes[BASES * whole + j] >> i & 1) << np.uint32(j)


@njit_entry
def mark_blocks(table, n_bases, needed):
    """Set `needed`, one flag for every block, where the flanks of `table`, a `Flanks.table`, have bases.

    n_bases : of one direction.
    """
    for i in range(len(table)):
        for side in range(2):
            begin, length = table[i, 2 * side], table[i, 2 * side + 1]
            if begin >= n_bases:
                begin = 2 * n_bases - begin - length
            for block in range(begin // BLOCK, (begin + length - 1) // BLOCK + 1):
                needed[block] = True


def stretches(flags: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Beginnings and ends of the runs of set flags, cut after `most` flags."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    for begin, end in edges.reshape(-1, 2).tolist():
        for at in range(begin, end, most):
            yield at, min(at + most, end)
