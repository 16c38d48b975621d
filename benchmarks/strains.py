#!/usr/bin/env python3
"""Reads of several genomes of unequal depth, assembled together: `bellapy assemble`, and hifiasm if it is on the PATH.

    python benchmarks/strains.py [--errors 0.003] [-o RESULT.json]

Two strains of random bases, 2 % apart, 80 and 25 reads deep, and two relatives, 30 and 15 deep, which are 5 to 25 % apart in
blocks of 1 to 10 kb.  The table has the number of contigs and their bases; of the 31-mers of each genome the share that
the contigs have; and of those of the contigs the share that no genome has.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from common import describe_machine, finish, table
from haplotypes import differing, runs
from rearranged import make_reads, write

from bellapy.jobs.assemble.words import distinct, share_of, words_of

BASES, MEAN = 500_000, 13_000  # of a genome, and of a read in the mean
APART, FARTHEST = 0.02, (0.05, 0.25)  # of the strains, and the least and the most of a block of the relatives
DEPTHS = {"deep strain": 80, "rare strain": 25, "relative": 30, "rare relative": 15}


def genomes_of(rng: np.random.Generator) -> list[np.ndarray]:
    """The codes of the four, in the order of DEPTHS."""
    strain, relative = (rng.integers(0, 4, BASES).astype(np.uint8) for _ in range(2))
    cuts = np.cumsum(rng.integers(1000, 10_000, BASES // 1000))
    blocks = np.split(relative, cuts[cuts < BASES])
    far = [differing(rng, block, rng.uniform(*FARTHEST)) for block in blocks]
    return [strain, differing(rng, strain, APART), relative, np.concatenate(far)]


def judge(contigs: list[np.ndarray], genomes: list[np.ndarray]) -> list:
    every = distinct(np.concatenate([words_of(codes, False) for codes in contigs]))
    words = [distinct(words_of(codes, False)) for codes in genomes]
    found = [f"{share_of(its, every):.4f}" for its in words]
    wrong = 1 - share_of(every, distinct(np.concatenate(words)))
    return [len(contigs), f"{sum(map(len, contigs)):,}", *found, f"{wrong:.6f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--errors", type=float, default=0.003, help="of reads, as a share of their bases")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options, rows, rng = parser.parse_args(), [], np.random.default_rng(1)
    genomes = genomes_of(rng)
    reads = [
        bases
        for genome, depth in zip(genomes, DEPTHS.values(), strict=True)
        for bases, *_ in make_reads(rng, genome, options.errors, MEAN, depth)
    ]
    with tempfile.TemporaryDirectory() as name:
        path = write(Path(name) / "reads.fa", [reads[i] for i in rng.permutation(len(reads)).tolist()])
        for program, n, cpu, contigs in runs(Path(name), path, options.errors):
            found = judge(contigs, genomes) if contigs else [0, *[None] * 6]
            rows.append([program, n, *found, round(cpu, 1)])
    head = ["program", "haplotypes", "contigs", "bases", *DEPTHS, "wrong", "CPU s"]
    results = {"benchmark": "strains", "machine": describe_machine([]), "head": head, "rows": rows}
    finish([table(head, rows)], results, options.output)


if __name__ == "__main__":
    main()
