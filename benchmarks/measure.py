"""Run a shell command and measure it: wall time, CPU time, peak memory, of all processes it starts.

`measure` starts this file as a small program of its own, since a process inherits the peak memory of the one that starts it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SHELL = "/bin/bash"


@dataclass(frozen=True)
class Usage:
    """wall, cpu : seconds; cpu is user and system time of the command and all its descendants.

    peak_mb : largest resident size of any one process, in MB of 10^6 bytes.  status : exit status, negative for a signal.
    """

    status: int
    wall: float
    cpu: float
    peak_mb: float


def measure(command: str, log: Path | None = None, timeout: float | None = None) -> Usage:
    """Run `command` in a shell that stops at the first error; standard error goes to `log`."""
    helper = [sys.executable, "-S", "-E", __file__, command, str(log or os.devnull), str(timeout or 0)]
    done = subprocess.run(helper, stdout=subprocess.PIPE, check=True)
    return Usage(**json.loads(done.stdout))


def _child(command: str, log: str, timeout: float) -> dict:
    to_log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    files = [(os.POSIX_SPAWN_DUP2, to_log, 1), (os.POSIX_SPAWN_DUP2, to_log, 2)]
    start = time.perf_counter()
    limited = ["timeout", str(timeout)] if timeout else []
    arguments = [*limited, SHELL, "-c", "set -euo pipefail\n" + command]
    pid = os.posix_spawnp(arguments[0], arguments, os.environ, file_actions=files)
    _, status, used = os.wait4(pid, 0)
    return {
        "status": os.waitstatus_to_exitcode(status),
        "wall": round(time.perf_counter() - start, 3),
        "cpu": round(used.ru_utime + used.ru_stime, 3),
        "peak_mb": round(used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6, 1),
    }


if __name__ == "__main__":
    print(json.dumps(_child(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
