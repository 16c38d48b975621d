#!/usr/bin/env python3
"""Extension on GPUs: LOGAN's job on pairs of its kind, beside LOGAN itself if given, and the same integers as the CPU.

    python benchmarks/gpu.py [--pairs 100000] [--spurious 0] [--xdrop 10,20,50,100,500,1000] [--repeats 5]
                             [--extension best] [--times 1] [--logan PROGRAM] [--logan-runs 3] [-o RESULT.json]

Pairs of 2.5 to 7.5 kb with 15 % pairwise error and one exact 17-mer seed; `--spurious` is the share of pairs with only the
seed in common.  "kernels" is the time by events from the first kernel to the end of the last, "host to host" from reads and
seeds in memory to results in memory, the upload included ("reads there": without it); all are medians, after a run that is
not counted.  LOGAN's are the sums of what it prints for its kernels, and its total, which leaves reading the file out.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
from common import describe_machine, finish, table
from pairs import K, make_pairs, write_pairs

from bellapy.compute.gpu.pool import pool
from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.flanks import Flanks
from bellapy.engines.linear.extend_cpu import extend_flanks as extend_on_cpu
from bellapy.engines.linear.gpu import extend as batch_cuda
from bellapy.engines.linear.gpu.extend import extend_flanks
from bellapy.params import Scoring
from bellapy.records import ReadSet
from bellapy.records.bases import PAD, UNKNOWN

SAMPLE = 2000  # pairs whose cells inside the live window are counted


def lay_out(pairs) -> tuple[ReadSet, Flanks]:
    """The pairs as reads (query 2 i, target 2 i + 1) and the flanks of all seeds, left ones first."""
    sequences = [sequence for pair in pairs for sequence in (pair[0], pair[2])]
    lengths = np.array([len(sequence) for sequence in sequences], np.int32)
    starts = PAD + np.concatenate(([0], np.cumsum(lengths[:-1] + np.int64(PAD))))
    codes = np.full(int(starts[-1]) + int(lengths[-1]) + PAD, UNKNOWN, np.uint8)
    for start, sequence in zip(starts.tolist(), sequences, strict=True):
        codes[start : start + len(sequence)] = sequence
    reads = ReadSet(tuple(map(str, range(len(sequences)))), codes, starts, lengths)
    seeds = np.array([place for pair in pairs for place in (pair[1], pair[3])], np.int64)
    at, after, end = starts + seeds, lengths - seeds - K, 2 * len(codes)
    begins, sizes = np.concatenate((end - at, at + K)), np.concatenate((seeds, after))
    columns = (begins[::2], sizes[::2], begins[1::2], sizes[1::2])
    return reads, Flanks(*(np.ascontiguousarray(column) for column in columns), np.zeros(2 * len(pairs), np.uint8))


def run_logan(program: str, path: Path, xdrop: int, runs: int) -> tuple[float, float]:
    """Seconds of kernels, and in all; medians."""
    kernels, totals = [], []
    for _ in range(runs):
        out = subprocess.run([program, path, str(K), str(xdrop), "1"], capture_output=True, text=True, check=True).stdout
        lines = [line.rsplit(maxsplit=1) for line in out.splitlines() if line.strip()]
        kernels.append(sum(float(number) for name, number in lines if name.startswith("GPU only")))
        totals.append(sum(float(number) for name, number in lines if name.startswith("Total")))
    return median(kernels), median(totals)


def measure(codes: np.ndarray, flanks: Flanks, scoring: Scoring, end: End, repeats: int, threads: int):
    """Results; median seconds of kernels (of the device that took longest), host to host, and without the upload."""
    kernels, totals, there = [], [], []
    for _ in range(repeats + 1):
        for device in pool().devices:
            device.reads.forget()
        start = time.perf_counter()
        results = extend_flanks(codes, flanks, scoring, end, Resources(threads)).table
        totals.append(time.perf_counter() - start)
        resources, start = Resources(threads), time.perf_counter()
        extend_flanks(codes, flanks, scoring, end, resources)
        there.append(time.perf_counter() - start)
        kernels.append(max(device.kernel_s for device in resources.devices.used()))
    return results, *(median(seconds[1:]) for seconds in (kernels, totals, there))


def count_cells(codes: np.ndarray, flanks: Flanks, scoring: Scoring) -> float:
    """Cells inside the live window per flank, counted on a sample by the kernel for any width."""
    rows = np.linspace(0, len(flanks) - 1, 2 * SAMPLE).astype(np.int64)
    resources, classes = Resources(), batch_cuda.CLASSES
    batch_cuda.CLASSES = ()
    extend_flanks(codes, Flanks(*(column[rows] for column in flanks.columns)), scoring, End.BEST, resources)
    batch_cuda.CLASSES = classes
    return sum(device.cells for device in resources.devices.used()) / len(rows)


def row_of(result: dict) -> list:
    """A line of the table; times in milliseconds."""
    kernels, total, there, cpu = (f"{result[name] * 1e3:.1f}" for name in ("kernels", "total", "there", "cpu"))
    logan = [None] * 4
    if result["logan"]:
        of_kernels, of_all = result["logan"]
        logan = [f"{of_kernels * 1e3:.0f}", f"{of_kernels / result['kernels']:.1f}"]
        logan += [f"{of_all * 1e3:.0f}", f"{of_all / result['total']:.1f}"]
    same = "yes" if result["same"] else "NO"
    return [result["xdrop"], kernels, *logan[:2], total, *logan[2:], there, f"{result['gcups']:.0f}", cpu, same]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--spurious", type=float, default=0.0)
    parser.add_argument("--xdrop", default="10,20,50,100,500,1000")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--extension", default="best", choices=["best", "longest"])
    parser.add_argument("--times", type=int, default=1, help="extend every pair so often: reads overlap many others")
    parser.add_argument("--logan", help="LOGAN's demonstration program")
    parser.add_argument("--logan-runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=16, help="of the CPU, to pack reads, and for the comparison")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    end = End.of(options.extension)
    size = -(-options.pairs // 64)
    tasks = [
        (seed, min(size, options.pairs - at), options.spurious) for seed, at in enumerate(range(0, options.pairs, size))
    ]
    with ProcessPoolExecutor() as processes:
        pairs = [pair for part in processes.map(make_pairs, tasks) for pair in part]
    reads, flanks = lay_out(pairs)
    flanks = Flanks(*(np.repeat(column, options.times) for column in flanks.columns))
    codes, rows, results = reads.both_ways, [], []
    with tempfile.TemporaryDirectory() as folder:
        if options.logan:
            write_pairs(pairs, Path(folder) / "pairs.tsv")
        for xdrop in map(int, options.xdrop.split(",")):
            scoring = Scoring(1, -1, -1, xdrop)
            got, kernels, total, there = measure(codes, flanks, scoring, end, options.repeats, options.threads)
            start = time.perf_counter()
            same = bool((got == extend_on_cpu(codes, flanks, scoring, end, Resources(options.threads)).table).all())
            cpu = time.perf_counter() - start
            gcups = count_cells(codes, flanks, scoring) * len(flanks) / kernels / 1e9
            peer = run_logan(options.logan, Path(folder) / "pairs.tsv", xdrop, options.logan_runs) if options.logan else None
            result = {"xdrop": xdrop, "kernels": kernels, "total": total, "there": there, "gcups": gcups, "cpu": cpu}
            results.append({**result, "logan": peer, "same": same})
            rows.append(row_of(results[-1]))
            print(*rows[-1], flush=True)
    header = [
        "X", "kernels ms", "LOGAN's", "ratio", "host to host ms", "LOGAN's", "ratio", "reads there", "GCUPS",
        f"CPU, {options.threads} threads, ms", "same as CPU",
    ]  # fmt: skip
    machine = describe_machine([])
    machine["packages"]["numba-cuda"] = version("numba-cuda")
    machine["processor"] += " with " + ", ".join(device.gpu.name for device in pool().devices)
    results = {"benchmark": "gpu", **vars(options), "machine": machine, "results": results}
    finish([table(header, rows)], results, options.output)


if __name__ == "__main__":
    main()
