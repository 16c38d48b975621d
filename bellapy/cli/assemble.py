"""The commands `assemble` and `polish`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from bellapy.cli.folder import given_folder
from bellapy.cli.options import RUNNING, Given, Output, Reads, pick, takes
from bellapy.cli.session import session, with_run
from bellapy.errors import ParameterError
from bellapy.io.outputs import GFA, check_sequence_name, ending_of
from bellapy.params import KmerParams, Params, make_params
from bellapy.params.assemble import (
    POLISHING,
    AssembleParams,
    AssembleWriting,
    PolishParams,
    make_assemble_params,
    make_polish_params,
)
from bellapy.params.fields import given_values, options_of
from bellapy.params.overlap import FIELDS, PresetParams
from bellapy.params.reads import POOR, SHORT
from bellapy.params.run import RunParams, WorkdirParams
from bellapy.report.run_report import Dropped

FINDING = {**options_of(PresetParams), **pick(KmerParams, "error_rate depth")}
"""Options of `overlap` that rule how overlaps are found."""


@takes(FINDING, options_of(AssembleParams, AssembleWriting, RunParams, WorkdirParams), RUNNING)
def assemble(given: Given, reads: Reads, output: Output = "-") -> None:
    """Reads to contigs."""
    if given["gfa"] is not None and ending_of(given["gfa"]) != GFA:
        raise ParameterError(f"--gfa {given['gfa']}: name a file that ends in .gfa or .gfa.gz")
    check_sequence_name(output, "contigs are written as GFA to .gfa, and as FASTA to any other name")
    chosen = make_assemble_params(given)
    params = make_params(given.get("preset"), **given_values(given, FIELDS.keys() & FINDING.keys()))
    outputs = {"-o": output, "--gfa": given["gfa"], "--read-table": given["read_table"]}
    with session(given, reads, outputs, keeps_freed=False) as run:
        params = with_run(params, run)
        run.report.parameters = {**params.to_dict(), "assemble": asdict(chosen)}
        with given_folder(given, "assemble", _ruling(params, chosen), reads) as work:
            from bellapy.api.assembling import assemble_reads

            found = assemble_reads(reads, params, chosen, run.report, work)
            found.write(output)
            if given["gfa"] is not None:
                found.write(given["gfa"])
            if given["read_table"] is not None:
                found.write_reads(given["read_table"])


def _ruling(params: Params, chosen: AssembleParams) -> dict[str, Any]:
    """What rules the output; a folder is gone on with where it is the same."""
    options = {**params.to_dict(), "assemble": asdict(chosen)}
    del options["run"]
    return options


Drafts = Annotated[str, typer.Argument(help="Contigs of any assembler, as FASTA.", show_default=False)]


@takes(POLISHING, options_of(PolishParams, RunParams, WorkdirParams), RUNNING)
def polish(given: Given, draft: Drafts, reads: Reads, output: Output = "-") -> None:
    """Contigs corrected by reads."""
    check_sequence_name(output, "contigs are written as FASTA; name another file")
    if draft == "-" and "-" in reads:
        raise ParameterError("-: standard input holds the draft or the reads; name a file for the other")
    params, rounds = make_polish_params(given)
    with session(given, [draft, *reads], {"-o": output}) as run:
        run.report.parameters = {"polish": {**asdict(params), "rounds": rounds}}
        run.report.dropped = Dropped(SHORT, POOR)
        options = dict(run.report.parameters)
        with given_folder(given, "polish", options, [draft, *reads]) as work:
            from bellapy.api.polishing import polish_files

            polish_files(draft, reads, output, with_run(make_params(), run), params, rounds, run.report, work)
