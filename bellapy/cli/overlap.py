"""The commands `overlap`, and its stages `count`, `candidates`, `align` and `filter`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer

from bellapy.cli.options import RUNNING, Given, Output, Reads, StageOutput, pick, takes
from bellapy.cli.session import Session, session
from bellapy.compute.gpu.devices import wake
from bellapy.errors import ParameterError
from bellapy.io.overlap_writer import Destination, choose_output
from bellapy.jobs.overlap.report import start_report
from bellapy.params import ExtensionParams, FilterParams, KmerParams, Params, SeedParams, make_params
from bellapy.params.fields import INPUT, OUTPUT, check, fields_of, given_values, options_of
from bellapy.params.overlap import FIELDS, PresetParams, WritingParams
from bellapy.params.reads import ReadParams
from bellapy.params.run import LaunchParams, RunParams, WorkdirParams
from bellapy.runs.launch import check_scheduler

TargetFile = Annotated[
    str | None,
    typer.Option(
        "--targets", metavar="FILE", help="Only overlaps of the reads, as queries, with those of this file.",
        rich_help_panel=INPUT, show_default=False,
    ),
]  # fmt: skip
ALL_RUNNING = {**options_of(RunParams), **RUNNING}
SkipAlignment = Annotated[
    bool, typer.Option("--skip-alignment", help="Report candidates, align nothing.", rich_help_panel=OUTPUT)
]
StageInput = {"show_default": False, "metavar": "FILE", "rich_help_panel": INPUT}


def destination(output: str, given: Given, skip_alignment: bool = False) -> Destination:
    """The output that the options of a command ask for."""
    target = choose_output(
        output, **WritingParams(**given_values(given, WritingParams._fields))._asdict(),
        trim=given["trim_identity"] is not None,
    )  # fmt: skip
    if skip_alignment and target.paths:
        raise ParameterError("--skip-alignment: without alignments there are no paths; write PAF, without --cigar")
    return target


@contextmanager
def overlap_session(given: Given, inputs: list[str], outputs: dict[str, str | None]) -> Iterator[tuple[Session, Params]]:
    """A session with the parameters that were given."""
    params = make_params(given.get("preset"), **given_values(given, FIELDS))
    with session(given, inputs, outputs) as run:
        params = replace(params, run=run.run)
        start_report(run.report)
        run.report.parameters = params.to_dict()
        yield run, params


def launch_params(given: Given) -> LaunchParams:
    """How the tasks of a folder are done."""
    values = given_values(given, LaunchParams._fields)
    check(values, fields_of(LaunchParams))
    launch = LaunchParams(**values)
    check_scheduler(launch.scheduler)
    return launch


@takes(
    options_of(PresetParams, ReadParams, KmerParams, SeedParams, ExtensionParams, FilterParams, WritingParams), ALL_RUNNING,
    options_of(WorkdirParams, LaunchParams),
)  # fmt: skip
def overlap(
    given: Given, reads: Reads, output: Output = "-", skip_alignment: SkipAlignment = False, targets: TargetFile = None
) -> None:
    """Overlaps of all reads with each other, or with those of another file."""
    if given["device"] != "cpu" and given["workdir"] is None and not skip_alignment:
        wake()  # while the rest is loaded
    target = destination(output, given, skip_alignment)
    files = [*reads, *_checked_targets(given, targets)]
    place = WorkdirParams(**given_values(given, WorkdirParams._fields))
    wanted = next((name for name in ("keep_workdir", "blocks", "scheduler") if given[name]), None)
    if wanted and place.workdir is None:
        raise ParameterError(f"--{wanted.replace('_', '-')}: name a folder with --workdir")
    launch = launch_params(given) if place.workdir else LaunchParams()
    with overlap_session(given, files, {"-o": output, "the index": target.index}) as (run, params):
        from bellapy.api import folders, overlapping

        request = overlapping.Request(files, target, skip_alignment, targets is not None)
        if place.workdir is not None:
            folders.overlap_in_folder(request, params, run.report, place, launch)
        elif not overlapping.overlap_in_one_piece(request, params, run.report):
            folders.overlap_in_tiles(request, params, run.report)


def _checked_targets(given: Given, targets: str | None) -> list[str]:
    """The file of targets, if there is one; ParameterError where another option does not go with it."""
    if targets is None:
        return []
    if given["drop_contained"]:
        raise ParameterError("--drop-contained: looks at overlaps within a file, too; leave out --targets")
    return [targets]


@takes(options_of(PresetParams, ReadParams, KmerParams), RUNNING)
def count(given: Given, reads: Reads, output: StageOutput) -> None:
    """Reliable k-mers of the reads."""
    with overlap_session(given, reads, {"-o": output}) as (run, params):
        from bellapy.api import stages

        stages.count(reads, output, params, run.report)


@takes(options_of(ReadParams, SeedParams), RUNNING)
def candidates(
    given: Given, reads: Reads,
    kmers: Annotated[str, typer.Option("--kmers", help="File of `bellapy count`.", **StageInput)], output: StageOutput,
) -> None:  # fmt: skip
    """Seeds of candidate pairs."""
    with overlap_session(given, [*reads, kmers], {"-o": output}) as (run, params):
        from bellapy.api import stages

        stages.candidates(reads, kmers, output, params, run.report)


@takes(options_of(PresetParams, ReadParams, ExtensionParams), pick(FilterParams, "delta"), ALL_RUNNING)
def align(
    given: Given, reads: Reads,
    seeds: Annotated[str, typer.Option("--seeds", help="File of `bellapy candidates`.", **StageInput)], output: StageOutput,
) -> None:  # fmt: skip
    """Extensions of seeds."""
    with overlap_session(given, [*reads, seeds], {"-o": output}) as (run, params):
        from bellapy.api import stages

        stages.align(reads, seeds, output, params, run.report)


@takes(options_of(ReadParams, FilterParams, WritingParams), ALL_RUNNING)
def filter_command(
    given: Given, reads: Reads,
    alignments: Annotated[str, typer.Option("--alignments", help="File of `bellapy align`.", **StageInput)],
    output: Output = "-",
) -> None:  # fmt: skip
    """Overlaps among alignments."""
    target = destination(output, given)
    with overlap_session(given, [*reads, alignments], {"-o": output, "the index": target.index}) as (run, params):
        from bellapy.api import stages

        stages.filter_alignments(reads, alignments, target, params, run.report)
