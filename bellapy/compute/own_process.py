"""What only a process of our own may do: the command line claims it, a caller of the package keeps its process as it is."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import NoReturn

TURN = 5e-4  # seconds until a thread asks another one for the GIL
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of mallopt
LARGE = 32 << 20  # bytes: larger arrays go back to the system at once; the most that glibc takes
KEPT = 1 << 30  # bytes of smaller ones
SETTINGS = ".numba_config.yaml"  # of Numba, in the working folder
STARTS = "BELLAPY_STARTS"  # in the environment: how often the program began anew
MOST_STARTS = 5
PROCESSOR = "/proc/cpuinfo"
ZEN_4 = r"AuthenticAMD\ncpu family\t: 25\n"  # Zen 3, too, which has no AVX-512
AVX_512 = "AVX512F X86_V4"  # as NumPy names it before 2.4, and since
_claimed = False


def claim() -> None:
    """Say that the process is ours, before NumPy and Numba are loaded."""
    global _claimed
    _claimed = True
    gc.disable()  # arrays are freed by their reference counts; looking for cycles only costs time, where nothing compiles
    sys.setswitchinterval(TURN)  # a thread that loads code must not hold up those that need the GIL for a moment
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no linear algebra here: its idle threads cost time
    _let_numpy_sort_fast()


def _let_numpy_sort_fast() -> None:
    """Keep NumPy from AVX-512 on Zen 4, where its sorts take four times as long with it as with AVX2.

    They write chosen lanes to memory, which is one slow instruction there (benchmarks/RESULTS.md).
    """
    with suppress(OSError), open(PROCESSOR) as stream:
        if re.search(ZEN_4, stream.read(200)):
            os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", AVX_512)
            warnings.filterwarnings("ignore", "During parsing environment variable", ImportWarning)  # of the other name


def collect_cycles() -> None:
    """Look for cycles from now on: a compiler leaves hundreds of megabytes of them."""
    if _claimed:
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

    Where memory has a bound this is not for: there it goes back.  Only glibc can be told; others do as they like.
    """
    tell = getattr(ctypes.CDLL(None), "mallopt", None) if _claimed else None
    if tell is not None:
        tell(M_MMAP_THRESHOLD, LARGE)
        tell(M_TRIM_THRESHOLD, KEPT)


@contextmanager
def without(module: str) -> Iterator[None]:
    """Let imports of a module fail inside the block, in a process of ours, unless it is loaded already.

    Numba imports scipy.linalg if it is there, and does without if it is not: that saves a tenth of a second.
    """
    if not _claimed or module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


def postponed(name: str) -> ModuleType:
    """A module of a package, which is loaded when something of it is first used."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"No module named {name!r}", name=name)
    spec.loader = LazyLoader(spec.loader)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    package, _, own_name = name.rpartition(".")
    setattr(sys.modules[package], own_name, module)
    return module


def load_numba() -> None:
    """Import Numba without packages that it imports only to look at them: a tenth of the start.

    They are what measures coverage, SciPy (its version), what reads a file of settings if there is none, and masked arrays.
    What knows of installed packages is loaded when a compiler starts.
    """
    if not _claimed:
        return
    postponed("importlib.metadata")
    with ExitStack() as stack:
        for module in ("coverage", "scipy", *(() if os.path.exists(SETTINGS) else ("yaml",))):
            stack.enter_context(without(module))
        from numba.core import types
        from numba.core.typing.typeof import typeof_impl
        from numba.np.numpy_support import from_dtype, map_layout
    import numpy as np

    @typeof_impl.register(np.ndarray)
    def type_of_array(array: np.ndarray, context: object) -> types.Array:
        """As Numba does, but without a look at masked arrays, for which it loads numpy.ma: nobody gives it any here."""
        return types.Array(from_dtype(array.dtype), array.ndim, map_layout(array), readonly=not array.flags.writeable)
