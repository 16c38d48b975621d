"""What `bellapy warm-up` does: the commands run on small made-up reads, so that all that they need is compiled and kept.

Numba compiles one function at a time in a process, so several processes work side by side.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

GENOME, READ, DEPTH = 30_000, 3_000, 20  # bases
BAD = slice(1400, 1500)  # bases at random of the first read of each set, which others bridge
THREADS = "2"  # of each run: with one, some code is not needed
ERROR_RATES = {"noisy": 0.12, "accurate": 0.01}
RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "overlap": (
        ("overlap", "noisy.fa", "-o", "{out}.paf"), ("overlap", "--cigar", "accurate.fa", "-o", "{out}.paf"),
        ("overlap", "--cigar", "noisy.fa", "-o", "{out}.bam"),
    ),
    "correct": (("correct", "noisy.fa", "-o", "{out}.fa"), ("correct", "accurate.fa", "-o", "{out}.fa")),
    "assemble": (("assemble", "noisy.fa", "-o", "{out}.fa"),),
    "map": (("map", "genome.fa", "noisy.fa", "-o", "{out}.bam"), ("map", "genome.fa", "accurate.fa", "-o", "{out}.paf")),
    "exact": (("exact", "genome.fa", "relative.fa", "-o", "{out}.paf"),),
    "wga": (
        ("wga", "genome.fa", "relative.fa", "-o", "{out}.maf"),
        ("wga", "--preset", "close", "genome.fa", "relative.fa", "-o", "{out}.paf"),
    ),
}  # fmt: skip
"""Command lines for each command that can be warmed up; {out} : a file of their own."""


class Warmed(NamedTuple):
    """command : what ran.  seconds : how long.  error : what it said at its end; empty if all went well."""

    command: str
    seconds: float
    error: str


def make_inputs(folder: Path) -> None:
    """Write a genome, one that is a few percent apart, and reads of it; always the same."""
    rng = np.random.default_rng(1)
    genome = rng.integers(0, 4, GENOME)
    (folder / "genome.fa").write_text(_record("genome", genome))
    (folder / "relative.fa").write_text(_record("relative", _with_errors(rng, genome, 0.03)))
    for name, rate in ERROR_RATES.items():
        starts = rng.integers(0, GENOME - READ, DEPTH * GENOME // READ)
        reads = [_with_errors(rng, genome[start : start + READ], rate) for start in starts]
        reads[0][BAD] = rng.integers(0, 4, BAD.stop - BAD.start)
        reads = [3 - read[::-1] if i % 2 else read for i, read in enumerate(reads)]
        (folder / f"{name}.fa").write_text("".join(_record(f"read{i}", read) for i, read in enumerate(reads)))


def _record(name: str, codes: np.ndarray) -> str:
    return f">{name}\n{np.frombuffer(b'ACGT', np.uint8)[codes].tobytes().decode()}\n"


def _with_errors(rng: np.random.Generator, codes: np.ndarray, rate: float) -> np.ndarray:
    """A third each of substitutions, insertions and deletions."""
    kinds = rng.choice(4, len(codes), p=(1 - rate, rate / 3, rate / 3, rate / 3))
    changed = np.where(kinds == 1, (codes + 1) % 4, codes)
    return np.repeat(changed, np.array([1, 1, 2, 0])[kinds])


def warm_up(commands: Sequence[str], device: str, threads: int) -> Iterator[Warmed]:
    """Run the command lines of these commands, so many at a time; what each took, as they end.

    commands : of RUNS.  device : cpu, cuda or auto.
    """
    with TemporaryDirectory(prefix="bellapy-warm-up-") as name:
        folder = Path(name)
        make_inputs(folder)
        lines = [(command, i, line) for command in commands for i, line in enumerate(RUNS[command])]
        lines.sort(key=lambda each: each[1])  # side by side runs those that have least in common

        def run(command: str, i: int, line: Sequence[str]) -> Warmed:
            began, out = time.perf_counter(), f"{command}{i}"
            words = [word.format(out=out) for word in line]
            whole = [sys.executable, "-m", "bellapy", *words, "-t", THREADS, "--device", device]
            done = subprocess.run(whole, cwd=folder, capture_output=True, text=True)
            error = done.stderr.strip().splitlines()[-1:] if done.returncode else []
            return Warmed(" ".join(words), time.perf_counter() - began, "".join(error))

        with ThreadPoolExecutor(threads) as pool:
            for future in as_completed([pool.submit(run, *line) for line in lines]):
                yield future.result()
