"""The anchors of a pass of seeds: an index of the target, the HSPs of both strands of the query, an anchor in each."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from bellapy.compute.threads import even_ranges, map_threads
from bellapy.engines.ydrop.sieve import pack
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.preset import Pass
from bellapy.jobs.wga.scene import Anchors, Sequences, paths_of
from bellapy.jobs.wga.support import Support, support_of
from bellapy.jobs.wga.ungapped import (
    CAPPED,
    EXTENDED,
    HITS,
    N_HSPS,
    QUERY,
    SCORE,
    TARGET,
    Search,
    blocks_of,
    find_anchors,
    find_hsps,
    search_bytes,
)  # fmt: skip
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Genome
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import Stage
from bellapy.seeding.spaced import INDEX_BYTES, index_seeds, parse_pattern

REPEATS = "seed hits in repeats"
PIECES = 64  # of the HSPs, for threads


@dataclass(slots=True)
class IndexStage(Stage):
    """Seeds of the target."""

    seeds: int | None = None


@dataclass(slots=True)
class AnchorStage(Stage):
    """Anchors of all HSPs."""

    anchors: int | None = None


@dataclass(slots=True)
class SeedStage(Stage):
    """Seed hits, those that were extended without gaps, high-scoring segment pairs."""

    hits: int | None = None
    extended: int | None = None
    hsps: int | None = None


def anchors_of(
    target: Genome, strands: dict[int, Genome], sequences: Sequences, one: Pass, number: int, params: WgaParams, means: Means
) -> Anchors:  # fmt: skip
    """The anchors of a pass; number : of the pass.  Masked bases give no seeds."""
    results = _search(target, strands, one, number, params, means)
    counts = np.sum([counts for _, counts in results.values()], axis=0)
    with means.report.stage(AnchorStage("anchors")) as stage:
        of_strands = [[hsps for (of, _), (hsps, _) in results.items() if of == strand] for strand in (1, -1)]
        forward, reverse = map_threads(_distinct, of_strands, means.resources.threads)
        reverse[:, QUERY] += len(strands[1].codes)
        anchors = _anchors(sequences, [forward, reverse], one, params, means.resources.threads)
        stage.anchors = len(anchors.score)
    means.report.dropped.add({REPEATS: int(counts[CAPPED])})
    if counts[CAPPED]:
        logger.info(
            "seed hits left out: %s, of words with more than %d places in the target", f"{counts[CAPPED]:,}", one.most_copies
        )  # fmt: skip
    return anchors


def _search(
    target: Genome, strands: dict[int, Genome], one: Pass, number: int, params: WgaParams, means: Means
) -> dict[tuple[int, tuple[int, int]], tuple[np.ndarray, np.ndarray]]:
    """HSPs and counts of every strand and block of the query."""
    pattern, report, budget = parse_pattern(one.seed, one.sampled), means.report, means.resources.budget
    threads = means.resources.threads
    jobs = [(strand, block) for strand in strands for block in blocks_of(target, strands[strand])]
    names = {job: f"hsps.{number}.{'plus' if job[0] > 0 else 'minus'}.{job[1][0]}" for job in jobs}
    results = {}
    for job in jobs:
        if means.work and (arrays := means.work.load(names[job])) is not None:
            results[job] = arrays["hsps"], arrays["counts"]
    missing = [job for job in jobs if job not in results]
    with report.stage(IndexStage("index")) as stage:
        budget.require("the seeds of the target", INDEX_BYTES * len(target.codes) // one.sampled)
        masked = target.masked if target.masked.any() else None
        index = index_seeds(target.codes, masked, pattern, params.step, threads)
        stage.seeds = len(index.places)
    search = Search(
        target, index, pattern, params, transition=one.transition, most_copies=one.most_copies, sections=one.linked,
        threads=threads,
    )  # fmt: skip
    packed = {strand: pack(genome.codes, threads) for strand, genome in strands.items()}

    def find(job: tuple[int, tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        hsps, counts = find_hsps(search, strands[job[0]], packed[job[0]], *job)
        if means.work:
            means.work.save(names[job], {"hsps": hsps, "counts": counts})
        advance(next(done))
        return hsps, counts

    done = itertools.count(1)
    with report.stage(SeedStage("seed")) as seeding, progress("seed", len(missing)) as advance:
        size = search_bytes(max(end - begin for _, (begin, end) in jobs), one.most_copies)
        threads = budget.items("the search for seeds", size, least=1, most=threads)
        results |= dict(zip(missing, map_threads(find, missing, threads), strict=True))
        counts = np.sum([counts for _, counts in results.values()], axis=0)
        seeding.hits, seeding.extended, seeding.hsps = (int(counts[which]) for which in (HITS, EXTENDED, N_HSPS))
    return {job: results[job] for job in jobs}


def _distinct(of_blocks: list[np.ndarray]) -> np.ndarray:
    """HSPs of all blocks by place, those that two have found once only."""
    hsps = np.concatenate(of_blocks)
    rows = hsps[np.argsort(hsps[:, TARGET] << 32 | hsps[:, QUERY], kind="stable")]
    return rows[np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))[: len(rows)]]


def _anchors(sequences: Sequences, of_strands: list[np.ndarray], one: Pass, params: WgaParams, threads: int) -> Anchors:
    """Anchors of the HSPs of each strand."""
    hsps = np.concatenate(of_strands)
    places = np.empty((len(hsps), 2), np.int64)

    def place(some: tuple[int, int]) -> None:
        rows = slice(*some)
        find_anchors(sequences.target, sequences.query, hsps[rows], params.scores.matrix, places[rows])

    map_threads(place, even_ranges(len(hsps), PIECES), threads)
    edges = sequences.edges(hsps[:, TARGET], hsps[:, QUERY])
    sizes = len(sequences.target), len(sequences.query)
    support = support_of(hsps, edges, sizes, params, threads) if one.linked else Support(hsps[:, SCORE].copy(), edges)
    t, q = places.T.copy()
    return Anchors(t, q, hsps[:, SCORE].copy(), *support, paths_of(t, q, support.limits, edges))
