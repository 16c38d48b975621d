"""Text that comes from a file or standard input, plain or gzip."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, Any, TextIO

from bellapy.errors import InputError


@contextmanager
def open_input(path: str) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    """The bytes of a file ("-": standard input, which is left open), decompressed if they are gzip by content.

    Whatever fails to be read while it is in use becomes InputError.
    """
    if path == "-" and sys.stdin is None:
        raise InputError(path, "is closed; name a file")
    try:
        source: AbstractContextManager[Any] = nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb")
        with source as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"  # peek, not seek: it may be a pipe
            if packed:
                with gzip.GzipFile(fileobj=raw) as stream:
                    yield stream
            else:
                yield raw
    except (EOFError, OSError, zlib.error) as error:
        problem = getattr(error, "strerror", None) or f"{error}; it may be cut short"
        raise InputError(path, f"cannot be read ({problem})") from error


@contextmanager
def as_text(stream: IO[bytes] | gzip.GzipFile) -> Iterator[TextIO]:
    """Read a byte stream as text; surrogates let any byte in a read name through."""
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape")
    try:
        yield text
    finally:
        text.detach()  # the owner of the stream closes it, and standard input stays open
