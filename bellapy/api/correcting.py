"""Reads to corrected reads, as a function and from files to a file: overlaps, found here or read, and what they show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from bellapy.api.folders import find_in_tiles
from bellapy.api.inputs import Reads, no_more, run_params
from bellapy.api.overlapping import Request, find_in_one_piece
from bellapy.api.reading import Loaded, load_given, load_reads
from bellapy.api.sequences import SequenceTable
from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.trace import map_paths
from bellapy.io.outputs import is_fastq, open_output
from bellapy.io.overlap_writer import Destination
from bellapy.io.paf_paths import read_path_overlaps
from bellapy.io.read_comments import ReadComments
from bellapy.io.workdir import Workdir
from bellapy.jobs.correct import report as correct_report
from bellapy.jobs.correct.alone import find_alone, groups_of, new_overlaps
from bellapy.jobs.correct.kept import keep_overlaps
from bellapy.jobs.correct.members import Traced, Tracer, pack
from bellapy.jobs.correct.output import Writer
from bellapy.jobs.correct.pipeline import Job, correct_reads
from bellapy.jobs.overlap import report as overlap_report
from bellapy.jobs.overlap.align import Steps
from bellapy.jobs.overlap.canonical import as_given, canonical_reads, given_overlaps, given_reads
from bellapy.jobs.overlap.pipeline import overlap_reads, with_device
from bellapy.params import Params
from bellapy.params.correct import FINDING, TAKEN, CorrectParams, make_correct_params, make_finding_params
from bellapy.params.fields import fields_of
from bellapy.records import Overlaps, ReadSet, join_overlaps
from bellapy.report.log import logger, quietly
from bellapy.report.run_report import Devices, RunReport
from bellapy.version import __version__


def correct(
    reads: Reads, *, preset: str | None = None, threads: int | None = None, device: str = "auto", **options: Any
) -> SequenceTable:  # fmt: skip
    """Correct reads by each other: what `bellapy correct` does.

    Parameters
    ----------
    reads : as those of `bellapy.overlap`.  preset : clr, ont, hq or hifi.  threads : None: all cores.
    device : auto, cpu or cuda.
    options : the options of `bellapy correct` by their names, with _ for -: min_support=2, trim=True, max_memory="2G".

    Returns
    -------
    The corrected reads in the order given, with the letters of qualities: Phred scores, by what other reads show.

    Raises
    ------
    ParameterError : an option out of range.  InputError : reads that cannot be read.  DeviceError : no GPU can be used.
    MemoryLimitError : the work does not fit `max_memory`.  TypeError : an option of no such name.
    """
    no_more(options, [*FINDING, *TAKEN, *fields_of(CorrectParams), "max_memory"])
    chosen = make_correct_params(options)
    run = run_params(threads, device, options.get("max_memory"))
    params = replace(make_finding_params({**options, "preset": preset}), run=run)
    report = RunReport("bellapy.correct", __version__, {**params.to_dict(), "correct": asdict(chosen)})
    start_report(report)
    loaded = load_given(reads, params, report, overlaps=True)
    found, steps = overlap_reads(loaded.reads, loaded.params, report)
    given, found = as_given(loaded.reads, found, loaded.order, run.threads, with_bases=True)
    found = _with_copies(given, found, loaded.params, chosen.min_support, report)
    resources = Resources.of(loaded.params.run, report.devices)
    job = Job(given, found, _tracer(given, found, steps, loaded.params, resources), chosen, resources)
    writer = Writer(chosen)
    corrected = correct_reads(job, report, writer.take_qualities)
    pieces = [piece for name, one in zip(given.names, corrected, strict=True) for piece in writer.pieces(name, one)]
    writer.tell(report)
    report.finish()
    return SequenceTable.of(pieces, report)


def start_report(report: RunReport) -> None:
    """Make the report ready for the numbers of this job, without what was counted before."""
    correct_report.start_report(overlap_report.start_report(report), overlap_report.REASONS)


def correct_files(
    paths: list[str], overlaps: str | None, output: str, params: Params, chosen: CorrectParams, report: RunReport,
    work: Workdir | None,
) -> None:  # fmt: skip
    """Correct the reads of files by each other, and write them.

    overlaps : a PAF file of these reads with paths; None: overlaps are found.  params : rule how, and which reads are taken.
    chosen : how reads are corrected.  work : the folder that keeps what is done; None: nothing is kept.
    """
    if overlaps:
        reads, found, trace = _read_overlaps(paths, overlaps, params, report)
    else:
        reads, found, trace = _find_overlaps(paths, output, params, chosen.min_support, report, work)
    job, writer = Job(reads, found, trace, chosen, Resources.of(params.run, report.devices), work), Writer(chosen)
    corrected = correct_reads(job, report, writer.take_qualities if is_fastq(output) else None)
    comments = ReadComments(paths, params.reads)
    with open_output(output) as stream:
        for name, comment, one in zip(reads.names, comments(reads.names), corrected, strict=True):
            for record in writer.records(name, comment, one):
                stream.write(record)
    writer.tell(report)
    comments.tell()


def _find_overlaps(
    paths: list[str], output: str, params: Params, least: int, report: RunReport, work: Workdir | None
) -> tuple[ReadSet, Overlaps, Tracer]:  # fmt: skip
    """The reads as given, their overlaps, and what makes the paths of these.

    least : other reads that a place needs to be changed.
    """
    request = Request(paths, Destination(output, "paf", cigar=False, cs=False, sort=False, paths=False))
    held: ReadSet | None = None

    def find() -> tuple[Overlaps, Steps]:
        nonlocal held
        if found := find_in_one_piece(request, params, report):
            assert found.steps
            held, overlaps = as_given(
                found.loaded.reads, found.overlaps, found.loaded.order, params.run.threads, with_bases=True
            )
            steps = found.steps
        else:
            start_report(report)
            held, overlaps, steps = find_in_tiles(request, params, report)
        return _with_copies(held, overlaps, params, least, report), steps

    overlaps, steps = find() if work is None else keep_overlaps(work, find)
    reads = _given(load_reads(paths, params, report)) if held is None else held  # a folder had the overlaps
    return reads, overlaps, _tracer(reads, overlaps, steps, params, Resources.of(with_device(params).run, report.devices))


def _tracer(reads: ReadSet, overlaps: Overlaps, steps: Steps, params: Params, resources: Resources) -> Tracer:
    """What makes the paths of overlaps."""
    end = End.of(params.extension.extension)

    def trace(rows: np.ndarray) -> Iterator[Traced]:
        return map_paths(pack, reads, overlaps.take(rows), steps, end, resources)

    return trace


def _with_copies(reads: ReadSet, overlaps: Overlaps, params: Params, least: int, report: RunReport) -> Overlaps:
    """Overlaps, and those of reads that are alone with each other: of copies of long repeats.

    reads : as given.  least : as in `_find_overlaps`.
    """
    alone, parts = find_alone(overlaps, reads.lengths, least, report.estimates.error_rate), [overlaps]
    if not len(alone):
        return overlaps
    logger.info("%s reads have too few others beside them, as inside long repeats; they are overlapped among themselves",
                f"{len(alone):,}")  # fmt: skip
    with report.stage(correct_report.AloneStage("alone")) as stage:
        for group in groups_of(alone, reads.lengths):
            found = _overlaps_of_some(reads.take(group), params, report.devices)
            parts.append(new_overlaps(overlaps, found, group, len(reads)))
        stage.reads, stage.overlaps = len(alone), sum(map(len, parts[1:]))
    return join_overlaps(parts)


def _overlaps_of_some(some: ReadSet, params: Params, devices: Devices) -> Overlaps:
    """Overlaps of some reads as a set of their own, whose depth is another one."""
    of_them = replace(params, kmers=replace(params.kmers, depth=None))
    its_report = overlap_report.start_report(RunReport(devices=devices))
    with quietly():
        reads, order = canonical_reads(some, params.run.threads)
        found, _ = overlap_reads(reads, of_them, its_report)
    return given_overlaps(found, reads.lengths, order, params.run.threads)


def _given(loaded: Loaded) -> ReadSet:
    """The reads as the input has them."""
    return given_reads(loaded.reads, loaded.order, loaded.params.run.threads, with_bases=True)


def _read_overlaps(
    paths: list[str], overlaps: str, params: Params, report: RunReport
) -> tuple[ReadSet, Overlaps, Tracer]:  # fmt: skip
    """The same with overlaps from a file."""
    reads = _given(load_reads(paths, params, report))
    with report.stage(correct_report.OverlapsStage("overlaps")) as stage:
        found = read_path_overlaps(overlaps, reads)
        stage.overlaps, stage.with_itself, stage.twice = len(found.overlaps), found.n_self, found.n_twice

    def trace(rows: np.ndarray) -> Iterator[Traced]:
        sizes = np.diff(found.offsets)
        mask = np.zeros(len(sizes), bool)
        mask[rows] = True
        yield found.runs[np.repeat(mask, sizes)], sizes[rows], found.columns[rows]

    return reads, found.overlaps, trace
