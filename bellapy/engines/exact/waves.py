"""Global alignment by wavefronts of equal penalty, for sequences that hardly differ (Marco-Sola and others 2021).

With a match at 0, an alignment's penalty is what it misses of the most that two sequences of these lengths can score, twice:

    penalty = match * (rows + columns) - 2 * score          in units of the largest number that divides all costs

Wave p has, for every diagonal (row - column), the last row that a path with penalty p reaches: H, E and F as in `rule.py`.
Runs of matches cost nothing, so the work grows with the penalty and not with the length.

A cell is reached with penalty p or less if wave p gets to its row or beyond, as penalties do not fall along a diagonal.  So
a walk back finds from the waves which steps lead to the optimum, and follows the rule for ties of `trace.py`.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit, njit_entry, njit_inner
from bellapy.compute.runs import PAIR, QUERY_ALONE, TARGET_ALONE
from bellapy.engines.exact.path import Runs, add_base
from bellapy.engines.exact.rule import Scores

NOWHERE = -1
CELLS_PER_BASE = 0.25
"""Waves are given up with more cells than this for each base of both sequences: other ways are hardly slower then."""
LEAST_CELLS = 4096
MATCHES_PER_BASE = 2  # of a wave's runs of matches; more are found in repeats only


class Penalties(NamedTuple):
    """What a mismatch, a gap's opening and each base in a gap cost, whole numbers above or at 0."""

    mismatch: int
    opening: int
    base: int


class Waves(NamedTuple):
    """All waves: h, e, f, (any,) int32, rows or NOWHERE; wave p has the diagonals low[p] to high[p] from begin[p] on."""

    h: np.ndarray
    e: np.ndarray
    f: np.ndarray
    begin: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Solved(NamedTuple):
    """The best score, the path from the sequences' ends (of the backward matrix: its start) as Runs has it, and the cells of
    all waves."""

    score: int
    runs: np.ndarray
    n_cells: int


