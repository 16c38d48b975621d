"""A lower bound before anything else: seeds, a chain, and the best alignment within a narrow band around it.

Its score belongs to a real alignment, so it may be used as a bound whatever the chain is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import map_threads
from bellapy.engines.exact.anchors import find_segments
from bellapy.engines.exact.band import BandSweep
from bellapy.engines.exact.bounds import BLOCK, Corridor, open_bounds
from bellapy.engines.exact.cpu import Task, end_borders, free_borders
from bellapy.engines.exact.narrow import NONE_UNMATCHED
from bellapy.engines.exact.rule import Scores

HALF_WIDTH = 32  # columns on either side of the chain
LOOK_BACK = 500  # segments that a chain's next one may follow
EXTRA = 3, 5  # bases of k-mers beyond log4 of the longer sequence
NEAR = 64  # bases between two segments that are taken for related; beyond, each costs half as much as in a gap,
CLOSE, LOOKED_AT, ALIKE = 2048, 32, 20  # unless there are no more, and beside both segments most of so many are the same
WORTH = 1000  # a chain is joined to another one if it adds more than such a part of that one's score
FILLED = 1 << 28  # cells that may be computed between two segments, on either side of the way along the diagonal
LONG = 1 << 12  # rows between two segments, at least, through which there are too many ways that promise the same,
ASIDE = 2  # and how many times fewer diagonals beside the segments' these may take
FEW = 64  # how many times more rows there are than columns in one place, at most, if these call for bounds of their own
PIECE = 1 << 17  # rows of a piece, which are computed side by side
LOCAL, WHOLE, FROM_START, TO_END = "local", "whole", "from start", "to end"
"""Ways of an alignment through a piece: anywhere in it, from corner to corner, or from or to one of them."""

Piece = tuple[int, int, int, int]
"""First row and column, and the ones after the last."""


class Guess(NamedTuple):
    """The score of an alignment that is there, and the cell where it ends; None if no such cell is known.

    unmatched : as in narrow.Matrix, long ones between its chain's segments.
    across : the same of the transposed matrix, if the chain leaves out many columns in one place.
    """

    score: int
    end: tuple[int, int] | None = None
    unmatched: np.ndarray = NONE_UNMATCHED
    across: np.ndarray = NONE_UNMATCHED


@njit
def _are_alike(query, target, i, j):
    """Whether most of the LOOKED_AT bases from (i, j) on are the same; query, target : (any,) uint8 codes."""
    same = 0
    for x in range(LOOKED_AT):
        same += query[i + x] == target[j + x]
    return same >= ALIKE


@njit
def _chain(query, target, segments, scores, score, before):
    """The best chain's last segment, -1 for none.

    query, target : (any,) uint8 codes.  segments : (n, 4) int64, as `find_segments` has them.  scores : Scores.
    score, before : (n,) int64, filled: of the best chain that ends with each segment; the one that it follows, -1 for none.

    In arrays of repeats few words are unique.  There what lies between two segments is related if bases beside both are the
    same.
    """
    match, mismatch, gap_open, gap_extend = scores
    best = -1
    for s in range(len(segments)):
        i, j = segments[s, 0], segments[s, 1]
        own = match * segments[s, 3]
        score[s], before[s] = own, -1
        for p in range(s - 1, max(-1, s - LOOK_BACK - 1), -1):
            end_i, end_j = segments[p, 2], segments[p, 1] + segments[p, 2] - segments[p, 0]
            down, across = i - end_i, j - end_j
            overlap = max(0, -min(down, across))
            if overlap >= segments[s, 3] or segments[p, 1] >= j or segments[p, 0] >= i:
                continue
            between = max(0, min(down, across) - NEAR)
            apart = abs((j - i) - (segments[p, 1] - segments[p, 0]))
            cost = match * overlap + match - mismatch + (gap_open + gap_extend * apart if apart else 0)
            if score[p] - cost + own <= score[s]:
                continue
            if between:
                alike = between <= CLOSE and _are_alike(query, target, end_i, end_j)
                if not (alike and _are_alike(query, target, i - LOOKED_AT, j - LOOKED_AT)):
                    cost += between * gap_extend // 2
            if score[p] - cost + own > score[s]:
                score[s], before[s] = score[p] - cost + own, p
        if best < 0 or score[s] > score[best]:
            best = s
    return best


@njit
def _cover(first, last, i, j, to_i, to_j):
    """Take the way from (i, j) to (to_i, to_j) into the corridor: along the diagonal as far as it goes, then straight.

    first, last : (n_blocks,) int64, of a Corridor; widened.
    """
    if i % BLOCK == 0 and i > 0:  # a row between two blocks is the last one of the upper block too
        first[i // BLOCK - 1] = min(first[i // BLOCK - 1], j)
        last[i // BLOCK - 1] = max(last[i // BLOCK - 1], to_j if i == to_i else j)
    while True:
        block = i // BLOCK
        stop = min(to_i, (block + 1) * BLOCK)
        first[block] = min(first[block], j)
        reached = min(to_j, j + stop - i)
        if stop == to_i:
            reached = to_j
        last[block] = max(last[block], reached)
        if stop % BLOCK == 0 and stop // BLOCK < len(first):
            first[stop // BLOCK] = min(first[stop // BLOCK], reached)
            last[stop // BLOCK] = max(last[stop // BLOCK], reached)
        if stop == to_i:
            return
        i, j = stop, reached


def find_chain(query: np.ndarray, target: np.ndarray, scores: Scores, threads: int = 1) -> np.ndarray:
    """(n, 4) int64: segments of the best chain of unique k-mers, in order: query, target, query end, matching bases.

    Longer k-mers are unique more often, shorter ones survive more differences: the better chain of two lengths is taken.
    """
    longest = max(len(query), len(target))
    least = int(np.ceil(np.log(longest + 1) / np.log(4)))
    bits = min(26, max(10, int(np.ceil(np.log2(longest + 1))) + 2))
    lengths = [min(20, max(11, least + extra)) for extra in EXTRA]
    chains = map_threads(lambda k: _find_chain(query, target, scores, k, bits, max(1, threads // 2)), lengths, threads)
    return max(chains, key=lambda chain: chain[0])[1]


def _find_chain(query, target, scores: Scores, k: int, bits: int, threads: int) -> tuple[int, np.ndarray]:
    """Score and segments of the best chain, joined with those before and after it that are worth the gap between.

    However many bases lie there: their alignment tells whether they are related.
    """
    segments = find_segments(query, target, k, bits, threads)
    ends = segments[:, 1] + segments[:, 2] - segments[:, 0]
    total, chain = _best_chain(query, target, segments, scores)
    for after in (False, True) if len(chain) else ():
        while True:
            i, j, end, _ = chain[-1 if after else 0]
            if after:
                there = (segments[:, 0] >= end) & (segments[:, 1] >= j + end - i)
            else:
                there = (segments[:, 2] <= i) & (ends <= j)
            score, more = _best_chain(query, target, segments[there], scores)
            x, y = more[0 if after else -1, :2] if len(more) else (i, j)
            gain = score - int(scores.gap(abs((y - x) - (j - i))))
            if gain <= total // WORTH:
                break
            total, chain = total + gain, np.concatenate((chain, more) if after else (more, chain))
    return total, chain


def _best_chain(query, target, segments: np.ndarray, scores: Scores) -> tuple[int, np.ndarray]:
    """Score and segments of the best chain."""
    score, before = np.zeros(len(segments), np.int64), np.zeros(len(segments), np.int64)
    chain, s = [], _chain(query, target, segments, scores, score, before)
    best = int(score[s]) if len(segments) else 0
    while s >= 0:
        chain.append(s)
        s = before[s]
    return best, segments[chain[::-1]]


@njit
def _cover_chain(chain, n, m, first, last):
    """Take a chain into a corridor, drawn out to the matrix's corners, and what lies between its segments if that is small.

    chain : (any, 4) int64.  n, m : rows and columns.  first, last : (n_blocks,) int64, of a Corridor; widened.
    """
    at_i = at_j = np.int64(0)
    for s in range(len(chain)):
        i, j, query_end = max(chain[s, 0], at_i), max(chain[s, 1], at_j), chain[s, 2]
        target_end = chain[s, 1] + query_end - chain[s, 0]
        if query_end < i or target_end < j:
            continue
        if at_i and at_i < i and at_j < j:
            aside = FILLED // max(i - at_i, j - at_j)
            for block in range(at_i // BLOCK, i // BLOCK + 1):
                middle = at_j + min(j - at_j, max(0, block * BLOCK - at_i))
                first[block] = min(first[block], max(at_j, middle - aside))
                last[block] = max(last[block], min(j, middle + BLOCK + aside))
        _cover(first, last, at_i, at_j, i, j)
        _cover(first, last, i, j, query_end, target_end)
        at_i, at_j = query_end, target_end
    _cover(first, last, at_i, at_j, n, m)


def chain_corridor(chain: np.ndarray, n: int, m: int) -> Corridor:
    """A band around a chain, drawn out to the matrix's corners, and what lies between its segments, where that is small."""
    first, last = np.full(n // BLOCK + 1, m + 1, np.int64), np.full(n // BLOCK + 1, -1, np.int64)
    _cover_chain(chain, n, m, first, last)
    first, last = np.minimum.accumulate(first[::-1])[::-1].copy(), np.maximum.accumulate(last)
    return Corridor(np.maximum(0, first - HALF_WIDTH), np.where(last < 0, -1, np.minimum(m, last + HALF_WIDTH)))


def _part_of_chain(chain: np.ndarray, n: int, m: int) -> tuple[int, int, int, int]:
    """First row and column, last row and column of a chain drawn out along its first and last diagonals."""
    i, j, _, _ = chain[0].tolist()
    start = min(i, j)
    last_i, last_j, end, _ = chain[-1].tolist()
    end_j = last_j + end - last_i
    on = min(n - end, m - end_j)
    return i - start, j - start, end + on, end_j + on


def lower_bound(query: np.ndarray, target: np.ndarray, scores: Scores, mode: str, threads: int = 1) -> int:
    """The score of `guess_best`."""
    return guess_best(query, target, scores, mode, threads).score


def guess_best(query: np.ndarray, target: np.ndarray, scores: Scores, mode: str, threads: int = 1) -> Guess:
    """A good alignment of the two, found quickly: the best one in a band around a chain.

    A long chain is cut into pieces.  In local mode the best run of pieces counts, and what is worth it next to them.

    query, target : codes as a sweep takes them.
    """
    n, m = len(query), len(target)
    least = Guess(1 if mode != "global" else -int(scores.gap(n) + scores.gap(m)))
    chain = find_chain(query, target, scores, threads)
    if not len(chain):
        return least
    corners = _corners(chain, n, m)
    if mode == "global":
        corners = [(0, 0), *corners[1:-1], (n, m)]
    pieces = [(*one, *other) for one, other in pairwise(corners)]

    def best_of(piece: Piece, way: str) -> Guess:
        return _best_of(query, target, scores, chain, piece, way)

    if mode == "local":
        found = _local_best(pieces, best_of, threads)
    else:
        found = Guess(sum(one.score for one in map_threads(lambda piece: best_of(piece, WHOLE), pieces, threads)))
    across = _unmatched_across(chain, n)
    return _best(least, found)._replace(unmatched=_unmatched(chain), across=across)


def _unmatched(chain: np.ndarray) -> np.ndarray:
    """Long stretches of rows between a chain's segments, as in narrow.Matrix."""
    begin, end, diagonals = chain[:-1, 2], chain[1:, 0], chain[:, 1] - chain[:, 0]
    low, high = np.minimum(diagonals[:-1], diagonals[1:]), np.maximum(diagonals[:-1], diagonals[1:])
    aside = (end - begin) // ASIDE
    return np.stack([begin, end, low - aside, high + aside], axis=1)[end - begin >= LONG]


def _unmatched_across(chain: np.ndarray, n: int) -> np.ndarray:
    """Guess.across; n : rows."""
    diagonals = chain[:, 1] - chain[:, 0]
    if np.diff(diagonals).max(initial=0) < max(LONG, n // FEW):
        return NONE_UNMATCHED
    return _unmatched(np.stack([chain[:, 1], chain[:, 0], chain[:, 2] + diagonals, chain[:, 3]], axis=1))


def _best(*guesses: Guess) -> Guess:
    """The one that scores most; the first of equal ones."""
    return max(guesses, key=lambda guess: guess.score)


def _local_best(pieces: list[Piece], best_of: Callable[[Piece, str], Guess], threads: int) -> Guess:
    """The best run of pieces, with what is better or worth it at its ends."""
    through = map_threads(lambda piece: best_of(piece, WHOLE).score, pieces, threads) if len(pieces) > 1 else [0]
    best, first, last = _best_run(through)
    inner = [(first, LOCAL)] if first == last else [(first, TO_END), (last, FROM_START)]
    outer = [(first - 1, TO_END), (last + 1, FROM_START)]
    tasks = [(k, way) for k, way in inner + outer if 0 <= k < len(pieces)]
    found = dict(zip(tasks, map_threads(lambda task: best_of(pieces[task[0]], task[1]), tasks, threads), strict=True))
    nothing = Guess(0, pieces[last][2:])
    before, after = (_best(nothing, found.get(task, nothing)) for task in outer)
    if first == last:
        return _best(found[inner[0]], Guess(best + before.score + after.score, after.end))
    start, end = (found[task].score - through[task[0]] for task in inner)
    end_at = found[inner[1]].end if end > after.score else after.end
    return Guess(best + max(before.score, start) + max(after.score, end), end_at)


def _best_run(scores: list[int]) -> tuple[int, int, int]:
    """The best sum of scores that follow each other, and the first and the last one."""
    best, total, since = (scores[0], 0, 0), 0, 0
    for k, score in enumerate(scores):
        total, since = (score, k) if total <= 0 else (total + score, since)
        best = max(best, (total, since, k), key=lambda run: run[0])
    return best


def _corners(chain: np.ndarray, n: int, m: int) -> list[tuple[int, int]]:
    """Cells at which a chain, drawn out along its first and last diagonals, is cut: where its longest segments begin."""
    i, j, end_i, end_j = _part_of_chain(chain, n, m)
    corners = [(i, j)]
    for begin in range(i + PIECE, end_i - PIECE // 2, PIECE):
        near = chain[(chain[:, 0] >= begin) & (chain[:, 0] < begin + PIECE // 4)]
        if len(near):
            corners.append(tuple(near[near[:, 3].argmax(), :2].tolist()))
    return [*corners, (end_i, end_j)]


def _best_of(query: np.ndarray, target: np.ndarray, scores: Scores, chain: np.ndarray, piece: Piece, way: str) -> Guess:
    """The best alignment of a piece of both sequences around a chain; way : WHOLE and so on."""
    i, j, end_i, end_j = piece
    inside = (
        (chain[:, 0] >= i) & (chain[:, 1] >= j) & (chain[:, 2] <= end_i) & (chain[:, 1] + chain[:, 2] - chain[:, 0] <= end_j)
    )
    part = chain[inside] - np.array([i, j, i, 0])
    query, target, n, m = query[i:end_i], target[j:end_j], end_i - i, end_j - j
    if way == TO_END:
        query, target, sizes = query[::-1].copy(), target[::-1].copy(), part[:, 2] - part[:, 0]
        part = np.stack([n - part[:, 2], m - part[:, 1] - sizes, n - part[:, 0], part[:, 3]], axis=1)[::-1].copy()
    bounds = open_bounds(chain_corridor(part, n, m), n, m, scores)
    borders = free_borders(scores, n, m) if way == LOCAL else end_borders(scores, n, m)
    known = -int(scores.gap(n) + scores.gap(m)) if way == WHOLE else int(way == LOCAL)
    sweep = BandSweep(Task(query, target, scores, borders, bounds, known, way == LOCAL, way != WHOLE, BLOCK))
    sweep.run()
    if way == WHOLE:
        return Guess(int(sweep.last_row[-1]), (end_i, end_j))
    score, row, column = sweep.best.tolist()
    if row < 0:
        return Guess(score)
    return Guess(score, (end_i, end_j) if way == TO_END else (i + row, j + column))
