"""The command `consensus`; app.py adds it to the program."""

from __future__ import annotations

from typing import Annotated

import typer

from bellapy.errors import ParameterError

Windows = Annotated[
    list[str],
    typer.Argument(help="FASTA or FASTQ; records of one name, one after another, are a window.", show_default=False),
]
Output = Annotated[str, typer.Option("-o", "--output", help="File to write; .gz or .bgz compresses; - is standard output.")]
Msa = Annotated[bool, typer.Option("--msa", help="Write the sequences with gaps instead of the consensus.")]
Match = Annotated[int | None, typer.Option(help="Score of a match [default: 3].")]
Mismatch = Annotated[int | None, typer.Option(help="Score of a mismatch [default: -5].")]
Gap = Annotated[int | None, typer.Option(help="Score of a gap, per base [default: -4].")]
Threads = Annotated[int | None, typer.Option("-t", "--threads", help="[default: all cores]")]
ReportFile = Annotated[str | None, typer.Option("--report", help="Write what was done as JSON.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only warnings and errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]


def consensus(
    windows: Windows, output: Output = "-", msa: Msa = False, match: Match = None, mismatch: Mismatch = None,
    gap: Gap = None, threads: Threads = None, report_file: ReportFile = None, quiet: Quiet = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Consensus of windows of sequences by partial-order alignment."""
    from bellapy.cli.map import Session
    from bellapy.params import validate

    given = {name: value for name, value in (("match", match), ("mismatch", mismatch), ("gap", gap)) if value is not None}
    validate(given)
    if windows.count("-") > 1:
        raise ParameterError("name standard input (-) only once")
    session = Session(windows, [output], threads, report_file, quiet, debug)
    from bellapy.engines.poa.align import PoaScoring
    from bellapy.io.outputs import open_output
    from bellapy.jobs.windows import find_consensus

    lines = find_consensus(windows, PoaScoring(**given), session.report, with_alignment=msa, threads=session.threads)
    with open_output(output) as stream:
        for some in lines:
            stream.write(some)
    session.finish()


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(consensus)
