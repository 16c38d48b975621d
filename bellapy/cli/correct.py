"""The command `correct`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from bellapy.cli.options import RUNNING, Given, Output, Reads, pick, takes
from bellapy.cli.reading import Loaded, load_reads, with_run
from bellapy.cli.session import Session, session
from bellapy.errors import ParameterError
from bellapy.params import KmerParams, Params, make_params
from bellapy.params.correct import SHORTEST_OVERLAP, CorrectParams, make_correct_params
from bellapy.params.fields import INPUT, given_values, options_of
from bellapy.params.overlap import FIELDS, PresetParams
from bellapy.params.run import RunParams

if TYPE_CHECKING:  # loaded when needed
    import numpy as np

    from bellapy.jobs.correct.members import Traced, Tracer
    from bellapy.records import Overlaps, ReadSet

OverlapFile = Annotated[
    str | None,
    typer.Option(
        "--overlaps", metavar="FILE", help="PAF of these reads with paths in cg:Z [default: overlaps are found here].",
        rich_help_panel=INPUT,
    ),
]  # fmt: skip
FINDING = {
    **options_of(PresetParams), **pick(KmerParams, "error_rate depth"),
    "min_overlap": replace(FIELDS["min_overlap"], default=SHORTEST_OVERLAP),
}  # fmt: skip
"""Options of `overlap` that rule how overlaps are found."""


@takes(FINDING, options_of(CorrectParams, RunParams), RUNNING)
def correct(given: Given, reads: Reads, output: Output = "-", overlaps: OverlapFile = None) -> None:
    """Reads corrected by each other."""
    chosen = make_correct_params(given)
    _check(given, output, overlaps)
    finding = {"min_overlap": SHORTEST_OVERLAP, **given_values(given, FIELDS.keys() & FINDING.keys())}
    params = make_params(given.get("preset"), **finding)
    with session(given, [*reads, *([overlaps] if overlaps else [])], {"-o": output}) as run:
        from bellapy.jobs.correct.report import start_report
        from bellapy.jobs.overlap.report import REASONS
        from bellapy.jobs.overlap.report import start_report as start_overlaps

        params = with_run(params, run)
        start_report(start_overlaps(run.report), REASONS)
        run.report.parameters = {**params.to_dict(), "correct": asdict(chosen)}
        loaded = load_reads(run, params, reads, overlaps=not overlaps)
        found = _read_overlaps(run, loaded, overlaps) if overlaps else _find_overlaps(run, loaded)
        _correct(run, *found, chosen, output)


def _check(given: Given, output: str, overlaps: str | None) -> None:
    if output.removesuffix(".gz").removesuffix(".bgz").endswith((".fq", ".fastq")):
        raise ParameterError(f"-o {output}: corrected reads have no qualities; name a FASTA file, such as corrected.fa.gz")
    for name, field in FINDING.items():
        if overlaps and given[name] is not None:
            raise ParameterError(f"{field.flags[-1]}: rules how overlaps are found; leave out --overlaps")


def _correct(
    run: Session, reads: ReadSet, overlaps: Overlaps, trace: Tracer, params: CorrectParams, output: str
) -> None:  # fmt: skip
    from bellapy.compute.resources import Resources
    from bellapy.io.outputs import open_output
    from bellapy.jobs.correct.output import Writer
    from bellapy.jobs.correct.pipeline import Job, correct_reads

    job, writer = Job(reads, overlaps, trace, params, Resources.of(run.run, run.report.devices)), Writer(params)
    with open_output(output) as stream:
        for name, found in zip(reads.names, correct_reads(job, run.report), strict=True):
            for record in writer.records(name, found):
                stream.write(record)
    writer.tell(run.report)


def _find_overlaps(run: Session, loaded: Loaded) -> tuple[ReadSet, Overlaps, Tracer]:
    """The reads as given, their overlaps, and what makes the paths of these."""
    from bellapy.compute.resources import Resources
    from bellapy.engines.ends import End
    from bellapy.engines.trace import map_paths
    from bellapy.jobs.correct.members import pack
    from bellapy.jobs.overlap.pipeline import overlap_reads

    params: Params = loaded.params
    canonical, steps = overlap_reads(loaded.reads, params, run.report)
    reads, overlaps = loaded.restore(canonical, with_bases=True)
    end, resources = End.of(params.extension.extension), Resources.of(params.run, run.report.devices)

    def trace(rows: np.ndarray) -> Iterator[Traced]:
        return map_paths(pack, reads, overlaps.take(rows), steps, end, resources)

    return reads, overlaps, trace


def _read_overlaps(run: Session, loaded: Loaded, path: str) -> tuple[ReadSet, Overlaps, Tracer]:
    """The same from a file."""
    import numpy as np

    from bellapy.io.paf_paths import read_path_overlaps
    from bellapy.jobs.correct.report import OverlapsStage
    from bellapy.jobs.overlap.canonical import given_reads

    reads = given_reads(loaded.reads, loaded.order, loaded.params.run.threads, with_bases=True)
    with run.report.stage(OverlapsStage("overlaps")) as stage:
        found = read_path_overlaps(path, reads)
        stage.overlaps, stage.with_itself, stage.twice = len(found.overlaps), found.n_self, found.n_twice

    def trace(rows: np.ndarray) -> Iterator[Traced]:
        sizes = np.diff(found.offsets)
        mask = np.zeros(len(sizes), bool)
        mask[rows] = True
        yield found.runs[np.repeat(mask, sizes)], sizes[rows], found.columns[rows]

    return reads, found.overlaps, trace
