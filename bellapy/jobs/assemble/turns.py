"""Reads that go round a circle more than once: their ends repeat their beginnings, and one turn of them is the circle."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bellapy.jobs.assemble.graph import Arcs
from bellapy.records.bases import UNKNOWN

WORD, PLACE_BITS = 15, 32  # bases; bits of a place, behind those of a word
LEAST_TURN, LEAST_WORDS = 500, 50
WOBBLE = 20  # bases by which words may be more or less than a turn apart
SHARE = 0.15  # of the words behind the first turn that stand in it, too; a read with 4.5 % errors has this
GAP = 500  # bases behind the first turn without such a word, at most
ALIKE, BESIDE = 0.02, 20  # share, and bases beside it, by which two turns of one circle may differ
WHOLE = 0.8  # the same, in a read that has nothing else
PROBE, PROBED = 20, (50, 150, 300)  # bases of words that are looked for in the rest of a read, and how far from its end
LONGER = 1000  # bases by which a neighbour that does not go round may be longer than a turn


def unrolled(codes: np.ndarray) -> np.ndarray:
    """A corrected read that goes round a circle from end to end, cut to a turn and a half; any other one as it is.

    Many turns make the words of a small plasmid look like those of a repeat.
    """
    text = codes.tobytes()
    ends = [text[len(text) - at - PROBE : len(text) - at] for at in PROBED if len(text) > at + PROBE]
    if not any(text.find(end) < len(text) - PROBED[-1] - PROBE for end in ends):
        return codes
    turn = turn_of(codes, WHOLE)
    return codes[: turn + max(turn // 2, LONGER)] if turn else codes


def turn_of(codes: np.ndarray, least: float = SHARE) -> int:
    """Bases of one turn of a read; 0: it does not go round.  least : share of its words that have to say so.

    Words that the read has twice are one turn apart: most of those behind the first turn, from its beginning to its end.
    """
    n = len(codes) - WORD + 1
    if n < 2 * LEAST_TURN:
        return 0
    words, known = np.zeros(n, np.int64), np.ones(n, bool)
    for i in range(WORD):
        words = words << 2 | codes[i : i + n]
        known &= codes[i : i + n] < UNKNOWN
    in_order = np.sort(words[known] << PLACE_BITS | np.flatnonzero(known))
    order = in_order & (1 << PLACE_BITS) - 1
    same = np.diff(in_order >> PLACE_BITS) == 0
    first, between = order[:-1][same], np.diff(order)[same]
    apart = np.sort(between[between >= LEAST_TURN])
    if len(apart) < LEAST_WORDS:
        return 0
    near = np.searchsorted(apart, apart + WOBBLE) - np.arange(len(apart))
    share = np.where(near >= LEAST_WORDS, near / np.maximum(len(codes) - apart, LEAST_TURN), 0)
    at = int(share.argmax())
    turn = int(np.median(apart[at : at + near[at]]))
    shown = np.sort(first[np.abs(between - turn) < ALIKE * turn + BESIDE])
    widest = int(np.diff(shown, prepend=0, append=len(codes) - turn).max())
    return turn if share[at] >= least and widest <= GAP else 0


def find_turns(bases: Iterable[tuple[int, np.ndarray]], arcs: Arcs, lengths: np.ndarray) -> np.ndarray:
    """Bases of one turn of each read, (n_reads,) int64; 0 for those that do not go round a circle.

    A tandem array repeats itself, too, and so does a line whose ends are alike.  Reads of a circle have neighbours, and
    these go round as well, or are no longer than a turn; what lies in an array has neighbours that reach out of it.

    bases : reads and their codes.  arcs : of these reads.  lengths : of all reads.
    """
    turns = np.zeros(len(lengths), np.int64)
    one, other = arcs.source >> 1, arcs.target >> 1
    has_neighbour = np.bincount(one, minlength=len(lengths)) > 0
    for read, codes in bases:
        if has_neighbour[read]:
            turns[read] = turn_of(codes)
    while True:
        turn, its = turns[one], turns[other]
        alike = np.where(its > 0, np.abs(its - turn) < ALIKE * turn + BESIDE, lengths[other] < turn + LONGER)
        out = one[(turn > 0) & ~alike]
        if not len(out):
            return turns
        turns[out] = 0


def choose_circles(turns: np.ndarray, arcs: Arcs, n_inside: np.ndarray) -> np.ndarray:
    """Of the reads that go round the same circle one, that with the most reads inside; (n,) int64.

    n_inside : (n_reads,) int64.
    """
    n, both = len(turns), (turns[arcs.source >> 1] > 0) & (turns[arcs.target >> 1] > 0)
    ends = arcs.source[both] >> 1, arcs.target[both] >> 1
    _, circle = connected_components(csr_array((np.ones(len(ends[0]), np.int8), ends), shape=(n, n)), directed=False)
    reads = np.flatnonzero(turns)
    order = reads[np.lexsort((reads, -n_inside[reads], circle[reads]))]
    return np.sort(order[np.diff(circle[order], prepend=-1) != 0])
