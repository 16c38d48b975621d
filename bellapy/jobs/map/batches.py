"""Reads in batches, which depend on the reads alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from bellapy.io.fastx import Records

BATCH_BASES = 1_000_000
BATCH_READS = 500


def part_of(records: Records, rows: slice) -> Records:
    """Some of the records."""
    names, comments, sequences, qualities = records
    return Records(names[rows], comments[rows], sequences[rows], qualities and qualities[rows])


def halves(records: Records, at: int) -> list[Records]:
    """Those before a row, and the others."""
    return [part_of(records, slice(None, at)), part_of(records, slice(at, None))]


def batches(stream: Iterable[Records], most_reads: int = BATCH_READS, most_bases: int = BATCH_BASES) -> Iterator[Records]:
    """Records in batches of about so many reads or bases at most, which depend on the records alone."""
    waiting: list[Records] = []
    n_reads = n_bases = 0
    for records in stream:
        kind = records.qualities is None
        if waiting and (waiting[-1].qualities is None) != kind:
            yield _merge(waiting)
            waiting, n_reads, n_bases = [], 0, 0
        waiting.append(records)
        n_reads, n_bases = n_reads + len(records.names), n_bases + sum(map(len, records.sequences))
        if n_bases >= most_bases or n_reads >= most_reads:
            yield _merge(waiting)
            waiting, n_reads, n_bases = [], 0, 0
    if waiting:
        yield _merge(waiting)


def grouped(stream: Iterable[Records], most: Callable[[], int]) -> Iterator[list[Records]]:
    """Batches in groups of about so many bases at most; most : is asked when a group begins."""
    waiting: list[Records] = []
    n_bases = room = 0
    for records in stream:
        room = room if waiting else most()
        waiting.append(records)
        n_bases += sum(map(len, records.sequences))
        if n_bases >= room:
            yield waiting
            waiting, n_bases = [], 0
    if waiting:
        yield waiting


def _merge(parts: list[Records]) -> Records:
    """One batch of several, all with qualities or all without."""
    columns = list(zip(*parts, strict=True))[:3]
    names, comments, sequences = ([x for some in column for x in some] for column in columns)
    qualities = None if parts[0].qualities is None else [x for part in parts for x in part.qualities or ()]
    return Records(names, comments, sequences, qualities)
