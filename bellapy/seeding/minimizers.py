"""Minimizers: of every `window` consecutive k-mers the one with the smallest hash (Roberts et al. 2004; Li 2016)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner, njit_vector
from bellapy.records.bases import UNKNOWN

U = np.uint64
NONE = U(0xFFFFFFFFFFFFFFFF)
MAX_WINDOW = 255
BLOCK = 2048  # windows that are looked at together


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


class Room(NamedTuple):
    """Working memory of `find_minimizers`.

    values : (BLOCK + MAX_WINDOW,) uint64, hashes of k-mers, NONE for those that do not count.
    smallest, spare : the same size, of windows that begin at each.  strands : (the same,) uint8, of the canonical forms.
    changes : (BLOCK + 1,) int64, windows that have other minimizers than those before them.
    """

    values: np.ndarray
    smallest: np.ndarray
    spare: np.ndarray
    strands: np.ndarray
    changes: np.ndarray


@njit
def make_room():
    """The working memory of one thread."""
    n = BLOCK + MAX_WINDOW
    return Room(
        np.empty(n, np.uint64),
        np.empty(n, np.uint64),
        np.empty(n, np.uint64),
        np.empty(n, np.uint8),
        np.empty(BLOCK + 1, np.int64),
    )


@njit_inner
def _read_kmers(codes, begin, end, k, state, room, at):
    """Write the canonical forms of the k-mers that end in codes[begin:end], (any,) uint8, to room (Room) from `at` on.

    state : (the k-mer before, uint64; its reverse complement, uint64; known bases up to there, int64); its new value is
    returned.
    """
    mask, top = (U(1) << U(2 * k)) - U(1), U(2 * (k - 1))
    forward, backward, known = state
    for x in range(begin, end):
        code = codes[x]
        value = NONE
        if code < UNKNOWN:
            forward = ((forward << U(2)) | U(code)) & mask
            backward = (backward >> U(2)) | (U(3 - code) << top)
            known += 1
            if known >= k and forward != backward:
                value = min(forward, backward)
        else:
            known = 0
        room.values[at], room.strands[at] = value, forward > backward
        at += 1
    return forward, backward, known


@njit_vector
def _hash_all(values, begin, end, mask):
    """Hash values[begin:end], uint64, in place; NONE stays.  mask : uint64, as in `mix`."""
    start = U(begin)
    for x in range(U(max(0, end - begin))):
        value = values[start + x]
        values[start + x] = NONE if value == NONE else mix(value, mask)


@njit_vector
def _halve(source, target, n, step):
    """The smaller one of every two of source, uint64, that are `step` apart, to target; its first n values."""
    ahead = U(step)
    for x in range(U(n)):
        target[x] = min(source[x], source[x + ahead])


@njit_inner
def _smallest_of_windows(room, n, window):
    """Write the smallest of each of the n windows that begin at room.values[0:n] to room.smallest, by spans that double.

    room : Room.
    """
    steps, span = 1, 1
    while 2 * span <= window:
        steps, span = steps + 1, 2 * span
    source, target, other = room.values, room.smallest, room.spare
    if steps % 2 == 0:
        target, other = other, target
    span = 1
    while 2 * span <= window:
        _halve(source, target, n + window - 2 * span, span)
        span, source, target, other = 2 * span, target, other, target
    _halve(source, target, n, window - span)


@njit_inner
def _find_changes(room, n, window, before):
    """Write those of n windows whose minimizer is not the one of the window before to room.changes; return their number.

    It is the newest k-mer, or another value: the last one of equal values is the last to leave.
    room : Room.  before : uint64, the smallest of the window before the first.
    """
    found, last = 0, U(window - 1)
    for x in range(U(n)):
        smallest = room.smallest[x]
        room.changes[found] = x
        found += (smallest != before) | (smallest == room.values[x + last])
        before = smallest
    return found


@njit_inner
def find_minimizers(codes, begin, end, k, window, hashes, marks, room):
    """Write the minimizers of codes[begin:end] in order; return their number.

    hashes : uint64.  marks : int64, start of the k-mer from `begin` << 1 | 1 where its reverse complement is the canonical
    form.  Both hold at least end - begin values.
    room : Room.  window : at most MAX_WINDOW.

    Of equal hashes in a window the last one counts.  K-mers with unknown bases do not count, nor those that equal their
    reverse complement and so have no strand.
    """
    mask = (U(1) << U(2 * k)) - U(1)
    state = _read_kmers(codes, begin, min(end, begin + k - 1), k, (U(0), U(0), np.int64(0)), room, np.int64(0))
    n_kmers, n, held, before = end - begin - k + 1, 0, np.int64(0), NONE
    for first in range(0, n_kmers - window + 1, BLOCK):  # the window that begins with this k-mer, and those after it
        n_windows = min(BLOCK, n_kmers - window + 1 - first)
        for x in range(held):  # those that the last windows of the block before have looked at, too
            room.values[x], room.strands[x] = room.values[BLOCK + x], room.strands[BLOCK + x]
        filled = n_windows + window - 1
        start = begin + k - 1 + first + held
        state = _read_kmers(codes, start, start + filled - held, k, state, room, held)
        _hash_all(room.values, held, filled, mask)
        _smallest_of_windows(room, n_windows, window)
        for e in range(_find_changes(room, n_windows, window, before)):
            x = room.changes[e]
            smallest, best = room.smallest[x], x + window - 1
            while room.values[best] != smallest:
                best -= 1
            if smallest != NONE:
                hashes[n], marks[n] = smallest, (first + best) << 1 | np.int64(room.strands[best])
                n += 1
        before, held = room.smallest[n_windows - 1], window - 1
    return n
