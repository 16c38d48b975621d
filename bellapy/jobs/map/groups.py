"""Read groups: of the reads' own headers, or one that is given for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bellapy.errors import InputError
from bellapy.io.aligned import read_groups
from bellapy.report.log import logger


class ReadGroups:
    """The lines of read groups for a header, which is written when the first reads have come.

    paths : files of reads.  given : a line that replaces theirs; None: theirs stay.
    """

    def __init__(self, paths: Sequence[str], given: str | None):
        self._given, self._lines = given, dict[str, str]()
        self._closed = False
        for path in paths if given is None else ():
            self.add(path, read_groups(path))

    def add(self, path: str, lines: dict[str, str]) -> None:
        """Add the read groups of a file, by their ID.

        Raises
        ------
        InputError : another file has another read group of this ID.
        """
        if self._given is not None:
            return
        if self._closed and not lines.keys() <= self._lines.keys():
            logger.warning(
                "%s: comes too late for its read groups to stand in the header; name it first, or as a file", path
            )
        for its_id, line in lines.items():
            if self._lines.setdefault(its_id, line) != line:
                problem = f"its read group {its_id} is not the one of another file. Give one for all reads with --rg."
                raise InputError(path, problem)

    def close(self) -> Iterable[str]:
        """The lines; those of files that come later are left out, and a warning tells it."""
        self._closed = True
        return [self._given] if self._given is not None else list(self._lines.values())
