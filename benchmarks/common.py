"""What the benchmark scripts share: finding sets, running a tool, describing the machine, writing tables."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from shlex import quote

from measure import Usage, measure
from peers import Job, Tool, program_of_bellapy, version_of

import bellapy

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "data" / "lambda_reads.fastq.gz"
TIMEOUT = 3 * 3600


def find_reads(data: Path, name: str) -> Path:
    """The reads of a set: NAME.fastq, NAME.fq, NAME.fasta or NAME.fa in the folder."""
    for suffix in (".fastq", ".fq", ".fasta", ".fa"):
        if (path := data / f"{name}{suffix}").is_file():
            return path.resolve()
    raise SystemExit(f"{data}: no reads of the set {name}; benchmarks/simulate.py makes them")


def warm_up() -> None:
    """Run the example once, so that compiled code is in the cache."""
    with tempfile.TemporaryDirectory() as folder:
        measure(f"{quote(program_of_bellapy())} overlap {quote(str(EXAMPLE))} -o {folder}/x.paf")


def run_tool(tool: Tool, job: Job, *, compiled: bool = True) -> tuple[Usage, dict]:
    """Prepare, run and convert; bellapy's report.  compiled : repeat a run of bellapy that had to compile something."""
    job.folder.mkdir(parents=True, exist_ok=True)
    job = replace(job, folder=job.folder.resolve())
    tool.prepare(job)
    for _ in range(2):
        usage = measure(tool.command(job), job.folder / "log", TIMEOUT)
        report = read_report(job)
        if not compiled or not report.get("compile_s"):
            break
    if usage.status == 0:
        tool.convert(job)
    return usage, report


def read_report(job: Job) -> dict:
    path = job.folder / "report.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def describe_machine(programs: list[str]) -> dict:
    """Hardware, versions, commit and date, for the result file."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown"
    packages = {"bellapy": bellapy.__version__} | {
        name: version(name) for name in ("numba", "llvmlite", "numpy", "scipy", "pysam", "pyfastx")
    }
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": commit,
        "packages": packages,
        "programs": {program: version_of(program) for program in programs},
    }


def processor() -> str:
    """The processor's model name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def programs_of(tools: dict[str, Tool]) -> list[str]:
    return sorted({program for name, tool in tools.items() if name != "bellapy" for program in tool.programs})


def table(header: list[str], rows: list[list]) -> str:
    """A markdown table; None becomes a dash."""
    lines = [header, ["---"] * len(header), *[["—" if cell is None else str(cell) for cell in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def finish(tables: list[str], results: dict, output: str | None) -> None:
    """Print the tables and what they were measured on; write everything as JSON if asked."""
    machine = results["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    programs = ", ".join(f"{name} {number}" for name, number in machine["programs"].items())
    where = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; Python {machine['python']}"
    print("\n\n".join(tables))
    print(f"\n{machine['date']}, commit {machine['commit']}; {where}; {packages}" + (f"; {programs}" if programs else ""))
    if output:
        Path(output).write_text(json.dumps(results, indent=1) + "\n")
        print(f"written: {output}", file=sys.stderr)
