"""Files that are either complete or absent: each is written in a folder of its own beside it, and renamed at the end."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from bellapy.compute import stopping
from bellapy.compute.locks import lock_file
from bellapy.errors import OutputClosed, OutputError, ParameterError
from bellapy.io.htslib import load_pysam

INDEXES = {"bam": "bai", "cram": "crai"}  # endings of the indexes of sorted files, by format
GFA = "gfa"  # ending of a file of contigs and the links between them
FASTQ = "fq", "fastq"  # endings of files of reads with qualities
COMPRESSED = (".gz", ".bgz")
ALIGNMENTS = ("sam", "bam", "cram", "paf", "maf")
BOOT_ID = "/proc/sys/kernel/random/boot_id"
PREFIX = ".bellapy-"
LOCK = "lock"
PROBE = 1 << 20  # bytes
MOST_LINKS = 40  # that lead to a file, as the system allows
BUFFER = 1 << 20  # bytes that are written at a time: at each write other threads get Python's lock, and keep it for a while
BEGINNING = 3600  # seconds; no process takes so long to begin


# ---------------------------------------------------------------- before the work


def check_outputs(outputs: Mapping[str, str | None], inputs: Sequence[str] = ()) -> None:
    """Raise an error now rather than after hours of work, or after the loss of a file.

    Two names mean one file if both lead to it, through links of either kind or through different folders.

    Parameters
    ----------
    outputs : what asks for each file, as the user knows it, and its path; None: no file.
    inputs : what is read; "-" is standard input.

    Raises
    ------
    OutputError : a path that cannot be written, or is one of the inputs.
    ParameterError : two outputs in one file.
    """
    read = {_identity(path, 0) for path in inputs} - {None}
    written = set()
    for option, path in outputs.items():
        if path is None:
            continue
        check_writable(path)
        found = _identity(path if path == "-" or is_special(path) else target_of(path), 1)
        file = ("-",) if path == "-" else found
        if file and file in written:
            raise ParameterError(f"{option} {path}: the output goes there; name another file")
        if found in read:
            raise OutputError(f"{_name(path)}: is read as input; name another file")
        written |= {file, found} - {None}


def check_writable(path: str) -> None:
    """Raise OutputError if a file cannot be written under this name."""
    if path == "-":
        if sys.stdout is None:
            raise OutputError("standard output: is closed; name a file with -o")
        return
    if not path:
        raise OutputError("an empty name stands where a file is to be named; name a file, or - for standard output")
    if os.path.isdir(path) or path.endswith("/"):
        raise OutputError(f"{path}: is a folder; name a file")
    if is_special(path):
        if not os.access(path, os.W_OK):
            raise OutputError(f"{path}: no permission to write to it")
        return
    target = target_of(path)
    folder = os.path.dirname(target)
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: no permission to write to {folder}")
    try:
        os.stat(target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}; name another file") from error
    if not os.access(path, os.W_OK):
        raise OutputError(f"{path}: is write-protected; name another file")


def target_of(path: str) -> str:
    """The file that a name leads to, through links, in a folder that exists; the file need not.

    A name is followed as the system follows it: "no/../x" is x only where there is a folder "no".

    Raises
    ------
    OutputError : there is no such folder, or links lead in a circle.
    """
    target = path
    for _ in range(MOST_LINKS):
        folder, name = os.path.split(target)
        try:
            os.stat(os.path.join(folder or os.curdir, ""))  # `realpath` takes "no/.." for a folder
        except (FileNotFoundError, NotADirectoryError):
            raise OutputError(f"{path}: the folder {folder} does not exist; make it first") from None
        except OSError as error:
            raise OutputError(f"{path}: the folder {folder}: {error.strerror}") from error
        target = os.path.join(os.path.realpath(folder or os.curdir), name)
        if not os.path.islink(target):
            return target
        target = os.path.join(os.path.dirname(target), os.readlink(target))
    raise OutputError(f"{path}: links lead in a circle; name another file")


def is_special(path: str) -> bool:
    """Whether a path is a pipe, a device or the like."""
    return os.path.exists(path) and not os.path.isfile(path)


def _identity(path: str, stream: int) -> tuple | None:
    """What identifies an ordinary file under any name; for a file that does not exist yet, its folder and name; else None.

    stream : the descriptor that "-" stands for.
    """
    try:
        found = os.fstat(stream) if path == "-" else os.stat(path)
    except FileNotFoundError:
        folder, name = os.path.split(path)
        with suppress(OSError):
            found = os.stat(folder or os.curdir)
            return found.st_dev, found.st_ino, name
        return None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _name(path: str) -> str:
    return "standard output" if path == "-" else path


def is_compressed(path: str) -> bool:
    """Whether a file's name asks for compression."""
    return path.lower().endswith(COMPRESSED)


