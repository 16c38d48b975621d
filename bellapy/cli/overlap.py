"""The commands `overlap`, and its stages `count`, `candidates`, `align` and `filter`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bellapy.cli.options import RUNNING, Given, Output, Reads, StageOutput, pick, takes
from bellapy.cli.overlapping import (
    ALL_RUNNING,
    SkipAlignment,
    TargetFile,
    destination,
    overlap_session,
    write_plain,
    write_with_paths,
)
from bellapy.cli.reading import Loaded, TooLarge, load_reads, with_run
from bellapy.cli.session import Session
from bellapy.errors import MemoryLimitError, ParameterError
from bellapy.params import ExtensionParams, FilterParams, KmerParams, Params, SeedParams, make_params
from bellapy.params.fields import INPUT, given_values, options_of
from bellapy.params.overlap import FIELDS, PresetParams, WritingParams
from bellapy.params.reads import ReadParams
from bellapy.params.run import LaunchParams, WorkdirParams

if TYPE_CHECKING:  # loaded when needed
    from bellapy.io.overlap_writer import Destination
    from bellapy.jobs.overlap.ends import Steps
    from bellapy.records import Overlaps

StageInput = {"show_default": False, "metavar": "FILE", "rich_help_panel": INPUT}


@takes(
    options_of(PresetParams, ReadParams, KmerParams, SeedParams, ExtensionParams, FilterParams, WritingParams), ALL_RUNNING,
    options_of(WorkdirParams, LaunchParams),
)  # fmt: skip
def overlap(
    given: Given, reads: Reads, output: Output = "-", skip_alignment: SkipAlignment = False, targets: TargetFile = None
) -> None:
    """Overlaps of all reads with each other, or with those of another file."""
    if given["device"] != "cpu" and given["workdir"] is None and not skip_alignment:
        from bellapy.compute.gpu.devices import wake

        wake()
    target = destination(output, given, skip_alignment)
    files = [*reads, *_checked_targets(given, targets)]
    if given["workdir"] is not None:
        from bellapy.cli.tiles import overlap_in_folder

        overlap_in_folder(given, files, target, skip_alignment, targets is not None)
        return
    if wanted := next((name for name in ("keep_workdir", "blocks", "scheduler") if given[name]), None):
        raise ParameterError(f"--{wanted.replace('_', '-')}: name a folder with --workdir")
    with overlap_session(given, files, {"-o": output, "the index": target.index}) as (run, params):
        found = _find(run, params, files, target, skip_alignment, targets is not None)
        if found:
            _write(run, *found, target)
            return
        from bellapy.cli.tiles import overlap_in_tiles

        overlap_in_tiles(run, params, files, target, skip_alignment, targets is not None)


def _checked_targets(given: Given, targets: str | None) -> list[str]:
    """The file of targets, if there is one; ParameterError where another option does not go with it."""
    if targets is None:
        return []
    if given["drop_contained"]:
        raise ParameterError("--drop-contained: looks at overlaps within a file, too; leave out --targets")
    return [targets]


def _find(
    run: Session, params: Params, reads: list[str], target: Destination, skip_alignment: bool, targets: bool
) -> tuple[Loaded, Overlaps, Steps | None] | None:
    """Reads, overlaps and scores; None: all of it at once needs more than --max-memory, and the files can be read again.

    targets : the last file holds targets.
    """
    from os.path import isfile

    or_tiles = all(map(isfile, reads))
    try:
        loaded = load_reads(run, params, reads, target, overlaps=not skip_alignment, or_tiles=or_tiles, targets=targets)
        from bellapy.jobs.overlap.pipeline import candidate_overlaps, overlap_reads

        given = loaded.reads, loaded.params, run.report
        if skip_alignment:
            return loaded, candidate_overlaps(*given, loaded.n_queries), None
        return loaded, *overlap_reads(*given, with_paths=target.paths, n_queries=loaded.n_queries)
    except (TooLarge, MemoryLimitError):
        if not or_tiles:
            raise
        return None


@takes(options_of(PresetParams, ReadParams, KmerParams), RUNNING)
def count(given: Given, reads: Reads, output: StageOutput) -> None:
    """Reliable k-mers of the reads."""
    with overlap_session(given, reads, {"-o": output}) as (run, params):
        loaded = load_reads(run, params, reads)
        from bellapy.io.stage_files import save_stage
        from bellapy.jobs.overlap.stages import count_stage

        counted = count_stage(loaded.reads, params, run.report)
        save_stage(output, "k-mers", loaded.reads, counted.meta(), matrix=counted.matrix, profile=counted.profile)


@takes(options_of(ReadParams, SeedParams), RUNNING)
def candidates(
    given: Given, reads: Reads,
    kmers: Annotated[str, typer.Option("--kmers", help="File of `bellapy count`.", **StageInput)], output: StageOutput,
) -> None:  # fmt: skip
    """Seeds of candidate pairs."""
    with overlap_session(given, [*reads, kmers], {"-o": output}) as (run, params):
        loaded = load_reads(run, params, reads)
        from bellapy.io.stage_files import load_stage, save_stage
        from bellapy.jobs.overlap.stages import Counted, candidates_stage

        meta, matrix, profile = load_stage(kmers, "k-mers", loaded.reads, run.budget)
        seeds = candidates_stage(loaded.reads, Counted.from_meta(matrix, profile, meta), params, run.report)
        save_stage(output, "seeds", loaded.reads, meta, seeds=seeds)


@takes(options_of(PresetParams, ReadParams, ExtensionParams), pick(FilterParams, "delta"), ALL_RUNNING)
def align(
    given: Given, reads: Reads,
    seeds: Annotated[str, typer.Option("--seeds", help="File of `bellapy candidates`.", **StageInput)], output: StageOutput,
) -> None:  # fmt: skip
    """Extensions of seeds."""
    with overlap_session(given, [*reads, seeds], {"-o": output}) as (run, params):
        loaded = load_reads(run, params, reads)
        from bellapy.io.stage_files import load_stage, save_stage
        from bellapy.jobs.overlap.stages import align_stage, estimate_of

        meta, seed_set = load_stage(seeds, "seeds", loaded.reads, run.budget)
        seed_set, extensions, steps = align_stage(loaded.reads, seed_set, estimate_of(meta), params, run.report)
        meta |= {"steps": [step._asdict() for step in steps], "extension": params.extension.extension}
        save_stage(output, "alignments", loaded.reads, meta, seeds=seed_set, extensions=extensions)


@takes(options_of(ReadParams, FilterParams, WritingParams), ALL_RUNNING)
def filter_command(
    given: Given, reads: Reads,
    alignments: Annotated[str, typer.Option("--alignments", help="File of `bellapy align`.", **StageInput)],
    output: Output = "-",
) -> None:  # fmt: skip
    """Overlaps among alignments."""
    target = destination(output, given)
    with overlap_session(given, [*reads, alignments], {"-o": output, "the index": target.index}) as (run, params):
        loaded = load_reads(run, params, reads, target)
        from bellapy.io.stage_files import load_stage, not_a_stage
        from bellapy.jobs.overlap.pipeline import with_device
        from bellapy.jobs.overlap.stages import are_extended, estimate_of, filter_stage
        from bellapy.params import Scoring

        meta, seeds, extensions = load_stage(alignments, "alignments", loaded.reads, run.budget)
        steps = tuple(Scoring(**step) for step in meta["steps"])
        params = with_run(make_params(**given_values(given, FIELDS), **_aligned_with(steps, meta)), run)
        loaded.params = with_device(params) if target.paths else params
        run.report.parameters = loaded.params.to_dict()
        overlaps = filter_stage(
            loaded.reads, seeds, extensions, estimate_of(meta), loaded.params, run.report, with_paths=target.paths
        )
        if target.paths and not are_extended(loaded.reads, overlaps, steps, loaded.params):
            raise not_a_stage(alignments, "ends that are not those of an extension")
        _write(run, loaded, overlaps, steps, target)


def _aligned_with(steps: Steps, meta: dict[str, Any]) -> dict[str, Any]:
    """The options that alignments were made with."""
    return {**{name: getattr(steps[0], name) for name in ("match", "mismatch", "gap")}, "extension": meta["extension"]}


def _write(
    run: Session, loaded: Loaded, overlaps: Overlaps, steps: Steps | None, output: Destination
) -> None:  # fmt: skip
    """Write overlaps, with their paths if the output needs any; steps : None where nothing was aligned."""
    reads, overlaps = loaded.restore(overlaps, with_bases=output.paths)
    if output.paths and steps:
        from bellapy.jobs.overlap.stored_reads import SomeOverlaps

        write_with_paths(run, reads, [SomeOverlaps(reads, overlaps)], len(overlaps), steps, loaded.params, output)
    else:
        write_plain(run, reads, [overlaps], output)
