"""What only a process of our own may do: the command line claims it, a caller of the package keeps its process as it is."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
import warnings
from contextlib import suppress
from typing import NoReturn

TURN = 1e-4  # seconds until a thread asks another one for the GIL: readers would wait long for those that load modules
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of mallopt
LARGE = 32 << 20  # bytes: larger arrays go back to the system at once; the most that glibc takes
KEPT = 1 << 30  # bytes of smaller ones
LITTLE = 8 << 20  # both, where memory counts more
STARTS = "BELLAPY_STARTS"  # in the environment: how often the program began anew
MOST_STARTS = 5
PROCESSOR = "/proc/cpuinfo"
ZEN_4 = r"AuthenticAMD\ncpu family\t: 25\n"  # Zen 3, too, which has no AVX-512
AVX_512 = "AVX512F X86_V4"  # as NumPy names it before 2.4, and since
NEW_OBJECTS = 20_000  # until the next look for cycles: with Python's 700 it takes a tenth of the time of a first run
_claimed = False


def claim() -> None:
    """Say that the process is ours, before NumPy is loaded."""
    global _claimed
    _claimed = True
    gc.disable()  # arrays are freed by their reference counts; looking for cycles only costs time, where nothing compiles
    sys.setswitchinterval(TURN)  # a thread that loads code must not hold up those that need the GIL for a moment
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no linear algebra here: its idle threads cost time
    _let_numpy_sort_fast()


def _let_numpy_sort_fast() -> None:
    """Keep NumPy from AVX-512 on Zen 4, where its sorts take four times as long with it as with AVX2.

    They write chosen lanes to memory, which is one slow instruction there (benchmarks/NOTEBOOK.md).
    """
    with suppress(OSError), open(PROCESSOR) as stream:
        if re.search(ZEN_4, stream.read(200)):
            os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", AVX_512)
            warnings.filterwarnings("ignore", "During parsing environment variable", ImportWarning)  # of the other name


def collect_cycles() -> None:
    """Look for cycles from now on, though seldom: a compiler leaves hundreds of megabytes of them."""
    if _claimed:
        gc.set_threshold(NEW_OBJECTS)
        gc.enable()


def is_claimed() -> bool:
    """Whether it is."""
    return _claimed


def may_start_again() -> bool:
    """Whether `start_again` can be called: it is bounded, since code that was compiled may not have been stored."""
    return _claimed and int(os.environ.get(STARTS, "0")) < MOST_STARTS


def start_again() -> NoReturn:
    """Begin the program anew in its place, with the same process number: what it holds is given back."""
    os.environ[STARTS] = str(int(os.environ.get(STARTS, "0")) + 1)
    os.execv(sys.executable, sys.orig_argv)


def keep_freed_memory() -> None:
    """Let the C library keep freed arrays for new ones: the first touch of new memory takes longer than much of the work.

    Where memory has a bound this is not for: there it goes back.
    """
    if _claimed:
        _tell_allocator({M_MMAP_THRESHOLD: LARGE, M_TRIM_THRESHOLD: KEPT})


def keep_little_freed() -> None:
    """The same with less memory, for long jobs: their steps need arrays of different sizes, and what is kept between those
    in use would add up."""
    if _claimed:
        _tell_allocator({M_MMAP_THRESHOLD: LITTLE, M_TRIM_THRESHOLD: LITTLE})


def spare_addresses() -> None:
    """Let all threads share one pool of the C library: each would get 64 MB of addresses for its own."""
    if _claimed:
        _tell_allocator({M_ARENA_MAX: 1})


def _tell_allocator(settings: dict[int, int]) -> None:
    """Set parameters of the C library's allocator, where it is glibc's."""
    with suppress(AttributeError):
        for parameter, value in settings.items():
            ctypes.CDLL(None).mallopt(parameter, value)
