"""Stage 8: alignments -> overlaps, by an adaptive score threshold.

A sound overlap scores about as much per base of its implied length as all others of the same reads do.  Chance and
repeat-induced alignments score less, since part of their implied length does not match.  So the threshold is learnt from
sure alignments: those with many shared k-mers, no overhang and no repeat.  It is their median score per base, less the
larger of two distances: SPREAD times the distance to their 1st percentile, and the share delta of the median.  Overhangs of
bad ends do not count (geometry.py), but an overlap scores at least LEAST_SHARE of the median with them.
Of a read joined from two places, what stops at the join in the lesser part is no overlap.

Without sure alignments the threshold is BELLA's bound (1 - delta) * phi, where phi is the score per base expected from the
error rate.  It is at most MAX_FLOOR, since real reads hold stretches far worse than their average.

Where the shared k-mers are those of a repeat (Seeds.copies), a false overlap is as likely as a true one.  There the
threshold rises to the 1st percentile of the sure ones, and nearly all of the implied length has to be aligned.  Copies that
are longer than reads are told apart by what each read scores elsewhere (judging.py).

Two rules look at all overlaps, and both are options.

1. Contained reads (`--drop-contained`): a read whose whole length lies in an overlap with a longer one, up to a share SLACK
   of it that is not aligned.  Assemblers drop such reads first.  All overlaps of these reads are dropped.
2. The best of each read (`--max-overlaps-per-read`): overlaps are taken by score, the highest first, as long as both reads
   have fewer than so many.  So no read has more, and reads of repeats do not fill the output.

Of equal scores the one with more shared k-mers comes first, then the one of the earlier reads.  The order in which reads are
given, and tiles, have no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.ranks import quantiles
from bellapy.compute.threads import even_ranges, map_threads, shared_by
from bellapy.jobs.overlap.candidate_filter import MIN_SURE
from bellapy.jobs.overlap.estimate import DEFAULT_ERROR_RATE, expected_score_rate
from bellapy.jobs.overlap.geometry import SLACK, Geometry, clear_of, implied_ends, measure_geometry
from bellapy.jobs.overlap.judging import (
    OTHER_COPY,
    REASONS,
    Rises,
    Shape,
    are_in_order,
    count_failed,
    fill_matches,
    list_best,
    list_rates,
    mark_sure,
    mark_teaching,
    mark_telling,
    test_scores,
    test_shapes,
)
from bellapy.jobs.overlap.seed_rows import first_of_candidate, take_by
from bellapy.params import ExtensionParams, FilterParams
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

SPREAD = 2.0
REPEAT_SPREAD = 1.0
MAX_FLOOR = 0.2  # per match score
LEAST_SHARE = 0.25  # of the median score per base of the implied length, overhangs of bad ends counted
REPEAT_ALIGNED = 0.95  # share of the implied length
SHAPE_REASONS = tuple(REASONS[i] for i in (0, 4, 5))
CONTAINED, BEYOND = "of a contained read", "beyond the best of a read"


@dataclass(frozen=True)
class Thresholds:
    """What an overlap has to reach.

    floor : score per base of implied length.
    score_rate : score per base of implied length without overhangs that do not count.
    repeat_rate : the same in repeats.
    median_rate, n_sure : what they were learnt from; median_rate is None where there was too little.
    """

    floor: float
    score_rate: float
    repeat_rate: float
    median_rate: float | None
    n_sure: int

    def failures(
        self, score: np.ndarray, copies: np.ndarray, geometry: Geometry, fair: Geometry, threads: int = 1
    ) -> np.ndarray:
        """The bits of the tests (judging.py) that alignments with these scores and copies fail, (n,) uint8."""
        rises = Rises(self.floor, (self.score_rate, self.repeat_rate), (0.0, REPEAT_ALIGNED if self.median_rate else 0.0))
        failed, bases = np.zeros(len(score), np.uint8), (fair.left, fair.right, fair.implied, fair.lesser)
        shared_by(threads)(
            lambda part: test_scores((score, copies), geometry.implied, bases, rises, *part, failed), len(score)
        )
        return failed


def score_floor(scoring: ExtensionParams, params: FilterParams, error_rate: float | None, given: bool) -> float:
    """BELLA's threshold per base; where the error rate was not given by the user, at most MAX_FLOOR."""
    rate = DEFAULT_ERROR_RATE if error_rate is None else error_rate
    bound = (1 - params.delta) * expected_score_rate(rate, scoring.match, scoring.mismatch, scoring.gap)
    return max(0.0, bound if given else min(bound, MAX_FLOOR * scoring.match))


