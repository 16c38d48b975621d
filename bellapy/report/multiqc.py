"""The report as a section of MultiQC: its custom content, a table with a row for each run.

Files of several runs have the same `id`, so that MultiQC puts their rows into one table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bellapy.report.run_report import RunReport

ENDING = "_mqc.json"  # by which MultiQC knows such files


def make_multiqc(report: RunReport, path: str) -> bytes:
    """The file; the run is named by it: `sample7_mqc.json` is sample7."""
    job = report.job
    told = {
        "id": f"bellapy_{job}",
        "section_name": f"bellapy {job}",
        "description": "What bellapy read, estimated and found.",
        "plot_type": "table",
        "pconfig": {"id": f"bellapy_{job}_table", "title": f"bellapy {job}"},
        "data": {Path(path).name.removesuffix(ENDING): _row(report.to_dict())},
    }
    return (json.dumps(told, indent=1) + "\n").encode()


def _row(told: dict[str, Any]) -> dict[str, float | str]:
    """Numbers of all stages, the last of equal names, then estimates, time and memory."""
    row: dict[str, float | str] = {}
    common = {"stage", "wall_s", "cpu_s", "compile_s", "peak_memory_bytes"}
    for stage in told["stages"]:
        row |= {_title(name): value for name, value in stage.items() if name not in common}
    row |= {_title(name): value for name, value in told["estimates"].items() if isinstance(value, (int, float, str))}
    row |= {"Wall time (s)": told["wall_s"], "CPU time (s)": told["cpu_s"]}
    return {**row, "Peak memory (MB)": round(told["peak_memory_bytes"] / 1e6)}


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
