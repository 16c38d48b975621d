"""What `overlap` estimates of read sets whose truth is known: depth, error rate and genome size.

    python benchmarks/estimates.py SETS.tsv

Each line of SETS.tsv: a file of reads, its depth, error rate and genome size in bases.  Prints a table, and the largest
factors by which the estimates are off.
"""

from __future__ import annotations

import sys
from dataclasses import astuple, dataclass
from pathlib import Path

from bellapy.io.fastx import load_reads
from bellapy.jobs.overlap.canonical import canonical_reads
from bellapy.jobs.overlap.counting import estimate_reads
from bellapy.jobs.overlap.pipeline import in_memory
from bellapy.jobs.overlap.report import start_report
from bellapy.params import make_params
from bellapy.report.run_report import RunReport

THREADS = 2


@dataclass(frozen=True)
class Told:
    """depth : reads on a base.  error_rate : per base.  size : bases of the genome."""

    depth: float
    error_rate: float
    size: float


def estimated(path: str) -> Told:
    """What is said of the reads, without any option."""
    params = make_params(threads=THREADS, device="cpu")
    reads, _ = canonical_reads(load_reads([path]), THREADS)
    work = in_memory(reads, params, start_report(RunReport("estimate", "", params.to_dict())))
    found = estimate_reads(work)
    depth, rate = found.depth or 0.0, found.error_rate or 0.0
    return Told(depth, rate, reads.n_bases / depth if depth else 0.0)


def main() -> None:
    """Judge all sets."""
    factors = []
    print("reads", "depth", "error_rate", "size", sep="\t")
    for line in Path(sys.argv[1]).read_text().splitlines():
        path, *truth = line.split("\t")
        said = estimated(path)
        pairs = list(zip(astuple(said), map(float, truth), strict=True))
        factors.append([ours / true for ours, true in pairs])
        print(path, *(f"{ours:.4g} ({true:.4g})" for ours, true in pairs), sep="\t", flush=True)
    for name, column in zip(("depth", "error rate", "genome size"), zip(*factors, strict=True), strict=True):
        print(f"{name}: x{min(column):.2f} to x{max(column):.2f}")


if __name__ == "__main__":
    main()
