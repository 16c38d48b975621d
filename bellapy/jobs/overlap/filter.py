"""Stage 8: alignments -> overlaps.

An alignment is an overlap if it passes the tests of its score (judging.py), of its shape, and of what its reads score
elsewhere (other_copies.py).  Each test leaves a bit, and the first of REASONS counts.  Where base-level paths are made,
trimmed ends and exact identities may change what passes: the filter looks once more.

Two rules look at the overlaps of all tiles; both are options.

1. Contained reads (`--drop-contained`): a read whose whole length lies in an overlap with a longer one, up to a share SLACK
   of it that is not aligned.  Assemblers drop such reads first.  All overlaps of these reads are dropped.
2. The best of each read (`--max-overlaps-per-read`): overlaps are taken by score, the highest first, as long as both reads
   have fewer than so many.  So no read has more, and reads of repeats do not fill the output.

Of equal scores the one with more shared k-mers comes first, then the one of the earlier reads.  The order in which reads are
given, and tiles, have no part in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from bellapy.compute.columns import begins_of_runs, choose_rows, list_rows, make_rows, take_rows
from bellapy.compute.jit import njit, njit_entry
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads, shared_by
from bellapy.engines.ends import End
from bellapy.engines.trace import map_paths
from bellapy.engines.trim import trim_paths
from bellapy.jobs.overlap.align import ALL, ALL_JUDGED, Steps
from bellapy.jobs.overlap.gate import GATED
from bellapy.jobs.overlap.geometry import SLACK, Geometry, clear_of, implied_ends, measure_geometry
from bellapy.jobs.overlap.judging import IDENTITY, OTHER_COPY, OVERHANG, REASONS, SHORT
from bellapy.jobs.overlap.other_copies import LIMITS, SHORTFALLS, SUMS, with_other_copies
from bellapy.jobs.overlap.report import PathsStage
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.params import ExtensionParams, FilterParams, Params, Scoring
from bellapy.records import Extensions, Overlaps, Paths, ReadSet, Seeds, join_overlaps
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import RunReport, describe_dropped

Shown = TypeVar("Shown")
CONTAINED, BEYOND = "of a contained read", "beyond the best of a read"
NONE = np.uint8(0)
SHAPE_REASONS = tuple(REASONS[i] for i in (0, 4, 5))


@dataclass(frozen=True)
class TileOverlaps:
    """The overlaps of a tile, and how many of them are second ones of their pair."""

    overlaps: Overlaps
    n_overlaps: int
    n_second: int = 0
    dropped: dict[str, int] | None = None


OVERLAPS = Result("overlaps", TileOverlaps, TILES)


def finish(work: Work, tile: int) -> TileOverlaps:
    """The overlaps of a tile."""
    params, some, geometry = work.rules, work.pop(ALL, tile), work.pop(ALL_JUDGED.measured, tile).geometry
    failed, implied = work.pop(SUMS, tile).failed, work.pop(ALL_JUDGED.fair, tile).geometry.implied
    shortfall, threads = work.pop(SHORTFALLS, tile).shortfall, params.run.threads
    others = with_other_copies(some.seeds.copies, shortfall, implied, work.get(LIMITS), threads)
    failed, tests = failed | np.where(others, OTHER_COPY, NONE), (params.extension, params.filter)
    overlaps, dropped = filter_overlaps(some.seeds, some.extensions, geometry, failed, *tests, threads)
    return TileOverlaps(overlaps, len(overlaps), len(overlaps) - count_candidates(overlaps), dropped)


def imply(work: Work, tile: int) -> TileOverlaps:
    """The overlaps that the seeds of a tile imply."""
    overlaps = implied_overlaps(work.without_bases(tile), work.pop(GATED, tile).seeds)
    return TileOverlaps(overlaps, len(overlaps))


def count_candidates(overlaps: Overlaps) -> int:
    """How many pairs and strands have overlaps."""
    return int(np.count_nonzero(begins_of_runs(*overlaps.pairs)))


def filter_overlaps(
    seeds: Seeds, extensions: Extensions, geometry: Geometry, failed: np.ndarray, scoring: ExtensionParams,
    params: FilterParams, threads: int = 1,
) -> tuple[Overlaps, dict[str, int]]:  # fmt: skip
    """The overlaps among the alignments, by candidates; how many candidates were dropped for what reason.

    seeds : in the order of candidates.  failed : (n,) uint8, the tests that alignments failed before.

    A candidate has one overlap, or two where its reads overlap at both ends (geometry.py), the higher-scoring one first.
    """
    estimated = estimate_matches(scoring, extensions, threads)
    failed = failed | shape_failures(geometry, *estimated, params, threads)
    best = best_of_candidate(seeds, extensions, threads)
    failed_best = make_rows(lambda rows: failed[best[rows]], len(best), np.uint8, threads)
    kept = choose_rows(best, failed_best == 0, threads)
    further = further_pieces(seeds, extensions, geometry, kept)
    rows = _in_order(seeds, kept, further[failed[further] == 0])
    chosen, ends = take_rows(seeds, rows, threads), take_rows(extensions, rows, threads)
    matches, columns = map_threads(lambda column: column[rows], estimated, threads)
    overlaps = Overlaps(
        *chosen.pairs, *ends.intervals, ends.score, chosen.n_support, matches, columns, chosen.query_pos, chosen.target_pos,
        np.full(len(rows), seeds.length, np.int32), ends.left_query, ends.left_target, ends.right_query, ends.right_target,
    )  # fmt: skip
    return overlaps, count_failed(failed_best)


def shape_failures(
    geometry: Geometry, matches: np.ndarray, columns: np.ndarray, params: FilterParams, threads: int = 1
) -> np.ndarray:  # fmt: skip
    """The bits of the tests of length, overhang and identity that alignments fail, (n,) uint8.

    matches, columns : (n,) int32, matching bases, and all columns of the alignments.
    params : with the shortest overlap, as `with_min_overlap` gives it.
    """
    assert params.min_overlap is not None
    most = np.inf if params.max_overhang is None else params.max_overhang

    def fail(rows: slice) -> np.ndarray:
        short, long = geometry.span[rows] < params.min_overlap, np.maximum(geometry.left[rows], geometry.right[rows]) > most
        unlike = matches[rows] < params.min_identity * columns[rows]
        return np.where(short, SHORT, NONE) | np.where(long, OVERHANG, NONE) | np.where(unlike, IDENTITY, NONE)

    return make_rows(fail, len(matches), np.uint8, threads)


def count_failed(failed: np.ndarray, reasons: Sequence[str] = REASONS) -> dict[str, int]:
    """How many are dropped for what reason, the first that holds; failed : (n,) uint8, the bits of the tests."""
    counts = dict.fromkeys(reasons, 0)
    for bits, n in enumerate(np.bincount(failed[failed > 0]).tolist()):
        if n:
            counts[REASONS[(bits & -bits).bit_length() - 1]] += n
    return counts


def best_of_candidate(seeds: Seeds, extensions: Extensions, threads: int = 1) -> np.ndarray:
    """Rows of the highest-scoring alignment of every candidate (query, target, strand), whose rows lie together."""
    columns = seeds.pairs, seeds.rank, extensions.score
    return list_rows(lambda *part: list_best(*columns, *part), len(seeds), threads, *seeds.pairs)


@njit_entry
def list_best(candidates, rank, score, begin, end, best):
    """Write the row with the highest score of every candidate to `best`, of equal ones that of lower rank; return how many.

    candidates : query_id, target_id and strand of Seeds, the rows of a candidate together.  rank : (n,) int8.
    score : (n,) int32.  begin, end : the rows of some candidates.  best : (end - begin,) int64.
    """
    query_id, target_id, strand = candidates
    n = 0
    for i in range(begin, end):
        if i > begin and query_id[i] == query_id[i - 1] and target_id[i] == target_id[i - 1] and strand[i] == strand[i - 1]:
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
    rows, number = np.concatenate((kept, further)), np.cumsum(begins_of_runs(*seeds.pairs))
    return rows[np.argsort(number[rows], kind="stable")]


def further_pieces(seeds: Seeds, extensions: Extensions, geometry: Geometry, kept: np.ndarray) -> np.ndarray:
    """Rows of alignments that may be a second overlap beside the kept one of their candidate, the best of each candidate.

    kept : rows, one of a candidate, in the order of candidates; the rows of a candidate lie together.
    """
    if not len(kept):
        return kept
    begins = begins_of_runs(*seeds.pairs)
    rows = np.flatnonzero(~(begins & np.append(begins[1:], True)))  # of candidates with several alignments: few
    number = np.cumsum(begins[rows])
    is_kept = kept[np.minimum(np.searchsorted(kept, rows), len(kept) - 1)] == rows
    beside = np.full(len(rows) + 1, -1)
    beside[number[is_kept]] = rows[is_kept]
    rows, first = rows[~is_kept], beside[number[~is_kept]]
    rows, first = rows[first >= 0], first[first >= 0]
    clear = clear_of(extensions.take(rows), extensions.take(first))
    overhang, implied = np.maximum(geometry.left, geometry.right)[rows], geometry.implied[rows]
    rows = rows[clear & (overhang <= SLACK * implied)]
    return rows[best_of_candidate(seeds.take(rows), extensions.take(rows))]


# ---------------------------------------------------------------- what is reported


def estimate_matches(
    scoring: ExtensionParams, extensions: Extensions, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Matching bases and alignment columns, without a path: (n,) int32 each.

    Assumes that a third of the errors are mismatches and the rest gaps.  With m matches and x errors, score = match * m -
    cost * x, and the two spans add up to 2 m + 4/3 x.
    """
    (matches, columns), ends = np.empty((2, len(extensions)), np.int32), (extensions.score, *extensions.intervals)
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


