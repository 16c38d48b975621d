#!/usr/bin/env python3
"""Pairs of sequences from Python: `bellapy.pairwise` beside parasail and pywfa, one thread, with paths.

    python benchmarks/pairwise.py [-o RESULT.json]

Global alignment of random sequences with noisy copies, a third each of mismatches, insertions and deletions; 2 for a match,
-4 for a mismatch, and 4 + 2 g for a gap.  All programs are called in one process, and their scores are compared.  pywfa
takes costs, so that these scores are 12 for a mismatch and 8 + 6 g for a gap there.  Needs parasail and pywfa (pip).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import parasail
import pywfa
from common import describe_machine, finish, table

import bellapy

SETS = (20_000, 150, 0.05), (3000, 1000, 0.05), (3000, 1000, 0.1), (1500, 2000, 0.05), (100, 10_000, 0.1)
"""Pairs, bases, differences."""
MATCH, MISMATCH, OPEN, EXTEND = 2, -4, 4, 2
LETTERS = np.frombuffer(b"ACGT", np.uint8)
Pairs = list[tuple[str, str]]


def make_pairs(rng: np.random.Generator, n: int, bases: int, rate: float) -> Pairs:
    pairs = []
    for _ in range(n):
        target, kind = rng.integers(0, 4, bases), rng.random(bases) * 3 / rate
        query = np.where(kind < 1, (target + rng.integers(1, 4, bases)) % 4, target)
        query = np.repeat(query, np.where((kind >= 1) & (kind < 2), 0, np.where((kind >= 2) & (kind < 3), 2, 1)))
        pairs.append((LETTERS[query].tobytes().decode(), LETTERS[target].tobytes().decode()))
    return pairs


def by_bellapy(pairs: Pairs) -> list[int]:
    costs = {"match": MATCH, "mismatch": MISMATCH, "gap_open": OPEN, "gap_extend": EXTEND}
    scores: list[int] = bellapy.pairwise(pairs, cigar=True, threads=1, device="cpu", **costs).columns()["score"].tolist()
    return scores


def by_parasail(pairs: Pairs) -> list[int]:
    matrix, scores = parasail.matrix_create("ACGT", MATCH, MISMATCH), []
    for query, target in pairs:
        found = parasail.nw_trace_striped_sat(query, target, OPEN + EXTEND, EXTEND, matrix)
        scores.append(found.score)
        assert found.cigar.decode
    return scores


def by_pywfa(pairs: Pairs) -> list[int]:
    """Scores from costs: a pair of bases is worth twice a match, whatever becomes of its bases."""
    wavefront = pywfa.WavefrontAligner(
        distance="affine", match=0, mismatch=2 * (MATCH - MISMATCH), gap_opening=2 * OPEN, gap_extension=2 * EXTEND + MATCH
    )
    scores = []
    for query, target in pairs:
        wavefront(query, target)
        assert wavefront.cigarstring
        scores.append((MATCH * (len(query) + len(target)) + wavefront.score) // 2)
    return scores


def timed(align: Callable[[Pairs], list[int]], pairs: Pairs) -> tuple[float, list[int]]:
    """CPU seconds, and the scores."""
    align(pairs[:64])  # the first call may compile
    began = time.process_time()
    scores = align(pairs)
    return time.process_time() - began, scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    rows = []
    for n, bases, rate in SETS:
        pairs = make_pairs(np.random.default_rng(1), n, bases, rate)
        (ours, scores), *others = (timed(align, pairs) for align in (by_bellapy, by_parasail, by_pywfa))
        same = all(other == scores for _, other in others)
        seconds = (f"{used:.2f}" for used in (ours, *(used for used, _ in others)))
        rows.append([f"{n:,} of {bases:,} bases, {100 * rate:g} %", *seconds, "the same" if same else "differ"])
    results = {"benchmark": "pairwise", "machine": describe_machine([]), "rows": rows}
    finish([table(["pairs", "bellapy, CPU s", "parasail", "pywfa", "scores"], rows)], results, options.output)


if __name__ == "__main__":
    main()
