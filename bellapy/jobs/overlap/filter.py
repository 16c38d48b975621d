"""Stage 8: alignments -> overlaps.

An alignment is an overlap if it passes the tests of its score (judging.py), of its shape, and of what its reads score
elsewhere (other_copies.py).  Each test leaves a bit, and the first of REASONS counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit_entry
from bellapy.compute.threads import map_threads, shared_by
from bellapy.jobs.overlap.align import ALL, ALL_JUDGED
from bellapy.jobs.overlap.candidates import GATED
from bellapy.jobs.overlap.geometry import SLACK, Geometry, clear_of, implied_ends, measure_geometry
from bellapy.jobs.overlap.judging import IDENTITY, OTHER_COPY, OVERHANG, REASONS, SHORT, Thresholds
from bellapy.jobs.overlap.other_copies import LIMITS, SHORTFALLS, with_other_copies
from bellapy.jobs.overlap.seed_rows import (
    candidate_keys,
    first_of_candidate,
    in_candidate_order,
    starts_of_candidates,
    take_by,
)
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.params import ExtensionParams, FilterParams
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

SHAPE_REASONS = tuple(REASONS[i] for i in (0, 4, 5))


@dataclass(frozen=True)
class TileOverlaps:
    """The overlaps of a tile, and how many of them are second ones of their pair."""

    overlaps: Overlaps
    n_overlaps: int
    n_second: int = 0
    dropped: dict[str, int] | None = None


OVERLAPS = Result("overlaps", TileOverlaps, TILES)


class Shape(NamedTuple):
    """What an alignment has to be like: aligned bases, overhang and share of matching columns."""

    min_overlap: float
    max_overhang: float
    min_identity: float


def finish(work: Work, tile: int) -> TileOverlaps:
    """The overlaps of a tile."""
    params, reads, thresholds = work.rules, work.without_bases(tile), work.get(ALL_JUDGED.thresholds)
    some, fair = work.pop(ALL, tile), work.pop(ALL_JUDGED.fair, tile).geometry
    shortfall = work.pop(SHORTFALLS, tile).shortfall
    copies = with_other_copies(some.seeds.copies, shortfall, fair.implied, work.get(LIMITS))
    overlaps, dropped = filter_overlaps(
        reads, some.seeds, some.extensions, thresholds, fair, copies, params.extension, params.filter, params.run.threads
    )  # fmt: skip
    return TileOverlaps(overlaps, len(overlaps), len(overlaps) - count_candidates(overlaps), dropped)


def imply(work: Work, tile: int) -> TileOverlaps:
    """The overlaps that the seeds of a tile imply."""
    overlaps = implied_overlaps(work.without_bases(tile), work.pop(GATED, tile).seeds)
    return TileOverlaps(overlaps, len(overlaps))


def count_candidates(overlaps: Overlaps) -> int:
    """How many pairs and strands have overlaps."""
    return int(starts_of_candidates(overlaps.query_id, overlaps.target_id, overlaps.strand).sum())


def filter_overlaps(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, thresholds: Thresholds, fair: Geometry, copies: np.ndarray,
    scoring: ExtensionParams, params: FilterParams, threads: int = 1,
) -> tuple[Overlaps, dict[str, int]]:  # fmt: skip
    """The overlaps among the alignments, by candidates; how many candidates were dropped for what reason.

    fair : the geometry without bad ends.  copies : (n,) bool, alignments with another copy of a sequence.

    A candidate has one overlap, or two where its reads overlap at both ends (geometry.py), the higher-scoring one first.
    """
    if (order := in_candidate_order(seeds)) is not None:
        seeds, extensions, fair, copies = seeds.take(order), extensions.take(order), fair.take(order), copies[order]
    geometry, estimated = measure_geometry(reads, seeds, extensions, threads), estimate_matches(scoring, extensions, threads)
    failed = thresholds.failures(extensions.score, seeds.copies, geometry, fair, threads)
    failed |= shape_failures(geometry, *estimated, params, threads)
    failed |= np.where(copies, OTHER_COPY, np.uint8(0))
    best = best_of_candidate(seeds, extensions)
    failed_best = failed[best]
    kept = best[failed_best == 0]
    further = further_pieces(reads, seeds, extensions, kept)
    rows = _in_order(seeds, kept, further[failed[further] == 0])
    chosen, ends = take_by(seeds, rows, threads), take_by(extensions, rows, threads)
    overlaps = _as_overlaps(chosen, ends, *map_threads(lambda column: column[rows], estimated, threads))
    return overlaps, count_failed(failed_best)


def shape_failures(
    geometry: Geometry, matches: np.ndarray, columns: np.ndarray, params: FilterParams, threads: int = 1
) -> np.ndarray:
    """The bits of the tests of length, overhang and identity that alignments fail, (n,) uint8.

    matches, columns : (n,) int32, matching bases, and all columns of the alignments.
    params : with the shortest overlap, as `with_min_overlap` gives it.
    """
    assert params.min_overlap is not None
    most = np.inf if params.max_overhang is None else float(params.max_overhang)
    shape = Shape(float(params.min_overlap), most, float(params.min_identity))
    failed, bases = np.zeros(len(matches), np.uint8), (geometry.left, geometry.right, geometry.span)
    shared_by(threads)(lambda part: test_shapes(bases, (matches, columns), shape, *part, failed), len(matches))
    return failed


@njit_entry
def test_shapes(geometry, columns, shape, begin, end, failed):
    """failed[i], (n,) uint8, gets a bit for each of SHORT, OVERHANG and IDENTITY that drops row i of [begin, end).

    geometry : left, right and span, (n,) int32.  columns : matching bases, and all columns, (n,) int32.  shape : Shape.
    """
    (left, right, span), (matches, n_columns) = geometry, columns
    for i in range(begin, end):
        its = np.uint8(0)
        if not span[i] >= shape.min_overlap:
            its |= SHORT
        if not max(left[i], right[i]) <= shape.max_overhang:
            its |= OVERHANG
        if not matches[i] >= shape.min_identity * n_columns[i]:
            its |= IDENTITY
        failed[i] |= its


def count_failed(failed: np.ndarray, reasons: Sequence[str] = REASONS) -> dict[str, int]:
    """How many are dropped for what reason, the first that holds; failed : (n,) uint8, the bits of the tests."""
    counts = dict.fromkeys(reasons, 0)
    for bits, n in enumerate(np.bincount(failed[failed > 0], minlength=1).tolist()):
        if n:
            counts[REASONS[(bits & -bits).bit_length() - 1]] += n
    return counts


def best_of_candidate(seeds: Seeds, extensions: Extensions) -> np.ndarray:
    """Rows of the highest-scoring alignment of every candidate (query, target, strand), in that order."""
    order = in_candidate_order(seeds)
    if order is not None:
        return order[best_of_candidate(seeds.take(order), extensions.take(order))]
    best = np.empty(len(seeds), np.int64)
    n = list_best((seeds.query_id, seeds.target_id, seeds.strand), seeds.rank, extensions.score, best)
    return best[:n].copy()


@njit_entry
def list_best(candidates, rank, score, best):
    """Write the row with the highest score of every candidate to `best`, of equal ones that of lower rank; return how many.

    candidates : query_id, target_id and strand of Seeds, the rows of a candidate together.  rank : (n,) int8.
    score : (n,) int32.  best : (n,) int64.
    """
    query_id, target_id, strand = candidates
    n = 0
    for i in range(len(score)):
        if i and query_id[i] == query_id[i - 1] and target_id[i] == target_id[i - 1] and strand[i] == strand[i - 1]:
            row = best[n - 1]
            if score[i] > score[row] or (score[i] == score[row] and rank[i] < rank[row]):
                best[n - 1] = i
        else:
            best[n] = i
            n += 1
    return n


def _in_order(seeds: Seeds, kept: np.ndarray, further: np.ndarray) -> np.ndarray:
    """Kept rows, one of a candidate in the order of candidates, each with the further one of its candidate behind it."""
    if not len(further):
        return kept
    rows, number = np.concatenate((kept, further)), np.cumsum(first_of_candidate(seeds))
    return rows[np.argsort(number[rows], kind="stable")]


def further_pieces(reads: ReadSet, seeds: Seeds, extensions: Extensions, kept: np.ndarray) -> np.ndarray:
    """Rows of alignments that may be a second overlap beside the kept one of their candidate, the best of each candidate.

    kept : rows, one of a candidate, in the order of candidates; the rows of a candidate lie together.
    """
    others = np.ones(len(seeds), bool)
    others[kept] = False
    rows = np.flatnonzero(others) if len(kept) else kept
    at, its = np.searchsorted(kept, rows), candidate_keys(seeds.take(rows))
    first = np.full(len(rows), -1)
    for beside in (kept[np.maximum(at - 1, 0)], kept[np.minimum(at, len(kept) - 1)]):  # the nearest ones on either side
        first = np.where(candidate_keys(seeds.take(beside)) == its, beside, first)
    rows, first = rows[first >= 0], first[first >= 0]
    clear = clear_of(extensions.take(rows), extensions.take(first))
    rows = rows[clear]
    geometry = measure_geometry(reads, seeds.take(rows), extensions.take(rows))
    rows = rows[geometry.overhang <= SLACK * geometry.implied]
    return rows[best_of_candidate(seeds.take(rows), extensions.take(rows))]


# ---------------------------------------------------------------- what is reported


def estimate_matches(
    scoring: ExtensionParams, extensions: Extensions, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Matching bases and alignment columns, without a path: (n,) int32 each.

    Assumes that a third of the errors are mismatches and the rest gaps.  With m matches and x errors, score = match * m -
    cost * x, and the two spans add up to 2 m + 4/3 x.
    """
    (matches, columns), ends = np.empty((2, len(extensions)), np.int32), _ends_of(extensions)
    scores = scoring.match, _cost(scoring)
    shared_by(threads)(lambda part: fill_matches(ends, scores, *part, matches, columns), len(extensions))
    return matches, columns


