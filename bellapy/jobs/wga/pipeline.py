"""The steps of whole-genome alignment: seeds, HSPs, gapped alignments, choice."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod
from threading import local
from typing import NamedTuple

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines.ydrop.sieve import pack
from bellapy.io.workdir import Workdir
from bellapy.jobs.wga.gapped import Aligner
from bellapy.jobs.wga.kept import Keeper, Progress
from bellapy.jobs.wga.rejoin import rejoin
from bellapy.jobs.wga.scene import Anchors
from bellapy.jobs.wga.select import drop_copies, one_to_one
from bellapy.jobs.wga.ungapped import (
    CAPPED,
    EXTENDED,
    HITS,
    N_HSPS,
    QUERY,
    TARGET,
    Search,
    blocks_of,
    find_anchors,
    find_hsps,
    search_bytes,
)  # fmt: skip
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Alignment, Genome
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import Dropped, RunReport, Stage
from bellapy.seeding.spaced import INDEX_BYTES, index_seeds, parse_pattern

COPIES, IDENTITY = "copies", "identity"
STRAND_BYTES, PAIR_BYTES = 3, 2  # for each base
HITS_FOR_GPU = 4000
"""For each thread: to extend so many takes as long as to start a GPU and to load its kernels."""
REPEATS, SPANNED = "seed hits in repeats", "anchors in repeats"


@dataclass(slots=True)
class IndexStage(Stage):
    """Seeds of the target."""

    seeds: int | None = None


@dataclass(slots=True)
class SeedStage(Stage):
    """Seed hits, those that were extended without gaps, high-scoring segment pairs."""

    hits: int | None = None
    extended: int | None = None
    hsps: int | None = None


@dataclass(slots=True)
class ExtendStage(Stage):
    """Anchors that were extended, cells computed, alignments."""

    anchors: int | None = None
    cells: int | None = None
    alignments: int | None = None


@dataclass(slots=True)
class ChooseStage(Stage):
    """Alignments that were left out, and those that are left."""

    dropped: int | None = None
    alignments: int | None = None


class Group(NamedTuple):
    """The anchors of two sequences on one strand; places on the sequences."""

    target: int
    query: int
    strand: int
    anchors: Anchors


class Means(NamedTuple):
    """What the job may use, and where it notes what it does.

    work : keeps results for a run that goes on after a stop; None: nowhere.  may_use_gpu : whether a GPU that nobody asked
    for is used if it saves time.
    """

    report: RunReport
    resources: Resources = Resources()
    work: Workdir | None = None
    may_use_gpu: bool = False


def align_genomes(target: Genome, query: Genome, params: WgaParams, means: Means) -> list[Alignment]:
    """All alignments of two genomes, by their place on the target."""
    report = means.report
    if means.may_use_gpu:
        means = means._replace(may_use_gpu=_pays_on_gpu(target, query, params, means.resources.threads))
    report.dropped = Dropped(COPIES, IDENTITY, REPEATS, SPANNED)
    means.resources.budget.require("the query's other strand", STRAND_BYTES * len(query.codes))
    strands = {1: query, -1: query.reverse()}
    groups = _anchors(target, strands, params, means)
    found, falls = _extend(target, strands, groups, params, means)
    with report.stage(ChooseStage("choose")) as stage:
        kept = found
        if params.one_to_one:
            kept = one_to_one(found, target, query, params)
        elif not (params.all_copies or params.itself):
            kept = drop_copies(found, target, query)
            report.dropped.add({COPIES: len(found) - len(kept)})
        n_dropped = len(found) - len(kept)
        if not params.one_to_one:
            kept = rejoin(kept, falls, target, query, params.scores)
        if params.identity:
            same = [one for one in kept if _identity(target, strands, one) >= params.identity]
            report.dropped.add({IDENTITY: len(kept) - len(same)})
            n_dropped += len(kept) - len(same)
            kept = same
        stage.dropped, stage.alignments = max(0, n_dropped), len(kept)
    return sorted(kept, key=Alignment.order)


def _anchors(target: Genome, strands: dict[int, Genome], params: WgaParams, means: Means) -> list[Group]:
    """Anchors by pair of sequences and strand."""
    results = _search(target, strands, params, means)
    counts = np.sum([counts for _, counts in results.values()], axis=0)
    groups = []
    for strand, genome in strands.items():
        hsps = np.concatenate([hsps for (of, _), (hsps, _) in results.items() if of == strand])
        groups += _grouped(target, genome, strand, _distinct(hsps), params)
    means.report.dropped.add({REPEATS: int(counts[CAPPED])})
    if counts[CAPPED]:
        logger.info(
            "seed hits left out: %s, of words with more than %d places in the target (--max-copies)",
            f"{counts[CAPPED]:,}", params.max_copies,
        )  # fmt: skip
    return groups


def _search(
    target: Genome, strands: dict[int, Genome], params: WgaParams, means: Means
) -> dict[tuple[int, tuple[int, int]], tuple[np.ndarray, np.ndarray]]:
    """HSPs and counts of every strand and block of the query."""
    pattern, report, budget = parse_pattern(params.seed), means.report, means.resources.budget
    jobs = [(strand, block) for strand in strands for block in blocks_of(target, strands[strand])]
    names = {job: f"hsps.{'plus' if job[0] > 0 else 'minus'}.{job[1][0]}" for job in jobs}
    results = {}
    for job in jobs:
        if means.work and (arrays := means.work.load(names[job])) is not None:
            results[job] = arrays["hsps"], arrays["counts"]
    missing = [job for job in jobs if job not in results]
    with report.stage(IndexStage("index")) as stage:
        budget.require("the seeds of the target", INDEX_BYTES * len(target.codes))
        index = index_seeds(
            target.codes,
            None if params.unmask else target.masked,
            pattern,
            params.step,
            means.resources.threads,
        )
        stage.seeds = len(index.places)
    search = Search(target, index, pattern, params)
    packed = {strand: pack(genome.codes) for strand, genome in strands.items()}

    def find(job: tuple[int, tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        hsps, counts = find_hsps(search, strands[job[0]], packed[job[0]], *job)
        if means.work:
            means.work.save(names[job], {"hsps": hsps, "counts": counts})
        advance(next(done))
        return hsps, counts

    done = itertools.count(1)
    with report.stage(SeedStage("seed")) as seeding, progress("seed", len(missing)) as advance:
        size = search_bytes(len(target.codes), max(end - begin for _, (begin, end) in jobs))
        threads = budget.items("the search for seeds", size, least=1, most=means.resources.threads)
        results |= dict(zip(missing, map_threads(find, missing, threads), strict=True))
        counts = np.sum([counts for _, counts in results.values()], axis=0)
        seeding.hits, seeding.extended, seeding.hsps = (int(counts[which]) for which in (HITS, EXTENDED, N_HSPS))
    return {job: results[job] for job in jobs}


def _distinct(hsps: np.ndarray) -> np.ndarray:
    """HSPs, those that two blocks have found once only."""
    rows = hsps[np.argsort(hsps[:, TARGET] << 32 | hsps[:, QUERY], kind="stable")]
    return rows[np.concatenate(([True], (rows[1:] != rows[:-1]).any(axis=1)))[: len(rows)]]


def _grouped(target: Genome, query: Genome, strand: int, hsps: np.ndarray, params: WgaParams) -> list[Group]:
    """Anchors of HSPs, by pair of sequences."""
    if not len(hsps):
        return []
    places = np.empty((len(hsps), 2), np.int64)
    find_anchors(target.codes, query.codes, hsps, params.scores.matrix, places)
    owners = target.owners(places[:, 0]), query.owners(places[:, 1])
    order = np.lexsort(owners[::-1])
    key = owners[0][order] * len(query.names) + owners[1][order]
    groups = []
    for rows in np.split(order, np.flatnonzero(np.diff(key)) + 1):
        t, q = int(owners[0][rows[0]]), int(owners[1][rows[0]])
        anchors = Anchors(places[rows, 0] - target.starts[t], places[rows, 1] - query.starts[q], hsps[rows, 3])
        groups.append(Group(t, q, strand, anchors))
    return groups


def _extend(
    target: Genome, strands: dict[int, Genome], groups: list[Group], params: WgaParams, means: Means
) -> tuple[list[Alignment], list[Alignment]]:  # fmt: skip
    """Alignments, and the stretches that were cut out between two of one path."""
    mine, resources = local(), means.resources
    if means.may_use_gpu:
        resources = replace(resources, device=choose_device("auto"))
    size = PAIR_BYTES * int(target.lengths.max() + strands[1].lengths.max())
    threads = resources.budget.items("the alignment of two sequences", size, least=1, most=resources.threads)
    pool = ThreadPoolExecutor(threads) if 0 < len(groups) < threads else None

    def align(group: Group) -> Progress:
        if not hasattr(mine, "aligner"):
            mine.aligner = Aligner(params, replace(resources, threads=threads), pool)
        same = params.itself and group.strand > 0 and group.target == group.query
        sequences = target.sequence(group.target), strands[group.strand].sequence(group.query)
        name = f"aligned.{group.target}.{group.query}.{'plus' if group.strand > 0 else 'minus'}"
        return mine.aligner.align(*sequences, group.anchors, same=same, keeper=Keeper(means.work, name))

    with (
        means.report.stage(ExtendStage("extend")) as stage,
        progress("extend", len(groups)) as advance,
        pool or nullcontext(),
    ):
        largest = sorted(range(len(groups)), key=lambda g: -len(groups[g].anchors.score))
        done = []

        def one(g: int) -> tuple[int, Progress]:
            result = align(groups[g])
            done.append(g)
            advance(len(done))
            return g, result

        results = dict(map_threads(one, largest, threads))
        found, falls = list[Alignment](), list[Alignment]()
        for g, group in enumerate(groups):
            for part in results[g].parts:
                alignment = Alignment(
                    part.score, group.target, group.query, group.strand, part.target, part.query, part.runs
                )
                found.append(alignment)
                if len(part.fall):
                    falls.append(alignment.behind(part.fall))
        stage.anchors, stage.cells = (sum(getattr(r, name) for r in results.values()) for name in ("n_extended", "n_cells"))
        stage.alignments = len(found)
        means.report.dropped.add({SPANNED: sum(result.n_left_out for result in results.values())})
    return found, falls


def _pays_on_gpu(target: Genome, query: Genome, params: WgaParams, threads: int) -> bool:
    """Whether chance alone gives so many seed hits, on both strands, that a GPU saves time."""
    bases = (genome.n_bases if params.unmask else genome.n_bases - int(genome.masked.sum()) for genome in (target, query))
    weight = parse_pattern(params.seed).weight
    words = 1 if params.notransition else 1 + weight
    return 2 * prod(bases) // params.step * words >= HITS_FOR_GPU * threads * 4**weight


def _identity(target: Genome, strands: dict[int, Genome], found: Alignment) -> float:
    """Share of equal bases in pairs."""
    t, q = found.pairs()
    a, b = target.sequence(found.target)[t], strands[found.strand].sequence(found.query)[q]
    return float(((a == b) & (a < 4)).mean())
