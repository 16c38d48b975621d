#!/usr/bin/env python3
"""Reads of a genome with rearrangements, mapped to the genome without: `bellapy map`, and minimap2 if it is on the PATH.

    python benchmarks/rearranged.py [-o RESULT.json]

The first table tells how many small inversions have a line of their own, by their size: in random bases, seen by reads that
go on for 1,000 bases on both sides.  The second one is of genomes a third of which is a satellite, an array of units of
2 kb, with inversions, deletions and translocated pieces all over: recall and precision of pairs of bases within 10 (errors
under 2 %) or 25 of the true place, in lines that are not secondary.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import numpy as np
from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy

LETTERS, RUNS = np.frombuffer(b"ACGT", np.uint8), re.compile(r"(\d+)([MID])")
SIZES = (60, 120, 240, 480, 960, 1920)  # of inversions, each up to the next one
FLANK = 1000
KINDS = (0.005, "map-hifi", 15_000), (0.05, "map-ont", 10_000), (0.12, "map-ont", 25_000)  # errors, peer's preset, bases
NEVER = -1

Read = tuple[np.ndarray, np.ndarray, bool]
"""Bases as codes, the place of each in the genome it is from or NEVER, and whether it is turned."""


def invert(codes: np.ndarray) -> np.ndarray:
    return 3 - codes[::-1]


def mutate(rng: np.random.Generator, codes: np.ndarray, rate: float) -> np.ndarray:
    changed = rng.random(len(codes)) < rate
    return np.where(changed, (codes + rng.integers(1, 4, len(codes))) & 3, codes).astype(np.uint8)


def make_reads(rng: np.random.Generator, genome: np.ndarray, error: float, mean: int, depth: int = 6) -> list[Read]:
    """Reads of both strands: of their errors two fifths are mismatches, the others insertions and deletions alike."""
    reads, left = [], depth * len(genome)
    while left > 0:
        n = int(np.clip(rng.gamma(4, mean / 4), 1000, len(genome) - 1))
        start, kind = int(rng.integers(0, len(genome) - n)), rng.random(n) / error
        bases = genome[start : start + n].copy()
        bases[kind < 0.4] = (bases[kind < 0.4] + rng.integers(1, 4, (kind < 0.4).sum())) & 3
        index = np.repeat(np.arange(n), 1 - ((kind >= 0.4) & (kind < 0.7)) + ((kind >= 0.7) & (kind < 1)))
        more = np.append(False, index[1:] == index[:-1])
        bases, place = bases[index], np.where(more, NEVER, start + index)
        bases[more] = rng.integers(0, 4, more.sum())
        turned = bool(rng.integers(2))
        reads.append((invert(bases), place[::-1], True) if turned else (bases, place, False))
        left -= n
    return reads


def satellite(rng: np.random.Generator, n_units: int) -> np.ndarray:
    """Units of 12 monomers of 171 bases; monomers differ by 20 %, units by 3 %."""
    monomer = rng.integers(0, 4, 171).astype(np.uint8)
    unit = np.concatenate([mutate(rng, monomer, 0.2) for _ in range(12)])
    return np.concatenate([mutate(rng, unit, 0.03) for _ in range(n_units)])


def rearrange(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each base of a rearranged genome its place in the one of n bases, and whether it is turned."""
    pieces, at = [], 0
    while at < n:
        step = int(rng.integers(5000, 20_000))
        pieces.append((np.arange(at, min(n, at + step)), False))
        at, size, kind = at + step, int(rng.exponential(2000)) + 100, rng.integers(3)
        if kind == 0:
            pieces.append((np.arange(at, min(n, at + size))[::-1], True))
        elif kind == 2:
            begin = int(rng.integers(0, n - size))
            pieces.append((np.arange(begin, begin + size), False))
        at += size if kind < 2 else 0
    turned = np.concatenate([np.full(len(places), of) for places, of in pieces])
    return np.concatenate([places for places, _ in pieces]), turned


def write(path: Path, sequences: list[np.ndarray]) -> Path:
    path.write_bytes(b"".join(b">%d\n%s\n" % (x, LETTERS[codes].tobytes()) for x, codes in enumerate(sequences)))
    return path


