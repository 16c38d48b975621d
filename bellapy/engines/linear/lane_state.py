"""Where lanes stand: the state of all, how they start, move, go on and retire; the bases and borders they meet next.

Nothing here knows the rule: lanes.py computes cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_inner, njit_part, njit_vector, prefetch
from bellapy.engines.lanes.bases import as_targets, load_bases, read_word, spread, word_within
from bellapy.engines.lanes.shape import TILE, U_TILE, Shape, U, aligned, move
from bellapy.engines.linear.rule import flank_at
from bellapy.engines.linear.sizes import CellScores
from bellapy.params import Scoring

AHEAD = 64  # bases: a cache line

FLANK, QUERY_AT, TARGET_AT, QUERY_OFFSET, TARGET_OFFSET, SCORE, COLUMN, TARGET_ROW, AGE, LOW, HIGH, TIME, ROW = range(13)
QUERY_END, TARGET_END, FLIP, HIGHEST, END_SCORE, END_COLUMN, END_ROW = range(13, 20)
N_NOW = 20
"""Where every lane stands: rows of `now`, (N_NOW, TILE) int64.

FLANK: which flank it extends, -1 if idle.  QUERY_AT, TARGET_AT: where its windows of bases begin in the reads;
QUERY_OFFSET, TARGET_OFFSET: the same relative to the flank.  SCORE, COLUMN, TARGET_ROW: the best cell.  AGE: chunks since
its start.  LOW, HIGH: outermost live rows.  TIME, ROW: anti-diagonal of the chunk and row where the best cell rose last; -1
if it did not.  QUERY_END, TARGET_END: where the flank's bases end in the reads.  FLIP: 3 to complement the target, or 0.
HIGHEST: best tilted score; END_SCORE, END_COLUMN, END_ROW: the cell that has it."""


class Task(NamedTuple):
    """What is the same for all lanes all the time.

    codes : uint8 as `ReadSet.both_ways`.
    flanks : (n, 5) int64 as `Flanks.table`.
    shape : of the windows.
    scoring : checked by the caller.
    scores : the same in the cells' type.
    longest : which result is wanted (rule.py); unknown bases match each other then.
    """

    codes: np.ndarray
    flanks: np.ndarray
    shape: Shape
    scoring: Scoring
    scores: CellScores
    longest: bool


class Best(NamedTuple):
    """The best cell of each phase of each lane; all (TILE,) in the cells' type.

    score : its score.  was : that before the anti-diagonal, drifted.  row : its row, by tile.
    drop : what a live cell has to reach.
    """

    score: np.ndarray
    was: np.ndarray
    row: np.ndarray
    drop: np.ndarray


class Lanes(NamedTuple):
    """The state of all lanes, and room for a chunk.

    even, odd : cells, row by row, and TILE more after them; `odd` has TILE before them too.
    now : (N_NOW, TILE) int64.
    best : Best.
    update : anti-diagonal of the chunk in which a phase reached its best score, or -1.
    ends : the highest cells of the outermost rows.
    shift : what is taken away from scores after a chunk.
    first, last : outermost tiles with a live cell.
    twice : (3 * TILE,), scratch of `_agree`.  Those before it: (TILE,); all in the cells' type.
    words : (half / 4, TILE) uint64, bases as they come.
    edges : (TILE, 5) int64, lanes near the border of the matrix (`find_edges`).
    calls : (TILE,) uint8, what each lane calls for; 0 for nothing.
    """

    even: np.ndarray
    odd: np.ndarray
    now: np.ndarray
    best: Best
    update: np.ndarray
    ends: np.ndarray
    shift: np.ndarray
    first: np.ndarray
    last: np.ndarray
    twice: np.ndarray
    words: np.ndarray
    edges: np.ndarray
    calls: np.ndarray


def make_lanes(shape: Shape, dtype: np.dtype) -> Lanes:
    """All lanes idle, all cells dead once `clear_lanes` has been called."""
    n_cells = shape.height * shape.lanes
    lines = aligned(12 * TILE, dtype).reshape(12, TILE)
    even, odd, now = aligned(n_cells + TILE, dtype), aligned(n_cells + 2 * TILE, dtype), np.zeros((N_NOW, TILE), np.int64)
    words, edges = np.zeros((shape.half // 4, TILE), np.uint64), np.empty((TILE, 5), np.int64)
    update, ends, shift, first, last = lines[4:9]
    twice = lines[9:].reshape(3 * TILE)
    calls = np.zeros(TILE, np.uint8)
    return Lanes(even, odd, now, Best(*lines[:4]), update, ends, shift, first, last, twice, words, edges, calls)


@njit_inner
def clear_lanes(group, dead):
    """Make all lanes of a `group` of Lanes idle, all cells `dead`."""
    group.even[:] = dead
    group.odd[:] = dead
    group.now[:] = 0
    group.now[FLANK] = -1


@njit_part
def place(task, group, bases, taken):
    """Start idle lanes, move those whose live cells are near an end of the window.

    Parameters
    ----------
    task, group, bases : Task, Lanes, Bases; the last two are changed.
    taken : how many flanks were taken before.

    Returns
    -------
    How many are taken now.
    """
    lanes, height, _, _ = task.shape
    now = group.now
    _find_restless(now[FLANK], now[LOW], now[HIGH], task.shape, group.calls)
    for l in range(lanes):
        if group.calls[l] == 0:
            continue
        i = now[FLANK, l]
        if i < 0:
            if taken == len(task.flanks):
                continue
            i = taken
            taken += 1
            _start(group, flank_at(task.flanks, i), i, l, task.shape, task.scores.top)
            if i + lanes < len(task.flanks):  # the next flank of some lane: its bases are far away
                prefetch(task.codes, task.flanks[i + lanes, 0])
                prefetch(task.codes, task.flanks[i + lanes, 2])
        else:
            low, high = now[LOW, l], now[HIGH, l]
            by = _off_middle(low, high, height)
            move(group.even, task.shape, l, by, task.scores.dead)
            move(group.odd[TILE:], task.shape, l, by, task.scores.dead)
            now[QUERY_AT, l] += by
            now[TARGET_AT, l] -= by
            now[LOW, l], now[HIGH, l] = low - by, high - by
        flank = flank_at(task.flanks, i)
        now[QUERY_OFFSET, l], now[TARGET_OFFSET, l] = now[QUERY_AT, l] - flank[0], now[TARGET_AT, l] - flank[2]
        load_window(task, group, bases, l)
    return taken


@njit_inner
def _off_middle(low, high, height):
    """Rows by which the middle of the live cells, `low` to `high`, lies off the middle of a window of `height` rows."""
    return ((low + high + 1) >> 1) - (height >> 1)


@njit_vector
def _find_restless(flank, low, high, shape, calls):
    """Set `calls`, (TILE,) uint8, to 1 for lanes that are idle or are to be moved, else to 0.

    `flank`, `low`, `high`: the rows FLANK, LOW and HIGH of `now`, (TILE,) int64; `shape`: Shape.
    """
    height, margin = shape.height, shape.margin
    for l in range(U(shape.lanes)):
        near = min(low[l], height - 1 - high[l]) < margin
        calls[l] = (flank[l] < 0) | (near & (_off_middle(low[l], high[l], height) != 0))


@njit_inner
def _start(group, flank, i, l, shape, top):
    """Put a lane at the start of a flank.

    Parameters
    ----------
    group : Lanes; changed.
    flank, i : the flank, a row of `Flanks.table`, and its number.
    l : the lane, of windows of this `shape`.
    top : score of its first cell.
    """
    now, middle = group.now, shape.height // 2
    now[FLANK, l] = i
    now[SCORE, l] = now[COLUMN, l] = now[TARGET_ROW, l] = now[AGE, l] = 0
    now[HIGHEST, l] = now[END_SCORE, l] = now[END_COLUMN, l] = now[END_ROW, l] = 0
    now[QUERY_AT, l], now[TARGET_AT, l] = flank[0] - middle, flank[2] + middle - shape.height
    now[QUERY_END, l], now[TARGET_END, l], now[FLIP, l] = flank[0] + flank[1], flank[2] + flank[3], flank[4]
    now[LOW, l] = now[HIGH, l] = middle
    group.even[middle * shape.lanes + l] = top


@njit_inner
def load_window(task, group, bases, l):
    """Read all bases of the window of lane `l`; `task`, `group`, `bases`: Task, Lanes, and Bases, which are overwritten."""
    flank = flank_at(task.flanks, group.now[FLANK, l])
    at = group.now[QUERY_AT, l], group.now[TARGET_AT, l]
    load_bases(task.codes, flank, l, task.shape, at, 0 if task.longest else 1, bases)


@njit_inner
def retire(task, group, l):
    """Make lane `l` idle and its cells dead; `task`, `group`: Task, and Lanes, which are changed."""
    group.now[FLANK, l] = -1
    move(group.even, task.shape, l, task.shape.height, task.scores.dead)
    move(group.odd[TILE:], task.shape, l, task.shape.height, task.scores.dead)


@njit_inner
def go_on(now, l, half):
    """Let the windows of lane `l` go on by `half` bases; `now` is that of Lanes."""
    now[QUERY_AT, l] += half
    now[TARGET_AT, l] += half
    now[QUERY_OFFSET, l] += half
    now[TARGET_OFFSET, l] += half


@njit_inner
def find_edges(task, group, walls):
    """Find the lanes that meet column 0, row 0 or, if there are any, the `walls` within the next chunk.

    `task`, `group`: Task, and Lanes, whose `edges` are overwritten: lane, rows of column 0 and row 0, lengths.  Returns how
    many there are.
    """
    lanes, height, _, half = task.shape
    now, edges, n = group.now, group.edges, 0
    reach = task.scoring.xdrop // -task.scoring.gap
    for l in range(lanes):
        i = now[FLANK, l]
        if i < 0:
            continue
        query_offset, target_offset = now[QUERY_OFFSET, l], now[TARGET_OFFSET, l]
        query_length, target_length = task.flanks[i, 1], task.flanks[i, 3]
        edge = query_offset + target_offset + height <= reach
        if walls:
            ahead = height + half
            edge |= query_offset + ahead >= query_length or target_offset + ahead >= target_length
        if edge:
            edges[n, 0], edges[n, 1], edges[n, 2] = l, -query_offset, target_offset + height
            edges[n, 3], edges[n, 4] = query_length, target_length
            n += 1
    return n


@njit_inner
def fetch(task, now, words, bases):
    """Append the next `half` bases of every lane to its windows.

    Parameters
    ----------
    task : Task.
    now, words : of Lanes; `words` is overwritten.
    bases : Bases; renewed.
    """
    codes, apart = task.codes, 0 if task.longest else 1
    lanes, height, _, half = task.shape
    for l in range(lanes):
        if now[FLANK, l] < 0:
            continue
        q, t = now[QUERY_AT, l] + height, now[TARGET_AT, l] + height
        prefetch(codes, q + AHEAD)
        prefetch(codes, t + AHEAD)
        if q + half <= now[QUERY_END, l] and t + half <= now[TARGET_END, l]:
            for j in range(U(half // 8)):
                words[U(2) * j, U(l)] = read_word(codes, U(q) + U(8) * j)
                words[U(2) * j + U(1), U(l)] = read_word(codes, U(t) + U(8) * j)
        else:
            for j in range(half // 8):
                words[2 * j, l] = word_within(codes, q + 8 * j, now[QUERY_END, l])
                words[2 * j + 1, l] = word_within(codes, t + 8 * j, now[TARGET_END, l])
    for j in range(half // 8):
        as_targets(words[2 * j + 1], now[FLIP], apart, lanes)
        spread(words[2 * j], bases.query, height + 8 * j, 1, lanes)
        spread(words[2 * j + 1], bases.target, half - 1 - 8 * j, -1, lanes)


@njit_inner
def live_tiles(shape, now):
    """Tiles that hold every live cell: the first, and the end.  `shape`: Shape; `now`: that of Lanes."""
    lanes, height, _, _ = shape
    low, high = height, np.int64(-1)
    for l in range(lanes):
        if now[FLANK, l] >= 0:
            low, high = min(low, now[LOW, l]), max(high, now[HIGH, l])
    phases = TILE // lanes
    return low // phases, (high + phases) // phases


@njit_vector
def join_phases(update, row, first, last, shape, now):
    """What the phases of every lane found: its outermost live rows (height and -1: none), the place of its best cell.

    `update`, `row`, `first`, `last`, `now`: those of Lanes; LOW, HIGH, TIME and ROW are overwritten.  `shape`: Shape.
    """
    lanes, height = U(shape.lanes), shape.height
    phases = U_TILE // lanes
    for l in range(lanes):
        now[LOW, l] = height
        now[HIGH, l] = now[TIME, l] = now[ROW, l] = -1
    for phase in range(phases):
        for l in range(lanes):
            e, step, own = phase * lanes + l, np.int64(phases), np.int64(phase)
            low, high, w = first[e] * step + own, last[e] * step + own, row[e] * step + own
            now[LOW, l] = min(now[LOW, l], low)
            now[HIGH, l] = max(now[HIGH, l], high if last[e] >= 0 else -1)
            time, its_row = now[TIME, l], now[ROW, l]
            sooner = update[e] >= 0 and (time < 0 or w < its_row)
            now[TIME, l] = update[e] if sooner else time
            now[ROW, l] = w if sooner else its_row
