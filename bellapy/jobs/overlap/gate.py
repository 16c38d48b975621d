"""Rounds over tiles: which candidates are worth extending.

Chance.  Sound overlaps share a typical number of k-mers per base.  A candidate with a small share of this number is chance,
and one with as few k-mers as far more candidates have than are sound.

Repeats.  Two reads may share a repeat but no locus.  They share k-mers within the repeat only, and these occur more often
than others.  So a candidate is taken for a repeat if all its shared k-mers lie in sequence with more than `max_copies`
times the usual depth: of so many copies of a sequence, only one is where the reads overlap.

Both tests compare with well-supported candidates of the same reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bellapy.compute.columns import join_rows
from bellapy.compute.jit import njit
from bellapy.compute.threads import even_ranges, map_threads
from bellapy.jobs.overlap.candidates import SEEDS, SURE_SUPPORT, TYPICAL, Typical
from bellapy.jobs.overlap.linking import LINKED
from bellapy.jobs.overlap.report import REPEAT, TOO_SPARSE
from bellapy.jobs.overlap.seeds import MAX_MEMBERS
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.records import DepthProfile, Seeds
from bellapy.seeding.sampling import MIXER

APART_DENSITY = 0.15  # share of the typical density in a repeat: there only the k-mers that set its copies apart count
MOST_PARTNERS = 4.0  # in a repeat, in units of the usual number: a read three times as long as most has twice as many
PILOT_SEEDS = 2000


class Marks(NamedTuple):
    """What is known of some seeds, (n,) each, bool but for the first.

    copies : float32, as in Seeds.  dense : they have k-mers enough.  few : they have few copies.
    apart : they have many, but k-mers that may tell one copy of a repeat from the others.
    """

    copies: np.ndarray
    dense: np.ndarray
    few: np.ndarray
    apart: np.ndarray

    def sound(self, seeds: Seeds, blind: np.ndarray) -> np.ndarray:
        """Mask of the dense seeds that are no product of repeats; blind : (n_reads,) bool, as from `indistinct`."""
        return self.dense & (self.few | (self.apart & ~blind[seeds.query_id] & ~blind[seeds.target_id]))


@dataclass(frozen=True)
class TileMarks:
    """What is known of the seeds of each part; partners of each read, (n_reads,): ordinary ones, and those set apart."""

    parts: list[Marks]
    ordinary: np.ndarray
    others: np.ndarray


@dataclass(frozen=True)
class Gated:
    """Seeds without chance matches and repeats; pilot : some from which the steps of extensions are chosen."""

    seeds: Seeds
    pilot: Seeds
    n_seeds: int
    dropped: dict[str, int]


MARKS = Result("marks", TileMarks, TILES)
BLIND = Result("blind", np.ndarray)
"""(n_reads,) bool, the reads in repeats whose copies cannot be told from each other."""
GATED = Result("gate", Gated, TILES)


def mark(work: Work, tile: int) -> TileMarks:
    """Which seeds are dense enough, of few copies, or set copies of a repeat apart; partners of the reads by these."""
    typical, repeats = work.get(TYPICAL), work.get(LINKED).profile.repeats[work.ids(tile)]
    found, params, threads = work.get(SEEDS, tile), work.params.seeds, work.params.run.threads
    parts = found.parts

    def mark_part(i: int) -> Marks:
        return mark_seeds(parts[i], found.depths[i], typical, repeats, params.density, params.max_copies)

    marks = map_threads(mark_part, range(len(parts)), threads)
    return TileMarks(
        marks,
        count_partners(parts, [part.dense & part.few for part in marks], len(repeats), threads),
        count_partners(parts, [part.apart for part in marks], len(repeats), threads),
    )


def mark_seeds(
    seeds: Seeds, depth: np.ndarray, typical: Typical, repeats: np.ndarray, density: float, max_copies: float
) -> Marks:
    """What the depth around seeds and their support say.

    Parameters
    ----------
    depth : (n,) float64, `lowest_depth` of the seeds.
    repeats : (n_reads,) uint8, as in DepthProfile.
    density, max_copies : as in SeedParams.
    """
    times = copies(depth, typical).astype(np.float32)
    dense, few = dense_enough(seeds, typical, density), times <= max_copies
    return Marks(times, dense, few, set_apart(seeds, typical, repeats) & dense & ~few)


def copies(depth: np.ndarray, typical: Typical) -> np.ndarray:
    """Depth in units of the usual one; 1 where that is unknown."""
    return depth / typical.depth if typical.depth else np.ones(len(depth))


def dense_enough(seeds: Seeds, typical: Typical, share: float) -> np.ndarray:
    """Mask of the seeds with more support than chance gives, and `share` of what is typical for their overlap."""
    expected = np.minimum(typical.density * seeds.implied_length, MAX_MEMBERS / 2)
    return (seeds.n_support >= share * expected) & (seeds.n_support >= typical.support)


def set_apart(seeds: Seeds, typical: Typical, repeats: np.ndarray) -> np.ndarray:
    """Mask of the seeds in repeats with so many k-mers that they may tell one copy from the others."""
    in_repeats = np.minimum(repeats[seeds.query_id], repeats[seeds.target_id]) > 0
    return (
        in_repeats & (seeds.n_support >= SURE_SUPPORT) & dense_enough(seeds, typical, APART_DENSITY) & (typical.density > 0)
    )


def count_partners(parts: list[Seeds], masks: list[np.ndarray], n_reads: int, threads: int = 1) -> np.ndarray:
    """Number of best seeds in the masks that each read has, (n_reads,) int64."""

    def of_some(some: tuple[int, int]) -> np.ndarray:
        partners = np.zeros(n_reads, np.int64)
        for i in range(*some):
            _add_partners(parts[i].query_id, parts[i].target_id, parts[i].rank, masks[i], partners)
        return partners

    return sum(map_threads(of_some, even_ranges(len(parts), threads), threads), np.zeros(n_reads, np.int64))


@njit
def _add_partners(query_id, target_id, rank, mask, partners):
    """Count the best seeds in a mask for both of their reads.

    query_id, target_id, rank : of Seeds.  mask : (n,) bool.  partners : (n_reads,) int64, raised.
    """
    for i in range(len(mask)):
        if mask[i] and rank[i] == 0:
            partners[query_id[i]] += 1
            partners[target_id[i]] += 1


def find_blind(work: Work) -> np.ndarray:
    """From the partners of all reads in all tiles."""
    ordinary, others = work.summed(MARKS, "ordinary", "others")
    return indistinct(ordinary, others, work.get(LINKED).profile)


def indistinct(ordinary: np.ndarray, apart: np.ndarray, profile: DepthProfile) -> np.ndarray:
    """Mask of the reads in repeats whose copies cannot be told from each other: they have too many partners for their depth.

    Parameters
    ----------
    ordinary, apart : (n_reads,) partners of each read outside repeats, and those that k-mers in repeats suggest.
    """
    usual = np.median(ordinary[ordinary > 0]) if (ordinary > 0).any() else 0
    return (apart > MOST_PARTNERS * usual) & (profile.repeats < 2)


def gate(work: Work, tile: int) -> Gated:
    """Seeds without chance matches and repeats, and some of them from which the steps of extensions are chosen."""
    blind = work.get(BLIND)[work.ids(tile)]
    parts, marks = work.pop(SEEDS, tile).parts, work.pop(MARKS, tile).parts

    def drop(i: int) -> tuple[int, int]:
        part = replace(parts[i], copies=marks[i].copies)
        kept = marks[i].sound(part, blind)
        parts[i] = part.take(kept)  # what is dropped leaves before all are joined
        return count_dropped(*part.pairs, marks[i].dense, kept)

    lengths, threads = work.lengths(tile), work.params.run.threads
    numbers = np.array(map_threads(drop, range(len(parts)), threads)).reshape(-1, 2).sum(axis=0).tolist()
    joined = join_rows(parts, threads)
    pilots = map_threads(
        lambda rows: pilot_seeds(lengths, joined.take(slice(*rows))), even_ranges(len(joined), threads), threads
    )
    pilot = pilot_seeds(lengths, join_rows([joined.take(slice(0)), *pilots]))
    return Gated(joined, pilot, len(joined), dict(zip((TOO_SPARSE, REPEAT), numbers, strict=True)))


@njit
def count_dropped(query_id, target_id, strand, dense, kept):
    """How many candidates have no dense seed; and how many have one, but none that is kept.

    query_id, target_id, strand : of Seeds.  dense, kept : (n,) bool; what is kept is dense.
    """
    sparse = repeats = 0
    is_dense = is_kept = False
    for i in range(len(dense)):
        is_dense |= dense[i]
        is_kept |= kept[i]
        last = i + 1 == len(dense)
        if last or query_id[i] != query_id[i + 1] or target_id[i] != target_id[i + 1] or strand[i] != strand[i + 1]:
            sparse += not is_dense
            repeats += is_dense and not is_kept
            is_dense = is_kept = False
    return sparse, repeats


def pilot_seeds(lengths: np.ndarray, seeds: Seeds) -> Seeds:
    """Some well-supported seeds, chosen by the lengths of their reads: the order of the reads does not matter.

    lengths : (n_reads,) int32.
    """
    sure = np.flatnonzero((seeds.rank == 0) & (seeds.n_support >= SURE_SUPPORT))
    lengths = lengths.astype(np.uint64)
    query, target = lengths[seeds.query_id[sure]], lengths[seeds.target_id[sure]]
    mixed = (query * target + query + target) * MIXER
    if len(sure) > PILOT_SEEDS:  # few are looked at, so not all are sorted
        some = np.flatnonzero(mixed <= np.partition(mixed, PILOT_SEEDS - 1)[PILOT_SEEDS - 1])
        sure, mixed = sure[some], mixed[some]
    return seeds.take(sure[np.argsort(mixed, kind="stable")[:PILOT_SEEDS]])
