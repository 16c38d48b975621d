#!/usr/bin/env python3
"""The stage of base-level paths on GPUs beside the CPU, and whether the output is the same.

    python benchmarks/gpu_paths.py DATA [SET...] [--devices cpu,cuda] [--threads 16] [--rounds 3] [--options "--cigar"]
                                   [-o RESULT.json]

Each round runs `bellapy overlap` once for each device; seconds of the stage are those of its report, from the first flank to
the last line written: tracing, joining, text, output.  A run before the first, not counted, compiles what is needed.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import sys
import tempfile
from pathlib import Path
from shlex import quote

from common import describe_machine, find_reads, finish, table
from measure import measure
from peers import program_of_bellapy
from speed import spread


def run(reads: Path, device: str, options, folder: Path) -> dict:
    """Seconds of the stage and of its kernels, peak memory, for one run; its output is left in the folder."""
    report = folder / "report.json"
    command = (
        f"{quote(program_of_bellapy())} overlap {quote(str(reads))} {options.options} -t {options.threads} "
        f"--device {device} -o {folder}/{device}.paf --report {report}"
    )
    usage = measure(command, folder / "log", 3600)
    if usage.status:
        raise SystemExit(f"{command}\nexit status {usage.status}\n{(folder / 'log').read_text()[-2000:]}")
    told = json.loads(report.read_text())
    (stage,) = (stage for stage in told["stages"] if stage["stage"] == "paths")
    kernels = [used["path_s"] for used in told["devices"] if used["path_s"]]
    return {
        "paths": stage["wall_s"], "paths_cpu": stage["cpu_s"], "kernels": max(kernels, default=None), "wall": usage.wall,
        "peak_mb": usage.peak_mb, "devices": told["devices"],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sets", nargs="*", default=["ec30"])
    parser.add_argument("--devices", default="cpu,cuda")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--options", default="--cigar", help="of bellapy")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    options = parser.parse_args()
    devices, rows, runs, all_same = options.devices.split(","), [], {}, True
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in options.sets:
            reads = find_reads(options.data, name)
            rounds = [{device: run(reads, device, options, folder) for device in devices} for _ in range(options.rounds + 1)]
            runs[name] = rounds[1:]
            for device in devices:
                same = filecmp.cmp(folder / f"{devices[0]}.paf", folder / f"{device}.paf", shallow=False)
                all_same &= same
                found = [used[device] for used in rounds[1:]]
                columns = [spread([used[what] for used in found]) for what in ("paths", "paths_cpu", "wall")]
                kernels = spread([used["kernels"] for used in found]) if found[0]["kernels"] else None
                peak = f"{max(used['peak_mb'] for used in found):.0f}"
                rows.append([name, device, columns[0], columns[1], kernels, columns[2], peak, "yes" if same else "NO"])
    machine = describe_machine([])
    gpus = [used["name"] for used in runs[options.sets[-1]][-1][devices[-1]]["devices"]]
    machine["processor"] += f" with {', '.join(gpus)}" if gpus else ""
    results = {"benchmark": "gpu_paths", "threads": options.threads, "machine": machine, "runs": runs}
    header = ["set", "device", "paths s", "its CPU s", "kernels s", "whole run s", "peak MB", "same bytes"]
    finish([table(header, rows)], results, options.output)
    sys.exit(not all_same)


if __name__ == "__main__":
    main()
