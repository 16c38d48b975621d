"""The command `correct`."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from bellapy.cli.folder import given_folder
from bellapy.cli.options import RUNNING, Given, Output, Reads, pick, takes
from bellapy.cli.session import session, with_run
from bellapy.errors import ParameterError
from bellapy.io.outputs import check_sequence_name, is_fastq
from bellapy.params import KmerParams, Params, make_params
from bellapy.params.correct import SHORTEST_USED, CorrectParams, make_correct_params
from bellapy.params.fields import INPUT, check, given_values, options_of
from bellapy.params.overlap import FIELDS, PresetParams
from bellapy.params.run import RunParams, WorkdirParams

OverlapFile = Annotated[
    str | None,
    typer.Option(
        "--overlaps", metavar="FILE", help="PAF of these reads with paths in cg:Z [default: overlaps are found here].",
        rich_help_panel=INPUT,
    ),
]  # fmt: skip
_MIN_OVERLAP = FIELDS["min_overlap"]
FINDING = {
    **options_of(PresetParams), **pick(KmerParams, "error_rate depth"),
    "min_overlap": replace(_MIN_OVERLAP, default=SHORTEST_USED, about=replace(_MIN_OVERLAP.about, unset="")),
}  # fmt: skip
"""Options of `overlap` that rule how overlaps are found."""
TAKEN = {
    f"min_read_{what}": replace(field, name=f"min_read_{what}")
    for what in ("length", "quality")
    for field in [FIELDS[f"min_{what}"]]
}
"""Those that rule which reads are taken: the option --min-length is about what is written."""


@takes(FINDING, TAKEN, options_of(CorrectParams, RunParams, WorkdirParams), RUNNING)
def correct(given: Given, reads: Reads, output: Output = "-", overlaps: OverlapFile = None) -> None:
    """Reads corrected by each other."""
    chosen = make_correct_params(given)
    _check(given, output, overlaps)
    finding = {"min_overlap": SHORTEST_USED, **given_values(given, FIELDS.keys() & FINDING.keys())}
    check(given_values(given, TAKEN), TAKEN)
    taken = {name.replace("read_", ""): value for name, value in given_values(given, TAKEN).items()}
    params = make_params(given.get("preset"), **finding, **taken)
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
