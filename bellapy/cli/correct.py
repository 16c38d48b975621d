"""The command `correct`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bellapy.cli.folder import given_folder
from bellapy.cli.options import RUNNING, Given, Output, Reads, pick, takes
from bellapy.cli.reading import Loaded, TooLarge, load_reads, with_run
from bellapy.cli.session import Session, session
from bellapy.cli.tiles import find_in_tiles
from bellapy.errors import MemoryLimitError, ParameterError
from bellapy.params import KmerParams, Params, make_params
from bellapy.params.correct import SHORTEST_USED, CorrectParams, make_correct_params
from bellapy.params.fields import INPUT, check, given_values, options_of
from bellapy.params.overlap import FIELDS, PresetParams
from bellapy.params.run import RunParams, WorkdirParams

if TYPE_CHECKING:  # loaded when needed
    import numpy as np

    from bellapy.io.read_comments import ReadComments
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
_MIN_OVERLAP = FIELDS["min_overlap"]
FINDING = {
    **options_of(PresetParams), **pick(KmerParams, "error_rate depth"),
    "min_overlap": replace(_MIN_OVERLAP, default=SHORTEST_USED, about=replace(_MIN_OVERLAP.about, unset="")),
}  # fmt: skip
"""Options of `overlap` that rule how overlaps are found."""
TAKEN = {
    f"min_read_{what}": replace(field, name=f"min_read_{what}")
    for what in ("length", "quality")
    for field in [FIELDS[f"min_{what}"]]
}
"""Those that rule which reads are taken: the option --min-length is about what is written."""
FASTQ = "fq", "fastq"


@takes(FINDING, TAKEN, options_of(CorrectParams, RunParams, WorkdirParams), RUNNING)
def correct(given: Given, reads: Reads, output: Output = "-", overlaps: OverlapFile = None) -> None:
    """Reads corrected by each other."""
    chosen = make_correct_params(given)
    _check(given, output, overlaps)
    finding = {"min_overlap": SHORTEST_USED, **given_values(given, FIELDS.keys() & FINDING.keys())}
    check(given_values(given, TAKEN), TAKEN)
    taken = {name.replace("read_", ""): value for name, value in given_values(given, TAKEN).items()}
    params = make_params(given.get("preset"), **finding, **taken)
    inputs = [*reads, *([overlaps] if overlaps else [])]
    with session(given, inputs, {"-o": output}) as run:
        params = with_run(params, run)
        _start_report(run)
        run.report.parameters = {**params.to_dict(), "correct": asdict(chosen)}
        from bellapy.io.read_comments import ReadComments

        with given_folder(given, "correct", _ruling(params, chosen, output), inputs) as work:
            if overlaps:
                found = _read_overlaps(run, params, reads, overlaps)
            else:
                found = _find_overlaps(run, params, reads, output, work)
            _correct(run, *found, chosen, output, work, ReadComments(reads, params.reads))


def _start_report(run: Session) -> None:
    """Make the report ready for the numbers of this job, without what was counted before."""
    from bellapy.jobs.correct.report import start_report
    from bellapy.jobs.overlap.report import REASONS
    from bellapy.jobs.overlap.report import start_report as start_overlaps

    start_report(start_overlaps(run.report), REASONS)


def _ruling(params: Params, chosen: CorrectParams, output: str) -> dict[str, Any]:
    """What rules the output; a folder is gone on with where it is the same."""
    options = {**params.to_dict(), "correct": asdict(chosen), "qualities": _is_fastq(output)}
    del options["run"]
    return options


def _is_fastq(output: str) -> bool:
    from bellapy.io.outputs import ending_of

    return ending_of(output) in FASTQ


def _check(given: Given, output: str, overlaps: str | None) -> None:
    from bellapy.io.outputs import check_sequence_name

    check_sequence_name(output, "reads are written as FASTQ to .fq or .fastq, and as FASTA to any other name")
    for name, field in {**FINDING, **TAKEN}.items():
        if overlaps and given[name] is not None:
            raise ParameterError(f"{field.flags[-1]}: rules how overlaps are found; leave out --overlaps")


def _correct(
    run: Session, reads: ReadSet, overlaps: Overlaps, trace: Tracer, params: CorrectParams, output: str,
    work: Workdir | None, comments: ReadComments,
) -> None:  # fmt: skip
    from bellapy.compute.resources import Resources
    from bellapy.io.outputs import open_output
    from bellapy.jobs.correct.output import Writer
    from bellapy.jobs.correct.pipeline import Job, correct_reads

    job = Job(reads, overlaps, trace, params, Resources.of(run.run, run.report.devices), work)
    writer = Writer(params)
    corrected = correct_reads(job, run.report, writer.take_qualities if _is_fastq(output) else None)
    with open_output(output) as stream:
        for name, comment, found in zip(reads.names, comments(reads.names), corrected, strict=True):
            for record in writer.records(name, comment, found):
                stream.write(record)
    writer.tell(run.report)
    comments.tell()


def _find_overlaps(
    run: Session, params: Params, paths: list[str], output: str, work: Workdir | None
) -> tuple[ReadSet, Overlaps, Tracer]:  # fmt: skip
    """The reads as given, their overlaps, and what makes the paths of these."""
    from bellapy.compute.resources import Resources
    from bellapy.engines.ends import End
    from bellapy.engines.trace import map_paths
    from bellapy.jobs.correct.kept import keep_overlaps
    from bellapy.jobs.correct.members import pack
    from bellapy.jobs.overlap.pipeline import with_device

    held: ReadSet | None = None

    def find() -> tuple[Overlaps, Steps]:
        nonlocal held
        found = _find_in_one_piece(run, params, paths)
        if found is None:
            _start_report(run)
            found = find_in_tiles(run, params, paths, output)
        held, overlaps, steps = found
        return overlaps, steps

    overlaps, steps = find() if work is None else keep_overlaps(work, find)
    reads = _given(load_reads(run, params, paths)) if held is None else held  # a folder had the overlaps
    end, resources = End.of(params.extension.extension), Resources.of(with_device(params).run, run.report.devices)

    def trace(rows: np.ndarray) -> Iterator[Traced]:
        return map_paths(pack, reads, overlaps.take(rows), steps, end, resources)

    return reads, overlaps, trace


def _find_in_one_piece(run: Session, params: Params, paths: list[str]) -> tuple[ReadSet, Overlaps, Steps] | None:
    """Reads as given, overlaps and scores; None: it needs more than --max-memory, and the files can be read again."""
    from os.path import isfile

    or_tiles = all(map(isfile, paths))
    try:
        loaded = load_reads(run, params, paths, overlaps=True, or_tiles=or_tiles)
        from bellapy.jobs.overlap.pipeline import overlap_reads

        overlaps, steps = overlap_reads(loaded.reads, loaded.params, run.report)
        return *loaded.restore(overlaps, with_bases=True), steps
    except (TooLarge, MemoryLimitError):
        if not or_tiles:
            raise
        return None


def _given(loaded: Loaded) -> ReadSet:
    """The reads as the input has them."""
    from bellapy.jobs.overlap.canonical import given_reads

    return given_reads(loaded.reads, loaded.order, loaded.params.run.threads, with_bases=True)


def _read_overlaps(run: Session, params: Params, paths: list[str], path: str) -> tuple[ReadSet, Overlaps, Tracer]:
    """The same with overlaps from a file."""
    import numpy as np

    from bellapy.io.paf_paths import read_path_overlaps
    from bellapy.jobs.correct.report import OverlapsStage

    reads = _given(load_reads(run, params, paths))
    with run.report.stage(OverlapsStage("overlaps")) as stage:
        found = read_path_overlaps(path, reads)
        stage.overlaps, stage.with_itself, stage.twice = len(found.overlaps), found.n_self, found.n_twice

    def trace(rows: np.ndarray) -> Iterator[Traced]:
        sizes = np.diff(found.offsets)
        mask = np.zeros(len(sizes), bool)
        mask[rows] = True
        yield found.runs[np.repeat(mask, sizes)], sizes[rows], found.columns[rows]

    return reads, found.overlaps, trace
