"""Which k-mers are counted when not all are: minimizers, closed syncmers, and homopolymer compression.

Sampling by hash (`fraction`) needs no more than how many are kept: kmers.py counts only some of its partitions.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.errors import ParameterError
from bellapy.records.bases import UNKNOWN
from bellapy.records.kmers import entry_type
from bellapy.seeding.entries import moved, place_of

U = np.uint64
U1, U2, U3 = U(1), U(2), U(3)
NONE = U(0xFFFFFFFFFFFFFFFF)
BLOCK = 1 << 16  # bases
MARK_STEP = 4  # compressed bases
MIXER = U(0x9E3779B97F4A7C15)
SHARED_SPACING = 50  # bases
MAX_SAMPLING = 16


def choose_sampling(error_rate: float | None, k: int) -> int:
    """Keep one k-mer in so many, a power of two: sound overlaps still share one in SHARED_SPACING bases.

    Two reads share a k-mer where neither has an error in it.
    """
    if error_rate is None:
        return 1
    affordable = SHARED_SPACING * (1 - error_rate) ** (2 * k)
    return min(MAX_SAMPLING, 1 << max(0, int(affordable).bit_length() - 1))


def multiplier_of(k: int) -> np.uint64:
    """What k-mers are multiplied by, modulo 4^k, for their hash: an odd number, so that no two have the same."""
    return MIXER & U((1 << 2 * k) - 1) | U1


@njit
def hash_kmers(codes, begin, end, k, out):
    """out[i - begin] = hash of the canonical k-mer that starts at i, for i in [begin, end); NONE where there is none.

    codes : (any,) uint8.  out : (end - begin,) uint64.
    """
    mask, top = (U1 << U(2 * k)) - U1, U(2 * (k - 1))
    forward, backward, run = U(0), U(0), 0
    out[:] = NONE
    for i in range(begin, min(end + k - 1, codes.size)):
        c = U(codes[i])
        run = 0 if c > U3 else run + 1
        forward = ((forward << U2) | (c & U3)) & mask
        backward = (backward >> U2) | ((U3 - (c & U3)) << top)
        if run >= k:
            h = min(forward, backward) * MIXER
            out[i - k + 1 - begin] = (h ^ (h >> U(29))) * MIXER >> U1


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
    """A k-mer is a minimizer if it is the smallest of some window of `width` consecutive k-mers.

    hashes, smallest : (n,) uint64, of k-mers and of windows that begin with them.
    mask : (end - begin,) uint8, set for k-mers [begin, end).
    """
    for i in range(begin, end):
        if hashes[i] != NONE:
            for start in range(max(0, i - width + 1), min(i + 1, hashes.size - width + 1)):
                if smallest[start] == hashes[i]:
                    mask[i - begin] = 1
                    break


@njit
def mark_syncmers(hashes, smallest, offset, begin, end, mask):
    """A k-mer is a closed syncmer if its first or its last s-mer, `offset` = k - s further on, is its smallest.

    hashes, smallest, begin, end, mask : as in `mark_minimizers`, hashes of s-mers.
    """
    for i in range(begin, min(end, hashes.size - offset)):
        mask[i - begin] = smallest[i] != NONE and (hashes[i] == smallest[i] or hashes[i + offset] == smallest[i])


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
    mask = np.zeros(len(codes), np.uint8)

    def mark(begin: int) -> None:
        end = min(len(codes), begin + BLOCK)
        low, high = max(0, begin - window + 1), min(len(codes), end + window - 1)  # all windows with a k-mer of the block
        hashes, smallest = np.empty(high - low, np.uint64), np.full(high - low, NONE)
        hash_kmers(codes, low, high, word, hashes)
        _smallest_in_window(hashes, high - low, window, smallest)
        if sampling == "minimizer":
            mark_minimizers(hashes, smallest, window, begin - low, end - low, mask[begin:end])
        else:
            mark_syncmers(hashes, smallest, window - 1, begin - low, end - low, mask[begin:end])

    map_threads(mark, range(0, len(codes), BLOCK), threads)
    return mask


@njit
def _compress(codes, out, marks):
    """Compress codes, (n,) uint8, to out, (n + 1,) uint8; return how many bases are kept.

    marks : (n / MARK_STEP + 1,) integers, where every MARK_STEP-th of them stood.
    """
    n, before = 0, UNKNOWN
    for i in range(codes.size):
        code = codes[i]
        out[n] = code
        if n % MARK_STEP == 0:
            marks[n // MARK_STEP] = i
        n += (code > 3) | (code != before)  # without a branch: the same place is written until a base is kept
        before = code
    return n


@njit
def _restore(codes, marks, begin, end, entries):
    """Give entries[begin:end] their places in codes, uint8, before compression; marks : of `_compress`."""
    for x in range(begin, end):
        place = U(place_of(entries[x]))
        i, steps = U(marks[place // U(MARK_STEP)]), place % U(MARK_STEP)
        while steps:
            i += U1
            steps -= U((codes[i] > 3) | (codes[i] != codes[i - U1]))
        entries[x] = moved(entries[x], i)


def compress_homopolymers(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes with every run of one base cut to its first, and where every MARK_STEP-th of them stood.

    Runs of unknown bases are kept as they are, and with them the padding between reads.
    """
    compressed = np.empty(len(codes) + 1, np.uint8)
    marks: np.ndarray = np.empty(len(codes) // MARK_STEP + 1, entry_type(len(codes)))
    n = _compress(codes, compressed, marks)
    return compressed[:n], marks


def restore_places(codes: np.ndarray, marks: np.ndarray, entries: np.ndarray, threads: int = 1) -> np.ndarray:
    """The entries of a matrix of compressed codes, with places in the codes before; `marks` from compress_homopolymers."""
    restored: np.ndarray = entries.astype(entry_type(len(codes)), copy=False)
    pieces = even_ranges(len(restored), threads)
    map_threads(lambda piece: _restore(codes, marks, *piece, restored), pieces, threads)
    return restored
