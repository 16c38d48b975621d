"""What the program does when it is told to stop (Ctrl-C, SIGTERM, SIGHUP): remove what it has begun, and end at once.

Python runs a signal's handler in the main thread, and only after compiled code there has returned.  That may take minutes.
An exception may also get lost where imports and LLVM call Python back.  So a thread waits for signals and ends the program.
A process that forks must not have threads.  So the handler ends the program until `watch` starts the thread.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import threading
from contextlib import suppress

from bellapy.errors import INTERRUPTED

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
PR_SET_PDEATHSIG = 1  # of prctl: the signal to get when the parent ends
TRIES = 100  # to remove a folder into which others may still write

begun: set[str] = set()
"""Folders to remove before the end."""

_heeded: list[int] = []


def heed() -> None:
    """From now on, end the program by the signals that it does not ignore already (as under nohup)."""
    _heeded[:] = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    for number in _heeded:
        signal.signal(number, end_now)


def watch() -> None:
    """Start the thread that waits for signals, if `heed` was called; nothing happens the second time."""
    numbers, _heeded[:] = list(_heeded), []
    if not numbers:
        return
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    threading.Thread(target=lambda: end_now(os.read(receiver, 1)[0]), name="stopping", daemon=True).start()
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _leave_it_to_the_thread)


def end_now(number: int, frame: object = None) -> None:
    """End the program with the exit status that shells give to a signal: 128 plus its number."""
    for folder in list(begun):
        remove(folder)
    told = INTERRUPTED if number == signal.SIGINT else f"bellapy: stopped by {signal.Signals(number).name}"
    with suppress(OSError):
        os.write(2, f"{told}\n".encode())
    os._exit(128 + number)


def end_with_parent() -> None:
    """Let the system end this process with its parent, however that ends; where the system can: on Linux."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def remove(folder: str) -> None:
    """Remove a folder and what is in it, even while others write there."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return


def _leave_it_to_the_thread(number: int, frame: object) -> None:
    while True:  # the program has been told to stop, so this thread must not go on
        signal.pause()
