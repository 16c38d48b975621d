"""A lower bound before anything else: seeds, a chain, and the best alignment within a narrow band around it.

Its score belongs to a real alignment, so it may be used as a bound whatever the chain is worth.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.threads import map_threads
from bellapy.engines.exact.band import BandSweep
from bellapy.engines.exact.bounds import BLOCK, Corridor, open_bounds
from bellapy.engines.exact.cpu import Task, end_borders, free_borders
from bellapy.engines.exact.rule import Scores
from bellapy.records.bases import UNKNOWN

HALF_WIDTH = 32  # columns on either side of the chain
U = np.uint64
LOOK_BACK = 500  # segments that a chain's next one may follow
EXTRA = 3, 5  # bases of k-mers beyond log4 of the longer sequence
JOIN = 24  # anchors of one diagonal no further apart are one segment
NEAR = 64  # bases between two segments that are taken for related; beyond, each costs half as much as in a gap
FILLED = 1 << 28  # cells: what lies between two segments is computed as a whole up to this size
EMPTY = -1


@njit
def _index(codes, k, bits, places):
    """Put every k-mer into the table.

    codes : (any,) uint8.  places : (2^bits,) int32, EMPTY at first: start of the k-mer of each slot; of several, -2 less the
    first one's.
    """
    mask = np.uint64((1 << (2 * k)) - 1)
    word, known = np.uint64(0), 0
    for end in range(1, len(codes) + 1):
        base = codes[end - 1]
        word = (word << np.uint64(2) | np.uint64(base & 3)) & mask
        known = known + 1 if base < UNKNOWN else 0
        if known >= k:
            slot = (word * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)
            if places[slot] >= 0:
                places[slot] = -2 - places[slot]
            elif places[slot] == EMPTY:
                places[slot] = end - k


@njit
def _first_place(place, several):
    """Where the first k-mer of a slot starts, EMPTY for none; several : whether there may be more than one."""
    return -2 - place if several and place < EMPTY else place


@njit
def _anchors(query, target, k, bits, of_query, of_target, several, segments):
    """Segments of k-mers that are unique in both: (query, target, query end, matching bases); their number.

    query, target : (any,) uint8 codes.  k, bits, of_query, of_target : tables as `_index` fills them.  several : also of the
    first ones of those that are not unique.
    segments : (bases + 1, 4) int32, filled.
    """
    mask = np.uint64((1 << (2 * k)) - 1)
    word, known = np.uint64(0), 0
    n = 0
    for end in range(1, len(query) + 1):
        base = query[end - 1]
        word = (word << np.uint64(2) | np.uint64(base & 3)) & mask
        known = known + 1 if base < UNKNOWN else 0
        if known < k:
            continue
        slot = (word * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)
        i, j = end - k, np.int64(_first_place(of_target[slot], several))
        if _first_place(of_query[slot], several) != i or j < 0:
            continue
        same = True
        for x in range(k):
            same &= query[i + x] == target[j + x]
        if not same:
            continue
        if n and j - i == segments[n - 1, 1] - segments[n - 1, 0] and i <= segments[n - 1, 2] + JOIN:
            segments[n - 1, 3] += end - max(i, segments[n - 1, 2])
            segments[n - 1, 2] = end
        else:
            segments[n, 0], segments[n, 1], segments[n, 2], segments[n, 3] = i, j, end, k
            n += 1
    return n


@njit
def _chain(segments, scores, score, before):
    """The best chain's last segment, -1 for none.

    segments : (n, 4) int64, as `_anchors` finds them.  scores : Scores.
    score, before : (n,) int64, filled: of the best chain that ends with each segment; the one that it follows, -1 for none.
    """
    match, mismatch, gap_open, gap_extend = scores
    best = -1
    for s in range(len(segments)):
        i, j = segments[s, 0], segments[s, 1]
        own = match * segments[s, 3]
        score[s], before[s] = own, -1
        for p in range(s - 1, max(-1, s - LOOK_BACK - 1), -1):
            down = i - segments[p, 2]
            across = j - (segments[p, 1] + segments[p, 2] - segments[p, 0])
            overlap = max(0, -min(down, across))
            if overlap >= segments[s, 3] or segments[p, 1] >= j or segments[p, 0] >= i:
                continue
            down, across = max(0, down), max(0, across)
            apart, between = abs((j - i) - (segments[p, 1] - segments[p, 0])), min(down, across)
            cost = match * overlap + (gap_open + gap_extend * apart if apart else 0)
            cost += match - mismatch + max(0, between - NEAR) * gap_extend // 2
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
    chains = map_threads(lambda k: _find_chain(query, target, scores, k, bits, threads // 2), lengths, threads)
    return max(chains, key=lambda chain: chain[0])[1]


def _places(codes: np.ndarray, k: int, bits: int) -> np.ndarray:
    """A table as `_index` fills it."""
    places = np.full(1 << bits, EMPTY, np.int32)
    _index(codes, k, bits, places)
    return places


def _find_chain(query, target, scores: Scores, k: int, bits: int, threads: int) -> tuple[int, np.ndarray]:
    """Score and segments of the best chain."""
    of_query, of_target = map_threads(lambda codes: _places(codes, k, bits), (query, target), threads)
    segments = np.empty((len(query) + 1, 4), np.int32)
    for several in (False, True):
        n = _anchors(query, target, k, bits, of_query, of_target, several, segments)
        if n:  # else all is repeated
            break
    segments = segments[:n].astype(np.int64)
    score, before = np.zeros(n, np.int64), np.zeros(n, np.int64)
    chain, s = [], _chain(segments, scores, score, before)
    best = int(score[s]) if n else 0
    while s >= 0:
        chain.append(s)
        s = before[s]
    return best, segments[chain[::-1]]


def chain_corridor(chain: np.ndarray, n: int, m: int) -> Corridor:
    """A band around a chain, drawn out to the matrix's corners, and what lies between its segments, where that is small."""
    first, last = np.full(n // BLOCK + 1, m + 1, np.int64), np.full(n // BLOCK + 1, -1, np.int64)
    at_i = at_j = 0
    for i, j, query_end, _ in chain.tolist():
        i, j, target_end = max(i, at_i), max(j, at_j), j + query_end - i
        if query_end < i or target_end < j:
            continue
        if at_i and (i - at_i) * (j - at_j) <= FILLED:
            between = slice(at_i // BLOCK, i // BLOCK + 1)
            first[between], last[between] = np.minimum(first[between], at_j), np.maximum(last[between], j)
        _cover(first, last, at_i, at_j, i, j)
        _cover(first, last, i, j, query_end, target_end)
        at_i, at_j = query_end, target_end
    _cover(first, last, at_i, at_j, n, m)
    first, last = np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)
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
    """The score of a good alignment of the two, found quickly: the best one in a band around a chain.

    query, target : codes as a sweep takes them.
    """
    n, m = len(query), len(target)
    least = 1 if mode != "global" else -int(scores.gap(n) + scores.gap(m))
    chain = find_chain(query, target, scores, threads)
    if not len(chain):
        return least
    if mode != "global":
        i, j, end_i, end_j = _part_of_chain(chain, n, m)
        query, target, chain = query[i:end_i], target[j:end_j], chain - np.array([i, j, i, 0])
        n, m = len(query), len(target)
    bounds = open_bounds(chain_corridor(chain, n, m), n, m, scores)
    local = mode == "local"
    borders = free_borders(scores, n, m) if local else end_borders(scores, n, m)
    sweep = BandSweep(Task(query, target, scores, borders, bounds, least, local, local, BLOCK))
    sweep.run()
    return max(least, int(sweep.best[0] if local else sweep.last_row[-1]))
