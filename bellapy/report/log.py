"""Messages to the user."""

from __future__ import annotations

import logging
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("bellapy")
FOR_ALL = {"for_all": True}
"""Marks a message that tells of the whole program, not of what a thread does: `extra=FOR_ALL`."""


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
def quietly() -> Iterator[None]:
    """Let this thread tell only errors, and what is FOR_ALL, inside the block; another may be at work for the user."""
    here = threading.get_ident()

    def told(record: logging.LogRecord) -> bool:
        return record.thread != here or record.levelno >= logging.ERROR or hasattr(record, "for_all")

    logger.addFilter(told)
    try:
        yield
    finally:
        logger.removeFilter(told)
