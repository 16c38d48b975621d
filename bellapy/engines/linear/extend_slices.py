"""Extension of flanks one bit of each in every vector (slices.py): where lanes start, look at their scores, and end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner, njit_part, njit_vector
from bellapy.engines.lanes.shape import U
from bellapy.engines.linear.rule import STRIDE, flank_at, has_fallen, tilted_score
from bellapy.engines.linear.slice_bases import APART, LANES, U0, U1, WORDS, fetch
from bellapy.engines.linear.slices import (
    ALIVE,
    CELL,
    DEAD,
    HALF,
    HEIGHT,
    HIGH_LIVES,
    LOW_LIVES,
    MIDDLE,
    OUTSIDE,
    ROW_BITS,
    STEP,
    XDROP,
    cells_of,
    compute_chunk,
    first_cells,
    make_slices,
    move_windows,
    start_cells,
)
from bellapy.params import Scoring

GOES_ON, ENDED, OUTGREW = (np.int64(call) for call in range(3))  # as wide as the numbers that decide: vector code mixes none


class Now(NamedTuple):
    """Where every lane stands; (LANES,) int64 each.

    flank : which flank it extends, -1 if idle.
    query_at, target_at : where its windows of bases begin in the reads.
    query_begin, target_begin, query_end, target_end, flip : the flank's bases; 3 to complement the target, or 0.
    score, column, target_row : the best cell.
    age : chunks since its start.
    highest, end_score, end_column, end_row : best tilted score, and the cell that has it.
    """

    flank: np.ndarray
    query_at: np.ndarray
    target_at: np.ndarray
    query_begin: np.ndarray
    target_begin: np.ndarray
    query_end: np.ndarray
    target_end: np.ndarray
    flip: np.ndarray
    score: np.ndarray
    column: np.ndarray
    target_row: np.ndarray
    age: np.ndarray
    highest: np.ndarray
    end_score: np.ndarray
    end_column: np.ndarray
    end_row: np.ndarray


class Task(NamedTuple):
    """What is the same for all lanes all the time.

    planes : flat, the reads as `pack` makes them.
    flanks : (n, 5) int64 as `Flanks.table`.
    scoring : for which `slices_fit`.
    dead, first : uint64, STEP rows of dead cells, and the cells of both stacks that an extension starts from.
    no_flip : (LANES,) int64, zeros.
    """

    planes: np.ndarray
    flanks: np.ndarray
    scoring: Scoring
    dead: np.ndarray
    first: np.ndarray
    no_flip: np.ndarray


class Found(NamedTuple):
    """Where results go.

    results : (n, 3) int64: score, query bases, target bases.
    over : (n,) int64, filled from the front by rows of the flanks left out.
    calls : (LANES,) int64, what each lane calls for.
    """

    results: np.ndarray
    over: np.ndarray
    calls: np.ndarray


def slices_fit(scoring: Scoring, longest: bool) -> bool:
    """Whether `extend_slices` knows these scores, and this result."""
    return scoring[:4] == (1, -1, -1, XDROP) and not longest


def extend_slices(planes: np.ndarray, flanks: np.ndarray, scoring: Scoring) -> tuple[np.ndarray, np.ndarray]:
    """Extend flanks; those whose window grew beyond HEIGHT rows are left out.

    Parameters
    ----------
    planes : the reads as `pack` makes them.
    flanks : (n, 5) int64 as `Flanks.table`, none empty; longest first keeps all lanes busy to the end.

    Returns
    -------
    results : (n, 3) int64: score, query bases, target bases.
    over : (n_over,) int64, rows of the flanks left out.
    """
    task = Task(planes.reshape(-1), flanks, scoring, cells_of(np.full(STEP, DEAD)), first_cells(), np.zeros(LANES, np.int64))
    # rows a multiple of 4 KB apart would compete for the same places of the cache
    now = Now(*np.zeros((len(Now._fields), APART), np.int64)[:, :LANES])
    now.flank[:] = -1
    found = Found(np.zeros((len(flanks), 3), np.int64), np.empty(len(flanks), np.int64), np.zeros(LANES, np.int64))
    n_over = _run(task, make_slices(), now, found)
    return found.results, found.over[:n_over]


@njit_entry
def _run(task, some, now, found):
    """Chunk after chunk until all flanks are done.

    Parameters
    ----------
    task, some, now : Task, Slices, Now; the last two are overwritten.
    found : Found, filled in.

    Returns
    -------
    How many flanks are left out.
    """
    n_over = taken = active = np.int64(0)
    some.fresh[:] = ~U0
    while True:
        before = taken
        taken = _place(task, some, now, taken)
        active += taken - before
        if active == 0:
            return n_over
        fetch(task.planes, now.query_at, now.query_begin, now.query_end, False, task.no_flip, some.query)
        fetch(task.planes, now.target_at, now.target_begin, now.target_end, True, now.flip, some.target)
        compute_chunk(some, taken > before)
        n_done, n_over = _collect(task, some, now, found, n_over)
        active -= n_done


@njit_part
def _place(task, some, now, taken):
    """Start idle lanes, move windows.

    Parameters
    ----------
    task, some, now : Task, Slices, Now; the last two are changed.
    taken : how many flanks were taken before.

    Returns
    -------
    How many are taken now.
    """
    for stack in (some.even, some.odd[CELL:]):
        move_windows(stack, some.down, some.up, task.dead)
    for l in range(LANES):
        if now.flank[l] < 0 and taken < len(task.flanks):
            _start(now, flank_at(task.flanks, taken), taken, l)
            taken += 1
    start_cells(some, task.first)
    return taken


@njit_inner
def _start(now, flank, i, l):
    """Put a lane at the start of a flank.

    `now`: Now, which is changed.  `flank`, `i`: the flank, a row of `Flanks.table`, and its number.  `l`: the lane.
    """
    now.flank[l] = i
    now.score[l] = now.column[l] = now.target_row[l] = now.age[l] = 0
    now.highest[l] = now.end_score[l] = now.end_column[l] = now.end_row[l] = 0
    now.query_begin[l], now.target_begin[l] = flank[0], flank[2]
    now.query_at[l], now.target_at[l] = flank[0] - MIDDLE, flank[2] + MIDDLE - HEIGHT
    now.query_end[l], now.target_end[l], now.flip[l] = flank[0] + flank[1], flank[2] + flank[3], flank[4]


@njit_inner
def _count_ones(x):
    """How many bits of `x`, uint64, are set; vector units have an instruction for it that LLVM finds."""
    x = x - ((x >> U(1)) & U(0x5555555555555555))
    x = (x & U(0x3333333333333333)) + ((x >> U(2)) & U(0x3333333333333333))
    x = (x + (x >> U(4))) & U(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * U(0x0101010101010101)) >> U(56))


@njit_inner
def _fill(x):
    """All bits up to the highest one that is set in `x`, uint64."""
    for by in (U(1), U(2), U(4), U(8), U(16), U(32)):
        x |= x >> by
    return x


@njit_vector
def _advance(scoring, now, risen, told, calls):
    """Note the best cells of a chunk, look at tilted scores as rule.py does, and let windows go on: all lanes at once.

    Parameters
    ----------
    scoring : Scoring.
    now : Now; renewed.
    risen, told : of Slices, turned: a word of each lane.
    calls : (LANES,) int64, overwritten: GOES_ON, ENDED, or OUTGREW where a cell outside the window may have lived.
    """
    for l in range(U(LANES)):
        rises, tells = risen[l], told[l]
        rose, time = rises != U0, _count_ones(_fill(rises)) - 1
        offset, off = now.query_at[l] - now.query_begin[l], now.target_at[l] - now.target_begin[l]
        score, column, row = now.score[l] + _count_ones(rises), now.column[l], now.target_row[l]
        column = offset + (time >> 1) + np.int64(tells & U((1 << ROW_BITS) - 1)) + 1 if rose else column
        row = offset + off + HEIGHT + 1 + time - column if rose else row
        now.score[l], now.column[l], now.target_row[l] = score, column, row

        died, k = (tells >> U(ALIVE)) & U1 == U0, (now.age[l] + 1) * (2 * HALF)
        looks = died | (k % STRIDE == 0)
        tilted, highest = tilted_score(score, column + row, scoring.tilt), now.highest[l]
        better = looks & (tilted > highest)
        highest = tilted if better else highest
        now.highest[l] = highest
        now.end_score[l] = score if better else now.end_score[l]
        now.end_column[l] = column if better else now.end_column[l]
        now.end_row[l] = row if better else now.end_row[l]

        over = (tells >> U(OUTSIDE)) & U1 != U0
        ended = died | (looks & has_fallen(score, k, scoring.tilt, scoring.fall, highest))
        call = OUTGREW if over else ENDED if ended else GOES_ON
        calls[l] = GOES_ON if now.flank[l] < 0 else call
        up = np.int64((tells >> U(HIGH_LIVES)) & U1) - np.int64((tells >> U(LOW_LIVES)) & U1)
        idle = now.flank[l] < 0
        now.query_at[l] = 0 if idle else now.query_at[l] + HALF + up * STEP
        now.target_at[l] = 0 if idle else now.target_at[l] + HALF - up * STEP
        now.age[l] += 1


@njit_part
def _collect(task, some, now, found, n_over):
    """Take results of lanes that ended, give up lanes that outgrew their window.

    Parameters
    ----------
    task, some, now : Task, Slices, Now; the last two are changed.
    found : Found, filled in.
    n_over : flanks that are left out so far.

    Returns
    -------
    How many lanes became idle; how many flanks are left out now.
    """
    n_done = 0
    some.fresh[:] = U0
    _advance(task.scoring, now, some.risen, some.told, found.calls)
    for l in range(LANES):
        if found.calls[l] == GOES_ON:
            continue
        i = now.flank[l]
        if found.calls[l] == OUTGREW:
            found.over[n_over] = i
            n_over += 1
        else:
            for j, row in enumerate((now.end_score, now.end_column, now.end_row)):
                found.results[i, j] = row[l]
        n_done += 1
        now.flank[l] = -1
        some.fresh[l % WORDS] |= U1 << U(l // WORDS)
    return n_done, n_over
