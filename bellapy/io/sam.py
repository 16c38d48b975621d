"""Overlaps with paths -> SAM and BAM, as minimap2 -a writes them all-vs-all.

Every read is a reference (`@SQ`), every overlap a record of the query on the target, all of them secondary (no read has a
best place among the others), with hard clips.  On opposite strands the record holds the query's reverse complement.  Tags:
`NM`, `AS`, `tp:A:S`, `cm`, `de`, `MD`, and `cs` if asked for.  Mapping qualities are 255, unknown; base qualities are left
out.
"""

from __future__ import annotations

import errno
import os
import re
import select
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from bellapy.compute import own_process
from bellapy.compute.memory import give_back_freed
from bellapy.errors import OutputError
from bellapy.io.codes import REVERSE, SECONDARY, UNKNOWN_QUALITY
from bellapy.io.htslib import load_pysam
from bellapy.io.outputs import is_special, open_output, whole_files
from bellapy.io.paf import gap_compressed_divergence
from bellapy.io.path_text import aligned_bases, cigars, differences, draw, mismatches
from bellapy.io.table_text import LETTER, NAME, NUMBER, SHARE, TEXT, NameTable, format_rows
from bellapy.records import Overlaps, Paths, ReadSet

NAME_RULE = re.compile(r"[0-9A-Za-z!#$%&+./:;?^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]{0,253}")
"""What may name a query and a reference."""

LONGEST_NAME, SHOWN = 254, 40  # letters; of a name in a message
SORT_MEMORY = "64M"  # for each thread
OPEN_FILES = "/proc/self/fd"  # on Linux; elsewhere names are UTF-8
LEVEL = 1  # of compression; the usual 6 takes four times as long for a seventh less space


def check_names(names: Sequence[str], what: str = "read") -> None:
    """Raise OutputError for a name that cannot be that of a query and a reference.  what : it names."""
    for name in names:
        if not NAME_RULE.fullmatch(name):
            shown = name if len(name) <= SHOWN else f"{name[:SHOWN]}..."
            why = "which has at most 254 letters" if len(name) > LONGEST_NAME else "which leaves out some characters"
            raise OutputError(f"{what} {shown!r}: SAM does not allow this name, {why}; rename the {what}, or write PAF")


def make_header(reads: ReadSet, command: str, version: str) -> str:
    """Header lines; a read without bases cannot be a reference and is left out."""
    sizes = zip(reads.names, reads.lengths.tolist(), strict=True)
    return "".join(
        ["@HD\tVN:1.6\tSO:unsorted\n", *(f"@SQ\tSN:{name}\tLN:{size}\n" for name, size in sizes if size)]
    ) + f"@PG\tID:bellapy\tPN:bellapy\tVN:{version}\tCL:{' '.join(command.split())}\n"  # fmt: skip


def format_records(reads: ReadSet, overlaps: Overlaps, paths: Paths, cs: bool, names: NameTable) -> bytes:
    """Alignment lines of overlaps, in their order.

    names : of all reads.
    """
    query, same = overlaps.query_id, overlaps.strand > 0
    before, after = overlaps.query_start, reads.lengths[query] - overlaps.query_end
    clips = np.stack([np.where(same, before, after), np.where(same, after, before)], axis=1, dtype=np.int64)
    star, zero = np.full(len(overlaps), ord("*")), np.zeros(len(overlaps))
    columns = [
        (NAME, "", query),
        (NUMBER, "", SECONDARY + REVERSE * ~same),
        (NAME, "", overlaps.target_id),
        (NUMBER, "", overlaps.target_start + 1),
        (NUMBER, "", np.full(len(overlaps), UNKNOWN_QUALITY)),
        (TEXT, "", cigars(paths, clips)),
        (LETTER, "", star),
        (NUMBER, "", zero),
        (NUMBER, "", zero),
        (TEXT, "", aligned_bases(reads, overlaps)),
        (LETTER, "", star),
        (NUMBER, "NM:i:", paths.n_mismatches + paths.n_gap_bases),
        (NUMBER, "AS:i:", overlaps.score),
        (LETTER, "tp:A:", np.full(len(overlaps), ord("S"))),
        (NUMBER, "cm:i:", overlaps.n_support),
        (SHARE, "de:f:", gap_compressed_divergence(paths)),
        (TEXT, "MD:Z:", mismatches(draw(reads, overlaps, paths))),
    ]
    if cs:
        columns.append((TEXT, "cs:Z:", differences(draw(reads, overlaps, paths))))
    return format_rows(columns, names)


