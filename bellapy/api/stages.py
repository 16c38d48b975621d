"""The commands `count`, `candidates`, `align` and `filter`: each reads what the one before wrote (docs/stage-files.md)."""

from __future__ import annotations

from dataclasses import replace

from bellapy.api.overlapping import Found, write
from bellapy.api.reading import load_reads
from bellapy.compute.memory import Budget
from bellapy.io.overlap_writer import Destination
from bellapy.io.stage_files import load_stage, not_a_stage, save_stage
from bellapy.jobs.overlap.pipeline import with_device
from bellapy.jobs.overlap.stages import (
    Counted,
    align_stage,
    are_extended,
    candidates_stage,
    count_stage,
    estimate_of,
    filter_stage,
)
from bellapy.params import Params, Scoring
from bellapy.report.run_report import RunReport


def count(paths: list[str], output: str, params: Params, report: RunReport) -> None:
    """Reliable k-mers of the reads."""
    loaded = load_reads(paths, params, report)
    counted = count_stage(loaded.reads, params, report)
    save_stage(output, "k-mers", loaded.reads, counted.meta(), matrix=counted.matrix, profile=counted.profile)


def candidates(paths: list[str], kmers: str, output: str, params: Params, report: RunReport) -> None:
    """Seeds of candidate pairs."""
    loaded = load_reads(paths, params, report)
    meta, matrix, profile = load_stage(kmers, "k-mers", loaded.reads, Budget(params.run.max_memory))
    seeds = candidates_stage(loaded.reads, Counted.from_meta(matrix, profile, meta), params, report)
    save_stage(output, "seeds", loaded.reads, meta, seeds=seeds)


def align(paths: list[str], seeds: str, output: str, params: Params, report: RunReport) -> None:
    """Extensions of seeds."""
    loaded = load_reads(paths, params, report)
    meta, given = load_stage(seeds, "seeds", loaded.reads, Budget(params.run.max_memory))
    extended, extensions, steps = align_stage(loaded.reads, given, estimate_of(meta), params, report)
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
        loaded.reads, seeds, extensions, estimate_of(meta), loaded.params, report, with_paths=output.paths
    )
    if output.paths and not are_extended(loaded.reads, overlaps, steps, loaded.params):
        raise not_a_stage(alignments, "ends that are not those of an extension")
    write(Found(loaded, overlaps, steps), report, output)
