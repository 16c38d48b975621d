"""Reads that too few others overlap: those inside long repeats, since k-mers of many copies link no reads.

What such a read overlaps is hard to say.  But copies are a few percent apart, and noisy reads have more errors: so these
are overlapped among themselves, as a set of their own, where such k-mers are as usual as others.  Of the copies that
a read finds, those that are most alike correct it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bellapy.records import Overlaps

BIN = 256  # bases
ALONE = 0.25  # share of a read's bins in which others are too few
FEWEST, MOST = 20, 0.25
"""So many reads, and at most this share of all bases: fewer are the ends of molecules, and if more are alone, depth is low,
so that the same overlaps would come again."""
LEAST_ERRORS = 0.05  # of a base: more accurate reads are worse after correction by copies
TOGETHER = 8_000_000  # bases of reads that are overlapped at a time: all of a long array overlap all


def find_alone(overlaps: Overlaps, lengths: np.ndarray, least: int, error_rate: float | None) -> np.ndarray:
    """The reads that have less than `least` others beside them in more than ALONE of their bins, (n,) int64, ascending.

    None of them where these are too few or too many, or where reads are accurate.
    lengths : (n_reads,) of the reads.  error_rate : of a base; None: unknown.
    """
    if error_rate is None or error_rate < LEAST_ERRORS:
        return np.empty(0, np.int64)
    n_whole = lengths.astype(np.int64) // BIN
    offsets = np.concatenate(([0], np.cumsum(n_whole + 2)))  # overlaps end in one of two bins behind a read at most
    depth = np.zeros(offsets[-1], np.int64)
    for side in ("query", "target"):
        read, start, end = (getattr(overlaps, f"{side}_{what}") for what in ("id", "start", "end"))
        depth += np.bincount(offsets[read] - -start // BIN, minlength=len(depth))
        depth -= np.bincount(offsets[read] + end // BIN, minlength=len(depth))
    few = np.cumsum(depth) < least
    n_few = np.add.reduceat(few, offsets[:-1], dtype=np.int64) - 2 if len(lengths) else n_whole
    alone = np.flatnonzero(n_few > ALONE * n_whole)
    enough = len(alone) >= FEWEST and lengths[alone].sum(dtype=np.int64) <= MOST * lengths.sum(dtype=np.int64)
    return alone if enough else alone[:0]


def groups_of(alone: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """These reads in parts that are overlapped at a time."""
    n_bases = int(lengths[alone].sum(dtype=np.int64))
    return np.array_split(alone, -(-n_bases // TOGETHER)) if len(alone) else []


def new_overlaps(overlaps: Overlaps, found: Overlaps, group: np.ndarray, n_reads: int) -> Overlaps:
    """What was found of a group of reads, where the overlaps of all reads do not have that pair; of all reads' numbers.

    found : its reads are places in `group`, (n,) int64, ascending.
    """
    among = np.zeros(n_reads, bool)
    among[group] = True
    known = overlaps.take(among[overlaps.query_id] & among[overlaps.target_id])
    query, target = (group[read].astype(np.int32) for read in (found.query_id, found.target_id))
    pairs, before = (a.astype(np.int64) * n_reads + b for a, b in ((query, target), (known.query_id, known.target_id)))
    return replace(found, query_id=query, target_id=target).take(~np.isin(pairs, before))
