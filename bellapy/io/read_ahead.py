"""Reading in a process of its own while this one loads the program: threads would wait for the interpreter's lock."""

from __future__ import annotations

import os
import pickle
import select
import signal
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from typing import Any, BinaryIO

from bellapy.compute.stopping import SIGNALS, end_with_parent
from bellapy.errors import BellapyError
from bellapy.io.fastx import GatheredReads
from bellapy.records import ReadSet
from bellapy.records.reads import room_both_ways

PIPE_SIZE = 1 << 20  # the largest that anyone may have
THREADS = "/proc/self/task"  # where there is one: on Linux


def can_read_ahead() -> bool:
    """Whether no other thread runs for certain: it might hold a lock that a fork never frees."""
    return os.path.isdir(THREADS) and len(os.listdir(THREADS)) == 1


def read_ahead(read: Callable[[], GatheredReads], meanwhile: Callable[[Callable[[], None]], object]) -> ReadSet:
    """Call `read` in another process and `meanwhile` in this one; return what `read` does, joined, or raise what it raises.

    Parameters
    ----------
    meanwhile : is given a function that raises what `read` has raised so far, if anything.
    """
    receiver, sender = os.pipe()
    _enlarge(sender)
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # a new process would lose signals that arrive now
    try:
        child = os.fork()
        if not child:
            _run(read, sender, parent)
    except OSError as error:
        raise BellapyError(f"no second process can be started ({error.strerror}): use one thread (-t 1)") from None
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    os.close(sender)
    try:
        with open(receiver, "rb") as stream:
            told = _Told(stream)
            meanwhile(told.look)
            return told.reads()
    except (EOFError, pickle.UnpicklingError):
        raise BellapyError("the reading process ended early; it was stopped, or it ran out of memory") from None
    finally:
        _end(child)


def _end(child: int) -> None:
    """Stop the other process, which has nothing to clean up, and wait until it has ended."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _enlarge(pipe: int) -> None:
    import fcntl  # not on every system

    with suppress(OSError):  # a user with many pipes may get small ones only
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _run(read: Callable[[], GatheredReads], sender: int, parent: int) -> None:
    """What the other process does; this one does all the cleaning up."""
    try:
        _end_with(parent)
        with open(sender, "wb") as stream:
            try:
                reads = read()
            except Exception as error:
                pickle.dump(error, stream)
            else:
                _send(reads, stream)
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    """Let the system end this process with its parent, however that ends.  A terminal tells both to stop: it is the parent's
    part to say so."""
    end_with_parent()
    if os.getppid() != parent:  # the parent has ended already
        os._exit(0)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _send(reads: GatheredReads, stream: BinaryIO) -> None:
    names, codes, *others = reads
    pickle.dump((names, codes.size, *others), stream)
    for piece in codes.drain():
        stream.write(piece.data)


class _Told:
    """What the other process reports."""

    def __init__(self, stream: BufferedReader):
        self._stream = stream
        self._outcome: Any = None  # an error, or what `_send` dumps first

    def look(self) -> None:
        """Raise what went wrong, if that is known by now."""
        if self._outcome is None and select.select([self._stream], [], [], 0)[0]:
            self._listen()

    def _listen(self) -> None:
        self._outcome = pickle.load(self._stream)
        if isinstance(self._outcome, Exception):
            raise self._outcome

    def reads(self) -> ReadSet:
        if self._outcome is None:
            self._listen()
        names, n_codes, starts, lengths, error_rate, other_letters = self._outcome
        codes = room_both_ways(n_codes)
        if self._stream.readinto(codes.data) != n_codes:
            raise EOFError
        return ReadSet(names, codes, starts, lengths, error_rate, other_letters, in_room=True)
