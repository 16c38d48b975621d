#!/usr/bin/env python3
"""X-drop extension alone: `bellapy extend` beside SeqAn on simulated pairs, in turn, several rounds: medians and ratios.

    python benchmarks/extension.py [--pairs 4000] [--rounds 5] [--x 7,15,25,50,100] [--spurious 0,0.3] [-o RESULT.json]

The pairs have LOGAN's shape: 2,500 to 7,500 bases, 15 % errors between the two, one exact 17-mer as seed; of spurious pairs
the seed is all that is shared.  Times are CPU milliseconds per 1,000 pairs, without start-up, reading and packing.  SeqAn's
side is the program `seqan_xdrop` (seqan_xdrop.cpp beside this script), looked for on PATH.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
from common import describe_machine, finish, table
from pairs import K, make_pairs, write_pairs
from peers import program_of_bellapy
from speed import spread


def run_bellapy(pairs: Path, x: int, threads: int, end: str = "best") -> tuple[float, int]:
    """CPU seconds of the extension and the length of all alignments."""
    report, result = pairs.with_suffix(".json"), pairs.with_suffix(".out")
    options = f"-k {K} --xdrop {x} --threads {threads} --extension {end}"
    command = [program_of_bellapy(), "extend", pairs, *options.split(), "-o", result, "--report", report, "-q"]
    subprocess.run(command, check=True)
    stage = json.loads(report.read_text())["stages"][-1]
    ends = np.loadtxt(result, np.int64, usecols=(2, 3, 4, 5))
    return stage["extending_cpu_s"], int((ends[:, 1] - ends[:, 0] + ends[:, 3] - ends[:, 2]).sum())


def run_seqan(pairs: Path, x: int) -> tuple[float, int]:
    output = subprocess.run(["seqan_xdrop", pairs, str(K), str(x)], check=True, capture_output=True, text=True).stdout
    _, milliseconds, length = output.split()
    return float(milliseconds) / 1e3, int(length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--x", default="7,15,25,50,100")
    parser.add_argument("--spurious", default="0,0.3", help="shares of pairs that have only the seed in common")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    with_seqan = shutil.which("seqan_xdrop") is not None
    print("seqan_xdrop: " + ("found" if with_seqan else "not on PATH, left out"), flush=True)
    results = {"benchmark": "extension", "pairs": options.pairs, "machine": describe_machine([]), "rows": []}
    rows, per_thousand = [], 1e6 / options.pairs
    with tempfile.TemporaryDirectory() as folder:
        for share in map(float, options.spurious.split(",")):
            pairs = Path(folder) / f"pairs_{share}.tsv"
            write_pairs(make_pairs((1, options.pairs, share)), pairs)
            for x in map(int, options.x.split(",")):
                run_bellapy(pairs, x, options.threads)  # compiled code is in the cache from here on
                rounds = []
                for _ in range(options.rounds):
                    ours = run_bellapy(pairs, x, options.threads)[0] * per_thousand
                    rounds.append((ours, run_seqan(pairs, x)[0] * per_thousand if with_seqan else float("nan")))
                same = with_seqan and run_seqan(pairs, x)[1] == run_bellapy(pairs, x, options.threads, "longest")[1]
                ratios = [peer / ours for ours, peer in rounds]
                ours, peers = zip(*rounds, strict=True)
                rows.append([f"{share:.0%}", x, spread(ours, 1), spread(peers, 1), spread(ratios, 1), same])
                results["rows"].append({"spurious": share, "x": x, "rounds": rounds, "same_ends": bool(same)})
                print(f"{share:.0%} spurious, X {x}: {median(ours):.1f} ms, ratio {median(ratios):.1f}", flush=True)
    header = ["spurious", "X", "bellapy ms", "SeqAn ms", "SeqAn / bellapy", "`longest` ends alike"]
    print()
    finish([table(header, rows)], results, options.output)


if __name__ == "__main__":
    main()
