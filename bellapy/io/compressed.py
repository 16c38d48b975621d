"""Files that are read as streams of plain bytes: gzip, bgzip, bzip2, xz and zstd are unpacked, and damage is told."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, BinaryIO, cast

from bellapy.compute.threads import map_in_order
from bellapy.errors import InputError

READ_SIZE = 1 << 18
_DRAIN_SIZE, _DRAIN_STEP = 1 << 30, 1 << 19
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
_BGZF_HEAD = 18  # bytes before the compressed data of a block
_BGZF_TAIL = 8  # behind them: CRC-32 of the text, and its length
_GROUP_SIZE = 1 << 18  # compressed bytes that a thread inflates at a time
_CUT = "Compressed file ended before the end-of-stream marker was reached"  # as Python says it of gzip
FETCH_AGAIN = "The file may be cut short or damaged: check where it comes from and fetch it again."


@cache
def _library() -> tuple[Any, Any]:
    """What inflates, and what reads gzip: ISA-L takes half of the time of zlib, where there is one for this processor."""
    try:
        from isal import igzip, isal_zlib
    except ImportError:
        return zlib, gzip.GzipFile
    return isal_zlib, igzip.IGzipFile


def _unpack_gzip(source: BinaryIO) -> Any:
    return _library()[1](fileobj=source, mode="rb")


def is_read_once(path: str) -> bool:
    """Whether what is read there is gone: standard input, a pipe or the like."""
    return path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


@contextmanager
def told_damage(path: str) -> Iterator[None]:
    """Errors of reading as errors about the input."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # of a library that unpacks
            raise _damaged(path, error) from None
        raise InputError(path, f"{error.strerror or error}. Check name, folder and permissions.") from error
    except (EOFError, zlib.error, _library()[0].error, lzma.LZMAError) as error:
        raise _damaged(path, error) from None


def _damaged(path: str, error: Exception) -> InputError:
    return InputError(path, f"the compressed data are damaged ({error}). {FETCH_AGAIN}")


@contextmanager
def open_stream(path: str, threads: int = 1) -> Iterator[io.BufferedReader]:
    """The decompressed bytes of a file, or of standard input ("-"), which is left open.

    Whatever fails to be read while it is in use becomes InputError.
    """
    with told_damage(path), ExitStack() as stack:
        if path == "-":
            if sys.stdin is None:
                raise InputError(path, "is closed; name a file.")
            source: Any = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer), READ_SIZE)
            stack.callback(source.detach)
        else:
            source = stack.enter_context(open(path, "rb", buffering=READ_SIZE))
        head = source.peek(_LOOKED_AT)[:_LOOKED_AT]
        unpack = next((unpack for begins, unpack in _UNPACKERS.items() if head.startswith(begins)), None)
        watched = _Watched(source)
        if unpack:
            packed = unpack(cast(BinaryIO, watched))
        elif head[:1] != b"\x1f":
            yield source
            return
        elif _is_bgzf(source.peek(_BGZF_HEAD)):
            packed = _Bgzip(watched, threads)
        else:
            packed = _unpack_gzip(cast(BinaryIO, watched))
        stream: Any = io.BufferedReader(packed, READ_SIZE)
        try:
            yield stream
        except InputError:
            # Read on, up to a limit: zlib notices damaged data only at their end.
            any(not stream.read(_DRAIN_STEP) for _ in range(_DRAIN_SIZE // _DRAIN_STEP))
            raise
        if watched.is_cut_bgzip():
            raise InputError(path, f"the end-of-file block of bgzip is missing. {FETCH_AGAIN}")


def _unpack_bzip2(source: BinaryIO) -> Any:
    return bz2.BZ2File(source)


class _Zstd(io.RawIOBase):
    """The text of frames of zstd; the package's own stream does not tell where one is cut short."""

    def __init__(self, source: BinaryIO):
        import zstandard

        self._source, self._made, self._left = source, zstandard.ZstdDecompressor(max_window_size=1 << 31), memoryview(b"")
        self._frame, self._packed, self._error = self._made.decompressobj(), b"", zstandard.ZstdError

    def readable(self) -> bool:
        """As of any stream to read from."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; 0 at the end."""
        while not self._left:
            if not self._packed and not (packed := self._source.read(READ_SIZE)):
                if self._frame.eof:
                    return 0
                raise EOFError(_CUT)
            self._packed = self._packed or packed
            if self._frame.eof:
                self._frame = self._made.decompressobj()
            try:
                self._left = memoryview(self._frame.decompress(self._packed))
            except self._error as error:
                raise EOFError(error) from None
            self._packed = self._frame.unused_data
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n


_UNPACKERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"BZh": _unpack_bzip2,
    b"\xfd7zXZ\0": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": _Zstd,
}
"""By the first bytes of a file."""
_LOOKED_AT = max(map(len, _UNPACKERS))


@contextmanager
def as_text(stream: io.BufferedReader) -> Iterator[io.TextIOWrapper]:
    """Read a byte stream as text; surrogates let any byte in a read name through."""
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="surrogateescape")
    try:
        yield text
    finally:
        text.detach()  # the owner of the stream closes it, and standard input stays open


