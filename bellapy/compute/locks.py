"""Locks of files: the system frees them when the process that holds them ends, however it ends."""

from __future__ import annotations

import fcntl


def lock_file(file: int) -> bool | None:
    """Lock an open file; False: another process has.  None: no locks here."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