CRAM = "cram,embed_ref=2"  # with the part of the reference that it needs, so that it can be read anywhere


@contextmanager
def open_bam(
    path: str, header: str, index: str | None, threads: int, kind: str = "bam"
) -> Iterator[Callable[[bytes], None]]:
    """A function that writes alignment lines to a BAM or CRAM file.

    index : the name of its index; then lines are sorted by targets.  None: they stay as they come, and BAM may go to a pipe.

    Files appear when the block ends without an error, and not at all otherwise.
    """
    pysam = load_pysam()
    parsed = pysam.AlignmentHeader.from_text(header)
    if path == "-" or is_special(path):
        with open_output(path, compressible=False) as stream, _with_number(stream) as end:
            with pysam.AlignmentFile(end, "wb", header=parsed, threads=1, format_options=_level(LEVEL)) as bam:
                yield _writer(bam, parsed)
        return
    with whole_files(path, *([index] if index else [])) as files, _as_utf8(files) as written:
        target = f"{written[0]}.unsorted" if index else written[0]
        try:
            with open(target, "wb") as stream:
                stream.write(header.encode())  # a full disk shows now: pysam would tell it with a traceback
            level = _level(0 if index else LEVEL)
            with pysam.AlignmentFile(target, "wb", header=parsed, threads=threads, format_options=level) as bam:
                yield _writer(bam, parsed)
            if index:
                give_back_freed()
                options = ["-@", str(threads - 1), "-m", SORT_MEMORY, "-O", CRAM if kind == "cram" else "bam"]
                options += [] if kind == "cram" else ["-l", str(LEVEL)]
                with _temporary_files_in(os.path.dirname(files[0])):
                    pysam.sort("--no-PG", *options, "-T", target, "-o", written[0], target)
                    pysam.index(*written)
        except pysam.SamtoolsError as error:
            raise OSError(error.value) from error


def _level(level: int) -> list[bytes]:
    return [b"level=%d" % level]  # pysam 0.22 takes no text


def _writer(bam: Any, header: Any) -> Callable[[bytes], None]:
    segment = load_pysam().AlignedSegment

    def write(lines: bytes) -> None:
        for line in lines.decode().splitlines():
            bam.write(segment.fromstring(line, header))

    return write


@contextmanager
def _with_number(stream: BinaryIO) -> Iterator[BinaryIO]:
    """What pysam can write to in place of a stream: itself, or, where the system does not know it, a file that is copied.

    pysam lets no other thread run while it closes a file.  So none of ours can take what it writes.
    """
    try:
        number = stream.fileno()
    except OSError:  # of a stream in memory
        with tempfile.TemporaryFile() as whole:
            yield whole
            whole.seek(0)
            shutil.copyfileobj(whole, stream)
        return
    try:
        yield stream
    except OSError:
        os.write(number, b"\0")  # the system says again what is wrong: pysam tells something else
        raise
    look = select.poll()
    look.register(number, 0)
    if any(told & (select.POLLERR | select.POLLHUP) for _, told in look.poll(0)):  # pysam says nothing of it
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


@contextmanager
def _temporary_files_in(folder: str) -> Iterator[None]:
    """Have Python's temporary files in a folder of ours, if the process is ours too.

    pysam catches what samtools says in two of them, and would leave them behind where a signal ends the program.
    """
    if not own_process.is_claimed():
        yield
        return
    before, tempfile.tempdir = tempfile.tempdir, folder
    try:
        yield
    finally:
        tempfile.tempdir = before


@contextmanager
def _as_utf8(files: list[str]) -> Iterator[list[str]]:
    """The same files of one folder under names that are UTF-8, as samtools wants them."""
    folder = os.path.dirname(files[0])
    if folder.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in folder):
        yield files
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        yield [f"{OPEN_FILES}/{held}/{os.path.basename(name)}" for name in files]
    finally:
        os.close(held)
