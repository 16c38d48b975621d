"""Rounds over tiles: the product A·Aᵀ, seeds of every candidate, and which of them are worth extending."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from bellapy.compute.memory import Budget
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.jobs.overlap.blocks import tile_matrix
from bellapy.jobs.overlap.candidate_filter import (
    Marks,
    Typical,
    count_partners,
    indistinct,
    learn_typical,
    lowest_depth,
    mark_seeds,
    sure_values,
    usual_reference,
)
from bellapy.jobs.overlap.count_rounds import LINKED
from bellapy.jobs.overlap.ends import pilot_seeds
from bellapy.jobs.overlap.products import Multiplied, multiply, symbolic_product
from bellapy.jobs.overlap.report import NO_SUPPORT, REPEAT, TOO_SPARSE
from bellapy.jobs.overlap.seed_rows import has_any, join_seeds
from bellapy.jobs.overlap.seeds import Found, choose_seeds, seed_bytes
from bellapy.jobs.overlap.store import Result
from bellapy.jobs.overlap.work import TILES, Work
from bellapy.params import SeedParams
from bellapy.records import DepthProfile, KmerMatrix, ReadSet, Seeds
from bellapy.records.bases import PAD, UNKNOWN
from bellapy.records.kmers import HeldMatrix
from bellapy.report.progress import progress

JOINED_BYTES = 60  # of a copy of a seed and what is computed from it
LEAST_ENTRIES = 1 << 18  # for each thread: fewer are multiplied sooner than kernels are loaded


@dataclass(frozen=True)
class Sure:
    """Of the sure candidates: support, implied length and depth, and whether a read has a level of its own; (n,) each."""

    support: np.ndarray
    length: np.ndarray
    depth: np.ndarray
    own_level: np.ndarray


@dataclass(frozen=True)
class TileSeeds:
    """Seeds of all candidates of a tile, in parts of whole candidates, and the depth around the seeds of each part."""

    parts: list[Seeds]
    depths: list[np.ndarray]
    sure: Sure
    products: int
    candidates: int
    dropped: dict[str, int]


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


SEEDS = Result("seeds", TileSeeds, TILES)
TYPICAL = Result("typical", Typical)
MARKS = Result("marks", TileMarks, TILES)
BLIND = Result("blind", np.ndarray)
"""(n_reads,) bool, the reads in repeats whose copies cannot be told from each other."""
GATED = Result("gate", Gated, TILES)


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


def without_bases(work: Work, tile: int) -> ReadSet:
    """The reads of a tile, of which only the lengths are known."""
    if work.is_whole:
        return work.reads.all()
    lengths = work.lengths(tile)
    return ReadSet(("",) * len(lengths), np.full(PAD, UNKNOWN, np.uint8), np.zeros(len(lengths), np.int64), lengths)


def find_seeds(work: Work, tile: int) -> TileSeeds:
    """Seeds of all candidates of a tile, and the depth around them."""
    params, budget, threads = work.rules, Budget(work.params.run.max_memory), work.params.run.threads
    profile = tile_profile(work, tile)
    matrix, multiplied = tile_matrix(work, tile)
    reads = without_bases(work, tile)
    run = params.run if params.run.device == "cuda" else replace(params.run, device="cpu")  # "auto": nobody has chosen one
    resources = Resources.of(run, work.report.devices)
    found = find_seeds_of(matrix, reads, params.seeds, resources, multiplied)
    parts = [join_seeds([], matrix.seed_length), *found.parts]
    del matrix
    budget.require("choosing seeds", JOINED_BYTES * sum(len(seeds) for seeds in parts))
    usual = usual_reference(work.get(LINKED).profile.reference)
    depths = map_threads(lambda seeds: lowest_depth(seeds, profile, usual), parts, threads)
    own_level = (profile.reference > 0) & (profile.reference != usual)
    sure = Sure(*sure_values(parts, depths, own_level, threads))
    return TileSeeds(parts, depths, sure, found.n_products, found.n_candidates, {NO_SUPPORT: found.n_weak})


def learn_from_sure(work: Work) -> Typical:
    """What sound candidates of all tiles show."""
    support, length, depth, own = work.joined(SEEDS, *(f"sure.{f.name}" for f in fields(Sure)))
    return learn_typical(support, length, depth, own, work.params.run.threads)


def mark(work: Work, tile: int) -> TileMarks:
    """Which seeds are dense enough, of few copies, or set copies of a repeat apart; partners of the reads by these."""
    typical, profile, n_reads = work.get(TYPICAL), tile_profile(work, tile), len(work.ids(tile))
    found, params, threads = work.get(SEEDS, tile), work.params.seeds, work.params.run.threads
    parts = found.parts

    def mark_part(i: int) -> Marks:
        return mark_seeds(parts[i], found.depths[i], typical, profile, params.density, params.max_copies)

    marks = map_threads(mark_part, range(len(parts)), threads)
    return TileMarks(
        marks,
        count_partners(parts, [part.dense & part.few for part in marks], n_reads, threads),
        count_partners(parts, [part.apart for part in marks], n_reads, threads),
    )


def find_blind(work: Work) -> np.ndarray:
    """From the partners of all reads in all tiles."""
    ordinary, others = work.summed(MARKS, "ordinary", "others")
    return indistinct(ordinary, others, work.get(LINKED).profile)


def gate(work: Work, tile: int) -> Gated:
    """Seeds without chance matches and repeats, and some of them from which the steps of extensions are chosen."""
    blind = work.get(BLIND) if work.is_whole else work.get(BLIND)[work.ids(tile)]
    parts, marks = work.pop(SEEDS, tile).parts, work.pop(MARKS, tile).parts

    def drop(i: int) -> tuple[int, int]:
        part = replace(parts[i], copies=marks[i].copies)
        kept = marks[i].sound(part, blind)
        still_there, linked = has_any(part, marks[i].dense), has_any(part, kept)
        parts[i] = part.take(kept)  # what is dropped leaves before all are joined
        return int((~still_there).sum()), int((still_there & ~linked).sum())

    numbers = np.array(map_threads(drop, range(len(parts)), work.params.run.threads)).reshape(-1, 2).sum(axis=0).tolist()
    lengths = work.lengths(tile)
    pilots = map_threads(lambda part: pilot_seeds(lengths, part), parts, work.params.run.threads)
    joined = join_seeds(parts, parts[0].length, work.params.run.threads)
    pilot = pilot_seeds(lengths, join_seeds(pilots, joined.length))
    return Gated(joined, pilot, len(joined), dict(zip((TOO_SPARSE, REPEAT), numbers, strict=True)))


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
        result_bytes=seed_bytes(params),
    )  # fmt: skip
    with progress("candidates", None if between or layout else n_products) as advance:
        for products in groups:
            more, n, weak = choose_seeds(products, matrix, reads, params, resources.threads)
            parts += more
            n_candidates, n_weak, done = n_candidates + n, n_weak + weak, done + len(products.keys)
            advance(done)
            del products  # before the next ones are made
    return Found(parts, n_products, n_candidates, n_weak)
