#!/usr/bin/env python3
"""Reads of two haplotypes, assembled as one and as two: `bellapy assemble`, and hifiasm if it is on the PATH.

    python benchmarks/haplotypes.py [--genome GENOME.fa] [--apart 0.001] [-o RESULT.json]

Genomes of random bases, or one that is given.  The haplotypes differ by substitutions, a fifth as many insertions and
deletions, everywhere alike or in blocks of 5 to 60 kb with none to three times as many.  The table has the number of
contigs, their bases, and three shares: of the 31-mers that only one haplotype has, those that the contigs have; of these in
each contig, those of others than the haplotype of most of them: what is joined wrongly; and of all 31-mers of the contigs,
those that no haplotype has.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import numpy as np
from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy, read_records
from rearranged import LETTERS, make_reads, write

from bellapy.jobs.assemble.words import distinct, share_of, words_of

BASES, DEPTH = 600_000, 30
BLOCKS = 0, 0.5, 1, 3  # times the usual differences of a block
ACCURATE, NOISY = (0.003, 13_000), (0.03, 16_000)  # errors of reads, and their bases in the mean
SETS = [
    *((apart, True, *ACCURATE) for apart in (0.0005, 0.001, 0.002, 0.005, 0.02)),
    *((apart, False, *ACCURATE) for apart in (0.001, 0.003)),
    *((apart, True, *NOISY) for apart in (0.002, 0.005)),
]  # differences of the haplotypes, whether everywhere alike, and the reads


def differing(rng: np.random.Generator, codes: np.ndarray, apart: float) -> np.ndarray:
    """The codes with differences, of which a sixth are insertions and deletions."""
    kind = rng.random(len(codes)) / max(apart, 1e-12)
    changed = np.where(kind < 5 / 6, (codes + rng.integers(1, 4, len(codes))) & 3, codes).astype(np.uint8)
    return np.repeat(changed, np.where(kind < 5 / 6, 1, np.where(kind < 11 / 12, 0, np.where(kind < 1, 2, 1))))


def haplotypes_of(rng: np.random.Generator, one: np.ndarray, apart: float, even: bool) -> tuple[np.ndarray, np.ndarray]:
    blocks, at = [], 0
    while at < len(one):
        size = len(one) if even else int(rng.integers(5000, 60_000))
        blocks.append(differing(rng, one[at : at + size], apart * (1 if even else rng.choice(BLOCKS))))
        at += size
    return one, np.concatenate(blocks)


def contigs_of(path: Path) -> list[np.ndarray]:
    """Codes of the sequences of a FASTA or GFA file."""
    if path.suffix == ".gfa":
        found = [line.split("\t")[2] for line in open(path) if line.startswith("S\t")]
    else:
        found = [sequence for _, sequence in read_records(path)]
    return [np.searchsorted(LETTERS, np.frombuffer(text.encode(), np.uint8)).astype(np.uint8) for text in found]


def judge(contigs: list[np.ndarray], haplotypes: Sequence[np.ndarray]) -> list:
    known, words = ([distinct(words_of(codes, False)) for codes in some] for some in (haplotypes, contigs))
    in_any, times = np.unique(np.concatenate(known), return_counts=True)
    own = [its[np.isin(its, in_any[times == 1])] for its in known]
    shared = np.array([[np.isin(some, its).sum() for its in own] for some in words])
    every = distinct(np.concatenate(words))
    found = np.isin(np.concatenate(own), every).mean()
    mixed = (shared.sum() - shared.max(axis=1).sum()) / max(1, shared.sum())
    wrong = 1 - share_of(every, in_any)
    n_bases = sum(map(len, contigs))
    return [len(contigs), f"{n_bases:,}", f"{found:.3f}", f"{mixed:.4f}", f"{wrong:.6f}"]


def runs(folder: Path, reads: Path, error: float) -> Iterator[tuple[str, str, float, list[np.ndarray]]]:
    """Program, number of haplotypes, CPU seconds and contigs."""
    for n in (1, 2):
        out = folder / f"{n}.fa"
        command = f"{quote(program_of_bellapy())} assemble {quote(str(reads))} -o {quote(str(out))} --haplotypes {n} -q -t 2"
        yield "bellapy", str(n), measure(command).cpu, contigs_of(out)
    if shutil.which("hifiasm"):
        kind = "--ont" if error > 0.01 else ""
        used = measure(f"hifiasm {kind} -t 2 -f0 -o {quote(str(folder / 'h'))} {quote(str(reads))} 2> {folder}/h.log")
        for n, names in (("1", ["h.bp.p_ctg.gfa"]), ("2", ["h.bp.hap1.p_ctg.gfa", "h.bp.hap2.p_ctg.gfa"])):
            found = [one for name in names if (folder / name).exists() for one in contigs_of(folder / name)]
            yield "hifiasm", n, used.cpu, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--genome", type=Path, help="FASTA of one haplotype, instead of random bases")
    parser.add_argument("--apart", type=float, help="only sets of haplotypes that differ in this share of their bases")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options, rows = parser.parse_args(), []
    for apart, even, error, mean in SETS:
        if options.apart not in (None, apart):
            continue
        rng = np.random.default_rng(1)
        one = np.concatenate(contigs_of(options.genome)) if options.genome else rng.integers(0, 4, BASES).astype(np.uint8)
        haplotypes = haplotypes_of(rng, one, apart, even)
        reads = [bases for one in haplotypes for bases, *_ in make_reads(rng, one, error, mean, DEPTH // 2)]
        with tempfile.TemporaryDirectory() as name:
            path = write(Path(name) / "reads.fa", [reads[i] for i in rng.permutation(len(reads)).tolist()])
            for program, n, cpu, contigs in runs(Path(name), path, error):
                found = judge(contigs, haplotypes) if contigs else [0, *[None] * 4]
                rows.append([f"{100 * apart:g} %", "even" if even else "uneven", error, n, program, *found, round(cpu, 1)])
    head = ["apart", "", "errors", "haplotypes", "program", "contigs", "bases", "own found", "mixed", "wrong", "CPU s"]
    results = {"benchmark": "haplotypes", "machine": describe_machine([]), "head": head, "rows": rows}
    finish([table(head, rows)], results, options.output)


if __name__ == "__main__":
    main()
