"""`overlap` in a folder (--workdir), and the commands `plan`, `run-tile` and `gather` for batch systems."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from bellapy.cli.options import RUNNING, Given, Output, ReadFiles, pick, takes
from bellapy.cli.overlapping import (
    ALL_RUNNING,
    SkipAlignment,
    destination,
    overlap_session,
    write_plain,
    write_with_paths,
)
from bellapy.cli.reading import tell_left_out, with_run
from bellapy.cli.session import Session, session
from bellapy.errors import ParameterError
from bellapy.params import ExtensionParams, FilterParams, KmerParams, Params, SeedParams
from bellapy.params.fields import INPUT, RUN, check, fields_of, given_values, options_of
from bellapy.params.overlap import PresetParams, WritingParams
from bellapy.params.reads import ReadParams
from bellapy.params.run import LaunchParams, WorkdirParams

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.overlap_writer import Destination
    from bellapy.jobs.overlap.ends import Steps
    from bellapy.jobs.overlap.in_folder import Asked, FolderWork
    from bellapy.records import Overlaps, ReadSet
    from bellapy.runs.launch import Worker

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


def overlap_in_folder(
    given: Given, reads: list[str], target: Destination, skip_alignment: bool, targets: bool
) -> None:  # fmt: skip
    """The command `overlap` with --workdir; targets : the last file holds targets."""
    place = WorkdirParams(**given_values(given, WorkdirParams._fields))
    launch = _launch_params(given)
    with overlap_session(given, reads, {"-o": target.path, "the index": target.index}) as (run, params):
        run.watch()
        asked = _asked(params, skip_alignment, target.paths, targets)
        with _begun(run, asked, reads, place, launch.blocks) as work:
            from bellapy.jobs.overlap.in_folder import run_rounds, warm_up
            from bellapy.runs.launch import choose_launcher

            if launch.scheduler:
                warm_up()  # before many processes fill one cache of compiled code
            with choose_launcher(launch.scheduler, _worker(work, run, launch.scheduler)) as launcher:
                run_rounds(work, launcher)
            _write(run, work, params, target)


def overlap_in_tiles(
    run: Session, params: Params, reads: list[str], target: Destination, skip_alignment: bool, targets: bool
) -> None:
    """The command `overlap` where all at once does not fit; targets : the last file holds targets."""
    from bellapy.jobs.overlap.report import start_report

    start_report(run.report)  # without what was counted before it showed
    with _own_tiles(run, _asked(params, skip_alignment, target.paths, targets), reads, target.path) as work:
        from bellapy.jobs.overlap.in_folder import run_rounds
        from bellapy.runs.launch import Here

        run_rounds(work, Here(work.do))
        _write(run, work, params, target)


def find_in_tiles(run: Session, params: Params, reads: list[str], output: str) -> tuple[ReadSet, Overlaps, Steps]:
    """Reads as given, their overlaps, and the scores of these, for another job for which all at once does not fit."""
    import numpy as np

    with _own_tiles(run, _asked(params, False, False), reads, output) as work:
        from bellapy.jobs.overlap.align_rounds import STEPS
        from bellapy.jobs.overlap.in_folder import placed, run_rounds
        from bellapy.records import join_overlaps
        from bellapy.runs.launch import Here

        run.budget.require("all reads in both directions", 2 * work.n_bases)
        run_rounds(work, Here(work.do))
        overlaps, steps = join_overlaps(list(placed(work))), work.get(STEPS).steps
        return work.stored.some_as_given(np.arange(len(work.stored.lengths)), run.run.threads), overlaps, steps


@contextmanager
def _own_tiles(run: Session, asked: Asked, reads: list[str], output: str) -> Iterator[FolderWork]:
    """The job cut into tiles, in a folder beside the output or with temporary files."""
    from bellapy.compute.memory import PROGRAM, resident
    from bellapy.io.outputs import is_special, own_folder, target_of
    from bellapy.report.log import logger

    run.budget.require("the program itself", max(0, PROGRAM - resident()))
    run.report.stages.clear()
    beside = None if output == "-" or is_special(output) else os.path.dirname(target_of(output))
    with own_folder(beside or tempfile.gettempdir()) as folder:
        logger.info("in one piece the job needs more than --max-memory; it is done in tiles, in the folder %s", folder)
        place = WorkdirParams(os.path.join(folder, "work"))
        with _begun(run, asked, reads, place, None, lasting=False) as work:
            yield work


def _launch_params(given: Given) -> LaunchParams:
    from bellapy.runs.launch import check_scheduler

    values = given_values(given, LaunchParams._fields)
    check(values, fields_of(LaunchParams))
    launch = LaunchParams(**values)
    check_scheduler(launch.scheduler)
    return launch


def _worker(work: FolderWork, run: Session, scheduler: str | None) -> Worker:
    """How tasks of a folder are done here and elsewhere."""
    from bellapy.jobs.overlap import in_folder
    from bellapy.runs.launch import Worker, processes_of

    threads = max(1, run.run.threads // processes_of(scheduler))
    words = ["run-tile", str(work.folder.folder), "-q", "-t", str(threads), "--device", run.run.device]
    words += ["--max-memory", str(run.run.max_memory)] if run.run.max_memory else []
    return Worker(work.do, words, in_folder.__name__, str(work.folder.folder))


def _asked(params: Params, skip_alignment: bool, paths: bool, targets: bool = False) -> Asked:
    """What rules the results of the job."""
    from bellapy.jobs.overlap.in_folder import Asked
    from bellapy.jobs.overlap.pipeline import with_device

    return Asked(with_device(params), skip_alignment, paths, targets)


@contextmanager
def _begun(
    run: Session, asked: Asked, reads: list[str], place: WorkdirParams, blocks: int | None, *, lasting: bool = True
) -> Iterator[FolderWork]:
    """The job of a folder, begun or gone on with; the folder is removed at the end unless it is to be kept.

    lasting : as in `open_workdir`.
    """
    from bellapy.io.workdir import open_workdir
    from bellapy.jobs.overlap.in_folder import KIND, begin
    from bellapy.report.progress import progress
    from bellapy.report.run_report import ReadStage

    assert place.workdir
    opened = open_workdir(place.workdir, KIND, asked.to_json(), reads, keep=place.keep_workdir, lasting=lasting)
    with opened as folder:
        with run.report.stage(ReadStage("read")) as stage, progress("read", None) as advance:
            work = begin(folder, reads, asked, run.report, blocks, lambda n_reads, n_bases: advance(n_reads))
            stage.reads, stage.bases = len(work.reads.lengths), int(work.reads.lengths.sum(dtype="int64"))
        run.report.count_letters(work.stored.other_letters, stage.bases)
        tell_left_out(run.report, work.stored.dropped)
        yield work


@takes(
    options_of(PresetParams, ReadParams, KmerParams, SeedParams, ExtensionParams, FilterParams, WritingParams), ALL_RUNNING,
    pick(LaunchParams, "blocks"),
)  # fmt: skip
def plan(given: Given, reads: ReadFiles, workdir: PlanFolder, skip_alignment: SkipAlignment = False) -> None:
    """Read the reads into a folder, and say how the job is cut."""
    _launch_params(given)
    with overlap_session(given, reads, {}) as (run, params):
        run.watch()
        target = destination("overlaps.paf" if given["overlap_format"] != "bam" else "x.bam", given)
        asked = _asked(params, skip_alignment, target.paths)
        with _begun(run, asked, reads, WorkdirParams(workdir, True), given["blocks"]) as work:
            from bellapy.io.outputs import open_output
            from bellapy.jobs.overlap.in_folder import describe_plan

            with open_output("-") as stream:
                stream.write(describe_plan(work).encode())


@takes(ALL_RUNNING)
def run_tile(given: Given, folder: Folder, index: Index, offset: Offset = 0, count: Count = 1) -> None:
    """Tasks of a planned job."""
    with session(given, [], {}) as run:
        run.watch()
        from bellapy.compute.stopping import end_with_parent
        from bellapy.jobs.overlap.in_folder import join
        from bellapy.jobs.overlap.pipeline import with_device
        from bellapy.params import make_params

        device = with_device(with_run(make_params(), run)).run
        work = join(folder, device)
        if index != "-":
            first = _task(index) + offset
            work.check_tasks(first, count)  # before any is done
            for number in range(first, first + count):
                work.do(number)
            return
        end_with_parent()
        for line in sys.stdin:
            work.do(_task(line))
            print(line.strip(), flush=True)


def _task(text: str) -> int:
    """The number of a task, as it was given."""
    if not text.strip().isdecimal():
        raise ParameterError(f"{text.strip()!r}: give the number of a task")
    return int(text)


@takes(options_of(WritingParams), RUNNING, {"keep_workdir": options_of(WorkdirParams)["keep_workdir"]})
def gather(given: Given, folder: Folder, output: Output = "-") -> None:
    """Overlaps of a planned job whose tasks are done."""
    target = destination(output, {**given, "trim_identity": None})
    with session(given, [], {"-o": output, "the index": target.index}) as run:
        run.watch()
        from bellapy.jobs.overlap.in_folder import join, missing
        from bellapy.jobs.overlap.report import start_report

        work = join(folder, run.run)
        params = work.asked.params
        if target.paths != work.asked.paths:
            raise ParameterError(f"{folder}: was planned {'with' if work.asked.paths else 'without'} base-level paths")
        start_report(run.report)
        run.report.parameters = params.to_dict()
        missing(work)
        _write(run, work, params, target)
        if not given["keep_workdir"]:
            work.folder.remove_all()


def _write(run: Session, work: FolderWork, params: Params, output: Destination) -> None:
    """Write the overlaps of a folder, with their paths if the output needs any."""
    from bellapy.jobs.overlap.align_rounds import STEPS
    from bellapy.jobs.overlap.in_folder import n_placed, placed, placed_with_reads
    from bellapy.jobs.overlap.pipeline import with_device

    reads = work.stored.as_given()
    if output.paths:
        parts, params = placed_with_reads(work, run.budget), with_device(params)
        write_with_paths(run, reads, parts, n_placed(work), work.get(STEPS).steps, params, output)
    else:
        write_plain(run, reads, placed(work), output)
