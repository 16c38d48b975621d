#!/usr/bin/env python3
"""What --max-memory costs: runs without and with it in turn, several rounds; peak memory, time, ratios, and whether the
output is the same bytes.

    python benchmarks/memory.py READS [--limits 600M] [--threads 1,2] [--rounds 3] [--options "..."] [-o RESULT.json]

A ratio is that of a run to the one without a limit in its round; its median and range over the rounds are given.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from common import describe_machine, finish, run_tool, table, warm_up
from peers import TOOLS, Job
from speed import spread


def run_once(reads: Path, folder: str, threads: int, options: str) -> dict:
    """One run of bellapy: its usage, and the checksum of its output."""
    job = Job(reads.resolve(), Path(folder), threads=threads, options=options)
    usage, _ = run_tool(TOOLS["bellapy"], job)
    if usage.status:
        raise SystemExit(f"bellapy: exit status {usage.status}\n{(job.folder / 'log').read_text()[-2000:]}")
    return {"threads": threads, "sha256": hashlib.sha256(job.paf.read_bytes()).hexdigest(), **asdict(usage)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reads", type=Path)
    parser.add_argument("--limits", default="600M", help="comma-separated sizes for --max-memory [default: 600M]")
    parser.add_argument("--threads", default="1,2", help="comma-separated numbers [default: 1,2]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--options", default="", help="further options of bellapy")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    limits = ["", *options.limits.split(",")]
    results = {"benchmark": "memory", "reads": options.reads.name, "machine": describe_machine([]), "rounds": []}
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for n in map(int, options.threads.split(",")):
                wanted = {limit: f"--max-memory {limit}" if limit else "" for limit in limits}
                used = {limit: run_once(options.reads, folder, n, f"{options.options} {wanted[limit]}") for limit in limits}
                results["rounds"].append(used)
    rows = []
    for n in map(int, options.threads.split(",")):
        rounds = [used for used in results["rounds"] if used[""]["threads"] == n]
        for limit in limits:
            peaks, walls, cpus = ([used[limit][key] for used in rounds] for key in ("peak_mb", "wall", "cpu"))
            ratios = [spread([used[limit][key] / used[""][key] for used in rounds]) for key in ("wall", "cpu")]
            rows.append([n, limit or "none", spread(peaks, 0), spread(walls), spread(cpus), *ratios])
    same = len({run["sha256"] for used in results["rounds"] for run in used.values()}) == 1
    header = ["threads", "limit", "peak MB", "wall s", "CPU s", "wall ratio", "CPU ratio"]
    verdict = f"output: {'same bytes' if same else 'DIFFERENT'} in {len(results['rounds']) * len(limits)} runs"
    finish([table(header, rows), verdict], results, options.output)
    sys.exit(not same)


if __name__ == "__main__":
    main()
