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
threshold rises to the 1st percentile of the sure ones, and nearly all of the implied length has to be aligned.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

import numpy as np

from bellapy.compute.threads import map_threads
from bellapy.jobs.overlap.candidate_filter import MIN_SURE, SURE_SUPPORT
from bellapy.jobs.overlap.estimate import DEFAULT_ERROR_RATE, expected_score_rate
from bellapy.jobs.overlap.geometry import Geometry, measure_geometry
from bellapy.jobs.overlap.pieces import SLACK, clear_of, implied_ends
from bellapy.jobs.overlap.seeds import first_of_candidate
from bellapy.params import ExtensionParams, FilterParams
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds

SPREAD = 2.0
REPEAT_SPREAD = 1.0
PIECE_ROWS = 1 << 15  # candidates examined at a time
MAX_FLOOR = 0.2  # per match score
LEAST_SHARE = 0.25  # of the median score per base of the implied length, overhangs of bad ends counted
SURE_SHARE = 0.5  # of the implied length that is aligned
SURE_SPAN = 1000  # bases
SURE_OVERHANG = 50  # bases
SURE_COPIES = np.float32(1.3)
REPEAT_COPIES = (1.1, 1.5)  # from where on and up to where the thresholds rise
REPEAT_ALIGNED = 0.95  # share of the implied length


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

    def passed(self, score: np.ndarray, copies: np.ndarray, geometry: Geometry, fair: Geometry) -> dict[str, np.ndarray]:
        """Mask of the alignments that pass each test, by the reason to drop the others."""
        rate = np.interp(copies, REPEAT_COPIES, (self.score_rate, self.repeat_rate))
        aligned = np.interp(copies, REPEAT_COPIES, (0, REPEAT_ALIGNED if self.median_rate else 0))
        return {
            "score too low": (score >= self.floor * geometry.implied) & (score >= rate * fair.implied),
            "stops in a repeat": fair.aligned >= aligned * fair.implied,
            "in the lesser part of a joined read": ~fair.lesser,
        }


def score_floor(scoring: ExtensionParams, params: FilterParams, error_rate: float | None, given: bool) -> float:
    """BELLA's threshold per base; where the error rate was not given by the user, at most MAX_FLOOR."""
    rate = DEFAULT_ERROR_RATE if error_rate is None else error_rate
    bound = (1 - params.delta) * expected_score_rate(rate, scoring.match, scoring.mismatch, scoring.gap)
    return max(0.0, bound if given else min(bound, MAX_FLOOR * scoring.match))


def surely_overlaps(seeds: Seeds, extensions: Extensions, geometry: Geometry, floor: float) -> np.ndarray:
    """Mask of the alignments that are surely overlaps, though perhaps of reads with bad ends."""
    sure = (seeds.rank == 0) & (seeds.n_support >= SURE_SUPPORT) & (seeds.copies <= SURE_COPIES)
    sure &= (geometry.span >= SURE_SPAN) & (geometry.span >= SURE_SHARE * geometry.implied)
    return sure & (extensions.score >= floor * geometry.implied)


def rates_of(extensions: Extensions, geometry: Geometry) -> np.ndarray:
    """Score per base of implied length, (n,) float64."""
    return extensions.score / np.maximum(geometry.implied, 1)


def tell_of_reads(rates: np.ndarray, geometry: Geometry, usual: float) -> np.ndarray:
    """Mask of the alignments that tell where reads go on.

    rates : of `rates_of`.  usual : the median of those that are surely overlaps.
    """
    return (rates >= usual / 2) & (geometry.span >= SURE_SPAN)


def teach(sure: np.ndarray, fair: Geometry) -> np.ndarray:
    """Mask of the alignments that thresholds are learnt from: sure ones without overhangs, bad ends left out."""
    return sure & (fair.overhang <= SURE_OVERHANG)


