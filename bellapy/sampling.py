"""Which k-mers are counted when not all are: minimizers, closed syncmers, and homopolymer compression.

Sampling by hash (`fraction`) needs nothing here: kmers.py counts only some of its partitions.
"""

from __future__ import annotations

import numpy as np

from bellapy.errors import ParameterError
from bellapy.jit import njit
from bellapy.parallel import even_ranges, map_threads

U = np.uint64
U1, U2, U3 = U(1), U(2), U(3)
NONE = U(0xFFFFFFFFFFFFFFFF)
MIXER = U(0x9E3779B97F4A7C15)


@njit
def hash_kmers(codes, begin, end, k, out):
    """out[i] = hash of the canonical k-mer that starts at i, for i in [begin, end); NONE where there is none."""
    mask, top = (U1 << U(2 * k)) - U1, U(2 * (k - 1))
    forward, backward, run = U(0), U(0), 0
    out[begin:end] = NONE
    for i in range(begin, min(end + k - 1, codes.size)):
        c = U(codes[i])
        run = 0 if c > U3 else run + 1
        forward = ((forward << U2) | (c & U3)) & mask
        backward = (backward >> U2) | ((U3 - (c & U3)) << top)
        if run >= k:
            h = min(forward, backward) * MIXER
            out[i - k + 1] = (h ^ (h >> U(29))) * MIXER >> U1


@njit
def _smallest_in_window(hashes, n, width, smallest):
    """smallest[i] = the least of hashes[i : i + width], for the i that have a full window; a monotone queue."""
    queue = np.empty(width + 1, np.int64)
    head = size = 0
    for i in range(n):
        while size and hashes[queue[(head + size - 1) % (width + 1)]] > hashes[i]:
            size -= 1
        queue[(head + size) % (width + 1)] = i
        size += 1
        if queue[head] <= i - width:
            head = (head + 1) % (width + 1)
            size -= 1
        if i >= width - 1:
            smallest[i - width + 1] = hashes[queue[head]]


@njit
def mark_minimizers(hashes, smallest, width, begin, end, mask):
    """A k-mer is a minimizer if it is the smallest of some window of `width` consecutive k-mers."""
    for i in range(begin, end):
        if hashes[i] != NONE:
            for start in range(max(0, i - width + 1), min(i + 1, hashes.size - width + 1)):
                if smallest[start] == hashes[i]:
                    mask[i] = 1
                    break


@njit
def mark_syncmers(hashes, smallest, offset, begin, end, mask):
    """A k-mer is a closed syncmer if its first or its last s-mer, `offset` = k - s further on, is its smallest."""
    for i in range(begin, min(end, hashes.size - offset)):
        mask[i] = smallest[i] != NONE and (hashes[i] == smallest[i] or hashes[i + offset] == smallest[i])


def sampling_mask(codes: np.ndarray, k: int, sampling: str, window: int, threads: int = 1) -> np.ndarray:
    """1 where a k-mer that is to be counted may start, (n,) uint8; both strands of a sequence give the same k-mers.

    Parameters
    ----------
    sampling : "minimizer" (the smallest of `window` consecutive k-mers) or "syncmer" (closed, of s-mers with
        s = k - window + 1: about two k-mers in `window` are kept).
    """
    if sampling == "syncmer" and window >= k:
        raise ParameterError(f"--sampling-window {window}: must be smaller than k ({k}) for syncmers")
    word = k if sampling == "minimizer" else k - window + 1
    hashes, smallest = np.full((2, len(codes)), NONE, np.uint64)
    mask = np.zeros(len(codes), np.uint8)
    pieces = even_ranges(len(codes), threads)
    map_threads(lambda piece: hash_kmers(codes, *piece, word, hashes), pieces, threads)
    _smallest_in_window(hashes, len(codes), window, smallest)
    if sampling == "minimizer":
        map_threads(lambda piece: mark_minimizers(hashes, smallest, window, *piece, mask), pieces, threads)
    else:
        map_threads(lambda piece: mark_syncmers(hashes, smallest, window - 1, *piece, mask), pieces, threads)
    return mask


def compress_homopolymers(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes with every run of one base cut to its first, and where each kept base stood, (n,) int64.

    Runs of unknown bases are kept as they are, and with them the padding between reads.
    """
    keep = np.ones(len(codes), bool)
    keep[1:] = (codes[1:] != codes[:-1]) | (codes[1:] > 3)
    places = np.flatnonzero(keep)
    return codes[places], places
