"""Optimal alignment on GPUs: cells a second without pruning, and whole alignments by stages.

    python benchmarks/exact_gpu.py A B [--bases N] [--unpruned] [--score S] [-o exact_gpu.json]

A and B: FASTA with one record each.  --bases takes the first N of both.  --unpruned sweeps over the whole matrix on one GPU
and on all: the lower bound is known, and nothing is left out.  Kernels are compiled before the clock runs.
CUDA_VISIBLE_DEVICES chooses.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from common import describe_machine, finish, table

from bellapy.compute.gpu.pool import pool
from bellapy.compute.threads import usable_cores
from bellapy.engines.exact.align import align_one
from bellapy.engines.exact.cpu import Bounds, Task, free_borders
from bellapy.engines.exact.gpu.sweep import GpuSweep
from bellapy.engines.exact.guess import lower_bound
from bellapy.engines.exact.rule import Scores, as_target
from bellapy.engines.exact.sweeps import Sweeper
from bellapy.jobs.exact.pipeline import read_record
from bellapy.report.run_report import Devices

SCORES = Scores()
SIZE = 32
ANY = 1 << 28  # a bound that excludes nothing


def whole_matrix(query: np.ndarray, target: np.ndarray, known: int = 1) -> Task:
    """Local mode, nothing left out."""
    n, m = len(query), len(target)
    n_rows = -(-n // SIZE)
    gains = [np.full(k + 1, ANY, np.int32) for k in (n, m)]
    bounds = Bounds(*gains, np.zeros(n_rows, np.int32), np.full(n_rows, m, np.int32))
    return Task(query, target, SCORES, free_borders(SCORES, n, m), bounds, known, True, True, SIZE)


def unpruned(query: np.ndarray, target: np.ndarray) -> list[dict]:
    """Sweeps over the whole matrix by one GPU, and by all."""
    rows, gpus = [], pool().devices
    known = lower_bound(query, target, SCORES, "local", usable_cores())
    for n in sorted({1, len(gpus)}):
        GpuSweep(whole_matrix(query[:5000], target[:5000]), gpus=gpus[:n]).run()
        sweep = GpuSweep(whole_matrix(query, target, known), gpus=gpus[:n])
        sweep.run()
        cells, seconds = len(query) * len(target), sweep.seconds
        rows.append({"gpus": n, "score": int(sweep.best[0]), "s": round(seconds, 3), "GCUPS": round(cells / seconds / 1e9)})
    return rows


def by_stages(query: np.ndarray, target: np.ndarray) -> dict:
    """A whole alignment; wall seconds of its stages."""
    stages: dict[str, float] = {}
    last = ["lower bound", time.perf_counter()]

    def watch(stage: str, share: float) -> None:
        if stage != last[0]:
            now = time.perf_counter()
            stages[last[0]] = round(now - last[1], 2)
            last[:] = [stage, now]

    devices = Devices()
    sweeper = Sweeper(threads=usable_cores(), watch=watch, find_devices=lambda: devices)
    began = time.perf_counter()
    found, work = align_one(query, target, SCORES, "local", sweeper=sweeper)
    watch("", 1)
    cells = len(query) * len(target) / 100
    return {
        "score": found.score, "ends": f"{found.query_end}, {found.target_end}", "lower": work.lower, "upper": work.upper,
        "forward %": round(work.forward / cells, 2), "backward %": round(work.backward / cells, 2), "s": stages,
        "all, s": round(time.perf_counter() - began, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("query")
    parser.add_argument("target")
    parser.add_argument("--bases", type=int)
    parser.add_argument("--unpruned", action="store_true")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    query, target = (read_record(path, None, "")[1][: options.bases] for path in (options.query, options.target))
    results = {"machine": describe_machine(["nvidia-smi"]), "bases": [len(query), len(target)]}
    if options.unpruned:
        results["unpruned"] = found = unpruned(query, as_target(target))
    else:
        GpuSweep(whole_matrix(query[:5000], as_target(target[:5000]))).run()
        by_stages(query[:5000], target[:5000])
        results["whole"] = found = [by_stages(query, target) for _ in range(2)]
    finish([table(list(found[0]), [list(row.values()) for row in found])], results, options.output)


if __name__ == "__main__":
    main()
