"""The whole job: two records are read, aligned on one strand or both, and the better alignment is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.devices import choose_beside
from bellapy.engines.exact.align import Alignment, Reached, Work, align_one, bound_above
from bellapy.engines.exact.bounds import Region
from bellapy.engines.exact.rule import Scores
from bellapy.engines.exact.sweeps import Sweeper
from bellapy.errors import InputError, ParameterError
from bellapy.io.fastx import load_reads
from bellapy.io.outputs import ending_of
from bellapy.io.workdir import Workdir
from bellapy.jobs.exact.charts import make_charts
from bellapy.jobs.exact.output import FORMATS, Pair, write_alignment
from bellapy.jobs.exact.plot import draw_plot
from bellapy.params import ExactParams, RunParams
from bellapy.params.exact import GPU_CELLS
from bellapy.report.log import logger
from bellapy.report.pictures import check_plot
from bellapy.report.progress import progress
from bellapy.report.run_report import Devices, RunReport, Stage

STRANDS = {"both": (1, -1), "forward": (1,), "reverse": (-1,)}
PARTS = 10_000  # of a progress bar
EARLY_THREADS = 4  # with so many, bounds of the second strand are made while GPUs sweep over the first


@dataclass(slots=True)
class ReadPairStage(Stage):
    """Bases of both records."""

    query_bases: int | None = None
    target_bases: int | None = None


@dataclass(slots=True)
class AlignStage(Stage):
    """The score and its bounds before the matrix was computed; cells computed in each pass, and their share of all."""

    score: int | None = None
    lower_bound: int | None = None
    upper_bound: int | None = None
    cells_forward: int | None = None
    matrix_percent_forward: float | None = None
    cells_backward: int | None = None
    matrix_percent_backward: float | None = None


@dataclass(slots=True)
class WriteStage(Stage):
    """Alignments that were written, 0 or 1."""

    alignments: int | None = None


class Request(NamedTuple):
    """What a user asks for, from files to a file, beside the scores."""

    query: str
    target: str
    query_name: str | None
    target_name: str | None
    output: str
    score_only: bool
    plot: str | None


class Means(NamedTuple):
    """What may be used, and where it is noted what was done.  work : where states of sweeps are kept; None: nowhere."""

    run: RunParams
    report: RunReport
    work: Workdir | None = None


@dataclass
class StrandJournal:
    """As `sweeps.Journal`: states of the sweeps of one strand."""

    work: Workdir
    strand: int

    def _name(self, sweep: str) -> str:
        return f"{'forward' if self.strand > 0 else 'reverse'}_strand_{sweep}"

    def load(self, name: str) -> dict | None:
        state = self.work.load(self._name(name))
        if state:
            logger.info("going on from %s, step %s", self._name(name), int(state["step"]))
        return state

    def save(self, name: str, state: dict) -> None:
        self.work.save(self._name(name), state)


class Found(NamedTuple):
    """The better alignment of the strands that were tried; alignment: None if none scores above 0."""

    alignment: Alignment | Reached | None
    strand: int
    work: Work


def align_files(request: Request, params: ExactParams, means: Means) -> None:
    """Align a record of one file with one of another, and write what was asked for.

    Raises
    ------
    InputError : a file that cannot be read, or holds several records of which none is named, or an empty one.
    ParameterError : an output whose name says no format, or options that exclude each other.
    """
    _check(request)
    report, choice = means.report, begin_choice(means.run)
    report.parameters = {**asdict(params), "score_only": request.score_only, "threads": means.run.threads}
    with report.stage(ReadPairStage("read")) as stage:
        query_name, query = read_record(request.query, request.query_name, "--query-name")
        target_name, target = read_record(request.target, request.target_name, "--target-name")
        stage.query_bases, stage.target_bases = len(query), len(target)
    pair = Pair(query_name, query, target_name, target)
    found = align_strands(pair, params, means, choice, with_path=not request.score_only)
    if not found.alignment:
        logger.warning("no alignment scores above 0; the output holds none")
    with report.stage(WriteStage("write")) as written:
        write_alignment(request.output, pair, found.alignment, found.strand, params, report, request.score_only)
        if request.plot:
            draw_plot(request.plot, pair, found.alignment, found.strand, found.work)
        written.alignments = int(found.alignment is not None)
    if report.wants_charts:
        report.charts = make_charts(pair, found.alignment, found.strand, found.work)


def begin_choice(run: RunParams) -> Future[str]:
    """The choice of a device that was asked for by name, which is looked for meanwhile."""
    return choose_beside("cpu" if run.device == "auto" else run.device)


def _check(request: Request) -> None:
    if request.score_only and request.plot:
        raise ParameterError("--plot: draws a path, and --score-only makes none; leave one of them out")
    if request.query == request.target == "-":
        raise ParameterError("A and B: only one of them can be standard input")
    ending = ending_of(request.output)
    if request.output != "-" and ending not in FORMATS:
        raise ParameterError(f"-o {request.output}: the name tells no format; end it in .{', .'.join(FORMATS)}")
    if request.score_only and ending == "sam":
        raise ParameterError(f"-o {request.output}: SAM needs a path; leave --score-only out, or write .paf or .txt")
    if request.plot:
        check_plot("--plot", request.plot)


def read_record(path: str, name: str | None, option: str) -> tuple[str, np.ndarray]:
    """Name and codes of the record that is meant, (n,) uint8."""
    reads = load_reads([path])
    if name is None:
        if len(reads) > 1:
            shown = ", ".join(reads.names[:5]) + (", ..." if len(reads) > 5 else "")
            raise InputError(path, f"holds {len(reads):,} records ({shown}); choose one with {option}")
        at = 0
    elif name in reads.names:
        at = reads.names.index(name)
    else:
        raise InputError(path, f"holds no record {name}; {option} has to be the first word of a header")
    if not reads.lengths[at]:
        raise InputError(path, f"the record {reads.names[at]} has no bases", record=at + 1)
    start = int(reads.starts[at])
    return reads.names[at], reads.codes[start : start + int(reads.lengths[at])].copy()


def align_strands(
    pair: Pair, params: ExactParams, means: Means, choice: Future[str], *, with_path: bool = True
) -> Found:  # fmt: skip
    """The best alignment of the strands asked for; the second strand has to beat the first.

    choice : of `begin_choice`.  with_path : make a path; False: only the score and where it is reached.
    """
    scores = Scores(params.match, params.mismatch, params.gap_open, params.gap_extend)
    strands, threads, early = STRANDS[params.strand], means.run.threads, list[Future[Region]]()
    find_devices = _gpus(pair, means.run.device, choice, means.report)
    best: Found | None = None

    def bound_second(known: int) -> Region:
        return bound_above(pair.oriented(strands[1]), pair.target, scores, params.mode, known, threads, find_devices)

    def begin_second(known: int) -> None:
        if best is None and not early and len(strands) > 1 and threads >= EARLY_THREADS:
            early.append(other.submit(bound_second, known))

    with ThreadPoolExecutor(1) as other:
        for strand in strands:
            label = "align" if strand > 0 else "align reverse complement"
            with means.report.stage(AlignStage(label)) as stage, show_stages() as watch:
                beat = best.alignment.score if best and best.alignment else None
                journal = StrandJournal(means.work, strand) if means.work else None
                sweeper = Sweeper(
                    threads=threads, journal=journal, watch=watch, find_devices=find_devices, beside=begin_second
                )
                alignment, work = align_one(
                    pair.oriented(strand), pair.target, scores, params.mode, beat=beat, with_path=with_path,
                    sweeper=sweeper, region=early[0].result() if early else None,
                )  # fmt: skip
                _count(stage, pair, alignment, work)
                if not alignment and beat is not None:
                    logger.info("the reverse complement has no alignment that scores above %d", beat)
            if best is None or alignment:
                best = Found(alignment, strand, work)
    assert best is not None  # there is one strand at least
    return best


def _gpus(pair: Pair, device: str, choice: Future[str], report: RunReport) -> Callable[[], Devices | None]:
    """What says where GPUs note what they do; auto looks for them only where they may be worth it.

    choice : of what was asked for by name.  What has failed by now is told now, else when GPUs are needed.
    """
    if device == "auto" and len(pair.query) * len(pair.target) >= GPU_CELLS:
        choice = choose_beside(device)
    elif choice.done():
        choice.result()
    return lambda: report.devices if choice.result() == "cuda" else None


def _count(stage: AlignStage, pair: Pair, alignment: Alignment | Reached | None, work: Work) -> None:
    cells = len(pair.query) * len(pair.target)
    stage.score = alignment.score if alignment else None
    stage.lower_bound, stage.upper_bound = work.lower, work.upper
    if work.forward:
        stage.cells_forward, stage.matrix_percent_forward = work.forward, round(100 * work.forward / cells, 4)
    if work.backward:
        stage.cells_backward, stage.matrix_percent_backward = work.backward, round(100 * work.backward / cells, 4)


@contextmanager
def show_stages() -> Iterator[Callable[[str, float], None]]:
    """A function that shows how far which stage of an alignment is, with the expected end, on a terminal."""
    shown: list = [None, None, None]

    def close() -> None:
        if shown[1]:
            shown[1].__exit__(None, None, None)

    def watch(stage: str, share: float) -> None:
        if shown[0] != stage:
            close()
            shown[0], shown[1] = stage, progress(stage, PARTS)
            shown[2] = shown[1].__enter__()
        shown[2](int(share * PARTS))

    try:
        yield watch
    finally:
        close()
