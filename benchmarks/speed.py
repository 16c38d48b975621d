#!/usr/bin/env python3
"""CPU time of bellapy and its peers on one set of reads, in turn, several rounds: medians, ratios, stages.

    python benchmarks/speed.py READS [--rounds 5] [--tools NAMES] [--threads 1] [--options "..."] [-o RESULT.json]

Times of one machine drift; a ratio is taken within a round, and its median and range over the rounds are given.
Compiled code is in the cache before the first round.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median

from common import describe_machine, finish, programs_of, run_tool, table, warm_up
from peers import Job, choose_tools

DEFAULT_TOOLS = "minimap2 ava-pb,daligner,bella"


def spread(values: list[float], digits: int = 2) -> str:
    """Median, and the range in brackets."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def stage_rows(reports: list[dict]) -> list[list]:
    rows = []
    for i, stage in enumerate(reports[0]["stages"]):
        walls, cpus = ([report["stages"][i][key] for report in reports] for key in ("wall_s", "cpu_s"))
        rows.append([stage["stage"], spread(walls), spread(cpus), f"{stage['peak_memory_bytes'] / 1e6:.0f}"])
    inside = [[sum(stage[key] for stage in report["stages"]) for report in reports] for key in ("wall_s", "cpu_s")]
    return [*rows, ["all stages", *map(spread, inside), None]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reads", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tools", default=DEFAULT_TOOLS, help=f"comma-separated [default: {DEFAULT_TOOLS}]")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--options", default="", help="further options of bellapy")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    tools = choose_tools(options.tools)
    name = options.reads.name.split(".")[0]
    results = {"benchmark": "speed", "reads": options.reads.name, "threads": options.threads, "rounds": [], "reports": []}
    results["machine"] = describe_machine(programs_of(tools))
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(options.rounds):
            used = {}
            for tool_name, tool in list(tools.items())[:: 1 if round_number % 2 == 0 else -1]:
                extra = options.options if tool_name == "bellapy" else ""
                place = Path(folder) / tool_name.replace(" ", "_")
                usage, report = run_tool(tool, Job(options.reads.resolve(), place, name, options.threads, extra))
                if usage.status:
                    raise SystemExit(f"{tool_name}: exit status {usage.status}\n{(place / 'log').read_text()[-2000:]}")
                used[tool_name] = asdict(usage)
                if tool_name == "bellapy":
                    results["reports"].append(report)
                print(f"round {round_number + 1}: {tool_name}: {usage.wall:.2f} s, CPU {usage.cpu:.2f} s", flush=True)
            results["rounds"].append(used)
    rounds = results["rounds"]
    rows = []
    for tool_name in tools:
        walls, cpus, peaks = ([used[tool_name][key] for used in rounds] for key in ("wall", "cpu", "peak_mb"))
        ratios = [used[tool_name]["cpu"] / used["bellapy"]["cpu"] for used in rounds]
        rows.append([tool_name, spread(walls), spread(cpus), f"{median(peaks):.0f}", spread(ratios)])
    print()
    header = ["tool", "wall s", "CPU s", "peak MB", "CPU / bellapy's CPU"]
    stages = table(["stage", "wall s", "CPU s", "peak MB so far"], stage_rows(results["reports"]))
    finish([table(header, rows), stages], results, options.output)


if __name__ == "__main__":
    main()
