"""The command `wga`."""

from __future__ import annotations

from typing import Annotated

import typer

from bellapy.cli.folder import given_folder
from bellapy.cli.options import RUNNING, Given, output_option, pick, takes
from bellapy.cli.session import session
from bellapy.compute.gpu.devices import wake
from bellapy.errors import ParameterError
from bellapy.params.fields import ALIGNMENT, OUTPUT, options_of
from bellapy.params.run import RunParams, WorkdirParams
from bellapy.params.wga import DEFAULT_SCORES, WgaParams, make_wga_params

Target = Annotated[
    str,
    typer.Argument(help="Genome whose places come first: FASTA, packed or not; - is standard input.", show_default=False),
]
Query = Annotated[str | None, typer.Argument(help="FASTA likewise; left out with --self.", show_default=False)]
Output = Annotated[str, output_option(".maf, .paf, .sam, .axt, .psl, .chain; .gz compresses; - is MAF on standard output.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help="maf, paf, sam, axt, psl or chain [default: by name].", rich_help_panel=OUTPUT),
]
Scores = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=ALIGNMENT,
        help="Score file as LASTZ reads it [default: HOXD70, gaps of g bases 400 + 30 g].",
    ),
]  # fmt: skip
Chain = Annotated[
    bool, typer.Option("--chain", help="Join alignments to chains, with -o FILE.chain.", rich_help_panel=OUTPUT)
]
Net = Annotated[
    str | None,
    typer.Option("--net", metavar="FILE", help="Write nets of the chains to this file too.", rich_help_panel=OUTPUT),
]
Plot = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", rich_help_panel=OUTPUT, help="Draw all alignments: .png, .svg or .pdf (needs matplotlib)."
    ),
]  # fmt: skip


@takes(options_of(WgaParams, WorkdirParams), pick(RunParams, "device"), RUNNING)
def wga(
    given: Given, target: Target, query: Query = None, output: Output = "-", output_format: Format = None,
    scores: Scores = None, chain: Chain = False, net: Net = None, plot: Plot = None,
) -> None:  # fmt: skip
    """Align two genomes."""
    if (query is None) != bool(given["itself"]):
        raise ParameterError("name a target and a query, or a target alone with --self")
    if target == query == "-":
        raise ParameterError("target and query: only one of them can be standard input")
    inputs = [path for path in (target, query, scores) if path is not None]
    with session(given, inputs, {"-o": output, "--net": net, "--plot": plot}) as run:
        params = _params(given, scores)
        if run.run.device == "cuda" or (run.run.device == "auto" and params.sensitive):
            wake()
        from bellapy.jobs.wga.run import Means, Request, align_files

        means = Means.of(run.run, run.report, params)
        request = Request(target, query, output, output_format, plot, net, chain)
        with given_folder(given, "wga", params.to_dict(), inputs) as work:
            align_files(request, params, means._replace(work=work))


def _params(given: Given, scores: str | None) -> WgaParams:
    """Parameters from options and a score file."""
    if scores is None:
        return make_wga_params(given, DEFAULT_SCORES)
    from bellapy.io.score_files import read_scores

    values, thresholds = read_scores(scores)
    return make_wga_params(given, values, **thresholds)
