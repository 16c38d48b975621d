#!/usr/bin/env python3
"""Correction with GPUs beside the CPU alone: seconds, and the same bytes.

    python benchmarks/gpu_correct.py [--genome GENOME.fa] [--bases 4000000] [--depth 30] [--threads 16] [--repeats 2]
                                     [--options "..."] [--only cuda] [-o RESULT.json]

Reads are 7 kb long in the mean, with 15 % errors: of ten, one is a base replaced, six are put in, three left out.  They come
from both strands of a genome, or from random bases.  Wall and CPU seconds are those of the whole command.  Each device runs
once more before, on a hundredth of the reads, so that everything is compiled.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from common import describe_machine, finish, table
from measure import measure

from bellapy.io.fastx import stream_records
from bellapy.records.bases import encode

MEAN, DEVIATION, SHORTEST, LONGEST = 7000, 4000, 1000, 25_000
ERRORS, REPLACED, PUT_IN, LEFT_OUT = 0.15, 0.1, 0.6, 0.3
LETTERS = np.frombuffer(b"ACGT", np.uint8)
PARTS = 64


def noisy(rng: np.random.Generator, true: np.ndarray) -> np.ndarray:
    """A copy with errors."""
    kept = true[rng.random(len(true)) >= ERRORS * LEFT_OUT]
    wrong = rng.random(len(kept)) < ERRORS * REPLACED
    kept = np.where(wrong, (kept + rng.integers(1, 4, len(kept))) % 4, kept)
    n = int(rng.binomial(len(kept), ERRORS * PUT_IN))
    return np.insert(kept, rng.integers(0, len(kept) + 1, n), rng.integers(0, 4, n))


def make_reads(genome: np.ndarray, bases: int, number: int) -> bytes:
    """FASTA of reads that have so many bases of the genome together; number : of the random generator."""
    rng, records, done = np.random.default_rng(number), [], 0
    scale = DEVIATION**2 / MEAN
    while done < bases:
        n = int(np.clip(rng.gamma(MEAN / scale, scale), SHORTEST, LONGEST))
        start = int(rng.integers(0, len(genome) - n))
        true = genome[start : start + n]
        read = noisy(rng, true if rng.random() < 0.5 else 3 - true[::-1])
        records.append(b">r%d_%d\n%s\n" % (number, len(records), LETTERS[read].tobytes()))
        done += n
    return b"".join(records)


def load_genome(path: Path | None, bases: int) -> np.ndarray:
    """Codes of a genome, or of random bases."""
    if path is None:
        return np.random.default_rng(0).integers(0, 4, bases)
    codes = np.concatenate([encode(sequence) for records in stream_records([path]) for sequence in records.sequences])
    return codes[codes < 4].astype(np.int64)


def run(reads: Path, device: str, options: argparse.Namespace, folder: Path) -> dict:
    """Correct reads on a device; seconds, megabytes, stages, and what tells the bytes apart."""
    out, report = folder / f"{device}.fa", folder / f"{device}.json"
    command = f"{shlex.quote(sys.executable)} -m bellapy correct {reads} --device {device} -t {options.threads} -o {out}"
    usage = measure(f"{command} --report {report} {options.options}", folder / "log", 3600)
    if usage.status:
        raise SystemExit((folder / "log").read_text())
    told = json.loads(report.read_text())
    stages = {stage["stage"]: round(stage["wall_s"], 2) for stage in told["stages"]}
    return {"device": device, "wall s": usage.wall, "CPU s": usage.cpu, "MB": usage.peak_mb, "stages": stages,
            "digest": hashlib.sha256(out.read_bytes()).hexdigest()[:16]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genome", type=Path, help="FASTA, one sequence")
    parser.add_argument("--bases", type=int, default=4_000_000, help="of random bases, if there is no genome")
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--options", default="", help="of bellapy correct")
    parser.add_argument("--only", choices=("cpu", "cuda"), help="the other device is left out")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    genome = load_genome(options.genome, options.bases)
    devices, rows = [options.only] if options.only else ["cuda", "cpu"], []
    with tempfile.TemporaryDirectory() as name, ProcessPoolExecutor() as processes:
        folder = Path(name)
        parts = list(processes.map(partial(make_reads, genome, options.depth * len(genome) // PARTS), range(PARTS)))
        few = len(genome) // 100
        (folder / "few.fa").write_bytes(make_reads(genome[: max(few, 2 * LONGEST)], options.depth * few, PARTS))
        (folder / "reads.fa").write_bytes(b"".join(parts))
        for device in devices:
            run(folder / "few.fa", device, options, folder)
        for _ in range(options.repeats):
            for device in devices:
                rows.append(run(folder / "reads.fa", device, options, folder))
                print(rows[-1], flush=True)
    header = ["device", "wall s", "CPU s", "peak MB", "correct s", "sha256"]
    lines = [[row["device"], f"{row['wall s']:.1f}", f"{row['CPU s']:.0f}", f"{row['MB']:.0f}",
              f"{row['stages']['correct']:.1f}", row["digest"]] for row in rows]  # fmt: skip
    results = {"benchmark": "gpu_correct", "machine": describe_machine([]), "rows": rows}
    finish([table(header, lines)], results, options.output)


if __name__ == "__main__":
    main()
