"""Sorting of 64-bit words on GPUs by some of their bits: a radix sort that keeps the order of equal ones.

Each pass sorts by one digit, the lowest first.  A block takes a tile of consecutive words.  It counts their digits; a scan
over all counts, by digit and tile, tells where each tile's words of a digit go.  Then each block puts its tile in order in
shared memory and writes it out, the words of a digit side by side.  The lanes of a warp find out by votes which of them hold
the same digit (as Merrill and Grimshaw 2011 do it).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from bellapy.compute.gpu.desk import Desk
from bellapy.compute.gpu.ops import SIMULATED, U32, U64, WARP, ballot, inlined, sync_warp
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, blocks_for, scan, sum_before

DIGIT_BITS = 3 if SIMULATED else 8
DIGITS = 1 << DIGIT_BITS
"""As many as a block has threads."""
WARPS = BLOCK // WARP


def count_digits(words, n, shift, mask, counts):
    """counts[d * n_tiles + t] = words of tile t with digit d, one block for each tile.

    words : (n or more,) uint64.  shift, mask : uint64, where the digit is.  counts : (DIGITS * n_tiles,) uint32.
    """
    here = cuda.shared.array(DIGITS, np.int32)
    me = cuda.threadIdx.x
    here[me] = 0
    cuda.syncthreads()
    for r in range(OWN):
        i = cuda.blockIdx.x * TILE + r * BLOCK + me
        if i < n:
            cuda.atomic.add(here, np.int64((words[i] >> shift) & mask), 1)
    cuda.syncthreads()
    counts[me * cuda.gridDim.x + cuda.blockIdx.x] = here[me]


@inlined
def _rank(words, n, shift, mask, begins, here, sums, to, own, places):
    """A thread's words of a tile, and their places in it when it is in order: `own` and `places`, of OWN, filled.

    words, n, shift, mask, begins : as in `scatter_digits`.  here, sums, to : shared by the block.  A word that comes to a
    place of the tile goes to this place and to[its digit] more.
    """
    me, tile = cuda.threadIdx.x, cuda.blockIdx.x
    lane, warp = me % WARP, me // WARP
    below = (U32(1) << U32(lane)) - U32(1)
    for w in range(WARPS):
        here[w, me] = 0
    cuda.syncthreads()
    for r in range(OWN):
        i = tile * TILE + (warp * OWN + r) * WARP + lane
        inside = i < n
        word = words[i] if inside else U64(0)
        digit = U32((word >> shift) & mask)
        same = ballot(inside)
        for b in range(DIGIT_BITS):
            is_set = (digit >> U32(b)) & U32(1) != U32(0)
            votes = ballot(is_set)
            same &= votes if is_set else ~votes
        rank = cuda.popc(same & below)
        before = here[warp, digit]
        sync_warp()
        if inside and rank == 0:
            here[warp, digit] = before + cuda.popc(same)
        sync_warp()
        own[r] = word
        places[r] = before + rank
    cuda.syncthreads()
    total = 0
    for w in range(WARPS):
        count = here[w, me]
        here[w, me] = total
        total += count
    before_digit, _ = sum_before(np.int64(total), sums)
    to[me] = begins[me * cuda.gridDim.x + tile] - before_digit
    for w in range(WARPS):
        here[w, me] += before_digit
    cuda.syncthreads()
    for r in range(OWN):
        places[r] += here[warp, (own[r] >> shift) & mask]


def scatter_digits(words, n, shift, mask, begins, out, carried, carried_out):
    """Write every word, and what it carries, to where its digit belongs, one block for each tile.

    words, n, shift, mask : as in `count_digits`.  begins : (DIGITS * n_tiles,) int64, the scan of its counts.
    out : (n or more,) uint64.  carried, carried_out : (n or more,) uint32, or empty: words carry nothing.
    """
    here = cuda.shared.array((WARPS, DIGITS), np.int32)
    moved = cuda.shared.array(TILE, np.uint64)
    to = cuda.shared.array(DIGITS, np.int64)
    sums = cuda.shared.array(BLOCK, np.int64)
    own, places = cuda.local.array(OWN, np.uint64), cuda.local.array(OWN, np.int32)
    goes = cuda.local.array(OWN, np.int64)
    _rank(words, n, shift, mask, begins, here, sums, to, own, places)
    me, tile = cuda.threadIdx.x, cuda.blockIdx.x
    first, n_here = tile * TILE + (me // WARP) * OWN * WARP + me % WARP, min(TILE, n - tile * TILE)
    for r in range(OWN):
        if first + r * WARP < n:
            moved[places[r]] = own[r]
    cuda.syncthreads()
    for r in range(OWN):
        place = r * BLOCK + me
        if place < n_here:
            word = moved[place]
            goes[r] = to[(word >> shift) & mask] + place
            out[goes[r]] = word
    if carried.size == 0:
        return
    cuda.syncthreads()
    for r in range(OWN):
        if first + r * WARP < n:
            moved[places[r]] = U64(carried[first + r * WARP])
    cuda.syncthreads()
    for r in range(OWN):
        place = r * BLOCK + me
        if place < n_here:
            carried_out[goes[r]] = U32(moved[place])


def sort_words(desk: Desk, words: Any, room: Any, n: int, first_bit: int, end_bit: int) -> tuple[Any, Any]:
    """Sort by bits [first_bit, end_bit); equal words keep their order.  Return the sorted words, and the other array.

    words, room : (n or more,) uint64 on the device; n of the first are sorted.  Both are overwritten.
    """
    nothing = desk.empty(0, np.uint32)
    return sort_both(desk, (words, room), (nothing, nothing), n, first_bit, end_bit)[0]


def sort_both(
    desk: Desk, words: tuple[Any, Any], carried: tuple[Any, Any], n: int, first_bit: int, end_bit: int
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The same with what each word carries, (n or more,) uint32; pairs of an array and room, as they are returned."""
    n_tiles = blocks_for(n, TILE)
    counts = desk.empty(DIGITS * n_tiles, np.uint32)
    for bit in range(first_bit, end_bit if n > 1 else first_bit, DIGIT_BITS):
        shift, mask = U64(bit), U64((1 << min(DIGIT_BITS, end_bit - bit)) - 1)
        desk.launch(count_digits, n_tiles, BLOCK, words[0], n, shift, mask, counts)
        begins, _ = scan(desk, counts)
        desk.launch(scatter_digits, n_tiles, BLOCK, words[0], n, shift, mask, begins, words[1], *carried)
        words, carried = words[::-1], carried[::-1]
    return words, carried
