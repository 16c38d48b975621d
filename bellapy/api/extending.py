"""Extension of given seeds, as a function."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from bellapy.api.inputs import Reads, as_reads
from bellapy.api.tables import ExtensionTable
from bellapy.compute.threads import usable_cores
from bellapy.errors import InputError
from bellapy.jobs.extend import Extending, Pair, check_pairs, make_seeds, pack_pairs, read_pairs
from bellapy.jobs.overlap.report import PathsStage
from bellapy.params import make_params
from bellapy.records import Anchors, ReadSet, join_overlaps, join_paths
from bellapy.report.run_report import RunReport, Stage
from bellapy.version import __version__


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
