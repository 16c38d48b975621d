"""How the work is done, and what is told about it; the results do not depend on any of this."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from bellapy.params.fields import RUN, About

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class RunParams:
    """Threads, device and memory."""

    threads: Annotated[
        int, About("Threads", 1, 4096, unset="all cores", panel=RUN, flags=("-t", "--threads"), common=True)
    ] = 1
    device: Annotated[
        str, About("Where to work; auto takes GPUs if there are any", choices=DEVICES, panel=RUN, common=True)
    ] = "auto"
    max_memory: Annotated[
        int | None,
        About("Most memory to use, such as 600M or 2GiB", unset="any", panel=RUN, metavar="SIZE", text=True, common=True),
    ] = None


class WorkdirParams(NamedTuple):
    """Where a long job keeps what it has done, and what does its tasks."""

    workdir: Annotated[
        str | None,
        About("Keep what is done in this folder: the same command goes on after a stop", panel=RUN, metavar="DIR"),
    ] = None
    keep_workdir: Annotated[bool, About("Leave that folder when the job is done", panel=RUN)] = False


class LaunchParams(NamedTuple):
    """How a job in a folder is cut, and what does its tasks."""

    blocks: Annotated[
        int | None, About("Cut the reads into so many blocks, with --workdir", 1, 10_000, unset="by memory", panel=RUN)
    ] = None
    scheduler: Annotated[
        str | None,
        About(
            "What does the tasks, with --workdir: local:N (so many processes) or the address of a Dask scheduler (tcp://...)",
            unset="this process",
            panel=RUN,
            metavar="WHAT",
        ),  # fmt: skip
    ] = None


class LogParams(NamedTuple):
    """What the user is told."""

    report_file: Annotated[
        str | None,
        About(
            "Write a report of the run to this file: .html to look at, .png, .svg or JSON",
            panel=RUN,
            flags=("--report",),
            metavar="FILE",
            common=True,
        ),
    ] = None
    quiet: Annotated[bool, About("Show only warnings and errors", panel=RUN, flags=("-q", "--quiet"), common=True)] = False
    debug: Annotated[bool, About("Show where an error comes from", panel=RUN)] = False
