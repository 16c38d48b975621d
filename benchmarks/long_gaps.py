#!/usr/bin/env python3
"""An insertion and a deletion of 10 to 40 bases in one piece: how many scores are those of the whole table.

    python benchmarks/long_gaps.py [--pieces 3000] [-o RESULT.json]

A path with both leaves its diagonal and comes back, so that the lengths of a piece do not tell how wide a band it needs.
"proved" is what `pairwise` does.  "as map" accepts bands as `map` does, after learning from pieces without such gaps.  The
whole table is computed here, cell by cell.
"""

from __future__ import annotations

import argparse

import numba
import numpy as np
import pairs as pair_maker
from common import describe_machine, finish, table
from pairs import lay_out, noisy

from bellapy.engines.affine.batch_cpu import EXACT, Aligner
from bellapy.engines.affine.rule import ordered
from bellapy.jobs.map.learn import effort_from, rates_and_strays
from bellapy.params import map_preset

KINDS = (0.15, "clr"), (0.15, "ont"), (0.05, "ont"), (0.003, "hifi")
LEARNT_FROM = 512  # pieces
LENGTHS, GAPS, EDGE = (200, 400), (10, 41), 20
LOWEST = -(10**9)


@numba.njit
def whole_table(query, target, match, mismatch, costs):
    """The best global score.  query, target : uint8 codes.  costs : (2, 2) int64, opening and extending of both pieces."""
    n = len(target) + 1
    best, down = np.full(n, LOWEST), np.full((2, n), LOWEST)
    for i in range(len(query) + 1):
        corner, right = LOWEST, np.full(2, LOWEST)
        for j in range(n):
            here = 0 if i == 0 and j == 0 else LOWEST
            if i > 0 and j > 0:
                here = corner + (match if query[i - 1] == target[j - 1] else mismatch)
            for piece in range(2):
                opened, extended = costs[piece]
                down[piece, j] = max(best[j] - opened, down[piece, j]) - extended
                right[piece] = max((best[j - 1] if j > 0 else LOWEST) - opened, right[piece]) - extended
                here = max(here, down[piece, j], right[piece])
            corner, best[j] = best[j], here
    return best[-1]


def make_pair(rng: np.random.Generator, error: float, gaps: bool) -> tuple[np.ndarray, np.ndarray]:
    """A noisy copy of a random piece, with an insertion and a deletion in either order if asked for, and the piece."""
    pair_maker.ERROR = 2 * error
    whole = rng.integers(0, 4, int(rng.integers(*LENGTHS))).astype(np.uint8)
    copy = noisy(rng, whole)
    if gaps:
        inserted, deleted = rng.integers(*GAPS, 2)
        at = np.sort(rng.integers(EDGE, len(copy) - 2 * EDGE - GAPS[1], 2))
        more = rng.integers(0, 4, inserted).astype(np.uint8)
        if rng.random() < 0.5:
            copy = np.concatenate((copy[: at[0]], more, copy[at[0] : at[1]], copy[at[1] + deleted :]))
        else:
            copy = np.concatenate((copy[: at[0]], copy[at[0] + deleted : at[1] + deleted], more, copy[at[1] + deleted :]))
    return copy, whole


def measure_kind(error: float, preset: str, n: int) -> list[list]:
    """Rows of the table: errors, preset, how bands are accepted, equal scores, of how many, share of the scores' sum."""
    rng, scoring = np.random.default_rng(1), ordered(map_preset(preset).scoring)
    aligner = Aligner(scoring)
    codes, more_codes, plain = lay_out([make_pair(rng, error, False) for _ in range(LEARNT_FROM)])
    effort = effort_from(*rates_and_strays(plain, aligner.align(codes, more_codes, plain)), EXACT)
    pairs = [make_pair(rng, error, True) for _ in range(n)]
    costs = np.array([[scoring.open1, scoring.extend1], [scoring.open2, scoring.extend2]])
    wanted = np.array([whole_table(*pair, scoring.match, scoring.mismatch, costs) for pair in pairs])
    rows = []
    for name, some in (("proved", EXACT), ("as map", effort)):
        score = aligner.align(*lay_out(pairs), some).score
        rows.append([error, preset, name, int((score == wanted).sum()), n, round(float(score.sum() / wanted.sum()), 5)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", type=int, default=3000)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    rows = [row for kind in KINDS for row in measure_kind(*kind, options.pieces)]
    results = {"benchmark": "long gaps", "machine": describe_machine([]), "rows": rows}
    finish([table(["errors", "preset", "bands", "equal", "of", "share of the best scores"], rows)], results, options.output)


if __name__ == "__main__":
    main()
