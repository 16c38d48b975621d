"""The steps of whole-genome alignment: seeds, HSPs, gapped alignments, choice."""

from __future__ import annotations

from dataclasses import dataclass
from threading import local
from typing import NamedTuple

import numpy as np

from bellapy.compute.threads import map_threads
from bellapy.engines.ydrop.sieve import pack
from bellapy.jobs.wga.gapped import Aligner, Anchors, Part
from bellapy.jobs.wga.select import drop_copies, one_to_one
from bellapy.jobs.wga.ungapped import CAPPED, EXTENDED, HITS, Search, find_anchors, find_hsps
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Alignment, Genome
from bellapy.report.log import logger, progress
from bellapy.report.run_report import Dropped, RunReport, Stage
from bellapy.seeding.spaced import index_seeds, parse_pattern

COPIES, IDENTITY = "copies", "identity"
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


def align_genomes(target: Genome, query: Genome, params: WgaParams, report: RunReport, threads: int) -> list[Alignment]:
    """All alignments of two genomes, by their place on the target."""
    report.dropped = Dropped(COPIES, IDENTITY, REPEATS, SPANNED)
    strands = {1: query, -1: query.reverse()}
    groups = _anchors(target, strands, params, report, threads)
    found = _extend(target, strands, groups, params, report, threads)
    with report.stage(ChooseStage("choose")) as stage:
        kept = found
        if params.one_to_one:
            kept = one_to_one(found, target, query, params)
        elif not (params.all_copies or params.itself):
            kept = drop_copies(found, target, query)
            report.dropped.add({COPIES: len(found) - len(kept)})
        if params.identity:
            same = [one for one in kept if _identity(target, strands, one) >= params.identity]
            report.dropped.add({IDENTITY: len(kept) - len(same)})
            kept = same
        stage.dropped, stage.alignments = max(0, len(found) - len(kept)), len(kept)
    return sorted(kept, key=Alignment.order)


def _anchors(target, strands, params: WgaParams, report: RunReport, threads: int) -> list[Group]:
    pattern = parse_pattern(params.seed)
    with report.stage(IndexStage("index")) as stage:
        masked = np.zeros_like(target.masked) if params.unmask else target.masked
        index = index_seeds(target.codes, masked, pattern, params.step)
        stage.seeds = len(index.places)
    search = Search(target, index, pattern, params)
    with report.stage(SeedStage("seed")) as stage:
        jobs = [(strand, block) for strand in strands for block in search.blocks(strands[strand])]
        packed = {strand: pack(genome.codes) for strand, genome in strands.items()}
        results = map_threads(lambda job: find_hsps(search, strands[job[0]], packed[job[0]], *job), jobs, threads)
        counts = np.sum([result[1] for result in results], axis=0)
        groups = []
        for strand, genome in strands.items():
            hsps = np.concatenate([result[0] for job, result in zip(jobs, results, strict=True) if job[0] == strand])
            groups += _grouped(target, genome, strand, np.unique(hsps, axis=0), params)
        stage.hits, stage.extended = int(counts[HITS]), int(counts[EXTENDED])
        stage.hsps = sum(len(group.anchors.score) for group in groups)
    report.dropped.add({REPEATS: int(counts[CAPPED])})
    if counts[CAPPED]:
        logger.info(
            "seed hits left out: %s, of words with more than %d places in the target (--max-copies)",
            f"{counts[CAPPED]:,}", params.max_copies,
        )  # fmt: skip
    return groups


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


def _extend(target, strands, groups: list[Group], params: WgaParams, report: RunReport, threads: int) -> list[Alignment]:
    mine, aligners = local(), []

    def align(group: Group) -> list[Part]:
        if not hasattr(mine, "aligner"):
            mine.aligner = Aligner(params)
            aligners.append(mine.aligner)
        same = params.itself and group.strand > 0 and group.target == group.query
        sequences = target.sequence(group.target), strands[group.strand].sequence(group.query)
        return mine.aligner.align(*sequences, group.anchors, same=same)

    with report.stage(ExtendStage("extend")) as stage, progress("extend", len(groups)) as advance:
        largest = sorted(range(len(groups)), key=lambda g: -len(groups[g].anchors.score))
        done = []

        def one(g: int) -> tuple[int, list[Part]]:
            parts = align(groups[g])
            done.append(g)
            advance(len(done))
            return g, parts

        results = dict(map_threads(one, largest, threads))
        found = [
            Alignment(part.score, group.target, group.query, group.strand, part.target, part.query, part.runs)
            for g, group in enumerate(groups)
            for part in results[g]
        ]
        stage.anchors, stage.cells = sum(a.n_extended for a in aligners), sum(a.n_cells for a in aligners)
        stage.alignments = len(found)
        report.dropped.add({SPANNED: sum(a.n_left_out for a in aligners)})
    return found


def _identity(target: Genome, strands: dict[int, Genome], found: Alignment) -> float:
    """Share of equal bases in pairs."""
    t, q = found.pairs()
    a, b = target.sequence(found.target)[t], strands[found.strand].sequence(found.query)[q]
    return float(((a == b) & (a < 4)).mean())
