"""Reading in a process of its own while this one loads the program: threads would wait for the interpreter's lock."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from bellapy.errors import INTERRUPTED, BellapyError
from bellapy.reads import GatheredReads
from bellapy.records import ReadSet, room_both_ways

PIPE_SIZE = 1 << 20  # the largest that anyone may have
THREADS = "/proc/self/task"  # where there is one: on Linux
STOPPING = signal.SIGINT, signal.SIGTERM


def can_read_ahead() -> bool:
    """Whether it is known that no other thread runs, which might hold a lock that a fork never frees."""
    return os.path.isdir(THREADS) and len(os.listdir(THREADS)) == 1


def read_ahead(read: Callable[[], GatheredReads], meanwhile: Callable[[Callable[[], None]], object]) -> ReadSet:
    """Call `read` in another process and `meanwhile` in this one; return what `read` does, joined, or raise what it raises.

    Parameters
    ----------
    meanwhile : gets a function that raises what `read` has raised by then, if anything.
    """
    receiver, sender = os.pipe()
    _enlarge(sender)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # a process that begins forgets what comes
    try:
        child = os.fork()
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        raise BellapyError(f"no second process can be started ({error.strerror}): use one thread (-t 1)") from None
    if not child:
        _run(read, sender)
    os.close(sender)
    try:
        with open(receiver, "rb") as stream:
            with _ending_at_once(child):
                told = _Told(stream)
                meanwhile(told.look)
            return told.reads()
    except (EOFError, pickle.UnpicklingError):
        raise BellapyError("the process that reads ended early: was it stopped, was there too little memory?") from None
    finally:
        _end(child)


@contextmanager
def _ending_at_once(child: int) -> Iterator[None]:
    """Signals end the program here without an exception, which is lost or shown where imports and LLVM call Python back.

    Nothing has been written yet that would have to be removed.
    """

    def stop(number, frame):
        _end(child)
        if number == signal.SIGINT:
            os.write(2, f"{INTERRUPTED}\n".encode())
        os._exit(128 + number)

    handlers = {number: handler for number in STOPPING if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(child: int) -> None:
    """Stop the other process, unless it has ended, and wait for that."""
    while not os.waitpid(child, os.WNOHANG)[0]:
        os.kill(child, signal.SIGTERM)  # again and again: it might just begin to wait for input
        time.sleep(0.005)


def _enlarge(pipe: int) -> None:
    import fcntl  # not on every system

    with suppress(OSError):  # who has many pipes may have small ones only
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _run(read: Callable[[], GatheredReads], sender: int) -> None:
    """What the other process does; all cleaning up is left to this one."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        with open(sender, "wb") as stream:
            try:
                reads = read()
            except Exception as error:
                pickle.dump(error, stream)
            else:
                _send(reads, stream)
    finally:
        os._exit(0)


def _send(reads: GatheredReads, stream: BinaryIO) -> None:
    pickle.dump((reads.codes.size, *reads._replace(codes=None)), stream)
    for piece in reads.codes.drain():
        stream.write(piece)


class _Told:
    """What the other process tells."""

    def __init__(self, stream: BinaryIO):
        self._stream, self._outcome = stream, None

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
        n_codes, names, _, starts, lengths, error_rate = self._outcome
        codes = room_both_ways(n_codes)
        if self._stream.readinto(codes) != n_codes:
            raise EOFError
        return ReadSet(names, codes, starts, lengths, error_rate, in_room=True)
