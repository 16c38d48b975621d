"""Stage 6: seeds -> the candidates worth extending: no chance matches, no repeats.

Chance.  Sound overlaps share a typical number of k-mers per base.  A candidate with a small share of this number is chance.

Repeats.  Two reads may share a repeat but no locus.  They share k-mers within the repeat only, and these occur more often
than others.  So a candidate is taken for a repeat if all its shared k-mers lie in sequence with more than `max_copies`
times the usual depth: of so many copies of a sequence, only one is where the reads overlap.

Both tests compare with well-supported candidates of the same reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bellapy.compute.jit import njit
from bellapy.compute.ranks import weighted_median
from bellapy.compute.threads import map_threads, shared_by
from bellapy.jobs.overlap.seeds import MAX_MEMBERS
from bellapy.records import DepthProfile, Seeds

SURE_SUPPORT = 5  # shared k-mers; the typical values come from candidates with so many
APART_DENSITY = 0.15  # share of the typical density in a repeat: there only the k-mers that set its copies apart count
MOST_PARTNERS = 2.0  # in a repeat, in units of the usual number
MIN_SURE = 50  # candidates; with fewer, nothing is typical and nothing is dropped
WINDOW_BINS = 2  # bins of the depth profile that have to be of ordinary depth together


@dataclass(frozen=True)
class Typical:
    """What sound candidates show.  density : shared k-mers per base.  depth : mean count of their k-mers.  0: unknown."""

    density: float
    depth: float


@njit
def _lowest_depth(read_id, first, last, offsets, width, n_kmers, copies, window, out):
    """Lower out[i], float64, to the lowest mean count in `window` bins between first[i] and last[i] of read read_id[i].

    read_id, first, last : (n,) int32.  offsets, width, n_kmers, copies : of a DepthProfile.
    """
    for i in range(read_id.size):
        begin = offsets[read_id[i]] + first[i] // width
        end = offsets[read_id[i]] + last[i] // width + 1
        n = total = 0
        for b in range(begin, end):
            n += np.int64(n_kmers[b])
            total += np.int64(copies[b])
            if b - begin >= window:
                n -= np.int64(n_kmers[b - window])
                total -= np.int64(copies[b - window])
            if n > 0 and (b - begin >= window - 1 or b == end - 1):
                out[i] = min(out[i], total / n)


def lowest_depth(seeds: Seeds, profile: DepthProfile, usual: float) -> np.ndarray:
    """Mean count of the k-mers in the least repeated stretch between a seed's outermost k-mers, (n,) float64.

    The stretch may be on either read.  The count is in units of what is usual for the read for which less is usual.  Of a
    read that is all repeat nobody knows what that is, so the other one tells; of two, `usual_reference`, given as `usual`.
    """
    out = np.full(len(seeds), np.inf)
    shape = (profile.offsets, profile.width, profile.n_kmers, profile.copies, WINDOW_BINS, out)
    _lowest_depth(seeds.query_id, seeds.query_first, seeds.query_last, *shape)
    _lowest_depth(seeds.target_id, seeds.target_first, seeds.target_last, *shape)
    one, other = profile.reference[seeds.query_id], profile.reference[seeds.target_id]
    known = np.where((one > 0) & (other > 0), np.minimum(one, other), np.maximum(one, other))
    return out / np.where(known > 0, known, usual)


def usual_reference(reference: np.ndarray) -> float:
    """What is usual for most reads, 1 where that is unknown; reference : of a DepthProfile."""
    known = reference[reference > 0]
    return float(np.median(known)) if len(known) else 1.0


def sure_values(
    parts: list[Seeds], depths: list[np.ndarray], own_level: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """Support, implied length, depth of the best seeds of well-supported candidates, and whether a read has its own level.

    (n,) each.  parts, depths : all seeds in any number of parts, at least one, and the `lowest_depth` of each part.
    own_level : (n_reads,) bool, reads whose depth is not compared with the usual one.
    """

    def of_part(i: int) -> tuple[np.ndarray, ...]:
        seeds = parts[i]
        sure = (seeds.n_support >= SURE_SUPPORT) & (seeds.rank == 0)
        own = own_level[seeds.query_id[sure]] | own_level[seeds.target_id[sure]]
        return seeds.n_support[sure], seeds.implied_length[sure], depths[i][sure], own

    found = zip(*map_threads(of_part, range(len(parts)), threads), strict=True)
    return tuple(map_threads(np.concatenate, found, threads))


def learn_typical(
    support: np.ndarray, length: np.ndarray, depth: np.ndarray, own: np.ndarray, threads: int = 1
) -> Typical:  # fmt: skip
    """Medians over the best seeds of well-supported candidates, weighted by their support.

    Between long reads chance alone gives a support of SURE_SUPPORT, and there may be many more such candidates than sound
    ones; but sound ones hold most of the k-mers that agree.  A deep molecule, whose reads have a level of their own, may
    have most of the candidates.  It counts only where there is nothing else.

    Parameters
    ----------
    support, length, depth, own : of all seeds, as from `sure_values`.
    """
    if np.count_nonzero(~own) >= MIN_SURE:
        support, length, depth = support[~own], length[~own], depth[~own]
    if len(support) < MIN_SURE:
        return Typical(0.0, 0.0)
    density = np.empty(len(support))
    shared_by(threads)(lambda part: np.divide(*(x[slice(*part)] for x in (support, length, density))), len(support))
    return Typical(*(weighted_median(values, support, threads) for values in (density, depth)))


def dense_enough(seeds: Seeds, typical: Typical, share: float) -> np.ndarray:
    """Mask of the seeds whose support is at least `share` of what is typical for the length of their overlap."""
    expected = np.minimum(typical.density * seeds.implied_length, MAX_MEMBERS / 2)
    return seeds.n_support >= share * expected


def set_apart(seeds: Seeds, typical: Typical, profile: DepthProfile) -> np.ndarray:
    """Mask of the seeds in repeats with so many k-mers that they may tell one copy from the others."""
    in_repeats = np.minimum(profile.repeats[seeds.query_id], profile.repeats[seeds.target_id]) > 0
    return (
        in_repeats & (seeds.n_support >= SURE_SUPPORT) & dense_enough(seeds, typical, APART_DENSITY) & (typical.density > 0)
    )


def count_partners(parts: list[Seeds], masks: list[np.ndarray], n_reads: int, threads: int = 1) -> np.ndarray:
    """Number of best seeds in the masks that each read has, (n_reads,) int64."""

    def of_part(i: int) -> np.ndarray:
        rows = masks[i] & (parts[i].rank == 0)
        query, target = (np.bincount(ids[rows], minlength=n_reads) for ids in (parts[i].query_id, parts[i].target_id))
        return query + target

    return sum(map_threads(of_part, range(len(parts)), threads), np.zeros(n_reads, np.int64))


def indistinct(ordinary: np.ndarray, apart: np.ndarray, profile: DepthProfile) -> np.ndarray:
    """Mask of the reads in repeats whose copies cannot be told from each other: they have too many partners for their depth.

    Parameters
    ----------
    ordinary, apart : (n_reads,) partners of each read outside repeats, and those that k-mers in repeats suggest.
    """
    usual = np.median(ordinary[ordinary > 0]) if (ordinary > 0).any() else 0
    return (apart > MOST_PARTNERS * usual) & (profile.repeats < 2)


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


def mark_seeds(
    seeds: Seeds, depth: np.ndarray, typical: Typical, profile: DepthProfile, density: float, max_copies: float
) -> Marks:
    """What the depth around seeds and their support say.

    Parameters
    ----------
    depth : (n,) float64, `lowest_depth` of the seeds.
    density, max_copies : as in SeedParams.
    """
    times = copies(depth, typical).astype(np.float32)
    dense, few = dense_enough(seeds, typical, density), times <= max_copies
    return Marks(times, dense, few, set_apart(seeds, typical, profile) & dense & ~few)


def copies(depth: np.ndarray, typical: Typical) -> np.ndarray:
    """Depth in units of the usual one; 1 where that is unknown."""
    return depth / typical.depth if typical.depth else np.ones(len(depth))
