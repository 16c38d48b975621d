"""What `bellapy info` tells: versions, processor, devices, caches."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import llvmlite.binding as llvm

from bellapy.compute.code_cache import folder
from bellapy.compute.compiling import is_on
from bellapy.compute.gpu.devices import find_gpus
from bellapy.compute.processor import vector_code
from bellapy.errors import DeviceError
from bellapy.version import __version__

CPU_CODE, KERNEL = ".nbc", "kernel-"  # how files of compiled code end, and begin
PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "pysam", "pyfastx", "typer", "zstandard", "numba-cuda")


def describe_system() -> str:
    """Lines of name and value."""
    rows = {
        "bellapy": __version__,
        "python": f"{platform.python_version()} ({sys.executable})",
        **{name: _version_of(name) for name in PACKAGES},
        "processor": f"{os.environ.get('NUMBA_CPU_NAME') or llvm.get_host_cpu_name()}, {os.cpu_count()} cores",
        "vector code": _vector_code(),
        "devices": _devices(),
        "compiled code": _cache_folder(),
    }
    return "\n".join(f"{name:14} {value}" for name, value in rows.items())


def _devices() -> str:
    try:
        gpus = find_gpus()
    except DeviceError as error:
        return f"cpu ({error})"
    return ", ".join(["cpu", *(f"{gpu.name} ({gpu.free / 1e9:.1f} of {gpu.total / 1e9:.1f} GB free)" for gpu in gpus)])


def _vector_code() -> str:
    return vector_code()[1]


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cache_folder() -> str:
    """Where compiled code lies, and how much."""
    if is_on("NUMBA_DISABLE_JIT"):
        return "none: NUMBA_DISABLE_JIT is set"
    sizes: list[int] = []
    try:
        for here, _, names in os.walk(folder(), onerror=_raise):
            kept = [name for name in names if name.endswith(CPU_CODE) or name.startswith(KERNEL)]
            sizes += [os.stat(os.path.join(here, name)).st_size for name in kept]
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"{folder()} ({error.strerror}; NUMBA_CACHE_DIR names another folder)"
    return f"{folder()} ({len(sizes)} functions, {sum(sizes) / 1e6:.1f} MB)"


def _raise(error: OSError) -> None:
    raise error
