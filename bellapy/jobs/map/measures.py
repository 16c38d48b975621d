"""What tags tell of a path beside what joining it counts: the score of its best part, and its unknown bases."""

from __future__ import annotations

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.runs import PAIR, QUERY_ALONE, length_of, operation_of
from bellapy.engines.affine.rule import gap_cost, pair_score
from bellapy.jobs.map.join import equal_bases
from bellapy.records.bases import UNKNOWN


@njit
def best_parts(query, target, paths, rows, scoring):
    """The highest score of any part of each path, and how many of its columns hold an unknown base, (2, n) int64.

    query, target : (any,) uint8, codes of reads and reference.  paths : Paths.  rows : (n,) int64, which of them.
    scoring : AffineScoring.
    """
    found = np.zeros((2, len(rows)), np.int64)
    for x in range(len(rows)):
        a = rows[x]
        q, t, score, best, unknown = paths.q_start[a], paths.t_start[a], np.int64(0), np.int64(0), np.int64(0)
        for y in range(paths.first[a], paths.first[a] + paths.n_runs[a]):
            operation, size = operation_of(paths.runs[y]), length_of(paths.runs[y])
            if operation == PAIR:
                b = 0
                while b < size:
                    equal = equal_bases(query, target, q + b, t + b, size - b)
                    score, b = score + equal * scoring.match, b + equal
                    best = max(best, score)
                    if b < size:
                        unknown += query[q + b] | target[t + b] >= UNKNOWN
                        score = max(np.int64(0), score + pair_score(query[q + b], target[t + b], scoring))
                        b += 1
                q, t = q + size, t + size
                continue
            score = max(np.int64(0), score - gap_cost(size, scoring))
            for b in range(size):
                unknown += (query[q + b] if operation == QUERY_ALONE else target[t + b]) >= UNKNOWN
            if operation == QUERY_ALONE:
                q += size
            else:
                t += size
        found[0, x], found[1, x] = best, unknown
    return found