def learn_thresholds(rates: np.ndarray, floor: float, delta: float, *, given: bool) -> Thresholds:
    """What the scores of sure overlaps suggest.

    Parameters
    ----------
    rates : score per base of implied length, bad ends left out, of the alignments that `teach`.
    floor : smallest score per base of implied length; it stays where it is `given` by the user.
    delta : share of the median by which the threshold lies below it, at least.
    """
    if len(rates) < MIN_SURE:
        return Thresholds(floor, floor, floor, None, len(rates))
    low, median = np.percentile(rates, (1, 50))
    least = floor if given else min(floor, LEAST_SHARE * median)
    ordinary = max(least, median - max(SPREAD * (median - low), delta * median))
    repeat = max(ordinary, median - REPEAT_SPREAD * (median - low))
    return Thresholds(float(least), float(ordinary), float(repeat), float(median), len(rates))


def estimate_matches(scoring: ExtensionParams, extensions: Extensions) -> tuple[np.ndarray, np.ndarray]:
    """Matching bases and alignment columns, without a path: (n,) int32 each.

    Assumes that a third of the errors are mismatches and the rest gaps.  With m matches and x errors, score = match * m -
    cost * x, and the two spans add up to 2 m + 4/3 x.
    """
    spans = (extensions.query_end - extensions.query_start).astype(float) + extensions.target_end - extensions.target_start
    cost = -(scoring.mismatch + 2 * scoring.gap) / 3
    matches = (spans + 4 / 3 * extensions.score / cost) / (2 + 4 / 3 * scoring.match / cost)
    shorter = np.minimum(extensions.query_end - extensions.query_start, extensions.target_end - extensions.target_start)
    matches = np.clip(np.rint(matches), 0, shorter).astype(np.int32)
    errors = np.maximum(0, np.rint((scoring.match * matches - extensions.score) / cost)).astype(np.int32)
    return matches, np.maximum(matches + errors, shorter)


def _candidates(seeds: Seeds) -> np.ndarray:
    """A number for the candidate (query, target, strand) of every row, (n,) int64."""
    return seeds.query_id.astype(np.int64) << 32 | seeds.target_id.astype(np.int64) << 1 | (seeds.strand > 0)


def best_of_candidate(seeds: Seeds, extensions: Extensions) -> np.ndarray:
    """Rows of the highest-scoring alignment of every candidate (query, target, strand), in that order."""
    candidate = _candidates(seeds)
    order = np.argsort(candidate, kind="stable")  # runs in order are merged, which is faster than sorting by score too
    starts = np.flatnonzero(np.diff(candidate[order], prepend=-1))
    merit = (extensions.score.astype(np.int64) << 8 | 127 - seeds.rank)[order]  # the lower rank of equal scores
    best = np.maximum.reduceat(merit, starts) if len(starts) else merit
    return order[merit == np.repeat(best, np.diff(starts, append=len(order)))]


def filter_overlaps(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, thresholds: Thresholds, fair: Geometry, scoring: ExtensionParams,
    params: FilterParams, threads: int = 1,
) -> tuple[Overlaps, dict[str, int]]:  # fmt: skip
    """The overlaps among the alignments, by query, target and strand; how many candidates were dropped for what reason.

    A candidate has one overlap, or two where its reads overlap at both ends (pieces.py), the higher-scoring one first.
    """
    alignments = reads, seeds, extensions, fair
    judged = thresholds, scoring, params, threads
    kept, dropped = _passing(*alignments, best_of_candidate(seeds, extensions), *judged)
    further, _ = _passing(*alignments, further_pieces(reads, seeds, extensions, kept), *judged)
    rows = np.concatenate((kept, further))
    rows = rows[np.argsort(_candidates(seeds.take(rows)), kind="stable")] if len(further) else kept

    def show(piece: np.ndarray) -> Overlaps:
        return _as_overlaps(seeds.take(piece), extensions.take(piece), scoring)

    parts = map_threads(show, _in_pieces(rows), threads)
    names = [f.name for f in fields(Overlaps)]
    columns = map_threads(lambda name: np.concatenate([getattr(part, name) for part in parts]), names, threads)
    return Overlaps(*columns), dropped


