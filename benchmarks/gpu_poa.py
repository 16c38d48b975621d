#!/usr/bin/env python3
"""Partial-order alignment of windows on GPUs: windows a second, and the same integers as the CPU.

    python benchmarks/gpu_poa.py [--windows 20000] [--length 235] [--depth 32] [--check 2000] [--threads 16] [--repeats 3]
                                 [--msa] [-o RESULT.json]

Windows are random stretches, and noisy copies of each: 5 % of their bases are left out or replaced, and 9 % put in.  None
is longer than `--length`.  "kernels" is the time by events from the first kernel to the end of the last; "host to host" from
base codes in memory to the consensus in memory.  Both are medians, after a run that is not counted.  `--check` windows are
aligned by the CPU, too: scores, consensus and columns have to be equal.  That is timed as well, with all threads.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from statistics import median

import numpy as np
from common import describe_machine, finish, table

from bellapy.compute.gpu.pool import pool
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines.poa.gpu.batch import align_groups
from bellapy.engines.poa.groups import NOT_SOLVED, Groups, Solved
from bellapy.engines.poa.windows import Aligner
from bellapy.params.correct import PoaScoring

LOST, REPLACED, PUT_IN = 0.03, 0.02, 0.087
GROWTH = 1.13  # the longest copy, by the length of the window


def noisy(rng: np.random.Generator, true: np.ndarray, most: int) -> np.ndarray:
    """A copy with errors, of at most so many bases."""
    kept = true[rng.random(len(true)) >= LOST]
    kept = np.where(rng.random(len(kept)) < REPLACED, rng.integers(0, 4, len(kept)), kept)
    n = int(rng.binomial(len(kept), PUT_IN))
    return np.insert(kept, rng.integers(0, len(kept) + 1, n), rng.integers(0, 4, n))[:most].astype(np.uint8)


def make_windows(task: tuple[int, int, int, int]) -> list[list[np.ndarray]]:
    """Windows; the task: number of the random generator, windows, most bases, sequences."""
    number, n, most, depth = task
    rng, windows = np.random.default_rng(number), []
    for _ in range(n):
        true = rng.integers(0, 4, int(most / GROWTH))
        windows.append([noisy(rng, true, most) for _ in range(depth)])
    return windows


def lay_out(windows: list[list[np.ndarray]]) -> Groups:
    """All sequences end to end."""
    lengths = np.array([len(sequence) for window in windows for sequence in window], np.int64)
    firsts = np.cumsum([0] + [len(window) for window in windows])
    codes = np.concatenate([sequence for window in windows for sequence in window])
    return Groups(codes, np.concatenate(([0], np.cumsum(lengths))), firsts)


def unequal(groups: Groups, found: Solved, rows: np.ndarray, laid_out: bool, threads: int) -> tuple[int, float]:
    """How many of some windows the CPU aligns otherwise, and the windows a second that it does."""

    def differ(some: np.ndarray) -> int:
        aligner, n = Aligner(PoaScoring(), laid_out), 0
        for w in some.tolist():
            one = groups.take(w, w + 1)
            its, mine = aligner.align(one.codes, one.offsets), found.window(groups, w)
            n += not all(a is b or np.array_equal(a, b) for a, b in zip(its, mine, strict=True))
        return n

    differ(rows[:1])  # compiles
    start = time.perf_counter()
    wrong = sum(map_threads(differ, np.array_split(rows, max(1, min(len(rows), 8 * threads))), threads))
    return wrong, len(rows) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=20_000)
    parser.add_argument("--length", type=int, default=255, help="of the longest sequence, at most")
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--check", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=16, help="of the CPU, for the comparison")
    parser.add_argument("--msa", action="store_true", help="find the columns of all bases, too")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    size = -(-options.windows // 64)
    tasks = [(s, min(size, options.windows - at), options.length, options.depth)
             for s, at in enumerate(range(0, options.windows, size))]  # fmt: skip
    with ProcessPoolExecutor() as processes:
        groups = lay_out([window for part in processes.map(make_windows, tasks) for window in part])
    kernels, totals = [], []
    for _ in range(options.repeats + 1):
        resources, start = Resources(options.threads), time.perf_counter()
        found = align_groups(groups, PoaScoring(), options.msa, resources)
        totals.append(time.perf_counter() - start)
        kernels.append(max(device.kernel_s for device in resources.devices.used()))
    seconds, total, cells = median(kernels[1:]), median(totals[1:]), sum(device.cells for device in resources.devices.used())
    checked = np.random.default_rng(1).choice(options.windows, min(options.check, options.windows), replace=False)
    wrong, rate = unequal(groups, found, checked, options.msa, options.threads)
    left, n = int((found.sizes == NOT_SOLVED).sum()), options.windows
    result = {"windows": n, "length": options.length, "depth": options.depth, "kernels s": seconds, "total s": total,
              "windows/s": n / total, "gcups": cells / seconds / 1e9, "checked": len(checked), "unequal": wrong,
              "left": left, "cpu windows/s": rate}  # fmt: skip
    header = ["windows", "bases", "sequences", "kernels ms", "windows/s", "GCUPS", "host to host ms", "windows/s",
              "unlike the CPU", "left out", f"CPU windows/s, {options.threads} threads"]  # fmt: skip
    line = [n, options.length, options.depth, f"{seconds * 1e3:.0f}", f"{n / seconds:,.0f}", f"{result['gcups']:.0f}",
            f"{total * 1e3:.0f}", f"{n / total:,.0f}", f"{wrong} of {len(checked)}", left, f"{rate:,.0f}"]  # fmt: skip
    machine = describe_machine([])
    machine["packages"]["numba-cuda"] = version("numba-cuda")
    machine["processor"] += " with " + ", ".join(device.gpu.name for device in pool().devices)
    results = {"benchmark": "gpu_poa", **vars(options), "machine": machine, "results": [result]}
    finish([table(header, [line])], results, options.output)


if __name__ == "__main__":
    main()
