"""X-drop extension on a GPU by anti-diagonals of any width: both results of rule.py, any scores; one warp per flank.

Cells are 32-bit scores in device memory, three anti-diagonals per warp, indexed by column.  This kernel takes what the
register kernel (stack_kernels.py) leaves: windows that outgrow it and the last anti-diagonals of the *longest* result, from
the state that it hands over, and flanks with a large X from their beginning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import cuda

from bellapy.compute.gpu.ops import I32, U32, WARP, ballot, inlined, shuffle, sync_warp
from bellapy.engines.linear.gpu.stack_kernels import CELLS, COLUMN, ENDED, FIRST_ROW, FLANK, OUTGROWN, PAIRS_DONE, ROW, SCORE
from bellapy.engines.linear.gpu.step_kernels import SCALE
from bellapy.engines.linear.rule import STRIDE
from bellapy.engines.registers.bases import sides_of
from bellapy.engines.registers.host import STATE_COLUMN
from bellapy.engines.registers.window import HALF, ONE
from bellapy.params import TILT_UNIT, Scoring

DEAD = I32(-(1 << 30))
UNKNOWN = 4
GUARDS = 3  # slots of an anti-diagonal beyond the query's columns


class Rest(NamedTuple):
    """Which flanks are extended.

    level, column : counts[level, column] flanks are in the queue, counts[level, column + 1] are taken.
    units : what the highest score counts in saved cells before SCALE, where it stands at the start of a chunk.
    """

    level: int
    column: int
    units: int


class Front(NamedTuple):
    """The last three anti-diagonals of a flank; all int32.

    k, best : the last one, and the highest score so far.
    first, last : first column of the next one's window, and the one past its last.
    older, old, new : rows of `cells` that hold them.
    begin_older .. end_new : their first slots, and those past their last, guards included.
    """

    k: np.int32
    best: np.int32
    first: np.int32
    last: np.int32
    older: np.int32
    old: np.int32
    new: np.int32
    begin_older: np.int32
    begin_old: np.int32
    begin_new: np.int32
    end_older: np.int32
    end_old: np.int32
    end_new: np.int32


class Cell(NamedTuple):
    """A cell that may be the end: score, column and row, int32."""

    score: np.int32
    column: np.int32
    row: np.int32


@inlined
def _base(reads, at):
    """The code at index `at` of ReadSet.both_ways; `reads`: Reads."""
    planes, n_bases = reads.planes, reads.n_bases
    at = at if at < n_bases else 2 * n_bases - 1 - at
    block, bit = at >> 5, U32(at & 31)
    low, high, unknown = planes[block, 0] >> bit & ONE, planes[block, 1] >> bit & ONE, planes[block, 2] >> bit & ONE
    return I32(U32(low | high << ONE | unknown << U32(2)))


@inlined
def _substitution(reads, sides, row, column, longest, scoring):
    """The score of the pair of bases before the cell of a `row` and `column`.

    `reads`, `sides`, `scoring`: Reads, Sides, Scoring; `longest`: unknown bases match each other.
    """
    q, t = _base(reads, sides.query_at + column - 1), _base(reads, sides.target_at + row - 1)
    if t < UNKNOWN:
        t = I32(t ^ I32(sides.flip & U32(3)))
    return scoring.match if q == t and (q < UNKNOWN or longest) else scoring.mismatch


@inlined
def _tilt(score, bases, scoring):
    """A `score` tilted by so many `bases` (rule.py); `scoring`: Scoring."""
    return np.int64(TILT_UNIT) * score - np.int64(scoring.tilt) * bases


@inlined
def _tilted(cell, scoring):
    """The tilted score of a Cell, `cell`; `scoring`: Scoring."""
    return _tilt(cell.score, cell.column + cell.row, scoring)


@inlined
def _most(value, lane):
    """The largest `value`, int32, of all lanes; `lane`: this one."""
    for i in range(5):
        if 1 << i < WARP:
            value = max(value, shuffle(value, lane ^ (1 << i)))
    return value


@inlined
def _lower_end(new, old, first, end_new, end_old, lane):
    """The first column from `first` on that is alive, or was just before on its left; `end_new` if there is none.

    `new`, `old`: int32, cells by column; `end_new`, `end_old`: of Front; `lane`: this one.
    """
    while first < end_new:
        c = I32(first + lane)
        stop = c >= end_new or new[c] != DEAD or c - 1 >= end_old or old[c - 1] != DEAD
        votes = ballot(stop)
        if votes:
            return I32(first + I32(cuda.ffs(I32(votes))) - 1)
        first = I32(first + WARP)
    return first


@inlined
def _upper_end(new, old, last, begin_new, lane):
    """Behind the last column before `last` that is alive now or was just before; `begin_new` if there is none.

    `new`, `old`: int32, cells by column; `begin_new`: of Front; `lane`: this one.
    """
    while last > begin_new:
        c = I32(last - 1 - lane)
        votes = ballot(c < begin_new or new[c] != DEAD or old[c] != DEAD)
        if votes:
            return I32(last - (I32(cuda.ffs(I32(votes))) - 1))
        last = I32(last - WARP)
    return last


@inlined
def _load_cells(saved, span, score_of_zero, begin, cells, lane):
    """Scores of saved cells into the columns of a window and what surrounds them.

    Parameters
    ----------
    saved : (rows / 2,) uint32, two rows in a word.
    span : first column of the window, and the one past its last.
    score_of_zero : of a saved cell that holds 0.
    begin : column of the first saved cell.
    cells : int32, by column, overwritten.
    lane : this one.

    Returns
    -------
    The first column and the last one with a live cell.
    """
    low, high = span
    first, last = high, I32(low - 1)
    c = I32(max(I32(0), low - 2) + lane)
    while c < high + 2:
        value = I32(0)
        if low <= c and c < high:
            value = I32(U32(saved[c - begin >> 1] >> U32(16 * (c - begin & 1))) & HALF)
        cells[c] = I32(value // SCALE + score_of_zero) if value else DEAD
        if value:
            first, last = min(first, c), max(last, c)
        c = I32(c + WARP)
    return I32(-_most(I32(-first), lane)), _most(last, lane)


@inlined
def _begin(cells, sides, scoring, lane):
    """The Front at the beginning of a flank.

    `cells`: (3, columns) int32, overwritten; `sides`, `scoring`: Sides, Scoring; `lane`: this one.
    """
    none, one, two = I32(0), I32(1), I32(2)
    if lane == 0:
        cells[1, 0] = 0
        cells[1, 1] = DEAD
        cells[2, 0] = cells[2, 1] = DEAD if -scoring.gap > scoring.xdrop else scoring.gap
        cells[2, 2] = DEAD
    last = one if sides.n_query == 0 or sides.n_target == 0 else two
    return Front(one, none, one, last, none, one, two, none, none, none, none, one, two)


@inlined
def _take_over(cells, heads, saved, sides, units, scoring, lane):
    """The Front of a flank that a register kernel handed over.

    `cells`: (3, columns) int32, overwritten; `heads`, `saved`: the flank's rows of Handed; `sides`: Sides; `units`: of Rest;
    `scoring`: Scoring; `lane`: this one.
    """
    pairs, best, none = heads[PAIRS_DONE], heads[SCORE], I32(0)
    k, begin = I32(2 * pairs), I32(pairs + heads[FIRST_ROW])
    low, high = max(I32(0), begin), min(I32(begin + 2 * saved.shape[1]), I32(sides.n_query + 1))
    first_new, last_new = _load_cells(saved[0], (low, high), I32(best - units), begin, cells[2], lane)
    first_old, last_old = _load_cells(saved[1], (low, high), I32(best - units - scoring.gap), begin, cells[1], lane)
    first, last = min(first_new, I32(first_old + 1)), I32(max(last_new, last_old) + 2)
    first = max(max(first, I32(1)), I32(k + 1 - sides.n_target))
    last = min(min(last, I32(k + 1)), I32(sides.n_query + 1))
    end = I32(high + 1)
    return Front(k, best, first, last, none, I32(1), I32(2), none, none, none, none, end, end)


@inlined
def _fill(cells, front, reads, sides, longest, scoring, lane):
    """The cells of the last anti-diagonal of a front, from the two before.

    `cells`: (3, columns) int32, changed; `front`, `reads`, `sides`, `scoring`: Front, Reads, Sides, Scoring; `longest`:
    which result is wanted; `lane`: this one.  Returns this lane's highest score and its column.
    """
    k, gap, drop, top, place = front.k, scoring.gap, I32(front.best - scoring.xdrop), DEAD, I32(0)
    older, old, new = cells[front.older], cells[front.old], cells[front.new]
    c = I32(front.first + lane)
    while c < front.last:
        score_of_pair = _substitution(reads, sides, k - c, c, longest, scoring)
        value = max(I32(older[c - 1] + score_of_pair), I32(max(old[c - 1], old[c]) + gap))
        value = value if value >= drop else DEAD
        new[c] = value
        if value > top:
            top, place = value, c
        c = I32(c + WARP)
    if lane == 0:
        border = k * gap > drop
        new[front.first - 1] = I32(k * gap) if border and front.first == 1 else DEAD
        new[front.last] = I32(k * gap) if border and front.last == k else DEAD
    return top, place


@inlined
def _advance(cells, front, end, reads, sides, longest, scoring, lane):
    """The next anti-diagonal.

    Parameters
    ----------
    cells : (3, columns) int32, changed.
    front, end : Front; Cell, the best one so far unless the *longest* result is wanted.
    reads, sides, scoring : Reads, Sides, Scoring.
    longest : which result is wanted.
    lane : this one.

    Returns
    -------
    The Front and the Cell then.
    """
    next_front = Front(
        I32(front.k + 1), front.best, front.first, front.last, front.old, front.new, front.older,
        front.begin_old, front.begin_new, I32(front.first - 1), front.end_old, front.end_new, I32(front.last + 1),
    )  # fmt: skip
    k, old, new = next_front.k, cells[next_front.old], cells[next_front.new]
    top, place = _fill(cells, next_front, reads, sides, longest, scoring, lane)
    sync_warp()
    most, best = _most(top, lane), front.best
    if most > best:
        best = most
        if not longest:
            column = I32(-_most(I32(-place) if top == most else DEAD, lane))
            end = Cell(best, column, I32(k - column))
    first = _lower_end(new, old, front.first, next_front.end_new, next_front.end_old, lane)
    last = I32(_upper_end(new, old, front.last, next_front.begin_new, lane) + 1)
    first, last = max(first, I32(k + 1 - sides.n_target)), min(last, I32(sides.n_query + 1))
    return Front(
        k, best, first, last, next_front.older, next_front.old, next_front.new, next_front.begin_older, next_front.begin_old,
        next_front.begin_new, next_front.end_older, next_front.end_old, next_front.end_new,
    ), end  # fmt: skip


@inlined
def _longest_end(cells, front, lane):
    """SeqAn's choice of the end cell (rule.py), a Cell; `cells`: (3, columns) int32; `front`: Front; `lane`: this one."""
    older, old, new = cells[front.older], cells[front.old], cells[front.new]
    column, diagonal, score = I32(front.end_new - 2), front.k, new[front.end_new - 2]
    if score == DEAD:
        column, diagonal, score = I32(front.end_old - 2), I32(front.k - 1), old[front.end_old - 2]
        if score == DEAD and front.end_old - front.begin_old > 2:
            column, score = I32(front.end_old - 3), old[front.end_old - 3]
    if score == DEAD:
        diagonal, place = I32(front.k - 2), I32(0)
        c = I32(front.begin_older + lane)
        while c < front.end_older:
            if older[c] > score:
                score, place = older[c], c
            c = I32(c + WARP)
        most = _most(score, lane)
        column = I32(-_most(I32(-place) if score == most else DEAD, lane))
        score = most
    if score == DEAD:
        return Cell(I32(0), I32(0), I32(0))
    return Cell(score, column, I32(diagonal - column))


