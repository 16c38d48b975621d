"""NVIDIA's driver and its devices, without numba-cuda: to load that takes a fifth of a short run.

A call that only hands work over keeps the GIL, since to get it back takes longer.  One that may wait releases it.
Nothing here needs NumPy, so that the driver can be started before all else.
"""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import NamedTuple

from bellapy.errors import DeviceError

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
PROCESSORS, MAJOR, MINOR = 16, 75, 76  # numbers of attributes

Where = ctypes.c_void_p  # an address, on the device or here


class DriverError(DeviceError):
    """What the driver says.

    code : its number of the error.
    problem : its words.
    """

    def __init__(self, code: int, problem: str):
        self.code, self.problem = code, problem
        super().__init__(f"the NVIDIA driver: {problem}; run again, or without a GPU: --device cpu")

    def __reduce__(self):  # an exception is made again of its message alone, unless it says otherwise
        return type(self), (self.code, self.problem)


class Libraries(NamedTuple):
    """The driver's functions.  waiting : release the GIL.  quick : keep it."""

    waiting: ctypes.CDLL
    quick: ctypes.PyDLL


@cache
def libraries() -> Libraries:
    """The driver; OSError where it is not installed."""
    return Libraries(ctypes.CDLL(LIBRARY), ctypes.PyDLL(LIBRARY))


def check(code: int) -> None:
    """Raise what the driver says was wrong."""
    if code:
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        libraries().waiting.cuGetErrorName(code, ctypes.byref(name))
        libraries().waiting.cuGetErrorString(code, ctypes.byref(text))
        parts = [part.decode() for part in (name.value, text.value) if part]
        raise DriverError(code, ": ".join(parts) or f"error {code}")


def start() -> int:
    """Start the driver, and count the devices."""
    number, driver = ctypes.c_int(), libraries().waiting
    check(driver.cuInit(0))
    check(driver.cuDeviceGetCount(ctypes.byref(number)))
    return number.value


def get_version() -> tuple[int, int]:
    """The latest CUDA that the driver supports."""
    version = ctypes.c_int()
    check(libraries().waiting.cuDriverGetVersion(ctypes.byref(version)))
    return version.value // 1000, version.value % 1000 // 10


# ---------------------------------------------------------------- devices


class Card:
    """A device; `with card:` makes it the one in use, for this thread."""

    def __init__(self, index: int):
        self.id, self._number, self._context = index, ctypes.c_int(), Where()
        driver = libraries().waiting
        start()
        check(driver.cuDeviceGet(ctypes.byref(self._number), index))
        check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), self._number))

    @property
    def name(self) -> str:
        """The model."""
        text = ctypes.create_string_buffer(256)
        check(libraries().waiting.cuDeviceGetName(text, len(text), self._number))
        return text.value.decode()

    @property
    def compute_capability(self) -> tuple[int, int]:
        """What it can do, as NVIDIA counts it."""
        return self._attribute(MAJOR), self._attribute(MINOR)

    @property
    def MULTIPROCESSOR_COUNT(self) -> int:
        """Processors."""
        return self._attribute(PROCESSORS)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        check(libraries().waiting.cuDeviceGetAttribute(ctypes.byref(value), number, self._number))
        return value.value

    def free_and_total(self) -> tuple[int, int]:
        """Bytes of its memory."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self:
            check(libraries().waiting.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        return free.value, total.value

    def close(self) -> None:
        """Let go of all that this process has on it."""
        check(libraries().waiting.cuDevicePrimaryCtxReset_v2(self._number))

    def __enter__(self) -> Card:
        check(libraries().quick.cuCtxPushCurrent_v2(self._context))
        _used().append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _used().pop()
        check(libraries().quick.cuCtxPopCurrent_v2(ctypes.byref(Where())))


_own = threading.local()


def _used() -> list[Card]:
    """The devices that this thread has taken in use, the last of which is."""
    if not hasattr(_own, "cards"):
        _own.cards = []
    return _own.cards


class Cards:
    """All devices, by number."""

    def __init__(self) -> None:
        self._cards: dict[int, Card] = {}
        self._lock = threading.Lock()

    def __getitem__(self, index: int) -> Card:
        with self._lock:
            if index not in self._cards:
                self._cards[index] = Card(index)
            return self._cards[index]

    def close(self) -> None:
        """Let go of all that this process has on devices; nothing may use one any more."""
        with self._lock:
            for card in self._cards.values():
                card.close()


gpus = Cards()


def current_card() -> Card:
    """The device in use; the first one if none is."""
    if not _used():
        gpus[0].__enter__()
    return _used()[-1]
