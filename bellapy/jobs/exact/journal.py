"""A folder in which a long run keeps what it has done, so that it can be killed at any moment and continued."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bellapy.errors import InputError, OutputError
from bellapy.jobs.exact.output import Pair
from bellapy.params import ExactParams
from bellapy.report.log import logger

JOB = "job.json"
SCHEMA = 1


class FolderJournal:
    """States of sweeps as files, each written whole or not at all."""

    def __init__(self, folder: Path, prefix: str = ""):
        self._folder, self._prefix = folder, prefix

    def of_strand(self, strand: int) -> FolderJournal:
        """A journal of its own for each strand."""
        return FolderJournal(self._folder, "forward_strand_" if strand > 0 else "reverse_strand_")

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._prefix}{name}.npz"

    def load(self, name: str) -> dict | None:
        """What was saved under a name; None: nothing."""
        path = self._path(name)
        if not path.exists():
            return None
        try:
            with open(path, "rb") as stream, np.load(stream) as state:
                loaded = {key: state[key] for key in state.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(path, f"is damaged ({error}); remove it, and its sweep starts again") from error
        logger.info("going on from %s, step %s", path, int(loaded["step"]))
        return loaded

    def save(self, name: str, state: dict) -> None:
        path = self._path(name)
        written = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            with open(written, "wb") as stream:
                np.savez(stream, **state)
            os.replace(written, path)
        except OSError as error:
            raise OutputError(f"{path}: {error.strerror or error}") from error
        finally:
            written.unlink(missing_ok=True)


@contextmanager
def open_journal(folder: str | None, pair: Pair, params: ExactParams, score_only: bool) -> Iterator[FolderJournal | None]:
    """The journal of a folder, which is made if it does not exist; when the block ends without an error it is emptied.

    Raises
    ------
    OutputError : the folder holds another job, or files that are no journal, or cannot be written.
    """
    if folder is None:
        yield None
        return
    path = Path(folder)
    job = {"schema": SCHEMA, **asdict(params), "score_only": score_only, "sequences": _digest(pair)}
    try:
        path.mkdir(exist_ok=True)
        if (path / JOB).exists():
            if json.loads((path / JOB).read_text()) != job:
                raise OutputError(f"{folder}: was begun with other sequences or options; name another --workdir")
        elif any(path.iterdir()):
            raise OutputError(f"{folder}: holds other files; name an empty or a new folder as --workdir")
        else:
            (path / JOB).write_text(json.dumps(job))
    except (OSError, ValueError) as error:
        raise OutputError(f"{folder}: cannot be used as --workdir ({error})") from error
    yield FolderJournal(path)
    for left in [*path.glob("*.npz*"), path / JOB]:
        left.unlink(missing_ok=True)


def _digest(pair: Pair) -> str:
    """What tells sequences from others."""
    digest = hashlib.sha256()
    for part in (pair.query_name.encode(), pair.query.data, pair.target_name.encode(), pair.target.data):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