def implied_overlaps(reads: ReadSet, seeds: Seeds) -> Overlaps:
    """What seeds alone imply, without an alignment: along each best seed's diagonal to the ends of the reads."""
    seeds = seeds.take(begins_of_runs(*seeds.pairs))
    ends = implied_ends(reads, seeds)
    length = ends.query_end - ends.query_start
    matches = np.minimum(seeds.n_support * seeds.length, length).astype(np.int32)
    return Overlaps(
        *seeds.pairs, *ends, np.zeros(len(seeds), np.int32), seeds.n_support, matches, length, seeds.query_pos,
        seeds.target_pos, np.full(len(seeds), seeds.length, np.int32), *np.zeros((4, len(seeds)), np.int32),
    )  # fmt: skip


# ---------------------------------------------------------------- with base-level paths


def paths_stage(
    parts: Iterable[tuple[ReadSet, Overlaps, Callable[[Overlaps, Paths], Shown]]], n_overlaps: int, steps: Steps,
    params: Params, report: RunReport,
) -> Iterator[Shown]:  # fmt: skip
    """What is shown of the overlaps and their base-level paths, in order, some at a time; the stage ends with the last.

    parts : the reads that some overlaps number, these overlaps, and what shows them.  n_overlaps : of all parts.
    steps : that the overlaps were aligned with.  params : with the shortest overlap, as `with_min_overlap` gives it.
    """
    end, resources = End.of(params.extension.extension), Resources.of(params.run, report.devices)
    dropped: Counter[str] = Counter()
    n_done, n_kept = 0, 0
    with report.stage(PathsStage("paths")) as stage, progress("paths", n_overlaps) as advance:
        for reads, overlaps, show in parts:

            def use(some: Overlaps, paths: Paths, reads=reads, show=show) -> tuple[Shown, int, int, dict[str, int]]:
                kept, paths, lost = trim_and_test(reads, some, paths, steps[0], params.filter)
                return show(kept, paths), len(some), len(kept), lost

            for lines, n, kept, lost in map_paths(use, reads, overlaps, steps, end, resources):
                yield lines
                n_done, n_kept = n_done + n, n_kept + kept
                dropped.update(lost)
                advance(n_done)
        stage.overlaps = n_kept
    report.dropped.add(dropped)
    logger.info("dropped by their paths: %s", describe_dropped(dropped))


def keep_sound(
    reads: ReadSet, overlaps: Overlaps, paths: Paths, params: FilterParams
) -> tuple[Overlaps, Paths, dict[str, int]]:
    """What passes the tests of the filter that paths and trimming may change; how many do not, by reason."""
    geometry = measure_geometry(reads, overlaps, overlaps)
    failed = shape_failures(geometry, overlaps.n_matches, overlaps.n_columns, params)
    keep, dropped = failed == 0, count_failed(failed, SHAPE_REASONS)
    return (overlaps, paths, dropped) if keep.all() else (overlaps.take(keep), paths.take(keep), dropped)


def trim_and_test(
    reads: ReadSet, overlaps: Overlaps, paths: Paths, scoring: Scoring, params: FilterParams
) -> tuple[Overlaps, Paths, dict[str, int]]:
    """Paths trimmed if asked for; what is still an overlap then, and how many are dropped for what reason."""
    if params.trim_identity is not None:
        overlaps, paths = trim_paths(reads, overlaps, paths, params.trim_identity, scoring)
    return keep_sound(reads, overlaps, paths, params)


# ---------------------------------------------------------------- overlaps of all tiles


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
