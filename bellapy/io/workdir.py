"""A folder in which a long job keeps what it has done, so that it can be stopped at any moment and go on: `--workdir`.

    with open_workdir(folder, "overlap", options, inputs, keep=False) as work:
        result = work.load("part 1")            # None: not done yet
        work.save("part 1", {"scores": scores})  # arrays by name
        result = work.once("sums", make)         # what is there, else what `make` makes, which is saved

The journal, JOURNAL, says what the folder is about: the job, its options, the checksums of its inputs and the version.  A
folder that is about something else is refused.  A result stands under its name when it is complete, or not at all.  A
process that was killed leaves at most a file that nobody reads, and the next one removes it.  When the block ends without an
error the folder is removed, unless it is kept.

Any number of processes on any number of machines may use one folder (`join_workdir`): names of unfinished files hold the
system, the process and a random part.  Two that make the same result make the same bytes, and either may win.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from bellapy.compute.locks import lock_file
from bellapy.errors import InputError, OutputError, ParameterError
from bellapy.io.array_files import read_arrays, write_arrays
from bellapy.io.compressed import is_read_once, told_damage
from bellapy.io.outputs import reason, system_id
from bellapy.report.log import logger
from bellapy.version import __version__

JOURNAL, OWNER = "job.json", "owner.lock"
SUM = "checksum"  # of the journal, in the journal
ENDED = {"ended": True}  # the journal of a job whose results are being removed
RESULT, BYTES, UNFINISHED, LOCK = ".arrays", ".bin", ".tmp", ".lock"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
PIECE = 1 << 22  # bytes of an input that are read at a time
DAMAGE = ValueError, TypeError, LookupError, ArithmeticError, EOFError  # of a result, shows up as
Arrays = Mapping[str, np.ndarray]


class Workdir:
    """Results by name in a folder that has a journal."""

    def __init__(self, folder: Path, journal: dict[str, Any], *, lasting: bool = True):
        self.folder, self.journal, self._lasting = folder, journal, lasting
        self._sound: dict[str, set[str]] = {}  # arrays of results that this process has compared with their checksums

    def path_of(self, name: str, ending: str = RESULT) -> Path:
        """The file of a result.  Names are letters, digits, points, dashes and underscores."""
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r}: no name of a result")
        return self.folder / f"{name}{ending}"

    def has(self, name: str) -> bool:
        """Whether there is a result of this name."""
        return self.path_of(name).exists()

    def names(self) -> set[str]:
        """The names of all results, from one look at the folder."""
        with self.told():
            return {name.removesuffix(RESULT) for name in os.listdir(self.folder) if name.endswith(RESULT)}

    def load(self, name: str, only: Sequence[str] = ()) -> dict[str, np.ndarray] | None:
        """The arrays of a result; None: there is none.

        only : the names of those that are wanted, if not all.

        Raises
        ------
        InputError : it is damaged or cannot be read.
        """
        path = self.path_of(name)
        try:
            with open(path, "rb") as stream:
                return read_arrays(stream, only, self._sound.setdefault(name, set()))
        except FileNotFoundError:
            return None
        except (OSError, *DAMAGE) as error:
            raise InputError(path, f"is damaged ({error}). Remove this file: it is made again.") from error

    def save(self, name: str, arrays: Arrays) -> None:
        """Make a result of arrays; it appears when it is complete and will outlive a loss of power.

        Raises
        ------
        OutputError : it cannot be written; what was done before is kept.
        """
        self._sound.pop(name, None)
        with self.new_file(self.path_of(name)) as written, open(written, "wb") as stream:
            write_arrays(stream, arrays)

    def once(self, name: str, make: Callable[[], Arrays]) -> dict[str, np.ndarray]:
        """The arrays of a result; if there is none, what `make` makes, which is saved.

        Where the file system has locks, one process makes it while others wait.
        """
        if (found := self.load(name)) is not None:
            return found
        with self._locked(name):
            if (found := self.load(name)) is not None:
                return found
            made = dict(make())
            self.save(name, made)
            return made

    def bytes_of(self, name: str) -> Path:
        """The file of a result that is plain bytes; `new_file` makes it."""
        return self.path_of(name, BYTES)

    def remove(self, name: str) -> None:
        """Remove a result, if it is there."""
        self._sound.pop(name, None)
        self.path_of(name).unlink(missing_ok=True)

    @contextmanager
    def new_file(self, path: Path) -> Iterator[Path]:
        """The name under which to write a file of this folder; when the block ends without an error it gets its own."""
        written = self.folder / f".{path.name}.{system_id()}-{os.getpid()}-{os.urandom(8).hex()}{UNFINISHED}"
        with self.told(path), _held(written):
            try:
                yield written
                if self._lasting:
                    _sync(written)
                os.replace(written, path)
                with suppress(OSError):  # not every file system can
                    if self._lasting:
                        _sync(self.folder)
            finally:
                written.unlink(missing_ok=True)

    def told(self, path: Path | None = None) -> AbstractContextManager[None]:
        """Errors of the system as errors about a file of the folder, or about the folder."""
        return told_errors(self.folder, path, lasting=self._lasting)

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with self.told():
            stream = open(self.path_of(name, LOCK), "ab")
        with stream:
            with suppress(OSError):  # no locks here: both make the same
                fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def remove_unfinished(self) -> None:
        """Remove what processes of this system left that were killed while they wrote."""
        for path in self.folder.glob(f".*.{system_id()}-*{UNFINISHED}"):
            with suppress(OSError), open(path, "rb") as stream:
                if lock_file(stream.fileno()):
                    path.unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Remove all results, then the journal, and the folder if nothing else is in it.

        The journal says so first, if the disk has room: from what is left of them no job can go on.
        """
        with suppress(OutputError):
            self.write_journal(ENDED)
        self.remove_results()
        with self.told():
            for pattern in (f".*{UNFINISHED}", JOURNAL, f"*{LOCK}"):
                _remove(self.folder, pattern)
        with suppress(OSError):
            self.folder.rmdir()

    def remove_results(self) -> None:
        """Remove all results."""
        with self.told():
            for pattern in (f"*{RESULT}", f"*{BYTES}"):
                _remove(self.folder, pattern)

    def write_journal(self, journal: Mapping[str, Any]) -> None:
        """Say what the folder is about."""
        with self.new_file(self.folder / JOURNAL) as written:
            written.write_text(json.dumps({**journal, SUM: _sum(journal)}, indent=1))


