"""The commands `plan`, `run-tile` and `gather`, for batch systems."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bellapy.cli.options import RUNNING, Given, Output, ReadFiles, pick, takes
from bellapy.cli.overlap import ALL_RUNNING, SkipAlignment, destination, launch_params, overlap_session
from bellapy.cli.session import session
from bellapy.params import ExtensionParams, FilterParams, KmerParams, SeedParams
from bellapy.params.fields import INPUT, RUN, options_of
from bellapy.params.overlap import PresetParams, WritingParams
from bellapy.params.reads import ReadParams
from bellapy.params.run import LaunchParams, WorkdirParams

PlanFolder = Annotated[
    str,
    typer.Option(
        "--workdir", metavar="DIR", help="Folder to make, which the tasks use.", show_default=False, rich_help_panel=RUN
    ),
]
Folder = Annotated[str, typer.Argument(metavar="DIR", help="The folder of `bellapy plan`.", show_default=False)]
Index = Annotated[
    str, typer.Argument(help="Number of a task; - reads numbers from standard input, one a line.", show_default=False)
]
Offset = Annotated[
    int, typer.Option(help="Add this to the number, where arrays of tasks have to be small.", rich_help_panel=INPUT)
]
Count = Annotated[int, typer.Option(help="Do so many tasks, from this one on.", rich_help_panel=INPUT)]


@takes(
    options_of(PresetParams, ReadParams, KmerParams, SeedParams, ExtensionParams, FilterParams, WritingParams), ALL_RUNNING,
    pick(LaunchParams, "blocks"),
)  # fmt: skip
def plan(given: Given, reads: ReadFiles, workdir: PlanFolder, skip_alignment: SkipAlignment = False) -> None:
    """Read the reads into a folder, and say how the job is cut."""
    launch_params(given)
    target = destination("overlaps.paf" if given["overlap_format"] != "bam" else "x.bam", given)
    with overlap_session(given, reads, {}) as (run, params):
        from bellapy.api import folders, overlapping

        folders.plan(overlapping.Request(reads, target, skip_alignment), params, run.report, workdir, given["blocks"])


@takes(ALL_RUNNING)
def run_tile(given: Given, folder: Folder, index: Index, offset: Offset = 0, count: Count = 1) -> None:
    """Tasks of a planned job."""
    with session(given, [], {}) as run:
        from bellapy.api import folders

        if index == "-":
            folders.run_tasks_of(sys.stdin, folder, run.run)
        else:
            folders.run_tasks(folder, run.run, index, offset, count)


@takes(options_of(WritingParams), RUNNING, {"keep_workdir": options_of(WorkdirParams)["keep_workdir"]})
def gather(given: Given, folder: Folder, output: Output = "-") -> None:
    """Overlaps of a planned job whose tasks are done."""
    target = destination(output, {**given, "trim_identity": None})
    with session(given, [], {"-o": output, "the index": target.index}) as run:
        from bellapy.api import folders

        folders.gather(folder, run.run, run.report, target, keep=bool(given["keep_workdir"]))
