"""The command `exact`; app.py adds it to the program."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from bellapy import __version__

Name = Annotated[str | None, typer.Option(help="Record to take, where the file holds several.", metavar="NAME")]
Mode = Annotated[
    str | None,
    typer.Option(
        help="local: the best part of both. global: both from end to end. semiglobal: gaps at the ends of either sequence "
        "cost nothing [default: local]."
    ),
]
Output = Annotated[
    str,
    typer.Option("-o", "--output", help=".paf, .sam or .txt (side by side); .gz compresses; - is PAF on standard output."),
]
ScoreOnly = Annotated[bool, typer.Option("--score-only", help="No path: a line with the score and where it ends.")]
Strand = Annotated[str | None, typer.Option(help="Strands of A to align with B: both, forward, reverse [default: both].")]
Match = Annotated[int | None, typer.Option(help="Score of a match [default: 1].")]
Mismatch = Annotated[int | None, typer.Option(help="Score of a mismatch [default: -3].")]
GapOpen = Annotated[
    int | None,
    typer.Option(
        help="Cost of opening a gap: one of g bases costs open + g x extend, as in minimap2, BWA, WFA and BLAST. CUDAlign's "
        "and parasail's first base of a gap costs this and one extension together: 3 and 2 here are 5 and 2 there "
        "[default: 3]."
    ),
]
GapExtend = Annotated[int | None, typer.Option(help="Cost of every base of a gap, the first one too [default: 2].")]
Plot = Annotated[
    str | None, typer.Option(help="Draw the path and what was computed: .png, .svg or .pdf (needs matplotlib).")
]
Workdir = Annotated[str | None, typer.Option(help="Folder to keep what is done; the same command goes on after a stop.")]
Threads = Annotated[int | None, typer.Option("-t", "--threads", help="[default: all cores]")]
ReportFile = Annotated[str | None, typer.Option("--report", help="Write what was done as JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


def exact(
    query: Annotated[str, typer.Argument(metavar="A", help="The query: FASTA or FASTQ, plain or gzip.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="B", help="The target, likewise.", show_default=False)],
    output: Output = "-", mode: Mode = None, query_name: Name = None, target_name: Name = None,
    score_only: ScoreOnly = False, strand: Strand = None, match: Match = None, mismatch: Mismatch = None,
    gap_open: GapOpen = None, gap_extend: GapExtend = None, plot: Plot = None, workdir: Workdir = None,
    threads: Threads = None, report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """The optimal alignment of two long sequences with affine gaps, with its path: provably no other scores higher."""
    from bellapy.io.outputs import check_outputs, open_output
    from bellapy.params import make_exact_params, validate
    from bellapy.report.log import Report, set_up_logging, watch_compilation

    set_up_logging(quiet, debug)
    threads = threads if threads is not None else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    validate({"threads": threads})
    params = make_exact_params(
        mode=mode, strand=strand, match=match, mismatch=mismatch, gap_open=gap_open, gap_extend=gap_extend
    )
    check_outputs({"-o": output, "--plot": plot, "--report": report_file}, [query, target])
    report = Report(shlex.join(["bellapy", *sys.argv[1:]]), __version__)
    watch_compilation(report)
    from bellapy.jobs.exact.pipeline import Request, align_files

    align_files(Request(query, target, query_name, target_name, output, score_only, plot, workdir, threads), params, report)
    report.finish()
    if report_file:
        with open_output(report_file) as stream:
            stream.write(report.to_json())


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(exact)
