#!/usr/bin/env python3
"""Reads of three and four haplotypes, assembled: `bellapy assemble`, and hifiasm if it is on the PATH.

    python benchmarks/polyploid.py [-o RESULT.json]

Random bases, from which each haplotype differs by substitutions and a fifth as many insertions and deletions.  The table
has the contigs that have 98 % of the bases of a haplotype, and what that of haplotypes.py has.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from shlex import quote

import numpy as np
from common import describe_machine, finish, table
from haplotypes import contigs_of, differing, judge
from measure import measure
from peers import program_of_bellapy
from rearranged import make_reads, write

BASES, DEPTH, WHOLE = 300_000, 20, 0.98  # depth of each haplotype
ACCURATE, NOISY = (0.002, 15_000), (0.03, 16_000)  # errors of reads, and their bases in the mean
SETS = [(3, 0.01, ACCURATE), (4, 0.01, ACCURATE), (4, 0.003, ACCURATE), (4, 0.01, NOISY)]  # differences from the first one


def judged(contigs: list[np.ndarray], haplotypes: list[np.ndarray]) -> list:
    """Contigs that have nearly all bases of a haplotype, and what `judge` tells."""
    whole = sum(len(one) >= WHOLE * BASES for one in contigs)
    return [whole, *(judge(contigs, haplotypes) if contigs else [0, *[None] * 4])]


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
                rows.append([n, apart, error, "bellapy", asked, *judged(contigs_of(Path(out)), haplotypes), round(cpu, 1)])
            if shutil.which("hifiasm") and (error, mean) == ACCURATE:
                cpu = measure(f"hifiasm -l0 -t 2 -f0 -o {quote(name)}/h {quote(str(path))} 2> {quote(name)}/h.log").cpu
                contigs = contigs_of(Path(name) / "h.bp.p_ctg.gfa")
                rows.append([n, apart, error, "hifiasm", "", *judged(contigs, haplotypes), round(cpu, 1)])
    told = ["whole", "contigs", "bases", "own found", "mixed", "wrong"]
    head = ["haplotypes", "apart", "errors", "program", "asked", *told, "CPU s"]
    results = {"benchmark": "polyploid", "machine": describe_machine([]), "head": head, "rows": rows}
    finish([table(head, rows)], results, options.output)


if __name__ == "__main__":
    main()
