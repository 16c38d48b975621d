"""The commands `map`, `index` and `pairwise`; cli.py adds them to the program."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from bellapy import __version__
from bellapy.errors import ParameterError

Output = Annotated[str, typer.Option("-o", "--output", help="File to write; .gz or .bgz compresses; - is standard output.")]
Threads = Annotated[int | None, typer.Option("-t", "--threads", help="[default: all cores]")]
ReportFile = Annotated[str | None, typer.Option("--report", help="Write what was done as JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
Match = Annotated[int, typer.Option(help="Score of a match.")]
Mismatch = Annotated[int, typer.Option(help="Score of a mismatch.")]
GapOpen = Annotated[str, typer.Option(help="Cost of opening a gap: one value, or two for two pieces.", metavar="N[,N]")]
GapExtend = Annotated[str, typer.Option(help="Cost of each base of a gap, one value or two.", metavar="N[,N]")]


class Session:
    """What surrounds a command: checks before it, its log and its report."""

    def __init__(
        self, inputs: list[str], outputs: list[str], threads: int | None, report: str | None, quiet: bool, debug: bool
    ):
        from bellapy.log import Report, set_up_logging, watch_compilation
        from bellapy.output import check_writable
        from bellapy.params import validate

        set_up_logging(quiet, debug)
        self.threads = threads if threads is not None else len(os.sched_getaffinity(0))
        validate({"threads": self.threads})
        if report in outputs:
            raise ParameterError(f"--report {report}: the output goes there; name another file")
        for path in [*outputs, *([report] if report else [])]:
            check_writable(path, inputs)
        self.command = shlex.join(["bellapy", *sys.argv[1:]])
        self.report, self._report_file = Report(self.command, __version__), report
        watch_compilation(self.report)

    def finish(self) -> None:
        self.report.finish()
        if self._report_file:
            from bellapy.output import open_output

            with open_output(self._report_file) as stream:
                stream.write(self.report.to_json())


def _numbers(option: str, text: str) -> list[int]:
    try:
        values = [int(value) for value in text.split(",")]
    except ValueError:
        raise ParameterError(f"{option} {text}: one or two whole numbers are needed, such as 4,24") from None
    if len(values) > 2:
        raise ParameterError(f"{option} {text}: at most two values")
    return values


def affine_scoring(match: int, mismatch: int, gap_open: str, gap_extend: str):
    """Scores from options; one value for both kinds of gap costs means one piece.

    Raises
    ------
    ParameterError : a value out of range, or unequal numbers of values.
    """
    from bellapy.params import AffineScoring, validate

    opens, extends = _numbers("--gap-open", gap_open), _numbers("--gap-extend", gap_extend)
    if len(opens) != len(extends):
        raise ParameterError("--gap-open and --gap-extend: give as many values to one as to the other")
    validate({"match": match, "mismatch": mismatch})
    for opened, extended in zip(opens, extends, strict=True):
        validate({"gap_open": opened, "gap_extend": extended})
    return AffineScoring(match, mismatch, opens[0], extends[0], opens[-1], extends[-1])


def pairwise(
    pairs: Annotated[str, typer.Argument(help="Two columns a line, query and target; - is standard input.")],
    output: Output = "-",
    mode: Annotated[str, typer.Option(help="global, or extend: from the beginning of both to the best end.")] = "global",
    match: Match = 2, mismatch: Mismatch = -4, gap_open: GapOpen = "4,24", gap_extend: GapExtend = "2,1",
    zdrop: Annotated[int | None, typer.Option(help="End an extension that falls so far below its best [default: never].")] = None,
    cigar: Annotated[bool, typer.Option("--cigar", help="The path, in cg:Z.")] = False,
    threads: Threads = None, report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Align given pairs with affine gap costs: index, score, query end and target end of each."""
    scoring = affine_scoring(match, mismatch, gap_open, gap_extend)
    if zdrop is not None and zdrop < 0:
        raise ParameterError(f"--zdrop {zdrop}: must not be below 0")
    session = Session([pairs], [output], threads, report_file, quiet, debug)
    from bellapy.jobs.pairwise import align_pairs
    from bellapy.output import open_output

    lines = align_pairs(pairs, mode, scoring, session.report, zdrop=zdrop, cigar=cigar, threads=session.threads)
    with open_output(output) as stream:
        for some in lines:
            stream.write(some)
    session.finish()


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command()(pairwise)
