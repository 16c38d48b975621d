#!/usr/bin/env python3
"""Correction of reads of long runs of one base and of microsatellites, beside racon if it is on the PATH.

    python benchmarks/long_runs.py [-o RESULT.json]

A genome of random bases holds each run three times, 1,500 bases apart.  For each unit and number of bases the table tells
by how many bases corrected reads are off there on average; in parentheses the mean difference in length.  Needs edlib (pip).
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import edlib
import numpy as np
from common import describe_machine, finish, table
from correction import BOTH_WAYS
from measure import measure
from peers import program_of_bellapy
from rearranged import LETTERS, NEVER, Read, invert, make_reads, write

from bellapy.io.fastx import stream_records

UNITS, SIZES = ("A", "C", "G", "T", "AC", "AAG", "AAAAC"), (20, 40, 60, 80, 120)
ERROR, MEAN, DEPTH = 0.08, 8000, 30
APART, SIDE, NEAR = 1500, 5000, 300  # bases between runs, at both ends, and that a read goes on for beside a run
EDITS = re.compile(r"(\d+)([=XID])")


def make_genome(rng: np.random.Generator) -> tuple[np.ndarray, list[tuple[int, str, int]]]:
    """Codes, and the begin, unit and size of each run."""
    parts, runs, at = [rng.integers(0, 4, SIDE)], [], SIDE
    for unit, size in [(unit, size) for unit in UNITS for size in SIZES] * 3:
        runs.append((at + APART, unit, size))
        parts += [rng.integers(0, 4, APART), np.resize(["ACGT".index(base) for base in unit], size)]
        at += APART + size
    return np.concatenate([*parts, rng.integers(0, 4, SIDE)]).astype(np.uint8), runs


def corrected(folder: Path, reads: list[Read]) -> Iterator[tuple[str, float, dict[int, bytes]]]:
    """Program, CPU seconds, and the corrected reads by number."""
    path, paf, out = write(folder / "reads.fa", [bases for bases, *_ in reads]), folder / "o.paf", folder / "out.fa"
    bellapy = quote(program_of_bellapy())
    commands = {"bellapy": f"{bellapy} correct -q -t 2 {path} -o {out}"}
    if shutil.which("racon"):
        measure(f"{bellapy} overlap -q {path} | awk -v OFS='\t' '{BOTH_WAYS}' > {paf}")
        commands["racon"] = f"racon -f -t 2 {path} {paf} {path} > {out}"
    for program, command in commands.items():
        for _ in range(2 if program == "bellapy" else 1):  # the first run may compile
            used = measure(command)
        found = {}
        for some in stream_records([out]):
            found |= {int(re.match(rb"\d+", name)[0]): s.upper() for name, s in zip(some.names, some.sequences, strict=True)}
        yield program, used.cpu, found


def differences(bases: bytes, truth: bytes) -> list[tuple[int, int, int]]:
    """Place in the truth, edits and difference in length, where a read differs from it."""
    at, found = 0, []
    for size, operation in EDITS.findall(edlib.align(bases, truth, mode="NW", task="path")["cigar"]):
        n = int(size)
        if operation != "=":
            found.append((at, n, n * {"I": 1, "D": -1, "X": 0}[operation]))
        at += n if operation != "I" else 0
    return found


def judge(
    genome: np.ndarray, runs: list[tuple[int, str, int]], reads: list[Read], found: dict[int, bytes]
) -> tuple[dict[tuple[str, int], list[tuple[int, int]]], float]:
    """Edits and difference in length of each read in each run, by unit and size, and the share of edits elsewhere."""
    off, elsewhere, total = defaultdict(list), 0, 0
    for x, bases in found.items():
        _, place, turned = reads[x]
        first, last = place[place > NEVER].min(), place.max()
        truth = LETTERS[invert(genome[first : last + 1]) if turned else genome[first : last + 1]].tobytes()
        edits = [(last + 1 - at if turned else first + at, n, longer) for at, n, longer in differences(bases, truth)]
        elsewhere, total = elsewhere + sum(n for _, n, _ in edits), total + len(truth)
        for begin, unit, size in runs:
            if first + NEAR < begin and begin + size + NEAR < last:
                here = [(n, longer) for at, n, longer in edits if begin - 3 <= at <= begin + size + 3]
                off[unit, size].append((sum(n for n, _ in here), sum(longer for _, longer in here)))
                elsewhere -= off[unit, size][-1][0]
    return off, elsewhere / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    genome, runs = make_genome(rng)
    reads, rows = make_reads(rng, genome, ERROR, MEAN, DEPTH), []
    with tempfile.TemporaryDirectory() as name:
        for program, cpu, found in corrected(Path(name), reads):
            off, elsewhere = judge(genome, runs, reads, found)
            for unit in UNITS:
                means = [np.mean(off[unit, size], axis=0) for size in SIZES]
                rows.append([program, unit, *(f"{n:.2f} ({longer:+.2f})" for n, longer in means)])
            rows.append([program, f"elsewhere {100 * elsewhere:.4f} %, {cpu:.0f} CPU s", *[""] * len(SIZES)])
    results = {"benchmark": "long runs", "machine": describe_machine(["racon"]), "rows": rows}
    finish([table(["program", "unit", *(f"{size} bases" for size in SIZES)], rows)], results, options.output)


if __name__ == "__main__":
    main()
