"""Overlaps of reads: the job `overlap` as a function, and as the command line asks for it, from files to a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bellapy.api.inputs import Reads
from bellapy.api.reading import Loaded, TooLarge, load_given, load_reads
from bellapy.api.tables import OverlapTable
from bellapy.compute.threads import consume_ahead, usable_cores
from bellapy.errors import MemoryLimitError
from bellapy.io.overlap_writer import Destination, formatter, open_writer
from bellapy.io.paf import format_overlaps
from bellapy.jobs.overlap.align import Steps
from bellapy.jobs.overlap.canonical import as_given
from bellapy.jobs.overlap.filter import paths_stage
from bellapy.jobs.overlap.pipeline import candidate_overlaps, overlap_reads
from bellapy.jobs.overlap.report import start_report
from bellapy.jobs.overlap.stored_reads import SomeOverlaps
from bellapy.jobs.overlap.work import with_min_overlap
from bellapy.params import Params, make_params
from bellapy.records import Overlaps, Paths, ReadSet, join_overlaps
from bellapy.report.run_report import RunReport, WriteStage
from bellapy.version import __version__


def overlap(
    reads: Reads, *, preset: str | None = None, threads: int | None = None, cigar: bool = False, **options: Any
) -> OverlapTable:
    """Find which reads overlap, where, and how well: what `bellapy overlap` does.

    Parameters
    ----------
    reads : a FASTA or FASTQ file, a list of such files, a dictionary of sequences by name, or pairs of name and sequence.
    preset : clr, ont, hq or hifi.  threads : None: all cores.  cigar : make base-level paths, which SAM and BAM need.
    options : the options of `bellapy overlap` by their names, with _ for -: min_overlap=500, device="cpu", max_memory="2G".

    Raises
    ------
    ParameterError : an option out of range.  InputError : reads that cannot be read.  DeviceError : no GPU can be used.
    MemoryLimitError : the work does not fit `max_memory`.  TypeError : an option of no such name.
    """
    params = make_params(preset, threads=threads or usable_cores(), **options)
    report = start_report(RunReport("bellapy.overlap", __version__, params.to_dict()))
    loaded = load_given(reads, params, report, overlaps=True)
    overlaps, steps = overlap_reads(loaded.reads, loaded.params, report, with_paths=cigar)
    given, overlaps = as_given(loaded.reads, overlaps, loaded.order, params.run.threads, with_bases=True)
    parts = None
    if cigar:
        whole = given, overlaps, lambda some, paths: (some, paths)
        settled = with_min_overlap(loaded.params, given.lengths)
        parts = tuple(paths_stage([whole], len(overlaps), steps, settled, report))
        overlaps = join_overlaps([some for some, _ in parts]) if parts else overlaps
    report.finish()
    return OverlapTable(given, overlaps, report, parts)


# ---------------------------------------------------------------- from files to a file


class Request(NamedTuple):
    """What is asked for, besides parameters.

    paths : files of reads.  output : where overlaps go, in which form.  skip_alignment : write what seeds imply.
    targets : the last file holds targets, the others their queries.
    """

    paths: list[str]
    output: Destination
    skip_alignment: bool = False
    targets: bool = False


class Found(NamedTuple):
    """Overlaps of reads in canonical order; steps : the scores of their alignments, None where nothing was aligned."""

    loaded: Loaded
    overlaps: Overlaps
    steps: Steps | None


def overlap_in_one_piece(request: Request, params: Params, report: RunReport) -> bool:
    """Overlaps of files to a file; False: all at once needs more than --max-memory, and the files can be read again."""
    found = find_in_one_piece(request, params, report)
    if found:
        write(found, report, request.output)
    return found is not None


def find_in_one_piece(request: Request, params: Params, report: RunReport) -> Found | None:
    """All overlaps; None: as False of `overlap_in_one_piece`."""
    or_tiles = all(map(os.path.isfile, request.paths))
    try:
        loaded = load_reads(
            request.paths, params, report, request.output, overlaps=not request.skip_alignment, or_tiles=or_tiles,
            targets=request.targets,
        )  # fmt: skip
        if request.skip_alignment:
            return Found(loaded, candidate_overlaps(loaded.reads, loaded.params, report, loaded.n_queries), None)
        with_paths, n_queries = request.output.paths, loaded.n_queries
        given = loaded.reads, loaded.params, report
        return Found(loaded, *overlap_reads(*given, with_paths=with_paths, n_queries=n_queries))
    except (TooLarge, MemoryLimitError):
        if not or_tiles:
            raise
        return None


def write(found: Found, report: RunReport, output: Destination) -> None:
    """Write overlaps, with their paths if the output needs any."""
    loaded, params = found.loaded, found.loaded.params
    reads, overlaps = as_given(loaded.reads, found.overlaps, loaded.order, params.run.threads, with_bases=output.paths)
    if output.paths and found.steps:
        write_with_paths(reads, [SomeOverlaps(reads, overlaps)], len(overlaps), found.steps, params, report, output)
    else:
        write_plain(reads, [overlaps], params, report, output)


@contextmanager
def _charting(reads: ReadSet, report: RunReport) -> Iterator[Callable[[Overlaps], None]]:
    """A function that adds overlaps to the charts of the report, if one is asked for."""
    if not report.wants_charts:
        yield lambda overlaps: None
        return
    from bellapy.jobs.overlap.charts import OverlapCharts

    charts = OverlapCharts(reads)
    yield charts.add
    charts.finish(report)


def write_plain(
    reads: ReadSet, parts: Iterable[Overlaps], params: Params, report: RunReport, output: Destination
) -> None:  # fmt: skip
    """Write overlaps without paths, some at a time."""
    threads = params.run.threads
    with (
        _charting(reads, report) as add,
        report.stage(WriteStage("write")) as stage,
        open_writer(output, reads, report.command, __version__, threads) as write,
    ):
        stage.lines = 0
        for overlaps in parts:
            consume_ahead(format_overlaps(reads, overlaps, output.format, threads, output.both_directions), write, threads)
            add(overlaps)
            stage.lines += len(overlaps) * (1 + output.both_directions)


def write_with_paths(
    reads: ReadSet, parts: Iterable[SomeOverlaps], n_overlaps: int, steps: Steps, params: Params, report: RunReport,
    output: Destination,
) -> None:  # fmt: skip
    """Write overlaps with their paths; reads : all, perhaps without bases.  n_overlaps : of all parts."""
    threads, params = params.run.threads, with_min_overlap(params, reads.lengths)
    with _charting(reads, report) as add, open_writer(output, reads, report.command, __version__, threads) as write:

        def shown(part: SomeOverlaps) -> tuple[ReadSet, Overlaps, Callable[[Overlaps, Paths], bytes]]:
            lines = formatter(output, part.reads)

            def show_and_chart(some: Overlaps, paths: Paths) -> bytes:
                add(part.of_all(some))
                return lines(some, paths)

            return part.reads, part.overlaps, show_and_chart

        consume_ahead(paths_stage(map(shown, parts), n_overlaps, steps, params, report), write, threads)