@contextmanager
def told_errors(folder: Path, path: Path | None = None, *, lasting: bool = True) -> Iterator[None]:
    """Errors of the system as errors about the output."""
    try:
        yield
    except OSError as error:
        what_next = "Name another --workdir."
        if not lasting:
            what_next = "The work needs room on this disk; --workdir names another folder for it."
        elif (folder / JOURNAL).exists():
            what_next = "What was done is kept: the same command goes on from it."
        raise OutputError(f"{path or folder}: {reason(error, folder)}. {what_next}") from error


@contextmanager
def open_workdir(
    folder: str, kind: str, options: Mapping[str, Any], inputs: Sequence[str], *, keep: bool = False, lasting: bool = True
) -> Iterator[Workdir]:
    """The folder of a job, new or gone on with; when the block ends without an error it is removed, unless `keep`.

    Parameters
    ----------
    kind : of job, a word.
    options : what rules the results, as JSON holds it.
    inputs : files that the job reads, whose contents must stay the same.
    lasting : whether the job is to go on after a stop; if not, inputs are not checked, and nothing waits for the disk.

    Raises
    ------
    OutputError : the folder is about something else or not ours, is in use, or cannot be written.
    InputError, ParameterError : an input cannot be read, or is standard input, which cannot be read again.
    """
    path = Path(folder)
    checked = [digest(name) for name in inputs] if lasting else []
    journal = {"kind": kind, "version": __version__, "options": _plain(options), "inputs": checked}
    with told_errors(path, lasting=lasting):
        if path.exists() and not path.is_dir():
            raise OutputError(f"{folder}: is no folder. Name an empty or a new folder as --workdir.")
        path.mkdir(exist_ok=True)
        others = [name for name in sorted(os.listdir(path)) if not (name == OWNER or name.endswith(UNFINISHED))]
        if others and not (path / JOURNAL).exists():
            raise OutputError(f"{folder}: holds other files ({others[0]}). Name an empty or a new folder as --workdir.")
        owner = open(path / OWNER, "ab")
    with owner:
        if lock_file(owner.fileno()) is False:
            raise OutputError(f"{folder}: another bellapy works in this folder. Wait for it, or name another --workdir.")
        work = Workdir(path, journal, lasting=lasting)
        if (path / JOURNAL).exists() and read_journal(path) == ENDED:
            work.remove_results()
            work.write_journal(journal)
        elif (path / JOURNAL).exists():
            _check_same(folder, read_journal(path), journal)
            logger.info("%s: going on, %d results are there", folder, len(work.names()))
        else:
            work.write_journal(journal)
        work.remove_unfinished()
        try:
            yield work
        except InputError:
            if not work.names():  # so that the same folder can be named with other files
                work.remove_all()
            raise
        if not keep:
            work.remove_all()


