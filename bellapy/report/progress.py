"""How far the work is: a bar where standard error is a terminal, a line a minute where nobody sees a bar."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bellapy.report.log import logger

INTERVAL = 60.0  # seconds between two lines
SURE = 0.01  # share of the work after which the rest can be foretold


@dataclass
class Doing:
    """Something that takes time.  total : items in all, None if that is not known.  done : items so far."""

    label: str
    total: int | None = None
    has_bar: bool = False
    done: int = 0
    begun: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        """What to tell of it now."""
        seconds = time.monotonic() - self.begun
        so_far = f"{self.label}: at work for {_span(seconds)}"
        if self.total and self.done >= SURE * self.total:
            share = min(1.0, self.done / self.total)
            return f"{so_far}, {100 * share:.0f} % done, about {_span(seconds * (1 / share - 1))} left"
        return f"{so_far}, {self.done:,} done" if self.done else so_far


_doing: list[Doing] = []  # the outermost first


def _span(seconds: float) -> str:
    """A time in words."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


@contextmanager
def doing(label: str, total: int | None = None, has_bar: bool = False) -> Iterator[Doing]:
    """Note what is done inside the block, for `tell_every_minute`."""
    now = Doing(label, total, has_bar)
    _doing.append(now)
    try:
        yield now
    finally:
        _doing.remove(now)


def tell_every_minute() -> None:
    """Start the thread that tells once a minute what is done just then, unless nobody would read it."""
    if logger.isEnabledFor(logging.INFO):
        threading.Thread(target=_tell, name="progress", daemon=True).start()


def _tell() -> None:
    told: Doing | None = None
    while True:
        time.sleep(INTERVAL)
        now = _doing[-1] if _doing else None
        # What has just begun is told of the next time.
        if now is not None and not now.has_bar and (now is told or time.monotonic() - now.begun >= INTERVAL / 2):
            logger.info("%s", now.line())
        told = now


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how far something is; call the function with the number of items that are done.

    A `total` of None: it is not known.
    """
    on_terminal = sys.stderr.isatty() and logger.isEnabledFor(logging.INFO)
    with doing(label, total, on_terminal) as now:
        if not on_terminal:
            yield lambda done: setattr(now, "done", done)
            return
        from rich import console, progress

        with progress.Progress(console=console.Console(stderr=True), transient=True) as bar:
            task = bar.add_task(label, total=total)
            yield lambda done: bar.update(task, completed=done)