def ending_of(path: str) -> str:
    """The ending of a file's name that tells its format, in lower case and without the one that asks for compression."""
    name = os.path.basename(path).lower()
    stem = name.rpartition(".")[0] if is_compressed(name) else name
    return stem.rpartition(".")[2] if "." in stem else ""


def index_of(path: str, kind: str) -> str | None:
    """The index that stands beside a sorted file of a format; None where there is none, as of what goes to a pipe."""
    return f"{path}.{INDEXES[kind]}" if kind in INDEXES and path != "-" and not is_special(path) else None


def is_fastq(path: str) -> bool:
    """Whether reads are written to it with their qualities."""
    return ending_of(path) in FASTQ


def check_sequence_name(path: str, written: str) -> None:
    """Raise ParameterError where a name asks for alignments, and sequences are written; written : says how."""
    if ending_of(path) in ALIGNMENTS:
        raise ParameterError(f"-o {path}: {written}")


def alignment_format(path: str, given: str | None, *, cram: bool = False) -> str:
    """What is given, else sam, bam or cram by a file's name, else paf.

    cram : whether it may be written.

    Raises
    ------
    ParameterError : a format that cannot be written there, or that is not the one of the file's name.
    """
    ending = ending_of(path)
    if ending == "cram" and not cram:
        raise ParameterError(f"-o {path}: CRAM is not written. Name a BAM file, and convert it with `samtools view -C`")
    chosen = given if given is not None else ending if ending in ("sam", "bam", "cram") else "paf"
    if ending in ALIGNMENTS and chosen in ALIGNMENTS and chosen != ending:
        raise ParameterError(f"--format {chosen}: -o {path} ends in .{ending}; give one of both")
    if chosen in ("bam", "cram") and is_compressed(path):
        raise ParameterError(f"--format {chosen}: name a file that does not end in .gz with -o, or write SAM")
    if cram and chosen == "cram" and (path == "-" or is_special(path)):
        raise ParameterError("--format cram: name a file with -o, or write BAM")
    return chosen


# ---------------------------------------------------------------- writing

_streams: list[str] = []
"""Pipes and devices to which this process has begun to write."""


@contextmanager
def open_output(path: str, compressible: bool = True) -> Iterator[BinaryIO]:
    """A binary stream to `path` ("-": standard output), compressed by bgzip if it is `compressible` and ends in .gz or .bgz.

    The file appears under its name when the block ends without an error, and not at all otherwise.  What is no ordinary
    file, a pipe or a device, is written to as it stands.
    """
    check_writable(path)
    compressed = compressible and is_compressed(path)
    if path == "-" or is_special(path):
        _streams.append(path)
        with _told(path), _open_stream(path, compressed) as stream:
            yield stream
            stream.flush()
        return
    with whole_files(path) as (written,), _open_stream(written, compressed) as stream:
        yield stream
        stream.flush()


def is_streaming() -> bool:
    """Whether this process has begun to write to a pipe or a device: that cannot be taken back."""
    return bool(_streams)


