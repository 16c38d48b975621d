#!/usr/bin/env python3
"""Contigs with stretches that are wrong as a whole, polished by `bellapy polish`, and by racon if it is on the PATH.

    python benchmarks/wrong_contigs.py [-o RESULT.json]

Every 5,000 bases a contig of random bases has a stretch of them replaced by others, turned round, left out, put in or there
twice.  For each kind and size the table tells how many bases are off there on average: edits from 400 bases before the
stretch to 400 behind it.  Needs edlib (pip), and racon needs minimap2.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import edlib
import numpy as np
from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy
from rearranged import LETTERS, invert, make_reads, mutate, write

from bellapy.io.fastx import stream_records

KINDS, SIZES, TIMES = ("replaced", "turned", "left out", "put in", "twice"), (100, 300, 1000, 2000), 3
SETS = (0.003, "map-hifi", 12_000, 30), (0.08, "map-ont", 8000, 30), (0.12, "map-ont", 8000, 12)
"""Errors, preset of minimap2, mean length and depth."""
APART, SCATTERED = 5000, 0.001  # bases between stretches; mismatches of the rest of the contig
FLANK, KEY, MOST = 400, 40, 8
"""Bases beside a stretch; the outermost of them, by which they are found; edits of these."""

Place = tuple[str, int, int, int]
"""Kind, size, and where the stretch begins and ends in the true sequence."""


def make_contig(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[Place]]:
    """The true sequence, the contig, and its wrong stretches."""
    n_stretches = len(KINDS) * len(SIZES) * TIMES
    n = APART * (n_stretches + 2) + len(KINDS) * sum(SIZES) * TIMES
    genome = rng.integers(0, 4, n).astype(np.uint8)
    parts, places, at, begin = [], [], 0, APART
    for kind, size in [(kind, size) for kind in KINDS for size in SIZES] * TIMES:
        end = begin if kind == "put in" else begin + size
        true, other = genome[begin:end], rng.integers(0, 4, size).astype(np.uint8)
        wrong = {"replaced": other, "turned": invert(true), "left out": true[:0], "put in": other, "twice": np.tile(true, 2)}
        parts += [mutate(rng, genome[at:begin], SCATTERED), wrong[kind]]
        places.append((kind, size, begin, end))
        at, begin = end, end + APART
    return genome, np.concatenate([*parts, genome[at:]]), places


def polished(folder: Path, preset: str) -> Iterator[tuple[str, float, bytes]]:
    """Program, CPU seconds and the contig."""
    draft, reads, out = (folder / name for name in ("draft.fa", "reads.fa", "out.fa"))
    commands = {"bellapy": f"{quote(program_of_bellapy())} polish -q -t 2 {draft} {reads} -o {out}"}
    if shutil.which("racon"):
        paf = folder / "o.paf"
        commands["racon"] = f"minimap2 -t 2 -x {preset} {draft} {reads} > {paf} && racon -t 2 {reads} {paf} {draft} > {out}"
    for program, command in commands.items():
        for _ in range(2 if program == "bellapy" else 1):  # the first run may compile
            used = measure(command)
        yield program, used.cpu, b"".join(s for some in stream_records([out]) for s in some.sequences).upper()


def edits(contig: bytes, genome: bytes, begin: int, end: int) -> float:
    """Bases that are off from FLANK bases before a stretch to FLANK behind it; nan: the contig lacks what is beside it."""
    begin, end = begin - FLANK, end + FLANK
    found = [edlib.align(genome[at : at + KEY], contig, mode="HW", task="locations", k=MOST) for at in (begin, end - KEY)]
    if any(one["editDistance"] < 0 for one in found):
        return float("nan")
    first, last = found[0]["locations"][0][0], found[1]["locations"][0][1] + 1
    return float(edlib.align(contig[first:last], genome[begin:end], mode="NW")["editDistance"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    rows = []
    for error, preset, mean, depth in SETS:
        rng = np.random.default_rng(1)
        genome, draft, places = make_contig(rng)
        true = LETTERS[genome].tobytes()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "draft.fa").write_bytes(b">contig\n%s\n" % LETTERS[draft].tobytes())
            write(folder / "reads.fa", [bases for bases, *_ in make_reads(rng, genome, error, mean, depth)])
            for program, cpu, contig in polished(folder, preset):
                off = [(kind, size, edits(contig, true, begin, end)) for kind, size, begin, end in places]
                about = f"{depth}X, {100 * error:g} %", f"{program}, {cpu:.0f} CPU s"
                for kind in KINDS:
                    means = [np.nanmean([n for k, s, n in off if (k, s) == (kind, size)]) for size in SIZES]
                    rows.append([*about, kind, *(f"{n:.1f}" for n in means)])
    results = {"benchmark": "wrong contigs", "machine": describe_machine(["minimap2", "racon"]), "rows": rows}
    finish([table(["reads", "program", "stretch", *(f"{size} bases" for size in SIZES)], rows)], results, options.output)


if __name__ == "__main__":
    main()
