"""The rule of X-drop extension in scalar form: one flank, anti-diagonal by anti-diagonal, both results, any scores.

The rule (Zhang et al. 2000, with the borders and the order of tests of SeqAn 2.4's gapped extension): cells (column c,
row r) lie on anti-diagonals k = c + r; columns run over the query's flank, rows over the target's.  A cell is the best of
its three neighbours plus a score.  It is dead if it falls below `best - xdrop`, where `best` comes from earlier
anti-diagonals.  Cells of column 0 and row 0 are pure gaps and die already when they reach `best - xdrop`.  Only the window
from the first to the last live cell is kept.  The extension ends when no cell lives.

Two results are taken from it:

- *best*: the highest score seen, at its first place (earliest anti-diagonal, then smallest column); never negative.  An
  unknown base matches nothing.  With a tilt it is where homology ends.  Unrelated sequence gains score too, so that the
  highest score lies far beyond the homology.  A tilted score is TILT_UNIT times the score less `tilt` for each base of
  either read.  After every STRIDE anti-diagonals, and at the end, the highest score so far is tilted.  The result is the
  one whose tilted score was the highest, the first of equal ones.  The extension also stops after such a stride if the
  highest score, tilted as of the last anti-diagonal, is more than `fall` below that.
- *longest*: where the extension ended, as SeqAn, BELLA and LOGAN report it: the first that lives of the last column of the
  last anti-diagonal, the second-to-last and third-to-last slot of the one before; else the maximum of the one before that
  (smallest column on ties).  Its score can be negative.  Two unknown bases match.

lanes.py computes the same in vector code; extend_lanes.py comes back here for the last anti-diagonals of a *longest* result
and for windows wider than any of its own.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit_entry, njit_inner
from bellapy.params import TILT_UNIT
from bellapy.records.bases import UNKNOWN

DEAD = np.int64(-(1 << 40))
GUARD = 4
"""Cells that an anti-diagonal needs beyond its flank's columns."""
STRIDE = 64
"""Anti-diagonals between two looks at the tilted score; a part of the definition, so that no chunk shows in the results."""


@njit_inner
def flank_at(flanks, i):
    """Row `i` of `flanks`, (n, 5) int64 as `Flanks.table`, as five numbers."""
    return flanks[i, 0], flanks[i, 1], flanks[i, 2], flanks[i, 3], flanks[i, 4]


@njit_inner
def extend_flank(codes, flank, scoring, longest, cells, out):
    """Extend from (0, 0) over one flank of a seed.

    Parameters
    ----------
    codes : uint8 as `ReadSet.both_ways`.
    flank : one row of `Flanks.table`.
    scoring : Scoring, checked by the caller.
    longest : which result is wanted.
    cells : (3, at least query_length + GUARD) int64 scratch, overwritten.
    out : (3,) int64: score, query bases, target bases of the result.
    """
    out[0] = out[1] = out[2] = 0
    if flank[1] == 0 or flank[3] == 0:
        return
    older, old, new = cells[0], cells[1], cells[2]
    old[0] = 0
    new[0] = new[1] = DEAD if -scoring.gap > scoring.xdrop else scoring.gap
    old[1] = new[2] = DEAD
    zero, one, two = np.int64(0), np.int64(1), np.int64(2)
    _follow(codes, flank, scoring, longest, (older, old, new), one, (one, two), (zero, zero, one, two), zero, out)


@njit_entry
def extend_each(codes, flanks, scoring, longest, cells, results):
    """The same for all rows of `flanks`, (n, 5) int64 as `Flanks.table`, into the rows of `results`, (n, 3) int64.

    `codes`, `scoring`, `longest`, `cells`: as of `extend_flank`.
    """
    for i in range(len(flanks)):
        extend_flank(codes, flank_at(flanks, i), scoring, longest, cells, results[i])


@njit_inner
def resume(codes, flank, scoring, cells, k, span, best, out):
    """The *longest* result, from a state at least two anti-diagonals before the end.

    Parameters
    ----------
    codes, flank, scoring, out : as above.
    cells : as above; rows 1 and 2 hold anti-diagonals k - 1 and k, whose live cells lie in the columns low .. high - 1;
        columns low - 2 .. high + 1 are filled (DEAD where no cell lives).
    k : the last anti-diagonal.
    span : low and high.
    best : highest score so far.
    """
    old, new = cells[1], cells[2]
    low, high = span
    first, last = high, low
    for c in range(low, high):
        if new[c] != DEAD:
            first, last = min(first, c), max(last, c + 2)
        if old[c] != DEAD:
            first, last = min(first, c + 1), max(last, c + 2)
    first, last = max(first, 1, k + 1 - flank[3]), min(last, k + 1, flank[1] + 1)
    out[0] = out[1] = out[2] = zero = np.int64(0)
    extents = (zero, zero, high + 1, high + 1)
    _follow(codes, flank, scoring, np.bool_(True), (cells[0], old, new), k, (first, last), extents, best, out)


