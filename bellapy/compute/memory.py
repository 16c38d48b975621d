"""The bound on memory, `--max-memory`: stages ask it how large a piece of work may be.

The memory of the process is measured, not added up from arrays: interpreter, compiled code and allocator take memory too.
Pieces of any size give the same results, so only time depends on the measurement.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bellapy.errors import BellapyError, MemoryLimitError
from bellapy.report.log import peak_memory

if TYPE_CHECKING:  # for types alone
    import numpy as np

RESERVE = 24 << 20  # kept free for small arrays, thread stacks and code that is not loaded yet
PROGRAM = 280 << 20  # what the interpreter, libraries and compiled code take
SCRATCH = 64 << 20  # of kernels, beside arrays that grow with the input
BASE_BYTES, READ_BYTES = 5, 12_000  # of whole jobs, for each base and read: reads, k-mers; candidates at a depth of 60
TILED_BASE_BYTES, TILED_READ_BYTES = 0.5, 500  # of jobs in tiles: the depth along the reads, numbers of each read
PIECE_BASE_BYTES = 4  # of jobs in one piece, where counting and the product take what is left
SPACE, THREAD_SPACE = 900 << 20, 80 << 20  # addresses that the program needs to load and compile; for each further thread


def resident() -> int:
    """Bytes of memory that this process holds now, without those that were freed but not yet given back."""
    give_back_freed()
    if os.path.exists("/proc/self/statm"):
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    try:
        import psutil
    except ImportError:
        return peak_memory()  # never less than what is held
    return psutil.Process().memory_info().rss


def give_back_freed() -> None:
    """Give freed memory back to the system: the C library would keep it for later; glibc can be told not to."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def mapped_file(array: np.ndarray) -> mmap.mmap | None:
    """The map of a file that an array lies in; None: it lies in memory."""
    base: object = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = getattr(base, "base", None)
    return base


def let_go_of_pages(array: np.ndarray) -> None:
    """Let pages of a mapped file leave memory, where the system can be told; they come back when they are looked at."""
    mapped = mapped_file(array)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


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
            raise MemoryLimitError(self.limit, what, held + size * least)
        return max(0, min(most, (self.limit - held) // size))

    def require(self, what: str, size: int) -> None:
        """Raise MemoryLimitError unless there is room for `size` more bytes."""
        self.items(what, max(1, size), least=1, most=1)


UNLIMITED = Budget()


def expect(held: int, n_reads: int, n_bases: int, *, in_tiles: bool = False) -> None:
    """Remember how much memory a whole job is likely to need, for messages.

    held : by the program, without reads.  n_reads, n_bases : as far as they are known.
    in_tiles : whether it may be cut into tiles.
    """
    base_bytes, read_bytes = (TILED_BASE_BYTES, TILED_READ_BYTES) if in_tiles else (BASE_BYTES, READ_BYTES)
    of_reads = base_bytes * n_bases + read_bytes * n_reads
    MemoryLimitError.likely = int(max(held, PROGRAM) + RESERVE + SCRATCH + of_reads)


def fits_in_one_piece(budget: Budget, n_bases: int) -> bool:
    """Whether a job of so many bases is likely to need no more than the budget, if it is not cut into tiles."""
    return budget.limit is None or PROGRAM + RESERVE + PIECE_BASE_BYTES * n_bases <= budget.limit


def address_limit() -> int | None:
    """Bytes of addresses that this process may have (`ulimit -v`); None: any number."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def address_space(threads: int) -> int | None:
    """Bytes of memory that a limit on addresses (`ulimit -v`) allows; None: there is no such limit.

    Raises
    ------
    BellapyError : so few that libraries would end the program without a message.
    """
    limit = address_limit()
    if limit is None:
        return None
    needed = SPACE + THREAD_SPACE * (threads - 1)
    if limit < needed:
        raise BellapyError(
            f"ulimit -v {limit >> 10}: the program itself needs more. Allow {needed >> 10} for {threads} threads, and the "
            "size of the job on top, or use --max-memory instead."
        )
    return limit - needed + PROGRAM
