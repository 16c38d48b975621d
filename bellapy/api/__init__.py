"""The jobs as functions: files or sequences in, records out.

Nothing here ends the process, reads its command line, handles signals or changes what the process shares; functions may be
called any number of times, by several threads at once.  Errors are those of `bellapy.errors`.  Messages go to the logger
`bellapy`, which stays as the caller has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bellapy.api.assembling import Assembly, assemble
from bellapy.api.inputs import Reads, as_reads
from bellapy.api.mapping import Aligner, Mapping
from bellapy.api.matrices import candidates, count
from bellapy.api.tables import ExtensionTable, Overlap, OverlapTable
from bellapy.compute.memory import Budget
from bellapy.compute.threads import usable_cores
from bellapy.errors import InputError
from bellapy.jobs.extend import Extending, Pair, check_pairs, make_seeds, pack_pairs, read_pairs
from bellapy.jobs.overlap.canonical import canonical_reads, given_overlaps
from bellapy.jobs.overlap.estimate import with_min_overlap
from bellapy.jobs.overlap.paths import paths_stage
from bellapy.jobs.overlap.pipeline import overlap_reads, with_device
from bellapy.jobs.overlap.report import PathsStage, start_report
from bellapy.params import make_params
from bellapy.records import Anchors, ReadSet, join_overlaps, join_paths
from bellapy.report.run_report import ReadStage, RunReport, Stage
from bellapy.version import __version__

__all__ = [
    "Aligner",
    "Assembly",
    "ExtensionTable",
    "Mapping",
    "Overlap",
    "OverlapTable",
    "assemble",
    "candidates",
    "count",
    "extend",
    "map",
    "overlap",
]


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
    params = with_device(make_params(preset, threads=threads or usable_cores(), **options))
    run, report = params.run, start_report(RunReport("bellapy.overlap", __version__, params.to_dict()))
    with report.stage(ReadStage("read")) as stage:
        given = as_reads(reads)
        stage.reads, stage.bases = len(given), given.n_bases
    report.count_letters(given.other_letters, given.n_bases)
    Budget(run.max_memory).require("the reads in their canonical order", given.codes.nbytes)
    canonical, order = canonical_reads(given, run.threads)
    found, steps = overlap_reads(canonical, params, report, with_paths=cigar)
    found = given_overlaps(found, canonical.lengths, order)
    del canonical
    parts = None
    if cigar:
        whole = given, found, lambda some, paths: (some, paths)
        settled = with_min_overlap(params, given.lengths)
        parts = tuple(paths_stage([whole], len(found), steps, settled, report))
        found = join_overlaps([some for some, _ in parts]) if parts else found
    report.finish()
    return OverlapTable(given, found, report, parts)


def extend(
    pairs: str | os.PathLike[str] | Iterable[Sequence[Any]], k: int, xdrop: int, *, reads: Reads | None = None,
    cigar: bool = False, threads: int | None = None, **options: Any,
) -> ExtensionTable:  # fmt: skip
    """Extend given seeds into alignments: what `bellapy extend` does.

    Parameters
    ----------
    pairs : query, its seed's start, target, its seed's start and strand (1, or -1 where the target's reverse complement
        aligns) of each pair, or a file of five columns, as `bellapy extend` reads it.
    k : bases of a seed.  xdrop : how far below its best score an extension stops.
    reads : query and target of the pairs are names of these; None: they are the sequences themselves.
    cigar : make base-level paths.  threads : None: all cores.
    options : match, mismatch, gap, extension (best or longest), device.

    Raises
    ------
    ParameterError : a value out of range.  InputError : a seed outside its sequence, or a name that no read has.
    """
    given = make_params(threads=threads or usable_cores(), xdrop=xdrop, **{"extension": "best", **options})
    report = RunReport("bellapy.extend", __version__, given.to_dict())
    work = Extending.of(k, given, report.devices)
    with report.stage(Stage("read")):
        packed, seeds = _pairs(pairs, k) if reads is None else _seeds(pairs, k, as_reads(reads))
    with report.stage(Stage("extend")):
        extensions = work.extend(packed, seeds)
    if not cigar:
        report.finish()
        return ExtensionTable(extensions, report, packed)
    with report.stage(PathsStage("paths")) as stage:
        parts = list(work.trace(lambda some, paths: (some, paths), packed, seeds, extensions))
        stage.overlaps = len(seeds)
    report.finish()
    return ExtensionTable(
        join_overlaps([some for some, _ in parts]), report, packed, join_paths([paths for _, paths in parts])
    )


def _pairs(pairs: str | os.PathLike[str] | Iterable[Sequence[Any]], k: int) -> tuple[ReadSet, Anchors]:
    if isinstance(pairs, (str, os.PathLike)):
        return pack_pairs(read_pairs(os.fspath(pairs), k), k)
    return pack_pairs(check_pairs(pairs, k), k)


def _seeds(pairs: Any, k: int, reads: ReadSet) -> tuple[ReadSet, Anchors]:
    """The reads, and seeds of pairs that name them."""
    ids: dict[Any, int] = {name: i for i, name in enumerate(reads.names)}
    rows = []
    for number, values in enumerate(pairs, 1):
        pair = Pair(*values)
        problem = None if pair.strand in (1, -1) else f"the strand must be 1 or -1, not {pair.strand}"
        for name, place in ((pair.query, pair.query_pos), (pair.target, pair.target_pos)):
            if name not in ids:
                problem = f"no read is named {name!r}"
            elif not 0 <= place <= reads.lengths[ids[name]] - k:
                problem = f"the seed of {k} bases at {place} is not inside {name!r}"
        if problem:
            raise InputError("the pairs given", problem, record=number)
        rows.append((ids[pair.query], ids[pair.target], pair.strand, pair.query_pos, pair.target_pos))
    return reads, make_seeds(rows, k)


def map(reference: Reads, reads: Reads, *, threads: int | None = None, **options: Any) -> Iterator[Mapping]:
    """Map reads to a reference, one after another: what `bellapy map` does.  Use `Aligner` to map more than once.

    Parameters
    ----------
    reference, reads : as the reads of `overlap`; the reference may also be a file made by `bellapy index`.
    threads : None: all cores.
    options : those of `Aligner`.

    Returns
    -------
    The alignments, in the order of reads, then of falling score; reads without one have none.

    Raises
    ------
    ParameterError, InputError : as `Aligner`, and for reads that cannot be read.
    """
    return Aligner(reference, **options).map(reads, threads=threads)
