#!/usr/bin/env python3
"""Recall, precision, end errors, time and memory of bellapy and its peers on sets of reads whose origin is known.

    python benchmarks/accuracy.py DATA SET... [--tools NAMES] [--threads 1,2] [--options "..."] [-o RESULT.json]

DATA holds SET.fastq or SET.fa and SET.truth.tsv (benchmarks/simulate.py makes them).
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path

from common import describe_machine, find_reads, finish, programs_of, run_tool, table, warm_up
from peers import Job, choose_tools

from bellapy.jobs.evaluate.pipeline import evaluate_overlaps
from bellapy.jobs.evaluate.truth import read_truth

DEFAULT_TOOLS = "minimap2 ava-pb,minimap2 ava-ont,daligner,bella"
FOUND = ["pairs", "recall", "precision", "F1", "F1@1k", "false, disjoint", "end error"]
HEADER = ["set", "tool", *FOUND, "wall s", "CPU s", "peak MB"]


def judge(data: Path, name: str, paf: Path) -> dict:
    """Figures with every line, and with lines of 1,000 bases and more."""
    truth = read_truth(data / f"{name}.truth.tsv")
    return {f"min_span_{span}": evaluate_overlaps(truth, str(paf), min_span=span) for span in (0, 1000)}


def row(name: str, tool: str, run: dict) -> list:
    usage, judged = run["usage"], run.get("judged")
    cost = [f"{usage['wall']:.1f}", f"{usage['cpu']:.1f}", f"{usage['peak_mb']:.0f}"]
    if not judged:
        return [name, f"{tool}: exit status {usage['status']}", *[None] * len(FOUND), *cost]
    every, long = judged["min_span_0"], judged["min_span_1000"]
    rates = [f"{every[key]:.4f}" for key in ("recall", "precision", "f1")]
    ends = every["inner_end_err_median"], every["inner_end_err_p95"]
    shown = None if None in ends else "{:.0f} / {:.0f}".format(*ends)
    return [name, tool, f"{every['pairs']:,}", *rates, f"{long['f1']:.4f}", f"{every['fp_disjoint']:,}", shown, *cost]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--tools", default=DEFAULT_TOOLS, help=f"besides bellapy [default: {DEFAULT_TOOLS}]")
    parser.add_argument("--threads", default="1", help="comma-separated numbers; peers run with the first [default: 1]")
    parser.add_argument("--options", default="", help="further options of bellapy")
    parser.add_argument("--keep", type=Path, help="folder for the overlap files [default: a temporary one]")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    tools = choose_tools(options.tools)
    results = {"benchmark": "accuracy", "machine": describe_machine(programs_of(tools)), "runs": {}}
    threads = [int(number) for number in options.threads.split(",")]
    rows = []
    warm_up()
    with tempfile.TemporaryDirectory() as temporary:
        base = options.keep or Path(temporary)
        for name in options.sets:
            reads = find_reads(options.data, name)
            for tool_name, tool in tools.items():
                for n in threads if tool_name == "bellapy" else threads[:1]:
                    label = tool_name if n == 1 else f"{tool_name}, {n} threads"
                    extra = options.options if tool_name == "bellapy" else ""
                    job = Job(reads, base / name / label.replace(" ", "_").replace(",", ""), name, n, extra)
                    usage, report = run_tool(tool, job)
                    run = {"usage": asdict(usage), "command": tool.command(job), "report": report}
                    if usage.status == 0:
                        run["judged"] = judge(options.data, name, job.paf)
                    results["runs"].setdefault(name, {})[label] = run
                    rows.append(row(name, label, run))
                    print("\t".join("—" if cell is None else str(cell) for cell in rows[-1]), flush=True)
    print()
    finish([table(HEADER, rows)], results, options.output)


if __name__ == "__main__":
    main()
