#!/usr/bin/env python3
"""Checksums of what five jobs make of the example data, to compare machines: the outputs have to be the same bytes.

python benchmarks/same_output.py -o here.tsv               # on one machine
python benchmarks/same_output.py --against here.tsv        # on another one, such as one with an ARM64 processor

The second one ends with status 1 where an output differs.  Lines of headers that name the command are left out.
`--program` names what runs bellapy: benchmarks/arm64.sh gives an emulator.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
import tempfile
from pathlib import Path
from shlex import quote

from common import EXAMPLE, ROOT
from measure import measure
from peers import program_of_bellapy

GENOME = ROOT / "data" / "lambda_reference.fasta.gz"
JOBS = {
    "overlap": (f"{EXAMPLE}", "paf"),
    "overlap --cigar": (f"{EXAMPLE}", "paf"),
    "map --cs": (f"{GENOME} {EXAMPLE}", "sam"),
    "map --circular all": (f"{GENOME} {EXAMPLE}", "paf"),
    "correct": (f"{EXAMPLE}", "fa"),
    "exact": (f"{GENOME} {GENOME}", "paf"),
    "wga": (f"{GENOME} {GENOME}", "maf"),
}
OWN = b"@PG", b"#"


def checksum(path: Path) -> str:
    """SHA-256 of a file without the lines that name a command."""
    lines = path.read_bytes().splitlines(keepends=True)
    return hashlib.sha256(b"".join(line for line in lines if not line.startswith(OWN))).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="table of another machine")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--program", default=quote(program_of_bellapy()), help="command that runs bellapy")
    parser.add_argument("-o", "--output", type=Path, help="write the table")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for job, (files, ending) in JOBS.items():
            path = Path(folder) / f"out.{ending}"
            usage = measure(f"{options.program} {job} -q -t {options.threads} {files} -o {path}")
            if usage.status:
                sys.exit(f"{job}: ended with status {usage.status}")
            found[job] = checksum(path)
            print(f"{job}\t{found[job]}\t{usage.cpu:.1f} s of CPU time", flush=True)
    if options.output:
        options.output.write_text("".join(f"{job}\t{sums}\n" for job, sums in found.items()))
    if options.against:
        known = dict(line.split("\t") for line in options.against.read_text().splitlines())
        other = [job for job in JOBS if known.get(job) != found[job]]
        if other:
            sys.exit(f"not the same on {platform.machine()}: {', '.join(other)}")
        print(f"all the same on {platform.machine()}")


if __name__ == "__main__":
    main()
