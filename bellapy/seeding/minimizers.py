"""Minimizers: of every `window` consecutive k-mers the one with the smallest hash (Roberts et al. 2004; Li 2016)."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_inner
from bellapy.records.bases import UNKNOWN

U = np.uint64
NONE = U(0xFFFFFFFFFFFFFFFF)


@njit_inner
def mix(word, mask):
    """A hash of 2 k bits that no two k-mers share (T. Wang's invertible integer hash).  word : uint64; mask : its bits."""
    word = (~word + (word << U(21))) & mask
    word ^= word >> U(24)
    word = (word + (word << U(3)) + (word << U(8))) & mask
    word ^= word >> U(14)
    word = (word + (word << U(2)) + (word << U(4))) & mask
    word ^= word >> U(28)
    return (word + (word << U(31))) & mask


@njit_inner
def _smallest(hashes, at, window):
    """Where in hashes, a ring of `window` uint64 whose oldest entry is the one after `at`, the newest smallest stands."""
    best = at
    for back in range(1, window):
        other = at - back
        if other < 0:
            other += window
        if hashes[other] < hashes[best]:
            best = other
    return best


@njit_inner
def find_minimizers(codes, begin, end, k, window, hashes, marks, ring, ring_marks):
    """Write the minimizers of codes[begin:end] in order; return their number.

    hashes : uint64.  marks : int64, start of the k-mer from `begin` << 1 | 1 where its reverse complement is the canonical
    form.  Both hold at least end - begin values.
    ring, ring_marks : (window,) uint64 and int64, working memory.

    Of equal hashes in a window the last one counts.  K-mers with unknown bases do not count, nor those that equal their
    reverse complement and so have no strand.
    """
    mask, top = (U(1) << U(2 * k)) - U(1), U(2 * (k - 1))
    forward = backward = U(0)
    known, n, at, best, last = 0, 0, 0, 0, np.int64(-1)
    for x in range(window):
        ring[x], ring_marks[x] = NONE, -1
    for x in range(begin, end):
        code = codes[x]
        value, mark = NONE, np.int64(-1)
        if code < UNKNOWN:
            forward = ((forward << U(2)) | U(code)) & mask
            backward = (backward >> U(2)) | (U(3 - code) << top)
            known += 1
            if known >= k and forward != backward:
                value = mix(min(forward, backward), mask)
                mark = (x - begin - k + 1) << 1 | (forward > backward)
        else:
            known = 0
        leaves = best == at  # the smallest one so far is now too old
        ring[at], ring_marks[at] = value, mark
        if leaves:
            best = _smallest(ring, at, window)
        elif value <= ring[best]:
            best = at
        if x - begin >= k + window - 2 and ring[best] != NONE and ring_marks[best] != last:
            last = ring_marks[best]
            hashes[n], marks[n] = ring[best], last
            n += 1
        at = at + 1 if at + 1 < window else 0
    return n
