"""The command `correct`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from bellapy.params.run import RunParams, WorkdirParams

if TYPE_CHECKING:  # loaded when needed
    import numpy as np

    from bellapy.io.workdir import Workdir
    from bellapy.jobs.correct.members import Traced, Tracer
    from bellapy.jobs.overlap.ends import Steps
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


@takes(FINDING, options_of(CorrectParams, RunParams, WorkdirParams), RUNNING)
def correct(given: Given, reads: Reads, output: Output = "-", overlaps: OverlapFile = None) -> None:
    """Reads corrected by each other."""
    chosen = make_correct_params(given)
    _check(given, overlaps)
    finding = {"min_overlap": SHORTEST_OVERLAP, **given_values(given, FIELDS.keys() & FINDING.keys())}
    params = make_params(given.get("preset"), **finding)
    with session(given, [*reads, *([overlaps] if overlaps else [])], {"-o": output}) as run:
        from bellapy.jobs.correct.report import start_report
        from bellapy.jobs.overlap.report import REASONS
        from bellapy.jobs.overlap.report import start_report as start_overlaps

        params = with_run(params, run)
        start_report(start_overlaps(run.report), REASONS)
        run.report.parameters = {**params.to_dict(), "correct": asdict(chosen)}
        with _folder(given, [*reads, *([overlaps] if overlaps else [])], params, chosen, output) as work:
            loaded = load_reads(run, params, reads, overlaps=not overlaps, with_paths=True)
            found = _read_overlaps(run, loaded, overlaps) if overlaps else _find_overlaps(run, loaded, work)
            _correct(run, *found, chosen, output, work)


@contextmanager
def _folder(
    given: Given, inputs: list[str], params: Params, chosen: CorrectParams, output: str
) -> Iterator[Workdir | None]:  # fmt: skip
    """The folder that was asked for."""
    if given["workdir"] is None:
        yield None
        return
    from bellapy.io.workdir import open_workdir

    options = {**params.to_dict(), "correct": asdict(chosen), "qualities": _is_fastq(output)}
    del options["run"]  # does not change the output
    with open_workdir(given["workdir"], "correct", options, inputs, keep=bool(given["keep_workdir"])) as work:
        yield work


def _is_fastq(output: str) -> bool:
    return output.removesuffix(".gz").removesuffix(".bgz").endswith((".fq", ".fastq"))


def _check(given: Given, overlaps: str | None) -> None:
    if given["keep_workdir"] and given["workdir"] is None:
        raise ParameterError("--keep-workdir: name a folder with --workdir")
    for name, field in FINDING.items():
        if overlaps and given[name] is not None:
            raise ParameterError(f"{field.flags[-1]}: rules how overlaps are found; leave out --overlaps")


def _correct(
    run: Session, reads: ReadSet, overlaps: Overlaps, trace: Tracer, params: CorrectParams, output: str,
    work: Workdir | None,
) -> None:  # fmt: skip
    from bellapy.compute.resources import Resources
    from bellapy.io.outputs import open_output
    from bellapy.jobs.correct.output import Writer
    from bellapy.jobs.correct.pipeline import Job, correct_reads

    job = Job(reads, overlaps, trace, params, Resources.of(run.run, run.report.devices), work)
    writer = Writer(params)
    corrected = correct_reads(job, run.report, writer.take_qualities if _is_fastq(output) else None)
    with open_output(output) as stream:
        for name, found in zip(reads.names, corrected, strict=True):
            for record in writer.records(name, found):
                stream.write(record)
    writer.tell(run.report)


def _find_overlaps(run: Session, loaded: Loaded, work: Workdir | None) -> tuple[ReadSet, Overlaps, Tracer]:
    """The reads as given, their overlaps, and what makes the paths of these."""
    from bellapy.compute.resources import Resources
    from bellapy.engines.ends import End
    from bellapy.engines.trace import map_paths
    from bellapy.jobs.correct.kept import keep_overlaps
    from bellapy.jobs.correct.members import pack
    from bellapy.jobs.overlap.pipeline import overlap_reads

    params: Params = loaded.params

    def find() -> tuple[Overlaps, Steps]:
        return overlap_reads(loaded.reads, params, run.report)

    canonical, steps = find() if work is None else keep_overlaps(work, find)
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
