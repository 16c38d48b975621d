"""Kernels of counting on GPUs: bases -> words of k-mer occurrences -> runs of equal k-mers -> entries of the matrix.

A word is that of kmers.py, but it has the whole hash, less that of the first k-mer of the pass:

    [ hash of the k-mer | number in the list of wanted k-mers | reverse ]

The places of wanted k-mers are listed first, and each is marked with its pass.  So a pass goes through a byte for each
wanted k-mer, and computes the hashes of its own ones only; and a number in the list leaves more bits for the hash than a
place.  Words are made in the order of places, and a sort by hash keeps it.  So equal k-mers come together in the CPU's
order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import U32, U64, inlined, reverse_bits
from bellapy.compute.gpu.scan import BLOCK, OWN, TILE, sum_before

ONE = U64(1)
MARKS = 4  # k-mers whose marks share a word of 32 bits
NO_PASS = 255
"""The mark of a k-mer of none of the passes that are marked; these are numbered below it."""


class Wanted(NamedTuple):
    """Which k-mers, and how they are laid out in words.

    k, to_hash : int32, length; bits of a word below the hash.
    n_places : int64, places in the reads.
    multiplier, kmer_mask : uint64, of the hash.  low, end : uint64, the first hash, and the one after the last.
    """

    k: np.int32
    to_hash: np.int32
    n_places: np.int64
    multiplier: np.uint64
    kmer_mask: np.uint64
    low: np.uint64
    end: np.uint64


@inlined
def _spread(bits):
    """Bit i of 32 `bits`, uint64, to bit 2 i."""
    bits = (bits | bits << U64(16)) & U64(0x0000FFFF0000FFFF)
    bits = (bits | bits << U64(8)) & U64(0x00FF00FF00FF00FF)
    bits = (bits | bits << U64(4)) & U64(0x0F0F0F0F0F0F0F0F)
    bits = (bits | bits << U64(2)) & U64(0x3333333333333333)
    return (bits | bits << U64(1)) & U64(0x5555555555555555)


@inlined
def _plane(planes, block, plane, shift, mask):
    """Bits of one of the `planes`, (words, 3) uint32, from bit `shift` of a `block` on, as many as `mask`, uint32, has."""
    after = min(block + 1, planes.shape[0] - 1)
    return U32((U64(planes[after, plane]) << U64(32) | U64(planes[block, plane])) >> U64(shift)) & mask


@inlined
def kmer_at(planes, place, k):
    """The k-mer at a place, uint64, its reverse complement, and which of its bases are unknown, a bit each.

    planes : (words, 3) uint32, of compute/gpu/planes.py.  place : int64, in them.  k : int32, up to 32.
    """
    mask, block, shift = U32((ONE << U64(k)) - ONE), place >> 5, place & 31
    low, high = _plane(planes, block, 0, shift, mask), _plane(planes, block, 1, shift, mask)
    unknown = _plane(planes, block, 2, shift, mask)
    turn = U32(32 - k)
    forward = _spread(U64(reverse_bits(high) >> turn)) << ONE | _spread(U64(reverse_bits(low) >> turn))
    backward = _spread(U64(high ^ mask)) << ONE | _spread(U64(low ^ mask))
    return forward, backward, unknown


@inlined
def hash_at(planes, place, wanted):
    """Hash of the k-mer at a place, whether the read shows its reverse complement, and whether it is wanted.

    planes : as in `kmer_at`.  place : int64, below wanted.n_places.  wanted : Wanted.
    """
    forward, backward, unknown = kmer_at(planes, place, wanted.k)
    hashed = min(forward, backward) * wanted.multiplier & wanted.kmer_mask
    is_wanted = unknown == U32(0) and forward != backward and wanted.low <= hashed and hashed < wanted.end
    return hashed, backward < forward, is_wanted


def count_wanted(planes, wanted, sums):
    """sums[t] = wanted k-mers at the t-th TILE places, one block for each.

    planes, wanted : as in `hash_at`.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        place = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if place < wanted.n_places:
            own += np.int64(hash_at(planes, place, wanted)[2])
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def list_wanted(planes, wanted, begins, places):
    """places[x] = that of the x-th wanted k-mer, one block for TILE places.

    planes, wanted : as in `hash_at`.  begins : the sums of `count_wanted`, scanned.  places : (n,) uint32 or uint64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, found = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, U32(0)
    for i in range(OWN):
        is_wanted = first + i < wanted.n_places and hash_at(planes, first + i, wanted)[2]
        found |= (U32(1) if is_wanted else U32(0)) << U32(i)
    before, _ = sum_before(np.int64(cuda.popc(found)), scratch)
    at = begins[cuda.blockIdx.x] + before
    while found != U32(0):
        places[at] = first + np.int64(cuda.ffs(found)) - 1
        found &= found - U32(1)
        at += 1


@inlined
def _in_word(i):
    """Bits below the mark of the i-th of the k-mers that share a word."""
    return U32(8 * (i % MARKS))


def mark_passes(planes, places, wanted, to_pass, marks):
    """Write the pass of each k-mer that is listed, or NO_PASS where it is not wanted now, one block for TILE of them.

    planes, wanted : as in `hash_at`.  places : of `list_wanted`.  to_pass : uint64, bits of the hash below the pass.
    marks : (n_tiles * TILE // MARKS,) uint32, MARKS k-mers in each, the first one in its lowest byte.
    """
    for r in range(OWN // MARKS):
        at = np.int64(cuda.blockIdx.x) * (TILE // MARKS) + r * BLOCK + cuda.threadIdx.x
        word = U32(0)
        for i in range(MARKS):
            x, mark = at * MARKS + i, U32(NO_PASS)
            if x < places.size:
                hashed, _, is_wanted = hash_at(planes, np.int64(places[x]), wanted)
                if is_wanted:
                    mark = U32((hashed - wanted.low) >> to_pass)
            word |= mark << _in_word(i)
        marks[at] = word


def count_marked(marks, number, sums):
    """sums[t] = k-mers of a pass among the t-th TILE ones that are listed, one block for each.

    marks : of `mark_passes`.  number : uint32, of the pass.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN // MARKS):
        word = marks[np.int64(cuda.blockIdx.x) * (TILE // MARKS) + r * BLOCK + me]
        for i in range(MARKS):
            own += (word >> _in_word(i)) & U32(NO_PASS) == number
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def write_words(planes, places, wanted, marks, number, begins, words):
    """The words of the k-mers of a pass, in the order of places, one block for TILE k-mers that are listed.

    planes, wanted : as in `hash_at`; wanted.low is the first hash of the pass.  places : of `list_wanted`.
    marks, number : as in `count_marked`.  begins : (n_tiles + 1,) int64, of each tile.  words : (n,) uint64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    first, found = np.int64(cuda.blockIdx.x) * TILE + cuda.threadIdx.x * OWN, U32(0)
    for i in range(OWN):
        mark = (marks[(first + i) // MARKS] >> _in_word(i)) & U32(NO_PASS)
        found |= (U32(1) if mark == number else U32(0)) << U32(i)
    before, _ = sum_before(np.int64(cuda.popc(found)), scratch)
    at = begins[cuda.blockIdx.x] + before
    while found != U32(0):  # lanes of a warp have few each, at different places
        x = first + np.int64(cuda.ffs(found)) - 1
        found &= found - U32(1)
        hashed, is_reverse, _ = hash_at(planes, np.int64(places[x]), wanted)
        words[at] = (hashed - wanted.low) << U64(wanted.to_hash) | U64(x) << ONE | (ONE if is_reverse else U64(0))
        at += 1


@inlined
def _is_kept(words, i, to_hash, lower):
    """Whether `lower` words or more have the hash of words[i].  words : (n,) uint64, sorted.  to_hash : uint64."""
    mine = words[i] >> to_hash
    for back in range(lower):
        first = i - back
        if first < 0 or words[first] >> to_hash != mine:
            return False
        last = first + lower - 1
        if last < words.size and words[last] >> to_hash == mine:
            return True
    return False


@inlined
def _end_of_run(words, first, to_hash):
    """End of the run of equal hashes that begins at words[first]; words, to_hash : as in `_is_kept`."""
    mine, step = words[first] >> to_hash, 1
    while first + step < words.size and words[first + step] >> to_hash == mine:
        step *= 2
    inside, outside = first + step // 2, min(first + step, words.size)
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if words[middle] >> to_hash == mine:
            inside = middle
        else:
            outside = middle
    return outside


def count_kept(words, to_hash, lower, sums):
    """sums[t] = kept words of the t-th TILE words, one block for each.

    words, to_hash, lower : as in `_is_kept`.  sums : (n_tiles + 1,) int64.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    me, own = cuda.threadIdx.x, np.int64(0)
    for r in range(OWN):
        i = np.int64(cuda.blockIdx.x) * TILE + r * BLOCK + me
        if i < words.size and _is_kept(words, i, to_hash, lower):
            own += 1
    _, total = sum_before(own, scratch)
    if me == 0:
        sums[cuda.blockIdx.x] = total


def write_entries(words, places, to_hash, lower, begins, spectrum, entries):
    """Entries of the kept words, and the spectrum of all words that are not alone, one block for TILE words.

    words, to_hash, lower : as in `_is_kept`.  places : of `list_wanted`.  begins : (n_tiles + 1,) int64, of each tile.
    spectrum : (n,) uint64, grows.  entries : of a KmerMatrix, filled.
    """
    scratch = cuda.shared.array(BLOCK, np.int64)
    runs = cuda.shared.array(BLOCK, np.uint32)
    me, n = cuda.threadIdx.x, np.int64(0)
    first = np.int64(cuda.blockIdx.x) * TILE + me * OWN
    end = min(first + OWN, words.size)
    runs[me] = U32(0)
    for i in range(first, end):
        n += _is_kept(words, i, to_hash, lower)
    before, _ = sum_before(n, scratch)
    at, below = begins[cuda.blockIdx.x] + before, (ONE << to_hash) - ONE
    for i in range(first, end):
        word = words[i]
        begins_run = i == 0 or words[i - 1] >> to_hash != word >> to_hash
        if _is_kept(words, i, to_hash, lower):
            place = U64(places[(word & below) >> ONE])
            entries[at] = place << U64(2) | (U64(2) if begins_run else U64(0)) | word & ONE
            at += 1
        if begins_run and i + 1 < words.size and words[i + 1] >> to_hash == word >> to_hash:
            size = min(_end_of_run(words, i, to_hash) - i, spectrum.size - 1)
            if size < BLOCK:  # nearly all are short: blocks would wait for each other
                cuda.atomic.add(runs, size, U32(1))
            else:
                cuda.atomic.add(spectrum, size, ONE)
    cuda.syncthreads()
    if runs[me]:
        cuda.atomic.add(spectrum, me, U64(runs[me]))