def check_line_end(path: str, line: str | bytes, number: int) -> None:
    """Raise InputError where the last line of a file has no line end: it may be cut, and others may be missing.

    number : of the line, from 1 on.
    """
    if line[-1:] not in ("\n", b"\n"):
        problem = "the last line has no line end, so the file may be cut short. Make it again, or end the line."
        raise InputError(path, problem, line=number)


class _Source:
    """What an unpacker reads from."""

    def read(self, size: int) -> bytes:
        """Up to so many bytes; none at the end."""
        raise NotImplementedError

    def readinto(self, buffer: Any) -> int:
        """The same, into a buffer; how many there were."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Watched(_Source):
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


def _is_bgzf(head: bytes) -> bool:
    """Whether a block of bgzip begins so: a member of gzip that says its own length, and nothing else about itself."""
    return head[:4] == b"\x1f\x8b\x08\x04" and head[10:16] == b"\x06\0BC\2\0" and len(head) >= _BGZF_HEAD


class _Bgzip(io.RawIOBase):
    """The text of blocks of bgzip, which threads inflate side by side; other members of gzip may follow them."""

    def __init__(self, source: _Watched, threads: int):
        self._source, self._next = source, b""  # what was read of that which is no block
        self._parts: Iterator[bytes] = map_in_order(_inflate, self._groups(), threads)
        self._others: gzip.GzipFile | None = None
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """As of any stream to read from."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; 0 at the end."""
        while not self._left and self._others is None:
            part = next(self._parts, None)
            self._left = memoryview(part or b"")
            if part is None:
                self._others = _unpack_gzip(cast(BinaryIO, _Joined(self._next, self._source)))
        if not self._left:
            return self._others.readinto(buffer) if self._next and self._others else 0
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n

    def _groups(self) -> Iterator[list[bytes]]:
        """Blocks as they stand in the file, some at a time, up to the first thing that is no block."""
        group: list[bytes] = []
        size = 0
        while _is_bgzf(head := self._source.read(_BGZF_HEAD)):
            n = int.from_bytes(head[16:], "little") + 1
            group.append(head + self._source.read(max(0, n - _BGZF_HEAD)))
            size += n
            if size >= _GROUP_SIZE:
                yield group
                group, size = [], 0
        yield group
        while head and not head.strip(b"\0"):  # zeros may follow the last member
            head = self._source.read(READ_SIZE)
        self._next = head.lstrip(b"\0")


class _Joined(_Source):
    """Bytes that were read already, then the rest of their source."""

    def __init__(self, first: bytes, source: _Watched):
        self._first, self._source = first, source

    def read(self, size: int) -> bytes:
        data, self._first = self._first[:size], self._first[size:]
        return data or self._source.read(size)


def _inflate(blocks: list[bytes]) -> bytes:
    """The text of blocks of bgzip."""
    texts, decompress = [], _library()[0].decompress
    for block in blocks:
        if len(block) < int.from_bytes(block[16:_BGZF_HEAD], "little") + 1 or len(block) < _BGZF_HEAD + _BGZF_TAIL:
            raise EOFError(_CUT)
        text = decompress(block[_BGZF_HEAD:-_BGZF_TAIL], -zlib.MAX_WBITS)
        checksum, size = struct.unpack("<II", block[-_BGZF_TAIL:])
        if zlib.crc32(text) != checksum or len(text) != size:
            raise gzip.BadGzipFile("CRC or length check failed")
        texts.append(text)
    return b"".join(texts)
