"""Kernels that find the k-mers of pieces (depth.py) in all reads on GPUs: counted first, then written, by place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import U64, inlined
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, sum_before
from bellapy.seeding.gpu.kmers_kernels import ONE, Wanted, hash_at


class Listed(NamedTuple):
    """K-mers by hash, on the device: what Table of depth.py says.

    wanted : Wanted; those below the table's limit.  to_mark, to_head : uint64, bits below the prefixes.
    marks, heads, hashes : of Table.
    """

    wanted: Wanted
    to_mark: np.uint64
    to_head: np.uint64
    marks: np.ndarray
    heads: np.ndarray
    hashes: np.ndarray


@inlined
def _look_up(planes, place, listed):
    """Hash of the k-mer at a place, whether the read shows its reverse complement, and whether it is listed.

    planes, place : as in `hash_at`.  listed : Listed.
    """
    hashed, is_reverse, is_wanted = hash_at(planes, place, listed.wanted)
    if not is_wanted:
        return hashed, is_reverse, False
    prefix = hashed >> listed.to_mark
    if listed.marks[prefix >> U64(6)] >> (prefix & U64(63)) & ONE == U64(0):
        return hashed, is_reverse, False
    at, last = listed.heads[hashed >> listed.to_head], listed.heads[(hashed >> listed.to_head) + ONE]
    while at < last and listed.hashes[at] < hashed:
        at += 1
    return hashed, is_reverse, at < last and listed.hashes[at] == hashed


def count_listed(planes, listed, sums):
    """sums[t] = listed k-mers of the t-th TILE places, one block for each.

    planes, listed : as in `_look_up`.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        place = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if place < listed.wanted.n_places and _look_up(planes, place, listed)[2]:
            own += 1
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def write_listed(planes, listed, begins, found):
    """Hash, and place << 1 | reverse, of listed k-mers, in the order of places, one block for TILE places.

    planes, listed : as in `_look_up`.  begins : (n_tiles + 1,) int64, of each tile.  found : (2, n) uint64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, n = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, np.int64(0)
    end = min(first + OWN, listed.wanted.n_places)
    if begins[cuda.blockIdx.x] == begins[cuda.blockIdx.x + 1]:  # of all threads: most tiles have none
        return
    for place in range(first, end):
        n += _look_up(planes, place, listed)[2]
    before, _ = sum_before(n, scratch)
    at = begins[cuda.blockIdx.x] + before
    for place in range(first, end):
        hashed, is_reverse, is_listed = _look_up(planes, place, listed)
        if is_listed:
            found[0, at] = hashed
            found[1, at] = U64(place) << ONE | (ONE if is_reverse else U64(0))
            at += 1
