"""`bellapy map` and `bellapy index` from files to files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from bellapy.compute.memory import Budget, give_back_freed, mapped_file
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_in_order
from bellapy.errors import InputError
from bellapy.io.compressed import is_read_once
from bellapy.io.fastx import Records, error_rate_of, load_reads, stream_records
from bellapy.io.index_files import is_index, load_index, save_index
from bellapy.io.outputs import INDEXES, index_of, is_special, open_output
from bellapy.io.read_filter import ReadFilter
from bellapy.io.sam import check_names, open_bam
from bellapy.jobs.map.batches import batches
from bellapy.jobs.map.charts import MapCharts
from bellapy.jobs.map.circles import UNROLLED, Target, circles_of, longest_sure, unroll
from bellapy.jobs.map.groups import ReadGroups
from bellapy.jobs.map.output import Counts, format_paf, format_sam, make_header, parse_read_group
from bellapy.jobs.map.pipeline import SAMPLE_READS, Mapped, Mapper, Sampled, preset_for
from bellapy.jobs.map.rounds import map_in_rounds
from bellapy.jobs.map.store import Store
from bellapy.jobs.map.style import Style
from bellapy.params import ONT_ERRORS, MapParams, map_preset
from bellapy.params.reads import ReadParams
from bellapy.params.run import RunParams
from bellapy.records import ReadSet
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import Dropped, RunReport, Stage
from bellapy.seeding.index import Index, build_index
from bellapy.version import __version__

if TYPE_CHECKING:  # loaded where there is a GPU
    from bellapy.jobs.map.gpu.rounds import MappingCards


Shown = TypeVar("Shown")
IN_FILE = "--max-memory leaves no room for the index: the CPU looks it up in a file"
LEAST_WORK = 20_000_000  # bytes of sequence files for each thread: with fewer, GPUs are not asked for unless told


@dataclass(slots=True)
class IndexStage(Stage):
    """Sequences, bases and minimizers of the reference."""

    sequences: int | None = None
    bases: int | None = None
    minimizers: int | None = None


@dataclass(slots=True)
class MapStage(Stage):
    """Reads and bases, and how many reads and lines there were of each kind.

    over_origin, around : on circles, primary alignments over an origin, and those of them that are longer than the circle.
    """

    reads: int | None = None
    bases: int | None = None
    mapped: int | None = None
    secondary: int | None = None
    supplementary: int | None = None
    unmapped: int | None = None
    over_origin: int | None = None
    around: int | None = None


@dataclass(slots=True)
class Estimates:
    """Share of errors in the alignments of the first reads, None if none fits, and the preset chosen by it."""

    error_rate: float | None
    preset: str


@dataclass(frozen=True)
class Job:
    """What `map` is to do.

    reference : FASTA, FASTQ or an index file.  format : paf, sam, bam or cram.  read_group : a header line.
    preset : a name, None: chosen from the reads.  adjust : changes a preset's parameters.  align : False for chains only.
    resources : threads and device.  store : as in `make_index`.
    circular : names of circles among the reference's sequences, or `all`.
    """

    reference: str
    reads: Sequence[str]
    output: str
    format: str
    style: Style
    read_group: str | None = None
    preset: str | None = None
    adjust: Callable[[MapParams], MapParams] = lambda params: params
    align: bool = True
    resources: Resources = field(default_factory=Resources)
    store: Store | None = None
    reads_kept: ReadParams = ReadParams()
    circular: Sequence[str] = ()


def parse_texts(
    read_group: str | None, circular: str | Sequence[str], align: bool
) -> tuple[str | None, bytes | None, tuple[str, ...]]:
    """The header line and ID of a read group, and the names of circles, from options; ParameterError where one is wrong."""
    line, group = parse_read_group(read_group) if read_group is not None else (None, None)
    return line, group, circles_of(circular, align)


def beside(output: str, max_memory: int | None) -> Store | None:
    """Where an index goes that a bound on memory leaves no room for: beside the output, or where temporary files are."""
    if max_memory is None:
        return None
    folder = None if output == "-" or is_special(output) else os.path.dirname(os.path.realpath(output))
    return Store(folder or tempfile.gettempdir(), Budget(max_memory))


def may_pay(reference: str, reads: Sequence[str], threads: int) -> bool:
    """Whether there is so much to do that GPUs may save more time than they need to start.

    reference : a file; where it is an index, it is nearly free.  reads : files; none for the index alone.
    """
    files = [*reads, *([] if is_index(reference) else [reference])]
    if any(map(is_read_once, files)):
        return True  # nobody knows how much comes
    return sum(map(os.path.getsize, filter(os.path.isfile, files))) >= LEAST_WORK * threads


def resources_for(run: RunParams, report: RunReport, reference: str, reads: Sequence[str]) -> Resources:
    """What the command may use; `auto` takes GPUs where they may pay (`may_pay`).

    Raises
    ------
    DeviceError : a GPU is asked for and none can be used.
    """
    if run.device == "auto" and not may_pay(reference, reads, run.threads):
        run = replace(run, device="cpu")
    return Resources.of(run, report.devices)


def cards_for(resources: Resources) -> MappingCards | None:
    """The GPUs, if they are to be used."""
    if resources.device == "cpu":
        return None
    from bellapy.jobs.map.gpu.rounds import MappingCards

    return MappingCards(resources)


def index_file(
    reference: str, output: str, params: MapParams, report: RunReport, resources: Resources, store: Store | None
) -> None:  # fmt: skip
    """The index of a reference, to a file."""
    threads = resources.threads
    save_index(make_index(reference, params, report, threads, store, cards_for(resources)), output, threads)


def make_index(
    reference: str | ReadSet, params: MapParams, report: RunReport, threads: int, store: Store | None = None,
    cards: MappingCards | None = None,
) -> Index:  # fmt: skip
    """The index of a FASTA or FASTQ file, or of sequences.

    store : where it goes if memory has no room for it; None: memory is not bounded.  cards : GPUs that make it; None: none.
    """
    with report.stage(IndexStage("index")) as stage:
        stored = store is not None and store.is_needed(reference, params)
        if not isinstance(reference, str):
            sequences = reference
        elif store is not None and stored:
            logger.info("the index may need more than --max-memory; it is in a file in the folder %s", store.folder)
            sequences = store.load(reference)
        else:
            sequences = load_reads([reference], threads=threads)
        if cards is not None and not stored:
            index = cards.build(sequences, params.k, params.window)
        else:
            room = store.room if store is not None and stored else None
            index = build_index(sequences, params.k, params.window, threads, room)
        stage.sequences, stage.bases = len(index.names), sequences.n_bases
        stage.minimizers = len(index.lookup.words)
    if not len(index.lookup.words):
        where = reference if isinstance(reference, str) else "the reference"
        raise InputError(where, f"holds no sequence long enough for minimizers of {index.k} bases")
    give_back_freed()
    return index


def open_index(
    reference: str | ReadSet, params: MapParams, report: RunReport, threads: int, store: Store | None = None,
    cards: MappingCards | None = None,
) -> Index:  # fmt: skip
    """The index of a reference, from its file or made now; store, cards : as in `make_index`."""
    if not isinstance(reference, str) or not is_index(reference):
        return make_index(reference, params, report, threads, store, cards)
    with report.stage(IndexStage("index")) as stage:
        index = load_index(reference, threads)
        stage.sequences, stage.minimizers = len(index.names), len(index.lookup.words)
    return index


def map_reads(job: Job, report: RunReport) -> None:
    """Map all reads and write what comes out."""
    groups = ReadGroups(job.reads, job.read_group)
    kept = ReadFilter(job.reads_kept)
    report.dropped = Dropped(*kept.dropped)
    stream = batches(kept(stream_records(job.reads, groups.add)))
    first = next(stream, None)
    wanted = Wanted(job.preset, job.adjust, job.align, job.circular)
    cards = cards_for(job.resources)
    mapper = prepare(job.reference, first, wanted, report, job.resources.threads, job.store, cards)
    if job.format != "paf":
        check_names(mapper.index.names, "reference sequence")
    counts = Counts()
    charts = MapCharts(mapper.index) if report.wants_charts else None
    header = make_header(mapper.index, report.command, __version__, groups.close())
    found = _map_all(mapper, job, chain([first] if first else [], stream), charts, cards)
    sure = longest_sure(mapper.params.long_gap)
    del mapper, cards  # so that its memory is free when a BAM file is sorted
    with report.stage(MapStage("map")) as stage, _writer(job, header) as write, progress("map", None) as advance:
        for lines, some in found:
            write(lines)
            counts.add(some)
            advance(counts.reads)
        stage.reads, stage.bases, stage.mapped = counts.reads, counts.bases, counts.mapped
        stage.secondary, stage.supplementary = counts.secondary, counts.supplementary
        stage.unmapped = counts.reads - counts.mapped
        if job.circular:
            stage.over_origin, stage.around = counts.over_origin, counts.around
    if counts.too_long:
        logger.warning(
            "%d reads on circles have more than %d bases: some may be cut in two though they are one alignment",
            counts.too_long, sure,
        )  # fmt: skip
    report.dropped.add(kept.dropped)
    if any(kept.dropped.values()):
        logger.info("left out: %s", report.dropped)
    if charts:
        report.charts = charts.charts()


class Wanted(NamedTuple):
    """How a mapper is to be made.  preset : a name, None: chosen from the reads.  adjust, align, circular : as in `Job`."""

    preset: str | None
    adjust: Callable[[MapParams], MapParams]
    align: bool
    circular: Sequence[str] = ()

    def params(self, preset: str) -> MapParams:
        """The parameters of a preset, adjusted."""
        return self.adjust(map_preset(preset))


def prepare(
    reference: str | ReadSet, first: Records | None, wanted: Wanted, report: RunReport, threads: int = 1,
    store: Store | None = None, cards: MappingCards | None = None,
) -> Mapper:  # fmt: skip
    """A mapper to a reference that fits the first reads; store, cards : as in `make_index`.

    Raises
    ------
    ParameterError : an unknown preset.  InputError : a reference that cannot be read or is too short.
    """
    name = wanted.preset or _likely_preset(first)
    if isinstance(reference, str) and is_read_once(reference):
        reference = load_reads([reference], threads=threads)  # for other k-mers it may be needed once more
    index = open_index(reference, wanted.params(name), report, threads, store, cards)
    target = _target(index, wanted.circular, store)
    mapper = Mapper(index, wanted.params(name), align=wanted.align, target=target)
    if first and (wanted.align or wanted.preset is None):
        sample = mapper.sample(first, threads)
        errors = mapper.learn(sample, threads)
    if first and wanted.preset is None:
        name = preset_for(errors)
        if not _fits(index, wanted.params(name)) and not (isinstance(reference, str) and is_index(reference)):
            sequences = ReadSet(index.names, index.codes, index.starts, index.lengths, in_room=True)
            del index, mapper, sample, target  # so that there is one index at a time
            index = make_index(sequences, wanted.params(name), report, threads, store, cards)
            target = _target(index, wanted.circular, store)
            mapper = Mapper(index, wanted.params(name), align=wanted.align, target=target)
            sample = mapper.sample(first, threads)
            errors = mapper.learn(sample, threads)
            if _fits(index, wanted.params(preset_for(errors))):  # else the index is not changed back
                name = preset_for(errors)
        told = "no read fits the reference" if errors is None else f"{100 * errors:.1f} % errors"
        logger.info("preset %s: %s", name, told)
        report.estimates = Estimates(errors, name)
        new = Mapper(index, wanted.params(name), align=wanted.align, target=target)
        mapper = _relearnt(mapper, new, first, sample, threads)
    params = mapper.params
    if not _fits(index, params):
        logger.warning(
            "%s: an index with k %d and window %d is used; these reads would take %d and %d. "
            "`bellapy index -k %d -w %d` makes such an index",
            reference, index.k, index.window, params.k, params.window, params.k, params.window,
        )  # fmt: skip
    return mapper


def _target(index: Index, circular: Sequence[str], store: Store | None) -> Target:
    """What reads are aligned to."""
    if circular and store is not None:
        store.budget.require("the reference with its circles", len(index.codes) + UNROLLED * len(index.names))
    return unroll(index, circular)


def _likely_preset(first: Records | None) -> str:
    """The preset whose index is tried first: `hq`, which has the smallest one, unless base qualities tell of noisy reads."""
    if first is None or first.qualities is None:
        return "hq"
    values = np.frombuffer(b"".join(first.qualities[:SAMPLE_READS]), np.uint8)
    errors = error_rate_of(np.bincount(values, minlength=256))
    return "ont" if errors is not None and errors >= ONT_ERRORS else "hq"


def _relearnt(old: Mapper, new: Mapper, first: Records, sample: list[Sampled], threads: int) -> Mapper:
    """A mapper of the new one's parameters that has learnt from the first reads, as `old` has from their pieces `sample`."""
    if new.params == old.params:
        return old
    if new.align:
        new.learn(sample if new.chains_like(old) else new.sample(first, threads), threads)
    return new


