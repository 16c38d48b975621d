#!/usr/bin/env python3
"""Mapping to a reference beside minimap2: CPU time of whole programs in turn, memory, and how many reads each maps.

python benchmarks/mapping.py REFERENCE READS --preset ont --peer map-ont [--rounds 3] [--options "..."] [-o RESULT.json]

Places and base pairs are judged by other programs, such as paftools' mapeval: `--keep FOLDER` keeps the SAM files.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from statistics import median

from common import describe_machine, finish, table
from measure import measure
from peers import program_of_bellapy


def count_reads(path: Path) -> tuple[int, int]:
    """Primary and unmapped lines of a SAM file."""
    primary = unmapped = 0
    with open(path, "rb") as lines:
        for line in lines:
            if line[:1] != b"@":
                flag = int(line.split(b"\t", 2)[1])
                unmapped += flag == 4
                primary += not flag & 0x904
    return primary, unmapped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    parser.add_argument("reads", type=Path)
    parser.add_argument("--preset", help="of bellapy [default: from the reads]")
    parser.add_argument("--peer", default="map-ont", help="minimap2's preset [default: map-ont]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--options", default="", help="further options of bellapy")
    parser.add_argument("--keep", type=Path, help="folder for the SAM files of the last round")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    if not shutil.which("minimap2"):
        raise SystemExit("minimap2 is not on the PATH")
    files = f"{quote(str(options.reference))} {quote(str(options.reads))}"
    preset = f"--preset {options.preset}" if options.preset else ""
    ours = f"{quote(program_of_bellapy())} map -q -t 1 {preset} {options.options} {files} -o"
    commands = {"minimap2": f"minimap2 -t 1 -ax {options.peer} {files} -o", "bellapy": ours}
    results = {"benchmark": "mapping", "machine": describe_machine(["minimap2"]), "runs": {name: [] for name in commands}}
    with tempfile.TemporaryDirectory() as folder:
        folder = options.keep or Path(folder)
        folder.mkdir(exist_ok=True)
        measure(f"{commands['bellapy']} {quote(str(folder))}/bellapy.io.sam")  # compiles
        for _ in range(options.rounds):
            for name, command in commands.items():
                usage = measure(f"{command} {quote(str(folder))}/{name}.sam")
                if usage.status:
                    raise SystemExit(f"{name} failed with status {usage.status}")
                results["runs"][name].append(asdict(usage))
        counts = {name: count_reads(folder / f"{name}.sam") for name in commands}
    cpu = {name: [run["cpu"] for run in runs] for name, runs in results["runs"].items()}
    ratio = median(a / b for a, b in zip(cpu["bellapy"], cpu["minimap2"], strict=True))
    results["ratio"] = round(ratio, 3)
    rows = [
        [name, *counts[name], median(cpu[name]), round(median(run["peak_mb"] for run in results["runs"][name])),
         round(ratio, 2) if name == "bellapy" else 1]
        for name in commands
    ]  # fmt: skip
    finish([table(["tool", "mapped", "unmapped", "CPU s", "peak MB", "of minimap2"], rows)], results, options.output)


if __name__ == "__main__":
    main()
