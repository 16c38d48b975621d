#!/usr/bin/env python3
"""Depth at the origin of a circular reference: `map --circular all`, `map` alone, and minimap2 if it is on the PATH.

python benchmarks/circular.py                       # a made plasmid of 5,386 bases and one of 50,000
python benchmarks/circular.py REFERENCE READS       # real ones, of one sequence

Reads of made circles begin anywhere with the same chance.  Depth within 200 bases of the origin is divided by that of the
rest, and by what it should be for made reads.  Beside it stand CPU seconds, and the numbers of primary and supplementary
lines.  samtools and pysam are needed.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
from pathlib import Path
from shlex import quote

import numpy as np
import pysam
from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy

NEAR = 200
SIZES, ERROR, DEPTH, MEAN = (5386, 50_000), 0.05, 400, 4000


def make_circle(folder: Path, size: int, error: float, seed: int = 1) -> tuple[Path, Path]:
    """A circle of random bases and reads of it, of 500 bases and more, some of which go round several times."""
    rng = random.Random(seed)
    turn = "".join(rng.choices("ACGT", k=size))
    reference, reads = folder / f"circle{size}.fa", folder / f"circle{size}.reads.fa"
    reference.write_text(f">circle\n{turn}\n")
    made = n = 0
    with open(reads, "w") as out:
        while made < size * DEPTH:
            length, begin = 500 + int(rng.expovariate(1 / MEAN)), rng.randrange(size)
            read = (turn * (length // size + 2))[begin : begin + length]
            noisy = []
            for base in read:
                kind = rng.random() / error * 3
                noisy.append("" if kind < 1 else rng.choice("ACGT") if kind < 2 else base)
                if 2 <= kind < 3:
                    noisy.append(rng.choice("ACGT"))
            text = "".join(noisy)
            if rng.random() < 0.5:
                text = text[::-1].translate(str.maketrans("ACGT", "TGCA"))
            out.write(f">r{n}_{begin}_{length}\n{text}\n")
            made, n = made + length, n + 1
    return reference, reads


def near_and_elsewhere(depth: np.ndarray) -> tuple[float, float]:
    """Mean depth near the origin, and of the rest."""
    return float(np.concatenate([depth[:NEAR], depth[-NEAR:]]).mean()), float(depth[NEAR:-NEAR].mean())


def true_depth(names: set[str], size: int) -> np.ndarray | None:
    """Depth by the names of made reads; None: they are real."""
    depth = np.zeros(size)
    for name in names:
        if not (match := re.fullmatch(r"r\d+_(\d+)_(\d+)", name)):
            return None
        begin, length = map(int, match.groups())
        np.add.at(depth, np.arange(begin, begin + length) % size, 1)
    return depth


def judge(path: Path) -> list:
    """Depth near the origin and elsewhere; their ratio, by that of the truth; primary and supplementary lines."""
    with pysam.AlignmentFile(path) as bam:
        name, size = bam.references[0], bam.lengths[0]
        lines = [line for line in bam.fetch(until_eof=True) if not line.is_secondary]
        depth = np.sum(bam.count_coverage(name, quality_threshold=0), axis=0)
    near, rest = near_and_elsewhere(depth)
    truth = true_depth({line.query_name or "" for line in lines}, size)
    expected = 1.0 if truth is None else near_and_elsewhere(truth)[0] / near_and_elsewhere(truth)[1]
    mapped = [line for line in lines if not line.is_unmapped]
    supplementary = sum(line.is_supplementary for line in mapped)
    return [f"{near:.1f}", f"{rest:.1f}", f"{near / rest / expected:.4f}", len(mapped) - supplementary, supplementary]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="reference and reads")
    parser.add_argument("--preset", default="ont", help="of bellapy [default: ont]")
    parser.add_argument("--peer", default="map-ont", help="minimap2's preset [default: map-ont]")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    ours = f"{quote(program_of_bellapy())} map -q -t 1 --preset {options.preset}"
    rows = []
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        sets = [tuple(options.files)] if options.files else [make_circle(folder, size, ERROR) for size in SIZES]
        for reference, reads in sets:
            files, out = f"{quote(str(reference))} {quote(str(reads))}", folder / "out.bam"
            circles = (" --circular all", "")
            commands = {f"bellapy{some}": f"{ours}{some} {files} -o {out}" for some in circles}
            if shutil.which("minimap2"):
                sort = f"samtools sort -o {out} && samtools index {out}"
                commands["minimap2"] = f"minimap2 -t 1 -ax {options.peer} {files} | {sort}"
            for name, command in commands.items():
                if name != "minimap2":
                    measure(command)  # compiles
                usage = measure(command)
                rows.append([Path(reference).name, name, f"{usage.cpu:.2f}", *judge(out)])
    header = ["reference", "program", "CPU s", "near the origin", "elsewhere", "ratio", "primary", "supplementary"]
    results = {"benchmark": "circular", "machine": describe_machine(["minimap2"]), "rows": rows}
    finish([table(header, rows)], results, options.output)


if __name__ == "__main__":
    main()
