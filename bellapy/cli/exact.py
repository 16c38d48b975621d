"""The command `exact`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from bellapy.cli.folder import given_folder
from bellapy.cli.options import THREADS_AND_LOG, Given, output_option, pick, takes
from bellapy.cli.session import session
from bellapy.params import make_exact_params
from bellapy.params.exact import ExactParams
from bellapy.params.fields import INPUT, OUTPUT, options_of
from bellapy.params.run import RunParams, WorkdirParams

Query = Annotated[str, typer.Argument(metavar="A", help="The query: FASTA or FASTQ, plain or gzip.", show_default=False)]
Target = Annotated[str, typer.Argument(metavar="B", help="The target, likewise.", show_default=False)]
Name = Annotated[
    str | None, typer.Option(help="Record to take, where the file holds several.", metavar="NAME", rich_help_panel=INPUT)
]
Output = Annotated[str, output_option(".paf, .sam or .txt (side by side); .gz compresses; - is PAF on standard output.")]
ScoreOnly = Annotated[
    bool,
    typer.Option("--score-only", help="Make no path: a line with the score and where it ends.", rich_help_panel=OUTPUT),
]
Plot = Annotated[
    str | None,
    typer.Option(
        help="Draw the path and what was computed: .png, .svg or .pdf (needs matplotlib).", metavar="FILE",
        rich_help_panel=OUTPUT,
    ),
]  # fmt: skip


@takes(
    options_of(ExactParams, WorkdirParams),
    pick(RunParams, "device"),
    THREADS_AND_LOG,
)
def exact(
    given: Given, query: Query, target: Target, output: Output = "-", query_name: Name = None, target_name: Name = None,
    score_only: ScoreOnly = False, plot: Plot = None,
) -> None:  # fmt: skip
    """The optimal alignment of two sequences."""
    params = make_exact_params(given)
    with session(given, [query, target], {"-o": output, "--plot": plot}) as run:
        from bellapy.jobs.exact.pipeline import Means, Request, align_files

        what = {"score_only": score_only, "query_name": query_name, "target_name": target_name}
        with given_folder(given, "exact", {**asdict(params), **what}, [query, target]) as work:
            request = Request(query, target, query_name, target_name, output, score_only, plot)
            align_files(request, params, Means(run.run, run.report, work))