@contextmanager
def whole_files(*paths: str) -> Iterator[list[str]]:
    """Names under which to write files that belong together; when the block ends without an error they get their own.

    Further files may be written beside them: all that is left there is removed.  The first of the files is what the others
    are about: no old one of these ever stands beside a new first one.  A file that is replaced leaves its permissions.

    Raises
    ------
    OutputError : one of them is a device or a pipe, whose place no file must take, or writing fails.
    """
    targets = [target_of(path) for path in paths]
    if special := next((path for path in paths if is_special(path)), None):
        raise OutputError(f"{special}: is no ordinary file, and cannot hold what is written here; name another file")
    with _told(paths[0]), own_folder(os.path.dirname(targets[0])) as folder, _told(paths[0], folder):
        written = [os.path.join(folder, str(i)) for i in range(len(paths))]
        yield written
        for name, target in zip(written, targets, strict=True):
            with suppress(FileNotFoundError):
                os.chmod(name, os.stat(target).st_mode & 0o777)
        for target in targets[1:]:
            Path(target).unlink(missing_ok=True)
        for name, target in zip(written, targets, strict=True):
            os.replace(name, target)


@contextmanager
def own_folder(beside: str) -> Iterator[str]:
    """A new folder in another one, which nobody else can guess or enter; removed at the end, or by the next run.

    A lock that the system frees when a process ends tells whether the owner still runs.  Only one system can be asked that:
    its name is part of the folder's.
    """
    _remove_left(beside)
    with ExitStack() as stack:
        while True:
            folder = os.path.join(beside, f"{PREFIX}{system_id()}-{os.urandom(8).hex()}")
            stopping.begun.add(folder)
            stack.callback(stopping.begun.discard, folder)
            os.mkdir(folder, 0o700)
            stack.callback(stopping.remove, folder)
            lock = os.path.join(folder, LOCK)
            held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            stack.callback(os.close, held)
            if lock_file(held) is not False and os.path.exists(lock):  # else another run took it for an old one
                break
        yield folder


def _remove_left(beside: str) -> None:
    """Remove folders of runs of this user on this system that were killed."""
    with os.scandir(beside) as entries:
        names = [entry.path for entry in entries if entry.name.startswith(f"{PREFIX}{system_id()}-")]
    for folder in names:
        with suppress(OSError):
            if os.lstat(folder).st_uid == os.geteuid() and _is_left(folder):
                stopping.remove(folder)


def _is_left(folder: str) -> bool:
    """Whether the owner of a folder is gone."""
    try:
        held = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # its owner has just begun, or was killed while it removed the folder
        return time.time() - os.lstat(folder).st_mtime > BEGINNING
    try:
        return lock_file(held) is True
    finally:
        os.close(held)


@cache
def system_id() -> str:
    """What tells this system, since it was started, from every other one that may use the same disk."""
    try:
        told = Path(BOOT_ID).read_text()
    except OSError:  # not Linux
        told = f"{os.uname().nodename} {uuid.getnode()}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]


@contextmanager
def _told(path: str, folder: str | None = None) -> Iterator[None]:
    """Errors of the system as errors about the output; folder : in which it is written."""
    try:
        yield
    except BrokenPipeError:
        if path == "-":
            silence_stdout()
        raise OutputClosed(f"{_name(path)}: was closed by what reads it") from None
    except OSError as error:
        if path == "-":
            silence_stdout()
        raise OutputError(f"{_name(path)}: {reason(error, folder)}") from error


def reason(error: OSError, folder: str | Path | None = None) -> str:
    """What the system says of an error.  Libraries may have lost that: then something is written into the folder."""
    if folder is not None and error.errno in (None, errno.EAGAIN, 0):
        try:
            with tempfile.TemporaryFile(dir=str(folder)) as stream:
                stream.write(bytes(PROBE))
        except OSError as found:
            error = found
    return error.strerror or str(error)


def silence_stdout() -> None:
    """Forget what could not be written: Python would try again when it ends, and fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_stream(path: str, compressed: bool):
    if path == "-":
        return nullcontext(sys.stdout.buffer)
    if not compressed:
        return open(path, "wb", buffering=BUFFER)
    return load_pysam().BGZFile(path, "wb")
