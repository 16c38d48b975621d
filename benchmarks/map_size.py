#!/usr/bin/env python3
"""Mapping to a large genome beside minimap2: wall and CPU time and memory of whole programs in turn, and wrong places.

    python benchmarks/map_size.py REFERENCE READS -t 16 --minimap2 PATH/minimap2 --peers lr:hq,map-ont [-o RESULT.json]

Reads are named by their true places, as r7_chr2_1000_21000_+: number, sequence, start, end, strand.  The best line of a read
is wrong if it is on another sequence or strand, or shares a tenth of the union with that place at most.  Without --minimap2
only bellapy runs.  The last columns are medians, over rounds, of the ratios of bellapy to the peer.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from statistics import median

from common import describe_machine, finish, table
from map_quality import LEAST_SHARED
from measure import measure
from peers import program_of_bellapy


def is_right(fields: list[str]) -> bool:
    """Whether a PAF line is where its read comes from."""
    _, sequence, start, end, strand = fields[0].rsplit("_", 4)
    if fields[5] != sequence or fields[4] != strand:
        return False
    shared = min(int(fields[8]), int(end)) - max(int(fields[7]), int(start))
    return shared > LEAST_SHARED * (max(int(fields[8]), int(end)) - min(int(fields[7]), int(start)))


def judge(path: Path) -> dict[str, int]:
    """Mapped reads, and wrong ones, of all, of quality 11 and more, and of quality 60, by the first primary line of each."""
    found = dict.fromkeys(["mapped", "wrong", "above 10", "wrong above 10", "at 60", "wrong at 60"], 0)
    seen = set()
    with open(path) as lines:
        for line in lines:
            fields = line.split("\t")
            if "tp:A:S" in line or fields[0] in seen:
                continue
            seen.add(fields[0])
            wrong, quality = not is_right(fields), int(fields[11])
            for name, least in (("mapped", 0), ("above 10", 11), ("at 60", 60)):
                found[name] += quality >= least
                found["wrong" if least == 0 else f"wrong {name}"] += quality >= least and wrong
    return found


def commands_of(options: argparse.Namespace, folder: Path) -> dict[str, str]:
    """The command of each program; each writes NAME.paf to the folder."""
    files = f"{quote(str(options.reference))} {quote(str(options.reads))}"
    ours = f"{quote(program_of_bellapy())} map -q -t {options.threads} {options.options} {files}"
    commands = {"bellapy": f"{ours} -o {quote(str(folder))}/bellapy.paf --report {quote(str(folder))}/report.json"}
    for preset in options.peers.split(",") if options.minimap2 else ():
        out = f"{quote(str(folder))}/{preset.replace(':', '_')}.paf"
        commands[preset] = f"{quote(options.minimap2)} -t {options.threads} -c -x {preset} {files} -o {out}"
    return commands


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    parser.add_argument("reads", type=Path)
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--minimap2", help="the program")
    parser.add_argument("--peers", default="lr:hq", help="minimap2's presets, with commas [default: lr:hq]")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--options", default="", help="further options of bellapy")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    results = {"benchmark": "map size", "machine": describe_machine([]), "threads": options.threads, "runs": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = commands_of(options, folder)
        small = folder / "small.fa"
        with open(options.reads, "rb") as reads:
            small.write_bytes(b"".join(reads.readline() for _ in range(2)))
        measure(f"{quote(program_of_bellapy())} map -q {quote(str(small))} {quote(str(small))} -o {small}.paf")  # compiles
        for _ in range(options.rounds):
            for tool, command in commands.items():
                usage = measure(command)
                if usage.status:
                    raise SystemExit(f"{tool} failed with status {usage.status}")
                results["runs"].setdefault(tool, []).append(asdict(usage))
        results["places"] = {tool: judge(folder / f"{tool.replace(':', '_')}.paf") for tool in commands}
        results["report"] = json.loads((folder / "report.json").read_text())
    rows = []
    for tool, runs in results["runs"].items():
        ratios = [
            round(median(ours[what] / its[what] for ours, its in zip(results["runs"]["bellapy"], runs, strict=True)), 2)
            for what in ("cpu", "wall")
        ]
        figures = [round(median(run[what] for run in runs), 1) for what in ("wall", "cpu", "peak_mb")]
        rows.append([tool, *figures, *results["places"][tool].values(), *ratios])
    header = [
        "tool",
        "wall s",
        "CPU s",
        "peak MB",
        *results["places"]["bellapy"],
        "bellapy's CPU of it",
        "bellapy's wall of it",
    ]
    finish([table(header, rows)], results, options.output)


if __name__ == "__main__":
    main()
