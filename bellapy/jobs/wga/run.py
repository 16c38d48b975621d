"""The command's work from files to files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_threads
from bellapy.errors import InputError, ParameterError
from bellapy.io.genomes import load_genome
from bellapy.io.maf import check_sam_names, format_alignments, format_of
from bellapy.io.nets import format_nets
from bellapy.io.outputs import open_output
from bellapy.jobs.wga.chain import join_chains
from bellapy.jobs.wga.charts import make_charts
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.net import make_nets
from bellapy.jobs.wga.pipeline import align_genomes
from bellapy.jobs.wga.plot import draw_plot
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Genome
from bellapy.report.log import logger
from bellapy.report.pictures import check_plot
from bellapy.report.run_report import RunReport, Stage

MOST_BASES = 1 << 31  # of either genome: places have 32 bits
MOST_MASKED = 0.9


@dataclass(slots=True)
class ReadGenomesStage(Stage):
    """Bases of both genomes."""

    target_bases: int | None = None
    query_bases: int | None = None


@dataclass(slots=True)
class WriteAlignmentsStage(Stage):
    """Alignments or chains that were written, and the sum of their scores."""

    alignments: int | None = None
    score: int | None = None


class Request(NamedTuple):
    """What is asked for; query None : the target itself.  kind : of the output, None for what its name tells.

    plot, net : files for a picture and for nets, None for none.  chain : whether alignments are joined.
    """

    target: str
    query: str | None
    output: str
    kind: str | None
    plot: str | None
    net: str | None
    chain: bool


def align_files(request: Request, params: WgaParams, means: Means) -> None:
    """Read, align, write."""
    report, kind = means.report, format_of(request.output, request.kind)
    if request.chain and kind != "chain":
        raise ParameterError(f"--chain: joins alignments over long gaps, which {kind} does not show; write .chain")
    if request.plot:
        check_plot("--plot", request.plot)
    report.parameters = params.to_dict()
    target, query = _load(request, params, report, means.resources.threads)
    if kind == "sam":
        check_sam_names(request.target, target)
        check_sam_names(request.query or request.target, query)
    alignments = align_genomes(target, query, params, means)
    with report.stage(WriteAlignmentsStage("write")) as stage:
        chains = join_chains(alignments) if request.chain or request.net else []
        written = chains if request.chain else alignments
        with open_output(request.output) as stream:
            for text in format_alignments(kind, target, query, written):
                stream.write(text)
        if request.net:
            with open_output(request.net) as stream:
                for text in format_nets(make_nets(chains, target, query), target, query):
                    stream.write(text)
        if request.plot:
            draw_plot(request.plot, target, query, alignments)
        stage.alignments, stage.score = len(written), sum(found.score for found in written)
    if report.wants_charts:
        report.charts = make_charts(target, query, alignments)
    if not alignments:
        logger.warning("no alignment scores %s or more; the output holds none", f"{params.gappedthresh:,}")


def _load(request: Request, params: WgaParams, report: RunReport, threads: int) -> tuple[Genome, Genome]:
    with report.stage(ReadGenomesStage("read")) as stage:
        paths = [path for path in (request.target, request.query) if path is not None]
        target, query = (2 * map_threads(load_genome, paths, threads))[:2]
        stage.target_bases, stage.query_bases = target.n_bases, query.n_bases
    for path, genome in ((request.target, target), (request.query or request.target, query)):
        check_size(genome, path, params)
    return target, query


def check_size(genome: Genome, source: str, params: WgaParams) -> None:
    """Raise InputError for a genome that is too large, and warn of one without seeds; source : where it is from."""
    if len(genome.codes) >= MOST_BASES:
        raise InputError(source, f"has more than {MOST_BASES:,} bases; split it, by chromosome for example")
    masked = np.count_nonzero(genome.masked) / max(1, genome.n_bases)
    if masked > MOST_MASKED and not params.unmask:
        logger.warning(
            "%s: %.0f %% of the bases are lower case, and no seeds come from them (--unmask)", source, 100 * masked
        )  # fmt: skip
