#!/usr/bin/env python3
"""Whole-genome alignment beside LASTZ, and lastal if asked for: CPU time of whole programs in turn, memory, and the pairs of
bases that both align.

python benchmarks/wga.py TARGET QUERY [--rounds 3] [--options "--all-copies --no-cut"] [--lastz "..."] [--lastal "-uNEAR"]
    [--truth TRUTH.npz] [-o RESULT.json]

TRUTH.npz: ungapped blocks of the known alignment of two sequences, places on the target (t) and on the query's forward
strand (q), lengths (n) and whether strands are opposite (rev).
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from statistics import median

import numpy as np
from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy

DASH = ord("-")


def read_maf(path: Path, numbers: dict[str, int]) -> tuple[np.ndarray, int, int]:
    """Pairs of bases as sorted numbers, alignments, sum of scores; numbers : of pairs of sequences, for all files."""
    pairs, rows, n, total = [np.zeros(0, np.uint64)], [], 0, 0
    for line in path.open("rb"):
        if line.startswith(b"a score="):
            n, total = n + 1, total + int(line.split()[1][6:])
        elif line.startswith(b"s "):
            words = line.split()
            rows.append((words[1].decode(), int(words[2]), words[4], int(words[5]), np.frombuffer(words[6], np.uint8)))
        if len(rows) == 2:
            pairs.append(_pairs(rows, numbers))
            rows = []
    return np.unique(np.concatenate(pairs)), n, total


def _pairs(rows: list[tuple], numbers: dict[str, int]) -> np.ndarray:
    (t_name, t_at, _, _, t_row), (q_name, q_at, strand, q_length, q_row) = rows
    both = (t_row != DASH) & (q_row != DASH)
    t = t_at + np.cumsum(t_row != DASH)[both] - 1
    q = q_at + np.cumsum(q_row != DASH)[both] - 1
    q = q if strand == b"+" else q_length - 1 - q
    which = numbers.setdefault(f"{t_name} {q_name} {strand!r}", len(numbers))
    return np.uint64(which) << np.uint64(56) | t.astype(np.uint64) << np.uint64(28) | q.astype(np.uint64)


def known_pairs(path: str) -> np.ndarray:
    """Pairs as `read_maf` numbers them, of two sequences; whatever their strands."""
    with np.load(path) as blocks:
        sizes = blocks["n"]
        t, q, n, rev = (np.repeat(blocks[name], sizes) for name in ("t", "q", "n", "rev"))
    within = np.arange(len(t)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    q = np.where(rev == 1, q + n - 1 - within, q + within)
    return (t + within).astype(np.uint64) << np.uint64(28) | q.astype(np.uint64)


def judge(pairs: np.ndarray, known: np.ndarray) -> str:
    """Recall and precision; the strands of pairs are not looked at."""
    pairs = np.unique(pairs & np.uint64((1 << 56) - 1))
    common = len(np.intersect1d(pairs, known))
    return f"{common / len(known):.4f} {common / len(pairs):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", type=Path)
    parser.add_argument("query", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--options", default="", help="of bellapy")
    parser.add_argument("--lastz", default="", help="options of LASTZ")
    parser.add_argument("--lastal", help="options of lastdb; lastal runs with its defaults")
    parser.add_argument("--truth", help="known alignment")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = quote(str(options.target)), quote(str(options.query))
        outputs = {name: Path(folder) / f"{name}.maf" for name in ("lastz", "bellapy", "lastal")}
        commands = {
            "lastz": f"lastz {files[0]}[multiple] {files[1]} {options.lastz} --format=maf- > {outputs['lastz']}",
            "bellapy": f"{program_of_bellapy()} wga {' '.join(files)} -t 1 -q {options.options} -o {outputs['bellapy']}",
        }
        if options.lastal is not None:
            base = f"{folder}/database"
            commands["lastal"] = (
                f"lastdb -P1 {options.lastal} {base} {files[0]} && lastal -P1 {base} {files[1]} > {outputs['lastal']}"
            )
        measure(commands["bellapy"])  # compiles
        usages = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                usages[name].append(measure(command))
        numbers: dict[str, int] = {}
        found = {name: read_maf(outputs[name], numbers) for name in commands}
    known = known_pairs(options.truth) if options.truth else None
    common = len(np.intersect1d(found["lastz"][0], found["bellapy"][0]))
    rows, results = [], {"machine": describe_machine(["lastz"]), "common pairs": common}
    for name, some in usages.items():
        cpu, (pairs, n, score) = median(usage.cpu for usage in some), found[name]
        share = len(np.intersect1d(pairs, found["lastz"][0])) / len(found["lastz"][0])
        judged = judge(pairs, known) if known is not None else "-"
        memory = f"{max(u.peak_mb for u in some):.0f}"
        rows.append([name, f"{cpu:.2f}", memory, n, len(pairs), score, f"{share:.4f}", judged])
        results[name] = {"command": commands[name], "usage": [asdict(usage) for usage in some], "pairs": len(pairs)}
    header = ["program", "CPU s", "peak MB", "alignments", "pairs", "score", "share of LASTZ's pairs", "recall, precision"]
    finish([table(header, rows)], results, options.output)


if __name__ == "__main__":
    main()
