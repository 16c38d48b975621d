"""What `bellapy info` tells: versions, processor, devices, caches."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import bellapy
from bellapy import __version__
from bellapy.errors import DeviceError

PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "pysam", "pyfastx", "typer", "numba-cuda")


def describe_system() -> str:
    """Lines of name and value."""
    import llvmlite.binding as llvm

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
    from bellapy.compute.gpu.devices import find_gpus

    try:
        gpus = find_gpus()
    except DeviceError as error:
        return f"cpu ({error})"
    return ", ".join(["cpu", *(f"{gpu.name} ({gpu.free / 1e9:.1f} of {gpu.total / 1e9:.1f} GB free)" for gpu in gpus)])


def _vector_code() -> str:
    from bellapy.compute.jit import VECTOR_CODE

    return VECTOR_CODE


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _cache_folder() -> str:
    """Where compiled code lies, and how much: in a folder of its own, or beside the modules, where this program's is."""
    from bellapy.engines.linear.rule import extend_each

    if not hasattr(extend_each, "stats"):
        return "none: NUMBA_DISABLE_JIT is set"
    package, folder = Path(bellapy.__file__).parent, Path(extend_each.stats.cache_path)
    folder = package if package in folder.parents else folder.parent
    files = list(folder.rglob("*.nbc"))
    return f"{folder} ({len(files)} functions, {sum(f.stat().st_size for f in files) / 1e6:.1f} MB)"
