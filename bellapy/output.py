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
    if not _is_special(path) and not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; make it first")
    if not os.access(path if _is_special(path) else folder, os.W_OK):
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
    in_place = path == "-" or _is_special(path)
    target = os.path.realpath(path)
    written = path if in_place else f"{target}.{os.getpid()}.tmp"
    try:
        with _open_stream(written, compressible and path.endswith(COMPRESSED)) as stream:
            yield stream
            stream.flush()
        if not in_place:
            os.replace(written, target)
    except BrokenPipeError:
        raise
    except OSError as error:
        if path == "-":  # Python would fail once more when it ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"{'standard output' if path == '-' else path}: {error.strerror or error}") from error
    finally:
        if not in_place:
            Path(written).unlink(missing_ok=True)


def _is_special(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def _open_stream(path: str, compressed: bool):
    if path == "-":
        return nullcontext(sys.stdout.buffer)
    if not compressed:
        return open(path, "wb")
    from pysam import BGZFile

    return BGZFile(path, "wb")
