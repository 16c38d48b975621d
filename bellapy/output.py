"""Files that are either whole or not there: written under a temporary name, renamed when complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from bellapy.errors import OutputError

COMPRESSED = (".gz", ".bgz")


def check_writable(path: str, inputs: Sequence[str] = ()) -> None:
    """Raise OutputError now rather than after hours of work if `path` cannot be written, or is one of `inputs`."""
    if path == "-":
        return
    folder = Path(path).resolve().parent
    if Path(path).is_dir():
        raise OutputError(f"{path or 'an empty name'}: is a folder; name a file")
    if not is_special(path) and not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; make it first")
    if not os.access(path if is_special(path) else folder, os.W_OK):
        raise OutputError(f"{path}: no permission to write to {folder}")
    if os.path.exists(path) and any(os.path.exists(other) and os.path.samefile(path, other) for other in inputs):
        raise OutputError(f"{path}: is read as input; name another file")


@contextmanager
def open_output(path: str, compressible: bool = True) -> Iterator[BinaryIO]:
    """A binary stream to `path` ("-": standard output), compressed by bgzip if it is `compressible` and ends in .gz or .bgz.

    The file appears under its name when the block ends without an error, and not at all otherwise.  What is no ordinary
    file, a pipe or a device, is written to as it stands.
    """
    check_writable(path)
    compressed = compressible and path.endswith(COMPRESSED)
    if path == "-" or is_special(path):
        with _told(path), _open_stream(path, compressed) as stream:
            yield stream
            stream.flush()
        return
    with whole_files(path) as (written,), _open_stream(written, compressed) as stream:
        yield stream
        stream.flush()


@contextmanager
def whole_files(*paths: str) -> Iterator[list[str]]:
    """Names under which to write files; when the block ends without an error they get their own, else they are removed."""
    targets = [os.path.realpath(path) for path in paths]
    written = [f"{target}.{os.getpid()}.tmp" for target in targets]
    try:
        with _told(paths[0]):
            yield written
            for name, target in zip(written, targets, strict=True):
                os.replace(name, target)
    finally:
        for name in written:
            Path(name).unlink(missing_ok=True)


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Errors of the system as errors about the output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if path == "-":  # Python would fail once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"{'standard output' if path == '-' else path}: {error.strerror or error}") from error


def is_special(path: str) -> bool:
    """Whether a path is a pipe, a device or the like."""
    return os.path.exists(path) and not os.path.isfile(path)


def _open_stream(path: str, compressed: bool):
    if path == "-":
        return nullcontext(sys.stdout.buffer)
    if not compressed:
        return open(path, "wb")
    from pysam import BGZFile

    return BGZFile(path, "wb")