def _fits(index: Index, params: MapParams) -> bool:
    return (index.k, index.window) == (params.k, params.window)


def _map_all(
    mapper: Mapper, job: Job, work: Iterable[Records], charts: MapCharts | None, cards: MappingCards | None
) -> Iterator[tuple[bytes, Counts]]:
    """Lines of all batches in their order."""
    threads = job.resources.threads
    show = partial(format_paf if job.format == "paf" else format_sam, index=mapper.index, style=job.style)
    if job.store is not None and mapped_file(mapper.index.lookup.words) is not None:
        if cards is not None:
            cards.leave(IN_FILE)
        yield from map_in_rounds(mapper, work, lambda parts: _show(parts, show, charts), threads, job.store.budget)
        return
    yield from map_all(mapper, cards, work, lambda parts: _show(parts, show, charts), threads)


def map_all(
    mapper: Mapper, cards: MappingCards | None, work: Iterable[Records], show: Callable[[list[Mapped]], Shown], threads: int
) -> Iterator[Shown]:
    """What `show` makes of all batches, in their order.  cards : GPUs that map; None: none."""
    if cards is None:
        yield from map_in_order(lambda records: show(mapper.map(records)), work, threads)
    else:
        yield from cards.map(mapper, work, show)


def _show(parts: list[Mapped], show, charts: MapCharts | None) -> tuple[bytes, Counts]:
    if charts:
        for mapped in parts:
            charts.add(mapped)
    shown = [show(mapped) for mapped in parts]
    counts = Counts()
    for _, some in shown:
        counts.add(some)
    return b"".join(lines for lines, _ in shown), counts


@contextmanager
def _writer(job: Job, header: str) -> Iterator[Callable[[bytes], object]]:
    """A function that takes lines; SAM and BAM get a header first."""
    if job.format in INDEXES:
        with open_bam(job.output, header, index_of(job.output, job.format), job.resources.threads, job.format) as write:
            yield write
        return
    with open_output(job.output) as stream:
        if job.format == "sam":
            stream.write(header.encode())
        yield stream.write
