#!/usr/bin/env python3
"""Affine alignments of pairs in a band of diagonals on GPUs: cells a second, and the same integers as the CPU.

    python benchmarks/gpu_affine.py [--pairs 20000] [--error 0.1] [--band 751] [--one-piece] [--check 1000] [--repeats 5]
                                    [-o RESULT.json]

Pairs of 2.5 to 7.5 kb.  "kernels" is the time by events from the first kernel to the end of the last, the gathering of paths
included; "host to host" from base codes in memory to scores and paths in memory.  Both are medians, after a run that is not
counted.  GCUPS are cells of the band that was asked for, as far as they lie in the tables, by the kernels' seconds; the band
that is computed is wider.  `--check` pairs are aligned by the CPU, too: scores and paths have to be equal.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.metadata import version
from statistics import median

import numpy as np
import pairs as pair_maker
from common import describe_machine, finish, table
from pairs import lay_out, noisy, random_read

from bellapy.compute.gpu.pool import pool
from bellapy.compute.resources import Resources
from bellapy.engines.affine.batch_cpu import Aligner, Effort
from bellapy.engines.affine.gpu.bands import Bands, align_bands
from bellapy.engines.affine.pieces import Pieces, Solved
from bellapy.engines.affine.rule import ordered, rows_of_band
from bellapy.params import AffineScoring


def make_pairs(task: tuple[int, int, float]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two noisy copies of random reads; the task: number of the random generator, pairs, error of a pair."""
    number, n, pair_maker.ERROR = task
    rng = np.random.default_rng(number)
    return [(noisy(rng, whole), noisy(rng, whole)) for whole in (random_read(rng) for _ in range(n))]


def count_cells(pieces: Pieces, band: int) -> int:
    """Cells of the tables within `band` diagonals, as many on either side of the ends of the alignment."""
    total = 0
    first = (pieces.t_len - pieces.q_len) // 2 - band // 2
    for d in range(band):
        diagonal = first + d
        some = np.minimum(pieces.q_len, pieces.t_len - diagonal) - np.maximum(0, -diagonal)
        total += int(np.maximum(some, 0).sum())
    return total


def unequal(
    pieces: Pieces, codes, found: Solved, rows: np.ndarray, effort: Effort, scoring, paths: bool, threads: int
) -> int:
    """How many of some pairs the CPU aligns otherwise."""

    def differ(some: np.ndarray) -> int:
        solved, n = Aligner(scoring).align(*codes, pieces.take(some), effort), 0
        for p, row in enumerate(some):
            mine = solved.runs[solved.starts[p] : solved.starts[p] + solved.counts[p]]
            its = found.runs[found.starts[row] : found.starts[row] + found.counts[row]]
            n += solved.score[p] != found.score[row] or (paths and not np.array_equal(mine, its))
        return n

    with ThreadPoolExecutor(threads) as workers:
        return sum(workers.map(differ, np.array_split(rows, max(1, min(len(rows), 4 * threads)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--error", type=float, default=0.1, help="of a pair")
    parser.add_argument("--band", type=int, default=751, help="diagonals")
    parser.add_argument("--one-piece", action="store_true")
    parser.add_argument("--check", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=16, help="of the CPU, for the comparison")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    size = -(-options.pairs // 64)
    tasks = [(seed, min(size, options.pairs - at), options.error) for seed, at in enumerate(range(0, options.pairs, size))]
    with ProcessPoolExecutor() as processes:
        queries, targets, pieces = lay_out([pair for part in processes.map(make_pairs, tasks) for pair in part])
    scoring = ordered(AffineScoring(2, -4, 4, 2, 4, 2) if options.one_piece else AffineScoring())
    rows = int(rows_of_band(options.band, pieces.q_len, pieces.t_len, pieces.mode).max())
    effort, cells = Effort(diagonals=2 * rows), count_cells(pieces, options.band)
    checked = np.random.default_rng(1).choice(options.pairs, min(options.check, options.pairs), replace=False)
    lines, results = [], []
    for paths in (False, True):
        kernels, totals = [], []
        for _ in range(options.repeats + 1):
            resources, start = Resources(options.threads), time.perf_counter()
            found, taken = align_bands(queries, targets, pieces, Bands(rows, scoring, paths), resources)
            totals.append(time.perf_counter() - start)
            kernels.append(max(device.kernel_s for device in resources.devices.used()))
        seconds, total = median(kernels[1:]), median(totals[1:])
        wrong = unequal(pieces, (queries, targets), found, checked, effort, scoring, paths, options.threads)
        result = {"paths": paths, "kernels": seconds, "total": total, "gcups": cells / seconds / 1e9, "rows": rows,
                  "computed": found.cells / seconds / 1e9, "checked": len(checked), "unequal": int(wrong),
                  "left": int((~taken).sum())}  # fmt: skip
        results.append(result)
        line = ["yes" if paths else "no", f"{seconds * 1e3:.1f}", f"{result['gcups']:.0f}", f"{result['computed']:.0f}"]
        line += [f"{total * 1e3:.0f}", f"{cells / total / 1e9:.0f}", f"{wrong} of {len(checked)}", result["left"]]
        lines.append(line)
        print(*lines[-1], flush=True)
    header = ["paths", "kernels ms", "GCUPS", "with all rows", "host to host ms", "GCUPS", "unlike the CPU", "left out"]
    machine = describe_machine([])
    machine["packages"]["numba-cuda"] = version("numba-cuda")
    machine["processor"] += " with " + ", ".join(device.gpu.name for device in pool().devices)
    results = {"benchmark": "gpu_affine", **vars(options), "cells": cells, "machine": machine, "results": results}
    finish([table(header, lines)], results, options.output)


if __name__ == "__main__":
    main()
