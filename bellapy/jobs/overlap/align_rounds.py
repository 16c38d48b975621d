"""Rounds over tiles: extension, and how the alignments lie on their reads.

Alignments are judged twice: those of best seeds, to see which candidates need a second one, and then all of them.
What judges an alignment is learnt from all: the usual score, where reads turn, where they go on, and the thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bellapy.compute.memory import Budget
from bellapy.compute.ranks import median
from bellapy.compute.threads import shared_by
from bellapy.engines.ends import End
from bellapy.engines.extend import extend_anchors, join_extensions
from bellapy.jobs.overlap.candidate_filter import MIN_SURE
from bellapy.jobs.overlap.candidate_rounds import GATED, without_bases
from bellapy.jobs.overlap.crossings import Aligned, Crossings, find_crossings
from bellapy.jobs.overlap.ends import Steps, choose_steps, pilot_seeds
from bellapy.jobs.overlap.filter import (
    Thresholds,
    in_candidate_order,
    learn_thresholds,
    rates_of,
    score_floor,
    surely_overlaps,
    teach,
    tell_of_reads,
)
from bellapy.jobs.overlap.geometry import (
    Geometry,
    Standing,
    bin_starts,
    clear_of,
    fair_geometry,
    hull_steps_of,
    implied_ends,
    measure_geometry,
    steps_of,
)
from bellapy.jobs.overlap.seed_rows import first_of_candidate, join_seeds, take_by
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, HeldReads, Work, with_ids
from bellapy.records import Extensions, ReadSet, Seeds
from bellapy.report.progress import progress

PLANE_BYTES = 0.75  # of the reads as bit planes in both directions, for each base
ALIGNED_BYTES = 240  # of copies, alignments and what is computed from them, for each seed


@dataclass(frozen=True)
class ChosenSteps:
    """The scores and limits of all extensions."""

    steps: Steps


@dataclass(frozen=True)
class Alignments:
    """Seeds that were extended, in the order of candidates, and what grew from each."""

    seeds: Seeds
    extensions: Extensions


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


@dataclass(frozen=True)
class Turns:
    """Where alignments of reads on both strands cross; telling : (n,) bool, the alignments that tell where reads go on."""

    crossings: Crossings
    telling: np.ndarray


@dataclass(frozen=True)
class Cover:
    """Where alignments go on along the reads of a tile, (n_bins,) int32 each, as of `steps_of` and `hull_steps_of`."""

    steps: np.ndarray
    hull_steps: np.ndarray


@dataclass(frozen=True)
class Fair:
    """The geometry without bad ends, and the scores per base that thresholds are learnt from."""

    geometry: Geometry
    rates: np.ndarray


STEPS = Result("steps", ChosenSteps)
FIRST = Result("first", FirstAlignments, TILES)
ALL = Result("all", AllAlignments, TILES)


# ---------------------------------------------------------------- extension


def learn_steps(work: Work) -> ChosenSteps:
    """From some well-supported seeds of all tiles."""
    return ChosenSteps(choose_steps(*_with_bases(work, _pilot(work)), work.params.extension, work.resources))


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


def _pilot(work: Work) -> Seeds:
    """Some well-supported seeds of all tiles, in the order of candidates."""
    pilot = GATED.only("pilot", Seeds)
    parts = [with_ids(work.get(pilot, tile), work.ids(tile)) for tile in range(len(work.plan.tiles))]
    seeds = join_seeds(parts, parts[0].length)
    in_order = seeds.take(np.lexsort((-seeds.strand, seeds.target_id, seeds.query_id)))
    return pilot_seeds(work.reads.lengths, in_order)


def _extend(work: Work, tile: int, seeds: Seeds, n_before: int, n_all: int) -> Extensions:
    """The alignments that grow from some seeds of a tile."""
    steps, end = work.get(STEPS).steps, End.of(work.params.extension.extension)
    reads, seeds = _with_bases(work, seeds if work.is_whole else with_ids(seeds, work.ids(tile)))
    with progress("align", n_all if work.is_whole else None) as advance:
        resources = replace(work.resources, progress=lambda done: advance(n_before + done))
        return extend_anchors(reads, seeds.anchors, steps, end, resources)


def align_first(work: Work, tile: int) -> FirstAlignments:
    """The alignment of the best seed of every candidate."""
    seeds = work.pop(GATED, tile).seeds
    n_bases = int(work.lengths(tile).sum(dtype=np.int64))
    ways = 1 if isinstance(work.reads, HeldReads) else 2  # that are not held yet
    room = int((ways + PLANE_BYTES) * n_bases) + ALIGNED_BYTES * len(seeds)
    Budget(work.params.run.max_memory).require("the alignment, with the reads in both directions,", room)
    is_first, threads = first_of_candidate(seeds), work.params.run.threads
    further = np.flatnonzero(~is_first)
    chosen = take_by(seeds, np.flatnonzero(is_first), threads) if len(further) else seeds
    others, candidate = take_by(seeds, further, threads), further - np.arange(1, len(further) + 1)
    del seeds  # there are many, and now twice
    extensions = _extend(work, tile, chosen, 0, len(chosen) + len(others))
    return FirstAlignments(chosen, extensions, others, candidate)


def align_second(work: Work, tile: int) -> AllAlignments:
    """All alignments: second seeds, too, where the first gave no overlap or leaves room for another."""
    thresholds, fair = work.get(FIRST_JUDGED.thresholds), work.pop(FIRST_JUDGED.fair, tile).geometry
    first, geometry = work.pop(FIRST, tile), work.pop(FIRST_JUDGED.measured, tile).geometry
    chosen, others, extensions, candidate = first.seeds, first.others, first.extensions, first.candidate
    del first
    its, copies = extensions.take(candidate), chosen.copies[candidate]
    poor = thresholds.failures(its.score, copies, geometry.take(candidate), fair.take(candidate)) > 0
    apart = clear_of(implied_ends(without_bases(work, tile), others), its)  # another piece, if any
    others = others.take(np.where(poor, others.rank < work.params.seeds.ranks, apart))
    more = _extend(work, tile, others, len(chosen), len(chosen) + len(others)) if len(others) else _none()
    threads, n_second = work.params.run.threads, len(others)
    seeds, alignments = join_seeds([chosen, others], chosen.length, threads), join_extensions([extensions, more], threads)
    if (order := in_candidate_order(seeds)) is not None:
        seeds, alignments = take_by(seeds, order, threads), take_by(alignments, order, threads)
    return AllAlignments(seeds, alignments, len(seeds), n_second)


def _none() -> Extensions:
    return Extensions(*np.zeros((9, 0), np.int32))


# ---------------------------------------------------------------- what all alignments say


def _floor(work: Work) -> float:
    estimate = work.estimate
    return score_floor(work.params.extension, work.params.filter, estimate.error_rate, estimate.given)


class Judging:
    """One of the two times that alignments are judged: what its rounds leave, and what is learnt between them."""

    def __init__(self, alignments: Result[FirstAlignments] | Result[AllAlignments]):
        name = alignments.name
        self.alignments: Result[Alignments] = Result(name, Alignments, TILES)
        self.measured = Result(f"{name}_rates", Measured, TILES)
        self.usual = Result(f"{name}_usual", UsualRate)
        self.turns = Result(f"{name}_turns", Turns, TILES)
        self.partners = Result(f"{name}_partners", np.ndarray)
        self.cover = Result(f"{name}_cover", Cover, TILES)
        self.standing = Result(f"{name}_standing", Standing)
        self.fair = Result(f"{name}_fair", Fair, TILES)
        self.thresholds = Result(f"{name}_thresholds", Thresholds)

    def measure(self, work: Work, tile: int) -> Measured:
        """How the alignments lie on their reads; the scores per base of those that are surely overlaps."""
        some, threads = work.get(self.alignments, tile), work.params.run.threads
        geometry = measure_geometry(without_bases(work, tile), some.seeds, some.extensions, threads)
        sure = surely_overlaps(some.seeds, some.extensions, geometry, _floor(work), threads)
        return Measured(geometry, sure, rates_of(some.extensions, geometry, sure, threads))

    def learn_usual(self, work: Work) -> UsualRate:
        """From the sure alignments of all tiles."""
        (rates,) = work.joined(self.measured, "rates")
        return UsualRate(float(median(rates, work.params.run.threads)) if len(rates) >= MIN_SURE else None)

    def cross(self, work: Work, tile: int) -> Turns:
        """Where alignments of reads on both strands cross, of those that tell where reads go on (if a rate is usual)."""
        some, usual = work.get(self.alignments, tile), work.get(self.usual).rate
        telling = np.zeros(len(some.seeds), bool)
        if usual is not None:
            geometry = work.get(self.measured, tile).geometry
            telling = tell_of_reads(some.extensions, geometry, usual, work.params.run.threads)
        return Turns(find_crossings(len(work.ids(tile)), Aligned.of(some.seeds, some.extensions), telling), telling)

    def add_partners(self, work: Work) -> np.ndarray:
        """Those of `Crossings`, over all tiles, (n_reads,) int64."""
        return work.summed(self.turns, "crossings.partners")[0]

    def go_on(self, work: Work, tile: int) -> Cover:
        """Where alignments go on along the reads."""
        n_bins, threads = int(bin_starts(work.lengths(tile))[-1]), work.params.run.threads
        if work.get(self.usual).rate is None:
            return Cover(np.zeros(n_bins, np.int32), np.zeros(n_bins, np.int32))
        found, turns, reads = work.get(self.alignments, tile), work.get(self.turns, tile), without_bases(work, tile)
        some, partners = Aligned.of(found.seeds, found.extensions), work.get(self.partners)[work.ids(tile)]
        steps = steps_of(reads, some, turns.telling, turns.crossings, partners, threads)
        return Cover(steps, hull_steps_of(reads, some, threads))

    def stand(self, work: Work) -> Standing:
        """What all alignments of all tiles say of the bins of the reads."""
        starts = bin_starts(work.reads.lengths)
        if work.is_whole:
            ((steps, hull_steps),) = work.arrays(self.cover, "steps", "hull_steps")
        else:
            steps, hull_steps = np.zeros((2, int(starts[-1])), np.int32)
            for tile, (its_steps, its_hulls) in enumerate(work.arrays(self.cover, "steps", "hull_steps")):
                bins = _bins(starts, work.ids(tile))
                steps[bins] += its_steps
                hull_steps[bins] += its_hulls
        return Standing.of(work.reads.lengths, steps, hull_steps, work.params.run.threads)

    def be_fair(self, work: Work, tile: int) -> Fair:
        """The geometry without bad ends, and the scores per base that thresholds are learnt from."""
        some, measured, threads = work.get(self.alignments, tile), work.get(self.measured, tile), work.params.run.threads
        found = measured.geometry
        if work.get(self.usual).rate is not None:
            standing = work.get(self.standing)
            if not work.is_whole:
                bins = _bins(bin_starts(work.reads.lengths), work.ids(tile))
                standing = Standing(*(column[bins] for column in standing))
            found = fair_geometry(without_bases(work, tile), some.seeds, some.extensions, found, standing, threads)
        return Fair(found, rates_of(some.extensions, found, teach(measured.sure, found, threads), threads))

    def learn_thresholds(self, work: Work) -> Thresholds:
        """What an overlap has to reach, from all tiles."""
        (rates,) = work.joined(self.fair, "rates")
        given, threads = work.estimate.given, work.params.run.threads
        return learn_thresholds(rates, _floor(work), work.params.filter.delta, given=given, threads=threads)


def _bins(starts: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The bins of some reads, (n,) int64."""
    sizes = starts[ids + 1] - starts[ids]
    ends = np.cumsum(sizes)
    return np.repeat(starts[ids] - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


FIRST_JUDGED, ALL_JUDGED = Judging(FIRST), Judging(ALL)
