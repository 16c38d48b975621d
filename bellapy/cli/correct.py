"""The command `correct`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from bellapy.cli.folder import given_folder
from bellapy.cli.options import RUNNING, Given, Output, Reads, takes
from bellapy.cli.session import session, with_run
from bellapy.errors import ParameterError
from bellapy.io.outputs import check_sequence_name, is_fastq
from bellapy.params import Params
from bellapy.params.correct import FINDING, TAKEN, CorrectParams, make_correct_params, make_finding_params
from bellapy.params.fields import INPUT, options_of
from bellapy.params.run import RunParams, WorkdirParams

OverlapFile = Annotated[
    str | None,
    typer.Option(
        "--overlaps", metavar="FILE", help="PAF of these reads with paths in cg:Z [default: overlaps are found here].",
        rich_help_panel=INPUT,
    ),
]  # fmt: skip


@takes(FINDING, TAKEN, options_of(CorrectParams, RunParams, WorkdirParams), RUNNING)
def correct(given: Given, reads: Reads, output: Output = "-", overlaps: OverlapFile = None) -> None:
    """Reads corrected by each other."""
    chosen = make_correct_params(given)
    _check(given, output, overlaps)
    params = make_finding_params(given)
    inputs = [*reads, *([overlaps] if overlaps else [])]
    with session(given, inputs, {"-o": output}) as run:
        params = with_run(params, run)
        from bellapy.api.correcting import correct_files, start_report

        start_report(run.report)
        run.report.parameters = {**params.to_dict(), "correct": asdict(chosen)}
        with given_folder(given, "correct", _ruling(params, chosen, output), inputs) as work:
            correct_files(reads, overlaps, output, params, chosen, run.report, work)


def _ruling(params: Params, chosen: CorrectParams, output: str) -> dict[str, Any]:
    """What rules the output; a folder is gone on with where it is the same."""
    options = {**params.to_dict(), "correct": asdict(chosen), "qualities": is_fastq(output)}
    del options["run"]
    return options


def _check(given: Given, output: str, overlaps: str | None) -> None:
    check_sequence_name(output, "reads are written as FASTQ to .fq or .fastq, and as FASTA to any other name")
    for name, field in {**FINDING, **TAKEN}.items():
        if overlaps and given[name] is not None:
            raise ParameterError(f"{field.flags[-1]}: rules how overlaps are found; leave out --overlaps")
