#!/usr/bin/env python3
"""Kill a job in a folder at random moments and let it go on: is the output the same bytes, and does anything stay behind?

    python benchmarks/restart.py READS [--kills 20] [--options "--blocks 4"] [--seed 1]

The moments are spread evenly over the time that a run takes.  After every kill the job is begun again by the same command.
"""

from __future__ import annotations

import argparse
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peers import program_of_bellapy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reads", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--options", default="--blocks 4", help="further options of bellapy")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [program_of_bellapy(), "overlap", str(options.reads.resolve()), "-t1", "-q", "-o"]
        in_folder = [*command, "tiles.paf", "--workdir", "work", *shlex.split(options.options)]
        subprocess.run([*command, "whole.paf"], cwd=folder, check=True)
        start = time.monotonic()
        subprocess.run(in_folder, cwd=folder, check=True)
        usual = time.monotonic() - start
        expected = (folder / "whole.paf").read_bytes()
        assert (folder / "tiles.paf").read_bytes() == expected
        moments, n_runs = [], 0
        while len(moments) < options.kills:
            (folder / "tiles.paf").unlink(missing_ok=True)
            while True:  # one job, which is killed until it gets to its end
                n_runs += 1
                job = subprocess.Popen(in_folder, cwd=folder)
                try:
                    job.wait(usual * rng.random() if len(moments) < options.kills else None)
                    break
                except subprocess.TimeoutExpired:
                    job.kill()
                    job.wait()
                    moments.append(len(list((folder / "work").glob("*"))) if (folder / "work").exists() else 0)
            assert job.returncode == 0, "the job failed"
            assert (folder / "tiles.paf").read_bytes() == expected, "other bytes"
            time.sleep(1)
            left = subprocess.run(["pgrep", "-f", "run-tile work"], capture_output=True, text=True).stdout.split()
            assert not left, f"processes are left: {left}"
            assert sorted(path.name for path in folder.iterdir()) == ["tiles.paf", "whole.paf"], "files are left"
        print(f"{len(moments)} kills in {n_runs} runs; files in the folder at each: {moments}; same bytes, nothing left")


if __name__ == "__main__":
    sys.exit(main())
