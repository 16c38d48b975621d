"""The steps of whole-genome alignment: seeds, HSPs, gapped alignments, choice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.jobs.wga.anchoring import REPEATS, anchors_of
from bellapy.jobs.wga.gapped import Aligner
from bellapy.jobs.wga.kept import Keeper
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.preset import passes_of
from bellapy.jobs.wga.rejoin import rejoin
from bellapy.jobs.wga.scene import Anchors, Scene, sequences_of
from bellapy.jobs.wga.select import Taken, drop_copies, one_to_one
from bellapy.jobs.wga.turns import TURNS
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Alignment, Genome
from bellapy.report.progress import progress
from bellapy.report.run_report import Dropped, Stage
from bellapy.seeding.spaced import parse_pattern

COPIES, IDENTITY = "copies", "identity"
STRAND_BYTES = 4  # for each base of the query: its other strand, and both end to end
SCENE_BYTES = 1  # for each base of the target and of both strands
EXTENDER_BYTES = 11 << 20  # for each thread that extends anchors
HITS_FOR_GPU = 4000
"""For each thread: to extend so many takes as long as to start a GPU and to load its kernels."""
SPANNED = "anchors in repeats"


@dataclass(slots=True)
class PresetStage(Stage):
    """Patterns of seeds that the genomes get, one after the other."""

    seed_patterns: int | None = None


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


def align_genomes(target: Genome, query: Genome, params: WgaParams, means: Means) -> list[Alignment]:
    """All alignments of two genomes, by their place on the target."""
    report = means.report
    if means.may_use_gpu:
        means = means._replace(may_use_gpu=_pays_on_gpu(target, query, params, means.resources.threads))
    report.dropped = Dropped(COPIES, IDENTITY, REPEATS, SPANNED)
    means.resources.budget.require("the query's other strand", STRAND_BYTES * len(query.codes))
    found, falls = _align(target, query, params, means)
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
            strands = {1: query, -1: query.reverse()}
            same = [one for one in kept if _identity(target, strands, one) >= params.identity]
            report.dropped.add({IDENTITY: len(kept) - len(same)})
            n_dropped += len(kept) - len(same)
            kept = same
        stage.dropped, stage.alignments = max(0, n_dropped), len(kept)
    return sorted(kept, key=Alignment.order)


def _align(target: Genome, query: Genome, params: WgaParams, means: Means) -> tuple[list[Alignment], list[Alignment]]:
    """Alignments of all passes, and the stretches that were cut out between two of one path.

    A pass takes no seeds from what alignments of earlier passes span.
    """
    if params.unmask:
        target, query = (replace(genome, masked=np.zeros_like(genome.masked)) for genome in (target, query))
    with means.report.stage(PresetStage("preset")) as stage:
        passes = passes_of(target, query, params, means.resources.threads)
        stage.seed_patterns = len(passes)
    strands = {1: query, -1: query.reverse()}
    sequences = sequences_of(target, strands)
    means.resources.budget.require(
        "the alignment of the genomes", SCENE_BYTES * (len(sequences.target) + len(sequences.query))
    )
    scene = Scene(
        sequences, same=params.itself, trims=passes[0].linked, leave_out=not (params.all_copies or params.itself)
    )  # fmt: skip
    for number, one in enumerate(passes):
        if number:
            target, strands = _without_spanned(target, strands, sequences.alignments(scene.parts))
        anchors = anchors_of(target, strands, sequences, one, number, params, means)
        is_last = number == len(passes) - 1  # of the anchors of long seeds few are extended, and a GPU would extend all
        rules = replace(params, ydrop=one.ydrop)
        _extend(scene, anchors, number, rules, means if is_last else _without_gpu(means))
    found = sequences.alignments(scene.parts)
    falls = [one.behind(part.fall) for one, part in zip(found, scene.parts, strict=True) if len(part.fall)]
    return found, falls


def _without_gpu(means: Means) -> Means:
    return means._replace(resources=replace(means.resources, device="cpu"), may_use_gpu=False)


def _without_spanned(
    target: Genome, strands: dict[int, Genome], found: list[Alignment]
) -> tuple[Genome, dict[int, Genome]]:  # fmt: skip
    """The target and both strands of the query with all masked that alignments span on them."""
    taken = Taken(target, strands[1])
    for alignment in found:
        for span in taken.spans(alignment):
            span[:] = True
    taken.t |= target.masked
    taken.q |= strands[1].masked
    masks = {1: taken.q, -1: np.ascontiguousarray(taken.q[::-1])}
    return replace(target, masked=taken.t), {strand: replace(strands[strand], masked=masks[strand]) for strand in strands}


def _extend(scene: Scene, anchors: Anchors, number: int, params: WgaParams, means: Means) -> None:
    """Add the alignments of a pass; number : of the pass."""
    resources = means.resources
    if means.may_use_gpu:
        resources = replace(resources, device=choose_device("auto"))
    n_before = len(scene.parts)
    threads = resources.budget.items("the extension of anchors", EXTENDER_BYTES, least=1, most=resources.threads)
    with (
        means.report.stage(ExtendStage("extend")) as stage,
        progress("extend", TURNS * len(anchors.score)) as advance,
        ThreadPoolExecutor(threads) if threads > 1 else nullcontext() as pool,
    ):
        result = Aligner(params, replace(resources, threads=threads), pool).align(
            scene, anchors, keeper=Keeper(means.work, f"aligned.{number}"), advance=advance
        )
        stage.anchors, stage.cells = result.n_extended, result.n_cells
        stage.alignments = len(result.parts) - n_before
        means.report.dropped.add({SPANNED: result.n_left_out})


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
