"""SAM, BAM and CRAM as reads: what sequencers deliver unaligned, and what was aligned once, as FASTQ.

Every read comes once, in the direction in which it was sequenced, with its tags behind the name.  Secondary and
supplementary alignments are passed over, and tags that aligners wrote are left out.  MM and ML, the modified bases, are
about the read as it was sequenced (SAM tags, section 1.7): they hold as they are.  A record without qualities is FASTA.
"""

from __future__ import annotations

import io
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, BinaryIO

from bellapy.errors import InputError
from bellapy.io.base_tags import ABOUT_BASES
from bellapy.io.codes import REVERSE, SECONDARY, SUPPLEMENTARY, UNMAPPED
from bellapy.io.compressed import FETCH_AGAIN, READ_SIZE, is_read_once, open_stream
from bellapy.io.htslib import load_pysam
from bellapy.records.bases import reverse_complement
from bellapy.report.log import logger

BEGINS = b"BAM\1", b"CRAM", b"@HD\tVN:", b"@SQ\tSN:", b"@PG\tID:", b"@RG\tID:", b"@CO\t"
"""How such files begin, inflated."""
LOOKED_AT = max(map(len, BEGINS))
CHUNK = 1 << 20  # bytes of text
GZIP = 16  # to be added to the size of the window, for zlib
NAMES_BY_ALIGNERS = "AS CC CG CP H0 H1 H2 HI IH MC MD MQ NH NM SA TS XA XS cg cm cs de ds dv mg ms nn rl s1 s2 tp zd"
BY_ALIGNERS = (*(f"{name}:".encode() for name in NAMES_BY_ALIGNERS.split()), b"ts:A")
"""Tags about an alignment."""
DAMAGE = OSError, ValueError, UnicodeDecodeError  # of pysam
READ_GROUP = re.compile(r"^@RG\t(?:.*\t)?ID:([^\t\n]+).*$", re.MULTILINE)


@contextmanager
def open_reads(
    path: str, threads: int = 1, see_groups: Callable[[str, dict[str, str]], None] | None = None
) -> Iterator[io.BufferedReader]:
    """The text of reads, as FASTA or FASTQ, from a file of any kind; "-" is standard input.

    see_groups : called with the name of a file of alignments, and the lines of its header about read groups, by their ID.

    Raises
    ------
    InputError : the file cannot be read, or is damaged.
    """
    with open_stream(path, threads) as stream:
        if not stream.peek(LOOKED_AT)[:LOOKED_AT].startswith(BEGINS):
            yield stream
            return
        with _through_pipe(stream) as end, _opened(path, end) as file:
            if see_groups:
                see_groups(path, _groups_in(file))
            yield io.BufferedReader(_AsFastq(path, file), CHUNK)


def read_groups(path: str) -> dict[str, str]:
    """The lines of read groups in the header of a file, by their ID; none where it is no SAM, BAM or CRAM, or a pipe.

    Raises
    ------
    InputError : the file cannot be read, or is damaged.
    """
    if not _is_aligned_file(path):
        return {}
    with _opened(path, path) as file:
        return _groups_in(file)


def _groups_in(file: Any) -> dict[str, str]:
    return {found[1]: found[0] for found in READ_GROUP.finditer(str(file.header))}


def _is_aligned_file(path: str) -> bool:
    """Whether an ordinary file is SAM, BAM or CRAM."""
    if is_read_once(path):
        return False
    with suppress(OSError, zlib.error), open(path, "rb") as stream:
        head = stream.read(READ_SIZE)
        if head.startswith(b"\x1f\x8b"):
            head = zlib.decompressobj(zlib.MAX_WBITS | GZIP).decompress(head, LOOKED_AT)
        return head.startswith(BEGINS)
    return False