def further_pieces(reads: ReadSet, seeds: Seeds, extensions: Extensions, kept: np.ndarray) -> np.ndarray:
    """Rows of alignments that may be a second overlap beside the kept one of their candidate, the best of each candidate.

    kept : rows, one of a candidate, in the order of candidates.
    """
    others = np.ones(len(seeds), bool)
    others[kept] = False
    rows, candidate = np.flatnonzero(others), _candidates(seeds)
    at = np.minimum(np.searchsorted(candidate[kept], candidate[rows]), len(kept) - 1)
    beside = candidate[kept[at]] == candidate[rows] if len(kept) else np.zeros(len(rows), bool)
    rows, first = rows[beside], kept[at[beside]]
    rows = rows[clear_of(extensions.take(rows), extensions.take(first))]
    geometry = measure_geometry(reads, seeds.take(rows), extensions.take(rows))
    rows = rows[geometry.overhang <= SLACK * geometry.implied]
    return rows[best_of_candidate(seeds.take(rows), extensions.take(rows))]


def _in_pieces(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[at : at + PIECE_ROWS] for at in range(0, max(1, len(rows)), PIECE_ROWS)]


def _passing(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, fair: Geometry, rows: np.ndarray, thresholds: Thresholds,
    scoring: ExtensionParams, params: FilterParams, threads: int,
) -> tuple[np.ndarray, dict[str, int]]:  # fmt: skip
    """Those of the rows whose alignments pass all tests; how many do not, by reason."""

    def test(piece: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
        chosen, ends = seeds.take(piece), extensions.take(piece)
        geometry = measure_geometry(reads, chosen, ends)
        tests = shape_tests(geometry, *estimate_matches(scoring, ends), params)
        scores = thresholds.passed(ends.score, chosen.copies, geometry, fair.take(piece))
        keep, its_dropped = apply_tests({"too short": tests["too short"], **scores, **tests})
        return piece[keep], its_dropped

    done, dropped = map_threads(test, _in_pieces(rows), threads), Counter[str]()
    for _, its_dropped in done:
        dropped.update(its_dropped)
    return np.concatenate([kept for kept, _ in done]), dict(dropped)


def _as_overlaps(seeds: Seeds, extensions: Extensions, scoring: ExtensionParams) -> Overlaps:
    """What is reported of some alignments."""
    return Overlaps(
        seeds.query_id, seeds.target_id, seeds.strand, extensions.query_start, extensions.query_end,
        extensions.target_start, extensions.target_end, extensions.score, seeds.n_support,
        *estimate_matches(scoring, extensions), seeds.query_pos, seeds.target_pos,
        np.full(len(seeds), seeds.length, np.int32), extensions.left_query, extensions.left_target, extensions.right_query,
        extensions.right_target,
    )  # fmt: skip


def shape_tests(geometry: Geometry, matches: np.ndarray, columns: np.ndarray, params: FilterParams) -> dict[str, np.ndarray]:
    """Mask of the alignments that pass each test of length, overhang and identity, by the reason to drop the others."""
    return {
        "too short": geometry.span >= params.min_overlap,
        "overhang": geometry.overhang <= (np.inf if params.max_overhang is None else params.max_overhang),
        "identity": matches >= params.min_identity * columns,
    }


def apply_tests(tests: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, int]]:
    """Mask of the rows that pass all tests, and how many fail each one that pass those before it.

    tests : mask of the rows that pass, by the reason to drop the others.
    """
    keep: np.ndarray = np.asarray(True)
    dropped = {}
    for reason, passed in tests.items():
        dropped[reason] = int((keep & ~passed).sum())
        keep = keep & passed
    return keep, dropped


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