def surely_overlaps(seeds: Seeds, extensions: Extensions, geometry: Geometry, floor: float, threads: int = 1) -> np.ndarray:
    """Mask of the alignments that are surely overlaps, though perhaps of reads with bad ends."""
    sure, columns = np.empty(len(seeds), bool), (seeds.rank, seeds.n_support, seeds.copies)
    measured = extensions.score, geometry.span, geometry.implied
    shared_by(threads)(lambda part: mark_sure(columns, measured, floor, *part, sure), len(seeds))
    return sure


def rates_of(extensions: Extensions, geometry: Geometry, rows: np.ndarray, threads: int = 1) -> np.ndarray:
    """Score per base of implied length of some alignments, (n,) float64; rows : mask of them."""
    parts = even_ranges(len(rows), threads)
    begins = np.concatenate(([0], np.cumsum([np.count_nonzero(rows[slice(*part)]) for part in parts], dtype=np.int64)))
    rates = np.empty(begins[-1])

    def list_part(i: int) -> None:
        list_rates(extensions.score, geometry.implied, rows, *parts[i], rates[begins[i] : begins[i + 1]])

    map_threads(list_part, range(len(parts)), threads)
    return rates


def tell_of_reads(extensions: Extensions, geometry: Geometry, usual: float, threads: int = 1) -> np.ndarray:
    """Mask of the alignments that tell where reads go on.

    usual : the median score per base of implied length of those that are surely overlaps.
    """
    telling, measured = np.empty(len(extensions), bool), (extensions.score, geometry.span, geometry.implied)
    shared_by(threads)(lambda part: mark_telling(measured, usual / 2, *part, telling), len(extensions))
    return telling


def teach(sure: np.ndarray, fair: Geometry, threads: int = 1) -> np.ndarray:
    """Mask of the alignments that thresholds are learnt from: sure ones without overhangs, bad ends left out."""
    teaching = np.empty(len(sure), bool)
    shared_by(threads)(lambda part: mark_teaching(sure, fair.left, fair.right, *part, teaching), len(sure))
    return teaching


def learn_thresholds(rates: np.ndarray, floor: float, delta: float, *, given: bool, threads: int = 1) -> Thresholds:
    """What the scores of sure overlaps suggest.

    Parameters
    ----------
    rates : score per base of implied length, bad ends left out, of the alignments that `teach`.
    floor : smallest score per base of implied length; it stays where it is `given` by the user.
    delta : share of the median by which the threshold lies below it, at least.
    """
    if len(rates) < MIN_SURE:
        return Thresholds(floor, floor, floor, None, len(rates))
    low, median = quantiles(rates, (0.01, 0.5), threads)
    least = floor if given else min(floor, LEAST_SHARE * median)
    ordinary = max(least, median - max(SPREAD * (median - low), delta * median))
    repeat = max(ordinary, median - REPEAT_SPREAD * (median - low))
    return Thresholds(float(least), float(ordinary), float(repeat), float(median), len(rates))


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


def _cost(scoring: ExtensionParams) -> float:
    """Of an error that is a mismatch once in three times, and else a gap."""
    return -(scoring.mismatch + 2 * scoring.gap) / 3


def _ends_of(extensions: Extensions) -> tuple[np.ndarray, ...]:
    ends = extensions.query_start, extensions.query_end, extensions.target_start, extensions.target_end
    return extensions.score, *ends


