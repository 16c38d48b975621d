"""Files of reads as streams of plain bytes: gzip and bgzip are inflated, and damage is told."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

from bellapy.errors import InputError

READ_SIZE = 1 << 18
_DRAIN_SIZE, _DRAIN_STEP = 1 << 30, 1 << 19
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
FETCH_AGAIN = "The file may be cut short or damaged: check where it comes from and fetch it again."


@contextmanager
def told_damage(path: str) -> Iterator[None]:
    """Errors of reading as errors about the input."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path, f"the compressed data are damaged ({error}). {FETCH_AGAIN}") from None
    except OSError as error:
        raise InputError(path, f"{error.strerror or error}. Check name, folder and permissions.") from error


@contextmanager
def open_stream(path: str) -> Iterator[io.BufferedReader]:
    """The decompressed bytes of a file, or of standard input, which is left open."""
    with ExitStack() as stack:
        if path == "-":
            if sys.stdin is None:
                raise InputError(path, "is closed; name a file of reads.")
            source: Any = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer), READ_SIZE)
            stack.callback(source.detach)
        else:
            source = stack.enter_context(open(path, "rb", buffering=READ_SIZE))
        if source.peek(1)[:1] != b"\x1f":
            yield source
            return
        watched = _Watched(source)
        stream: Any = io.BufferedReader(gzip.GzipFile(fileobj=cast(BinaryIO, watched), mode="rb"), READ_SIZE)
        try:
            yield stream
        except InputError:
            # Read on, up to a limit: zlib notices damaged data only at their end.
            any(not stream.read(_DRAIN_STEP) for _ in range(_DRAIN_SIZE // _DRAIN_STEP))
            raise
        if watched.is_cut_bgzip():
            raise InputError(path, f"the end-of-file block of bgzip is missing. {FETCH_AGAIN}")


class _Watched:
    """Passes on a gzip file's bytes and looks out for bgzip's last block: nothing else tells a cut between blocks."""

    def __init__(self, source: io.BufferedReader):
        self._source, self._head, self._tail = source, b"", b""

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._head += data[: 16 - len(self._head)]
        self._tail = (self._tail + data)[-len(_BGZF_END) :]
        return data

    def is_cut_bgzip(self) -> bool:
        return self._head[12:] == b"BC\2\0" and self._tail != _BGZF_END
