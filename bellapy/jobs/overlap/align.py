"""Rounds over tiles: extension of the best seed of each candidate, and of others where that is not enough.

With scores 1, -1, -1 unrelated sequence gains score, though less than homology.  So with a large X an extension runs far
beyond the homology, and the highest score lies there.  With a small X it stops too early, in a stretch of many errors.

There are two remedies.  First, the end is the cell with the highest tilted score (engines/linear/rule.py). There every base
costs a little more than unrelated sequence gains, and less than homology gains.  Second, an extension takes two steps.  The
first has a small X. Only where it ends inside both reads, a second one goes on from there with a large X. So X need not be
chosen, and the second step costs time only where reads need it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bellapy.compute.columns import begins_of_runs, join_rows, take_rows
from bellapy.compute.jit import njit_entry
from bellapy.compute.memory import Budget
from bellapy.compute.resources import Resources
from bellapy.compute.threads import shared_by
from bellapy.engines.ends import End
from bellapy.engines.extend import extend, extend_anchors
from bellapy.engines.flanks import Flanks
from bellapy.jobs.overlap.faults import SURE_SPAN
from bellapy.jobs.overlap.gate import GATED, pilot_seeds
from bellapy.jobs.overlap.geometry import Alignments, Geometry, clear_of, implied_ends, measure_geometry
from bellapy.jobs.overlap.judging import Judging
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, HeldReads, Work, with_ids
from bellapy.params import TILT_UNIT, ExtensionParams, Scoring
from bellapy.records import Extensions, ReadSet, Seeds
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.report.progress import progress

PLANE_BYTES = 0.75  # of the reads as bit planes in both directions, for each base
ALIGNED_BYTES = 240  # of copies, alignments and what is computed from them, for each seed
Steps = tuple[Scoring, ...]
NEAR_X, FAR_X = 15, 130  # of the two steps, for a match score of 1
ALONE_X = 25  # of `best` and `longest`, which take one step
FALL_BEYOND_X = 2, 20  # an extension stops when its tilted score has fallen by 2 X + 20
TILT_SHARE = 0.3  # of the way from what unrelated sequence gains to what homology gains
MIN_PILOT = 20  # sure alignments; with fewer, homology is taken to gain what it does with 15 % errors
OF_REPEATS = 0.2  # of what an aligned base gains more than an unrelated one: most implied bases gain less only in repeats
USUAL_GAIN = 0.33  # per base of either read, for a match score of 1
UNRELATED_FLANKS, UNRELATED_BASES = 32, 2000


@dataclass(frozen=True)
class ChosenSteps:
    """The scores and limits of all extensions."""

    steps: Steps


@dataclass(frozen=True)
class FirstAlignments(Alignments):
    """Those of the best seed of every candidate; the other seeds, and the row of the candidate of each, (n,) int64."""

    others: Seeds
    candidate: np.ndarray


@dataclass(frozen=True)
class AllAlignments(Alignments):
    """Those of all seeds that are extended, and how many of these are not the first of their candidate."""

    n_extensions: int
    n_second: int


STEPS = Result("steps", ChosenSteps)
FIRST = Result("first", FirstAlignments, TILES)
ALL = Result("all", AllAlignments, TILES)
FIRST_JUDGED, ALL_JUDGED = Judging(FIRST.name), Judging(ALL.name)


# ---------------------------------------------------------------- the steps of extensions


def learn_steps(work: Work) -> ChosenSteps:
    """From some well-supported seeds of all tiles."""
    reads, seeds = _with_bases(work, _pilot(work))
    return ChosenSteps(choose_steps(reads, seeds, work.params.extension, work.resources, work.estimate.gc))


def _pilot(work: Work) -> Seeds:
    """Some well-supported seeds of all tiles, in the order of candidates."""
    pilot = GATED.only("pilot", Seeds)
    parts = [with_ids(work.get(pilot, tile), work.ids(tile)) for tile in range(len(work.plan.tiles))]
    seeds = join_rows(parts)
    in_order = seeds.take(np.lexsort((-seeds.strand, seeds.target_id, seeds.query_id)))
    return pilot_seeds(work.reads.lengths, in_order)


def choose_steps(
    reads: ReadSet, seeds: Seeds, given: ExtensionParams, resources: Resources, gc: float = 0.5
) -> Steps:  # fmt: skip
    """The steps of all extensions: their X, the tilt, and when they stop.

    A given X leaves one step; `best` and `longest` have no tilt.  gc : share of G and C among the bases.
    """
    first = first_scoring(given)
    if given.extension != "homology":
        return (first,)
    tilt = choose_tilt(reads, seeds, first, resources, gc)
    further = [FAR_X * given.match] if given.xdrop is None else []
    return tuple(tilted(first, x, tilt) for x in (first.xdrop, *further))


def first_scoring(given: ExtensionParams) -> Scoring:
    """Scores as given, with the X of the first step, or of the only one."""
    alone = ALONE_X if given.extension != "homology" else NEAR_X
    x = alone * given.match if given.xdrop is None else given.xdrop
    return Scoring(given.match, given.mismatch, given.gap, x)


def tilted(scoring: Scoring, x: int, tilt: int) -> Scoring:
    """A step with this X and tilt."""
    slope, room = FALL_BEYOND_X
    return scoring._replace(xdrop=x, tilt=tilt, fall=TILT_UNIT * (slope * x + room * scoring.match))


def choose_tilt(reads: ReadSet, seeds: Seeds, scoring: Scoring, resources: Resources, gc: float = 0.5) -> int:
    """The tilt for these reads, in parts of TILT_UNIT.  gc : share of G and C among the bases."""
    x = ALONE_X * scoring.match
    unrelated = unrelated_gain(scoring._replace(xdrop=FAR_X * scoring.match), gc, resources)
    related = USUAL_GAIN * scoring.match
    if len(seeds) >= MIN_PILOT:
        step = tilted(scoring, x, round(TILT_UNIT * (unrelated + TILT_SHARE * (related - unrelated))))
        extensions = extend_anchors(reads, seeds.anchors, (step,), End.BEST, resources)
        related = _related_gain(extensions.score, measure_geometry(reads, seeds, extensions), unrelated)
    return max(0, round(TILT_UNIT * (unrelated + TILT_SHARE * max(0.0, related - unrelated))))


def _related_gain(score: np.ndarray, geometry: Geometry, unrelated: float) -> float:
    """What homology gains per base of either read: what most alignments do for each base that they imply.

    Most may be of repeats, and imply far more bases than are homologous.  Then it is what they gain for each aligned base.
    """
    implied, sure = float(np.median(score / np.maximum(geometry.implied, 1))) / 2, geometry.span >= SURE_SPAN
    aligned = float(np.median(score[sure] / geometry.span[sure])) / 2 if sure.any() else implied
    return implied if implied - unrelated > OF_REPEATS * (aligned - unrelated) else aligned


_known_gains: dict[tuple[Scoring, int], float] = {}


def unrelated_gain(scoring: Scoring, gc: float, resources: Resources) -> float:
    """What the extension of unrelated sequence gains per base of either read; next to nothing where it dies.

    It follows from the scores and from the share of G and C, in per cent, so it is found once for these.
    """
    given = scoring, round(100 * gc)
    if given not in _known_gains:
        _known_gains[given] = _unrelated_gain(*given, resources)
    return _known_gains[given]


def _unrelated_gain(scoring: Scoring, gc: int, resources: Resources) -> float:
    """As above; gc : per cent."""
    shares = np.array([100 - gc, gc, gc, 100 - gc]) / 200
    rng, n = np.random.default_rng(1), 2 * UNRELATED_FLANKS
    begins = PAD + np.arange(n) * (UNRELATED_BASES + PAD)
    codes = np.full(begins[-1] + UNRELATED_BASES + PAD, UNKNOWN, np.uint8)
    for begin in begins.tolist():
        codes[begin : begin + UNRELATED_BASES] = rng.choice(4, UNRELATED_BASES, p=shares)
    reads = ReadSet(tuple(map(str, range(n))), codes, begins, np.full(n, UNRELATED_BASES, np.int32))
    lengths = np.full(n // 2, UNRELATED_BASES, np.int64)
    flanks = Flanks(begins[0::2].copy(), lengths, begins[1::2].copy(), lengths.copy(), np.zeros(n // 2, np.uint8))
    found = extend(reads.both_ways, flanks, scoring, End.BEST, resources)
    return float(found.score.sum() / (n * UNRELATED_BASES))


# ---------------------------------------------------------------- extension


def align_first(work: Work, tile: int) -> FirstAlignments:
    """The alignment of the best seed of every candidate."""
    seeds = work.pop(GATED, tile).seeds
    n_bases = int(work.lengths(tile).sum(dtype=np.int64))
    ways = 1 if isinstance(work.reads, HeldReads) else 2  # that are not held yet
    room = int((ways + PLANE_BYTES) * n_bases) + ALIGNED_BYTES * len(seeds)
    Budget(work.params.run.max_memory).require("the alignment, with the reads in both directions,", room)
    is_first, threads = begins_of_runs(*seeds.pairs), work.params.run.threads
    further = np.flatnonzero(~is_first)
    chosen = take_rows(seeds, np.flatnonzero(is_first), threads) if len(further) else seeds
    others, candidate = take_rows(seeds, further, threads), further - np.arange(1, len(further) + 1)
    del seeds  # there are many, and now twice
    extensions = _extend(work, tile, chosen, 0, len(chosen) + len(others))
    return FirstAlignments(chosen, extensions, others, candidate)


def align_second(work: Work, tile: int) -> AllAlignments:
    """All alignments: second seeds, too, where the first gave no overlap or leaves room for another."""
    thresholds, fair = work.get(FIRST_JUDGED.thresholds), work.pop(FIRST_JUDGED.fair, tile).geometry
    first, geometry = work.pop(FIRST, tile), work.pop(FIRST_JUDGED.measured, tile).geometry
    chosen, others, extensions, candidate = first.seeds, first.others, first.extensions, first.candidate
    del first
    poor = thresholds.failures(extensions.score, chosen.copies, geometry, fair, work.params.run.threads)[candidate] > 0
    apart = clear_of(implied_ends(work.without_bases(tile), others), extensions.take(candidate))  # another piece, if any
    taken = np.where(poor, others.rank < work.params.seeds.ranks, apart)
    others, candidate = others.take(taken), candidate[taken]
    more = _extend(work, tile, others, len(chosen), len(chosen) + len(others)) if len(others) else _none()
    threads, n_second = work.params.run.threads, len(others)
    seeds, alignments = join_rows([chosen, others], threads), join_rows([extensions, more], threads)
    if n_second:
        order = np.insert(np.arange(len(chosen)), candidate + 1, len(chosen) + np.arange(n_second))  # behind the first ones
        seeds, alignments = take_rows(seeds, order, threads), take_rows(alignments, order, threads)
    return AllAlignments(seeds, alignments, len(seeds), n_second)


def in_candidate_order(seeds: Seeds) -> np.ndarray | None:
    """The rows in the order of candidates, those of one as they stand; None: they are in it, which is usual."""
    if are_in_order(*seeds.pairs):
        return None
    return np.argsort(candidate_keys(seeds), kind="stable")


def candidate_keys(seeds: Seeds) -> np.ndarray:
    """A number for the candidate (query, target, strand) of every row, (n,) int64."""
    key = seeds.query_id.astype(np.int64)
    for bits, column in ((31, seeds.target_id), (1, seeds.strand > 0)):  # in place: new memory takes longer
        key <<= bits
        key |= column
    return key


@njit_entry
def are_in_order(query_id, target_id, strand):
    """Whether the rows of each candidate lie together, in the order of pairs of reads; (n,) each, as in Seeds."""
    turned = False
    for i in range(1, len(query_id)):
        if query_id[i] == query_id[i - 1] and target_id[i] == target_id[i - 1]:
            if strand[i] != strand[i - 1]:
                if turned:
                    return False
                turned = True
            continue
        turned = False
        if query_id[i] < query_id[i - 1] or (query_id[i] == query_id[i - 1] and target_id[i] < target_id[i - 1]):
            return False
    return True


def _extend(work: Work, tile: int, seeds: Seeds, n_before: int, n_all: int) -> Extensions:
    """The alignments that grow from some seeds of a tile."""
    steps, end = work.get(STEPS).steps, End.of(work.params.extension.extension)
    reads, seeds = _with_bases(work, seeds if work.is_whole else with_ids(seeds, work.ids(tile)))
    with progress("align", n_all if work.is_whole else None) as advance:
        resources = replace(work.resources, progress=lambda done: advance(n_before + done))
        return extend_anchors(reads, seeds.anchors, steps, end, resources)


def _with_bases(work: Work, seeds: Seeds) -> tuple[ReadSet, Seeds]:
    """The reads of some seeds, and perhaps others, and the seeds with the ids that their reads have there."""
    if isinstance(work.reads, HeldReads):
        reads = work.reads.all()
        reads.turn_by(shared_by(work.params.run.threads))
        return reads, seeds
    ids = np.unique(np.concatenate((seeds.query_id, seeds.target_id)).astype(np.int64))
    new_ids = np.zeros(len(work.reads.lengths), np.int32)
    new_ids[ids] = np.arange(len(ids))
    return work.reads.of(ids), with_ids(seeds, new_ids)


def _none() -> Extensions:
    return Extensions(*np.zeros((9, 0), np.int32))
