"""The command `wga`; app.py adds it to the program."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from bellapy import __version__
from bellapy.errors import ParameterError

Output = Annotated[
    str,
    typer.Option("-o", "--output", help=".maf, .paf, .sam, .axt or .chain; .gz compresses; - is MAF on standard output."),
]
Format = Annotated[str | None, typer.Option("--format", help="maf, paf, sam, axt or chain [default: by name].")]
Itself = Annotated[bool, typer.Option("--self", help="Align the target with itself; each pair of places once.")]
Scores = Annotated[str | None, typer.Option(help="Score file as LASTZ reads it [default: HOXD70, gaps 400 and 30].")]
Seed = Annotated[str | None, typer.Option(help="12of19, 14of22, a number of bases, or ones and zeros [default: 12of19].")]
NoTransition = Annotated[bool, typer.Option("--notransition", help="Seeds match in every base that counts.")]
Step = Annotated[int | None, typer.Option(help="Take seeds from every so many-th base of the target [default: 1].")]
MaxCopies = Annotated[int | None, typer.Option(help="Leave out words with more places in the target [default: 1000].")]
Unmask = Annotated[bool, typer.Option("--unmask", help="Seeds from lower-case bases too.")]
Sensitive = Annotated[bool, typer.Option("--sensitive", help="Extend every seed with gaps: no ungapped filter. Slow.")]
HspThresh = Annotated[int | None, typer.Option(help="Least score of an ungapped match [default: 3000].")]
YDrop = Annotated[int | None, typer.Option(help="End a gapped extension that falls so far [default: a gap of 300].")]
GappedThresh = Annotated[int | None, typer.Option(help="Least score of an alignment [default: --hspthresh].")]
NoCut = Annotated[bool, typer.Option("--no-cut", help="Keep alignments that run through unrelated sequence whole.")]
AllCopies = Annotated[bool, typer.Option("--all-copies", help="Keep alignments with better ones on both genomes.")]
OneToOne = Annotated[bool, typer.Option("--one-to-one", help="Every base in one alignment at most.")]
Identity = Annotated[float | None, typer.Option(help="Least share of equal bases in aligned pairs, 0 to 1 [default: 0].")]
Chain = Annotated[bool, typer.Option("--chain", help="Join alignments to chains, with -o FILE.chain.")]
Plot = Annotated[str | None, typer.Option(help="Draw all alignments: .png, .svg or .pdf (needs matplotlib).")]
Threads = Annotated[int | None, typer.Option("-t", "--threads", help="[default: all cores]")]
ReportFile = Annotated[str | None, typer.Option("--report", help="Write what was done as JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


def wga(
    target: Annotated[str, typer.Argument(help="FASTA, plain or gzip; - is standard input.", show_default=False)],
    query: Annotated[str | None, typer.Argument(help="FASTA likewise; left out with --self.", show_default=False)] = None,
    output: Output = "-", output_format: Format = None, itself: Itself = False, scores: Scores = None, seed: Seed = None,
    notransition: NoTransition = False, step: Step = None, max_copies: MaxCopies = None, unmask: Unmask = False,
    sensitive: Sensitive = False, hspthresh: HspThresh = None, ydrop: YDrop = None, gappedthresh: GappedThresh = None,
    no_cut: NoCut = False, all_copies: AllCopies = False, one_to_one: OneToOne = False, identity: Identity = None,
    chain: Chain = False, plot: Plot = None, threads: Threads = None, report_file: ReportFile = None, quiet: Quiet = False,
    debug: Debug = False,
) -> None:  # fmt: skip
    """Align two genomes: all local alignments on both strands, as sensitive as LASTZ."""
    from bellapy.io.outputs import check_outputs, open_output
    from bellapy.report.log import Report, set_up_logging, watch_compilation

    set_up_logging(quiet, debug)
    if (query is None) != itself:
        raise ParameterError("name a target and a query, or a target alone with --self")
    if target == query == "-":
        raise ParameterError("target and query: only one of them can be standard input")
    threads = threads if threads is not None else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    inputs = [path for path in (target, query, scores) if path is not None]
    check_outputs({"-o": output, "--plot": plot, "--report": report_file}, inputs)
    params = _params(
        scores, seed=seed, transition=not notransition, step=step, max_copies=max_copies, unmask=unmask, sensitive=sensitive,
        hspthresh=hspthresh, ydrop=ydrop, gappedthresh=gappedthresh, cut=not no_cut, all_copies=all_copies,
        one_to_one=one_to_one, identity=identity, itself=itself, threads=threads,
    )  # fmt: skip
    report = Report(shlex.join(["bellapy", *sys.argv[1:]]), __version__)
    watch_compilation(report)
    from bellapy.jobs.wga.run import Request, align_files

    align_files(Request(target, query, output, output_format, plot, chain, threads), params, report)
    report.finish()
    if report_file:
        with open_output(report_file) as stream:
            stream.write(report.to_json())


def _params(scores: str | None, **options):
    """Parameters from options; a score file's own thresholds stand in for those not given."""
    from bellapy.params.wga import DEFAULT_SCORES, make_wga_params

    values = DEFAULT_SCORES
    if scores is not None:
        from bellapy.io.score_files import read_scores

        values, found = read_scores(scores)
        options |= {name: value for name, value in found.items() if options.get(name) is None}
    return make_wga_params(values, **options)


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(wga)
