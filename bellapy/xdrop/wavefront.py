"""X-drop extension of one flank at a time, by anti-diagonals of any width: both results, any small integer scores.

The rule (Zhang et al. 2000, with the borders and the order of tests of SeqAn 2.4's gapped extension): cells (column c,
row r) lie on anti-diagonals c + r; columns run over the query's flank, rows over the target's.  A cell is the best of its
three neighbours plus a score.  It is dead if it falls below `best - xdrop`, where `best` comes from earlier anti-diagonals.
Cells of column 0 and row 0 are pure gaps and die already when they reach `best - xdrop`.  Only the window from the first to
the last live cell is kept.  The extension ends when no cell lives.

Two results are taken from it:

- *best*: the highest score seen, at its first place (earliest anti-diagonal, then smallest column); never negative.  An
  unknown base matches nothing.
- *longest*: where the extension ended, as SeqAn, BELLA and LOGAN report it: the first that lives of the last column of the
  last anti-diagonal, the second-to-last and third-to-last slot of the one before; else the maximum of the one before that
  (smallest column on ties).  Its score can be negative.  Two unknown bases match.

Scores are kept relative to a base that follows the best one, so that 16 bits do for reads of any length.
"""

from __future__ import annotations

import numpy as np

from bellapy.jit import njit, njit_vector

U, I16 = np.uint64, np.int16
BLOCK = 64  # cells are computed in whole blocks, without a scalar remainder
U_BLOCK = U(BLOCK)
DEAD = I16(-30_000)
REBASE = I16(8_192)
MAX_XDROP = 16_000
MAX_SCORE = 127
"""Bounds of the options: a live score lies between -MAX_XDROP and REBASE + 2 * MAX_SCORE, and a dead cell plus a score
neither wraps around nor reaches a live one."""
UNKNOWN_CODE = np.uint8(4)


@njit_vector
def _step(new, old, older, first, n, both_ways, query_at, target_at, flip, apart, match, mismatch, gap, drop):
    """Cells first .. first + n - 1 (rounded up to whole blocks) of one anti-diagonal; return the highest score.

    query_at, target_at : index in both_ways of the two bases of column `first`; both run forward.
    """
    top = DEAD
    for b in range(U(0), U(n), U_BLOCK):
        for w in range(U_BLOCK):
            i = U(first) + b + w
            q = both_ways[U(query_at) + b + w]
            q = np.uint8(q + (q >> np.uint8(2)) * apart)
            t = min(np.uint8(both_ways[U(target_at) + b + w] ^ flip), UNKNOWN_CODE)
            value = I16(older[i - U(1)] + (match if q == t else mismatch))
            value = max(value, I16(max(old[i - U(1)], old[i]) + gap))
            value = value if value >= drop else DEAD
            top = max(top, value)
            new[i] = value
    return top


@njit_vector
def _highest(cells, first, n):
    top = DEAD
    for i in range(U(first), U(first + n)):
        top = max(top, cells[i])
    return top


@njit_vector
def _kill(cells, first):
    for w in range(U_BLOCK):
        cells[U(first) + w] = DEAD


@njit_vector
def _lower(cells, first, last):
    for i in range(U(first), U(last)):
        value = cells[i]
        cells[i] = I16(value - REBASE) if value > DEAD else DEAD


@njit
def extend_flank(both_ways, query_at, query_length, target_at, target_length, complement, scoring, longest, cells, out):
    """Extend from (0, 0) over one flank of a seed.

    Parameters
    ----------
    both_ways : uint8 codes as `ReadSet.both_ways`.
    query_at, target_at : where the flanks begin in it; they run forward from there.
    complement : whether the target's bases are complemented.
    scoring : Scoring, checked by the caller.
    longest : which result is wanted.
    cells : (3, at least query_length + 3 * BLOCK) int16 scratch, overwritten.
    out : (3,) int64: score, query bases, target bases of the result.
    """
    out[0] = out[1] = out[2] = 0
    if query_length == 0 or target_length == 0:
        return
    match, mismatch, gap = I16(scoring.match), I16(scoring.mismatch), I16(scoring.gap)
    reversed_at = both_ways.size - target_at - target_length
    flip, apart = np.uint8(3 if complement else 0), np.uint8(0 if longest else 4)
    columns, rows, xdrop = query_length + 1, target_length + 1, scoring.xdrop
    older, old, new = cells[0], cells[1], cells[2]
    begin_old, begin_new, end_old, end_new = 0, 0, 1, 2  # slots of each anti-diagonal, guards included
    begin_older = end_older = 0
    old[0] = 0
    _kill(old, 1)
    new[0] = new[1] = DEAD if -scoring.gap > xdrop else gap
    _kill(new, 2)
    k = first = 1
    last = 2
    best = base = 0
    while first < last:
        k += 1
        older, old, new = old, new, older
        begin_older, begin_old, begin_new = begin_old, begin_new, first - 1
        end_older, end_old, end_new = end_old, end_new, last + 1
        drop = I16(best - base - xdrop)
        top = _step(
            new, old, older, first, last - first, both_ways, query_at + first - 1, reversed_at + target_length - k + first,
            flip, apart, match, mismatch, gap, drop,
        )  # fmt: skip
        new[first - 1] = DEAD
        _kill(new, last)
        if longest and last == columns:
            top = _highest(new, first, last - first)  # beyond the last column, unknown bases may have met
        if k * scoring.gap > best - xdrop:
            if first == 1:
                new[0] = k * scoring.gap - base
            if last == k:
                new[k] = k * scoring.gap - base
        if top > best - base:
            best = base + top
            if not longest:
                column = first
                while new[column] != top:
                    column += 1
                out[0], out[1], out[2] = best, column, k - column
        while first < end_new and new[first] == DEAD and first - 1 < end_old and old[first - 1] == DEAD:
            first += 1
        while last > begin_new and new[last - 1] == DEAD and old[last - 1] == DEAD:
            last -= 1
        last += 1
        first, last = max(first, k + 2 - rows), min(last, columns)
        if best - base > REBASE:
            for line in (older, old, new):
                _lower(line, min(begin_older, begin_new), end_new + BLOCK)
            base += REBASE
    if longest:
        _take_end(older, old, new, begin_older, end_older, begin_old, end_old, end_new, k, base, out)


@njit
def _take_end(older, old, new, begin_older, end_older, begin_old, end_old, end_new, k, base, out):
    """SeqAn's choice of the end cell; see the module's text."""
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
        out[0], out[1], out[2] = base + score, column, diagonal - column
