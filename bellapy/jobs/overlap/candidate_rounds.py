"""Rounds over tiles: the product A·Aᵀ, seeds of every candidate, and which of them are worth extending."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bellapy.compute.memory import Budget
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
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
from bellapy.jobs.overlap.candidates import Multiplied
from bellapy.jobs.overlap.count_rounds import profile_of, tile_matrix
from bellapy.jobs.overlap.ends import pilot_seeds
from bellapy.jobs.overlap.report import NO_SUPPORT, REPEAT, TOO_SPARSE
from bellapy.jobs.overlap.seed_rows import has_any, join_seeds
from bellapy.jobs.overlap.seeds_of_matrix import find_seeds_of
from bellapy.jobs.overlap.work import Result, Round, Work
from bellapy.records import DepthProfile, ReadSet
from bellapy.records.bases import PAD, UNKNOWN

JOINED_BYTES = 60  # of a copy of a seed and what is computed from it


def tile_profile(work: Work, tile: int) -> DepthProfile:
    """The depth profile of the reads of a tile."""
    profile = profile_of(work)
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


def find_seeds(work: Work, tile: int) -> Result:
    """Seeds of all candidates of a tile, and the depth around them."""
    params, budget, threads = work.rules, Budget(work.params.run.max_memory), work.params.run.threads
    profile = tile_profile(work, tile)
    matrix, between, layout = tile_matrix(work, tile)
    reads = without_bases(work, tile)
    run = params.run if params.run.device == "cuda" else replace(params.run, device="cpu")  # "auto": nobody has chosen one
    resources = Resources.of(run, work.report.devices)
    found = find_seeds_of(matrix, reads, params.seeds, resources, Multiplied(between, layout))
    parts = [join_seeds([], matrix.seed_length), *found.parts]
    del matrix
    budget.require("choosing seeds", JOINED_BYTES * sum(len(seeds) for seeds in parts))
    usual = usual_reference(profile_of(work).reference)
    depths = map_threads(lambda seeds: lowest_depth(seeds, profile, usual), parts, threads)
    own_level = (profile.reference > 0) & (profile.reference != usual)
    support, length, depth, own = sure_values(parts, depths, own_level, threads)
    return {
        "seeds": parts, "depth": depths, "support": support, "length": length, "sure_depth": depth, "own_level": own,
        "dropped": {NO_SUPPORT: found.n_weak},
        "numbers": {"products": found.n_products, "candidates": found.n_candidates},
    }  # fmt: skip


def typical_of(work: Work) -> Typical:
    """What sound candidates of all tiles show."""

    def make() -> Result:
        support, length, depth, own = work.joined("seeds", "support", "length", "sure_depth", "own_level")
        found = learn_typical(support, length, depth, own, work.params.run.threads)
        return {"density": found.density, "depth": found.depth}

    found = work.store.get_or_make("typical", make)
    return Typical(found["density"], found["depth"])


def mark(work: Work, tile: int) -> Result:
    """Which seeds are dense enough, of few copies, or set copies of a repeat apart; partners of the reads by these."""
    typical, profile, n_reads = typical_of(work), tile_profile(work, tile), len(work.ids(tile))
    result, params, threads = work.store.get(f"seeds.{tile}"), work.params.seeds, work.params.run.threads
    parts = result["seeds"]

    def mark_part(i: int) -> Marks:
        return mark_seeds(parts[i], result["depth"][i], typical, profile, params.density, params.max_copies)

    marks = map_threads(mark_part, range(len(parts)), threads)
    columns = {name: [getattr(part, name) for part in marks] for name in Marks._fields}
    return {
        **columns,
        "ordinary": count_partners(parts, [part.dense & part.few for part in marks], n_reads, threads),
        "others": count_partners(parts, columns["apart"], n_reads, threads),
    }


def _blind(work: Work) -> np.ndarray:
    """Mask of the reads in repeats whose copies cannot be told from each other, (n_reads,) bool."""

    def make() -> Result:
        ordinary, others = work.summed("marks", "ordinary", "others")
        return {"blind": indistinct(ordinary, others, profile_of(work))}

    return work.store.get_or_make("blind", make)["blind"]


def gate(work: Work, tile: int) -> Result:
    """Seeds without chance matches and repeats, and some of them from which the steps of extensions are chosen."""
    blind = _blind(work) if work.is_whole else _blind(work)[work.ids(tile)]
    seeds, marks = work.store.pop(f"seeds.{tile}"), work.store.pop(f"marks.{tile}")
    parts, dense = seeds["seeds"], marks["dense"]

    def drop(i: int) -> tuple[int, int]:
        its_marks = Marks(*(marks[name][i] for name in Marks._fields))
        part = replace(parts[i], copies=its_marks.copies)
        kept = its_marks.sound(part, blind)
        still_there, linked = has_any(part, dense[i]), has_any(part, kept)
        parts[i] = part.take(kept)  # what is dropped leaves before all are joined
        return int((~still_there).sum()), int((still_there & ~linked).sum())

    numbers = np.array(map_threads(drop, range(len(parts)), work.params.run.threads)).reshape(-1, 2).sum(axis=0).tolist()
    lengths = work.lengths(tile)
    pilots = map_threads(lambda part: pilot_seeds(lengths, part), parts, work.params.run.threads)
    joined = join_seeds(parts, parts[0].length, work.params.run.threads)
    return {
        "seeds": joined, "dropped": dict(zip((TOO_SPARSE, REPEAT), numbers, strict=True)),
        "pilot": pilot_seeds(lengths, join_seeds(pilots, joined.length)), "numbers": {"seeds": len(joined)},
    }  # fmt: skip


ROUNDS = (
    Round("seeds", "tiles", find_seeds, spends=("keep",)),
    Round("marks", "tiles", mark),
    Round("gate", "tiles", gate, spends=("seeds", "marks")),
)
