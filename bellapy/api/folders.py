"""The job `overlap` in a folder, cut into tiles: `--workdir`, `plan`, `run-tile`, `gather`, and where memory is short."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from bellapy.api.overlapping import Request, write_plain, write_with_paths
from bellapy.api.reading import tell_left_out
from bellapy.compute.memory import PROGRAM, Budget, resident
from bellapy.compute.stopping import end_with_parent
from bellapy.errors import ParameterError
from bellapy.io.outputs import is_special, open_output, own_folder, target_of
from bellapy.io.overlap_writer import Destination
from bellapy.io.workdir import open_workdir
from bellapy.jobs.overlap import in_folder
from bellapy.jobs.overlap.align import STEPS, Steps
from bellapy.jobs.overlap.in_folder import (
    KIND,
    Asked,
    FolderWork,
    begin,
    describe_plan,
    join,
    missing,
    n_placed,
    placed,
    placed_with_reads,
    run_rounds,
    warm_up,
)
from bellapy.jobs.overlap.pipeline import with_device
from bellapy.jobs.overlap.report import start_report
from bellapy.params import Params, make_params
from bellapy.params.run import LaunchParams, RunParams, WorkdirParams
from bellapy.records import Overlaps, ReadSet, join_overlaps
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import ReadStage, RunReport
from bellapy.runs.launch import Here, Worker, choose_launcher, processes_of


def overlap_in_tiles(request: Request, params: Params, report: RunReport) -> None:
    """Overlaps of files to a file, where all at once needs more than --max-memory."""
    start_report(report)  # without what was counted before it showed
    with _own_tiles(request, params, report) as work:
        run_rounds(work, Here(work.do))
        _write(work, params, report, request.output)


def find_in_tiles(request: Request, params: Params, report: RunReport) -> tuple[ReadSet, Overlaps, Steps]:
    """Reads as given, their overlaps, and the scores of these, for another job for which all at once does not fit."""
    with _own_tiles(request, params, report) as work:
        Budget(params.run.max_memory).require("all reads in both directions", 2 * work.n_bases)
        run_rounds(work, Here(work.do))
        overlaps, steps = join_overlaps(list(placed(work))), work.get(STEPS).steps
        return work.stored.some_as_given(np.arange(len(work.stored.lengths)), params.run.threads), overlaps, steps


@contextmanager
def _own_tiles(request: Request, params: Params, report: RunReport) -> Iterator[FolderWork]:
    """The job cut into tiles, in a folder beside the output or with temporary files."""
    Budget(params.run.max_memory).require("the program itself", max(0, PROGRAM - resident()))
    report.stages.clear()
    output = request.output.path
    beside = None if output == "-" or is_special(output) else os.path.dirname(target_of(output))
    with own_folder(beside or tempfile.gettempdir()) as folder:
        logger.info("in one piece the job needs more than --max-memory; it is done in tiles, in the folder %s", folder)
        place = WorkdirParams(os.path.join(folder, "work"))
        with _begun(request, params, report, place, None, lasting=False) as work:
            yield work


@contextmanager
def _begun(
    request: Request, params: Params, report: RunReport, place: WorkdirParams, blocks: int | None, *, lasting: bool = True
) -> Iterator[FolderWork]:
    """The job of a folder, begun or gone on with; the folder is removed at the end unless it is to be kept.

    lasting : as in `open_workdir`.
    """
    assert place.workdir
    asked = Asked(with_device(params), request.skip_alignment, request.output.paths, request.targets)
    opened = open_workdir(place.workdir, KIND, asked.to_json(), request.paths, keep=place.keep_workdir, lasting=lasting)
    with opened as folder:
        with report.stage(ReadStage("read")) as stage, progress("read", None) as advance:
            work = begin(folder, request.paths, asked, report, blocks, lambda n_reads, n_bases: advance(n_reads))
            stage.reads, stage.bases = len(work.reads.lengths), work.n_bases
        report.count_letters(work.stored.other_letters, work.n_bases)
        tell_left_out(report, work.stored.dropped)
        yield work


def overlap_in_folder(
    request: Request, params: Params, report: RunReport, place: WorkdirParams, launch: LaunchParams
) -> None:  # fmt: skip
    """Overlaps of files to a file, in a folder that was named."""
    with _begun(request, params, report, place, launch.blocks) as work:
        if launch.scheduler:
            warm_up()  # before many processes fill one cache of compiled code
        with choose_launcher(launch.scheduler, _worker(work, params.run, launch.scheduler)) as launcher:
            run_rounds(work, launcher)
        _write(work, params, report, request.output)


def _worker(work: FolderWork, run: RunParams, scheduler: str | None) -> Worker:
    """How tasks of a folder are done here and elsewhere."""
    threads = max(1, run.threads // processes_of(scheduler))
    words = ["run-tile", str(work.folder.folder), "-q", "-t", str(threads), "--device", run.device]
    words += ["--max-memory", str(run.max_memory)] if run.max_memory else []
    return Worker(work.do, words, in_folder.__name__, str(work.folder.folder))


def plan(request: Request, params: Params, report: RunReport, folder: str, blocks: int | None) -> None:
    """Read the reads into a folder, and say on standard output how the job is cut."""
    with _begun(request, params, report, WorkdirParams(folder, True), blocks) as work, open_output("-") as stream:
        stream.write(describe_plan(work).encode())


def _joined(folder: str, run: RunParams) -> FolderWork:
    return join(folder, with_device(replace(make_params(), run=run)).run)


def run_tasks(folder: str, run: RunParams, first: str, offset: int, count: int) -> None:
    """Do so many tasks of a planned job from one on; the first number is given as text, offset is added to it."""
    work = _joined(folder, run)
    number = _task(first) + offset
    work.check_tasks(number, count)  # before any is done
    for task in range(number, number + count):
        work.do(task)


def run_tasks_of(lines: Iterable[str], folder: str, run: RunParams) -> None:
    """Do the tasks whose numbers are given, a line each, and print those that are done, until the process before ends."""
    work = _joined(folder, run)
    end_with_parent()
    for line in lines:
        work.do(_task(line))
        print(line.strip(), flush=True)


def _task(text: str) -> int:
    """The number of a task, as it was given."""
    if not text.strip().isdecimal():
        raise ParameterError(f"{text.strip()!r}: give the number of a task")
    return int(text)


def gather(folder: str, run: RunParams, report: RunReport, output: Destination, *, keep: bool) -> None:
    """Write the overlaps of a planned job whose tasks are done; keep : the folder."""
    work = join(folder, run)
    params = work.asked.params
    if output.paths != work.asked.paths:
        raise ParameterError(f"{folder}: was planned {'with' if work.asked.paths else 'without'} base-level paths")
    start_report(report)
    report.parameters = params.to_dict()
    missing(work)
    _write(work, params, report, output)
    if not keep:
        work.folder.remove_all()


def _write(work: FolderWork, params: Params, report: RunReport, output: Destination) -> None:
    """Write the overlaps of a folder, with their paths if the output needs any."""
    reads = work.stored.as_given()
    if output.paths:
        parts, params = placed_with_reads(work, Budget(params.run.max_memory)), with_device(params)
        write_with_paths(reads, parts, n_placed(work), work.get(STEPS).steps, params, report, output)
    else:
        write_plain(reads, placed(work), params, report, output)
