"""Reads that go round a circle more than once: their ends repeat their beginnings, and one turn of them is the circle."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bellapy.compute.jit import njit_entry
from bellapy.compute.threads import map_threads
from bellapy.jobs.assemble.graph import Arcs
from bellapy.records.bases import UNKNOWN
from bellapy.records.table import frozen

U = np.uint64
WORD, PLACE_BITS = 15, 32  # bases; bits of a place, behind those of a word
LEAST_TURN, LEAST_WORDS = 500, 50
WOBBLE = 20  # bases by which words may be more or less than a turn apart
SHARE = 0.15  # of the words behind the first turn that stand in it, too; a read with 4.5 % errors has this
GAP = 500  # bases behind the first turn without such a word, at most
LIKE = 0.9  # of the share of words that is usual of reads that go round a circle; copies of an array have less in common
ALIKE, BESIDE = 0.02, 20  # share, and bases beside it, by which two turns of one circle may differ
WHOLE = 0.8  # the same, in a read that has nothing else
PROBE, PROBED = 20, (50, 150, 300)  # bases of words that are looked for in the rest of a read, and how far from its end
CODE_BITS = 3  # of each of these bases, which may be unknown
LONGER = 1000  # bases by which a neighbour that does not go round may be longer than a turn


def unrolled(codes: np.ndarray) -> np.ndarray:
    """A corrected read that goes round a circle from end to end, cut to a turn and a half; any other one as it is.

    Many turns make the words of a small plasmid look like those of a repeat.
    """
    n, powers = len(codes), 1 << CODE_BITS * np.arange(PROBE - 1, -1, -1)
    words = [codes[n - at - PROBE : n - at] @ powers for at in PROBED if n > at + PROBE]
    if not _begins_with_any(frozen(codes), max(0, n - PROBED[-1] - PROBE), np.array(words, np.uint64)):
        return codes
    turn, share = turn_of(codes)
    return codes[: turn + max(turn // 2, LONGER)] if share >= WHOLE else codes


@njit_entry
def _begins_with_any(codes, n, words):
    """Whether one of some words, (any,) uint64, of PROBE bases stands in the codes, uint8, at one of the first n places."""
    mask, word = (U(1) << U(CODE_BITS * PROBE)) - U(1), U(0)
    for i in range(min(len(codes), n + PROBE - 1)):
        word = (word << U(CODE_BITS) | U(codes[i])) & mask
        if i >= PROBE - 1:
            for k in range(len(words)):
                if word == words[k]:
                    return True
    return False


def turn_of(codes: np.ndarray) -> tuple[int, float]:
    """Bases of one turn of a read, and the share of its words that say so; 0 and 0: it does not go round.

    Words that the read has twice are one turn apart: most of those behind the first turn, from its beginning to its end.
    """
    if len(codes) - WORD + 1 < 2 * LEAST_TURN:
        return 0, 0.0
    words = np.empty(len(codes), np.int64)
    in_order = np.sort(words[: _write_words(frozen(codes), words)])
    order = in_order & (1 << PLACE_BITS) - 1
    same = np.diff(in_order >> PLACE_BITS) == 0
    first, between = order[:-1][same], np.diff(order)[same]
    apart = np.sort(between[between >= LEAST_TURN])
    if len(apart) < LEAST_WORDS:
        return 0, 0.0
    near = np.searchsorted(apart, apart + WOBBLE) - np.arange(len(apart))
    share = np.where(near >= LEAST_WORDS, near / np.maximum(len(codes) - apart, LEAST_TURN), 0)
    at = int(share.argmax())
    turn = int(np.median(apart[at : at + near[at]]))
    shown = np.sort(first[np.abs(between - turn) < ALIKE * turn + BESIDE])
    widest = int(np.diff(shown, prepend=0, append=len(codes) - turn).max())
    return (turn, float(share[at])) if share[at] >= SHARE and widest <= GAP else (0, 0.0)


@njit_entry
def _write_words(codes, words):
    """Write the words of WORD known bases, each with its place behind it, to `words`, int64; returns how many there are.

    codes : uint8.
    """
    mask, word, known, n = (1 << 2 * WORD) - 1, 0, 0, 0
    for i in range(len(codes)):
        word, known = (word << 2 | codes[i]) & mask, known + 1 if codes[i] < UNKNOWN else 0
        if known >= WORD:
            words[n] = word << PLACE_BITS | i - WORD + 1
            n += 1
    return n


def find_turns(
    bases: Iterable[tuple[int, np.ndarray]], arcs: Arcs, lengths: np.ndarray, errors: float, threads: int = 1
) -> np.ndarray:
    """Bases of one turn of each read, (n_reads,) int64; 0 for those that do not go round a circle.

    A tandem array repeats itself, too, and so does a line whose ends are alike.  Reads of a circle have neighbours, and
    these go round as well, or are no longer than a turn; what lies in an array has neighbours that reach out of it.  The
    turns of a circle differ by errors only, the copies of an array also by what sets them apart.

    bases : reads and their codes.  arcs : of these reads.  lengths : of all reads.
    errors : of overlaps of one place, at most, as a share.
    """
    turns, shares = np.zeros(len(lengths), np.int64), np.zeros(len(lengths))
    one, other = arcs.source >> 1, arcs.target >> 1
    has_neighbour = np.bincount(one, minlength=len(lengths)) > 0
    some = [(read, codes) for read, codes in bases if has_neighbour[read]]
    for (read, _), (turn, share) in zip(some, map_threads(lambda one: turn_of(one[1]), some, threads), strict=True):
        turns[read], shares[read] = turn, share
    while True:
        turn, its = turns[one], turns[other]
        alike = np.where(its > 0, np.abs(its - turn) < ALIKE * turn + BESIDE, lengths[other] < turn + LONGER)
        out = one[(turn > 0) & ~alike]
        if not len(out):
            break
        turns[out] = 0
    for reads in _circles(turns, arcs):
        if np.median(shares[reads]) < LIKE * (1 - errors) ** WORD:
            turns[reads] = 0
    return turns


def choose_circles(turns: np.ndarray, arcs: Arcs, n_inside: np.ndarray) -> np.ndarray:
    """Of the reads that go round the same circle one, that with the most reads inside; (n,) int64.

    n_inside : (n_reads,) int64.
    """
    return np.sort([reads[n_inside[reads].argmax()] for reads in _circles(turns, arcs)]).astype(np.int64)


def _circles(turns: np.ndarray, arcs: Arcs) -> list[np.ndarray]:
    """The reads that go round each circle, ascending: those with arcs between each other."""
    n, both = len(turns), (turns[arcs.source >> 1] > 0) & (turns[arcs.target >> 1] > 0)
    ends = arcs.source[both] >> 1, arcs.target[both] >> 1
    _, circle = connected_components(csr_array((np.ones(len(ends[0]), np.int8), ends), shape=(n, n)), directed=False)
    reads = np.flatnonzero(turns)
    order = reads[np.argsort(circle[reads], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(circle[order])) + 1) if len(order) else []
