"""Rounds over tiles: the product A·Aᵀ, seeds of every candidate, and what those of sound overlaps are like."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from bellapy.compute.columns import choose_rows
from bellapy.compute.jit import njit
from bellapy.compute.memory import Budget
from bellapy.compute.ranks import weighted_median
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads, shared_by
from bellapy.jobs.overlap.blocks import tile_matrix
from bellapy.jobs.overlap.linking import LINKED
from bellapy.jobs.overlap.products import Multiplied, multiply, symbolic_product
from bellapy.jobs.overlap.report import NO_SUPPORT
from bellapy.jobs.overlap.seeds import SEED_BYTES, Found, choose_seeds
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.params import SeedParams
from bellapy.records import DepthProfile, KmerMatrix, ReadSet, Seeds
from bellapy.records.kmers import HeldMatrix
from bellapy.report.progress import progress

JOINED_BYTES = 60  # of a copy of a seed and what is computed from it
LEAST_ENTRIES = 1 << 18  # for each thread: fewer are multiplied sooner than kernels are loaded
SURE_SUPPORT = 5  # shared k-mers; the typical values come from candidates with so many
CROWD, FADING = 2, 8  # times as many candidates as are sure, or have one k-mer more, are chance
MIN_SURE = 50  # candidates; with fewer, nothing is typical and nothing is dropped
WINDOW_BINS = 2  # bins of the depth profile that have to be of ordinary depth together


@dataclass(frozen=True)
class Typical:
    """What sound candidates show.

    density : shared k-mers per base.  depth : mean count of their k-mers.  support : that chance seldom gives.  0: unknown.
    """

    density: float
    depth: float
    support: int = 0


@dataclass(frozen=True)
class Sure:
    """Of the sure candidates: support, implied length and depth, and whether a read has a level of its own; (n,) each."""

    support: np.ndarray
    length: np.ndarray
    depth: np.ndarray
    own_level: np.ndarray


@dataclass(frozen=True)
class TileSeeds:
    """Seeds of all candidates of a tile, in parts of whole candidates, and the depth around the seeds of each part.

    by_support : (SURE_SUPPORT + 1,) int64, how many best seeds have so much support; those with more are counted last.
    """

    parts: list[Seeds]
    depths: list[np.ndarray]
    sure: Sure
    by_support: np.ndarray
    products: int
    candidates: int
    dropped: dict[str, int]


SEEDS = Result("seeds", TileSeeds, TILES)
TYPICAL = Result("typical", Typical)


def tile_profile(work: Work, tile: int) -> DepthProfile:
    """The depth profile of the reads of a tile."""
    profile = work.get(LINKED).profile
    if work.is_whole:
        return profile
    ids = work.ids(tile)
    sizes = np.diff(profile.offsets)[ids]
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    bins = np.repeat(profile.offsets[ids] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return DepthProfile(
        profile.width, offsets, profile.n_kmers[bins], profile.copies[bins], profile.reference[ids], profile.repeats[ids]
    )


def find_seeds(work: Work, tile: int) -> TileSeeds:
    """Seeds of all candidates of a tile, and the depth around them."""
    params, budget, threads = work.rules, Budget(work.params.run.max_memory), work.params.run.threads
    profile = tile_profile(work, tile)
    matrix, multiplied = tile_matrix(work, tile)
    reads = work.without_bases(tile)
    run = params.run if params.run.device == "cuda" else replace(params.run, device="cpu")  # "auto": nobody has chosen one
    resources = Resources.of(run, work.report.devices)
    found = find_seeds_of(matrix, reads, params.seeds, resources, multiplied)
    parts = [Seeds.none(matrix.seed_length), *found.parts]
    del matrix
    budget.require("choosing seeds", JOINED_BYTES * sum(len(seeds) for seeds in parts))
    usual = usual_reference(work.get(LINKED).profile.reference)
    depths = map_threads(lambda seeds: lowest_depth(seeds, profile, usual), parts, threads)
    own_level = (profile.reference > 0) & (profile.reference != usual)
    sure = Sure(*sure_values(parts, depths, own_level, threads))
    by_support = sum(map_threads(count_support, parts, threads), np.zeros(SURE_SUPPORT + 1, np.int64))
    return TileSeeds(parts, depths, sure, by_support, found.n_products, found.n_candidates, {NO_SUPPORT: found.n_weak})


def find_seeds_of(
    matrix: KmerMatrix, reads: ReadSet, params: SeedParams, resources: Resources, multiplied: Multiplied
) -> Found:
    """Seeds of all candidates.

    matrix : all of whose columns link reads.  reads : of which the lengths are looked at.
    """
    found = None
    pays = isinstance(matrix, HeldMatrix) or len(matrix.entries) >= LEAST_ENTRIES * resources.threads
    if resources.device == "cuda" and pays:
        from bellapy.jobs.overlap.gpu.products import try_on_gpu

        found = try_on_gpu(matrix, reads.lengths, params, resources, multiplied)
    if found is None and isinstance(matrix, HeldMatrix):
        matrix = matrix.on_host()
    return found or _find_on_cpu(matrix, reads, params, resources, multiplied)


def _find_on_cpu(
    matrix: KmerMatrix, reads: ReadSet, params: SeedParams, resources: Resources, multiplied: Multiplied
) -> Found:
    between, layout = multiplied
    products_of = symbolic_product(matrix, resources.threads, between)
    n_products = int(products_of.sum())
    parts, n_candidates, n_weak, done = [], 0, 0, 0
    groups = multiply(
        matrix, products_of, between=between, layout=layout, threads=resources.threads, budget=resources.budget,
        result_bytes=SEED_BYTES // params.min_support,
    )  # fmt: skip
    with progress("candidates", None if between or layout else n_products) as advance:
        for products in groups:
            more, n, weak = choose_seeds(products, matrix, reads, params, resources.threads)
            parts += more
            n_candidates, n_weak, done = n_candidates + n, n_weak + weak, done + len(products.keys)
            advance(done)
            del products  # before the next ones are made
    return Found(parts, n_products, n_candidates, n_weak)


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


def usual_reference(reference: np.ndarray) -> float:
    """What is usual for most reads, 1 where that is unknown; reference : of a DepthProfile."""
    known = reference[reference > 0]
    return float(np.median(known)) if len(known) else 1.0


# ---------------------------------------------------------------- what sound candidates show


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


def count_support(seeds: Seeds) -> np.ndarray:
    """How many best seeds have how much support, as in TileSeeds."""
    return np.bincount(np.minimum(seeds.n_support[seeds.rank == 0], SURE_SUPPORT), minlength=SURE_SUPPORT + 1)


def learn_from_sure(work: Work) -> Typical:
    """What candidates of all tiles show."""
    support, length, depth, own, counts = work.joined(SEEDS, *(f"sure.{f.name}" for f in fields(Sure)), "by_support")
    typical = learn_typical(support, length, depth, own, work.params.run.threads)
    return replace(typical, support=learn_support(counts.reshape(-1, SURE_SUPPORT + 1).sum(axis=0)))


def learn_support(counts: np.ndarray) -> int:
    """What support chance seldom gives, 0 where it seldom gives any.

    Where sequence is poor in G and C, or full of simple repeats, two k-mers agree by chance in far more pairs of reads than
    overlap.  Such pairs get rare with each further k-mer, which those that overlap do not.

    counts : as in TileSeeds.
    """
    least = 0
    for support in range(1, SURE_SUPPORT):
        here, further = counts[support : support + 2].tolist()
        if here > max(CROWD * counts[SURE_SUPPORT], FADING * further, MIN_SURE):
            least = support + 1
    return least


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
    if own.any() and len(own) - np.count_nonzero(own) >= MIN_SURE:
        support, length, depth = (choose_rows(column, ~own, threads) for column in (support, length, depth))
    if len(support) < MIN_SURE:
        return Typical(0.0, 0.0)
    density = np.empty(len(support))
    shared_by(threads)(lambda part: np.divide(*(x[slice(*part)] for x in (support, length, density))), len(support))
    return Typical(weighted_median(density, support, threads), weighted_median(depth, support, threads))
