"""Kernels compiled before they are needed, several at a time.

Numba compiles one function at a time in a process.  So the first run with a GPU starts other processes, which compile and
leave what they have made on the disk.  This one reads and counts meanwhile, and waits where it comes to what is not yet
there.  A mark beside it says that a task has been tried: later runs start nothing.  Of several first runs at once, as of the
jobs of a cluster, one does a task and the others wait for it: a GPU has no room for the compilers of all of them.

A task is the name of a function that starts some kernels on nothing: "module:function", or with a number behind a colon.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread

from bellapy.compute import own_process
from bellapy.compute.code_cache import folder
from bellapy.compute.gpu import driver
from bellapy.compute.gpu.devices import DRIVER_FILE
from bellapy.compute.gpu.stored import stamp
from bellapy.compute.locks import wait_for_lock
from bellapy.compute.stopping import end_with_parent
from bellapy.compute.threads import usable_cores

MODULE = "bellapy.compute.gpu.ahead"
PATIENCE = 100.0  # seconds: a run that takes longer for a task has been stopped for a while
_lock = Lock()
_helpers: list[subprocess.Popen[bytes]] = []  # the process that does the tasks, and tells which are done
_loading: list[Thread] = []
_begun: set[str] = set()
_done: set[str] = set()


def start(tasks: Sequence[str]) -> None:
    """Begin with those of the tasks that no run has tried yet, in this order.

    Nothing happens without a GPU's driver, nor the second time.
    """
    if _helpers or not DRIVER_FILE.exists():
        return
    with suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
    if not os.access(folder(), os.W_OK):
        return
    todo = [task for task in tasks if not _is_tried(_mark(task, stamp()))]
    if not todo:
        return
    command = [sys.executable, "-m", MODULE, stamp(), str(usable_cores()), *todo]
    with suppress(OSError):  # then kernels are compiled where they are needed
        nothing = subprocess.DEVNULL
        helper = subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing)
        _helpers.append(helper)
        _begun.update(todo)


def wait(*tasks: str) -> None:
    """Until these tasks are done, if they were begun."""
    with _lock:
        while not _done.issuperset(_begun.intersection(tasks)):
            _listen()


def is_ready(task: str) -> bool:
    """Whether a task need not be waited for: it is done, or was never begun."""
    with _lock:
        while _begun and select.select([_pipe()], [], [], 0)[0]:
            _listen()
        return task not in _begun or task in _done


def load(tasks: Sequence[str]) -> None:
    """Do those of the tasks here whose code is on the disk already, in a thread: what they load is there when it is needed.

    Nothing happens without a GPU's driver.
    """

    def load_all() -> None:
        for task in tasks:
            if is_ready(task):
                with suppress(Exception):  # it comes again where the code is needed, and is told there
                    do(task)

    if DRIVER_FILE.exists():
        _loading.append(Thread(target=load_all, name="loading", daemon=True))
        _loading[-1].start()


def leave() -> None:
    """Begin to let go of all GPUs, in a process of ours: its end would wait for that.  Nothing may use one any more."""
    if own_process.is_claimed() and _loading and not any(thread.is_alive() for thread in _loading):
        Thread(target=driver.gpus.close, name="leaving", daemon=True).start()


def _pipe() -> int:
    """What the helper writes to."""
    stream = _helpers[0].stdout
    assert stream
    return stream.fileno()


def _listen() -> None:
    """Hear of one more task, or of several."""
    told = os.read(_pipe(), select.PIPE_BUF)
    if not told:
        _begun.clear()  # the helper has ended: what is not there is compiled here
    _done.update(told.decode().split())


def _mark(task: str, stamp: str) -> Path:
    """The file that is locked while a process does a task, and empty until then."""
    return folder() / f"ahead-{stamp}-{task.replace(':', '-')}"


def _is_tried(mark: Path) -> bool:
    return mark.exists() and mark.stat().st_size > 0


def _do_all(stamp: str, at_once: int, tasks: Sequence[str]) -> None:
    """Do the tasks, so many at once, each in a process of its own; tell the name of each when it is done or has failed."""
    running: dict[subprocess.Popen[bytes], str] = {}
    left, first = list(tasks), os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": first}  # one is enough to compile for
    while left or running:
        while left and len(running) < at_once:
            task = left.pop(0)
            command = [sys.executable, "-m", MODULE, stamp, task]
            running[subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)] = task
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        for process in [process for process in running if process.poll() is not None]:
            print(running.pop(process), flush=True)


def _do_once(stamp: str, task: str) -> None:
    """Do a task, unless another run has done it, or does it now."""
    mark = _mark(task, stamp)
    with open(mark, "ab") as file:
        wait_for_lock(file.fileno(), PATIENCE)
        if not _is_tried(mark):
            try:
                do(task)
            finally:
                file.write(b"tried\n")  # of failures, too: they would fail in every run


def do(task: str) -> None:
    """Do one task, here."""
    module, function, *numbers = task.split(":")
    getattr(import_module(module), function)(*map(int, numbers))


if __name__ == "__main__":
    end_with_parent()
    if len(sys.argv) == 3:
        _do_once(*sys.argv[1:])
    else:
        _do_all(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
