"""What the user sees while the program works: one line a stage, progress on a terminal, a summary, a JSON report."""

from __future__ import annotations

import json
import logging
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

logger = logging.getLogger("bellapy")

REPORT_SCHEMA = 1
MANY_LETTERS, SHOWN_LETTERS = 0.01, 5  # share of the bases; kinds


def set_up_logging(quiet: bool = False, debug: bool = False) -> None:
    """Messages to standard error: results may go to standard output."""
    logger.handlers[:] = [logging.StreamHandler(sys.stderr)]
    logger.handlers[0].setFormatter(logging.Formatter("[bellapy] %(message)s"))
    logger.setLevel(logging.DEBUG if debug else logging.WARNING if quiet else logging.INFO)
    logger.propagate = False


def peak_memory() -> int:
    """Largest resident size so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cpu_time() -> float:
    """User and system seconds of this process, and of the one that read."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Report:
    """Collects what a run did: for the log as it happens, for `--report` at the end."""

    def __init__(self, command: str, version: str):
        self.data: dict[str, Any] = {
            "schema": REPORT_SCHEMA,
            "program": "bellapy",
            "version": version,
            "command": command,
            "parameters": {},
            "estimates": {},
            "stages": [],
            "dropped": {},
        }
        self.started = time.perf_counter()
        self.compile_seconds = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        """Time a stage; the numbers put into the dictionary go into its line and into the report."""
        numbers: dict[str, Any] = {}
        start, cpu, compiled = time.perf_counter(), cpu_time(), self.compile_seconds
        yield numbers
        wall = time.perf_counter() - start
        entry = {"stage": name, "wall_s": round(wall, 3), "cpu_s": round(cpu_time() - cpu, 3)}
        entry["compile_s"] = round(self.compile_seconds - compiled, 3)
        self.data["stages"].append({**entry, **numbers, "peak_memory_bytes": peak_memory()})
        what = ", ".join(f"{_show(value)} {key}" for key, value in numbers.items())
        logger.info("%s: %s(%.2f s, peak %.0f MB)", name, what + " " if what else "", wall, peak_memory() / 1e6)

    def letters(self, others: dict[str, int], n_bases: int) -> None:
        """Note how often letters other than A, C, G, T, U and N occur in the reads; tell it where that is often."""
        self.data["letters"] = others
        if (n := sum(others.values())) > MANY_LETTERS * n_bases:
            most = sorted(others, key=others.get, reverse=True)[:SHOWN_LETTERS]
            logger.warning(
                "%.1f %% of the letters are not A, C, G, T, U or N, and match nothing (mostly %s). Is this the right input?",
                100 * n / n_bases, ", ".join(f"{letter}: {others[letter]:,}" for letter in most),
            )  # fmt: skip

    def finish(self) -> None:
        """The last line: version, command, wall and CPU time, peak memory."""
        wall, cpu = time.perf_counter() - self.started, cpu_time()
        self.data.update(
            wall_s=round(wall, 3),
            cpu_s=round(cpu, 3),
            compile_s=round(self.compile_seconds, 3),
            peak_memory_bytes=peak_memory(),
        )
        logger.info(
            "bellapy %s: %s; wall %.2f s, CPU %.2f s, peak %.0f MB",
            self.data["version"], self.data["command"], wall, cpu, peak_memory() / 1e6,
        )  # fmt: skip

    def to_json(self) -> bytes:
        return (json.dumps(self.data, indent=1) + "\n").encode()


def _show(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def watch_compilation(report: Report) -> None:
    """Announce the first compilation of a run and add up the time all of them take; loading from the cache is none."""
    from numba.core import event

    class Watcher(event.Listener):
        depth = 0
        started = 0.0

        def on_start(self, event):
            if not self.depth and not report.compile_seconds:
                logger.info("compiling for this processor; this happens once")
            if not self.depth:
                self.started = time.perf_counter()
            self.depth += 1

        def on_end(self, event):
            self.depth -= 1
            if not self.depth:
                report.compile_seconds += time.perf_counter() - self.started

    event.register("numba:compile", Watcher())


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar where standard error is a terminal, nothing elsewhere; call the function with what is done.

    A `total` of None: it is not known.
    """
    if not sys.stderr.isatty() or not logger.isEnabledFor(logging.INFO):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)
