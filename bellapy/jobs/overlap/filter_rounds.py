"""The last rounds over tiles: what the alignments of each read say of the others, and the overlaps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bellapy.jobs.overlap.align_rounds import ALL, ALL_JUDGED
from bellapy.jobs.overlap.candidate_rounds import GATED, without_bases
from bellapy.jobs.overlap.filter import filter_overlaps, implied_overlaps, select, selects, teach
from bellapy.jobs.overlap.judging import (
    LEAST_PARTNERS,
    SURE_SPAN,
    USUAL_COPIES,
    learn_limits,
    means,
    sum_rates,
    with_other_copies,
)
from bellapy.jobs.overlap.seed_rows import starts_of_candidates
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.records import Overlaps, Seeds, join_overlaps


@dataclass(frozen=True)
class Sums:
    """Scores per base of alignments added up by read, and how many there are, (n_reads,) int64 each; see `sum_rates`."""

    totals: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class PassingSums(Sums):
    """Those of the alignments that pass the thresholds so far; counted : (n,) bool, which these are."""

    counted: np.ndarray


@dataclass(frozen=True)
class Shortfalls:
    """By how much alignments score less than their reads do elsewhere, (n,) float64; of those that teach, also apart."""

    shortfall: np.ndarray
    taught: np.ndarray
    implied: np.ndarray


@dataclass(frozen=True)
class TileOverlaps:
    """The overlaps of a tile, and how many of them are second ones of their pair."""

    overlaps: Overlaps
    n_overlaps: int
    n_second: int = 0
    dropped: dict[str, int] | None = None


@dataclass(frozen=True)
class Selected:
    """Which overlaps of each tile are kept, masks (n,) bool, none where all are; how many, and how many not, by reason."""

    masks: tuple[np.ndarray, ...]
    n_overlaps: int
    n_second: int
    dropped: dict[str, int]


SUMS = Result("all_sums", PassingSums, TILES)
MEANS = Result("all_means", np.ndarray)
BETTER = Result("all_better", Sums, TILES)
LEVELS = Result("all_levels", np.ndarray)
"""Scores per base of each read, (n_reads,) float64; NaN where there are none."""
SHORTFALLS = Result("all_shortfalls", Shortfalls, TILES)
LIMITS = Result("all_limits", np.ndarray)
OVERLAPS = Result("overlaps", TileOverlaps, TILES)
SELECTED = Result("selected", Selected)


def _rates(work: Work, tile: int) -> tuple[Seeds, np.ndarray, np.ndarray]:
    """The seeds of all alignments of a tile, the bases that these score for, and their scores per base."""
    some, implied = work.get(ALL, tile), work.get(ALL_JUDGED.fair, tile).geometry.implied
    return some.seeds, implied, some.extensions.score / np.maximum(implied, 1.0)


def add_up(work: Work, tile: int) -> PassingSums:
    """The alignments that pass the thresholds so far, and the sums of their scores per base by read."""
    (seeds, _, rate), score = _rates(work, tile), work.get(ALL, tile).extensions.score
    fair, geometry = work.get(ALL_JUDGED.fair, tile).geometry, work.get(ALL_JUDGED.measured, tile).geometry
    failed = work.get(ALL_JUDGED.thresholds).failures(score, seeds.copies, geometry, fair, work.params.run.threads)
    counted = (failed == 0) & (geometry.span >= SURE_SPAN)
    return PassingSums(*sum_rates(seeds, rate, counted, np.full(len(work.ids(tile)), -np.inf)), counted)


def learn_means(work: Work) -> np.ndarray:
    """The mean of the alignments of each read, in all tiles."""
    totals, numbers = work.summed(SUMS, "totals", "numbers")
    return means(totals, numbers, LEAST_PARTNERS)


def add_up_better(work: Work, tile: int) -> Sums:
    """The sums of the alignments that are no worse than the mean of their read."""
    (seeds, _, rate), least = _rates(work, tile), work.get(MEANS)[work.ids(tile)]
    return Sums(*sum_rates(seeds, rate, work.get(SUMS, tile).counted, least))


def learn_levels(work: Work) -> np.ndarray:
    """The mean of the better alignments of each read, in all tiles."""
    totals, numbers = work.summed(BETTER, "totals", "numbers")
    return means(totals, numbers)


def compare(work: Work, tile: int) -> Shortfalls:
    """By how much alignments score less than their reads do elsewhere."""
    level, (seeds, implied, rate) = work.get(LEVELS)[work.ids(tile)], _rates(work, tile)
    shortfall = level[seeds.query_id] + level[seeds.target_id] - rate
    fair, threads = work.get(ALL_JUDGED.fair, tile).geometry, work.params.run.threads
    rows = teach(work.get(ALL_JUDGED.measured, tile).sure, fair, threads) & (seeds.copies <= USUAL_COPIES)
    return Shortfalls(shortfall, shortfall[rows], implied[rows])


def limit_shortfalls(work: Work) -> np.ndarray:
    """From the alignments of all tiles that teach."""
    return learn_limits(*work.joined(SHORTFALLS, "taught", "implied"))


def finish(work: Work, tile: int) -> TileOverlaps:
    """The overlaps of a tile."""
    params, reads, thresholds = work.rules, without_bases(work, tile), work.get(ALL_JUDGED.thresholds)
    some, fair = work.pop(ALL, tile), work.pop(ALL_JUDGED.fair, tile).geometry
    shortfall = work.pop(SHORTFALLS, tile).shortfall
    copies = with_other_copies(some.seeds.copies, shortfall, fair.implied, work.get(LIMITS))
    overlaps, dropped = filter_overlaps(
        reads, some.seeds, some.extensions, thresholds, fair, copies, params.extension, params.filter, params.run.threads
    )  # fmt: skip
    return TileOverlaps(overlaps, len(overlaps), len(overlaps) - _n_candidates(overlaps), dropped)


def _n_candidates(overlaps: Overlaps) -> int:
    return int(starts_of_candidates(overlaps.query_id, overlaps.target_id, overlaps.strand).sum())


def imply(work: Work, tile: int) -> TileOverlaps:
    """The overlaps that the seeds of a tile imply."""
    overlaps = implied_overlaps(without_bases(work, tile), work.pop(GATED, tile).seeds)
    return TileOverlaps(overlaps, len(overlaps))


def _found_of(work: Work, tile: int) -> Overlaps:
    """All overlaps of a tile, by the ids of all reads."""
    overlaps = work.get(OVERLAPS.only("overlaps", Overlaps), tile)
    if work.is_whole:
        return overlaps
    ids = work.ids(tile).astype(np.int32)
    return replace(overlaps, query_id=ids[overlaps.query_id], target_id=ids[overlaps.target_id])


def select_overlaps(work: Work) -> Selected:
    """By the rules that look at the overlaps of all tiles."""
    if not selects(work.params.filter):
        return Selected((), work.total(OVERLAPS, "n_overlaps"), work.total(OVERLAPS, "n_second"), {})
    parts = [_found_of(work, tile) for tile in range(len(work.plan.tiles))]
    keep, dropped = select(work.reads.lengths, join_overlaps(parts), work.params.filter)
    masks = np.split(keep, np.cumsum([len(part) for part in parts])[:-1])
    kept = [part.take(mask) for part, mask in zip(parts, masks, strict=True)]
    n_overlaps = int(keep.sum())
    return Selected(tuple(masks), n_overlaps, n_overlaps - sum(map(_n_candidates, kept)), dropped)


def overlaps_of(work: Work, tile: int) -> Overlaps:
    """The overlaps of a tile that are kept, by the ids of all reads."""
    overlaps, masks = _found_of(work, tile), work.get(SELECTED).masks
    return overlaps.take(masks[tile]) if masks else overlaps