@njit_entry
def fill_matches(ends, scores, begin, end, matches, columns):
    """Matching bases and columns of rows [begin, end), as `estimate_matches` says: (n,) int32 each.

    ends : scores, query starts and ends, target starts and ends, (n,) int32.  scores : of a match, and cost of an error.
    """
    (score, query_start, query_end, target_start, target_end), (match, cost) = ends, scores
    for i in range(begin, end):
        query, target = query_end[i] - query_start[i], target_end[i] - target_start[i]
        shorter = min(query, target)
        its = (query + target + 4 / 3 * score[i] / cost) / (2 + 4 / 3 * match / cost)
        matches[i] = min(max(np.rint(its), 0.0), shorter)
        errors = max(0.0, np.rint((match * matches[i] - score[i]) / cost))
        columns[i] = max(matches[i] + errors, shorter)


def _cost(scoring: ExtensionParams) -> float:
    """Of an error that is a mismatch once in three times, and else a gap."""
    return -(scoring.mismatch + 2 * scoring.gap) / 3


def _ends_of(extensions: Extensions) -> tuple[np.ndarray, ...]:
    ends = extensions.query_start, extensions.query_end, extensions.target_start, extensions.target_end
    return extensions.score, *ends


def _as_overlaps(seeds: Seeds, extensions: Extensions, matches: np.ndarray, columns: np.ndarray) -> Overlaps:
    """What is reported of some alignments."""
    return Overlaps(
        seeds.query_id, seeds.target_id, seeds.strand, extensions.query_start, extensions.query_end,
        extensions.target_start, extensions.target_end, extensions.score, seeds.n_support, matches, columns,
        seeds.query_pos, seeds.target_pos, np.full(len(seeds), seeds.length, np.int32), extensions.left_query,
        extensions.left_target, extensions.right_query, extensions.right_target,
    )  # fmt: skip


def implied_overlaps(reads: ReadSet, seeds: Seeds) -> Overlaps:
    """What seeds alone imply, without an alignment: along each best seed's diagonal to the ends of the reads."""
    seeds = seeds.take(first_of_candidate(seeds))
    ends = implied_ends(reads, seeds)
    length = ends.query_end - ends.query_start
    matches = np.minimum(seeds.n_support * seeds.length, length).astype(np.int32)
    return Overlaps(
        seeds.query_id, seeds.target_id, seeds.strand, ends.query_start, ends.query_end, ends.target_start, ends.target_end,
        np.zeros(len(seeds), np.int32), seeds.n_support, matches, length, seeds.query_pos, seeds.target_pos,
        np.full(len(seeds), seeds.length, np.int32), *np.zeros((4, len(seeds)), np.int32),
    )  # fmt: skip
