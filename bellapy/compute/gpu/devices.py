"""Which GPUs can be used, and why the others cannot.  Nothing here needs a GPU, or numba-cuda, to be there."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from contextlib import suppress
from ctypes import CDLL
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple

from bellapy.compute.compiling import is_on
from bellapy.compute.gpu.errors import DriverError
from bellapy.compute.memory import address_limit
from bellapy.errors import DeviceError
from bellapy.report.log import logger

LEAST_FREE = 512 << 20  # bytes of device memory: a context, the compiled kernels, some reads
ADDRESSES = 14 << 30  # bytes of addresses that the driver takes with one GPU, whatever is used of them
DRIVER_FILE = Path("/proc/driver/nvidia/version")
"""Exists where an NVIDIA driver is loaded (Linux)."""
DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
SIMULATED = is_on("NUMBA_ENABLE_CUDASIM")
"""Whether Numba's simulator stands in for GPUs."""
_found: list[Gpu] = []
_finding = Lock()


class Gpu(NamedTuple):
    """A usable GPU; memory in bytes."""

    index: int  # type: ignore[assignment]  # not the method of tuples
    name: str
    free: int
    total: int


def find_gpus() -> list[Gpu]:
    """All GPUs that can be used; DeviceError, with the reason, if there is none."""
    if not _installed():
        raise DeviceError("numba-cuda is not installed; pip install 'numba-cuda[cu13]' installs it")
    if problem := _driver_problem():
        raise DeviceError(f"no NVIDIA GPU can be used: {problem}")
    supported, needed = _cuda_versions()
    if supported[0] < needed[0]:
        raise DeviceError(
            f"the NVIDIA driver supports CUDA {supported[0]}.{supported[1]}, the installed CUDA libraries need {needed[0]}: "
            f"update the driver, or pip install 'numba-cuda[cu{supported[0]}]'"
        )
    gpus = _list_gpus()
    usable = [gpu for gpu in gpus if gpu.free >= LEAST_FREE]
    if not usable:
        what = "; ".join(f"{gpu.name}: {gpu.free / 1e6:.0f} of {gpu.total / 1e6:.0f} MB" for gpu in gpus)
        raise DeviceError(f"too little GPU memory is free ({what}); other programs hold it: wait for them or use the CPU")
    return usable


def known_gpus() -> list[Gpu]:
    """What `find_gpus` found first: later, memory that this process holds itself would seem taken by others."""
    with _finding:
        if not _found:
            _found.extend(find_gpus())
        return list(_found)


def wake() -> None:
    """Begin to load what GPUs need and to start a context on each, in a thread: that takes a second.

    What goes wrong here goes wrong again where GPUs are looked for, and is told there.
    """
    if DRIVER_FILE.exists() and _installed() and not _lack_of_addresses():
        Thread(target=_start_contexts, name="waking", daemon=True).start()


def _start_contexts() -> None:
    with suppress(Exception):
        cards = _cards()
        for index in range(len(cards)):
            cards[index]


def choose_beside(wanted: str) -> Future[str]:
    """Begin to choose the device, as `choose_device` does, in a thread: reads can be read meanwhile.

    wanted : of `--device`.
    """
    choice: Future[str] = Future()

    def choose() -> None:
        try:
            choice.set_result(choose_device(wanted))
        except BaseException as error:
            choice.set_exception(error)

    if wanted == "cpu":
        choice.set_result("cpu")
    else:
        Thread(target=choose, name="choosing", daemon=True).start()
    return choice


def _cards() -> Any:
    """All cards that the driver lists, by number.

    Who loads `kernels` waits for another thread that does; two threads that load cuda.core at the same time fail.
    """
    from bellapy.compute.gpu import kernels  # noqa: F401  # all that GPUs need, numba-cuda too
    from bellapy.compute.gpu.arrays import gpus

    return gpus


def _installed() -> bool:
    return find_spec("numba_cuda") is not None


def _driver_problem() -> str:
    if SIMULATED:
        return ""
    if lack := _lack_of_addresses():
        return lack
    try:
        CDLL(DRIVER_LIBRARY)  # else a fifth of a second goes by until cuda.core finds that there is none
        return "" if len(_cards()) else "the driver lists none"
    except DriverError as error:
        return error.problem
    except (ImportError, OSError, RuntimeError) as error:  # no such library, or an old one
        return f"the driver cannot be loaded: {error}"


def _lack_of_addresses() -> str:
    """What keeps the driver from being started: it would fail, and keep many of the few addresses."""
    limit = address_limit()
    if limit is None or limit >= ADDRESSES:
        return ""
    return f"ulimit -v {limit >> 10}: the NVIDIA driver takes {ADDRESSES >> 10} of addresses"


def _cuda_versions() -> tuple[tuple[int, int], tuple[int, int]]:
    """What the driver supports, what the installed libraries were made for."""
    if SIMULATED:
        return (0, 0), (0, 0)
    from cuda.bindings.driver import cuDriverGetVersion

    major, minor = version("cuda-bindings").split(".")[:2]
    supported = int(cuDriverGetVersion()[1])
    return (supported // 1000, supported % 1000 // 10), (int(major), int(minor))


def _list_gpus() -> list[Gpu]:
    """All GPUs that let this process in: one may be full of others, or be for one process at a time."""
    if SIMULATED:
        return [Gpu(0, "Numba's simulator", 1 << 34, 1 << 34)]
    cards = _cards()
    gpus, problems = [], []
    for index in range(len(cards)):
        try:
            card = cards[index]
            gpus.append(Gpu(card.id, card.name, *card.free_and_total()))
        except DriverError as error:
            problems.append(f"GPU {index}: {error.problem}")
    if not gpus:
        raise DeviceError(f"no NVIDIA GPU can be used: {'; '.join(problems)}")
    for problem in problems:
        logger.warning("%s: it is left out", problem)
    return gpus


def choose_device(wanted: str) -> str:
    """The backend for `--device`: "cpu" or "cuda".

    auto takes the GPUs if any can be used, and says so; where a driver is loaded and none can be used, it says why.
    """
    if wanted == "cpu":
        return "cpu"
    try:
        gpus = known_gpus()
    except DeviceError as error:
        if wanted == "cuda":
            raise DeviceError(f"--device cuda: {error}") from None
        if DRIVER_FILE.exists():
            logger.info("aligning on the CPU: %s", error)
        return "cpu"
    if wanted == "auto":
        logger.info("aligning on %s", ", ".join(f"{gpu.name} ({gpu.free / 1e9:.0f} GB free)" for gpu in gpus))
    return "cuda"
