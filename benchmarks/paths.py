#!/usr/bin/env python3
"""Base-level paths: time, memory and files, beside a run without them and minimap2 -c.

    python benchmarks/paths.py DATA [SET...] [--rounds 3] [--without TOOLS] [-o RESULT.json]

Each round runs all of these in turn, one thread each; ratios are taken within a round.  SAM and BAM of the last round are
then checked by samtools (quickcheck, view, sort, stats), bases and MD of all records against the reads, and NM of some by
edlib where it is installed: no path can have fewer edits.  A pair of reads of a million bases with 10 % errors is aligned at
the end.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import asdict
from pathlib import Path
from shlex import quote

import pysam
from common import EXAMPLE, describe_machine, find_reads, finish, table, warm_up
from measure import Usage, measure
from peers import program_of_bellapy, read_records
from speed import spread

TOOLS = {
    "bellapy": "{program} overlap {reads} -t 1 -o {out}.plain.paf",
    "bellapy --cigar": "{program} overlap {reads} -t 1 --cigar -o {out}.paf",
    "bellapy --cigar --cs": "{program} overlap {reads} -t 1 --cigar --cs -o {out}.cs.paf",
    "bellapy, SAM": "{program} overlap {reads} -t 1 -o {out}.sam",
    "bellapy, BAM": "{program} overlap {reads} -t 1 -o {out}.bam",
    "bellapy, sorted BAM": "{program} overlap {reads} -t 1 --sort -o {out}.sorted.bam",
    "bellapy --cigar, two threads": "{program} overlap {reads} -t 2 --cigar -o {out}.two.paf",
    "minimap2 ava-pb -c": "minimap2 -x ava-pb -c -t 1 {reads} {reads} > {out}.peer.paf",
}
LONG = 1_000_000
LETTERS = "ACGT"
CHECKED = 500  # records


def run(command: str, folder: Path) -> Usage:
    usage = measure(command, folder / "log", 3600)
    if usage.status:
        raise SystemExit(f"{command}\nexit status {usage.status}\n{(folder / 'log').read_text()[-2000:]}")
    return usage


def run_set(reads: Path, tools: dict[str, str], rounds: int, folder: Path) -> list[dict]:
    names = {"program": quote(program_of_bellapy()), "reads": quote(str(reads)), "out": folder / "x"}
    found = []
    for number in range(rounds):
        used = {name: asdict(run(command.format(**names), folder)) for name, command in tools.items()}
        found.append(used)
        print(
            f"{reads.name}, round {number + 1}:", ", ".join(f"{name} {u['cpu']:.2f}" for name, u in used.items()), flush=True
        )
    return found


def rows_of(name: str, rounds: list[dict]) -> list[list]:
    rows = []
    for tool in rounds[0]:
        cpus, walls, peaks = ([used[tool][key] for used in rounds] for key in ("cpu", "wall", "peak_mb"))
        times = [used[tool]["cpu"] / used["bellapy"]["cpu"] for used in rounds]
        rows.append([name, tool, spread(walls), spread(cpus), f"{max(peaks):.0f}", spread(times)])
    return rows


def check(folder: Path, reads: Path) -> list[str]:
    """What samtools and edlib say of the files."""
    said = []
    for name in ("x.sam", "x.bam", "x.sorted.bam"):
        path = folder / name
        if not path.is_file():
            continue
        count, stats = folder / "count", folder / "stats"
        run(f"samtools quickcheck {path}; samtools view -c {path} > {count}; samtools stats {path} > {stats}", folder)
        n = count.read_text().strip()
        run(f"samtools sort -o {folder}/sorted.bam {path} && samtools index {folder}/sorted.bam", folder)
        said.append(f"{name}: {n} records; quickcheck, view, stats, sort and index accept it")
    if (folder / "x.sam").is_file():
        said.append(check_records(folder / "x.sam", dict(read_records(reads))))
    return said


def check_records(path: Path, reads: dict[str, str]) -> str:
    """Bases of all records against the reads; NM of some against edlib's distance on the same intervals."""
    try:
        from edlib import align
    except ImportError:
        align = None
    n = n_reverse = n_checked = 0
    excess = []
    with pysam.AlignmentFile(str(path)) as records:
        for record in records:
            start, end = record.cigartuples[0], record.cigartuples[-1]
            before, after = (run[1] if run[0] == pysam.CHARD_CLIP else 0 for run in (start, end))
            read = reads[record.query_name].upper()
            if record.is_reverse:
                before, after, n_reverse = after, before, n_reverse + 1
            bases = read[before : len(read) - after]
            if record.is_reverse:
                bases = bases[::-1].translate(str.maketrans("ACGT", "TGCA"))
            target = reads[record.reference_name][record.reference_start : record.reference_end].upper()
            if record.query_sequence != bases or record.get_reference_sequence().upper() != target:
                raise SystemExit(f"{record.query_name} on {record.reference_name}: other bases than the reads'")
            n += 1
            if align and n % 97 == 0 and n_checked < CHECKED:
                distance = align(bases, target, mode="NW", task="distance")["editDistance"]
                if record.get_tag("NM") < distance:
                    raise SystemExit(f"{record.query_name} on {record.reference_name}: NM below the edit distance")
                n_checked += 1
                excess.append(record.get_tag("NM") / max(1, distance))
    told = f"; NM is {spread(excess, 3)} times the edit distance in {n_checked}" if excess else ""
    return f"{n:,} records, {n_reverse:,} of them reverse: bases and MD are those of the reads{told}"


