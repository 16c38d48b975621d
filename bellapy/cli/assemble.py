"""The commands `assemble` and `polish`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bellapy.cli.folder import given_folder
from bellapy.cli.options import RUNNING, Given, Output, Reads, pick, takes
from bellapy.cli.reading import load_reads, with_run
from bellapy.cli.session import session
from bellapy.params import KmerParams, Params, make_params
from bellapy.params.assemble import AssembleParams, AssembleWriting, make_assemble_params
from bellapy.params.fields import given_values, options_of
from bellapy.params.overlap import FIELDS, PresetParams
from bellapy.params.run import RunParams, WorkdirParams

if TYPE_CHECKING:  # loaded when needed
    from bellapy.api.assembling import Assembled

FINDING = {**options_of(PresetParams), **pick(KmerParams, "error_rate depth")}
"""Options of `overlap` that rule how overlaps are found."""
GFA = "gfa"


@takes(FINDING, options_of(AssembleParams, AssembleWriting, RunParams, WorkdirParams), RUNNING)
def assemble(given: Given, reads: Reads, output: Output = "-") -> None:
    """Reads to contigs."""
    from bellapy.io.outputs import check_sequence_name

    check_sequence_name(output, "contigs are written as GFA to .gfa, and as FASTA to any other name")
    chosen = make_assemble_params(given)
    params = make_params(given.get("preset"), **given_values(given, FIELDS.keys() & FINDING.keys()))
    with session(given, reads, {"-o": output, "--gfa": given["gfa"]}) as run:
        params = with_run(params, run)
        run.report.parameters = {**params.to_dict(), "assemble": asdict(chosen)}
        with given_folder(given, "assemble", _ruling(params, chosen), reads) as work:
            from bellapy.jobs.overlap.report import start_report

            start_report(run.report)
            loaded = load_reads(run, params, reads, overlaps=True, with_paths=True)
            from bellapy.api.assembling import Assembler

            found = Assembler(loaded.params, chosen, run.report, work).assemble(loaded.reads)
            _write(found, output, given["gfa"])


def _ruling(params: Params, chosen: AssembleParams) -> dict[str, Any]:
    """What rules the output; a folder is gone on with where it is the same."""
    options = {**params.to_dict(), "assemble": asdict(chosen)}
    del options["run"]
    return options


def _write(found: Assembled, output: str, gfa: str | None) -> None:
    from bellapy.io.gfa import format_fasta, format_gfa
    from bellapy.io.outputs import ending_of, open_output

    for path in (output, gfa):
        if path is None:
            continue
        as_gfa = path == gfa or ending_of(path) == GFA
        with open_output(path) as stream:
            for text in format_gfa(found.segments, found.links) if as_gfa else format_fasta(found.segments):
                stream.write(text)
