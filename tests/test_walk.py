"""A walk through the main job: how often it leaves one file for another, and climbs back into one that waits.

By benchmarks/walk.py, in a process of its own: it watches every call.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_STAYS, MOST_CLIMBS = 60, 0


def test_the_main_job_walks_through_few_files():
    command = [sys.executable, ROOT / "benchmarks" / "walk.py", ROOT / "data" / "lambda_reads.fastq.gz"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    status, _, stays, climbs = map(int, re.findall(r"\d+", told.splitlines()[0]))
    assert status == 0
    assert 0 < stays <= MOST_STAYS, told
    assert climbs <= MOST_CLIMBS, told
