"""Extension of flanks on all cores of a CPU: narrow windows first, what outgrows them in ever wider ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bellapy.compute.resources import Resources
from bellapy.compute.threads import map_threads
from bellapy.engines.ends import End, Ends
from bellapy.engines.flanks import Flanks
from bellapy.engines.lanes.shape import BYTE, SHORT, TILE, CellType, Shape
from bellapy.engines.linear.extend_lanes import extend_lanes
from bellapy.engines.linear.extend_slices import extend_slices, slices_fit
from bellapy.engines.linear.rule import GUARD, extend_each
from bellapy.engines.linear.sizes import narrow_height, shapes
from bellapy.engines.linear.slice_bases import LANES, planes_of
from bellapy.params import Scoring

BATCH = 8192  # flanks that TILE lanes take at a time
MIN_SLICED = 4 * LANES  # flanks: with fewer, too many lanes would be idle
PROBE = 256  # flanks that tell whether windows of a size are worth trying for the others
HOPELESS = 0.75  # where more than this share outgrow them: with a large X, unrelated sequence fills wide windows


class _Job(NamedTuple):
    """Extension of one set of flanks."""

    codes: np.ndarray
    flanks: Flanks
    scoring: Scoring
    longest: bool
    threads: int
    results: np.ndarray


def extend_flanks(codes: np.ndarray, flanks: Flanks, scoring: Scoring, end: End, resources: Resources) -> Ends:
    """Where every flank's extension ends.

    Parameters
    ----------
    codes : uint8, `ReadSet.both_ways`.
    """
    results = np.zeros((len(flanks), 3), np.int64)
    job = _Job(codes, flanks, scoring, end is End.LONGEST, resources.threads, results)
    todo = longest_first(np.minimum(flanks.query_length, flanks.target_length))
    for way in _ways(job, len(todo)):
        if len(todo) > way.lanes // 4:
            todo = _in_lanes(job, todo, way) if len(todo) < 4 * PROBE else _probed(job, todo, way)
    _one_by_one(job, todo)
    return Ends(results)


class _Way(NamedTuple):
    """A way to extend many flanks side by side.

    lanes : how many go on at a time.
    batch : how many a thread takes at a time: enough that idle lanes at its end do not matter.
    extend : the results of rows of `Flanks.table`, and those that outgrew their windows.
    """

    lanes: int
    batch: int
    extend: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _ways(job: _Job, n: int) -> Iterator[_Way]:
    """Ways to try one after the other with n flanks: ever wider windows."""
    many = n >= MIN_SLICED and slices_fit(job.scoring, job.longest)
    if many:
        planes = planes_of(job.codes, job.threads)
        yield _Way(LANES, BATCH * LANES // TILE, lambda table: extend_slices(planes, table, job.scoring))
    for cell in (BYTE, SHORT):
        for shape in shapes(job.scoring, cell):
            if not many or shape.height > narrow_height(job.scoring):
                yield _Way(shape.lanes, BATCH, partial(_extend_in_lanes, job, shape, cell))


def _extend_in_lanes(job: _Job, shape: Shape, cell: CellType, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return extend_lanes(job.codes, table, shape, job.scoring, job.longest, cell)


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """Rows with a length above 0, the longest first; in steps if need be: 16-bit numbers are sorted much faster."""
    todo = np.flatnonzero(lengths)
    most = int(lengths.max(initial=0))
    keys = (most - lengths[todo]) >> max(0, most.bit_length() - 16)
    return todo[np.argsort(keys.astype(np.uint16), kind="stable")]


def _probed(job: _Job, todo: np.ndarray, way: _Way) -> np.ndarray:
    """The same as `_in_lanes`, but where too many of some flanks outgrow the windows, the others do not try them."""
    probed = np.zeros(len(todo), bool)
    probed[:: len(todo) // PROBE] = True
    over = _in_lanes(job, todo[probed], way)
    if len(over) > HOPELESS * np.count_nonzero(probed):
        return todo[~probed | np.isin(todo, over)]
    return np.concatenate([over, _in_lanes(job, todo[~probed], way)])


def _in_lanes(job: _Job, todo: np.ndarray, way: _Way) -> np.ndarray:
    """Fill in `results`; return the flanks that outgrew their windows."""

    def extend(batch: np.ndarray) -> np.ndarray:
        job.results[batch], over = way.extend(job.flanks.table(batch))
        return batch[over]

    least = 4 * max(TILE, way.lanes)
    most = way.batch if job.threads == 1 else max(least, len(todo) // (4 * job.threads))  # for every thread some, to balance
    return np.concatenate(map_threads(extend, _batches(todo, min(way.batch, most)), job.threads))


def _one_by_one(job: _Job, todo: np.ndarray) -> None:
    def extend(batch: np.ndarray) -> None:
        cells = np.empty((3, int(job.flanks.query_length[batch].max()) + GUARD), np.int64)
        rows = np.empty((len(batch), 3), np.int64)
        extend_each(job.codes, job.flanks.table(batch), job.scoring, job.longest, cells, rows)
        job.results[batch] = rows

    map_threads(extend, _batches(todo, 1), job.threads)


def _batches(todo: np.ndarray, size: int) -> list[np.ndarray]:
    return [todo[at : at + size] for at in range(0, len(todo), size)]
