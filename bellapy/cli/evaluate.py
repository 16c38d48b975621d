"""The command `evaluate`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bellapy.cli.options import Given, pick, takes
from bellapy.compute import stopping
from bellapy.errors import ParameterError
from bellapy.io.outputs import check_outputs, open_output
from bellapy.params.evaluate import EvaluateParams
from bellapy.params.fields import INPUT, check, given_values, options_of
from bellapy.params.run import LogParams
from bellapy.report.log import set_up_logging


@takes(options_of(EvaluateParams), pick(LogParams, "debug"))
def evaluate(
    given: Given,
    overlaps: Annotated[str, typer.Argument(help="PAF or BELLA file; - is standard input.")],
    truth: Annotated[
        str,
        typer.Option(
            "--truth", help="SAM, BAM, MAF or TSV of where the reads lie.", metavar="FILE", show_default=False,
            rich_help_panel=INPUT,
        ),
    ],
) -> None:  # fmt: skip
    """Recall, precision and end errors."""
    check(given_values(given, EvaluateParams._fields), options_of(EvaluateParams))
    params = EvaluateParams(**given_values(given, EvaluateParams._fields))
    bounds = _bounds(params.bins)
    stopping.watch()
    set_up_logging(debug=bool(given["debug"]))
    check_outputs({"the result": "-", "--false-list": params.false_pairs}, [overlaps, truth])
    from bellapy.jobs.evaluate.pipeline import evaluate_files

    result = evaluate_files(truth, overlaps, **{**params._asdict(), "bins": bounds})
    with open_output("-") as stream:
        stream.write((json.dumps(result, indent=1) + "\n").encode())


def _bounds(text: str | None) -> list[int]:
    try:
        bounds = [int(bound) for bound in (text or "").split(",") if bound]
    except ValueError:
        bounds = []
    if text and (not bounds or bounds != sorted(set(bounds))):
        raise ParameterError(f"--bins {text}: give whole numbers that ascend, with commas between, such as 2000,5000")
    return bounds
