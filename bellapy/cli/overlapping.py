"""What the commands of the job `overlap` share: parameters, session, output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from bellapy.cli.options import RUNNING, Given
from bellapy.cli.session import Session, session, with_run
from bellapy.errors import ParameterError
from bellapy.io.overlap_writer import Destination, choose_output
from bellapy.jobs.overlap.report import start_report
from bellapy.params import Params, make_params
from bellapy.params.fields import INPUT, OUTPUT, check, fields_of, given_values, options_of
from bellapy.params.overlap import FIELDS, WritingParams
from bellapy.params.run import LaunchParams, RunParams
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
        params = with_run(params, run)
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
