"""Base-level paths of overlaps, and the filter once more: trimmed ends and exact identities may change what passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from bellapy.compute.resources import Resources
from bellapy.engines.ends import End
from bellapy.engines.trace import map_paths
from bellapy.engines.trim import trim_paths
from bellapy.jobs.overlap.align import Steps
from bellapy.jobs.overlap.filter import SHAPE_REASONS, count_failed, shape_failures
from bellapy.jobs.overlap.geometry import measure_geometry
from bellapy.jobs.overlap.report import PathsStage
from bellapy.params import FilterParams, Params, Scoring
from bellapy.records import Overlaps, Paths, ReadSet
from bellapy.report.log import logger
from bellapy.report.progress import progress
from bellapy.report.run_report import RunReport, describe_dropped

Shown = TypeVar("Shown")


def paths_stage(
    parts: Iterable[tuple[ReadSet, Overlaps, Callable[[Overlaps, Paths], Shown]]], n_overlaps: int, steps: Steps,
    params: Params, report: RunReport,
) -> Iterator[Shown]:  # fmt: skip
    """What is shown of the overlaps and their base-level paths, in order, some at a time; the stage ends with the last.

    parts : the reads that some overlaps number, these overlaps, and what shows them.  n_overlaps : of all parts.
    steps : that the overlaps were aligned with.  params : with the shortest overlap, as `with_min_overlap` gives it.
    """
    end, resources = End.of(params.extension.extension), Resources.of(params.run, report.devices)
    dropped: Counter[str] = Counter()
    n_done, n_kept = 0, 0
    with report.stage(PathsStage("paths")) as stage, progress("paths", n_overlaps) as advance:
        for reads, overlaps, show in parts:

            def use(some: Overlaps, paths: Paths, reads=reads, show=show) -> tuple[Shown, int, int, dict[str, int]]:
                kept, paths, lost = trim_and_test(reads, some, paths, steps[0], params.filter)
                return show(kept, paths), len(some), len(kept), lost

            for lines, n, kept, lost in map_paths(use, reads, overlaps, steps, end, resources):
                yield lines
                n_done, n_kept = n_done + n, n_kept + kept
                dropped.update(lost)
                advance(n_done)
        stage.overlaps = n_kept
    report.dropped.add(dropped)
    logger.info("dropped by their paths: %s", describe_dropped(dropped))


def keep_sound(
    reads: ReadSet, overlaps: Overlaps, paths: Paths, params: FilterParams
) -> tuple[Overlaps, Paths, dict[str, int]]:
    """What passes the tests of the filter that paths and trimming may change; how many do not, by reason."""
    geometry = measure_geometry(reads, overlaps, overlaps)
    failed = shape_failures(geometry, overlaps.n_matches, overlaps.n_columns, params)
    keep, dropped = failed == 0, count_failed(failed, SHAPE_REASONS)
    return (overlaps, paths, dropped) if keep.all() else (overlaps.take(keep), paths.take(keep), dropped)


def trim_and_test(
    reads: ReadSet, overlaps: Overlaps, paths: Paths, scoring: Scoring, params: FilterParams
) -> tuple[Overlaps, Paths, dict[str, int]]:
    """Paths trimmed if asked for; what is still an overlap then, and how many are dropped for what reason."""
    if params.trim_identity is not None:
        overlaps, paths = trim_paths(reads, overlaps, paths, params.trim_identity, scoring)
    return keep_sound(reads, overlaps, paths, params)
