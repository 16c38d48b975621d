#!/usr/bin/env python3
"""Time and memory of bellapy and its peers on sets of reads, in turn, several rounds: medians, ratios, stages.

    python benchmarks/speed.py DATA [SET...] [--rounds 3] [--without PEERS] [--memory 600M] [-o RESULT.json]

DATA holds SET.fastq or SET.fa (benchmarks/simulate.py makes them); without SET, all that PEERS names.  Besides bellapy with
one thread, the runs are the peers of the set, bellapy with two threads and bellapy with little memory.  Times of one machine
drift: a ratio is taken within a round, and its median and range over the rounds are given.  Compiled code is in the cache
before the first round.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median

from common import describe_machine, find_reads, finish, programs_of, run_tool, table, warm_up
from peers import Job, choose_tools

PEERS = {
    "ec5": "minimap2 ava-pb,minimap2 ava-pb -c,daligner,bella",
    "ec30": "minimap2 ava-pb,daligner,bella",
    "ecq20": "minimap2 ava-ont",
    "hifi20": "minimap2 ava-pb",
    "yeast10": "minimap2 ava-pb",
}
HEADER = ["set", "tool", "wall s", "CPU s", "peak MB", "bellapy's CPU / its CPU", "its wall / bellapy's wall"]


def spread(values: list[float], digits: int = 2) -> str:
    """Median, and the range in brackets."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def peers_of(name: str, without: str) -> str:
    return ",".join(peer for peer in PEERS[name].split(",") if peer not in without.split(","))


def run_set(data: Path, name: str, peers: str, rounds: int, memory: str, folder: Path) -> dict:
    """All tools in turn, forwards and backwards; {"rounds": usage by tool, "reports": of bellapy}."""
    tools = choose_tools(peers)
    runs = [(tool_name, tool_name, 1, "") for tool_name in tools]
    runs += [("bellapy, two threads", "bellapy", 2, ""), (f"bellapy, {memory}", "bellapy", 1, f"--max-memory {memory}")]
    found = {"rounds": [], "reports": []}
    for number in range(rounds):
        used = {}
        for label, tool_name, threads, options in runs[:: 1 if number % 2 == 0 else -1]:
            place = folder / f"{name}_{label}".replace(" ", "_")
            usage, report = run_tool(tools[tool_name], Job(find_reads(data, name), place, name, threads, options))
            if usage.status:
                raise SystemExit(f"{label}: exit status {usage.status}\n{(place / 'log').read_text()[-2000:]}")
            used[label] = asdict(usage)
            if label == "bellapy":
                found["reports"].append(report)
            print(f"{name}, round {number + 1}: {label}: {usage.wall:.2f} s, CPU {usage.cpu:.2f} s", flush=True)
        found["rounds"].append({label: used[label] for label, *_ in runs})
    return found


def rows_of(name: str, rounds: list[dict]) -> list[list]:
    rows = []
    for label in rounds[0]:
        walls, cpus, peaks = ([used[label][key] for used in rounds] for key in ("wall", "cpu", "peak_mb"))
        ratios = [used["bellapy"]["cpu"] / used[label]["cpu"] for used in rounds]
        wall_ratios = [used[label]["wall"] / used["bellapy"]["wall"] for used in rounds]
        rows.append([name, label, spread(walls), spread(cpus), f"{max(peaks):.0f}", spread(ratios, 3), spread(wall_ratios)])
    return rows


def stage_rows(name: str, reports: list[dict]) -> list[list]:
    """Wall and CPU seconds of each stage, and of what lies before, between and after them."""
    rows = []
    for i, stage in enumerate(reports[0]["stages"]):
        walls, cpus = ([report["stages"][i][key] for report in reports] for key in ("wall_s", "cpu_s"))
        rows.append([name, stage["stage"], spread(walls), spread(cpus), f"{stage['peak_memory_bytes'] / 1e6:.0f}"])
    outside = [[report[key] - sum(s[key] for s in report["stages"]) for report in reports] for key in ("wall_s", "cpu_s")]
    return [*rows, [name, "start and end", *map(spread, outside), None]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", default=[], help=f"of {', '.join(PEERS)} [default: all]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", default="", help="peers to leave out, comma-separated; some take long")
    parser.add_argument("--memory", default="600M", help="of the run with little memory [default: 600M]")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    names = options.sets or list(PEERS)
    if unknown := set(names) - PEERS.keys():
        raise SystemExit(f"unknown sets: {', '.join(sorted(unknown))}; choose from {', '.join(PEERS)}")
    programs = {program for name in names for program in programs_of(choose_tools(peers_of(name, options.without)))}
    results = {"benchmark": "speed", "machine": describe_machine(sorted(programs)), "sets": {}}
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            peers = peers_of(name, options.without)
            results["sets"][name] = run_set(options.data, name, peers, options.rounds, options.memory, Path(folder))
    rows = [row for name, found in results["sets"].items() for row in rows_of(name, found["rounds"])]
    stages = [row for name, found in results["sets"].items() for row in stage_rows(name, found["reports"])]
    print()
    finish(
        [table(HEADER, rows), table(["set", "stage", "wall s", "CPU s", "peak MB so far"], stages)], results, options.output
    )


if __name__ == "__main__":
    main()
