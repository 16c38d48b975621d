"""The filter once more, where paths have been made: trimmed ends and exact identities may change what passes."""

from __future__ import annotations

from bellapy.engines.trim import trim_paths
from bellapy.jobs.overlap.filter import SHAPE_REASONS, shape_failures
from bellapy.jobs.overlap.geometry import measure_geometry
from bellapy.jobs.overlap.judging import count_failed
from bellapy.params import FilterParams, Scoring
from bellapy.records import Overlaps, Paths, ReadSet


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