def long_pair(folder: Path) -> Usage:
    """Two reads of a million bases, 10 % errors each, a third of them substitutions, insertions and deletions."""
    rng = random.Random(1)
    genome = rng.choices(LETTERS, k=LONG)

    def copy() -> str:
        kinds, others = rng.choices("-SID", (0.9, 0.1 / 3, 0.1 / 3, 0.1 / 3), k=LONG), rng.choices(LETTERS, k=LONG)
        columns = zip(genome, others, kinds, strict=True)
        return "".join({"-": base, "S": other, "I": base + other, "D": ""}[kind] for base, other, kind in columns)

    (folder / "long.fa").write_text(f">a\n{copy()}\n>b\n{copy()}\n")
    usage = run(f"{quote(program_of_bellapy())} overlap {folder}/long.fa -t 1 --cigar -o {folder}/long.paf", folder)
    (line,) = (folder / "long.paf").read_text().splitlines()
    if int(line.split("\t")[3]) - int(line.split("\t")[2]) < 0.99 * LONG:
        raise SystemExit("the long pair is not aligned from end to end")
    return usage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", default=["ec5", "lambda"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", default="", help="tools to leave out, separated by semicolons")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    tools = {name: command for name, command in TOOLS.items() if name not in options.without.split(";")}
    rows, lines, runs = [], [], {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        warm_up()
        run(f"{quote(program_of_bellapy())} overlap {EXAMPLE} --cs -o {folder}/warm.sam", folder)
        for name in options.sets:
            reads = find_reads(options.data, name)
            runs[name] = run_set(reads, tools, options.rounds, folder)
            rows += rows_of(name, runs[name])
            lines += [f"{name}: {line}" for line in check(folder, reads)]
        pair = long_pair(folder)
    runs["long pair"] = asdict(pair)
    lines.append(f"pair of a million bases: {pair.wall:.1f} s, {pair.peak_mb:.0f} MB")
    results = {"benchmark": "paths", "machine": describe_machine(["minimap2", "samtools"]), "runs": runs}
    header = ["set", "tool", "wall s", "CPU s", "peak MB", "its CPU / bellapy's without paths"]
    finish([table(header, rows), "\n".join(f"- {line}" for line in lines)], results, options.output)


if __name__ == "__main__":
    main()
