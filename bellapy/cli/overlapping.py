"""What the commands of the job `overlap` share: parameters, session, output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from bellapy.cli.options import RUNNING, Given
from bellapy.cli.reading import with_run
from bellapy.cli.session import Session, session
from bellapy.errors import ParameterError
from bellapy.params import Params, make_params
from bellapy.params.fields import INPUT, OUTPUT, given_values, options_of
from bellapy.params.overlap import FIELDS, WritingParams
from bellapy.params.run import RunParams
from bellapy.version import __version__

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.overlap_writer import Destination
    from bellapy.jobs.overlap.ends import Steps
    from bellapy.jobs.overlap.stored_reads import SomeOverlaps
    from bellapy.records import Overlaps, Paths, ReadSet

TargetFile = Annotated[
    str | None,
    typer.Option(
        "--targets", metavar="FILE", help="Only overlaps of the reads, as queries, with those of this file.",
        rich_help_panel=INPUT, show_default=False,
    ),
]  # fmt: skip
ALL_RUNNING = {**options_of(RunParams), **RUNNING}
SkipAlignment = Annotated[
    bool, typer.Option("--skip-alignment", help="Report candidates, align nothing.", rich_help_panel=OUTPUT)
]


def destination(output: str, given: Given, skip_alignment: bool = False) -> Destination:
    """The output that the options of a command ask for."""
    from bellapy.io.overlap_writer import choose_output

    target = choose_output(
        output, **WritingParams(**given_values(given, WritingParams._fields))._asdict(),
        trim=given["trim_identity"] is not None,
    )  # fmt: skip
    if skip_alignment and target.paths:
        raise ParameterError("--skip-alignment: without alignments there are no paths; write PAF, without --cigar")
    return target


@contextmanager
def overlap_session(given: Given, inputs: list[str], outputs: dict[str, str | None]) -> Iterator[tuple[Session, Params]]:
    """A session with the parameters that were given."""
    from bellapy.jobs.overlap.report import start_report

    params = make_params(given.get("preset"), **given_values(given, FIELDS))
    with session(given, inputs, outputs) as run:
        params = with_run(params, run)
        start_report(run.report)
        run.report.parameters = params.to_dict()
        yield run, params


@contextmanager
def charting(run: Session, reads: ReadSet) -> Iterator[Callable[[Overlaps], None]]:
    """A function that adds overlaps to the charts of the report, if one is asked for."""
    if not run.report.wants_charts:
        yield lambda overlaps: None
        return
    from bellapy.jobs.overlap.charts import OverlapCharts

    charts = OverlapCharts(reads)
    yield charts.add
    charts.finish(run.report)


def write_plain(run: Session, reads: ReadSet, parts: Iterable[Overlaps], output: Destination) -> None:
    """Write overlaps without paths, some at a time."""
    from bellapy.compute.threads import consume_ahead
    from bellapy.io.overlap_writer import open_writer
    from bellapy.io.paf import format_overlaps
    from bellapy.report.run_report import WriteStage

    threads, command = run.run.threads, run.report.command
    with (
        charting(run, reads) as add,
        run.report.stage(WriteStage("write")) as stage,
        open_writer(output, reads, command, __version__, threads) as write,
    ):
        stage.lines = 0
        for overlaps in parts:
            consume_ahead(format_overlaps(reads, overlaps, output.format, threads, output.both_directions), write, threads)
            add(overlaps)
            stage.lines += len(overlaps) * (1 + output.both_directions)


def write_with_paths(
    run: Session, reads: ReadSet, parts: Iterable[SomeOverlaps], n_overlaps: int, steps: Steps, params: Params,
    output: Destination,
) -> None:  # fmt: skip
    """Write overlaps with their paths; reads : all, perhaps without bases.  n_overlaps : of all parts."""
    from bellapy.compute.threads import consume_ahead
    from bellapy.io.overlap_writer import formatter, open_writer
    from bellapy.jobs.overlap.estimate import with_min_overlap
    from bellapy.jobs.overlap.paths import paths_stage

    threads, params = run.run.threads, with_min_overlap(params, reads.lengths)
    with charting(run, reads) as add, open_writer(output, reads, run.report.command, __version__, threads) as write:

        def shown(part: SomeOverlaps) -> tuple[ReadSet, Overlaps, Callable[[Overlaps, Paths], bytes]]:
            lines = formatter(output, part.reads)

            def show_and_chart(some: Overlaps, paths: Paths) -> bytes:
                add(part.of_all(some))
                return lines(some, paths)

            return part.reads, part.overlaps, show_and_chart

        consume_ahead(paths_stage(map(shown, parts), n_overlaps, steps, params, run.report), write, threads)