@inlined
def _int32(scoring):
    """A Scoring, `scoring`, in 32 bits."""
    return Scoring(
        I32(scoring.match), I32(scoring.mismatch), I32(scoring.gap), I32(scoring.xdrop), I32(scoring.tilt), I32(scoring.fall)
    )


def extend_wide(reads, table, counts, rest, handed, scoring, longest, scratch, results):
    """Extend the flanks of a queue.

    Parameters
    ----------
    reads : Reads.
    table : (n_flanks, 5) int64, rows of `Flanks.table`.
    counts : (levels, COUNTS) int64; CELLS are those of the live windows.
    rest : Rest.
    handed : Handed, their states: from the front for OUTGROWN, from the back for ENDED; not used at level 0 without such a
        kernel before, where all flanks begin anew.
    scoring : Scoring.
    longest : which result is wanted.
    scratch : (blocks, 3, columns) int32, overwritten; as many columns as the longest query has, and GUARDS.
    results : (n_flanks, 4) int32 as in stack_kernels.py.
    """
    lane, n_cells, scoring = I32(cuda.threadIdx.x), np.int64(0), _int32(scoring)
    cells, nothing = scratch[cuda.blockIdx.x], Cell(I32(0), I32(0), I32(0))
    while True:
        ticket = I32(0)
        if lane == 0:
            ticket = I32(cuda.atomic.add(counts, (rest.level, rest.column + 1), 1))
        ticket = shuffle(ticket, 0)
        if ticket >= counts[rest.level, rest.column]:
            break
        flank, pairs = ticket, I32(0)
        if rest.level > 0 or rest.column == ENDED:
            ticket = ticket if rest.column == OUTGROWN else I32(handed.heads.shape[0] - 1 - ticket)
            flank, pairs = handed.heads[ticket, FLANK], handed.heads[ticket, PAIRS_DONE]
        sides, end, found = sides_of(table, flank), nothing, nothing  # the best cell, and the result so far
        sync_warp()
        if pairs == 0:
            front = _begin(cells, sides, scoring, lane)
        else:
            heads = handed.heads[ticket]
            front = _take_over(cells, heads, handed.cells[ticket], sides, rest.units, scoring, lane)
            if not longest:
                end = Cell(front.best, heads[COLUMN], heads[ROW])
                found = Cell(results[flank, 0], results[flank, 1], results[flank, 2])
        sync_warp()
        while front.first < front.last:
            n_cells += front.last - front.first
            front, end = _advance(cells, front, end, reads, sides, longest, scoring, lane)
            if not longest and front.k % STRIDE == 0:
                if _tilted(end, scoring) > _tilted(found, scoring):
                    found = end
                fallen = _tilt(front.best, front.k, scoring) < _tilted(found, scoring) - scoring.fall
                if scoring.fall > 0 and fallen:
                    break
        if longest and sides.n_query > 0 and sides.n_target > 0:
            end = _longest_end(cells, front, lane)
        if longest or _tilted(end, scoring) > _tilted(found, scoring):
            found = end
        if lane == 0:
            results[flank, 0], results[flank, 1], results[flank, 2] = found.score, found.column, found.row
            results[flank, STATE_COLUMN] = 0
    if lane == 0:
        cuda.atomic.add(counts, (rest.level, CELLS), n_cells)
