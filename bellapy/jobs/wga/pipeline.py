"""The steps of whole-genome alignment: seeds, HSPs, gapped alignments, choice."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod
from threading import local

import numpy as np

from bellapy.compute.gpu.devices import choose_device
from bellapy.compute.threads import map_threads
from bellapy.jobs.wga.anchoring import REPEATS, Group, Pair, find_groups
from bellapy.jobs.wga.gapped import Aligner
from bellapy.jobs.wga.kept import NOTHING, Keeper, Progress
from bellapy.jobs.wga.means import Means
from bellapy.jobs.wga.preset import passes_of
from bellapy.jobs.wga.rejoin import rejoin
from bellapy.jobs.wga.select import Taken, drop_copies, one_to_one
from bellapy.params.wga import WgaParams
from bellapy.records.genomes import Alignment, Genome
from bellapy.report.progress import progress
from bellapy.report.run_report import Dropped, Stage
from bellapy.seeding.spaced import parse_pattern

COPIES, IDENTITY = "copies", "identity"
STRAND_BYTES, PAIR_BYTES = 3, 2  # for each base
HITS_FOR_GPU = 4000
"""For each thread: to extend so many takes as long as to start a GPU and to load its kernels."""
SPANNED = "anchors in repeats"


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
    done = dict[Pair, Progress]()
    for number, one in enumerate(passes_of(target, query, params)):
        if number:
            target, query = _without_spanned(target, query, _alignments(done)[0])
        strands = {1: query, -1: query.reverse()}
        groups = find_groups(target, strands, one, number, params, means)
        done |= _extend(target, strands, groups, number, done, params, means)
    return _alignments(done)


def _without_spanned(target: Genome, query: Genome, found: list[Alignment]) -> tuple[Genome, Genome]:
    """The genomes with all masked that alignments span on them."""
    taken = Taken(target, query)
    for alignment in found:
        for span in taken.spans(alignment):
            span[:] = True
    return replace(target, masked=target.masked | taken.t), replace(query, masked=query.masked | taken.q)


def _alignments(done: dict[Pair, Progress]) -> tuple[list[Alignment], list[Alignment]]:
    found, falls = list[Alignment](), list[Alignment]()
    for pair, progress_of_pair in sorted(done.items(), key=lambda item: (-item[0].strand, *item[0])):
        for part in progress_of_pair.parts:
            alignment = Alignment(part.score, *pair, part.target, part.query, part.runs)
            found.append(alignment)
            if len(part.fall):
                falls.append(alignment.behind(part.fall))
    return found, falls


def _extend(
    target: Genome, strands: dict[int, Genome], groups: list[Group], number: int, begun: dict[Pair, Progress],
    params: WgaParams, means: Means,
) -> dict[Pair, Progress]:  # fmt: skip
    """The alignments of the pairs that have anchors in a pass, with those of the passes before."""
    mine, resources = local(), means.resources
    if means.may_use_gpu:
        resources = replace(resources, device=choose_device("auto"))
    size = PAIR_BYTES * int(target.lengths.max() + strands[1].lengths.max())
    threads = resources.budget.items("the alignment of two sequences", size, least=1, most=resources.threads)
    pool = ThreadPoolExecutor(threads) if 0 < len(groups) < threads else None

    def align(group: Group) -> Progress:
        if not hasattr(mine, "aligner"):
            mine.aligner = Aligner(params, replace(resources, threads=threads), pool)
        pair = group.pair
        same = params.itself and pair.strand > 0 and pair.target == pair.query
        sequences = target.sequence(pair.target), strands[pair.strand].sequence(pair.query)
        name = f"aligned.{number}.{pair.target}.{pair.query}.{'plus' if pair.strand > 0 else 'minus'}"
        return mine.aligner.align(
            *sequences, group.anchors, same=same, keeper=Keeper(means.work, name), begun=_more_of(begun.get(pair, NOTHING))
        )

    with (
        means.report.stage(ExtendStage("extend")) as stage,
        progress("extend", len(groups)) as advance,
        pool or nullcontext(),
    ):
        largest = sorted(range(len(groups)), key=lambda g: -len(groups[g].anchors.score))
        n_done = itertools.count(1)

        def one(g: int) -> tuple[Pair, Progress]:
            result = align(groups[g])
            advance(next(n_done))
            return groups[g].pair, result

        results = dict(map_threads(one, largest, threads))
        stage.anchors, stage.cells, n_left_out, stage.alignments = _new(results, begun)
        means.report.dropped.add({SPANNED: n_left_out})
    return results


def _more_of(before: Progress) -> Progress:
    """The beginning of a pass, with the alignments of the passes before."""
    return NOTHING._replace(parts=before.parts)


def _new(results: dict[Pair, Progress], begun: dict[Pair, Progress]) -> tuple[int, int, int, int]:
    """Anchors extended, cells computed, anchors left out, and alignments beside those of the passes before."""
    n_before = sum(len(begun[pair].parts) for pair in results.keys() & begun.keys())
    n_extended, n_cells, n_left_out = (
        sum(getattr(result, name) for result in results.values()) for name in ("n_extended", "n_cells", "n_left_out")
    )
    return n_extended, n_cells, n_left_out, sum(len(result.parts) for result in results.values()) - n_before


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