def join_workdir(folder: str, kind: str) -> Workdir:
    """The folder of a job that another process has begun, for one more process of this job.

    Raises
    ------
    InputError : there is no such job, or it was begun by another version.
    """
    path = Path(folder)
    if not (path / JOURNAL).exists():
        raise InputError(folder, "no job was begun in this folder")
    journal = read_journal(path)
    if journal.get("kind") != kind or journal.get("version") != __version__:
        was = f"{journal.get('kind')}, version {journal.get('version')}"
        raise InputError(folder, f"holds a job of another kind or version ({was}; this is {kind}, version {__version__})")
    return Workdir(path, journal)


def read_journal(folder: Path) -> dict[str, Any]:
    """What a folder is about; raises InputError where the journal is damaged."""
    try:
        journal = json.loads((folder / JOURNAL).read_text())
        if not isinstance(journal, dict) or journal.pop(SUM, None) != _sum(journal):
            raise ValueError("wrong checksum")
    except (OSError, ValueError) as error:
        raise InputError(folder / JOURNAL, f"is damaged ({error}). Remove the folder, and start again.") from error
    return journal


def _sum(journal: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()


def digest(path: str) -> dict[str, Any]:
    """Name, size and checksum (SHA-256) of an input.

    Raises
    ------
    ParameterError : standard input or a pipe.  InputError : it cannot be read.
    """
    if is_read_once(path):
        shown = "standard input" if path == "-" else path
        raise ParameterError(f"--workdir: {shown} cannot be read again when the job goes on; name files of reads")
    checksum, size = hashlib.sha256(), 0
    with told_damage(path), open(path, "rb", buffering=0) as stream:
        while piece := stream.read(PIECE):
            checksum.update(piece)
            size += len(piece)
    return {"path": path, "bytes": size, "sha256": checksum.hexdigest()}


def _check_same(folder: str, was: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise OutputError unless a journal is about the same job."""
    way_out = "Name another --workdir, or remove the folder to start again."
    for what in ("kind", "version"):
        if was.get(what) != now[what]:
            raise OutputError(f"{folder}: was begun by bellapy {was.get(what)}; this is {now[what]}. {way_out}")
    old, new = was.get("inputs", []), now["inputs"]
    if len(old) != len(new):
        raise OutputError(f"{folder}: was begun with {len(old)} input files, now there are {len(new)}. {way_out}")
    for one, other in zip(old, new, strict=True):
        if (one["bytes"], one["sha256"]) != (other["bytes"], other["sha256"]):
            what = "has changed since the job was begun"
            if other["path"] != one["path"]:
                what = f"is not {one['path']}, with which the job was begun"
            raise OutputError(f"{folder}: {other['path']} {what}. {way_out}")
    for name, (before, value) in sorted(differences(was.get("options", {}), now["options"]).items()):
        was_shown, is_shown = ("not given" if shown is None else str(shown) for shown in (before, value))
        raise OutputError(f"{folder}: was begun with another {name}: {was_shown} then, {is_shown} now. {way_out}")


def differences(was: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """What differs between two records as JSON holds them, by name: before and now."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in was.keys() | now.keys():
        one, other = was.get(name), now.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found |= differences(one, other, f"{prefix}{name}.")
        elif one != other:
            found[f"{prefix}{name}"] = one, other
    return found


def _plain(value: Mapping[str, Any]) -> Any:
    """A record as it comes back from JSON."""
    return json.loads(json.dumps(value))


def _remove(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        path.unlink(missing_ok=True)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Make a file and lock it: the system frees the lock when this process ends, and so others know that it has."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        lock_file(held)
        yield
    finally:
        os.close(held)


def _sync(path: Path) -> None:
    """Let what was written to a file, or what names a folder has, outlive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
