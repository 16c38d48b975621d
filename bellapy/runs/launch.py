"""What does the tasks of a job in a folder, by their numbers: this process, processes of this machine, or Dask's workers.

A task is a function of files and leaves a file.  So a launcher hands out numbers and nothing else, and a worker that is lost
costs the task it was at.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from queue import Queue
from threading import Thread
from typing import NamedTuple, Protocol

from bellapy.errors import BellapyError, ParameterError
from bellapy.runs.cluster import Cluster

LOCAL, ADDRESSES = "local:", ("tcp://", "tls://", "ucx://")
STARTS = 3  # of a task, before it is given up
STANDARD_INPUT = "-"
"""Stands for numbers of tasks that come one by one."""


class Launcher(AbstractContextManager, Protocol):
    """Does tasks."""

    def run(self, numbers: Sequence[int]) -> Iterator[int]:
        """Do tasks that do not need each other; the number of each when it is done."""


class Here:
    """This process does the tasks."""

    def __init__(self, task: Callable[[int], object]):
        self._task = task

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, numbers: Sequence[int]) -> Iterator[int]:
        """Do one after the other."""
        for number in numbers:
            self._task(number)
            yield number


def check_scheduler(wanted: str | None) -> None:
    """Raise ParameterError unless it is None, local:N or the address of a Dask scheduler."""
    if wanted is None or wanted.startswith(ADDRESSES):
        return
    number = wanted.removeprefix(LOCAL)
    if not wanted.startswith(LOCAL) or not number.isdecimal() or not 1 <= int(number) <= 4096:
        raise ParameterError(f"--scheduler {wanted}: give local:N, such as local:4, or tcp:// and the address of Dask's")


def processes_of(wanted: str | None) -> int:
    """How many processes of this machine --scheduler asks for."""
    return int(wanted.removeprefix(LOCAL)) if wanted and wanted.startswith(LOCAL) else 1


class Worker(NamedTuple):
    """How to do a task.

    here : in this process.
    command : words that, after `bellapy`, start a process that does the tasks whose numbers it reads.
    job, folder : the module whose functions `warm_up()` and `do_task(folder, number)` any process may call.
    """

    here: Callable[[int], object]
    command: Sequence[str]
    job: str
    folder: str


def choose_launcher(wanted: str | None, worker: Worker) -> Launcher:
    """The launcher that --scheduler asks for."""
    check_scheduler(wanted)
    if wanted is None:
        return Here(worker.here)
    if wanted.startswith(LOCAL):
        return Processes(processes_of(wanted), worker.command)
    return Cluster(wanted, worker.job, worker.folder)


class Processes:
    """Processes of this machine; they end with this one, however it ends."""

    def __init__(self, n: int, command: Sequence[str]):
        self._n, self._command = n, [sys.executable, "-m", "bellapy", *command, STANDARD_INPUT]
        self._workers: list[subprocess.Popen] = []

    def __enter__(self) -> Processes:
        self._workers = [self._start() for _ in range(self._n)]
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.wait()
            _close(worker)

    def _start(self) -> subprocess.Popen:
        return subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run(self, numbers: Sequence[int]) -> Iterator[int]:
        """Give every process a task, and the next one when that is done."""
        todo, told = list(reversed(numbers)), Queue[tuple[int, int, bool]]()
        starts = dict.fromkeys(numbers, 0)

        def give(which: int) -> bool:
            if not todo:
                return False
            number = todo.pop()
            starts[number] += 1
            Thread(target=self._ask, args=(which, number, told), daemon=True).start()
            return True

        busy = sum([give(which) for which in range(self._n)])
        while busy:
            which, number, done = told.get()
            if not done:
                self._replace(which, number, starts[number])
                todo.append(number)
            else:
                yield number
            busy += give(which) - 1

    def _ask(self, which: int, number: int, told: Queue[tuple[int, int, bool]]) -> None:
        """Let a process do a task, and wait for its answer."""
        worker = self._workers[which]
        assert worker.stdin and worker.stdout
        try:
            worker.stdin.write(f"{number}\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except (OSError, ValueError):
            answer = ""
        told.put((which, number, answer.strip() == str(number)))

    def _replace(self, which: int, number: int, n_starts: int) -> None:
        """Start another process for one that has ended, unless it ended with an error that will come again."""
        status = self._workers[which].wait()
        if status > 0 or n_starts >= STARTS:
            raise BellapyError(f"task {number} failed in another process, which has told why (exit status {status})")
        _close(self._workers[which])
        self._workers[which] = self._start()


def _close(worker: subprocess.Popen) -> None:
    """Close the pipes to a process that has ended."""
    for stream in (worker.stdin, worker.stdout):
        if stream:
            with suppress(BrokenPipeError):  # closing writes once more what the process no longer read
                stream.close()
