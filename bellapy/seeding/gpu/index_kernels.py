"""Kernels that make the index of a reference on GPUs: the words and buckets of index.py."""

from __future__ import annotations

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import U64, inlined
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, sum_before


def write_digits(hashes, order, number_mask, shift, digit_mask, number_bits, is_first, words):
    """words[x] = [ some bits of a hash | its number ], of the x-th minimizer in the order so far, a thread for each.

    hashes : (n,) uint64.  order : (n,) uint64, words of the digit below; is_first : there is none, so the order is theirs.
    number_mask, number_bits : of numbers in a word.  shift, digit_mask : uint64, which bits.  words : (n,) uint64.
    """
    x = cuda.grid(1)
    if x >= hashes.size:
        return
    number = U64(x) if is_first else order[x] & number_mask
    words[x] = ((hashes[number] >> shift) & digit_mask) << number_bits | number


def gather_hashes(hashes, order, number_mask, ordered):
    """ordered[x] = the hash of the x-th minimizer in order, a thread for each.

    hashes : (n,) uint64.  order, number_mask : of `write_digits`.  ordered : (n,) uint64.
    """
    x = cuda.grid(1)
    if x < ordered.size:
        ordered[x] = hashes[order[x] & number_mask]


def write_words(ordered, marks, order, number_mask, place_bits, rest_bits, starts, words):
    """The words of an index, and where buckets start, a thread for each minimizer.

    ordered : of `gather_hashes`.  marks : (n,) int64, place << 1 | strand.  order, number_mask : of `write_digits`.
    place_bits, rest_bits : uint64, as in Lookup.  starts : (n_buckets + 1,) uint32 or uint64.  words : (n,) uint64.
    """
    x = cuda.grid(1)
    n = ordered.size
    if x >= n:
        return
    value = ordered[x]
    bucket = np.int64(value >> rest_bits)
    first = np.int64(ordered[x - 1] >> rest_bits) + 1 if x > 0 else np.int64(0)
    for b in range(first, bucket + 1):
        starts[b] = x
    if x == n - 1:
        for b in range(bucket + 1, starts.size):
            starts[b] = n
    rest = value & ((U64(1) << rest_bits) - U64(1))
    words[x] = rest << place_bits | U64(marks[order[x] & number_mask])


@inlined
def _begins_run(ordered, x):
    """Whether another hash stands before the x-th one.  ordered : (n,) uint64, ascending."""
    return x == 0 or ordered[x] != ordered[x - 1]


def count_runs(ordered, sums):
    """sums[t] = different hashes that begin among the t-th TILE ones, one block for each.

    ordered : (n,) uint64, ascending.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        x = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if x < ordered.size and _begins_run(ordered, x):
            own += 1
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def list_runs(ordered, before, begins):
    """begins[r] = where the r-th different hash begins, one block for TILE of them; the last one is their end.

    ordered, before : as in `count_runs`, its sums scanned.  begins : (n_runs + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, n = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    end = min(first + OWN, np.int64(ordered.size))
    for x in range(first, end):
        if _begins_run(ordered, x):
            n += 1
    mine, _ = sum_before(n, scratch)
    at = before[cuda.blockIdx.x] + mine
    for x in range(first, end):
        if _begins_run(ordered, x):
            begins[at] = x
            at += 1
    if end == ordered.size and first < end:
        begins[begins.size - 1] = end


def count_copies(begins, most, histogram):
    """histogram[c] += runs of c hashes, of more than `most` among those of `most`; a thread for OWN runs.

    begins : of `list_runs`.  most : int64.  histogram : (most + 1,) uint64, zeros at first.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, ones = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        x = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if x < begins.size - 1:
            copies = min(begins[x + 1] - begins[x], np.int64(most))
            if copies == 1:
                ones += 1
            else:
                cuda.atomic.add(histogram, copies, U64(1))
    _, total = sum_before(ones, scratch)
    if me == 0:
        cuda.atomic.add(histogram, 1, U64(total))
