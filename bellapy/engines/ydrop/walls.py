"""Earlier alignments of the same two sequences, which no later one may touch or cross.

A wall is every cell that a path passes through.  It is kept as the path's runs, cut at buckets of the sum of both positions,
so that the pieces near some anti-diagonals are found without a search.

Threads may look at walls while another one adds a path.  New pieces come behind all others of their bucket, so what a thread
follows from piece to piece leads to those that it knows, then to one that it does not know, or to none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.engines.ydrop.rule import CHUNK, PAIR, QUERY_ALONE, TARGET_ALONE

SHIFT = 6  # bits of the sums in a bucket
BLOCK = 1 << 5  # buckets that share a mark
LEAST_ROOM = 1 << 8
FAR = 1 << 60
SUM, QUERY, SIZE, OPERATION, NEXT, BEFORE, N_FIELDS = range(7)


class Walls(NamedTuple):
    """Memory that is never touched costs nothing, where short sequences meet a long one.

    heads, tails : (n_buckets,) int64, first and last piece of a bucket plus 1, 0 for none.  marks : (n_blocks,) bool,
        whether a block of buckets has any.

    pieces : (room, N_FIELDS) int64, for each: sum of the first cell's query and target base, its query base, number of
        cells, operation, next piece of the bucket and the one before it, below 0 for none.  used : pieces there are; later
        ones have been added since.
    """

    heads: np.ndarray
    tails: np.ndarray
    marks: np.ndarray
    pieces: np.ndarray
    used: int


def no_walls(n_places: int) -> Walls:
    """For sums of positions below `n_places`."""
    n_buckets = (n_places >> SHIFT) + 2
    heads, tails = (np.zeros(n_buckets, np.int64) for _ in range(2))
    pieces = np.empty((n_buckets + LEAST_ROOM, N_FIELDS), np.int64)  # for paths of the same length, of few runs
    return Walls(heads, tails, np.zeros(n_buckets // BLOCK + 1, np.bool_), pieces, 0)


def add_wall(walls: Walls, q: int, t: int, runs: np.ndarray) -> Walls:
    """The walls with a path that begins with the pair of bases q and t.  No other path may be added to the old ones; an
    extension may go on with them.

    runs : (n, 2) int64, operation and length, from the first pair on.
    """
    room = walls.used + 2 * len(runs) + (int(runs[:, 1].sum()) >> (SHIFT - 1)) + 2
    if room > len(walls.pieces):
        pieces = np.empty((2 * room, N_FIELDS), np.int64)
        pieces[: walls.used] = walls.pieces[: walls.used]
        walls = walls._replace(pieces=pieces)
    return walls._replace(used=_add(walls, q, t, runs))


@njit
def _add(walls, q, t, runs):
    """Returns how many pieces there are then.  q, t : the first pair; after each run, the next base of each sequence."""
    n = walls.used
    for x in range(len(runs)):
        operation, left = runs[x, 0], runs[x, 1]
        while left > 0:
            # of bases alone, the cell is that of the other sequence's last base
            q_cell = q if operation != TARGET_ALONE else q - 1
            t_cell = t if operation != QUERY_ALONE else t - 1
            at = q_cell + t_cell
            until = ((at >> SHIFT) + 1) << SHIFT
            size = min(left, (until - at + 1) // 2 if operation == PAIR else until - at)
            bucket = at >> SHIFT
            piece, before = walls.pieces[n], walls.tails[bucket] - 1
            piece[SUM], piece[QUERY], piece[SIZE], piece[OPERATION] = at, q_cell, size, operation
            piece[NEXT], piece[BEFORE] = -1, before
            n += 1
            if before < 0:
                walls.heads[bucket] = n
            else:
                walls.pieces[before, NEXT] = n - 1
            walls.tails[bucket], walls.marks[bucket // BLOCK] = n, True
            left -= size
            q += size if operation != TARGET_ALONE else 0
            t += size if operation != QUERY_ALONE else 0
    return n


@njit
def box_of(walls, since):
    """Where pieces from `since` on lie, (4,) int64: lowest and highest sum of places, and diagonal (query less target)."""
    box = np.array([FAR, -1, FAR, -FAR])
    for p in range(since, walls.used):
        piece = walls.pieces[p]
        operation, more = piece[OPERATION], piece[SIZE] - 1
        begin = 2 * piece[QUERY] - piece[SUM]
        end = begin + (0 if operation == PAIR else more if operation == QUERY_ALONE else -more)
        box[0], box[1] = min(box[0], piece[SUM]), max(box[1], piece[SUM] + (2 * more if operation == PAIR else more))
        box[2], box[3] = min(box[2], begin, end), max(box[3], begin, end)
    return box


@njit_inner
def on_wall(walls, q, t):
    """Whether a path passes through the pair of bases q and t; for the thread that adds paths."""
    at = q + t
    p = walls.tails[at >> SHIFT] - 1
    while p >= 0:
        piece = walls.pieces[p]
        k = at - piece[SUM]
        if piece[OPERATION] == PAIR:
            if k & 1 == 0 and 0 <= k >> 1 < piece[SIZE] and piece[QUERY] + (k >> 1) == q:
                return True
        elif 0 <= k < piece[SIZE] and piece[QUERY] + (k if piece[OPERATION] == QUERY_ALONE else 0) == q:
            return True
        p = piece[BEFORE]
    return False


@njit_inner
def is_clear(walls, q, t, region, since):
    """Whether no path passes where extensions from the pair of bases q and t have been.

    region : anti-diagonals looked at on the left and on the right; lowest and highest diagonal (query less target place)
    less that of q and t.  since : pieces that were there before; paths that were added earlier do not count.  For the thread
    that adds paths.
    """
    left, right, low, high = region
    first, last = max(0, q + t - left), min(q + t + 2 + right, (len(walls.heads) << SHIFT) - 1)
    bucket, behind = first >> SHIFT, (last >> SHIFT) + 1
    while bucket < behind:
        if not walls.marks[bucket // BLOCK]:
            bucket = (bucket // BLOCK + 1) * BLOCK
            continue
        p = walls.tails[bucket] - 1
        bucket += 1
        while p >= since:
            piece = walls.pieces[p]
            p = piece[BEFORE]
            operation, more = piece[OPERATION], piece[SIZE] - 1
            begin = 2 * piece[QUERY] - piece[SUM] - (q - t)
            end = begin + (0 if operation == PAIR else more if operation == QUERY_ALONE else -more)
            sum_end = piece[SUM] + (2 * more if operation == PAIR else more)
            if max(begin, end) >= low and min(begin, end) <= high and sum_end >= first and piece[SUM] <= last:
                return False
    return True


@njit_inner
def walls_near(walls, sides, r, low, high, near):
    """Pieces that cells low to high of the CHUNK anti-diagonals after r may meet, as `Rows.near`; their number, -1: too
    many.

    sides : as in sweep.py.
    """
    origin, n = sides.q_at + sides.t_at, np.int64(0)
    s = origin + (r - 1) if sides.step > 0 else origin + 1 - r
    s_last = s + sides.step * (CHUNK - 1)
    first, last = max(0, min(s, s_last) >> SHIFT), min(len(walls.heads) - 1, max(s, s_last) >> SHIFT)
    for bucket in range(first, last + 1):
        p = walls.heads[bucket] - 1
        while 0 <= p < walls.used:
            piece = walls.pieces[p]
            p = piece[NEXT]
            operation, size = piece[OPERATION], piece[SIZE]
            at, q = piece[SUM], piece[QUERY]
            if sides.step < 0:  # its last cell comes first
                at += (size - 1) * (2 if operation == PAIR else 1)
                q += size - 1 if operation != TARGET_ALONE else 0
            r_first = (at - origin) * sides.step + 2
            i_first = (q - sides.q_at) * sides.step + 1
            r_last = r_first + (size - 1) * (2 if operation == PAIR else 1)
            i_last = i_first + (size - 1 if operation != TARGET_ALONE else 0)
            if r_last <= r or r_first > r + CHUNK or i_last < low or i_first > high:
                continue
            if n == len(near):
                return -1
            near[n, 0], near[n, 1], near[n, 2], near[n, 3] = r_first, i_first, size, operation
            n += 1
    _order(near, n, sides.step < 0)
    return n


@njit_inner
def _swap(near, a, b):
    for field in range(near.shape[1]):
        near[a, field], near[b, field] = near[b, field], near[a, field]


@njit_inner
def _order(near, n, backwards):
    """Sort n pieces by their first anti-diagonal; they are nearly sorted, one way or the other."""
    if backwards:
        for x in range(n // 2):
            _swap(near, x, n - 1 - x)
    for x in range(1, n):
        at = x
        while at > 0 and near[at - 1, 0] > near[at, 0]:
            _swap(near, at, at - 1)
            at -= 1