def lines_of(folder: Path, reference: np.ndarray, reads: list[Read], peer: str) -> Iterator[tuple[str, float, list[list]]]:
    """Program, CPU seconds, and the fields of its lines that are not secondary."""
    ref, path = write(folder / "ref.fa", [reference]), write(folder / "reads.fa", [bases for bases, *_ in reads])
    commands = {"bellapy": f"{quote(program_of_bellapy())} map -q -t 2"}
    if shutil.which("minimap2"):
        commands["minimap2"] = f"minimap2 -cx {peer} -t 2"
    for program, command in commands.items():
        for _ in range(2):  # the first run may compile
            used = measure(f"{command} {quote(str(ref))} {quote(str(path))} > {quote(str(folder / 'out.paf'))}")
        fields = [line.rstrip("\n").split("\t") for line in open(folder / "out.paf")]
        yield program, used.cpu, [line for line in fields if "tp:A:S" not in line]


def inversions_found(folder: Path, error: float, peer: str, mean: int) -> list[list]:
    rng = np.random.default_rng(1)
    reference = rng.integers(0, 4, 1_000_000).astype(np.uint8)
    genome, spans = reference.copy(), []
    for x in range(100):
        start, size = 5000 + 9900 * x, int(np.exp(rng.uniform(np.log(SIZES[0]), np.log(2 * SIZES[-1]))))
        genome[start : start + size] = invert(reference[start : start + size])
        spans.append((start, start + size, np.searchsorted(SIZES, size, side="right") - 1))
    reads, rows = make_reads(rng, genome, error, mean), []
    for program, cpu, lines in lines_of(folder, reference, reads, peer):
        turned, seen, found, wrong = defaultdict(list), Counter(), Counter(), 0
        for line in lines:
            if (line[4] == "-") != reads[int(line[0])][2]:
                turned[int(line[0])].append((int(line[7]), int(line[8])))
        for x, (_, place, _) in enumerate(reads):
            low, high = place[place >= 0].min(), place.max()
            for begin, end, kind in spans:
                if low < begin - FLANK and end + FLANK < high:
                    shared = [min(end, b) - max(begin, a) for a, b in turned[x] if b - a < 1.4 * (end - begin)]
                    seen[kind] += 1
                    found[kind] += max(shared, default=0) > 0.7 * (end - begin)
            wrong += sum(all(min(end, b) <= max(begin, a) for begin, end, _ in spans) for a, b in turned[x])
        rows.append(
            [error, program, *(f"{found[kind]} of {seen[kind]}" for kind in range(len(SIZES))), wrong, round(cpu, 1)]
        )
    return rows


def satellite_mapped(folder: Path, error: float, peer: str, mean: int, seed: int) -> list[list]:
    rng = np.random.default_rng(seed)
    sides = (rng.integers(0, 4, 300_000).astype(np.uint8) for _ in range(2))
    reference = np.concatenate([next(sides), satellite(rng, 150), next(sides)])
    place, turned = rearrange(rng, len(reference))
    genome = mutate(rng, np.where(turned, 3 - reference[place], reference[place]).astype(np.uint8), 0.005)
    reads, rows = make_reads(rng, genome, error, mean), []
    near, total = 10 if error < 0.02 else 25, sum((of >= 0).sum() for _, of, _ in reads)
    for program, cpu, lines in lines_of(folder, reference, reads, peer):
        found, aligned, covered = 0, 0, [np.zeros(len(bases), bool) for bases, *_ in reads]
        for line in lines:
            x, backward, length = int(line[0]), line[4] == "-", int(line[1])
            of, is_turned = reads[x][1:]
            q, t = length - int(line[3]) if backward else int(line[2]), int(line[7])
            for size, operation in RUNS.findall(next(tag for tag in line[12:] if tag.startswith("cg:Z:"))):
                n = int(size)
                if operation == "M":
                    here = np.arange(q, q + n)
                    here = length - 1 - here if backward else here
                    here, places = here[of[here] >= 0], (t + np.arange(n))[of[here] >= 0]
                    right = np.abs(place[of[here]] - places) <= near
                    right &= (turned[of[here]] != is_turned) == backward
                    covered[x][here[right]] = True
                    found, aligned = found + right.sum(), aligned + len(here)
                q, t = q + n * (operation != "D"), t + n * (operation != "I")
        recall = sum(some.sum() for some in covered) / total
        rows.append([error, seed, program, round(recall, 4), round(found / aligned, 4), len(lines), round(cpu, 1)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        small = [row for kind in KINDS for row in inversions_found(Path(name), *kind)]
        large = [row for kind in KINDS for seed in (1, 2) for row in satellite_mapped(Path(name), *kind, seed)]
    results = {"benchmark": "rearranged", "machine": describe_machine([]), "inversions": small, "satellites": large}
    tables = [
        table(["errors", "program", *(f"{size} bases" for size in SIZES), "elsewhere", "CPU s"], small),
        table(["errors", "genome", "program", "recall", "precision", "lines", "CPU s"], large),
    ]
    finish(tables, results, options.output)


if __name__ == "__main__":
    main()
