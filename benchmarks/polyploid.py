#!/usr/bin/env python3
"""Reads of three and four haplotypes, assembled: `bellapy assemble`, and hifiasm if it is on the PATH.

    python benchmarks/polyploid.py [-o RESULT.json]

Random bases, from which each haplotype differs by substitutions and a fifth as many insertions and deletions.  The table
has the number of contigs and their bases; haplotypes of which one contig has 98 % of the bases; and two shares: of the
31-mers that one haplotype alone has, those that the contigs have; and of these in each contig, those of other haplotypes
than its first one.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from shlex import quote

import numpy as np
from common import describe_machine, finish, table
from haplotypes import contigs_of, differing
from measure import measure
from peers import program_of_bellapy
from rearranged import make_reads, write

from bellapy.jobs.assemble.words import distinct, words_of

BASES, DEPTH, WHOLE = 300_000, 20, 0.98  # depth of each haplotype
ACCURATE, NOISY = (0.002, 15_000), (0.03, 16_000)  # errors of reads, and their bases in the mean
SETS = [(3, 0.01, ACCURATE), (4, 0.01, ACCURATE), (4, 0.003, ACCURATE), (4, 0.01, NOISY)]  # differences from the first one


def judge(contigs: list[np.ndarray], haplotypes: list[np.ndarray]) -> list:
    words = [distinct(words_of(codes, False)) for codes in haplotypes]
    every, times = np.unique(np.concatenate(words), return_counts=True)
    own = [its[np.isin(its, every[times == 1])] for its in words]
    found = [distinct(words_of(codes, False)) for codes in contigs]
    shared = np.array([[np.isin(some, its).sum() for its in own] for some in found]).reshape(-1, len(own))
    whole = {int(row.argmax()) for row, one in zip(shared, contigs, strict=True) if len(one) >= WHOLE * BASES}
    share = np.isin(np.concatenate(own), np.concatenate([*found, every[:0]])).mean()
    mixed = 1 - shared.max(axis=1).sum() / max(1, shared.sum()) if len(shared) else 0
    return [len(contigs), f"{sum(map(len, contigs)):,}", len(whole), f"{share:.4f}", f"{mixed:.4f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options, rows = parser.parse_args(), []
    for n, apart, (error, mean) in SETS:
        rng = np.random.default_rng(1)
        one = rng.integers(0, 4, BASES).astype(np.uint8)
        haplotypes = [differing(rng, one, apart) for _ in range(n)]
        reads = [bases for one in haplotypes for bases, *_ in make_reads(rng, one, error, mean, DEPTH)]
        with tempfile.TemporaryDirectory() as name:
            path, out = write(Path(name) / "r.fa", [reads[i] for i in rng.permutation(len(reads)).tolist()]), f"{name}/o.fa"
            given = f"{quote(program_of_bellapy())} assemble {quote(str(path))} -o {quote(out)} -q -t 2"
            for asked in (1, 2, n) if (error, mean) == NOISY else (1, n):
                cpu = measure(f"{given} --haplotypes {asked}").cpu
                rows.append([n, apart, error, "bellapy", asked, *judge(contigs_of(Path(out)), haplotypes), round(cpu, 1)])
            if shutil.which("hifiasm") and (error, mean) == ACCURATE:
                cpu = measure(f"hifiasm -l0 -t 2 -f0 -o {quote(name)}/h {quote(str(path))} 2> {quote(name)}/h.log").cpu
                contigs = contigs_of(Path(name) / "h.bp.p_ctg.gfa")
                rows.append([n, apart, error, "hifiasm", "", *judge(contigs, haplotypes), round(cpu, 1)])
    head = ["haplotypes", "apart", "errors", "program", "asked", "contigs", "bases", "whole", "own found", "mixed", "CPU s"]
    results = {"benchmark": "polyploid", "machine": describe_machine([]), "head": head, "rows": rows}
    finish([table(head, rows)], results, options.output)


if __name__ == "__main__":
    main()
