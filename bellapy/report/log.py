"""Messages to the user."""

from __future__ import annotations

import logging
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from bellapy.compute.late import watchers

logger = logging.getLogger("bellapy")


class Compiling(Protocol):
    """What adds up the seconds of compilation."""

    compile_s: float


def set_up_logging(quiet: bool = False, debug: bool = False) -> None:
    """Messages to standard error: results may go to standard output."""
    logger.handlers[:] = [logging.StreamHandler(sys.stderr)]
    logger.handlers[0].setFormatter(logging.Formatter("[bellapy] %(message)s"))
    logger.setLevel(logging.DEBUG if debug else logging.WARNING if quiet else logging.INFO)
    logger.propagate = False


@contextmanager
def collect_warnings(texts: list[str]) -> Iterator[None]:
    """Add every warning of the log to a list, too."""

    class Collector(logging.Handler):
        def emit(self, record):
            texts.append(record.getMessage())

    collector = Collector(logging.WARNING)
    logger.addHandler(collector)
    try:
        yield
    finally:
        logger.removeHandler(collector)


def peak_memory() -> int:
    """Largest resident size so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def cpu_time() -> float:
    """User and system seconds of this process, and of the one that read."""
    both = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


@contextmanager
def watch_compilation(report: Compiling) -> Iterator[None]:
    """Announce the first compilation of a run, and add up the time of all; loading from the cache does not count."""

    @contextmanager
    def watch() -> Iterator[None]:
        if not report.compile_s:
            logger.info("compiling for this processor; this happens once")
        started = time.perf_counter()
        try:
            yield
        finally:
            report.compile_s += time.perf_counter() - started

    watchers.append(watch)
    try:
        yield
    finally:
        watchers.remove(watch)


@contextmanager
def quietly() -> Iterator[None]:
    """Tell nothing but errors inside the block."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
