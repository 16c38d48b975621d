"""Overlaps by the rules that look at those of all tiles.

There are two, and both are options.

1. Contained reads (`--drop-contained`): a read whose whole length lies in an overlap with a longer one, up to a share SLACK
   of it that is not aligned.  Assemblers drop such reads first.  All overlaps of these reads are dropped.
2. The best of each read (`--max-overlaps-per-read`): overlaps are taken by score, the highest first, as long as both reads
   have fewer than so many.  So no read has more, and reads of repeats do not fill the output.

Of equal scores the one with more shared k-mers comes first, then the one of the earlier reads.  The order in which reads are
given, and tiles, have no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bellapy.compute.jit import njit
from bellapy.jobs.overlap.filter import OVERLAPS, count_candidates
from bellapy.jobs.overlap.geometry import SLACK
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import Work
from bellapy.params import FilterParams
from bellapy.records import Overlaps, join_overlaps

CONTAINED, BEYOND = "of a contained read", "beyond the best of a read"


@dataclass(frozen=True)
class Selected:
    """Which overlaps of each tile are kept, masks (n,) bool, none where all are; how many, and how many not, by reason."""

    masks: tuple[np.ndarray, ...]
    n_overlaps: int
    n_second: int
    dropped: dict[str, int]


SELECTED = Result("selected", Selected)


def select_overlaps(work: Work) -> Selected:
    """By the rules that look at the overlaps of all tiles."""
    if not selects(work.params.filter):
        return Selected((), work.total(OVERLAPS, "n_overlaps"), work.total(OVERLAPS, "n_second"), {})
    parts = [_found_of(work, tile) for tile in range(len(work.plan.tiles))]
    keep, dropped = select(work.reads.lengths, join_overlaps(parts), work.params.filter)
    masks = np.split(keep, np.cumsum([len(part) for part in parts])[:-1])
    kept = [part.take(mask) for part, mask in zip(parts, masks, strict=True)]
    n_overlaps = int(keep.sum())
    return Selected(tuple(masks), n_overlaps, n_overlaps - sum(map(count_candidates, kept)), dropped)


def overlaps_of(work: Work, tile: int) -> Overlaps:
    """The overlaps of a tile that are kept, by the ids of all reads."""
    overlaps, masks = _found_of(work, tile), work.get(SELECTED).masks
    return overlaps.take(masks[tile]) if masks else overlaps


def _found_of(work: Work, tile: int) -> Overlaps:
    """All overlaps of a tile, by the ids of all reads."""
    overlaps = work.get(OVERLAPS.only("overlaps", Overlaps), tile)
    if work.is_whole:
        return overlaps
    ids = work.ids(tile).astype(np.int32)
    return replace(overlaps, query_id=ids[overlaps.query_id], target_id=ids[overlaps.target_id])


def selects(params: FilterParams) -> bool:
    """Whether any of the rules is asked for."""
    return params.drop_contained or params.max_overlaps_per_read is not None


def select(lengths: np.ndarray, overlaps: Overlaps, params: FilterParams) -> tuple[np.ndarray, dict[str, int]]:
    """Mask of the overlaps that are kept, and how many are not, by reason.

    lengths : (n_reads,) int32.  overlaps : all of them, by the ids of all reads, in any order.
    """
    keep, dropped = np.ones(len(overlaps), bool), {}
    if params.drop_contained:
        contained = contained_reads(lengths, overlaps)
        keep = ~(contained[overlaps.query_id] | contained[overlaps.target_id])
        dropped[CONTAINED] = int((~keep).sum())
    if params.max_overlaps_per_read is not None:
        best = np.zeros(len(overlaps), bool)
        order = by_merit(overlaps)
        order = order[keep[order]]
        take_best(overlaps.query_id, overlaps.target_id, order, params.max_overlaps_per_read, len(lengths), best)
        dropped[BEYOND] = int((keep & ~best).sum())
        keep = best
    return keep, dropped


def contained_reads(lengths: np.ndarray, overlaps: Overlaps) -> np.ndarray:
    """Mask of the reads that lie in a longer one, (n_reads,) bool; of two equally long ones, the later read does."""
    query, target = overlaps.query_id, overlaps.target_id
    query_length, target_length = lengths[query], lengths[target]
    whole_query = overlaps.query_end - overlaps.query_start >= (1 - SLACK) * query_length
    whole_target = overlaps.target_end - overlaps.target_start >= (1 - SLACK) * target_length
    query_is_shorter = (query_length < target_length) | ((query_length == target_length) & (query > target))
    contained = np.zeros(len(lengths), bool)
    contained[query[whole_query & query_is_shorter]] = True
    contained[target[whole_target & ~query_is_shorter]] = True
    return contained


def by_merit(overlaps: Overlaps) -> np.ndarray:
    """The rows from the best overlap to the worst, (n,) int64."""
    ties = overlaps.query_start, overlaps.strand, overlaps.target_id, overlaps.query_id
    return np.lexsort((*ties, -overlaps.n_support, -overlaps.score))


@njit
def take_best(query, target, order, most, n_reads, best):
    """best[row] = True for the rows, in their order, of which neither read has been in `most` of them before.

    query, target : (n,) int32, reads of each row.  order : (n or fewer,) int64, rows.  best : (n,) bool, filled.
    """
    n = np.zeros(n_reads, np.int64)
    for row in order:
        if n[query[row]] < most and n[target[row]] < most:
            n[query[row]] += 1
            n[target[row]] += 1
            best[row] = True
