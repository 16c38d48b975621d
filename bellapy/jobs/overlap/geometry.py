"""How alignments lie on their reads.

Two reads may overlap twice, on the same strands.  Reads of a circular molecule overlap at both ends: the first one's end is
the second one's start, and the second one's end the first one's start.  These are two overlaps on two diagonals, and the
better one alone does not show the circle.  Another alignment of the same reads is a second overlap under two conditions.  It
shares hardly any bases with the first on both reads, and it runs until one of the reads stops.  A tandem repeat has many
diagonals too, but there the reads share the same bases again.  A dispersed repeat that two reads share ends inside both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.threads import shared_by
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

SLACK = 0.1
"""Share of its length by which an overlap may run into another one, or fall short of the ends of the reads."""


@dataclass(frozen=True)
class Geometry:
    """How alignments lie on their reads; arrays of bases, (n,) int32 but for `implied`.

    left, right : unaligned bases where both reads go on, to the left and right as the query runs.
    span : aligned bases, of the read with fewer.
    implied : (n,) float64, length of the overlap if it ran to the ends of the reads.
    lesser : (n,) bool, it stops at a join of two places, in the lesser part of the read; only judging.py knows.
    """

    left: np.ndarray
    right: np.ndarray
    span: np.ndarray
    implied: np.ndarray
    lesser: np.ndarray


@dataclass(frozen=True)
class Alignments:
    """Seeds that were extended, in the order of candidates, and what grew from each."""

    seeds: Seeds
    extensions: Extensions


@dataclass(frozen=True)
class Measured:
    """How alignments lie on their reads, which are sure, (n,) bool, and the scores per base of these, (n_sure,) float64."""

    geometry: Geometry
    sure: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True)
class UsualRate:
    """The median of the scores per base of what is surely an overlap; None: there are too few."""

    rate: float | None


def measure_geometry(
    reads: ReadSet, seeds: Seeds | Overlaps, extensions: Extensions | Overlaps, threads: int = 1
) -> Geometry:
    """Overhangs, span and implied length of every alignment; overlaps are both, pairs of reads and alignments."""
    n, columns = len(seeds), (*seeds.pairs, *extensions.intervals)
    (left, right, span), implied = np.empty((3, n), np.int32), np.empty(n)
    shared_by(threads)(lambda part: _measure(reads.lengths, columns, *part, left, right, span, implied), n)
    return Geometry(left, right, span, implied, np.zeros(n, bool))


@njit_entry
def _measure(lengths, aligned, begin, end, left, right, span, implied):
    """Fill in rows [begin, end) of the columns of Geometry but the last, (n,) int32, `implied` float64.

    lengths : (n_reads,) int32.  aligned : `pairs` of Seeds, `intervals` of Extensions.
    """
    query_id, target_id, strand, query_start, query_end, target_start, target_end = aligned
    for i in range(begin, end):
        query_after = lengths[query_id[i]] - query_end[i]
        target_after, target_before = lengths[target_id[i]] - target_end[i], target_start[i]
        if strand[i] <= 0:
            target_after, target_before = target_before, target_after
        query_span, target_span = query_end[i] - query_start[i], target_end[i] - target_start[i]
        left[i], right[i] = min(query_start[i], target_before), min(query_after, target_after)
        span[i] = min(query_span, target_span)
        implied[i] = left[i] + right[i] + (query_span + target_span) / 2


class Ends(NamedTuple):
    """Where overlaps lie on their reads, (n,) int32 each, as in Extensions."""

    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray


def implied_ends(reads: ReadSet, seeds: Seeds) -> Ends:
    """The overlaps that run along the seeds' diagonals to the ends of the reads."""
    query_after = reads.lengths[seeds.query_id] - seeds.query_pos
    target_after = reads.lengths[seeds.target_id] - seeds.target_pos
    same = seeds.strand > 0
    left = np.minimum(seeds.query_pos, np.where(same, seeds.target_pos, target_after - seeds.length))
    right = np.minimum(query_after, np.where(same, target_after, seeds.target_pos + seeds.length))
    return Ends(
        seeds.query_pos - left,
        seeds.query_pos + right,
        np.where(same, seeds.target_pos - left, seeds.target_pos + seeds.length - right).astype(np.int32),
        np.where(same, seeds.target_pos + right, seeds.target_pos + seeds.length + left).astype(np.int32),
    )


def clear_of(ends: Ends | Extensions, others: Ends | Extensions) -> np.ndarray:
    """Mask of the rows in which two alignments share hardly any bases, neither on the query nor on the target."""
    clear = np.ones(len(ends.query_start), bool)
    allowed = SLACK * np.minimum(_query_span(ends), _query_span(others))
    for side in ("query", "target"):
        start = np.maximum(getattr(ends, f"{side}_start"), getattr(others, f"{side}_start"))
        end = np.minimum(getattr(ends, f"{side}_end"), getattr(others, f"{side}_end"))
        clear &= end - start <= allowed
    return clear


def _query_span(ends: Ends | Extensions) -> np.ndarray:
    return ends.query_end - ends.query_start
