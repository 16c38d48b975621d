"""Further pieces: where two reads overlap twice, on the same strands.

Reads of a circular molecule overlap at both ends: the first one's end is the second one's start, and the second one's end
the first one's start.  These are two overlaps on two diagonals, and the better one alone does not show the circle.  Another
alignment of the same reads is a second overlap under two conditions.  It shares hardly any bases with the first on both
reads, and it runs until one of the reads stops.  A tandem repeat has many diagonals too, but there the reads share the same
bases again.  A dispersed repeat that two reads share ends inside both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellapy.records import Extensions, ReadSet, Seeds

SLACK = 0.1
"""Share of its length by which an overlap may run into another one, or fall short of the ends of the reads."""


class Ends(NamedTuple):
    """Where overlaps lie on their reads, (n,) int32 each, as in Extensions."""

    query_start: np.ndarray
    query_end: np.ndarray
    target_start: np.ndarray
    target_end: np.ndarray


def clear_of(ends: Ends | Extensions, others: Ends | Extensions) -> np.ndarray:
    """Mask of the rows in which two alignments share hardly any bases, neither on the query nor on the target."""
    clear = np.ones(len(ends.query_start), bool)
    allowed = SLACK * np.minimum(_query_span(ends), _query_span(others))
    for side in ("query", "target"):
        start = np.maximum(getattr(ends, f"{side}_start"), getattr(others, f"{side}_start"))
        end = np.minimum(getattr(ends, f"{side}_end"), getattr(others, f"{side}_end"))
        clear &= end - start <= allowed
    return clear


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


def _query_span(ends: Ends | Extensions) -> np.ndarray:
    return ends.query_end - ends.query_start
