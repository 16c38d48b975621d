"""The bound on memory, `--max-memory`: stages ask it how large a piece of work may be.

What the process holds is measured, not added up: interpreter, compiled code and allocator take a share that no sum of
arrays shows.  Pieces of any size give the same results, so nothing but time depends on what is measured.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from bellapy.errors import MemoryLimitError

RESERVE = 24 << 20  # kept free for small arrays, thread stacks and code that is not loaded yet
SHOWN = 10**6  # messages tell whole megabytes


def resident() -> int:
    """Bytes of memory that this process holds now, without those that were freed but not yet given back."""
    _give_back_freed()
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
    return int(told.stdout) * 1024


def _give_back_freed() -> None:
    """The C library keeps freed memory for later; where it is glibc, it can be told not to."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@dataclass(frozen=True)
class Budget:
    """How much the process may hold.

    limit : bytes; None: any number.
    measure : gives the bytes held now.
    """

    limit: int | None = None
    measure: Callable[[], int] = resident

    def items(self, what: str, size: int, *, least: int, most: int, reused: int = 0) -> int:
        """How many items may be held at a time: at least `least`, at most `most`.

        Parameters
        ----------
        what : the work that needs them, for the message.
        size : bytes that each will take.
        reused : bytes held already that will be overwritten by them.

        Raises
        ------
        MemoryLimitError : there is no room for `least` items.  Where that is 0, none is raised.
        """
        if self.limit is None:
            return most
        held = self.measure() - reused + RESERVE
        if least and held + size * least > self.limit:
            megabytes = math.ceil((held + size * least) / SHOWN)
            raise MemoryLimitError(
                f"--max-memory {self.limit / SHOWN:g}M: {what} needs at least {megabytes}M. Allow more, give fewer reads, "
                "or keep a share of the k-mers (--sampling fraction)."
            )
        return max(0, min(most, (self.limit - held) // size))

    def require(self, what: str, size: int) -> None:
        """Raise MemoryLimitError unless there is room for `size` more bytes."""
        self.items(what, max(1, size), least=1, most=1)


UNLIMITED = Budget()
