"""The commands `count`, `candidates`, `align` and `filter`: each reads what the one before wrote (docs/stages.md)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace

import numpy as np

from bellapy.api.overlapping import Found, write
from bellapy.api.reading import load_reads
from bellapy.compute.memory import Budget
from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.extend import extend_anchors
from bellapy.io.overlap_writer import Destination
from bellapy.io.stage_files import load_stage, not_a_stage, save_stage
from bellapy.jobs.overlap.align import ALL, STEPS, AllAlignments, Steps, in_candidate_order
from bellapy.jobs.overlap.blocks import ANY_COUNT, KEPT, Blocks, KeptPart
from bellapy.jobs.overlap.filter import overlaps_of
from bellapy.jobs.overlap.gate import GATED, Gated, pilot_seeds
from bellapy.jobs.overlap.linking import LINKED, Linked
from bellapy.jobs.overlap.pipeline import (
    for_paths,
    in_memory,
    run_alignment,
    run_candidates,
    run_counting,
    run_filter,
    with_device,
)
from bellapy.jobs.overlap.work import ESTIMATE
from bellapy.params import Params, Scoring
from bellapy.records import DepthProfile, Estimate, Extensions, KmerMatrix, Overlaps, ReadSet, Seeds
from bellapy.records.kmers import Held
from bellapy.report.run_report import RunReport


@dataclass(frozen=True)
class Counted:
    """What counting found: the matrix, the depth profile, and what the spectrum says of the reads."""

    matrix: KmerMatrix
    profile: DepthProfile
    estimate: Estimate


def count(paths: list[str], output: str, params: Params, report: RunReport) -> None:
    """Reliable k-mers of the reads."""
    loaded = load_reads(paths, params, report)
    counted = count_stage(loaded.reads, params, report)
    save_stage(
        output,
        "k-mers",
        loaded.reads,
        {"estimate": asdict(counted.estimate)},
        matrix=counted.matrix,
        profile=counted.profile,
    )


def candidates(paths: list[str], kmers: str, output: str, params: Params, report: RunReport) -> None:
    """Seeds of candidate pairs."""
    loaded = load_reads(paths, params, report)
    meta, matrix, profile = load_stage(kmers, "k-mers", loaded.reads, Budget(params.run.max_memory))
    seeds = candidates_stage(loaded.reads, Counted(matrix, profile, Estimate(**meta["estimate"])), params, report)
    save_stage(output, "seeds", loaded.reads, meta, seeds=seeds)


def align(paths: list[str], seeds: str, output: str, params: Params, report: RunReport) -> None:
    """Extensions of seeds."""
    loaded = load_reads(paths, params, report)
    meta, given = load_stage(seeds, "seeds", loaded.reads, Budget(params.run.max_memory))
    extended, extensions, steps = align_stage(loaded.reads, given, Estimate(**meta["estimate"]), params, report)
    meta |= {"steps": [step._asdict() for step in steps], "extension": params.extension.extension}
    save_stage(output, "alignments", loaded.reads, meta, seeds=extended, extensions=extensions)


def filter_alignments(paths: list[str], alignments: str, output: Destination, params: Params, report: RunReport) -> None:
    """Overlaps among alignments; scores and the rule of extension are those that these were made with."""
    loaded = load_reads(paths, params, report, output)
    meta, seeds, extensions = load_stage(alignments, "alignments", loaded.reads, Budget(params.run.max_memory))
    steps = tuple(Scoring(**step) for step in meta["steps"])
    scores = {name: getattr(steps[0], name) for name in ("match", "mismatch", "gap")}
    params = replace(params, extension=replace(params.extension, **scores, extension=meta["extension"]))
    loaded.params = with_device(params) if output.paths else params
    report.parameters = loaded.params.to_dict()
    overlaps = filter_stage(
        loaded.reads, seeds, extensions, Estimate(**meta["estimate"]), loaded.params, report, with_paths=output.paths
    )
    if output.paths and not are_extended(loaded.reads, overlaps, steps, loaded.params):
        raise not_a_stage(alignments, "ends that are not those of an extension")
    write(Found(loaded, overlaps, steps), report, output)


# ---------------------------------------------------------------- each in memory


def count_stage(reads: ReadSet, params: Params, report: RunReport) -> Counted:
    """K-mers that link reads, alone."""
    work = in_memory(reads, params, report)
    run_counting(work)
    kept = work.pop(KEPT, 0)
    entries = kept.blocks.entries[0]
    matrix = KmerMatrix(
        n_kmers=kept.n_kmers, entries=entries.on_host() if isinstance(entries, Held) else entries,
        starts=np.append(reads.starts, len(reads.codes)), upper=ANY_COUNT, k=kept.k, seed_length=kept.seed_length,
    )  # fmt: skip
    return Counted(matrix, work.get(LINKED).profile, work.estimate)


def candidates_stage(reads: ReadSet, counted: Counted, params: Params, report: RunReport) -> Seeds:
    """Seeds of all candidates, alone."""
    work, matrix = in_memory(reads, params, report), counted.matrix
    work.store.put(ESTIMATE, counted.estimate)
    blocks = Blocks((matrix.entries,))
    work.store.put(KEPT, KeptPart(blocks, matrix.n_kmers, len(matrix.entries), matrix.k, matrix.seed_length, None), 0)
    work.store.put(LINKED, Linked(counted.profile))
    run_candidates(work)
    return work.pop(GATED, 0).seeds


def align_stage(
    reads: ReadSet, seeds: Seeds, estimate: Estimate, params: Params, report: RunReport
) -> tuple[Seeds, Extensions, Steps]:
    """Alignments, alone: their seeds, what grew from these, and the scores used."""
    if (order := in_candidate_order(seeds)) is not None:
        seeds = seeds.take(order)
    work = in_memory(reads, params, report)
    work.store.put(ESTIMATE, estimate)
    work.store.put(GATED, Gated(seeds, pilot_seeds(reads.lengths, seeds), len(seeds), {}), 0)
    run_alignment(work)
    found = work.pop(ALL, 0)
    return found.seeds, found.extensions, work.get(STEPS).steps


def filter_stage(
    reads: ReadSet, seeds: Seeds, extensions: Extensions, estimate: Estimate, params: Params, report: RunReport, *,
    with_paths: bool = False,
) -> Overlaps:  # fmt: skip
    """Overlaps among alignments, alone; with_paths : as in `overlap_reads`."""
    if (order := in_candidate_order(seeds)) is not None:
        seeds, extensions = seeds.take(order), extensions.take(order)
    work = in_memory(reads, for_paths(params, with_paths), report)
    work.store.put(ESTIMATE, estimate)
    work.store.put(ALL, AllAlignments(seeds, extensions, len(seeds), 0), 0)
    run_filter(work)
    return overlaps_of(work, 0)


def are_extended(reads: ReadSet, overlaps: Overlaps, steps: Steps, params: Params) -> bool:
    """Whether the overlaps' scores and ends are what extension of their seeds gives: what traces paths counts on it.

    Where overlaps come from a file, only another extension tells.
    """
    end = End.of(params.extension.extension)
    again = extend_anchors(reads, overlaps.anchors, steps, end, Resources.of(params.run))
    return all(np.array_equal(getattr(again, f.name), getattr(overlaps, f.name)) for f in fields(again))
