#!/usr/bin/env python3
"""Recall, precision and F1 of bellapy without options beside minimap2, on every set of a folder: one line for each set.

    python benchmarks/hard_biology.py FOLDER [SET...] [--threads N] [-o RESULT.json]

FOLDER holds SET.fa (or .fastq) and SET.truth.tsv for every set; without SET all are taken.  minimap2 has to be on PATH; of
its presets ava-pb and ava-ont the one with the higher F1 counts.
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

TOOLS = "minimap2 ava-pb,minimap2 ava-ont"
RATES = ("recall", "precision", "f1")
HEADER = ["set", "recall", "precision", "F1", "CPU s", "minimap2", "recall", "precision", "F1", "CPU s"]


def judge(data: Path, name: str, tools: dict, folder: Path, threads: int) -> dict[str, dict]:
    """Figures and CPU time of each tool on a set; a tool that fails has a recall of 0."""
    truth, found = read_truth(data / f"{name}.truth.tsv"), {}
    for tool_name, tool in tools.items():
        job = Job(find_reads(data, name), folder / name / tool_name.replace(" ", "_"), name, threads)
        usage, _ = run_tool(tool, job)
        judged = evaluate_overlaps(truth, str(job.paf)) if usage.status == 0 else {}
        found[tool_name] = {rate: judged.get(rate) or 0.0 for rate in RATES} | {"usage": asdict(usage)}
    return found


def row(name: str, found: dict[str, dict]) -> list:
    peers = {tool: judged for tool, judged in found.items() if tool != "bellapy"}
    best = max(peers, key=lambda tool: peers[tool]["f1"], default=None)
    cells = [name]
    for tool in ("bellapy", best):
        judged = found.get(tool)
        shown = [f"{judged[rate]:.4f}" for rate in RATES] + [f"{judged['usage']['cpu']:.1f}"] if judged else [None] * 4
        cells += shown if tool == "bellapy" else [best and best.removeprefix("minimap2 "), *shown]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    sets = options.sets or sorted(path.name.removesuffix(".truth.tsv") for path in options.data.glob("*.truth.tsv"))
    if not sets:
        raise SystemExit(f"{options.data}: no sets: there is no file named *.truth.tsv")
    tools = choose_tools(TOOLS)
    results, rows = {"benchmark": "hard biology", "machine": describe_machine(programs_of(tools)), "runs": {}}, []
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        for name in sets:
            results["runs"][name] = judge(options.data, name, tools, Path(folder), options.threads)
            rows.append(row(name, results["runs"][name]))
            print("\t".join("—" if cell is None else str(cell) for cell in rows[-1]), flush=True)
    print()
    finish([table(HEADER, rows)], results, options.output)


if __name__ == "__main__":
    main()
