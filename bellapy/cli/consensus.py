"""The command `consensus`."""

from __future__ import annotations

from typing import Annotated

import typer

from bellapy.cli.options import THREADS_AND_LOG, Given, Output, pick, takes
from bellapy.cli.session import session
from bellapy.compute.resources import Resources
from bellapy.errors import ParameterError
from bellapy.io.outputs import check_sequence_name, open_output
from bellapy.params.correct import ConsensusWriting, PoaScoring
from bellapy.params.fields import check, given_values, options_of
from bellapy.params.run import RunParams

Windows = Annotated[
    list[str],
    typer.Argument(help="FASTA or FASTQ; records of one name, one after another, are a window.", show_default=False),
]


@takes(options_of(ConsensusWriting, PoaScoring), pick(RunParams, "device"), THREADS_AND_LOG)
def consensus(given: Given, windows: Windows, output: Output = "-") -> None:
    """Consensus of windows of sequences."""
    scores = given_values(given, PoaScoring._fields)
    check(scores, options_of(PoaScoring))
    if windows.count("-") > 1:
        raise ParameterError("name standard input (-) only once")
    check_sequence_name(output, "the consensus is written as FASTA; name another file")
    scoring = PoaScoring(**scores)
    with session(given, windows, {"-o": output}) as run:
        from bellapy.jobs.windows import find_consensus

        resources = Resources.of(run.run, run.report.devices)
        lines = find_consensus(windows, scoring, run.report, resources, with_alignment=bool(given["msa"]))
        with open_output(output) as stream:
            for some in lines:
                stream.write(some)
