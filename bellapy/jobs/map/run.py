"""`bellapy map` and `bellapy index` from files to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

from bellapy import __version__
from bellapy.compute.threads import map_in_order
from bellapy.errors import InputError, ParameterError
from bellapy.io.fastx import Records, load_reads, stream_records
from bellapy.io.index_files import is_index, load_index
from bellapy.io.outputs import open_output
from bellapy.io.sam import check_names, open_bam
from bellapy.jobs.map.output import Counts, format_paf, format_sam, make_header
from bellapy.jobs.map.pipeline import Mapper, batches, preset_for
from bellapy.jobs.map.style import Style
from bellapy.params import MAP_PRESETS, MapParams
from bellapy.report.log import Report, logger
from bellapy.seeding.index import Index, build_index


@dataclass(frozen=True)
class Job:
    """What `map` is to do.

    reference : FASTA, FASTQ or an index file.  format : paf, sam or bam.  read_group : a header line.
    preset : a name, None: chosen from the reads.  adjust : changes a preset's parameters.  align : False for chains only.
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
    threads: int = 1


def preset_params(name: str | None) -> MapParams:
    """Raises ParameterError for a name that no preset has."""
    if name is not None and name not in MAP_PRESETS:
        raise ParameterError(f"--preset {name}: there is none of that name; choose from {', '.join(MAP_PRESETS)}")
    return MAP_PRESETS[name or "ont"]


def make_index(reference: str, params: MapParams, report: Report) -> Index:
    """The index of a FASTA or FASTQ file."""
    with report.stage("index") as numbers:
        sequences = load_reads([reference])
        index = build_index(sequences, params.k, params.window)
        numbers.update(sequences=len(index.names), bases=sequences.n_bases, minimizers=len(index.lookup.words))
    if not len(index.lookup.words):
        raise InputError(reference, f"holds no sequence long enough for minimizers of {index.k} bases")
    return index


def open_index(job: Job, params: MapParams, report: Report) -> Index:
    """The job's index, from its file or made now.

    Raises
    ------
    ParameterError : an index file with other minimizers than the preset's.
    """
    if not is_index(job.reference):
        return make_index(job.reference, params, report)
    with report.stage("index") as numbers:
        index = load_index(job.reference)
        numbers.update(sequences=len(index.names), minimizers=len(index.lookup.words))
    return index


def map_reads(job: Job, report: Report) -> None:
    """Map all reads and write what comes out."""
    stream = batches(stream_records(job.reads))
    first = next(stream, None)
    index, mapper = _prepare(job, first, report)
    if job.format != "paf":
        check_names(index.names)
    counts = Counts()
    show = partial(format_paf if job.format == "paf" else format_sam, index=index, style=job.style)
    with report.stage("map") as numbers, _writer(job, index, report) as write:
        work = chain([first] if first else [], stream)
        for lines, some in map_in_order(lambda records: _map_batch(mapper, show, records), work, job.threads):
            write(lines)
            counts.add(some)
        numbers.update(vars(counts))
        numbers["unmapped"] = counts.reads - counts.mapped


def _prepare(job: Job, first: Records | None, report: Report) -> tuple[Index, Mapper]:
    """The index and a mapper that fits the first reads."""
    params = job.adjust(preset_params(job.preset))
    index = open_index(job, params, report)
    if job.preset is None and first:
        errors = Mapper(index, params).learn(first)
        name = preset_for(errors)
        params = job.adjust(preset_params(name))
        told = "no read fits the reference" if errors is None else f"{100 * errors:.1f} % errors"
        logger.info("preset %s: %s", name, told)
        report.data["estimates"] = {"error_rate": errors, "preset": name}
        if (params.k, params.window) != (index.k, index.window) and not is_index(job.reference):
            index = make_index(job.reference, params, report)
    mapper = Mapper(index, params, align=job.align)
    if job.align and first:
        mapper.learn(first)
    return index, mapper


def _map_batch(mapper: Mapper, show, records: Records) -> tuple[bytes, Counts]:
    shown = [show(mapped) for mapped in mapper.map(records)]
    counts = Counts()
    for _, some in shown:
        counts.add(some)
    return b"".join(lines for lines, _ in shown), counts


@contextmanager
def _writer(job: Job, index: Index, report: Report) -> Iterator[Callable[[bytes], object]]:
    """A function that takes lines; SAM and BAM get a header first."""
    header = make_header(index, report.data["command"], __version__, job.read_group)
    if job.format == "bam":
        with open_bam(job.output, header, True, job.threads) as write:
            yield write
        return
    with open_output(job.output) as stream:
        if job.format == "sam":
            stream.write(header.encode())
        yield stream.write