@contextmanager
def _opened(path: str, source: Any) -> Iterator[Any]:
    """The file as pysam reads it; source : its name, or a pipe that gives its bytes."""
    try:
        with load_pysam().AlignmentFile(source, "r", check_sq=False) as file:
            yield file
    except InputError as error:  # its lines are those of the text that is made here
        raise InputError(error.path, error.problem, error.record) from None
    except DAMAGE as error:
        raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> InputError:
    return InputError(path, f"cannot be read to its end as SAM, BAM or CRAM ({error}). {FETCH_AGAIN}")


@contextmanager
def _through_pipe(stream: BinaryIO) -> Iterator[BinaryIO]:
    """What pysam can read a stream from; a thread copies its bytes.

    Threads of pysam itself may wait for each other for ever where a file is damaged.
    """
    reader, writer = os.pipe()
    errors: list[Exception] = []

    def copy() -> None:
        try:
            with open(writer, "wb", buffering=0) as pipe, suppress(BrokenPipeError):
                while data := stream.read(READ_SIZE):
                    left = memoryview(data)
                    while left:
                        left = left[pipe.write(left) :]
        except Exception as error:  # told by the thread that reads
            errors.append(error)

    thread = Thread(target=copy, daemon=True)
    with open(reader, "rb") as end:
        thread.start()
        yield end
    thread.join()
    if errors:
        raise errors[0]


class _AsFastq(io.RawIOBase):
    """The records of a file as text."""

    def __init__(self, path: str, file: Any):
        self._path, self._left = path, memoryview(b"")
        self._chunks = self._all(file)

    def readable(self) -> bool:
        """As of any stream to read from."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes; 0 at the end."""
        if not self._left:
            try:
                self._left = memoryview(next(self._chunks, b""))
            except DAMAGE as error:
                raise _damaged(self._path, error) from error
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n

    def _all(self, file: Any) -> Iterator[bytes]:
        parts, size = list[bytes](), 0
        n_secondary = n_supplementary = n_cut = 0
        for segment in file.fetch(until_eof=True):
            flag = segment.flag
            if flag & (SECONDARY | SUPPLEMENTARY):
                n_secondary += bool(flag & SECONDARY)
                n_supplementary += not flag & SECONDARY
                continue
            text, is_cut = _record(segment)
            n_cut += is_cut
            parts += text
            size += sum(map(len, text))
            if size >= CHUNK:
                yield b"".join(parts)
                parts, size = [], 0
        yield b"".join(parts)
        if n_secondary or n_supplementary:
            passed = f"{n_secondary:,} secondary and {n_supplementary:,} supplementary"
            logger.info("%s: %s alignments passed over: each read is taken once", self._path, passed)
        if n_cut:
            logger.warning("%s: bases of %s reads were clipped off for good (H), and are missing", self._path, f"{n_cut:,}")


def _record(segment: Any) -> tuple[tuple[bytes, ...], bool]:
    """A read as FASTQ, or as FASTA, in parts that are not copied; and whether bases are missing."""
    name, _, _, _, _, cigar, _, _, _, bases, values, *tags = segment.to_string().encode().split(b"\t", 11)
    bases = b"" if bases == b"*" else bases
    has_values = values != b"*" or (len(bases) == 1 and segment.query_qualities is not None)
    is_cut = b"H" in cigar
    if segment.flag & REVERSE:
        bases, values = reverse_complement(bases), values[::-1]
    comment = tags[0] if tags else b""
    if comment and not segment.flag & UNMAPPED:
        comment = _own_tags(comment, is_cut)
    header = name + b"\t" + comment if comment else name
    if not has_values and bases:
        return (b">", header, b"\n", bases, b"\n"), is_cut
    return (b"@", header, b"\n", bases, b"\n+\n", values if bases else b"", b"\n"), is_cut


def _own_tags(tags: bytes, is_cut: bool) -> bytes:
    """The tags that are about the read; is_cut : not all of its bases are there."""
    left_out = (*BY_ALIGNERS, *ABOUT_BASES) if is_cut else BY_ALIGNERS
    kept = (tag for tag in tags.split(b"\t") if not tag.startswith(left_out))
    return b"\t".join(kept)
