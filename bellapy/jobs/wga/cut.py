"""Alignments cut where homology ends.

A large y-drop carries an extension through sequence that is not related, to the next part that is: through the breakpoints
of inversions and translocations.  The score of such a stretch falls and falls.  A path is cut where its score falls by more
than `drop` from the highest point so far; what is between the highest point and the lowest one after it belongs to no part.

Source: Z. Zhang, P. Berman, T. Wiehe, W. Miller: Post-processing long pairwise alignments, Bioinformatics 15, 1999.
"""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit, njit_inner
from bellapy.records.genomes import PAIR, QUERY_ALONE, TARGET_ALONE

FORGIVEN = 25
"""Bases of a gap that count for a fall: a long gap is no sign of unrelated sequence, it joins nothing that does not
belong.
"""
START_RUN, START_COLUMN, END_RUN, END_COLUMN, QUERY, TARGET, SCORE, N_FIELDS = range(8)


@njit
def find_parts(target, query, t, q, runs, costs, drop, least):
    """Parts of a path that score at least `least`, (n, N_FIELDS) int64: first column and the one after the last, as run and
    column in it, the first pair's places, score.

    target, query : uint8 codes.  t, q : places of the first pair.  runs : (n, 2) int64, operation and length.
    costs : score matrix (5, 5) by target, then query; open; extend.  drop : 0 for never.
    """
    matrix, opened, extended = costs
    parts, n = np.zeros((_most_parts(runs, matrix, least), N_FIELDS), np.int64), 0
    part = np.zeros(N_FIELDS, np.int64)
    part[QUERY], part[TARGET] = q, t
    level = lowest = highest = np.int64(0)  # the score, with long gaps forgiven: now, at the part's beginning, at its end
    score = begun = np.int64(0)  # the score now, and at the part's beginning
    for x in range(len(runs)):
        operation, size = runs[x, 0], runs[x, 1]
        for column in range(size if operation == PAIR else 1):
            if operation == PAIR:
                pair = matrix[target[t], query[q]]
                score, level = score + pair, level + pair
                q, t = q + 1, t + 1
            else:
                score -= opened + extended * size
                level -= opened + extended * (min(size, FORGIVEN) if drop else size)
                q += size if operation == QUERY_ALONE else 0
                t += size if operation == TARGET_ALONE else 0
            if level > highest:
                highest = level
                part[END_RUN], part[END_COLUMN], part[SCORE] = x, column + 1, score - begun
            elif level <= lowest or (drop and level < highest - drop):
                n = _add_part(parts, n, part, least)
                lowest = highest = level
                begun = score
                last = column + 1 == size or operation != PAIR
                part[START_RUN], part[START_COLUMN] = (x + 1, 0) if last else (x, column + 1)
                part[QUERY], part[TARGET], part[SCORE] = q, t, 0
    return parts[: _add_part(parts, n, part, least)]


@njit_inner
def _most_parts(runs, matrix, least):
    """Parts that so many pairs can make."""
    pairs, best = 0, 0
    for x in range(len(runs)):
        pairs += runs[x, 1] if runs[x, 0] == PAIR else 0
    for a in range(len(matrix)):
        for b in range(len(matrix)):
            best = max(best, matrix[a, b])
    return pairs * best // least + 2


@njit_inner
def _add_part(parts, n, part, least):
    if part[SCORE] < least:
        return n
    for field in range(N_FIELDS):
        parts[n, field] = part[field]
    return n + 1


def runs_of_part(runs: np.ndarray, part: np.ndarray) -> np.ndarray:
    """The runs of one of the parts, (n, 2) int64."""
    some = runs[part[START_RUN] : part[END_RUN] + 1].copy()
    if runs[part[END_RUN], 0] == PAIR:
        some[-1, 1] = part[END_COLUMN]
    some[0, 1] -= part[START_COLUMN]
    return some


def runs_between(runs: np.ndarray, part: np.ndarray, later: np.ndarray) -> np.ndarray:
    """The runs from the end of one of the parts to the beginning of a later one, (n, 2) int64."""
    some = runs[part[END_RUN] : later[START_RUN] + 1].copy()
    some[-1, 1] = later[START_COLUMN]
    some[0, 1] -= part[END_COLUMN]
    return some[some[:, 1] > 0]
