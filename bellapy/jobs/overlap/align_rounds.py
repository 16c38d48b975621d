"""Rounds over tiles: extension, what all alignments together say, second seeds, and the overlaps.

Alignments are judged twice: those of best seeds, to see which candidates need a second one, and then all of them.
What judges an alignment is learnt from all: the usual score, where reads turn, where they go on, and the thresholds.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial

import numpy as np

from bellapy.compute.memory import Budget
from bellapy.compute.ranks import median
from bellapy.compute.threads import shared_by
from bellapy.engines.ends import End
from bellapy.engines.extend import extend_anchors, join_extensions
from bellapy.jobs.overlap.candidate_filter import MIN_SURE
from bellapy.jobs.overlap.candidate_rounds import without_bases
from bellapy.jobs.overlap.crossings import Aligned, Crossings, find_crossings
from bellapy.jobs.overlap.ends import Steps, choose_steps, pilot_seeds
from bellapy.jobs.overlap.filter import (
    Thresholds,
    filter_overlaps,
    implied_overlaps,
    in_candidate_order,
    learn_thresholds,
    rates_of,
    score_floor,
    surely_overlaps,
    teach,
    tell_of_reads,
)
from bellapy.jobs.overlap.geometry import (
    Standing,
    bin_starts,
    fair_geometry,
    hull_steps_of,
    measure_geometry,
    steps_of,
)
from bellapy.jobs.overlap.judging import SURE_SPAN
from bellapy.jobs.overlap.pieces import clear_of, implied_ends
from bellapy.jobs.overlap.read_rates import (
    LEAST_PARTNERS,
    USUAL_COPIES,
    learn_limits,
    means,
    sum_rates,
    with_other_copies,
)
from bellapy.jobs.overlap.seed_rows import first_of_candidate, join_seeds, starts_of_candidates, take_by
from bellapy.jobs.overlap.selection import select, selects
from bellapy.jobs.overlap.work import HeldReads, Result, Round, Work, with_ids
from bellapy.params import Scoring
from bellapy.records import Extensions, Overlaps, ReadSet, Seeds, join_overlaps
from bellapy.report.progress import progress

PLANE_BYTES = 0.75  # of the reads as bit planes in both directions, for each base
ALIGNED_BYTES = 240  # of copies, alignments and what is computed from them, for each seed
FIRST, ALL = "first", "all"
"""Alignments of the best seed of every candidate; of all seeds that are extended."""


def steps_for(work: Work) -> Steps:
    """The scores and limits of all extensions."""

    def make() -> Result:
        steps = choose_steps(*_with_bases(work, _pilot(work)), work.params.extension, work.resources)
        return {"steps": [step._asdict() for step in steps]}

    return tuple(Scoring(**step) for step in work.store.get_or_make("steps", make)["steps"])


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
    parts = []
    for tile in range(len(work.plan.tiles)):
        parts.append(with_ids(work.store.pick(f"gate.{tile}", "pilot"), work.ids(tile)))
    seeds = join_seeds(parts, parts[0].length)
    in_order = seeds.take(np.lexsort((-seeds.strand, seeds.target_id, seeds.query_id)))
    return pilot_seeds(work.reads.lengths, in_order)


def _extend(work: Work, tile: int, seeds: Seeds, n_before: int, n_all: int) -> Extensions:
    """The alignments that grow from some seeds of a tile."""
    steps, end = steps_for(work), End.of(work.params.extension.extension)
    reads, seeds = _with_bases(work, seeds if work.is_whole else with_ids(seeds, work.ids(tile)))
    with progress("align", n_all if work.is_whole else None) as advance:
        resources = replace(work.resources, progress=lambda done: advance(n_before + done))
        return extend_anchors(reads, seeds.anchors, steps, end, resources)


def align_first(work: Work, tile: int) -> Result:
    """The alignment of the best seed of every candidate."""
    steps_for(work)  # from the seeds of all tiles
    seeds = work.store.pop(f"gate.{tile}")["seeds"]
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
    return {"seeds": chosen, "others": others, "candidate": candidate, "extensions": extensions}


def align_second(work: Work, tile: int) -> Result:
    """All alignments: second seeds, too, where the first gave no overlap or leaves room for another."""
    thresholds, fair = thresholds_of(work, FIRST), work.store.pop(f"{FIRST}_fair.{tile}")["fair"]
    first = work.store.pop(f"{FIRST}.{tile}")
    geometry = work.store.pop(f"{FIRST}_rates.{tile}")["geometry"]
    chosen, others, extensions = first["seeds"], first["others"], first["extensions"]
    candidate = first["candidate"]
    its, copies = extensions.take(candidate), chosen.copies[candidate]
    poor = thresholds.failures(its.score, copies, geometry.take(candidate), fair.take(candidate)) > 0
    apart = clear_of(implied_ends(without_bases(work, tile), others), its)  # another piece, if any
    others = others.take(np.where(poor, others.rank < work.params.seeds.ranks, apart))
    more = _extend(work, tile, others, len(chosen), len(chosen) + len(others)) if len(others) else _none()
    threads, numbers = work.params.run.threads, {"extensions": len(chosen) + len(others), "second_seeds": len(others)}
    seeds, alignments = join_seeds([chosen, others], chosen.length, threads), join_extensions([extensions, more], threads)
    if (order := in_candidate_order(seeds)) is not None:
        seeds, alignments = take_by(seeds, order, threads), take_by(alignments, order, threads)
    return {"seeds": seeds, "extensions": alignments, "numbers": numbers}


def _none() -> Extensions:
    return Extensions(*np.zeros((9, 0), np.int32))


# ---------------------------------------------------------------- what all alignments say


def _floor(work: Work) -> float:
    estimate = work.estimate
    return score_floor(work.params.extension, work.params.filter, estimate.error_rate, estimate.given)


def measure(kind: str, work: Work, tile: int) -> Result:
    """How the alignments lie on their reads; the scores per base of those that are surely overlaps."""
    result, reads = work.store.get(f"{kind}.{tile}"), without_bases(work, tile)
    seeds, extensions = result["seeds"], result["extensions"]
    threads = work.params.run.threads
    geometry = measure_geometry(reads, seeds, extensions, threads)
    sure = surely_overlaps(seeds, extensions, geometry, _floor(work), threads)
    return {"geometry": geometry, "sure": sure, "rates": rates_of(extensions, geometry, sure, threads)}


def _usual_rate(kind: str, work: Work) -> float | None:
    """The median of the scores per base of what is surely an overlap; None: there are too few."""

    def make() -> Result:
        (rates,) = work.joined(f"{kind}_rates", "rates")
        return {"usual": median(rates, work.params.run.threads) if len(rates) >= MIN_SURE else None}

    return work.store.get_or_make(f"{kind}_usual", make)["usual"]


def cross(kind: str, work: Work, tile: int) -> Result:
    """Where alignments of reads on both strands cross, of those that tell where reads go on: none if no rate is usual."""
    result, usual = work.store.get(f"{kind}.{tile}"), _usual_rate(kind, work)
    seeds, extensions = result["seeds"], result["extensions"]
    geometry = work.store.get(f"{kind}_rates.{tile}")["geometry"]
    telling = np.zeros(len(seeds), bool)
    if usual is not None:
        telling = tell_of_reads(extensions, geometry, usual, work.params.run.threads)
    found = find_crossings(len(work.ids(tile)), Aligned.of(seeds, extensions), telling)
    return {**found._asdict(), "telling": telling}


def cover(kind: str, work: Work, tile: int) -> Result:
    """Where alignments go on along the reads."""
    result, crossings = work.store.get(f"{kind}.{tile}"), work.store.get(f"{kind}_turns.{tile}")
    some = Aligned.of(result["seeds"], result["extensions"])
    n_bins, threads = int(bin_starts(work.lengths(tile))[-1]), work.params.run.threads
    if _usual_rate(kind, work) is None:
        return {"steps": np.zeros(n_bins, np.int32), "hull_steps": np.zeros(n_bins, np.int32)}

    def make() -> Result:
        return {"partners": work.summed(f"{kind}_turns", "partners")[0]}

    partners = work.store.get_or_make(f"{kind}_partners", make)["partners"][work.ids(tile)]
    reads, found = without_bases(work, tile), Crossings(*(crossings[name] for name in Crossings._fields))
    return {
        "steps": steps_of(reads, some, crossings["telling"], found, partners, threads),
        "hull_steps": hull_steps_of(reads, some, threads),
    }


def _standing(kind: str, work: Work, tile: int) -> Standing:
    """What all alignments say of the bins of the reads of a tile."""
    starts = bin_starts(work.reads.lengths)

    def make() -> Result:
        if work.is_whole:
            ((steps, hull_steps),) = work.arrays(f"{kind}_cover", "steps", "hull_steps")
        else:
            steps, hull_steps = np.zeros((2, int(starts[-1])), np.int32)
            for its_tile, (its_steps, its_hulls) in enumerate(work.arrays(f"{kind}_cover", "steps", "hull_steps")):
                bins = _bins(starts, work.ids(its_tile))
                steps[bins] += its_steps
                hull_steps[bins] += its_hulls
        return Standing.of(work.reads.lengths, steps, hull_steps, work.params.run.threads)._asdict()

    found = work.store.get_or_make(f"{kind}_standing", make)
    bins = slice(None) if work.is_whole else _bins(starts, work.ids(tile))
    return Standing(*(found[name][bins] for name in Standing._fields))


def _bins(starts: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The bins of some reads, (n,) int64."""
    sizes = starts[ids + 1] - starts[ids]
    ends = np.cumsum(sizes)
    return np.repeat(starts[ids] - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


def fair(kind: str, work: Work, tile: int) -> Result:
    """The geometry without bad ends, and the scores per base that thresholds are learnt from."""
    result, measured = work.store.get(f"{kind}.{tile}"), work.store.get(f"{kind}_rates.{tile}")
    seeds, extensions, found = result["seeds"], result["extensions"], measured["geometry"]
    if _usual_rate(kind, work) is not None:
        standing = _standing(kind, work, tile)
        found = fair_geometry(without_bases(work, tile), seeds, extensions, found, standing, work.params.run.threads)
    threads = work.params.run.threads
    rows = teach(measured["sure"], found, threads)
    return {"fair": found, "rates": rates_of(extensions, found, rows, threads)}


def thresholds_of(work: Work, kind: str) -> Thresholds:
    """What an overlap has to reach."""

    def make() -> Result:
        (rates,) = work.joined(f"{kind}_fair", "rates")
        given, threads = work.estimate.given, work.params.run.threads
        return asdict(learn_thresholds(rates, _floor(work), work.params.filter.delta, given=given, threads=threads))

    return Thresholds(**work.store.get_or_make(f"{kind}_thresholds", make))


# ---------------------------------------------------------------- what the alignments of each read say


def _rates(work: Work, tile: int) -> tuple[Seeds, np.ndarray, np.ndarray]:
    """The seeds of all alignments of a tile, the bases that these score for, and their scores per base."""
    result, implied = work.store.get(f"{ALL}.{tile}"), work.store.get(f"{ALL}_fair.{tile}")["fair"].implied
    return result["seeds"], implied, result["extensions"].score / np.maximum(implied, 1.0)


def add_up(work: Work, tile: int) -> Result:
    """The alignments that pass the thresholds so far, and the sums of their scores per base by read."""
    (seeds, _, rate), score = _rates(work, tile), work.store.get(f"{ALL}.{tile}")["extensions"].score
    fair, geometry = work.store.get(f"{ALL}_fair.{tile}")["fair"], work.store.get(f"{ALL}_rates.{tile}")["geometry"]
    failed = thresholds_of(work, ALL).failures(score, seeds.copies, geometry, fair, work.params.run.threads)
    counted = (failed == 0) & (geometry.span >= SURE_SPAN)
    totals, numbers = sum_rates(seeds, rate, counted, np.full(len(work.ids(tile)), -np.inf))
    return {"counted": counted, "totals": totals, "n": numbers}


def add_up_better(work: Work, tile: int) -> Result:
    """The same of those that are no worse than the mean of their read."""

    def make() -> Result:
        totals, numbers = work.summed(f"{ALL}_sums", "totals", "n")
        return {"mean": means(totals, numbers, LEAST_PARTNERS)}

    least = work.store.get_or_make(f"{ALL}_means", make)["mean"][work.ids(tile)]
    seeds, _, rate = _rates(work, tile)
    totals, numbers = sum_rates(seeds, rate, work.store.get(f"{ALL}_sums.{tile}")["counted"], least)
    return {"totals": totals, "n": numbers}


def compare(work: Work, tile: int) -> Result:
    """By how much alignments score less than their reads do elsewhere; of those that teach, also apart."""

    def make() -> Result:
        totals, numbers = work.summed(f"{ALL}_better", "totals", "n")
        return {"level": means(totals, numbers)}

    level = work.store.get_or_make(f"{ALL}_levels", make)["level"][work.ids(tile)]
    seeds, implied, rate = _rates(work, tile)
    shortfall = level[seeds.query_id] + level[seeds.target_id] - rate
    fair, threads = work.store.get(f"{ALL}_fair.{tile}")["fair"], work.params.run.threads
    rows = teach(work.store.get(f"{ALL}_rates.{tile}")["sure"], fair, threads) & (seeds.copies <= USUAL_COPIES)
    return {"shortfall": shortfall, "taught": shortfall[rows], "implied": implied[rows]}


def _with_other_copies(work: Work, tile: int, copies: np.ndarray, implied: np.ndarray) -> np.ndarray:
    """Mask of the alignments of a tile with another copy of a sequence."""

    def make() -> Result:
        return {"limits": learn_limits(*work.joined(f"{ALL}_shortfalls", "taught", "implied"))}

    limits = work.store.get_or_make(f"{ALL}_limits", make)["limits"]
    return with_other_copies(copies, work.store.pop(f"{ALL}_shortfalls.{tile}")["shortfall"], implied, limits)


# ---------------------------------------------------------------- overlaps


def finish(work: Work, tile: int) -> Result:
    """The overlaps of a tile."""
    thresholds, params, reads = thresholds_of(work, ALL), work.rules, without_bases(work, tile)
    result, judged = work.store.pop(f"{ALL}.{tile}"), work.store.pop(f"{ALL}_fair.{tile}")
    alignments, fair = (reads, result["seeds"], result["extensions"]), judged["fair"]
    copies = _with_other_copies(work, tile, result["seeds"].copies, fair.implied)
    overlaps, dropped = filter_overlaps(
        *alignments, thresholds, fair, copies, params.extension, params.filter, params.run.threads
    )  # fmt: skip
    n_candidates = int(starts_of_candidates(overlaps.query_id, overlaps.target_id, overlaps.strand).sum())
    numbers = {"overlaps": len(overlaps), "second_pieces": len(overlaps) - n_candidates}
    return {"overlaps": overlaps, "dropped": dropped, "numbers": numbers}


def imply(work: Work, tile: int) -> Result:
    """The overlaps that the seeds of a tile imply."""
    overlaps = implied_overlaps(without_bases(work, tile), work.store.pop(f"gate.{tile}")["seeds"])
    return {"overlaps": overlaps, "numbers": {"overlaps": len(overlaps)}}


def found_of(work: Work, tile: int) -> Overlaps:
    """All overlaps of a tile, by the ids of all reads."""
    overlaps = work.store.pick(f"overlaps.{tile}", "overlaps")
    if work.is_whole:
        return overlaps
    ids = work.ids(tile).astype(np.int32)
    return replace(overlaps, query_id=ids[overlaps.query_id], target_id=ids[overlaps.target_id])


def selected(work: Work) -> Result:
    """Which overlaps of each tile are kept, mask by mask; how many are, and how many are not, by reason."""

    def make() -> Result:
        parts = [found_of(work, tile) for tile in range(len(work.plan.tiles))]
        keep, dropped = select(work.reads.lengths, join_overlaps(parts), work.params.filter)
        masks = np.split(keep, np.cumsum([len(part) for part in parts])[:-1])
        kept = [part.take(mask) for part, mask in zip(parts, masks, strict=True)]
        n_candidates = sum(int(starts_of_candidates(part.query_id, part.target_id, part.strand).sum()) for part in kept)
        numbers = {"overlaps": int(keep.sum()), "second_pieces": int(keep.sum()) - n_candidates}
        return {**{f"keep.{tile}": mask for tile, mask in enumerate(masks)}, "numbers": numbers, "dropped": dropped}

    return work.store.get_or_make("selected", make)


def overlaps_of(work: Work, tile: int) -> Overlaps:
    """The overlaps of a tile that are kept, by the ids of all reads."""
    overlaps = found_of(work, tile)
    return overlaps.take(selected(work)[f"keep.{tile}"]) if selects(work.params.filter) else overlaps


def _judging(kind: str) -> tuple[Round, ...]:
    """The rounds that judge alignments."""
    return (
        Round(f"{kind}_rates", "tiles", partial(measure, kind)),
        Round(f"{kind}_turns", "tiles", partial(cross, kind)),
        Round(f"{kind}_cover", "tiles", partial(cover, kind)),
        Round(f"{kind}_fair", "tiles", partial(fair, kind), spends=(f"{kind}_turns", f"{kind}_cover")),
    )


ALIGN_ROUNDS = (
    Round(FIRST, "tiles", align_first, spends=("gate",)),
    *_judging(FIRST),
    Round(ALL, "tiles", align_second, spends=(FIRST, f"{FIRST}_rates", f"{FIRST}_fair")),
)
FILTER_ROUNDS = (
    *_judging(ALL),
    Round(f"{ALL}_sums", "tiles", add_up),
    Round(f"{ALL}_better", "tiles", add_up_better, spends=(f"{ALL}_sums",)),
    Round(f"{ALL}_shortfalls", "tiles", compare, spends=(f"{ALL}_better",)),
    Round("overlaps", "tiles", finish, spends=(ALL, f"{ALL}_rates", f"{ALL}_fair", f"{ALL}_shortfalls")),
)
IMPLY_ROUNDS = (Round("overlaps", "tiles", imply, spends=("gate",)),)
