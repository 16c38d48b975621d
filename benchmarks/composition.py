#!/usr/bin/env python3
"""Overlaps of reads of genomes poor or rich in G and C: `bellapy overlap`, and minimap2 if it is on the PATH; two threads.

    python benchmarks/composition.py [-o RESULT.json]

Genomes of random bases, and one like that of Plasmodium: genes with 24 % G and C, and between them 12 %, with runs of A, T
and AT.  The table has CPU and wall seconds, the share found of the pairs of reads that have 1,500 bases in common, and the
pairs that have none.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from shlex import quote

import numpy as np
from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy
from rearranged import NEVER, Read, make_reads, write

from bellapy.jobs.evaluate.pipeline import evaluate_overlaps
from bellapy.jobs.evaluate.truth import read_truth

BASES, DEPTH, LEAST = 4_000_000, 20, 1_500
READS = (0.003, 13_000, "ava-ont"), (0.04, 12_000, "ava-ont"), (0.12, 8_000, "ava-pb")  # errors, mean bases, preset
GENOMES = "50 %", "30 %", "20 %", "72 %", "like Plasmodium"


def random_bases(rng: np.random.Generator, n: int, gc: float) -> np.ndarray:
    return rng.choice(4, n, p=np.array([1 - gc, gc, gc, 1 - gc]) / 2).astype(np.uint8)


def between_genes(rng: np.random.Generator) -> np.ndarray:
    """Bases with 12 % G and C, among them runs of A, T and AT."""
    parts = []
    for kind in rng.random(int(rng.gamma(2, 8)) + 2):
        if kind < 0.12:
            parts.append(np.full(int(rng.integers(8, 40)), rng.choice([0, 3]), np.uint8))
        elif kind < 0.25:
            parts.append(np.tile(np.array([0, 3], np.uint8), int(rng.integers(5, 40))))
        else:
            parts.append(random_bases(rng, int(rng.integers(30, 200)), 0.12))
    return np.concatenate(parts)


def genome_of(rng: np.random.Generator, kind: str) -> np.ndarray:
    if kind.endswith("%"):
        return random_bases(rng, BASES, int(kind[:-2]) / 100)
    parts: list[np.ndarray] = []
    while sum(map(len, parts)) < BASES:
        parts += random_bases(rng, int(rng.gamma(2, 1100)) + 300, 0.24), between_genes(rng)
    return np.concatenate(parts)


def write_truth(path: Path, reads: list[Read]) -> Path:
    """The table of where reads lie, as `bellapy evaluate` takes it; their names are those that `write` gives."""
    known = [np.sort(places[places != NEVER]) for _, places, _ in reads]
    strands = ["-" if turned else "+" for *_, turned in reads]
    rows = zip(known, strands, strict=True)
    path.write_text("".join(f"{i}\tgenome\t{its[0]}\t{its[-1] + 1}\t{strand}\n" for i, (its, strand) in enumerate(rows)))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options, rows = parser.parse_args(), []
    for kind in GENOMES:
        genome = genome_of(np.random.default_rng(1), kind)
        for error, mean, preset in READS:
            reads = make_reads(np.random.default_rng(2), genome, error, mean, DEPTH)
            with tempfile.TemporaryDirectory() as name:
                path = quote(str(write(Path(name) / "reads.fa", [bases for bases, *_ in reads])))
                truth = read_truth(write_truth(Path(name) / "reads.truth.tsv", reads))
                paf, commands = Path(name) / "overlaps.paf", {"bellapy": f"{quote(program_of_bellapy())} overlap -q {path}"}
                if shutil.which("minimap2"):
                    commands["minimap2"] = f"minimap2 -x {preset} {path} {path}"
                for program, command in commands.items():
                    for _ in range(2 if program == "bellapy" else 1):  # the first run may compile
                        used = measure(f"{command} -t 2 > {quote(str(paf))}")
                    judged = evaluate_overlaps(truth, paf, min_overlap=LEAST, grey=1)
                    found = f"{judged['recall']:.4f}", judged["fp"]
                    rows.append([kind, error, program, round(used.cpu, 1), round(used.wall, 1), *found])
    head = ["G and C", "errors", "program", "CPU s", "s", "found", "false"]
    results = {"benchmark": "composition", "machine": describe_machine(["minimap2"]), "head": head, "rows": rows}
    finish([table(head, rows)], results, options.output)


if __name__ == "__main__":
    main()