@njit_inner
def _follow(codes, flank, scoring, longest, rows, k, window, extents, best, out):
    """From two anti-diagonals to the end.

    Parameters
    ----------
    codes, flank, scoring, longest, out : as of `extend_flank`.
    rows : three of `cells`: scratch, anti-diagonals k - 1 and k.
    k : the last anti-diagonal.
    window : of the next one: its first column, and the one past its last.
    extents : first slots of the two, and the slots past their last, guards included.
    best : highest score so far.
    """
    query_at, query_length, target_at, target_length, flip = flank
    older, old, new = rows
    first, last = window
    match, mismatch, gap, xdrop, tilt, fall = scoring
    column = row = highest = np.int64(0)  # of the best cell so far; and the best tilted score
    begin_old, begin_new, end_old, end_new = extents
    begin_older = end_older = np.int64(0)
    while first < last:
        k += 1
        older, old, new = old, new, older
        begin_older, begin_old, begin_new = begin_old, begin_new, first - 1
        end_older, end_old, end_new = end_old, end_new, last + 1
        top = DEAD
        for c in range(first, last):
            q, t = codes[query_at + c - 1], codes[target_at + k - c - 1]
            equal = q == (t ^ flip) if q != UNKNOWN and t != UNKNOWN else longest and q == t
            value = max(older[c - 1] + (match if equal else mismatch), max(old[c - 1], old[c]) + gap)
            new[c] = value if value >= best - xdrop else DEAD
            top = max(top, new[c])
        new[first - 1] = new[last] = DEAD
        if k * gap > best - xdrop:
            if first == 1:
                new[0] = k * gap
            if last == k:
                new[k] = k * gap
        if top > best:
            best = top
            column = first
            while new[column] != top:
                column += 1
            row = k - column
        while first < end_new and new[first] == DEAD and first - 1 < end_old and old[first - 1] == DEAD:
            first += 1
        while last > begin_new and new[last - 1] == DEAD and old[last - 1] == DEAD:
            last -= 1
        last += 1
        first, last = max(first, k + 1 - target_length), min(last, query_length + 1)
        if not longest and k % STRIDE == 0:
            highest = take_tilted(best, column, row, tilt, highest, out)
            if has_fallen(best, k, tilt, fall, highest):
                return
    if longest:
        _take_end((older, old, new), (begin_older, begin_old), (end_older, end_old, end_new), k, out)
    else:
        take_tilted(best, column, row, tilt, highest, out)


@njit_inner
def tilted_score(score, k, tilt):
    """The tilted score of a cell of anti-diagonal `k` with this `score`; `tilt`: as in Scoring."""
    return TILT_UNIT * score - tilt * k


@njit_inner
def take_tilted(score, column, row, tilt, highest, out):
    """Take a best cell as the result if its tilted score exceeds the highest so far; return the higher of the two.

    `score`, `column`, `row`: the cell; `tilt`: as in Scoring; `highest`: the highest so far; `out`: the result, (3,) int64.
    """
    tilted = tilted_score(score, column + row, tilt)
    if tilted <= highest:
        return highest
    out[0], out[1], out[2] = score, column, row
    return tilted


@njit_inner
def has_fallen(score, k, tilt, fall, highest):
    """Whether the extension stops after anti-diagonal `k`: nothing near it can come close to the best tilted score.

    `score`: the highest so far; `tilt`, `fall`: as in Scoring; `highest`: the best tilted score.
    """
    return (fall > 0) & (tilted_score(score, k, tilt) < highest - fall)


@njit_inner
def _take_end(rows, begins, ends, k, out):
    """SeqAn's choice of the end cell; see the module's text.

    Parameters
    ----------
    rows : anti-diagonals k - 2, k - 1 and k, the last with a window.
    begins : first slots of the first two.
    ends : slots past the last ones, guards included.
    k : see above.
    out : (3,) int64, filled in where a cell lives.
    """
    older, old, new = rows
    begin_older, begin_old = begins
    end_older, end_old, end_new = ends
    column, diagonal, score = end_new - 2, k, new[end_new - 2]
    if score == DEAD:
        diagonal = k - 1
        column, score = end_old - 2, old[end_old - 2]
        if score == DEAD and end_old - begin_old > 2:
            column, score = end_old - 3, old[end_old - 3]
    if score == DEAD:
        diagonal = k - 2
        for c in range(begin_older, end_older):
            if older[c] > score:
                column, score = c, older[c]
    if score != DEAD:
        out[0], out[1], out[2] = score, column, diagonal - column
