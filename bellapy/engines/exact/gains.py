"""Bounds along a sequence: what a path gains at most where words of it do not occur in the other one (docs/exact.md)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import map_threads
from bellapy.engines.exact.rule import Scores
from bellapy.engines.exact.words import break_cost, mark_words, push, unknown_cost, word_length
from bellapy.records.bases import UNKNOWN

BLOCK = 32
"""Rows, or columns, that share an interval."""

PART = 1 << 20  # bases that are looked at in one go, unless windows are wider
FULL = 255  # a count that stays: it may be too high, which only weakens the bound


class Gains(NamedTuple):
    """Bounds along one sequence: from base i to base k > i a path gains at most end[k] - start[i]; (bases + 1,) int32."""

    start: np.ndarray
    end: np.ndarray

    def ahead(self, to_the_end: bool) -> np.ndarray:
        """(bases + 1,) the most that is gained from each base on: to the sequence's end, or to wherever it is most."""
        ahead = np.empty(len(self.end), np.int32)
        _gain_ahead(self.start, self.end, to_the_end, ahead)
        return ahead

    def behind(self, from_the_start: bool) -> np.ndarray:
        """The most that is gained up to each base."""
        behind = np.empty(len(self.end), np.int32)
        _gain_behind(self.start, self.end, from_the_start, behind)
        return behind


@njit
def _gain_ahead(start, end, to_the_end, ahead):
    """Fill `ahead`, (bases + 1,) int32, as Gains has it; `start`, `end`: of Gains."""
    most = end[-1]
    for i in range(len(end) - 1, -1, -1):
        most = most if to_the_end else max(most, end[i])
        ahead[i] = most - start[i]


@njit
def _gain_behind(start, end, from_the_start, behind):
    """Fill `behind`, (bases + 1,) int32, as Gains has it; `start`, `end`: of Gains."""
    least = start[0]
    for i in range(len(end)):
        least = least if from_the_start else min(least, start[i])
        behind[i] = end[i] - least


class _Words(NamedTuple):
    """Words of k bases, what one that is broken costs, and an unknown base.

    counts : (4^k,) uint8, of words within the corridor.  is_full : whether all of the target is counted; else none is.
    """

    k: int
    cost: int
    unknown: int
    counts: np.ndarray
    is_full: bool


@njit
def _absent_words(query, target, first, last, corridor, words, costs, ends):
    """Disjoint words of a part of the query that the target does not hold in the columns that a corridor leaves their block.

    query, target : (any,) uint8 codes.  first, last : bases of the part, the latter excluded.  corridor : Corridor.
    words : _Words.
    costs, ends : (bases + 1,) int32, zeros: the cost of the word that starts here, and of the one that ends here.
    """
    k, counts = words.k, words.counts
    m = len(target)
    mask = np.uint64((1 << (2 * k)) - 1)
    added = removed = m if words.is_full else min(m, corridor.first[first // BLOCK])  # words of the target
    word = new_word = old_word = np.uint64(0)
    known = new_known = old_known = 0
    free, new_at, old_at = first, added, removed
    for end in range(first + 1, last + 1):
        base = query[end - 1]
        word, known = push(word, known, base, mask)
        if base >= UNKNOWN and end - 1 >= free:
            costs[end - 1] += words.unknown
            ends[end] += words.unknown
            free = end
        begin = end - k
        if begin < free or known < k:
            continue
        low, high = corridor.first[begin // BLOCK], corridor.last[begin // BLOCK]
        while added <= high and added + k <= m:  # the word at `added` joins the window
            while new_at < added + k:
                new_word, new_known = push(new_word, new_known, target[new_at], mask)
                new_at += 1
            if new_known >= k and counts[new_word] < FULL:
                counts[new_word] += 1
            added += 1
        while removed < low and removed < added:
            while old_at < removed + k:
                old_word, old_known = push(old_word, old_known, target[old_at], mask)
                old_at += 1
            if old_known >= k and counts[old_word] < FULL:
                counts[old_word] -= 1
            removed += 1
        if counts[word] == 0:
            costs[begin] += words.cost
            ends[end] += words.cost
            free = end


@njit
def _add_up(match, costs, ends):
    """Make of what `_absent_words` found the `start` and `end` of Gains, in place; match : the score of one."""
    paid = ended = 0
    for i in range(len(costs)):
        begun, ended = paid, ended + ends[i]
        paid += costs[i]
        costs[i], ends[i] = match * i - begun, match * i - ended


class Corridor(NamedTuple):
    """Where an alignment may run: intervals of the other sequence's positions, for every BLOCK positions of one.

    first, last : int64, both ends included, neither of them falling.
    """

    first: np.ndarray
    last: np.ndarray

    def area(self, n: int) -> int:
        """Cells within it, about."""
        return int(np.maximum(0, self.last - self.first + 1).sum()) * BLOCK if n else 0


def whole(n: int, m: int) -> Corridor:
    """All m columns for each block of n rows."""
    blocks = n // BLOCK + 1
    return Corridor(np.zeros(blocks, np.int64), np.full(blocks, m, np.int64))


def find_gains(query: np.ndarray, target: np.ndarray, corridor: Corridor, scores: Scores, threads: int = 1) -> Gains:
    """Bounds along the query from what of it does not occur in the target within the corridor.

    The query is cut into parts, each with a window of its own, unless all of the target lies within the corridor.
    """
    n, m = len(query), len(target)
    width = int((corridor.last - corridor.first).max(initial=0)) + BLOCK
    k, is_full = word_length(width), bool((corridor.first <= 0).all() and (corridor.last >= m).all())
    costs, ends = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.int32)
    counts = mark_words(target, k, threads) if is_full else None
    size = PART if is_full else max(PART, width)

    def find(begin: int) -> None:
        its_counts = np.zeros(4**k, np.uint8) if counts is None else counts
        words = _Words(k, break_cost(scores, k), unknown_cost(scores), its_counts, is_full)
        _absent_words(query, target, begin, min(n, begin + size), corridor, words, costs, ends)

    map_threads(find, range(0, n, size), threads)
    _add_up(scores.match, costs, ends)
    return Gains(costs, ends)
