"""What `bellapy warm-up` does: the commands run on small made-up data, so that all that they need is compiled and kept.

The data have what some code is for: glitches, long insertions, a repeat, an array, stretches that are not alike, files of
both formats.  Numba compiles one function at a time in a process, so several processes work side by side.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.devices import choose_device

GENOME, READ, DEPTH = 30_000, 3_000, 20  # bases
REPEAT, COPIES = 1_000, 8  # bases of the genome's repeat
ARRAY = slice(16_000, 17_200)  # of copies of so many bases, one after the other: there many diagonals are alike
UNIT = 30
BAD = slice(1400, 1500)  # bases at random of the first read of each set, which others bridge
INSERTED = 1500, (60, 90, 120)  # where bases at random are put into the next ones, and how many
PAIRS = {"short": (120_000, 0.2), "long": (360_000, 0.06)}
"""Bases and differences of pairs of which halves are alike: `exact` goes by tiles, or by a grid and windows."""
THREADS = "2"  # of each run: with one, some code is not needed
ERROR_RATES = {"noisy.fastq.gz": 0.12, "accurate.fa": 0.01}
RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "overlap": (
        ("overlap", "noisy.fastq.gz", "-o", "{out}.paf"), ("overlap", "--cigar", "accurate.fa", "-o", "{out}.paf"),
        ("overlap", "--cigar", "noisy.fastq.gz", "-o", "{out}.bam"),
    ),
    "correct": (("correct", "noisy.fastq.gz", "-o", "{out}.fa"), ("correct", "accurate.fa", "-o", "{out}.fa")),
    "assemble": (("assemble", "noisy.fastq.gz", "-o", "{out}.fa"),),
    "map": (
        ("map", "genome.fa", "noisy.fastq.gz", "-o", "{out}.bam"), ("map", "genome.fa", "accurate.fa", "-o", "{out}.paf"),
    ),
    "exact": (
        ("exact", "genome.fa", "relative.fa", "-o", "{out}.paf"), ("exact", "long.fa", "long_other.fa", "-o", "{out}.paf"),
        ("exact", "short.fa", "short_other.fa", "-o", "{out}.paf"),
    ),
    "wga": (
        ("wga", "genome.fa", "relative.fa", "-o", "{out}.maf"), ("wga", "long.fa", "long_other.fa", "-o", "{out}.paf"),
        ("wga", "--preset", "close", "genome.fa", "relative.fa", "-o", "{out}.paf"),
    ),
}  # fmt: skip
"""Command lines for each command that can be warmed up; {out} : a file of their own."""
BY_SIZE = "map", "exact", "wga"
"""Commands that use a GPU for large inputs only, unless they are told: both devices need code."""


class Warmed(NamedTuple):
    """command : what ran.  seconds : how long.  error : what it said at its end; empty if all went well."""

    command: str
    seconds: float
    error: str


def make_inputs(folder: Path) -> None:
    """Write a genome, one that is a few percent apart, reads of it, and pairs of which halves are alike; always the same."""
    rng = np.random.default_rng(1)
    genome, repeat = rng.integers(0, 4, GENOME), rng.integers(0, 4, REPEAT)
    for at in range(GENOME // COPIES // 2, GENOME, GENOME // COPIES):
        genome[at : at + REPEAT] = repeat
    _put_array(rng, genome)
    _write(folder / "genome.fa", genome)
    _write(folder / "relative.fa", _with_errors(rng, genome, 0.03))
    for name, rate in ERROR_RATES.items():
        starts = rng.integers(0, GENOME - READ, DEPTH * GENOME // READ)
        reads = [_with_errors(rng, genome[start : start + READ], rate) for start in starts]
        reads[0][BAD] = rng.integers(0, 4, BAD.stop - BAD.start)
        at, sizes = INSERTED
        for i, size in enumerate(sizes, start=1):
            reads[i] = np.insert(reads[i], at, rng.integers(0, 4, size))
        _write(folder / name, *(3 - read[::-1] if i % 2 else read for i, read in enumerate(reads)))
    for name, (n, rate) in PAIRS.items():
        parts = [rng.integers(0, 4, size) for size in (n // 6, n // 4, n // 6, n // 4, n // 6)]
        _put_array(rng, parts[1])
        others = [_with_errors(rng, part, rate) if i % 2 else rng.integers(0, 4, n // 5) for i, part in enumerate(parts)]
        _write(folder / f"{name}.fa", np.concatenate(parts))
        _write(folder / f"{name}_other.fa", np.concatenate(others))


def _put_array(rng: np.random.Generator, codes: np.ndarray) -> None:
    codes[ARRAY] = np.resize(rng.integers(0, 4, UNIT), ARRAY.stop - ARRAY.start)


def _write(path: Path, *sequences: np.ndarray) -> None:
    """FASTA, or compressed FASTQ, of codes."""
    if path.suffix == ".gz":
        text = "".join(f"@{i}\n{_letters(codes)}\n+\n{'5' * len(codes)}\n" for i, codes in enumerate(sequences))
        path.write_bytes(gzip.compress(text.encode(), 1))
    else:
        path.write_text("".join(f">{i}\n{_letters(codes)}\n" for i, codes in enumerate(sequences)))


def _letters(codes: np.ndarray) -> str:
    return np.frombuffer(b"ACGT", np.uint8)[codes].tobytes().decode()


def _with_errors(rng: np.random.Generator, codes: np.ndarray, rate: float) -> np.ndarray:
    """A third each of substitutions, insertions and deletions."""
    kinds = rng.choice(4, len(codes), p=(1 - rate, rate / 3, rate / 3, rate / 3))
    changed = np.where(kinds == 1, (codes + 1) % 4, codes)
    return np.repeat(changed, np.array([1, 1, 2, 0])[kinds])


def warm_up(commands: Sequence[str], device: str, threads: int) -> Iterator[Warmed]:
    """Run the command lines of these commands, so many at a time; what each took, as they end.

    Those of one command have most code in common.  So they run one after the other, and none compiles what another does.

    commands : of RUNS.  device : cpu, cuda or auto.
    """
    chosen = choose_device(device)
    both = ("cpu", "cuda") if device == "auto" and chosen == "cuda" else (chosen,)
    with TemporaryDirectory(prefix="bellapy-warm-up-") as name:
        folder = Path(name)
        make_inputs(folder)
        chains = [
            [(f"{command}{i}{its}", its, line) for i, line in enumerate(RUNS[command])]
            for command in commands
            for its in (both if command in BY_SIZE else (chosen,))
        ]

        def run(out: str, its: str, line: Sequence[str]) -> Warmed:
            began = time.perf_counter()
            words = [*(word.format(out=out) for word in line), "--device", its]
            done = subprocess.run(
                [sys.executable, "-m", "bellapy", *words, "-t", THREADS], cwd=folder, capture_output=True, text=True
            )
            error = done.stderr.strip().splitlines()[-1:] if done.returncode else []
            return Warmed(" ".join(words), time.perf_counter() - began, "".join(error))

        with ThreadPoolExecutor(threads) as pool:
            rest = {pool.submit(run, *chain[0]): chain[1:] for chain in chains}
            while rest:
                for future in wait(rest, return_when=FIRST_COMPLETED).done:
                    if left := rest.pop(future):
                        rest[pool.submit(run, *left[0])] = left[1:]
                    yield future.result()
