#!/usr/bin/env python3
"""Correction beside racon: errors of reads against the reference they come from, CPU time, memory; windows beside spoa.

python benchmarks/correction.py READS REFERENCE TRUTH.tsv [--racon] [--options "..."] [--first N] [-o RESULT.json]
python benchmarks/correction.py READS REFERENCE TRUTH.tsv --qualities [-o RESULT.json]
python benchmarks/correction.py --windows 100 --length 500 --depth 30 [-o RESULT.json]

Needs edlib, and pyspoa for windows (pip).  A read is aligned from end to end with its own place on the reference, widened by
300 bases; nothing is clipped.  Reads of which the truth tells less than nine tenths are not judged.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import quote

import numpy as np
from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy

from bellapy.io.fastx import stream_records

FLANK, WHOLE, END_SLACK = 300, 0.9, 100
LONG, LEAST_BASES = 100, 1000  # of an edit, which is then a difference of the samples; of a quality that is shown
COMPLEMENT = bytes.maketrans(b"ACGTacgt", b"TGCAtgca")
LETTERS = np.frombuffer(b"ACGTN", np.uint8)
BOTH_WAYS = "{print; print $6,$7,$8,$9,$5,$1,$2,$3,$4,$10,$11,$12}"


def records(path: Path) -> Iterator[tuple[str, bytes]]:
    for some in stream_records([path]):
        yield from zip([name.decode() for name in some.names], [s.upper() for s in some.sequences], strict=True)


def read_places(path: Path) -> dict[str, tuple[str, int, int, str]]:
    """Reference, start, end and strand of the reads that lie on it nearly whole."""
    places = {}
    for line in path.read_text().splitlines():
        row = line.split("\t")
        if line[:1] != "#" and (len(row) < 8 or int(row[7]) - int(row[6]) >= WHOLE * int(row[5])):
            places[row[0]] = row[1], int(row[2]), int(row[3]), row[4]
    return places


def judge(corrected: Path, reference: Path, truth: Path, first: int | None) -> dict:
    """Error rate, worst hundredth of identity, and reads that reach both ends of their place."""
    import edlib

    genome, places = dict(records(reference)), read_places(truth)
    edits = bases = ends = 0
    identities = []
    for i, (name, sequence) in enumerate(records(corrected)):
        name = name if name in places else name[:-1]  # racon adds a letter
        if (first and i >= first) or name not in places:
            continue
        ref, start, end, strand = places[name]
        low = max(0, start - FLANK)
        region = genome[ref][low : end + FLANK]
        query = sequence if strand in "+1n" else sequence.translate(COMPLEMENT)[::-1]
        found = edlib.align(query, region, mode="HW", task="locations")
        begin, last = found["locations"][0]
        edits, bases = edits + found["editDistance"], bases + last + 1 - begin
        ends += begin + low <= start + END_SLACK and last + 1 + low >= end - END_SLACK
        identities.append(1 - found["editDistance"] / max(1, len(query)))
    return {
        "reads": len(identities),
        "errors %": round(100 * edits / max(1, bases), 4),
        "worst hundredth": round(float(np.percentile(identities or [0], 1)), 5),
        "end to end": ends,
    }


def mark_errors(query: bytes, region: bytes) -> np.ndarray:
    """Bases of a read that are wrong, too many, or before missing ones, (n,) bool; what is longer than LONG is left out."""
    import edlib

    wrong, at = np.zeros(len(query), bool), 0
    for size, operation in re.findall(r"(\d+)([=XID])", edlib.align(query, region, mode="HW", task="path")["cigar"]):
        n = int(size)
        if operation == "D":
            wrong[max(0, at - 1)] |= n <= LONG
            continue
        wrong[at : at + n] |= operation != "=" and n <= LONG
        at += n
    return wrong


def judge_qualities(arguments: argparse.Namespace) -> list[dict]:
    """Stated and true quality of corrected bases."""
    genome, places = dict(records(arguments.reference)), read_places(arguments.truth)
    bases, errors = np.zeros(94), np.zeros(94)
    with tempfile.TemporaryDirectory() as folder:
        program, file = quote(program_of_bellapy()), f"{folder}/x.fq"
        command = f"{program} correct {quote(str(arguments.reads))} -t 1 {arguments.options} -o {file}"
        usage = measure(command, Path(folder) / "log", 12 * 3600)
        if usage.status:
            raise SystemExit((Path(folder) / "log").read_text())
        lines = Path(file).read_bytes().split(b"\n")
    for i, (name, sequence, marks) in enumerate(zip(lines[::4], lines[1::4], lines[3::4], strict=False)):
        place = places.get(name[1:].decode())
        if place is None or arguments.first and i >= arguments.first:
            continue
        ref, start, end, strand = place
        forward = strand in "+1n"
        wrong = mark_errors(
            sequence if forward else sequence.translate(COMPLEMENT)[::-1], genome[ref][max(0, start - FLANK) : end + FLANK]
        )
        stated = np.frombuffer(marks, np.uint8) - 33
        bases += np.bincount(stated, minlength=94)
        errors += np.bincount(stated, weights=wrong if forward else wrong[::-1], minlength=94)
    shown = np.flatnonzero(bases >= LEAST_BASES)
    return [
        {"stated": int(q), "bases": int(bases[q]), "true": round(-10 * np.log10(max(errors[q], 0.5) / bases[q]), 1)}
        for q in shown
    ]  # fmt: skip


def compare(arguments: argparse.Namespace) -> list[dict]:
    reads, rows = quote(str(arguments.reads)), []
    with tempfile.TemporaryDirectory() as folder:
        program, fasta, paf = quote(program_of_bellapy()), f"{folder}/reads.fa", f"{folder}/x.paf"
        commands = {"bellapy": f"{program} correct {reads} -t 1 {arguments.options} -o {folder}/bellapy.fa"}
        if arguments.racon:
            with open(fasta, "wb") as stream:  # with qualities racon leaves out most of noisy reads
                stream.writelines(b">%s\n%s\n" % (name.encode(), sequence) for name, sequence in records(arguments.reads))
            commands["racon"] = (
                f"{program} overlap {reads} -t 1 -o {paf} && awk -v OFS='\\t' '{BOTH_WAYS}' {paf} > {paf}.both.paf && "
                f"racon -f -t 1 {fasta} {paf}.both.paf {fasta} > {folder}/racon.fa"
            )
        for name, command in commands.items():
            usage = measure(command, Path(folder) / "log", 12 * 3600)
            if usage.status:
                raise SystemExit(f"{name}: failed\n{(Path(folder) / 'log').read_text()}")
            judged = judge(Path(folder) / f"{name}.fa", arguments.reference, arguments.truth, arguments.first)
            rows.append({"tool": name, **judged, **asdict(usage)})
    return rows


def simulate_windows(n: int, length: int, depth: int) -> list[tuple[str, list[str]]]:
    """Random stretches, and noisy copies of each: 13 % errors, most of them insertions."""
    rng = random.Random(5)

    def copy(true: str) -> str:
        out = []
        for letter in true:
            kind = rng.random()
            if kind >= 0.05:
                out.append(letter)
            elif kind < 0.02:
                out.append(rng.choice("ACGT"))
            while rng.random() < 0.08:
                out.append(rng.choice("ACGT"))
        return "".join(out)

    windows = []
    for _ in range(n):
        true = "".join(rng.choices("ACGT", k=length))
        windows.append((true, [copy(true) for _ in range(depth)]))
    return windows


def time_windows(arguments: argparse.Namespace) -> list[dict]:
    """Windows a second of the engine and of spoa, in turn, and errors of the consensus."""
    import edlib
    import spoa

    from bellapy.engines.poa.windows import Aligner
    from bellapy.params.correct import PoaScoring
    from bellapy.records.bases import encode

    scoring, windows = PoaScoring(), simulate_windows(arguments.windows, arguments.length, arguments.depth)
    aligner, (match, mismatch, gap) = Aligner(scoring), scoring

    def ours(sequences: list[str]) -> str:
        codes = [encode(sequence) for sequence in sequences]
        offsets = np.concatenate(([0], np.cumsum([len(c) for c in codes]))).astype(np.int64)
        return LETTERS[aligner.align(np.concatenate(codes), offsets).consensus].tobytes().decode()

    def theirs(sequences: list[str]) -> str:
        return spoa.poa(sequences, algorithm=1, genmsa=False, m=match, n=mismatch, g=gap, e=gap, q=gap, c=gap)[0]

    ours(windows[0][1])  # compiles
    rows = []
    for tool, find in {"bellapy": ours, "spoa": theirs}.items():
        start = time.process_time()
        found = [find(sequences) for _, sequences in windows]
        seconds = time.process_time() - start
        errors = sum(edlib.align(c, true)["editDistance"] for c, (true, _) in zip(found, windows, strict=True))
        rows.append({"tool": tool, "windows/s": round(len(windows) / seconds, 1), "errors": errors})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reads", type=Path, nargs="?")
    parser.add_argument("reference", type=Path, nargs="?")
    parser.add_argument("truth", type=Path, nargs="?", help="as bellapy evaluate reads it, a table")
    parser.add_argument("--racon", action="store_true", help="run racon too; takes long")
    parser.add_argument("--options", default="", help="of bellapy correct")
    parser.add_argument("--first", type=int, help="judge so many reads")
    parser.add_argument("--qualities", action="store_true", help="compare stated qualities with true ones instead")
    parser.add_argument("--windows", type=int, help="time so many windows instead")
    parser.add_argument("--length", type=int, default=500)
    parser.add_argument("--depth", type=int, default=30)
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    rows = (time_windows if arguments.windows else judge_qualities if arguments.qualities else compare)(arguments)
    tables = [table(list(rows[0]), [list(row.values()) for row in rows])]
    finish(tables, {"machine": describe_machine(["racon"]), "rows": rows}, arguments.output)


if __name__ == "__main__":
    main()