def _candidates(seeds: Seeds) -> np.ndarray:
    """A number for the candidate (query, target, strand) of every row, (n,) int64."""
    key = seeds.query_id.astype(np.int64)
    for bits, column in ((31, seeds.target_id), (1, seeds.strand > 0)):  # in place: new memory takes longer
        key <<= bits
        key |= column
    return key


def best_of_candidate(seeds: Seeds, extensions: Extensions) -> np.ndarray:
    """Rows of the highest-scoring alignment of every candidate (query, target, strand), in that order."""
    order = in_candidate_order(seeds)
    if order is not None:
        return order[best_of_candidate(seeds.take(order), extensions.take(order))]
    best = np.empty(len(seeds), np.int64)
    n = list_best((seeds.query_id, seeds.target_id, seeds.strand), seeds.rank, extensions.score, best)
    return best[:n].copy()


def in_candidate_order(seeds: Seeds) -> np.ndarray | None:
    """The rows in the order of candidates, those of one as they stand; None: they are in it, which is usual."""
    if are_in_order(seeds.query_id, seeds.target_id, seeds.strand):
        return None
    return np.argsort(_candidates(seeds), kind="stable")


def filter_overlaps(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, thresholds: Thresholds, fair: Geometry, copies: np.ndarray,
    scoring: ExtensionParams, params: FilterParams, threads: int = 1,
) -> tuple[Overlaps, dict[str, int]]:  # fmt: skip
    """The overlaps among the alignments, by candidates; how many candidates were dropped for what reason.

    fair : the geometry without bad ends.  copies : (n,) bool, alignments with another copy of a sequence (judging.py).

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
    at, its = np.searchsorted(kept, rows), _candidates(seeds.take(rows))
    first = np.full(len(rows), -1)
    for beside in (kept[np.maximum(at - 1, 0)], kept[np.minimum(at, len(kept) - 1)]):  # the nearest ones on either side
        first = np.where(_candidates(seeds.take(beside)) == its, beside, first)
    rows, first = rows[first >= 0], first[first >= 0]
    clear = clear_of(extensions.take(rows), extensions.take(first))
    rows = rows[clear]
    geometry = measure_geometry(reads, seeds.take(rows), extensions.take(rows))
    rows = rows[geometry.overhang <= SLACK * geometry.implied]
    return rows[best_of_candidate(seeds.take(rows), extensions.take(rows))]


def _as_overlaps(seeds: Seeds, extensions: Extensions, matches: np.ndarray, columns: np.ndarray) -> Overlaps:
    """What is reported of some alignments."""
    return Overlaps(
        seeds.query_id, seeds.target_id, seeds.strand, extensions.query_start, extensions.query_end,
        extensions.target_start, extensions.target_end, extensions.score, seeds.n_support, matches, columns,
        seeds.query_pos, seeds.target_pos, np.full(len(seeds), seeds.length, np.int32), extensions.left_query,
        extensions.left_target, extensions.right_query, extensions.right_target,
    )  # fmt: skip


def shape_failures(
    geometry: Geometry, matches: np.ndarray, columns: np.ndarray, params: FilterParams, threads: int = 1
) -> np.ndarray:
    """The bits of the tests of length, overhang and identity (judging.py) that alignments fail, (n,) uint8.

    matches, columns : (n,) int32, matching bases, and all columns of the alignments.
    params : with the shortest overlap, as `with_min_overlap` gives it.
    """
    assert params.min_overlap is not None
    most = np.inf if params.max_overhang is None else float(params.max_overhang)
    shape = Shape(float(params.min_overlap), most, float(params.min_identity))
    failed, bases = np.zeros(len(matches), np.uint8), (geometry.left, geometry.right, geometry.span)
    shared_by(threads)(lambda part: test_shapes(bases, (matches, columns), shape, *part, failed), len(matches))
    return failed


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
