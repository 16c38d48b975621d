"""Where machine code is kept: a folder for each state of the sources, so that code of other sources is never taken.

Numba goes by the time stamp of the file that a function is in.  But machine code takes in functions and constants of other
modules, and time stamps may stay when a file changes.  So a digest of all sources is part of the folder's name.  The
versions of what compiles are another: Numba would overwrite the code of another version each time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from bellapy.report.log import FOR_ALL, logger

PACKAGE = Path(__file__).resolve().parents[1]
COMPILERS = "numba", "llvmlite", "numpy"
PREFIX = "bellapy-"
LOADER = "numba", "core", "caching.py"
UNUSED_DAYS = 30
"""Code that no run has used for so long is removed when other code is kept."""


def base() -> Path:
    """Where the folders of all states are: where the user says, in the package, or, if it is not writable, at home."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given)
    inside = PACKAGE / "__pycache__"
    if os.access(inside if inside.exists() else PACKAGE, os.W_OK):
        return inside
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bellapy"


def folder() -> Path:
    """The folder for the sources as they are, by the compilers that are installed."""
    return base() / f"{PREFIX}{digest()}"


@cache
def digest() -> str:
    """What is in all modules of the package, and the versions of what compiles them, in short."""
    state = hashlib.sha1(repr([version(name) for name in COMPILERS]).encode())
    for path in sorted(_sources(str(PACKAGE))):
        with open(path, "rb") as stream:
            state.update(hashlib.sha1(stream.read()).digest())
    return state.hexdigest()[:16]


def _sources(folder: str) -> Iterator[str]:
    """Modules in a folder and in those below; pathlib takes three times as long."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _sources(entry.path)


@contextmanager
def in_use() -> Iterator[None]:
    """Let Numba keep the code of functions that are decorated in this block in our folder; others keep their own."""
    from numba import config

    usual, config.CACHE_DIR = config.CACHE_DIR, str(folder())
    try:
        yield
    finally:
        config.CACHE_DIR = usual


@cache
def can_keep() -> bool:
    """Whether code can be kept in the folder, which is made; if not, a warning tells it, once."""
    try:
        is_new = not folder().exists()
        folder().mkdir(parents=True, exist_ok=True)
        os.utime(folder())  # it is used now
        tempfile.TemporaryFile(dir=folder()).close()
    except OSError as error:
        text = "%s: %s; so the next run compiles again. NUMBA_CACHE_DIR names another folder"
        logger.warning(text, folder(), error.strerror, extra=FOR_ALL)
        return False
    if is_new:
        _remove_unused()
    return True


def _remove_unused() -> None:
    """Remove the folders that no run has used for UNUSED_DAYS."""
    limit = time.time() - UNUSED_DAYS * 86_400
    with suppress(OSError):
        for other in base().glob(f"{PREFIX}*"):
            if other.stat().st_mtime < limit:
                shutil.rmtree(other, ignore_errors=True)


def remove_damaged(error: BaseException) -> bool:
    """Whether an error came up where Numba loads code that was kept; if so, the folder is removed."""
    frames = traceback.extract_tb(error.__traceback__)
    damaged = any(Path(frame.filename).parts[-3:] == LOADER for frame in frames)
    if damaged:
        shutil.rmtree(folder(), ignore_errors=True)
    return damaged
