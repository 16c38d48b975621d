"""Extension of flanks in vector lanes: the best cell of every chunk becomes the result, lane by lane.

For the *longest* result the walls past the last row and the last column are dead too, and the state of two chunks is kept:
when a lane ends, rule.py replays its last anti-diagonals and finds where.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner, njit_part, njit_vector
from bellapy.engines.lanes.shape import BYTE, TILE, CellType, Shape, U, copy_cells
from bellapy.engines.linear.lane_state import (
    AGE,
    COLUMN,
    END_COLUMN,
    END_ROW,
    END_SCORE,
    FLANK,
    HIGH,
    HIGHEST,
    LOW,
    QUERY_AT,
    QUERY_OFFSET,
    ROW,
    SCORE,
    TARGET_AT,
    TARGET_OFFSET,
    TARGET_ROW,
    TIME,
    Lanes,
    Task,
    clear_lanes,
    make_lanes,
    place,
    retire,
)
from bellapy.engines.linear.lanes import compute_chunk, make_bases
from bellapy.engines.linear.rule import DEAD, GUARD, STRIDE, extend_flank, flank_at, has_fallen, resume, tilted_score
from bellapy.engines.linear.sizes import scores_of
from bellapy.params import Scoring

GOES_ON, ENDED, OUTGREW = (np.uint8(call) for call in range(3))


class Saved(NamedTuple):
    """State of all lanes at the start of a chunk, for *longest*: cells, and some rows of `now`."""

    even: np.ndarray
    odd: np.ndarray
    query_offset: np.ndarray
    target_offset: np.ndarray
    score: np.ndarray


class Progress(NamedTuple):
    """Rows of `now` as arrays of their own, which vector code needs: how far every lane has come."""

    flank: np.ndarray
    score: np.ndarray
    column: np.ndarray
    target_row: np.ndarray
    age: np.ndarray
    low: np.ndarray
    high: np.ndarray
    time: np.ndarray
    row: np.ndarray
    query_at: np.ndarray
    target_at: np.ndarray
    query_offset: np.ndarray
    target_offset: np.ndarray


class Farthest(NamedTuple):
    """More rows of `now`: the highest tilted score, and the cell that has it."""

    highest: np.ndarray
    score: np.ndarray
    column: np.ndarray
    row: np.ndarray


class Found(NamedTuple):
    """Where results go.

    results : (n, 3) int64: score, query bases, target bases.
    over : (n,) int64, filled from the front by rows of the flanks left out.
    cells : (3, longest query + GUARD) int64, scratch of rule.py for the *longest* result.
    """

    results: np.ndarray
    over: np.ndarray
    cells: np.ndarray


def extend_lanes(
    codes: np.ndarray, flanks: np.ndarray, shape: Shape, scoring: Scoring, longest: bool, cell: CellType = BYTE
) -> tuple[np.ndarray, np.ndarray]:
    """Extend flanks; those whose window grew beyond `shape.height` rows are left out.

    Parameters
    ----------
    codes : uint8 as `ReadSet.both_ways`.
    flanks : (n, 5) int64 as `Flanks.table`, none empty; longest first keeps all lanes busy to the end.
    longest : the SeqAn-compatible end instead of the best one (rule.py).
    cell : CellType that holds such scores: fits(scoring, cell, shape.half).

    Returns
    -------
    results : (n, 3) int64: score, query bases, target bases.
    over : (n_over,) int64, rows of the flanks left out.
    """
    task = Task(codes, flanks, shape, scoring, scores_of(scoring, cell, shape), longest)
    group = make_lanes(shape, np.dtype(cell.name))
    saved = _room_for(group, longest), _room_for(group, longest)
    cells = np.empty((3, (flanks[:, 1].max(initial=0) if longest else 0) + GUARD), np.int64)
    found = Found(np.zeros((len(flanks), 3), np.int64), np.empty(len(flanks), np.int64), cells)
    n_over = _run(task, group, make_bases(shape), saved, found)
    return found.results, found.over[:n_over]


def _room_for(group: Lanes, longest: bool) -> Saved:
    n = 1 if longest else 0
    even, odd = (np.empty(n * len(stack), stack.dtype) for stack in (group.even, group.odd))
    return Saved(even, odd, *np.zeros((3, TILE), np.int64))


@njit_entry
def _run(task, group, bases, saved, found):
    """Chunk after chunk until all flanks are done.

    Parameters
    ----------
    task, group : Task, Lanes; the latter is overwritten.
    bases : room for the Bases of this chunk and the next.
    saved : room for the states before this chunk and the last.
    found : Found, filled in.

    Returns
    -------
    How many flanks are left out.
    """
    now, spare = bases
    start, older = saved
    n_over = taken = active = np.int64(0)
    clear_lanes(group, task.scores.dead)
    while True:
        before = taken
        taken = place(task, group, now, taken)
        active += taken - before
        if active == 0:
            return n_over
        if task.longest:
            start, older = older, start
            _save(group, start)
        compute_chunk(task, group, now, spare, None)
        now, spare = spare, now
        n_done, n_over = _collect(task, group, older, found, n_over)
        active -= n_done


@njit_inner
def _save(group, start):
    """Keep the state of all lanes of `group`, Lanes, in `start`, Saved."""
    copy_cells(start.even, group.even, len(group.even))
    copy_cells(start.odd, group.odd, len(group.odd))
    for l in range(TILE):
        start.query_offset[l], start.target_offset[l] = group.now[QUERY_OFFSET, l], group.now[TARGET_OFFSET, l]
        start.score[l] = group.now[SCORE, l]


@njit_part
def _collect(task, group, older, found, n_over):
    """Note new best cells, take results of lanes that ended, give up lanes that outgrew their window.

    Parameters
    ----------
    task, group : Task, Lanes; the latter is changed.
    older : Saved, the state before the last chunk.
    found : Found, filled in.
    n_over : flanks that are left out so far.

    Returns
    -------
    How many lanes became idle; how many flanks are left out now.
    """
    now, calls, n_done = group.now, group.calls, 0
    progress = Progress(
        now[FLANK], now[SCORE], now[COLUMN], now[TARGET_ROW], now[AGE], now[LOW], now[HIGH], now[TIME], now[ROW],
        now[QUERY_AT], now[TARGET_AT], now[QUERY_OFFSET], now[TARGET_OFFSET],
    )  # fmt: skip
    farthest = Farthest(now[HIGHEST], now[END_SCORE], now[END_COLUMN], now[END_ROW])
    _advance(task, progress, farthest, group.shift, group.ends, calls)
    for l in range(task.shape.lanes):
        if calls[l] == GOES_ON:
            continue
        i = now[FLANK, l]
        if calls[l] == OUTGREW:
            found.over[n_over] = i
            n_over += 1
        elif task.longest:
            _find_end(task, older, l, now[AGE, l] - 1, found.cells, i, found.results)
        else:
            for j, row in enumerate((END_SCORE, END_COLUMN, END_ROW)):
                found.results[i, j] = now[row, l]
        n_done += 1
        retire(task, group, l)
    return n_done, n_over


@njit_vector
def _advance(task, progress, farthest, shift, ends, calls):
    """Note the best cells of a chunk, look at tilted scores as rule.py does, and let windows go on: all lanes at once.

    Parameters
    ----------
    task : Task.
    progress, farthest : Progress and Farthest; renewed.
    shift, ends : of Lanes.
    calls : (TILE,) uint8, overwritten: GOES_ON, ENDED, or OUTGREW where a cell outside the window may have lived.
    """
    scoring, (lanes, height, margin, half) = task.scoring, task.shape
    drifted, dead = np.int64(2 * half * task.scores.drift), task.scores.dead
    for l in range(U(lanes)):
        time, offset, off = progress.time[l], progress.query_offset[l], progress.target_offset[l]
        score, column, row = progress.score[l], progress.column[l], progress.target_row[l]
        rose = time >= 0
        score = score + (shift[l] - drifted) if rose else score
        column = offset + (time >> 1) + progress.row[l] + 1 if rose else column
        row = offset + off + height + 1 + time - column if rose else row
        progress.score[l], progress.column[l], progress.target_row[l] = score, column, row

        died, k = progress.high[l] < 0, (progress.age[l] + 1) * (2 * half)
        looks = died | (k % STRIDE == 0)
        tilted, highest = tilted_score(score, column + row, scoring.tilt), farthest.highest[l]
        better = looks & (tilted > highest)
        highest = tilted if better else highest
        farthest.highest[l] = highest
        farthest.score[l] = score if better else farthest.score[l]
        farthest.column[l] = column if better else farthest.column[l]
        farthest.row[l] = row if better else farthest.row[l]

        over = (ends[l] > dead) | (progress.high[l] - progress.low[l] > height - margin)
        ended = died | (looks & has_fallen(score, k, scoring.tilt, scoring.fall, highest))
        call = OUTGREW if over else ENDED if ended else GOES_ON
        calls[l] = GOES_ON if progress.flank[l] < 0 else call
        progress.query_at[l] += half
        progress.target_at[l] += half
        progress.query_offset[l] = offset + half
        progress.target_offset[l] = off + half
        progress.age[l] += 1


@njit_inner
def _find_end(task, saved, l, age, cells, i, results):
    """The *longest* result of a lane whose cells have all died, from its state one chunk before the last.

    Parameters
    ----------
    task : Task.
    saved : Saved, that state.
    l, age : the lane, and how many chunks it has gone on.
    cells : scratch (Found), overwritten.
    i, results : the flank; its row of `results` is filled in.
    """
    flank, scoring, out = flank_at(task.flanks, i), task.scoring, results[i]
    if age < 2:
        extend_flank(task.codes, flank, scoring, np.bool_(True), cells, out)
        return
    lanes, height, dead = task.shape.lanes, task.shape.height, task.scores.dead
    query_offset, base = saved.query_offset[l], saved.score[l] - task.scores.top
    k = query_offset + saved.target_offset[l] + height
    low, high = max(0, query_offset), min(query_offset + height, flank[1] + 1)
    cells[1:, max(0, low - 2) : high + 2] = DEAD
    for c in range(low, high):
        at = (c - query_offset) * lanes + l
        if saved.odd[TILE + at] > dead:
            cells[1, c] = base - scoring.gap + saved.odd[TILE + at]  # a drift behind
        if saved.even[at] > dead:
            cells[2, c] = base + saved.even[at]
    resume(task.codes, flank, scoring, cells, k, (low, high), saved.score[l], out)
