#!/usr/bin/env python3
"""Whole runs of `overlap` with GPUs, beside the CPU alone and minimap2 with as many threads: seconds, and the same bytes.

    python benchmarks/gpu_overlap.py READS... [--threads 16] [--rounds 3] [--options "--preset hifi"]
                                     [--peer "minimap2 ava-pb"] [--first] [-o RESULT.json]

Runs with GPUs and of minimap2 take turns, and a ratio is taken within a round.  The CPU alone is measured once.  "Count to
seeds" is the time of the stages `count` and `candidates`.  With --first compiled code goes to a new folder, which the first
run fills.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from common import describe_machine, finish, programs_of, run_tool, table
from measure import Usage
from peers import Job, Tool, choose_tools
from speed import spread

SEEDING = "count", "candidates"
HEADER = [
    "set", "first", "with GPUs", "minimap2", "minimap2 / with GPUs", "CPU alone", "count to seeds: GPUs", "CPU", "ratio",
    "same bytes",
]  # fmt: skip


def run(tool: Tool, job: Job, *, compiled: bool = True) -> tuple[Usage, dict]:
    """As `run_tool`; it has to succeed."""
    usage, report = run_tool(tool, job, compiled=compiled)
    if usage.status:
        raise SystemExit(f"{job.reads}: exit status {usage.status}\n{(job.folder / 'log').read_text()[-2000:]}")
    print(f"{job.folder.name}: {usage.wall:.2f} s, CPU {usage.cpu:.1f} s", flush=True)
    return usage, report


def seeding_of(report: dict) -> float:
    """Seconds from the counting of k-mers to seeds."""
    return sum(stage["wall_s"] for stage in report["stages"] if stage["stage"] in SEEDING)


def run_set(reads: Path, tools: dict[str, Tool], options: argparse.Namespace, folder: Path) -> dict:
    """All runs of a set: usage of each, seconds of seeding, and whether both devices write the same bytes."""

    def job(name: str, extra: str = "") -> Job:
        return Job(reads.resolve(), folder / f"{reads.stem}, {name}", reads.stem, options.threads, extra)

    on_gpus, on_cpu = (job(device, f"{options.options} --device {device}") for device in ("cuda", "cpu"))
    found = {"first": asdict(run(tools["bellapy"], on_gpus, compiled=False)[0]), "rounds": []}
    for _ in range(options.rounds):
        usage, report = run(tools["bellapy"], on_gpus)
        used = {"bellapy": asdict(usage), "seeding": seeding_of(report)}
        if options.peer in tools:
            used["peer"] = asdict(run(tools[options.peer], job(options.peer))[0])
        found["rounds"].append(used)
    usage, report = run(tools["bellapy"], on_cpu)
    same = filecmp.cmp(on_gpus.paf, on_cpu.paf, shallow=False)
    return {**found, "cpu": asdict(usage), "seeding of the CPU": seeding_of(report), "same": same}


def row_of(name: str, found: dict, first: bool) -> list:
    rounds = found["rounds"]
    walls, peers = ([used[key]["wall"] for used in rounds if key in used] for key in ("bellapy", "peer"))
    seeding, of_cpu = [used["seeding"] for used in rounds], found["seeding of the CPU"]
    return [
        name, f"{found['first']['wall']:.1f}" if first else None, spread(walls), spread(peers) if peers else None,
        spread([peer / wall for peer, wall in zip(peers, walls, strict=True)]) if peers else None,
        f"{found['cpu']['wall']:.2f}", spread(seeding), f"{of_cpu:.2f}", spread([of_cpu / wall for wall in seeding], 1),
        "yes" if found["same"] else "NO",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reads", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--options", default="", help="of bellapy, for all its runs")
    parser.add_argument("--peer", default="minimap2 ava-pb", help="of those in peers.py [default: minimap2 ava-pb]")
    parser.add_argument("--first", action="store_true", help="with an empty cache of compiled code")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    tools = choose_tools(options.peer)
    results = {"benchmark": "gpu_overlap", "machine": describe_machine(programs_of(tools)), "sets": {}}
    with tempfile.TemporaryDirectory() as folder:
        if options.first:
            os.environ["NUMBA_CACHE_DIR"] = f"{folder}/compiled"
        for reads in options.reads:
            results["sets"][reads.stem] = run_set(reads, tools, options, Path(folder))
    print()
    rows = [row_of(name, found, options.first) for name, found in results["sets"].items()]
    finish([table(HEADER, rows)], results, options.output)
    if not all(found["same"] for found in results["sets"].values()):
        raise SystemExit("the devices do not write the same bytes")


if __name__ == "__main__":
    main()
