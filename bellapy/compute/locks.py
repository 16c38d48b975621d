"""Locks of files: the system frees them when the process that holds them ends, however it ends."""

from __future__ import annotations

import fcntl
import time

TURN = 0.05  # seconds between two tries


def lock_file(file: int) -> bool | None:
    """Lock an open file; False: another process has.  None: no locks here."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def wait_for_lock(file: int, patience: float) -> None:
    """Lock an open file when no other process has any more; go on without after so many seconds, or where locks are not."""
    until = time.monotonic() + patience
    while lock_file(file) is False and time.monotonic() < until:
        time.sleep(TURN)
