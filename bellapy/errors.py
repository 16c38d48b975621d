"""Errors that a user can act on, and the exit status each one ends the program with."""

from __future__ import annotations

import math

MEGABYTE = 10**6
SLACK = 1.1  # for the stages after the one that does not fit
INTERRUPTED = "bellapy: interrupted"  # by Ctrl-C


class BellapyError(Exception):
    """Anything that stops the program with a message: what is wrong, where, what to do."""

    exit_code = 1


class ParameterError(BellapyError):
    """An option outside its range, or options that contradict each other."""

    exit_code = 2


class InputError(BellapyError):
    """Input that cannot be read: a missing file, a damaged record, a wrong format.

    Parameters
    ----------
    path : the file as the user named it ("-" is standard input).
    problem : what is wrong and what to do about it, one sentence or two.
    record : 1-based number of the record at fault, if known.
    line : 1-based number of the line at fault, if known.
    """

    def __init__(self, path, problem: str, record: int | None = None, line: int | None = None):
        self.path, self.problem, self.record, self.line = str(path), problem, record, line
        where = "standard input" if self.path == "-" else self.path
        if record is not None:
            where += f": record {record}"
            if line is not None:
                where += f" (line {line})"
        elif line is not None:
            where += f": line {line}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self):  # an exception is made again of its message alone, unless it says otherwise
        return type(self), (self.path, self.problem, self.record, self.line)


class DeviceError(BellapyError):
    """A GPU that was asked for cannot be used."""


class OutputError(BellapyError):
    """Output that cannot be written."""


class OutputClosed(OutputError):
    """What reads the output has closed it, as `head` does: no error of the run, and nothing is said."""

    exit_code = 128 + 13  # as a shell tells it of a program that SIGPIPE ended


class MemoryLimitError(BellapyError):
    """A job that does not fit the memory it may use.

    Parameters
    ----------
    limit : bytes it may use.
    what : the work that does not fit.
    needed : bytes for that, beside what is held.
    """

    likely = 0
    """Bytes that the whole job is likely to need, as far as is known when the error is told: what is named to the user is to
    work the next time."""

    def __init__(self, limit: int, what: str, needed: int):
        self.limit, self.what, self.needed = limit, what, needed
        super().__init__(limit, what, needed)

    def __str__(self) -> str:
        least = math.ceil(max(self.needed * SLACK, self.likely) / MEGABYTE)
        return (
            f"--max-memory {_shown(self.limit)}: {self.what} needs more. Allow {least}M for the whole job, or "
            "give fewer reads."
        )


def _shown(size: int) -> str:
    """A size in bytes as users write it."""
    return f"{size / MEGABYTE:g}M" if size >= MEGABYTE else f"{size} bytes"
