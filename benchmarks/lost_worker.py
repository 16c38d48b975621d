#!/usr/bin/env python3
"""Tiles on two of Dask's workers, one of which is killed: is the output the same, and what does the cluster cost?

    python benchmarks/lost_worker.py READS [--options "--blocks 4"] [--signal KILL] [--after first]

CPU time of all processes is compared with that of one process that does the same tiles.  What does not grow with the job is
told apart: start of scheduler and workers, loading and compiling until the first task.  After a TERM it says how long the
worker lived on.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from peers import program_of_bellapy

TICK = os.sysconf("SC_CLK_TCK")


def start(*words) -> subprocess.Popen:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([sys.executable, "-m", *map(str, words)], **quiet)


def spent(*processes: subprocess.Popen) -> float:
    """CPU seconds of processes that were not waited for."""
    fields = [Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split() for process in processes]
    return sum(int(row[11]) + int(row[12]) for row in fields) / TICK


def finished(process: subprocess.Popen) -> float:
    """Wait for the end of a process; its CPU seconds."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


def wait_until(condition: Callable[[], object], job: subprocess.Popen) -> None:
    while not condition():
        assert not os.waitid(os.P_PID, job.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT), "the job has ended already"
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reads", type=Path)
    parser.add_argument("--options", default="--blocks 4", help="further options of bellapy")
    parser.add_argument("--signal", default="KILL", choices=["KILL", "TERM"])
    parser.add_argument("--after", default="first", help="the round in which a worker is killed, behind its second task")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [program_of_bellapy(), "overlap", str(options.reads.resolve()), "-t1", "-q", *shlex.split(options.options)]
        told, work = folder / "scheduler.json", folder / "work"
        scheduler = start("distributed.cli.dask_scheduler", "--port", 0, "--scheduler-file", told, "--no-dashboard")
        limits = "--nthreads", 1, "--no-nanny", "--local-directory", folder / "dask"
        workers = [start("distributed.cli.dask_worker", "--scheduler-file", told, *limits) for _ in range(2)]
        while not told.exists():
            time.sleep(0.1)
        address = json.loads(told.read_text())["address"]
        time.sleep(5)
        cpu = {"start of the scheduler": spent(scheduler), "start of the workers": spent(*workers)}
        job = subprocess.Popen([*command, "--workdir", work, "--scheduler", address, "-o", folder / "tiles.paf"])
        wait_until(lambda: list(work.glob("count.*")), job)
        cpu["workers until the first task is done, loading and compiling"] = spent(*workers) - cpu["start of the workers"]
        wait_until(lambda: len(list(work.glob(f"{options.after}.*.arrays"))) >= 2, job)
        cpu["lost worker"] = spent(workers[0])
        workers[0].send_signal(getattr(signal, f"SIG{options.signal}"))
        at = time.monotonic()
        finished(workers[0])
        print(
            f"{options.signal} in the round {options.after}: the worker lived on for {time.monotonic() - at:.1f} s",
            flush=True,
        )
        cpu["main process"] = finished(job)
        cpu["scheduler"] = spent(scheduler)
        cpu["other worker"] = spent(workers[1])
        for process in (workers[1], scheduler):
            process.kill()
            process.wait()
        assert job.returncode == 0, job.returncode
        one = finished(subprocess.Popen([*command, "--workdir", work, "-o", folder / "one.paf"]))
        same = (folder / "tiles.paf").read_bytes() == (folder / "one.paf").read_bytes()
    total = sum(cpu[name] for name in ("main process", "scheduler", "lost worker", "other worker"))
    for name, seconds in cpu.items():
        print(f"{name}: {seconds:.1f} CPU s")
    print(f"all: {total:.1f} CPU s; one process in tiles: {one:.1f}; ratio {total / one:.3f}; same bytes: {same}")


if __name__ == "__main__":
    main()
