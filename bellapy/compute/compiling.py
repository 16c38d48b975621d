"""What tells that something is compiled, and how long that takes: for CPUs Numba says so, for GPUs the caller."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

from bellapy.compute import own_process
from bellapy.report.log import FOR_ALL, logger

LONG = 2.0  # seconds of compiling that a user notices


def is_on(setting: str) -> bool:
    """Whether a setting of Numba is on, without loading Numba."""
    return os.environ.get(setting, "0") not in ("", "0")


class Compiling(Protocol):
    """What adds up the seconds of compilation."""

    compile_s: float


_watchers: list[Callable[[], AbstractContextManager]] = []


@contextmanager
def compiling() -> Iterator[None]:
    """Something is compiled in this block."""
    own_process.collect_cycles()
    with ExitStack() as stack:
        for watcher in _watchers:
            stack.enter_context(watcher())
        yield


@contextmanager
def watch_compilation(report: Compiling) -> Iterator[None]:
    """Add up the time of all compilation, and tell once it is LONG; loading from the cache does not count."""
    from numba.core import event

    if is_on("NUMBA_DISABLE_JIT"):
        logger.warning("NUMBA_DISABLE_JIT is set: nothing is compiled, and the work takes hundreds of times as long")
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)  # numbers wrap around, as compiled ones do

    told = threading.Event()

    def tell() -> None:
        if not told.is_set():
            told.set()
            logger.info("compiling what this command needs; later runs load it", extra=FOR_ALL)

    @contextmanager
    def watch() -> Iterator[None]:
        started = time.perf_counter()
        timer = threading.Timer(max(0, LONG - report.compile_s), tell)
        timer.daemon = True
        if not told.is_set():
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            report.compile_s += time.perf_counter() - started

    class Listener(event.Listener):
        """Enters `compiling` when Numba begins to compile a function for Python, and leaves it at the end."""

        def __init__(self) -> None:
            self._depth, self._stack = 0, ExitStack()

        def on_start(self, event: Any) -> None:
            self._depth += 1
            if self._depth == 1:
                self._stack.enter_context(compiling())

        def on_end(self, event: Any) -> None:
            self._depth -= 1
            if not self._depth:
                self._stack.close()

    _watchers.append(watch)
    try:
        with event.install_listener("numba:compile", Listener()):
            yield
    finally:
        _watchers.remove(watch)
