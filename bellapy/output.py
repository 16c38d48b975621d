"""Files that are either whole or not there: written under a temporary name, renamed when complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bellapy.errors import OutputError

COMPRESSED = (".gz", ".bgz")


def check_writable(path: str) -> None:
    """Raise OutputError now rather than after hours of work if `path` cannot be written."""
    if path == "-":
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; make it first")
    if Path(path).is_dir():
        raise OutputError(f"{path}: is a folder; name a file")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: no permission to write to {folder}")


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """A binary stream to `path` ("-": standard output), compressed by bgzip if it ends in .gz or .bgz.

    The file appears under its name when the block ends without an error, and not at all otherwise.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    check_writable(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with _open_stream(temporary, path.endswith(COMPRESSED)) as stream:
            yield stream
        os.replace(temporary, path)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _open_stream(path: str, compressed: bool):
    if not compressed:
        return open(path, "wb")
    from pysam import BGZFile

    return BGZFile(path, "wb")