def solve(query: np.ndarray, target: np.ndarray, scores: Scores) -> Solved | None:
    """The best global alignment in a backward matrix, walked from its last cell; None if its penalty is not small.

    query, target : (n,), (m,) uint8 codes of the backward matrix; unknown bases of the two differ.
    """
    n, m = len(query), len(target)
    plain = 2 * (scores.match - scores.mismatch), 2 * scores.gap_open, 2 * scores.gap_extend + scores.match
    unit = gcd(*plain)
    costs, room = Penalties(*(cost // unit for cost in plain)), max(LEAST_CELLS, int(CELLS_PER_BASE * (n + m)))
    least = costs.opening + costs.base * abs(n - m) if n != m else 0
    most = int(np.sqrt(2 * costs.base * room)) + least  # waves widen by a diagonal to each side in so many steps
    if least and room < least * abs(n - m) // 2:
        return None
    cells = (np.empty(room, np.int32) for _ in range(3))
    waves = Waves(*cells, *(np.zeros(most + 1, np.int64) for _ in range(3)))
    last = _spread(query, target, costs, waves, most, MATCHES_PER_BASE * (n + m) + LEAST_CELLS)
    if last < 0:
        return None
    out, runs = np.empty(n + m, np.uint32), Runs()
    k, row, column = _walk(query, target, costs, waves, last, out)
    runs.add(out[:k].copy())
    runs.add_run(QUERY_ALONE, row)
    runs.add_run(TARGET_ALONE, column)
    n_cells = waves.begin[last] + waves.high[last] - waves.low[last] + 1
    return Solved((scores.match * (n + m) - int(last) * unit) // 2, runs.joined(), int(n_cells))


@njit_inner
def _at(rows, waves, p, k):
    """The row of diagonal k in wave p.  rows : one of h, e, f of waves, Waves."""
    if p < 0 or k < waves.low[p] or k > waves.high[p]:
        return np.int64(NOWHERE)
    return np.int64(rows[waves.begin[p] + k - waves.low[p]])


@njit_inner
def _set_range(waves, p, costs, n, m, most):
    """Diagonals of wave p, those that its sources reach and from which the end can be reached; False: there are none."""
    low, high = 1 << 40, -(1 << 40)
    for back, wider in ((costs.mismatch, 0), (costs.opening + costs.base, 1), (costs.base, 1)):
        if p >= back:
            low, high = min(low, waves.low[p - back] - wider), max(high, waves.high[p - back] + wider)
    if p == 0:
        low = high = 0
    off = (most - p) // costs.base
    waves.low[p], waves.high[p] = max(low, n - m - off, -m), min(high, n - m + off, n)
    return waves.low[p] <= waves.high[p]


@njit_inner
def _reach(waves, p, k, costs, n, m):
    """H, E and F of diagonal k in wave p before runs of matches.  waves, costs : Waves, Penalties."""
    opened = p - costs.opening - costs.base
    e = max(_at(waves.h, waves, opened, k + 1), _at(waves.e, waves, p - costs.base, k + 1))
    f = max(_at(waves.h, waves, opened, k - 1), _at(waves.f, waves, p - costs.base, k - 1))
    h = _at(waves.h, waves, p - costs.mismatch, k)
    if p == 0:
        h = np.int64(-1 if k else 0)
    elif h != NOWHERE:
        h = h + 1 if h < n and h - k < m else np.int64(NOWHERE)
    if e != NOWHERE and e - k > m:
        e = np.int64(NOWHERE)
    f = f + 1 if f != NOWHERE and f < n else np.int64(NOWHERE)
    return max(h, e, f), e, f


@njit_entry
def _spread(query, target, costs, waves, most, matches):
    """Make waves until one reaches the end; its penalty, or -1 if it is above `most` or there is no room.

    query, target : (any,) uint8.  costs : Penalties.  waves : Waves, filled.  matches : bases that may be compared.
    """
    n, m, used = len(query), len(target), 0
    for p in range(most + 1):
        waves.begin[p] = used
        if not _set_range(waves, p, costs, n, m, most):
            waves.low[p], waves.high[p] = 1, 0
            continue
        used += waves.high[p] - waves.low[p] + 1
        if used > len(waves.h) or matches < 0:
            return -1
        for k in range(waves.low[p], waves.high[p] + 1):
            h, e, f = _reach(waves, p, k, costs, n, m)
            if h != NOWHERE:
                begin = h
                while h < n and h - k < m and query[h] == target[h - k]:
                    h += 1
                matches -= h - begin
            at = waves.begin[p] + k - waves.low[p]
            waves.h[at], waves.e[at], waves.f[at] = h, e, f
        if _at(waves.h, waves, p, n - m) == n:
            return p
    return -1


@njit
def _walk(query, target, costs, waves, p, out):
    """Walk back from the last cell to the matrix's border; number of runs, and the cell.

    query, target, costs, waves : as in `_spread`.  p : penalty of the last cell.  out : (any,) uint32, filled.
    """
    i, j, n, gap = len(query), len(target), np.int64(0), np.int64(PAIR)
    while i > 0 and j > 0:
        k = i - j
        if gap == PAIR and _at(waves.e, waves, p, k) >= i:
            gap = TARGET_ALONE
        elif gap == PAIR and _at(waves.f, waves, p, k) >= i:
            gap = QUERY_ALONE
        n = add_base(out, n, gap)
        if gap == PAIR:
            p -= 0 if query[i - 1] == target[j - 1] else costs.mismatch
        i, j = i - (gap != TARGET_ALONE), j - (gap != QUERY_ALONE)
        if gap != PAIR:
            opened = p - costs.opening - costs.base
            is_end = _at(waves.h, waves, opened, i - j) >= i
            p = opened if is_end else p - costs.base
            gap = PAIR if is_end else gap
    return n, i, j
