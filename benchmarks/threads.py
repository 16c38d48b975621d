#!/usr/bin/env python3
"""Whether the output is the same bytes for every number of threads and from run to run, and what threads save.

python benchmarks/threads.py READS... [--threads 1,2] [--rounds 2] [--options "..."] [-o RESULT.json]
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median

from common import describe_machine, finish, run_tool, table, warm_up
from peers import TOOLS, Job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reads", type=Path, nargs="+")
    parser.add_argument("--threads", default="1,2", help="comma-separated numbers [default: 1,2]")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--options", default="", help="further options of bellapy")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    numbers = [int(number) for number in options.threads.split(",")]
    results = {"benchmark": "threads", "machine": describe_machine([]), "runs": {}}
    rows, identical = [], True
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        for reads in options.reads:
            runs = []
            for _ in range(options.rounds):
                for n in numbers:
                    job = Job(reads.resolve(), Path(folder), threads=n, options=options.options)
                    usage, _ = run_tool(TOOLS["bellapy"], job)
                    if usage.status:
                        raise SystemExit(f"bellapy: exit status {usage.status}\n{(job.folder / 'log').read_text()[-2000:]}")
                    digest = hashlib.sha256(job.paf.read_bytes()).hexdigest()
                    runs.append({"threads": n, "sha256": digest, **asdict(usage)})
            results["runs"][reads.name] = runs
            same = len({run["sha256"] for run in runs}) == 1
            identical &= same
            walls = [median(run["wall"] for run in runs if run["threads"] == n) for n in numbers]
            ratios = " ".join(f"{walls[0] / wall:.2f}" for wall in walls)
            what = f"{len(runs)} runs, same bytes" if same else "DIFFERENT"
            rows.append([reads.name, what, runs[0]["sha256"][:12], " ".join(f"{wall:.2f}" for wall in walls), ratios])
    listed = " ".join(map(str, numbers))
    header = ["reads", "output", "sha256", f"wall s with {listed} threads", f"speed-up with {listed}"]
    finish([table(header, rows)], results, options.output)
    sys.exit(not identical)


if __name__ == "__main__":
    main()
