"""Kernels that find minimizers on GPUs: the same as minimizers.py finds.

A k-mer is a minimizer if some window holds it in which no k-mer before it has a smaller hash, and all after it have larger
ones.  So a thread goes from its k-mer to both sides as far as that holds, and sees whether there is room for a window.
"""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import U32, U64, WARP, ballot, inlined
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, sum_before
from bellapy.seeding.gpu.kmers_kernels import kmer_at
from bellapy.seeding.minimizers import MAX_WINDOW, mix

ROOM = TILE + 2 * MAX_WINDOW
"""Hashes that a block holds."""
FLAGS = TILE // WARP
"""Words of a tile's flags: a bit for each place."""
OUTSIDE, NO_HASH = U64(0), U64(0xFFFFFFFFFFFFFFFF)
"""In the place of a hash + 1: of a k-mer that lies in no stretch, which ends all windows; of one that does not count."""


@inlined
def last_before(begins, low, high, place):
    """The last of begins[low:high], (n,) int64 ascending, that is not behind a place; low - 1 if none is."""
    while low < high:
        middle = (low + high) // 2
        if begins[middle] <= place:
            low = middle + 1
        else:
            high = middle
    return low - 1


@inlined
def _value_at(planes, k, begins, lengths, low, high, place):
    """Hash + 1 of the k-mer at a place, NO_HASH or OUTSIDE.

    planes, k, begins, lengths : as in `mark_minimizers`.  low, high : among which stretches its one is looked for.
    """
    stretch = last_before(begins, low, high, place)
    if stretch < 0 or place + k > begins[stretch] + lengths[stretch]:
        return OUTSIDE
    forward, backward, unknown = kmer_at(planes, place, k)
    if unknown != U32(0) or forward == backward:
        return NO_HASH
    return mix(min(forward, backward), (U64(1) << U64(2 * k)) - U64(1)) + U64(1)


@inlined
def _is_minimizer(values, x, window):
    """Whether the k-mer of values[x] is the smallest of a window, the last one of equal ones.  values : uint64."""
    own, n = values[x], 1
    if own == OUTSIDE or own == NO_HASH:
        return False
    left, right = x - 1, x + 1
    while n < window and values[left] >= own:
        left -= 1
        n += 1
    while n < window and values[right] > own:
        right += 1
        n += 1
    return n >= window


def mark_minimizers(planes, k, window, begins, lengths, flags, sums):
    """Set the bits of minimizers in flags, and sums[t] = minimizers at the t-th TILE places, one block for each.

    planes : (words, 3) uint32, of compute/gpu/planes.py.  k, window : of the minimizers.
    begins, lengths : (n_stretches,) int64, where the stretches begin in which they are looked for, ascending; their bases.
    flags : (n_tiles * FLAGS,) uint32.  sums : (n_tiles + 1,) int64.
    """
    values = cuda.shared.array(ROOM, np.uint64)
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, tile, n = cuda.threadIdx.x, np.int64(cuda.blockIdx.x), begins.size
    first, size = tile * TILE - window, TILE + 2 * window
    low = max(np.int64(0), last_before(begins, 0, n, first))
    high = last_before(begins, 0, n, first + size) + 1
    for x in range(me, size, BLOCK):
        values[x] = _value_at(planes, k, begins, lengths, low, high, first + x)
    cuda.syncthreads()
    found = np.int64(0)
    for r in range(OWN):
        word = ballot(_is_minimizer(values, window + r * BLOCK + me, window))
        if me % WARP == 0:
            flags[tile * FLAGS + (r * BLOCK + me) // WARP] = word
            found += np.int64(cuda.popc(word))
    _, total = sum_before(found, scratch)
    if me == 0:
        sums[tile] = total


def list_minimizers(planes, k, flags, before, hashes, marks):
    """The hashes of all minimizers and their marks, place << 1 | strand, one block for TILE places.

    planes, k : as in `mark_minimizers`.  flags : from there.  before : its sums, scanned.  hashes : (n,) uint64.
    marks : (n,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, tile = cuda.threadIdx.x, np.int64(cuda.blockIdx.x)
    mask, begin = (U64(1) << U64(2 * k)) - U64(1), before[tile]
    for first in range(0, FLAGS, BLOCK):
        at = first + me
        word = flags[tile * FLAGS + at] if at < FLAGS else U32(0)
        mine, total = sum_before(np.int64(cuda.popc(word)), scratch)
        x = begin + mine
        while word != U32(0):
            place = tile * TILE + at * WARP + np.int64(cuda.ffs(word)) - 1
            forward, backward, _ = kmer_at(planes, place, k)
            hashes[x] = mix(min(forward, backward), mask)
            marks[x] = place << 1 | np.int64(backward < forward)
            word &= word - U32(1)
            x += 1
        begin += total
