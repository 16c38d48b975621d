"""Slow, obvious optimal alignment with affine gaps: the oracle of the tests of `bellapy exact`.

Plain Python on strings, written from the definition.  Nothing here imports bellapy.
"""

from __future__ import annotations

NONE = float("-inf")


def tables(query, target, match, mismatch, gap_open, gap_extend, mode):
    """H, E and F of all cells, (len(query) + 1) rows; E and F: the last column is a gap along the row, down the column."""
    rows, columns = len(query) + 1, len(target) + 1
    first = gap_open + gap_extend
    h, e, f = ([[NONE] * columns for _ in range(rows)] for _ in range(3))
    for i in range(rows):
        for j in range(columns):
            if i == 0 or j == 0:
                gap = i + j
                h[i][j] = 0 if mode != "global" or gap == 0 else -gap_open - gap_extend * gap
                continue
            e[i][j] = max(h[i][j - 1] - first, e[i][j - 1] - gap_extend)
            f[i][j] = max(h[i - 1][j] - first, f[i - 1][j] - gap_extend)
            same = query[i - 1] == target[j - 1] and query[i - 1] in "ACGT"
            h[i][j] = max(h[i - 1][j - 1] + (match if same else mismatch), e[i][j], f[i][j])
            if mode == "local":
                h[i][j] = max(h[i][j], 0)
    return h, e, f


def best_score(query, target, match, mismatch, gap_open, gap_extend, mode):
    """The optimal score; 0 where local or semiglobal alignments reach nothing better."""
    h, _, _ = tables(query, target, match, mismatch, gap_open, gap_extend, mode)
    if mode == "global":
        return h[-1][-1]
    if mode == "local":
        return max(map(max, h))
    return max(0, *h[-1], *(row[-1] for row in h))


def rescore(query, target, operations, match, mismatch, gap_open, gap_extend):
    """Score of a path from the first bases to the last ones; operations: (M, I or D, size), I leaves query bases out."""
    i = j = score = 0
    for letter, size in operations:
        if letter == "M":
            for _ in range(size):
                same = query[i] == target[j] and query[i] in "ACGT"
                score += match if same else mismatch
                i, j = i + 1, j + 1
        else:
            score -= gap_open + gap_extend * size
            i, j = (i + size, j) if letter == "I" else (i, j + size)
    assert (i, j) == (len(query), len(target)), "the path does not cover both sequences"
    return score
