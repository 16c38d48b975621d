"""The commands `map`, `index` and `pairwise`."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from bellapy.cli.options import RUNNING, THREADS_AND_LOG, Given, Output, Reads, output_option, pick, takes
from bellapy.cli.session import session
from bellapy.compute.gpu.devices import wake
from bellapy.compute.resources import Resources
from bellapy.errors import ParameterError
from bellapy.io.outputs import alignment_format, index_of, open_output
from bellapy.jobs.map.style import Style
from bellapy.params import map_preset
from bellapy.params.fields import check, fields_of, given_values, options_of
from bellapy.params.map import (
    IndexOptions,
    MapOptions,
    MapWriting,
    PairParams,
    ReferenceOptions,
    ScoreOptions,
    adjusted,
    make_pair_params,
)  # fmt: skip
from bellapy.params.reads import ReadParams
from bellapy.params.run import RunParams

MAPPING = options_of(MapOptions, ReferenceOptions, ReadParams, ScoreOptions, MapWriting)

Reference = Annotated[str, typer.Argument(help="FASTA, or a file made by `bellapy index`.", show_default=False)]
IndexFile = Annotated[
    str,
    output_option("Index file to write.", show_default=False),
]


@takes(MAPPING, pick(RunParams, "device"), RUNNING)
def map_command(given: Given, reference: Reference, reads: Reads, output: Output = "-") -> None:
    """Reads mapped to a reference."""
    check(given_values(given, MAPPING), MAPPING)
    if reference == "-" and "-" in reads:
        raise ParameterError("-: standard input holds the reference or the reads; name a file for the other")
    style = _style(given)
    kind = _format(output, given["output_format"], bool(given["no_align"]), style)
    adjusted(map_preset(given["preset"]), given)  # raised before the work
    index = index_of(output, kind)
    outputs = {"-o": output, **({f"the index {index}": index} if index else {})}
    with session(given, [reference, *reads], outputs) as run:
        if run.run.device == "cuda":
            wake()  # while the rest is loaded
        from bellapy.jobs.map import run as job

        line, group, circular = job.parse_texts(given["read_group"], given["circular"] or (), not given["no_align"])
        resources, store = job.resources_for(run.run, run.report, reference, reads), job.beside(output, run.run.max_memory)
        wanted = job.Job(
            reference, reads, output, kind, replace(style, read_group=group), line, given["preset"],
            lambda params: adjusted(params, given), not given["no_align"], resources, store,
            ReadParams(**given_values(given, fields_of(ReadParams))), circular,
        )  # fmt: skip
        job.map_reads(wanted, run.report)


def _format(output: str, given: str | None, no_align: bool, style: Style) -> str:
    """paf, sam or bam, by the option or by the output's name."""
    kind = alignment_format(output, given, cram=True)
    if no_align and (kind != "paf" or style.cs or style.ds or style.eqx):
        raise ParameterError("--no-align: without alignments there are no paths; write PAF, without --cs, --ds and --eqx")
    return kind


def _style(given: Given) -> Style:
    wanted = MapWriting(**given_values(given, MapWriting._fields))
    return Style(
        cs=wanted.cs or wanted.cs_long, cs_long=wanted.cs_long, ds=wanted.ds,
        md=wanted.md, eqx=wanted.eqx, hard_clip=wanted.hard_clip, secondary=wanted.secondary == "yes",
        paf_no_hit=wanted.paf_no_hit, sam_hit_only=wanted.sam_hit_only,
    )  # fmt: skip


@takes(options_of(IndexOptions), pick(RunParams, "device"), RUNNING)
def index_command(
    given: Given,
    reference: Annotated[str, typer.Argument(help="FASTA, plain or gzip.", show_default=False)],
    output: IndexFile,
) -> None:
    """The index of a reference."""
    if output == "-":
        raise ParameterError("-o -: an index is a file; name one")
    params = map_preset(given["preset"] or IndexOptions._field_defaults["preset"])
    with session(given, [reference], {"-o": output}) as run:
        if run.run.device == "cuda":
            wake()
        from bellapy.jobs.map import run as job

        params = replace(params, **given_values(given, ("k", "window")))
        resources = job.resources_for(run.run, run.report, reference, [])
        job.index_file(reference, output, params, run.report, resources, job.beside(output, run.run.max_memory))


@takes(options_of(PairParams), THREADS_AND_LOG, pick(RunParams, "device"))
def pairwise(
    given: Given,
    pairs: Annotated[str, typer.Argument(help="Two columns a line, query and target; or FASTA, FASTQ or BAM of queries.")],
    targets: Annotated[str | None, typer.Argument(help="FASTA, FASTQ or BAM of as many targets.")] = None,
    output: Output = "-",
) -> None:
    """Affine alignments of given pairs."""
    params = make_pair_params(given)
    with session(given, [pairs, *([] if targets is None else [targets])], {"-o": output}) as run:
        from bellapy.jobs.pairwise import align_files

        lines = align_files((pairs, targets), params, run.report, Resources.of(run.run, run.report.devices))
        with open_output(output) as stream:
            for some in lines:
                stream.write(some)
